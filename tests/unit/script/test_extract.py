"""Values of metrics in what a script left behind."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.model.script_records import Delta, OutputLine
from kteardown.model.workload import Unit
from kteardown.script import extract
from kteardown.script.extract import Value, metric_of, parse_reading, values
from kteardown.script.growing import growing, trend
from kteardown.script.suggest import marks_and_printed, suggested
from unit.script.lines import RECORDED, delta, logged, printed

FREEZE = "/Freezing user space processes$/../completed/"
TAIL = (
    r"Freezing user space processes",
    r"Freezing user space processes completed (elapsed 0.001 seconds)",
)


def of(
    spec: str, unit: Unit, output: list[OutputLine], deltas: list[Delta] | None = None
) -> list[float]:
    return [one.value for one in values(parse_reading(spec), unit, output, deltas or [])]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("", "is not a form"),
        ("Time: 3", "is not a form"),
        ("last", "is not a form"),
        ("mark", "takes a name"),
        ("mark a b", "takes a name"),
        ("printed a furlongs", "'furlongs' is not a known unit"),
        ("delta meminfo", "a file and a field"),
        ("/Time: ([0-9]+)", "a slash at its start and at its end"),
        ("//", "a slash at its start and at its end"),
        ("/Time: [0-9]+/", "no group"),
        ("/Time: ([0-9+)/", "not a regular expression"),
        ("/Time: (" + "(" * 400 + "/", "not a regular expression"),
        ("/(" + "a" * 600 + ")/", "more than 500"),
        ("/a/../b/../c/", "more than one"),
        ("/a/..//", "is empty"),
        ("/a/../b/ ms", "has no unit"),
        ("/[/../b/", "not a regular expression"),
        ("/[/ then /([0-9])/", "not a regular expression"),
        ("/([0-9]+)/ parsecs", "'parsecs' is not a known unit"),
    ],
)
def test_a_wrong_form_is_an_error_that_says_why(spec: str, why: str) -> None:
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        parse_reading(spec)
    assert repr(spec.strip() if spec else spec)[1:-1][:20] in caught.value.message
    assert caught.value.hint


@given(st.text(max_size=30) | st.text("/. ()[]*lastmrk", max_size=30))
def test_any_text_is_a_form_or_an_input_error(spec: str) -> None:
    try:
        parse_reading(spec)
    except InputError:
        return


def test_a_slash_in_an_expression_needs_no_escape() -> None:
    assert parse_reading("/([0-9.]+) usecs/op/").text == "([0-9.]+) usecs/op"
    assert of("/([0-9.]+) usecs/op/ us", "ns", printed("   8.521000 usecs/op")) == [8521]


def test_the_step_is_that_of_the_last_printed_digit() -> None:
    (value,) = values(
        parse_reading("/elapsed ([0-9.]+) s/ s"), "ns", printed("elapsed 0.001 seconds"), []
    )
    assert value == Value(1_000_000, 1_000_000, 0, "elapsed 0.001 seconds")
    assert isinstance(value.value, int)
    (value,) = values(parse_reading("/took ([0-9.e+]+)/ ms"), "ns", printed("took 1.50e+2"), [])
    assert (value.value, value.resolution) == (150_000_000, 1_000_000)
    (value,) = values(parse_reading("/n ([0-9,]+)/"), "count", printed("n 1,234,500"), [])
    assert (value.value, value.resolution) == (1_234_500, 1)


@given(
    st.decimals(0, 10**9, places=3), st.sampled_from([("s", 10**9), ("ms", 10**6), ("us", 1000)])
)
def test_a_time_is_converted_exactly(number: object, unit: tuple[str, int]) -> None:
    word, factor = unit
    (value,) = values(parse_reading("/t=([0-9.]+)(\\w+)/"), "ns", printed(f"t={number}{word}"), [])
    assert round(float(str(number)) * factor) == round(
        value.value, -1
    ) or value.value == pytest.approx(float(str(number)) * factor)
    assert value.resolution == pytest.approx(factor / 1000)


def test_the_unit_of_a_line_is_used_before_that_of_the_form() -> None:
    lines = printed("wait 5 ms", "wait 7 s", "wait 9", "wait 3 kB")
    assert of("/wait ([0-9]+) ?(\\w*)/ us", "ns", lines) == [5_000_000, 7_000_000_000, 9000]


def test_without_a_unit_a_value_is_in_the_unit_of_the_metric() -> None:
    assert of("/n ([0-9]+)/", "us", printed("n 5")) == [5]
    assert of("/n ([0-9]+)/", "per_cycle", printed("n 5")) == [5]


def test_output_and_log_are_searched_in_their_order() -> None:
    assert of("/n=([0-9]+)/", "count", [*printed("n=1"), *logged((5, "n=2")), *printed("n=3")]) == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize("text", ["n=", "n=.", "n=1.2.3", "n=9" + "9" * 50, "n=1e99", "n=,,"])
def test_what_is_not_a_number_of_a_record_is_not_a_value(text: str) -> None:
    assert of("/n=([0-9.,e]*)/", "count", printed(text)) == []


def test_the_part_of_a_line_after_the_limit_is_not_searched() -> None:
    assert of("/n=([0-9])/", "count", printed("x" * 2997 + "n=1", "x" * 2998 + "n=1")) == [1]


def test_an_expression_of_exponential_time_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "SEARCH_S", 0.5)
    with pytest.raises(InputError, match="takes more than") as caught:
        of("/(a+)+$()/", "count", printed("a" * 2000 + "b"))
    assert "fewer" in caught.value.hint


def test_both_ways_of_searching_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed("x 1 ms \u00fc", "\u00b5 2 ms", "x 3.5 s")
    here = values(parse_reading("/x ([0-9.]+) (\\w)/ ms"), "ns", lines, [])
    monkeypatch.setattr(extract, "_STEPS_HERE", 0)
    assert values(parse_reading("/x ([0-9.]+) (\\w)/ ms"), "ns", lines, []) == here
    assert [one.value for one in here] == [1_000_000, 3_500_000_000]


def test_a_section_has_the_first_match_after_it() -> None:
    lines = printed("n 0", "A", "n 1", "n 2", "B", "n 3", "A", "A", "n 4")
    assert of("/^A/ then /n ([0-9])/", "count", lines) == [1, 4]
    assert of("last /^A/ then /n ([0-9])/", "count", lines) == [4]


def test_the_time_between_two_lines_of_the_log() -> None:
    log = logged((10, TAIL[0]), (30, "x"), (78, TAIL[1]), (100, TAIL[0]), (121, TAIL[1]))
    assert values(parse_reading(FREEZE), "ns", log, []) == [
        Value(68_000, 1000, 78_000, TAIL[1]),
        Value(21_000, 1000, 121_000, TAIL[1]),
    ]


def test_the_last_beginning_before_an_end_counts() -> None:
    log = logged((1, "end"), (10, "begin"), (20, "begin"), (50, "end"), (60, "end"), (70, "begin"))
    assert of("/begin/../end/", "ns", log) == [30_000]


def test_a_line_may_end_one_time_and_begin_the_next() -> None:
    assert of("/tick/../tick/", "ns", logged((1, "tick"), (4, "tick"), (9, "tick"))) == [3000, 5000]


def test_a_time_is_between_lines_of_the_log() -> None:
    assert of("/a/../b/", "ns", [*logged((1, "a")), *printed("b", "a", "b")]) == []


def test_marks_are_whole_lines_of_the_log() -> None:
    log = logged(
        (1, "kt-begin load"), (3, "kt-begin loader"), (8, "kt-end loader"), (9, "kt-end load")
    )
    assert of("mark load", "ns", log) == [8000]
    assert of("mark loader", "ns", log) == [5000]
    assert of("mark l.*d", "ns", log) == []


def test_printed_lines_have_a_name_a_value_and_perhaps_a_unit() -> None:
    lines = [
        *printed("rate 10 ops/s", "rate 12", "the rate 9", "rate 1 2 3", "rate x"),
        *logged((1, "rate 5")),
    ]
    assert of("printed rate", "per_s", lines) == [10, 12]
    assert of(
        "printed wait ms", "ns", printed("wait 2", "wait 3 us", "wait 1 beat", "wait 4 kB")
    ) == [
        2_000_000,
        3000,
        1_000_000,
    ]


def test_a_counter_that_did_not_change_is_zero_if_its_file_was_read() -> None:
    deltas = [delta("meminfo", "Slab", 2512)]
    (value,) = values(parse_reading("delta meminfo Slab"), "kb", [], deltas)
    assert (value.value, value.resolution) == (2512, 4)
    assert of("delta meminfo Percpu", "kb", [], deltas) == [0]
    assert of("delta vmstat pswpout", "count", [], deltas) == []
    assert of("delta memory.stat slab", "kb", [], [delta("memory.stat", "slab", 8192)]) == [8]
    assert of("delta cpu.stat system_usec", "ns", [], [delta("cpu.stat", "system_usec", 5)]) == [
        5000
    ]


@pytest.mark.parametrize(
    ("name", "spec", "lines", "key", "unit", "read"),
    [
        ("freeze", FREEZE, [], "freeze_ns", "ns", FREEZE),
        ("time", "/Time: ([0-9.]+)/", [], "time_count", "count", "/Time: ([0-9.]+)/ count"),
        ("time_s", "/Time: ([0-9.]+)/", [], "time_ns", "ns", "/Time: ([0-9.]+)/ s"),
        ("time", "/([0-9.]+) secs/", [], "time_ns", "ns", "/([0-9.]+) secs/ secs"),
        ("time", "/x ([0-9.]+)/", ["x 1", "x 5 ms"], "time_ns", "ns", "/x ([0-9.]+)/ ms"),
        ("time", "/x ([0-9.]+) (\\S+)/", ["x 5 ms"], "time_ns", "ns", "/x ([0-9.]+) (\\S+)/ ms"),
        ("Loss", "printed loss", ["loss 3 %"], "loss_share", "share", "printed loss %"),
        ("rate", "printed rate ops/s", [], "rate_per_s", "per_s", "printed rate ops/s"),
        ("rate_per_s", "printed rate", [], "rate_per_s", "per_s", "printed rate per_s"),
        ("size", "printed size MB", [], "size_kb", "kb", "printed size MB"),
        ("dying", "delta cgroup.stat nr_dying_descendants", [], "dying_count", "count", None),
        ("percpu_kb", "delta meminfo Percpu", [], "percpu_kb", "kb", None),
    ],
)
def test_a_metric_has_its_unit_at_the_end_of_its_key(
    name: str, spec: str, lines: list[str], key: str, unit: Unit, read: str | None
) -> None:
    made, metric = metric_of(name, spec, printed(*lines))
    assert (made, metric.unit, metric.read) == (key, unit, read or spec)
    assert metric.better == ("higher" if unit == "per_s" else "lower")
    assert metric.headline


def test_a_metric_that_cannot_be_is_an_error() -> None:
    with pytest.raises(InputError, match="ends in _kb, but the value is in ms"):
        metric_of("x_kb", "printed x ms")
    with pytest.raises(InputError, match="is not a name of a metric"):
        metric_of("9 lives", "printed x ms")


def test_candidates_are_found_in_what_was_printed() -> None:
    lines = [
        *printed(
            "Running 4 tasks", "Time: 0.006", "free 12 MB", "(elapsed 0.001 seconds)", "total 48"
        ),
        *logged((1, "kt-begin load"), (2, "CPU: 0 PID: 1")),
    ]
    # Without a unit it may be the output of a command, such as `total 48` of ls.
    assert marks_and_printed(lines) == ({"load": "mark load"}, {"free": "printed free"})
    assert suggested(lines) == [
        "free=/free ([0-9.]+) MB/",
        "elapsed=/elapsed ([0-9.]+) seconds/",
        "time=/Time: ([0-9.]+)/",
    ]


def test_only_the_first_lines_and_their_beginnings_are_searched_for_suggestions() -> None:
    assert suggested(printed("x" * 160 + " Time: 5 s")) == []
    assert suggested(printed(*["-"] * 1000, "Time: 5 s")) == []
    assert suggested(printed("/files/x.sh: 3: nonesuch: not found")) == []
    assert suggested(printed("1.2.3", "x: 1.2.3", "x: " + "9" * 50, "kernel 6")) == []


@given(
    st.lists(
        st.text(max_size=60) | st.from_regex(r"\A[a-z:]{1,5} {0,3}[0-9.]{1,5} ?(ms|kB|ops/s)?\Z")
    )
)
def test_each_candidate_is_a_metric_with_a_value(texts: list[str]) -> None:
    lines = printed(*texts)
    pairs = [one.split("=", 1) for one in suggested(lines)]
    for name, spec in [*marks_and_printed(lines)[1].items(), *pairs]:
        _, metric = metric_of(name, spec, lines)
        assert values(parse_reading(metric.read), metric.unit, lines, [])


def dying_cgroups(number: int) -> list[Delta]:
    """The counters after a script that leaves this many dying cgroups, each with a file in
    /dev/shm.

    They are of a guest with one CPU.
    """
    recorded = json.loads((RECORDED / "dying-cgroups.json").read_text(encoding="utf-8"))
    return [
        Delta(trial=0, repetition=0, file=file, name=name, before=before, after=after)
        for file, name, before, after in recorded[str(number)]
    ]


def test_what_a_script_leaves_behind_for_each_cgroup_is_found() -> None:
    grown = growing(dying_cgroups(100), dying_cgroups(400), 100, 400)
    assert [(file, name, round(per_n, 2)) for file, name, per_n in grown] == [
        ("meminfo", "Slab", 11.47),
        ("meminfo", "Shmem", 4.0),
        ("meminfo", "Percpu", 1.68),
        ("cgroup.stat", "nr_dying_descendants", 1.0),
        ("slabinfo", "kmalloc-64", 3.6),
        ("slabinfo", "kmalloc-2k", 2.0),
    ]


def test_objects_that_are_there_at_one_size_only_are_not_of_the_script() -> None:
    small, large = (
        [delta("slabinfo", "own", 10)],
        [delta("slabinfo", "own", 40), delta("slabinfo", "other", 40)],
    )
    assert [name for _, name, _ in growing(small, large, 10, 40)] == ["own"]


def test_what_two_boots_of_one_size_differ_by_is_no_growth() -> None:
    """The dentries, in their slabs of 21, that a loop of /bin/true left behind at seeds 1 and 2."""
    small, large = (
        [delta("slabinfo", "dentry", n), delta("meminfo", "Shmem", n)] for n in (105, 147)
    )
    again = [delta("slabinfo", "dentry", 231), delta("meminfo", "Shmem", 101)]
    assert {name for _, name, _ in growing(small, large, 10, 20)} == {"dentry", "Shmem"}
    assert growing(small, large, 10, 20, again) == [("meminfo", "Shmem", 4.2)]
    # It is absent in the other boot, so it did not change there.
    assert growing(small, large, 10, 20, []) == []


def test_a_part_is_shown_where_its_sum_does_not_grow() -> None:
    small, large = (
        [delta("meminfo", "Slab", 5000), delta("meminfo", "SUnreclaim", 10 * n)] for n in (10, 100)
    )
    assert growing(small, large, 10, 100) == [("meminfo", "SUnreclaim", 10)]


def test_a_counter_that_is_absent_at_the_smaller_point_did_not_change_there() -> None:
    assert growing([], [delta("vmstat", "pswpout", 500)], 0, 100) == [("vmstat", "pswpout", 5)]


def test_a_constant_increase_is_not_growth() -> None:
    small, large = ([delta("meminfo", "Shmem", 4000 + n)] for n in (100, 1000))
    assert growing(small, large, 100, 1000) == []
    assert growing([delta("meminfo", "Shmem", 1)], [delta("meminfo", "Shmem", 15)], 1, 10) == []


def test_nothing_grows_where_the_size_does_not() -> None:
    assert growing([], [delta("vmstat", "pswpout", 500)], 5, 5) == []


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=12, max_size=12),
    st.integers(0, 99),
    st.integers(1, 99),
)
def test_at_most_six_counters_grow_and_each_increases(
    changes: list[int], small_n: int, more: int
) -> None:
    large = [
        delta("meminfo" if n % 2 else "slabinfo", f"f{n}", change)
        for n, change in enumerate(changes)
    ]
    grown = growing([], large, small_n, small_n + more)
    assert len(grown) <= 6
    assert all(per_n * more >= 16 for _, _, per_n in grown)


def test_values_that_follow_their_order_trend() -> None:
    assert trend([1, 2, 3, 4, 5, 6])
    assert trend([9, 8, 7, 5, 4, 2, 1])
    assert not trend([1, 2, 3, 4, 5])
    assert not trend([5] * 20)
    assert not trend([3, 1, 4, 1, 5, 9, 2, 6])


@given(st.permutations(range(8)))
def test_a_trend_does_not_depend_on_its_direction(order: list[int]) -> None:
    assert trend(order) == trend(order[::-1])
