# Sent over ssh to the shell of a test machine, with a command and its arguments. Status 3: the machine is refused.
set -eu
place=/var/lib/kteardown
guard=/run/kteardown.guard
lock=$place/lock
fail() { echo "$*" >&2; exit 3; }
# Without a serial line: ramoops keeps in memory, over a reset, what a kernel wrote there.
pstore=/sys/fs/pstore
has_pstore() {
	modprobe ramoops 2>/dev/null || [ -d /sys/module/ramoops ] || return 1
	grep -q " $pstore " /proc/mounts || mount -t pstore pstore "$pstore"
}
owner_of_lock() { read -r expiry owner 2>/dev/null <"$lock" || owner=; }

case $1 in
take) # OWNER SECONDS
	# A machine that is not for tests has no such file, and neither has one that was cloned from a test machine.
	mark=/etc/kteardown-test-machine
	[ -s /etc/machine-id ] || fail "/etc/machine-id is missing or empty"
	[ -f "$mark" ] && [ "$(cat "$mark")" = "$(cat /etc/machine-id)" ] ||
		fail "$mark does not hold this machine's /etc/machine-id; if it may be reset at any time:" \
			"cp /etc/machine-id $mark"
	[ "$(id -u)" = 0 ] || fail "only root can boot another kernel"
	command -v kexec >/dev/null || fail "kexec is not installed (kexec-tools)"
	names=$(users) || fail "the command users does not show whether a user is logged in"
	[ -z "$names" ] || fail "a user is logged in: $names"
	mkdir "$guard" 2>/dev/null || fail "another lab locks it now; if none does, remove $guard"
	trap 'rmdir "$guard"' EXIT
	mkdir -p "$place"
	now=$(date +%s)
	owner_of_lock
	[ -z "$owner" ] || [ "$owner" = "$2" ] || [ "$expiry" -le "$now" ] ||
		fail "it is locked by $owner for another $((expiry - now)) s:" \
			"finish that run with --resume, or remove $lock if it is not running"
	echo "$((now + $3)) $2" >"$lock.new" || { rm -f "$lock.new"; fail "$lock cannot be written"; }
	mv "$lock.new" "$lock"
	sync
	cat /proc/sys/kernel/random/boot_id
	;;
ramoops) # prints where it is, as arguments of a kernel, and removes what it has
	need="its own kernel needs the arguments memmap=4M\$ADDRESS ramoops.mem_address=ADDRESS"
	need="$need ramoops.mem_size=0x400000 ramoops.record_size=0x10000 ramoops.console_size=0x100000"
	need="$need ramoops.pmsg_size=0x200000 ramoops.ftrace_size=0, with an address of its memory"
	has_pstore || fail "it has no serial line and no ramoops: $need"
	grep -o 'memmap=[^ ]*\$[^ ]*' /proc/cmdline || fail "no memory is reserved for ramoops: $need"
	[ "$(systemctl is-enabled systemd-pstore.service 2>/dev/null || true)" != enabled ] ||
		fail "systemd moves what is in $pstore: systemctl disable systemd-pstore.service"
	cd /sys/module/ramoops/parameters
	for name in mem_address mem_size console_size pmsg_size; do
		[ "$(cat "$name")" -gt 0 ] || fail "ramoops.$name is 0: $need"
	done
	# The zone of ftrace is before that of pmsg in Linux 6.1, and after it in 6.12.
	[ "$(cat ftrace_size)" = 0 ] || fail "ramoops.ftrace_size is not 0: $need"
	for name in mem_address mem_size mem_type record_size console_size ftrace_size pmsg_size ecc; do
		echo "ramoops.$name=$(cat "$name")"
	done
	rm -f "$pstore"/*-ramoops-*
	;;
up) # BOOT_ID; prints that of this system, its age and, if the first is there and another, what ramoops has
	cat /proc/sys/kernel/random/boot_id /proc/uptime
	[ -n "$2" ] && [ "$(cat /proc/sys/kernel/random/boot_id)" != "$2" ] || exit 0
	has_pstore || exit 0
	# The text before the records, as on a serial line.
	{
		cat "$pstore"/console-ramoops-* || cat "$pstore"/dmesg-ramoops-* || true
		echo
		cat "$pstore"/pmsg-ramoops-* || true
	} 2>/dev/null | head -c 64m
	;;
boot) # SECONDS COMMAND_LINE; 0 seconds: without a watchdog
	# UEFI hands the ACPI tables to this kernel only; a kernel without EFI support finds them by this argument.
	rsdp=$(sed -n 's/^ACPI20=/acpi_rsdp=/p' /sys/firmware/efi/systab 2>/dev/null || true)
	kexec -c -l "$place/bzImage" --initrd="$place/initramfs" --command-line="$3 $rsdp" >&2
	chmod 700 "$place/init"
	[ "$2" = 0 ] || "$place/init" arm "$2"
	sync
	# systemd stops the services and unmounts the file systems.
	go='umount -a -r; kexec -e'
	[ ! -d /run/systemd/system ] || go='systemctl kexec'
	setsid sh -c "sleep 0.5; $go" >/dev/null 2>&1 </dev/null &
	;;
release) # OWNER
	owner_of_lock
	[ "$owner" != "$2" ] || rm "$lock"
	;;
esac
