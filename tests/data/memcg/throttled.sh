#!/bin/sh -e
# SPDX-License-Identifier: GPL-2.0
# A cgroup is removed while most of its memory is dirty, and all of it is written. How long does a process
# of another cgroup take to append to the same file, and how often must it wait? The disk writes 6 MB a second.
MB=${MB:-24}
events=/sys/kernel/tracing/events/writeback/balance_dirty_pages
first=/sys/fs/cgroup/first
second=/sys/fs/cgroup/second

mount -t configfs none /sys/kernel/config
mkdir /sys/kernel/config/nullb/nullb1
cd /sys/kernel/config/nullb/nullb1
echo 1 >memory_backed
echo 256 >size
echo 2 >irqmode
echo 5000000 >completion_nsec
echo 1 >hw_queue_depth
echo 64 >max_sectors
echo 1 >power
cd /
mkfs.ext4 -q /dev/nullb1
mkdir -p /disk
mount -t ext4 /dev/nullb1 /disk
mount -t tracefs none /sys/kernel/tracing 2>/dev/null || true
# Nothing is written because it is old.
echo 0 >/proc/sys/vm/dirty_writeback_centisecs

mkdir "$first" "$second"
echo 64M >"$first/memory.max"
/files/append "$first" /disk/log 200 >/dev/null &
writer=$!
sleep 3
grep file_dirty "$first/memory.stat"
kill -9 $writer
wait $writer || true
rmdir "$first"
sleep 3
sync
sleep 3
grep nr_dirty /proc/vmstat
grep nr_dying_descendants /sys/fs/cgroup/cgroup.stat

echo 1 >$events/enable
/files/append "$second" /disk/log "$MB"
echo 0 >$events/enable
grep -c balance_dirty_pages: /sys/kernel/tracing/trace | sed 's/.*/pauses & count/'
