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

# What of ours is in the kernel: programs, links and maps, by the names in tasks.bpf.c.
in_kernel() {
	bpftool prog show | grep -E ' name (read_task_|sample_running)' || true
	bpftool link show | grep -E 'iter|perf_event' | grep -E 'target_name task|sample_running' || true
	bpftool map show | grep -E ' name (wanted|samples|scratches|tasks_bp)' || true
}

@test "SIGKILL at 100 random moments leaves nothing behind" {
	start_fixture threads gap 100
	RANDOM=4711
	killed=0
	for _ in $(seq 100); do
		TMPDIR=$PWD "$pmp" -p "$fixture_pid" -i 1000 -k saved -o out >/dev/null 2>&1 3>&- &
		tool=$!
		sleep "0.$(printf '%03d' $((RANDOM % 200)))"
		kill -9 "$tool" && killed=$((killed + 1))
		wait "$tool" || true
		no_line -hE '^State:	[Tt]' /proc/"$fixture_pid"/task/*/status
	done
	echo "# killed $killed times in mid-capture" >&3
	[ "$killed" -ge 95 ]
	# the kernel frees what a dead process held a moment later
	for _ in $(seq 50); do
		left=$(in_kernel)
		[ -n "$left" ] || break
		sleep 0.1
	done
	echo "$left"
	[ -z "$left" ]
	grep -q "^TracerPid:	0" "/proc/$fixture_pid/status"
	# what it wrote by then is --save-samples' file, and nothing else
	[ "$(find . -mindepth 1 -not -name saved -not -name 'fixture.*' | wc -l)" -eq 0 ]
}

@test "while it captures, its programs are in the kernel: the test above can see them" {
	start_fixture threads gap 100
	"$pmp" -p "$fixture_pid" -i 1000000 -s 0.01 >/dev/null 2>&1 3>&- &
	tool=$!
	sleep 0.5
	seen=$(in_kernel)
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
