#!/usr/bin/env bats
# A process that changes all the time: its stacks bear no wrong names, and bpf-pmp does not grow.
# CHURN_SECONDS (15) is how long each test looks on; 60 shows slow leaks, too.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	seconds=${CHURN_SECONDS:-15}
	cd "$BATS_TEST_TMPDIR"
	sampler_pid=
}

teardown() {
	stop_fixture
	[ -z "$sampler_pid" ] || kill -9 "$sampler_pid" 2>/dev/null || true
}

memory_kib() {
	awk '/^VmHWM:/ { print $2 }' "/proc/$sampler_pid/status"
}

fds() {
	find "/proc/$sampler_pid/fd" -mindepth 1 | wc -l
}

# the clock ticks of CPU time that the fixture has had: its threads come and go, and it begins anew
cpu_ticks() {
	sed 's/.*) //' "/proc/$fixture_pid/stat" | awk '{ print $12 + $13 }'
}

# watch MODE OPTION...: bpf-pmp looks on; its memory and open files are looked at meanwhile. Sets
# used, the fixture's CPU time in milliseconds.
watch() {
	local i hwm n
	local -a kib=()
	start_fixture churn2
	start_sampler --mode="$1" -p "$fixture_pid" --duration 3600 "${@:2}"
	used=$(cpu_ticks)
	most_fds=0
	for ((i = 0; i < 3; i++)); do
		for _ in $(seq $((seconds / 3))); do
			sleep 1
			n=$(fds) || break
			[ "$n" -le "$most_fds" ] || most_fds=$n
		done
		hwm=$(memory_kib) || true
		[ -z "$hwm" ] || kib+=("$hwm")
	done
	used=$((($(cpu_ticks) - used) * 1000 / $(getconf CLK_TCK)))
	end_sampler INT
	head -c 3000 out
	cat err
	[ "$sampler_status" -eq 0 ] || [ "$sampler_status" -eq 130 ]
	[ "$(wc -l <err)" -le 1 ]
	echo "# ${kib[*]} KiB by thirds, at most $most_fds open files" >&3
	[ ${#kib[@]} -ge 2 ]
	[ "${kib[-1]}" -lt 300000 ]
	# of what it needed after the first third, a tenth more, and 4 MiB
	[ "${kib[-1]}" -le $((kib[0] + kib[0] / 10 + 4096)) ]
	[ "$most_fds" -gt 3 ]
	[ "$most_fds" -lt 200 ]
	kill -0 "$fixture_pid"
}

# the process did change, and the two libraries were at one address most of the time
did_change() {
	local -A n=()
	read -r _ n[1] n[loads] n[2] n[same] n[3] n[threads] n[4] n[forks] n[5] n[execs] \
		< <(grep '^counters' "$fixture_out" | tail -n 1)
	echo "# ${n[loads]} loads, ${n[same]} at the other's address, ${n[threads]} threads," \
		"${n[forks]} forks, ${n[execs]} execs" >&3
	[ "${n[loads]}" -gt $((seconds * 20)) ]
	[ $((n[same] * 2)) -gt "${n[loads]}" ]
	[ "${n[threads]}" -gt $((seconds * 50)) ]
	[ "${n[forks]}" -gt "$seconds" ]
	[ "${n[execs]}" -ge $((seconds / 2)) ]
}

# right_names FILE: only_in_a is directly above call_a, unless the stack ends there with a mark, and
# below call_a is nothing of plugin_b.so; the other way round, too. Both have been seen.
right_names() {
	awk '!/^ *[0-9]+ / { next }
		{
			n = $1
			sub(/^ *[0-9]+ /, "")
			frames = split($0, frame, ",")
			for (i = 1; i <= frames; i++) {
				name = frame[i]
				sub(/[(].*/, "", name)
				below = frame[i + 1]
				sub(/[(].*/, "", below)
				if (name ~ /^only_in_[ab]$/) {
					which = substr(name, 9)
					if (i < frames && below == "call_" which)
						right[which] += n
					else if (below !~ /^\[.*\]$/) {
						wrong += n
						print "wrong: " $0
					}
					if (frame[i] != name "(plugin_" which ".so)") {
						wrong += n
						print "wrong library: " $0
					}
				} else if (frame[i] ~ /[(]plugin_[ab][.]so[)]/ && below ~ /^call_[ab]$/ &&
					frame[i] !~ "plugin_" substr(below, 6)) {
					wrong += n
					print "wrong library: " $0
				}
			}
			# what is shown as whole goes down to where it started; a thread that ends or
			# makes itself another program has no more than its kernel stack for a while
			if ($0 ~ /(^|,)(do_exit|bprm_execve),/)
				next
			if ($0 !~ /(^|,)\[[a-z]+\]$/ && $0 !~ /(^|,)(start_thread|[^,]*clone3|_start|__clone|clone)([(][^,]*[)])?$/) {
				wrong += n
				print "not whole, and not marked: " $0
			}
		}
		END {
			printf "# %d right of a, %d right of b, %d wrong\n", right["a"], right["b"], wrong
			exit wrong || !right["a"] || !right["b"]
		}' "$1" >names || { head -n 20 names; false; }
	tail -n 1 names >&3
}

@test "samples of the CPU while libraries, threads and the program itself come and go" {
	watch cpu -F 499
	did_change
	right_names out
	total=$(lines_total out)
	marked=$(lines_marked out)
	# of code that was there for too short a time to have been read: on a busy machine, many
	late=$(broken_account err 'led to where no code is known|code replaced just before|process not read')
	echo "# $total samples of $used ms, $((total - marked)) complete, $late taken before it had read what was new" >&3
	[ "$total" -gt 50 ]
	[ $((total * 2000)) -ge $((used * 499)) ]
	[ $(((marked - late) * 20)) -lt "$total" ]
}

@test "waits while libraries, threads and the program itself come and go" {
	watch offcpu
	did_change
	[ "$(lines_total out)" -gt $((seconds * 1000000)) ]
	[ "$(lines_total out ',(thread_loop|fork_loop|main),')" -gt "$seconds" ]
}
