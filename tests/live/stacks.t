#!/bin/bash
# Each fixture's stacks, as tests/fixtures/expected has them: by name while it runs, and by address
# against eu-stack while it is stopped, where eu-stack can do it. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
BATS_TEST_TMPDIR=$(mktemp -d)
export BATS_TEST_TMPDIR
# shellcheck source=tests/live/lib.bash
. tests/live/lib.bash
pmp=${B:-build}/bpf-pmp
dir=$BATS_TEST_TMPDIR
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

names_as_expected() {
	local -a options
	read -ra options <<<"$(case_field "$1" options)"
	timeout 60 "$pmp" -p "$target_pid" "${options[@]}" >"$dir/lines" 2>"$dir/err"
	local status=$?
	cat "$dir/err"
	[ $status -eq 0 ] || { echo "status $status"; return 1; }
	expect_stacks "$1" "$dir/lines"
}

equal_to_eu_stack() {
	stop_all "$target_pid" || return 1
	rm -f "$dir/ours"
	timeout 60 "$pmp" -p "$target_pid" --no-lines --no-inlines -k "$dir/ours" >/dev/null || return 1
	timeout 60 eu-stack -n 0 -p "$target_pid" >"$dir/theirs" 2>"$dir/err"
	tests/tools/compare_eu_stack.sh "$dir/theirs" "$dir/ours"
}

while read -r case run; do
	read -ra words <<<"$run"
	if ! start_case "$case" "${words[@]}" >"$dir/log" 2>&1; then
		result 1 "$case: $run: starts"
		continue
	fi
	names_as_expected "$case" >"$dir/log" 2>&1
	result $? "$case: $run: names"
	if [ -z "$(case_field "$case" eu)" ]; then
		equal_to_eu_stack >"$dir/log" 2>&1
		result $? "$case: $run: addresses equal eu-stack's ($(tail -n 1 "$dir/log"))"
	fi
	stop_fixture
done < <(fixture_cases)
echo "1..$number"
