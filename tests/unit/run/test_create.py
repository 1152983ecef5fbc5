"""The kernels of a run, built after it was planned: from the same patches, source and
configuration."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown import paths, pipeline
from kteardown.errors import InputError, LabError
from kteardown.inputs.load import load_experiment
from kteardown.kernels import build
from kteardown.kernels.request import Built, KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.clock import Clock
from kteardown.model.experiment import Experiment
from kteardown.model.record import BASE
from kteardown.progress import SilentReporter
from kteardown.run import create
from kteardown.run.create import settle
from kteardown.run.resolve import Resolved, resolve
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load_kernels

PATCH = """\
From: A
Subject: [PATCH] x
---
--- a/exit.c
+++ b/exit.c
@@ -1,2 +1,2 @@
 /* \xa9 one */
-old
+new
"""


def git(tree: Path, *argv: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(tree), *identity, *argv]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel tree in a git repository, and the kernel configuration in a folder that may be
    changed."""
    tree = tmp_path / "linux"
    tree.mkdir()
    for name in ("Kconfig", "Kbuild"):
        (tree / name).write_text("old\n")
    (tree / "exit.c").write_text("/* \xa9 one */\nold\n", encoding="latin-1")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        git(tree, *command)
    (tmp_path / "x.patch").write_text(PATCH, encoding="latin-1")
    shutil.copytree(paths.data_dir("kernels"), tmp_path / "data" / "kernels")
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    return tree


def experiment(tree: Path, source: str, clock: Clock = "instructions") -> Experiment:
    known = load_experiment("freezer")
    update = {
        "source": source,
        "variants": (str(tree.parent / "x.patch"),),
        "config": ("debug",),
        "design": known.design.model_copy(update={"clock": clock}),
    }
    return known.model_copy(update=update)


def planned(tree: Path, source: str, clock: Clock = "instructions") -> Resolved:
    return settle(resolve(experiment(tree, source, clock)), SilentReporter())


def sources() -> Sources:
    return Sources(paths.cache_dir(), SilentReporter())


def saved(resolved: Resolved, root: Path) -> tuple[RunDir, list[KernelRequest]]:
    run = RunDir.create(root / "runs", "x")
    create.save_requests(run, resolved, {}, sources())
    return run, create.missing_kernels(run)


def missing(requests: list[KernelRequest]) -> list[str]:
    return [request.name for request in build.missing(requests, cache_dir=paths.cache_dir())]


def test_a_branch_is_the_commit_that_it_was(tree: Path, tmp_path: Path) -> None:
    first = git(tree, "rev-parse", "main")
    _, requests = saved(planned(tree, f"git:{tree}@main"), tmp_path)
    (tree / "exit.c").write_text("two\n")
    git(tree, "commit", "-qam", "two")
    assert {request.source for request in requests} == {f"git:{tree}@{first}"}
    assert {sources().identify(request.source).id for request in requests} == {f"git:linux@{first}"}
    assert missing(requests) == [BASE, "x"]


