# Sent over ssh to the shell of a test machine, with a command and its arguments. Status 3: the machine is refused.
set -eu
place=/var/lib/kteardown
guard=/run/kteardown.guard
lock=$place/lock
fail() { echo "$*" >&2; exit 3; }
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
		fail "it is locked by $owner for another $((expiry - now)) s ($lock)"
	echo "$((now + $3)) $2" >"$lock.new" || { rm -f "$lock.new"; fail "$lock cannot be written"; }
	mv "$lock.new" "$lock"
	sync
	cat /proc/sys/kernel/random/boot_id
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
