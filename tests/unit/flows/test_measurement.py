"""Which experiment measures a script without a patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.flows import measurement
from kteardown.flows.measurement import measured, text_of
from kteardown.inputs.options import Overrides, Scripted, on_clocks
from kteardown.model.experiment import Experiment
from kteardown.progress import SilentReporter
from kteardown.run.resolve import experiment_for


class _Notes(SilentReporter):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Overrides]:
    """What is asked of the experiments, which are those of a shipped workload."""
    kept: list[Overrides] = []

    def experiments(
        workload: str, source: str, asked: Overrides, scripted: Scripted, reporter: object
    ) -> tuple[Experiment, ...]:
        kept.append(asked)
        return on_clocks(experiment_for("zombies", source), Overrides(clock=asked.clock))

    monkeypatch.setattr(measurement, "experiments_on", experiments)
    monkeypatch.setattr(measurement, "_forecast_s", lambda experiment: 1.0)
    return kept


def measure(script: str, overrides: Overrides, *sources: str) -> tuple[Experiment, list[str]]:
    reporter = _Notes()
    (experiment,) = measured(script, sources, overrides, Scripted(), reporter)
    return experiment, reporter.notes


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.sh", "for i in $(seq $N); do :; done"),
        ("x.sh", "seq ${N}"),
        ("x.c", 'int n = atoi(getenv("N"));'),
        ("x.py", "n = int(os.environ['N'])"),
    ],
)
def test_a_script_that_uses_n_has_sizes(
    tmp_path: Path, asked: list[Overrides], name: str, text: str
) -> None:
    script = tmp_path / name
    script.write_text(text)
    experiment, notes = measure(str(script), Overrides())
    assert asked[0].assignments == ["N=12,25,50,100,200,400"]
    assert len(notes) == 1
    assert experiment.source == measurement.DEFAULT_SOURCE
    assert experiment.variants == ()
    measure(str(script), Overrides(assignments=["N=7"]))
    assert asked[1].assignments == ["N=7"]


def test_a_script_without_sizes_keeps_none(tmp_path: Path, asked: list[Overrides]) -> None:
    script = tmp_path / "x.sh"
    script.write_text("sleep $NUMBER $1")
    _, notes = measure(str(script), Overrides())
    assert (asked[0].assignments, notes) == (None, [])


def test_the_other_sources_are_compared_with_the_first(
    tmp_path: Path, asked: list[Overrides]
) -> None:
    script = tmp_path / "x.sh"
    script.write_text("true")
    experiment, _ = measure(str(script), Overrides(), "debian:6.12", "debian:7.3")
    assert asked[0].variant == ["debian:7.3"]
    assert asked[0].profile
    assert "debian:6.12 and debian:7.3" in experiment.question
    assert experiment.name.startswith("measure-")


@pytest.mark.parametrize("options", [Overrides(ablate=True), Overrides(layout_twin=True)])
def test_options_of_a_patch_are_refused(asked: list[Overrides], options: Overrides) -> None:
    with pytest.raises(InputError, match="for a patch"):
        measure("zombies", options)
    assert asked == []


def test_what_is_no_text_has_no_text(tmp_path: Path) -> None:
    binary = tmp_path / "program"
    binary.write_bytes(bytes(range(256)))
    assert [text_of(str(path)) for path in (binary, tmp_path, tmp_path / "none")] == ["", "", ""]


def test_sizes_that_take_too_long_are_halved_on_every_clock(
    tmp_path: Path, asked: list[Overrides], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {400: 900.0, 200: 300.0, 100: 90.0}

    def forecast(experiment: Experiment) -> float:
        return seconds[int(experiment.workloads[0].params["N"][-1])]

    monkeypatch.setattr(measurement, "_forecast_s", forecast)
    script = tmp_path / "x.sh"
    script.write_text("sleep $N")
    reporter = _Notes()
    both = measured(str(script), (), Overrides(clock="both"), Scripted(), reporter)
    assert [experiment.workloads[0].params["N"] for experiment in both] == 2 * [
        (3, 6, 12, 25, 50, 100)
    ]
    assert len(reporter.notes) == 3


def test_a_script_with_arguments_has_its_text(tmp_path: Path) -> None:
    script = tmp_path / "x.sh"
    script.write_text("sleep $N")
    assert text_of(f"{script} /sys/fs/cgroup") == "sleep $N"
    assert text_of("'unclosed") == ""
