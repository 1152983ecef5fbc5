"""Programs that kteardown starts, in a folder full of files that they would read or execute
there."""

from __future__ import annotations

import ast
import itertools
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kteardown import spawn
from kteardown.queue import jobs
from unit.conftest import MISSING

ROOT = Path(__file__).parents[2]
MAIL = ROOT / "tests/data/mail/quoted-printable.eml"
PATIENCE_S = 300
_PROGRAMS = (
    *(
        "git",
        "make",
        "gcc",
        "cc",
        "ld",
        "find",
        "cp",
        "rm",
        "sync",
        "du",
        "ar",
        "tar",
        "xz",
        "zstd",
        "sh",
        "env",
    ),
    *(
        "bwrap",
        "setpriv",
        "prlimit",
        "taskset",
        "qemu-system-x86_64",
        "nm",
        "objdump",
        "addr2line",
        "b4",
    ),
    *(
        "ccache",
        "apt-get",
        "apt-config",
        "gpgv",
        "python3",
        "ssh",
        "sbatch",
        "squeue",
        "sinfo",
        "busybox",
    ),
)
_MODULES = (
    "sitecustomize",
    "usercustomize",
    "platformdirs",
    "tuxmake",
    "b4",
    "qemu",
    "duckdb",
    "resvg_py",
)
_GIT = """
[core]
    fsmonitor = "{0}"
    pager = "{0}"
    editor = "{0}"
    sshCommand = "{0}"
    hooksPath = "."
[diff]
    external = "{0}"
[alias]
    rev-parse = "!{0}"
    mailinfo = "!{0}"
[b4]
    linkmask = "{0}"
"""


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that what is in ``hostile`` writes to."""
    return tmp_path / "canary"


@pytest.fixture
def hostile(tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of each name that Python can import, a git tree, programs and
    settings.

    The cache, the runs and the queue are beside it.
    """
    for name in ("CACHE", "QUEUE", "RUNS"):
        monkeypatch.setenv(f"KTEARDOWN_{name}", str(tmp_path / name.lower()))
    folder = tmp_path / "hostile"
    (folder / ".git").mkdir(parents=True)
    script = folder / "git"
    for name in _PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {canary}\n")
        (folder / name).chmod(0o755)
    imported = {name.partition(".")[0] for name in sys.modules} | set(sys.stdlib_module_names)
    for name in imported.union(_MODULES):
        if name.isidentifier():
            (folder / f"{name}.py").write_text(
                f"open({str(canary)!r}, 'a').write({name + chr(10)!r})\n"
            )
    (folder / ".git/HEAD").write_text("ref: refs/heads/master\n")
    (folder / ".git/objects").mkdir()
    (folder / ".git/refs").mkdir()
    for name in (".git/config", ".b4-config", ".gitconfig"):
        (folder / name).write_text(_GIT.format(script))
    for name in ("GNUmakefile", "Makefile"):
        (folder / name).write_text(f"$(shell echo {name} >> {canary})\nall:\n")
    (folder / ".gdbinit").write_text(f"shell echo gdb >> {canary}\n")
    (folder / "specs").write_text(f"*cc1:\n{script}\n")
    return folder


def run(*words: str, folder: Path, stdin: bytes = b"", **variables: str) -> tuple[int, str, str]:
    """Run the command line in ``folder``; return its exit code, its output and its errors."""
    done = subprocess.run(
        spawn.kteardown(*words),
        cwd=folder,
        env={**os.environ, **variables},
        input=stdin,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_the_folder_is_hostile(hostile: Path, canary: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "kteardown", "--version"], cwd=hostile, check=False
    )  # without -P
    assert canary.exists()
    for program in ("make", "./git"):
        canary.unlink()
        subprocess.run([program], cwd=hostile, check=False)
        assert canary.exists(), program


def test_a_job_of_the_queue_executes_nothing_of_the_folder_in_which_it_was_added(
    hostile: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hostile / "thread.mbox").write_bytes(MAIL.read_bytes())
    # Neither needs a source: the file is missing in the folder in which the path was given.
    options = ("--source", "tar:./missing.tar")
    _, said, errors = run(
        "try", "-", "--format", "b4-check", *options, folder=hostile, stdin=MAIL.read_bytes()
    )
    assert '"summary": "queued' in said, errors
    monkeypatch.chdir(hostile)
    queue = hostile.parent / "queue"
    jobs.add(queue, "by its path", ["./thread.mbox"], options)
    jobs.start(queue)
    end = time.monotonic() + PATIENCE_S
    while not all(job.ended for job in jobs.jobs(queue)) and not canary.exists():
        assert time.monotonic() < end, (queue / "log").read_text()
        time.sleep(0.1)
    assert not canary.exists(), canary.read_text()
    for job in jobs.jobs(queue):
        assert job.ended is not None and job.ended.exit_code == 2
        assert "tar:./missing.tar: there is no such file" in job.text("log")


@pytest.mark.parametrize(
    "words, code",
    [
        ("list", 0),
        ("plan freezer", 0),
        ("plan freezer --source git:.", 2),
        *(() if "history" in MISSING else (("query 'select 1'", 0),)),
        ("try ./thread.mbox --dry-run --source tar:./missing.tar", 2),
        pytest.param("list kinds", 0, marks=pytest.mark.full),
        pytest.param("doctor", None, marks=pytest.mark.full),
    ],
)
def test_a_command_executes_nothing_of_the_current_folder(
    hostile: Path, canary: Path, words: str, code: int | None
) -> None:
    (hostile / "thread.mbox").write_bytes(MAIL.read_bytes())
    path = f".{os.pathsep}{os.environ['PATH']}{os.pathsep}"
    ended, _, errors = run(*shlex.split(words), folder=hostile, PATH=path)
    assert code in (ended, None), errors
    assert not canary.exists(), canary.read_text()
    assert "kteardown: PATH: '.', '' is not used" in errors


