"""How tables are cut: never wider than asked where a block fits, and what belongs together stays so."""

from __future__ import annotations

from kteardown.report.table import Block, Cell, Table


def block(*names: str) -> Block:
    return Block(names, (tuple(Cell("x" * len(name)) for name in names),))


def columns(table: Table, width: int) -> list[tuple[str, ...]]:
    return [part.columns for part in table.cut(width, 2)]


TABLE = Table("t", block("key"), (block("one", "two"), block("six", "ten")))
WITH_ASIDE = Table("t", block("key"), TABLE.blocks, aside=block("A/A"))


def test_what_fits_stands_side_by_side_and_what_does_not_below_with_its_keys() -> None:
    assert columns(TABLE, 23) == [("key", "one", "two", "six", "ten")]
    assert columns(TABLE, 22) == [("key", "one", "two"), ("key", "six", "ten")]


def test_a_block_is_never_cut_itself() -> None:
    assert columns(TABLE, 5) == [("key", "one", "two"), ("key", "six", "ten")]


def test_the_aside_is_repeated_where_every_block_has_the_room() -> None:
    assert columns(WITH_ASIDE, 28) == [("key", "A/A", "one", "two", "six", "ten")]
    assert columns(WITH_ASIDE, 18) == [("key", "A/A", "one", "two"), ("key", "A/A", "six", "ten")]


def test_the_aside_has_a_part_of_its_own_where_one_has_not() -> None:
    assert columns(WITH_ASIDE, 17) == [("key", "A/A"), ("key", "one", "two"), ("key", "six", "ten")]


def test_keys_alone_are_a_table_too() -> None:
    assert columns(Table("t", block("key")), 80) == [("key",)]
