"""Compares what the collector counted in a guest with what was planted there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

Counts = Mapping[str, Mapping[str, Any]]


def collected(record: Mapping[str, Any], moment: str) -> dict[str, Any]:
    """Return what the collector printed: ``clean``, ``planted``, or the same with ``_user``.

    Raises AssertionError if it failed.
    """
    run = record["collected"][moment]
    assert run["status"] == 0, run["stderr"]
    assert not run["stderr"]
    printed: dict[str, Any] = json.loads(run["printed"])
    return printed


def missing(printed: Mapping[str, Any]) -> dict[str, str]:
    """Return why the collector could not count something, by the name of the count."""
    return {
        count: f"{entry['reason']}: {entry.get('detail', '')}"
        for entry in printed["missing"]
        for count in entry["counts"]
    }


def expected(record: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what the problems add to each count."""
    result = defaultdict(list)
    for problem in record["problems"].values():
        for one in problem["expected"]:
            result[one["count"]].append(one)
    return dict(result)


def differences(record: Mapping[str, Any], suffix: str = "") -> dict[str, str]:
    """Return the counts that are not what was planted, each with what is wrong.

    ``suffix``: ``_user`` for what an ordinary user counted.
    """
    clean: Counts = collected(record, f"clean{suffix}")["counts"]
    planted: Counts = collected(record, f"planted{suffix}")["counts"]
    wrong = {}
    for count, parts in expected(record).items():
        compared = [part for part in parts if part["number"] is not None]
        wanted = sum(part["number"] for part in compared)
        if count not in planted:
            wrong[count] = "absent"
            continue
        more = planted[count]["number"] - clean.get(count, {"number": 0})["number"]
        room = sum(part["within"] * part["number"] for part in compared)
        if compared and abs(more - wanted) > room:
            wrong[count] = f"{more} more than before instead of {wanted}"
        elif owners := _wrong_owners(parts, planted[count].get("largest", [])):
            wrong[count] = owners
    return wrong


def _wrong_owners(parts: list[dict[str, Any]], largest: list[dict[str, Any]]) -> str:
    for part in parts:
        if part["largest"] is None or not part["largest"]:
            continue
        room = part["within"] * part["largest"]
        found = (
            abs(owner["number"] - part["largest"]) <= room and part["owner"] in owner["name"]
            for owner in largest
        )
        if not any(found):
            return f"no owner {part['owner']!r} has {part['largest']}: {largest}"
    return ""
