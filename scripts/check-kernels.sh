#!/bin/sh
# Boots Debian's kernels under qemu, without KVM, and runs the bpf-pmp that was built here in each:
# KERNELS="5.10 6.1 6.12 newest" says in which, MODES="threads cpu offcpu" what is checked there
# (tests/kernels/guest.sh). Prints TAP; the last line is a summary. The guest has this machine's
# root, read-only. Kernels are kept in the build directory's kernels/. A kernel that cannot be
# fetched or booted is a failure. KERNEL_SECONDS (300) is how long one may take.
set -eu
cd "$(dirname "$0")/.."
# depmod and modprobe, and virtiofsd, are there
PATH=$PATH:/usr/sbin:/sbin:/usr/lib/qemu:/usr/libexec
export PATH
top=$(pwd -P)
B=${B:-build}
kernels=${KERNELS:-5.10 6.1 6.12 newest}
modes=${MODES:-threads cpu offcpu}
seconds=${KERNEL_SECONDS:-300}
qemu=
virtiofsd=
dir=
number=0
bad=0
booted=0

die() {
	echo "check-kernels: $*" >&2
	exit 1
}

end() {
	[ -n "$1" ] || return 0
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

cleanup() {
	end "$qemu"
	end "$virtiofsd"
	[ -n "$dir" ] || return 0
	# the machine's root is mounted there, though in another namespace: make sure that it is so
	! [ -e "$dir/root" ] || rmdir "$dir/root" || return 0
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# result STATUS TEXT: one line of TAP
result() {
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		bad=$((bad + 1))
	fi
}

# comment FILE: the end of it
comment() {
	tail -n 50 "$1" | tr -d '\r' | sed 's/^/# /'
}

# quote NAME VALUE: an assignment for a shell to read
quote() {
	printf "%s='%s'\n" "$1" "$(printf %s "$2" | sed "s/'/'\\\\''/g")"
}

# make_initramfs MODULES
make_initramfs() {
	rm -rf "$dir/tree"
	mkdir "$dir/tree"
	(
		cd "$dir/tree"
		mkdir bin dev proc sys root top build
		cp "$(command -v busybox)" bin/busybox
		for name in sh cat ln mount mkdir insmod ifconfig poweroff switch_root; do
			ln -s busybox "bin/$name"
		done
		cp -R "$1" .
		cp "$top/tests/kernels/init.sh" init
		chmod 755 init
		{ quote TOP "$top" && quote BUILD "$build" && quote MODES "$modes"; } >parameters
		find . | cpio -o -H newc --quiet >"$dir/initramfs"
	)
}

serve_root() {
	rm -f "$dir/socket"
	unshare --mount --propagation private tests/kernels/serve.sh "$dir/socket" "$dir/root" \
		"$top" "$build" >"$dir/virtiofsd" 2>&1 </dev/null &
	virtiofsd=$!
	i=0
	until [ -S "$dir/socket" ]; do
		i=$((i + 1))
		[ $i -lt 200 ] && kill -0 "$virtiofsd" 2>/dev/null || return 1
		sleep 0.05
	done
}

# boot KERNEL_DIR: what the guest printed goes to $dir/results, its kernel's messages to
# $dir/console: two ports, so that neither comes into the midst of the other's lines
boot() {
	: >"$dir/results"
	: >"$dir/console"
	make_initramfs "$1/modules" >"$dir/qemu" 2>&1 || return 1
	serve_root || return 1
	# with cmpxchg16b, 6.12 dies of corrupted memory under qemu 7.2, most often in its allocator;
	# mitigations cost much where a CPU is emulated, and are not what is tested
	timeout "$seconds" qemu-system-x86_64 -accel tcg -cpu qemu64,-cx16 -smp 2 -m 1G \
		-nodefaults -no-user-config -display none -no-reboot \
		-machine pc,memory-backend=memory \
		-object memory-backend-memfd,id=memory,size=1G,share=on \
		-chardev socket,id=root,path="$dir/socket" \
		-device vhost-user-fs-pci,chardev=root,tag=host \
		-serial file:"$dir/console" -serial file:"$dir/results" \
		-kernel "$1/vmlinuz" -initrd "$dir/initramfs" \
		-append "console=ttyS0 panic=-1 oops=panic quiet mitigations=off" \
		>"$dir/qemu" 2>&1 </dev/null &
	qemu=$!
	status=0
	wait "$qemu" || status=$?
	qemu=
	end "$virtiofsd"
	virtiofsd=
	return $status
}

# report NAME STATUS: the guest's TAP as ours, and whether it came to its end
report() {
	seen=0
	ended=
	planned=none
	tr -d '\r' <"$dir/results" >"$dir/lines"
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			status=0
			case $line in not*) status=1 ;; esac
			result $status "$1: ${line#*ok * - }"
			seen=$((seen + 1))
			;;
		1..*) planned=${line#1..} ;;
		'status '*) ended=${line#status } ;;
		*) printf '# %s\n' "${line#\# }" ;;
		esac
	done <"$dir/lines"
	[ -z "$ended" ] || [ "$planned" != "$seen" ] || return 0
	why="ended with status $2"
	[ "$2" -ne 124 ] || why="took more than $seconds s"
	result 1 "$1: runs to its end: $why, $seen checks of $planned done"
	for file in virtiofsd qemu console; do
		[ ! -s "$dir/$file" ] || comment "$dir/$file"
	done
}

[ "$(id -u)" -eq 0 ] || die "needs root, to let a guest see this machine's files"
[ "$(uname -m)" = x86_64 ] || die "is for x86-64 only"
for program in qemu-system-x86_64 virtiofsd busybox cpio unshare timeout; do
	command -v $program >/dev/null 2>&1 ||
		die "$program is not installed (scripts/install-deps.sh --test installs it)"
done
[ -x "$B/bpf-pmp" ] && [ -d "$B/fixtures" ] || die "build first: make all fixtures"
build=$(cd "$B" && pwd -P)
dir=$(mktemp -d)
mkdir "$dir/root"

for kernel in $kernels; do
	if ! tests/kernels/fetch.sh "$kernel" "$build/kernels/$kernel" >"$dir/fetch" 2>&1; then
		result 1 "$kernel: the kernel is fetched"
		comment "$dir/fetch"
		continue
	fi
	name=$(cat "$build/kernels/$kernel/release")
	begun=$(date +%s)
	status=0
	boot "$build/kernels/$kernel" || status=$?
	report "${name%-cloud-amd64}" $status
	booted=$((booted + 1))
	echo "# $name: $(($(date +%s) - begun)) s"
done
echo "1..$number"
echo "$booted kernels, $((number - bad)) checks passed, $bad failed"
[ $bad -eq 0 ] && [ $number -gt 0 ]
