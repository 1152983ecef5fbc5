"""Functions that are too long are found in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from check_sizes import FILE_LINES, FOLDERS, LIMITS, LINES, functions, too_long

PYTHON = """class Thing:
    def small(self):
        return 1

    async def large(self):
{body}
"""
C = """struct thing {{
	int x;
}};

static int small(struct thing *t)
{{
	return t->x;
}}

__attribute__((noreturn)) static void
large(int a,
      int b)
{{
{body}
}}

const struct thing things[] = {{
	{{1}},
}};
"""


@pytest.mark.parametrize(
    ("name", "text", "line", "around"),
    [("a.py", PYTHON, 5, 1), ("a.c", C, 11, 4)],
    ids=["python", "c"],
)
@pytest.mark.parametrize("over", [0, 1])
def test_only_a_function_past_the_limit_is_found(
    tmp_path: Path, name: str, text: str, line: int, around: int, over: int
) -> None:
    file = tmp_path / name
    file.write_text(text.format(body="\n".join(["        pass"] * (LINES - around + over))))
    assert [found[0] for found in functions(file)] == ["small", "large"]
    length = LINES + over
    expected = [f"{file}:{line}: large has {length} lines, more than {LINES}"] if over else []
    assert too_long(file) == expected


def test_a_file_of_a_package_or_of_tests_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (*FOLDERS, "scripts"):
        file = Path(folder, "long.py")
        file.parent.mkdir()
        file.write_text("x = 1\n" * FILE_LINES)
        assert too_long(file) == []
        file.write_text("x = 1\n" * (FILE_LINES + 1))
        assert len(too_long(file)) == (folder in FOLDERS)


def test_a_file_can_have_a_limit_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pipeline.py"
    monkeypatch.setitem(LIMITS, file, 100)
    file.write_text("x = 1\n" * 100)
    assert too_long(file) == []
    file.write_text("x = 1\n" * 101)
    assert too_long(file) == [f"{file}: has 101 lines, more than 100"]
