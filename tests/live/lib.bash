# shellcheck shell=bash
# What the bats files and the bench share: fixtures, their expected stacks, MariaDB and sysbench.
# Every process is ended by the pid that it was started with. Files go to BATS_TEST_TMPDIR. The
# build directory is $B (build).

lib_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lib_fixtures=$(cd "$lib_top" && cd "${B:-build}" 2>/dev/null && pwd)/fixtures
lib_expected=$lib_top/tests/fixtures/expected

lib_fail() {
	echo "$*" >&2
	return 1
}

# lib_gone PID: it is no more, or is a zombie, and not one whose other threads live on
lib_gone() {
	local state
	state=$(awk '/^State:/ { state = $2 } /^Threads:/ { print state, $2 }' \
		"/proc/$1/status" 2>/dev/null) || true
	[ -z "$state" ] || [[ $state == [ZX]" 1" ]]
}

# lib_end PID SIGNAL SECONDS: asks, waits, and then insists
lib_end() {
	local i
	kill -CONT "$1" 2>/dev/null || true
	kill "-$2" "$1" 2>/dev/null || true
	for ((i = 0; i < $3 * 50; i++)); do
		lib_gone "$1" && break
		sleep 0.02
	done
	lib_gone "$1" || kill -KILL "$1" 2>/dev/null || true
}

# await SECONDS COMMAND...: until it succeeds. For what takes no time but that of a busy machine.
await() {
	local i
	for ((i = 0; i < $1 * 50; i++)); do
		"${@:2}" && return 0
		sleep 0.02
	done
	lib_fail "not in $1 s: ${*:2}"
}

all_stopped() {
	awk '/^State:/ { n++; if ($2 !~ /^[TZ]$/) running++ }
		END { exit !n || running }' "/proc/$1/task/"*/status 2>/dev/null
}

# stop_all PID: stops it; returns when every thread has stopped. The signal wakes one of them, and the
# others run on until they are scheduled.
stop_all() {
	kill -STOP "$1" && await 30 all_stopped "$1"
}

is_in_call() {
	grep -qs "^$2 " "/proc/$1/task/"*/syscall
}

# reaches PID NUMBER...: until each of these system calls is what one of its threads is in
reaches() {
	local number
	for number in "${@:2}"; do
		await 30 is_in_call "$1" "$number" || return 1
	done
}

has_snapshots() {
	local n
	n=$(grep -c '^TS ' "$1" 2>/dev/null) || true
	[ "${n:-0}" -ge "$2" ]
}

# await_snapshots FILE N: until so many are done, by the file of --save-samples
await_snapshots() {
	await 60 has_snapshots "$@"
}

# start_fixture NAME [ARGUMENT...]: sets fixture_pid, fixture_out (what it printed) and
# fixture_child (the process that it named by `pid child N`, if any)
start_fixture() {
	local i
	fixture_out=$BATS_TEST_TMPDIR/fixture.out
	fixture_child=
	[ -x "$lib_fixtures/$1" ] || lib_fail "$lib_fixtures/$1 is not built" || return 1
	: >"$fixture_out"
	TMPDIR=$BATS_TEST_TMPDIR "$lib_fixtures/$1" "${@:2}" \
		>"$fixture_out" 2>"$BATS_TEST_TMPDIR/fixture.err" </dev/null 3>&- &
	fixture_pid=$!
	disown "$fixture_pid" # no word of its end from the shell
	for ((i = 0; i < 1500; i++)); do
		if grep -aqx ready "$fixture_out"; then
			fixture_child=$(sed -n 's/^pid child //p' "$fixture_out")
			return 0
		fi
		lib_gone "$fixture_pid" && break
		sleep 0.02
	done
	cat "$fixture_out" "$BATS_TEST_TMPDIR/fixture.err" >&2
	stop_fixture
	lib_fail "the fixture $* did not come to be ready"
}

stop_fixture() {
	[ -n "${fixture_pid:-}" ] || return 0
	lib_end "$fixture_pid" KILL 5
	fixture_pid=
}

