"""Packages of Debian, read from a small archive that a key of the tests has signed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from debian.debian_support import Version
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError, LabError
from kteardown.kernels import archive, archive_download, unpack
from kteardown.kernels.archive import (
    Archive,
    Suite,
    Target,
    mirrored,
    parse_targets,
    parse_uris,
    readable,
    tiers,
)
from kteardown.progress import SilentReporter
from unit.vm.test_seal import Notes

ARCHIVE = "http://mirror.example/debian"
SECURITY = "http://mirror.example/debian-security"
SIGNED = Path(__file__).parents[2] / "data" / "archive"
INDEX = "dists/stable/main/binary-amd64/Packages.xz"


def target(suite: str, uri: str = ARCHIVE, origin: str = "Debian") -> Target:
    return Target(uri, suite, origin)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the archive, as the only mirror of this host."""
    copy = tmp_path / "mirror"
    shutil.copytree(SIGNED, copy)
    monkeypatch.setattr(archive, "_KEYRINGS", [copy / "keyring.gpg"])
    monkeypatch.setattr(archive_download, "_ATTEMPTS", 1)
    monkeypatch.setattr(Archive, "tiers", lambda _: {"stable": ((f"file://{copy}", "stable"),)})
    return copy


def lab(folder: Path) -> Archive:
    return Archive(folder / "lists", SilentReporter(), "amd64")


def test_index_targets_have_no_duplicates() -> None:
    text = (
        f"{ARCHIVE}/\tbookworm\tDebian\n{ARCHIVE}/\tbookworm\tDebian\n"
        f"{SECURITY}\tbookworm-security\t$(ORIGIN)\nhttp://other.example\tnodistro\tOther\nE: "
        "noise\n"
    )
    assert parse_targets(text) == [
        target("bookworm"),
        target("bookworm-security", SECURITY, ""),
        Target("http://other.example", "nodistro", "Other"),
    ]


def test_what_apt_would_fetch_names_the_suites_if_there_are_no_lists() -> None:
    text = (
        "'http://mirror.example.org/debian/dists/trixie/InRelease' mirror_trixie_InRelease 0 \n"
        "'http://mirror.example.org/debian/dists/trixie/main/binary-all/Packages.xz' mirror_all 0 "
        "\n"
        "'http://mirror.example.org/security/dists/trixie-security/InRelease' mirror_security 0 \n"
        "W: Failed to fetch 'http://other.example.org/dists/sid/InRelease'\n"
    )
    found = parse_uris(text)
    assert [target.suite for target in found] == ["trixie", "trixie-security"]
    own = tiers(found, "trixie")["trixie"]
    assert own[0] == ("http://mirror.example.org/debian", "trixie")


def test_own_suites_come_first_then_newer_releases_then_older_ones() -> None:
    own = [target("trixie"), target("trixie-updates"), target("trixie-security", SECURITY)]
    found = tiers([Target("http://other.example", "nodistro", "Other"), *own], "trixie")
    assert list(found) == ["trixie", "forky", "sid", "bookworm"]
    assert found["trixie"] == (
        (ARCHIVE, "trixie"),
        (ARCHIVE, "trixie-updates"),
        (SECURITY, "trixie-security"),
        (ARCHIVE, "trixie-backports"),
    )
    assert (ARCHIVE, "bookworm-backports") in found["bookworm"]
    assert (SECURITY, "bookworm-security") in found["bookworm"]
    assert found["sid"] == ((ARCHIVE, "sid"),)


def test_a_mirror_is_found_on_a_system_whose_lists_were_never_fetched() -> None:
    found = tiers(
        [target("bookworm", origin=""), Target("http://other.example", "focal", "")], "bookworm"
    )
    assert found["bookworm"] == ((ARCHIVE, "bookworm"), (ARCHIVE, "bookworm-backports"))


def test_unstable_searches_the_releases_before_it() -> None:
    assert list(tiers([target("sid")], "sid")) == ["sid", "forky", "trixie", "bookworm"]


def test_an_unknown_release_searches_its_own_suites_first() -> None:
    found = tiers([target("duke")], "duke")
    assert list(found) == ["duke", "sid", "forky", "trixie", "bookworm"]
    assert found["duke"] == ((ARCHIVE, "duke"),)


