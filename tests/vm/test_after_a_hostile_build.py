"""What a build leaves does not reach another one: a hostile patch is built, and then an honest one.

Both have one name, and make the same change of the code. The honest kernel must be the same to the
byte as in an empty cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kteardown.kernels import build, cache_folder
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.series import Selection, known_series
from kteardown.kernels.source import Sources
from kteardown.patches import posted
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from vm.test_escape import FILES, insertion, write

MARK = f"kteardown-left-{os.getpid()}"
SHIPPED = "freezer-skip-exited"
_RECIPE = """
GCC = gcc -I../include -MMD
all: bzImage
bzImage: kernel/freezer.o
	mkdir -p arch/x86/boot include/config
	ld -r -o vmlinux kernel/freezer.o
	cp vmlinux arch/x86/boot/bzImage
	echo 'ffffffff81000000 T freeze' > System.map
	echo 6.12.0 > include/config/kernel.release
kernel/freezer.o: ../kernel/freezer.c ../include/freezer.h
	mkdir -p kernel
	$(GCC) -c -o $@ $<
	echo 'source_$@ := $<' > kernel/.freezer.o.cmd
tinyconfig:
	touch .config
olddefconfig modules:
"""
TREE = {**FILES, "Makefile.build": _RECIPE}
"""A tree that compiles what is out of date, as Kbuild does."""
_CHANGE = {"include/freezer.h": "#define TIME 2\n"}
# In the sandbox: a compiler that renames the function in whatever it compiles.
_FORGE = "printf '\\043!/bin/sh\\nexec \"$@\" -Dfreeze=forged' > /tmp/forge; chmod 755 /tmp/forge; "
# Every folder to which it can write, on all file systems that it sees.
_FOLDERS = "$(find / -path /proc -prune -o -type d -writable -print 2>/dev/null)"
HOSTILE = {
    "configures ccache": _FORGE
    + "for f in $CCACHE_DIR /objects; do mkdir -p $f; rm -rf $f/*; cp /tmp/forge $f; "
    "echo prefix_command = $f/forge > $f/ccache.conf; done",
    "keeps forged results in ccache": _FORGE
    + "for f in $CCACHE_DIR /objects; do CCACHE_DIR=$f CCACHE_PREFIX=/tmp/forge CCACHE_RECACHE=1 "
    "ccache /usr/bin/gcc -I../include -MMD -c -o kernel/freezer.o ../kernel/freezer.c; done",
    "forges its objects, with times to come": _FORGE
    # Into the file, whatever else has this inode.
    + "/tmp/forge gcc -I../include -c -o /tmp/forged.o ../kernel/freezer.c; "
    "cat /tmp/forged.o > kernel/freezer.o; find . /linux -exec touch -d 2100-01-01 {} +",
    "leaves files and links everywhere": _FORGE
    + f"for f in {_FOLDERS}; do printf '\\043define TIME 3\\n' > $f/freezer.h; "
    "echo 'bzImage:' > $f/GNUmakefile; echo CONFIG_EVIL=y > $f/.config; cp /tmp/forge $f/gcc; "
    f"ln -s / $f/{MARK}; touch $f/{MARK}-2; done",
}


@dataclass(frozen=True)
class Lab:
    """A source, and the honest patch with the files of its kernel as they are made in an empty
    cache."""

    folder: Path
    source: str
    honest: Path
    base: Path
    """A cache in which only base was built."""
    alone: Mapping[str, bytes]

    def build(self, cache: Path, series: Selection) -> Path:
        """Build a series on the small tree; return the folder of its kernel."""
        base = KernelRequest("base", self.source)
        variant = KernelRequest("series", self.source, series.patches, series.label)
        built = build.ensure([base, variant], cache_dir=cache, reporter=SilentReporter())
        return built.images["series"].image.parent


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("lab")
    write(folder / "linux", TREE)
    subprocess.run(["tar", "-C", folder, "-cf", folder / "linux.tar", "linux"], check=True)
    honest = patch(folder / "honest", _CHANGE, "freezer: honest")
    empty = Lab(folder, f"tar:{folder}/linux.tar", honest, folder / "cache", {})
    kernel = empty.build(empty.base, resolve(honest, empty.base))
    alone = files_of(kernel)
    shutil.rmtree(kernel)
    return replace(empty, alone=alone)


@pytest.fixture
def cache(lab: Lab, tmp_path: Path) -> Path:
    """A cache in which only base was built, for one test."""
    subprocess.run(["cp", "-a", lab.base, tmp_path / "cache"], check=True)
    return tmp_path / "cache"


def patch(folder: Path, changes: Mapping[str, str], subject: str = "freezer: a change") -> Path:
    """Write a mail with a patch that makes ``changes``: file names with their new text."""
    for side, texts in (("a", TREE), ("b", {**TREE, **changes})):
        write(folder / side, {name: texts[name] for name in changes if name in texts})
    diff = subprocess.run(
        ["diff", "-urN", "a", "b"], cwd=folder, capture_output=True, text=True, check=False
    )
    made = folder / "v2.patch"
    head = (
        f"From: {folder.name} <{folder.name}@example.org>\nMessage-ID: "
        f"<{folder.name}@example.org>\n"
    )
    made.write_text(f"{head}Subject: [PATCH] {subject}\n\ntext\n---\n{diff.stdout}")
    return made


def of_makefile(folder: Path, script: str, subject: str = "freezer: a change") -> Path:
    """Write a mail with a patch whose makefile runs ``script`` before anything is compiled."""
    text = f"$(shell {script.replace('$', '$$')})\n{_RECIPE}"
    return patch(folder, {**_CHANGE, "Makefile.build": text}, subject)


def resolve(what: Path, cache: Path) -> Selection:
    """What the command line makes of the path of a series."""
    return posted.resolve(str(what), cache_dir=cache)


def of_mail(mail: Path, cache: Path) -> Selection:
    """What ``try`` makes of a mail."""
    read = posted.read_series(str(mail), cache_dir=cache, reporter=SilentReporter())
    return posted.resolve(str(read.folder), cache_dir=cache)


def files_of(kernel: Path) -> dict[str, bytes]:
    """The files of a kernel in the cache, without the time that its build took."""
    found = {path.name: path.read_bytes() for path in kernel.iterdir()}
    described = json.loads(found["kernel.json"])
    del described["seconds"]
    return {**found, "kernel.json": json.dumps(described).encode()}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_patch_changes_nothing_of_an_honest_one(
    lab: Lab, cache: Path, tmp_path: Path, what: str
) -> None:
    hostile = resolve(of_makefile(tmp_path / "hostile", HOSTILE[what]), cache)
    honest = resolve(lab.honest, cache)
    assert honest.label == hostile.label
    lab.build(cache, hostile)
    assert files_of(lab.build(cache, honest)) == lab.alone
    assert not list(cache.rglob(f"{MARK}*"))


def test_two_mails_with_one_subject_share_nothing(lab: Lab, cache: Path, tmp_path: Path) -> None:
    script = HOSTILE["configures ccache"]
    hostile = of_mail(of_makefile(tmp_path / "hostile", script, "freezer: honest"), cache)
    honest = of_mail(lab.honest, cache)
    assert hostile.label == honest.label and hostile.patches[0].name == honest.patches[0].name
    lab.build(cache, hostile)
    assert without_label(files_of(lab.build(cache, honest))) == without_label(lab.alone)


def test_a_mail_with_the_name_of_a_shipped_series_shares_nothing(
    lab: Lab, cache: Path, tmp_path: Path
) -> None:
    assert SHIPPED in {series.name for series in known_series()}
    script = HOSTILE["configures ccache"]
    hostile = of_mail(of_makefile(tmp_path / "hostile", script, SHIPPED), cache)
    # The patch in place of that of the series, which is not for this tree.
    (tmp_path / SHIPPED).mkdir()
    shutil.copy(lab.honest, tmp_path / SHIPPED / "0001-honest.patch")
    honest = resolve(tmp_path / SHIPPED, cache)
    assert hostile.label == honest.label == SHIPPED
    lab.build(cache, hostile)
    assert without_label(files_of(lab.build(cache, honest))) == without_label(lab.alone)


def without_label(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a kernel, whatever its series is called."""
    described = json.loads(files["kernel.json"])
    del described["image"]["series"]
    return {**files, "kernel.json": json.dumps(described).encode()}


