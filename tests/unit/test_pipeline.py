"""The stages from a run directory to its result: where a run stops, continues, and is resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kteardown import pipeline
from kteardown.cli.options import Execution
from kteardown.cli.run import finish
from kteardown.errors import BuildError, InputError
from kteardown.model.clock import BOTH
from kteardown.model.plan import Plan
from kteardown.model.record import BASE, LAYOUT, Record
from kteardown.progress import InterimResult, SilentReporter
from kteardown.report import saved
from kteardown.report.forecast_text import interim_rows, interim_rows_of
from kteardown.run import create
from kteardown.run.places import Where
from kteardown.run.places.local import LocalPlace
from kteardown.rundir.directory import RunDir, new_folder
from kteardown.rundir.find import RunFolder, find_runs, mark_both_clocks
from kteardown.rundir.snapshot import Snapshot, load
from kteardown.vm.job import BootJob
from unit.fake_machine import FakeBoot, FakeMachine
from unit.pipelines import VARIANT, Notes, booted, complete, guest, image, run_maker


def with_a_layout_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    def add(snapshot: Snapshot, *_: object) -> None:
        run = snapshot.run
        kernels = json.loads(run.kernels_file.path.read_bytes())
        folder = Path(kernels[BASE]["image"]).parent
        run.save(run.kernels_file, json.dumps({**kernels, LAYOUT: image(folder / LAYOUT)}))

    monkeypatch.setattr(create, "add_layout_twin", add)


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDir]:
    return run_maker(tmp_path, monkeypatch)


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
    for run, clock in zip(runs, BOTH, strict=True):
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
