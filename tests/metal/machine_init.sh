#!/bin/busybox sh
# PID 1 of the machine on which tests boot kernels by ssh and kexec (machine.py). It is its own boot loader's only entry.
/bin/busybox --install -s /bin
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /run /var/lib/kteardown
ln -s /run /var/run
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
touch /run/utmp
# Debian's busybox has no such program.
printf '#!/bin/sh\necho $(w | tail -n +2 | cut -d" " -f1)\n' >/bin/users
chmod 755 /bin/users
for module in $(cat /modules/order); do
	options=
	case $module in
	watchdog*) options=$(sed -n 's/.*\(stop_on_reboot=[01]\).*/\1/p' /proc/cmdline) ;;
	ramoops*) options=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^ramoops\.//p') ;;
	esac
	insmod "/modules/$module" $options || echo "cannot load $module"
done
mount -t ext4 /dev/vda /var/lib/kteardown
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
/sbin/dropbear -R 2>/dev/null
while :; do sleep 1000; done
