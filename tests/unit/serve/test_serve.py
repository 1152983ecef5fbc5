"""The local pages over HTTP: requests of a browser, and requests of an attacker."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from kteardown import pipeline
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown.serve.app import Pages, make_app
from unit import processes
from unit.cli.test_main import kteardown
from unit.report.contexts import write_both, write_run
from unit.run import killable
from unit.simulation import freezer

_EVIL = "<script>alert(1)</script>[/bold]\x1b"


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True)
class Site:
    """A server of the runs in ``runs``."""

    process: processes.CommandLine
    port: int
    runs: Path

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Send one request; ``path`` is sent unchanged."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read().decode())
        finally:
            connection.close()

    def names(self) -> list[str]:
        """Return the names of the runs, oldest first."""
        return sorted(path.name for path in self.runs.iterdir())


@contextmanager
def serving(home: Path) -> Iterator[Site]:
    """Run a server in its own process, on a free port."""
    environment = {**os.environ, "KTEARDOWN_RUNS": str(home / "runs"), "KTEARDOWN_CACHE": str(home / "cache")}
    with processes.running(["serve", "--port", "0"], environment) as process:
        while not process.out.endswith("\n"):
            assert process.process.is_alive(), process.end()
            time.sleep(0.001)
        found = re.match(r"(\S+) shows ", process.out)
        assert found, process.out
        yield Site(process, urlsplit(found[1]).port or 0, home / "runs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve two finished runs, one without boots, and one whose question is markup."""
    home = tmp_path_factory.mktemp("home")
    for clock in ("instructions", "wall"):
        killable.measure(killable.make_run(home / "runs", clock).path)
    killable.make_run(home / "runs", "instructions")
    evil = killable.make_run(home / "runs", "instructions")
    experiment = json.loads(evil.experiment_file.read_bytes())
    evil.experiment_file.write_text(json.dumps({**experiment, "question": _EVIL}))
    (home / "secret").mkdir()
    (home / "secret" / "experiment.json").write_bytes(evil.experiment_file.read_bytes())
    (home / "secret" / "result.json").write_text('"not for you"')
    with serving(home) as found:
        yield found


def test_the_list_has_every_run_newest_first(site: Site) -> None:
    page = site.ask("/")
    assert page.status == 200
    places = [page.text.index(f">{name}</span>") for name in reversed(site.names())]
    assert places == sorted(places)
    assert page.text.count("unfinished</span>") == 2
    assert "inconclusive</span>" in page.text or "worse</span>" in page.text


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("clock=wall", 1),
        ("state=done", 2),
        ("experiment=killed", 4),
        ("state=running", 0),
        ("from=2", 2),
        ("variant=freezer-skip-exited", 4),
        ("variant=x", 0),
        ("verdict=broken", 0),
    ],
)
def test_the_list_can_be_filtered(query: str, count: int, site: Site) -> None:
    assert site.ask(f"/?{query}").text.count('class="name"') == count


def test_the_page_of_a_run_has_its_report_and_its_files(site: Site) -> None:
    name = site.names()[0]
    page = site.ask(f"/runs/{name}")
    assert page.status == 200
    assert "Is anything lost?" in page.text and "To repeat it:" in page.text
    assert 'id="live"' not in page.text
    run = RunDir(site.runs / name)
    result = site.ask(f"/runs/{name}/result.json")
    assert (result.headers["content-type"], result.text) == ("application/json", run.result_file.read_text())
    assert site.ask(f"/runs/{name}/report.md").text == run.report_file.read_text()


def test_the_report_with_charts_is_sandboxed(site: Site) -> None:
    name, *_, unfinished = site.names()
    page = site.ask(f"/runs/{name}/report.html")
    assert page.status == 200 and page.text.startswith("<!doctype html>")
    policy = page.headers["content-security-policy"]
    assert (
        "default-src 'none'" in policy and "sandbox allow-scripts" in policy and "connect-src" not in policy
    )
    assert "allow-same-origin" not in policy
    assert site.ask(f"/runs/{unfinished}/report.html").status == 404


def test_markup_in_a_run_is_escaped(site: Site) -> None:
    page = site.ask(f"/runs/{site.names()[-1]}")
    assert page.status == 200
    assert _EVIL not in page.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;[/bold]\\u001b" in page.text


def test_two_runs_are_compared(site: Site) -> None:
    a, b = site.names()[:2]
    page = site.ask(f"/compare?a={a}&b={b}")
    assert page.status == 200
    assert "clock: instructions / wall, which measure different things" in page.text
    assert "freezing user space (freeze_user_ns), freezer-skip-exited against base" in page.text
    assert "comparisons in both" in page.text
    assert "choose a run" in site.ask("/compare").text


def test_a_run_without_a_result_cannot_be_compared(site: Site) -> None:
    done, _, unfinished, _ = site.names()
    page = site.ask(f"/compare?a={done}&b={unfinished}")
    assert page.status == 400
    assert f"{unfinished} has no result yet of all its boots" in page.text
    assert site.ask(f"/runs/{unfinished}/result.json").status == 404


