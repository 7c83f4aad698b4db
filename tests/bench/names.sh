#!/bin/bash
# Names by debug information beside gdb and eu-stack, on a process with some hundred MB of it: Ceph's
# radosgw, which waits for a cluster that is not there, with the debug information that Debian has of
# it. The first snapshot, later ones, memory. Medians of ROUNDS rounds (3), the tools in turn.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
ROUNDS=${ROUNDS:-3}
LATER=${LATER:-100} # further snapshots
pmp=$B/bpf-pmp
cost=$B/tests/tools/cost
dir=$(mktemp -d)
# shellcheck source=tests/bench/lib.bash
. tests/bench/lib.bash
failed=0
target=

cleanup() {
	[ -z "$target" ] || kill -9 "$target" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT

# cost's columns
wall=1 peak=4

for package in radosgw radosgw-dbg librados2-dbg gdb elfutils; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' $package 2>/dev/null)" = installed ] || {
		echo "names: $package is not installed (apt-get install radosgw radosgw-dbg librados2-dbg gdb elfutils)" >&2
		exit 1
	}
done

cat >"$dir/conf" <<-EOF2
	[global]
	mon_host = 127.0.0.1:16789
	auth_client_required = none
	client_mount_timeout = 100000
	log_file = $dir/log
	admin_socket =
	run_dir = $dir
EOF2
radosgw -f -c "$dir/conf" -n client.admin >"$dir/out" 2>&1 </dev/null &
target=$!
disown
for _ in $(seq 200); do
	[ "$(find /proc/$target/task -mindepth 1 -maxdepth 1 | wc -l)" -lt 8 ] || break
	sleep 0.1
done
sleep 1

# debug_bytes: of the debug information of what the process has mapped: in files, and decompressed
debug_bytes() {
	local object id file
	awk '$2 ~ /x/ && $6 ~ "^/" { print $6 }' "/proc/$target/maps" | sort -u | while read -r object; do
		id=$(readelf -n "$object" 2>/dev/null | sed -n 's/^ *Build ID: //p')
		file=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
		[ ! -f "$file" ] || readelf -tW "$file" 2>/dev/null
	done | awk '$2 ~ /^\.debug_/ { section = 1; next }
		/^ *\[ *[0-9]+\] / { section = 0 }
		section == 1 { file += strtonum("0x" $4); section = 2 }
		section == 2 && $1 == "ZLIB," { all += strtonum("0x" $2) }
		END { printf "%.0f MB in files, %.0f MB decompressed\n", file / 1e6, all / 1e6 }'
}
echo "== radosgw, $(find /proc/$target/task -mindepth 1 -maxdepth 1 | wc -l) threads; debug information: $(debug_bytes)"

for ((i = 0; i < ROUNDS; i++)); do
	"$cost" "$dir/first" "$pmp" -p $target >"$dir/pmp.out" 2>"$dir/err"
	"$cost" "$dir/later" "$pmp" -p $target -i $((LATER + 1)) -s 0 >"$dir/out" 2>"$dir/err"
	"$cost" "$dir/gdb" gdb -p $target -batch -ex 'set pagination 0' -ex 'thread apply all bt' \
		>"$dir/gdb.out" 2>"$dir/err"
	"$cost" "$dir/eu" eu-stack -i -s -m -p $target >"$dir/eu.out" 2>"$dir/err" || true
done
first=$(median $wall "$dir/first")
gdb=$(median $wall "$dir/gdb")
gdb_peak=$(median $peak "$dir/gdb")
# of all, the first included: what one of them takes is too little to be told from its spread
later=$(awk -v a="$(median $wall "$dir/later")" -v n="$LATER" 'BEGIN { print a / (n + 1) }')
printf '  %-26s %10s %10s\n' '' 'wall ms' 'peak MiB'
for tool in first later gdb eu; do
	printf '  %-26s %10.0f %10.0f\n' "${tool/later/with $LATER more snapshots}" \
		"$(median $wall "$dir/$tool")" "$(awk -v k="$(median $peak "$dir/$tool")" 'BEGIN { print k / 1024 }')"
done
echo "  a snapshot of $((LATER + 1)), the first included: $later ms"
bound "the first snapshot, of gdb's time (1/10)" "$(ratio "$first" "$gdb")" 0.1
bound "each later one, of gdb's time (1/100)" "$(ratio "$later" "$gdb")" 0.01
bound "the first snapshot, of eu-stack -i -s -m's time" "$(ratio "$first" "$(median $wall "$dir/eu")")" 1
bound "peak memory, of gdb's (1/5)" "$(ratio "$(median $peak "$dir/first")" "$gdb_peak")" 0.2
[ $failed -eq 0 ] || { printf 'bench-names: missed:\n'; printf '  %s\n' "${missed_bounds[@]}"; }
exit $failed
