from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.patches.config_of_series import TouchedFile, built_files

TREE = {
    "Kbuild": "obj-y += arch/x86/ drivers/\n",
    # The top Makefile includes this one: folders are named from the top.
    "arch/x86/Makefile": "libs-y += arch/x86/lib/\ndrivers-$(CONFIG_PCI) += arch/x86/pci/\n",
    "arch/x86/lib/Makefile": "lib-y := usercopy.o\nlib-$(CONFIG_DECODER) += insn.o\n",
    "arch/x86/pci/Makefile": "obj-y := common.o\n",
    "arch/x86/Kbuild": "obj-y += entry/ realmode/\n",
    # Rules link the boot code and the vDSO.
    "arch/x86/boot/Makefile": "subdir- := compressed\n"
    "setup-y += main.o\nsetup-$(CONFIG_APM) += apm.o\ntargets += $(setup-y)\n",
    "arch/x86/boot/compressed/Makefile": "vmlinux-objs-y := $(obj)/misc.o\n"
    "targets += $(patsubst $(obj)/%,%,$(vmlinux-objs-y)) vmlinux.relocs\n",
    "arch/x86/entry/Makefile": "obj-y += vdso64/\n",
    "arch/x86/entry/vdso64/Makefile": "vobjs-y := vgetcpu.o\n"
    "include $(src)/../common/Makefile.include\n",
    "arch/x86/entry/common/Makefile.include": "targets += $(vobjs-y)\n",
    "arch/x86/realmode/Makefile": "subdir- := rm\n",
    "arch/x86/realmode/rm/Makefile": "wakeup-objs := wake.o\n"
    "realmode-$(CONFIG_SLEEP) += $(wakeup-objs)\ntargets += $(realmode-y)\n",
    # A list of Kbuild needs a symbol, whatever the targets of rules are.
    "drivers/Makefile": "obj-$(CONFIG_FOO) += foo.o\ntargets += foo.o\ninclude $(src)/in/Kbuild\n",
    "drivers/in/Kbuild": "obj-$(CONFIG_IN) += in/in.o\ninclude $(src)/in/deep/Kbuild\n",
    "drivers/in/deep/Kbuild": "obj-$(CONFIG_DEEP) += in/deep/deep.o\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    return tmp_path / "tree"


def one(name: str, tree: Path, *symbols: str) -> TouchedFile:
    (found,) = built_files([name], (tree,), dict.fromkeys(symbols, "y"), "x86_64", None)
    return found


@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("arch/x86/lib/usercopy.c", ()),
        ("arch/x86/lib/insn.c", ("DECODER",)),
        ("arch/x86/pci/common.c", ("PCI",)),
        ("arch/x86/boot/main.c", ()),
        ("arch/x86/boot/apm.c", ("APM",)),
        ("arch/x86/boot/compressed/misc.c", ()),
        ("arch/x86/entry/vdso64/vgetcpu.c", ()),
        ("arch/x86/realmode/rm/wake.S", ("SLEEP",)),
        ("drivers/foo.c", ("FOO",)),
        ("drivers/in/in.c", ("IN",)),
        ("drivers/in/deep/deep.c", ("DEEP",)),
    ],
)
def test_what_makefiles_build_in_their_other_ways(
    name: str, symbols: tuple[str, ...], tree: Path
) -> None:
    found = one(name, tree)
    assert (found.built, found.symbols, found.reason) == (not symbols, symbols, "")
    assert one(name, tree, *symbols).built


@pytest.mark.parametrize(
    "line", ["include $(src)/../../../out/Kbuild", "include $(srctree)/../out/Kbuild"]
)
def test_no_makefile_outside_of_the_tree_is_included(line: str, tree: Path) -> None:
    (tree.parent / "out").mkdir()
    (tree.parent / "out/Kbuild").write_text("obj-y += x.o\n")
    (tree / "drivers/in/Makefile").write_text("")
    (tree / "drivers/Makefile").write_text(f"obj-y += in/\n{line}\n")
    assert not one("drivers/x.c", tree).built
