from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.patches import included
from kteardown.patches.config_of_series import TouchedFile, built_files

TREE = {
    "Kbuild": "obj-y += kernel/ arch/x86/ drivers/\n",
    "kernel/Makefile": "obj-y += sched/ locking/\n",
    "kernel/sched/Makefile": "obj-y += policy.o\n",
    "kernel/sched/policy.c": '#include <linux/sched.h>\n#include "rt.c"\n'
    '#ifdef CONFIG_PSI\n# include "psi.c"\n#endif\n#include "ext/ext.c"\n',
    "kernel/sched/rt.c": '#include "rt_part.c"\n',
    "kernel/sched/rt_part.c": "",
    "kernel/sched/psi.c": "",
    "kernel/sched/ext/ext.c": "",
    # Not that of sched/.
    "kernel/rt.c": "",
    "kernel/locking/Makefile": "obj-$(CONFIG_RT_API) += api.o\nobj-y += spin.o\n"
    "obj-$(CONFIG_A) += two.o\ntwo-$(CONFIG_B) += both.o\nobj-$(CONFIG_C) += single.o\n",
    "kernel/locking/api.c": '#include "mutex.c"\n',
    "kernel/locking/spin.c": '#include "mutex.c"\n',
    "kernel/locking/both.c": '#include "few.c"\n',
    "kernel/locking/single.c": '#include "few.c"\n',
    "kernel/locking/mutex.c": "",
    "kernel/locking/few.c": "",
    "arch/x86/Kbuild": "obj-y += entry/\n",
    "arch/x86/entry/Makefile": "obj-y += vdso.o\n",
    "arch/x86/entry/vdso.c": '#include "../../../lib/time.c"\n#include "lib/random.c"\n',
    "lib/time.c": "",
    "lib/random.c": "",
    "drivers/Makefile": "obj-y += i915/\n",
    "drivers/i915/Makefile": "obj-y += gt/a.o\nobj-y += head.o\n",
    "drivers/i915/gt/a.c": '#include "gt/test.c"\n',
    "drivers/i915/gt/test.c": "",
    "drivers/i915/head.S": '#include "verify.S"\n',
    "drivers/i915/verify.S": "",
    # Two that include each other, and one that includes itself.
    "drivers/ring_a.c": '#include "ring_b.c"\n',
    "drivers/ring_b.c": '#include "ring_a.c"\n#include "ring_b.c"\n',
    "drivers/alone.c": '// #include "alone2.c"\n/* the beginning */ int a; #include "alone2.c"\n',
    "drivers/alone2.c": "",
}
NONE = "no makefile names it, and no file that is compiled includes it"


def write(files: dict[str, str], tree: Path) -> Path:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(TREE, tmp_path / "tree")


def one(name: str, *trees: Path, symbols: tuple[str, ...] = ()) -> TouchedFile:
    (found,) = built_files([name], trees, dict.fromkeys(symbols, "y"), "x86_64", None)
    return found


@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("kernel/sched/rt.c", ()),
        ("kernel/sched/rt_part.c", ()),
        ("kernel/sched/psi.c", ("PSI",)),
        ("kernel/sched/ext/ext.c", ()),
        ("kernel/locking/mutex.c", ()),
        ("kernel/locking/few.c", ("C",)),
        ("lib/time.c", ()),
        ("lib/random.c", ()),
        ("drivers/i915/gt/test.c", ()),
        ("drivers/i915/verify.S", ()),
    ],
)
def test_a_file_is_compiled_if_a_compiled_file_includes_it(
    name: str, symbols: tuple[str, ...], tree: Path
) -> None:
    found = one(name, tree)
    assert (found.built, found.symbols, found.reason) == (not symbols, symbols, "")
    assert one(name, tree, symbols=symbols).built


@pytest.mark.parametrize(
    "name", ["kernel/rt.c", "drivers/ring_a.c", "drivers/ring_b.c", "drivers/alone2.c"]
)
def test_a_file_that_nothing_compiled_includes(name: str, tree: Path) -> None:
    assert one(name, tree) == TouchedFile(name, False, reason=NONE)


