#!/usr/bin/env bats
# What goes wrong while a process is read: said in one line, and the rest goes on.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cost=$(cd "$BATS_TEST_DIRNAME/../../${B:-build}/tests/tools" && pwd)/cost
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	stop_fixture
}

@test "a process that ends while it is read" {
	start_fixture threads many 200
	"$pmp" -p "$fixture_pid" -i 100000 -k saved >out 2>err 3>&- &
	tool=$!
	await_snapshots saved 2
	kill -9 "$fixture_pid"
	status=0
	wait "$tool" || status=$?
	cat err
	[ "$status" -eq 1 ]
	# the last threads that were read may have been on their way out
	sed -i -E '1{/^bpf-pmp: ([0-9]+ snapshots, )?[0-9]+ threads?, [0-9]+ whole; .*[(]-v for each[)]$/d}' err
	[ "$(wc -l <err)" -eq 1 ]
	grep -qE "^bpf-pmp: process $fixture_pid (has ended|ended while it was read)" err
	# what was captured before is not lost
	[ "$(awk 'NR > 1 { n += $1 } END { print n }' out)" -gt 200 ]
}

@test "a process that ends at any moment never makes a partial or wrong answer" {
	answers=0
	for i in $(seq 30); do
		start_fixture threads many 100
		"$pmp" -p "$fixture_pid" >out 2>err 3>&- &
		tool=$!
		sleep "0.0$((RANDOM % 50 + 10))"
		kill -9 "$fixture_pid"
		status=0
		wait "$tool" || status=$?
		if [ "$status" -eq 0 ]; then
			answers=$((answers + 1))
			grep -qE '^[A-Z]' out
		else
			[ "$status" -eq 1 ]
			[ "$(wc -l <err)" -eq 1 ]
			[ ! -s out ]
		fi
		stop_fixture
	done
	echo "# $answers of 30 were read in time" >&3
}

@test "a process whose memory stays locked is given up after --max-wait" {
	start_fixture locked
	gave_up=0
	tries=0
	while [ $tries -lt 40 ] && [ $gave_up -lt 3 ]; do
		tries=$((tries + 1))
		"$cost" -m -t 60 cost "$pmp" -p "$fixture_pid" --max-wait 0.02 >out 2>err
		read -r wall _ _ _ _ status waited <cost
		rm cost
		if [ "$status" -ne 0 ]; then
			[ "$status" -eq 1 ]
			grep -qx "bpf-pmp: process $fixture_pid could not be read within 0.02 s: a thread of it keeps its memory locked, or the machine is overloaded (see --max-wait)" err
			[ "$(wc -l <err)" -eq 1 ]
			[ ! -s out ]
			# but for what it waited for a CPU
			awk -v t="$wall" -v w="$waited" 'BEGIN { exit !(t - w < 2000) }'
			gave_up=$((gave_up + 1))
		fi
	done
	echo "# gave up $gave_up of $tries times" >&3
	[ "$gave_up" -ge 1 ]
	# with patience it is read
	"$pmp" -p "$fixture_pid" --max-wait 20 >out
	[ "$(awk 'NR > 1 { n += $1 } END { print n }' out)" -eq 3 ]
}

# in_mounts MOUNT_POINT COMMANDS: run them in a mount namespace of their own, where mounts below
# MOUNT_POINT stay (in a chroot, the root folder is no mount point, and can not be made private)
in_mounts() {
	unshare -m --propagation unchanged sh -c "mount --make-rprivate $1 && $2"
}

@test "a kernel without BTF" {
	start_fixture threads many 2
	status=0
	in_mounts /sys "mount -t tmpfs none /sys/kernel/btf && '$pmp' -p $fixture_pid" >out 2>err ||
		status=$?
	cat err
	[ "$status" -eq 1 ]
	[ ! -s out ]
	[ "$(wc -l <err)" -eq 1 ]
	grep -q 'this kernel has no BTF' err
	in_mounts /sys "mount -t tmpfs none /sys/kernel/btf && '$pmp' --check" >out 2>err || status=$?
	grep -q '^BTF: missing' out
}

@test "a kernel that does not take the programs" {
	start_fixture threads many 2
	status=0
	strace -f -qq -o trace -e trace=bpf -e inject=bpf:error=EINVAL "$pmp" -p "$fixture_pid" >out 2>err ||
		status=$?
	cat err
	[ "$status" -eq 1 ]
	[ ! -s out ]
	[ "$(wc -l <err)" -eq 1 ]
	grep -q 'the kernel did not take the BPF programs (Invalid argument): it must be 5.10 or later' err
}

@test "every kernel address has the name that /proc/kallsyms has for it" {
	"$BATS_TEST_DIRNAME/../../${B:-build}/tests/tools/ksym_query"
}

@test "kernel names that are hidden are said once, where the kernel cannot be asked" {
	start_fixture threads many 2
	sed 's/^[0-9a-f]*/0000000000000000/' /proc/kallsyms | head -n 100000 >hidden
	in_mounts /proc "mount --bind hidden /proc/kallsyms && '$pmp' -p $fixture_pid --kernel" >out 2>err
	[ ! -s err ]
	grep -qF 'do_syscall_64,' out
	in_mounts /proc "mount --bind hidden /proc/kallsyms &&
		'$pmp' -p $fixture_pid --kernel --plain-iterator" >out 2>err
	cat err
	grep -q 'kernel names are hidden' err
	[ "$(wc -l <err)" -eq 1 ]
	grep -qF '::??,' out || grep -qF '??,' out
}

@test "an ELF file spoiled while it is mapped: its frames become ??, the rest goes on" {
	libc=$(ldconfig -p | sed -n 's,.* => \(/.*x86_64.*/libc\.so\.6\)$,\1,p' | head -n 1)
	mkdir lib
	for spoil in 'seek=0 count=4' 'seek=16 count=48' 'seek=64 count=1000' 'seek=0 count=4096'; do
		rm -f lib/libc.so.6
		cp "$libc" lib/libc.so.6
		LD_LIBRARY_PATH=$PWD/lib start_fixture threads many 3
		grep -qF "$PWD/lib/libc.so.6" "/proc/$fixture_pid/maps"
		# in place: the text lies further on, and runs on
		# shellcheck disable=SC2086
		dd if=/dev/urandom of=lib/libc.so.6 bs=1 conv=notrunc $spoil 2>/dev/null
		status=0
		timeout 20 "$pmp" -p "$fixture_pid" -k saved >out 2>err || status=$?
		cat out err
		[ "$status" -eq 0 ]
		[ "$(awk 'NR > 1 { n += $1 } END { print n }' out)" -eq 4 ]
		[ "$(wc -l <err)" -le 1 ]
		grep -qE '^#0  0x[0-9a-f]{16} in \?\? \(\)' saved
		rm -f saved
		stop_fixture
	done
}
