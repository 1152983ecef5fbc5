"""A name is of one thing: no two modules of the package have a public class of the same name."""

from __future__ import annotations

import ast

from sources import named, source_files


def test_a_public_class_name_is_unique_in_the_package() -> None:
    found: dict[str, list[str]] = {}
    for file in source_files():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(named(file))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
