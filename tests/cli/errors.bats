#!/usr/bin/env bats
# Bad input gets one line on standard error, status 1, and nothing on standard output.

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	[ -z "${pid:-}" ] || kill -9 "$pid" 2>/dev/null || true
}

# refused WORDS ARGUMENT...: it fails as it should, and its one line holds WORDS
refused() {
	local words=$1 status=0
	shift
	"$pmp" "$@" >out 2>err || status=$?
	cat err
	[ "$status" -eq 1 ]
	[ ! -s out ]
	[ "$(wc -l <err)" -eq 1 ]
	grep -qF -- "$words" err
	grep -q '^bpf-pmp: ' err
}

@test "bad options name the option and the value" {
	refused "--pid takes a whole number from 1 to 2147483647, not 'x'" -p x
	refused "--interval takes a number of seconds from 0 to 1000000 (0.5 will do), not 'soon'" -s soon
	refused "there is no option '--frobnicate'" --frobnicate
	refused "--lines needs a value" -l
	refused "--format takes pmp, folded or samples, not 'svg'" --format=svg
}

@test "control characters in an argument do not reach the terminal" {
	refused "not 'a?[31mb'" -p "$(printf 'a\033[31mb')"
}

@test "no such process" {
	refused "no process has the PID 2147483646" -p 2147483646
	refused "no process is named pmp_no_such_server; give -p PID" -b pmp_no_such_server
	refused "no process has the command pmp_no_such_one" --comm pmp_no_such_one
	refused "--comm takes at most 15 bytes" --comm pmp_no_such_server
}

@test "a kernel thread" {
	[ "$(awk '{ print $9 }' /proc/2/stat)" != 0 ]
	refused "process 2 is a kernel thread" -p 2
}

@test "a zombie" {
	sh -c 'true & exec sleep 100' 3>&- &
	pid=$!
	for _ in $(seq 300); do
		zombie=$(ps -o pid= --ppid "$pid" | tr -d ' ')
		[ -n "$zombie" ] && grep -q '^State:	Z' "/proc/$zombie/status" && break
		sleep 0.1
	done
	refused "process $zombie is a zombie" -p "$zombie"
}

@test "a thread that is not a process" {
	"$BATS_TEST_DIRNAME/../../${B:-build}/fixtures/threads" many 2 >ready 3>&- &
	pid=$!
	while ! grep -q ready ready; do sleep 0.05; done
	tid=$(ls "/proc/$pid/task" | grep -vx "$pid" | head -n 1)
	refused "$tid is a thread of process $pid; give -p $pid" -p "$tid"
}

@test "a 32-bit process" {
	"$BATS_TEST_DIRNAME/../../${B:-build}/fixtures/i386" >ready 3>&- &
	pid=$!
	# until then it is still what will become it
	while ! grep -q ready ready; do sleep 0.05; done
	refused "process $pid is a 32-bit program" -p "$pid"
}

@test "standard output is full or closed" {
	"$BATS_TEST_DIRNAME/../../${B:-build}/fixtures/threads" many 2 >ready 3>&- &
	pid=$!
	while ! grep -q ready ready; do sleep 0.05; done
	run sh -c "'$pmp' -p $pid 2>err >/dev/full"
	[ "$status" -eq 1 ]
	grep -qx 'bpf-pmp: cannot write to standard output: No space left on device' err
	run sh -c "'$pmp' -p $pid 2>err >&-"
	[ "$status" -eq 1 ]
	grep -qx 'bpf-pmp: cannot write to standard output: Bad file descriptor' err
	run sh -c "'$pmp' --help 2>err >/dev/full"
	[ "$status" -eq 1 ]
	grep -q 'cannot write to standard output' err
}

@test "files that cannot be written are found out before the capture" {
	began=$EPOCHREALTIME
	refused "cannot write no/such/file: No such file or directory" -p $$ -i 2 -s 30 -k no/such/file
	refused "cannot write no/such/file: No such file or directory" -p $$ -i 2 -s 30 -o no/such/file
	mkfifo nobody_reads
	refused "cannot write nobody_reads: No such device or address" -p $$ -i 2 -s 30 -k nobody_reads
	awk -v b="$began" -v e="$EPOCHREALTIME" 'BEGIN { exit !(e - b < 20) }'
}

