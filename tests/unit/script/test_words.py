from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.script.words import BUILTINS, Shebang, candidates, direct, shebang

SCRIPT = """#!/bin/bash
# python3 is only in a comment
create() { mkdir -p "/sys/fs/cgroup/$1"; }
for ((i = 0; i < N; i++)); do create test$i; done
for file in 1 2; do sleep 1 & done   # perl
LC_ALL=C timeout 5 pkill -f sleep || echo "the size of git as it is: $(date +%s%N)"
if grep -q x /etc/passwd; then /sbin/swapon /dev/zram0; fi
size=3; cat <<END | head
  install this
END
case $1 in make) ;; esac
seq 1 10 | xargs -n 1 kill
"""
COMMANDS = {
    "mkdir",
    "sleep",
    "timeout",
    "date",
    "grep",
    "/sbin/swapon",
    "cat",
    "head",
    "seq",
    "xargs",
}


def likely_in(text: str) -> set[str]:
    return {word for word, likely in candidates(text).items() if likely}


def test_words_that_may_be_programs_are_found_in_any_place() -> None:
    words = candidates(SCRIPT)
    for name in (*COMMANDS, "pkill", "kill"):
        assert name in words, name


def test_comments_printed_words_variables_options_and_functions_are_not_programs() -> None:
    words = candidates(SCRIPT)
    for name in (
        "python3",
        "perl",
        "git",
        "as",
        "size",
        "file",
        "create",
        "f",
        "N",
        "i",
        "passwd",
        "for",
        "done",
    ):
        assert name not in words, name


def test_commands_and_what_they_run_are_likely_programs() -> None:
    likely = likely_in(SCRIPT)
    assert likely >= {*COMMANDS, "pkill", "kill"}
    assert likely.isdisjoint({"make", "create", "i++", "passwd", "this"})


@pytest.mark.parametrize("value", ['"cpuset cpu io"', "'cpuset cpu io'", 'a"cpuset cpu io"b'])
def test_words_of_a_quoted_assignment_are_no_commands(value: str) -> None:
    assert likely_in(f"controllers={value} mkdir x\nfoo={value}\n") == {"mkdir"}


@pytest.mark.parametrize(
    "line", ["echo '# a' ; pkill x", 'test "a # b" && pkill x', "x=${#y}; pkill x"]
)
def test_a_hash_in_quotes_or_in_a_word_is_no_comment(line: str) -> None:
    assert "pkill" in candidates(line)


def test_arguments_of_commands_that_run_others_are_likely_programs() -> None:
    named = candidates(
        "timeout 5 python3 x\ncase $1 in start) node=1 ;; esac\ngrep node /proc/x; f() { g; }\n"
    )
    assert named["python3"] and not named["node"] and "f" not in named


def test_only_strings_of_other_languages_name_programs() -> None:
    text = "import time, subprocess\nsubprocess.run(['uname', '-a'])\nos.system(\"pkill -f x\")\n"
    assert candidates(text, shell=False) == {"uname": True, "pkill": True}


@given(st.text(max_size=300) | st.text(alphabet="ab/;|&(){}$`'\"#<>=-+ \n\\", max_size=300))
def test_any_text_gives_words_of_the_text_that_are_no_builtins(text: str) -> None:
    for shell in (True, False):
        named = candidates(text, shell=shell)
        assert all(word in text for word in named)
        if shell:
            assert BUILTINS.isdisjoint(named)


@given(
    st.from_regex(r"[a-z][a-z0-9_]{3,8}", fullmatch=True).filter(lambda word: word not in BUILTINS)
)
def test_a_command_is_found_and_in_a_comment_it_is_not(word: str) -> None:
    assert candidates(f"true; {word} --option")[word]
    assert word not in candidates(f"true  # {word} --option")


@pytest.mark.parametrize(
    "part",
    [
        "((",
        "<<a\n",
        "echo $(",
        "a=",
        "\n",
        "/a",
        "time ",
        "then x=1 ",
        "! ",
        "timeout ",
        "function ",
        "a b=c ",
        "x(",
        "$((1",
        "'\"",
        "`",
    ],
)
def test_long_texts_take_linear_time(part: str) -> None:
    # The time limit of a test ends one that does not.
    candidates(part * (400_000 // len(part)))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"#!/bin/sh\necho", Shebang("/bin/sh")),
        (b"#! /bin/sh -e -x\t\n", Shebang("/bin/sh", ("-e -x",))),
        (b"#!/usr/bin/env bash\n", Shebang("bash")),
        (b"#!/usr/bin/env -S bash -e\n", Shebang("bash", ("-e",))),
        (b"#!/usr/bin/python3", Shebang("/usr/bin/python3")),
        (b"echo", None),
    ],
)
def test_the_first_line_is_read_as_the_kernel_does(line: bytes, expected: Shebang | None) -> None:
    assert shebang(line, "x.sh") == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"#!/bin/sh\r\n", "carriage return"),
        (b"echo\r\ndone\r\n", "carriage return"),
        (b"#!  \n", "names no program"),
        (b"#!/usr/bin/env\n", "env arguments"),
        (b"#!/usr/bin/env bash -e\n", "env arguments"),
        (b"#!/usr/bin/env -S A=1 bash\n", "env arguments"),
        (b"#!/usr/bin/env -S bash '\n", "unclosed quote"),
    ],
)
def test_a_first_line_that_cannot_work_is_an_error(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        shebang(line, "x.sh")


@given(st.binary(max_size=300))
def test_any_first_line_is_read_or_an_input_error(data: bytes) -> None:
    try:
        found = shebang(b"#!" + data, "x")
    except InputError:
        return
    assert found is not None and found.program


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("stress-ng --mmap 4", ("stress-ng", "--mmap", "4")),
        ("prog 'a b'", ("prog", "a b")),
        ("a | b", None),
        ("a $N", None),
        ("A=1 b", None),
        ("cd /tmp", None),
        ("a\nb", None),
        ("a 'b", None),
        ("", None),
    ],
)
def test_a_command_that_needs_no_shell_is_split(
    command: str, words: tuple[str, ...] | None
) -> None:
    assert direct(command) == words
