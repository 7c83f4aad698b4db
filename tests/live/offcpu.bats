#!/usr/bin/env bats
# What threads wait for, and how long, against what the fixture `block` measured itself.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	sampler_pid=
}

teardown() {
	stop_fixture
	[ -z "$sampler_pid" ] || kill -9 "$sampler_pid" 2>/dev/null || true
}

@test "where kernel addresses are hidden, the scheduler is shown, and that is said" {
	start_fixture block sleeps
	"$pmp" --mode=offcpu -p "$fixture_pid" --duration 1 >out 2>err
	cat out err
	grep -qE '^ *[0-9]+ [^,]*nanosleep' out
	no_line '__schedule,' out
	[ ! -s err ]
	setpriv --bounding-set=-syslog "$pmp" --mode=offcpu -p "$fixture_pid" --duration 1 >out 2>err
	cat out err
	grep -qE '^ *[0-9]+ .*,__schedule,schedule,[^,]*nanosleep' out
	[ "$(wc -l <err)" -eq 1 ]
	grep -q "CAP_SYSLOG is missing): the scheduler's own frames are shown" err
	setpriv --bounding-set=-syslog "$pmp" --check | grep -q '^kernel symbols: names only; '
}

# said WORD: waits until the fixture has printed it as a line of its own
said() {
	local i
	for ((i = 0; i < 3000; i++)); do
		grep -qx "$1" "$fixture_out" && return 0
		sleep 0.02
	done
	lib_fail "the fixture did not print $1"
}

# wait_out OPTION...: the fixture, started with `for`, waits once, from the first to the last wait
# while bpf-pmp looks on: so both have seen the same waits, however busy the machine is
wait_out() {
	start_sampler --mode=offcpu -p "$fixture_pid" --duration 120 "$@"
	kill -USR1 "$fixture_pid"
	said 'done'
	end_sampler INT
	cat out err
	[ "$sampler_status" -eq 0 ] || [ "$sampler_status" -eq 130 ]
	kill -USR2 "$fixture_pid"
	said printed
	cat "$fixture_out"
}

# measured KIND FIELD: what the fixture measured (2 microseconds, 3 waits, 4 in long waits)
measured() {
	awk -v kind="$1" -v field="$2" '$1 == "blocked" && $2 == kind { print $(field + 1) }' "$fixture_out"
}

worker='(,worker,thread_main|,worker,start_thread[^,]*,[^,]*clone3[^,]*$)'

# same_as_measured KIND STACK: the sum of the lines with these callers is what the fixture measured
same_as_measured() {
	local ours theirs
	ours=$(lines_total out "$2$worker")
	theirs=$(measured "$1" 2)
	echo "# $1: $ours microseconds, $theirs measured by itself" >&3
	[ "$theirs" -gt 100000 ]
	near "$ours" "$theirs" 2
}

@test "a thread that sleeps again and again: the sum of what it measured" {
	start_fixture block sleeps for 3
	wait_out
	same_as_measured sleeps 'nanosleep[^,]*,(usleep[^,]*,)?block_3,block_2,block_1'
	# the kernel's part of the stack comes first
	grep -qE '^ *[0-9]+ .*do_syscall_64,entry_SYSCALL_64[^,]*,.*block_3,block_2,block_1' out
	[ "$(lines_marked out)" -eq 0 ]
}

@test "--no-kernel leaves the kernel's frames out" {
	start_fixture block sleeps for 1
	wait_out --no-kernel --no-lines --no-inlines
	no_line -qE 'schedule|entry_SYSCALL' out
	grep -qE '^ *[0-9]+ clock_nanosleep[^,]*,(nanosleep[^,]*,)?(usleep[^,]*,)?block_3,block_2,block_1,worker' out
}

@test "a thread that waits for a lock" {
	start_fixture block locks for 3
	wait_out
	same_as_measured lock_wait 'pthread_mutex_lock[^,]*,lock_wait_2,lock_wait_1'
	# and the one that holds it meanwhile is seen to sleep
	[ "$(lines_total out ',hold_lock,worker,')" -gt 1000000 ]
}

@test "200 threads, each at its own rate" {
	start_fixture block many for 3
	wait_out
	same_as_measured many 'nanosleep[^,]*,(usleep[^,]*,)?sleep_at_rate'
}

