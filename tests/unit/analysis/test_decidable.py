"""What a design can decide: the sizes agree with simulated power, and follow the design."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from kteardown.analysis.conclude import conclude
from kteardown.analysis.decidable import decidable, smallest_change
from kteardown.inputs.load import load_experiment, load_workloads
from kteardown.model.plan import DesignPower, Spread
from kteardown.model.point import points_of
from kteardown.report import saved
from kteardown.report.forecast_text import power_table
from kteardown.run.create import spreads
from kteardown.rundir.snapshot import load
from unit.report.contexts import write_run
from unit.simulation import freezer


def power_of(seeds: int, known: dict[tuple[str, str], Spread] | None = None) -> DesignPower:
    wanted = load_experiment("masskill")
    wanted = wanted.model_copy(update={"design": wanted.design.model_copy(update={"seeds": seeds})})
    workloads = load_workloads(wanted)
    return decidable(wanted, workloads, 1, points_of(wanted, workloads), known or {})


@pytest.mark.parametrize(("boots", "alpha"), [(3, 0.05), (3, 0.01), (10, 0.005)])
def test_the_smallest_change_is_found_four_times_in_five(boots: int, alpha: float) -> None:
    size = smallest_change(0.1, boots, alpha)
    assert size is not None
    rng = np.random.default_rng(1)
    figures = rng.normal(math.log1p(size), 0.1, (4000, boots))
    found = np.mean(stats.ttest_1samp(figures, 0, axis=1).pvalue < alpha)
    assert found == pytest.approx(0.8, abs=3 * math.sqrt(0.16 / 4000))


def test_one_seed_finds_nothing_and_more_seeds_find_less() -> None:
    assert {row.metric for row in power_of(1).rows} == {None}
    three, eight = (power_of(seeds).rows[0] for seeds in (3, 8))
    assert three.metric is not None
    assert three.point is not None
    assert eight.metric is not None
    assert eight.metric < three.metric < three.point


def test_metrics_are_counted_and_spreads_of_earlier_runs_are_used() -> None:
    plain = power_of(3)
    assert (plain.tests, plain.boots) == (6, 3)
    assert [row.run for row in plain.rows] == ["", "", ""]
    known = {("pipechain", "unusable_ns"): Spread(0.14, 0.5, "earlier")}
    first = power_of(3, known).rows[0]
    assert (first.metric_name, first.points, first.spread, first.run) == (
        "unusable_ns",
        24,
        0.14,
        "earlier",
    )
    masskill = load_experiment("masskill")
    text = power_table(power_of(3, known), masskill.design, load_workloads(masskill))
    assert "with 3 seeds and 6 tests of headline metrics" in text.title
    names = [row[0].text for row in text.keys.rows]
    assert names == [
        "the longest wait of a latency probe",
        *["any other"] * 3,
    ]


def test_the_newest_result_with_the_same_clock_gives_the_spreads(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    wanted = freezer(boots=3)
    assert spreads(wanted, [run]) == {}
    snapshot = load(run)
    result = conclude(snapshot)[0]
    saved.write(run, result, snapshot)
    found = spreads(wanted, [run])
    mine = [m.spread for m in result.metric_verdicts if m.metric == "freeze_user_ns"]
    assert found["zombies", "freeze_user_ns"].metric == max(s for s in mine if s is not None)
    assert found["zombies", "freeze_user_ns"].run == run.name
    assert spreads(freezer("wall"), [run]) == {}
