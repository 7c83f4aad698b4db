#!/bin/bash
# The samplers beside perf and bpftrace, on MariaDB under sysbench with 16 connections: what a
# profile costs, how many of its stacks are whole, what the server loses meanwhile, how soon sampling
# begins, and in how much memory. Medians of ROUNDS rounds (3), the tools in turn within each. Every
# bound is printed with what was measured, and a bound that is missed fails the run.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
ROUNDS=${ROUNDS:-3}
SECONDS_EACH=${SECONDS_EACH:-10}       # of sampling, for the cost
ALTERNATIONS=${ALTERNATIONS:-10}       # for the throughput
PHASE=${PHASE:-5}                      # seconds of each
STARTS=${STARTS:-10}
MEMORY_SECONDS=${MEMORY_SECONDS:-60}
STORM_SECONDS=${STORM_SECONDS:-20}
BPFTRACE=${BPFTRACE:-yes}              # no: without it, and without the bound that it gives
BPFTRACE_LIMIT=${BPFTRACE_LIMIT:-300}  # seconds
PERF_LIMIT=${PERF_LIMIT:-120}          # seconds, for perf with --call-graph dwarf, and its script
pmp=$B/bpf-pmp
cost=$B/tests/tools/cost
dir=$(mktemp -d)
export BATS_TEST_TMPDIR=$dir # the place where tests/live/lib.bash keeps its files
# shellcheck source=tests/live/lib.bash
. tests/live/lib.bash
# shellcheck source=tests/bench/lib.bash
. tests/bench/lib.bash
failed=0
sampler_pid='' resting=''

cleanup() {
	[ -z "$resting" ] || kill "$resting" 2>/dev/null || true
	[ -z "$sampler_pid" ] || kill -9 "$sampler_pid" 2>/dev/null || true
	stop_fixture 2>/dev/null || true
	stop_sysbench 2>/dev/null || true
	stop_mariadb 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT

# cost's columns
wall=1 cpu=2 bpf=3 peak=4 maps=5 status=6

command -v perf >/dev/null || { echo "profile: perf is not installed" >&2; exit 1; }
[ "$BPFTRACE" = no ] || command -v bpftrace >/dev/null ||
	{ echo "profile: bpftrace is not installed; BPFTRACE=no does without" >&2; exit 1; }

# what each takes besides its sampling is an allowance: it depends on the machine
total=$((ROUNDS * 2 * (5 * SECONDS_EACH + 18 + PERF_LIMIT / 4) + ALTERNATIONS * 4 * (PHASE + 1) +
	STARTS * 2 + MEMORY_SECONDS + STORM_SECONDS + 30))
echo "profile: about $(((total + 59) / 60)) minutes$([ "$BPFTRACE" = no ] ||
	echo ", and for bpftrace's naming up to $(((2 * (SECONDS_EACH + BPFTRACE_LIMIT) + 59) / 60)) besides")"

# rest_load COMMAND...: once it has sampled, the load rests until the command has ended: what has a
# limit is not to spend it waiting for a CPU
rest_load() {
	(sleep $((SECONDS_EACH + 5)) && kill -STOP "$sysbench_pid") &
	resting=$!
	"$@" || true # the column of cost says it
	kill "$resting" 2>/dev/null || true
	wait "$resting" || true
	resting=
	kill -CONT "$sysbench_pid"
}

# perf_profile HZ OPTION...: from start to printed samples
perf_profile() {
	# shellcheck disable=SC2016 # for the inner shell
	"$cost" -t $((SECONDS_EACH + PERF_LIMIT)) "$dir/$tool.$1" sh -c 'out=$1
		shift
		perf record -q -o "$out.data" "$@" 2>"$out.err" &&
			perf script -i "$out.data" >"$out" 2>>"$out.err"' sh "$dir/out.$tool.$1" \
		"${@:2}" -e cpu-clock -F "$1" -p "$mariadb_pid" -- sleep "$SECONDS_EACH"
}

