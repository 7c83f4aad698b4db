#!/bin/sh
# The initramfs: makes the host's root the guest's, read-only, and goes on there. parameters says
# TOP, the project's tree, BUILD, its build directory, both as the host has them, and MODES.
. /parameters

fail() {
	echo "init: $*"
	poweroff -f
}

mount -t devtmpfs dev /dev || poweroff -f
exec >/dev/ttyS1 2>&1 # ttyS0 is for the kernel's own messages
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in /modules/*.ko; do
	[ -e "$module" ] || continue # all are built in
	insmod "$module" || fail "insmod $module"
done
mount -t virtiofs -o ro host /root || fail "the host's root cannot be mounted"

# seen below /mnt, because a tmpfs may cover where they are
mount -o bind "/root$TOP" /top || fail "$TOP is not there"
mount -o bind "/root$BUILD" /build || fail "$BUILD is not there"
for dir in /mnt /tmp /var/tmp /run; do
	mount -t tmpfs -o mode=1777 tmpfs "/root$dir" || fail "no tmpfs over $dir"
done
mkdir /root/mnt/top /root/mnt/build
mount -o move /top /root/mnt/top
mount -o move /build /root/mnt/build

for dir in proc sys dev; do
	mount -o move "/$dir" "/root/$dir"
done
mkdir -p /root/dev/shm /root/dev/pts
# what devtmpfs leaves to udev, and the shell's <( ) needs
ln -s /proc/self/fd /root/dev/fd
mount -t tmpfs tmpfs /root/dev/shm
mount -t devpts devpts /root/dev/pts
mount -t bpf bpf /root/sys/fs/bpf
mount -t tracefs tracefs /root/sys/kernel/tracing
ifconfig lo up

cat >/root/run/start <<'END'
cd /mnt/top
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8
bash tests/kernels/guest.sh </dev/null
echo "status $?"
stty sane # returns when all is out
busybox poweroff -f
END
export B=/mnt/build MODES
exec switch_root -c /dev/ttyS1 /root /bin/bash /run/start
