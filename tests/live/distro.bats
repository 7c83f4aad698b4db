#!/usr/bin/env bats
# Programs of Debian 11 in a root of their own: names come from the files in there. Its C library is
# 2.31, whose threads are still a library of their own; ours is another.

load lib

# The fixtures are built anew for that C library.
setup_file() {
	local build devel name
	build=$(cd "$BATS_TEST_DIRNAME/../.." && cd "${B:-build}" && pwd)
	export distro=$build/bullseye
	for pause in 20 60 0; do
		! "$BATS_TEST_DIRNAME/../tools/bullseye.sh" "$distro" 3>&- || break
		sleep $pause # it comes over the network
	done
	[ -e "$distro" ]
	devel=$distro/devel
	for name in frames spin; do
		gcc --sysroot="$devel" -B"$devel/usr/lib/x86_64-linux-gnu/" \
			-L"$devel/usr/lib/x86_64-linux-gnu" -L"$devel/lib/x86_64-linux-gnu" \
			-isystem "$devel/usr/include/x86_64-linux-gnu" -std=gnu11 -O2 \
			-fomit-frame-pointer -fno-stack-protector -fcf-protection=none \
			-o "$distro/root/opt/$name" "$BATS_TEST_DIRNAME/../fixtures/$name.c" \
			"$devel/lib/x86_64-linux-gnu/"lib{pthread.so.0,rt.so.1}
	done
	cp "$build/fixtures/frames_static" "$distro/root/opt/"
	[ -p "$distro/root/opt/fifo" ] || mkfifo "$distro/root/opt/fifo"
}

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	inner_pid=
	outer_pid=
	debug=
	libc=$distro/root/lib/x86_64-linux-gnu
	our_libc=$(ldd "$pmp" | awk '$1 == "libc.so.6" { print $3 }')
	whole=',start_thread[(]libpthread.so.0[)],clone[(]libc.so.6[)]$'
}

teardown() {
	[ -z "$inner_pid" ] || kill -9 "$inner_pid" 2>/dev/null || true
	[ -z "$outer_pid" ] || kill -9 "$outer_pid" 2>/dev/null || true
}

# enter OPTION... -- COMMAND: in that root, which is all that is to be seen in there. The options are
# unshare's. Sets outer_pid, and inner_pid, the process as it is numbered out here; its debug files are
# there if `debug` is set.
enter() {
	local -a options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount --pid --fork "${options[@]}" sh -c '
		mount --make-rprivate /
		mount --bind "$1" "$1"
		[ -z "$2" ] || mount --bind "$2/usr/lib/debug" "$1/usr/lib/debug"
		cd "$1"
		pivot_root . old
		exec /bin/busybox sh -c "
			/bin/busybox mount -t proc proc /proc
			/bin/busybox umount -l /old
			echo entered
			exec $3
		"
	' sh "$distro/root" "$debug" "$1" >ready 2>&1 </dev/null 3>&- &
	outer_pid=$!
	disown
	for _ in $(seq 1500); do
		inner_pid=$(cat "/proc/$outer_pid/task/$outer_pid/children" 2>/dev/null || true)
		inner_pid=${inner_pid%% *}
		! grep -qx "${2:-ready}" ready || break
		sleep 0.02
	done
	grep -qx "${2:-ready}" ready || { cat ready; lib_fail "the container did not come up"; } || return 1
	[ "$(stat -Lc %d:%i "/proc/$inner_pid/root/")" = "$(stat -c %d:%i "$distro/root")" ]
}

# capture ARGUMENT...: to out; nothing is wrong with it
capture() {
	"$pmp" -p "$inner_pid" "$@" >out 2>err
	cat out err
	[ -z "$(complaints err)" ]
	[ "$(lines_marked out)" -eq 0 ]
}