# bpftrace_profile HZ
bpftrace_profile() {
	"$cost" -t $((SECONDS_EACH + BPFTRACE_LIMIT)) "$dir/$tool.$1" bpftrace -e "
		profile:hz:$1 /pid == $mariadb_pid/ { @[kstack, ustack] = count(); }
		interval:s:$SECONDS_EACH { exit(); }" >"$dir/out.$tool.$1" 2>"$dir/err"
}

# run_tool TOOL HZ: one profile; a line of costs goes to $dir/TOOL.HZ, the stacks to $dir/out.TOOL.HZ,
# and how many of them are whole to $dir/whole.TOOL.HZ
run_tool() {
	local tool=$1 hz=$2 reader=pmp
	local -a run=(--mode=cpu -p "$mariadb_pid" -F "$hz" --duration "$SECONDS_EACH")
	case $tool in
	bpf-pmp) "$cost" "$dir/$tool.$hz" "$pmp" "${run[@]}" >"$dir/out.$tool.$hz" 2>"$dir/err" ;;
	bpf-pmp-sym)
		"$cost" "$dir/$tool.$hz" "$pmp" "${run[@]}" --no-lines --no-inlines \
			>"$dir/out.$tool.$hz" 2>"$dir/err"
		;;
	bpf-pmp-fp)
		"$cost" "$dir/$tool.$hz" "$pmp" "${run[@]}" --unwind=fp >"$dir/out.$tool.$hz" 2>"$dir/err"
		;;
	perf-g) perf_profile "$hz" -g ;;
	perf-dwarf) rest_load perf_profile "$hz" --call-graph dwarf ;;
	# by default it reads a process' symbols again for each frame, where addresses are randomized
	bpftrace)
		unset BPFTRACE_CACHE_USER_SYMBOLS
		rest_load bpftrace_profile "$hz"
		;;
	bpftrace-c) BPFTRACE_CACHE_USER_SYMBOLS=1 bpftrace_profile "$hz" ;;
	esac
	case $tool in
	perf*) reader=perf ;;
	bpftrace*) reader=bpftrace ;;
	esac
	case $(tail -n 1 "$dir/$tool.$hz" | cut -d ' ' -f $status) in
	0) "whole_$reader" "$dir/out.$tool.$hz" >>"$dir/whole.$tool.$hz" ;;
	124) ;; # ended by the limit: it has printed a part, or nothing
	*)
		cat "$dir"/err "$dir/out.$tool.$hz"*err >&2 || true
		echo "$tool failed" >&2
		exit 1
		;;
	esac
	rm -f "$dir/out.$tool.$hz"*
}

# all_cpu TOOL HZ: the median of CPU and BPF time together, ms
all_cpu() {
	awk -v c=$cpu -v b=$bpf '{ print $c + $b }' "$dir/$1.$2" >"$dir/sum"
	median 1 "$dir/sum"
}

# whole_share TOOL HZ: of all rounds, in percent; nothing if no round came to its end
whole_share() {
	[ -s "$dir/whole.$1.$2" ] || return 0
	percent "$(awk '{ w += $1; n += $2 } END { print w + 0, n + 0 }' "$dir/whole.$1.$2")"
}

report_costs() {
	local tool over share stacks
	printf '  %-12s %12s %10s %10s %10s %9s  %s\n' '' 'CPU+BPF ms' 'CPU ms' 'BPF ms' 'wall ms' \
		'peak MiB' 'stacks to the start of their thread'
	for tool in "${@:2}"; do
		[ -s "$dir/$tool.$1" ] || continue
		over=
		! awk -v c=$status '$c == 124 { over = 1 } END { exit !over }' "$dir/$tool.$1" || over='over '
		share=$(whole_share "$tool" "$1")
		stacks='ended before it had printed them'
		[ -z "$share" ] ||
			stacks="$share% of $(awk '{ n += $2 } END { print n }' "$dir/whole.$tool.$1")"
		printf '  %-12s %12s %10.0f %10.1f %10.0f %9.1f  %s\n' "$tool" \
			"$over$(printf %.0f "$(all_cpu "$tool" "$1")")" "$(median $cpu "$dir/$tool.$1")" \
			"$(median $bpf "$dir/$tool.$1")" "$(median $wall "$dir/$tool.$1")" \
			"$(awk -v k="$(median $peak "$dir/$tool.$1")" 'BEGIN { print k / 1024 }')" \
			"$stacks"
	done
}

