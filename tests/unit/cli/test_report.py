"""``kteardown report`` in every format, on a run directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from unit.cli.test_main import kteardown
from unit.report.contexts import write_run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    write_run(home / "runs")
    yield home


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("cover", "- With freezer-skip-exited, freez"),
        ("reply", "Measured with kteardown "),
        ("markdown", "- **With freezer-skip-exited, freez"),
        ("json", "{"),
        ("comment", "- **With freezer-skip-exited, freez"),
        (
            "junit",
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<testsuites name="kteardown: With freezer-skip-exited, ',
        ),
    ],
)
def test_text_goes_to_standard_output_or_to_a_file(
    form: str, begins: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(home / "runs"))
    printed = CliRunner().invoke(app, ["report", "last", "--format", form])
    assert (printed.exit_code, printed.stderr) == (0, "")
    assert printed.stdout.startswith(begins)
    file = tmp_path / "report"
    written = CliRunner().invoke(app, ["report", "--format", form, "-o", str(file)])
    assert (written.exit_code, written.stdout) == (0, "")
    assert file.read_bytes().decode() == printed.stdout


def test_a_table_is_exported(home: Path) -> None:
    done = kteardown("report", "--format", "csv", home=home)
    assert done.returncode == 2
    assert "kteardown export" in done.stderr
    assert "one of: text, " in kteardown("report", "--format", "doc", home=home).stderr


def test_html_without_output_goes_to_the_current_folder(home: Path) -> None:
    done = kteardown("report", "--format", "html", home=home, cwd=home)
    file = home / done.stdout.strip()
    assert file.name.endswith("-freezer.html")
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_html_can_go_to_standard_output(home: Path) -> None:
    assert kteardown("report", "--format", "html", "-o", "-", home=home).stdout.startswith(
        "<!doctype html>"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--format", "svg", "--chart", "nope"), "growth-zombies-freeze_user_ns"),
        (("--format", "svg", "-o", "-"), "the charts of --format svg are files"),
        (("--format", "png", "-o", "one.png"), "is one file, but"),
        (("--format", "cover", "-o", "/nowhere/file"), "there is no folder"),
        (("--format", "text", "-o", "file"), "use --format cover"),
    ],
)
def test_wrong_input_exits_with_2_and_a_hint(
    arguments: tuple[str, ...], expected: str, home: Path
) -> None:
    done = kteardown("report", *arguments, home=home)
    assert done.returncode == 2
    assert expected in done.stderr