# symbols_of FILE: `START SIZE NAME`, of both of its symbol tables
symbols_of() {
	{ nm -S --defined-only "$1" 2>/dev/null; nm -DS --defined-only "$1"; } |
		gawk 'NF == 4 { sub(/@.*/, "", $4); print strtonum("0x" $1), strtonum("0x" $2), $4 }'
}

# symbols_at TABLE ADDRESS: the names there
symbols_at() {
	awk -v at="$2" '$1 <= at + 0 && at - $1 < $2 { print $3 }' "$1"
}

# by_hand FILE: looks up each frame that FILE, in gdb's form, has in a library of the C library's, in
# the container's file and in ours: its name is that by the former, and not by the latter. Sets
# looked_up.
by_hand() {
	local number addr name from base file at
	for name in libc.so.6 libpthread.so.0; do
		symbols_of "$libc/$name" >"$name.theirs"
		symbols_of "$(dirname "$our_libc")/$name" >"$name.ours"
	done
	looked_up=0
	sed -nE 's/^#([0-9]+) +0x([0-9a-f]+) in ([^ @]+)[^ ]* .* from (.*lib(c|pthread)\.so.*)$/\1 \2 \3 \4/p' "$1" >frames
	[ -s frames ]
	while read -r number addr name from; do
		file=$(readlink -f "$libc/${from##*/}")
		base=$(gawk -v name="/${file##*/}" '$3 == "00000000" && $6 ~ name "$" {
			sub(/-.*/, "", $1); print $1; exit }' "/proc/$inner_pid/maps")
		[ -n "$base" ]
		at=$((16#$addr - 16#$base - (number > 0)))
		symbols_at "${from##*/}.theirs" $at >theirs
		symbols_at "${from##*/}.ours" $at >ours
		echo "$name: $(tr '\n' ' ' <theirs); by our file: $(tr '\n' ' ' <ours)"
		if [ "$name" = '??' ]; then
			[ ! -s theirs ]
			continue
		fi
		grep -qxF -- "$name" theirs
		no_line -qxF -- "$name" ours
		looked_up=$((looked_up + 1))
	done <frames
}

build_id() {
	readelf -n "$1" | sed -n 's/^ *Build ID: //p'
}

@test "another C library than ours is in there" {
	theirs=$(build_id "$libc/libc.so.6")
	ours=$(build_id "$our_libc")
	echo "$theirs $ours"
	[ -n "$theirs" ]
	[ "$theirs" != "$ours" ]
	strings "$libc/libc.so.6" | grep -q 'release version 2[.]31[.]'
}

@test "a program built for its C library: threads" {
	enter -- '/opt/frames plain alloca vla realigned realigned_vla noreturn qsort huge'
	# what has that path in there has it out here, too
	[ -e "$our_libc" ]
	for file in libc.so.6 libpthread.so.0; do
		grep -q " /lib/x86_64-linux-gnu/$file\$" "/proc/$inner_pid/maps"
	done
	capture -k kept
	grep -v context_function "$lib_expected/frames" | sed 's/clone3/clone/' >frames_here
	lib_expected=$PWD expect_stacks frames_here out
	[ "$(lines_total out "$whole")" -eq 8 ]
	[ "$(lines_total out '^pause[(]libpthread.so.0[)],')" -eq 9 ]
	grep -q ',compare_elements,.*,qsort_r(libc.so.6),in_qsort,thread_main,' out
	by_hand kept
	# pause 9 times, start_thread, clone and __libc_start_main
	[ "$looked_up" -ge 26 ]
}

@test "the same in a user namespace" {
	enter --user --map-root-user -- '/opt/frames plain huge'
	capture -k kept
	[ "$(lines_total out "^pause[(]libpthread.so.0[)],hold_here,use,.*$whole")" -eq 2 ]
	by_hand kept
	[ "$looked_up" -ge 7 ]
}

@test "a program of its own, without symbols" {
	enter -- '/bin/dash -c "exec </opt/fifo"' entered
	reaches "$inner_pid" 257 # openat
	capture -k kept
	[ "$(lines_total out '^open64[(]libc.so.6[)],::[?][?],.*,__libc_start_main[(]libc.so.6[)],::[?][?]$')" -eq 1 ]
	by_hand kept
	[ "$looked_up" -eq 2 ]
	# the outermost frame is where the program starts
	entry=$((16#$(readelf -h "$distro/root/bin/dash" | sed -n 's/.*Entry point address: *0x//p')))
	base=$((16#$(sed -n '1s/-.*//p' "/proc/$inner_pid/maps")))
	outermost=$((16#$(sed -nE 's/^#[0-9]+ +0x([0-9a-f]+) in .*/\1/p' kept | tail -n 1) - base))
	[ $outermost -gt $entry ]
	[ $outermost -lt $((entry + 64)) ]
}

@test "a program of its own with threads" {
	enter -- '/usr/bin/xz -T2 -c <>/opt/fifo' entered
	# enough for it to start a thread, which then waits for more
	head -c 32768 /dev/zero >"$distro/root/opt/fifo"
	reaches "$inner_pid" 202 7 # futex, poll
	sleep 0.1
	capture -k kept
	[ "$(lines_total out)" -eq 2 ]
	# pt-pmp's rule for a symbol with a version: without its library
	[ "$(lines_total out "^pthread_cond_wait,liblzma::[?][?][(]liblzma.so.5[)]$whole")" -eq 1 ]
	[ "$(lines_total out '^poll[(]libc.so.6[)],::[?][?],.*,__libc_start_main[(]libc.so.6[)],::[?][?]$')" -eq 1 ]
	by_hand kept
	[ "$looked_up" -eq 5 ]
}

@test "samples and waits" {
	enter -- '/opt/spin qsort'
	for _ in $(seq 10); do
		capture --mode=cpu --duration 0.5 --no-kernel
		[ "$(lines_total out)" -eq 0 ] || break
	done
	[ "$(lines_total out)" -ge 1 ]
	by_library='compare_elements,(libc::[?][?][(]libc.so.6[)],)*qsort_r[(]libc.so.6[)],in_qsort,'
	[ "$(lines_total out "$whole")" -eq "$(lines_total out)" ]
	[ "$(lines_total out "$by_library")" -ge 1 ]
	kill -9 "$inner_pid"
	enter -- '/opt/frames plain qsort'
	capture --mode=offcpu --duration 0.5 --no-kernel
	[ "$(lines_total out "^pause[(]libpthread.so.0[)],.*$whole")" -ge 500000 ]
	[ "$(lines_total out "^pause[(]libpthread.so.0[)],hold_here,use,$by_library")" -ge 250000 ]
}

@test "a static program of ours in there" {
	enter -- '/opt/frames_static plain alloca'
	capture
	[ "$(lines_total out ',hold_here,use,(plain_leaf,plain|with_alloca),thread_main,start_thread,(__)?clone3?$')" -eq 2 ]
}

# What gdb shows ends at main.
@test "debug files of its C library that are in there alone: the lines are gdb's" {
	debug=$distro/debug
	[ ! -e "/usr/lib/debug/.build-id/$(build_id "$libc/libc.so.6" | sed 's/^../&\//').debug" ]
	enter -- '/opt/frames plain alloca vla realigned realigned_vla noreturn qsort huge'
	gdb -nx -batch -ex 'set pagination 0' -ex 'set sysroot target:' \
		-ex "set debug-file-directory /proc/$inner_pid/root/usr/lib/debug" \
		-ex 'thread apply all bt' -p "$inner_pid" >trace 2>gdb.err </dev/null
	"$pmp" trace >by_gdb
	grep -q ',msort_with_tmp,' by_gdb
	capture
	for file in by_gdb out; do
		sed -nE 's/,main,.*/,main/; /^ *[0-9]+ [^ ]+$/p' "$file" | sort >"$file.lines"
	done
	[ "$(wc -l <out.lines)" -eq 9 ]
	diff by_gdb.lines out.lines
}
