#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The method of the tester's reply to 20250715071658.267-4-ziqianlu@bytedance.com
# (../throttle.toml), in our own words: schbench runs in the innermost of nested cgroups, which
# has a CPU quota. mmtests, which ran schbench there, is left out. Its figures are the
# percentiles of wakeup and request latency, and requests per second.
set -e
LEVELS=${LEVELS:-10}     # cgroups, one in another
THREADS=${THREADS:-1}    # posted: 1, 2, 4, 8, 16, 32, 63
RUNTIME=${RUNTIME:-30}   # seconds, of schbench
QUOTA=${QUOTA:-1600000}  # us of CPU time in each period: 16 CPUs
PERIOD=${PERIOD:-100000} # us
MEMORY=${MEMORY:-34G}

root=/sys/fs/cgroup
leaf=$root
level=1
while [ "$level" -le "$LEVELS" ]; do
	if [ "$level" -gt 1 ]; then
		echo "+cpu +memory +pids" >"$leaf/cgroup.subtree_control"
	fi
	leaf=$leaf/level$level
	mkdir "$leaf"
	level=$((level + 1))
done
echo "$QUOTA $PERIOD" >"$leaf/cpu.max"
echo "$MEMORY" >"$leaf/memory.max"

echo $$ >"$leaf/cgroup.procs"
schbench -m 1 -t "$THREADS" -r "$RUNTIME"
echo $$ >"$root/cgroup.procs"

while [ "$leaf" != "$root" ]; do
	rmdir "$leaf"
	leaf=${leaf%/*}
done