# the fixture `threads gap`: start the measurement afresh; the longest gap since then, microseconds
reset_gap() {
	kill -USR1 "$fixture_pid"
	sleep 0.05
}

longest_gap() {
	local i before
	before=$(grep -c '^gap ' "$fixture_out") || true
	kill -USR2 "$fixture_pid"
	for ((i = 0; i < 500; i++)); do
		if [ "$(grep -c '^gap ' "$fixture_out")" -gt "$before" ]; then
			sed -n 's/^gap //p' "$fixture_out" | tail -n 1
			return 0
		fi
		sleep 0.02
	done
	lib_fail "the fixture did not say its longest gap"
}

# fixture_cases: every case of tests/fixtures/expected whose program is built: `CASE NAME
# ARGUMENT...`
fixture_cases() {
	local file run
	for file in "$lib_expected"/*; do
		[ "${file##*/}" != README ] || continue
		sed -n 's/^# run: //p' "$file" | while read -r run; do
			[ -x "$lib_fixtures/${run%% *}" ] && echo "${file##*/} $run"
		done
	done
	return 0
}

# case_field CASE FIELD: what a case says after `# FIELD: `, empty where it says nothing
case_field() {
	sed -n "s/^# $2: //p" "$lib_expected/$1"
}

# start_case CASE NAME ARGUMENT...: the fixture of a line of fixture_cases; sets target_pid
start_case() {
	start_fixture "${@:2}" || return 1
	target_pid=$fixture_pid
	if [ "$(case_field "$1" target)" = child ]; then
		target_pid=$fixture_child
		[ -n "$target_pid" ] || lib_fail "$1: no child was named"
	fi
}

