#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The method of 20190313183953.17854-1-guro@fb.com (../memcg.toml), in our own words: a cgroup
# that was removed stays as long as the page cache of a file that was written in it. The
# figures are Percpu and Slab of /proc/meminfo, before and after.
set -e
N=${N:-1000} # cgroups that are made and removed

root=/sys/fs/cgroup
parent=$root/percpu_test

memory() # of the cgroups below $1
{
	grep nr_dying_descendants "$1/cgroup.stat"
	grep -e Percpu -e Slab /proc/meminfo
}

mkdir "$parent"
echo +memory >"$parent/cgroup.subtree_control"
memory "$parent"

i=1
while [ "$i" -le "$N" ]; do
	mkdir "$parent/$i"
	echo $$ >"$parent/$i/cgroup.procs"
	dd if=/dev/urandom of="/tmp/test-$i" count=1 2>/dev/null
	echo $$ >"$root/cgroup.procs"
	rmdir "$parent/$i"
	i=$((i + 1))
done

memory "$root"
rmdir "$parent"
