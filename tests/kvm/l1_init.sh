#!/bin/busybox sh
# PID 1 of the guest that tests use as a host with KVM (l1.py): the host's tree at the same paths, read-only
# with the changes in memory, and the folder of jobs. It runs /jobs/1.sh, /jobs/2.sh and so on as they appear.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /root /low /up /jobs
mount -t devpts pts /dev/pts
ln -s /proc/self/fd /dev/fd
for number in 0 1 2; do ln -s /proc/self/fd/$number /dev/"$(echo stdin stdout stderr | cut -d' ' -f$((number + 1)))"; done
for module in $(cat /modules/order); do insmod "/modules/$module" || echo "cannot load $module"; done
mount -t virtiofs -o ro tree /low && mount -t virtiofs jobs /jobs || poweroff -f
mount -t tmpfs up /up
mkdir /up/changed /up/work
mount -t overlay -o lowerdir=/low,upperdir=/up/changed,workdir=/up/work tree /root
jobs=$(cat /jobs/place)
mkdir -p /root/tmp /root/dev/shm "/root$jobs"
# A checkout, a home or a cache of the host may be there, too.
mount --bind /root/dev/shm /dev/shm
for folder in proc sys dev; do mount --rbind /$folder /root/$folder; done
mount --bind /jobs "/root$jobs"
ifconfig lo 127.0.0.1 up
[ -c /dev/kvm ] || dmesg | grep -i -E 'kvm|svm'
cut -d' ' -f1 /proc/uptime >/jobs/ready

number=1
while :; do
	until [ -e /jobs/$number.sh ]; do sleep 0.2; done
	chroot /root /bin/sh "$jobs/$number.sh" >/jobs/$number.out 2>&1
	echo $? >/jobs/$number.part
	mv /jobs/$number.part /jobs/$number.status
	number=$((number + 1))
done
