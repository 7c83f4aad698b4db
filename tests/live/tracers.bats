#!/usr/bin/env bats
# The programs behind --tracer: what they print is counted, and however they end, the target runs.

# shellcheck disable=SC2016 # the scripts of the fakes

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	mkdir fake
}

teardown() {
	stop_fixture
}

# fake NAME LINE...: a program of that name, first in PATH; $target is the process
fake() {
	printf '%s\n' '#!/bin/sh' 'for target; do :; done' "${@:2}" >"fake/$1"
	chmod +x "fake/$1"
	PATH=$PWD/fake:$PATH
}

# sum FILE: how many threads an output counts
sum() {
	awk 'NR > 1 { n += $1 } END { print n + 0 }' "$1"
}

# runs: no thread of the target is stopped or traced, nor about to be stopped (19: SIGSTOP)
runs() {
	awk '$1 == "State:" && $2 ~ /^[Tt]/ { bad = 1; print }
		$1 == "TracerPid:" && $2 { bad = 1; print }
		/^S(ig|hd)Pnd:/ && substr($2, 12, 1) ~ /[4-7c-f]/ { bad = 1; print }
		END { exit bad }' "/proc/$fixture_pid"/task/*/status
}

# one_line: all that is said is one line, of ours
one_line() {
	cat err
	[ "$(wc -l <err)" -eq 1 ]
	grep -q '^bpf-pmp: ' err
}

@test "gdb: every thread" {
	start_fixture threads many 20
	"$pmp" --tracer=gdb -p "$fixture_pid" >out 2>err
	cat out err
	[ "$(sum out)" -eq 21 ]
	grep -qE '^ +20 [^ ]*pause[^ ]*,hold_here,level_2,level_1,sleeper,start_thread[^ ]*,clone3[^ ]*$' out
	runs
}

@test "gdb --readnever: every thread, though not every frame" {
	start_fixture threads many 20
	# gdb does not read the unwind tables either: what it finds is up to the stacks' contents
	"$pmp" --tracer gdb --readnever -p "$fixture_pid" -k saved >out 2>err
	cat out err
	[ "$(sum out)" -eq 21 ]
	[ "$(grep -c '^#0 .* in pause () from /' saved)" -eq 21 ]
	runs
}

@test "eu-stack: every thread, the source lines joined" {
	start_fixture threads many 20
	"$pmp" --tracer=eu -p "$fixture_pid" -k saved >out 2>err
	cat out err
	[ "$(sum out)" -eq 21 ]
	grep -qE '^ +20 pause[^ ]*,hold_here\(threads\),level_2\(threads\),level_1\(threads\),sleeper\(threads\),start_thread[^ ]*,' out
	[ "$(grep -c '^ ' saved)" -eq 0 ]
	[ "$(grep -c '^TID ' saved)" -eq 21 ]
	runs
}

@test "eu-stack: frames without a name" {
	start_fixture frames_stripped
	status=0
	"$pmp" --tracer=eu -p "$fixture_pid" -k saved >out 2>err || status=$?
	cat out err
	[ "$status" -eq 0 ]
	grep -qE '^#1  0x[0-9a-f]+ \?\?\(\) - /' saved
	[ "$(grep -cE '^#[0-9]+ +0x[0-9a-f]+ - ' saved)" -eq 0 ]
	grep -q '??(frames_stripped)' out
}

@test "pt-eustack-resolver: its text is taken as it is" {
	start_fixture threads many 2
	fake eu-stack
	fake pt-eustack-resolver 'printf "\nThread $target (LWP $target):\n#0 0x1 in f(int) at f.c:1\n"'
	"$pmp" --tracer=pteu -p "$fixture_pid" -k saved >out 2>err
	cat out err saved
	[ "$(sed -n 2p out)" = '      1 f' ]
	[ ! -s err ]
	[ "$(sed -n 2p saved)" = "Thread $fixture_pid (LWP $fixture_pid):" ]
}

@test "-k: gdb's text and a time line, once per iteration" {
	start_fixture threads many 20
	"$pmp" --tracer=gdb -p "$fixture_pid" -i 2 -k saved >out 2>err
	[ "$(sum out)" -eq 42 ]
	[ "$(grep -c '^Thread ' saved)" -eq 42 ]
	[ "$(grep -c '^TS ' saved)" -eq 2 ]
	grep -q '^#0  0x[0-9a-f]* in ' saved
	# what is saved gives the same lines
	"$pmp" saved >again
	tail -n +2 out >now
	cmp now again
}

@test "the arguments are stock's" {
	start_fixture threads many 2
	fake gdb 'printf "%s\n" "$@" >args; printf "Thread 1\n#0  0x1 in f ()\n"'
	"$pmp" --tracer=gdb -p "$fixture_pid" >out
	printf '%s\n' -ex 'set pagination 0' -ex 'thread apply all bt' -batch -p "$fixture_pid" |
		cmp - args
}

