"""The division of tables: at most the width if a block fits, with columns that belong together."""

from __future__ import annotations

from kteardown.report.table import Block, Cell, Table


def block(*names: str) -> Block:
    return Block(names, (tuple(Cell("x" * len(name)) for name in names),))


def columns(table: Table, width: int) -> list[tuple[str, ...]]:
    return [part.columns for part in table.cut(width, 2)]


TABLE = Table("t", block("key"), (block("one", "two"), block("six", "ten")))
WITH_ASIDE = Table("t", block("key"), TABLE.blocks, aside=block("A/A"))


def test_blocks_that_do_not_fit_are_below_with_their_keys() -> None:
    assert columns(TABLE, 23) == [("key", "one", "two", "six", "ten")]
    assert columns(TABLE, 22) == [("key", "one", "two"), ("key", "six", "ten")]


def test_a_block_is_never_divided() -> None:
    assert columns(TABLE, 5) == [("key", "one", "two"), ("key", "six", "ten")]


def test_the_aside_is_repeated_if_it_fits_with_every_block() -> None:
    assert columns(WITH_ASIDE, 28) == [("key", "A/A", "one", "two", "six", "ten")]
    assert columns(WITH_ASIDE, 18) == [("key", "A/A", "one", "two"), ("key", "A/A", "six", "ten")]


def test_the_aside_has_its_own_part_if_it_does_not_fit() -> None:
    assert columns(WITH_ASIDE, 17) == [("key", "A/A"), ("key", "one", "two"), ("key", "six", "ten")]


def test_a_table_can_have_only_keys() -> None:
    assert columns(Table("t", block("key")), 80) == [("key",)]
