# shellcheck shell=bash
# What the benches share: medians, bounds, the server's counters. A bench sets failed=0, and what it
# misses sets it to 1. Needs tests/live/lib.bash.

# median N FILE: of a column
median() {
	awk -v n="$1" '{ print $n }' "$2" | sort -g | awk '{ v[NR] = $1 }
		END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# bound WHAT MEASURED LIMIT: says both, and notes a miss; nothing measured is one
bound() {
	if [ -n "$2" ] && awk -v m="$2" -v l="$3" 'BEGIN { exit !(m <= l) }'; then
		printf '  ok      %-58s %10.2f  (bound %g)\n' "$1" "$2" "$3"
	else
		printf '  MISSED  %-58s %10.2f  (bound %g)\n' "$1" "${2:-nan}" "$3"
		missed "$1: $2 (bound $3)"
	fi
}

missed_bounds=()

# missed WHAT: a bound that is missed
# shellcheck disable=SC2034 # for the bench
missed() {
	missed_bounds+=("$1")
	failed=1
}

ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.4f", (b > 0 ? a / b : 1e9) }'
}

# server_status NAME: a counter of the server that start_mariadb started
# shellcheck disable=SC2154 # start_mariadb sets the socket
server_status() {
	mariadb --no-defaults -S "$mariadb_socket" -u root -N -e "show global status like '$1'" |
		awk '{ print $2 }'
}
