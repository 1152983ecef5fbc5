"""The commands that tools run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from typer.main import get_command

from kteardown.cli import app
from kteardown.errors import InputError
from kteardown_mcp import commands
from kteardown_mcp.commands import AskedChange, AskedWorkload, GivenFile, NamedPath, ToolCommand
from kteardown_mcp.roots import Roots
from unit.conftest import MISSING


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    (tmp_path / "a b.sh").write_text("echo\n")
    (tmp_path / "bzImage").write_text("kernel\n")
    (tmp_path / "tree/.git/objects").mkdir(parents=True)
    (tmp_path / "tree/.git/refs").mkdir()
    (tmp_path / "tree/.git/HEAD").write_text("ref: refs/heads/master\n")
    return Roots([tmp_path])


def given(made: ToolCommand) -> tuple[object, ...]:
    """Return the words that kteardown gets."""
    return tuple(word.word() if isinstance(word, NamedPath) else word for word in made.words)


def test_a_mail_by_its_text_is_a_file_of_the_job(roots: Roots) -> None:
    made = commands.try_patch(roots, "", "From: a\n", ["debian:6.12"], full=False, dry_run=True)
    assert made.words[1] == GivenFile("mail.mbox", b"From: a\n", "mail.mbox")
    assert made.command == "kteardown try mail.mbox --source=debian:6.12 --dry-run"


def test_a_script_keeps_a_name_without_blanks(roots: Roots) -> None:
    made = commands.measure(roots, AskedWorkload(path="a b.sh"), [1, 2], [], 3)
    assert made.words[1] == GivenFile("a_b.sh", b"echo\n", "a b.sh")
    assert made.command == "kteardown measure 'a b.sh' --set=N=1,2 --seeds=3"


def test_sources_with_paths_are_below_a_root(roots: Roots, tmp_path: Path) -> None:
    sources = ["image:bzImage", "git:tree@v7.2", "git:tree", "kernel.org:6.16.1"]
    made = commands.measure(roots, AskedWorkload(workload="zombies"), [], sources, None)
    assert made.shown[2:] == tuple(f"--source={source}" for source in sources)
    assert given(made)[2:] == (
        f"--source=image:{tmp_path}/bzImage",
        f"--source=git:{tmp_path}/tree@v7.2",
        f"--source=git:{tmp_path}/tree",
        "--source=kernel.org:6.16.1",
    )


def test_a_path_is_checked_again_when_the_job_begins(roots: Roots, tmp_path: Path) -> None:
    made = commands.measure(roots, AskedWorkload(text="x"), [], ["image:bzImage"], None)
    (tmp_path / "bzImage").unlink()
    (tmp_path / "bzImage").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="is refused"):
        given(made)


def test_a_branch_is_compared_with_where_it_begins(roots: Roots, tmp_path: Path) -> None:
    change = AskedChange(tree="tree", base="v6.12", topic="my-topic")
    made = commands.compare(roots, AskedWorkload(workload="zombies"), change, "", [], full=False)
    assert given(made)[2:] == (
        f"--source=git:{tmp_path}/tree",
        "--branch=v6.12..my-topic",
        "--quick",
    )
    shipped = AskedChange(series="freezer-skip-exited")
    made = commands.compare(
        roots, AskedWorkload(workload="zombies"), shipped, "debian:6.12", [], full=True
    )
    assert made.words[2:] == ("--source=debian:6.12", "--series=freezer-skip-exited")


KINDS = {"flocks": "files", "pipes": "files", "mounts_deep": "mounts"}


def read_last(part: str, _: Roots) -> ToolCommand:
    return commands.read_run("last", part, 3)


MADE: dict[str, Callable[[Roots], ToolCommand]] = {
    "try": lambda r: commands.try_patch(r, "a b.sh", "", ["debian:6.12"], full=True, dry_run=True),
    "measure": lambda r: commands.measure(
        r, AskedWorkload(path="a b.sh"), [1, 2], ["git:tree@v7", "image:bzImage"], 3
    ),
    "compare": lambda r: commands.compare(
        r, AskedWorkload(text="x"), AskedChange(text="x"), "debian:6.12", [1], full=False
    ),
    "compare of a branch": lambda r: commands.compare(
        r,
        AskedWorkload(workload="zombies"),
        AskedChange(tree="tree", base="a", topic="b"),
        "",
        [],
        full=False,
    ),
    "bisect": lambda r: commands.bisect(
        r, AskedWorkload(text="x", language="c"), "tree", "v7.1", "v7.2", [1, 2]
    ),
    "list": lambda _: commands.list_runs(),
    **{part: partial(read_last, part) for part in ("page", "json", "boots", "console")},
    **(
        {}
        if "hunt" in MISSING
        else {
            "list kinds": lambda _: commands.list_kinds(),
            "hunt": lambda r: commands.hunt_kind(
                r, ["flocks", "pipes"], KINDS, "debian-image:6.12"
            ),
        }
    ),
}


@pytest.mark.parametrize("what", MADE)
def test_the_command_line_takes_the_command(roots: Roots, what: str) -> None:
    made = MADE[what](roots)
    verb, *arguments = [*made.shown] + (["--json=answer.json"] if made.json else [])
    command = get_command(app).commands[verb]  # type: ignore[attr-defined]
    command.make_context(verb, arguments)


REFUSED: dict[str, Callable[[Roots], ToolCommand]] = {
    "two sources of a mail": lambda r: commands.try_patch(r, "a b.sh", "x", [], False, False),
    "no mail": lambda r: commands.try_patch(r, "", "", [], False, False),
    "a large script": lambda r: commands.measure(
        r, AskedWorkload(text="é" * 600_000), [], [], None
    ),
    "a script and a workload": lambda r: commands.measure(
        r, AskedWorkload(text="x", workload="zombies"), [], [], None
    ),
    "an option as a workload": lambda r: commands.measure(
        r, AskedWorkload(workload="--unsafe-build"), [], [], None
    ),
    "sizes of a workload": lambda r: commands.measure(
        r, AskedWorkload(workload="zombies"), [1], [], None
    ),
    "an option as a kernel": lambda r: commands.measure(
        r, AskedWorkload(text="x"), [], ["--own"], None
    ),
    "a patched kernel": lambda r: commands.measure(
        r, AskedWorkload(text="x"), [], ["patched:tree@debian:6.12"], None
    ),
    "a kernel on another": lambda r: commands.measure(
        r, AskedWorkload(text="x"), [], ["x on debian:6.12"], None
    ),
    "a range as a revision": lambda r: commands.measure(
        r, AskedWorkload(text="x"), [], ["git:tree@a..b"], None
    ),
    "an option as a revision": lambda r: commands.bisect(
        r, AskedWorkload(text="x"), "tree", "--upload-pack=x", "v1", []
    ),
    "an unknown series": lambda r: commands.compare(
        r, AskedWorkload(text="x"), AskedChange(series="../x"), "debian:6.12", [], False
    ),
    "a branch and a source": lambda r: commands.compare(
        r,
        AskedWorkload(text="x"),
        AskedChange(tree="tree", base="a", topic="b"),
        "debian:6.12",
        [],
        False,
    ),
    "two kinds in one": lambda r: commands.hunt_kind(r, ["flocks,pipes"], KINDS, ""),
    "a part of the catalogue": lambda r: commands.hunt_kind(r, ["files"], KINDS, ""),
    "an option as a run": lambda _: commands.read_run("--help", "page", 0),
    "a path as a run": lambda _: commands.read_run("/etc", "page", 0),
    "a path up as a run": lambda _: commands.read_run("../runs", "page", 0),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_wrong_is_refused(roots: Roots, what: str) -> None:
    with pytest.raises(InputError):
        REFUSED[what](roots)


def test_a_run_has_a_name() -> None:
    assert commands.read_run("last", "page", 0).words == ("report", "last")
    run = "20261130-160221-measure-a/wall"
    assert commands.read_run(run, "console", 3).words == ("show", run, "--console=3")


@pytest.mark.parametrize(
    ("word", "like"),
    [("files", "flocks, pipes."), ("deep", ": mounts_deep."), ("x", "mounts_deep.")],
)
def test_a_wrong_kind_is_told_those_like_it(roots: Roots, word: str, like: str) -> None:
    with pytest.raises(InputError) as error:
        commands.hunt_kind(roots, [word], KINDS, "")
    assert error.value.hint.endswith(like)
