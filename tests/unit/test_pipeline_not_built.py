"""Variants of which nothing is in the kernel that was built: they are never booted and have no
verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown import pipeline
from kteardown.cli.options import Execution
from kteardown.cli.run import finish
from kteardown.errors import NotBuiltError
from kteardown.flows.ending import gate
from kteardown.kernels.request import Built
from kteardown.model.clock import BOTH
from kteardown.model.kernel_facts import KernelFacts, not_built
from kteardown.model.record import BASE, TWIN
from kteardown.progress import Reporter, SilentReporter
from kteardown.report.material import Material
from kteardown.report.sentence import lines
from kteardown.run.places import Where
from kteardown.rundir.completeness import measurable
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, mark_both_clocks
from kteardown.rundir.snapshot import load
from outputs import result_in
from unit.pipelines import (
    VARIANT,
    booted,
    built_variant,
    complete,
    guest,
    image,
    lacking_its_variant,
    run_maker,
)
from unit.report.rendered import TEXTS

OTHER = "other"
SET = {"series": VARIANT, "patches": [1], "total": 1}
SAID = "is in the kernel that was built: no object differs from that of base in code or data"
TEXT = f"{VARIANT}: the kernel that was built has none of its changes"


def absent(run: RunDir) -> RunDir:
    """Make the variant of ``run`` one that the build left unchanged."""
    kernels = json.loads(run.kernels_file.path.read_bytes())
    kernels[VARIANT] |= {"patch_set": SET, "unchanged": True}
    run.save(run.kernels_file, json.dumps(kernels))
    return run


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDir]:
    return run_maker(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "design", [{"seeds": 2}, {"clock": "wall", "boots": 4, "until": "verdict"}]
)
def test_a_run_of_nothing_else_boots_nothing_and_exits_with_7(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    design: dict[str, object],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = absent(make_run(**design))
    result, _ = complete(run, guest(1.0, 0.0), monkeypatch)
    assert (not booted(run), result.comparisons, result.unfinished, result.not_built) == (
        True,
        (),
        False,
        (VARIANT,),
    )
    written = Execution(json_file=tmp_path / "r.json", markdown_file=tmp_path / "r.md", quiet=True)
    for _ in ("at once", "resumed"):
        with pytest.raises(NotBuiltError, match=f"nothing of {VARIANT} is in the kernel"):
            finish(RunFolder.of(run), written.begin(), written)
        assert TEXT in " ".join(capsys.readouterr().out.split())
    saved = result_in((tmp_path / "r.json").read_bytes())
    assert (saved["sentence"], saved["comparisons"]) == (TEXT, [])
    assert (
        TEXT
        in (tmp_path / "r.md").read_text().partition("\n\n")[0]
        + (tmp_path / "r.md").read_text()[:400]
    )


def test_the_other_variants_are_measured(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    run = make_run(seeds=2)
    (tmp_path / OTHER).write_bytes(b"kernel")
    kernels = json.loads(run.kernels_file.path.read_bytes())
    run.save(
        run.kernels_file,
        json.dumps({**kernels, OTHER: {**image(tmp_path / OTHER), "patch_set": SET}}),
    )
    plan = json.loads(run.plan_file.path.read_bytes())
    more = [
        {**boot, "index": len(plan["boots"]) + n, "kernel": OTHER}
        for n, boot in enumerate(plan["boots"][::2])
    ]
    run.save(run.plan_file, json.dumps({**plan, "boots": [*plan["boots"], *more]}))
    absent(run)
    result, _ = complete(run, guest(1.0, 0.0), monkeypatch)
    assert booted(run) == {BASE: 2, OTHER: 2}
    assert {row.variant for row in result.comparisons} == {OTHER}
    assert (result.unfinished, result.uncompared, result.voids) == (False, (), ())
    workloads = load(run).workloads
    first, second = lines(result, workloads)
    assert first == ("inconclusive", TEXT)
    assert second.text.startswith(f"{OTHER} does not change ")
    with pytest.raises(NotBuiltError):
        gate(Material(run.name, result, workloads), None)


@pytest.mark.parametrize("clock", [{"seeds": 3}, {"clock": "wall", "boots": 4}])
def test_what_a_later_build_shows_ends_the_boots_of_base(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    clock: dict[str, object],
    tmp_path: Path,
) -> None:
    run = make_run(**clock)
    (tmp_path / "kernel.json").write_text('{"changed_objects": []}')

    def built(_: Reporter) -> Built:
        return built_variant(run)

    lacking_its_variant(run, monkeypatch, built, after_base="seeds" in clock)
    requests = json.loads((run.path / "requests.json").read_bytes())
    requests[VARIANT] |= {"patches": ["series/x/1.patch"], "patch_set": {**SET, "subjects": []}}
    run.save(run.folder / "requests.json", json.dumps(requests))
    run.make_folder(run.folder / "series/x")
    run.save(run.folder / "series/x/1.patch", "")
    result, _ = complete(run, guest(1.0, 0.0), monkeypatch)
    assert (VARIANT in booted(run), result.not_built, result.unfinished) == (
        False,
        (VARIANT,),
        False,
    )
    again = pipeline.finish(load(run), SilentReporter(), Where(jobs=1)).result
    assert (again.not_built, booted(run)[TWIN]) == ((VARIANT,), 0)


def test_both_clocks_say_it_once(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = make_run().path.parent / "both"
    whole.mkdir()
    for clock in BOTH:
        run = absent(make_run(f"on-{clock}", clock=clock, seeds=2, boots=2))
        run.path.rename(whole / clock)
    found = mark_both_clocks(whole)
    with pytest.raises(NotBuiltError):
        finish(found, Execution(quiet=True).begin(), Execution(quiet=True))
    assert " ".join(capsys.readouterr().out.split()).startswith(f"{TEXT} ")


def test_every_format_says_it(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kteardown.report.saved import material_of_folder

    run = absent(make_run(seeds=2))
    complete(run, guest(1.0, 0.0), monkeypatch)
    material = material_of_folder(RunFolder.of(run), samples=True)
    for form in TEXTS:
        text = " ".join(TEXTS[form](material).split())
        assert TEXT in text, form
    junit = TEXTS["junit"](material)
    assert 'type="not built"' in junit and 'errors="1"' in junit


def test_only_patches_that_were_asked_for_can_be_absent() -> None:
    texts = dict.fromkeys(("release", "source", "compiler", "config_hash", "image_hash"), "x")
    part = {**SET, "for_ablation": True}
    kernels = {
        name: KernelFacts.model_validate(
            {**texts, "arch": "x86_64", "patch_set": patches, "unchanged": True}
        )
        for name, patches in ((BASE, None), ("debian:7.2", None), ("part", part), (VARIANT, SET))
    }
    assert not_built(kernels) == (VARIANT,)


def test_parts_of_an_ablation_are_not_booted_alone(make_run: Callable[..., RunDir]) -> None:
    snapshot = load(absent(make_run()))
    part = snapshot.plan.boots[0].model_copy(
        update={"kernel": "part", "index": len(snapshot.plan.boots)}
    )
    plan = snapshot.plan.model_copy(update={"boots": (*snapshot.plan.boots, part)})
    facts = snapshot.kernels[BASE].model_copy(
        update={"image_hash": "p", "patch_set": snapshot.kernels[VARIANT].patch_set}
    )
    ablation = facts.patch_set.model_copy(update={"for_ablation": True})  # type: ignore[union-attr]
    parts = {**snapshot.kernels, "part": facts.model_copy(update={"patch_set": ablation})}
    assert measurable(plan, parts).boots == ()
    # A kernel that is still to be built may be another variant.
    assert {boot.kernel for boot in measurable(plan, snapshot.kernels).boots} == {BASE, "part"}
