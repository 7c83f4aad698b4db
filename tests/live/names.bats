#!/usr/bin/env bats
# Where names come from, and with what rights they are read.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	map=
}

teardown() {
	stop_fixture
	[ -z "$map" ] || rm -f "$map"
}

# leave_map: what a JIT would leave: a name for all anonymous code of the fixture
leave_map() {
	map=/tmp/perf-$fixture_pid.map
	awk '$2 ~ /x/ && $6 == "" {
			split($1, ends, "-")
			printf "%s %x made_by_jit\n", ends[1], strtonum("0x" ends[2]) - strtonum("0x" ends[1])
		}' "/proc/$fixture_pid/maps" >"$map"
	[ -s "$map" ]
}

@test "JIT code is called what /tmp/perf-PID.map says" {
	command -v gawk >/dev/null
	awk() { gawk "$@"; }
	start_fixture pcre2_jit
	"$pmp" -p "$fixture_pid" >before
	[ "$(lines_total before made_by_jit)" -eq 0 ]
	leave_map
	"$pmp" -p "$fixture_pid" >out
	cat out
	[ "$(lines_total out '(^|,)made_by_jit(,|$)')" -ge 1 ]
	# another user's file is not believed
	chown 12345 "$map"
	"$pmp" -p "$fixture_pid" | tail -n +2 >out
	tail -n +2 before | diff - out
}

@test "symbols of .gnu_debugdata name what was stripped" {
	cp "$lib_fixtures/frames" full
	nm full --defined-only --format=posix | awk '$2 ~ /[tT]/ { print $1 }' >keep
	objcopy --only-keep-debug full mini 2>/dev/null
	objcopy --strip-all --keep-symbols=keep mini
	xz mini
	objcopy --strip-all --add-section .gnu_debugdata=mini.xz full with
	objcopy --strip-all full without
	for name in full with without; do
		./$name plain alloca >ready.$name </dev/null 2>&1 3>&- &
		echo $! >>pids
		disown
	done
	for name in full with without; do
		until grep -qx ready ready.$name; do sleep 0.02; done
	done
	mapfile -t pids <pids
	for i in 0 1 2; do
		"$pmp" -p "${pids[i]}" --no-lines --no-inlines | tail -n +2 | sort >lines.$i
	done
	kill -9 "${pids[@]}"
	cat lines.*
	diff lines.0 lines.1
	grep -q '::??,' lines.2
	no_line '::??,' lines.1
}

@test "after the capture, only the capabilities that names take are left; the worker has none" {
	start_fixture debug_c_gcc_O2-5
	strace -f -e trace=capset,setresuid,execve -o calls "$pmp" -p "$fixture_pid" >out
	cat calls
	grep -qE 'capset\(.*effective=1<<CAP_DAC_OVERRIDE\|1<<CAP_DAC_READ_SEARCH\|1<<CAP_KILL\|1<<CAP_SETGID\|1<<CAP_SETUID\|1<<CAP_SYS_PTRACE\|1<<CAP_SYSLOG,' calls
	grep -qE 'setresuid\(65534, 65534, 65534\) += 0' calls
	grep -qE 'capset\(.*effective=0, permitted=0' calls
	for mode in cpu offcpu; do
		strace -f -e trace=capset -o calls "$pmp" --mode=$mode --duration 0.2 -p "$fixture_pid" >out
		grep -q 'capset(' calls
	done
	strace -f -e trace=capset,setresuid -o calls "$pmp" --no-drop -p "$fixture_pid" >out
	no_line -E 'capset|setresuid' calls
	grep -q inlined out
}

@test "damaged debug information costs names, nothing else, and that is said" {
	cp "$lib_fixtures/debug_c_gcc_O2-5" damaged
	read -r offset size < <(readelf -SW damaged |
		sed -nE 's/^.* \.debug_abbrev +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) .*/\1 \2/p')
	dd if=/dev/zero of=damaged bs=1 seek=$((16#$offset)) count=$((16#$size)) conv=notrunc 2>/dev/null
	./damaged >ready </dev/null 2>&1 3>&- &
	fixture_pid=$!
	disown
	until grep -qx ready ready; do sleep 0.02; done
	"$pmp" -p "$fixture_pid" >out 2>err
	cat out err
	grep -qE '^ +1 [^ ]*pause[^,]*,stay,inlined,' out
	[ "$(grep -c 'debug information of 1 file could not be read' err)" -eq 1 ]
	[ "$(wc -l <err)" -eq 1 ]
}