_CONFIGURED = (
    "for f in $CCACHE_DIR /objects; do mkdir -p $f; "
    """printf 'static const char canary[] __attribute__((used)) = "canary";' > $f/evil.h; """
    """printf '\\043!/bin/sh\\nexec "$@" -include '$f'/evil.h' > $f/evil; chmod 755 $f/evil; """
    "echo prefix_command = $f/evil > $f/ccache.conf; done"
)


@pytest.mark.full
@pytest.mark.build
def test_a_whole_kernel_after_a_hostile_one_is_that_of_an_empty_cache(tmp_path: Path) -> None:
    base = KernelRequest("base", "debian:6.12")
    built = build.ensure([base], cache_dir=cache_dir(), reporter=SilentReporter())
    key = built.images["base"].image.parent.name
    sources = Sources(cache_dir(), SilentReporter())
    tree = sources.tree(sources.identify(base.source))
    before = (
        (tree / "kernel/freezer.c").read_text().partition('\tpr_debug("%s entered refrigerator')[0]
    )
    forge = f"$(shell {_CONFIGURED.replace('$', '$$')})\n"
    diffs = {
        "hostile": insertion(tree, "kernel/power/Makefile", 3, forge),
        "honest": insertion(
            tree, "kernel/freezer.c", before.count("\n") + 1, "\tcond_resched();\n"
        ),
    }
    kernels = []
    for name in ("used", "empty"):
        cache = tmp_path / name
        for folder in ("kernels", "kernels/.digests", "trees"):
            (cache / folder).mkdir(parents=True)
            subprocess.run(["cp", "-a", cache_dir() / folder / key, cache / folder], check=True)
        for folder in ("sources", "answers"):
            (cache / folder).symlink_to(cache_dir().absolute() / folder)
        lab = Lab(tmp_path, base.source, Path(), cache, {})
        for author in ("hostile", "honest") if name == "used" else ("honest",):
            mail = cache / author / "v2.patch"
            mail.parent.mkdir()
            mail.write_text(f"Subject: [PATCH] freezer: a change\n\ntext\n---\n{diffs[author]}")
            kernel = lab.build(cache, resolve(mail, cache))
        kernels.append(files_of(kernel))
        cache_folder.remove(cache / "trees")
    # Two programs run at once, so the lines are in another order each time.
    logs = [sorted(files.pop("build.log").splitlines()) for files in kernels]
    assert kernels[0] == kernels[1]
    assert logs[0] == logs[1]
