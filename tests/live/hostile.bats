#!/usr/bin/env bats
# Files made to harm whoever reads them, behind code that runs: it always ends soon, takes little
# memory, and what is not theirs is named as ever.

load lib

setup() {
	pmp=$BATS_TEST_DIRNAME/../../${B:-build}/bpf-pmp
	tools=$(cd "$BATS_TEST_DIRNAME/../../${B:-build}/tests/tools" && pwd)
	# what reads debug information is nobody, who cannot enter bats' own folder
	work=$(mktemp -d /tmp/pmp-hostile.XXXXXX)
	chmod 755 "$work"
	cd "$work"
}

teardown() {
	stop_fixture
	cd /
	rm -rf "$work"
}

kinds="gcc_O2-4 gcc_O2-5 gcc_O2-zlib gcc_O2-dwz gcc_O2-split clang_O2-4 clang_O2-5"

# others FILE [cut]: of gdb's text, what is not of the mapping [$low, $high): frames without an
# address belong to what the one before them does. With `cut`, of each thread only what is inner to it.
others() {
	awk -v low="$low" -v high="$high" -v cut="${2:-}" '
		/^TS / { next }
		/^Thread / { theirs = over = 0; print; next }
		/^#/ {
			if ($2 ~ /^0x/)
				theirs = $2 >= low && $2 < high
			if (theirs && cut)
				over = 1
			if (theirs || over)
				next
			sub(/^#[0-9]+ +/, "")
			print
		}' "$1"
}

# the range of a library that the fixture has mapped, as gdb writes addresses; sets low and high
range_of() {
	read -r low high < <(awk -v f="$1" '$6 == f {
			split($1, ends, "-")
			if (!low)
				low = ends[1]
			high = ends[2]
		}
		END { print low, high }' "/proc/$fixture_pid/maps")
	[ -n "$high" ] || return 1
	low=$(printf '0x%016x' "0x$low")
	high=$(printf '0x%016x' "0x$high")
}

# read_time: of `cost`, sets peak, status and took, the milliseconds without those that it only waited for
# a CPU
read_time() {
	local wall waited
	read -r wall _ _ peak _ status waited <cost || return 1
	rm cost
	took=$((${wall%.*} - ${waited%.*}))
}

# look NAME: the stacks, as gdb would print them, to saved; what it cost to `costs`. The name says
# what the test is about, and whether (!) stacks may end where the victim is.
look() {
	rm -f saved
	"$tools/cost" -m -t 60 cost "$pmp" -p "$fixture_pid" --debug-dir "$work/debug" -k saved >out 2>err
	read_time || return 1
	echo "$took $peak $status $1" >>costs
	[ "$status" -eq 0 ] || { echo "$1: it ended with $status"; cat err; return 1; }
	[ "$took" -lt 5000 ] || { echo "$1: it took $took ms"; cat err; return 1; }
	[ "$peak" -lt 524288 ] || { echo "$1: it took $peak KiB"; cat err; return 1; }
	no_line -v '^bpf-pmp: ' err || { echo "$1: it says"; cat err; return 1; }
}

# look_sanitized NAME: and nothing that the sanitizers find. (What reads debug information has no way
# to say it: `make fuzz` sees to that.)
look_sanitized() {
	ASAN_OPTIONS=allocator_may_return_null=1 "$pmp-san" -p "$fixture_pid" --debug-dir "$work/debug" \
		>out 2>err && no_line -v '^bpf-pmp: ' err && return
	echo "$1: sanitized, it says"
	cat err
	return 1
}

# look_at_others NAME: the same, and all that is not the victim's is as in `good`
look_at_others() {
	local cut=
	[[ $1 != *! ]] || cut=cut
	look "$1" || return 1
	others good $cut >expected
	[ "$(wc -l <expected)" -gt 100 ] || { echo "$1: what is good has no other frames"; return 1; }
	others saved $cut | diff expected - || { echo "$1: other frames are harmed"; return 1; }
	grep -v '^TS ' good >all
	grep -v '^TS ' saved | diff -q all - >/dev/null || different=$((different + 1))
}

