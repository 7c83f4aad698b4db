#!/usr/bin/env bats
# Programs of other languages, and what interprets them: stacks are whole, names are gdb's.

load lib

setup() {
	unset PGHOST
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	postgres_pid=
}

teardown() {
	stop_fixture
	[ -z "$postgres_pid" ] || lib_end "$postgres_pid" INT 10
	[ -z "${PGHOST:-}" ] || rm -rf "$PGHOST"
}

# profile PID: CPU samples of it to out, for as long as it takes to be able to speak of
# percentages: on a busy machine, it may have little of a CPU
profile() {
	local seconds
	for seconds in 2 6 18 36; do
		"$pmp" -p "$1" --mode=cpu --no-kernel --duration $seconds >out 2>err
		[ "$(lines_total out)" -lt 100 ] || break
	done
	cat out err
}

# whole FILE: of its stacks, in the pmp format, 98% or more lack nothing, and there are 100 or more
whole() {
	local total marked
	total=$(lines_total "$1")
	marked=$(lines_marked "$1")
	echo "# $total samples, $marked not whole" >&3
	[ "$total" -ge 100 ]
	[ $((marked * 50)) -le "$total" ]
}

# mostly FILE PATTERN: 9 of 10 of its stacks match, and there are 100 or more
mostly() {
	local total matching
	total=$(lines_total "$1")
	matching=$(lines_total "$1" "$2")
	echo "# $matching of $total samples are as expected" >&3
	[ "$total" -ge 100 ]
	[ $((matching * 10)) -ge $((total * 9)) ]
}

# gdb_agrees PID PATTERN FRAMES [TRACE]: stopped, every frame of gdb's is ours, file and line included,
# but for the lines of compare_frames.sh that match; and FRAMES or more are equal. TRACE is gdb_trace,
# unless it is given. Sets gdb_frames and gdb_equal.
gdb_agrees() {
	stop_all "$1"
	rm -f ours
	"$pmp" -p "$1" -k ours >lines 2>err
	"${4:-gdb_trace}" "$1" >gdbs 2>/dev/null || true
	kill -CONT "$1"
	cat lines err gdbs
	[ "$(lines_marked lines)" -eq 0 ]
	[ ! -s err ]
	"$BATS_TEST_DIRNAME/../tools/compare_frames.sh" ours gdbs >result
	sed "s/^/# $BATS_TEST_NUMBER: /" result >&3
	read -r gdb_frames _ _ _ gdb_equal _ <result
	[ "$gdb_equal" -ge "$3" ]
	sed 1d result >differences
	if [ -n "$2" ]; then
		no_line -vE "^ +[0-9]+ ($2)\$" differences
	else
		[ ! -s differences ]
	fi
}

