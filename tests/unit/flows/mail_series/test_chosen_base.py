"""Which base and backport are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import BuildError, InputError
from kteardown.flows.mail_series.chosen_base import (
    choose_base,
    fitting_backport,
    line_of,
    version_of,
)
from kteardown.flows.mail_series.letter import CoverLetter, letter_of
from kteardown.kernels.series import Selection, resolve
from kteardown.kernels.source import Source, Sources
from kteardown.progress import SilentReporter
from unit.flows.mail_series.small_series import git, make_tree, patch

LETTER = """Subject: [PATCH 0/1] exit: a line is slow

Text.

base: v6.1.9 (Debian linux-source-6.1), backport old
base: v6.12.1 (Debian linux-source-6.12), backport old
base: v7.3.4 (Debian linux-source-7.3), backport new
"""


@pytest.fixture
def series(tmp_path: Path) -> Selection:
    """``old`` applies to the small tree, ``new`` to a later one."""
    folder = tmp_path / "two-texts"
    texts = {"new": patch(1, 3).replace("int line", "long line"), "old": patch(1, 3)}
    for name, text in texts.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "0001-a.patch").write_text(text)
    (folder / "0000-cover-letter.md").write_text(LETTER)
    return resolve(str(folder))


@pytest.fixture
def letter(series: Selection) -> CoverLetter:
    return letter_of(series)


@pytest.mark.parametrize(
    ("base", "backport", "spec", "chosen"),
    [
        (None, None, "debian:7.3", "new"),
        (None, "old", "debian:6.12", "old"),
        ("6.1", None, "debian:6.1", "old"),
        ("v6.12.1", "old", "debian:6.12", "old"),
        ("debian:7.3", None, "debian:7.3", "new"),
    ],
)
def test_a_base_of_the_letter_has_its_backport(
    series: Selection,
    letter: CoverLetter,
    base: str | None,
    backport: str | None,
    spec: str,
    chosen: str,
) -> None:
    found = choose_base(series, letter, base, backport)
    assert (found.spec, list(found.backports)) == (spec, [chosen])
    assert found.named is not None


def test_any_other_source_has_the_backport_that_applies(
    series: Selection, letter: CoverLetter, tmp_path: Path
) -> None:
    spec = f"git:{make_tree(tmp_path)}"
    sources = Sources(tmp_path / "cache", SilentReporter())
    source = sources.identify(spec)
    found = choose_base(series, letter, spec, None)
    assert fitting_backport(found, sources, source)[0] == "old"
    only = choose_base(series, letter, spec, "new")
    with pytest.raises(BuildError, match="does not apply"):
        fitting_backport(only, sources, source)


@pytest.mark.parametrize(
    ("base", "backport", "message"),
    [
        ("7.9", None, "neither a base of two-texts nor a source"),
        (None, "newer", "has no backport 'newer'; did you mean 'new'"),
        ("7.3", "old", "the backport old is not for v7.3.4"),
        ("image:/boot/vmlinuz", None, "nobody else has this source"),
        ("", None, "neither a base"),
    ],
)
def test_a_wrong_choice_is_named(
    series: Selection, letter: CoverLetter, base: str | None, backport: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        choose_base(series, letter, base, backport)


def test_a_letter_without_bases_needs_one(series: Selection) -> None:
    (series.files[0].parents[1] / "0000-cover-letter.md").write_text(
        "Subject: [PATCH] a: b\n\nA.\n"
    )
    with pytest.raises(InputError, match="names no base"):
        choose_base(series, letter_of(series), None, None)


def test_a_letter_that_names_an_absent_backport_is_refused(series: Selection) -> None:
    letter = series.files[0].parents[1] / "0000-cover-letter.md"
    letter.write_text(LETTER.replace("backport new", "backport newest"))
    with pytest.raises(InputError, match=r"names the backport newest for v7\.3\.4"):
        choose_base(series, letter_of(series), None, None)


def test_a_line_names_the_source_so_that_others_find_it(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    source = Sources(tmp_path / "cache", SilentReporter()).identify(f"git:{tree}")
    assert line_of(source) == f"base-commit: {git(tree, 'rev-parse', 'HEAD').strip()}"
    debian = Source("debian:7.3.4-1~bpo13+1", "slug", "{}")
    assert line_of(debian) == "base: v7.3.4 (Debian linux-source-7.3)"
    assert version_of(debian) == "7.3.4"
    assert line_of(Source("kernel.org:6.16.1", "slug", "")) == "base: v6.16.1"
    assert line_of(Source("tar:linux.tar.xz#0123", "slug", "")) == "base: linux.tar.xz#0123"
