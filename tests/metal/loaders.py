"""Boot loaders for a bundle: PXELINUX from a network, and GRUB from a disk; QEMU with Debian's
packages."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

from metal.machine import packages

_SECTOR = 512
_PARTITION_AT = 2048
_DISK_MB = 64
_GRUB_MODULES = (
    *(
        "biosdisk",
        "part_msdos",
        "ext2",
        "normal",
        "linux",
        "loadenv",
        "test",
        "echo",
        "halt",
        "serial",
    ),
    *("terminal", "configfile"),
)
_GRUB = """\
serial
terminal_output serial
load_env
# As Debian's: the entry that grub-reboot has named, once.
if [ "${next_entry}" ]; then
	set default="${next_entry}"
	set next_entry=
	save_env next_entry
else
	set default=own
fi
set timeout=1
menuentry "own system" --id own {
	echo "the own system of this machine"
	halt
}
source /kteardown/grub.cfg
"""


def pxe_server(bundle: Path, place: Path, boot: str) -> tuple[str, ...]:
    """Make a folder for TFTP that boots one boot of a bundle; return the options of QEMU for it."""
    root = packages("pxe", "pxelinux", "syslinux-common")
    place.mkdir()
    shutil.copyfile(root / "usr/lib/PXELINUX/pxelinux.0", place / "pxelinux.0")
    shutil.copyfile(root / "usr/lib/syslinux/modules/bios/ldlinux.c32", place / "ldlinux.c32")
    shutil.copytree(bundle, place / "kteardown")
    (place / "pxelinux.cfg").mkdir()
    (place / "pxelinux.cfg" / "default").write_text(
        f"SERIAL 0\nDEFAULT kteardown-{boot}\nINCLUDE kteardown/pxelinux.cfg\n"
    )
    network = f"user,id=n,restrict=on,tftp={place},bootfile=pxelinux.0"
    return ("-netdev", network, "-device", "virtio-net-pci,netdev=n", "-boot", "n")


def grub_disk(bundle: Path, place: Path, boot: str) -> tuple[str, ...]:
    """Make a disk with GRUB that boots one boot of a bundle once; return the options of QEMU for
    it."""
    root = packages("grub", "grub-pc-bin", "grub-common")
    modules, content = root / "usr/lib/grub/i386-pc", place / "content"
    (content / "boot/grub").mkdir(parents=True)
    shutil.copytree(bundle, content / "kteardown")
    (content / "boot/grub/grub.cfg").write_text(_GRUB)
    environment = [str(root / "usr/bin/grub-editenv"), str(content / "boot/grub/grubenv")]
    subprocess.run([*environment, "create"], check=True)
    # It is all that grub-reboot does.
    subprocess.run([*environment, "set", f"next_entry=kteardown-{boot}"], check=True)
    made = [
        "-O",
        "i386-pc",
        "-p",
        "(hd0,msdos1)/boot/grub",
        "-o",
        str(place / "core.img"),
        *_GRUB_MODULES,
    ]
    subprocess.run([root / "usr/bin/grub-mkimage", "-d", modules, *made], check=True)
    partition = place / "partition"
    sized = [str(partition), f"{_DISK_MB}M"]
    subprocess.run(["mke2fs", "-q", "-t", "ext2", "-d", content, *sized], check=True)
    sectors = (_DISK_MB << 20) // _SECTOR
    # The first sector loads GRUB from the next ones. Its code for floppy disks is where the
    # partitions are.
    first = bytearray((modules / "boot.img").read_bytes())
    first[446:510] = struct.pack("<B3xB3xII48x", 0x80, 0x83, _PARTITION_AT, sectors)
    with (place / "disk").open("wb") as disk:
        disk.write(first + (place / "core.img").read_bytes())
        disk.seek(_PARTITION_AT * _SECTOR)
        disk.write(partition.read_bytes())
    return ("-drive", f"file={place}/disk,format=raw,if=ide", "-boot", "c")


def boot_by(log: Path, options: tuple[str, ...], *, resets: bool) -> None:
    """Start a machine, and return when it is switched off, or is about to reset unless
    ``resets``."""
    machine = ["-M", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1024", "-nodefaults"]
    ends = ["-display", "none", "-serial", f"file:{log}", *([] if resets else ["-no-reboot"])]
    subprocess.run(["qemu-system-x86_64", *machine, *ends, *options], check=True, timeout=1200)
