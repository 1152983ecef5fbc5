"""Every number that a record may have can be analysed, reported and exported in every format."""

from __future__ import annotations

import io
import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kteardown import pipeline
from kteardown.cli.diff import print_difference
from kteardown.cli.rows import run_fields
from kteardown.model.clock import BOTH
from kteardown.model.record import parse
from kteardown.report import saved
from kteardown.report.charts import draw
from kteardown.report.console import TextConsole
from kteardown.report.diff import compare_results
from kteardown.report.formats import text
from kteardown.report.formats.html import all_charts
from kteardown.report.material import Material
from kteardown.report.saved import material_of_folder
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder
from kteardown.rundir.snapshot import load
from kteardown_history import tables as history_tables
from kteardown_history.lines import LEAST, HistoryFilter, history_of
from kteardown_history.sql.database import TABLES, database
from unit.report.contexts import write_run
from unit.report.rendered import TEXTS, written
from unit.simulation import freezer

LARGE = 2**63 - 1
SMALL = 2.0**-64
EDGES = (0, 1, -1, LARGE, -LARGE - 1, 2.0**64, -(2.0**64), 1.8e19, SMALL, -SMALL, 0.1, 2**53 + 1)
NUMBERS = st.one_of(
    st.sampled_from(EDGES),
    st.integers(-(2**63), LARGE),
    st.floats(-(2.0**64), 2.0**64, allow_subnormal=False),
)
PLACES = (
    "samples",
    "samples of the variant",
    "samples of one metric",
    "one sample in ten",
    "all others",
)
"""Where the numbers are put. Histograms have them each time."""
INDEXES = ("boot", "attempt", "trial", "repetition", "block")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a run on each clock, whose workload has a histogram."""
    root = tmp_path_factory.mktemp("runs")
    sizes = (0, 3000, 15000)
    made = {
        clock: write_run(root, freezer(clock, zombies=sizes, boots=boots))
        for clock, boots in zip(BOTH, (2, 4), strict=True)
    }
    for run in made.values():
        workloads = json.loads(run.workloads_file.content())
        workloads["zombies"]["histograms"] = {"wakeup_ns": {"help": "until it ran"}}
        run.save(run.workloads_file, json.dumps(workloads))
    return {clock: run.path for clock, run in made.items()}


def changed(lines: Sequence[dict[str, Any]], numbers: Iterator[float], place: str) -> Iterator[str]:
    """Yield the lines with other numbers at ``place``, where the model accepts them."""
    kernels = {line["boot"]: line["kernel"] for line in lines if line["type"] == "boot_start"}
    samples = 0
    for line in lines:
        new = dict(line)
        if line["type"] == "sample" and place != "all others":
            samples += 1
            of_variant = kernels[line["boot"]] != "base"
            wanted = {
                "samples of the variant": of_variant,
                "samples of one metric": line["metric"] == "freeze_user_ns",
                "one sample in ten": samples % 10 == 0,
            }
            if wanted.get(place, True):
                new["value"] = next(numbers)
        elif place == "all others":
            new = {key: other(key, value, numbers) for key, value in line.items()}
            if line["type"] == "trial_end":
                new |= {
                    "at_s": next(numbers),
                    "lost": {"elapsed_s": next(numbers), "steal_s": next(numbers)},
                }
        if line["type"] == "trial_end":
            yield json.dumps(histogram(line, numbers)) + "\n"
        try:
            parse(json.dumps(new))
        except ValidationError:
            new = line
        yield json.dumps(new) + "\n"


def histogram(end: dict[str, Any], numbers: Iterator[float]) -> dict[str, Any]:
    """Return a histogram of the trial that ends."""
    counts = [min(abs(int(next(numbers))), LARGE) for _ in range(4)]
    buckets = [(counts[0], max(1, counts[1])), (counts[2], max(1, counts[3]))]
    where = {key: end[key] for key in ("boot", "attempt", "trial")}
    return {
        "type": "histogram",
        **where,
        "repetition": 1,
        "metric": "wakeup_ns",
        "bits": 8,
        "buckets": buckets,
    }


def other(key: str, value: object, numbers: Iterator[float]) -> object:
    """Return another number for ``value`` if it is one, and no index that says where the record
    belongs."""
    if isinstance(value, bool) or key in INDEXES:
        return value
    if isinstance(value, int):
        return int(next(numbers))
    return float(next(numbers)) if isinstance(value, float) else value


def use(run: RunDir, folder: Path) -> None:
    """Analyse a run, and make everything of the result that a verb prints or writes."""
    result = pipeline.analyse_and_save(load(run))
    assert result.distributions
    read = saved.saved_result(run)
    assert read is not None, saved.damage(run)
    found = RunFolder.of(run)
    material = material_of_folder(found, samples=True)
    assert isinstance(material, Material)
    out = TextConsole(file=io.StringIO(), width=120)
    for form in TEXTS:
        assert written(material, form)
    text.report(material, out)
    text.brief(material, out)
    draw(all_charts(material), "svg", folder)
    print_difference(compare_results(read, result, ("a", "b"), ()), out)
    assert run_fields(found)["state"] == "done"
    with database([run], locked=False) as tables:
        assert not tables.skipped
        for table, form in itertools.product(TABLES, ("csv", "parquet")):
            tables.save(table, folder / f"{table}.{form}", form)
        for table in TABLES:
            list(tables.query(f"SELECT * FROM {table}").rows)
    lines = history_of([run], HistoryFilter(), order="release", least=LEAST)
    for one, _ in history_tables.tables_of(history_tables.worth_showing(lines, every_metric=True)):
        history_tables.picture(one)


def check(run: Path, numbers: Sequence[float], place: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = RunDir(Path(shutil.copytree(run, folder / "run")))
        lines = [json.loads(line) for line in copy.records_file.path.read_text().splitlines()]
        copy.records_file.path.write_text("".join(changed(lines, itertools.cycle(numbers), place)))
        use(copy, folder)


KINDS = given(
    clock=st.sampled_from(("instructions", "wall")),
    numbers=st.lists(NUMBERS, min_size=1, max_size=20),
    place=st.sampled_from(PLACES),
)
WITHOUT_LIMIT = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=1, **WITHOUT_LIMIT)  # type: ignore[arg-type]
@example("instructions", [LARGE, 1.8e19, 0, -1], "samples")
@example("wall", [LARGE, SMALL, -SMALL, 2.0**64], "samples")
@example("instructions", [0], "samples of the variant")
@example("instructions", EDGES, "all others")
@KINDS
def test_every_number_of_a_record_can_be_reported(
    runs: dict[str, Path], clock: str, numbers: Sequence[float], place: str
) -> None:
    check(runs[clock], numbers, place)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(max_examples=300, **WITHOUT_LIMIT)  # type: ignore[arg-type]
@KINDS
def test_many_numbers_of_a_record_can_be_reported(
    runs: dict[str, Path], clock: str, numbers: Sequence[float], place: str
) -> None:
    check(runs[clock], numbers, place)


SAMPLE = (
    '{"type":"sample","boot":0,"attempt":0,"trial":%s,"repetition":%s,"metric":"x_ns","value":%s}'
)


@pytest.mark.parametrize(
    "fields",
    [
        (0, 0, 5e-324),
        (0, 0, -1e-300),
        (0, 0, "1e999"),
        (0, 0, 2**65),
        (-1, 0, 1),
        (0, -1, 1),
        (0, 0, "NaN"),
    ],
)
def test_other_numbers_are_no_record(fields: tuple[object, ...]) -> None:
    with pytest.raises(ValidationError):
        parse(SAMPLE % fields)
