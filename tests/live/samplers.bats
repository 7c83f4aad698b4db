#!/usr/bin/env bats
# What the options of --mode=cpu and --mode=offcpu do, on processes whose stacks are known; and that
# neither mode leaves anything behind.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	sampler_pid=
	others=()
}

teardown() {
	stop_fixture
	for pid in "${others[@]}" $sampler_pid; do
		kill -9 "$pid" 2>/dev/null || true
	done
}

thread_end='repeat,thread_main,start_thread[^,]*,[^,]*clone3[^,]*'
chain="spin_forever,chain_1,chain_2,chain_3,chain_4,chain_5,chain_6,chain_7,chain_8,chain_9,chain_10,chain_11,chain_12,$thread_end"

# start_other NAME ARGUMENT...: a second fixture; sets other
start_other() {
	local first=$fixture_pid out=$fixture_out
	mkdir -p other
	BATS_TEST_TMPDIR=$PWD/other start_fixture "$@"
	other=$fixture_pid
	others+=("$other")
	fixture_pid=$first fixture_out=$out
}

# sample ARGUMENT...: CPU samples of a second; nothing to complain of
sample() {
	"$pmp" --mode=cpu -F 499 --duration 1 "$@" >out 2>err || { cat err; false; }
	cat out err
	[ -z "$(complaints err)" ]
}

# shows STACK [AT_LEAST]: there are so many samples (5) of it
shows() {
	[ "$(lines_total out "$1")" -ge "${2:-5}" ]
}

@test "the first line is date's, then counts and stacks, the highest count first" {
	start_fixture spin prologues
	began=$EPOCHSECONDS
	sample -p "$fixture_pid"
	dates_from "$began" >dates
	head -n 1 out | grep -qxFf dates
	tail -n +2 out | no_line -vE '^ {0,6}[0-9]+ [^ ]'
	tail -n +2 out | awk '{ print $1 }' >counts
	[ "$(wc -l <counts)" -ge 3 ]
	sort -rn counts | diff - counts
}

@test "several processes, named by -p twice or in a list" {
	start_fixture spin chain
	start_other spin noreturn
	for list in "-p $fixture_pid,$other" "-p $fixture_pid -p $other"; do
		# shellcheck disable=SC2086
		sample $list
		shows "(^|,)$chain\$"
		shows ",ends_in_noreturn,$thread_end\$"
	done
	# one of them alone
	sample -p "$other"
	[ "$(lines_total out chain_1)" -eq 0 ]
	shows ",ends_in_noreturn,$thread_end\$"
}

@test "--by-process makes command and PID the outermost frames" {
	start_fixture spin chain
	start_other spin chain
	sample -p "$fixture_pid,$other"
	[ "$(grep -c chain_12 out)" -ge 1 ]
	one=$(lines_total out chain_12)
	sample -p "$fixture_pid,$other" --by-process
	# two lines at least, and each ends in its process
	for pid in "$fixture_pid" "$other"; do
		shows ",clone3[^,]*,([^,]*$pid[^,]*,[^,]*spin[^,]*|[^,]*spin[^,]*,[^,]*$pid[^,]*)\$"
	done
	[ "$one" -gt 0 ]
	tail -n +2 out | no_line -vE "spin|^ *[0-9]+ .*,($fixture_pid|$other)"
	# the kernel's threads have names, too
	"$pmp" --mode=offcpu -a --state all --by-process --duration 2 >out 2>err
	cat out
	[ "$(lines_total out ',ret_from_fork(_asm)?,[0-9]+,[^,]*$')" -gt 0 ]
	# but for those that had ended before they were asked
	sed -nE 's/.*,ret_from_fork(_asm)?,([0-9]+),[?]{2}$/\2/p' out >nameless
	while read -r pid; do
		[ ! -e "/proc/$pid" ]
	done <nameless
}

@test "--comm takes those that start during the run, too" {
	cp "$lib_fixtures/spin" pmp_spinner
	./pmp_spinner chain >ready1 2>/dev/null </dev/null 3>&- &
	others+=($!)
	disown
	until grep -q ready ready1; do sleep 0.05; done
	start_sampler --mode=cpu --comm pmp_spinner -F 499 --duration 60
	./pmp_spinner noreturn >ready2 2>/dev/null </dev/null 3>&- &
	others+=($!)
	disown
	until grep -q ready ready2; do sleep 0.05; done
	sleep 2
	end_sampler INT
	cat out err
	shows "(^|,)$chain\$"
	shows "ends_in_noreturn,$thread_end\$"
}

