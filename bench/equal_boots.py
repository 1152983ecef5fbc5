#!/usr/bin/env python3
"""Boot equal guests twice on the instruction clock, and compare what they write byte for byte.

    equal_boots.py [--image FILE]... [--guest NAME]... [--words WORDS]... [--rounds N] [--cpus N]

Two boots of a guest with one CPU must write the same records and the same console (METHODOLOGY.md),
with every QEMU: `make test-hosts` runs this on each host. Each guest is booted as kteardown boots
it, and again with each of --words, which are added to the kernel's command line. The boots of all
words alternate.

Prints the processor time of a boot from starting QEMU to its exit, the least of all rounds, and a
digest of the figures, which is the same for words that change no figure. Exits with 1 if two boots
differ, or if a boot or a trial does not end well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kteardown.door import LARGE, Entry
from kteardown.errors import KteardownError
from kteardown.inputs.load import load_workload
from kteardown.kernels import build
from kteardown.kernels.request import KernelRequest
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.experiment import Sweep
from kteardown.model.plan import PlannedBoot, PlannedTrial
from kteardown.model.point import sweep_points
from kteardown.model.record import BASE
from kteardown.model.record_fields import ParamValue
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.run.boot_job import SILENCE_FACTOR, guest_plan
from kteardown.vm.agent import build_agent
from kteardown.vm.host import qemu_version
from kteardown.vm.initramfs import pack
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine
from kteardown_hunt.plan import Case, Options, plan_of_sizes

MEMORY_MB = 1024
SILENCE_S = 120
CASES = (
    Case("pipes", "exit"),
    Case("posix_timers", "exit"),
    Case("timerfds", "exit"),
    Case("itimers", "call"),
    Case("sleepers", "call"),
    Case("zombies_two_groups", "call"),
)
"""Of the hunt: kinds that the base kernel has; the objects of four of them are timers."""
SIZES = (72, 288, 1152)
BUDGET_MINSTR = 2000
Params = Mapping[str, tuple[ParamValue, ...]]
GUESTS: Mapping[str, tuple[str, Params]] = {
    "start": ("", {}),
    "freezer": ("zombies", {"zombies": (0, 3000)}),
    "throttle": (
        "holder",
        {"what": ("listing", "smaps"), "quota": (20,), "holders": (1,), "duration_ms": (200,)},
    ),
    "throttle-quota": (
        "quota",
        {"tasks": (1, 24), "work": ("spin", "syscall", "burst"), "periods": (10,)},
    ),
    "throttle-irqs": (
        "quota",
        {"tasks": (250,), "on": ("one",), "periods": (5,), "irq_timer_us": (20,)},
    ),
    "throttle-depth": (
        "wakeups",
        {
            "depth": (0, 10),
            "threads": (1, 8),
            "operations": (0,),
            "locking": ("off",),
            "runtime_ms": (50,),
        },
    ),
    "hunt": ("hunt", {}),
}
"""By the name of the experiment whose workload it runs, that workload with its points: few of them,
small."""


@dataclass(frozen=True)
class Booted:
    """One boot: what it wrote, and its processor time in seconds."""

    records: tuple[bytes, ...]
    console: bytes
    processor_s: float

    @property
    def figures(self) -> str:
        """A digest of the samples, without when they were taken."""
        records = map(json.loads, self.records)
        samples = [record for record in records if record["type"] in ("sample", "histogram")]
        return hashlib.sha256(json.dumps(samples, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def failed(self) -> int:
        """How many trials are void or failed."""
        ends = [record for record in map(json.loads, self.records) if record["type"] == "trial_end"]
        return sum(record["status"] != "ok" for record in ends)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--image",
        action="append",
        type=Path,
        help="a built bzImage; debian:6.12 is built if omitted",
    )
    parser.add_argument(
        "--guest",
        action="append",
        choices=GUESTS,
        help="what the guest runs; everything if omitted",
    )
    parser.add_argument(
        "--words", action="append", default=[], help="added to the kernel's command line"
    )
    parser.add_argument("--rounds", type=int, default=2, help="boots of each guest with each words")
    parser.add_argument("--cpus", type=int, default=1)
    return parser.parse_args()


def planned(guest: str) -> PlannedBoot:
    """Return the boot of a guest, with all its trials."""
    workload, params = GUESTS[guest]
    if workload == "hunt":
        boots = plan_of_sizes(
            dict.fromkeys(CASES, SIZES), [BASE], [0], Options(BUDGET_MINSTR)
        ).boots
        trials = [trial for boot in boots for trial in boot.trials]
        numbered = [trial.model_copy(update={"index": index}) for index, trial in enumerate(trials)]
        return boots[0].model_copy(update={"trials": tuple(numbered)})
    points: Sequence[Mapping[str, ParamValue]] = ()
    if workload:
        points = sweep_points(
            Sweep(workload=workload, params=dict(params)), load_workload(workload)
        )
    trials = [
        PlannedTrial(index=index, workload=workload, params={**point}, warmup=0, repetitions=1)
        for index, point in enumerate(points)
    ]
    return PlannedBoot(index=0, block=0, kernel=BASE, seed=1, trials=tuple(trials))


def job_of(guest: str, image: Path, cpus: int, folder: Path) -> BootJob:
    """Return the job of a guest; its files are written into ``folder``."""
    agent = build_agent(
        DEFAULT_ARCH,
        cache=cache_dir(),
        reporter=SilentReporter(),
        also="hunt" if guest == "hunt" else "",
    )
    return BootJob(
        image=image,
        initramfs=pack(
            Entry(folder) / f"{guest}.cpio", agent=agent, plan=guest_plan(planned(guest))
        ),
        arch=DEFAULT_ARCH,
        acceleration="icount",
        cpus=cpus,
        memory_mb=MEMORY_MB,
        seed=1,
        console=Entry(folder) / "console",
        silence_s=SILENCE_S * SILENCE_FACTOR["icount"],
    )


def boot(job: BootJob, words: str) -> Booted:
    """Boot a job to its end with more words. Exits if the guest does not end well."""
    records: list[bytes] = []
    asked = replace(job, kernel_args=(*job.kernel_args, *words.split()))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    end = QemuMachine().boot(asked, records.append)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    console = job.console.content(LARGE)
    if end.outcome != "ok":
        last = console.decode(errors="replace")[-500:]
        sys.exit(f"a guest with {words!r} ended with {end.outcome}: {end.detail}\n{last}")
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Booted(tuple(records), console, processor_s)


def differs(boots: Sequence[Booted]) -> str:
    """Return the first line in which a later boot differs from the first one; empty if there is
    none."""
    for later in boots[1:]:
        for what in ("records", "console"):
            first, other = getattr(boots[0], what), getattr(later, what)
            if first != other:
                lines = zip(
                    *(b if what == "records" else b.splitlines() for b in (first, other)),
                    strict=False,
                )
                number = next(
                    (n for n, (line, later_line) in enumerate(lines, 1) if line != later_line), None
                )
                return f"line {number} of the {what}" if number else f"the length of the {what}"
    return ""


def compare(job: BootJob, guest: str, words: Sequence[str], rounds: int) -> bool:
    """Boot a guest with each of ``words`` and print a line for each; return whether all is as it
    must be."""
    boots_of: dict[str, list[Booted]] = {word: [] for word in words}
    for _ in range(rounds):
        for word in words:
            boots_of[word].append(boot(job, word))
    alike = True
    for word, boots in boots_of.items():
        least_s = min(booted.processor_s for booted in boots)
        difference, failed = differs(boots), boots[0].failed
        alike = alike and not difference and not failed
        result = f"DIFFERENT: {difference}" if difference else "equal"
        result += f", {failed} TRIALS FAILED" if failed else ""
        print(f"{guest:15} {least_s:6.2f} s  {result:6} {boots[0].figures}  {word}", flush=True)
    return alike


def main() -> int:
    chosen = options()
    images = chosen.image
    if images is None:
        request = KernelRequest(BASE, "debian:6.12")
        built = build.ensure([request], cache_dir=cache_dir(), reporter=SilentReporter())
        images = [built.images[BASE].image]
    words = ["", *chosen.words]
    print(f"QEMU {qemu_version(DEFAULT_ARCH)}, {chosen.cpus} CPU, {chosen.rounds} boots of each")
    alike = True
    with tempfile.TemporaryDirectory(prefix="kteardown-bench-") as name:
        for image in images:
            print(image)
            boot(job_of("start", image, chosen.cpus, Path(name)), "")  # Warms the page cache.
            for guest in chosen.guest or GUESTS:
                alike = (
                    compare(
                        job_of(guest, image, chosen.cpus, Path(name)), guest, words, chosen.rounds
                    )
                    and alike
                )
    return 0 if alike else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KteardownError as error:
        sys.exit(f"{error.message}\n{error.hint}")
