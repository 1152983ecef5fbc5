#!/bin/sh -e
# SPDX-License-Identifier: GPL-2.0
# A cgroup reads a file, reclaims it and is removed. Then a task of another cgroup reads the file, or a
# task of the root. With the multi-gen LRU a refault counts only for the cgroup that lost the page, so
# neither read may have one. A kernel that takes the LRU of the root for that of the removed cgroup counts
# those of the root.
MB=${MB:-16}
root=/sys/fs/cgroup
size=$((MB * 1024 * 1024))

refaults() {
	sed -n 's/^workingset_refault_file //p' "$1/memory.stat"
}

reads_of_other() {
	before=$(refaults "$root/other")
	sh -c "echo \$\$ >$root/other/cgroup.procs && cat /disk/file >/dev/null"
	echo "$1 $(($(refaults "$root/other") - before)) count"
}

# The ID of the cgroup is freed when it goes offline. A cgroup that is made later can get it.
evict_and_remove() {
	mkdir "$root/removed"
	echo 1 >/proc/sys/vm/drop_caches
	sh -c "echo \$\$ >$root/removed/cgroup.procs && cat /disk/file >/dev/null"
	before=$(sed -n 's/^file //p' "$root/removed/memory.stat")
	echo "$size" >"$root/removed/memory.reclaim" || true
	left=$(sed -n 's/^file //p' "$root/removed/memory.stat")
	rmdir "$root/removed"
	sleep 2
	echo "evicted $(((before - left) / 4096)) count"
}

echo +memory >"$root/cgroup.subtree_control"
mkdir "$root/other"
echo y >/sys/kernel/mm/lru_gen/enabled
echo "lru_gen $(cat /sys/kernel/mm/lru_gen/enabled)"
truncate -s $((MB + 48))M /image
mkfs.ext4 -q /image
mkdir -p /disk
mount -o loop /image /disk
head -c "$size" /dev/zero >/disk/file
sync

evict_and_remove
reads_of_other other_refaults
# It lost the pages itself: each is a refault.
echo "$size" >"$root/other/memory.reclaim" || true
reads_of_other own_refaults

evict_and_remove
before=$(refaults "$root")
cat /disk/file >/dev/null
echo "root_refaults $(($(refaults "$root") - before)) count"