def test_a_host_that_names_a_mirror_needs_no_apt() -> None:
    found = tiers(mirrored(f"{ARCHIVE}/", "trixie"), "trixie")
    assert set(found["trixie"]) == {
        (ARCHIVE, "trixie"),
        (SECURITY, "trixie-security"),
        (ARCHIVE, "trixie-backports"),
    }
    assert tiers(mirrored(ARCHIVE, "sid"), "sid")["sid"] == ((ARCHIVE, "sid"),)


def test_a_system_without_a_debian_mirror_is_an_error() -> None:
    with pytest.raises(LabError, match="no mirror of the Debian archive") as caught:
        tiers([Target("http://other.example", "noble", "Ubuntu")], "noble")
    assert "KTEARDOWN_DEBIAN_MIRROR" in caught.value.hint


# From the examples of Debian's policy, and of names in the archive.
ASCENDING = (
    "1.0~~",
    "1.0~~a",
    "1.0~",
    "1.0-0~1",
    "1.0",
    "1.0-1",
    "1.0a",
    "1.0+b1",
    "1.0.1",
    "1.9",
    "1.10",
    "6.12.117-1~deb12u1",
    "6.12.117-1",
    "7.2.9-1~bpo13+1",
    "7.2.11-1",
    "7.2.12-1~bpo13+1",
    "1:0.1",
)


def test_versions_are_compared_by_the_rules_of_debian() -> None:
    assert sorted(reversed(ASCENDING), key=Version) == list(ASCENDING)
    assert Version("1.0") == Version("1.0-0") and Version("1.02") == Version("1.2")


@pytest.mark.skipif(
    not shutil.which("dpkg"), reason="compares with dpkg, which this host does not have"
)
@given(*[st.from_regex(r"\A([0-9]:)?[0-9][0-9a-zA-Z.+~]{0,6}(-[0-9a-zA-Z.+~]{1,4})?\Z")] * 2)
def test_versions_are_compared_as_by_dpkg(one: str, other: str) -> None:
    left, right = Version(one), Version(other)
    expected = "lt" if left < right else "gt" if left > right else "eq"
    assert not subprocess.run(
        ["dpkg", "--compare-versions", one, expected, other], check=False
    ).returncode


def test_a_package_without_a_valid_version_is_left_out(tmp_path: Path) -> None:
    stanza = "Package: x\nVersion: {}\nFilename: x.deb\nSize: 1\nSHA256: 0\n\n"
    suite = Suite(tmp_path, ARCHIVE, "stable", "amd64")
    suite._packages.parent.mkdir(parents=True)
    for version in ("1.0_1", "1.0-1", "a:1", ""):
        with suite._packages.open("a") as file:
            file.write(stanza.format(version))
    assert [package.version for package in suite.packages("x", "")] == ["1.0-1"]


@pytest.mark.timeout(30)
def test_a_long_line_of_a_list_takes_little_time(tmp_path: Path) -> None:
    """The list in which the keyring is found is not verified yet."""
    suite = Suite(tmp_path, ARCHIVE, "stable", "amd64")
    suite._packages.parent.mkdir(parents=True)
    suite._packages.write_text(f"Package: x\na{chr(0xA0) * 1_000_000}\nVersion: 1\n")
    assert suite.packages("x", "") == []


def test_messages_have_names_and_no_patterns() -> None:
    assert readable(r"linux\-image\-9\.9\.\d+(?:[+-][a-z0-9.~+]+)?-amd64") == "linux-image-9.9.*"
    assert readable(r"linux-source-6\.12") == "linux-source-6.12"


def test_the_newest_package_is_found_and_unpacked(mirror: Path, tmp_path: Path) -> None:
    package = lab(tmp_path).find("hel+o")
    assert (package.version, package.depends) == ("1.10-1", "other (= 1.10-1), libc6")
    file = lab(tmp_path).download(package, tmp_path / "downloads")
    unpack.unpack_deb(file, tmp_path / "unpacked")
    assert (tmp_path / "unpacked/usr/share/hello/text").read_text() == "hello from a package\n"
    assert unpack.deb_member(file, "./usr/share/hello/text") == b"hello from a package\n"
    assert lab(tmp_path).find("hello", "1.9-1").version == "1.9-1"


def test_what_no_suite_has_is_an_error_of_the_input(mirror: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no Debian suite has a package hello 3.0"):
        lab(tmp_path).find("hello", "3.0")


def replaced(file: Path, old: bytes, new: bytes) -> None:
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new))


