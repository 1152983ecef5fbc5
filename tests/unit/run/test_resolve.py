"""The kernels of an experiment, including the parts of an ablation."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.load import load_experiment, workload_names
from kteardown.model.experiment import Experiment
from kteardown.run.resolve import experiment_for, resolve


def freezer(*variants: str, **design: object) -> Experiment:
    experiment = load_experiment("freezer")
    changed = experiment.design.model_copy(update=design)
    return experiment.model_copy(update={"variants": variants, "design": changed})


def test_base_is_first_and_a_series_has_its_patches() -> None:
    resolved = resolve(freezer("freezer-skip-exited", "freezer-skip-exited@1", "debian:7.2"))
    assert [kernel.name for kernel in resolved.kernels] == [
        "base",
        "freezer-skip-exited",
        "freezer-skip-exited@1",
        "debian:7.2",
    ]
    sets = [kernel.patch_set for kernel in resolved.kernels]
    assert sets[0] is None
    assert sets[3] is None
    assert sets[1] is not None
    assert (sets[1].patches, sets[1].total, sets[1].whole) == ((1, 2), 2, True)
    assert sets[2] is not None
    assert (sets[2].patches, sets[2].for_ablation) == ((1,), False)
    assert sets[2].subjects == ("PM: freezer: do not take freezer_lock for dead tasks",)


def test_an_ablation_adds_the_parts_of_series_that_are_not_variants() -> None:
    resolved = resolve(
        freezer("freezer-skip-exited", "freezer-skip-exited@1", "sched-unthrottle-batches"),
        ablate=True,
    )
    added = resolved.kernels[4:]
    assert [kernel.name for kernel in added] == ["freezer-skip-exited@-1"]
    assert all(
        kernel.optional and kernel.patch_set and kernel.patch_set.for_ablation for kernel in added
    )
    assert not any(kernel.optional for kernel in resolved.kernels[:4])


def test_a_series_can_be_on_another_source_than_base() -> None:
    resolved = resolve(
        freezer("freezer-skip-exited", "freezer-skip-exited@1 on debian:7.2"), ablate=True
    )
    there = resolved.kernels[2]
    assert (there.name, there.source) == ("freezer-skip-exited@1 on debian:7.2", "debian:7.2")
    assert (there.series, len(there.patches)) == ("freezer-skip-exited@1", 1)
    assert [kernel.name for kernel in resolved.kernels[3:]] == [
        "freezer-skip-exited@1",
        "freezer-skip-exited@-1",
    ]
    with pytest.raises(InputError, match="is not a kernel source"):
        resolve(freezer("freezer-skip-exited on debian7:"))
    with pytest.raises(InputError, match="nothing to ablate"):
        resolve(freezer("freezer-skip-exited on debian:7.2"), ablate=True)


def test_nothing_to_ablate_is_an_error() -> None:
    with pytest.raises(InputError, match="nothing to ablate"):
        resolve(freezer("sched-unthrottle-batches", "debian:7.2"), ablate=True)


def test_variants_that_are_only_sources_have_no_layout_twin() -> None:
    with pytest.raises(InputError, match="no variant is a series"):
        resolve(freezer("debian:7.2", clock="wall", layout_twin=True))
    with pytest.raises(InputError, match="no variant is a series"):
        resolve(freezer("freezer-skip-exited on debian:7.2", clock="wall", layout_twin=True))
    # On the instruction clock the setting of an experiment has no effect.
    assert len(resolve(freezer("debian:7.2", layout_twin=True)).kernels) == 2


def test_a_variant_with_the_name_of_a_twin_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "base-layout"
    folder.mkdir()
    (folder / "0001-a.patch").write_text("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")
    with pytest.raises(InputError, match="'base-layout'"):
        resolve(freezer(str(folder)))


_PATCH = """From: A <a@example.org>
Date: Thu, 1 Jan 2026 00:00:00 +0000
Message-Id: <{revision}@example.org>
Subject: [PATCH {revision}] freezer: Skip exited tasks

Signed-off-by: A <a@example.org>
---
--- a/kernel/freezer.c
+++ b/kernel/freezer.c
@@ -1,1 +1,2 @@
 /* SPDX */
+/* {revision} */
"""


def test_two_revisions_of_one_patch_are_compared_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    files = []
    for revision in ("", "v2", "v3"):
        file = tmp_path / f"mails{revision}" / "freezer-skip.mbox"
        file.parent.mkdir()
        file.write_text(_PATCH.format(revision=revision).replace("<@", "<v1@"))
        files.append(str(file))
    names = [kernel.name for kernel in resolve(freezer(*files)).kernels]
    assert names == ["base", "freezer-skip-v1", "freezer-skip-v2", "freezer-skip-v3"]
    assert [kernel.name for kernel in resolve(freezer(files[1])).kernels] == [
        "base",
        "freezer-skip",
    ]
    with pytest.raises(
        InputError, match=f"two kernels are called 'freezer-skip-v2': {files[1]}, {files[1]}$"
    ):
        resolve(freezer(files[1], files[1]))


def test_the_experiment_of_a_workload_has_no_setting_that_is_for_another_question() -> None:
    """A change of CPU quota was measured with the timer that shows for how long interrupts are
    off, and with all tasks on one CPU."""
    (sweep,) = experiment_for("quota", "debian:6.12").workloads
    assert "irq_timer_us" not in sweep.params
    assert "on" not in sweep.params


@pytest.mark.parametrize("workload", ["pipechain", "zombies", "heldcg", "swapfree", "dyingcg"])
def test_the_experiment_of_a_workload_shows_its_growth(workload: str) -> None:
    assert workload in workload_names()
    (sweep,) = experiment_for(workload, "debian:6.12").workloads
    assert len(max(sweep.params.values(), key=len)) >= 3
