"""``kteardown series``: what it shows, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from unit.cli.test_main import kteardown
from unit.flows.mail_series.small_series import LETTER, make_series, make_tree, patch

AUTHOR = "Jane Doe <jane@example.org>"


def series(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kteardown("series", *arguments, home=home, cwd=home)


def test_a_series_has_its_patches_and_its_bases(tmp_path: Path) -> None:
    shown = json.loads(series(tmp_path, "zsmalloc-lockless-free", "--json").stdout)
    assert [row["number"] for row in shown["patches"]] == [1, 2]
    assert [row["files"] for row in shown["patches"]] == [1, 1]
    bases = {row["source"]: (row["backport"], row["used"]) for row in shown["bases"]}
    assert bases == {"debian:7.2": ("zpdesc", True), "debian:6.12": ("page", False)}
    done = series(tmp_path, "zsmalloc-lockless-free", "--backport", "page")
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines() if "debian:" in line]
    assert [line[-2:] == ["by", "--mail"] for line in lines] == [False, True]


def test_a_series_of_ones_own_needs_no_base_to_be_shown(tmp_path: Path) -> None:
    make_series(tmp_path, LETTER.partition("base:")[0])
    done = series(tmp_path, "./my-series", "--json")
    assert (done.returncode, json.loads(done.stdout)["bases"]) == (0, [])


def test_mails_are_written_and_the_checks_are_in_the_json(tmp_path: Path) -> None:
    make_series(tmp_path)
    base = f"git:{make_tree(tmp_path)}"
    words = ("./my-series", "--mail", "out", "--base", base, "--author", AUTHOR, "--json")
    done = series(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert [check["passed"] for check in written["checks"]] == [True] * 3
    assert written["author"] == AUTHOR and written["base"].startswith("base-commit: ")
    assert all((tmp_path / "out" / name).is_file() for name in written["mails"])
    assert written["to"] and written["cc"] and written["before_sending"]
    assert "Checking with b4 prep --check ..." in done.stderr
    again = series(tmp_path, *words)
    assert (again.returncode, again.stdout) == (2, "")
    assert "out is not empty" in again.stderr and again.stderr.count("\n") == 2


def test_a_finding_is_exit_code_1_and_is_printed(tmp_path: Path) -> None:
    make_series(tmp_path, patches=(patch(1, 3), patch(2, 12).replace("+int fast", "+int FIXME")))
    base = f"git:{make_tree(tmp_path)}"
    done = series(tmp_path, "./my-series", "--mail", "out", "--base", base, "--quiet")
    assert done.returncode == 1
    assert "0002: WARNING:FIXME: a FIXME is added (kernel/exit.c:4)" in done.stdout
    assert "checkpatch --strict, b4 prep --check found something in my-series" in done.stderr
    assert (tmp_path / "out").is_dir()


def test_a_patch_that_does_not_apply_is_exit_code_3(tmp_path: Path) -> None:
    make_series(tmp_path, patches=(patch(1, 3).replace(" int line_3;", " int other;"),))
    base = f"git:{make_tree(tmp_path)}"
    done = series(tmp_path, "./my-series", "--mail", "out", "--base", base)
    assert (done.returncode, (tmp_path / "out").exists()) == (3, False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["exit-liner"], "there is no series called 'exit-liner'; did you mean 'exit-linear'?"),
        (["exit-linear@1"], "there is no series called 'exit-linear@1'"),
        (["exit-linear", "--base", "5.10"], "--base 5.10: neither a base of exit-linear"),
        (["exit-linear", "--backport", "pidd"], "has no backport 'pidd'; did you mean 'pid'?"),
        (["exit-linear", "--author", AUTHOR], "--author is about mails"),
        (["exit-linear", "--mail", "out", "--author", "Jane"], "--author 'Jane' is not a name"),
        (["exit-linear", "--mail", "no/out"], "no/out cannot be made: there is no folder"),
    ],
)
def test_wrong_input_is_one_line_and_a_hint(words: list[str], message: str, tmp_path: Path) -> None:
    done = series(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 2, done.stderr
