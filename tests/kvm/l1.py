"""A host with KVM for tests: L1, a guest on an emulated processor whose virtualization QEMU
implements.

In L1 the lab's guests (L2) run under KVM. Its kernel is Debian's cloud kernel. It sees a tree of
the host, at the same paths, by virtiofs, and keeps its changes in memory; only the folder of jobs
is written through. Its clock counts instructions, so that the limits of time in it do not depend on
the load of the host. Root privileges are not needed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from kteardown.kernels import prebuilt
from kteardown.kernels.cache import Cache
from kteardown.kernels.guest_programs import guest_programs
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Sources, package_from_json
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.initramfs import archive, character_device, file, folder

MEMORY_MB = 2560
SILENT_S = 150.0
"""For a start of L1, which takes 10 s of the processor, and a boot of a guest in it, which takes up
to 25."""
VIRTIOFSD = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
KERNEL_ARGUMENTS = "quiet loglevel=4 panic=-1 mitigations=off nokaslr audit=0"
CLOCK = ("-accel", "tcg,thread=single,tb-size=768", "-icount", "shift=1", "-smp", "1")


@dataclass(frozen=True)
class Setting:
    """The machine that L1 is. ``board`` and ``cpu`` are QEMU's."""

    arch: Arch
    board: str
    cpu: str
    modules: tuple[str, ...]
    """What L1's kernel loads, besides what these need."""
    arguments: str
    """Further arguments of L1's kernel."""
    guest_options: tuple[str, ...] = ()
    """What L1's QEMU adds to the lab's command line for L2."""
    tree: Path = Path("/")
    """The folder of the host that L1 sees as its root."""


AMD = Setting(
    arch="x86_64",
    board="q35",
    # Without XSAVE: the emulator lets L2 set XCR0 without KVM, and L2's kernel warns of the wrong
    # sizes.
    cpu="max,la57=off,-pku,-xsave",
    modules=("kvm_amd", "overlay"),
    arguments="console=ttyS0 tsc=reliable no_timer_check",
    # QEMU's emulation of SVM delivers an interrupt that KVM injected a second time if a timer of L1
    # expires before L2 exits again; in the tick of L2 that is a deadlock (docs/kvm-tests.md).
    # Without paravirtual end-of-interrupt, L2 exits early in its interrupt handlers.
    guest_options=("-global", "host-x86_64-cpu.kvm-pv-eoi=off"),
)


def server_of_files() -> tuple[str, str]:
    """Return the program that shares files with L1, and its help. Raises L1Error if it is not
    installed."""
    daemon = next((path for path in VIRTIOFSD if Path(path).exists()), "")
    if not daemon:
        raise L1Error("virtiofsd is not installed; in Debian 12 it is a part of qemu-system-common")
    return daemon, subprocess.run(
        [daemon, "--help"], capture_output=True, text=True, check=False
    ).stdout


class L1Error(Exception):
    """L1 ended, or a job was silent for too long. ``output`` is what the job had printed."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


@dataclass(frozen=True)
class Done:
    """What a job did. ``seconds`` are the host's."""

    status: int
    output: str
    seconds: float


def kernel(setting: Setting) -> tuple[Path, list[Path]]:
    """Return the image of L1's kernel and its modules in load order, from the cache or fetched into
    it."""
    sources = Sources(cache_dir(), SilentReporter())
    architecture = ARCHITECTURES[setting.arch].debian
    pattern = rf"linux-image-6\.12\.\d+\+deb12-cloud-{architecture}(?:-unsigned)?"
    answer = sources.remember(
        "tests:kvm",
        pattern,
        lambda: {"package": json.dumps(asdict(sources.find_package(pattern, architecture)))},
    )
    package = sources.package_file(package_from_json(answer["package"]), architecture)
    request = KernelRequest("l1", f"image:{package}", modules=setting.modules, arch=setting.arch)
    image = prebuilt.ensure(request, Cache(cache_dir()), sources, SilentReporter())
    needed = [
        *image.modules,
        *(path for name in setting.modules for path in image.optional_modules[name]),
    ]
    return image.image, list(dict.fromkeys(needed))


