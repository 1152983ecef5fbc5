from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.patches.config_of_series import SeriesConfig, built_files

MAKEFILES = {
    "Kbuild": "obj-y += mm/\n",
    "mm/Makefile": "obj-y := filemap.o\nobj-$(CONFIG_ZSWAP) += zswap.o\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in MAKEFILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("user", "built", "symbols"),
    [
        ("mm/filemap.c", True, ()),
        ("mm/zswap.c", False, ("ZSWAP",)),
        # No makefile names it.
        ("mm/new.c", False, ()),
    ],
)
def test_a_new_header_is_compiled_as_the_file_that_includes_it(
    user: str, built: bool, symbols: tuple[str, ...], tree: Path, tmp_path: Path
) -> None:
    patched = tmp_path / "patched"
    (patched / "mm").mkdir(parents=True)
    (patched / user).write_text('#include "outer.h"\n')
    (patched / "mm/outer.h").write_text('#include "inner.h"\n')
    (patched / "mm/inner.h").write_text("int inner;\n")
    (patched / "mm/alone.h").write_text('#include "alone.h"\n')
    names = ["mm/inner.h", "mm/outer.h", "mm/alone.h", user]
    inner, outer, alone, _ = built_files(names, (patched, tree), {}, "x86_64", None)
    assert [(file.built, file.symbols) for file in (inner, outer)] == [(built, symbols)] * 2
    assert (alone.built, alone.symbols) == (False, ())
    assert SeriesConfig(
        tuple(built_files(names, (patched, tree), {}, "x86_64", None))
    ).compiled == (built or bool(symbols))


@pytest.mark.parametrize(
    "names",
    [
        # It replaces a header of include/asm-generic, which every file includes.
        ["arch/x86/include/asm/new.h"],
        # It was moved, and is found in both folders.
        ["include/linux/new.h", "mm/new.h"],
    ],
)
def test_files_of_the_source_may_include_a_new_header(
    names: list[str], tree: Path, tmp_path: Path
) -> None:
    patched = tmp_path / "patched"
    (patched / names[0]).parent.mkdir(parents=True)
    (patched / names[0]).write_text("int a;\n")
    assert built_files(names, (patched, tree), {}, "x86_64", None)[0].built


@pytest.mark.timeout(60)
def test_many_new_headers_take_little_time(tree: Path, tmp_path: Path) -> None:
    patched = tmp_path / "patched"
    (patched / "mm").mkdir(parents=True)
    names = [f"mm/h{number}.h" for number in range(1000)]
    text = "".join(f'#include "h{number}.h"\n' for number in range(1000))
    for name in names:
        (patched / name).write_text(text)
    (patched / names[0]).write_text("a.-" * 1_000_000)
    found = built_files(names, (patched, tree), {}, "x86_64", None)
    assert not any(file.built for file in found)