start_mariadb "$dir/db"
start_sysbench 16 $((total * 3 + 4 * BPFTRACE_LIMIT))
sleep 3

for hz in 99 999; do
	echo "== $hz Hz x $SECONDS_EACH s: from start to printed profile; MariaDB with 16 connections"
	for ((i = 0; i < ROUNDS; i++)); do
		for tool in bpf-pmp perf-g bpf-pmp-sym perf-dwarf bpf-pmp-fp; do
			run_tool $tool $hz
		done
	done
	if [ "$BPFTRACE" != no ]; then
		run_tool bpftrace-c $hz
		run_tool bpftrace $hz
	fi
	report_costs $hz bpf-pmp bpf-pmp-sym bpf-pmp-fp perf-g perf-dwarf bpftrace-c bpftrace
	bound "CPU, as a share of perf -g's" "$(ratio "$(all_cpu bpf-pmp $hz)" "$(all_cpu perf-g $hz)")" 1
	bound "the same with names by symbols, without inlined functions and lines" \
		"$(ratio "$(all_cpu bpf-pmp-sym $hz)" "$(all_cpu perf-g $hz)")" 1
	[ "$BPFTRACE" = no ] || [ $hz -ne 99 ] ||
		bound "CPU, in percent of bpftrace's" \
			"$(ratio "$(all_cpu bpf-pmp $hz)" "$(awk -v c="$(all_cpu bpftrace $hz)" 'BEGIN { print c / 100 }')")" 1
	bound "stacks that are not whole, percent" \
		"$(awk -v w="$(whole_share bpf-pmp $hz)" 'BEGIN { print 100 - w }')" 0.5
done
echo "  perf's own work in the timer's interrupt is in nobody's figures; bpf-pmp's and bpftrace's is (BPF)."
echo "  bpftrace-c is bpftrace with BPFTRACE_CACHE_USER_SYMBOLS=1, which is not its default;"
echo "  its map has room for 4,096 different stacks, and samples of others are dropped."

echo "== Transactions per second: $ALTERNATIONS times $PHASE s each, in turn; start and printing included"
# measure WHAT: transactions per second, while the sampler lives, and for PHASE seconds at least
measure() {
	local before after began ended job=
	local -a run=(-p "$mariadb_pid" --duration "$(awk -v s="$PHASE" 'BEGIN { print s - 0.5 }')")
	before=$(server_status Com_commit)
	began=$EPOCHREALTIME
	case $1 in
	none) ;;
	offcpu) "$pmp" --mode=offcpu "${run[@]}" >"$dir/out" 2>"$dir/err" & job=$! ;;
	*) "$pmp" --mode=cpu -F "$1" "${run[@]}" >"$dir/out" 2>"$dir/err" & job=$! ;;
	esac
	sampler_pid=$job
	sleep "$PHASE"
	[ -z "$job" ] || wait "$job"
	sampler_pid=
	after=$(server_status Com_commit)
	ended=$EPOCHREALTIME
	awk -v b="$before" -v a="$after" -v s="$began" -v e="$ended" \
		'BEGIN { printf "%.0f\n", (a - b) / (e - s) }' >>"$dir/tps.$1"
}

# quartiles FILE: the first and the third, interpolated
quartiles() {
	sort -g "$1" | awk '{ v[NR] = $1 }
		function at(share, i) {
			share = 1 + (NR - 1) * share
			i = int(share)
			return i < NR ? v[i] + (share - i) * (v[i + 1] - v[i]) : v[NR]
		}
		END { print at(0.25), at(0.75) }'
}

