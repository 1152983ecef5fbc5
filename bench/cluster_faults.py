"""Inject faults at random moments into runs on a real Slurm, and compare each result with an
unbroken run.

    cluster_faults.py FOLDER [--faults N] [--seconds S] [--seed N]

Needs Debian's slurm-wlm and munge, and root for the small file system of the runs (without root
that fault is left out). FOLDER keeps the reference and ``faults.ndjson``, one line for each run;
called again, it goes on until N faults were injected, and prints the table.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from slurm.cluster import Cluster, Site, small_experiment

ROOT = Path(__file__).parents[1]
EXPERIMENT = small_experiment("faults", 4)
PER_RUN = 6
LIMIT_S = 400.0


class Lab:
    """A cluster, a small file system for the runs, and the driver."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.cluster = Cluster(folder)
        self.runs = folder / "runs"
        self.mounted = False
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.driver: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Lab:
        self.cluster.start()
        self.runs.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=96m", "kteardown-faults", str(self.runs)]
        self.mounted = os.geteuid() == 0 and not subprocess.run(mount, check=False).returncode
        site = Site(self.cluster, self.folder)
        site.configure(partition="boots", attempts=60)
        self.environment = {**site.environment, "PYTHONPATH": str(ROOT / "src")}
        (self.folder / "faults.toml").write_text(EXPERIMENT)
        return self

    def __exit__(self, *_: object) -> None:
        if self.driver and self.driver.poll() is None:
            self.driver.kill()
            self.driver.wait()
        self.cluster.stop()
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self.runs)], check=False)

    def drive(self, *arguments: str) -> None:
        """Start the driver."""
        with (self.folder / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(
                [str(ROOT / ".venv/bin/kteardown"), "run", *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def guests(self) -> list[int]:
        """Return the QEMU processes of the runs."""
        pids = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if words.startswith(b"qemu-system") and str(self.runs).encode() in words:
                pids.append(int(entry.name))
        return pids

    def run_dir(self) -> Path | None:
        """Return the run directory that has a plan, if there is one."""
        return next((file.parent for file in self.runs.glob("*/run.json")), None)

    # Faults. Each returns whether there was anything to break.

    def kill_driver(self) -> bool:
        assert self.driver is not None
        if self.run_dir() is None:
            return False
        self.driver.kill()
        return True

    def kill_slurmd(self) -> bool:
        node = self.rng.choice(self.cluster.nodes)
        if not self.cluster.alive(f"slurmd-{node}"):
            return False
        self.cluster.kill(f"slurmd-{node}")
        pause = self.rng.choice((0.3, 1.0, 3.0, 3.0, 25.0))
        self.later.append((time.monotonic() + pause, lambda: self.cluster.start_node(node)))
        return True

    def kill_slurmctld(self) -> bool:
        if not self.cluster.alive("slurmctld"):
            return False
        self.cluster.kill("slurmctld")
        self.later.append(
            (time.monotonic() + self.rng.choice((0.1, 1.0, 4.0)), self.cluster.start_controller)
        )
        return True

    def cancel_job(self) -> bool:
        jobs = self.cluster.command("squeue", "-h", "-t", "PD,R", "-o", "%i").split()
        if not jobs:
            return False
        self.cluster.command("scancel", self.rng.choice(jobs))
        return True

    def kill_step(self) -> bool:
        return self._kill(self.cluster.steps())

    def kill_qemu(self) -> bool:
        return self._kill(self.guests())

    def fill_disk(self) -> bool:
        if not self.mounted or (self.runs / "filler").exists():
            return False
        with (self.runs / "filler").open("wb") as filler:
            try:
                while True:
                    os.write(filler.fileno(), bytes(1 << 16))
            except OSError:
                pass
        free = (self.runs / "filler").unlink
        self.later.append((time.monotonic() + self.rng.choice((0.5, 2.0, 5.0)), free))
        return True

    def _kill(self, processes: list[int]) -> bool:
        if not processes:
            return False
        try:
            os.kill(self.rng.choice(processes), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def undo_due(self, *, all_of_it: bool = False) -> None:
        """Undo what was to be undone by now."""
        now = time.monotonic()
        due = [undo for at, undo in self.later if all_of_it or at <= now]
        self.later = [] if all_of_it else [entry for entry in self.later if entry[0] > now]
        for undo in due:
            undo()


FAULTS: dict[str, Callable[[Lab], bool]] = {
    "driver killed": Lab.kill_driver,
    "slurmd killed": Lab.kill_slurmd,
    "slurmctld killed": Lab.kill_slurmctld,
    "job cancelled": Lab.cancel_job,
    "slurmstepd killed": Lab.kill_step,
    "QEMU killed": Lab.kill_qemu,
    "file system full": Lab.fill_disk,
}


def measure(lab: Lab, faults: int) -> dict[str, Any]:
    """Run the experiment once with so many faults, and return what was found."""
    for left in lab.runs.iterdir():
        shutil.rmtree(left, ignore_errors=True)
    injected: list[str] = []
    began = time.monotonic()
    sessions = 1
    lab.drive(str(lab.folder / "faults.toml"), "--on", "slurm")
    following = time.monotonic() + lab.rng.uniform(1.0, 6.0)
    while time.monotonic() - began < LIMIT_S:
        time.sleep(0.1)
        lab.undo_due()
        assert lab.driver is not None
        status = lab.driver.poll()
        if status == 0:
            break
        if status is not None:
            time.sleep(lab.rng.uniform(0.2, 3.0))
            sessions += 1
            lab.drive("--resume", "last", "--on", "slurm")
            continue
        if len(injected) < faults and time.monotonic() >= following:
            kind = lab.rng.choice(list(FAULTS))
            if FAULTS[kind](lab):
                injected.append(kind)
                following = time.monotonic() + lab.rng.uniform(0.3, 5.0)
    lab.undo_due(all_of_it=True)
    return {
        "faults": injected,
        "sessions": sessions,
        "seconds": round(time.monotonic() - began, 1),
        **found(lab),
    }


def found(lab: Lab) -> dict[str, Any]:
    """Return the state after a run."""
    run = lab.run_dir()
    lab.cluster.until(lambda: bool(lab.cluster.command("sinfo", "-h")))
    jobs = lab.cluster.command("squeue", "-h", "-t", "PD,R,CG", "-o", "%i").split()
    ended = time.monotonic() + 5
    while lab.guests() and time.monotonic() < ended:
        time.sleep(0.2)
    assert lab.driver is not None
    state: dict[str, Any] = {
        "status": lab.driver.poll(),
        "jobs_left": len(jobs),
        "guests_left": len(lab.guests()),
    }
    if run is None:
        return state
    lines = [json.loads(line) for line in (run / "records.ndjson").read_bytes().splitlines()]
    ends = Counter(line["boot"] for line in lines if line["type"] == "boot_end")
    compared = run / "jobs" / "compared.ndjson"
    same = (
        [json.loads(line)["same"] for line in compared.read_text().splitlines()]
        if compared.exists()
        else []
    )
    return {
        **state,
        "result": normal(run / "result.json"),
        "boots": len(ends),
        "ended_twice": sum(count > 1 for count in ends.values()),
        "executions": len(list(run.glob("jobs/attempts/*/*/*/"))),
        "late": len(list(run.glob("jobs/aside/*.ndjson"))),
        "compared": len(same),
        "differed": same.count(False),
    }


def normal(file: Path) -> str:
    """Return a result without the command, which names ``--on``."""
    if not file.is_file():
        return ""
    result = json.loads(file.read_text())
    return json.dumps({**result, "command": ""}, sort_keys=True)


def reference(folder: Path) -> str:
    """Return the result of the unbroken run on this host, which is measured once."""
    file = folder / "reference.json"
    if not file.is_file():
        (folder / "local.toml").write_text(EXPERIMENT)
        environment = {
            **os.environ,
            "KTEARDOWN_RUNS": str(folder / "local"),
            "PYTHONPATH": str(ROOT / "src"),
        }
        command = [
            str(ROOT / ".venv/bin/kteardown"),
            "run",
            str(folder / "local.toml"),
            "--jobs",
            "1",
            "-q",
        ]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        file.write_text(normal(next((folder / "local").glob("*/result.json"))))
    return file.read_text()


def good(run: dict[str, Any]) -> bool:
    """Return whether a run ended as an unbroken one."""
    left = run["jobs_left"] or run["guests_left"] or run.get("differed") or run.get("ended_twice")
    return run["status"] == 0 and run.get("same") is True and not left


def table(runs: list[dict[str, Any]]) -> str:
    """Return the table of the faults."""
    kinds = Counter(kind for run in runs for kind in run["faults"])
    in_bad = Counter(kind for run in runs if not good(run) for kind in run["faults"])
    rows = [f"| {kind} | {kinds[kind]} | {in_bad[kind]} |" for kind in FAULTS]
    sums = {
        name: sum(run.get(name, 0) for run in runs)
        for name in ("executions", "late", "compared", "differed")
    }
    return "\n".join(
        [
            "| fault | injected | in runs that differed |",
            "|---|---|---|",
            *rows,
            f"{kinds.total()} faults in {len(runs)} runs, {sum(map(good, runs))} with the unbroken "
            f"run's result; {sum(run['sessions'] for run in runs)} sessions of the driver; {sums}",
        ]
    )


def main() -> int:
    """Inject faults, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    log = arguments.folder / "faults.ndjson"
    runs = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    wanted = reference(arguments.folder)
    until = time.monotonic() + arguments.seconds
    with Lab(Path(tempfile.mkdtemp(prefix="kt-faults-")), random.Random(arguments.seed)) as lab:
        while (
            sum(len(run["faults"]) for run in runs) < arguments.faults and time.monotonic() < until
        ):
            run = measure(lab, PER_RUN)
            run["same"] = run.pop("result", "") == wanted
            runs.append(run)
            with log.open("a") as stream:
                stream.write(json.dumps(run) + "\n")
            print(json.dumps(run), flush=True)
            if not good(run):
                shutil.copytree(lab.runs, arguments.folder / f"bad-{len(runs)}", dirs_exist_ok=True)
                shutil.copy(lab.folder / "driver.log", arguments.folder / f"bad-{len(runs)}.log")
                break
        shutil.copy(lab.folder / "driver.log", arguments.folder / f"driver-{len(runs)}.log")
    print(table(runs))
    return 0 if all(map(good, runs)) else 1


if __name__ == "__main__":
    sys.exit(main())
