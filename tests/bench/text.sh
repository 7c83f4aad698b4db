#!/bin/bash
# Text traces, side by side with the packaged pt-pmp under gawk and mawk, on one CPU: a trace of 5,000
# threads, captured from the demo server, repeated with other addresses and thread numbers up to
# MEBIBYTES (210). Medians of ROUNDS rounds (3). Then ourselves alone at 2 MB and 2 GB, and all on a
# file of 100 KB. Says each bound and what was measured; a bound that is missed fails the run.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
ROUNDS=${ROUNDS:-3}
MEBIBYTES=${MEBIBYTES:-210}
pmp=$B/bpf-pmp
timed=$B/tests/tools/timed
dir=$(mktemp -d)
export BATS_TEST_TMPDIR=$dir LC_ALL=C
# shellcheck source=tests/live/lib.bash
. tests/live/lib.bash
trap 'stop_fixture; rm -rf "$dir"' EXIT
mkdir "$dir/gawk" "$dir/mawk"
ln -s "$(command -v gawk)" "$dir/gawk/awk"
ln -s "$(command -v mawk)" "$dir/mawk/awk"
failed=0

median() {
	awk '{ print $'"$1"' }' "$2" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# at_least WHAT MEASURED BOUND
at_least() {
	if awk -v m="$2" -v l="$3" 'BEGIN { exit !(m >= l) }'; then
		printf '  ok      %-50s %8.2f  (at least %g)\n' "$1" "$2" "$3"
	else
		printf '  MISSED  %-50s %8.2f  (at least %g)\n' "$1" "$2" "$3"
		failed=1
	fi
}

# make MEBIBYTES FILE: the base again and again, with other numbers
make_trace() {
	gawk -v bytes=$(($1 * 1048576)) 'BEGIN { srand(1) }
		{ line[NR] = $0 }
		END {
			while (made < bytes) {
				offset = sprintf("%06x", int(rand() * 16777216))
				for (i = 1; i <= NR; i++) {
					s = line[i]
					if (substr(s, 1, 1) == "#" && substr(s, 5, 2) == "0x")
						s = substr(s, 1, 16) substr(offset, 1 + i % 3, 4) substr(s, 21)
					else if (substr(s, 1, 7) == "Thread ")
						s = "Thread " ++threads substr(s, index(substr(s, 8), " ") + 7)
					print s
					made += length(s) + 1
				}
			}
		}' "$dir/base" >"$2"
}

start_fixture demo_server 120
"$pmp" -p "$fixture_pid" -i 130 -k "$dir/base" >/dev/null 2>"$dir/err"
stop_fixture
printf 'base: %d threads, %d bytes\n' "$(grep -c '^Thread' "$dir/base")" "$(stat -c %s "$dir/base")"
make_trace "$MEBIBYTES" "$dir/large"
bytes=$(stat -c %s "$dir/large")
for ((i = 0; i < ROUNDS; i++)); do
	"$timed" "$dir/t.ours" taskset -c 0 "$pmp" --input=gdb "$dir/large" >"$dir/out.ours"
	for awk in gawk mawk; do
		PATH=$dir/$awk:$PATH "$timed" "$dir/t.$awk" taskset -c 0 pt-pmp "$dir/large" \
			>"$dir/out.$awk" 2>/dev/null
		cmp "$dir/out.ours" "$dir/out.$awk"
	done
done
for who in ours gawk mawk; do
	awk -v who=$who -v ms="$(median 1 "$dir/t.$who")" -v kib="$(median 2 "$dir/t.$who")" -v b="$bytes" \
		'BEGIN { printf "  %-5s %9.1f ms  %8.1f MB/s  peak %.1f MiB\n", who, ms, b / ms / 1000, kib / 1024 }'
done
at_least "throughput, times pt-pmp's with gawk" \
	"$(awk -v a="$(median 1 "$dir/t.gawk")" -v b="$(median 1 "$dir/t.ours")" 'BEGIN { print a / b }')" 20
at_least "throughput, times pt-pmp's with mawk" \
	"$(awk -v a="$(median 1 "$dir/t.mawk")" -v b="$(median 1 "$dir/t.ours")" 'BEGIN { print a / b }')" 10

head -c 100000 "$dir/large" >"$dir/small"
for ((i = 0; i < ROUNDS * 3; i++)); do
	"$timed" "$dir/s.ours" "$pmp" "$dir/small" >/dev/null
	"$timed" "$dir/s.theirs" pt-pmp "$dir/small" >/dev/null 2>&1
done
printf '  100 KB: ours %.1f ms, pt-pmp %.1f ms\n' "$(median 1 "$dir/s.ours")" "$(median 1 "$dir/s.theirs")"
at_least "100 KB from start to end, times faster" \
	"$(awk -v a="$(median 1 "$dir/s.theirs")" -v b="$(median 1 "$dir/s.ours")" 'BEGIN { print a / b }')" 20

head -c 2000000 "$dir/large" >"$dir/2mb"
for ((i = 0; i < ROUNDS * 3; i++)); do
	"$timed" "$dir/r.2mb" "$pmp" "$dir/2mb" >/dev/null
done
copies=$((2000000000 / bytes + 1))
for ((i = 0; i < copies; i++)); do cat "$dir/large"; done |
	"$timed" "$dir/r.2gb" "$pmp" --input=gdb - >/dev/null
awk -v small="$(median 1 "$dir/r.2mb")" -v large="$(median 1 "$dir/r.2gb")" -v b="$bytes" -v n=$copies \
	'BEGIN { printf "  2 MB: %.0f MB/s with start, %.1f GB through a pipe: %.0f MB/s\n",
		2000 / small, b * n / 1e9, b * n / large / 1000 }'
at_least "peak memory on the largest, MiB below 32" \
	"$(awk -v k="$(median 2 "$dir/r.2gb")" 'BEGIN { print 32 - k / 1024 }')" 0
[ $failed -eq 0 ] && echo "bench-text: every bound is kept" || echo "bench-text: a bound is missed"
exit $failed