@test "-a sees the whole machine: two processes at once" {
	start_fixture spin chain
	start_other spin noreturn
	"$pmp" --mode=cpu -a -F 499 --duration 2 >out 2>err
	cat out err
	shows "(^|,)$chain\$"
	shows ",ends_in_noreturn,$thread_end\$"
	# waits, too
	stop_fixture
	start_fixture block stuck
	"$pmp" --mode=offcpu -a --duration 1 >out 2>err
	[ "$(lines_total out ',stuck_on_mutex,stayer,')" -gt 500000 ]
}

@test "-t takes LWP numbers and thread names" {
	start_fixture spin chain threads 3
	tid=$(find "/proc/$fixture_pid/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n | tail -n 1)
	before=$(awk '{ print $1 }' "/proc/$fixture_pid/task/$tid/schedstat")
	sample -p "$fixture_pid" -t "^$tid\$"
	used=$(($(awk '{ print $1 }' "/proc/$fixture_pid/task/$tid/schedstat") - before))
	shows "(^|,)$chain\$"
	# no more than this one thread can have had
	[ "$(lines_total out)" -le $((used * 499 / 1000000000 * 11 / 10 + 30)) ]
	sample -p "$fixture_pid" -t '^spin$'
	shows "(^|,)$chain\$"
	"$pmp" --mode=cpu -p "$fixture_pid" -F 499 --duration 0.3 -t nothing_of_that_name >out 2>err || true
	[ "$(lines_total out)" -eq 0 ]
}

@test "Ctrl-C ends it early, and prints what there is" {
	start_fixture spin chain
	for mode in cpu offcpu; do
		for signal in INT TERM; do
			start_sampler --mode=$mode -p "$fixture_pid" --duration 300
			await_cpu "$fixture_pid" 300000000
			end_sampler $signal
			cat out err
			case $signal in
			INT) [ "$sampler_status" -eq 0 ] || [ "$sampler_status" -eq 130 ] ;;
			TERM) [ "$sampler_status" -eq 0 ] || [ "$sampler_status" -eq 143 ] ;;
			esac
			grep -qE '^[A-Z]' out
			[ "$(lines_total out)" -gt 10 ]
		done
	done
}

@test "--duration is how long it looks on; off a terminal it shows no progress" {
	start_fixture spin chain
	for mode in cpu offcpu; do
		began=${EPOCHREALTIME/./}
		"$pmp" --mode=$mode -p "$fixture_pid" --duration 2.5 >out 2>err
		ended=${EPOCHREALTIME/./}
		cat err
		[ -z "$(complaints err)" ]
		[ $((ended - began)) -ge 2500000 ]
		[ "$(lines_total out)" -gt 0 ]
		[ "$(grep -c '' out)" -eq "$(($(grep -cE '^ *[0-9]+ ' out) + 1))" ]
	done
}

@test "the counts are samples: -F times the CPU time, on both CPUs together" {
	start_fixture spin chain threads 2
	for hz in 99 999; do
		start_sampler --mode=cpu -p "$fixture_pid" -F $hz --duration 120
		before=$(cpu_ns "$fixture_pid")
		await_cpu "$fixture_pid" 4000000000
		used=$(($(cpu_ns "$fixture_pid") - before))
		end_sampler INT
		n=$(lines_total out)
		echo "# $n samples at $hz Hz of $used ns" >&3
		# it began before, and ended after; a virtual machine loses timer interrupts
		awk -v n="$n" -v ns="$used" -v hz="$hz" 'BEGIN { exit !(n >= ns / 1e9 * hz * 0.6) }'
		[ "$(lines_total out "(^|,)$chain\$")" -eq "$n" ]
	done
	at_999=$n
	[ "$at_999" -gt 1000 ]
}

@test "--format=folded has the same samples, the outermost first" {
	start_fixture spin chain
	sample -p "$fixture_pid" --format=folded --no-kernel
	grep -qE '^clone3[^;]*;start_thread[^;]*;thread_main;repeat;chain_12;chain_11;.*;chain_1;spin_forever [0-9]+$' out
	[ "$(awk '{ n += $NF } END { print n }' out)" -ge 20 ]
}

