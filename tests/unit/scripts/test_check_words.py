"""Words that are not used are found wherever they are written, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import check_words
from check_words import Entry, Words

GLOSSARY = """# Glossary
| not | this |
|---|---|
| `earlier` | a table above |

## Words that are not used
Text before it.

| not | but |
|---|---|
| `gnome`, `gnomes` | dwarf |
| `hobbit*` | halfling |
| `sits upon`, `sits` | is on |
| `the tall` | tall tasks |
"""
WORDS = Words(check_words.entries(GLOSSARY))


def found(text: str, path: str = "page.md") -> list[tuple[int, str]]:
    return [(hit.line, hit.text) for hit in WORDS.search(path, text)]


def test_the_table_is_the_last_one_with_every_word_of_a_row() -> None:
    assert check_words.entries(GLOSSARY) == [
        Entry("gnome", "dwarf"),
        Entry("gnomes", "dwarf"),
        Entry("hobbit*", "halfling"),
        Entry("sits upon", "is on"),
        Entry("sits", "is on"),
        Entry("the tall", "tall tasks"),
    ]
    with pytest.raises(ValueError, match="no table below"):
        check_words.entries("# Glossary\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A Gnome, two GNOMES.", ["Gnome", "GNOMES"]),
        ("gnomette gnomish metagnome 4gnome", []),
        ("def is_gnome(): test_gnomes_sleep", ["gnome", "gnomes"]),
        ("hobbit hobbits hobbiton", ["hobbit", "hobbits", "hobbiton"]),
        ("the gnome's hat, `gnome`, (gnome)", ["gnome"] * 3),
        ("sits upon a chair; sits down", ["sits upon", "sits"]),
        ("sits_upon sits-upon sits  upon", ["sits_upon", "sits-upon", "sits upon"]),
        (
            "the tall wait; test_the_tall_wait; the tall taskset",
            ["the tall", "the_tall", "the tall"],
        ),
        ("the tall tasks, the tall_process, the tall\n * cgroup", []),
        ("see https://example.org/gnome and go", []),
        ('since 0123456789ab ("gnome: sits upon a thing") a gnome', ["gnome"]),
        ('a "gnome: sits"', ["gnome", "sits"]),
        ("> a gnome wrote\nthis", []),
        ("gnome <!-- words: quote -->", []),
    ],
)
def test_whole_words_are_found_in_either_case(text: str, expected: list[str]) -> None:
    assert [word for _, word in found(text)] == expected


@pytest.mark.parametrize("comment", ["", "# ", "// ", " * ", "\t\t * ", "+ * "])
def test_a_phrase_may_go_on_in_the_next_line(comment: str) -> None:
    assert [line for line, _ in found(f"one\n{comment}it sits\n{comment}upon it", "a.c")] == [2]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("/* words: quote */\ngnome\ngnome", [3]),
        ("x = 1  # words: quote\ngnome", [2]),
        ("gnome  // words: quote\ngnome", [2]),
        ("# words: quoted text is text\ngnome", [2]),
    ],
)
def test_a_quotation_is_one_line(text: str, lines: list[int]) -> None:
    assert [line for line, _ in found(text, "a.c")] == lines


PATCH = """Subject: [PATCH] a gnome

> a gnome, said the review
A gnome.
---
 mm/gnome.c | 2 +-

diff --git a/mm/gnome.c b/mm/gnome.c
--- a/mm/gnome.c
+++ b/mm/gnome.c
@@ -1,3 +1,3 @@ gnome
 the gnome
-a gnome
+one gnome more
-- 
2.39.0
"""


def test_of_a_patch_the_message_and_the_added_lines_are_ours() -> None:
    assert [line for line, _ in found(PATCH, "series/a/0001-a.patch")] == [1, 4, 6, 14]
    assert [line for line, _ in found(PATCH.replace("> ", ""), "series/a/0001-a.patch")] == [
        1,
        3,
        4,
        6,
        14,
    ]
    of_two = [line for line, _ in found(PATCH * 2, "two.patch")]
    assert of_two == [1, 4, 6, 14, 17, 20, 22, 30]


NONE = "is none"  # words: quote


def test_a_test_for_none_is_code() -> None:
    words = Words([Entry(NONE, "is missing")])
    code = f"if x is None: ...\n# there {NONE}\n"
    assert [hit.line for hit in words.search("a.py", code)] == [2]
    template = f"{{% if x {NONE} %}} {{{{ 1 if x {NONE} }}}}\nthere {NONE} {{{{ x }}}}"
    assert [hit.line for hit in words.search("a.html.j2", template)] == [2]


@given(st.text(), st.text())
def test_a_word_on_its_own_is_always_found_in_its_line(before: str, after: str) -> None:
    before, after = before.replace("words: quote", ""), after.replace("words: quote", "")
    text = f"{before}\n gnome \n{after}"
    assert (before.count("\n") + 2, "gnome") in found(text, "a.c")


@given(st.text(alphabet="gnomestup _\n"))
def test_every_hit_is_a_word_of_the_table_at_its_line(text: str) -> None:
    lines = text.split("\n")
    for line, word in found(text, "a.c"):
        assert word.split()[0] in lines[line - 1]
        assert word.replace("_", " ") in {"gnome", "gnomes", "sits", "sits upon"}


def test_data_is_not_text(tmp_path: Path) -> None:
    for name, content in (("a.svg", b"gnome"), ("b.json", b"gnome"), ("c.bin", b"gnome\0")):
        (tmp_path / name).write_bytes(content)
        assert check_words.text_of(tmp_path / name) == ""
    (tmp_path / "d.txt").write_bytes(b"gnome \xff")
    assert check_words.text_of(tmp_path / "d.txt").startswith("gnome")
    assert check_words.text_of(tmp_path / "missing") == ""


def test_the_command_names_file_line_and_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (
        ("docs/glossary.md", GLOSSARY),
        ("docs/page.md", "fine\na gnome\n"),
        ("src/lab/deep/a.py", "gnomes = 1\n"),
        ("tests/data/console/one", "gnome\n"),
        ("LICENSE", "gnome\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setattr(check_words, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert check_words.main([]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "docs/page.md:2: gnome -> dwarf",
        "src/lab/deep/a.py:1: gnomes -> dwarf",
        "     1 in docs",
        "     1 in src/lab",
        "words: 2 files, 2 words that docs/glossary.md does not use",
    ]
    assert check_words.main(["docs"]) == 1
    assert "src/lab" not in capsys.readouterr().out
    (tmp_path / "docs/page.md").write_text("a dwarf\n")
    assert check_words.main(["docs"]) == 0


def test_the_real_glossary_is_read() -> None:
    root = Path(check_words.__file__).parents[1]
    table = check_words.entries((root / check_words.GLOSSARY).read_text())
    assert len(table) > 40
    done = subprocess.run(
        [sys.executable, root / "scripts/check_words.py", "scripts", "tests/unit/scripts"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "words: " in done.stdout
