#!/bin/sh
# Fetches a Debian kernel without installing it: tests/kernels/fetch.sh KERNEL DIR, where KERNEL is
# 5.10, 6.1, 6.12 or newest. DIR then holds vmlinuz, release (its version) and modules/: those that
# it takes to mount a virtiofs, in the order of loading, if they are not built in. A DIR that has
# them is left as it is.
#
# The suites come from the mirror that this system's own apt uses, by an apt configuration beside
# the system's; DEBIAN_MIRROR, the address of a Debian archive, is used instead if it is set.
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
for program in apt-get apt-cache dpkg-deb depmod modprobe xz zstd; do
	command -v "$program" >/dev/null 2>&1 ||
		die "needs $program: scripts/install-deps.sh --test"
done
keyring=$({ dpkg -L debian-archive-keyring || rpm -ql debian-keyring; } 2>/dev/null |
	grep -m 1 '/debian-archive-keyring[.]\(gpg\|pgp\)$') ||
	die "needs Debian's keys: scripts/install-deps.sh --test"

mkdir -p "${dir%/*}"
tmp=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
tmp=$(cd "$tmp" && pwd)

# mirror SUITE...: where the system gets the first of these suites that it has, by apt's own reading
# of its sources, one-line or deb822
mirror() {
	for name in "$@"; do
		apt-get --print-uris update 2>/dev/null |
			sed -n "s,^'\(.*\)/dists/$name/InRelease'.*,\1,p" | head -n 1 | grep . &&
			return 0
	done
	return 1
}

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
if [ -n "${DEBIAN_MIRROR:-}" ]; then
	main=${DEBIAN_MIRROR%/}
	security=
else
	# -updates is Debian's alone, where others have suites that are called like Debian's, too
	main=$(mirror "$codename-updates" "$codename") ||
		die "apt has no source of Debian's packages; set DEBIAN_MIRROR to such an archive"
	security=$(mirror "$codename-security") || security=
fi
case $suite in
*-security)
	# by convention it is beside the other
	address=${security:-$(echo "$main" | sed 's,/debian\(/\|$\),/debian-security\1,')}
	;;
*) address=$main ;;
esac

# `status` without a package: what is installed here does not matter. Hooks of the system's own apt
# (image builders' that clean up) have no business with these files.
mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$tmp/parts" "$tmp/debs"
: >"$tmp/status"
cat >"$tmp/parts/kernel.sources" <<END
Types: deb
URIs: $address
Suites: $suite
Components: main
Architectures: amd64
Signed-By: $keyring
END
cat >"$tmp/apt.conf" <<END
Dir::State::lists "$tmp/lists";
Dir::State::status "$tmp/status";
Dir::Cache "$tmp/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$tmp/parts";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Update::Error-Mode "any";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
END
export APT_CONFIG="$tmp/apt.conf"

apt-get -q update >"$tmp/log" 2>&1 ||
	{ tail -n 15 "$tmp/log" >&2; die "the lists of $suite cannot be fetched"; }
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
