"""A series becomes a folder of mails, all of them or none."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from kteardown import extras, sandbox
from kteardown.errors import BuildError, InputError, LabError
from kteardown.flows.mail_series import checks, flow
from kteardown.flows.mail_series.flow import WrittenMails, write_mails
from kteardown.flows.mail_series.person import PLACEHOLDER, Person, parse_person
from kteardown.kernels.series import Selection
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter
from unit.flows.mail_series.small_series import LETTER, git, make_series, make_tree, patch

JANE = parse_person("Jane Döe <jane@example.org>")
ONE = LETTER.replace("[RFC PATCH 0/2]", "[PATCH 6.12]")
ONE_NUMBERED = LETTER.replace("0/2", "0/1")


@dataclass
class World:
    """A small tree, and a folder in which everything is written."""

    folder: Path
    tree: Path

    def write(
        self,
        series: Selection,
        author: Person | None = JANE,
        out: Path | None = None,
        backport: str | None = None,
    ) -> WrittenMails:
        return write_mails(
            series,
            out or self.folder / "out",
            Sources(self.folder / "cache", SilentReporter()),
            base=f"git:{self.tree}",
            backport=backport,
            author=author,
            reporter=SilentReporter(),
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, make_tree(tmp_path))


def mails_in(written: WrittenMails) -> list[Message]:
    return [message_from_bytes((written.folder / name).read_bytes()) for name in written.files]


def text_of(mail: Message) -> str:
    payload = mail.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def test_the_mails_of_a_series(world: World) -> None:
    written = world.write(make_series(world.folder))
    names = sorted(path.name for path in (world.folder / "out").iterdir())
    assert names == ["0000-before-sending.patch", *written.files]
    assert written.files[0] == "0000-cover-letter.patch"
    subjects = [" ".join(str(mail["Subject"]).split()) for mail in mails_in(written)]
    assert subjects == [
        "[RFC PATCH 0/2] exit: two lines are slow",
        "[RFC PATCH 1/2] exit: make line 3 fast",
        "[RFC PATCH 2/2] exit: make line 12 fast",
    ]
    assert [check.passed for check in written.checks] == [True] * 3
    cover, first, _ = (text_of(mail) for mail in mails_in(written))
    assert "  line 3   100       1\n" in cover and "Jörg" in cover
    assert " kernel/exit.c | 4 ++--\n 1 file changed, 2 insertions(+), 2 deletions(-)\n" in cover
    commit = git(world.tree, "rev-parse", "HEAD").strip()
    assert f"\n\nbase-commit: {commit}\n-- \n" in cover
    assert not any(word in cover for word in ("SPDX", "base: v6.12", "[RFC"))
    message, _, below = first.partition("\n---\n")
    assert message.endswith(f"Signed-off-by: {JANE}")
    assert "SPDX" not in first and "Origin" not in first and "base-commit" not in below
    for mail in mails_in(written):
        assert "J" in str(mail["From"]) and "jane@example.org" in str(mail["From"])
        assert "rick@example.org" in str(mail["To"])
        assert "sue@example.org" in str(mail["Cc"])
        assert "linux-kernel@vger.kernel.org" in str(mail["Cc"])
        assert "kteardown" not in str(mail)
    # The tree is of git, so that commits can be looked up: this one is not there.
    assert any("0123456789ab" in text for text in written.todo)


def test_a_draft_is_of_nobody_and_goes_to_nobody(world: World) -> None:
    written = world.write(make_series(world.folder), author=None)
    assert written.recipients.to and [check.passed for check in written.checks] == [True] * 3
    for mail in mails_in(written):
        assert (str(mail["From"]), mail["To"], mail["Cc"]) == (PLACEHOLDER, None, None)
        assert "Signed-off-by" not in text_of(mail)
    assert "draft" in written.todo[0]
    steps = (world.folder / "out/0000-before-sending.patch").read_text()
    assert "rick@example.org" in steps and "linux-kernel@vger.kernel.org" in steps


def test_a_series_of_a_person_is_no_draft(world: World) -> None:
    sam = Person("Sam Sole", "sam@example.org")
    texts = [patch(*at).replace(PLACEHOLDER, str(sam)) for at in ((1, 3), (2, 12))]
    unsigned = texts[1].replace("Signed-off-by: Sam", "Reported-by: Sam")
    written = world.write(make_series(world.folder, patches=(texts[0], unsigned)), author=None)
    assert written.author == sam and "rick@example.org" in str(mails_in(written)[0]["To"])
    findings = [finding for check in written.checks for finding in check.findings]
    assert [text.partition(" ")[0] for text in findings] == ["0002:", "1:"]
    assert all("MISSING_SIGN_OFF" in text for text in findings)


def test_a_single_patch_has_its_letter_below_the_cut(world: World) -> None:
    written = world.write(make_series(world.folder, ONE, (patch(1, 3),)))
    (mail,) = mails_in(written)
    assert mail["Subject"] == "[PATCH 6.12] exit: make line 3 fast"
    message, letter, stat = text_of(mail).split("\n---\n")[:3]
    assert "Two lines are slow" not in message and message.endswith(f"Signed-off-by: {JANE}")
    assert letter.startswith("Two lines are slow, says Jörg.")
    assert stat.startswith(" kernel/exit.c | 2 +-\n")
    assert "stable@vger.kernel.org" in str(mail["Cc"])
    # It is not in the commit.
    git(world.tree, "am", "-q", str(written.folder / written.files[0]))
    assert "Two lines" not in git(world.tree, "log", "-1", "--format=%B")


def test_a_single_patch_has_a_cover_letter_if_it_is_numbered(world: World) -> None:
    written = world.write(make_series(world.folder, ONE_NUMBERED, (patch(1, 3),)))
    subjects = [str(mail["Subject"]) for mail in mails_in(written)]
    assert [subject.partition("]")[0] for subject in subjects] == [
        "[RFC PATCH 0/1",
        "[RFC PATCH 1/1",
    ]


def test_words_of_people_stay_below_the_cut(world: World) -> None:
    noted = patch(1, 3).replace("Origin: written for this lab\n", "v2: as Rick asked\n")
    written = world.write(make_series(world.folder, patches=(noted, patch(2, 12))))
    _, first, second = (text_of(mail) for mail in mails_in(written))
    assert "\n---\nv2: as Rick asked\n---\n kernel/exit.c | 2 +-\n" in first
    assert second.count("\n---\n") == 1


def test_mails_with_findings_are_written_too(world: World) -> None:
    bad = patch(2, 12).replace("+int fast", "+int FIXME")
    written = world.write(make_series(world.folder, patches=(patch(1, 3), bad)))
    assert [check.passed for check in written.checks] == [False, False, True]
    assert "checkpatch --strict, b4 prep --check" in written.todo[0]
    assert len(written.files) == 3


def test_an_empty_folder_is_filled(world: World) -> None:
    (world.folder / "out").mkdir()
    assert len(world.write(make_series(world.folder)).files) == 3


def test_a_folder_that_is_not_empty_is_left_alone(world: World) -> None:
    series = make_series(world.folder)
    (world.folder / "file").write_text("x")
    for out, message in (
        (world.tree, "is not empty"),
        (world.folder / "file", "is a file"),
        (world.folder / "absent/out", "there is no folder"),
    ):
        before = sorted(world.folder.rglob("*"))
        with pytest.raises(InputError, match=message):
            world.write(series, out=out)
        assert sorted(world.folder.rglob("*")) == before


def test_a_series_that_does_not_apply_writes_nothing(world: World) -> None:
    wrong = patch(2, 12).replace(" int line_12;", " int other;")
    series = make_series(world.folder, patches=(patch(1, 3), wrong))
    with pytest.raises(BuildError, match=r"0002-exit\.patch does not apply"):
        world.write(series)
    assert not (world.folder / "out").exists()


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def copy_of_one(source: str, target: str, **_: object) -> None:
    """Copy the first file, and be interrupted at the second one."""
    if any(Path(target).parent.iterdir()):
        raise KeyboardInterrupt
    Path(target).write_bytes(Path(source).read_bytes())


@pytest.mark.parametrize("is_late", [False, True])
def test_an_interrupt_leaves_nothing(
    is_late: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = make_series(world.folder)
    if is_late:
        monkeypatch.setattr(flow, "copy_file", copy_of_one)
    else:
        monkeypatch.setattr(checks, "check_with_git_am", interrupt)
    before = {path.name for path in world.folder.iterdir()}
    with pytest.raises(KeyboardInterrupt):
        world.write(series)
    assert {path.name for path in world.folder.iterdir()} - before == {"cache"}


def test_nothing_of_a_base_runs_without_a_sandbox(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "problem", lambda: "bwrap is not installed")
    with pytest.raises(LabError, match="there is no sandbox: bwrap is not installed"):
        world.write(make_series(world.folder))


def test_b4_must_be_installed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs b4"):
        world.write(make_series(world.folder))


def test_git_of_this_host_takes_the_mails(world: World) -> None:
    written = world.write(make_series(world.folder))
    files = [str(written.folder / name) for name in written.files[1:]]
    git(world.tree, "am", "-q", *files)
    done = subprocess.run(
        ["git", "-C", str(world.tree), "log", "-1", "--format=%an %ae"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "Jane Döe jane@example.org"