@test "--format=samples has a line for each sample: when, which process, which thread" {
	start_fixture spin chain threads 2
	sample -p "$fixture_pid" --format=samples
	find "/proc/$fixture_pid/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -vx "$fixture_pid" >tids
	grep -wF "$fixture_pid" out >lines
	[ "$(wc -l <lines)" -ge 20 ]
	while read -r tid; do
		grep -qw "$tid" lines
	done <tids
	# every line of a sample is of one of the two threads, and no two are of one time and thread
	no_line -vwF -f tids lines
	[ "$(sort -u lines | wc -l)" -eq "$(wc -l <lines)" ]
	no_line -q chain_12 out
	sample -p "$fixture_pid" --format=samples --stacks
	[ "$(grep -c chain_12 out)" -ge 20 ]
}

@test "--unwind=fp follows frame pointers, and says so" {
	start_fixture spin_fp chain
	"$pmp" --mode=cpu -p "$fixture_pid" -F 499 --duration 1 --unwind=fp --no-kernel >out 2>err
	cat out err
	grep -qE '^bpf-pmp: .*frame pointer' err
	[ "$(grep -c '^bpf-pmp:' err)" -ge 1 ]
	# a leaf that makes no frame of its own hides its caller
	shows '^spin_forever,(chain_1,)?chain_2,chain_3,chain_4,chain_5,chain_6,chain_7,chain_8,chain_9,chain_10,chain_11,chain_12,repeat,thread_main'
	stop_fixture
	# where there are none, callers are lost: that is not shown as whole
	start_fixture spin vla
	"$pmp" --mode=cpu -p "$fixture_pid" -F 499 --duration 1 --unwind=fp --no-kernel >out 2>err
	cat out err
	[ "$(lines_total out)" -ge 20 ]
	wrong=$(($(lines_total out) - $(lines_marked out) - $(lines_total out "^((spin_leaf,)?use,)?with_vla,$thread_end\$") - $(lines_total out "^$thread_end\$")))
	[ "$wrong" -eq 0 ]
	stop_fixture
	start_fixture spin_fp chain
	"$pmp" --mode=cpu -p "$fixture_pid" -F 499 --duration 1 --unwind=fp --no-kernel --max-frames 3 >out 2>err
	cat out err
	shows '^spin_forever,(chain_1,)?chain_[23],(chain_[34],)?\[truncated\]$'
}

@test "a process that ends during the run: what was seen of it is printed, with its names" {
	for mode in cpu offcpu; do
		case $mode in
		cpu) start_fixture spin chain ;;
		offcpu) start_fixture block sleeps ;;
		esac
		start_sampler --mode=$mode -p "$fixture_pid" --duration 3
		sleep 1
		kill -9 "$fixture_pid"
		end_sampler 0
		cat out err
		[ "$sampler_status" -le 1 ]
		[ "$(wc -l <err)" -le 2 ]
		case $mode in
		cpu) shows "(^|,)$chain\$" ;;
		offcpu) [ "$(lines_total out ',block_3,block_2,block_1,worker,')" -gt 300000 ] ;;
		esac
	done
}

@test "100,000 different stacks: none is mixed up, none is lost without a word" {
	start_fixture many_stacks 100000 threads 2
	before=$(cpu_ns "$fixture_pid")
	"$pmp" --mode=cpu -p "$fixture_pid" -F 1999 --duration 3 --no-kernel --no-lines --no-inlines >out 2>err
	used=$(($(cpu_ns "$fixture_pid") - before))
	cat err
	total=$(lines_total out)
	marked=$(lines_marked out)
	lines=$(grep -cE '^ *[0-9]+ ' out)
	echo "# $total samples of $lines stacks, $marked marked, $used ns" >&3
	[ "$total" -ge 500 ]
	[ "$lines" -ge 300 ]
	[ $((marked * 20)) -le "$total" ]
	side='(left|right)'
	stack="stay,${side}_0"
	for k in $(seq 17); do
		stack="$stack,${side}_$k"
	done
	[ "$(lines_total out "^$stack,walk,start_thread")" -ge $((total / 2)) ]
	# each starts somewhere on the way, and leaves nothing out from there; now and then it prints
	awk '/^ *[0-9]+ / && $0 !~ /\]$/ && $0 !~ /[ ,](printf|fflush)[^,]*,walk,start_thread/ {
			sub(/^ *[0-9]+ /, "")
			frames = split($0, frame, ",")
			at = frame[1] == "stay" ? 2 : 1
			k = frame[at] == "walk" ? 18 : substr(frame[at], index(frame[at], "_") + 1) + 0
			if (at == 2 && k != 0)
				bad++
			for (; k <= 17; k++) {
				if (frame[at] != "left_" k && frame[at] != "right_" k)
					bad++
				at++
			}
			if (frame[at] != "walk" || frame[at + 1] !~ /^start_thread/)
				bad++
			if (bad > seen) {
				print
				seen = bad
			}
		}
		END { exit bad > 0 }' out
}

