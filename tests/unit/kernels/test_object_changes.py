from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import BuildError
from kteardown.kernels.object_changes import changed_objects

TEXT = """int printf(const char *, ...);
static int twice(int n) { return 2 * n; }
int run(int n) { return printf("%d", twice(n)); }
"""


def build(folder: Path, text: str, *options: str, age: int = 0) -> Path:
    """Compile one object as Kbuild does, with the file that names its source."""
    (folder / "mm").mkdir(parents=True)
    source = folder / "one.c"
    source.write_text(text)
    output = folder / "mm" / "one.o"
    subprocess.run(
        ["gcc", "-O1", "-g1", "-c", *options, "one.c", "-o", str(output)], check=True, cwd=folder
    )
    (folder / "mm" / ".one.o.cmd").write_text(
        "savedcmd_mm/one.o := gcc\n\nsource_mm/one.o := ../mm/one.c\n"
    )
    os.utime(output, ns=(age, age))
    return folder


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (TEXT, []),
        ("/* A comment that moves every line. */\n\n" + TEXT, []),
        (TEXT.replace("2 * n", "3 * n"), ["mm/one.o"]),
        (TEXT.replace('"%d"', '"%x"'), ["mm/one.o"]),
        (TEXT.replace("printf", "another"), ["mm/one.o"]),
        (TEXT + "int more[3] = {1, 2, 3};\n", ["mm/one.o"]),
        (TEXT + "static int unused(void) { return 1; }\n", []),
    ],
)
def test_only_what_runs_counts(text: str, changed: list[str], tmp_path: Path) -> None:
    base, variant = build(tmp_path / "base", TEXT), build(tmp_path / "variant", text, age=1)
    assert changed_objects(base, variant) == changed


@pytest.mark.parametrize(
    "name",
    [
        "__initcall__kmod_one__3_{}_run6",
        "__initcall__kmod_one__{}_70_run6",
        "__UNIQUE_ID_addressable_run_{}",
        "__UNIQUE_ID_license{}",
        "x__UNIQUE_ID_2a_license{}",
    ],
)
def test_the_numbers_in_names_do_not_count(name: str, tmp_path: Path) -> None:
    one, other = (TEXT + f"int {name.format(number)};\n" for number in (99, 100))
    base, variant = build(tmp_path / "base", one), build(tmp_path / "variant", other, age=1)
    assert changed_objects(base, variant) == []


def test_the_numbers_of_static_variables_do_not_count(tmp_path: Path) -> None:
    """GCC counts all that it declares: once.1 becomes once.3 if a header declares more."""
    local = "int more(void) { static int once; return once++; }\n"
    base = build(tmp_path / "base", TEXT + local)
    variant = build(tmp_path / "variant", "extern int a, b;\nint c(int);\n" + TEXT + local, age=1)
    assert changed_objects(base, variant) == []


def test_an_object_that_only_one_kernel_has_differs(tmp_path: Path) -> None:
    base, variant = build(tmp_path / "base", TEXT), tmp_path / "variant"
    variant.mkdir()
    assert changed_objects(base, variant) == ["mm/one.o"]


def test_an_object_that_was_not_compiled_again_is_not_read(tmp_path: Path) -> None:
    base = build(tmp_path / "base", TEXT)
    shutil.copytree(base, tmp_path / "variant")
    assert changed_objects(base, tmp_path / "variant") == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["__UNIQUE_ID_1" * 20_000 + "x", "__initcall__kmod_" * 20_000])
def test_a_long_name_takes_little_time(name: str, tmp_path: Path) -> None:
    text = f"{TEXT}int {name};\n"
    base, variant = build(tmp_path / "base", TEXT), build(tmp_path / "variant", text, age=1)
    assert changed_objects(base, variant) == ["mm/one.o"]


@pytest.mark.parametrize(
    "name", ["-o.o", "\x1b[31m.o", "a\nb.o", "@all.o", "x" * 240 + ".o", "\udcff.o"]
)
def test_an_object_has_a_name_that_can_be_shown(name: str, tmp_path: Path) -> None:
    base, variant = build(tmp_path / "base", TEXT), build(tmp_path / "variant", TEXT, age=1)
    shutil.copy(variant / "mm/one.o", variant / name)
    shutil.copy(variant / "mm/.one.o.cmd", variant / f".{name}.cmd")
    with pytest.raises(BuildError, match="the build made an object named '") as caught:
        changed_objects(base, variant)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 300
