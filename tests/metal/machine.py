"""A machine that QEMU emulates: Debian's kernel, an SSH server, kexec, a serial line, a watchdog, a
disk.

A reset starts the same kernel again, as a boot loader does. The disk keeps what it has.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kteardown.kernels.guest_programs import guest_programs
from kteardown.kernels.source import Sources
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.initramfs import archive, character_device, file, folder, symlink
from kvm.l1 import Setting, kernel

PACKAGES = (
    *("dropbear-bin", "libtomcrypt1", "libtommath1", "libgmp10", "libcrypt1", "zlib1g", "libc6"),
    *("kexec-tools", "libxenmisc4.17", "libxencall1", "libxendevicemodel1", "libxenevtchn1"),
    *("libxenforeignmemory1", "libxengnttab1", "libxentoolcore1", "libxentoollog1", "liblzma5"),
)
MACHINE_ID = "0123456789abcdef0123456789abcdef"
_SETTING = Setting("x86_64", "q35", "max", ("virtio_net", "virtio_blk", "i6300esb", "ramoops"), "")
_LIBRARIES = "lib/x86_64-linux-gnu"


def packages(name: str, *packages: str) -> Path:
    """Return the folder ``name`` with these packages, unpacked, fetched into the cache if
    necessary."""
    place = cache_dir() / f"tests-{name}"
    if not (place / "done").is_file():
        shutil.rmtree(place, ignore_errors=True)
        (place / "debs").mkdir(parents=True)
        subprocess.run(["apt-get", "download", *packages], check=True, cwd=place / "debs")
        for deb in (place / "debs").glob("*.deb"):
            subprocess.run(["dpkg", "-x", deb, place / "root"], check=True)
        (place / "done").touch()
    return place / "root"


def initramfs(public_key: str, modules: Sequence[Path], *, marked: str) -> bytes:
    root, sources = packages("metal", *PACKAGES), Sources(cache_dir(), SilentReporter())
    (busybox,) = guest_programs(["busybox"], "x86_64", sources, SilentReporter())
    libraries = {
        path.name: path for path in root.rglob("*.so.*") if path.is_file() and path.suffix != ".py"
    }
    programs = {f"sbin/{name}": next(root.rglob(f"sbin/{name}")) for name in ("dropbear", "kexec")}
    programs |= {f"{_LIBRARIES}/{name}": path for name, path in libraries.items()}
    loader = next(root.rglob("ld-linux-x86-64.so.2"))
    folders = (
        "bin dev etc etc/dropbear lib lib64 modules proc root root/.ssh sbin sys tmp var var/lib"
    )
    return archive(
        [
            *map(folder, [*folders.split(), _LIBRARIES]),
            character_device("dev/console", 5, 1),
            file("init", Path(__file__).with_name("machine_init.sh").read_bytes(), 0o755),
            file("bin/busybox", busybox.read_bytes(), 0o755),
            symlink("bin/sh", "busybox"),
            *(file(name, path.read_bytes(), 0o755) for name, path in programs.items()),
            file("lib64/ld-linux-x86-64.so.2", loader.read_bytes(), 0o755),
            file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"),
            file("etc/shadow", b"root:*:19000:0:99999:7:::\n", 0o600),
            file("etc/shells", b"/bin/sh\n"),
            file("etc/nsswitch.conf", b"passwd: files\n"),
            file("etc/machine-id", f"{MACHINE_ID}\n".encode()),
            *([file("etc/kteardown-test-machine", f"{marked}\n".encode())] if marked else []),
            file("root/.ssh/authorized_keys", public_key.encode(), 0o600),
            file("modules/order", "".join(f"{module.name}\n" for module in modules).encode()),
            *(file(f"modules/{module.name}", module.read_bytes()) for module in modules),
        ]
    )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def timers() -> list[str]:
    """Return arguments with which kernels do not measure the emulator's timers, which are late
    under load.

    A time stamp counter that was measured while the emulator waited for a processor is wrong by a
    factor. It is the counter of this host.
    """
    found = re.search(
        r"^cpu MHz\s*: (\d+)\.(\d{3})$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    return ["no_timer_check", *([f"tsc_early_khz={found[1]}{found[2]}"] if found else [])]


class Machine:
    """The machine, and what a lab needs to reach it; its files are in ``place``."""

    def __init__(
        self,
        place: Path,
        host: str = "kteardown-test-machine",
        *,
        marked: str = MACHINE_ID,
        stop_on_reboot: int = 0,
        arguments: Sequence[str] = (),
        qemu: Sequence[str] = (),
    ) -> None:
        """Start the machine that ssh calls ``host``.

        ``arguments``: of its own kernel; ``qemu``: further options, which override others.
        """
        self.place, self.host = place, host
        self.serial, self.key = place / "serial.log", place / "key"
        self._port, self._line_port = _free_port(), _free_port()
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        image, modules = kernel(_SETTING)
        public = self.key.with_suffix(".pub").read_text()
        (place / "initramfs").write_bytes(initramfs(public, modules, marked=marked))
        with (place / "disk").open("wb") as disk:
            disk.truncate(64 << 20)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", place / "disk"], check=True)
        (place / "ssh_config").write_text(
            f"Host {self.host}\n HostName 127.0.0.1\n Port {self._port}\n User root\n"
            f" IdentityFile {self.key}\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n"
            " LogLevel ERROR\n"
        )
        self.serial.touch()
        command = [*self._command(image, [f"stop_on_reboot={stop_on_reboot}", *arguments]), *qemu]
        self._qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    @property
    def pid(self) -> int:
        return self._qemu.pid

    def _command(self, image: Path, arguments: Sequence[str]) -> list[str]:
        place = self.place
        words = ["console=ttyS0 loglevel=5 panic=5 nokaslr", *arguments, *timers()]
        forward = f"user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{self._port}-:22"
        line_options = (
            f"socket,id=line,host=127.0.0.1,port={self._line_port},server=on,wait=off,nodelay=on"
        )
        return [
            *(
                "setpriv",
                "--pdeathsig",
                "KILL",
                "qemu-system-x86_64",
                "-nodefaults",
                "-no-user-config",
            ),
            *(
                "-display",
                "none",
                "-M",
                "q35",
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "max",
                "-smp",
                "1",
            ),
            *(
                "-m",
                "1024",
                "-kernel",
                str(image),
                "-initrd",
                f"{place}/initramfs",
                "-append",
                " ".join(words),
            ),
            *("-netdev", forward, "-device", "virtio-net-pci,netdev=n,romfile="),
            *(
                "-drive",
                f"file={place}/disk,format=raw,if=none,id=d",
                "-device",
                "virtio-blk-pci,drive=d",
            ),
            *("-device", "i6300esb", "-action", "watchdog=reset"),
            *("-chardev", f"{line_options},logfile={self.serial}", "-serial", "chardev:line"),
            *("-qmp", f"unix:{place}/qmp,server=on,wait=off"),
        ]

    def config(self, **settings: object) -> str:
        """Return the configuration of a lab with this machine."""
        known = {
            "serial": f"echo $$ >{self.place}/serial.pid; exec tail -n 0 -F {self.serial}",
            "ssh": ["-F", str(self.place / "ssh_config")],
            "kernel_args": timers(),
            **settings,
        }
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in known.items())
        return f"[machines.{self.host}]\n{''.join(lines)}"

    @property
    def serial_over_tcp(self) -> str:
        """A command that prints the serial line as a server of consoles offers it."""
        return f"exec bash -c 'exec cat </dev/tcp/127.0.0.1/{self._line_port}'"

    @property
    def power_command(self) -> str:
        return f"{sys.executable} {Path(__file__).with_name('power.py')} {self.place}/qmp"

    def ssh_words(self, *words: str) -> list[str]:
        """Return the words of an ssh to the machine; ``words``: further options, or a command."""
        return [
            "ssh",
            "-F",
            str(self.place / "ssh_config"),
            "-oConnectTimeout=20",
            self.host,
            *words,
        ]

    def ssh(self, command: str, limit_s: float = 60.0) -> str:
        """Run a command on the machine. Raises CalledProcessError, TimeoutExpired."""
        argv = self.ssh_words(command)
        return subprocess.check_output(argv, text=True, timeout=limit_s, stdin=subprocess.DEVNULL)

    @contextmanager
    def logged_in(self) -> Iterator[None]:
        """Have a session of root on the machine in the block."""
        with subprocess.Popen(
            self.ssh_words("-tt"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as user:
            while not self.ssh("users").strip():
                assert user.poll() is None
            yield
            user.kill()
        while self.ssh("users").strip():
            time.sleep(0.5)

    def wait(self, limit_s: float = 300.0) -> str:
        """Wait until the machine answers, and return its boot id."""
        until = time.monotonic() + limit_s
        while True:
            try:
                return self.ssh("cat /proc/sys/kernel/random/boot_id").strip()
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                assert time.monotonic() < until, "the machine does not answer"
                time.sleep(0.5)

    def stop(self) -> None:
        self._qemu.kill()
        self._qemu.wait()
