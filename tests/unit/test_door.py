"""The door to the files of a run: what a stranger can put under a name is neither opened nor
written to."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown.door import Entry, RefusedError

Action = Callable[[Entry], object]
READS: dict[str, Action] = {
    "content": Entry.content,
    "text": Entry.text,
    "count": lambda entry: entry.count(b"x"),
    "stream": Entry.stream,
    "plain": Entry.plain,
    "link": lambda entry: entry.link_to(entry.parent / "other"),
}
WRITES: dict[str, Action] = {
    "replace": lambda entry: entry.replace("ours"),
    "create": lambda entry: entry.create().close(),
    "append": lambda entry: os.close(entry.append()),
    "locked": lambda entry: entry.locked().__enter__(),
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file of the user outside of the run."""
    file = tmp_path / "home" / "secret"
    file.parent.mkdir()
    file.write_text("secret\n")
    return file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


SPECIAL: dict[str, Callable[[Path, Path], object]] = {
    "a link to a file": lambda path, secret: path.symlink_to(secret),
    "a link to a device": lambda path, secret: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path, secret: path.symlink_to(secret.parent / "new"),
    "a pipe": lambda path, secret: os.mkfifo(path),
    "a socket": lambda path, secret: make_socket(path),
}


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("read", READS)
def test_only_plain_files_are_read(read: str, special: str, run: Path, secret: Path) -> None:
    SPECIAL[special](run / "file", secret)
    entry = Entry(run) / "file"
    with pytest.raises(RefusedError) as refused:
        READS[read](entry)
    assert refused.value.filename == str(run / "file")
    assert entry.exists()
    assert os.listdir(run) == ["file"]


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_written_through_a_name(
    write: str, special: str, run: Path, secret: Path
) -> None:
    SPECIAL[special](run / "file", secret)
    try:
        WRITES[write](Entry(run) / "file")
    except RefusedError:
        assert write in ("append", "locked")
    else:
        assert (run / "file").is_file() and not (run / "file").is_symlink()
    assert secret.read_text() == "secret\n"
    assert os.listdir(secret.parent) == ["secret"]


@pytest.mark.parametrize("action", [*READS, *WRITES])
def test_no_folder_on_the_way_is_a_link(action: str, run: Path, secret: Path) -> None:
    (run / "console").symlink_to(secret.parent)
    entry = Entry(run) / "console" / secret.name
    with pytest.raises(RefusedError, match="console is a link"):
        (READS | WRITES)[action](entry)
    for change in (entry.remove, entry.make_folder, (entry.parent / "new").make_new_folder):
        with pytest.raises(RefusedError):
            change()
    entry.remove_tree()
    with pytest.raises(RefusedError):
        entry.parent.entries()
    assert secret.read_text() == "secret\n"
    assert os.listdir(secret.parent) == ["secret"]


@pytest.mark.parametrize(
    "name", ["../home/secret", "/etc/passwd", "a/../../home/secret", "", ".", "a\0b", "\ud800"]
)
@pytest.mark.parametrize("action", [*READS, *WRITES])
def test_no_name_leads_out_of_the_folder(action: str, name: str, run: Path, secret: Path) -> None:
    (run / "a").mkdir()
    with pytest.raises(RefusedError, match="leads out"):
        (READS | WRITES)[action](Entry(run) / name)
    assert secret.read_text() == "secret\n"


def test_a_hard_link_to_a_file_of_the_user_is_not_written_to(run: Path, secret: Path) -> None:
    entry = Entry(run) / "file"
    os.link(secret, entry.path)
    with pytest.raises(RefusedError, match="hard link"):
        entry.append()
    entry.replace("ours")
    assert entry.text() == "ours"
    (run / "file").unlink()
    os.link(secret, entry.path)
    with entry.create() as file:
        file.write(b"console")
    assert (entry.text(), secret.read_text()) == ("console", "secret\n")


def test_a_file_that_is_too_large_is_not_read(run: Path) -> None:
    entry = Entry(run) / "file"
    with (run / "file").open("wb") as file:
        file.truncate(1 << 40)
    for read in (entry.content, lambda: entry.count(b"x")):
        with pytest.raises(RefusedError, match="MB"):
            read()
    (run / "file").write_bytes(b"x" * 11)
    assert entry.content(11) == b"x" * 11
    with pytest.raises(RefusedError):
        entry.content(10)


def test_the_path_to_the_folder_may_have_links(run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run)
    (Entry(tmp_path / "link") / "file").replace("text")
    assert (run / "file").read_text() == "text"


def test_a_tree_is_removed_without_what_its_links_lead_to(run: Path, secret: Path) -> None:
    (run / "tree" / "inner").mkdir(parents=True)
    (run / "tree" / "file").write_text("")
    (run / "tree" / "link").symlink_to(secret.parent)
    (Entry(run) / "tree").remove_tree()
    assert os.listdir(run) == []
    assert secret.read_text() == "secret\n"


def test_words_are_counted_across_the_pieces_that_are_read(run: Path) -> None:
    for before in range((1 << 20) - 8, (1 << 20) + 2):
        (run / "file").write_bytes(b"." * before + b"boot_end" + b"." * 50 + b"boot_end")
        assert (Entry(run) / "file").count(b"boot_end") == 2


def test_files_and_folders_are_made_and_listed(run: Path) -> None:
    folder = Entry(run) / "a" / "b"
    assert folder.entries() == []
    folder.make_folder()
    folder.make_folder()
    for name in ("2.log", "1.log", "other"):
        (folder / name).replace(name)
    assert [entry.name for entry in folder.entries("*.log")] == ["1.log", "2.log"]
    (folder / "1.log").move_to(Entry(run) / "moved")
    assert (Entry(run) / "moved").text() == "1.log"
    with pytest.raises(FileExistsError):
        folder.make_new_folder()
    (folder / "other").remove()
    (folder / "other").remove()
    assert (folder / "2.log").link_to(folder / "same") and (folder / "2.log").link_to(
        folder / "same"
    )
    (folder / "else").replace("")
    assert not (folder / "2.log").link_to(folder / "else")
    assert not (folder / "nothing").exists() and (folder / "same").exists()
    assert sorted(os.listdir(run / "a" / "b")) == ["2.log", "else", "same"]


def test_what_cannot_be_looked_at_is_there_and_a_loop_is_not(run: Path) -> None:
    (run / "loop").symlink_to("loop")
    assert (Entry(run) / "loop").exists()
    assert not (Entry(run / "loop") / "file").exists()
    assert not (Entry(run) / ("x" * 300)).exists()


def test_a_lock_is_held_once(run: Path) -> None:
    entry = Entry(run) / "lock"
    with entry.locked(), pytest.raises(BlockingIOError), entry.locked():
        pass
    with entry.locked():
        pass