@pytest.mark.parametrize("clocks", [("instructions",), ("instructions", "wall")])
def test_a_run_keeps_what_its_variants_are_built_from(
    clocks: tuple[Clock, ...], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(requests: Sequence[KernelRequest], **_: object) -> Built:
        (base,) = requests
        image = KernelImage(
            name=BASE,
            image=tmp_path / "bzImage",
            source=base.source,
            series="",
            arch="x86_64",
            release="6",
            compiler="gcc",
            config_hash="c",
            image_hash="i",
        )
        # Base takes minutes to build.
        git(tree, "commit", "-q", "--allow-empty", "-m", "two")
        return Built({BASE: image}, {})

    first = git(tree, "rev-parse", "main")
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(build, "ensure", ensure)
    experiments = [experiment(tree, f"git:{tree}", clock) for clock in clocks]
    found = pipeline.start(experiments, SilentReporter(), ablate=False, command="run x")
    assert len(found.runs) == len(clocks)
    for run in found.runs:
        (variant,) = create.missing_kernels(run)
        assert (variant.name, variant.source) == ("x", f"git:{tree}@{first}")
        assert variant.exact is not None and variant.exact.source == f"git:linux@{first}"


def test_another_state_of_the_source_is_refused(tree: Path, tmp_path: Path) -> None:
    ball = tmp_path / "linux.tar"
    ball.write_bytes(b"one")
    _, requests = saved(planned(tree, f"tar:{ball}"), tmp_path)
    ball.write_bytes(b"another")
    with pytest.raises(
        InputError, match=r"would be built from tar:linux\.tar#.* was planned with tar:"
    ) as no:
        missing(requests)
    assert str(ball) in no.value.hint and "start the experiment anew" in no.value.hint


@pytest.mark.parametrize("file", ["base.config", "x86_64.config", "fragments/debug.config"])
def test_another_configuration_is_refused(
    file: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, requests = saved(planned(tree, f"git:{tree}"), tmp_path)
    monkeypatch.setattr(paths, "data_dir", lambda kind: tmp_path / "data" / kind)
    changed = tmp_path / "data" / "kernels" / file
    changed.write_text(changed.read_text() + "\n# A comment changes no kernel.\n")
    assert missing(requests)
    changed.write_text(changed.read_text() + "CONFIG_KTEARDOWN_TEST=y\n")
    with pytest.raises(InputError, match="another configuration than the run was planned") as no:
        missing(requests)
    assert str(tmp_path / "data" / "kernels") in no.value.message and no.value.hint
    assert file.removesuffix(".config") in no.value.message


def test_a_run_keeps_the_fragments_that_are_not_shipped(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine" / "kernels" / "fragments" / "mine.config"
    mine.parent.mkdir(parents=True)
    mine.write_text("CONFIG_KTEARDOWN_TEST=y\n")
    monkeypatch.chdir(tmp_path / "mine")
    wanted = experiment(tree, f"git:{tree}").model_copy(update={"config": ("debug", "mine")})
    resolved = settle(resolve(wanted), SilentReporter())
    plain = planned(tree, f"git:{tree}")
    assert resolved.base.exact and plain.base.exact
    assert resolved.base.exact.config != plain.base.exact.config
    run, _ = saved(resolved, tmp_path)
    # It is finished elsewhere, from a run directory that was moved, and the user has removed the
    # file.
    mine.unlink()
    monkeypatch.chdir(tmp_path)
    moved = RunDir(run.path.rename(tmp_path / "moved"))
    requests = create.missing_kernels(moved)
    kept = moved.path / "fragments" / "mine.config"
    assert {request.fragments for request in requests} == {("debug", str(kept))}
    assert missing(requests) == [BASE, "x"]
    kept.write_text("CONFIG_KTEARDOWN_TEST=m\n")
    with pytest.raises(InputError, match="another configuration than the run was planned") as no:
        missing(requests)
    assert str(kept) in no.value.message


def test_the_patch_of_the_layout_twin_is_kept_to_the_byte(tree: Path, tmp_path: Path) -> None:
    run, _ = saved(planned(tree, f"git:{tree}", "wall"), tmp_path)
    kept = (run.path / "layout-twin.patch").read_bytes()
    assert b"\xa9 one" in kept and b"\xc2\xa9" not in kept


def test_a_file_in_the_way_of_the_patches_is_an_error_with_a_hint(
    tree: Path, tmp_path: Path
) -> None:
    run = RunDir.create(tmp_path / "runs", "x")
    (run.path / "series").write_text("")
    with pytest.raises(LabError, match=r"series/.*: cannot be written") as refused:
        create.save_requests(run, planned(tree, f"git:{tree}"), {}, sources())
    assert refused.value.hint


def test_the_modules_of_scripts_are_facts_of_a_kernel(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "runs", "x")
    image = KernelImage(
        name=BASE,
        image=tmp_path / "bzImage",
        source="debian-image:6.12",
        series="",
        arch="x86_64",
        release="6",
        compiler="gcc",
        config_hash="c",
        image_hash="i",
        modules=(tmp_path / "virtio_pci.ko",),
        optional_modules={"fs-ext4": (tmp_path / "jbd2.ko", tmp_path / "ext4.ko"), "unix": ()},
    )
    create.save_built(run, Built({BASE: image}, {}))
    assert load_kernels(run)[BASE].script_modules == {"fs-ext4": ("jbd2", "ext4")}
