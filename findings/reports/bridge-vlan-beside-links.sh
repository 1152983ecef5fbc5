#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Add and delete VLANS memberships of one bridge port while the system has N other interfaces.
# Needs the modules bridge and dummy, ip and bridge of iproute2, and root.
# N: interfaces that stay. VLANS: memberships (default 20).
set -eu
N=${N:-64}
VLANS=${VLANS:-20}

modprobe bridge 2>/dev/null || true
modprobe dummy 2>/dev/null || true
batch=$(mktemp)

ip link add ktbr type bridge vlan_filtering 1
ip link add ktport type dummy
ip link set ktport master ktbr
for ((i = 0; i < N; i++)); do
	echo "link add ktd$i type dummy"
done > "$batch"
ip -batch "$batch"
if [ "$(ls /sys/class/net | grep -c '^ktd')" -ne "$N" ]; then
	echo "not all interfaces are there" >&2
	exit 1
fi
# Once, so that the programs are in memory.
bridge vlan add vid 4000 dev ktport
bridge vlan del vid 4000 dev ktport

echo kt-begin vlan_add > /dev/kmsg
for ((i = 0; i < VLANS; i++)); do
	bridge vlan add vid $((i + 100)) dev ktport
done
echo kt-end vlan_add > /dev/kmsg

echo kt-begin vlan_del > /dev/kmsg
for ((i = 0; i < VLANS; i++)); do
	bridge vlan del vid $((i + 100)) dev ktport
done
echo kt-end vlan_del > /dev/kmsg
