#!/usr/bin/env bats
# compat/pt-pmp, run and sourced.

setup() {
	top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	shim=$top/compat/pt-pmp
	BPF_PMP=$(cd "$top" && cd "${B:-build}" && pwd)/bpf-pmp
	HOME=$BATS_TEST_TMPDIR/home
	export BPF_PMP HOME
	export LC_ALL=C
	mkdir "$HOME"
	cd "$BATS_TEST_TMPDIR"
	cat >trace.txt <<-'END'
		Thread 3 (Thread 0x7f01 (LWP 13)):
		#0  0x00007f0000000001 in poll () from /lib/x86_64-linux-gnu/libc.so.6
		#1  0x0000560000000002 in wait_for (this=0x1) at ./sql/net.cc:7
		#2  0x0000560000000003 in ns::run<int>(int, char const*) ()
		Thread 2 (Thread 0x7f02 (LWP 12)):
		#0  0x00007f0000000001 in poll () from /lib/x86_64-linux-gnu/libc.so.6
		#1  0x0000560000000002 in wait_for (this=0x2) at ./sql/net.cc:7
		#2  0x0000560000000003 in ns::run<int>(int, char const*) ()
		Thread 1 (LWP 11):
		#0  main (argc=1) at main.c:3
	END
	cat >all <<-'END'
		      2 poll(libc.so.6),wait_for,ns::run<int>
		      1 main
	END
	cat >two <<-'END'
		      2 poll(libc.so.6),wait_for
		      1 main
	END
	cat >twelve <<-'END'
		      1 poll(libc.so.6),wait_for,ns::run<int>
	END
}

# sourced SCRIPT: run by a strict bash that has sourced the shim; standard output goes to the file
# out, standard error has to stay empty
sourced() {
	local status=0
	bash -euo pipefail -c '. "$1"; '"$1" bash "$shim" >out 2>err || status=$?
	cat out err
	[ "$status" -eq 0 ]
	[ ! -s err ]
}

@test "run: the lines of a file, and nothing before them" {
	"$shim" trace.txt >out
	cmp out all
	"$shim" -l 2 trace.txt >out
	cmp out two
	"$shim" --lines=2 --tids 12 trace.txt >out
	[ "$(cat out)" = "      1 poll(libc.so.6),wait_for" ]
}

@test "run: --version and --help end with status 0" {
	"$shim" --version >out
	[ "$(wc -l <out)" -eq 1 ]
	"$shim" --help >out
	[ -s out ]
}

@test "run: status 0 and one line of reason where pt-pmp has 0, 1 where it has 1" {
	"$shim" -b pmp_no_such_server >out 2>err
	[ "$(wc -l <err)" -eq 1 ]
	"$shim" no/such/file >out 2>err
	[ ! -s out ]
	[ "$(wc -l <err)" -eq 1 ]
	grep -qF no/such/file err
	"$shim" no/such/file trace.txt >out 2>err
	cmp out all
	run "$shim" --frobnicate
	[ "$status" -eq 1 ]
	run "$BPF_PMP" no/such/file
	[ "$status" -eq 1 ]
}

@test "run: it is called pt-pmp, and its words arrive as they are" {
	ln -s "$(command -v bash)" bpf-pmp
	# bash shows its argv[0] as $0
	BPF_PMP=./bpf-pmp run "$shim" -c 'echo "$0"'
	[ "$output" = pt-pmp ]
	BPF_PMP=./bpf-pmp run "$shim" -c 'printf "<%s>" "$@"' x "a  b" "" '*'
	[ "$output" = '<a  b><><*>' ]
}

@test "the program is found by BPF_PMP, beside the shim, in ../bin, and in PATH" {
	program=$BPF_PMP
	unset BPF_PMP
	mkdir -p "with blank" prefix/bin prefix/compat path
	cp "$shim" "with blank"
	ln -s "$program" "with blank/bpf-pmp"
	"with blank/pt-pmp" trace.txt | cmp - all
	cp "$shim" prefix/compat
	ln -s "$program" prefix/bin/bpf-pmp
	prefix/compat/pt-pmp trace.txt | cmp - all
	# through a link: beside the file itself
	ln -s ../prefix/compat/pt-pmp path/pt-pmp
	PATH=$PWD/path:$PATH pt-pmp trace.txt | cmp - all
	rm path/pt-pmp
	cp "$shim" path
	PATH=$PWD/prefix/bin:$PATH path/pt-pmp trace.txt | cmp - all
	(cd path && PATH=$PWD/../prefix/bin:$PATH bash pt-pmp ../trace.txt) | cmp - all
	# BPF_PMP is before them all
	BPF_PMP=$(type -P true) "with blank/pt-pmp" trace.txt >out
	[ ! -s out ]
}

