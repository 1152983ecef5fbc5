"""Skeletons work unchanged: they load, plan, compile, are formatted and apply."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.load import load_experiment, load_workload, own_sources, workload_names
from kteardown.inputs.options import Overrides, apply
from kteardown.kernels import apply_patches
from kteardown.kernels.series import resolve
from kteardown.model.point import points_of
from kteardown.paths import data_dir
from kteardown.progress import SilentReporter
from kteardown.run.resolve import experiment_for
from kteardown.vm.agent import build_agent
from unit.cli.test_main import kteardown as called_here
from unit.kernels.test_git_branch import git
from unit.vm.few_workloads import copy_agent


def kteardown(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kteardown in ``folder``, which is not in a checkout, as an installed copy runs."""
    folder.mkdir(exist_ok=True)
    return called_here(*arguments, home=folder.parent, cwd=folder)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, now the current one, with a skeleton of each kind."""
    folder = tmp_path / "mine"
    for arguments in (
        ("workload", "unmap_all"),
        ("experiment", "unmapping", "--workload", "unmap_all"),
        ("series", "my-change"),
    ):
        done = kteardown(folder, "new", *arguments)
        assert done.returncode == 0, done.stderr
        assert "try it: kteardown" in done.stdout
    monkeypatch.chdir(folder)
    return folder


def test_every_file_is_in_its_folder(mine: Path) -> None:
    made = {str(path.relative_to(mine)) for path in mine.rglob("*") if path.is_file()}
    assert made == {
        "agent/workloads/unmap_all.c",
        "workloads/unmap_all.toml",
        "experiments/unmapping.toml",
        "series/my-change/0000-cover-letter.md",
        "series/my-change/0001-exit-say-what-is-replaced-here.patch",
    }
    assert not any("skeleton" in path.read_text() for path in mine.rglob("*.toml"))


def test_a_series_is_signed_off_by_the_person_that_git_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    unknown = kteardown(tmp_path, "new", "series", "unknown")
    assert "git config user.name" in unknown.stdout
    (tmp_path / "gitconfig").write_text("[user]\nname = A \\\\1 Person\nemail = a@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    known = kteardown(tmp_path, "new", "series", "known")
    assert known.returncode == 0 and "git config" not in known.stdout
    for name, person in (
        ("unknown", "kteardown developers <"),
        ("known", "A \\1 Person <a@example.org>"),
    ):
        (patch,) = (tmp_path / "series" / name).glob("0001-*.patch")
        assert f"\nSigned-off-by: {person}" in patch.read_text()


def test_new_files_are_listed_with_the_shipped_ones(mine: Path) -> None:
    for kind, names in (
        ("workloads", ("unmap_all", "zombies")),
        ("experiments", ("unmapping", "freezer")),
        ("series", ("my-change", "exit-linear")),
    ):
        listed = kteardown(mine, "list", kind).stdout
        assert [name for name in names if name not in listed] == []


def test_a_fragment_is_listed_with_the_shipped_ones_and_needs_its_name(mine: Path) -> None:
    (mine / "kernels/fragments").mkdir(parents=True)
    (mine / "kernels/fragments/latency.config").write_text(
        "# Shows what waits.\nCONFIG_LATENCYTOP=y\n"
    )
    rows = json.loads(kteardown(mine, "list", "fragments", "--json").stdout)["fragments"]
    assert {"name": "latency", "summary": "Shows what waits."} in rows
    assert {"debug", "kasan"} < {row["name"] for row in rows}
    assert "latency" in kteardown(mine, "list", "fragments").stdout
    for name in ("latency", "./kernels/fragments/latency.config"):
        assert kteardown(mine, "plan", "unmapping", "--quick", "--config", name).returncode == 0
    wrong = kteardown(mine, "plan", "unmapping", "--quick", "--config", "latncy")
    assert wrong.returncode == 2
    assert (
        "did you mean 'latency'" in wrong.stderr and str(mine / "kernels/fragments") in wrong.stderr
    )


def test_the_experiment_is_planned_by_name_and_by_path(mine: Path) -> None:
    for name in (
        "unmapping",
        "experiments/unmapping.toml",
        str(mine / "experiments/unmapping.toml"),
    ):
        done = kteardown(mine, "plan", name, "--quick", "--variant", "my-change")
        assert done.returncode == 0, done.stderr
        assert "unmap_all pages=1000" in done.stdout
        assert "my-change" in done.stdout


def test_an_experiment_finds_its_workload_from_any_folder(mine: Path, tmp_path: Path) -> None:
    elsewhere = kteardown(
        tmp_path / "else", "plan", str(mine / "experiments/unmapping.toml"), "--quick"
    )
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert load_experiment("unmapping").folder == str(mine)
    assert load_experiment("freezer").folder == ""


def test_a_workload_is_compared_without_an_experiment(mine: Path) -> None:
    found = experiment_for("unmap_all", "debian:6.12")
    assert [sweep.workload for sweep in found.workloads] == ["unmap_all"]
    assert found.folder == str(mine)


@pytest.mark.parametrize("workload", workload_names())
def test_each_shipped_workload_is_compared_quickly_by_itself(workload: str) -> None:
    """Also those that share an experiment, whose quick values are of all its workloads."""
    found = apply(experiment_for(workload, "debian:6.12"), Overrides(quick=True))
    assert [sweep.workload for sweep in found.workloads] == [workload]


def test_only_an_agent_built_with_the_workload_has_it(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = copy_agent(tmp_path / "sources/agent")
    monkeypatch.setattr("kteardown.vm.agent.data_dir", lambda kind: sources)
    own = own_sources({"unmap_all": load_workload("unmap_all", str(mine))}, str(mine))
    assert own == [mine / "agent/workloads/unmap_all.c"]
    assert own_sources({"zombies": load_workload("zombies")}, str(mine)) == []
    for added, known in ((own, True), ([], False)):
        agent = build_agent(
            "x86_64", cache=tmp_path / "cache", reporter=SilentReporter(), own=added
        )
        listed = subprocess.run(
            [agent, "--list"], capture_output=True, text=True, check=True
        ).stdout
        assert ("unmap_all" in listed) is known


def test_a_workload_without_its_c_file_is_an_error(mine: Path) -> None:
    (mine / "agent/workloads/unmap_all.c").unlink()
    with pytest.raises(InputError, match=r"unmap_all\.c: there is no such file"):
        own_sources({"unmap_all": load_workload("unmap_all", str(mine))}, str(mine))


def test_the_workload_is_formatted_like_the_agent(mine: Path) -> None:
    style = f"--style=file:{data_dir('agent') / '.clang-format'}"
    argv = ["clang-format", style, "--dry-run", "-Werror", "agent/workloads/unmap_all.c"]
    assert subprocess.run(argv, cwd=mine, check=False).returncode == 0


def test_the_patch_applies_before_do_exit(mine: Path, tmp_path: Path) -> None:
    source = tmp_path / "tree/kernel/exit.c"
    source.parent.mkdir(parents=True)
    source.write_text("{\n}\n\nvoid __noreturn do_exit(long code)\n{\n}\n")
    (tmp_path / "work").mkdir()
    chosen = resolve("my-change")
    patched = apply_patches.apply(tmp_path / "tree", chosen.patches, tmp_path / "work", "tree")
    assert patched.changed == ("kernel/exit.c",)


def test_a_series_is_made_from_a_mailbox_or_a_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    for text in ("one", "two", "three"):
        (tree / "file.c").write_text(f"{text}\n")
        git(tree, "add", "file.c")
        git(tree, "commit", "-q", "-m", f"file: say {text}")
    box = git(tree, "format-patch", "--stdout", "--cover-letter", "HEAD~2..HEAD")
    (tree / "my.mbox").write_text(box)
    for name, patches in (("by-mail", "./my.mbox"), ("by-branch", "HEAD~2..main")):
        assert kteardown(tree, "new", "series", name, "--from", patches).returncode == 0
        monkeypatch.chdir(tree)
        assert resolve(name).patch_set.subjects == ("file: say two", "file: say three")
        assert "[PATCH 0/2]" in (tree / "series" / name / "0000-cover-letter.md").read_text()


def test_a_script_that_is_kept_is_compared_at_all_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.sh").write_text("seq $N | grep $WORD | head -n $ROWS\n")
    options = ("--set", "N=20,40", "--set", "WORD=a,b", "--set", "ROWS=3")
    kept = kteardown(tmp_path, "new", "workload", "mine", "--from", "./x.sh", *options)
    assert kept.returncode == 0, kept.stderr
    monkeypatch.chdir(tmp_path)
    found = experiment_for("mine", "debian:6.12")
    (sweep,) = found.workloads
    assert sweep.params == {"N": (20, 40), "WORD": ("a", "b"), "ROWS": (3,)}
    assert len(points_of(found, {"mine": load_workload("mine", str(tmp_path))})) == 4
    (sweep,) = apply(found, Overrides(assignments=["N=60"])).workloads
    assert sweep.params == {"N": (60,), "WORD": ("a", "b"), "ROWS": (3,)}
    made = kteardown(tmp_path, "new", "experiment", "own", "--workload", "mine")
    assert made.returncode == 0, made.stderr
    (sweep,) = load_experiment("own").workloads
    assert sweep.params == {"N": (20, 40), "WORD": ("a", "b"), "ROWS": (3,)}


def test_a_value_that_a_description_does_not_allow_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("seq $N\n")
    kept = kteardown(tmp_path, "new", "workload", "mine", "--from", "./x.sh", "--set", "N=20,40")
    assert kept.returncode == 0, kept.stderr
    file = tmp_path / "workloads/mine.toml"
    file.write_text(file.read_text().replace("40", "-4"))
    wrong = kteardown(
        tmp_path, "compare", "mine", "--source", "debian:6.12", "--series", "exit-linear"
    )
    assert wrong.returncode == 2 and "mine.N=-4: must be 0 to" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("workload", "zombies"), "a workload called 'zombies' exists already"),
        (("workload", "Mine"), "'Mine' is not a valid name of a workload"),
        (("workload", "my-own"), "'my-own' is not a valid name of a workload"),
        (("experiment", "freezer"), "an experiment called 'freezer' exists already"),
        (("experiment", "mine", "--workload", "zombis"), "did you mean 'zombies'"),
        (("series", "mine", "--from", "./nowhere.mbox"), "there is no series or file"),
        (("workload", "unmap_all"), "exists already"),
    ],
)
def test_a_wrong_name_or_option_exits_with_2_and_a_hint(
    mine: Path, arguments: tuple[str, ...], expected: str
) -> None:
    done = kteardown(mine, "new", *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert expected in done.stderr
    assert "what to do:" in done.stderr


def test_a_patch_that_is_not_utf_8_is_copied_byte_for_byte(tmp_path: Path) -> None:
    diff = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-\xe9\n+e\n"
    patch = b"Subject: [PATCH] mm: x\n\ncaf\xe9\n---\n" + diff
    (tmp_path / "0001-x.patch").write_bytes(patch)
    done = kteardown(tmp_path, "new", "series", "latin", "--from", "./0001-x.patch")
    assert done.returncode == 0, done.stderr
    (copied,) = (tmp_path / "series/latin").glob("0001-*.patch")
    assert copied.read_bytes().partition(b"\n---\n")[2] == patch.partition(b"\n---\n")[2]
    assert b"caf\xe9" in copied.read_bytes()


@pytest.fixture
def broken(mine: Path) -> Path:
    """The same folder with a broken file of each kind, and folders with their names."""
    for kind in ("experiments", "workloads"):
        (mine / kind / "bad.toml").write_text("a = [")
        (mine / kind / "latin.toml").write_bytes(b'name = "\xe9"')
        (mine / kind / "folder.toml").mkdir()
    for name, count in (("one", 1), ("two", 2)):
        folder = mine / "series" / "uneven" / name
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"{number + 1:04}-x.patch").write_text("x")
    return mine


def test_a_broken_file_empties_no_list(broken: Path) -> None:
    done = kteardown(broken, "list", "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    for kind, mine, last in (
        ("experiments", "unmapping", "question"),
        ("workloads", "unmap_all", "summary"),
    ):
        rows = {row["name"]: row[last] for row in listed[kind]}
        assert mine in rows
        assert rows["bad"].startswith(f"unreadable: {broken}/{kind}/bad.toml: not valid TOML")
        assert "can't decode byte 0xe9" in rows["latin"]
        assert "folder" not in rows
    assert {"my-change", "uneven"} <= {row["name"] for row in listed["series"]}


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "workload", "unmap_all"),
        ("show", "series", "my-change"),
        ("new", "experiment", "other", "--workload", "unmap_all"),
        ("plan", "unmapping"),
    ],
)
def test_a_broken_file_hinders_no_other(arguments: tuple[str, ...], broken: Path) -> None:
    done = kteardown(broken, *arguments)
    assert done.returncode == 0, done.stderr


def test_a_broken_file_hinders_no_comparison(broken: Path) -> None:
    assert experiment_for("unmap_all", "debian:6.12").workloads[0].workload == "unmap_all"
    with pytest.raises(InputError, match=r"there is no experiment called 'folder'$"):
        load_experiment("folder")
    with pytest.raises(InputError, match="different numbers of patches"):
        resolve("uneven")
