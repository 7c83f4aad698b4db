#!/usr/bin/env bats
# Text traces from files and pipes.

setup() {
	top=$BATS_TEST_DIRNAME/../..
	pmp=$(cd "$top" && pwd)/${B:-build}/bpf-pmp
	samples=$(cd "$top" && cd ../shared/ptpmp-samples 2>/dev/null && pwd) || samples=
	golden=$(cd "$top" && pwd)/golden/read
	cd "$BATS_TEST_TMPDIR"
	export HOME=$BATS_TEST_TMPDIR
}

@test "pt-pmp's own cases, byte for byte, by the whole program" {
	[ -n "$samples" ] || skip "the folder ../shared/ptpmp-samples is not here"
	export LC_ALL=en_US.UTF-8
	n=0
	for input in "$samples"/*.in; do
		"$pmp" "$input" | cmp - "${input%.in}.out"
		n=$((n + 1))
	done
	"$pmp" -l 2 "$samples/stacktrace003.in" | cmp - "$samples/stacktrace003-limit2.out"
	"$pmp" -d eu "$samples/stacktrace006-eu.in" | cmp - "$samples/stacktrace006-eu-deu.out"
	"$pmp" -d pteu "$samples/stacktrace006-pteu.in" | cmp - "$samples/stacktrace006-pteu-dpteu.out"
	"$pmp" -t ^25 "$samples/stacktrace001.in" | cmp - "$samples/stacktrace001_t25.out"
	"$pmp" -t 21201,23846 "$samples/stacktrace001.in" | cmp - "$samples/stacktrace001_t21201_23846.out"
	"$pmp" -t 21201,237.8 "$samples/stacktrace001.in" | cmp - "$samples/stacktrace001_t21201_237_8.out"
	[ "$n" -ge 10 ]
}

@test "a trace on standard input: as -, and as a pipe or a file by itself" {
	for format in gdb-threads perf-callgraph; do
		"$pmp" "$golden/$format.in" >want
		[ -s want ]
		"$pmp" - <"$golden/$format.in" | cmp - want
		cat "$golden/$format.in" | "$pmp" | cmp - want
		"$pmp" <"$golden/$format.in" | cmp - want
	done
}

@test "a pipe that ends at once, as cron's, is no trace: the server of this machine is meant" {
	true | "$pmp" >out 2>&1 || true
	[ -s out ]
}

@test "many hosts' outputs are summed" {
	printf 'Fri Nov 20 15:43:06 UTC 2026\n     41 a,b\n      2 c\n' >one
	printf '      1 a,b\n      3 d\n' >two
	run "$pmp" one two
	[ "$output" = "$(printf '     42 a,b\n      3 d\n      2 c')" ]
}

@test "a missing file is complained of, the others are read" {
	printf 'Thread 1\n#0  a\n' >good
	status=0
	"$pmp" missing good "a file with blanks" >out 2>err || status=$?
	[ "$status" -eq 1 ]
	[ "$(cat out)" = "      1 a" ]
	[ "$(wc -l <err)" -eq 2 ]
	grep -qx 'bpf-pmp: cannot read missing: No such file or directory' err
	grep -qx 'bpf-pmp: cannot read a file with blanks: No such file or directory' err
	run "$pmp" .
	[ "$status" -eq 1 ]
	[ "$output" = "bpf-pmp: cannot read .: Is a directory" ]
}

@test "odd bytes: CRLF, NUL, no final newline, a line and a frame of megabytes" {
	printf 'Thread 1\r\n#0  f\r\n' >crlf
	"$pmp" crlf | od -c | grep -q 'f  *\\r  *\\n'
	printf 'Thread 1\n#0  a\0b\n' >nul
	[ "$("$pmp" nul | od -An -c | tr -d ' \n')" = '1a\0b\n' ]
	printf 'Thread 1\n#0  last' >cut
	[ "$("$pmp" cut)" = "      1 last" ]
	{
		printf 'Thread 1\n#0  '
		head -c 8000000 /dev/zero | tr '\0' x
		printf '\nignored '
		head -c 30000000 /dev/zero | tr '\0' y
		printf '\n#1  b\n'
	} >long
	[ "$("$pmp" long | wc -c)" -eq $((8 + 8000000 + 3)) ]
	{
		printf 'Thread 1\n#0  '
		head -c 20000000 /dev/zero | tr '\0' x
	} >longer
	run "$pmp" longer
	[ "$status" -eq 1 ]
	[[ $output == "bpf-pmp: cannot read longer: "*"16 MiB" ]]
}

@test "options come from config files, and the command line wins" {
	printf 'Thread 1\n#0  a\n#1  b\n#2  c\n' >trace
	echo 'lines=2' >.pt-pmp.conf
	[ "$("$pmp" trace)" = "      1 a,b" ]
	[ "$("$pmp" -l 1 trace)" = "      1 a" ]
	echo 'lines 1' >own
	[ "$("$pmp" --config own trace)" = "      1 a" ]
	[ "$("$pmp" --config '' trace)" = "      1 a,b,c" ]
	echo 'frobnicate' >own
	run "$pmp" --config own trace
	[ "$status" -eq 1 ]
	[ "$output" = "bpf-pmp: own:1: there is no option 'frobnicate'" ]
	run "$pmp" trace --config own
	[ "$output" = "bpf-pmp: --config must be the first option" ]
	echo 'frobnicate' >.percona-toolkit.conf # all tools' options
	[ "$("$pmp" trace)" = "      1 a,b" ]
}

@test "an unknown format or dialect is an error, with files too" {
	run "$pmp" --input=pdf "$golden/gdb-threads.in"
	[ "$status" -eq 1 ]
	[[ $output == "bpf-pmp: --input takes "*"not 'pdf'" ]]
	run "$pmp" -d lldb "$golden/gdb-threads.in"
	[ "$status" -eq 1 ]
}