def initramfs(arch: Arch, modules: Sequence[Path]) -> bytes:
    """Return the root file system in which L1 starts."""
    sources = Sources(cache_dir(), SilentReporter())
    (busybox,) = guest_programs(["busybox"], arch, sources, SilentReporter())
    init = Path(__file__).with_name("l1_init.sh").read_bytes()
    order = "".join(f"{module.name}\n" for module in modules)
    return archive(
        [
            *map(folder, ("bin", "dev", "modules", "proc", "sys")),
            character_device("dev/console", 5, 1),
            file("init", init, 0o755),
            file("bin/busybox", busybox.read_bytes(), 0o755),
            file("modules/order", order.encode()),
            *(file(f"modules/{module.name}", module.read_bytes()) for module in modules),
        ]
    )


class L1:
    """Runs jobs in L1, and starts it when there is none. A job that gets no answer has a second
    try.

    ``place`` is the folder of its files; jobs may write to ``jobs``.
    """

    def __init__(self, place: Path, setting: Setting = AMD) -> None:
        self.retries: list[str] = []
        """Why a job was tried again, for each time."""
        self.started_s: list[float] = []
        """Host seconds until L1 was ready, for each start."""
        self._place = place
        self.setting = setting
        self._processes: list[subprocess.Popen[bytes]] = []
        self._starts = 0
        self._number = 0
        self.jobs.mkdir(exist_ok=True)

    @property
    def jobs(self) -> Path:
        """The folder that L1 and the host share, at the same path."""
        return self._place / "jobs"

    def run(self, script: str, *, silent_s: float = SILENT_S) -> Done:
        """Run a script of the shell in L1; if it gets no answer, once more. Raises L1Error if both
        do not.

        ``silent_s`` is a limit in seconds of the processor for L1 between two outputs of the job.
        """
        try:
            return self.attempt(script, silent_s=silent_s)
        except L1Error as error:
            self.retry(error)
            return self.attempt(script, silent_s=silent_s)

    def python(self, *arguments: str | Path, silent_s: float = SILENT_S) -> Done:
        """Run this Python with ``arguments``, as ``run`` does."""
        return self.run(shlex.join(map(str, (sys.executable, *arguments))), silent_s=silent_s)

    def retry(self, error: L1Error) -> None:
        """End L1 because of ``error``, and count that what failed is tried again."""
        self.stop()
        self.retries.append(str(error))
        print(f"kvm: tried again: {error}", file=sys.stderr)

    def stop(self) -> None:
        """End L1. What it has written to ``jobs`` stays."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()

    def attempt(self, script: str, *, silent_s: float = SILENT_S) -> Done:
        """Run a script as ``run`` does, but only once."""
        if not self._processes:
            self._start()
        self._number += 1
        job = self.jobs / f"{self._number}.part"
        job.write_text(f"{self._environment()}{script}\n")
        begun = time.monotonic()
        job.rename(job.with_suffix(".sh"))
        output = self._wait(job.with_suffix(".status"), job.with_suffix(".out"), silent_s)
        return Done(int(job.with_suffix(".status").read_text()), output, time.monotonic() - begun)

    def _start(self) -> None:
        image, modules = kernel(self.setting)
        self._starts += 1
        self._number = 0
        # Jobs keep what they wrote for a second start, but not their numbers.
        for old in (*self.jobs.glob("[0-9]*.*"), self.jobs / "ready"):
            old.unlink(missing_ok=True)
        (self.jobs / "place").write_text(str(self.jobs))
        self._write_qemu()
        (self._place / "initramfs").write_bytes(initramfs(self.setting.arch, modules))
        begun = time.monotonic()
        sockets = [
            self._share("tree", self.setting.tree, "always"),
            self._share("jobs", self.jobs, "none"),
        ]
        self._spawn("qemu", self._command(image, sockets))
        self._wait(self.jobs / "ready", self._place / f"console-{self._starts}", SILENT_S)
        self.started_s.append(time.monotonic() - begun)

    def _write_qemu(self) -> None:
        """Write the QEMU that L1 finds first: it adds the options of the setting."""
        name = ARCHITECTURES[self.setting.arch].qemu
        script = self.jobs / "bin" / name
        script.parent.mkdir(exist_ok=True)
        options = shlex.join(self.setting.guest_options)
        script.write_text(f'#!/bin/sh\nPATH=${{PATH#*:}}\nexec {name} {options} "$@"\n')
        script.chmod(0o755)

    def _share(self, tag: str, source: Path, cache: str) -> Path:
        """Start a server of files for ``source``. Its sandbox needs privileges or a user
        namespace."""
        daemon, known = server_of_files()
        path = self._place / f"{tag}.socket"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(1)
            options = ["-o", f"source={source}", "-o", "sandbox=chroot", "-o", f"cache={cache}"]
            if "--no-announce-submounts" in known:
                # Else mount points below the tree are mounts in L1, too, which its overlay does not
                # show.
                options.append("--no-announce-submounts")
            namespace = ("unshare", "--map-root-user") if os.geteuid() else ()
            self._spawn(
                tag,
                [
                    *(*namespace, "setpriv", "--pdeathsig", "KILL", daemon),
                    *(
                        f"--fd={listening.fileno()}",
                        *options,
                        "--thread-pool-size=1",
                        "--rlimit-nofile=0",
                    ),
                ],
                listening.fileno(),
            )
        return path

    def _command(self, image: Path, sockets: Sequence[Path]) -> list[str]:
        devices: list[str] = []
        for path in sockets:
            devices += ["-chardev", f"socket,id={path.stem},path={path}"]
            devices += ["-device", f"vhost-user-fs-pci,chardev={path.stem},tag={path.stem}"]
        qemu = ARCHITECTURES[self.setting.arch].qemu
        arguments = f"{KERNEL_ARGUMENTS} {self.setting.arguments}"
        return [
            *(
                "setpriv",
                "--pdeathsig",
                "KILL",
                qemu,
                "-nodefaults",
                "-no-user-config",
                "-no-reboot",
            ),
            *("-display", "none", "-M", self.setting.board, "-cpu", self.setting.cpu, *CLOCK),
            *("-m", str(MEMORY_MB), "-numa", "node,memdev=memory"),
            *("-object", f"memory-backend-memfd,id=memory,size={MEMORY_MB}M,share=on"),
            *(
                "-kernel",
                str(image),
                "-initrd",
                str(self._place / "initramfs"),
                "-append",
                arguments,
            ),
            *("-chardev", f"file,id=console,path={self._place / f'console-{self._starts}'}"),
            *("-serial", "chardev:console", *devices),
        ]

    def _environment(self) -> str:
        kept = {
            "PATH": f"{self.jobs / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.jobs / "home"),
            "TERM": "dumb",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KTEARDOWN_CACHE": str(cache_dir()),
            "KTEARDOWN_RUNS": str(self.jobs / "runs"),
        }
        return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in kept.items())

    def _spawn(self, name: str, argv: Sequence[str], *descriptors: int) -> None:
        if not shutil.which(argv[0]):
            raise L1Error(f"{argv[0]} is not installed")
        with (self._place / f"{name}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=descriptors
                )
            )

    def _wait(self, end: Path, printed: Path, silent_s: float) -> str:
        """Wait until the file ``end`` exists, and return the text of the file ``printed``."""
        qemu = psutil.Process(self._processes[-1].pid)
        text, used_s, since = "", _processor_s(qemu), time.monotonic()
        while not end.exists():
            if any(process.poll() is not None for process in self._processes):
                logs = "; ".join(
                    log.read_text()[-500:].strip() for log in self._place.glob("*.log")
                )
                raise L1Error(f"L1 ended by itself: {logs}", text)
            before, text = text, printed.read_text(errors="replace") if printed.exists() else ""
            if text != before:
                used_s, since = _processor_s(qemu), time.monotonic()
            # The host may have given L1 only a small share of a processor.
            if _processor_s(qemu) - used_s > silent_s or time.monotonic() - since > 20 * silent_s:
                raise L1Error(f"L1 was silent for {silent_s:g} s of the processor", text)
            time.sleep(0.1)
        return printed.read_text(errors="replace") if printed.exists() else ""


def _processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
