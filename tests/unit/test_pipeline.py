"""The stages from a run directory to its result: where a run stops, continues, and is resumed."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kteardown import pipeline
from kteardown.cli.options import Execution
from kteardown.cli.run import finish
from kteardown.errors import BuildError, GuestError, InputError
from kteardown.kernels.kbuild import compile_tree
from kteardown.kernels.request import Built, KernelImage, KernelRequest
from kteardown.kernels.source import file_hash
from kteardown.model.clock import CLOCKS
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.plan import Plan
from kteardown.model.record import BASE, LAYOUT, BootStart, Record
from kteardown.model.result import Result
from kteardown.progress import InterimResult, Reporter, SilentReporter
from kteardown.report import saved
from kteardown.report.forecast_text import interim_rows, interim_rows_of
from kteardown.report.sections.growth import growth_lines
from kteardown.run import create, lab
from kteardown.run.places import Where
from kteardown.run.places.local import LocalPlace
from kteardown.rundir.directory import RunDir, new_folder
from kteardown.rundir.find import RunFolder, find_runs, mark_both_clocks
from kteardown.rundir.snapshot import Snapshot, load
from kteardown.vm import host
from kteardown.vm.job import BootJob
from unit.fake_machine import FakeBoot, FakeMachine
from unit.kernels.test_kbuild import fake_tree
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


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDir]:
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


def _comparisons(run: RunDir) -> object:
    """Return the comparisons of the saved result, as JSON."""
    return json.loads(run.result_file.path.read_bytes())["comparisons"]


def booted(run: RunDir) -> Counter[str]:
    return Counter(record.kernel for record in run.records() if isinstance(record, BootStart))


def with_a_layout_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    def add(snapshot: Snapshot, *_: object) -> None:
        run = snapshot.run
        kernels = json.loads(run.kernels_file.path.read_bytes())
        folder = Path(kernels[BASE]["image"]).parent
        run.save(run.kernels_file, json.dumps({**kernels, LAYOUT: image(folder / LAYOUT)}))

    monkeypatch.setattr(create, "add_layout_twin", add)


@pytest.mark.parametrize("damage", [b"bace", None])
def test_an_image_that_is_not_the_one_of_the_run_is_not_booted(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    damage: bytes | None,
) -> None:
    run = make_run(seeds=6)
    (tmp_path / BASE).unlink() if damage is None else (tmp_path / BASE).write_bytes(damage)
    with pytest.raises(InputError, match="the image of base is damaged, or no longer in the cache"):
        complete(run, guest(0.5, 0.01), monkeypatch)
    assert not booted(run)


def test_a_run_without_until_boots_its_whole_plan(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(seeds=6)
    result, _ = complete(run, guest(0.5, 0.01), monkeypatch)
    assert (result.boots["ok"], result.stopping, result.unfinished) == (12, None, False)

    lines = run.records_file.path.read_bytes().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if b'"boot_end"' in line]
    run.records_file.path.write_bytes(b"".join(lines[: ends[8] + 1]))
    cut = saved.result_of(run)
    assert (cut.boots["ok"], cut.boots_left, cut.unfinished) == (9, 3, True)


def test_what_cannot_be_counted_is_said_and_tried_once(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    """These guests do not time the whole call, and the run does not say what its kernels are made
    of."""
    run = make_run(seeds=4)
    result, _ = complete(run, guest(0.5, 0.01), monkeypatch)
    assert {(m.verdict, m.outside) for m in result.metric_verdicts} == {("better", "unresolved")}
    (note,) = (note for note in result.notes if "own figures" in note)
    (kept,) = load(run).counted
    assert kept.reason and kept.base is None and note.endswith(kept.reason)
    before = run.counted_file.status().st_mtime_ns
    again, _ = complete(run, guest(0.5, 0.01), monkeypatch)
    assert again == result and run.counted_file.status().st_mtime_ns == before


def test_trials_that_ended_before_a_hang_are_reported(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing can be compared and no boot was ok, but the variant has a figure.
    script = lambda job: hanging(job, after=int(job.image.name == VARIANT))  # noqa: E731
    result, _ = complete(make_run(seeds=1), script, monkeypatch)
    assert (result.boots["hang"], result.comparisons) == (3, ())
    lost = Counter((void.kernel, void.detail) for void in result.voids)
    assert lost == {(BASE, "boot: hang"): 2, (VARIANT, "boot: hang"): 1}


def hung_at(
    zombies: int, kernels: tuple[str, ...] = (BASE, VARIANT)
) -> Callable[[BootJob], FakeBoot]:
    """Return guests of ``kernels`` that hang in the trial at this point."""

    def script(job: BootJob) -> FakeBoot:
        lines = guest(1.0, 0.0)(job).lines
        starts = [json.loads(line)["params"]["zombies"] for line in lines if b"trial_start" in line]
        hangs = zombies in starts and job.image.name in kernels
        return hanging(job, starts.index(zombies)) if hangs else FakeBoot(lines=lines)

    return script


POINTS = (0, 300, 600, 900)


@pytest.mark.parametrize("until", ["", "verdict"])
@pytest.mark.parametrize("clock", [{"seeds": 4}, {"clock": "wall", "boots": 4}])
def test_a_trial_that_hangs_loses_only_itself(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    until: str,
    clock: dict[str, object],
) -> None:
    run = make_run(points=POINTS, until=until, **clock)
    result, notes = complete(run, hung_at(300), monkeypatch)
    compared = {row.point["zombies"] for row in result.comparisons}
    assert compared == {0, 600, 900}
    # Two boots in succession failed, so that the other blocks were skipped; each has its rest.
    assert booted(run)[BASE] == booted(run)[VARIANT] == 4
    assert all(row.base.boots == 2 for row in result.comparisons)
    assert {fault.status for fault in result.faults} == {"base", "base too"}
    assert {(len(fault.boots), fault.of) for fault in result.faults if fault.kernel == VARIANT} == {
        (2, 2)
    }
    assert any("without the trials before them" in note for note in result.notes)
    assert not result.unfinished
    assert any("guests which hung did not reach" in note for note in notes)
    before = run.plan_file.path.read_bytes()
    complete(run, hung_at(300), monkeypatch)
    assert run.plan_file.path.read_bytes() == before


def test_a_variant_that_hangs_is_broken_as_before_and_keeps_its_other_figures(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(points=POINTS, seeds=1)
    result, _ = complete(run, hung_at(300, (VARIANT,)), monkeypatch)
    (fault,) = result.faults
    assert (fault.status, fault.points[0].point, fault.of, fault.base_of) == (
        "broken",
        {"zombies": 300},
        1,
        1,
    )
    assert {row.point["zombies"] for row in result.comparisons} == {0, 600, 900}
    assert [lost.point for lost in result.uncompared] == [{"zombies": 300}]


def test_a_run_that_is_killed_between_a_hang_and_the_rest_gives_the_same_result(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_run(points=POINTS, seeds=2)
    complete(whole, hung_at(300), monkeypatch)
    boots = sum(booted(whole).values())
    assert boots > 4

    def killed(left: Iterator[int]) -> Callable[[BootJob], FakeBoot]:
        stop = FakeBoot(raises=KeyboardInterrupt())
        return lambda job: stop if next(left, None) is None else hung_at(300)(job)

    for killed_after in range(boots):
        run = make_run(points=POINTS, seeds=2)
        with pytest.raises(KeyboardInterrupt):
            complete(run, killed(iter(range(killed_after))), monkeypatch)
        complete(run, hung_at(300), monkeypatch)
        assert run.result_file.path.read_bytes() == whole.result_file.path.read_bytes()


def test_a_boot_that_hangs_again_and_again_has_three_further_boots(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(points=tuple(range(0, 3000, 300)), seeds=1)
    complete(run, lambda job: hanging(job, after=1), monkeypatch)
    assert booted(run) == {BASE: 4, VARIANT: 4}
    assert [len(boot.trials) for boot in load(run).plan.boots] == [10, 10, 8, 8, 6, 6, 4, 4]


def test_a_run_without_any_figure_has_no_report(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GuestError, match=r"no boot of .* was ok: 4 hang"):
        complete(make_run(seeds=1), lambda job: hanging(job, after=0), monkeypatch)


def test_a_run_that_is_certain_stops_at_its_first_look(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(seeds=12, until="verdict")
    result, notes = complete(run, guest(0.5, 0.0), monkeypatch)
    assert result.stopping is not None
    assert (result.stopping.stopped_at, result.stopping.done, result.stopping.spent) == (
        4,
        True,
        False,
    )
    assert booted(run) == {BASE: 4, VARIANT: 4}
    assert all(row.exact for row in result.comparisons)
    assert any(note.startswith("after 4 of at most 12 blocks: 2 better") for note in notes)


def test_a_run_that_is_never_certain_boots_the_maximum(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, notes = complete(make_run(seeds=8, until="ci=0.01%"), guest(0.9, 0.1), monkeypatch)
    assert result.stopping is not None
    assert (result.stopping.stopped_at, result.stopping.done) == (8, True)
    assert sum(note.startswith("after ") for note in notes) == len(result.stopping.looks)


def test_a_budget_ends_a_run_at_a_look(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(seeds=20, until="ci=0.01%", budget_s=0.5)
    result, _ = complete(run, guest(0.9, 0.1), monkeypatch)
    assert result.stopping is not None
    assert (result.stopping.stopped_at, result.stopping.spent, result.stopping.done) == (
        4,
        True,
        True,
    )
    assert "budget" in result.stopping.reason
    before = run.result_file.path.read_bytes()
    assert pipeline.analyse_and_save(load(run)) == result
    assert run.result_file.path.read_bytes() == before


@pytest.mark.parametrize("until", [pytest.param("verdict", marks=pytest.mark.full), "ci=8%"])
def test_an_interrupted_run_stops_where_an_unbroken_one_does(
    until: str, make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_run(seeds=12, until=until)
    complete(whole, guest(0.9, 0.05), monkeypatch)
    boots = sum(booted(whole).values())
    assert boots > 8  # It continues after the first look; otherwise the test would prove nothing.
    for killed_after in range(0, boots, 3):
        run = make_run(seeds=12, until=until)
        with pytest.raises(KeyboardInterrupt):
            complete(run, guest(0.9, 0.05, iter(range(killed_after))), monkeypatch)
        complete(run, guest(0.9, 0.05), monkeypatch)
        assert run.result_file.path.read_bytes() == whole.result_file.path.read_bytes()
        complete(run, guest(0.9, 0.05), monkeypatch)
        assert run.result_file.path.read_bytes() == whole.result_file.path.read_bytes()


@pytest.mark.parametrize("until", ["", "verdict"])
def test_a_small_claim_gets_its_layout_twin(
    until: str, make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_layout_twin(monkeypatch)
    run = make_run(clock="wall", boots=8, until=until)
    result, notes = complete(run, guest(0.94, 0.001), monkeypatch)
    blocks = result.stopping.stopped_at if result.stopping else 8
    assert booted(run) == {BASE: 2 * blocks, VARIANT: blocks, "base-twin": blocks, LAYOUT: blocks}
    assert sum("base and its layout twin" in note for note in notes) == 1
    assert {row.verdict for row in result.comparisons} == {"better"}
    assert all(row.layout_ci is not None and row.base.boots == blocks for row in result.comparisons)
    again, _ = complete(run, guest(0.94, 0.001), monkeypatch)
    assert again.comparisons == result.comparisons


def test_a_resumed_run_decides_again_about_the_layout_twin(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_layout_twin(monkeypatch)
    whole, _ = complete(make_run(clock="wall", boots=4), guest(0.94, 0.001), monkeypatch)
    for killed_after in (11, 12, 13, 19):
        run = make_run(clock="wall", boots=4)
        with pytest.raises(KeyboardInterrupt):
            complete(run, guest(0.94, 0.001, iter(range(killed_after))), monkeypatch)
        result, _ = complete(run, guest(0.94, 0.001), monkeypatch)
        assert (result.comparisons, result.boots) == (whole.comparisons, whole.boots)
        assert len(Plan.model_validate_json(run.plan_file.path.read_bytes()).boots) == 12 + 8


def test_a_large_claim_needs_no_layout_twin(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(clock="wall", boots=4)
    complete(run, guest(0.5, 0.001), monkeypatch)
    assert booted(run)[LAYOUT] == 0


def test_a_layout_twin_that_does_not_build_is_reported_and_the_run_ends(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BuildError("it does not build", hint="fix it.")

    run = make_run(clock="wall", boots=4)
    _, notes = complete(run, guest(0.94, 0.001), monkeypatch)
    assert any("no variant is a series that changes a .c file" in note for note in notes)
    monkeypatch.setattr(create, "add_layout_twin", refuse)
    _, notes = complete(run, guest(0.94, 0.001), monkeypatch)
    assert any("it does not build" in note for note in notes)


@pytest.mark.parametrize("design", [{"seeds": 4}, {"clock": "wall", "boots": 4}])
def test_the_comparisons_so_far_are_those_of_the_report(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch, design: dict[str, object]
) -> None:
    class Watching(Notes):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Sequence[InterimResult]] = []

        def interim_results(self, compute: Callable[[], Sequence[InterimResult]]) -> None:
            before = sorted(path.name for path in run.path.rglob("*"))
            self.seen.append(compute())
            assert sorted(path.name for path in run.path.rglob("*")) == before

    run, watching = make_run(**design), Watching()
    monkeypatch.setattr(LocalPlace, "machine", lambda *_, **__: FakeMachine(guest(0.5, 0.01)))
    result = pipeline.finish(load(run), watching, Where(jobs=1)).result
    planned = Plan.model_validate_json(run.plan_file.path.read_bytes())
    assert len(watching.seen) == len(planned.boots) - 1
    assert watching.seen[0] == []  # One boot compares with nothing.
    expected = interim_rows(result, load(run).workloads)
    assert [row.metric for row in watching.seen[-1]] == [row.metric for row in expected]
    assert interim_rows_of(run) == expected


def test_a_run_that_cannot_be_analysed_yet_has_no_comparisons(
    make_run: Callable[..., RunDir],
) -> None:
    assert interim_rows_of(make_run()) == []


def test_an_analysis_reads_the_records_once(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    monkeypatch.setattr(LocalPlace, "machine", lambda *_, **__: FakeMachine(guest(0.5, 0.01)))
    pipeline.finish(load(run), SilentReporter(), Where())
    read: list[str] = []
    records = RunDir.records

    def counted(of: RunDir) -> list[Record]:
        read.append(of.path.name)
        return records(of)

    monkeypatch.setattr(RunDir, "records", counted)
    pipeline.analyse_and_save(load(run))
    assert read == [run.path.name, run.profile.path.name]


def on_both_clocks(make_run: Callable[..., RunDir]) -> RunFolder:
    """Return a run on both clocks, without records."""
    runs = [make_run(seeds=3), make_run(clock="wall", boots=4)]
    folder = new_folder(runs[0].path.parent, "both")
    for run, clock in zip(runs, CLOCKS, strict=True):
        run.path.rename(folder / clock)
    return mark_both_clocks(folder)


def test_both_clocks_are_measured_and_an_interrupted_run_is_resumed_by_its_name(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run_with(script: Callable[[BootJob], FakeBoot]) -> None:
        monkeypatch.setattr(LocalPlace, "machine", lambda *_, **__: FakeMachine(script))
        finish(find_runs("last"), Execution().begin(), Execution(jobs=1))

    found = on_both_clocks(make_run)
    exact, wall = found.runs
    with pytest.raises(KeyboardInterrupt):
        run_with(guest(0.5, 0.01, iter(range(8))))
    assert (sum(booted(exact).values()), sum(booted(wall).values())) == (6, 3)
    said = capsys.readouterr().err
    assert f"kteardown run --resume {found.name}\n" in said
    assert f"kteardown report {exact.name}" in said
    assert said.index("the instruction clock:") < said.index("the wall clock:")
    done = exact.result_file.path.read_bytes()
    run_with(guest(0.5, 0.01))
    assert exact.result_file.path.read_bytes() == done
    assert sum(booted(wall).values()) == 13
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    said = " ".join(" ".join(lines[:8]).split())
    assert said.startswith(f"With {VARIANT}, ") and "; nothing got measurably worse" in said
    assert "on the instruction clock and" in said and "on the wall clock" in said


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


def test_on_the_wall_clock_nothing_boots_while_a_variant_is_built(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(_: Reporter) -> Built:
        assert not booted(run)
        return built_variant(run)

    run = make_run(clock="wall", boots=4)
    lacking_its_variant(run, monkeypatch, built, after_base=False)
    result, _ = complete(run, guest(0.5, 0.01), monkeypatch)
    assert booted(run) == {BASE: 4, VARIANT: 4, "base-twin": 4}
    assert result.boots["ok"] == 12


def test_base_boots_while_its_variant_is_built(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_run(seeds=4)
    complete(whole, guest(0.5, 0.01), monkeypatch)
    run = make_run(seeds=4)
    lacking_its_variant(run, monkeypatch, lambda _: built_variant(run))
    complete(run, guest(0.5, 0.01), monkeypatch)
    assert _comparisons(run) == _comparisons(whole)
    assert booted(run) == {BASE: 4, VARIANT: 4}


def test_what_one_more_costs_base_is_shown_before_its_variant_is_built(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = threading.Event()

    class Watching(Notes):
        def note(self, text: str) -> None:
            super().note(text)
            if "freezing the remaining tasks" in text:
                shown.set()

    def built_once_shown(_: Reporter) -> Built:
        assert shown.wait(60)
        return built_variant(run)

    run, notes = make_run(seeds=4, points=(0, 300, 600)), Watching()
    lacking_its_variant(run, monkeypatch, built_once_shown)
    monkeypatch.setattr(LocalPlace, "machine", lambda *_, **__: FakeMachine(guest(0.5, 0.0)))
    result = pipeline.finish(load(run), notes, Where(jobs=1)).result
    # What the report says of base, when there is a variant to compare.
    last = growth_lines(result, load(run).workloads, BASE)
    assert [line.strip() for line in notes.lines if "(zombies)" in line] == last
    assert last[0] == "freezing user space: 100.0 instructions for one more (zombies), linear"


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), BuildError("it does not compile", hint="fix it.")]
)
def test_what_ends_the_build_ends_the_boots_of_base(
    error: BaseException, make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Reporter) -> Built:
        raise error

    run = make_run(seeds=400)
    lacking_its_variant(run, monkeypatch, fail)
    with pytest.raises(type(error)):
        complete(run, guest(0.5, 0.01), monkeypatch)
    assert 0 < booted(run)[BASE] < 400
    assert booted(run)[VARIANT] == 0


def test_a_variant_that_does_not_build_says_what_can_be_done_with_the_run(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Reporter) -> Built:
        raise BuildError(
            "x: the kernel did not build\n  whole log: x/build.log", hint="Fix the first error."
        )

    run = make_run(seeds=4)
    lacking_its_variant(run, monkeypatch, fail)
    with pytest.raises(BuildError, match=r"whole log: x/build\.log") as caught:
        complete(run, guest(0.5, 0.01), monkeypatch)
    for part in (
        "Fix the first error.",
        "start the experiment anew",
        f"kteardown run --resume {run.name}",
    ):
        assert part in caught.value.hint


def test_an_error_in_the_boots_of_base_ends_the_build(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tree = fake_tree(tmp_path, 'for n in $$(seq 600); do echo "  CC      $$n.o"; sleep 0.1; done')

    ended: list[str] = []

    def compile_for_a_minute(reporter: Reporter) -> Built:
        compile_tree(tree, "building", 600, 600, reporter)
        ended.append("by itself")
        raise AssertionError

    def fail(job: BootJob) -> FakeBoot:
        return FakeBoot(raises=RuntimeError("our own error"))

    run = make_run(seeds=4)
    lacking_its_variant(run, monkeypatch, compile_for_a_minute)
    with pytest.raises(RuntimeError, match="our own error"):
        complete(run, fail, monkeypatch)
    assert not ended
    lacking_its_variant(run, monkeypatch, lambda _: built_variant(run))
    result, _ = complete(run, guest(0.5, 0.01), monkeypatch)
    assert result.boots["ok"] == 8


def test_an_interrupt_after_the_last_build_ends_the_boots_of_base(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_run(seeds=10)
    complete(whole, guest(0.5, 0.01), monkeypatch)
    run = make_run(seeds=10)
    normal, interrupted = guest(0.5, 0.01), threading.Event()

    def interrupt_once_built(job: BootJob) -> FakeBoot:
        if VARIANT in json.loads(run.kernels_file.path.read_bytes()) and not interrupted.is_set():
            interrupted.set()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)  # The guest is still running when the main thread receives the signal.
        return normal(job)

    lacking_its_variant(run, monkeypatch, lambda _: built_variant(run))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            complete(run, interrupt_once_built, monkeypatch)
    finally:
        signal.signal(signal.SIGINT, before)
    assert interrupted.is_set()
    assert 0 < booted(run)[BASE] < 10 and not booted(run)[VARIANT]
    complete(run, normal, monkeypatch)
    assert _comparisons(run) == _comparisons(whole)
