#!/usr/bin/env bats
# What the options do, on processes whose threads are known.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	stop_fixture
	[ -z "${other:-}" ] || kill -9 "$other" 2>/dev/null || true
}

counted() {
	awk -v from="${2:-2}" 'NR >= from { n += $1 } END { print n + 0 }' "$1"
}

# capture ARGUMENT...: it succeeds and has nothing to complain of; names are those of the symbols,
# whether the C library's debug information is installed or not
capture() {
	"$pmp" --no-lines --no-inlines -p "$fixture_pid" "$@" >out 2>err
	[ ! -s err ] || { cat err; false; }
}

@test "the first line is date's, in the locale and time zone of the caller" {
	start_fixture threads many 3
	for zone in UTC America/New_York Asia/Kolkata; do
		for locale in C C.UTF-8 en_US.UTF-8; do
			began=$EPOCHSECONDS
			TZ=$zone LC_ALL=$locale "$pmp" -p "$fixture_pid" | head -n 1 >line
			TZ=$zone LC_ALL=$locale dates_from "$began" >dates
			grep -qxFf dates line
		done
	done
}

@test "-i counts the iterations together, -s waits between them, decimals too" {
	start_fixture threads many 5
	began=$EPOCHREALTIME
	capture -i 4 -s 0.25
	ended=$EPOCHREALTIME
	[ "$(counted out)" -eq $((4 * 6)) ]
	awk -v b="$began" -v e="$ended" 'BEGIN { exit !(e - b >= 0.75) }'
	grep -qE '^ +20 pause' out
}

@test "-p takes several processes, and each one once" {
	start_fixture threads many 5
	"$lib_fixtures/threads" many 2 >ready 3>&- &
	other=$!
	while ! grep -q ready ready; do sleep 0.05; done
	capture -p "$other,$fixture_pid"
	[ "$(counted out)" -eq 9 ]
	capture -i 3 -p "$other"
	[ "$(counted out)" -eq 27 ]
	(exec -a pt-pmp "$pmp" -p "$fixture_pid" -p "$other") >out
	[ "$(counted out)" -eq 3 ]
}

@test "-l keeps the innermost frames, and folds what is then equal" {
	start_fixture threads many 5
	capture -l 1
	[ "$(tail -n +2 out)" = "      6 pause(libc.so.6)" ]
	capture -l 2 --format=folded
	sort out >sorted
	printf 'hold_here;pause(libc.so.6) 5\nmain;pause(libc.so.6) 1\n' | diff - sorted
}

@test "-t takes LWP numbers and thread names" {
	start_fixture threads many 5
	tid=$(find "/proc/$fixture_pid/task" -mindepth 1 -printf '%f\n' -maxdepth 1 | sort -n | tail -n 1)
	capture -t "^$tid\$"
	[ "$(counted out)" -eq 1 ]
	capture -t "^$tid\$,^$fixture_pid\$"
	[ "$(counted out)" -eq 2 ]
	capture -t '^threads$'
	[ "$(counted out)" -eq 6 ]
	"$pmp" -p "$fixture_pid" -t nothing_of_that_name >out 2>err
	[ "$(counted out)" -eq 0 ]
	[ "$(cat err)" = "bpf-pmp: no thread matches --tids" ]
}

@test "--kernel puts the kernel frames first, as the kernel itself names them" {
	start_fixture threads many 1
	capture --kernel
	grep -qE '^ +1 [a-z_]+,.*do_syscall_64,entry_SYSCALL_64[a-z_]*,pause\(libc.so.6\),hold_here' out
	# the kernel's own view of the main thread, without offsets
	sed 's/^\[<0>\] //; s/+0x.*//' "/proc/$fixture_pid/stack" | paste -sd, >theirs
	sed -nE 's/^ +1 (.*),pause\(libc.so.6\),main,.*/\1/p' out >ours
	diff ours theirs
	capture --kernel --format=folded
	grep -q ';entry_SYSCALL_64[a-z_]*;do_syscall_64;' out
}

