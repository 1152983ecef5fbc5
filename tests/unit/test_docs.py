"""The documentation: every command in it is valid, and the site builds without a broken link.

All commands, in code blocks and in running text, are parsed by the real command line. The commands
of verbs that need no guest are run, in a folder that contains the files that they name; ``run`` is
run as ``plan``, with the same options, and ``compare`` stops before kernels would be built. The
commands of the tutorial are run with guests by ``tests/vm/test_tutorial.py``.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.inputs.assignments import parse_assignments
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted, apply
from kteardown.paths import cache_dir
from kteardown.run.resolve import base_and_variants, experiment_for, experiment_of_script, resolve
from kteardown.script.describe import describe, is_script, keep
from unit.cli.test_main import kteardown
from unit.kernels.test_git_branch import git
from unit.run import killable

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md"))
RUN = ("list", "plan", "run", "show", "report", "diff", "query", "export", "new")
"""Verbs whose commands are run. The others build kernels, boot guests, prompt, serve, or need many
runs."""
# Options of `run` that `plan` does not have, with the number of their arguments.
_OUTPUT = {
    "--json": 1,
    "--markdown": 1,
    "--html": 1,
    "--fail-on": 1,
    "--on": 1,
    "--machine": 1,
    "-v": 0,
    "-q": 0,
}
_PLACEHOLDER = re.compile(
    r"\b(?!SELECT|FROM|WHERE|GROUP|ORDER|BY|ALL|AND|LIMIT|HEAD)[A-Z]{1,}[A-Z.]*\b"
)
VERBS = get_command(app).commands  # type: ignore[attr-defined]


def commands(text: str) -> list[str]:
    """Return every command line of kteardown in a page, without the prompt, pipes and
    redirections."""
    text = re.sub(r"\\\n\s*", "", text)
    lines = re.findall(r"^(?:    |\$ |    \$ )(?:\.venv/bin/)?(kteardown .*)$", text, re.MULTILINE)
    inline = re.findall(r"(?<!`)`(kteardown [^`]+)`(?!`)", re.sub(r"\s*\n\s*", " ", text))
    # Not what is between quotes, as the address of a person.
    end = r"\s+(?:\||>|<|#)\s?(?=(?:[^']*'[^']*')*[^']*$)"
    found = [re.split(end, line)[0] for line in lines + inline]
    # Without duplicates, and without the author's name in patches.
    return [line for line in dict.fromkeys(found) if not line.startswith("kteardown developers")]


def examples(verb: str) -> list[str]:
    """Return the examples in the help of a verb."""
    text = re.sub(
        r"(kteardown [^\n]*)\n {2,}(?!kteardown|[A-Z_]+=)(\S)", r"\1 \2", VERBS[verb].help or ""
    )
    return [
        re.split(r"\s+[|>]\s", line)[0]
        for line in re.findall(r"^\s+(kteardown .*)$", text, re.MULTILINE)
    ]


EVERY = sorted(
    {
        *(line for page in PAGES for line in commands(page.read_text(encoding="utf-8"))),
        *(line for verb in VERBS for line in examples(verb)),
    }
)


def runnable(line: str) -> bool:
    """Return whether a command can be run unchanged: it is complete, boots nothing and has no
    placeholder."""
    _, verb, *arguments = shlex.split(line)
    complete = bool(arguments) or verb in ("list", "show", "report")
    return (
        complete and verb in RUN and not _PLACEHOLDER.search(line) and "--resume" not in arguments
    )


RUNNABLE = [line for line in EVERY if runnable(line)]
COMPARED = [
    line
    for line in EVERY
    if line.startswith("kteardown compare ") and re.search("my.mbox|--branch", line)
]


def test_commands_are_found_in_code_blocks_and_in_running_text() -> None:
    page = (
        "a `kteardown list\nruns` b\n\n"
        "    .venv/bin/kteardown show last \\\n       --console 1  # c\n\n"
        "$ kteardown doctor | head\n"
    )
    assert commands(page) == [
        "kteardown show last --console 1",
        "kteardown doctor",
        "kteardown list runs",
    ]


@pytest.mark.parametrize("line", EVERY)
def test_every_command_is_valid(line: str) -> None:
    verb, *arguments = shlex.split(line)[1:]
    if verb == "VERB" or verb.startswith("-"):
        return
    assert verb in VERBS, line
    # A verb without arguments, in running text, is only mentioned.
    if arguments and "--help" not in arguments:
        VERBS[verb].make_context(verb, arguments)


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_workflows_have_valid_commands_and_are_in_the_page(name: str) -> None:
    text = (ROOT / f"docs/ci/{name}.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    assert text.strip() in page if name == "github" else f"ci/{name}.yml" in page
    joined = re.sub(r"\n {6,10}--", " --", text)
    found = re.findall(r"kteardown ((?:compare|report) [^>\n]*[^>\s])", joined)
    assert next(line.split()[0] for line in found) == "compare"
    for line in found:
        verb, *arguments = shlex.split(line)
        VERBS[verb].make_context(verb, arguments)


@pytest.mark.parametrize(
    "page",
    [*PAGES, *sorted(ROOT.glob("results/*/*.md"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_link_leads_to_a_file_of_the_checkout(page: Path) -> None:
    """The site changes them (``scripts/docs_pages.py``), a reader of the checkout does not."""
    links = re.findall(r"\]\(([^()\s#]+)[^()\s]*\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if ":" not in link and not (page.parent / link).exists()] == []


def test_the_readme_lists_every_experiment() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    table = page.split("\n## Experiments\n")[1].split("\n## ")[0]
    first = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))
    assert set(re.findall(r"`([^`]+)`", first)) == {
        path.stem for path in (ROOT / "experiments").glob("*.toml")
    }


def test_many_commands_are_found_and_most_are_run() -> None:
    assert len(EVERY) > 40
    assert len(RUNNABLE) > 20


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the commands name: a finished run, results, patches, an
    experiment."""
    folder = tmp_path_factory.mktemp("docs")
    done = killable.make_run(folder / "runs", "instructions")
    killable.measure(done.path)
    kteardown("report", home=folder)
    # The kinds of the hunt are listed by a program, which is built if its sources have changed.
    (folder / "cache").mkdir(exist_ok=True)
    (cache_dir() / "agent").mkdir(parents=True, exist_ok=True)
    (folder / "cache/agent").symlink_to(cache_dir() / "agent")
    # The series of some published results are among the tests.
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "from-the-author").mkdir()
    shutil.copy(done.path / "result.json", folder / "from-the-author")
    patches = sorted((ROOT / "series/freezer-skip-exited").glob("*.patch"))
    mails = (b"From x Mon Sep 17 00:00:00 2001\n" + path.read_bytes() for path in patches)
    (folder / "my.mbox").write_bytes(b"\n".join(mails))
    for kind, name, *more in (
        ("workload", "unmap_all"),
        ("experiment", "unmapping", "--workload", "unmap_all"),
        ("series", "my-change", "--from", "my.mbox"),
    ):
        assert kteardown("new", kind, name, *more, home=folder, cwd=folder).returncode == 0
    shutil.copy(folder / "experiments/unmapping.toml", folder / "mine.toml")
    return folder


