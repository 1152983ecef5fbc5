"""The tables of finds."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import boots
import hunts
import keeping
from kteardown_hunt.result import (
    CaseResult,
    Find,
    FunctionResult,
    GrowthResult,
    HuntResult,
    OwnersResult,
)

GROWTH = GrowthResult(
    verdict="superlinear",
    reason="",
    exponent=1.9,
    sizes=(10, 20),
    costs=(50.0, 200.0),
    confirmed=True,
)
FUNCTION = FunctionResult(
    name="walk", share=0.9, exponent=1.9, callers=(), no_interrupts=0.0, place="walk()"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in (
        "hunt/kinds/flocks.c",
        "hunt/kinds/other.c",
        "core/trial.c",
        "core/main.c",
        "lib/lockstat.c",
    ):
        file = tmp_path / "agent" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("int x;\n")
    (tmp_path / "agent/hunt/hunt.c").write_text('#include "lib/lockstat.h"\n')
    for command in (
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    find = Find(
        kind="flocks",
        way="exit",
        user="root",
        object="file",
        cost="sync",
        growth=GROWTH,
        function=FUNCTION,
        also=("leases, random", "ofd_locks, exit", "leases, exit"),
    )
    case = CaseResult(
        kind="flocks",
        part="files",
        object="file",
        shape="on one",
        way="exit",
        user="root",
        growth={"sync": GROWTH},
        idle_ns=0,
        bystanders={"irqs_off_ns": 1000},
    )
    result = HuntResult(
        kteardown="0",
        command="kteardown hunt --json file --against debian-image:7.2",
        source="debian-image:6.12",
        release="6.12.1",
        against=(),
        agent_hash="a",
        image_hashes={"debian-image:6.12": "b"},
        measured_s=120,
        kinds=1,
        cases=(case,),
        finds=(find,),
    )
    file = tmp_path / "result.json"
    file.write_text(result.model_dump_json())
    keeping.keep_hunt(tmp_path, "one", file)
    return tmp_path


def page(root: Path) -> str:
    return "\n\n".join(hunts.page(root, "one"))


def table(root: Path, name: str) -> str:
    return "\n\n".join(hunts.tables(root)["one", name])


def test_the_page_of_a_hunt_has_its_finds_and_every_other_way(root: Path) -> None:
    text = page(root)
    assert text.startswith("1 kind in 1 way of release on 6.12.1: 1 find, whose cost grows")
    assert "| flocks, exit (+3) | release |" in text
    assert "\n- flocks, exit: leases (exit, random), ofd_locks (exit)\n" in text
    assert "`kteardown hunt --against debian-image:7.2` (6.12.1" in text
    assert "| files | flocks | exit |" in text
    assert "Several processes" not in text


def test_in_short_a_text_has_the_counts_and_what_other_kernels_do_not_have(root: Path) -> None:
    assert table(root, "short").startswith(
        "Finds: 1 (1 about the release), merged from 4 superlinear costs. "
    )
    file = root / "findings/results/one/hunt.json"
    result = HuntResult.model_validate_json(file.read_bytes())
    other = GROWTH.model_copy(update={"verdict": "linear"})
    find = result.finds[0].model_copy(update={"elsewhere": {"new": other, "old": GROWTH}})
    update = {"finds": (find,), "against": ("old", "new", "older")}
    file.write_text(result.model_copy(update=update).model_dump_json())
    text = table(root, "short")
    assert (
        " Superlinear on old, new, older too, as far as that could be measured: 0 of the 1" in text
    )
    assert "| flocks, exit | release | superlinear | linear | not measured |" in text


def test_the_releases_by_several_processes_are_a_table_of_their_own(root: Path) -> None:
    assert "were measured by one process only" in table(root, "processes")
    file = root / "findings/results/one/hunt.json"
    result = HuntResult.model_validate_json(file.read_bytes())
    both = OwnersResult(
        kind="flocks",
        way="exit",
        user="root",
        owners=2,
        objects=10,
        boots=5,
        ratio=1.1,
        ci=(1.0, 1.2),
        verdict="parallel",
        alone="linear",
        moves_each=6.5,
        locked_each=2.0,
        asleep_share=1.0,
    )
    wait = both.model_copy(
        update={"way": "random", "ratio": 1.9, "ci": (1.8, 2.0), "verdict": "serial"}
    )
    file.write_text(result.model_copy(update={"owners": (both, wait)}).model_dump_json())
    text = table(root, "processes")
    row = "| 2 | 10 | 1.90 [1.80, 2.00] | serial | 6.5 | 2 | sleeps (100.0%) | linear |"
    assert f"| flocks, random {row}" in re.sub(" +", " ", text)
    assert "| flocks, exit |" not in text
    assert "\nAll: 1 parallel, 1 serial; " in text
    assert "## Several processes" in page(root)
    file.write_text(result.model_copy(update={"owners": (both,)}).model_dump_json())
    text = table(root, "processes")
    assert "|" not in text and "All: 1 parallel; " in text


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("agent/hunt/kinds/flocks.c", ("agent/hunt/kinds/flocks.c",)),
        ("agent/core/trial.c", ("agent/core",)),
        ("agent/lib/lockstat.c", ("agent/lib",)),
        ("agent/hunt/kinds/other.c", ()),
    ],
)
def test_a_change_of_what_its_guests_run_is_named(
    root: Path, name: str, changed: tuple[str, ...]
) -> None:
    before = page(root)
    (root / name).write_text("int x, y;\n")
    (hunt,) = hunts.hunts(root)
    assert hunt.changed == changed
    assert page(root) == before


def test_a_hunt_belongs_to_a_commit(root: Path) -> None:
    (hunt,) = hunts.hunts(root)
    assert hunt.measured is not None
    assert hunt.measured.kernels == {"debian-image:6.12": "b"}
    assert hunt.command == "kteardown hunt --against debian-image:7.2"
    assert f"at {hunt.measured.commit}," in page(root)


def test_a_column_has_what_the_programs_showed(root: Path) -> None:
    run = hunts.ProgramRun((5, 10, 20), (1.0, 2.0, 4.0), (1.0, 3.0, 11.1))
    hunts.keep_programs(root, "one", {"flocks, exit": run})
    text = page(root)
    assert "its program |" in text and "its program: by how much" in text
    assert "3.70 times |" in text


def test_a_program_that_failed_says_why(root: Path) -> None:
    hunts.keep_programs(root, "one", {"flocks, exit": hunts.ProgramRun(failure="status 1")})
    assert "status 1 |" in page(root)


@pytest.mark.parametrize(("cost", "expected"), [("make", 2.0), ("sync", 3.7), (None, 3.7)])
def test_growth_is_that_of_the_last_doubling(cost: str | None, expected: float) -> None:
    run = hunts.ProgramRun((5, 10, 20), (1.0, 2.0, 4.0), (1.0, 3.0, 11.1))
    assert run.growth(cost) == pytest.approx(expected)
    assert run.growth("deferred") is None
    assert run.growth("held") is None
    assert hunts.ProgramRun(failure="x").growth(cost) is None


def test_the_costs_of_a_find_are_compared_to_the_digit(root: Path) -> None:
    (hunt,) = hunts.hunts(root)
    assert boots.kinds_of(hunt.result) == ["flocks"]
    kept = boots.digits_of_hunt(hunt.result, ["flocks"])
    assert kept == {"flocks, exit, sync": {"10": 50.0, "20": 200.0}}
    assert boots.digits_of_hunt(hunt.result, ["leases"]) == {}
