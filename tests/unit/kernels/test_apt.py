from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown.kernels import apt
from kteardown.kernels.apt import (
    Apt,
    Package,
    Target,
    Tier,
    newest,
    parse_madison,
    parse_targets,
    readable,
    tiers,
)
from kteardown.progress import Reporter
from unit.vm.test_seal import Notes

ARCHIVE, SECURITY = "http://mirror.example/debian", "http://mirror.example/debian-security"


def target(suite: str, uri: str = ARCHIVE, origin: str = "Debian") -> Target:
    return Target(uri, suite, origin)


def test_index_targets_have_no_duplicates() -> None:
    text = (
        f"{ARCHIVE}/\tbookworm\tDebian\n{ARCHIVE}/\tbookworm\tDebian\n"
        f"{SECURITY}\tbookworm-security\t$(ORIGIN)\nhttp://other.example\tnodistro\tOther\nE: noise\n"
    )
    assert parse_targets(text) == [
        target("bookworm"),
        target("bookworm-security", SECURITY, ""),
        Target("http://other.example", "nodistro", "Other"),
    ]


def test_own_suites_come_first_then_each_newer_release() -> None:
    own = [target("bookworm"), target("bookworm-updates"), target("bookworm-security", SECURITY)]
    found = tiers([Target("http://other.example", "nodistro", "Other"), *own], "bookworm")
    assert [tier.name for tier in found] == ["bookworm", "trixie", "forky", "sid"]
    assert found[0].suites == (
        (ARCHIVE, "bookworm"), (ARCHIVE, "bookworm-updates"),
        (SECURITY, "bookworm-security"), (ARCHIVE, "bookworm-backports"),
    )  # fmt: skip
    assert (ARCHIVE, "trixie-backports") in found[1].suites
    assert (SECURITY, "trixie-security") in found[1].suites
    assert found[3].suites == ((ARCHIVE, "sid"),)


def test_a_mirror_is_found_on_a_system_whose_lists_were_never_fetched() -> None:
    found = tiers([target("bookworm", origin=""), Target("http://other.example", "focal", "")], "bookworm")
    assert found[0].suites == ((ARCHIVE, "bookworm"), (ARCHIVE, "bookworm-backports"))


def test_unstable_has_only_one_tier() -> None:
    assert [tier.name for tier in tiers([target("sid")], "sid")] == ["sid"]


def test_an_unknown_release_has_only_its_own_suites() -> None:
    assert [tier.suites for tier in tiers([target("duke")], "duke")] == [((ARCHIVE, "duke"),)]


def test_a_system_without_a_debian_mirror_is_an_error() -> None:
    with pytest.raises(LabError, match="no mirror of the Debian archive"):
        tiers([Target("http://other.example", "noble", "Ubuntu")], "noble")


def test_names_and_versions_are_parsed_from_madison_lines() -> None:
    text = (
        " linux-source-6.1 |  6.1.192-2 | http://mirror.example/debian bookworm/main amd64 Packages\n"
        "linux-source-6.12 | 6.12.117-1~deb12u1 | http://mirror.example/debian bookworm/main amd64 Packages\n"
        "W: noise\n"
    )
    assert parse_madison(text) == [
        ("linux-source-6.1", "6.1.192-2"),
        ("linux-source-6.12", "6.12.117-1~deb12u1"),
    ]


def test_versions_are_compared_by_the_rules_of_debian() -> None:
    assert newest(["7.2.9-1~bpo13+1", "7.2.12-1~bpo13+1", "7.2.11-1"]) == "7.2.12-1~bpo13+1"
    assert newest(["6.12.1-1~deb12u1", "6.12.1-1"]) == "6.12.1-1"


def test_messages_have_names_and_no_patterns() -> None:
    assert readable(r"linux\-image\-9\.9\.\d+(?:[+-][a-z0-9.~+]+)?-amd64") == "linux-image-9.9.*"
    assert readable(r"linux-source-6\.12") == "linux-source-6.12"


def test_a_damaged_package_is_downloaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Root:
        """The private root of apt, whose network is a folder."""

        def __init__(self, *_: object) -> None: ...

        def size(self, _: Package) -> int:
            return 7

        def download(self, package: Package, folder: Path, _: Reporter) -> Iterator[int]:
            (folder / f"{package.name}.deb").write_bytes(b"package")
            yield 7

    monkeypatch.setattr(apt, "_Root", Root)
    reporter = Notes()
    lab = Apt(tmp_path / "apt", reporter, "amd64")
    package = Package("linux-source-6.12", "6.12.1-1", Tier("own", ()))
    file = lab.download(package, tmp_path / "downloads")
    inode = file.stat().st_ino
    assert lab.download(package, tmp_path / "downloads") == file and file.stat().st_ino == inode
    file.write_bytes(b"packag")
    assert lab.download(package, tmp_path / "downloads").read_bytes() == b"package"
    assert ["damaged" in note for note in reporter.notes] == [True]
