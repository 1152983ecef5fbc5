from __future__ import annotations

import tracemalloc

import pytest

from kteardown.patches.changed_lines import changed_lines, missing_symbols

TEXT = """\
int always;
#ifdef CONFIG_NUMA
int numa;
# if defined(CONFIG_SWAP) && IS_ENABLED(CONFIG_ZSWAP)
int zswap;
# else
int other;
# endif
#else
int no_numa;
#endif
#if !defined(CONFIG_SMP) || defined(CONFIG_MMU)
int any;
#endif
/* words */
"""


@pytest.mark.parametrize(
    ("word", "missing"),
    [
        ("always", []),
        ("numa", ["NUMA"]),
        ("zswap", ["NUMA", "SWAP", "ZSWAP"]),
        ("other", ["NUMA"]),
        ("no_numa", []),
        ("any", []),
        ("words", []),
    ],
)
def test_the_symbols_around_all_that_is_changed(word: str, missing: list[str]) -> None:
    assert missing_symbols(TEXT, TEXT.replace(f" {word}", f" new_{word}"), {}) == missing
    assert (
        missing_symbols(TEXT, TEXT.replace(f" {word}", f" new_{word}"), dict.fromkeys(missing, "y"))
        == []
    )


def test_one_line_that_is_compiled_is_enough() -> None:
    after = TEXT.replace("int numa", "int new_numa")
    assert missing_symbols(TEXT, after, {}) == ["NUMA"]
    assert missing_symbols(TEXT, after.replace("always", "new_always"), {}) == []


def test_lines_are_numbered_before_and_after() -> None:
    assert changed_lines("a\nb\n", "a\nnew\nb\nc\n") == ([], [2, 4])


@pytest.mark.timeout(60)
def test_twenty_thousand_conditions_take_little_memory() -> None:
    before = "#ifdef CONFIG_A\n" * 20_000 + "int a;\n"
    tracemalloc.start()
    assert missing_symbols(before, before.replace("int a", "int b"), {}) == ["A"]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200 << 20
