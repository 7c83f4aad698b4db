#!/bin/sh
# Shows what bpf-pmp does: installs what building needs, builds, and prints the profile of the
# MariaDB or MySQL that runs here, else of a bundled demo server that is started for it and ended
# afterwards. What it is doing goes to standard error, the profile to standard output.
set -eu
cd "$(dirname "$0")/.."
# bpftool and mariadbd are there
PATH=$PATH:/usr/sbin:/sbin
export PATH
B=${B:-build}
server=
dir=

say() {
	echo "demo: $*" >&2
}

die() {
	say "$*"
	exit 1
}

cleanup() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
		server=
		say "the demo server has been ended"
	fi
	[ -z "$dir" ] || rm -rf "$dir"
	dir=
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# whether a process of exactly this name runs: of a thread group, not a kernel thread, not a zombie
runs() {
	for comm in /proc/[0-9]*/comm; do
		# it may be gone by now
		{ read -r name <"$comm"; } 2>/dev/null || continue
		[ "$name" = "$1" ] && [ -e "${comm%/comm}/exe" ] && return 0
	done
	return 1
}

start_server() {
	dir=$(mktemp -d)
	"$B/fixtures/demo_server" >"$dir/out" 2>&1 &
	server=$!
	i=0
	until grep -q '^ready' "$dir/out"; do
		kill -0 "$server" 2>/dev/null ||
			die "the demo server did not start: $(cat "$dir/out")"
		i=$((i + 1))
		[ $i -lt 100 ] || die "the demo server did not come to be ready in 10 s"
		sleep 0.1
	done
}

[ $# -eq 0 ] || die "takes no arguments; it installs, builds and shows a profile"
[ "$(id -u)" -eq 0 ] || die "needs root, to load BPF programs: sudo scripts/demo.sh"
say "installing what building needs, if anything is missing"
scripts/install-deps.sh >&2
say "building"
make -s B="$B" all >&2

if runs mysqld || runs mariadbd; then
	say "a database server is running: its profile is"
	# one or several of them
	if runs mysqld; then
		"$B/bpf-pmp" --comm mysqld
	else
		"$B/bpf-pmp" --comm mariadbd
	fi
else
	make -s B="$B" "$B/fixtures/demo_server" >&2
	start_server
	say "no mysqld or mariadbd runs here; of a bundled demo server, PID $server, the profile is"
	"$B/bpf-pmp" -p "$server"
fi
say "each line is a stack, innermost function first, after the number of threads that are in it:" \
	"many threads under one lock function wait for whoever holds it, further down;" \
	"nothing was stopped to see them"
