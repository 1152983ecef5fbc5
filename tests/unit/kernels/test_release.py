"""Releases of kernel.org from a server on this host, signed by a key that the tests make."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.kernels import archive, archive_download, release
from kteardown.kernels.source import Sources, check_source
from kteardown.patches.find_base import KNOWN, default_sources
from kteardown.progress import SilentReporter

pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="makes a key with gpg")
BALL = "/linux/kernel/v6.x/linux-6.16.1.tar.xz"
SIGN = "/linux/kernel/v6.x/linux-6.16.1.tar.sign"
Answer = Callable[[http.server.BaseHTTPRequestHandler, bytes], None]


@pytest.fixture(scope="module")
def signed() -> Iterator[Path]:
    """A folder with a tarball, its signature, and the keyrings of two keys, of which the first has
    signed."""
    with tempfile.TemporaryDirectory(
        prefix="gpg-"
    ) as name:  # A short path: gpg has a socket in it.
        folder = Path(name)

        def gpg(*argv: str) -> bytes:
            options = ["--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]
            done = subprocess.run(
                ["gpg", "--homedir", name, *options, *argv], check=True, capture_output=True
            )
            return done.stdout

        for user in ("torvalds", "stranger"):
            gpg("--quick-gen-key", f"{user}@localhost", "ed25519", "sign", "never")
            (folder / f"{user}.gpg").write_bytes(gpg("--export", f"{user}@localhost"))
        top = folder / "linux-6.16.1"
        top.mkdir()
        for file in ("Kconfig", "Kbuild"):
            (top / file).write_text(f"{file}\n")
        (top / "noise").write_bytes(bytes(n * n % 251 for n in range(300_000)))
        tar = folder / "linux-6.16.1.tar"
        subprocess.run(["tar", "-C", name, "-cf", str(tar), top.name], check=True)
        gpg("-u", "torvalds", "--armor", "--detach-sign", "--output", f"{tar}.sign", str(tar))
        subprocess.run(["xz", "-0", str(tar)], check=True)
        yield folder
        subprocess.run(["gpgconf", "--homedir", name, "--kill", "all"], check=False)


class Server:
    """A mirror; ``answers`` replaces what it answers for a path, one request each."""

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.ranges: list[str | None] = []
        files = {path: (folder / Path(path).name).read_bytes() for path in (BALL, SIGN)}
        mirror = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == BALL:
                    mirror.ranges.append(self.headers["Range"])
                if later := mirror.answers.get(self.path):
                    later.pop(0)(self, files[self.path])
                elif self.path in files:
                    whole(self, files[self.path])
                else:
                    self.send_error(404)

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


def whole(to: http.server.BaseHTTPRequestHandler, content: bytes) -> None:
    start = int((to.headers["Range"] or "bytes=0-")[6:-1])
    if start >= len(content):
        to.send_error(416)
        return
    to.send_response(206 if start else 200)
    to.send_header("Content-Length", str(len(content) - start))
    to.end_headers()
    to.wfile.write(content[start:])


def half(to: http.server.BaseHTTPRequestHandler, content: bytes) -> None:
    to.send_response(200)
    to.send_header("Content-Length", str(len(content)))
    to.end_headers()
    to.wfile.write(content[: len(content) // 2])


def page(to: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
    to.send_response(200)
    to.end_headers()
    to.wfile.write(b"<!doctype html><title>Making sure you're not a bot</title>")


def rubbish(to: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
    to.wfile.write(b"\0\1\2 rubbish\n" * 100)


def nothing(to: http.server.BaseHTTPRequestHandler, _: bytes) -> None:
    to.close_connection = True


def other(to: http.server.BaseHTTPRequestHandler, content: bytes) -> None:
    whole(to, content[:-40] + bytes(40))


@pytest.fixture
def server(signed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server(signed)
    monkeypatch.setenv(release.MIRROR, f"http://127.0.0.1:{server.http.server_port}/linux/kernel/")
    monkeypatch.setenv(release.KEYRING, str(signed / "torvalds.gpg"))
    monkeypatch.setattr(archive_download, "_ATTEMPTS", 1)
    yield server
    server.http.shutdown()
    server.http.server_close()


def tree(cache: Path, version: str = "6.16.1") -> Path:
    lab = Sources(cache, SilentReporter())
    return lab.tree(lab.identify(f"kernel.org:{version}"))


def test_a_release_is_downloaded_verified_and_unpacked_once(server: Server, tmp_path: Path) -> None:
    found = tree(tmp_path)
    assert (found.name, (found / "Kconfig").read_text()) == ("kernel.org-6.16.1", "Kconfig\n")
    assert tree(tmp_path) == found
    shutil.rmtree(found)
    assert tree(tmp_path) == found and server.ranges == [None]


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        (BALL, half, r"the connection ended after \d+ of \d+ bytes"),
        (BALL, page, "asks whether you are a robot"),
        (SIGN, page, "asks whether you are a robot"),
        (BALL, rubbish, "not valid HTTP|rubbish"),
        (BALL, nothing, "closed connection"),
        (BALL, other, "BAD|damaged|no known key has signed it"),
    ],
)
def test_a_server_that_sends_something_else_is_an_error(
    server: Server, tmp_path: Path, path: str, answer: Answer, expected: str
) -> None:
    server.answers = {path: [answer]}
    with pytest.raises(LabError, match=expected):
        tree(tmp_path)
    assert not (tmp_path / "downloads/linux-6.16.1.tar.xz").exists()
    assert (tree(tmp_path) / "Kconfig").read_text() == "Kconfig\n", "the next time"


def test_half_a_file_is_kept_and_continued(server: Server, tmp_path: Path) -> None:
    server.answers = {BALL: [half, page, nothing]}
    for _ in range(3):
        with pytest.raises(LabError) as caught:
            tree(tmp_path)
        assert "MB and continues there" in caught.value.hint
    partial = (tmp_path / "downloads/linux-6.16.1.tar.xz.partial").stat().st_size
    assert tree(tmp_path).is_dir()
    assert server.ranges == [None, *[f"bytes={partial}-"] * 3]
    assert not (tmp_path / "downloads/linux-6.16.1.tar.xz.partial").exists()


def test_a_whole_file_that_was_not_verified_is_downloaded_again(
    server: Server, signed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "downloads").mkdir()
    shutil.copyfile(signed / Path(BALL).name, tmp_path / "downloads/linux-6.16.1.tar.xz.partial")
    monkeypatch.setattr(archive_download, "_ATTEMPTS", 2)
    assert tree(tmp_path).is_dir()
    assert len(server.ranges) == 2 and server.ranges[1] is None


def test_a_file_that_another_key_has_signed_is_refused(
    server: Server, signed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(release.KEYRING, str(signed / "stranger.gpg"))
    with pytest.raises(LabError, match="no known key has signed it") as caught:
        tree(tmp_path)
    assert release.KEYRING in caught.value.hint
    monkeypatch.setenv(release.KEYRING, str(tmp_path / "none.gpg"))
    with pytest.raises(InputError, match="there is no file"):
        tree(tmp_path)


def test_the_keys_of_kernel_org_must_have_the_known_fingerprints(
    server: Server, signed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of keys that gives a key of its own, which has signed what it offers."""
    monkeypatch.delenv(release.KEYRING)
    monkeypatch.setattr(release, "_KEYS", f"file://{signed}/")
    strangers = dict(
        zip(release._SIGNERS, ("torvalds.gpg", "stranger.gpg", "stranger.gpg"), strict=True)
    )
    monkeypatch.setattr(release, "_SIGNERS", strangers)
    with pytest.raises(LabError, match="no known key has signed it"):
        tree(tmp_path)
    argv = ["gpg", "--homedir", str(signed), "--with-colons", "--list-keys", "torvalds@localhost"]
    listed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    own = next(line for line in listed.splitlines() if line.startswith("fpr")).split(":")[9]
    monkeypatch.setattr(release, "_SIGNERS", {own: "torvalds.gpg"})
    assert tree(tmp_path).is_dir()


