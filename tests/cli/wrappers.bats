#!/usr/bin/env bats
# The packaged scripts around pt-pmp, with ours first in PATH: what they give is what they give with
# the stock one.

bats_require_minimum_version 1.5.0

setup() {
	# shellcheck source=../live/lib.bash
	. "$BATS_TEST_DIRNAME/../live/lib.bash"
	stock=/usr/bin/pt-pmp
	if ! command -v pt-sift >/dev/null || ! grep -qs '^=head1 COPYRIGHT' "$stock"; then
		skip "percona-toolkit is not installed"
	fi
	HOME=$BATS_TEST_TMPDIR/home
	export HOME TERM=dumb
	unset BPF_PMP
	cd "$BATS_TEST_TMPDIR"
	# as installed: the shim and the program in one folder
	mkdir home ours theirs
	cp "$lib_top/compat/pt-pmp" ours
	ln -s "$(cd "$lib_top" && cd "${B:-build}" && pwd)/bpf-pmp" ours/bpf-pmp
	ln -s "$stock" theirs/pt-pmp
}

teardown() {
	stop_mariadb
}

# frames N: a thread of N frames, as gdb prints them on a MariaDB
frames() {
	local i
	for ((i = 0; i < $1; i++)); do
		case $((i % 5)) in
		0) echo "#$i  0x00007f12a4c0015b in poll () from /lib/x86_64-linux-gnu/libc.so.6" ;;
		1) echo "#$i  0x000055d1e2a01aab in vio_io_wait (vio=0x7f12, event=VIO_IO_EVENT_READ) at ./vio/viosocket.c:940" ;;
		2) echo "#$i  0x000055d1e2a01bbb in std::vector<int, std::allocator<int> >::push_back(int const&) ()" ;;
		3) echo "#$i  0x000055d1e2a01ccc in ?? () from /usr/lib/mysql/plugin/ha_rocksdb.so" ;;
		4) echo "#$i  0x000055d1e2a01ddd in pthread_cond_wait@@GLIBC_2.3.2 () from /lib/libpthread.so.0" ;;
		esac
	done
}

# trace SEED: gdb's text of some threads, several of them equal
trace() {
	local i n=0
	echo '[New LWP 4712]'
	echo '[Thread debugging using libthread_db enabled]'
	for i in 7 2 7 1 3 7 2 5 4 6 8 "$1"; do
		n=$((n + 1))
		printf '\nThread %d (Thread 0x7f12%04x (LWP %d)):\n' "$n" "$n" "$((4711 + n))"
		frames "$i"
	done
	printf '[Inferior 1 (process 4711) detached]\n'
}

# collection FOLDER PREFIX SEED: what pt-stalk leaves, as far as pt-sift's first page reads it
collection() {
	mkdir -p "$1"
	echo "collected" >"$1/$2-output"
	echo db1 >"$1/$2-hostname"
	printf 'Main thread process no. 1, state: sleeping\nEND OF INNODB MONITOR OUTPUT\n' \
		>"$1/$2-innodbstatus1"
	printf '  State: init\n  Command: Query\n' >"$1/$2-processlist"
	trace "$3" >"$1/$2-stacktrace"
}

# sift KEYS FOLDER: pt-sift's pages, with either pt-pmp, in the files sift.ours and sift.theirs
sift() {
	local whose
	# what pt-stalk started may still be at work on its files
	rm -rf frozen
	mkdir frozen
	cp -r "$2" frozen/
	for whose in ours theirs; do
		printf %s "$1" | PATH=$PWD/$whose:$PATH pt-sift "frozen/$2" >"sift.$whose" 2>"sift.$whose.err"
	done
	cat sift.ours sift.ours.err
}

# locales: those of the stock program's order that are installed
locales() {
	echo C
	locale -a | grep -xi 'en_US.utf-\?8' || true
}

@test "pt-sift: the first page" {
	collection stalk 2026_01_02_03_04_05 9
	for LC_ALL in $(locales); do
		export LC_ALL
		sift q stalk
		cmp sift.theirs sift.ours
		# gawk warns of the stock program
		grep -v '^awk: ' sift.theirs.err | diff - sift.ours.err
		# five lines, of five frames at most, and they are there at all
		[ "$(sed '1,/^--stack traces--/d; /^--oprofile--/,$d' sift.ours | wc -l)" -eq 5 ]
		grep -q '^      7 poll(libc.so.6),vio_io_wait,std::vector::push_back,ha_rocksdb::??' sift.ours
	done
}

@test "pt-sift: from one sample to the next and back" {
	collection stalk 2026_01_02_03_04_05 9
	collection stalk 2026_01_02_03_05_05 2
	# the first answer chooses the newest sample
	sift $'\nkjq' stalk
	cmp sift.theirs sift.ours
	[ "$(grep -c '^--stack traces--' sift.ours)" -ge 2 ]
}

