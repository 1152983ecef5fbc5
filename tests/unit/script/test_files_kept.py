from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Scripted
from kteardown.model.arch import Arch, host_arch
from kteardown.model.workload import Workload
from kteardown.progress import SilentReporter
from kteardown.script.describe import describe, write
from kteardown.script.files import script_archives


@pytest.fixture
def own(tmp_path: Path) -> dict[str, Workload]:
    script = tmp_path / "x.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    write(describe(str(script), Scripted(), {}), tmp_path / "own")
    return {"x": load_workload("x", str(tmp_path / "own"))}


def archives(own: dict[str, Workload], tmp_path: Path) -> tuple[Path, ...]:
    return script_archives(
        own, str(tmp_path / "own"), Entry(tmp_path), cast(Arch, host_arch()), SilentReporter()
    )


def test_without_a_script_there_is_no_archive(tmp_path: Path) -> None:
    assert archives({"zombies": load_workload("zombies")}, tmp_path) == ()
    assert not (tmp_path / "guest.json").exists()


def test_the_archive_of_a_run_is_used_again_without_the_script(
    own: dict[str, Workload], tmp_path: Path
) -> None:
    (made,) = archives(own, tmp_path)
    before = made.read_bytes()
    kept = json.loads((tmp_path / "guest.json").read_bytes())
    assert "/files/x.sh" in kept["files"] and b"070701" in before[:6]
    (tmp_path / "own/workloads/x.sh").unlink()
    assert archives(own, tmp_path) == (made,) and made.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", '{"archive": 3}', '{"archive": null}', "[" * 100_000, "\udcff"],
)
def test_damaged_hashes_are_named(own: dict[str, Workload], tmp_path: Path, text: str) -> None:
    archives(own, tmp_path)
    (tmp_path / "guest.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=r"guest\.(json|cpio)"):
        archives(own, tmp_path)


def test_a_damaged_archive_is_named(own: dict[str, Workload], tmp_path: Path) -> None:
    (made,) = archives(own, tmp_path)
    made.write_bytes(made.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"guest\.cpio is damaged"):
        archives(own, tmp_path)
    made.unlink()
    with pytest.raises(InputError, match=r"guest\.cpio is damaged or missing"):
        archives(own, tmp_path)
