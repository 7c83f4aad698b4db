#!/bin/bash
# Samples of every fixture that spins, as tests/fixtures/expected_cpu has them: the callers are right
# in each stack that is shown as whole, as many are whole as the case says, and standard error counts
# the others. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
BATS_TEST_TMPDIR=$(mktemp -d)
export BATS_TEST_TMPDIR
# shellcheck source=tests/live/lib.bash
. tests/live/lib.bash
# shellcheck disable=SC2034 # lib.bash reads it
lib_expected=tests/fixtures/expected_cpu
pmp=${B:-build}/bpf-pmp
dir=$BATS_TEST_TMPDIR
frequency=499
number=0
trap 'stop_fixture; rm -rf "$dir"' EXIT

# result STATUS NAME: one line of TAP, with what $dir/log holds if it failed
result() {
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		head -c 4000 "$dir/log" | sed 's/^/# /'
	fi
}

# enough NS: whether there are as many samples as so much CPU time has to give; a tenth of them is
# enough, for it starts late, and a virtual machine loses timer interrupts
enough() {
	awk -v ns="$1" -v n="$samples" -v hz="$frequency" 'BEGIN {
		low = ns / 1e9 * hz / 10
		high = ns / 1e9 * hz * 1.1 + 20
		if (n >= 20 && n >= low && n <= high)
			exit 0
		printf "%d samples; %d to %d were to be expected\n", n, low, high
		exit 1
	}'
}

# counted: whether standard error counts what is marked, and says nothing if all is whole
counted() {
	complaints "$dir/err" >"$dir/complaint"
	if [ "$marked" -eq 0 ]; then
		[ ! -s "$dir/complaint" ] || { echo "all is whole, and still there is a complaint"; return 1; }
		return 0
	fi
	[ "$(wc -l <"$dir/complaint")" -eq 1 ] &&
		grep -qE "^bpf-pmp: $samples samples?, $((samples - marked)) complete \\([0-9.]+%\\); " \
			"$dir/complaint" ||
		{ echo "$samples samples, $marked marked: standard error does not say so"; return 1; }
}

check() {
	local -a options
	local before used percent seconds late
	read -ra options <<<"$(case_field "$1" options)"
	# a second gives hundreds of samples, but not on a machine that has no time for it; what is to be
	# seen may be one in ten
	for seconds in 1 3 9; do
		before=$(cpu_ns "$target_pid")
		timeout 120 "$pmp" --mode=cpu --no-lines --no-inlines -p "$target_pid" -F "$frequency" \
			--duration "$seconds" "${options[@]}" >"$dir/lines" 2>"$dir/err"
		local status=$?
		used=$(($(cpu_ns "$target_pid") - before))
		cat "$dir/err"
		[ $status -eq 0 ] || { echo "status $status"; return 1; }
		samples=$(lines_total "$dir/lines")
		marked=$(lines_marked "$dir/lines")
		late=$(case_field "$1" late)
		late=$([ -z "$late" ] || broken_account "$dir/err" "$late")
		[ $((samples - late)) -lt 150 ] || break
	done
	percent=$(case_field "$1" complete)
	percent=${percent%% *}
	share="$samples samples, $((samples - marked)) complete${late:+, $late late}"
	enough "$used" && counted && expect_stacks "$1" "$dir/lines" || return 1
	[ $((samples - late)) -ge 20 ] &&
		[ $(((samples - marked) * 100)) -ge $(((samples - late) * ${percent:-95})) ] ||
		{ echo "$share, which is too few"; head -n 20 "$dir/lines"; return 1; }
}

while read -r case run; do
	read -ra words <<<"$run"
	if ! start_case "$case" "${words[@]}" >"$dir/log" 2>&1; then
		result 1 "$case: $run: starts"
		continue
	fi
	share=
	check "$case" >"$dir/log" 2>&1
	result $? "$case: $run${share:+: $share}"
	stop_fixture
done < <(fixture_cases)
echo "1..$number"
