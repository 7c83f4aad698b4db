#!/bin/sh
# Serves this machine's root to a guest, read-only: tests/kernels/serve.sh SOCKET ROOT DIR..., where
# ROOT is an empty directory to mount it on. To be run in a mount namespace of its own. Of other
# file systems only those are to be seen that the DIRs are on.
set -eu
socket=$1
root=$2
shift 2
mount --bind / "$root"
# virtiofsd has no option for it
mount -o remount,bind,ro "$root"
for dir in "$@"; do
	awk -v dir="$dir/" '$5 != "/" && index(dir, $5 "/") == 1 { print $5 }' \
		/proc/self/mountinfo |
		while read -r mount; do
			mount --bind "$mount" "$root$mount"
			mount -o remount,bind,ro "$root$mount"
		done
done
# these options are understood by qemu's virtiofsd and by the one that came after it
exec virtiofsd --socket-path="$socket" -o source="$root" -o cache=always
