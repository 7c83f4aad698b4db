#!/usr/bin/env bats
# MariaDB under sysbench with 64 connections, stopped: every frame's address equals eu-stack's, and
# functions, files and lines are gdb's.

load ../live/lib

setup_file() {
	export BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR
	start_mariadb "$BATS_FILE_TMPDIR/db"
	start_sysbench 64 3600
	sleep 3
	# no `declare`: read within a function, that would make them local to it
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
	kill -CONT "$mariadb_pid" || true
	stop_sysbench
	stop_mariadb
}

compare_once() {
	stop_all "$mariadb_pid"
	# inlined functions have no address of their own
	"$pmp" -p "$mariadb_pid" --no-lines --no-inlines -k ours >lines 2>err
	eu-stack -n 0 -p "$mariadb_pid" >theirs 2>/dev/null || true
	kill -CONT "$mariadb_pid"
	[ ! -s err ] || { cat err; false; }
	run "$BATS_TEST_DIRNAME/../tools/compare_eu_stack.sh" theirs ours
	echo "$output" | tee -a "$BATS_FILE_TMPDIR/figures" >&3
	[ "$status" -eq 0 ]
	# all of the connections' threads were among them
	[ "$(grep -c '^Thread ' ours)" -ge 65 ]
	[ "$(grep -c '^Thread ' ours)" -eq "$(grep -c '^TID ' theirs)" ]
	sleep 1
}

@test "stopped MariaDB, repetition 1 of 6: equal to eu-stack" { compare_once; }
@test "stopped MariaDB, repetition 2 of 6: equal to eu-stack" { compare_once; }
@test "stopped MariaDB, repetition 3 of 6: equal to eu-stack" { compare_once; }
@test "stopped MariaDB, repetition 4 of 6: equal to eu-stack" { compare_once; }
@test "stopped MariaDB, repetition 5 of 6: equal to eu-stack" { compare_once; }
@test "stopped MariaDB, repetition 6 of 6: equal to eu-stack" { compare_once; }

# gdb_says_the_same: 99.5% of the frames, and what differs is shown
gdb_says_the_same() {
	local n same more
	stop_all "$mariadb_pid"
	"$pmp" -p "$mariadb_pid" -k ours >lines 2>err
	gdb_trace "$mariadb_pid" >gdbs 2>/dev/null || true
	kill -CONT "$mariadb_pid"
	[ ! -s err ] || { cat err; false; }
	"$BATS_TEST_DIRNAME/../tools/compare_frames.sh" ours gdbs >result
	sed 's/^/# /' result >&3
	read -r n _ _ _ same _ more _ <result
	[ "$n" -gt 500 ]
	[ $(((same + more) * 1000)) -ge $((n * 995)) ]
	# by Debian's pt-pmp, both
	pt-pmp ours | LC_ALL=C sort >ours.lines
	pt-pmp gdbs | LC_ALL=C sort >gdbs.lines
	echo "# $(LC_ALL=C comm -12 ours.lines gdbs.lines | wc -l) of $(wc -l <gdbs.lines) lines of pt-pmp's are identical" >&3
	sleep 1
}

@test "stopped MariaDB, repetition 1 of 3: functions, files and lines are gdb's" { gdb_says_the_same; }
@test "stopped MariaDB, repetition 2 of 3: functions, files and lines are gdb's" { gdb_says_the_same; }
@test "stopped MariaDB, repetition 3 of 3: functions, files and lines are gdb's" { gdb_says_the_same; }

@test "Debian's pt-pmp makes the same lines of the saved samples" {
	"$pmp" -p "$mariadb_pid" -k saved >ours 2>err
	pt-pmp saved >theirs
	tail -n +2 ours | LC_ALL=C sort >ours.sorted
	LC_ALL=C sort theirs >theirs.sorted
	diff ours.sorted theirs.sorted
	# and in the same order, in the locale of both
	tail -n +2 ours | diff - theirs
}