def test_the_build_folder_has_the_last_word(tree: Path, tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    (objects / "arch/x86/entry").mkdir(parents=True)
    (objects / "arch/x86/entry/.vdso.o.cmd").write_text(
        "deps_vdso.o := \\\n  ../arch/x86/entry/../../../lib/time.c \\\n"
    )
    names = ["lib/time.c", "kernel/sched/rt.c"]
    time, rt = built_files(names, (tree,), {}, "x86_64", objects)
    assert time.built
    assert (rt.built, rt.reason) == (False, "is for other configurations")


def test_patched_files_come_before_those_of_the_source(tree: Path, tmp_path: Path) -> None:
    patch = {
        "kernel/sched/policy.c": '#include "new.c"\n#include "psi.c"\n',
        "kernel/sched/new.c": "",
    }
    patched = write(patch, tmp_path / "patched")
    assert one("kernel/sched/new.c", patched, tree).built
    assert one("kernel/sched/psi.c", patched, tree).built
    # It is in the source alone that it is included.
    assert one("kernel/sched/rt.c", patched, tree).reason == NONE


def test_a_new_file_is_included_by_patched_files_only(tree: Path, tmp_path: Path) -> None:
    write({"kernel/sched/policy.c": '#include "new.c"\n'}, tree)
    patched = write({"kernel/sched/new.c": ""}, tmp_path / "patched")
    assert one("kernel/sched/new.c", patched, tree).reason == NONE


def test_no_link_is_followed(tree: Path, tmp_path: Path) -> None:
    outside = write({"user.c": '#include "linked.c"\n', "Makefile": ""}, tmp_path / "outside")
    write({"drivers/linked.c": "", "drivers/fifo.c": ""}, tree)
    (tree / "drivers/fifo.c").unlink()
    os.mkfifo(tree / "drivers/fifo.c")
    (tree / "drivers/user.c").symlink_to(outside / "user.c")
    (tree / "drivers/folder").symlink_to(outside)
    (tree / "drivers/loop").symlink_to(tree / "drivers")
    assert one("drivers/linked.c", tree).reason == NONE
    assert one("drivers/folder/linked.c", tree).reason == NONE


@pytest.mark.timeout(60)
def test_a_hostile_tree_takes_little_time(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each of many files includes all others; one is huge, and folders are deep.
    names = [f"f{number}.c" for number in range(300)]
    text = "".join(f'#include "{name}"\n' for name in names)
    write({f"drivers/many/{name}": text for name in names}, tree)
    with (tree / "drivers/many/huge.c").open("wb") as stream:
        stream.truncate(1 << 40)
    (tree / "drivers" / "/".join(["d"] * 500)).mkdir(parents=True)
    (tree / "drivers/many/line.c").write_text(
        '#include "' + "a" * 500_000 + '\n#include "' * 50_000
    )
    assert one("drivers/many/f0.c", tree).reason == NONE
    monkeypatch.setattr(included, "_MOST_FOLDERS", 1)
    included._read_folder.cache_clear()
    assert one("lib/time.c", tree).reason == NONE


LETTERS = "abcd"


@given(
    st.dictionaries(
        st.sampled_from(LETTERS), st.lists(st.sampled_from(LETTERS), max_size=3), max_size=4
    ),
    st.sets(st.sampled_from(LETTERS)),
)
def test_what_is_reachable_from_an_object_is_compiled(
    includes: dict[str, list[str]], objects: set[str]
) -> None:
    with TemporaryDirectory() as folder:
        texts = {
            f"kernel/{user}.c": "".join(f'#include "{name}.c"\n' for name in includes.get(user, ()))
            for user in LETTERS
        }
        makefile = f"obj-y := {' '.join(f'{name}.o' for name in sorted(objects))}\n"
        tree = write(
            {"Kbuild": "obj-y += kernel/\n", "kernel/Makefile": makefile} | texts, Path(folder)
        )
        reachable = set(objects)
        for _ in LETTERS:
            reachable |= {name for user in reachable for name in includes.get(user, ())}
        found = built_files(sorted(texts), (tree,), {}, "x86_64", None)
        assert {file.name for file in found if file.built} == {
            f"kernel/{name}.c" for name in reachable
        }
