"""The tables of an ablation: the effect of each patch, with bars where they fit."""

from __future__ import annotations

from kteardown.model.kernel_facts import PatchSet, Unavailable
from kteardown.model.result import Ablation, Part, PatchParts, Result
from kteardown.report.formats import markdown
from kteardown.report.material import Material
from unit.report.on_terminal import printed, rows
from unit.simulation import WORKLOADS


def part(share_of: float) -> Part:
    return Part(
        ratio=0.8, ci=(0.75, 0.85), share=share_of, share_ci=(share_of - 0.05, share_of + 0.05)
    )


MISSING = Unavailable(
    kernel="freezer-skip-exited@-1",
    patch_set=PatchSet(series="freezer-skip-exited", patches=(2,), total=2),
    reason="patch 2 does not apply without patch 1",
)


def ablated(result: Result) -> Result:
    """Return the result with an ablation of the first variant at two points, and a kernel built for
    it."""
    whole = [
        c
        for c in result.comparisons
        if c.variant == "freezer-skip-exited" and c.metric == "freeze_user_ns"
    ]
    parts = [c.model_copy(update={"variant": "freezer-skip-exited@1"}) for c in whole]
    patches = (
        PatchParts(
            patch=1, subject="freezer: a" + "b" * 60, step=part(-0.1), leave_out=Part(reason="gone")
        ),
        PatchParts(patch=2, subject="freezer: skip", step=part(1.1), leave_out=part(0.5)),
    )
    ablations = tuple(
        Ablation(
            workload="zombies",
            variant="freezer-skip-exited",
            series="freezer-skip-exited",
            metric="freeze_user_ns",
            unit="ns",
            better="lower",
            point={"zombies": zombies},
            ratio=0.4,
            ci=(0.35, 0.45),
            confidence=0.95,
            patches=patches,
            unavailable=(MISSING,),
        )
        for zombies in (30000, 3000)
    )
    only = PatchSet(series="freezer-skip-exited", patches=(1,), total=2, for_ablation=True)
    kernel = result.kernels["base"].model_copy(update={"patch_set": only})
    return result.model_copy(
        update={
            "ablations": ablations,
            "kernels": {**result.kernels, "freezer-skip-exited@1": kernel},
            "comparisons": (*result.comparisons, *parts),
        }
    )


def test_an_ablation_shows_the_effect_of_each_patch_at_the_largest_point(
    wall_result: Result,
) -> None:
    report = printed(ablated(wall_result), 150)
    assert (
        "freezer-skip-exited: patch 2 of 2 accounts for 110.0% [105.0, 115.0] of the change of "
        "freezing user space at zombies=30,000" in report
    )
    assert report.count("effect of each patch") == 1
    header, _, one, two, *notes = rows(
        report, "effect of each patch on freezing user space at zombies=30,000"
    )
    assert header == ["patch", "added", "share", "left out", "share"]
    assert one == ["1", "-20.0% [-25.0, -15.0]", "-10.0% [-15.0, -5.0]", "-", "-"]
    assert two[1:4] == ["-20.0% [-25.0, -15.0]", "110.0% [105.0, 115.0]", "█" * 10]
    assert notes[:2] == [["1: freezer: a" + "b" * 60], ["2: freezer: skip"]]
    assert notes[-1] == ["1 left out: gone"]


def test_bars_are_drawn_only_if_they_fit_and_can_be_displayed(wall_result: Result) -> None:
    result = ablated(wall_result)
    assert "█" in printed(result, 110)
    assert "█" not in printed(result, 60)
    assert "█" not in printed(result, 130, encoding="ascii")
    assert "█" not in markdown.report(Material("", result, WORKLOADS))


def test_a_kernel_built_for_an_ablation_is_in_no_other_table(wall_result: Result) -> None:
    before, after = printed(wall_result, 130), printed(ablated(wall_result), 130)
    assert "freezer-skip-exited@1" in after
    kernels = after.split("Kernels")[1]
    assert after.count("freezer-skip-exited@1") == kernels.count("freezer-skip-exited@1") == 1
    for title in (
        "zombies: freezing user space (freeze_user_ns) in",
        "zombies: growth of freezing user space",
        "Other metrics",
    ):
        assert rows(before, title) == rows(after, title)