_STARTS = re.compile(
    r"subprocess\.(run|call|check_call|check_output|getoutput|getstatusoutput)"
    r"|asyncio\.(subprocess|create_subprocess_\w+)|\w+\.subprocess_(exec|shell)"
    r"|os\.(system|popen|forkpty|exec\w+|spawn\w+|posix_spawnp?)|pty\.\w+|multiprocessing\b.*"
    r"|concurrent\.futures\.ProcessPoolExecutor"
)
_MODULES_THAT_START = {"pty", "multiprocessing", "concurrent.futures.process"}
_WITHOUT_P = re.compile(r"(python3?|\$\(PY\)|/python)\"?\s+-[mc]\b")


def starts_in(text: str) -> Iterator[str]:
    """Yield each place in a module that starts a program without ``kteardown.spawn``."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if (
                node.module in ("subprocess", *_MODULES_THAT_START)
                or "ProcessPoolExecutor" in names
            ):
                yield f"{node.lineno}: from {node.module} import {', '.join(names)}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in _MODULES_THAT_START or (
                    alias.asname and alias.name in ("subprocess", "os")
                ):
                    yield f"{node.lineno}: import {alias.name}"
        elif isinstance(node, ast.Attribute) and _STARTS.fullmatch(ast.unparse(node)):
            yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "subprocess.Popen":
            yield f"{node.lineno}: subprocess.Popen"


def python_without_p(text: str) -> Iterator[str]:
    """Yield each place in a module that starts Python so that it looks for modules in the current
    folder."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.List, ast.Tuple)):
            words = [ast.unparse(word) for word in node.elts]
            for program, option in itertools.pairwise([*words, "'-c'"]):
                if (
                    program == "sys.executable"
                    and option.startswith("'-")
                    and option not in ("'-P'", "'-I'")
                ):
                    yield f"{node.lineno}: {', '.join(words)}"
        elif isinstance(node, ast.JoinedStr) and re.search(
            r"sys.executable\} -[^PI]", ast.unparse(node)
        ):
            yield f"{node.lineno}: {ast.unparse(node)}"


def modules(*folders: str) -> Iterator[Path]:
    return (file for folder in folders for file in sorted((ROOT / folder).rglob("*.py")))


def test_only_one_module_starts_programs() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{place}"
        for file in modules("src")
        if file != Path(spawn.__file__)
        for place in starts_in(file.read_text())
    ]
    assert found == []


def test_python_is_never_started_with_modules_of_the_current_folder() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{place}"
        for file in modules("src", "scripts", "bench", "tests")
        for place in python_without_p(file.read_text())
        if file != Path(__file__)
    ]
    for file in modules("src", "scripts", "bench", "tests"):
        text = file.read_text()
        if re.search(r"\bget_context\(", text) and "PYTHONSAFEPATH" not in text:
            found.append(
                f"{file.relative_to(ROOT)}: processes of multiprocessing without PYTHONSAFEPATH"
            )
    for name in (
        "Makefile",
        "agent/Makefile",
        "scripts/setup",
        "scripts/image",
        ".ci/run",
        "Containerfile",
    ):
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            found += [f"{name}:{number}: {line}"] if _WITHOUT_P.search(line) else []
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "subprocess.run(['git'])",
        "subprocess.Popen(['git'])",
        "f = subprocess.run",
        "from subprocess import run",
        "import subprocess as s",
        "asyncio.create_subprocess_exec('git')",
        "os.execvp('git', [])",
        "os.posix_spawn('git', [], {})",
        "from concurrent.futures import ProcessPoolExecutor",
        "import multiprocessing",
    ],
)
def test_every_way_to_start_a_program_is_found(text: str) -> None:
    assert list(starts_in(text))
    assert not list(
        starts_in("def f(p: subprocess.Popen[str]): spawn.run([p], stdin=subprocess.PIPE)")
    )


@pytest.mark.parametrize(
    "text",
    [
        "[sys.executable, '-m', 'x']",
        "(sys.executable, '-c', c)",
        "[sys.executable]",
        "f'{sys.executable} -m x'",
    ],
)
def test_every_start_of_python_is_found(text: str) -> None:
    assert list(python_without_p(text))
    for good in (
        "[sys.executable, '-P', '-m', 'x']",
        "[sys.executable, file]",
        "f'{sys.executable} -I'",
    ):
        assert not list(python_without_p(good))


def test_lists_of_folders_have_no_entry_that_means_the_current_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", ":/usr/bin:.:bin::/bin")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/lib:")
    monkeypatch.setenv("CPATH", "")
    assert [note.partition(" is")[0] for note in spawn.use_absolute_paths_only()] == [
        "PATH: '', '.', 'bin'",
        "LD_LIBRARY_PATH: ''",
    ]
    assert os.environ["PATH"] == "/usr/bin:/bin"
    assert os.environ["LD_LIBRARY_PATH"] == "/lib"
    assert spawn.use_absolute_paths_only() == []


def test_a_program_runs_in_a_folder_of_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert spawn.run(["pwd"], capture_output=True, text=True, check=True).stdout == "/\n"
    with spawn.start(["pwd"], stdout=subprocess.PIPE, cwd=None) as process:
        assert process.communicate()[0] == b"/\n"
    assert (
        spawn.run(["pwd"], capture_output=True, check=True, cwd=tmp_path).stdout.decode()
        == f"{tmp_path}\n"
    )