def test_a_result_of_fewer_boots_is_shown_only_while_the_run_is_measured(tmp_path: Path) -> None:
    stale, done = (killable.make_run(tmp_path / "runs", "instructions") for _ in range(2))
    for run in (stale, done):
        killable.measure(run.path)
    lines = stale.records_file.read_bytes()
    stale.records_file.write_bytes(lines[: lines.rindex(b'{"boot":', 0, lines.rindex(b'"boot_end"'))])
    pipeline.analyse_and_save(load(stale))
    stale.records_file.write_bytes(lines)
    with serving(tmp_path) as site:
        for path in ("report.html", "result.json", "report.md"):
            assert site.ask(f"/runs/{stale.name}/{path}").status == 404
            assert site.ask(f"/runs/{done.name}/{path}").status == 200
        page = site.ask(f"/runs/{stale.name}").text
        assert "<h2>Verdict" not in page and f"--resume {stale.name}" in page
        assert site.ask("/?state=unfinished").text.count('class="name"') == 1
        refused = site.ask(f"/compare?a={done.name}&b={stale.name}")
        assert refused.status == 400 and f"{stale.name} has no result yet of all its boots" in refused.text
        with open_writer(stale):
            assert "<h2>Verdict after 5 boots</h2>" in site.ask(f"/runs/{stale.name}").text
            assert site.ask(f"/runs/{stale.name}/result.json").status == 200


def test_the_history_has_charts_or_tables(site: Site) -> None:
    one = site.ask("/history?metric=freeze_user_ns&point=zombies%3D300&clock=instructions")
    assert one.status == 200
    assert '<svg class="line"' in one.text and "least to most" in one.text
    many = site.ask("/history").text
    assert "<svg" not in many and "%2Czombies" not in many
    assert many.count('<a href="/history?experiment=killed&amp;clock=instructions') == 6
    assert site.ask("/history?point=zombies").status == 400


@pytest.mark.parametrize(
    ("query", "status", "expected"),
    [
        ("metric=freze_user_ns", 404, "did you mean &#39;freeze_user_ns&#39;"),
        ("workload=nope", 404, "choose one that the runs have: zombies."),
        ("point=zombies%3D7", 404, "choose one that the runs have: zombies=0"),
        ("clock=sun", 400, "there is no clock &#39;sun&#39;"),
        ("experiment=nope", 400, "choose one of: killed."),
    ],
)
def test_the_history_of_something_unknown_says_what_is_known(
    query: str, status: int, expected: str, site: Site
) -> None:
    page = site.ask(f"/history?{query}")
    assert page.status == status
    assert expected in page.text


def test_an_unknown_filter_is_shown_as_chosen(site: Site) -> None:
    boots = f"/runs/{site.names()[0]}/boots?kernel=nope"
    for path in ("/?experiment=nope", boots, "/history?metric=nope"):
        assert '<option value="nope" selected>' in site.ask(path).text, path


_OPTION = re.compile(r"(?<![\w-])--[a-z]+")


def test_no_page_has_an_option_without_its_command(tmp_path: Path) -> None:
    unlike = freezer(boots=1, zombies=(0, 3000), variants=("first", "second"))
    names = []
    for experiment in (freezer(boots=1, zombies=(0, 3000)), unlike):
        run = write_run(tmp_path / "runs", experiment)
        pipeline.analyse_and_save(load(run))
        names.append(run.name)
    paths = ("/", f"/runs/{names[0]}", f"/compare?a={names[0]}&b={names[1]}", "/history")
    with serving(tmp_path) as site:
        pages = [site.ask(path).text for path in paths]
    for page in pages:
        # The report is what a terminal prints, with the command at its end.
        shown = re.sub(r"(?s)<pre.*?</pre>|<h2>Report</h2>\s*<p.*?</p>", "", page)
        assert not _OPTION.findall(re.sub(r"<code>kteardown .*?</code>", "", shown))
    assert "measure again: <code>kteardown run freezer --seeds 2</code>" in pages[1]
    mapped = f"kteardown diff {names[0]} {names[1]} --map freezer-skip-exited=first"
    assert f"<code>{mapped}</code>" in pages[2]
    assert "choose one under Metric to see it" in pages[3]


def test_the_progress_of_a_running_run_is_shown(site: Site) -> None:
    name = site.names()[2]
    run = RunDir(site.runs / name)
    before = site.ask(f"/runs/{name}/live")
    assert before.headers["x-run-state"] == "unfinished" and "--resume" in before.text
    with open_writer(run):
        live = site.ask(f"/runs/{name}/live")
        assert live.headers["x-run-state"] == "running"
        assert "0 of 6" in live.text and "not known yet" in live.text
        assert "follow.js" in site.ask(f"/runs/{name}").text
        assert 'class="state running"' in site.ask("/").text


