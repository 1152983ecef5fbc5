"""What the user's own scripts execute is known of their contents."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.cli.rows import covering
from kteardown.coverage.attribute import Counts, FunctionId
from kteardown.coverage.executed import count_script
from kteardown.coverage.maps import (
    CoverageMap,
    PointCoverage,
    WorkloadCoverage,
    map_of,
    own_scripts,
    shipped_map,
    with_own,
    write_map,
)
from kteardown.coverage.propose import matching
from kteardown.flows.scripts import is_own
from kteardown.flows.try_series.choose import choose_workloads
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Designed, Scripted
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source import Sources
from kteardown.patches.tried_source import Base
from kteardown.progress import Reporter
from kteardown.run.resolve import experiment_of_script
from kteardown.script.describe import Described, describe, with_files, write

PUT = FunctionId("mm/shmem.c", "shmem_put_super")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Described:
    """Of ./workloads, with a map of what it executes at N=20."""
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mounts.sh").write_text("for i in $(seq $N); do :; done\n")
    write(describe("./mounts.sh", Scripted(), {"N": (20, 40)}), tmp_path)
    described = with_files(load_workload("mounts", str(tmp_path)), tmp_path)
    point = PointCoverage({"N": 20}, 1000, {PUT: Counts(20, 100)})
    counted = WorkloadCoverage("mounts", (point,), frozenset())
    write_map(map_of(described), CoverageMap("debian:6.12.117-1", {"mounts": counted}))
    return described


def test_a_script_is_beside_the_shipped_workloads(script: Described, tmp_path: Path) -> None:
    coverage, missing = with_own(shipped_map("debian:6.12"), tmp_path)
    assert missing == []
    assert coverage.workloads.keys() - shipped_map("debian:6.12").workloads.keys() == {"mounts"}
    (row, *others) = covering(matching(str(PUT), coverage), coverage)
    assert (row["name"], row["point"], row["calls"], row["share"]) == ("mounts", "N=20", 20, 0.1)
    assert all(other["only_outside"] for other in others)


def test_a_script_that_was_changed_was_not_counted(script: Described, tmp_path: Path) -> None:
    (tmp_path / "workloads/mounts.sh").write_text("true $N\n")
    coverage, missing = with_own(shipped_map("debian:6.12"), tmp_path)
    assert missing == ["mounts"] and "mounts" not in coverage.workloads


def test_what_cannot_be_read_is_left_out(script: Described, tmp_path: Path) -> None:
    (tmp_path / "workloads/broken.toml").write_text("name = ")
    (tmp_path / "workloads/gone.toml").write_text(
        (tmp_path / "workloads/mounts.toml").read_text().replace("mounts", "gone")
    )
    map_of(script).write_bytes(b"damaged")
    assert own_scripts(tmp_path) == ["gone", "mounts"]
    assert with_own(CoverageMap("x"), tmp_path) == (CoverageMap("x"), ["gone", "mounts"])


def test_try_proposes_a_script_that_executes_what_is_changed(
    script: Described, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "linux"
    (tree / "mm").mkdir(parents=True)
    (tree / "mm/shmem.c").write_text("static void shmem_put_super(int sb)\n{\n\tfree(sb);\n}\n")
    patch = tmp_path / "0001.patch"
    patch.write_text(
        "--- a/mm/shmem.c\n+++ b/mm/shmem.c\n@@ -1,4 +1,4 @@\n static void shmem_put_super(int "
        "sb)\n {\n"
        "-\tfree(sb);\n+\tfree(sb, 1);\n }\n"
    )
    sources = Sources(tmp_path / "cache", Reporter())
    monkeypatch.setattr(Sources, "identify", lambda self, source: source)
    monkeypatch.setattr(Sources, "tree", lambda self, source: tree)
    base = Base("debian:6.12", "debian:6.12.117-1", "exactly", (patch,), ())
    chosen = choose_workloads((), base, sources, Designed(), {})
    (choice,) = chosen.workloads
    assert choice.workload == "mounts" and choice.why.startswith("executes shmem_put_super")
    assert is_own("mounts") and is_own("./x.sh") and not is_own("zombies")
    (tmp_path / "workloads/mounts.sh").write_text("true $N\n")
    chosen = choose_workloads((), base, sources, Designed(), {})
    assert not chosen.workloads
    assert (
        "kteardown does not know what these scripts in ./workloads execute: mounts." in chosen.notes
    )


def test_a_kernel_without_debug_information_is_no_error(script: Described, tmp_path: Path) -> None:
    said: list[str] = []

    class Notes(Reporter):
        def note(self, text: str) -> None:
            said.append(text)

    map_of(script).unlink()
    image = KernelImage(
        "base", tmp_path / "bzImage", "image:x", "", "x86_64", "6.12", "gcc", "", ""
    )
    experiment = experiment_of_script("mounts", "debian:6.12", tmp_path)
    count_script(image, script, experiment, {"N": 20}, Notes())
    assert len(said) == 1
    assert said[0].startswith(
        "kteardown could not count which functions mounts executes: the kernel in"
    )
