#!/bin/sh
# Fetches a Debian kernel without installing it: tests/kernels/fetch.sh KERNEL DIR, where KERNEL is
# 5.10, 6.1, 6.12 or newest. DIR then holds vmlinuz, release (its version) and modules/: those that
# it takes to mount a virtiofs, in the order of loading, if they are not built in. A DIR that has
# them is left as it is.
#
# tests/tools/debian_suite.sh knows where from.
set -eu

die() {
	echo "fetch: $*" >&2
	exit 1
}

[ $# -eq 2 ] || die "usage: tests/kernels/fetch.sh KERNEL DIR"
kernel=$1
dir=$2
# the image's name, as a pattern; since 6.19 the image itself is in linux-binary
case $kernel in
5.10) suite=bullseye-security names='5[.]10[.]' ;;
6.1) suite=bookworm-security names='6[.]1[.]' ;;
6.12) suite=bookworm-backports names='6[.]12[.]' ;;
newest) suite=trixie-backports names='' ;;
*) die "$kernel is none of 5.10, 6.1, 6.12, newest" ;;
esac
[ ! -e "$dir/release" ] || exit 0
for program in dpkg-deb depmod modprobe xz zstd; do
	command -v "$program" >/dev/null 2>&1 ||
		die "needs $program: scripts/install-deps.sh --test"
done

mkdir -p "${dir%/*}"
tmp=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
tmp=$(cd "$tmp" && pwd)

mkdir "$tmp/debs"
"$(dirname "$0")/../tools/debian_suite.sh" "$suite" "$tmp/apt" || die "the lists of $suite cannot be fetched"
export APT_CONFIG="$tmp/apt/apt.conf"

release=$(apt-cache pkgnames linux- |
	sed -n "s,^linux-\(image\|binary\)-\(${names}[0-9].*-cloud-amd64\)$,\2,p" |
	sort -uV | tail -n 1)
[ -n "$release" ] || die "$suite has no kernel $kernel for amd64's clouds"
packages=
for part in base binary modules image; do
	apt-cache show "linux-$part-$release" >/dev/null 2>&1 &&
		packages="$packages linux-$part-$release"
done
# shellcheck disable=SC2086 # they are words
(cd "$tmp/debs" && apt-get -q download $packages) >"$tmp/log" 2>&1 ||
	{ tail -n 15 "$tmp/log" >&2; die "cannot be fetched:$packages"; }
for deb in "$tmp"/debs/*.deb; do
	dpkg-deb -x "$deb" "$tmp/tree"
done

# newer ones are below usr, where depmod -b does not look
[ -e "$tmp/tree/lib" ] || ln -s usr/lib "$tmp/tree/lib"
mkdir "$tmp/out" "$tmp/out/modules"
for image in "$tmp/tree/boot/vmlinuz-$release" "$tmp/tree/lib/modules/$release/vmlinuz"; do
	[ ! -e "$image" ] || cp "$image" "$tmp/out/vmlinuz"
done
[ -e "$tmp/out/vmlinuz" ] || die "no image is in:$packages"
depmod -b "$tmp/tree" "$release"
number=10
for module in virtio_pci virtiofs; do
	modprobe -C /dev/null -d "$tmp/tree" -S "$release" --show-depends "$module" \
		>"$tmp/depends" ||
		die "the kernel $release has no $module"
	while read -r verb file; do
		[ "$verb" = insmod ] || continue
		name=${file##*/}
		name=${name%.ko*}
		# both depend on some of the same
		[ ! -e "$(echo "$tmp"/out/modules/[0-9]*-"$name".ko)" ] || continue
		to=$tmp/out/modules/$number-$name.ko
		case $file in
		*.xz) xz -dc "$file" >"$to" ;;
		*.zst) zstd -qdc "$file" >"$to" ;;
		*) cp "$file" "$to" ;;
		esac
		number=$((number + 1))
	done <"$tmp/depends"
done
echo "$release" >"$tmp/out/release"
rm -rf "$dir"
mv "$tmp/out" "$dir"
