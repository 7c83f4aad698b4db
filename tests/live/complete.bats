#!/usr/bin/env bats
# No thread is lost without a word.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	stop_fixture
}

@test "threads that come and go do not hide the others" {
	start_fixture threads lifetimes 200
	for _ in $(seq 60); do
		"$pmp" -p "$fixture_pid" -v >out 2>err
		# 200 slots; those that ended between the listing and the reading are gone, and said so
		after=$(find "/proc/$fixture_pid/task" -mindepth 1 -maxdepth 1 | wc -l)
		sed -nE "s/^bpf-pmp: ([0-9]+) threads?, .* ([0-9]+) missing .* ([0-9]+) gone .* ([0-9]+) listed.*/\\1 \\2 \\3 \\4 $after/p" err >>all
	done
	awk '{ threads += $1; missing += $2; listed += $4; if ($1 < 0.7 * $4 && $1 < 0.7 * $5) short++ }
		END {
			printf "# %d snapshots, %d threads of %d listed, %d missing, %d short\n",
				NR, threads, listed, missing, short
			exit !(NR == 60 && !short && !missing && threads > 0.8 * listed && threads < 2 * listed)
		}' all >&3
}

@test "a thread that runs is never taken for one that is gone" {
	start_fixture threads gap 20
	"$pmp" -p "$fixture_pid" -i 100 -v >out 2>err
	[ "$(awk 'NR > 1 { n += $1 } END { print n }' out)" -eq 2200 ]
	grep -q ' 0 gone ' err
	grep -qE '^ +100 .*watch_clock,start_thread' out ||
		[ "$(grep -E 'watch_clock,start_thread' out | awk '{ n += $1 } END { print n }')" -eq 100 ]
}

@test "where CPUs may not be sampled, threads that run are marked, and it is said why" {
	start_fixture threads gap 5
	# on a busy machine, too, it is to keep its CPU: ahead of all that is not of real time
	spinner=$(find "/proc/$fixture_pid/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n | tail -n 1)
	chrt -f -p 1 "$spinner" || renice -n -20 -p "$spinner"
	seen=0
	tries=0
	while [ $tries -lt 200 ] && [ $seen -eq 0 ]; do
		tries=$((tries + 1))
		strace -f -qq -o trace -e trace=perf_event_open -e inject=perf_event_open:error=EACCES \
			"$pmp" -p "$fixture_pid" --no-lines --no-inlines >out 2>err
		[ "$(awk 'NR > 1 { n += $1 } END { print n }' out)" -eq 7 ]
		# it may still have been met while it waited for its CPU
		if grep -q '^      1 \[running\]$' out; then
			grep -q 'sampling it is not permitted' err
			seen=$((seen + 1))
		else
			[ ! -s err ]
		fi
	done
	echo "# seen running at try $tries" >&3
	[ "$seen" -eq 1 ]
}

@test "a user without the right to read the process is told so" {
	start_fixture threads many 2
	run setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace \
		setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+bpf,+perfmon \
		--ambient-caps=+bpf,+perfmon "$pmp" -p "$fixture_pid"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"needs CAP_SYS_PTRACE"* ]]
}

@test "Ctrl-C ends a long run early, and prints it" {
	start_fixture threads many 4
	"$pmp" -p "$fixture_pid" -i 100000 -s 0.2 -k saved >out 2>err 3>&- &
	tool=$!
	await_snapshots saved 2
	kill -TERM "$tool"
	status=0
	wait "$tool" || status=$?
	[ "$status" -eq 143 ]
	said=$(sed -nE 's/^bpf-pmp: ended after ([0-9]+) snapshots; these are printed$/\1/p' err)
	[ "$said" -ge 2 ]
	[ "$(awk 'NR > 1 { n += $1 } END { print n }' out)" -eq $((said * 5)) ]
}
