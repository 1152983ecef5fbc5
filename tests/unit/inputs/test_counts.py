"""``--counts``: which workloads are counted, their metrics, and what cannot be counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.counts import INVARIANTS, METRICS, check_counts, marks_stretch, uncounted
from kteardown.inputs.load import (
    load_experiment,
    load_workload,
    load_workloads,
    stress_names,
    workload_names,
)
from kteardown.inputs.options import Overrides, apply, on_clocks
from kteardown.model.experiment import Experiment
from kteardown.paths import data_dir

EMULATED = Overrides(counts=True, arch="arm64", clock="instructions")


def counted(name: str, **options: object) -> Experiment:
    return apply(load_experiment(name), Overrides(**{"counts": True, "clock": "wall", **options}))  # type: ignore[arg-type]


def test_each_workload_that_names_a_stretch_marks_it() -> None:
    """``.stretch`` is what a profile goes by, and the calls are what the counters go by."""
    for name in workload_names():
        place = data_dir("agent") / ("stress" if name in stress_names() else "workloads") / name
        files = place.glob("*.c") if place.is_dir() else [place.with_suffix(".c")]
        named = any(re.search(r"\.stretch\s*=", file.read_text()) for file in files)
        assert marks_stretch(name) == named, name


def test_a_workload_of_the_user_is_read_and_a_call_in_a_comment_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "agent" / "workloads"
    folder.mkdir(parents=True)
    file = folder / "mine.c"
    file.write_text("/* wl_profile_begin(t); */\nint x; // wl_profile_begin(t)\n")
    assert not marks_stretch("mine", str(tmp_path))
    file.write_text("int run(void) { wl_profile_begin(t); }\n")
    assert marks_stretch("mine", str(tmp_path))
    assert not marks_stretch("missing", str(tmp_path))


def test_the_metrics_are_added_where_a_stretch_is_marked() -> None:
    experiment = counted("freezer")
    for workload in load_workloads(experiment).values():
        assert METRICS.items() <= workload.metrics.items()
        assert INVARIANTS.items() <= workload.invariants.items()
        assert (
            workload.metrics.keys() - METRICS.keys() == load_workload(workload.name).metrics.keys()
        )
    plain = load_workloads(load_experiment("freezer"))
    assert not any(METRICS.keys() & workload.metrics.keys() for workload in plain.values())


def test_the_metrics_are_in_the_form_of_a_workloads_own() -> None:
    assert len({metric.name for metric in METRICS.values()}) == len(METRICS)
    for key, metric in METRICS.items():
        assert key.endswith(f"_{metric.unit}")
        assert metric.name and metric.optional and not metric.headline
    assert [key for key, metric in METRICS.items() if not metric.compare] == [
        "instructions_per_cycle"
    ]


def test_the_agent_reports_these_metrics() -> None:
    text = (data_dir("agent") / "counts" / "counts.c").read_text()
    assert {*METRICS} == {*re.findall(r'"(\w+_(?:count|per_cycle))"', text)}
    assert all(f'wl_check(t, "{name}"' in text for name in INVARIANTS)


def test_without_any_stretch_it_is_an_error() -> None:
    with pytest.raises(InputError, match="marks a stretch in which to count: quota"):
        counted("throttle-quota")


def test_a_workload_without_a_stretch_beside_others_is_left_as_it_is() -> None:
    experiment = counted("dyingcg")
    assert uncounted(experiment, load_workloads(experiment)) == ["chargeloop"]
    assert METRICS.keys() <= load_workloads(experiment)["dyingcg"].metrics.keys()
    assert load_workloads(experiment)["chargeloop"] == load_workload("chargeloop")


def test_emulated_x86_has_no_counters() -> None:
    with pytest.raises(
        InputError, match="x86_64 guests have no counters on the instruction clock"
    ) as error:
        counted("freezer", clock="instructions")
    assert "--clock wall" in error.value.hint


def test_emulated_arm64_has_counters_of_one_cpu() -> None:
    freezer = load_experiment("freezer")
    assert apply(freezer, EMULATED).design.counts
    with pytest.raises(InputError, match="each of the 2 CPUs"):
        counted("freezer", clock="instructions", arch="arm64", cpus=2)


def test_a_metric_of_the_workload_with_such_a_name_is_an_error() -> None:
    experiment = counted("freezer")
    workloads = {name: load_workload(name) for name in ("zombies", "zombies_cgroup")}
    check_counts(experiment, workloads, "here")
    with pytest.MonkeyPatch.context() as patch:
        mine = workloads["zombies"].model_copy(
            update={"metrics": {"cycles_count": METRICS["cycles_count"]}}
        )
        patch.setattr("kteardown.inputs.load.load_workload", lambda name, folder="": mine)
        with pytest.raises(InputError, match="declares cycles_count, which is also the name"):
            load_workloads(experiment)


def test_a_file_can_ask_for_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\n'
        'question = "?"\n'
        'source = "debian:6.12"\n'
        "[[workloads]]\n"
        'workload = "zombies"\n'
        "[design]\n"
        'clock = "wall"\n'
        "counts = true\n"
    )
    experiment = load_experiment(str(file))
    assert experiment.design.counts
    # What a run keeps of it.
    assert Experiment.model_validate_json(experiment.model_dump_json()).design.counts


def test_on_both_clocks_only_the_wall_clock_counts() -> None:
    by_option = on_clocks(load_experiment("freezer"), Overrides(clock="both", counts=True))
    by_file = on_clocks(counted("freezer"), Overrides(clock="both"))
    for experiments in (by_option, by_file):
        assert {e.design.clock: e.design.counts for e in experiments} == {
            "instructions": False,
            "wall": True,
        }