@pytest.mark.parametrize("line", RUNNABLE)
def test_a_command_that_needs_no_guest_succeeds(
    line: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Replace the name of the run in the page by that of the run in this folder.
    verb, *arguments = shlex.split(re.sub(r"\b20\d{6}-\d{6}\b", "last", line))[1:]
    if verb == "run":
        verb, arguments = "plan", _planned(arguments)
    if verb == "new":
        shutil.copy(home / "my.mbox", tmp_path)
        for known in ("workloads", "agent"):
            if arguments[0] == "experiment":
                shutil.copytree(home / known, tmp_path / known)
    monkeypatch.chdir(tmp_path if verb == "new" else home)
    monkeypatch.setenv("KTEARDOWN_RUNS", str(home / "runs"))
    monkeypatch.setenv("KTEARDOWN_CACHE", str(home / "cache"))
    done = CliRunner().invoke(app, [verb, *arguments])
    assert done.exception is None, done.exception
    assert done.exit_code == 0


@pytest.fixture(scope="module")
def linux(home: Path) -> Path:
    """A git tree, ``~/linux`` in the pages, with the tag and the branches that they name."""
    tree = home / "linux"
    (tree / "kernel").mkdir(parents=True)
    git(tree, "init", "-q", "-b", "master")
    for branch in ("", "my-topic"):
        if branch:
            git(tree, "checkout", "-q", "-b", branch, "v6.12")
        for part in ("one", "two"):
            (tree / "kernel/power.c").write_text(f"{branch} {part}\n")
            git(tree, "add", ".")
            git(tree, "commit", "-q", "-m", f"PM: {branch} {part}")
        if not branch:
            git(tree, "tag", "v6.12")
    return tree


@pytest.mark.parametrize("line", COMPARED)
def test_a_comparison_is_prepared_up_to_the_build(
    line: str, home: Path, linux: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("KTEARDOWN_CACHE", str(home / "cache"))
    monkeypatch.chdir(home if "./my.mbox" in line or "git:" in line else linux)
    given = VERBS["compare"].make_context("compare", shlex.split(line)[2:]).params
    kernels = Kernels(**{field.name: given[field.name] for field in fields(Kernels)})
    designed = Designed(**{field.name: given[field.name] for field in fields(Designed)})
    source, variants = base_and_variants(
        given["source"] or "", given["series"] or [], given["branch"] or []
    )
    workload = given["workload"]
    if is_script(workload):
        for name in ("freeze.sh", "munmap.c", "swap.sh", "repro.sh"):
            Path(name).write_text("sleep $N $PROCESSES\n")
        params = parse_assignments(designed.assignments or ())
        scripted = Scripted(**{field.name: given[field.name] for field in fields(Scripted)})
        described = describe(workload, scripted, params)
        experiment = experiment_of_script(
            described.workload.name, source, keep(described, home / "cache")
        )
    else:
        experiment = experiment_for(workload, source)
    asked = apply(experiment, Overrides.of(kernels, designed, variant=variants))
    resolved = resolve(asked, ablate=kernels.ablate)
    (whole, *parts) = resolved.series
    assert whole.name == ("my" if given["series"] else line.split("..")[1].split(maxsplit=1)[0])
    assert len(whole.patches) == 2
    assert len(parts) == (2 if kernels.ablate else 0)


def _planned(arguments: list[str]) -> list[str]:
    """Return those arguments of ``run`` that ``plan`` also accepts."""
    kept, skip = [], 0
    for word in arguments:
        if skip:
            skip -= 1
        elif word in _OUTPUT:
            skip = _OUTPUT[word]
        else:
            kept.append(word)
    return kept


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--site-dir",
            tmp_path / "site",
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = {path.name for path in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "tutorial.html", "methodology.html", "cli.html", "analysis.html"} <= made
    site = (tmp_path / "site/reference/analysis.html").read_text()
    assert "kteardown.analysis.estimate.bootstrap" in site
    for path in (tmp_path / "site").rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img)[^>]*(?:src|href)=.?https?:[^>]*>", path.read_text()
        )
        assert fetched == [], path
