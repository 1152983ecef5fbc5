"""b4 with an archive of our own on this host."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.patches.given import message_id
from kteardown.patches.posted import read_series
from kteardown.progress import SilentReporter

MAILS = Path(__file__).parents[2] / "data" / "mail"


class Archive(BaseHTTPRequestHandler):
    """Has one thread, as public-inbox does: /all/MESSAGE-ID/t.mbox.gz."""

    def do_GET(self) -> None:
        thread = gzip.compress((MAILS / "revisions.mbox").read_bytes())
        if "202603-1-0%40example.org/t.mbox" not in self.path:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(thread)))
        self.end_headers()
        self.wfile.write(thread)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Archive)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "b4.midmask")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"http://127.0.0.1:{server.server_port}/all/%s")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_thread_is_fetched_once_and_the_named_revision_is_used(
    archive: HTTPServer, tmp_path: Path
) -> None:
    for name in ("lore:202603-1-0@example.org", "lore:<202603-1-0@example.org>"):
        found = read_series(name, cache_dir=tmp_path, reporter=SilentReporter())
        assert (found.revision, len(found.patches)) == ("", 2)
        archive.shutdown()  # The second time nothing is fetched.


def test_a_mail_that_the_archive_does_not_have_is_an_error(
    archive: HTTPServer, tmp_path: Path
) -> None:
    with pytest.raises((InputError, LabError)):
        read_series("lore:not-there@example.org", cache_dir=tmp_path, reporter=SilentReporter())


def test_without_network_one_line_is_printed(
    archive: HTTPServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "http://archive.invalid/all/%s")
    with pytest.raises(LabError, match="cannot be reached") as caught:
        read_series("lore:202603-1-0@example.org", cache_dir=tmp_path, reporter=SilentReporter())
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("lore:a-1@example.org", "a-1@example.org"),
        ("lore:<a-1@example.org>", "a-1@example.org"),
        ("https://lore.kernel.org/all/a-1@example.org/", "a-1@example.org"),
        ("https://lore.kernel.org/linux-mm/a-1@example.org/T/#u", "a-1@example.org"),
        ("https://lore.kernel.org/r/a-1@example.org", "a-1@example.org"),
        ("./a-1@example.org", ""),
        ("thread.mbox", ""),
    ],
)
def test_names_of_mails_in_the_archive(what: str, found: str) -> None:
    assert message_id(what) == found
