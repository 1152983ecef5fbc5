"""The text formats: cover letter, CSV, comment, JUnit and JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from kteardown.model.clock import Clock
from kteardown.model.faults import Fault
from kteardown.model.result import Uncompared
from kteardown.model.workload import Metric
from kteardown.report.contents import facts, limits
from kteardown.report.formats import comment, cover
from kteardown.report.formatting import scale
from kteardown.report.material import Material
from outputs import result_in
from unit.report.contexts import contention, instructions, rich, wall
from unit.report.rendered import TEXTS, written

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("name", "material"),
    [("cover", "wall"), ("cover", "instructions")],
)
def test_the_text_equals_the_golden_file(name: str, material: str) -> None:
    made = TEXTS[name]({"wall": wall, "instructions": instructions}[material]())
    assert made == (GOLDEN / f"{material}.{name}").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_every_format_ends_with_a_newline_and_accepts_an_empty_result(name: str) -> None:
    plain = instructions()
    assert TEXTS[name](plain).endswith("\n")
    empty = plain.result.model_copy(update={"comparisons": (), "laws": ()})
    assert TEXTS[name](Material(plain.name, empty, plain.workloads)).endswith("\n")


@pytest.mark.parametrize("make", [instructions, rich, wall])
def test_a_cover_letter_has_72_columns_of_plain_text(make: object) -> None:
    text = cover.of_run({instructions: instructions, rich: rich, wall: wall}[make]())  # type: ignore[index]
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= cover.WIDTH


def test_a_table_that_is_too_wide_is_laid_out_as_paragraphs() -> None:
    plain = instructions()
    long = {"a_parameter_with_a_long_name": "and-a-value-that-is-as-long-as-the-name"}
    comparisons = tuple(
        c.model_copy(update={"point": {**long, **c.point}}) for c in plain.result.comparisons
    )
    other = {"another_parameter": 12, "a_third_parameter": "three"}
    comparisons += tuple(
        c.model_copy(update={"point": {**long, **other, **c.point}})
        for c in plain.result.comparisons
    )
    text = cover.of_run(
        Material("x", plain.result.model_copy(update={"comparisons": comparisons}), plain.workloads)
    )
    assert "\n    base " in text
    assert max(map(len, text.splitlines())) <= cover.WIDTH


def test_the_name_of_a_kernel_at_the_begin_of_a_note_is_unchanged() -> None:
    notes = ("freezer-skip-exited: figures of its own", "kasan is on in base")
    said = limits(instructions().result.model_copy(update={"notes": notes}))
    assert {"freezer-skip-exited: figures of its own.", "Kasan is on in base."} <= {*said}


def test_limits_name_the_clock_the_boots_and_the_failures() -> None:
    counted = " ".join(limits(instructions().result))
    assert "5 boots of each kernel with a seed each" in counted
    one = tuple(
        c.model_copy(
            update={
                side: getattr(c, side).model_copy(update={"boots": 1})
                for side in ("base", "changed")
            }
        )
        for c in instructions().result.comparisons
    )
    alone = " ".join(limits(instructions().result.model_copy(update={"comparisons": one})))
    assert "1 boot of each kernel with a seed each" in alone
    assert "does not show seconds, caches" in counted
    assert "The wall clock would add whether the change shows in real time" in counted
    assert "would add" not in " ".join(limits(instructions().result, alone=False))
    timed = " ".join(limits(wall().result.model_copy(update={"boots": {"ok": 9, "panic": 2}})))
    assert "10 boots of each kernel in randomized blocks" in timed
    assert "2 panic" in timed


def test_counts_of_contention_are_of_no_time() -> None:
    result = contention().result
    shared = " ".join(limits(result))
    assert "at two costs of a moved line" in shared
    assert "wall clock of a guest" not in shared
    assert "time" not in dict(facts(result))


def test_the_json_has_the_result() -> None:
    fields = result_in(TEXTS["json"](wall()))
    assert fields["comparisons"][0]["metric"] == "freeze_user_ns"
    (about,) = [metric for metric in fields["metrics"] if metric["metric"] == "freeze_user_ns"]
    assert about == {
        "workload": "zombies",
        "metric": "freeze_user_ns",
        "name": "freezing user space",
        "help": "user-space tasks",
        "unit": "ns",
        "better": "lower",
        "headline": True,
    }
    exact = result_in(TEXTS["json"](instructions()))
    assert {metric["unit"] for metric in exact["metrics"]} == {"instructions"}


def broken(material: Material) -> Material:
    """Return the material with one broken variant."""
    fault = Fault(
        kernel="freezer-skip-exited",
        kind="panic",
        status="broken",
        message="Kernel panic - not syncing: <here>",
        points=(),
        boots=(1,),
        of=2,
        base_boots=0,
        base_of=2,
        excerpt=("\x1b[31mKernel panic", "```", "<here>"),
    )
    result = material.result.model_copy(update={"faults": (fault,)})
    lost = Uncompared(
        variant=fault.kernel, workload="zombies", point={"zombies": 1}, reason="boot: panic"
    )
    return replace(material, result=result.model_copy(update={"uncompared": (lost,)}))


def test_a_comment_is_folded_and_fits(tmp_path: Path) -> None:
    text = TEXTS["comment"](rich())
    assert text.startswith("- **With freezer-skip-exited, ")
    assert "| freezing user space | freezer-skip-exited" in re.sub(" +", " ", text)
    assert text.count("<details>") == text.count("</details>") > 5
    assert "did not fit" not in text
    many = {
        f"m{n}_ns": [c for c in rich().result.comparisons if c.metric == "freeze_user_ns"]
        for n in range(60)
    }
    rows = tuple(c.model_copy(update={"metric": name}) for name, mine in many.items() for c in mine)
    metrics = {name: Metric(help=name, headline=True) for name in many}
    workload = rich().workloads["zombies"].model_copy(update={"metrics": metrics})
    result = rich().result.model_copy(update={"comparisons": rows})
    large = replace(rich(), result=result, workloads={**rich().workloads, "zombies": workload})
    long = TEXTS["comment"](large)
    assert 40_000 < len(long) <= comment.COMMENT_LIMIT
    assert re.search(r"\d+ parts of the report did not fit into a comment: `kteardown report", long)
    assert long.count("<details>") == long.count("</details>")


def test_a_comment_has_the_log_of_a_broken_kernel() -> None:
    text = written(broken(rich()), "comment")
    assert text.startswith("- **freezer-skip-exited is broken: panic in 1 of 2 boots")
    assert "````\n\\u001b[31mKernel panic\n```\n<here>\n````" in text


def test_junit_fails_where_the_gate_does() -> None:
    root = Xml.fromstring(TEXTS["junit"](instructions()))
    cases = list(root.iter("testcase"))
    headline = [c for c in instructions().result.comparisons if c.metric != "thaw_ns"]
    assert len(cases) == 2 + len(headline) + len(instructions().result.metric_verdicts)
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    metrics = instructions().result.metric_verdicts
    unsure = sum(c.verdict == "inconclusive" for c in headline)
    unsure += sum(m.verdict == "inconclusive" for m in metrics)
    assert root.get("skipped") == str(unsure)
    rows = tuple(
        c.model_copy(update={"verdict": "worse"}) for c in instructions().result.comparisons[:3]
    )
    result = instructions().result.model_copy(update={"comparisons": rows})
    worse = Xml.fromstring(TEXTS["junit"](replace(instructions(), result=result)))
    assert int(worse.get("failures", "0")) == sum(c.metric != "thaw_ns" for c in rows)


def test_junit_of_a_broken_kernel_is_xml_whatever_the_console_has() -> None:
    root = Xml.fromstring(written(broken(instructions()), "junit"))
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("type") == "broken"
    assert "<here>" in (failure.text or "")
    assert [error.get("message") for error in root.iter("error")] == ["boot: panic"]


@pytest.mark.parametrize(
    ("unit", "clock", "value", "text"),
    [
        ("ns", "instructions", 1_042_311.0, "1,042,311 instructions"),
        ("us", "instructions", 1_500.0, "1,500,000 instructions"),
        ("per_s", "instructions", 279.0, "279 per 1e9 instructions"),
        ("kb", "instructions", 64.5, "64.50 kB"),
        ("us", "wall", 1_500.0, "1,500 us"),
        ("per_s", "wall", 279.0, "279 1/s"),
    ],
)
def test_no_time_is_printed_for_instructions(
    unit: str, clock: Clock, value: float, text: str
) -> None:
    found = scale(unit, clock, [value])
    assert f"{found.text(value)} {found.unit}" == text
