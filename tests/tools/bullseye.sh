#!/bin/sh
# Parts of Debian 11, unpacked and not installed: tests/tools/bullseye.sh DIR. DIR then holds root/, in
# which its C library, busybox, dash and xz run; devel/, to link programs for it (gcc's --sysroot); debug/,
# the library's debug files. A DIR that has them is left as it is.
set -eu

die() {
	echo "bullseye: $*" >&2
	exit 1
}

[ $# -eq 1 ] || die "usage: tests/tools/bullseye.sh DIR"
dir=$1
[ ! -e "$dir" ] || exit 0
mkdir -p "$(dirname "$dir")"
tmp=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
tmp=$(cd "$tmp" && pwd)
"$(dirname "$0")/debian_suite.sh" bullseye "$tmp/apt" || die "there is no Debian 11"

# unpack PART PACKAGE...
unpack() {
	part=$1
	shift
	mkdir -p "$tmp/out/$part" "$tmp/debs"
	(cd "$tmp/debs" && APT_CONFIG=$tmp/apt/apt.conf apt-get -q download "$@") \
		>"$tmp/log" 2>&1 || { tail -n 15 "$tmp/log" >&2; die "cannot be fetched: $*"; }
	for deb in "$tmp"/debs/*.deb; do
		dpkg-deb -x "$deb" "$tmp/out/$part"
	done
	rm -r "$tmp/debs"
}

unpack root libc6 busybox dash xz-utils liblzma5
unpack devel libc6 libc6-dev linux-libc-dev
unpack debug libc6-dbg
# as later ones have them: the paths are the same as out here, the files are not
for name in libc.so.6 libpthread.so.0; do
	(cd "$tmp/out/root/lib/x86_64-linux-gnu" && mv "$(readlink $name)" $name)
done
# the linker goes by its sysroot for names, not for what links point to
cp --remove-destination "$tmp"/out/devel/lib/x86_64-linux-gnu/ld-*.so \
	"$tmp/out/devel/lib64/ld-linux-x86-64.so.2"
mkdir -p "$tmp/out/root/old" "$tmp/out/root/proc" "$tmp/out/root/opt" "$tmp/out/root/usr/lib/debug"
chmod 755 "$tmp/out"
mv "$tmp/out" "$dir"
