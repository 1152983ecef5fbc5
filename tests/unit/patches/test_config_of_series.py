from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from kteardown.patches.config_of_series import (
    TouchedFile,
    _is_named,
    _users_of_headers,
    built_files,
    reasons,
)
from kteardown.patches.dependencies import with_dependencies

BUILT = TouchedFile("mm/a.c", True)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "it has documentation, tests or tools only"),
        ([TouchedFile("mm/Kconfig", False)], "it has documentation, tests or tools only"),
        ([BUILT], "its files are compiled, but it changes only comments"),
        ([BUILT, TouchedFile("mm/b.c", False, ("B",))], "mm/b.c needs CONFIG_B"),
        ([TouchedFile(f"{n}.c", False, ("B",)) for n in range(5)], "0.c needs CONFIG_B; 1.c"),
    ],
)
def test_why_nothing_is_compiled(files: list[TouchedFile], said: str) -> None:
    assert reasons(files).startswith(said)
    assert reasons(files).endswith(" and 2 more") == (len(files) == 5)


MAKEFILES = {
    "Kbuild": "obj-y += mm/\nobj-$(CONFIG_NET) += net/\nobj-y += drivers/\n",
    "mm/Makefile": "mmu-y := nommu.o\nmmu-$(CONFIG_MMU) := memory.o \\\n\tmmap.o\n"
    "obj-y := filemap.o $(mmu-y)\nobj-$(CONFIG_ZSWAP) += zswap.o\n"
    "ifdef CONFIG_SMP\nobj-$(CONFIG_MEMCG) += memcg.o\nendif\n",
    "net/Makefile": "obj-$(CONFIG_INET) += ipv4/\n",
    "net/ipv4/Makefile": "obj-y := tcp.o # the protocol\n",
    "drivers/Makefile": "obj-$(CONFIG_ZRAM) += block/zram/\n",
    "drivers/block/zram/Makefile": "zram-y := zcomp.o zram_drv.o\n"
    "zram-$(CONFIG_ZRAM_LZ4) += lz4.o\nobj-$(CONFIG_ZRAM) += zram.o\n",
    "Kconfig": (
        "config NET\n"
        '\tbool "net"\n'
        "\n"
        "config INET\n"
        '\tbool "inet"\n'
        "\tdepends on NET && (A || B)\n"
        "\n"
        "config A\n"
        '\tbool "a"\n'
        "\n"
        "config B\n"
        '\tbool "b"\n'
        "\n"
        'menu "m"\n'
        "depends on BLOCK\n"
        "\n"
        "config ZRAM\n"
        '\ttristate "zram"\n'
        "\tdepends on !NOZRAM\n"
        "\tselect ZS\n"
        "\n"
        "endmenu\n"
        "\n"
        "config BLOCK\n"
        '\tbool "block"\n'
        "\n"
        "config ZRAM_LZ4\n"
        '\tbool "lz4"\n'
        "\tdepends on ZRAM\n"
        "\n"
        "config ZS\n"
        "\ttristate\n"
        "\n"
        "config NOZRAM\n"
        '\tbool "no"\n'
    ),
}
ELSEWHERE = {
    "Kbuild": "obj-y += arch/x86/\n",
    "virt/kvm/Makefile.kvm": "KVM ?= ../../../virt/kvm\nkvm-y := $(KVM)/kvm_main.o\n"
    "kvm-$(CONFIG_KVM_RING) += $(KVM)/ring.o\n",
    "arch/x86/Kbuild": "obj-$(CONFIG_KVM) += kvm/\n",
    "arch/x86/kvm/Makefile": "include $(srctree)/virt/kvm/Makefile.kvm\nkvm-y += x86.o\n"
    "obj-$(CONFIG_KVM_X86) += kvm.o\n",
    "arch/x86/kvm/Kconfig": 'config VIRT\n\tbool "virt"\n\nif VIRT\n\nconfig KVM_X86\n'
    "\tdef_tristate KVM if (INTEL != n || AMD != n)\n\tselect KVM_RING\n\n"
    'config KVM\n\ttristate "kvm"\n\nconfig INTEL\n\ttristate "intel"\n\n'
    'config AMD\n\ttristate "amd"\n\n'
    "endif\n\nconfig KVM_RING\n\tbool\n",
}
"""Files that are built from another folder, by a symbol without a prompt that has a default."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in MAKEFILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    return tmp_path / "tree"


def one(name: str, tree: Path, objects: Path | None = None, *symbols: str) -> TouchedFile:
    (found,) = built_files([name], (tree,), dict.fromkeys(symbols, "y"), "x86_64", objects)
    return found


@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("mm/filemap.c", set()),
        ("mm/mmap.c", {"MMU"}),
        ("mm/zswap.c", {"ZSWAP"}),
        ("mm/memcg.c", {"SMP", "MEMCG"}),
        ("net/ipv4/tcp.c", {"NET", "INET", "A"}),
        ("drivers/block/zram/zcomp.c", {"ZRAM", "BLOCK"}),
        ("drivers/block/zram/lz4.c", {"ZRAM", "ZRAM_LZ4", "BLOCK"}),
    ],
)
def test_the_symbols_that_build_a_file_come_from_the_makefiles(
    name: str, symbols: set[str], tree: Path
) -> None:
    found = one(name, tree)
    assert (found.built, set(found.symbols), found.reason) == (not symbols, symbols, "")
    assert one(name, tree, None, *symbols).built


@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("virt/kvm/kvm_main.c", {"KVM", "VIRT", "KVM_X86", "INTEL"}),
        ("virt/kvm/ring.c", {"KVM", "VIRT", "KVM_X86", "INTEL", "KVM_RING"}),
        ("arch/x86/kvm/x86.c", {"KVM", "VIRT", "KVM_X86", "INTEL"}),
    ],
)
def test_a_makefile_of_another_folder_may_name_a_file(
    name: str, symbols: set[str], tmp_path: Path
) -> None:
    for file, text in ELSEWHERE.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    found = one(name, tmp_path)
    assert (set(found.symbols), found.reason) == (symbols, "")
    assert one(name, tmp_path, None, *symbols).built
    assert "INTEL" not in one(name, tmp_path, None, "AMD").symbols


def test_symbols_that_are_set_are_not_added(tree: Path) -> None:
    assert set(one("net/ipv4/tcp.c", tree, None, "NET", "B").symbols) == {"INET"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("arch/arm64/mm/fault.c", "is for arm64"),
        ("mm/not_there.c", "no makefile names it, and no file that is compiled includes it"),
        ("Documentation/mm/x.rst", "is not compiled"),
        ("mm/Kconfig", ""),
    ],
)
def test_files_that_are_never_compiled(name: str, reason: str, tree: Path) -> None:
    assert one(name, tree) == TouchedFile(name, False, reason=reason)


def test_the_build_folder_knows_what_is_compiled_and_included(tree: Path, tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    (objects / "mm").mkdir(parents=True)
    (objects / "mm" / "filemap.o").write_bytes(b"")
    (objects / "mm" / ".filemap.o.cmd").write_text(
        "deps_mm/filemap.o := \\\n  ../include/linux/mm.h \\\n  ../mm/part.c \\\n"
    )
    (tree / "include" / "linux").mkdir(parents=True)
    for name in ("mm/part.c", "mm/nommu.c", "include/linux/mm.h", "include/linux/net.h"):
        (tree / name).write_text("")
    assert one("mm/filemap.c", tree, objects).built
    assert one("mm/part.c", tree, objects).built
    assert one("include/linux/mm.h", tree, objects).built
    unknown = one("include/linux/net.h", tree, objects)
    assert (unknown.built, unknown.reason) == (False, "no compiled file includes it")
    other = one("mm/nommu.c", tree, objects, "MMU")
    assert (other.built, other.reason) == (False, "is for other configurations")


def test_what_no_configuration_line_compiles_needs_its_symbol(tree: Path, tmp_path: Path) -> None:
    patched = tmp_path / "patched"
    for folder, value in ((tree, 1), (patched, 2)):
        (folder / "mm").mkdir(parents=True, exist_ok=True)
        (folder / "mm" / "filemap.c").write_text(
            f"int a;\n#ifdef CONFIG_NET\nint b = {value};\n#endif\n"
        )
    (found,) = built_files(["mm/filemap.c"], (patched, tree), {}, "x86_64", None)
    assert (found.built, found.symbols) == (False, ("NET",))
    (found,) = built_files(["mm/filemap.c"], (patched, tree), {"NET": "y"}, "x86_64", None)
    assert found.built


@pytest.mark.parametrize(
    ("symbol", "asked"),
    [
        ("PREEMPT_RT", "--config preempt_rt"),
        ("KASAN", "--config kasan"),
        ("NUMA", "--config CONFIG_NUMA=y"),
        ("DEBUG_ATOMIC_SLEEP", "--config debug"),
        ("DEBUG_FS", ""),
        ("NET", ""),
    ],
)
def test_a_symbol_that_makes_another_kernel_is_not_added_for_a_part(
    symbol: str, asked: str, tree: Path, tmp_path: Path
) -> None:
    patched = tmp_path / "patched"
    for folder, value in ((tree, 1), (patched, 2)):
        (folder / "mm").mkdir(parents=True, exist_ok=True)
        (folder / "mm" / "part.h").write_text(
            f"int a;\n#ifdef CONFIG_{symbol}\nint b = {value};\n#endif\n"
        )
        (folder / "mm" / "filemap.c").write_text(f"int a = {value};\n")
    # Here its line compiles nothing else.
    alone, _ = built_files(["mm/part.h", "mm/Kconfig"], (patched, tree), {}, "x86_64", None)
    assert symbol in alone.symbols
    part, rest = built_files(["mm/part.h", "mm/filemap.c"], (patched, tree), {}, "x86_64", None)
    assert rest.built
    reason = f"also changes CONFIG_{symbol}: {asked}"
    assert part == (TouchedFile("mm/part.h", False, reason=reason) if asked else alone)
    (on,) = built_files(["mm/part.h"], (patched, tree), {symbol: "y"}, "x86_64", None)
    assert on.built


def test_a_header_may_be_a_part_of_all_objects(tmp_path: Path) -> None:
    for name, headers in {"a": ["x.h", "y.h"], "b": ["x.h"], "c": []}.items():
        lines = "".join(f"  ../include/{header} \\\n" for header in headers)
        (tmp_path / f".{name}.o.cmd").write_text(f"deps_{name}.o := \\\n{lines}")
    found = _users_of_headers(tmp_path, ["include/x.h", "include/y.h", "include/z.h", "a.c"])
    assert {name: set(users) for name, users in found.items()} == {
        "include/x.h": {"a.c", "b.c"},
        "include/y.h": {"a.c"},
        "include/z.h": set(),
    }


def test_a_header_is_named_by_what_may_include_it(tmp_path: Path) -> None:
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/slub.c").write_text("#include <linux/slab.h>\n#include <trace/events/kmem.h>\n")
    files = ["mm/slub.c", "mm/gone.c", "mm"]
    for name in ("include/trace/events/kmem.h", "include/uapi/linux/slab.h"):
        assert _is_named(name, tmp_path, files)
        assert not _is_named(name, tmp_path, [])
    assert not _is_named("include/trace/events/ext4.h", tmp_path, files)


def test_a_new_file_is_judged_by_the_makefiles(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    assert one("mm/mmap.c", tree, tmp_path / "objects", "MMU").built
    assert one("mm/new.h", tree, tmp_path / "objects").built


def test_a_symbol_without_a_prompt_is_set_by_what_selects_it(tree: Path) -> None:
    assert set(with_dependencies((tree,), "x86_64", ["ZS"], {})) == {"ZS", "ZRAM", "BLOCK"}


@pytest.mark.parametrize(
    ("config", "more"), [({"SMP": "y"}, set()), ({}, {"ARM"}), ({"X64": "y", "SMP": "y"}, {"ARM"})]
)
def test_a_condition_that_holds_needs_no_symbol(
    config: dict[str, str], more: set[str], tree: Path
) -> None:
    symbols = "".join(f'config {name}\n\tbool "one"\n\n' for name in ("SMP", "X64", "ARM", "V"))
    rule = "\tdepends on (SMP && !X64) || ARM\n\tdepends on V || !V\n"
    (tree / "Kconfig").write_text(f'{symbols}config OURS\n\tbool "ours"\n{rule}')
    found = with_dependencies((tree,), "x86_64", ["OURS"], config)
    assert set(found) == {"OURS", *more}


def test_the_fewest_missing_symbols_count(tree: Path) -> None:
    text = "obj-$(CONFIG_A) += one.o\none-$(CONFIG_B) += two.o\nobj-$(CONFIG_C) += two.o\n"
    (tree / "mm" / "Makefile").write_text(text)
    assert one("mm/two.c", tree).symbols == ("C",)
    assert one("mm/two.c", tree, None, "A", "B").built


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        # Names that refer to each other: the number of ways grows with the power of the depth.
        "".join(f"{a}-y := {' '.join(f'{b}.o' for b in 'abcdefgh')} x.o\n" for a in "abcdefgh"),
        "".join(f"{a} := {' '.join(f'$({b})' for b in 'abcdefgh')} x.o\n" for a in "abcdefgh"),
        # Values that double.
        "a := 12345678/\n" + "a := $(a)/$(a)/\n" * 26 + "obj-m := $(a)/x.o\n",
        "ifdef CONFIG_A\n" * 5000 + "y-y := x.o\n" * 10_000,
        "a-y := " + "x.o " * 1_000_000,
        "include $(srctree)/big\n" * 10_000,
        "b.o " * 1000 + "\\\n" * 100_000,
    ],
    ids=["objects", "variables", "values", "conditions", "words", "includes", "lines"],
)
def test_a_hostile_makefile_takes_little_time_and_memory(tree: Path, text: str) -> None:
    (tree / "mm" / "Makefile").write_text(text)
    (tree / "big").write_text("c-y := y.o\n" * 100_000)
    tracemalloc.start()
    found = one("mm/x.c", tree)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.reason == "no makefile names it, and no file that is compiled includes it"
    assert most < 200 << 20


@pytest.mark.parametrize(
    ("change", "follows"),
    [
        ("\tnew_name(a);\n", True),
        ("\tnew_name(a, b);\n", False),
        ("\tnew_name(a + 1);\n", False),
        ("\tother_name(a);\n", False),
        ("\told_name(a); /* a comment */\n", True),
    ],
)
@pytest.mark.parametrize("caller", ["mm/filemap.c", "net/ipv4/tcp.c", "mm/caller.h"])
def test_a_file_that_only_follows_a_rename_needs_no_symbols(
    change: str, follows: bool, caller: str, tree: Path, tmp_path: Path
) -> None:
    patched = tmp_path / "patched"
    for folder, name, line in (
        (tree, "old_name", "\told_name(a);\n"),
        (patched, "new_name", change),
    ):
        for file, text in ((caller, f"void {name}(int a)\n{{\n}}\n"), ("mm/zswap.c", line)):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
    first, zswap = built_files([caller, "mm/zswap.c"], (patched, tree), {}, "x86_64", None)
    assert (first.built, bool(first.symbols)) == (
        not caller.startswith("net/"),
        caller.startswith("net/"),
    )
    # If base compiles no other file of the series, the symbols are what makes it measurable.
    if caller == "mm/filemap.c" and follows:
        assert (zswap.built, zswap.symbols) == (False, ())
        assert "CONFIG_ZSWAP" in reasons([zswap])
    else:
        assert (zswap.symbols, zswap.reason) == (("ZSWAP",), "")