def test_without_a_script_the_page_of_a_running_run_is_reloaded(site: Site) -> None:
    with open_writer(RunDir(site.runs / site.names()[2])):
        assert '<noscript><meta http-equiv="refresh"' in site.ask(f"/runs/{site.names()[2]}").text


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", "", "[::1]"]
)
def test_other_host_names_are_refused(host: str, site: Site) -> None:
    assert site.ask("/", Host=host).status == 400


def test_another_port_in_the_host_name_is_allowed(site: Site) -> None:
    assert site.ask("/", Host="localhost:9999").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/runs/..",
        "/runs/../secret/result.json",
        "/runs/%2e%2e/secret/result.json",
        "/runs/..%2fsecret/result.json",
        "/runs/..%2fsecret",
        "/runs/%2fetc%2fpasswd",
        "/runs/.%00/result.json",
        "/static/0.1.0/../../pages.py",
        "/static/0.1.0/..%2f..%2fpages.py",
        "//etc/passwd",
    ],
)
def test_no_address_reaches_another_file(path: str, site: Site) -> None:
    page = site.ask(path)
    assert page.status == 404
    assert "not for you" not in page.text


def test_a_folder_that_is_not_a_run_cannot_be_compared(site: Site) -> None:
    assert site.ask(f"/compare?a=../secret&b={site.names()[0]}").status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(method: str, site: Site) -> None:
    assert site.ask(f"/runs/{site.names()[0]}", method).status == 405


def test_requests_write_nothing(site: Site) -> None:
    before = _everything(site.runs)
    for name in site.names():
        for path in ("", "/live", "/report.html", "/result.json", "/report.md", "/boots", "/boots/0"):
            site.ask(f"/runs/{name}{path}")
    site.ask("/history")
    assert _everything(site.runs) == before


def _everything(root: Path) -> dict[str, str]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_response_has_the_security_headers(site: Site) -> None:
    for path in ("/", f"/runs/{site.names()[0]}", "/nowhere", f"/runs/{site.names()[0]}/result.json"):
        headers = site.ask(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers


def test_an_internal_error_has_the_security_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_pages: Pages, _request: Request) -> Response:
        raise RuntimeError

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    monkeypatch.setattr(Pages, "runs", broken)
    sent: list[Message] = []
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    with pytest.raises(RuntimeError):
        asyncio.run(make_app()(scope, receive, send))
    headers = dict(sent[0]["headers"])
    assert sent[0]["status"] == 500
    assert b"default-src 'none'" in headers[b"content-security-policy"]
    assert headers[b"x-content-type-options"] == b"nosniff"


def test_every_link_of_a_page_works(site: Site) -> None:
    page = site.ask(f"/runs/{site.names()[0]}").text
    for path in set(re.findall(r'(?:href|src)="(/[^"#]*)[^"]*"', page)):
        assert site.ask(path.replace("&amp;", "&")).status == 200, path
    style = re.search(r'href="(/static/[^"]*)"', page)
    assert style is not None
    assert "prefers-color-scheme:dark" in site.ask(style[1]).text


def test_it_listens_only_on_loopback(site: Site) -> None:
    found = psutil.Process(site.process.pid).net_connections(kind="inet")
    listening = {entry.laddr for entry in found if entry.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", site.port)}


def test_a_port_in_use_is_an_error_with_a_hint(site: Site, tmp_path: Path) -> None:
    done = kteardown("serve", "--port", str(site.port), home=tmp_path)
    assert done.returncode == 2
    assert f"--port {site.port}: cannot be used" in done.stderr and "--port 0" in done.stderr


def test_pages_work_without_runs_and_an_interrupt_stops_the_server(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        for path in ("/", "/history", "/compare"):
            assert site.ask(path).status == 200
        assert "There are no runs yet" in site.ask("/").text
        # A browser keeps its connection open.
        waiting = http.client.HTTPConnection("127.0.0.1", site.port)
        waiting.request("GET", "/")
        waiting.getresponse().read()
        os.kill(site.process.pid, signal.SIGINT)
        done = site.process.end()
        waiting.close()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\nstopped\n")


def test_a_run_on_both_clocks_has_a_page_for_each_with_both_side_by_side(tmp_path: Path) -> None:
    found = write_both(tmp_path / "runs")
    for run in found.runs:
        kteardown("analyse", run.name, home=tmp_path)
    with serving(tmp_path) as site:
        listed = site.ask("/")
        for run, other in zip(found.runs, reversed(found.runs), strict=True):
            assert f'href="/runs/{run.name}"' in listed.text
            page = site.ask(f"/runs/{run.name}")
            assert page.status == 200
            assert f'href="/runs/{other.name}"' in page.text
            assert "% [-46.5, -46.1] agree 3 agree" in " ".join(page.text.split())
            assert json.loads(site.ask(f"/runs/{run.name}/result.json").text)["clock"] == run.path.name
            assert site.ask(f"/runs/{run.name}/report.html").status == 200
        assert site.ask(f"/runs/{found.name}").status == 404
        assert site.ask(f"/runs/{found.name}/wall/../../x").status == 404
