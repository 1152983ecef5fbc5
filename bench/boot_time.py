#!/usr/bin/env python3
"""Measure how long a boot takes, compared with three others.

- On the instruction clock with one CPU, the processor time from start to exit, with a PID 1 that
  powers off at once, compared with the same kernel without what makes this boot short: QEMU starts
  the bzImage itself, and the kernel calibrates its timers and describes its tracepoints. Limit: a
  fifth of its time.
- In real time, the time from starting QEMU to the agent's first record, compared with the same QEMU
  options without kteardown's channels and that PID 1, from start to exit. Limit: 1.15 times its
  time.
- With --vng-image, the same compared with virtme-ng, which boots that image to `true`, emulated,
  from start to exit. Limit: a quarter of its time. The image needs the symbols that virtme-ng
  requires.

Each round runs every boot once, in a rotating order; the medians are compared. Exits with 1
if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kteardown.door import Entry
from kteardown.errors import KteardownError
from kteardown.kernels import build
from kteardown.kernels.request import KernelRequest
from kteardown.model.arch import ARCHITECTURES
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import build_agent
from kteardown.vm.direct_boot import without_decompressor
from kteardown.vm.initramfs import pack
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine
from kteardown.vm.qemu_command import GIVEN, qemu_command

SHORT_LIMIT = 0.2
BARE_LIMIT = 1.15
VNG_LIMIT = 0.25
PLAN = "kteardown-plan 1\nseed 1\n"
# Arguments of the kernel without which a boot on the instruction clock is long.
SHORTENING = {*ARCHITECTURES["x86_64"].one_cpu_arguments, *GIVEN["without_script"]}
# Words of the QEMU options that make kteardown's own channels.
CHANNELS = ("id=records", "virtio-serial-pci", "virtserialport", "id=monitor", "chardev:monitor")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--image", type=Path, help="a built bzImage; debian:6.12 is built if omitted"
    )
    parser.add_argument("--agent", type=Path, help="a built agent; built if omitted")
    parser.add_argument("--vng-image", type=Path, help="a bzImage that virtme-ng can boot")
    parser.add_argument("--vng", default="vng", help="the program of virtme-ng 1.42")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def first_record(image: Path, initramfs: Path, folder: Path) -> float:
    """Return the seconds from starting QEMU to the agent's first record."""
    result = QemuMachine().boot(job(image, initramfs, folder), lambda _: None)
    if result.outcome != "ok" or result.first_record_s is None:
        sys.exit(f"the guest with the agent ended with {result.outcome}: {result.detail}")
    return result.first_record_s


def bare(image: Path, initramfs: Path, folder: Path) -> float:
    """Return the seconds from starting QEMU to its exit, without the agent and kteardown's
    channels."""
    words = qemu_command(job(image, initramfs, folder), records=-1, monitor=-1)
    return real_time_s(without_channels(words))


def short(image: Path, initramfs: Path, folder: Path) -> float:
    """Return the processor time of a boot as it is on the instruction clock, in seconds."""
    kernel = without_decompressor(image)
    if kernel is None:
        sys.exit(f"{image} has no kernel that QEMU could start directly")
    with kernel:
        direct = Path(f"/dev/fd/{kernel.fileno()}")
        words = qemu_command(counted_job(direct, initramfs, folder), records=-1, monitor=-1)
        return processor_time_s(without_channels(words), (kernel.fileno(),))


def long(image: Path, initramfs: Path, folder: Path) -> float:
    """Return the processor time of the boot without what shortens it, in seconds."""
    words = qemu_command(counted_job(image, initramfs, folder), records=-1, monitor=-1)
    at = words.index("-append") + 1
    words[at] = " ".join(word for word in words[at].split() if word not in SHORTENING)
    return processor_time_s(without_channels(words))


def without_channels(words: list[str]) -> list[str]:
    command = list(words)
    for option, value in itertools.pairwise(words):
        if option in ("-chardev", "-device", "-mon", "-qmp") and any(
            channel in value for channel in CHANNELS
        ):
            at = command.index(value)
            del command[at - 1 : at + 1]
    return command