def test_a_release_that_does_not_exist_is_an_error_of_the_input(
    server: Server, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"http://127.0.0.1:\d+/linux/kernel has no release 6.99"):
        tree(tmp_path, "6.99")


@pytest.mark.parametrize("version", ["6.17-rc1", "6.16.0", "2.6.39", "six", "6", "../6.16"])
def test_what_is_not_a_release_is_an_error_at_once(version: str) -> None:
    with pytest.raises(InputError, match="not a release with a signed tarball"):
        check_source(f"kernel.org:{version}")


def test_the_directory_of_keys_is_asked_for_the_accounts_of_kernel_org() -> None:
    """By the rules of the web key directory: SHA-1 of the account, in the alphabet z-base-32."""
    import hashlib

    for place in release._SIGNERS.values():
        name, _, account = place.partition("?l=")
        number = int.from_bytes(hashlib.sha1(account.encode()).digest(), "big")
        alphabet = "ybndrfg8ejkmcpqxot1uwisza345h769"
        assert name == "".join(alphabet[number >> (155 - 5 * n) & 31] for n in range(32))


def test_without_debian_the_releases_of_kernel_org_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Sources(tmp_path, SilentReporter())
    monkeypatch.setenv(archive.MIRROR, "http://mirror.example/debian")
    assert default_sources(lab) == KNOWN
    monkeypatch.delenv(archive.MIRROR)
    monkeypatch.setenv("PATH", str(tmp_path))  # No apt.
    assert default_sources(lab)[0] == KNOWN[0].replace("debian", "kernel.org")
