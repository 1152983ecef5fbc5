#!/usr/bin/env python3
"""Measure the time from starting QEMU to the agent's first record, compared with two other boots.

- The same kernel with the same QEMU options but without kteardown's channels, and with a PID 1 that
  powers off at once: from start to exit. Limit: 1.15 times its time.
- With --vng-image, virtme-ng booting that image to `true`, emulated: from start to exit. Limit: a
  quarter of its time. The image needs the symbols that virtme-ng requires.

Each round runs every boot once, in a rotating order; the medians are compared. Exits with 1
if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kteardown.door import Entry
from kteardown.errors import KteardownError
from kteardown.kernels import build
from kteardown.kernels.request import KernelRequest
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import build_agent
from kteardown.vm.initramfs import pack
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine, qemu_command

BARE_LIMIT, VNG_LIMIT = 1.15, 0.25
PLAN = "kteardown-plan 1\nseed 1\n"
# Words of the QEMU options that make kteardown's own channels.
CHANNELS = ("id=records", "virtio-serial-pci", "virtserialport", "id=monitor", "chardev=monitor")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--image", type=Path, help="a built bzImage; debian:6.12 is built if omitted")
    parser.add_argument("--agent", type=Path, help="a built agent; built if omitted")
    parser.add_argument("--vng-image", type=Path, help="a bzImage that virtme-ng can boot")
    parser.add_argument("--vng", default="vng", help="the program of virtme-ng 1.42")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--acceleration", choices=["mttcg", "icount"], default="mttcg")
    return parser.parse_args()


def first_record(image: Path, initramfs: Path, folder: Path, acceleration: str) -> float:
    """Return the seconds from starting QEMU to the agent's first record."""
    result = QemuMachine().boot(job(image, initramfs, folder, acceleration), lambda _: None)
    if result.outcome != "ok" or result.first_record_s is None:
        sys.exit(f"the guest with the agent ended with {result.outcome}: {result.detail}")
    return result.first_record_s


def bare(image: Path, initramfs: Path, folder: Path, acceleration: str) -> float:
    """Return the seconds from starting QEMU to its exit, without the agent and kteardown's channels."""
    words = qemu_command(job(image, initramfs, folder, acceleration), records=-1, monitor=-1)
    command = list(words)
    for option, value in itertools.pairwise(words):
        if option in ("-chardev", "-device", "-mon") and any(channel in value for channel in CHANNELS):
            at = command.index(value)
            del command[at - 1 : at + 1]
    return run(command)


def run(command: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    took = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stdout.decode(errors='replace')[-500:]}")
    return took


def job(image: Path, initramfs: Path, folder: Path, acceleration: str) -> BootJob:
    # Two CPUs and 1 GB, the same as for virtme-ng.
    return BootJob(
        image=image,
        initramfs=initramfs,
        arch="x86_64",
        acceleration="icount" if acceleration == "icount" else "mttcg",
        cpus=2,
        memory_mb=1024,
        seed=1,
        console=Entry(folder) / "console",
        silence_s=300,
    )


def measure(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each contender, after a first round that only warms the page cache."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            took = contenders[name]()
            if turn:
                times[name].append(took)
    for name, seen in times.items():
        print(f"{name:28} median {statistics.median(seen):7.3f} s   of {len(seen)}, min {min(seen):.3f} s")
    return {name: statistics.median(seen) for name, seen in times.items()}


def verdict(what: str, ratio: float, limit: float) -> bool:
    print(f"{what}: {ratio:.3f} (limit {limit:g}): {'met' if ratio <= limit else 'MISSED'}")
    return ratio <= limit


def main() -> int:
    chosen = options()
    image, agent = chosen.image, chosen.agent
    if image is None:
        request = KernelRequest("base", "debian:6.12")
        image = build.ensure([request], cache_dir=cache_dir(), reporter=SilentReporter()).images["base"].image
    if agent is None:
        agent = build_agent("x86_64", cache=cache_dir(), reporter=SilentReporter())
    with tempfile.TemporaryDirectory(prefix="kteardown-bench-") as name:
        folder = Path(name)
        source = Path(__file__).with_name("power_off.c")
        subprocess.run(["gcc", "-O2", "-static", "-o", folder / "power_off", source], check=True)
        ours = pack(Entry(folder) / "agent.cpio", agent=agent, plan=PLAN)
        least = pack(Entry(folder) / "bare.cpio", agent=folder / "power_off", plan="")
        how = chosen.acceleration
        print(f"{image}, {how}")
        medians = measure(
            {
                "agent's first record": lambda: first_record(image, ours, folder, how),
                "bare, power off at once": lambda: bare(image, least, folder, how),
            },
            chosen.rounds,
        )
        met = verdict(
            "first record / bare",
            medians["agent's first record"] / medians["bare, power off at once"],
            BARE_LIMIT,
        )
        if chosen.vng_image:
            vng = [chosen.vng, "-r", str(chosen.vng_image), "--disable-kvm", "--force-9p"]
            vng += ["-m", "1G", "-p", "2", "--user", "root", "--", "true"]
            print(f"{chosen.vng_image}, {how}; virtme-ng: {' '.join(vng[1:])}")
            medians = measure(
                {
                    "agent's first record": lambda: first_record(chosen.vng_image, ours, folder, how),
                    "virtme-ng to `true`": lambda: run(vng),
                },
                chosen.rounds,
            )
            ratio = medians["agent's first record"] / medians["virtme-ng to `true`"]
            met = verdict("first record / virtme-ng", ratio, VNG_LIMIT) and met
    return 0 if met else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KteardownError as error:
        sys.exit(f"{error.message}\n{error.hint}")