# expect_stacks CASE FILE: whether FILE, in the pmp format, shows what the case expects
expect_stacks() {
	local -a counts=() patterns=() seen=()
	local count pattern alternative rest line i bad=0
	while read -r count pattern; do
		counts+=("$count")
		patterns+=("$pattern")
		seen+=(0)
	done < <(awk '/^#/ || !NF { next }
		{
			while (match($0, /[^,{ ]+[{][0-9]+[}]/)) {
				part = substr($0, RSTART, RLENGTH)
				name = part
				sub(/[{].*/, "", name)
				n = part
				gsub(/.*[{]|[}]/, "", n)
				names = name
				while (--n > 0)
					names = names "," name
				$0 = substr($0, 1, RSTART - 1) names substr($0, RSTART + RLENGTH)
			}
			print
		}' "$lib_expected/$1")
	while read -r count line; do
		for ((i = 0; i < ${#patterns[@]}; i++)); do
			rest="${patterns[i]} | "
			while [ -n "$rest" ]; do
				alternative=${rest%%" | "*}
				rest=${rest#*" | "}
				# shellcheck disable=SC2053 # it is a pattern
				[[ $line == $alternative ]] && break 2
			done
		done
		if [ "$i" -lt ${#patterns[@]} ]; then
			seen[i]=$((seen[i] + count))
		else
			printf '%s: no pattern matches: %s %.400s\n' "$1" "$count" "$line" >&2
			bad=1
		fi
	done < <(grep -aE '^ *[0-9]+ ' "$2")
	for ((i = 0; i < ${#patterns[@]}; i++)); do
		case ${counts[i]} in
		'*') continue ;;
		+) [ "${seen[i]}" -gt 0 ] && continue ;;
		*) [ "${seen[i]}" -eq "${counts[i]}" ] && continue ;;
		esac
		printf '%s: %s expected, %s seen: %.400s\n' "$1" "${counts[i]}" "${seen[i]}" \
			"${patterns[i]}" >&2
		bad=1
	done
	return $bad
}

# start_mariadb DIR [OPTION...]: a server of its own in DIR, on a socket only; sets mariadb_pid and
# mariadb_socket
start_mariadb() {
	local dir=$1 server i
	shift
	mkdir -p "$dir"
	dir=$(cd "$dir" && pwd)
	# a socket's path has to be short, wherever DIR is
	mariadb_run=$(mktemp -d /tmp/pmp-db.XXXXXX)
	mariadb_socket=$mariadb_run/sock
	server=$(PATH=$PATH:/usr/sbin:/usr/libexec command -v mariadbd) ||
		lib_fail "mariadbd is not installed" || return 1
	if [ ! -d "$dir/data/mysql" ]; then
		mkdir -p "$dir/data"
		mariadb-install-db --no-defaults --datadir="$dir/data" --user=root \
			--auth-root-authentication-method=normal --skip-test-db \
			>"$dir/install.log" 2>&1 </dev/null 3>&- ||
			{ tail -n 20 "$dir/install.log" >&2; return 1; }
	fi
	"$server" --no-defaults --datadir="$dir/data" --user=root --skip-networking \
		--socket="$mariadb_socket" --pid-file="$dir/pid" --max-connections=600 \
		--innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=2 "$@" \
		>"$dir/server.log" 2>&1 </dev/null 3>&- &
	mariadb_pid=$!
	disown "$mariadb_pid"
	for ((i = 0; i < 300; i++)); do
		if mariadb --no-defaults -S "$mariadb_socket" -u root -e 'select 1' \
			>/dev/null 2>&1 3>&-; then
			return 0
		fi
		lib_gone "$mariadb_pid" && break
		sleep 0.1
	done
	tail -n 20 "$dir/server.log" >&2
	stop_mariadb
	lib_fail "mariadbd did not come up"
}

stop_mariadb() {
	[ -n "${mariadb_pid:-}" ] || return 0
	lib_end "$mariadb_pid" TERM 15
	mariadb_pid=
	[ -z "${mariadb_socket:-}" ] || rm -rf "${mariadb_socket%/sock}"
}

# run_sysbench COMMAND OPTION...: on the server that start_mariadb started
run_sysbench() {
	exec sysbench oltp_read_write --db-driver=mysql --mysql-socket="$mariadb_socket" \
		--mysql-user=root --mysql-db=sbtest --tables=4 --table-size=10000 \
		--db-ps-mode=auto --report-interval=1 --mysql-ignore-errors=all "${@:2}" "$1"
}

# start_sysbench THREADS SECONDS: makes the tables, if there are none, and loads the server; sets
# sysbench_pid and sysbench_log
start_sysbench() {
	local i
	sysbench_log=$BATS_TEST_TMPDIR/sysbench.log
	if ! mariadb --no-defaults -S "$mariadb_socket" -u root sbtest \
		-e 'select 1 from sbtest4 limit 1' >/dev/null 2>&1 3>&-; then
		mariadb --no-defaults -S "$mariadb_socket" -u root \
			-e 'create database if not exists sbtest' 3>&-
		(run_sysbench prepare --threads=2) >"$sysbench_log" 2>&1 3>&- ||
			{ tail -n 20 "$sysbench_log" >&2; return 1; }
	fi
	(run_sysbench run --threads="$1" --time="$2") >"$sysbench_log" 2>&1 </dev/null 3>&- &
	sysbench_pid=$!
	disown "$sysbench_pid"
	# until every connection works
	for ((i = 0; i < 300; i++)); do
		grep -q 'thds:' "$sysbench_log" && return 0
		lib_gone "$sysbench_pid" && break
		sleep 0.1
	done
	tail -n 20 "$sysbench_log" >&2
	stop_sysbench
	lib_fail "sysbench did not start"
}

stop_sysbench() {
	[ -n "${sysbench_pid:-}" ] || return 0
	lib_end "$sysbench_pid" TERM 5
	sysbench_pid=
}

# cpu_ns PID: nanoseconds that its threads have had of the CPU so far
cpu_ns() {
	awk '{ n += $1 } END { printf "%.0f\n", n }' "/proc/$1/task/"*/schedstat
}

used_since() {
	[ $(($(cpu_ns "$1") - $2)) -ge "$3" ]
}

# await_cpu PID NS: until its threads have had so much more of the CPU
await_cpu() {
	await 60 used_since "$1" "$(cpu_ns "$1")" "$2"
}

# gdb_trace PID: every thread's stack, by the commands that pt-pmp gives to gdb
gdb_trace() {
	gdb -ex "set pagination 0" -ex "thread apply all bt" -batch -p "$1" </dev/null
}

# lines_total FILE [PATTERN]: the sum of the counts of its lines, in the pmp format; of those alone
# whose stack matches the extended regular expression
lines_total() {
	PATTERN=${2:-} awk '/^ *[0-9]+ / { n = $1; sub(/^ *[0-9]+ /, "") }
		n && (ENVIRON["PATTERN"] == "" || $0 ~ ENVIRON["PATTERN"]) { total += n }
		{ n = 0 }
		END { printf "%.0f\n", total }' "$1"
}

# lines_marked FILE: the sum of the counts of stacks that are not whole
lines_marked() {
	lines_total "$1" '(^|,)[[](broken|guessed|truncated)[]]$'
}

# The outermost symbol of a thread's stack that lacks nothing; the name of the library may follow.
# clone3 is a local symbol of libc's: to see it takes libc6-dbg.
thread_start='(__)?clone3?|__GI___clone3?|_start'

# whole_pmp, whole_perf, whole_bpftrace FILE: samples whose outermost frame is a thread's start, and all.
# In pmp's lines that is the last name; a mark in brackets is no name.
whole_pmp() {
	echo "$(lines_total "$1" "(^|,)($thread_start)([(][^(),]*[)])?\$") $(lines_total "$1")"
}

# In perf script's the last line of each sample: `ADDRESS SYMBOL+OFFSET (FILE)`. What could not be
# unwound to its end has `ffffffffffffffff [unknown]` there, or any other symbol.
whole_perf() {
	awk -v start="^($thread_start)\$" 'function sample() {
			sub(/[+]0x[0-9a-f]+$/, "", last)
			whole += last ~ start
			n++
		}
		/^[^ \t]/ { open = 1; last = "" }
		/^[ \t]/ { last = $2 }
		/^$/ { if (open) sample(); open = 0 }
		END { if (open) sample(); print whole + 0, n + 0 }' "$1"
}

# In bpftrace's `@[kernel, user]: COUNT` the line before the count: `SYMBOL+OFFSET`.
whole_bpftrace() {
	awk -v start="^($thread_start)\$" '/^\]: [0-9]+$/ {
			sub(/[+][0-9]+$/, "", last)
			n += $2
			if (last ~ start)
				whole += $2
		}
		{ last = $1 }
		END { print whole + 0, n + 0 }' "$1"
}

# percent "WHOLE ALL"
percent() {
	awk '{ printf "%.2f", ($2 > 0 ? 100 * $1 / $2 : 0) }' <<<"$1"
}

# ticks_account FILE: of standard error with -v, `TICKS EXPECTED IDLE EXPECTED_IDLE SAMPLES`
ticks_account() {
	sed -nE 's/^bpf-pmp: ([0-9]+) ticks on all CPUs \(([0-9]+) expected\), ([0-9]+) of them idle \(([0-9]+) expected\), ([0-9]+) in what is sampled$/\1 \2 \3 \4 \5/p' "$1"
}

# lost_account FILE PATTERN: of standard error with -v, the sum of the counts whose causes match
lost_account() {
	PATTERN=$2 awk '$1 == "bpf-pmp:" && $2 ~ /^[0-9]+$/ {
			n = $2
			sub(/^bpf-pmp: +[0-9]+ /, "")
			if ($0 ~ ENVIRON["PATTERN"])
				total += n
		}
		END { printf "%.0f\n", total }' "$1"
}

# broken_account FILE PATTERN: of standard error without -v, the sum of the samples that are broken for
# the causes that match
broken_account() {
	grep -oE "[0-9]+ broken [(]($2)" "$1" | awk '{ n += $1 } END { print n + 0 }'
}

# dates_from SECONDS: what `date` would have printed from then, by $EPOCHSECONDS, until now
dates_from() {
	local at
	for ((at = $1; at <= EPOCHSECONDS; at++)); do
		date -d "@$at"
	done
}

# complaints FILE: what standard error says, but for ticks that did not come where all else is well:
# that the machine is busy is no fault of the stacks
complaints() {
	sed -E 's/(; |, )[0-9]+ ticks did not come [(][^)]*[)]//; / complete [(]100[.]00%[)]$/d' "$1"
}

# adds_up OUT ERR: with -v, every tick came or is counted as missing, within 1% and 4 ticks, and every
# sample is printed or counted as lost. Says the figures.
adds_up() {
	local ticks expected idle idle_expected samples lost missed printed off
	read -r ticks expected idle idle_expected samples < <(ticks_account "$2") ||
		lib_fail "standard error has no account of the ticks" || return 1
	lost=$(lost_account "$2" '^lost [(]')
	missed=$(lost_account "$2" '^ticks did not come')
	printed=$(lines_total "$1")
	echo "$ticks ticks of $expected, $idle of $idle_expected idle, $missed missed; $samples samples: $printed printed, $lost lost"
	# what is missing of the idle ones is no loss: nothing was to be seen there
	off=$((ticks - idle + missed - (expected - idle_expected)))
	[ "${off#-}" -le $((expected / 100 + 4)) ] || lib_fail "the ticks are $off off" || return 1
	[ $((printed + lost)) -eq "$samples" ] || lib_fail "$printed printed and $lost lost are not $samples"
}

# near A B PERCENT: A is B, give or take so much of B
near() {
	awk -v a="$1" -v b="$2" -v p="$3" \
		'BEGIN { d = a - b; exit !(b > 0 && (d < 0 ? -d : d) <= b * p / 100) }' ||
		lib_fail "$1 is not within $3% of $2"
}

# no_line GREP'S ARGUMENT...: nothing matches. (Bats takes no notice of a `!` in mid-test.)
no_line() {
	local status=0
	grep "$@" || status=$?
	[ "$status" -eq 1 ] # 2: it could not look
}

# kernel_ids PID: programs, links and maps that the process holds, as `prog 12:`, one a line
kernel_ids() {
	sed -nE 's/^(prog|link|map)_id:[[:space:]]+([0-9]+)$/\1 \2:/p' "/proc/$1/fdinfo/"*
}

# it waits for samples, or has ended: in epoll_wait or epoll_pwait
is_sampling() {
	grep -qsE '^(232|281) ' "/proc/$sampler_pid/syscall" || lib_gone "$sampler_pid"
}

# start_sampler ARGUMENT...: $pmp in the background, its output in out and err; returns when its
# programs are attached, and it waits for what they send. Sets sampler_pid.
# shellcheck disable=SC2154 # the caller sets pmp
start_sampler() {
	local i
	"$pmp" "$@" >out 2>err </dev/null 3>&- &
	sampler_pid=$!
	for ((i = 0; i < 1000; i++)); do
		if grep -qs '^link_type:' "/proc/$sampler_pid/fdinfo/"*; then
			await 30 is_sampling
			return
		fi
		lib_gone "$sampler_pid" && break
		sleep 0.02
	done
	cat err >&2
	kill -9 "$sampler_pid" 2>/dev/null || true
	lib_fail "bpf-pmp $* did not come to sample"
}

# end_sampler SIGNAL: sends it, unless it is 0, and waits for the end; sets sampler_status
# shellcheck disable=SC2034 # for the caller
end_sampler() {
	[ "$1" = 0 ] || kill "-$1" "$sampler_pid" || return 1
	sampler_status=0
	wait "$sampler_pid" || sampler_status=$?
	sampler_pid=
}