# start_victims: the good libraries, mapped; `good`: their stacks
start_victims() {
	local kind
	mkdir originals debug
	for kind in $kinds; do
		cp "$lib_fixtures/victim_$kind.so" originals/
	done
	cp "$lib_fixtures"/victim_*.alt originals/
	# where libdw looks first for what was split off: by its name, next to the library
	mkdir -p "originals/${B:-build}/fixtures"
	cp "$lib_fixtures"/victim_*.dwo "originals/${B:-build}/fixtures/"
	cp -r originals libraries
	# one of them has its debug information in a file of its own
	id=$(readelf -n libraries/victim_gcc_O2-5.so | sed -n 's/^ *Build ID: //p')
	mkdir -p "debug/.build-id/${id:0:2}"
	debug_file=debug/.build-id/${id:0:2}/${id:2}.debug
	cp libraries/victim_gcc_O2-5.so "$debug_file"
	strip libraries/victim_gcc_O2-5.so
	start_fixture victims libraries/victim_*.so
	: >costs
	different=0
	look good
	cp saved good
	cat good err
	[ ! -s err ]
	[ "$(grep -c ' in outer::.*::hold () at ' good)" -eq 14 ]
	[ "$(grep -c '^#[0-9]* *outer::second () at ' good)" -eq 14 ]
}

# damage NUMBER KIND ORIGINAL FILE: look at what a mutant in the place of FILE does
damage() {
	local bad=0
	range_of "$work/libraries/victim_$2.so" || return 1
	"$tools/mutate" "originals/$3" "$1" "$4" >name || return 1
	look_at_others "$1 $2 $(cat name)" || bad=1
	[ $((number % 4)) -ne 1 ] || look_sanitized "$1 $2 $(cat name)" || bad=1
	cat "originals/$3" >"$4"
	return $bad
}

# say_costs: how many there were, and the worst
say_costs() {
	sort -n costs | tail -n 5
	sort -k 2 -n costs | tail -n 3
	awk -v d=$different '{ if ($1 > ms) ms = $1; if ($2 > kib) kib = $2 }
		END { printf "# %d files, with %d of which the stacks are others; at most %d ms, %d MiB\n",
			NR - 1, d, ms, kib / 1024 }' costs >&3
}

