#!/bin/bash
# Functions, files and lines of stopped processes with debug information, as gdb shows them: every
# fixture debug_*. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
BATS_TEST_TMPDIR=$(mktemp -d)
export BATS_TEST_TMPDIR
# shellcheck source=tests/live/lib.bash
. tests/live/lib.bash
pmp=${B:-build}/bpf-pmp
dir=$BATS_TEST_TMPDIR
number=0 all=0 equal=0
trap 'stop_fixture; rm -rf "$dir"' EXIT

# compare NAME: 99 of 100 frames are the same
compare() {
	local n same more
	start_fixture "$1" || return 1
	kill -STOP "$fixture_pid"
	gdb_trace "$fixture_pid" >"$dir/gdb" 2>"$dir/gdb.err" || return 1
	rm -f "$dir/ours"
	"$pmp" -p "$fixture_pid" -k "$dir/ours" >/dev/null || return 1
	tests/tools/compare_frames.sh "$dir/ours" "$dir/gdb" >"$dir/result" || return 1
	read -r n _ _ _ same _ more _ <"$dir/result" || return 1
	share="$same of $n"
	[ "$more" -eq 0 ] || share="$share, and $more of which gdb says less,"
	all=$((all + n))
	equal=$((equal + same))
	[ "$n" -gt 20 ] && [ $(((same + more) * 100)) -ge $((n * 99)) ]
}

for file in "$lib_fixtures"/debug_*; do
	[[ -x $file && $file != *.* ]] || continue
	number=$((number + 1))
	share=
	if compare "${file##*/}" >"$dir/log" 2>&1; then
		echo "ok $number - ${file##*/}: $share frames are gdb's"
	else
		echo "not ok $number - ${file##*/}: $share frames are gdb's"
		cat "$dir/log" "$dir/result" 2>/dev/null | head -n 40 | sed 's/^/# /'
	fi
	stop_fixture
done
echo "1..$number"
echo "# $equal of $all frames in all"
[ "$number" -gt 0 ]