def real_time_s(command: list[str]) -> float:
    began = time.perf_counter()
    run(command)
    return time.perf_counter() - began


def processor_time_s(command: list[str], inherited: tuple[int, ...] = ()) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, inherited)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(command: list[str], inherited: tuple[int, ...] = ()) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=inherited,
        check=False,
    )
    if done.returncode:
        sys.exit(
            f"{command[0]} ended with {done.returncode}: "
            f"{done.stdout.decode(errors='replace')[-500:]}"
        )


def job(image: Path, initramfs: Path, folder: Path) -> BootJob:
    # Two CPUs and 1 GB, the same as for virtme-ng.
    return BootJob(
        image=image,
        initramfs=initramfs,
        arch="x86_64",
        acceleration="mttcg",
        cpus=2,
        memory_mb=1024,
        seed=1,
        console=Entry(folder) / "console",
        silence_s=300,
    )


def counted_job(image: Path, initramfs: Path, folder: Path) -> BootJob:
    return replace(job(image, initramfs, folder), acceleration="icount", cpus=1)


def measure(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each contender, after a first round that only warms the page cache."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            took = contenders[name]()
            if turn:
                times[name].append(took)
    for name, durations in times.items():
        print(
            f"{name:28} median {statistics.median(durations):7.3f} s   of {len(durations)}, min "
            f"{min(durations):.3f} s"
        )
    return {name: statistics.median(durations) for name, durations in times.items()}


def verdict(what: str, ratio: float, limit: float) -> bool:
    print(f"{what}: {ratio:.3f} (limit {limit:g}): {'met' if ratio <= limit else 'MISSED'}")
    return ratio <= limit


def main() -> int:
    chosen = options()
    image, agent = chosen.image, chosen.agent
    if image is None:
        request = KernelRequest("base", "debian:6.12")
        image = (
            build.ensure([request], cache_dir=cache_dir(), reporter=SilentReporter())
            .images["base"]
            .image
        )
    if agent is None:
        agent = build_agent("x86_64", cache=cache_dir(), reporter=SilentReporter())
    with tempfile.TemporaryDirectory(prefix="kteardown-bench-") as name:
        folder = Path(name)
        source = Path(__file__).with_name("power_off.c")
        subprocess.run(["gcc", "-O2", "-static", "-o", folder / "power_off", source], check=True)
        ours = pack(Entry(folder) / "agent.cpio", agent=agent, plan=PLAN)
        least = pack(Entry(folder) / "bare.cpio", agent=folder / "power_off", plan="")
        print(f"{image}, instruction clock, one CPU: processor time")
        times_s = measure(
            {
                "as it is": lambda: short(image, least, folder),
                "without it": lambda: long(image, least, folder),
            },
            chosen.rounds,
        )
        met = verdict(
            "as it is / without it", times_s["as it is"] / times_s["without it"], SHORT_LIMIT
        )
        print(f"{image}, real time, two CPUs")
        times_s = measure(
            {
                "agent's first record": lambda: first_record(image, ours, folder),
                "bare, power off at once": lambda: bare(image, least, folder),
            },
            chosen.rounds,
        )
        ratio = times_s["agent's first record"] / times_s["bare, power off at once"]
        met = verdict("first record / bare", ratio, BARE_LIMIT) and met
        if chosen.vng_image:
            vng = [chosen.vng, "-r", str(chosen.vng_image), "--disable-kvm", "--force-9p"]
            vng += ["-m", "1G", "-p", "2", "--user", "root", "--", "true"]
            print(f"{chosen.vng_image}; virtme-ng: {' '.join(vng[1:])}")
            times_s = measure(
                {
                    "agent's first record": lambda: first_record(chosen.vng_image, ours, folder),
                    "virtme-ng to `true`": lambda: real_time_s(vng),
                },
                chosen.rounds,
            )
            ratio = times_s["agent's first record"] / times_s["virtme-ng to `true`"]
            met = verdict("first record / virtme-ng", ratio, VNG_LIMIT) and met
    return 0 if met else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KteardownError as error:
        sys.exit(f"{error.message}\n{error.hint}")