# go_trace PID: gdb's, without what it has beyond the functions that begin a stack in Go, which do not
# say so: zeros, or what was left on the stack by others
go_trace() {
	gdb_trace "$1" | awk '/^Thread / { ended = 0 }
		!(ended && /^#/)
		/^#[0-9]+ .*[ ]runtime[.](clone|goexit|mcall|morestack|rt0_go|systemstack) [(]/ { ended = 1 }'
}

# gdb ends at main, unless told otherwise
past_main='we have (__libc_start_call_main|__libc_start_main_impl|_start)'

go_place='([(][a-z_0-9]+[.](go|s):[0-9]+[)])?'
go_chain="(main[.][.]turn$go_place,){21}main[.]deep[.]spin$go_place,main[.][.]spin,main[.]run$go_place,main[.]main[.]func1$go_place,runtime[.]goexit$go_place\$"

@test "Go: every thread is whole, by .debug_frame, and names are gdb's" {
	start_fixture spin_go wait
	reaches "$fixture_pid" 0 # read
	"$pmp" -p "$fixture_pid" -k kept >out 2>err
	cat out err
	[ ! -s err ]
	[ "$(lines_marked out)" -eq 0 ]
	[ "$(lines_total out)" -ge 3 ]
	[ "$(lines_total out "syscall[.]Read$go_place,main[.]wait$go_place,$go_chain")" -eq 1 ]
	# by the thread that watches the others: its first function is clone
	[ "$(lines_total out "runtime[.]sysmon$go_place,.*,runtime[.]mstart$go_place,runtime[.]clone$go_place\$")" -eq 1 ]
	# shortened, a method loses the type that it is of
	[ "$(grep -cE ' in main[.][(][*]ring[)][.]turn [(]' kept)" -eq 21 ]
	gdb_agrees "$fixture_pid" '' 40 go_trace
	[ "$gdb_equal" -eq "$gdb_frames" ]
}

@test "Go: a profile is whole, in a signal handler and on another stack too" {
	start_fixture spin_go spin
	profile "$fixture_pid"
	whole out
	mostly out "main[.]count$go_place,$go_chain"
	stop_fixture
	# the vDSO is called on the stack of the thread, not of the goroutine
	start_fixture spin_go clock
	profile "$fixture_pid"
	whole out
	mostly out "main[.]clock$go_place,$go_chain"
	[ "$(lines_total out "clock_gettime[^,]*,runtime[.]nanotime1$go_place,.*$go_chain")" -gt 0 ]
}

@test "Go: what a goroutine waits for" {
	start_fixture spin_go wait
	reaches "$fixture_pid" 0 # read
	"$pmp" -p "$fixture_pid" --mode=offcpu --no-kernel --duration 1.5 >out 2>err
	cat out err
	[ "$(lines_total out "syscall[.]Read$go_place,main[.]wait$go_place,$go_chain")" -gt 1400000 ]
	[ "$(lines_marked out)" -eq 0 ]
}

@test "Go without DWARF: by frame pointers as far as the first function, and said to be so" {
	local chain='main[.]{1,2}[[]?turn[]]?,'
	chain="($chain){21}main[.]deep[[]spin[]],main[.][[]spin[]],main[[]run[]],main[.]main[.]func1,runtime[.]goexit[.]abi0,[[]guessed[]]\$"
	start_fixture spin_go_w wait
	reaches "$fixture_pid" 0 # read
	"$pmp" -p "$fixture_pid" >out 2>err
	cat out err
	[ "$(lines_total out "main[[]wait[]],$chain")" -eq 1 ]
	[ "$(lines_total out '[[]guessed[]]$')" -eq "$(lines_total out)" ]
	stop_fixture
	for what in spin:count clock:clock; do
		start_fixture spin_go_w "${what%:*}"
		profile "$fixture_pid"
		stop_fixture
		mostly out "main[[]${what#*:}[]],$chain"
	done
}

@test "Rust with debug information: inlined functions, generic ones, closures, all as in gdb" {
	local chain='(spin::[{]impl#0[}]::turn<u32>,){21}spin::main::[{]closure#0[}]::[{]closure#0[}],spin::inner::apply<[^,]*>,spin::main::[{]closure#0[}],.*,start_thread[^,]*,clone3[^,]*$'
	start_fixture spin_rust_g wait
	reaches "$fixture_pid" 230 202 # clock_nanosleep, futex
	"$pmp" -p "$fixture_pid" >out 2>err
	cat out err
	[ ! -s err ]
	[ "$(lines_total out)" -eq 2 ]
	[ "$(lines_total out ",std::thread::sleep,$chain")" -eq 1 ]
	[ "$(lines_total out ',spin::main,.*,main,__libc_start_call_main[^,]*,__libc_start_main_impl[^,]*,_start$')" -eq 1 ]
	gdb_agrees "$fixture_pid" '' 50
	[ "$gdb_equal" -eq "$gdb_frames" ]
	"$pmp" -p "$fixture_pid" --mode=offcpu --no-kernel --duration 1.5 >out 2>err
	cat out err
	[ "$(lines_total out ",std::thread::sleep,$chain")" -gt 1400000 ]
	stop_fixture
	start_fixture spin_rust_g spin
	profile "$fixture_pid"
	whole out
	mostly out "spin::count,$chain"
	gdb_agrees "$fixture_pid" '' 50
	[ "$gdb_equal" -eq "$gdb_frames" ]
}

@test "Rust by its symbols, demangled as in gdb" {
	local chain='(::turn::h[0-9a-f]{16},){21}spin::inner::apply::h[0-9a-f]{16},.*,start_thread[^,]*,clone3[^,]*$'
	for fixture in spin_rust spin_rust_nodebug; do
		start_fixture $fixture wait
		reaches "$fixture_pid" 230 202 # clock_nanosleep, futex
		rm -f kept
		"$pmp" -p "$fixture_pid" -k kept >out 2>err
		cat out err
		[ ! -s err ]
		[ "$(lines_total out ",std::thread::sleep[^,]*,$chain")" -eq 1 ]
		# shortened, a method by way of a trait loses both
		[ "$(grep -cE ' in <spin::Ring<T> as spin::Turn>::turn::h[0-9a-f]{16} [(]' kept)" -eq 21 ]
		gdb_agrees "$fixture_pid" "$past_main" 35
		[ "$gdb_equal" -eq "$gdb_frames" ]
		stop_fixture
		start_fixture $fixture spin
		profile "$fixture_pid"
		whole out
		mostly out "spin::count::h[0-9a-f]{16},$chain"
		stop_fixture
	done
}

# start_python WORK: the distribution's, which is what its debug files are of
start_python() {
	/usr/bin/python3 "$lib_top/tests/fixtures/recurse.py" "$1" >ready 2>&1 </dev/null 3>&- &
	fixture_pid=$!
	disown "$fixture_pid"
	for _ in $(seq 500); do
		! grep -qx ready ready || return 0
		sleep 0.02
	done
	cat ready
	lib_fail "python3 did not come to be ready"
}

@test "python3 with its debug files: functions, inlined ones, files and lines are gdb's" {
	local chain='builtin_sum_impl[^,]*,builtin_sum[^,]*,.*,_PyEval_EvalFrameDefault[^,]*,.*,PyEval_EvalCode[^,]*,.*,pymain_run_file[^,]*,.*,Py_RunMain[^,]*,(pymain_main[^,]*,)?Py_BytesMain[^,]*,(main[^,]*,)?__libc_start_call_main[^,]*,__libc_start_main_impl[^,]*,_start$'
	start_python wait
	reaches "$fixture_pid" 230 # clock_nanosleep
	"$pmp" -p "$fixture_pid" >out 2>err
	cat out err
	[ ! -s err ]
	[ "$(lines_total out "clock_nanosleep[^,]*,pysleep[^,]*,time_sleep[^,]*,.*,_PyEval_EvalFrameDefault[^,]*,.*,map_next[^,]*,PyIter_Next[^,]*,$chain")" -eq 1 ]
	gdb_agrees "$fixture_pid" "$past_main" 25
	[ "$gdb_equal" -eq "$gdb_frames" ]
	stop_fixture
	start_python spin
	profile "$fixture_pid"
	whole out
	mostly out ",map_next[^,]*,PyIter_Next[^,]*,$chain"
	gdb_agrees "$fixture_pid" "$past_main" 25
	[ "$gdb_equal" -eq "$gdb_frames" ]
}

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups env -i LC_ALL=C "$@"
}