@test "pt-sift: samples without a stack trace, or with an empty one" {
	collection stalk 2026_01_02_03_04_05 9
	: >stalk/2026_01_02_03_04_05-stacktrace
	sift q stalk
	# one line in 3.2.1, none from 3.5.7 on
	grep -vx '      1 ' sift.theirs | cmp - sift.ours
	rm stalk/2026_01_02_03_04_05-stacktrace
	sift q stalk
	cmp sift.theirs sift.ours
	grep -q 'No stack trace file exists' sift.ours
}

@test "pt-sift: a folder with a blank in its name, where stock shows no stacks" {
	collection stalk 2026_01_02_03_04_05 9
	sift q stalk
	mv sift.ours expected
	mv stalk "my stalk"
	sift q "my stalk"
	cmp expected sift.ours
	[ "$(sed '1,/^--stack traces--/d; /^--oprofile--/,$d' sift.theirs | grep -c poll)" -eq 0 ]
}

@test "pt-sift: head closes the pipe before all is written" {
	collection stalk 2026_01_02_03_04_05 9
	local i
	for ((i = 0; i < 20000; i++)); do
		printf 'Thread %d (LWP %d):\n#0  0x0000000000000%03x in f%d () from /a.so\n' $i $i 1 $i
	done >stalk/2026_01_02_03_04_05-stacktrace
	LC_ALL=C sift q stalk
	cmp sift.theirs sift.ours
	[ ! -s sift.ours.err ]
}

# a server that pt-stalk takes for MySQL's: it looks for a process called mysqld
start_mysqld() {
	local server
	server=$(PATH=$PATH:/usr/sbin:/usr/libexec command -v mariadbd) ||
		skip "mariadbd is not installed"
	! pidof mysqld >/dev/null || skip "another mysqld runs here; gdb would stop that one"
	mkdir fake
	ln -s "$server" fake/mysqld
	printf '#!/bin/sh\nexec "%s/fake/mysqld" "$@"\n' "$PWD" >fake/mariadbd
	# it wants one to be there; what mysqladmin collects has nothing to do with stacks
	printf '#!/bin/sh\necho none\n' >fake/mysqladmin
	chmod +x fake/mariadbd fake/mysqladmin
	PATH=$PWD/fake:$PATH start_mariadb "$PWD/db"
	[ "$(pidof mysqld)" = "$mariadb_pid" ]
}

# stalk OPTION...: one collection by pt-stalk, in the folder stalk
stalk() {
	local status=0
	mkdir stalk
	PATH=$PWD/ours:$PWD/fake:$PATH timeout 120 pt-stalk --no-stalk --iterations 1 \
		--run-time 1 --sleep 1 --disk-pct-free 0 --prefix 2026_01_02_03_04_05 \
		--dest "$PWD/stalk" --log "$PWD/stalk.log" --pid "$PWD/stalk.pid" --user root \
		--socket "$mariadb_socket" "$@" >stalk.out 2>&1 3>&- </dev/null || status=$?
	tail -n 20 stalk.out
	ls stalk
	return $status
}

# all_written FILE: gdb has written the last thread, and no process has the file open
all_written() {
	grep -qs '^Thread 1 ' "$1" &&
		[ -z "$(find /proc/[0-9]*/fd -lname "$(readlink -f "$1")" 2>/dev/null)" ]
}

@test "pt-stalk --collect-gdb: its collection, in pt-sift and alone" {
	command -v gdb >/dev/null || skip "gdb is not installed"
	start_mysqld
	stalk --collect-gdb
	# pt-stalk does not wait for it for long
	await 60 all_written stalk/*-stacktrace
	# a frame without an address has its own file's name from 3.5.7 on, which is what we do, and
	# the frame's before it in 3.2.1: here every frame gets an address
	sed -E -i 's/^(#[0-9]+ +)([^0 ])/\10x0000000000000001 in \2/' stalk/*-stacktrace
	export LC_ALL=C
	ours/pt-pmp stalk/*-stacktrace >ours.lines
	theirs/pt-pmp stalk/*-stacktrace >theirs.lines 2>theirs.err
	cmp theirs.lines ours.lines
	[ -s ours.lines ]
	[ "$(awk '{ n += $1 } END { print n }' ours.lines)" = \
		"$(grep -c '^Thread ' stalk/*-stacktrace)" ]
	sift q stalk
	cmp sift.theirs sift.ours
	grep -q '^--stack traces--' sift.ours
}

@test "pt-stalk with our pt-pmp as a plugin: stacks without a stop, and pt-sift shows them" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	start_mysqld
	# the lines that compat/README.md gives
	sed -n '/^    before_collect() {/,/^    }/s/^    //p' "$lib_top/compat/README.md" >plugin.sh
	[ -s plugin.sh ]
	stalk --plugin "$PWD/plugin.sh"
	grep -q '^Thread ' stalk/2026_01_02_03_04_05-stacktrace
	sed -E -i 's/^(#[0-9]+ +)([^0 ])/\10x0000000000000001 in \2/' stalk/*-stacktrace
	export LC_ALL=C
	sift q stalk
	cmp sift.theirs sift.ours
	[ "$(sed '1,/^--stack traces--/d; /^--oprofile--/,$d' sift.ours | wc -l)" -eq 5 ]
}
