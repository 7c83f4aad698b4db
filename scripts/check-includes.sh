#!/bin/sh
# Checks that includes go one way: base <- model <- every other folder; besides,
# sym -> proc and dwarf; capture -> proc, unwind and bpf/abi.h; unwind -> bpf/abi.h. main.c sees everything.
set -eu
cd "$(dirname "$0")/.."

# may FROM TO: whether a file of folder FROM may include a header of folder TO
may() {
	[ "$1" = "$2" ] && return 0
	case "$1:$2" in
	base:*) return 1 ;;
	*:base) return 0 ;;
	model:*) return 1 ;;
	*:model) return 0 ;;
	sym:proc | sym:dwarf | capture:proc | capture:unwind | capture:bpf | unwind:bpf) return 0 ;;
	esac
	return 1
}

bad=0
for file in src/*/*.[ch]; do
	from=${file#src/}
	from=${from%%/*}
	for to in $(sed -n 's,^#include "\([a-z]*\)/.*,\1,p' "$file" | sort -u); do
		if ! may "$from" "$to"; then
			echo "$file: $from must not include from $to" >&2
			bad=1
		fi
	done
done
exit $bad
