"""Code that opens a file of a run past the door is found, in whatever way it does."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_doors


def found(text: str, tmp_path: Path, module: str = "rundir/new.py") -> int:
    file = tmp_path / "new.py"
    file.write_text(text)
    return len(check_doors.problems(file, module, set()))


@pytest.mark.parametrize(
    "text",
    [
        "open(file)",
        "file.open('rb')",
        "run.records_file.path.read_bytes()",
        "(run.path / 'on').write_text('')",
        "os.open(file, 0)",
        "os.link(a, b)",
        "shutil.rmtree(folder)",
        "shutil.copyfile(a, b)",
        "def f():\n    for x in y:\n        x.unlink()",
        "class A:\n    def f(self):\n        return lambda: self.file.read_text()",
        "kept = [file.read_text() for file in files]",
    ],
)
def test_what_opens_a_file_is_found(text: str, tmp_path: Path) -> None:
    assert found(text, tmp_path) == 1


def test_what_opens_none_is_not(tmp_path: Path) -> None:
    assert not found(
        "RunDir.open(path)\nshutil.which('x')\nfile.content()\ntext.replace('a', 'b')\n", tmp_path
    )


def test_a_module_or_a_function_may_be_listed(tmp_path: Path) -> None:
    text = (
        "def write_text(file):\n    file.write_text('')\n\n\ndef other(file):\n    "
        "file.write_text('')\n"
    )
    assert found(text, tmp_path, "cli/new.py") == 0
    assert found(text, tmp_path, "cli/options.py") == 1
