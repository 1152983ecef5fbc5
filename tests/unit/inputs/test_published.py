"""Published figures: every shipped file loads, and the error of a wrong file names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.published import load_posting, read_posting
from kteardown.paths import data_dir

FILES = sorted(data_dir("postings").glob("*.toml"))

GOOD = """
[source]
title = "A posting"
posted = "LKML, 2025"
[result]
threads = [1, 2]
base = [[15.0, 5.29], [18.33, 0.58]]
changed = [[17.0, 1.0], [18.67, 0.58]]
[[figures]]
metric = "wakeup_p99_us"
param = "threads"
at = "threads"
base = "base"
changed = "changed"
unit = "us"
"""


HUGE = ("inf", "-inf", "nan", "1e300")


def test_there_are_reference_files() -> None:
    assert {"freezer", "throttle", "zsmalloc", "pipes", "memcg"} <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_shipped_file_loads_and_names_its_source(path: Path) -> None:
    reference = load_posting(path.stem)
    assert reference is not None
    assert reference.source.title
    assert reference.source.posted
    for figure in reference.figures:
        assert reference.rows(figure)


def test_the_freezer_posting() -> None:
    reference = load_posting("freezer")
    assert reference is not None
    rows = reference.rows(reference.figures[0])
    assert [row.at for row in rows] == list(range(3000, 30001, 3000))
    assert (rows[-1].base.value, rows[-1].changed.value) == (0.043, 0.016)
    assert rows[-1].change == pytest.approx(-0.628, abs=0.001)


def test_no_reference_is_none() -> None:
    assert load_posting(None) is None


def test_values_with_deviations_and_single_values(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(GOOD)
    reference = read_posting(file)
    row = reference.rows(reference.figures[0])[0]
    assert (row.base.value, row.base.sd, row.changed.sd) == (15.0, 5.29, 1.0)
    pipes = load_posting("pipes")
    assert pipes is not None
    (row,) = pipes.rows(pipes.figures[0])
    assert (row.at, row.base.value, row.changed.value) == (900_000, 3600, 30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD.replace('base = "base"', 'base = "bsae"'), "figures.0"),
        (GOOD.replace("[1, 2]", "[1, 2, 3]"), "figures.0"),
        (GOOD.replace('unit = "us"', ""), "unit"),
        (GOOD.replace('title = "A posting"', ""), "title"),
        (GOOD + "whatever = 1\n", "whatever"),
        (GOOD.replace("[1, 2]", "[1, inf]"), "figures.0"),
        *(
            (GOOD.replace("15.0", value), r"figures\.0: .* over .*: Input should be")
            for value in HUGE
        ),
        ("[source", "not valid TOML"),
    ],
)
def test_the_error_of_a_wrong_file_names_file_and_key(
    tmp_path: Path, text: str, expected: str
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=expected) as caught:
        read_posting(file)
    assert str(file) in caught.value.message
    assert caught.value.hint


def test_the_error_of_an_unknown_reference_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"nosuch\.toml") as caught:
        load_posting("nosuch")
    assert "freezer" in caught.value.hint
