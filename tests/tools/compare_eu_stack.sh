#!/bin/sh
# Compares every frame's address of two captures of one stopped process:
#
#	compare_eu_stack.sh EU_STACK_OUTPUT GDB_TEXT
#
# The first is what `eu-stack -n 0 -p PID` printed, the second gdb's text, as `bpf-pmp -k` writes
# it. Threads are matched by their ids. Frames of GDB_TEXT without an address (gdb's inline
# frames, marks such as [truncated]) are left out, `<signal handler called>` stands for one frame
# of eu-stack's. Says how much was compared, how many differences there are, and the first 20 of
# them; exits 1 if there are any or if nothing was compared.
set -u
if [ $# -ne 2 ]; then
	echo "usage: compare_eu_stack.sh EU_STACK_OUTPUT GDB_TEXT" >&2
	exit 2
fi
for file in "$@"; do
	[ -r "$file" ] || { echo "compare_eu_stack.sh: cannot read $file" >&2; exit 2; }
done
LC_ALL=C awk '
	# 0x00007f -> 7f: addresses are compared as text, they do not fit into a number of awk
	function address(s)
	{
		sub(/^0x0*/, "", s)
		return tolower(s) == "" ? "0" : tolower(s)
	}
	function differ(text)
	{
		if (++differences <= 20)
			first = first "  " text "\n"
	}
	FNR == 1 { input++ }
	input == 1 && /^TID [0-9]+:/ {
		tid = $2 + 0
		theirs[tid] = 0
		next
	}
	input == 1 && /^#[0-9]/ {
		returns[tid, theirs[tid]] = NF < 3 || $3 ~ /^__restore_rt/
		their[tid, theirs[tid]++] = address($2)
		next
	}
	input == 2 && /^Thread / {
		tid = -1
		if (match($0, /LWP [0-9]+/))
			tid = substr($0, RSTART + 4, RLENGTH - 4) + 0
		if (tid in ours)
			differ("thread " tid " is there twice")
		ours[tid] = 0
		next
	}
	input == 2 && /^#[0-9]+ +(0x[0-9a-f]+ in )?\[/ { next }
	input == 2 && /^#[0-9]+ +<signal handler called>/ { our[tid, ours[tid]++] = "signal"; next }
	input == 2 && /^#[0-9]+ +0x/ { our[tid, ours[tid]++] = address($2); next }
	END {
		for (tid in theirs) {
			if (!(tid in ours)) {
				differ("thread " tid " is missing in the second")
				continue
			}
			threads++
			n = theirs[tid] > ours[tid] ? theirs[tid] : ours[tid]
			if (theirs[tid] != ours[tid])
				differ("thread " tid ": " theirs[tid] " frames against " ours[tid])
			for (i = 0; i < n; i++) {
				a = i < theirs[tid] ? their[tid, i] : "nothing"
				b = i < ours[tid] ? our[tid, i] : "nothing"
				if (i < theirs[tid] && i < ours[tid])
					frames++
				if (a != b && !(b == "signal" && returns[tid, i]))
					differ("thread " tid " frame " i ": " a " against " b)
			}
		}
		for (tid in ours)
			if (!(tid in theirs))
				differ("thread " tid " is missing in the first")
		printf "%d threads, %d frames compared; %d differences\n",
			threads, frames, differences
		printf "%s", first
		exit differences > 0 || !threads || !frames
	}' "$1" "$2"
