#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs the kernel's test_memcontrol, of which the host compiled one test. A read of a file of tmpfs makes
# no page cache, and tmpfs has no swap files. On ramfs a read does; ext4 has both.
mkdir -p /disk
if [ "$FS" = ramfs ]; then
	mount -t ramfs ramfs /disk || exit 1
else
	mkfs.ext4 -q /dev/ram0 || exit 1
	mount -t ext4 /dev/ram0 /disk || exit 1
fi
cd /disk || exit 1
/files/test_memcontrol >/tap 2>&1
# Without these lines, which are read as results, the trial is not void where the test fails.
sed -e 's/^not ok/failed/' -e '/^1\.\./d' /tap
echo "passed $(grep -c '^ok' /tap) count"
echo "failed $(grep -c '^not ok' /tap) count"
echo "skipped $(grep -c 'SKIP' /tap) count"
