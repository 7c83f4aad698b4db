#!/bin/sh
# Runs each fuzzer for a while: tests/fuzz/run.sh SECONDS PROGRAM... New inputs go to the build
# folder; the corpus under tests/fuzz/corpus stays as it is. A finding is kept, named and fails.
# What reads files with debug information is given tests/tools/mutate's random ones first, once each.
set -u
cd "$(dirname "$0")/../.." || exit
seconds=$1
shift
failed=0

mutants=${B:-build}/fuzz/mutants
mkdir -p "$mutants"
for kind in gcc_O2-4 gcc_O2-zlib clang_O2-5; do
	for number in $(seq 5000 5099); do
		"${B:-build}/tests/tools/mutate" "${B:-build}/fixtures/victim_$kind.so" "$number" \
			"$mutants/$kind.$number" >/dev/null || failed=1
	done
done

for program in "$@"; do
	name=${program##*/fuzz_}
	found=${B:-build}/fuzz/$name
	mkdir -p "$found"
	case $name in
	debug_info | elf)
		"$program" -timeout=10 -rss_limit_mb=2048 "$mutants"/* >"$found.log" 2>&1 || {
			tail -n 40 "$found.log"
			echo "fuzz_$name: a finding in one of $mutants"
			failed=1
		}
		;;
	esac
	echo "fuzzing $name for $seconds s"
	"$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$found/finding-" "$found" "tests/fuzz/corpus/$name" \
		>"$found.log" 2>&1
	status=$?
	grep -E '^stat::(number_of_executed_units|peak_rss_mb)' "$found.log"
	if [ $status -ne 0 ]; then
		tail -n 40 "$found.log"
		echo "fuzz_$name: a finding, kept as $(ls "$found"/finding-* 2>/dev/null | head -n 1)"
		failed=1
	fi
done
[ $failed -eq 0 ] && echo "no findings"
exit $failed
