"""The tables of finds in pages."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import confirm
import hunts
from kteardown import hunt
from kteardown.hunt.result import CaseResult, Find, FunctionResult, GrowthResult, HuntResult, OwnersResult

PAGE = "before\n<!-- hunt: one -->\nold\n<!-- end of hunt -->\nafter\n"
GROWTH = GrowthResult(
    verdict="superlinear", reason="", exponent=1.9, sizes=(10, 20), costs=(50.0, 200.0), confirmed=True
)
FUNCTION = FunctionResult(name="walk", share=0.9, exponent=1.9, callers=(), no_interrupts=0.0, place="walk()")


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
    for command in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]):
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
    hunts.keep(tmp_path, "one", file)
    return tmp_path


def test_the_finds_are_between_the_comments_and_nothing_else_changes(root: Path) -> None:
    page = hunts.spliced(root, PAGE)
    assert page.startswith(
        "before\n<!-- hunt: one -->\n1 kind in 1 way of release on 6.12.1: 1 find, whose cost grows"
    )
    assert page.endswith("<!-- end of hunt -->\nafter\n")
    assert "| flocks, exit (+3) | release |" in page
    assert "\n- flocks, exit: leases (exit, random), ofd_locks (exit)\n" in page
    assert "`kteardown hunt --against debian-image:7.2` (6.12.1" in page
    assert hunts.spliced(root, page) == page


def test_kinds_that_are_no_finds_are_shown_where_the_page_asks_for_them(root: Path) -> None:
    asking = PAGE.replace("one -->", "one with all kinds -->")
    page = hunts.spliced(root, asking)
    assert "\n<!-- hunt: one with all kinds -->\n" in page
    assert "| files | flocks | exit |" in page
    assert hunts.spliced(root, page) == page
    assert "| files |" not in hunts.spliced(root, PAGE)


def test_in_short_the_page_has_the_counts_and_what_other_kernels_do_not_have(root: Path) -> None:
    asking = PAGE.replace("one -->", "one in short -->")
    page = hunts.spliced(root, asking)
    assert "\nFinds: 1 (1 about the release), merged from 4 superlinear costs. " in page
    file = root / "results" / "one" / "hunt.json"
    result = HuntResult.model_validate_json(file.read_bytes())
    other = GROWTH.model_copy(update={"verdict": "linear"})
    find = result.finds[0].model_copy(update={"elsewhere": {"new": other, "old": GROWTH}})
    update = {"finds": (find,), "against": ("old", "new", "older")}
    file.write_text(result.model_copy(update=update).model_dump_json())
    page = hunts.spliced(root, asking)
    assert " Superlinear on old, new and older too, as far as that could be measured: 0 of the 1" in page
    assert "| flocks, exit | release | superlinear | linear | not measured |" in page
    assert hunts.spliced(root, page) == page


def test_releases_by_several_processes_are_shown_where_the_page_asks_for_them(root: Path) -> None:
    asking = PAGE.replace("one -->", "one of several processes -->")
    assert "were measured by one process only" in hunts.spliced(root, asking)
    file = root / "results" / "one" / "hunt.json"
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
    )
    wait = both.model_copy(update={"way": "random", "ratio": 1.9, "ci": (1.8, 2.0), "verdict": "serial"})
    file.write_text(result.model_copy(update={"owners": (both, wait)}).model_dump_json())
    page = hunts.spliced(root, asking)
    assert "| flocks, random | 2 | 10 | 1.90 [1.80, 2.00] | serial | linear |" in re.sub(" +", " ", page)
    assert "| flocks, exit |" not in page
    assert "\nAll: 1 parallel, 1 serial; " in page
    file.write_text(result.model_copy(update={"owners": (both,)}).model_dump_json())
    page = hunts.spliced(root, asking)
    assert "|" not in page and "\nAll: 1 parallel; " in page


@pytest.mark.parametrize(
    ("name", "moved"),
    [
        ("agent/hunt/kinds/flocks.c", ["agent"]),
        ("agent/core/trial.c", ["agent"]),
        ("agent/lib/lockstat.c", ["agent"]),
        ("agent/hunt/kinds/other.c", []),
        ("agent/core/main.c", []),
    ],
)
def test_a_hunt_is_older_after_a_change_of_what_its_guests_run(
    root: Path, name: str, moved: list[str]
) -> None:
    page = hunts.spliced(root, PAGE)
    (root / name).write_text("int x, y;\n")
    (one,) = hunts.hunts(root)
    assert (one.moved, one.state) == (moved, "older" if moved else "current")
    assert hunts.spliced(root, page) == page


def test_a_hunt_is_older_after_a_change_of_its_rules(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunt, "RULES", hunt.RULES + 1)
    (one,) = hunts.hunts(root)
    assert one.moved == ["rules"]


def test_a_hunt_belongs_to_a_commit_and_an_agent(root: Path) -> None:
    (one,) = hunts.hunts(root)
    assert one.measured is not None
    assert (one.measured.agent, one.measured.kernels) == ("a", {"debian-image:6.12": "b"})
    assert f"at {one.measured.commit}," in hunts.spliced(root, PAGE)


def test_what_was_never_measured_is_said_to_be(tmp_path: Path) -> None:
    assert "**Not measured** yet." in hunts.spliced(tmp_path, PAGE)


def test_a_column_has_what_the_programs_showed(root: Path) -> None:
    run = hunts.ProgramRun((5, 10, 20), (1.0, 2.0, 4.0), (1.0, 3.0, 11.1))
    hunts.keep_programs(root, "one", {"flocks, exit": run})
    page = hunts.spliced(root, PAGE)
    assert "its program |" in page and "its program: by how much" in page
    assert "3.70 times |" in page


def test_a_program_that_failed_says_why(root: Path) -> None:
    hunts.keep_programs(root, "one", {"flocks, exit": hunts.ProgramRun(failure="status 1")})
    assert "status 1 |" in hunts.spliced(root, PAGE)


@pytest.mark.parametrize(("cost", "expected"), [("make", 2.0), ("sync", 3.7), (None, 3.7)])
def test_growth_is_that_of_the_last_doubling(cost: str | None, expected: float) -> None:
    run = hunts.ProgramRun((5, 10, 20), (1.0, 2.0, 4.0), (1.0, 3.0, 11.1))
    assert run.growth(cost) == pytest.approx(expected)
    assert run.growth("deferred") is None
    assert run.growth("held") is None
    assert hunts.ProgramRun(failure="x").growth(cost) is None


@pytest.mark.parametrize(("last", "state"), [(200.0, "equal"), (205.0, "within"), (100.0, "stale")])
def test_a_find_holds_if_its_cost_grows_as_published(root: Path, last: float, state: str) -> None:
    (root / "agent/core/trial.c").write_text("int x, y;\n")
    (one,) = hunts.hunts(root)
    (find,) = one.result.finds
    growth = GROWTH.model_copy(update={"exponent": 2.0, "exponent_ci": (1.99, 2.01)})
    found = one.result.model_copy(update={"finds": (find.model_copy(update={"growth": growth}),)})
    vars(one)["result"] = found
    values = {"exit 10 sync_ns": 50.0, "exit 20 sync_ns": last}
    assert confirm.judged(one, {"flocks": confirm.Counted(values, "", 1)})[0] == state
