"""Runs without records, the guests that give them, and the pipeline that boots these."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kteardown import pipeline
from kteardown.kernels.request import Built, KernelImage, KernelRequest
from kteardown.kernels.source import file_hash
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.record import BASE, LAYOUT, BootStart
from kteardown.model.result import Result
from kteardown.progress import Reporter, SilentReporter
from kteardown.run import create, lab
from kteardown.run.places import Where
from kteardown.run.places.local import LocalPlace
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.vm import host
from kteardown.vm.job import BootJob
from unit.fake_machine import FakeBoot, FakeMachine
from unit.run_dirs import fill

VARIANT = "freezer-skip-exited"
METRICS = ("freeze_user_ns", "freeze_remaining_ns")


class Notes(SilentReporter):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def guest(
    factor: float, noise: float, boots: Iterator[int] | None = None
) -> Callable[[BootJob], FakeBoot]:
    """Return guests whose variant takes ``factor`` times as long; the end of ``boots`` interrupts
    the run.

    Every attempt at a boot gives the same figures, which depend on its number.
    """

    def script(job: BootJob) -> FakeBoot:
        if boots is not None and next(boots, None) is None:
            return FakeBoot(raises=KeyboardInterrupt())
        rng = random.Random(f"{job.image.name} {job.console.name[:4]}")
        shift = (factor if job.image.name == VARIANT else 1.0) * rng.lognormvariate(0, noise)
        found = re.findall(
            rb"^trial (\d+) zombies 0 2 zombies=(\d+)", job.initramfs.read_bytes(), re.MULTILINE
        )
        lines = [
            line for index, zombies in found for line in trial(int(index), int(zombies), shift)
        ]
        return FakeBoot(lines=tuple(json.dumps(line).encode() for line in lines))

    return script


def hanging(job: BootJob, after: int) -> FakeBoot:
    """Return a boot that hangs after ``after`` trials, in the next one."""
    lines = guest(1.0, 0.0)(job).lines
    ends = [n for n, line in enumerate(lines, 1) if b"trial_end" in line]
    return FakeBoot(lines=lines[: [0, *ends][after] + 1], outcome="hang", detail="no record")


def trial(index: int, zombies: int, shift: float) -> Iterator[dict[str, object]]:
    params = {"zombies": zombies, "make": "shared", "until": "freezer"}
    yield {"type": "trial_start", "trial": index, "workload": "zombies", "params": params}
    for repetition in (0, 1):
        for metric in METRICS:
            value = (100_000 + 100 * zombies) * shift
            yield {
                "type": "sample",
                "trial": index,
                "repetition": repetition,
                "metric": metric,
                "value": value,
            }
    yield {"type": "trial_end", "trial": index, "status": "ok"}


def run_maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDir]:
    """Return a function that creates a run of one variant at two points, without records."""
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    agent = tmp_path / "agent"
    agent.write_bytes(b"agent")
    monkeypatch.setattr(lab, "build_agent", lambda *_, **__: agent)
    monkeypatch.setattr(
        LocalPlace,
        "acceleration",
        lambda self, e, _: "mttcg" if e.design.clock == "wall" else "icount",
    )
    monkeypatch.setattr(host, "facts", lambda: {"kernel": "6"})
    monkeypatch.setattr(create, "cache_dir", lambda: tmp_path)  # That of the kernels.
    for name in (BASE, VARIANT, LAYOUT):
        (tmp_path / name).write_bytes(name.encode())

    def make(name: str = "run", points: Sequence[int] = (0, 300), **design: object) -> RunDir:
        experiment = Experiment(
            name=name,
            question="Where does it stop?",
            source="debian:6.12",
            variants=(VARIANT,),
            workloads=(Sweep(workload="zombies", params={"zombies": tuple(points)}),),
            design=Design(**{"repetitions": 2, "warmup": 0, **design}),  # type: ignore[arg-type]
        )
        run = RunDir.create(tmp_path / "runs", name)
        kernels = {n: image(tmp_path / n) for n in (BASE, VARIANT)}
        fill(
            run,
            experiment,
            [VARIANT],
            kernels,
            {"command": "kteardown run x", "machine": {"kernel": "6"}},
        )
        return run

    return make


def image(path: Path) -> dict[str, object]:
    texts = dict.fromkeys(("release", "source", "compiler", "config_hash"), path.name)
    return {
        **texts,
        "arch": "x86_64",
        "image": str(path),
        "modules": [],
        "image_hash": file_hash(path),
    }


def complete(
    run: RunDir, script: Callable[[BootJob], FakeBoot], monkeypatch: pytest.MonkeyPatch
) -> tuple[Result, list[str]]:
    monkeypatch.setattr(LocalPlace, "machine", lambda *_, **__: FakeMachine(script))
    notes = Notes()
    return pipeline.finish(load(run), notes, Where(jobs=1)).result, notes.lines


def comparisons(run: RunDir) -> object:
    """Return the comparisons of the saved result, as JSON."""
    return json.loads(run.result_file.path.read_bytes())["comparisons"]


def booted(run: RunDir) -> Counter[str]:
    return Counter(record.kernel for record in run.records() if isinstance(record, BootStart))


def lacking_its_variant(
    run: RunDir,
    monkeypatch: pytest.MonkeyPatch,
    outcome: Callable[[Reporter], Built],
    *,
    after_base: bool = True,
) -> None:
    """Make ``run`` one whose variant is still to be built, by ``outcome``.

    ``after_base``: once base has booted.
    """
    kernels = json.loads(run.kernels_file.path.read_bytes())
    run.save(run.kernels_file, json.dumps({BASE: kernels[BASE]}))
    request: dict[str, object] = {
        "source": "debian:6.12",
        "series": VARIANT,
        "patches": [],
        "fragments": [],
        "arch": "x86_64",
        "patch_set": None,
        "optional": False,
        "exact": None,
    }
    run.save(run.folder / "requests.json", json.dumps({BASE: request, VARIANT: request}))

    def ensure(requests: Sequence[KernelRequest], *, reporter: Reporter, **_: object) -> Built:
        assert [wanted.name for wanted in requests] == [VARIANT]
        while after_base and not booted(run)[BASE]:
            time.sleep(0.01)
        return outcome(reporter)

    monkeypatch.setattr("kteardown.run.measure.build.ensure", ensure)


def built_variant(run: RunDir) -> Built:
    folder = Path(json.loads(run.kernels_file.path.read_bytes())[BASE]["image"]).parent
    image = KernelImage(
        name=VARIANT,
        image=folder / VARIANT,
        source=BASE,
        series=VARIANT,
        arch="x86_64",
        release=VARIANT,
        compiler=BASE,
        config_hash=VARIANT,
        image_hash=file_hash(folder / VARIANT),
    )
    return Built({VARIANT: image}, {})
