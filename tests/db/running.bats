#!/usr/bin/env bats
# MariaDB under sysbench with 64 connections, running: 100 snapshots.

load ../live/lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	stop_sysbench
	stop_mariadb
}

@test "100 snapshots: at least 98% untorn, all of those whole, the counts add up" {
	start_mariadb "$BATS_TEST_TMPDIR/db"
	start_sysbench 64 3600
	sleep 3
	compared=0
	for i in $(seq 100); do
		before=$(ls "/proc/$mariadb_pid/task" | wc -l)
		"$pmp" -p "$mariadb_pid" -v >lines 2>err
		after=$(ls "/proc/$mariadb_pid/task" | wc -l)
		sum=$(awk 'NR > 1 { n += $1 } END { print n }' lines)
		# `77 threads, 75 whole; 0 truncated ..., 0 broken ..., 0 guessed ..., 1 torn ..., 1 running`
		sed -n 's/^bpf-pmp: \([0-9]*\) threads, \([0-9]*\) whole.* \([0-9]*\) truncated.* \([0-9]*\) broken.* \([0-9]*\) guessed.* \([0-9]*\) torn.* \([0-9]*\) running.*/\1 \2 \3 \4 \5 \6 \7/p' \
			err >counts
		[ -s counts ] || { cat err; false; }
		cat counts >>all
		read -r threads _ <counts
		[ "$sum" -eq "$threads" ]
		if [ "$before" -eq "$after" ]; then
			[ "$sum" -eq "$before" ] || { echo "$before threads, $sum counted"; cat err; false; }
			compared=$((compared + 1))
		fi
	done
	awk '{ for (i = 1; i <= 7; i++) n[i] += $i }
		END {
			printf "# running MariaDB: %d snapshots, %d threads, %d whole, %d truncated, %d broken, %d guessed, %d torn, %d running: %.3f%% untorn\n",
				NR, n[1], n[2], n[3], n[4], n[5], n[6], n[7], 100 * (n[1] - n[6] - n[7]) / n[1]
			exit !(NR == 100 && (n[1] - n[6] - n[7]) / n[1] >= 0.98 && n[3] + n[4] + n[5] == 0 && n[1] > 6500)
		}' all >&3
	[ "$compared" -ge 90 ]
	kill -0 "$sysbench_pid" # the load went on throughout
}