@test "--min-us and --max-us part long waits from short ones" {
	start_fixture block sleeps short for 3
	wait_out --min-us 20000
	same_as_measured sleeps 'block_3,block_2,block_1'
	short=$(lines_total out ',short_sleep,worker,')
	echo "# $short microseconds in long waits of short sleeps, $(measured short 4) by itself" >&3
	[ "$short" -le $(($(measured short 4) * 102 / 100 + 25000)) ]
	stop_fixture

	start_fixture block sleeps short for 3
	wait_out --max-us 20000
	[ "$(lines_total out ',block_3,block_2,block_1,')" -eq 0 ]
	theirs=$(($(measured short 2) - $(measured short 4)))
	[ "$theirs" -gt 100000 ]
	near "$(lines_total out ',short_sleep,worker,')" "$theirs" 3
}

# look_on SECONDS OPTION...: sets wall, the microseconds that bpf-pmp took in all
look_on() {
	local began ended
	began=${EPOCHREALTIME/./}
	"$pmp" --mode=offcpu -p "$fixture_pid" --duration "$@" >out 2>err
	ended=${EPOCHREALTIME/./}
	wall=$((ended - began))
	cat out err
}

# whole_run STACK SECONDS [THREADS]: it is there, for the whole of the run
whole_run() {
	local n
	n=$(lines_total out "$1")
	echo "# $1: $n microseconds of $2 s" >&3
	[ "$n" -ge $(($2 * 980000)) ] && [ "$n" -le $((wall * ${3:-1})) ]
}

on_mutex='pthread_mutex_lock[^,]*,stuck_on_mutex,stayer,start_thread'
in_pause='pause[^,]*,stuck_in_pause,stayer,start_thread'
in_vfork='vfork[^,]*,stuck_in_vfork,stayer,start_thread'

@test "a thread that is stuck throughout is there, with the length of the run" {
	start_fixture block stuck preempted
	look_on 3
	[ ! -s err ]
	for stack in "$on_mutex" "$in_pause" "$in_vfork" 'sigwait[^,]*,main,'; do
		whole_run "$stack" 3
		near "$(lines_total out "$stack")" "$(lines_total out "$on_mutex")" 2
	done
	# who waits for a CPU alone is not blocked
	[ "$(lines_total out ',stayer,')" -gt 0 ]
	[ "$(lines_total out '(^|,)preempted,stayer,')" -eq 0 ]
}

@test "--state chooses: sleeping, uninterruptible, waiting for a CPU" {
	start_fixture block stuck preempted
	look_on 2 --state uninterruptible
	whole_run "$in_vfork" 2
	[ "$(lines_total out)" -eq "$(lines_total out "$in_vfork")" ]
	look_on 2 --state interruptible
	whole_run "$on_mutex" 2
	whole_run "$in_pause" 2
	[ "$(lines_total out "stuck_in_vfork|preempted")" -eq 0 ]
	# at any time one of the two, at least, is off its CPU
	look_on 2 --state runnable
	whole_run '(^|,)preempted,stayer,start_thread' 2 2
	[ "$(lines_total out "stuck_in")" -eq 0 ]
	look_on 2 --state all
	whole_run "$on_mutex" 2
	whole_run "$in_vfork" 2
	whole_run '(^|,)preempted,stayer,start_thread' 2 2
	# reported apart: it did not wait for anything but a CPU
	[ "$(lines_total out '^\[preempted\],.*preempted,stayer,')" -eq "$(lines_total out ',preempted,stayer,')" ]
	[ "$(lines_total out '^\[preempted\],.*stuck_')" -eq 0 ]
	look_on 2 --state uninterruptible,runnable
	whole_run "$in_vfork" 2
	whole_run '(^|,)preempted,stayer,start_thread' 2 2
	[ "$(lines_total out "stuck_on_mutex|stuck_in_pause")" -eq 0 ]
}

@test "a wait that is still open at the end counts up to the end" {
	start_fixture block stuck
	start_sampler --mode=offcpu -p "$fixture_pid" --duration 120
	sleep 2
	end_sampler INT
	cat out err
	[ "$(lines_total out "$on_mutex")" -ge 2000000 ]
	# too short a wait for this, when it ends
	look_on 1 --min-us 100000000
	[ "$(lines_total out)" -eq 0 ]
}