@test "--no-lines, --no-inlines: what is read of debug information" {
	start_fixture debug_cxx_gcc_O2-5
	inner='^ +1 [^ ]*pause[^,]*,stay,header_inner,header_outer,inlined_from_header,'
	outer='^ +1 [^ ]*pause[^,]*,stay,inlined_from_header,'
	"$pmp" -p "$fixture_pid" -k both >out
	grep -qE "$inner" out
	# a file's name is added if it is absolute, as pt-pmp does it
	grep -qE ',std::sort<[^ ]*[(]stl_algo.h:[0-9]+[)]' out
	grep -qE '^#[0-9]+ +0x[0-9a-f]+ in header_inner [(][)] at tests/fixtures/debug_inlines.h:[0-9]+$' both
	grep -qE '^#[0-9]+ +header_outer [(][)] at tests/fixtures/debug_inlines.h:[0-9]+$' both
	"$pmp" -p "$fixture_pid" --no-lines -k no_lines >out
	grep -qE "$inner" out
	no_line -E ' at [^ ]*:[0-9]+$' no_lines
	"$pmp" -p "$fixture_pid" --no-inlines -k no_inlines >out
	grep -qE "$outer" out
	grep -qE '^#[0-9]+ +0x[0-9a-f]+ in inlined_from_header [(][)] at tests/fixtures/debug_cxx.cc:[0-9]+$' no_inlines
	"$pmp" -p "$fixture_pid" --no-lines --no-inlines >out
	grep -qE '^ +1 [^ ]*pause[^,]*,stay,inlined_from_header,start_thread[(]libc.so.6[)],' out
	tail -n +2 out | sort >neither
	"$pmp" -p "$fixture_pid" --readnever | tail -n +2 | sort | diff neither -
	# and without debug files, there is nothing of the C library's
	"$pmp" -p "$fixture_pid" --debug-dir /nowhere >out
	grep -qE ',inlined_from_header,libc::[?]{2}[(]libc.so.6[)]' out
}

@test "-o takes the place of standard output, and replaces a file only as a whole" {
	start_fixture threads many 2
	echo old >file
	capture -o file
	[ ! -s out ]
	[ "$(counted file)" -eq 3 ]
	[ "$(ls)" = "$(printf 'err\nfile\nfixture.err\nfixture.out\nout')" ]
}

@test "-k keeps gdb's text, which accumulates, and which Debian's pt-pmp aggregates alike" {
	start_fixture threads many 7
	capture -k saved -i 2
	[ "$(counted out)" -eq 16 ]
	[ "$(grep -c '^TS [0-9]*\.[0-9]* [0-9-]* [0-9:]*$' saved)" -eq 2 ]
	grep -qE "^Thread 1 \(Thread 0x[0-9a-f]+ \(LWP $fixture_pid\) \"threads\"\):$" saved
	grep -qE '^#0  0x[0-9a-f]{16} in pause \(\) from /.*/libc.so.6$' saved
	capture -k saved
	[ "$(counted out)" -eq 24 ]
	for locale in C en_US.UTF-8; do
		LC_ALL=$locale "$pmp" -p "$fixture_pid" -k saved >out
		tail -n +2 out >ours
		LC_ALL=$locale pt-pmp saved >theirs
		diff ours theirs
	done
}

@test "-k's text makes Debian's pt-pmp print our lines, of every fixture" {
	cd "$BATS_TEST_DIRNAME/../.." # a fixture finds its library from there
	pmp=${B:-build}/bpf-pmp
	saved=$BATS_TEST_TMPDIR/saved ours=$BATS_TEST_TMPDIR/ours theirs=$BATS_TEST_TMPDIR/theirs
	fixture_cases | awk '{ $1 = ""; print }' | grep -v -e churn -e busy -e 5000 -e asan | sort -u >"$BATS_TEST_TMPDIR/runs"
	n=0
	while read -r run; do
		# shellcheck disable=SC2086
		start_fixture $run
		for pid in $fixture_pid ${fixture_child:-}; do
			rm -f "$saved"
			"$pmp" -p "$pid" --kernel -k "$saved" 2>/dev/null | tail -n +2 >"$ours" || continue
			[ -s "$ours" ] || continue # a zombie child
			pt-pmp "$saved" >"$theirs" 2>/dev/null
			diff "$ours" "$theirs" || { echo "$run"; false; }
			n=$((n + 1))
		done
		stop_fixture
	done <"$BATS_TEST_TMPDIR/runs"
	echo "# compared $n captures" >&3
	[ "$n" -ge 40 ]
}

