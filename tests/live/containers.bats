#!/usr/bin/env bats
# Processes in namespaces of their own, looked at from outside, and from inside.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	inner_pid=
	outer_pid=
}

teardown() {
	[ -z "$inner_pid" ] || kill -9 "$inner_pid" 2>/dev/null || true
	[ -z "$outer_pid" ] || kill -9 "$outer_pid" 2>/dev/null || true
}

# make_root: a file system of its own in root/, with a C library under another path and the fixture
# `recurse` where there is, outside, the fixture `frames` by the same path
make_root() {
	here=$PWD
	mkdir -p root/bin root/proc root/old root/lib64 "root$here" root/opt/libc
	cp "$(command -v busybox)" root/bin/busybox
	cp "$lib_fixtures/frames" program
	cp "$lib_fixtures/recurse" "root$here/program"
	cp -L /lib/x86_64-linux-gnu/libc.so.6 root/opt/libc/
	cp -L /lib64/ld-linux-x86-64.so.2 root/lib64/
}

# enter OPTION...: unshare's; sets outer_pid, and inner_pid, the process as it is numbered out here
enter() {
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount --fork "$@" sh -c '
		mount --make-rprivate /
		mount --bind root root
		cd root
		pivot_root . old
		exec /bin/busybox sh -c "
			busybox mount -t proc proc /proc
			busybox umount -l /old
			LD_LIBRARY_PATH=/opt/libc exec $1/program 60"
	' sh "$here" >ready 2>&1 </dev/null 3>&- &
	outer_pid=$!
	disown
	for _ in $(seq 500); do
		inner_pid=$(cat "/proc/$outer_pid/task/$outer_pid/children" 2>/dev/null || true)
		inner_pid=${inner_pid%% *}
		! grep -qx ready ready || return 0
		sleep 0.02
	done
	cat ready
	lib_fail "the container did not come up"
}

names_are_its_own() {
	"$pmp" -p "$inner_pid" "$@" >out 2>err
	cat out err
	[ ! -s err ]
	# the program's names, by its symbols, and the library's, that has another path there
	[ "$(lines_total out ',hold_here,(descend,){60}main,')" -ge 1 ]
	grep -q '(libc.so.6)' out
}

@test "other mount and PID namespaces, another root: names from the files in there" {
	make_root
	enter --pid
	names_are_its_own --no-lines --no-inlines
	# and with what debug information there is
	"$pmp" -p "$inner_pid" >out 2>err
	[ ! -s err ]
	[ "$(lines_total out ',hold_here,(descend,){60}main,')" -ge 1 ]
}

@test "a user namespace besides" {
	make_root
	enter --pid --user --map-root-user
	names_are_its_own --no-lines --no-inlines
}

@test "deleted in there since: the names of what runs" {
	make_root
	enter --pid
	rm "root$here/program" root/opt/libc/* root/lib64/*
	cp "$lib_fixtures/frames" "root$here/program"
	names_are_its_own --no-lines --no-inlines
}

@test "debug files that are installed in there" {
	make_root
	id=$(readelf -n "root$here/program" | sed -n 's/^ *Build ID: //p')
	mkdir -p "root/usr/lib/debug/.build-id/${id:0:2}"
	objcopy --only-keep-debug "root$here/program" \
		"root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
	strip "root$here/program"
	enter --pid
	names_are_its_own --no-lines --no-inlines
	# a link that means something else in there than out here
	mv "root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" root/opt/names
	ln -s /opt/names "root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
	names_are_its_own --no-lines --no-inlines
}

@test "waits and samples of a process in there, by its number out here" {
	make_root
	enter --pid
	"$pmp" -p "$inner_pid" --mode=offcpu --duration 1 --no-kernel --no-lines --no-inlines >out 2>err
	cat out err
	[ ! -s err ]
	[ "$(lines_total out ',hold_here,(descend,){60}main,')" -gt 500000 ]
}

@test "in a PID namespace, -p is a number in there" {
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --mount-proc bash -c '
		"$1" chain >ready </dev/null &
		for _ in $(seq 500); do
			! grep -q ready ready || break
			sleep 0.02
		done
		echo $! >pid
		"$2" -p $! >threads
		for seconds in 1 3 9; do
			"$2" -p $! --mode=cpu --duration $seconds --no-kernel >cpu
			[ "$(awk "/,chain_12,/ { n += \$1 } END { print n + 0 }" cpu)" -le 10 ] || break
		done
		kill -9 $!
	' bash "$lib_fixtures/spin" "$pmp" 2>err
	cat err threads cpu
	[ "$(cat pid)" -lt 100 ]
	grep -q ',chain_12,' threads
	[ "$(lines_total cpu ',chain_12,')" -gt 10 ]
}

@test "from in there, with the numbers of out here: files of the process' own root" {
	cp "$lib_fixtures/frames" program
	./program plain alloca >ready </dev/null 2>&1 3>&- &
	outer_pid=$!
	disown
	for _ in $(seq 500); do
		! grep -qx ready ready || break
		sleep 0.02
	done
	# what it needs, and another program where the process' own is
	mkdir -p root/bin root/proc root/sys root/dev root/old "root$PWD"
	cp "$(command -v busybox)" "$pmp" root/bin/
	cp "$lib_fixtures/recurse" "root$PWD/program"
	ldd "$pmp" | grep -oE '/[^ ]+' | while read -r library; do
		mkdir -p "root${library%/*}"
		cp -L "$library" "root$library"
	done
	for mode in '' '--mode=offcpu --duration 0.5 --no-kernel'; do
		# shellcheck disable=SC2016,SC2086
		unshare --mount sh -c '
			mount --make-rprivate /
			mount --bind root root
			cd root
			mount -t proc proc proc
			mount -t sysfs sysfs sys
			mount --bind /dev dev
			pivot_root . old
			/bin/busybox umount -l /old
			exec /bin/bpf-pmp "$@"' sh -p "$outer_pid" --no-lines --no-inlines $mode >out 2>err
		cat out err
		[ ! -s err ]
		[ "$(lines_total out '(^|,)hold_here,use,plain_leaf,plain,thread_main,start_thread')" -ge 1 ]
		no_line 'descend' out
	done
}
