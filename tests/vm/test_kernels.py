"""Real builds in the user's own cache: a base, variants that reuse its objects, and builds that
fail."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown import paths
from kteardown.errors import BuildError, InputError
from kteardown.inputs.load import load_experiment
from kteardown.kernels import build, builder
from kteardown.kernels.kconfig import parse_config
from kteardown.kernels.prebuilt import read_header
from kteardown.kernels.request import Built, KernelImage, KernelRequest
from kteardown.kernels.series import resolve
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.record import LAYOUT
from kteardown.progress import SilentReporter, Task
from kteardown.run import create
from kteardown.run.create import create_run
from kteardown.run.resolve import resolve as resolve_experiment
from kteardown.rundir.snapshot import load

pytestmark = pytest.mark.build

SOURCE = "debian:6.12"
TOUCHED = "kernel/power/process.c"


class Recorder(SilentReporter):
    """Keeps the titles of long steps, and the commands."""

    def __init__(self) -> None:
        self.tasks: list[str] = []
        self.commands: list[list[str]] = []

    def command(self, argv: list[str]) -> None:
        self.commands.append(argv)

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        self.tasks.append(title)
        with super().task(title, total) as task:
            yield task


def built(*requests: KernelRequest) -> Built:
    return build.ensure(requests, cache_dir=paths.cache_dir(), reporter=Recorder())


def ensure(*requests: KernelRequest, reporter: Recorder | None = None) -> dict[str, KernelImage]:
    return build.ensure(
        requests, cache_dir=paths.cache_dir(), reporter=reporter or Recorder()
    ).images


def base() -> KernelRequest:
    return KernelRequest("base", SOURCE)


def tree() -> Path:
    sources = Sources(paths.cache_dir(), SilentReporter())
    return sources.tree(sources.identify(SOURCE))


def write_patch(path: Path, old: str, new: str, file: str = TOUCHED) -> Path:
    """A patch that changes one line of ``file`` in the tree."""
    lines = (tree() / file).read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if old in line)
    shown = lines[at - 3 : at + 4]
    body = [f" {line}" for line in shown]
    body[3:4] = [f"-{shown[3]}", f"+{shown[3].replace(old, new)}"]
    head = f"--- a/{file}\n+++ b/{file}\n@@ -{at - 2},7 +{at - 2},7 @@\n"
    path.write_text(head + "\n".join(body) + "\n")
    return path


def test_a_base_and_its_variants() -> None:
    before = file_hash(tree() / TOUCHED)
    chosen = resolve("freezer-skip-exited")
    label = chosen.label
    found = ensure(base(), KernelRequest(label, SOURCE, chosen.patches, label))

    assert {kernel.release for kernel in found.values()} == {
        read_header(found["base"].image, "base")[1]
    }
    assert found["base"].source.startswith("debian:6.12.")
    assert found["base"].config_hash == found[label].config_hash
    assert found["base"].image_hash != found[label].image_hash
    assert found[label].series == label
    config = parse_config((found["base"].image.parent / "config").read_text())
    assert config["PM_SLEEP_DEBUG"] == "y"
    assert (found[label].image.parent / "System.map").is_file()
    assert file_hash(tree() / TOUCHED) == before


def test_a_cached_kernel_needs_no_step_and_no_command() -> None:
    ensure(base())
    recorder = Recorder()
    ensure(base(), reporter=recorder)
    assert recorder.tasks == []
    assert recorder.commands == []


def test_a_change_of_one_file_compiles_few_files_and_keeps_the_tree(tmp_path: Path) -> None:
    ensure(base())
    before = file_hash(tree() / TOUCHED)
    # The patch differs every time, so that its kernel is not in the cache.
    patch = write_patch(
        tmp_path / "0001-a.patch", "Restarting tasks", f"Restarting tasks of {tmp_path.parent.name}"
    )
    variant = KernelRequest("a", SOURCE, (patch,), "a")
    found = ensure(base(), variant)
    log = (found["a"].image.parent / "build.log").read_text()
    compiled = [line.split()[1] for line in log.splitlines() if line.startswith("  CC ")]
    assert "kernel/power/process.o" in compiled
    assert len(compiled) < 20
    assert file_hash(tree() / TOUCHED) == before
    shutil.rmtree(found["a"].image.parent)


def test_the_same_files_of_another_mail_need_no_build_and_no_objects_of_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"Restarting tasks of {tmp_path.parent.name}"
    patch = write_patch(tmp_path / "0001-a.patch", "Restarting tasks", text)
    first = ensure(KernelRequest("a", SOURCE, (patch,), "a"))["a"]
    again = tmp_path / "0001-b.patch"
    again.write_text(f"Reviewed-by: A Person <a@example.org>\n---\n{patch.read_text()}")

    # The objects of base may have been pruned.
    monkeypatch.setattr(
        builder.Builder, "_objects", lambda self, plan: tmp_path / "pruned" / "objects"
    )
    (tmp_path / "pruned").mkdir()
    recorder = Recorder()
    second = ensure(KernelRequest("b", SOURCE, (again,), "b"), reporter=recorder)["b"]
    assert second.image != first.image
    assert second.image_hash == first.image_hash
    assert second.series == "b"
    assert not any("make" in argv for argv in recorder.commands)
    for image in (first, second):
        shutil.rmtree(image.image.parent)


def test_a_patch_that_does_not_apply_is_reported_before_a_build(tmp_path: Path) -> None:
    patch = write_patch(tmp_path / "0001-bad.patch", "freeze_processes", "x")
    patch.write_text(patch.read_text().replace("\n ", "\n something else ", 1))
    recorder = Recorder()
    with pytest.raises(BuildError) as caught:
        ensure(KernelRequest("bad", SOURCE, (patch,), "bad"), reporter=recorder)
    assert "0001-bad.patch does not apply to debian:6.12." in caught.value.message
    assert f"{TOUCHED}, hunk 1 of 1" in caught.value.message
    assert not any(title.startswith("Building") for title in recorder.tasks)


def test_code_that_does_not_compile_is_reported_with_its_line_and_its_log(tmp_path: Path) -> None:
    patch = write_patch(tmp_path / "0001-typo.patch", "int error", "int err or")
    with pytest.raises(BuildError) as caught:
        ensure(KernelRequest("typo", SOURCE, (patch,), "typo"))
    assert "process.c:" in caught.value.message
    assert "error:" in caught.value.message
    log = Path(caught.value.message.rpartition("whole log: ")[2])
    assert "process.c" in log.read_text()


@pytest.mark.full
def test_optional_kernels_that_do_not_apply_or_build_are_left_out_with_the_reason(
    tmp_path: Path,
) -> None:
    typo = write_patch(tmp_path / "0001-typo.patch", "int error", "int err or")
    stale = write_patch(tmp_path / "0002-stale.patch", "freeze_processes", "x")
    stale.write_text(stale.read_text().replace("\n ", "\n something else ", 1))
    requests = [
        KernelRequest(patch.stem, SOURCE, (patch,), patch.stem, optional=True)
        for patch in (typo, stale)
    ]
    found = built(base(), *requests)
    assert list(found.images) == ["base"]
    assert "error:" in found.left_out["0001-typo"]
    assert "does not apply" in found.left_out["0002-stale"]
    with pytest.raises(BuildError):
        built(base(), replace(requests[1], optional=False))


def test_a_run_keeps_what_its_layout_twin_is_built_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freezer = load_experiment("freezer")
    design = freezer.design.model_copy(update={"clock": "wall"})
    resolved = resolve_experiment(freezer.model_copy(update={"design": design}))
    found = built(*resolved.kernels)
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))
    run = create_run(resolved, found, "kteardown run freezer", SilentReporter())
    assert LAYOUT not in load(run).kernels
    # The patch is read from the run directory, not from the series, which may have changed.
    create.add_layout_twin(load(run), SilentReporter())
    twin = load(run).kernels[LAYOUT]
    assert twin.image_hash not in {image.image_hash for image in found.images.values()}
    assert create.bootable(run)[LAYOUT].image.is_file()
    text = run.kernels_file.path.read_text()
    run.save(run.kernels_file, text.replace(found.images["base"].image_hash, "0" * 64))
    with pytest.raises(InputError, match="no longer the kernel"):
        create.add_layout_twin(load(run), SilentReporter())


def test_a_symbol_that_cannot_be_set_is_reported_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = tmp_path / "kernels"
    shutil.copytree(paths.data_dir("kernels"), configs)
    (configs / "fragments" / "wish.config").write_text(
        "# needs FUTEX2000\nCONFIG_SECURITY_PATH=y\nCONFIG_FUTEX2000=y\n"
    )
    monkeypatch.setattr(paths, "data_dir", lambda kind: configs)
    with pytest.raises(BuildError) as caught:
        ensure(KernelRequest("base", SOURCE, fragments=("wish",)))
    assert "fragments/wish.config:2: CONFIG_SECURITY_PATH: wanted y, got n" in caught.value.message
    assert "SECURITY=n" in caught.value.message
    assert "fragments/wish.config:3: CONFIG_FUTEX2000: wanted y, got n" in caught.value.message
    assert "no such symbol" in caught.value.message
