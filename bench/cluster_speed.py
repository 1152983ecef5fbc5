"""Boots a minute on this host, on one node and on two nodes of a Slurm that is started here.

    cluster_speed.py [--boots N]

Each node has one CPU of the host. Also prints what a job costs beside its boot, from the times of
its files.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from slurm.cluster import Cluster, Site, small_experiment

ROOT = Path(__file__).parents[1]


def run(
    folder: Path, cluster: Cluster, name: str, boots: int, *arguments: str, cpu: str = ""
) -> None:
    """Run the experiment, and print how fast it was."""
    runs = folder / name
    runs.mkdir()
    site = Site(cluster, folder)
    site.configure(poll_s=1)
    environment = {**site.environment, "KTEARDOWN_RUNS": str(runs), "PYTHONPATH": str(ROOT / "src")}
    pin = ["taskset", "--cpu-list", cpu] if cpu else []
    command = [
        *pin,
        str(ROOT / ".venv/bin/kteardown"),
        "run",
        str(folder / "speed.toml"),
        "-q",
        *arguments,
    ]
    load, began = os.getloadavg()[0], time.monotonic()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    (made,) = runs.iterdir()
    lines = [json.loads(line) for line in (made / "records.ndjson").read_bytes().splitlines()]
    durations = {line["boot"]: line["duration_s"] for line in lines if line["type"] == "boot_end"}
    seconds = time.monotonic() - began
    print(
        f"{name}: {boots} boots in {seconds:.1f} s, {60 * boots / seconds:.1f} a minute; the boots "
        f"alone {statistics.median(durations.values()):.2f} s (median); load of the host before "
        f"{load:.1f}",
        flush=True,
    )
    jobs = [
        float(file.read_text().split()[-1]) for file in made.glob("jobs/attempts/*/0/output.log")
    ]
    if jobs:
        print(f"  a job beside its boot: {statistics.median(jobs):.2f} s (median)", flush=True)


def main() -> None:
    """Measure the three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boots", type=int, default=8)
    boots = parser.parse_args().boots
    folder = Path(tempfile.mkdtemp(prefix="kt-speed-"))
    (folder / "speed.toml").write_text(small_experiment("speed", boots))
    for nodes in (1, 2):
        with tempfile.TemporaryDirectory(prefix="kt-slurm-") as place:
            cluster = Cluster(Path(place), nodes=nodes, pinned=True)
            cluster.start()
            try:
                if nodes == 1:
                    run(folder, cluster, "this host", boots, "--jobs", "1", cpu="0")
                run(folder, cluster, f"{nodes} of Slurm's nodes", boots, "--on", "slurm")
            finally:
                cluster.stop()


if __name__ == "__main__":
    main()
