#!/bin/bash
# compare_frames.sh OURS GDBS: two traces of one stopped process in gdb's form, ours and gdb's own.
# Each thread's frames are shortened as pt-pmp does, file and line included, and compared from the
# outermost on. Prints `N frames of gdb's, N equal, N where gdb says less; N threads, N equal`, then
# what differs, with how often; fails if the threads are not the same. gdb says less where it has no
# line, or an error in place of an argument's value, whose ` at ` pt-pmp takes for the file's.
set -euo pipefail
pmp=$(dirname "$0")/../../${B:-build}/bpf-pmp
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# one_line_each FILE TO: `LWP frame,frame,...` for each thread
one_line_each() {
	local file
	mkdir "$dir/$2"
	# a dialog of gdb's may come before the first thread
	awk -v dir="$dir/$2" '/^Thread .*LWP [0-9]+/ {
			match($0, /LWP [0-9]+/)
			file = dir "/" substr($0, RSTART + 4, RLENGTH - 4)
		}
		file { print > file }' "$1"
	for file in "$dir/$2"/*; do
		# one thread, so one line; shortening one name at a time keeps commas in names apart
		printf '%s %s\n' "${file##*/}" \
			"$("$pmp" --dumper=gdb --format=folded "$file" | sed 's/ [0-9]*$//')"
	done >"$dir/$2.lines"
}

one_line_each "$1" ours
one_line_each "$2" gdbs
awk -v ours="$dir/ours.lines" '
	function frames_of(line, frames) {
		sub(/^[0-9]+ /, "", line)
		return split(line, frames, ";")
	}
	BEGIN {
		while ((getline line < ours) > 0)
			mine[line + 0] = line
	}
	{
		threads++
		if (!($1 in mine)) {
			missing++
			next
		}
		n = frames_of($0, g)
		m = frames_of(mine[$1], o)
		delete mine[$1]
		total += n
		same = n == m
		# the outermost comes first; what one has more of is skipped over
		i = j = 1
		while (i <= n && j <= m) {
			if (g[i] == o[j]) {
				equal++
				i++
				j++
				continue
			}
			same = 0
			bare = o[j]
			sub(/[(][^()]*:[0-9]+[)]$/, "", bare)
			if (bare == g[i] || (index(g[i], bare) == 1 && g[i] ~ /<errorreadingvariable/)) {
				more++
				count["gdb says less: " g[i] ", we " o[j]]++
				i++
				j++
				continue
			}
			for (k = 1; k <= 8; k++)
				if ((i + k <= n && g[i + k] == o[j]) || (j + k <= m && g[i] == o[j + k]))
					break
			if (k <= 8 && i + k <= n && g[i + k] == o[j]) {
				while (k-- > 0)
					count["gdb has " g[i++]]++
			} else if (k <= 8) {
				while (k-- > 0)
					count["we have " o[j++]]++
			} else {
				count["gdb " g[i++] ", we " o[j++]]++
			}
		}
		for (; i <= n; i++)
			count["gdb has " g[i]]++
		for (; j <= m; j++)
			count["we have " o[j]]++
		whole += same
	}
	END {
		for (lwp in mine)
			missing++
		printf "%d frames of gdb'"'"'s, %d equal, %d where gdb says less; %d threads, %d equal\n",
			total, equal, more, threads, whole
		for (what in count)
			printf "%7d %s\n", count[what], what | "sort -rn"
		close("sort -rn")
		if (missing)
			printf "%d threads are not in both\n", missing
		exit missing > 0
	}' "$dir/gdbs.lines"
