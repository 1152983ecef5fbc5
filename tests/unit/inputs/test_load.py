"""Experiment and workload files: what is loaded, and the errors of wrong files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.counts import uncounted
from kteardown.inputs.fragments import fragments
from kteardown.inputs.load import (
    experiment_names,
    load_experiment,
    load_workload,
    load_workloads,
    own_sources,
    programs,
    stress_names,
    workload_names,
)
from kteardown.model.experiment import Experiment, Sweep
from kteardown.model.point import points_of, sweep_points, weight_of

GOOD = """
name = "mine"
question = "Is it better?"
source = "debian:6.12"
[[workloads]]
workload = "zombies"
params.zombies = "0:9000:3000"
"""


def _write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_all_shipped_files_load() -> None:
    assert "freezer" in experiment_names()
    for name in experiment_names():
        load_experiment(name)
    for name in workload_names():
        load_workload(name)


def test_programs_are_those_of_the_values_of_the_sweep(tmp_path: Path) -> None:
    def of(values: str) -> tuple[str, ...]:
        text = GOOD.replace("zombies", "dyingcg").replace('dyingcg = "0:9000:3000"', values)
        experiment = load_experiment(_write(tmp_path, text))
        return programs(experiment, load_workloads(experiment))

    assert of('how = ["script", "agent"]') == ("busybox",)
    assert of('how = ["agent"]') == of("cgroups = [1]") == ()


def test_a_sweep_has_every_point_with_the_defaults(tmp_path: Path) -> None:
    experiment = load_experiment(_write(tmp_path, GOOD))
    workload = load_workload("zombies")
    found = sweep_points(experiment.workloads[0], workload)
    assert [point["zombies"] for point in found] == [0, 3000, 6000, 9000]
    assert all(set(point) == set(workload.parameters) for point in found)


def test_the_weight_of_a_point_is_the_product_over_its_parameters(tmp_path: Path) -> None:
    text = GOOD + 'weights.zombies = { "0" = 0, "9000" = 3 }\nweights.make = { shared = 0.5 }\n'
    experiment = load_experiment(_write(tmp_path, text))
    points = points_of(experiment, load_workloads(experiment))
    assert [weight_of(experiment.workloads[0], point) for point in points] == [0, 0.5, 0.5, 1.5]


def test_fragments_are_those_of_the_workloads_and_the_experiment(tmp_path: Path) -> None:
    text = GOOD.replace("source", 'config = ["lockstat"]\nsource')
    text += '[[workloads]]\nworkload = "exit_stress"\n'
    experiment = load_experiment(_write(tmp_path, text))
    assert fragments(experiment, load_workloads(experiment)) == ("debug", "lockstat")


def test_shipped_experiments_share_one_base_kernel_unless_they_need_more() -> None:
    wanted = {
        name: fragments(e, load_workloads(e))
        for name in experiment_names()
        for e in [load_experiment(name)]
    }
    assert {name: found for name, found in wanted.items() if found} == {
        "heldcg-pins": ("holders",),
        "swapfree-locks": ("lockstat",),
        "hibernate": ("CONFIG_HIBERNATION=y", "CONFIG_HIBERNATION_SNAPSHOT_DEV=y"),
    }


def test_stress_tests_share_one_debug_kernel() -> None:
    wanted = {name: load_workload(name).config for name in workload_names()}
    # These look for what is left, and need no debugging to see it.
    assert wanted.pop("uffd_close") == ("CONFIG_USERFAULTFD=y",)
    assert wanted.pop("lock_stress") == ("CONFIG_FILE_LOCKING=y",)
    assert wanted.pop("hibernate")  # no stress test
    assert {name: found for name, found in wanted.items() if found} == {
        name: ("debug",)
        for name in (
            "exit_stress",
            "memcg_local",
            "memcg_stats",
            "memcg_swap",
            "psi_trigger",
            "throttle_stress",
            "zsmalloc_stress",
        )
    }


def test_stress_tests_are_added_to_the_agent_only_where_one_runs() -> None:
    assert not [
        metric
        for name in stress_names()
        for metric in load_workload(name).metrics.values()
        if metric.headline
    ]
    known = {
        name: load_workload(name) for name in ("zombies", "crowd", "uffd_close", "exit_stress")
    }

    def sources(*names: str) -> list[Path]:
        return own_sources({name: known[name] for name in names})

    assert sources("zombies", "crowd") == []
    assert sources("zombies", "uffd_close") == sources("exit_stress")
    assert {path.stem for path in sources("exit_stress")} == set(stress_names())
    experiments = map(load_experiment, experiment_names())
    swept = {sweep.workload for experiment in experiments for sweep in experiment.workloads}
    assert not swept & set(stress_names())


def test_a_script_needs_the_agent_that_runs_scripts_and_no_c_file(tmp_path: Path) -> None:
    (tmp_path / "workloads").mkdir()
    text = 'name = "mine"\nsummary = "x"\nsilence_s = 60\n'
    text += '[script]\nfile = "mine.sh"\n[metrics.whole_ns]\nhelp = "all of it"\n'
    (tmp_path / "workloads" / "mine.toml").write_text(text)
    mine, zombies = load_workload("mine", str(tmp_path)), load_workload("zombies")
    # A run has its workloads, and is resumed also without that folder.
    (tmp_path / "workloads/mine.toml").unlink()
    script, waits = own_sources({"mine": mine, "zombies": zombies}, str(tmp_path))
    assert (script.name, waits.name) == ("script", "waits")
    assert {path.name for path in script.iterdir()} >= {"script.c", "process.c"}
    assert own_sources({"zombies": zombies}, str(tmp_path)) == []
    sweeps = tuple(Sweep(workload=name) for name in ("mine", "zombies"))
    experiment = Experiment(name="x", question="?", source="debian:6.12", workloads=sweeps)
    assert uncounted(experiment, {"mine": mine, "zombies": zombies}) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("name =", "name ="[:-1] + "= ="), "not valid TOML"),
        (("question", "qestion"), "qestion: unknown key; did you mean 'question'?"),
        (
            ("[[workloads]]", "[machine]\npossible_cpus = [2, 0]\n[[workloads]]"),
            "machine.possible_cpus: expected a number above 0, or a list of such",
        ),
        (('question = "Is it better?"\n', ""), "question: missing"),
        (
            ("[[workloads]]", "[design]\nseedz = 3\n[[workloads]]"),
            "design.seedz: unknown key; did you mean 'seed'?",
        ),
        (("[[workloads]]", '[design]\nclock = "sun"\n[[workloads]]'), "design.clock"),
        (
            ('workload = "zombies"', 'workload = "zombie"'),
            "no workload called 'zombie'; did you mean 'zombies'?",
        ),
        (("params.zombies", "params.zombeis"), "no parameter 'zombeis'; did you mean 'zombies'?"),
        (('"0:9000:3000"', '"9000:0:3000"'), "not a valid range"),
        (('"0:9000:3000"', '"0,many"'), "zombies.zombies=many: must be an integer"),
        (('"0:9000:3000"', "[-1]"), "zombies.zombies=-1: must be 0 to"),
        (
            ('"0:9000:3000"', '[0]\nweights.zombeis = { "0" = 1 }'),
            "zombies.weights.zombeis: there is no such parameter; did you mean 'zombies'?",
        ),
        (
            ('"0:9000:3000"', "[0]\nweights.zombies = { many = 1 }"),
            "weights.zombies=many: must be an integer",
        ),
        (('"0:9000:3000"', '[0]\nweights.zombies = { "0" = -1 }'), "workloads.0.weights.zombies.0"),
        (('"0:9000:3000"', '[0]\nweights.zombies = { "0" = 0 }'), "every point has the weight 0"),
        (
            ("source", 'config = ["lockstats"]\nsource'),
            "no fragment 'lockstats'; did you mean 'lockstat'?",
        ),
    ],
)
def test_the_error_of_a_wrong_file_names_file_and_key(
    tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    path = _write(tmp_path, GOOD.replace(*change))
    with pytest.raises(InputError) as error:
        load_experiment(path)
    assert expected in error.value.message
    assert path in error.value.message or "workload called" in error.value.message


def test_a_workload_is_not_an_experiment() -> None:
    with pytest.raises(InputError, match="'quota' is a workload, not an experiment") as workload:
        load_experiment("quota")
    assert "throttle-irqs, throttle-quota" in str(workload.value.hint)
    assert "kteardown compare quota" in str(workload.value.hint)
    with pytest.raises(
        InputError, match="'masskill' is an experiment, not a workload"
    ) as experiment:
        load_workload("masskill")
    assert "kteardown run masskill" in str(experiment.value.hint)
    assert "pipechain" in str(experiment.value.hint)


def test_a_file_that_is_no_workload_is_given_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "repro").write_text("true\n")
    with pytest.raises(InputError, match="there is no workload called 'repro'") as caught:
        load_workload("repro")
    assert "./repro" in str(caught.value.hint)


def test_the_error_of_an_unknown_experiment_has_a_similar_name() -> None:
    with pytest.raises(InputError, match="did you mean 'freezer'"):
        load_experiment("frezer")


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(InputError, match="there is no such file"):
        load_experiment("./nowhere.toml")


def test_a_symbol_is_a_fragment(tmp_path: Path) -> None:
    path = _write(
        tmp_path, GOOD.replace("source", 'config = ["CONFIG_NET=y", "CONFIG_INET=y?"]\nsource', 1)
    )
    assert load_experiment(path).config == ("CONFIG_NET=y", "CONFIG_INET=y?")


def test_two_metrics_of_a_workload_have_two_names(tmp_path: Path) -> None:
    (tmp_path / "workloads").mkdir()
    file = tmp_path / "workloads" / "mine.toml"
    text = 'name = "mine"\nsummary = "s"\nsilence_s = 1\n'
    metric = '[metrics.{0}_ns]\nhelp = "h"\nname = "time of the call"\n'
    file.write_text(text + metric.format("one") + metric.format("other"))
    with pytest.raises(InputError) as error:
        load_workload("mine", str(tmp_path))
    assert f"{file}: metrics.one_ns.name: another metric is called 'time of the call' too" in str(
        error.value
    )


@pytest.mark.parametrize(
    "word", ["a b", "a,b", "a=b", "", "a\\ntrial 9 script 0 1", "\\u001b", "\u00e9"]
)
def test_a_choice_is_a_word_of_a_plan(tmp_path: Path, word: str) -> None:
    (tmp_path / "workloads").mkdir()
    text = 'name = "mine"\nsummary = "x"\nsilence_s = 60\n[metrics.whole_ns]\nhelp = "x"\n'
    text += f'[parameters.N]\nhelp = "x"\ndefault = "{word}"\nchoices = ["fine-1.0", "{word}"]\n'
    (tmp_path / "workloads/mine.toml").write_text(text)
    with pytest.raises(InputError, match=r"parameters\.N\.(default|choices)"):
        load_workload("mine", str(tmp_path))


def test_what_the_judged_kernel_reports_of_itself_is_marked() -> None:
    """Memory is in files of the kernel, and a counter of a cgroup is the kernel's; a call is timed
    here."""
    measured = sorted({*workload_names()} - {*stress_names()})
    metrics = {
        (name, key): spec for name in measured for key, spec in load_workload(name).metrics.items()
    }
    unmarked = {place for place, spec in metrics.items() if spec.reporter == "agent"}
    assert {place for place, spec in metrics.items() if spec.unit in ("kb", "us")}.isdisjoint(
        unmarked
    )
    assert {place for place in metrics if place[1].startswith(("throttled_", "dying_"))}.isdisjoint(
        unmarked
    )
    # Of these the agent counts the events itself.
    counts = {place for place in unmarked if metrics[place].unit == "count"}
    assert {key for _, key in counts} == {"given_up_count", "compactions_count", "lost_count"}
    contained = {place: spec.whole for place, spec in metrics.items() if spec.whole}
    assert {name for name, _ in contained} == {"zombies", "kernel_threads", "hibernate"}
    assert set(contained.values()) == {"suspend_call_ns", "freeze_call_ns", "snapshot_call_ns"}
    assert ("zombies", "freeze_user_ns") in contained and ("zombies", "suspend_call_ns") in unmarked


_INNER = """\
name = "mine"
summary = "x"
silence_s = 60
[metrics.call_ns]
help = "the call"
[metrics.call_kb]
help = "memory"
unit = "kb"
[metrics.inner_ns]
help = "a part"
"""


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ('within = "call_ns"', "only for a figure of the kernel's own"),
        ('reported_by = "kernel"\nwithin = "other_ns"', "there is no metric other_ns"),
        (
            'reported_by = "kernel"\nwithin = "call_kb"',
            "call_kb is not a time in ns that the agent measures",
        ),
        (
            'reported_by = "kernel"\nwithin = "inner_ns"',
            "inner_ns is not a time in ns that the agent measures",
        ),
        (
            'reported_by = "kernel"\nwithin = "call_ns"\nbetter = "higher"',
            "for which lower is better",
        ),
    ],
)
def test_the_whole_of_a_metric_is_a_time_of_the_agent(tmp_path: Path, keys: str, why: str) -> None:
    folder = tmp_path / "workloads"
    folder.mkdir()
    file = folder / "mine.toml"
    file.write_text(f'{_INNER}reported_by = "kernel"\nwithin = "call_ns"\n')
    assert load_workload("mine", str(tmp_path)).metrics["inner_ns"].whole == "call_ns"
    file.write_text(f"{_INNER}{keys}\n")
    with pytest.raises(InputError, match=re.escape(why)) as refused:
        load_workload("mine", str(tmp_path))
    assert "mine.toml: metrics.inner_ns.within" in refused.value.message
