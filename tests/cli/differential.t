#!/bin/bash
# Generated traces through the packaged pt-pmp's own function and through us, byte for byte: TRACES
# (2000) of them, one after the other with gawk and mawk, in the C locale and in en_US, made from
# nothing and out of real captures, with and without --lines. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
TRACES=${TRACES:-2000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/gawk" "$dir/mawk"
ln -s "$(command -v gawk)" "$dir/gawk/awk"
ln -s "$(command -v mawk)" "$dir/mawk/awk"
# shellcheck disable=SC1090
. "$(command -v pt-pmp)"
set -uo pipefail
path=$PATH
differences=0
captures=(golden/captures/*.txt golden/read/gdb-threads.in)

echo 1..4
for ((i = 0; i < TRACES; i++)); do
	lines=0
	case $((i % 3)) in
	0) form=(full) ;;
	1) form=(bare) lines=$((i / 3 % 5)) ;;
	2) form=("${captures[@]}") ;;
	esac
	if ((i / 2 % 2)); then awk=gawk; else awk=mawk; fi
	if ((i % 2)); then locale=C; else locale=en_US.UTF-8; fi
	"$B/tests/tools/make_trace" "$i" 12 "${form[@]}" >"$dir/trace" || break
	# a byte that is no UTF-8 is a byte to mawk and to us; gawk's brackets match it in C only
	if [ "$awk-$locale" = gawk-en_US.UTF-8 ]; then
		LC_ALL=C tr '\377' y <"$dir/trace" >"$dir/utf8"
		mv "$dir/utf8" "$dir/trace"
	fi
	PATH=$dir/$awk:$path LC_ALL=$locale aggregate_stacktrace "$lines" "$dir/trace" \
		>"$dir/theirs" 2>/dev/null
	LC_ALL=$locale "$B/bpf-pmp" --input=gdb -l "$lines" "$dir/trace" >"$dir/ours"
	[ -s "$dir/theirs" ] || break
	if ! cmp -s "$dir/theirs" "$dir/ours"; then
		differences=$((differences + 1))
		if [ $differences -le 3 ]; then
			echo "# seed $i, ${form[*]}, $awk, $locale, --lines $lines"
			diff "$dir/theirs" "$dir/ours" | head -n 6 | sed 's/^/# /'
		fi
	fi
done
echo "# $i traces, $differences differences"
[ "$i" -eq "$TRACES" ] && echo "ok 1 - $TRACES traces were made and aggregated" ||
	echo "not ok 1 - only $i traces"
[ $differences -eq 0 ] && echo "ok 2 - they are aggregated as the packaged pt-pmp does" ||
	echo "not ok 2 - $differences traces differ"

# the whole program, too
differences=0
for i in 1 2 3 4 5 6; do
	"$B/tests/tools/make_trace" "$i" 400 full >"$dir/trace"
	LC_ALL=C pt-pmp "$dir/trace" >"$dir/theirs" 2>/dev/null
	LC_ALL=C "$B/bpf-pmp" "$dir/trace" | cmp -s "$dir/theirs" - || differences=$((differences + 1))
	[ -s "$dir/theirs" ] || differences=$((differences + 1))
done
[ $differences -eq 0 ] && echo "ok 3 - the whole program" || echo "not ok 3 - the whole program"

# several files are one stream
"$B/tests/tools/make_trace" 7 50 full >"$dir/a"
"$B/tests/tools/make_trace" 8 50 full >"$dir/b"
LC_ALL=C pt-pmp "$dir/a" "$dir/b" >"$dir/theirs" 2>/dev/null
LC_ALL=C "$B/bpf-pmp" "$dir/a" "$dir/b" | cmp -s "$dir/theirs" - && echo "ok 4 - several files" ||
	echo "not ok 4 - several files"
