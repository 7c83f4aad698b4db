#!/bin/sh
# Makes an apt configuration beside the system's, for one suite of Debian, and fetches its lists:
# tests/tools/debian_suite.sh SUITE DIR. With APT_CONFIG=DIR/apt.conf, apt-get and apt-cache then know
# that suite alone, and nothing of what is installed here.
#
# Suites come from the mirror that this system's own apt uses; DEBIAN_MIRROR, the address of a Debian
# archive, is used instead if it is set.
set -eu

die() {
	echo "debian_suite: $*" >&2
	exit 1
}

[ $# -eq 2 ] || die "usage: tests/tools/debian_suite.sh SUITE DIR"
suite=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
for program in apt-get apt-cache; do
	command -v "$program" >/dev/null 2>&1 ||
		die "needs $program: scripts/install-deps.sh --test"
done
keyring=$({ dpkg -L debian-archive-keyring || rpm -ql debian-keyring; } 2>/dev/null |
	grep -m 1 '/debian-archive-keyring[.]\(gpg\|pgp\)$') ||
	die "needs Debian's keys: scripts/install-deps.sh --test"

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
mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/parts"
: >"$dir/status"
cat >"$dir/parts/suite.sources" <<END
Types: deb
URIs: $address
Suites: $suite
Components: main
Architectures: amd64
Signed-By: $keyring
END
cat >"$dir/apt.conf" <<END
Dir::State::lists "$dir/lists";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$dir/parts";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Update::Error-Mode "any";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
END
export APT_CONFIG="$dir/apt.conf"
apt-get -q update >"$dir/log" 2>&1 ||
	{ tail -n 15 "$dir/log" >&2; die "the lists of $suite cannot be fetched"; }
