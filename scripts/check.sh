#!/bin/sh
# Installs what building and testing needs, builds, and runs every test. Needs root: the tests load
# BPF programs and look into other processes.
set -eu
cd "$(dirname "$0")/.."
# bpftool and mariadbd are there
PATH=$PATH:/usr/sbin:/sbin
export PATH
if [ "$(id -u)" -ne 0 ]; then
	echo "check: needs root, to load BPF programs: sudo scripts/check.sh" >&2
	exit 1
fi
echo "check: installing what is missing"
scripts/install-deps.sh --test
echo "check: building and running the tests"
exec make check
