#!/usr/bin/env bats
# The samplers account for every tick and every sample, also where there are too many of them; and
# they use memory as they should.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	stop_fixture
}

# the CPUs have to be allowed to be sampled so often
storm() {
	[ "$(cat /proc/sys/kernel/perf_event_max_sample_rate)" -ge 4000 ] ||
		skip "kernel.perf_event_max_sample_rate is below 4000"
	start_fixture many_stacks 100000 threads 2
	"$pmp" --mode=cpu -p "$fixture_pid" -F 4000 --duration "${STORM_SECONDS:-5}" -v "$@" >out 2>err ||
		{ cat err; false; }
	run adds_up out err
	echo "# $output" >&3
	[ "$status" -eq 0 ]
}

@test "4,000 Hz, 100,000 different stacks: every tick and every sample is accounted for" {
	storm
	[ "$(lines_total out)" -gt 0 ]
	# no sample is of anything else
	[ "$(lines_total out '(^|,)walk,start_thread')" -ge $(($(lines_total out) * 995 / 1000)) ]
}

@test "4,000 Hz by frame pointers and with threads told apart: the same" {
	storm --unwind=fp
	stop_fixture
	storm -t many_stacks
}

@test "valgrind finds nothing in the samplers" {
	while read -r options; do
		start_fixture spin chain threads 3
		# shellcheck disable=SC2086
		valgrind --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible \
			--suppressions="$BATS_TEST_DIRNAME/valgrind.supp" --log-file=valgrind.log \
			"$pmp" -p "$fixture_pid" --duration 2 $options >out 2>err ||
			{ status=$?; cat valgrind.log err; [ "$status" -eq 0 ]; }
		grep -q 'ERROR SUMMARY: 0 errors' valgrind.log || { cat valgrind.log; false; }
		[ "$(wc -l <out)" -ge 2 ]
		stop_fixture
	done <<-END
		--mode=cpu -F 499
		--mode=cpu -F 499 --unwind=fp
		--mode=cpu -F 499 --by-process -t spin
		--mode=cpu -F 99 --format=samples --stacks
		--mode=offcpu
		--mode=offcpu --state all --by-process
	END
}
