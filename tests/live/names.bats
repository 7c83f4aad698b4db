#!/usr/bin/env bats
# Where names come from, and with what rights they are read.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	map=
	server_pid=
}

teardown() {
	stop_fixture
	[ -z "$server_pid" ] || kill -9 "$server_pid" 2>/dev/null || true
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

@test "what reads debug information has none of the memory that is shared with the kernel" {
	start_fixture threads gap 5
	"$pmp" -p "$fixture_pid" --kernel -i 100000 -s 0.1 -k saved >out 2>err 3>&- &
	tool=$!
	await_snapshots saved 2
	worker=$(pgrep -P "$tool")
	ours=$(grep -c 'anon_inode:bpf-map' "/proc/$tool/maps")
	its=$(grep -c 'anon_inode:bpf-map' "/proc/$worker/maps") || true
	kill -TERM "$tool"
	wait "$tool" || true
	[ "$ours" -ge 3 ]
	[ "$its" -eq 0 ]
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

# strip_debug NAME: the program without debug information, which goes to debug/.build-id; sets id
strip_debug() {
	cp "$lib_fixtures/$1" "$1"
	id=$(readelf -n "$1" | sed -n 's/^ *Build ID: //p')
	mkdir -p "debug/.build-id/${id:0:2}"
	debug_file=debug/.build-id/${id:0:2}/${id:2}.debug
	objcopy --only-keep-debug "$1" "$debug_file"
	strip "$1"
}

# run_here NAME: sets fixture_pid
run_here() {
	"./$1" >ready </dev/null 2>&1 3>&- &
	fixture_pid=$!
	disown
	for _ in $(seq 500); do
		! grep -qx ready ready || return 0
		sleep 0.02
	done
	lib_fail "$1 did not come to be ready"
}

@test "a debug file of another build is refused, and that is said" {
	strip_debug debug_c_gcc_O2-5
	run_here debug_c_gcc_O2-5
	"$pmp" -p "$fixture_pid" --debug-dir "$PWD/debug" >out 2>err
	cat out err
	[ ! -s err ]
	grep -q ',first,inlined,' out
	objcopy --only-keep-debug "$lib_fixtures/debug_c_gcc_O0-5" "$debug_file"
	"$pmp" -p "$fixture_pid" --debug-dir "$PWD/debug" >out 2>err
	cat out err
	no_line 'inlined' out
	[ "$(cat err)" = "bpf-pmp: $PWD/$debug_file is not used: it is not of the same build as $PWD/debug_c_gcc_O2-5" ]
}

# serve: debuginfod of its own for debug/; sets server_pid and url
serve() {
	local port
	for port in 21847 22963 24091; do
		DEBUGINFOD_URLS='' debuginfod -d :memory: -p $port -F debug >server.log 2>&1 </dev/null 3>&- &
		server_pid=$!
		disown
		url=http://127.0.0.1:$port
		for _ in $(seq 1500); do
			# another's may have that port: it is ours once it says so
			! grep -qE "started http server .*port=$port\$" server.log ||
				! curl -s "$url/metrics" >metrics 2>/dev/null || return 0
			lib_gone "$server_pid" && continue 2
			sleep 0.02
		done
		kill "$server_pid"
	done
	cat server.log
	lib_fail "no debuginfod server"
}

@test "debuginfod is asked where it is named, and nowhere else; a server that is not there costs little" {
	strip_debug debug_c_gcc_O2-5
	run_here debug_c_gcc_O2-5
	serve
	export HOME=$PWD DEBUGINFOD_CACHE_PATH=$PWD/cache
	unset DEBUGINFOD_URLS
	"$pmp" -p "$fixture_pid" >out 2>err
	[ ! -s err ]
	no_line inlined out
	[ ! -e cache ]
	# it may be scanning still
	for _ in $(seq 300); do
		rm -rf cache
		"$pmp" -p "$fixture_pid" --debuginfod="$url" >out 2>err
		! grep -q inlined out || break
		sleep 0.1
	done
	cat out err server.log
	[ ! -s err ]
	grep -q ',first,inlined,' out
	DEBUGINFOD_URLS=$url "$pmp" -p "$fixture_pid" >out 2>err
	[ ! -s err ]
	grep -q ',first,inlined,' out
	lib_end "$server_pid" KILL 5
	rm -rf cache
	"$pmp" -p "$fixture_pid" --debuginfod="$url" >out 2>err
	cat out err
	no_line inlined out
	grep -q '::??,' out
	[ "$(grep -c '^bpf-pmp: debuginfod: ' err)" -eq 1 ]
	[ "$(wc -l <err)" -eq 1 ]
}

@test "a debuginfod server that does not answer is given up" {
	strip_debug debug_c_gcc_O2-5
	run_here debug_c_gcc_O2-5
	export HOME=$PWD DEBUGINFOD_CACHE_PATH=$PWD/cache DEBUGINFOD_MAXTIME=1
	# takes connections, and says nothing
	perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 0, Listen => 5) or die;
		print $s->sockport, "\n"; close STDOUT; sleep 600' >port </dev/null 3>&- &
	server_pid=$!
	disown
	until [ -s port ]; do sleep 0.02; done
	begin=$SECONDS
	"$pmp" -p "$fixture_pid" --debuginfod="http://127.0.0.1:$(cat port)" >out 2>err
	cat out err
	[ $((SECONDS - begin)) -le 30 ] # it would take 90, and the server 600
	kill "$server_pid"
	grep -q '::??,' out
	[ "$(cat err)" = "bpf-pmp: debuginfod: it took too long (see DEBUGINFOD_MAXTIME): it was not asked further" ]
}
