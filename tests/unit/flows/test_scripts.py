"""From a script to the experiment with it; nothing is built or booted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import InputError
from kteardown.flows.scripts import experiments_on
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Overrides, Scripted
from kteardown.model.experiment import Experiment
from kteardown.run.rehearse import Rehearsal, Rehearsed
from unit.cli.test_terminal import console
from unit.run.test_rehearse import both, ran
from unit.script.lines import delta


def test_the_files_are_there_until_the_smallest_size_was_run_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leave.sh").write_text("for i in $(seq $N); do :; done\n")
    image = SimpleNamespace(image=Path("bzImage"), modules=(), optional_modules={}, builtin=())
    built = SimpleNamespace(images={"base": image})
    monkeypatch.setattr("kteardown.kernels.build.ensure", lambda *_, **__: built)

    def rehearsed(_: object, experiment: Experiment, *__: object) -> Rehearsed:
        small, large = (
            ran(params={"N": n}, deltas=[delta("meminfo", "Slab", 40 * n)]) for n in (100, 200)
        )

        def again() -> Rehearsal:
            assert Path(experiment.folder, "workloads", "leave.sh").is_file()
            return small

        return Rehearsed((small, large), 12.0, both(small).seen, again)

    monkeypatch.setattr("kteardown.run.script_modules.rehearse", rehearsed)
    asked = Overrides(assignments=["N=100,200"], variant=["exit-linear"])
    (found,) = experiments_on(
        "./leave.sh", "debian:6.12", asked, Scripted(), TerminalReporter(console(), quiet=True)
    )
    assert "meminfo_slab_kb" in load_workload("leave", found.folder).metrics


@pytest.mark.parametrize(
    ("text", "asked", "says"),
    [
        ("#!/bin/nonesuch\n", Overrides(), "/bin/nonesuch, which runs x.sh, is not on this host"),
        ("echo\r\ndone\r\n", Overrides(), "carriage return"),
        ("echo\n", Overrides(memory_mb=64), "do not fit into its memory of 64 MB"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_before_a_kernel_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, asked: Overrides, says: str
) -> None:
    (tmp_path / "x.sh").write_text(text)
    monkeypatch.setattr(
        "kteardown.kernels.build.ensure", lambda *_, **__: pytest.fail("a kernel is built")
    )
    asked = replace(asked, variant=["exit-linear"])
    with pytest.raises(InputError, match=says):
        experiments_on(
            str(tmp_path / "x.sh"),
            "debian:6.12",
            asked,
            Scripted(),
            TerminalReporter(console(), quiet=True),
        )
