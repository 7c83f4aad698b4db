#!/usr/bin/env bats
# It does no harm: not when it is killed, not while it runs.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	stop_fixture
}

# What of ours is in the kernel, as `prog 12:`: programs, links and maps, by the names in tasks.bpf.c.
in_kernel() {
	bpftool prog show | sed -nE 's/^([0-9]+:) .* name (read_task_|sample_running).*/prog \1/p'
	bpftool link show | grep -E 'iter|perf_event' |
		sed -nE 's/^([0-9]+:) .*(target_name task|sample_running).*/link \1/p'
	bpftool map show | sed -nE 's/^([0-9]+:) .* name (wanted|samples|scratches|tasks_bp).*/map \1/p'
}

# objects: all that is in the kernel, in the same form
objects() {
	local kind
	for kind in prog link map; do
		bpftool $kind show | sed -nE "s/^([0-9]+:) .*/$kind \1/p"
	done
}

# held: what processes have of it
held() {
	cat /proc/[0-9]*/fdinfo/* 2>/dev/null |
		sed -nE 's/^(prog|link|map)_id:[[:space:]]+([0-9]+)$/\1 \2:/p'
}

# left_over: what is there of `ids`, which was ours, and of our names, for no process that is there:
# another bpf-pmp may run on this machine
left_over() {
	objects | sort | comm -12 - <(sort -u ids)
	in_kernel | sort | comm -23 - <(held | sort -u)
}

holds_link() {
	kernel_ids "$1" 2>/dev/null | grep -q '^link '
}

@test "SIGKILL at 100 random moments leaves nothing behind" {
	start_fixture threads gap 100
	RANDOM=4711
	killed=0
	: >ids
	for i in $(seq 100); do
		TMPDIR=$PWD "$pmp" -p "$fixture_pid" -i 1000 -k saved -o out >/dev/null 2>&1 3>&- &
		tool=$!
		sleep "0.$(printf '%03d' $((RANDOM % 200)))"
		# some of them for sure while they capture
		[ $((i % 20)) -ne 0 ] || await 30 holds_link "$tool"
		kernel_ids "$tool" >>ids 2>/dev/null || true
		kill -9 "$tool" && killed=$((killed + 1))
		wait "$tool" || true
		no_line -hE '^State:	[Tt]' /proc/"$fixture_pid"/task/*/status
	done
	echo "# killed $killed times in mid-capture" >&3
	[ "$killed" -ge 95 ]
	for kind in prog link map; do
		grep -q "^$kind" ids
	done
	# the kernel frees what a dead process held a moment later
	for _ in $(seq 50); do
		left=$(left_over)
		[ -n "$left" ] || break
		sleep 0.1
	done
	echo "$left"
	[ -z "$left" ]
	grep -q "^TracerPid:	0" "/proc/$fixture_pid/status"
	# what it wrote by then is --save-samples' file, and nothing else
	[ "$(find . -mindepth 1 -not -name saved -not -name ids -not -name 'fixture.*' | wc -l)" -eq 0 ]
}

@test "while it captures, its programs are in the kernel: the test above can see them" {
	start_fixture threads gap 100
	"$pmp" -p "$fixture_pid" -i 1000000 -s 0.01 >/dev/null 2>&1 3>&- &
	tool=$!
	for _ in $(seq 500); do
		seen=$(in_kernel | grep -xFf <(kernel_ids "$tool")) || true
		[ -z "$seen" ] || break
		sleep 0.02
	done
	kill -9 "$tool"
	wait "$tool" || true
	echo "$seen"
	[ -n "$seen" ]
}

@test "no thread of the target is ever stopped or traced" {
	start_fixture threads gap 100
	"$pmp" -p "$fixture_pid" -i 300 >/dev/null 2>&1 3>&- &
	tool=$!
	looked=0
	while kill -0 "$tool" 2>/dev/null; do
		no_line -hE '^(State:	[Tt]|TracerPid:	[1-9])' /proc/"$fixture_pid"/task/*/status
		looked=$((looked + 1))
	done
	wait "$tool"
	[ "$looked" -ge 5 ]
}

@test "valgrind finds nothing in a live capture" {
	start_fixture threads gap 20
	valgrind --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible \
		--suppressions="$BATS_TEST_DIRNAME/valgrind.supp" --log-file=valgrind.log \
		"$pmp" -p "$fixture_pid" -i 2 --kernel -k saved >out 2>err ||
		{ status=$?; cat valgrind.log err; [ "$status" -eq 0 ]; }
	grep -q 'ERROR SUMMARY: 0 errors' valgrind.log || { cat valgrind.log; false; }
	[ "$(awk 'NR > 1 { n += $1 } END { print n }' out)" -eq 44 ]
}
