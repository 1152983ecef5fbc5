"""Each C file that a series touches is compiled, and with a clang that is new enough for the
source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from series_form import _llvm, _object_of, _oldest_clang, _sign_off


@pytest.mark.parametrize(
    ("oldest", "llvm"),
    [("13.0.1", "1"), ("14.0.6", "1"), ("14.0.7", "-16"), ("17.0.1", "-19"), ("20.1.0", "")],
)
def test_the_first_clang_that_is_new_enough_is_used(
    oldest: str, llvm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"": "14.0.6", "-16": "16.0.6", "-18": "18.1.8", "-19": "19.1.7"}
    for suffix, version in versions.items():
        for tool in ("clang", "ld.lld"):
            (tmp_path / f"{tool}{suffix}").write_text(f"#!/bin/sh\necho {version}\n")
            (tmp_path / f"{tool}{suffix}").chmod(0o755)
    # A clang without its linker cannot build a kernel.
    (tmp_path / "ld.lld-18").unlink()
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(
        "shutil.which", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None
    )
    assert _llvm(oldest) == llvm


def test_the_source_says_which_clang_is_the_oldest(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    script = 'case "$1-$SRCARCH" in llvm-x86) echo 17.0.1;; *) exit 1;; esac\n'
    (tmp_path / "scripts/min-tool-version.sh").write_text(script)
    assert _oldest_clang(tmp_path) == "17.0.1"


def test_a_file_that_another_one_includes_is_compiled_as_its_part(tmp_path: Path) -> None:
    (tmp_path / "sched").mkdir()
    (tmp_path / "sched/build.c").write_text('#ifdef CONFIG_PSI\n# include "psi.c"\n#endif\n')
    (tmp_path / "sched/fair.c").write_text('/* not "psi.c" */\n#include "sched.h"\n')
    found = [_object_of(f"sched/{name}.c", tmp_path) for name in ("psi", "fair", "new")]
    assert found == ["sched/build.o", "sched/fair.o", "sched/new.o"]


def test_a_shipped_series_is_a_proposal_until_a_person_signs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    patch = tmp_path / "0001-x.patch"
    patch.write_text("Signed-off-by: kteardown developers <kteardown@localhost>\n")
    assert "set `git config user.name`" in _sign_off([patch])
    (tmp_path / "gitconfig").write_text("[user]\nname = A Person\n")
    assert "A Person may take it over" in _sign_off([patch])
    patch.write_text("Signed-off-by: A Person <a@example.org>\n")
    assert _sign_off([patch]) == "sign-off: of a person"
