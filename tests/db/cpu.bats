#!/usr/bin/env bats
# The samplers on MariaDB under sysbench with 16 connections: nearly every stack is whole, and none is
# lost. FULL=1: for 30 s at 99 Hz and 10 s at 999 Hz.

load ../live/lib

setup_file() {
	export BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR
	start_mariadb "$BATS_FILE_TMPDIR/db"
	start_sysbench 16 3600
	sleep 3
	printf '%s=%q\n' mariadb_pid "$mariadb_pid" mariadb_socket "$mariadb_socket" \
		sysbench_pid "$sysbench_pid" >"$BATS_FILE_TMPDIR/pids"
}

setup() {
	. "$BATS_FILE_TMPDIR/pids"
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
}

teardown_file() {
	. "$BATS_FILE_TMPDIR/pids"
	stop_sysbench
	stop_mariadb
}

# profile OPTION...: the figures of its own account in n and complete, of its lines in total and whole
profile() {
	"$pmp" -p "$mariadb_pid" -v "$@" >out 2>err || { cat err; false; }
	read -r n complete < <(sed -nE \
		's/^bpf-pmp: ([0-9]+) (sample|wait)s?, ([0-9]+) complete .*/\1 \3/p' err)
	read -r whole total < <(whole_pmp out)
	grep -E ' [1-9][0-9]* .*|complete' err | grep -v '^bpf-pmp: *0 ' || true
	[ "$n" -gt 0 ]
}

# nearly_all PART ALL: at least 99.5%
nearly_all() {
	[ "$2" -gt 0 ] && [ $(($1 * 1000)) -ge $(($2 * 995)) ] || lib_fail "$1 of $2 are less than 99.5%"
}

# at HZ SECONDS: by its account and by its lines
at() {
	profile --mode=cpu -F "$1" --duration "$2"
	echo "# $1 Hz: $complete of $n samples complete, $whole of $total to their thread's start" >&3
	nearly_all "$complete" "$n"
	nearly_all "$whole" "$total"
	[ "$(lost_account err '^lost [(]')" -eq 0 ]
	# one that ends there is not marked, and all others are
	[ "$whole" -le "$complete" ]
	[ $((total - $(lines_marked out))) -eq "$complete" ]
	adds_up out err
	kill -0 "$sysbench_pid" # the load went on throughout
}

@test "at 99 Hz: at least 99.5% of the stacks are whole, none is lost" {
	at 99 "$([ -n "${FULL:-}" ] && echo 30 || echo 10)"
	[ "$n" -ge 100 ]
}

@test "at 999 Hz: at least 99.5% of the stacks are whole, none is lost" {
	at 999 "$([ -n "${FULL:-}" ] && echo 10 || echo 5)"
	[ "$n" -ge 500 ]
}

@test "by frame pointers few are, with --unwind=fp as with bpftrace: both say the same" {
	profile --mode=cpu -F 99 --duration 3 --unwind=fp
	echo "# --unwind=fp: $complete of $n samples complete, $whole of $total to their thread's start" >&3
	# what is guessed may reach it; complete is none
	[ "$complete" -le $((total / 100)) ]
	nearly_all "$(lines_marked out)" "$total"
	command -v bpftrace >/dev/null || skip "bpftrace is not installed"
	# naming takes it minutes unless it may cache symbols
	BPFTRACE_CACHE_USER_SYMBOLS=1 timeout 300 bpftrace -e "
		profile:hz:99 /pid == $mariadb_pid/ { @[kstack, ustack] = count(); }
		interval:s:3 { exit(); }" >theirs 2>their_err
	read -r their_whole their_total < <(whole_bpftrace theirs)
	echo "# bpftrace: $their_whole of $their_total samples to their thread's start" >&3
	[ "$their_total" -ge 50 ]
	awk -v a="$whole" -v b="$total" -v c="$their_whole" -v d="$their_total" \
		'BEGIN { x = a / b - c / d; exit !((x < 0 ? -x : x) <= 0.1) }'
}

@test "off-CPU: at least 99.5% of the waits' stacks are whole, none is lost" {
	profile --mode=offcpu --duration 5
	echo "# off-CPU: $complete of $n waits complete, $whole of $total microseconds to their thread's start" >&3
	[ "$n" -ge 1000 ]
	nearly_all "$complete" "$n"
	nearly_all "$whole" "$total"
	[ "$(lost_account err '^lost [(]')" -eq 0 ]
}
