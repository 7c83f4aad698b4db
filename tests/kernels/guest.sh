#!/bin/bash
# The checks that each kernel has to pass, run in the guest: `ok N - TEXT` or `not ok N - TEXT` with
# the reason in comments. MODES says which of bpf-pmp's modes are checked.
set -uo pipefail
shopt -s extglob
cd "$(dirname "$0")/../.." || exit 1
BATS_TEST_TMPDIR=$(mktemp -d)
export BATS_TEST_TMPDIR
# shellcheck source=tests/live/lib.bash
. tests/live/lib.bash
# without it, <( ) reads nothing, and a comparison with nothing succeeds
[ -e /dev/fd/0 ] || exit 1
pmp=${B:-build}/bpf-pmp
dir=$BATS_TEST_TMPDIR
number=0
failed=0
trap 'stop_fixture; rm -rf "$dir"' EXIT

# check TEXT COMMAND...: one line of TAP
check() {
	number=$((number + 1))
	if "${@:2}" >"$dir/log" 2>&1; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		head -c 2000 "$dir/log" | sed 's/^/# /'
		failed=$((failed + 1))
	fi
	stop_fixture
}

# run_pmp OPTION...: to $dir/out and $dir/err, which are shown in case
run_pmp() {
	local status=0
	timeout 60 "$pmp" "$@" >"$dir/out" 2>"$dir/err" || status=$?
	cat "$dir/err"
	[ "$status" -eq 0 ] || lib_fail "bpf-pmp $*: status $status"
}

# with_fixture NAME ARGUMENT... -- OPTION...: bpf-pmp's view of a fixture, shown in case
with_fixture() {
	local -a fixture=()
	while [ "$1" != -- ]; do
		fixture+=("$1")
		shift
	done
	shift
	start_fixture "${fixture[@]}" || return 1
	run_pmp -p "$fixture_pid" "$@" || return 1
	cat "$dir/out"
}

# counted GLOB: the sum of the counts of the lines whose stack matches
counted() {
	local count line sum=0
	while read -r count line; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $line == $1 ]] && sum=$((sum + count))
	done < <(grep -aE '^ *[0-9]+ ' "$dir/out")
	echo "$sum"
}

usable() {
	run_pmp --check || return 1
	cat "$dir/out"
	grep -qx 'BPF programs: ok' "$dir/out" && grep -q '^thread iterator: ok' "$dir/out" &&
		grep -q '^CPU sampling: ok' "$dir/out"
}

# stacks CASE NAME ARGUMENT...: a case of tests/fixtures/expected
stacks() {
	start_case "$@" || return 1
	run_pmp -p "$target_pid" || return 1
	expect_stacks "$1" "$dir/out"
}

# whole_stacks CASE NAME ARGUMENT...: nothing is lost, so nothing is said on standard error
whole_stacks() {
	stacks "$@" && [ ! -s "$dir/err" ]
}

check_threads() {
	local case run
	local -a words
	while read -r case run; do
		read -ra words <<<"$run"
		check "threads: $case: $run" whole_stacks "$case" "${words[@]}"
	done <<-END
		frames_eu frames plain alloca vla realigned realigned_vla noreturn qsort huge
		signals signals handler altstack fault nested
		recurse_400 recurse 400
		recurse_large recurse 40 100000
		threads_gap threads gap 20
		zombie_leader threads zombie-leader
		vfork_parent spawn vfork
	END
	# they run all the time: some may be marked, and that is said
	check "threads: threads_busy: threads busy 4" stacks threads_busy threads busy 4
	check "threads: --kernel" kernel_frames
	if grep -qw bpf_kallsyms_lookup_name /proc/kallsyms; then
		check "threads: each kernel address has the name that /proc/kallsyms has" \
			"${B:-build}/tests/tools/ksym_query"
	fi
}