@test "files that lie, each in its way, behind code that runs" {
	start_victims
	bad=0
	while read -r number _; do
		# shellcheck disable=SC2086
		set -- ${kinds/gcc_O2-5/}
		shift $((number % $#))
		damage "$number" "$1" "victim_$1.so" "libraries/victim_$1.so" || bad=1
	done < <("$tools/mutate" list)
	say_costs
	[ $bad -eq 0 ]
	[ $different -gt 50 ]
}

@test "files with random damage, behind code that runs" {
	start_victims
	bad=0
	for number in {1000..1089}; do
		# shellcheck disable=SC2086
		set -- ${kinds/gcc_O2-5/}
		shift $((number % $#))
		damage "$number" "$1" "victim_$1.so" "libraries/victim_$1.so" || bad=1
	done
	say_costs
	[ $bad -eq 0 ]
	[ $different -gt 20 ]
}

@test "debug files, what dwz moved out of them, and what the compiler split off, that lie" {
	start_victims
	bad=0
	while read -r number name; do
		# what unwinding needs is not taken from there
		[[ $name != *! ]] || continue
		[ $((number % 3)) -eq 0 ] || continue
		damage "$number" gcc_O2-5 victim_gcc_O2-5.so "$debug_file" || bad=1
	done < <("$tools/mutate" list)
	for number in {2000..2019}; do
		damage "$number" gcc_O2-5 victim_gcc_O2-5.so "$debug_file" || bad=1
	done
	[ $different -gt 20 ]
	different=0
	for number in {3000..3019}; do
		damage "$number" gcc_O2-dwz victim_gcc_O2-dwz.so.alt libraries/victim_gcc_O2-dwz.so.alt || bad=1
	done
	[ $different -gt 5 ]
	different=0
	for number in {4000..4019}; do
		split=${B:-build}/fixtures/victim_gcc_O2-split.dwo
		damage "$number" gcc_O2-split "$split" "libraries/$split" || bad=1
	done
	[ $different -gt 5 ]
	say_costs
	[ $bad -eq 0 ]
}

# opened PATH: of `calls`, what opened the file that is there now, whatever name that went by, for more
# than a handle
opened() {
	grep -F "<$1>" calls | grep -E '^[0-9]+ +open(at2?)?\(' | grep -v -e O_PATH -e '(deleted)$'
}

# not_opened PATH ARGUMENT...: it ends soon, and does not open what is at PATH; stacks are in `out`
not_opened() {
	local path=$1
	shift
	"$tools/cost" -m -t 60 cost strace -f -y -e trace=open,openat,openat2 -o calls \
		"$pmp" -p "$fixture_pid" "$@" >out 2>err
	read_time || return 1
	[ "$status" -eq 0 ] || { cat err; return 1; }
	no_line -v '^bpf-pmp: ' err || return 1
	[ "$took" -lt 5000 ] || lib_fail "$path: it took $took ms" || return 1
	if opened "$path"; then
		lib_fail "$path was opened"
	fi
}

# Each of the kinds of files that it may do harm to open, or that never end: make_special KIND PATH.
# Sets real, where it leads.
specials="fifo character block folder socket link_to_fifo link_to_device"
make_special() {
	rm -rf "$2" real_fifo
	real=$2
	case $1 in
	fifo) mkfifo "$2" ;;
	character) mknod "$2" c 1 5 ;; # as /dev/zero
	block) mknod "$2" b 7 0 ;;
	folder) mkdir "$2" ;;
	socket) perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die' "$2" ;;
	link_to_fifo)
		mkfifo real_fifo
		ln -s "$work/real_fifo" "$2"
		real=$work/real_fifo
		;;
	link_to_device)
		ln -s /dev/zero "$2"
		real=/dev/zero
		;;
	esac
	[[ $real == /* ]] || real=$work/$real
}

@test "no FIFO, device, folder or socket is opened as a debug file, nor a link to one" {
	start_victims
	n=0
	for kind in $specials; do
		make_special "$kind" "$debug_file"
		not_opened "$real" --debug-dir "$work/debug"
		# it was found, and the rest is as ever
		grep -F "$debug_file" calls | grep -q O_PATH
		grep -q ',outer::second,' out
		n=$((n + 1))
	done
	rm -rf "$debug_file"
	# that the test would see it
	cp originals/victim_gcc_O2-5.so "$debug_file"
	timeout 10 strace -f -y -e trace=open,openat,openat2 -o calls "$pmp" -p "$fixture_pid" --debug-dir "$work/debug" >out
	opened "$work/$debug_file"
	[ "$n" -eq 7 ]
}

@test "nor by .gnu_debuglink, nor where dwz moved something to" {
	start_victims
	# the checksum is of no file there
	cp originals/victim_gcc_O2-5.so named.debug
	objcopy --remove-section .note.gnu.build-id --add-gnu-debuglink=named.debug \
		libraries/victim_gcc_O2-5.so linked.so
	stop_fixture
	start_fixture victims "$work/linked.so" libraries/victim_gcc_O2-dwz.so
	for kind in $specials; do
		make_special "$kind" named.debug
		not_opened "$real"
		grep -F named.debug calls | grep -q O_PATH
		make_special "$kind" libraries/victim_gcc_O2-dwz.so.alt
		not_opened "$real"
		grep -F victim_gcc_O2-dwz.so.alt calls | grep -q O_PATH
		# its symbols are there
		grep -q ',outer::first,' out
	done
}

@test "nor as what the compiler split off, next to the file or where it was compiled" {
	name=$(readelf --debug-dump=info "$lib_fixtures/victim_gcc_O2-split.so" 2>/dev/null |
		sed -nE 's/^.*DW_AT_(GNU_)?dwo_name.*: ([^ ]+)$/\2/p' | head -n 1)
	[[ $name == */*.dwo ]] # so that it is looked for in a folder next to the library
	mkdir -p "there/${name%/*}"
	cp "$lib_fixtures/victim_gcc_O2-split.so" there
	start_fixture victims "$work/there/victim_gcc_O2-split.so"
	for kind in $specials; do
		make_special "$kind" "there/$name"
		not_opened "$real"
		grep -q ',outer::first,' out
	done
}