for ((i = 0; i < ALTERNATIONS; i++)); do
	# there and back: who follows whom is then no advantage
	order=(none 99 999 offcpu)
	[ $((i % 2)) -eq 0 ] || order=(offcpu 999 99 none)
	for what in "${order[@]}"; do
		measure "$what"
	done
done
for what in none 99 999 offcpu; do
	read -r low high < <(quartiles "$dir/tps.$what")
	awk -v l="$low" -v h="$high" 'BEGIN { print h - l }' >"$dir/spread.$what"
	case $what in
	none) name=none ;;
	offcpu) name=--mode=offcpu ;;
	*) name="--mode=cpu -F $what" ;;
	esac
	printf '  %-18s median %7.0f, quartiles %7.0f %7.0f, %.3f of none (%s)\n' "$name" \
		"$(median 1 "$dir/tps.$what")" "$low" "$high" \
		"$(ratio "$(median 1 "$dir/tps.$what")" "$(median 1 "$dir/tps.none")")" \
		"$(paste -sd ' ' "$dir/tps.$what")"
done
# noise that lasts longer than an alternation is in both of a pair
for what in 99 999 offcpu; do
	paste "$dir/tps.$what" "$dir/tps.none" | awk '{ print $1 / $2 }' >"$dir/pairs"
	printf '  %-6s of none, each with its own alternation: median %.3f\n' "$what" \
		"$(median 1 "$dir/pairs")"
done
for hz in 99 999; do
	bound "transactions/s at $hz Hz: medians apart (bound: the spread)" \
		"$(awk -v a="$(median 1 "$dir/tps.none")" -v b="$(median 1 "$dir/tps.$hz")" \
			'BEGIN { print (a > b ? a - b : b - a) }')" \
		"$(sort -g "$dir/spread.none" "$dir/spread.$hz" | tail -n 1)"
done

echo "== From exec to the first sample, at 999 Hz, $STARTS times"
for ((i = 0; i < STARTS; i++)); do
	began=${EPOCHREALTIME/./}
	"$pmp" --mode=cpu -p "$mariadb_pid" -F 999 --duration 0.5 --format=samples >"$dir/out" 2>"$dir/err"
	awk -v b="$began" 'NR == 1 { printf "%.1f\n", $1 / 1e6 - b / 1e3 }' "$dir/out" >>"$dir/starts"
done
printf '  each: %s\n' "$(paste -sd ' ' "$dir/starts")"
bound "the first sample, ms after exec" "$(median 1 "$dir/starts")" 150

echo "== Memory after $MEMORY_SECONDS s at 999 Hz"
"$cost" "$dir/memory" "$pmp" --mode=cpu -p "$mariadb_pid" -F 999 --duration "$MEMORY_SECONDS" \
	>"$dir/out" 2>"$dir/err"
bound "peak memory, MiB" "$(awk -v k="$(median $peak "$dir/memory")" 'BEGIN { print k / 1024 }')" 64
awk -v k="$(median $maps "$dir/memory")" -v n="$(grep -cE '^ *[0-9]+ ' "$dir/out")" \
	'BEGIN { printf "  %.1f MiB of the kernel, for its maps; %d different stacks\n", k / 1024, n }'
stop_sysbench
stop_mariadb

echo "== 4,000 Hz x $STORM_SECONDS s of threads that walk through 100,000 different stacks"
start_fixture many_stacks 100000 threads 2
"$pmp" --mode=cpu -p "$fixture_pid" -F 4000 --duration "$STORM_SECONDS" -v >"$dir/out" 2>"$dir/err"
stop_fixture
if adds_up "$dir/out" "$dir/err" >"$dir/account" 2>&1; then
	sed 's/^/  ok      /' "$dir/account"
else
	sed 's/^/  MISSED  /' "$dir/account"
	missed "the account at 4,000 Hz: $(tail -n 1 "$dir/account")"
fi

if [ $failed -eq 0 ]; then
	echo "bench-profile: every bound is kept"
else
	echo "bench-profile: missed:"
	printf '  %s\n' "${missed_bounds[@]}"
fi
exit $failed