def test_lists_whose_text_was_changed_are_refused(mirror: Path, tmp_path: Path) -> None:
    replaced(mirror / "dists/stable/InRelease", b"Origin: Test", b"Origin: Evil")
    with pytest.raises(LabError, match="not signed by a known key of Debian"):
        lab(tmp_path).find("hello")


def test_text_around_the_signed_text_is_not_believed(mirror: Path, tmp_path: Path) -> None:
    file = mirror / "dists/stable/InRelease"
    file.write_bytes(
        b"SHA256:\n " + b"0" * 64 + b" 1 main/binary-amd64/Packages.xz\n" + file.read_bytes()
    )
    try:
        found = lab(tmp_path).find("hello")
    except LabError as error:
        assert "not signed" in error.message
    else:
        assert found.version == "1.10-1"


def test_lists_that_another_key_signed_are_refused(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a keyring on the host, that of the archive serves, whose keys are then not
    Debian's."""
    monkeypatch.setattr(archive, "_KEYRINGS", [])
    (tmp_path / "lists").mkdir()
    shutil.copyfile(mirror / "keyring.gpg", tmp_path / "lists" / "keyring.pgp")
    if shutil.which("gpgv"):
        with pytest.raises(LabError, match="not signed by a known key of Debian"):
            lab(tmp_path).find("hello")
    else:
        with pytest.raises(LabError, match="gpgv is not installed"):
            lab(tmp_path).find("hello")


def test_another_list_than_the_signed_one_is_refused(mirror: Path, tmp_path: Path) -> None:
    (mirror / INDEX).write_bytes((mirror / INDEX).read_bytes() + b"x")
    with pytest.raises(LabError, match="but the signed lists say"):
        lab(tmp_path).find("hello")


def test_another_package_than_the_listed_one_is_refused(mirror: Path, tmp_path: Path) -> None:
    package = lab(tmp_path).find("hello")
    replaced(mirror / "pool/hello.deb", b"debian-binary", b"debian-banary")
    with pytest.raises(LabError, match="but the signed lists say"):
        lab(tmp_path).download(package, tmp_path / "downloads")
    assert not list((tmp_path / "downloads").glob("*.deb"))


def test_a_damaged_package_is_downloaded_again(mirror: Path, tmp_path: Path) -> None:
    reporter = Notes()
    here = Archive(tmp_path / "lists", reporter, "amd64")
    package = here.find("hello")
    file = here.download(package, tmp_path / "downloads")
    inode, content = file.stat().st_ino, file.read_bytes()
    assert here.download(package, tmp_path / "downloads") == file and file.stat().st_ino == inode
    file.write_bytes(content[:-1])
    assert here.download(package, tmp_path / "downloads").read_bytes() == content
    assert ["damaged" in note for note in reporter.notes] == [True]


def test_lists_are_fetched_once_a_day(mirror: Path, tmp_path: Path) -> None:
    lab(tmp_path).find("hello")
    shutil.rmtree(mirror)
    assert lab(tmp_path).find("hello").version == "1.10-1"
    for file in (tmp_path / "lists").rglob("Packages.xz"):
        os.utime(file, (0, 0))
    assert lab(tmp_path).find("hello").version == "1.10-1"


def test_a_mirror_that_cannot_be_reached_is_named(mirror: Path, tmp_path: Path) -> None:
    shutil.rmtree(mirror)
    with pytest.raises(LabError, match=r"cannot download file:.*InRelease: .*No such file"):
        lab(tmp_path).find("hello")


def test_a_file_that_is_no_package_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "x.deb"
    file.write_bytes(b"!<arch>\n")
    with pytest.raises(LabError, match=r"cannot unpack .*x.deb"):
        unpack.unpack_deb(file, tmp_path / "out")


def test_a_mirror_cannot_fill_the_disk_or_the_memory(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = lab(tmp_path).find("hello")
    (mirror / "pool/hello.deb").write_bytes(bytes(package.bytes + 1))
    with pytest.raises(LabError, match=f"more than {package.bytes} bytes"):
        lab(tmp_path).download(package, tmp_path / "downloads")
    monkeypatch.setattr(unpack, "_MOST_IN_MEMORY", 10)
    with pytest.raises(LabError, match="larger than"):
        unpack.deb_member(SIGNED / "pool/hello.deb", "./usr/share/hello/text")
