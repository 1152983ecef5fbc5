#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Give N veth peers to another network namespace: made there at once ("direct"), and made here and
# moved there ("move"), as container network plugins do.
# Needs the module veth, ip of iproute2, unshare, and root.
set -eu
N=${N:-50}

modprobe veth 2>/dev/null || true
batch=$(mktemp -d)

unshare -n sleep 3600 &
holder=$!
trap 'kill "$holder" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
	[ "$(readlink "/proc/$holder/ns/net")" = "$(readlink /proc/self/ns/net)" ] || break
	sleep 0.1
done
if [ "$(readlink "/proc/$holder/ns/net")" = "$(readlink /proc/self/ns/net)" ]; then
	echo "no second network namespace" >&2
	exit 1
fi

for ((i = 0; i < N; i++)); do
	echo "link add ktd$i type veth peer name kte$i netns $holder"
done > "$batch/direct"
for ((i = 0; i < N; i++)); do
	echo "link add kta$i type veth peer name ktb$i"
done > "$batch/pairs"
for ((i = 0; i < N; i++)); do
	echo "link set ktb$i netns $holder"
done > "$batch/move"

echo kt-begin direct > /dev/kmsg
ip -batch "$batch/direct"
echo kt-end direct > /dev/kmsg

ip -batch "$batch/pairs"

echo kt-begin move > /dev/kmsg
ip -batch "$batch/move"
echo kt-end move > /dev/kmsg

# All peers must be gone from here.
left=$(ls /sys/class/net | grep -c '^ktb' || true)
if [ "$left" -ne 0 ]; then
	echo "$left peers were not moved" >&2
	exit 1
fi