# start_postgres: a server of our own, on a socket only; sets postgres_pid and PGHOST
start_postgres() {
	local programs
	programs=$(find /usr/lib/postgresql/*/bin /usr/bin -maxdepth 1 -name initdb 2>/dev/null | sort -V | tail -n 1)
	programs=${programs%/initdb}
	# a socket's path has to be short
	export PGHOST
	PGHOST=$(mktemp -d /tmp/pmp-pg.XXXXXX)
	chown 65534:65534 "$PGHOST"
	(cd "$PGHOST" && as_nobody "$programs/initdb" -D "$PGHOST/data" -A trust -U pmp --no-sync) \
		>initdb.log 2>&1 </dev/null 3>&- || { cat initdb.log; return 1; }
	(cd "$PGHOST" && exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i LC_ALL=C \
		"$programs/postgres" -D "$PGHOST/data" -k "$PGHOST" -c listen_addresses= -c fsync=off \
		-c max_parallel_workers_per_gather=0 -c jit=off) >server.log 2>&1 </dev/null 3>&- &
	postgres_pid=$!
	disown "$postgres_pid"
	for _ in $(seq 200); do
		! psql -U pmp -XAtc 'select 1' postgres >/dev/null 2>&1 3>&- || return 0
		! lib_gone "$postgres_pid" || break
		sleep 0.05
	done
	cat server.log
	lib_fail "postgres did not come up"
}

# backend NAME QUERY: sets backend_pid to that of the server's process that runs it
backend() {
	PGAPPNAME=$1 psql -U pmp -XAtc "$2" postgres >/dev/null 2>&1 </dev/null 3>&- &
	disown $!
	for _ in $(seq 200); do
		backend_pid=$(psql -U pmp -XAtc "select pid from pg_stat_activity
			where application_name = '$1' and state = 'active'" postgres 3>&-)
		[ -z "$backend_pid" ] || return 0
		sleep 0.05
	done
	lib_fail "no backend runs $1"
}

@test "PostgreSQL: the server, a backend that sleeps and one that works" {
	local chain=',standard_ExecutorRun,.*,PortalRun,.*,PostgresMain,.*,PostmasterMain,main,__libc_start_call_main[^,]*,__libc_start_main_impl[^,]*,_start$'
	start_postgres
	backend sleeps 'select pg_sleep(600)'
	sleeper=$backend_pid
	backend works 'select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b
		where sqrt(a + b) < 0'
	worker=$backend_pid
	# they are active as soon as they have read the query
	reaches "$sleeper" 232 # epoll_wait
	await_cpu "$worker" 100000000
	"$pmp" -p "$postgres_pid,$sleeper,$worker" >out 2>err
	cat out err
	[ ! -s err ]
	[ "$(lines_total out)" -eq 3 ]
	[ "$(lines_total out "epoll_wait[^,]*,WaitEventSetWait,WaitLatch,pg_sleep,.*$chain")" -eq 1 ]
	[ "$(lines_total out "$chain")" -eq 2 ]
	[ "$(lines_total out ',PostmasterMain,main,__libc_start_call_main[^,]*,__libc_start_main_impl[^,]*,_start$')" -eq 3 ]
	profile "$worker"
	whole out
	mostly out "$chain"
	"$pmp" -p "$sleeper" --mode=offcpu --no-kernel --duration 1.5 >out 2>err
	cat out err
	[ "$(lines_total out "WaitLatch,pg_sleep,.*$chain")" -gt 1400000 ]
	gdb_agrees "$postgres_pid" "$past_main" 4
	[ "$gdb_equal" -eq "$gdb_frames" ]
	for backend_pid in "$sleeper" "$worker"; do
		gdb_agrees "$backend_pid" "$past_main" 10
		[ "$gdb_equal" -eq "$gdb_frames" ]
	done
	# it took no harm
	[ "$(psql -U pmp -XAtc 'select 6 * 7' postgres 3>&-)" = 42 ]
}