@test "what was read of one stack is not taken for what another has where there is no memory" {
	start_fixture spin nowhere
	# of the same CPUs, at the same time
	start_other spin recurse 60
	"$pmp" --mode=cpu -F 499 --duration 1 --no-kernel -p "$fixture_pid" -p "$other" >out 2>err
	cat out err
	shows '^stack_is_nowhere,\[broken\]$' 20
	shows 'descend,.*,start_thread' 20
	# but for the few taken between its first two instructions and its last
	there=$(broken_account err 'stack memory that is not there')
	echo "# $there of $(lines_marked out) are broken for want of memory" >&3
	[ "$there" -ge 20 ]
	[ "$there" -eq "$(lines_marked out)" ]
}

@test "SIGKILL at any moment leaves nothing behind in the kernel" {
	start_fixture spin chain
	RANDOM=4711
	killed=0
	: >ids
	for mode in cpu offcpu; do
		for i in $(seq 15); do
			if [ "$i" -le 2 ]; then
				start_sampler --mode=$mode -p "$fixture_pid" --duration 60
				kernel_ids "$sampler_pid" >>ids
			else
				"$pmp" --mode=$mode -p "$fixture_pid" --duration 60 >/dev/null 2>&1 3>&- &
				sampler_pid=$!
				sleep "0.$(printf '%03d' $((RANDOM % 600)))"
			fi
			kill -9 "$sampler_pid" && killed=$((killed + 1))
			wait "$sampler_pid" || true
			no_line -hE '^State:	[Tt]' /proc/"$fixture_pid"/task/*/status
		done
	done
	[ "$killed" -eq 30 ]
	sort -u ids >seen
	for kind in prog link map; do
		grep -q "^$kind" seen
	done
	# the kernel frees what a dead process held a moment later
	for _ in $(seq 100); do
		for kind in prog link map; do
			bpftool $kind show | sed -nE "s/^([0-9]+:) .*/$kind \1/p"
		done | sort -u >now
		left=$(comm -12 seen now)
		[ -n "$left" ] || break
		sleep 0.1
	done
	echo "$left"
	[ -z "$left" ]
	grep -q "^TracerPid:	0" "/proc/$fixture_pid/status"
	find . -mindepth 1 -not -name files -not -name 'fixture.*' -not -path './other*' -printf '%P\n' | sort >files
	printf 'err\nids\nnow\nout\nseen\n' | diff - files
}

@test "bad options get one line on standard error, and status 1" {
	start_fixture spin chain
	n=0
	while read -r options; do
		status=0
		# shellcheck disable=SC2086
		timeout 20 "$pmp" $options >out 2>err </dev/null || status=$?
		echo "$options: $status: $(cat err)"
		[ "$status" -eq 1 ]
		[ ! -s out ]
		[ "$(wc -l <err)" -eq 1 ]
		grep -q '^bpf-pmp: ' err
		n=$((n + 1))
	done <<-END
		--mode=nothing -p $fixture_pid
		--mode=cpu -p $fixture_pid -F 0
		--mode=cpu -p $fixture_pid -F -5
		--mode=cpu -p $fixture_pid -F fast
		--mode=cpu -p $fixture_pid --duration 0
		--mode=cpu -p $fixture_pid --duration -1
		--mode=cpu -p $fixture_pid --duration soon
		--mode=cpu -p $fixture_pid --unwind=lbr
		--mode=cpu -p $fixture_pid --min-us 5
		--mode=cpu -p $fixture_pid --state all
		--mode=cpu -p $fixture_pid -i 5
		--mode=offcpu -p $fixture_pid -F 99
		--mode=offcpu -p $fixture_pid --state sleepy
		--mode=offcpu -p $fixture_pid --state interruptible,
		--mode=offcpu -p $fixture_pid --min-us x
		--mode=offcpu -p $fixture_pid --max-us -1
		--mode=offcpu -p $fixture_pid --format=samples
		--mode=threads -p $fixture_pid --duration 3
		--mode=threads -a
		--mode=cpu -p 2147483647 --duration 1
		--mode=cpu -p 0
		--mode=cpu -p $fixture_pid,x
		--mode=offcpu -p 2147483647 --duration 1
	END
	[ "$n" -eq 23 ]
}
