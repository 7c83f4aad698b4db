#!/usr/bin/env bats
# --functions, --percent and --top, of text traces.

load ../live/lib

setup() {
	top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	pmp=$top/${B:-build}/bpf-pmp
	cd "$BATS_TEST_TMPDIR"
	export HOME=$BATS_TEST_TMPDIR LC_ALL=C
	printf 'main;do_something 8\nmain;idle;poll 1\nmain;idle 1\n' >folded
}

@test "--functions: own and total share, recursion counted once" {
	cat >want <<-'END'
		   self    total  function
		 80.00%   80.00%  do_something
		 10.00%   20.00%  idle
		 10.00%   10.00%  poll
		  0.00%  100.00%  main
	END
	"$pmp" --functions folded | cmp - want
	"$pmp" --functions <folded | cmp - want
	printf 'Thread 2\n#0  f (n=2)\n#1  f (n=1)\n#2  main ()\nThread 1\n#0  main ()\n' >recursive
	cat >want <<-'END'
		   self    total  function
		 50.00%  100.00%  main
		 50.00%   50.00%  f
	END
	"$pmp" --functions recursive | cmp - want
	"$pmp" --functions --percent recursive | cmp - want
}

@test "--percent: shares in place of counts" {
	cat >want <<-'END'
		 80.00% do_something,main
		 10.00% poll,idle,main
		 10.00% idle,main
	END
	"$pmp" --percent folded | cmp - want
	[ "$(echo 'a;b 3' | "$pmp" --percent)" = "100.00% b,a" ]
}

@test "--top: the first lines; shares are those of all" {
	[ "$("$pmp" --top 1 folded)" = "      8 do_something,main" ]
	[ "$("$pmp" --top=1 --percent folded)" = " 80.00% do_something,main" ]
	[ "$("$pmp" --top=1 --format=folded folded)" = "main;do_something 8" ]
	"$pmp" --top 2 --functions folded >out
	[ "$(tail -n 1 out)" = " 10.00%   20.00%  idle" ]
	[ "$(wc -l <out)" -eq 3 ]
	"$pmp" --top 0 folded | cmp - <("$pmp" folded)
	"$pmp" --top 99 folded | cmp - <("$pmp" folded)
}

@test "shares are of what --tids and -l leave" {
	printf 'Thread 2 (LWP 12):\n#0  a ()\n#1  b ()\nThread 1 (LWP 11):\n#0  c ()\n' >two
	[ "$("$pmp" --percent -t 12 two)" = "100.00% a,b" ]
	"$pmp" --functions -l 1 two >out
	no_line -q 'b$' out
	grep -qx ' 50.00%   50.00%  a' out
}

@test "every golden trace: no share is over 100%, and own shares come to 100%" {
	for input in "$top"/golden/read/*.in; do
		case $input in */bcc-folded*) continue ;; esac
		"$pmp" --functions "$input" |
			awk -v f="$input" 'NR > 1 { self += $1; if ($1 + 0 > $2 + 0 || $2 + 0 > 100) bad = 1 }
				END { if (bad || (NR > 1 && (self < 99.5 || self > 100.5))) { print f, self; exit 1 } }'
		"$pmp" --percent "$input" | cut -c 9- | cmp - <("$pmp" "$input" | sed 's/^ *[0-9]* //')
	done
}

@test "nothing to count: a heading, or nothing" {
	: >empty
	[ "$("$pmp" --functions empty)" = "   self    total  function" ]
	[ -z "$("$pmp" --percent empty)" ]
}

@test "an escape sequence in a name does not reach the terminal" {
	printf 'main;a\033[31mb 1\n' >escape
	"$pmp" --functions escape >out
	grep -qF 'a?[31mb' out
}

@test "as pt-pmp: the same lines as ever, and --percent for who asks" {
	"$pmp" folded >want
	printf 'Thread 1\n#0  a ()\n' >trace
	[ "$(BPF_PMP=$pmp "$top/compat/pt-pmp" trace)" = "      1 a" ]
	[ "$(BPF_PMP=$pmp "$top/compat/pt-pmp" --percent trace)" = "100.00% a" ]
	run env BPF_PMP="$pmp" "$top/compat/pt-pmp" --percents trace
	[ "$status" -eq 1 ]
	[ "$output" = "bpf-pmp: there is no option '--percents'; see --help" ]
}

@test "a config file's options for one mode do not stand in the way of another" {
	printf 'iterations=3\nfrequency=9\ntracer=gdb\nannotate\nmode=cpu\n' >.pt-pmp.conf
	printf 'all\ncount=many\nF=/etc/my.cnf\n' >.percona-toolkit.conf
	[ "$("$pmp" --top 1 folded)" = "      8 do_something,main" ]
	echo 'frequency=none' >.pt-pmp.conf
	[ "$("$pmp" --top 1 folded)" = "      8 do_something,main" ]
}