@test "a mark of a stack that is not whole is in every format" {
	start_fixture recurse 100
	"$pmp" -p "$fixture_pid" --max-frames 10 >out 2>err
	grep -q ',\[truncated\]$' out
	grep -qx 'bpf-pmp: 1 thread, 0 whole; 1 truncated (more frames than --max-frames) (-v for each)' err
	"$pmp" -p "$fixture_pid" --max-frames 10 --format=folded >out 2>err
	grep -q '^\[truncated\];descend;' out
	"$pmp" -p "$fixture_pid" --max-frames 10 -k saved >out 2>err
	grep -q '^#10 0x0000000000000000 in \[truncated\] ()$' saved
	"$pmp" -p "$fixture_pid" --max-frames 10 -v >out 2>err
	grep -qE "^bpf-pmp: process $fixture_pid, thread [0-9]+, recurse: truncated after 10 frames" err
}

@test "no byte of a hostile name reaches a terminal raw" {
	start_fixture hostile
	for format in pmp folded; do
		"$pmp" -p "$fixture_pid" --format=$format -v -k saved >out 2>err
		LC_ALL=C no_line -naP '[\x00-\x08\x0b-\x1f\x7f\x80-\xff]' out err saved
	done
	# a newline in a name would have made a line of its own
	no_line -avE '^$|^Thread [0-9]+ \(Thread 0x[0-9a-f]+ \(LWP [0-9]+\)( "[^"]*")?\):$|^#[0-9]+ |^TS ' saved
}

@test "--comm takes every process of that command, -b exactly one" {
	cp "$BATS_TEST_DIRNAME/../../${B:-build}/fixtures/threads" pmp_pair
	./pmp_pair many 3 >ready1 2>/dev/null </dev/null 3>&- &
	fixture_pid=$!
	disown
	until grep -q ready ready1; do sleep 0.05; done
	"$pmp" -b pmp_pair >out 2>err
	[ "$(counted out)" -eq 4 ]
	./pmp_pair many 5 >ready2 2>/dev/null </dev/null 3>&- &
	other=$!
	disown
	until grep -q ready ready2; do sleep 0.05; done
	"$pmp" --comm pmp_pair >out 2>err
	[ ! -s err ]
	[ "$(counted out)" -eq 10 ]
	# one that starts during the run is taken in, one that ends is passed over
	kill -9 "$other"
	wait "$other" 2>/dev/null || true
	"$pmp" --comm pmp_pair -i 100000 -s 0.1 -k saved >out 2>err 3>&- &
	tool=$!
	await_snapshots saved 1
	./pmp_pair many 5 >ready2 2>/dev/null </dev/null 3>&- &
	other=$!
	until grep -q ready ready2; do sleep 0.05; done
	# the second from now began when it was there
	await_snapshots saved $(($(grep -c '^TS ' saved) + 2))
	kill -9 "$other"
	wait "$other" || true
	await_snapshots saved $(($(grep -c '^TS ' saved) + 2))
	kill -TERM "$tool"
	status=0
	wait "$tool" || status=$?
	cat out err
	[ "$status" -eq 143 ]
	n=$(grep -c '^TS ' saved)
	[ "$(counted out)" -gt $((n * 4)) ] # and the other's 6 some times
	[ "$(counted out)" -lt $((n * 10)) ]
}

@test "the iterator of older kernels gives the same" {
	start_fixture threads many 50
	capture
	tail -n +2 out >sleepable
	capture --plain-iterator
	tail -n +2 out | diff - sleepable
	stop_fixture
	start_fixture recurse 40 100000
	capture --plain-iterator
	[ "$(grep -o 'descend' out | wc -l)" -eq 40 ]
}
