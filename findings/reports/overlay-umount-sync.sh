#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Unmount an empty overlay whose upper directory is on a file system where something else has
# written N MB that are still dirty.
# Needs the modules crc32c_generic, loop, ext4 and overlay, mkfs.ext4, losetup and root. Memory: 3 N MB and 200 MB.
# N: MB of dirty data beside the overlay. VOLATILE=1: mount the overlay with -o volatile (control).
set -eu
N=${N:-16}
VOLATILE=${VOLATILE:-0}

# ext4 needs a driver of crc32c, which it does not name as a dependency.
for module in crc32c_generic loop ext4 overlay; do
	modprobe "$module" 2>/dev/null || true
done

# Nothing is written back before the unmount asks for it.
echo 0 > /proc/sys/vm/dirty_writeback_centisecs
echo 360000 > /proc/sys/vm/dirty_expire_centisecs
echo 95 > /proc/sys/vm/dirty_ratio
echo 90 > /proc/sys/vm/dirty_background_ratio

mkdir -p /kt-back /kt-disk /kt-lower /kt-merged
mount -t tmpfs -o size=90% tmpfs /kt-back
truncate -s "$((N * 2 + 256))M" /kt-back/image
mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1,nodiscard /kt-back/image
device=$(losetup -f)
losetup "$device" /kt-back/image
mount -t ext4 -o noatime "$device" /kt-disk
mkdir /kt-disk/upper /kt-disk/work /kt-disk/other
sync

options=lowerdir=/kt-lower,upperdir=/kt-disk/upper,workdir=/kt-disk/work
[ "$VOLATILE" = 0 ] || options=$options,volatile
mount -t overlay -o "$options" overlay /kt-merged

# The process that writes has nothing to do with the overlay.
dd if=/dev/zero of=/kt-disk/other/data bs=1M count="$N" 2>/dev/null
dirty_kb=$(awk '/^Dirty:/ { print $2 }' /proc/meminfo)
if [ "$dirty_kb" -lt "$((N * 1024 * 9 / 10))" ]; then
	echo "only $dirty_kb kB are dirty: there is too little memory for N=$N" >&2
	exit 1
fi

echo kt-begin umount_overlay > /dev/kmsg
umount /kt-merged
echo kt-end umount_overlay > /dev/kmsg

echo "dirty_before_kb $dirty_kb kB"
echo "dirty_after_kb $(awk '/^Dirty:/ { print $2 }' /proc/meminfo) kB"