@test "a program that is not there" {
	start_fixture threads many 2
	for tracer in gdb:gdb eu:eu-stack; do
		status=0
		PATH=$PWD/fake "$pmp" --tracer="${tracer%:*}" -p "$fixture_pid" >out 2>err || status=$?
		[ "$status" -eq 1 ]
		[ ! -s out ]
		one_line
		grep -q "^bpf-pmp: ${tracer#*:} was not found in PATH; install " err
	done
}

@test "a gdb that hangs is ended by --timeout, and the target runs" {
	start_fixture threads many 20
	fake gdb 'kill -STOP $target' 'exec sleep 100'
	status=0
	began=$EPOCHREALTIME
	"$pmp" --tracer=gdb --timeout 2 -p "$fixture_pid" >out 2>err 3>&- || status=$?
	ended=$EPOCHREALTIME
	[ "$status" -eq 1 ]
	one_line
	grep -q 'gdb was ended: it took longer than 2 s' err
	grep -q 'it was continued (SIGCONT)' err
	awk -v b="$began" -v e="$ended" 'BEGIN { exit !(e - b >= 2 && e - b < 20) }'
	runs
}

@test "the real ones, ended at any moment: the target runs" {
	start_fixture threads many 200
	for tracer in gdb eu; do
		for ms in 005 010 020 030 050 070 080 090 100 120 140 160 200 250; do
			status=0
			"$pmp" --tracer="$tracer" --timeout "0.$ms" -p "$fixture_pid" >out 2>err ||
				status=$?
			runs
			[ "$status" -eq 0 ] || grep -q '^bpf-pmp: .* was ended: it took longer' err
		done
	done
	"$pmp" --tracer=gdb -p "$fixture_pid" >out 2>err
	[ "$(sum out)" -eq 201 ]
}

@test "a gdb that is killed at any moment: one line more, and the target runs" {
	start_fixture threads many 200
	gdb=$(command -v gdb)
	for ms in 020 040 060 080 100 120 140 160 180 200; do
		fake gdb "'$gdb' \"\$@\" 2>/dev/null &" "sleep 0.$ms" 'kill -9 $!' 'kill -9 $$'
		status=0
		"$pmp" --tracer=gdb -p "$fixture_pid" >out 2>err 3>&- || status=$?
		[ "$status" -eq 1 ]
		one_line
		grep -q 'gdb was killed by signal 9' err
		runs
	done
}

@test "SIGINT ends gdb and then us, and the target runs" {
	start_fixture threads many 20
	fake gdb 'kill -STOP $target' 'echo $$ >gdb.pid' 'exec sleep 20'
	# a shell without job control has its background commands ignore SIGINT
	env --default-signal=INT "$pmp" --tracer=gdb -p "$fixture_pid" >out 2>err 3>&- &
	tool=$!
	await 30 test -s gdb.pid
	kill -INT "$tool"
	status=0
	wait "$tool" || status=$?
	cat err
	[ "$status" -eq 130 ]
	lib_gone "$(cat gdb.pid)"
	grep -q 'it was continued (SIGCONT)' err
	runs
}

@test "SIGKILL to us at any moment: gdb ends, and the target runs" {
	start_fixture threads many 200
	for ms in 020 050 080 100 120 150 200; do
		"$pmp" --tracer=gdb -p "$fixture_pid" >out 2>err 3>&- &
		tool=$!
		sleep "0.$ms"
		kill -KILL "$tool" || true
		wait "$tool" || true
		sleep 0.7
		await 30 runs
	done
}

@test "a target that was stopped before stays stopped" {
	start_fixture threads suspended
	for tracer in gdb eu; do
		"$pmp" --tracer="$tracer" -p "$fixture_child" >out 2>err
		grep -q level_1 out
		[ "$(grep -c SIGCONT err)" -eq 0 ]
		grep -q '^State:.T' "/proc/$fixture_child/status"
	done
	fake gdb 'kill -9 $$'
	"$pmp" --tracer=gdb -p "$fixture_child" >out 2>err || true
	one_line
	[ "$(grep -c SIGCONT err)" -eq 0 ]
	grep -q '^State:.T' "/proc/$fixture_child/status"
}

@test "a gdb that fails, and one that floods" {
	start_fixture threads many 2
	fake gdb 'echo cannot >&2' 'exit 3'
	status=0
	"$pmp" --tracer=gdb -p "$fixture_pid" >out 2>err || status=$?
	cat out err
	[ "$status" -eq 1 ]
	[ "$(sed -n 1p err)" = cannot ]
	[ "$(sed -n 2p err)" = "bpf-pmp: gdb printed no stack of process $fixture_pid (exit status 3)" ]
	# 100 MB of lines that are passed over
	fake gdb 'yes nothing | head -c 100000000' 'printf "\nThread 1\n#0  0x1 in f ()\n"'
	(
		ulimit -v 262144
		"$pmp" --tracer=gdb -p "$fixture_pid" >out
	)
	[ "$(sed -n 2p out)" = '      1 f' ]
}