@test "decimals are written with a point, whatever the locale" {
	mkdir locales
	localedef -i de_DE -f UTF-8 "$PWD/locales/de_DE.UTF-8" 2>/dev/null || true
	[ -d locales/de_DE.UTF-8 ]
	LOCPATH=$PWD/locales LC_ALL=de_DE.UTF-8 refused "no process has the PID 2147483646" -s 0.5 -p 2147483646
}

@test "contradictions are refused" {
	refused "--comm takes all processes of a name: without --pid" --comm a -p 1
	refused "name the same file, 'x'" -p 1 -o x -k x
}

@test "-o /dev/stdout is standard output, whatever that is" {
	"$BATS_TEST_DIRNAME/../../${B:-build}/fixtures/threads" many 2 >ready 3>&- &
	pid=$!
	while ! grep -q ready ready; do sleep 0.05; done
	echo before >all
	# a file, appended to; by a private name for it, so that the machine's own is left alone
	ln -s /proc/self/fd/1 my_stdout
	"$pmp" -p "$pid" -o my_stdout >>all
	[ "$(head -n 1 all)" = before ]
	[ "$(wc -l <all)" -eq 4 ]
	[ -L my_stdout ]
	[ "$("$pmp" -p "$pid" -o my_stdout | wc -l)" -eq 3 ]
}

@test "a bad regular expression" {
	refused "--tids" -p $$ -t '(('
}

@test "without rights it names what is missing" {
	chmod 755 "$BATS_TEST_TMPDIR"
	touch out err
	chmod 666 out err
	run setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
		"$pmp" -p 1
	echo "$output"
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"needs CAP_BPF and CAP_PERFMON (or root); see --check"* ]]
	run setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+bpf,+perfmon \
		--ambient-caps=+bpf,+perfmon "$pmp" -p 1
	echo "$output"
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"CAP_SYS_PTRACE"* ]]
}

@test "several processes of one name are listed, and none is taken" {
	cp "$(command -v sleep)" pmp_twins
	./pmp_twins 100 3>&- &
	first=$!
	./pmp_twins 101 3>&- &
	second=$!
	run "$pmp" -b pmp_twins
	kill -9 "$first" "$second"
	echo "$output"
	[ "$status" -eq 1 ]
	[ "${lines[0]}" = "bpf-pmp: 2 processes are named pmp_twins; give one with -p, or take all with --comm pmp_twins:" ]
	[[ ${lines[1]} =~ ^\ \ \ \ PID\ $first\ [a-z0-9_]+,\ since\ [A-Z][a-z]+\ +[0-9]+\ [0-9:]+,\ ./pmp_twins\ 100$ ]]
	[[ ${lines[2]} =~ ^\ \ \ \ PID\ $second\ .*\ ./pmp_twins\ 101$ ]]
}

@test "relatives of mysqld are not mysqld" {
	cp "$(command -v sleep)" mysqld_exporter
	cp "$(command -v sleep)" mysqld_safe
	./mysqld_exporter 100 3>&- &
	first=$!
	./mysqld_safe 100 3>&- &
	second=$!
	run "$pmp" -b mysqld
	kill -9 "$first" "$second"
	[ "$status" -eq 1 ]
	[ "$output" = "bpf-pmp: no process is named mysqld; give -p PID, or another name with -b" ]
}

@test "an option that says nothing to the mode is refused" {
	refused "--frequency goes with --mode=cpu" -F 99
	refused "--all goes with --mode=cpu and --mode=offcpu" -a
	refused "--iterations goes with --mode=threads" --mode=cpu -i 2
	refused "--dumper goes with --mode=threads" --mode=offcpu -d eu
	refused "--mode=cpu samples processes: without FILES, please" --mode=cpu trace.txt
	refused "--all takes the whole machine: without --pid, please" --mode=cpu -a -p 1
	refused "--functions goes with --format=pmp, not folded" --functions --format=folded
	refused "--state takes a list of interruptible, uninterruptible, runnable or all, not 'busy'" \
		--mode=offcpu --state busy
}

@test "of several processes each one is checked" {
	refused "no process has the PID 2147483646" -p $$,2147483646
	refused "process 2 is a kernel thread" -p $$ -p 2
}