@test "nor in the place of a file that is mapped, nor as a JIT's names" {
	start_victims
	tail -n +2 out | sort >before
	for kind in $specials; do
		make_special "$kind" libraries/victim_gcc_O2-4.so
		not_opened "$real" --debug-dir "$work/debug"
		tail -n +2 out | sort | diff before -
	done
	stop_fixture
	start_fixture pcre2_jit
	map=/tmp/perf-$fixture_pid.map
	for kind in $specials; do
		make_special "$kind" "$map"
		not_opened "$real"
		grep -F "$map" calls | grep -q O_PATH
		rm -rf "$map"
	done
}

@test "a link in another root does not lead out of it" {
	mkdir -p root/debug root/proc root/usr/lib/debug "root$work/libraries"
	start_victims
	stop_fixture
	rm -rf "$debug_file"
	cp originals/victim_gcc_O2-5.so outside.debug
	strip -g originals/victim_gcc_O2-5.so -o "root$work/libraries/v.so"
	strip "root$work/libraries/v.so"
	mkdir -p "root/usr/lib/debug/.build-id/${id:0:2}"
	inside=usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
	ldd "$lib_fixtures/victims" originals/victim_gcc_O2-5.so | grep -o '/[^ ]*' | grep -v ':$' | sort -u |
		while read -r f; do
			mkdir -p "root$(dirname "$f")"
			cp -L "$f" "root$f"
		done
	cp "$lib_fixtures/victims" root/victims
	chroot root /victims "$work/libraries/v.so" >ready 2>&1 </dev/null 3>&- &
	fixture_pid=$!
	disown
	for _ in $(seq 250); do
		! grep -qx ready ready || break
		sleep 0.02
	done
	# relative and by magic links too
	for link in "$work/outside.debug" "../../../../../../../../$work/outside.debug" \
		"/proc/1/root$work/outside.debug" "/proc/self/root$work/outside.debug"; do
		ln -sfn "$link" "root/$inside"
		not_opened "$work/outside.debug"
		grep -F "${id:2}.debug" calls | grep -q O_PATH
		no_line 'outer::second' out
	done
	# that the names would be seen
	cp -f --remove-destination outside.debug "root/$inside"
	"$pmp" -p "$fixture_pid" >out
	grep -q 'outer::second' out
}

@test "257 functions of 64 KiB inlined in each of 4,000 frames: names are left out, and that is said" {
	printf x >one
	objcopy --add-section .debug_info=one --add-section .debug_abbrev=one "$lib_fixtures/recurse" full
	strip full -o recurse
	id=$(readelf -n recurse | sed -n 's/^ *Build ID: //p')
	mkdir -p "debug/.build-id/${id:0:2}"
	./recurse 4000 >ready </dev/null 2>&1 3>&- &
	fixture_pid=$!
	disown
	until grep -qx ready ready; do sleep 0.02; done
	n=0
	while read -r number name; do
		[[ $name == *"functions inlined in each other, of"* ]] || continue
		"$tools/mutate" full "$number" "debug/.build-id/${id:0:2}/${id:2}.debug"
		look "$name"
		tail -n 1 costs
		[ "$(cat err)" = "bpf-pmp: 1 stack has more than 4 MiB of names: inlined functions and long names are left out" ]
		# what is not of that file is there, at the very end
		grep -qE '^#[0-9]+ .* in (__libc_start_main|_start) ' saved
		[ "$(grep -c '^#' saved)" -gt 4000 ]
		[ "$(wc -c <out)" -lt 5000000 ]
		n=$((n + 1))
	done < <("$tools/mutate" list)
	[ "$n" -eq 2 ]
}
