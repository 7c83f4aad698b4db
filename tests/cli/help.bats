#!/usr/bin/env bats
# What the program says of itself.

load ../live/lib

setup() {
	top=$BATS_TEST_DIRNAME/../..
	pmp=$top/${B:-build}/bpf-pmp
}

@test "the version comes from the file VERSION" {
	run "$pmp" --version
	[ "$status" -eq 0 ]
	[ "$output" = "bpf-pmp $(cat "$top/VERSION")" ]
	head -n 1 "$top/NEWS" | grep -qx "bpf-pmp $(cat "$top/VERSION")"
}

@test "the help is on standard output, and fits 100 columns" {
	"$pmp" --help >"$BATS_TEST_TMPDIR/help" 2>"$BATS_TEST_TMPDIR/err"
	[ ! -s "$BATS_TEST_TMPDIR/err" ]
	no_line -nE '^.{101,}' "$BATS_TEST_TMPDIR/help"
	grep -q '^Usage: bpf-pmp' "$BATS_TEST_TMPDIR/help"
}

@test "every option of the README's examples is one of the help's" {
	"$pmp" --help >"$BATS_TEST_TMPDIR/help"
	for option in $(grep -oE -- '(^|[ `])--[a-z][a-z-]+' "$top/README.md" | tr -d ' `' | sort -u); do
		case $option in --test) continue ;; esac
		grep -q -- "$option" "$BATS_TEST_TMPDIR/help" || { echo "$option"; false; }
	done
}

@test "--check says what works, one line each" {
	run "$pmp" --check
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"BTF: ok"* ]]
	[[ $output == *"BPF programs: ok"* ]]
	[[ $output == *"thread iterator: ok"* ]]
	[[ $output == *"CPU sampling: ok"* ]]
	[[ $output == *"kernel symbols: ok"* ]]
	[[ $output == *"lockdown: "* ]]
	[[ $output == *"access to processes: ok"* ]]
}

@test "--check fails where the default mode cannot run, and says why" {
	run setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
		"$pmp" --check
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"CAP_BPF"* ]]
}

@test "hardened: PIE, full RELRO, no executable stack" {
	readelf -hW "$pmp" | grep -q 'Type: *DYN'
	readelf -lW "$pmp" | grep -q GNU_RELRO
	readelf -dW "$pmp" | grep -q BIND_NOW
	readelf -lW "$pmp" | grep GNU_STACK | grep -q 'RW '
}
