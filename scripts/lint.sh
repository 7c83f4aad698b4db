#!/bin/sh
# Static checks: the format of C files, line lengths, cppcheck, shellcheck. Tools that are not
# installed are named and fail the run.
set -u
cd "$(dirname "$0")/.." || exit
bad=0

need() {
	command -v "$1" >/dev/null 2>&1 && return 0
	echo "lint: $1 is not installed (scripts/install-deps.sh --test installs it)" >&2
	bad=1
	return 1
}

long=$(for f in src/*.c src/*/*.[ch] bpf/*.[ch]; do
	expand -t 8 "$f" | awk -v f="$f" 'length($0) > 100 { print f ":" NR }'
done)
if [ -n "$long" ]; then
	printf 'longer than 100 columns:\n%s\n' "$long"
	bad=1
fi
if need clang-format; then
	clang-format --dry-run -Werror src/*.c src/*/*.[ch] bpf/*.[ch] || bad=1
fi
# uninitvar, ctuuninitvar and signConversion: it does not see through uthash, nor that a cast came first
if need cppcheck; then
	cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr \
		--suppress=missingIncludeSystem --suppress=unknownMacro \
		--suppress=uninitvar --suppress=ctuuninitvar --suppress=signConversion --error-exitcode=1 \
		-Isrc -I. -D__x86_64__ src || bad=1
fi
if need shellcheck; then
	find . \( -name '*.sh' -o -name '*.t' -o -path ./compat/pt-pmp \) -not -path './build/*' -print0 |
		xargs -0 shellcheck -x -S warning || bad=1
fi
[ $bad -eq 0 ] && echo "lint: ok"
exit $bad