kernel_frames() {
	with_fixture recurse 60 -- --kernel || return 1
	[ ! -s "$dir/err" ] || return 1
	[ "$(counted '*do_syscall_64,entry_SYSCALL_64*,*pause*,hold_here,descend,*main*')" -eq 1 ]
}

# without bpf_loop no program can follow tables through a whole stack: frame pointers it is then
tables_work() {
	grep -qw bpf_loop /proc/kallsyms
}

announced() {
	grep -qi 'frame pointer' "$dir/err" || lib_fail "frame pointers are not announced"
}

# chain PATTERN NAME: of the samples of `NAME chain 12`, 95 in 100 have to match
chain() {
	local matching all
	with_fixture "$2" chain 12 -- --mode=cpu --duration 2 -F 99 || return 1
	all=$(counted '*')
	matching=$(counted "$1")
	[ "$all" -ge 20 ] || lib_fail "$all samples in two seconds" || return 1
	[ $((matching * 100)) -ge $((all * 95)) ] || lib_fail "$matching of $all samples match"
}

# innermost first, as the fixture calls them
chain_calls=chain_1,chain_2,chain_3,chain_4,chain_5,chain_6,chain_7,chain_8,chain_9,chain_10
chain_calls+=,chain_11,chain_12,repeat,thread_main

# the innermost makes no frame of its own: its caller, chain_1, is not seen
chain_by_frame_pointers() {
	chain "*${chain_calls#chain_1,}*" spin_fp && announced
}

# a CPU goes and comes back under way: samples of it stop, and go on
cpu_goes_and_comes() {
	local online=/sys/devices/system/cpu/cpu1/online back pid status=0
	[ -w "$online" ] || lib_fail "there is no CPU that can be taken away" || return 1
	start_fixture spin chain 12 threads 2 || return 1
	"$pmp" --mode=cpu -p "$fixture_pid" --duration 9 -F 49 --format=samples \
		>"$dir/out" 2>"$dir/err" &
	pid=$!
	sleep 2.5
	echo 0 >"$online"
	sleep 2
	echo 1 >"$online"
	back=$(date +%s%N)
	wait "$pid" || status=$?
	cat "$dir/err"
	[ "$status" -eq 0 ] || lib_fail "status $status" || return 1
	awk -v back="$back" '{ seen[$5, $1 > back + 1.5e9]++ }
		END {
			printf "CPU 1: %d samples before, %d when it is back; CPU 0: %d and %d\n",
				seen[1, 0], seen[1, 1], seen[0, 0], seen[0, 1]
			exit !(seen[1, 0] > 5 && seen[1, 1] > 5 && seen[0, 0] > 5 && seen[0, 1] > 5)
		}' "$dir/out"
}

check_cpu() {
	if tables_work; then
		# a mark would be the last name
		check "cpu: a chain of calls, whole" \
			chain "*$chain_calls,start_thread*,*clone3?(?libc.so.6?)" spin
	else
		check "cpu: a chain of calls, by frame pointers" chain_by_frame_pointers
	fi
	check "cpu: a CPU goes and comes back" cpu_goes_and_comes
}

# waits PATTERN: a line that matches has more than a second
waits() {
	with_fixture block sleeps -- --mode=offcpu --duration 2 || return 1
	[ "$(counted "$1")" -gt 1000000 ] || lib_fail "$1 did not wait for a second"
}

# libc has no frame pointers: its caller, the chain, is not seen
waits_by_frame_pointers() {
	waits '*nanosleep*' && announced
}

check_offcpu() {
	if tables_work; then
		check "offcpu: a sleep, in microseconds" waits '*block_3,block_2,block_1,*'
	else
		check "offcpu: a sleep, by frame pointers" waits_by_frame_pointers
	fi
}

check "--check finds all usable" usable
for mode in $MODES; do
	case $mode in
	threads | cpu | offcpu) "check_$mode" ;;
	*) check "$mode is a mode" false ;;
	esac
done
echo "1..$number"
[ "$failed" -eq 0 ]