@test "without a program it says so" {
	mkdir alone
	cp "$shim" alone
	unset BPF_PMP
	run env PATH=/usr/bin:/bin alone/pt-pmp trace.txt
	[ "$status" -eq 1 ]
	[[ $output == "pt-pmp: bpf-pmp is neither beside "*"/alone/pt-pmp nor in PATH;"* ]]
	[ "${#lines[@]}" -eq 1 ]
	run env BPF_PMP=no/such/program alone/pt-pmp trace.txt
	[ "$status" -eq 1 ]
	[ "$output" = "pt-pmp: BPF_PMP=no/such/program is no program" ]
}

@test "sourced: standard input, with no argument at all" {
	sourced 'cat trace.txt | aggregate_stacktrace'
	cmp out all
	sourced 'aggregate_stacktrace <trace.txt'
	cmp out all
}

@test "sourced: 3.2.1's form, MAXLEN and FILES" {
	sourced 'aggregate_stacktrace 2 <trace.txt'
	cmp out two
	sourced 'aggregate_stacktrace 0 trace.txt'
	cmp out all
	sourced 'cat trace.txt | aggregate_stacktrace 2 -'
	cmp out two
	sourced 'aggregate_stacktrace 2 <(cat trace.txt)'
	cmp out two
	sourced 'aggregate_stacktrace "" trace.txt'
	cmp out all
	sourced 'aggregate_stacktrace 0 trace.txt trace.txt'
	grep -qx '      4 poll(libc.so.6),wait_for,ns::run<int>' out
}

@test "sourced: 3.5.7's form, MAXLEN, TIDS and FILES" {
	sourced 'aggregate_stacktrace 2 "" trace.txt'
	cmp out two
	sourced 'aggregate_stacktrace 0 12 trace.txt'
	cmp out twelve
	sourced 'aggregate_stacktrace 0 12 <trace.txt'
	cmp out twelve
	sourced 'aggregate_stacktrace 0 "*" trace.txt'
	cmp out all
	mkdir 12 # no trace
	sourced 'aggregate_stacktrace 0 12 trace.txt'
	cmp out twelve
}

@test "sourced: names with blanks, any IFS, another folder, no file" {
	cp trace.txt 'a trace'
	sourced 'IFS=-=012; aggregate_stacktrace 0 "a trace"'
	cmp out all
	sourced 'IFS=-=012; aggregate_stacktrace 0 12 "a trace"'
	cmp out twelve
	mkdir away
	cp "$shim" away
	ln -s "$BPF_PMP" away/bpf-pmp
	env -u BPF_PMP bash -euc 'cd away; . ./pt-pmp; cd ..; aggregate_stacktrace 0 trace.txt' >out
	cmp out all
	bash -euc '. "$1"; aggregate_stacktrace 0 no/such; echo on' bash "$shim" >out 2>err
	[ "$(cat out)" = on ]
	grep -qF no/such err
}

@test "sourced: pt-pmp's config files are not read; run: they are" {
	echo lines=2 >"$HOME/.pt-pmp.conf"
	sourced 'aggregate_stacktrace 0 trace.txt'
	cmp out all
	"$shim" trace.txt >out
	cmp out two
	"$shim" -l 0 trace.txt >out
	cmp out all
}

@test "sourced: the shell's options and variables stay as they were" {
	cat >script <<-'END'
		state() {
			set +o
			shopt
			compgen -v | grep -vx '_\|BASH_.*\|PIPESTATUS\|FUNCNAME\|LINENO\|RANDOM\|SECONDS'
			compgen -A function
		}
		maxlen=a tids=b program=c here=d
		state >before
		. "$1"
		cat trace.txt | aggregate_stacktrace 2 >out
		aggregate_stacktrace 2 12 trace.txt >>out
		echo "$maxlen $tids $program $here $#" >values
		state >after
	END
	for options in +e -eu '-eu -o pipefail' '-eu -o posix -C -f'; do
		rm -f before after out values
		# shellcheck disable=SC2086 # several words
		bash $options script "$shim" one two
		[ "$(cat values)" = 'a b c d 3' ]
		grep -vx '_bpf_pmp_.*\|aggregate_stacktrace' after | diff before -
	done
}

@test "shellcheck finds nothing in it" {
	command -v shellcheck >/dev/null || skip "shellcheck is not installed"
	shellcheck "$shim"
}
