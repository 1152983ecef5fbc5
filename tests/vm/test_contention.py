"""The contention clock: cases with known counts, and equal counts in two boots."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kteardown.coverage.maps import small
from kteardown.inputs.load import load_workload, stress_names, workload_names
from kteardown.kernels.kallsyms import kernel_symbols
from kteardown.model.record import Sample, TrialStart
from kteardown.rundir.directory import RunDir
from kteardown.vm.direct_boot import payload_of

pytestmark = [pytest.mark.vm, pytest.mark.build]

MICRO = Path(__file__).parents[1] / "data" / "contention" / "micro.c"
OPERATIONS = 400
Counts = dict[str, float]


def unpacked_image(image: Path) -> bytes:
    return gzip.decompress(payload_of(image.read_bytes()))


def kteardown(folder: Path, *arguments: str) -> RunDir:
    """Run a command, and return the newest run."""
    runs = folder / "runs"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kteardown", *arguments],
        env={**os.environ, "KTEARDOWN_RUNS": str(runs)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return RunDir(max(path for path in runs.iterdir() if path.is_dir()))


def of_programs(run: RunDir) -> dict[tuple[str, int], Counts]:
    """What programs did in each case, by case and CPUs, for one operation of one CPU."""
    counts: dict[tuple[str, int], Counts] = {}
    places: dict[int, tuple[str, int]] = {}
    for record in run.records():
        if isinstance(record, TrialStart):
            cpus = record.params["cpus"]
            assert isinstance(cpus, int)
            places[record.boot] = str(record.params["CASE"]), cpus
        elif isinstance(record, Sample) and record.metric.startswith("program_"):
            place = places[record.boot]
            name = record.metric.removeprefix("program_").removesuffix("_count")
            counts.setdefault(place, {})[name] = record.value / OPERATIONS / place[1]
    return counts


def test_the_counts_of_known_cases(base_image: Path, tmp_path: Path) -> None:
    script = shutil.copy(MICRO, tmp_path)
    cases = "own,together,atomic,serial,queued,readers"
    run = kteardown(
        tmp_path,
        *("measure", str(script), "--source", f"image:{base_image}", "--clock", "contention"),
        *("--set", f"CASE={cases}", "--set", f"N={OPERATIONS}", "--set", "cpus=2,4"),
        *("--set", "transfer_ticks=100", "--seeds", "1", "--memory-mb", "512"),
    )
    counts = of_programs(run)
    for cpus in (2, 4):
        # The start of the programs and the end of their wait for each other are below 0.2.
        assert counts["own", cpus]["line_moves"] < 0.2
        assert counts["readers", cpus]["line_moves"] < 0.3
        assert 1 <= counts["atomic", cpus]["line_moves"] < 1.2
        assert 1 <= counts["atomic", cpus]["locked"] < 1.1
        # A plain increment reads the line and then takes it from those that have read it.
        assert 2 <= counts["together", cpus]["line_moves"] < 2.2
        assert counts["together", cpus]["locked"] < 0.1
    # Who waits for a queued lock looks at a line of its own: more CPUs add nothing.
    assert counts["queued", 4]["line_moves"] < 1.05 * counts["queued", 2]["line_moves"]
    assert counts["serial", 4]["line_moves"] > 1.2 * counts["serial", 2]["line_moves"]
    assert counts["serial", 4]["shared_reads"] > 1 > counts["serial", 2]["shared_reads"]


def test_a_kernel_has_the_names_of_its_system_map(base_image: Path) -> None:
    text = base_image.with_name("System.map").read_text()
    lines = (line.split() for line in text.splitlines())
    of_file = {name: int(address, 16) for address, _, name in lines}
    symbols = kernel_symbols(unpacked_image(base_image), of_file["_text"])
    same = [of_file.get(name) == address for address, kind, name in symbols if kind in "tT"]
    # Several static functions have the same name.
    assert len(same) > 10_000 and sum(same) > 0.98 * len(same)


SIZES = {"pipechain": 100, "crowd": 40, "zombies": 100, "zombies_cgroup": 100, "swapfree": 2}


OTHER_SOURCES = {"hibernate": "debian-image:6.12"}
"""Of workloads that need more than the base kernel of the freezer has."""


def experiment(folder: Path, image: Path, name: str) -> Path:
    """An experiment with a workload at one small point."""
    workload = load_workload(name)
    source = OTHER_SOURCES.get(name, f"image:{image}")
    values = {
        key: small(key, spec.default, workload) if isinstance(spec.default, int) else spec.default
        for key, spec in workload.parameters.items()
    }
    if name in SIZES:
        values[workload.law] = SIZES[name]
    params = ", ".join(f"{key} = [{json.dumps(value)}]" for key, value in values.items())
    lines = [
        f'name = "{name.replace("_", "-")}"',
        'question = "Is it the same again?"',
        f'source = "{source}"',
        f'workloads = [{{workload = "{name}", params = {{{params}}}}}]',
        "machine = {cpus = [2, 4], memory_mb = 1024}",
        'design = {clock = "contention", seeds = 1, repetitions = 2, warmup = 0}',
    ]
    file = folder / f"{name.replace('_', '-')}.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def counted(run: RunDir) -> list[str]:
    return [
        record.model_dump_json(exclude={"at_s"})
        for record in sorted(run.records(), key=lambda record: record.boot)
        if record.type in ("sample", "sharing", "check", "trial_end")
    ]


def check_equal(folder: Path, image: Path, name: str) -> None:
    file = experiment(folder, image, name)
    first, again = (counted(kteardown(folder / part, "run", str(file))) for part in ("a", "b"))
    assert any('"sharing"' in line for line in first)
    assert first == again


def test_two_boots_count_the_same(base_image: Path, tmp_path: Path) -> None:
    check_equal(tmp_path, base_image, "swapfree")


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in workload_names()
        if name not in ("swapfree", *stress_names()) and not load_workload(name).contention.refused
    ],
)
def test_two_boots_of_each_workload_count_the_same(
    base_image: Path, tmp_path: Path, name: str
) -> None:
    check_equal(tmp_path, base_image, name)
