#!/bin/sh
# Installs what building bpf-pmp needs, with --test what its tests and its bench need too, from the
# distribution's own packages (apt or dnf). Installs only what is missing: with everything there it
# asks no server, and can be run by anyone.
set -eu

say() {
	echo "install-deps: $*"
}

die() {
	echo "install-deps: $*" >&2
	exit 1
}

usage() {
	echo "usage: scripts/install-deps.sh [--test]"
	exit "$1"
}

test=no
for word in "$@"; do
	case $word in
	--test) test=yes ;;
	-h | --help) usage 0 ;;
	*) usage 1 >&2 ;;
	esac
done

# A word is a package, or alternatives (a|b): whichever is installed, else the first one there is.
if command -v apt-get >/dev/null 2>&1; then
	manager=apt
	for_build='gcc g++ libc6-dev make clang llvm libbpf-dev bpftool|linux-tools-common
		libelf-dev libdw-dev libdebuginfod-dev liblzma-dev libzstd-dev libisal-dev libiberty-dev libpcre2-dev zlib1g-dev uthash-dev
		pkgconf|pkg-config'
	# -core: the programs alone, so that no database server is started
	for_test='libcmocka-dev bats sysbench gdb elfutils percona-toolkit bpftrace valgrind
		linux-perf|linux-tools-generic
		mariadb-server-core|mariadb-server-core-10.6|mariadb-server-core-10.5
		mariadb-client-core|mariadb-client-core-10.6|mariadb-client-core-10.5
		libc6-dbg dwz debuginfod curl lld clang-format cppcheck shellcheck procps strace binutils util-linux
		gawk mawk libssl-dev locales perl
		golang-go rustc python3 python3-dbg
		postgresql-15|postgresql-17|postgresql-16|postgresql-14|postgresql-13
		qemu-system-x86 busybox-static cpio kmod xz-utils zstd debian-archive-keyring'
elif command -v dnf >/dev/null 2>&1; then
	manager=dnf
	for_build='gcc gcc-c++ glibc-devel make clang llvm libbpf-devel bpftool
		elfutils-libelf-devel elfutils-devel elfutils-debuginfod-client-devel xz-devel
		libzstd-devel isa-l-devel binutils-devel pcre2-devel
		zlib-devel|zlib-ng-compat-devel uthash-devel pkgconf-pkg-config'
	for_test='libcmocka-devel bats sysbench gdb elfutils percona-toolkit bpftrace valgrind perf
		mariadb-server mariadb dwz elfutils-debuginfod curl lld compiler-rt clang-tools-extra cppcheck ShellCheck
		procps-ng strace binutils util-linux gawk mawk openssl-devel glibc-static libasan
		glibc-langpack-en perl-Test-Harness
		golang rust python3 python3-debug postgresql-server
		qemu-system-x86-core virtiofsd busybox cpio kmod xz zstd apt dpkg debian-keyring'
else
	die "neither apt-get nor dnf is here; the README lists what is needed"
fi

is_installed() {
	case $manager in
	apt) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
	dnf) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
	esac
}

is_available() {
	case $manager in
	apt)
		candidate=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
		[ -n "$candidate" ] && [ "$candidate" != '(none)' ]
		;;
	dnf) dnf -q list --available "$1" >/dev/null 2>&1 ;;
	esac
}

# missing WORD...: sets lacking to the packages to install, unknown to those that no source has
missing() {
	lacking=
	unknown=
	for word in "$@"; do
		names=$(echo "$word" | tr '|' ' ')
		found=
		for name in $names; do
			if is_installed "$name"; then
				found=installed
				break
			fi
		done
		[ -z "$found" ] || continue
		for name in $names; do
			if is_available "$name"; then
				found=$name
				break
			fi
		done
		if [ -n "$found" ]; then
			lacking="$lacking $found"
		else
			unknown="$unknown $word"
		fi
	done
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		die "installing packages needs root, and there is no sudo: run this as root"
	fi
}

update_lists() {
	say "fetching the lists of packages"
	as_root apt-get -q update >/dev/null || die "apt-get update failed (is the network there?)"
	updated=yes
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
		install --no-install-recommends "$@" >"$log" 2>&1
}

install_all() {
	missing "$@"
	if [ "$manager" = apt ] && [ -n "$unknown" ] && [ "$updated" = no ]; then
		update_lists
		missing "$@"
	fi
	# Percona's own repository has it for Fedora; only some comparisons need it
	if [ "$unknown" = ' percona-toolkit' ]; then
		say "no source of packages has percona-toolkit; the comparisons with it will fail"
	elif [ -n "$unknown" ]; then
		die "no source of packages has:$unknown"
	fi
	[ -n "$lacking" ] || return 0
	installed=yes
	say "installing:$lacking"
	# shellcheck disable=SC2086 # they are words
	case $manager in
	apt)
		apt_install $lacking && return 0
		# the lists may be older than the server's packages
		[ "$updated" = yes ] || { update_lists && apt_install $lacking && return 0; }
		;;
	dnf)
		as_root dnf -q -y --setopt=install_weak_deps=False install $lacking >"$log" 2>&1 &&
			return 0
		;;
	esac
	tail -n 15 "$log" >&2
	die "could not install:$lacking"
}

# Debian's package of a PostgreSQL server makes a cluster and starts it, unless it is told not to
no_postgres_cluster() {
	conf=/etc/postgresql-common/createcluster.conf
	[ ! -e "$conf" ] && ! is_installed postgresql-common || return 0
	installed=yes
	as_root mkdir -p "${conf%/*}"
	echo 'create_main_cluster = false' | as_root tee "$conf" >/dev/null
}

# clang's sanitizers and its fuzzer are a package of their own from 14 on, named after its version
clang_runtime() {
	major=$(clang -dumpversion | cut -d. -f1)
	name=libclang-rt-$major-dev
	if ! is_installed "$name" && ! is_available "$name" && [ "$updated" = no ]; then
		update_lists
	fi
	if is_installed "$name" || is_available "$name"; then
		install_all "$name"
	else
		install_all "libclang-common-$major-dev"
	fi
}

# the guests' view of our files: qemu's own package has it, or one of its own since qemu 8
virtiofs_daemon() {
	if is_installed virtiofsd || is_available virtiofsd; then
		install_all virtiofsd
	else
		install_all qemu-system-common
	fi
}

# sorting is by locale: one beside C is needed to see it
english_locale() {
	locale -a 2>/dev/null | grep -qix 'en_US\.utf-\{0,1\}8' && return 0
	installed=yes
	say "making the locale en_US.UTF-8"
	as_root localedef -i en_US -f UTF-8 en_US.UTF-8 ||
		die "localedef could not make en_US.UTF-8"
}

updated=no
installed=no
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# shellcheck disable=SC2086 # they are words
install_all $for_build
if [ $test = yes ]; then
	[ "$manager" != apt ] || no_postgres_cluster
	# shellcheck disable=SC2086
	install_all $for_test
	if [ "$manager" = apt ]; then
		clang_runtime
		virtiofs_daemon
	fi
	english_locale
fi
[ $installed = yes ] || say "everything is there"
