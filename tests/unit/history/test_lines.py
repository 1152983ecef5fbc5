"""Lines over runs: which figures belong together, their order, and the description of a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kteardown.model.clock import Clock
from kteardown.model.kernel_facts import KernelFacts, PatchSet
from kteardown.model.workload import Metric
from kteardown_history.lines import BootFigure, History, Order, RunFacts, history, release_key

_METRIC = Metric(help="how long", headline=True)


def boot(run: str, value: float, release: str = "6.12.1", **fields: Any) -> BootFigure:
    known = {
        "kernel": "base",
        "workload": "zombies",
        "metric": "freeze_user_ns",
        "boot": 0,
        "cpus": 1,
    }
    known |= {"params": (("zombies", 300),), "acceleration": "icount"}
    return BootFigure(run=run, value=value, release=release, started_at=run, **{**known, **fields})


def kernel(release: str, **fields: Any) -> KernelFacts:
    known = {"source": f"debian:{release}", "arch": "x86_64", "compiler": "gcc 12"}
    known |= {"config_hash": "c" * 20, "image_hash": release}
    return KernelFacts(release=release, **{**known, **fields})


def facts(
    kernels: Mapping[str, KernelFacts] | None = None,
    clock: Clock = "instructions",
    metric: Metric = _METRIC,
    **machine: Any,
) -> RunFacts:
    known = {"base": kernel("6.12.1")} if kernels is None else kernels
    metrics = {(workload, "freeze_user_ns"): metric for workload in ("zombies", "zombies_cgroup")}
    other = metric.model_copy(update={"headline": False})
    return RunFacts("freezer", clock, known, machine, {**metrics, ("zombies", "thaw_ns"): other})


def lines(
    figures: list[BootFigure],
    runs: Mapping[str, RunFacts],
    order: Order = "release",
    least: float = 0.02,
) -> History:
    return history(figures, runs, order=order, least=least)


@pytest.mark.parametrize(
    "ordered",
    [
        ("6.9.1", "6.12", "6.12.117", "7.0.0-rc3", "7.0", "7.2.12"),
        ("", "6.1.0", "6.1.0-13-amd64"),
        ("7.2.0-rc2-00012-gabc", "7.2.0-rc10", "7.2.0"),
    ],
)
def test_releases_are_in_the_order_of_their_dates(ordered: tuple[str, ...]) -> None:
    assert sorted(reversed(ordered), key=release_key) == list(ordered)


def test_figures_are_ordered_by_release_and_time_or_by_time_alone() -> None:
    runs = {
        "t1": facts({"base": kernel("7.2.1")}),
        "t2": facts(),
        "t3": facts(),
    }
    figures = [boot("t1", 5, "7.2.1"), boot("t3", 7), boot("t2", 6)]
    (line,) = lines(figures, runs).lines
    assert [figure.run for figure in line.figures] == ["t2", "t3", "t1"]
    (line,) = lines(figures, runs, "time").lines
    assert [figure.run for figure in line.figures] == ["t1", "t2", "t3"]


def test_the_figure_of_a_run_is_the_median_of_its_boots() -> None:
    figures = [boot("t1", value, boot=n) for n, value in enumerate((3.0, 9.0, 4.0))]
    (line,) = lines(figures, {"t1": facts()}).lines
    (figure,) = line.figures
    assert (figure.value, figure.low, figure.high, figure.boots) == (4, 3, 9, 3)
    assert "only one figure" in line.unlooked


def test_a_second_source_is_a_kernel_without_patches_and_a_series_has_its_own_line() -> None:
    patched = kernel("6.12.1", patch_set=PatchSet(series="s", patches=(1,), total=1))
    layout = kernel("6.12.1", series="base-layout")
    runs = {
        "t1": facts(
            {
                "base": kernel("6.12.1"),
                "debian:7.2": kernel("7.2.1"),
                "s": patched,
                "base-layout": layout,
            }
        )
    }
    figures = [
        boot("t1", 4),
        boot("t1", 8, "7.2.1", kernel="debian:7.2"),
        boot("t1", 2, kernel="s"),
        boot("t1", 4, kernel="base-twin"),
        boot("t1", 4, kernel="base-layout"),
    ]
    unpatched, series = lines(figures, runs).lines
    assert (unpatched.kernel, [f.kernel for f in unpatched.figures]) == (
        "unpatched",
        ["base", "debian:7.2"],
    )
    assert (series.kernel, [f.value for f in series.figures]) == ("s", [2])


@pytest.mark.parametrize(
    "other",
    [
        {"params": (("zombies", 600),)},
        {"metric": "thaw_ns"},
        {"workload": "zombies_cgroup"},
        {"cpus": 2},
    ],
    ids=lambda other: next(iter(other)),
)
def test_figures_that_cannot_be_compared_are_in_different_lines(other: dict[str, Any]) -> None:
    assert (
        len(lines([boot("t1", 1), boot("t2", 1, **other)], {"t1": facts(), "t2": facts()}).lines)
        == 2
    )


def test_hosts_have_different_lines_in_real_time_only() -> None:
    exact = {"t1": facts(cpu={"model": "A"}), "t2": facts(cpu={"model": "B"})}
    figures = [boot("t1", 1), boot("t2", 1)]
    assert [line.host for line in lines(figures, exact).lines] == [""]
    real = {
        "t1": facts(clock="wall", cpu={"model": "A"}),
        "t2": facts(clock="wall", cpu={"model": "B"}),
    }
    figures = [boot("t1", 1, acceleration="kvm"), boot("t2", 1, acceleration="kvm")]
    assert [line.host for line in lines(figures, real).lines] == ["A, kvm", "B, kvm"]


def test_a_change_has_its_size_its_verdict_and_the_recorded_differences() -> None:
    runs = {
        "t1": facts(qemu={"x86_64": "7.2", "arm64": "7.2"}, kernel="5"),
        "t2": facts({"base": kernel("7.2.1")}, qemu={"x86_64": "8.0", "arm64": "8.0"}, kernel="6"),
    }
    (line,) = lines([boot("t1", 1000), boot("t2", 1500, "7.2.1")], runs).lines
    (shift,) = line.shifts
    assert (shift.index, shift.before, shift.after, shift.ratio, shift.verdict) == (
        1,
        1000,
        1500,
        1.5,
        "worse",
    )
    assert shift.why == (
        "release: 6.12.1 / 7.2.1",
        "source: debian:6.12.1 / debian:7.2.1",
        "QEMU x86_64: 7.2 / 8.0",
    )


@pytest.mark.parametrize(("clock", "unit"), [("instructions", "instructions"), ("wall", "ns")])
def test_the_values_of_a_line_have_the_unit_that_the_clock_gives(clock: Clock, unit: str) -> None:
    (line,) = lines([boot("t1", 1)], {"t1": facts(clock=clock)}).lines
    assert (line.unit, line.value_unit) == ("ns", unit)


def test_a_metric_that_the_workload_does_not_declare_has_no_line() -> None:
    """Its key would say that ``items_per_s`` is in ``s``, and that lower is better."""
    figures = [
        boot(run, 1, metric=metric)
        for run in ("t1", "t2")
        for metric in ("freeze_user_ns", "items_per_s")
    ]
    found = lines(figures, {"t1": facts(), "t2": facts()})
    assert [line.metric for line in found.lines] == ["freeze_user_ns"]


def test_higher_is_better_if_the_metric_declares_it() -> None:
    metric = Metric(help="rate", better="higher", unit="per_s")
    runs = {"t1": facts(metric=metric), "t2": facts(metric=metric)}
    (line,) = lines([boot("t1", 1000), boot("t2", 1500)], runs).lines
    assert [shift.verdict for shift in line.shifts] == ["better"]


def test_a_change_without_recorded_differences_is_reported() -> None:
    other = facts({"base": kernel("6.12.1", image_hash="another")})
    figures = [boot("t1", 1000), boot("t2", 1500), boot("t3", 3000)]
    (line,) = lines(figures, {"t1": facts(), "t2": facts(), "t3": other}).lines
    assert [shift.why for shift in line.shifts] == [
        ("nothing that is recorded: the image of the kernel is the same",),
        ("the patches",),
    ]


def test_a_change_to_zero_has_no_ratio() -> None:
    figures = [boot("t1", 4), boot("t2", 0)]
    (line,) = lines(figures, {"t1": facts(), "t2": facts()}).lines
    assert [(shift.ratio, shift.verdict) for shift in line.shifts] == [(None, "better")]


def test_points_are_in_numeric_order() -> None:
    figures = [boot("t1", 1, params=(("zombies", n),)) for n in (3000, 0, 600)]
    assert [line.point["zombies"] for line in lines(figures, {"t1": facts()}).lines] == [
        0,
        600,
        3000,
    ]
