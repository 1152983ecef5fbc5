"""The installed lab: built from the checkout, installed into a clean environment, used in another
folder.

Python packages come over the network, kernels from the user's own cache.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from kteardown import version
from kteardown.paths import cache_dir

pytestmark = [pytest.mark.vm, pytest.mark.build]

CHECKOUT = Path(__file__).parents[2]
DATA = ("agent", "workloads", "experiments", "kernels", "series", "reference")
LEFT = {Path(".cache/kteardown"), Path(".local/share/kteardown")}
"""What an uninstallation keeps, because it is the user's: built files, and runs."""
PACKAGE = {"uv": "*.whl", "pipx": "*.tar.gz"}
"""What each installer installs: pipx builds from the source distribution, as it does from a
checkout."""


@dataclass(frozen=True)
class Installed:
    """An installed copy in a home directory of its own."""

    home: Path
    installer: str

    @property
    def environment(self) -> dict[str, str]:
        """The caller's, without the checkout, the virtual environment and the user's folders."""
        dropped = (
            "PYTHONPATH",
            "VIRTUAL_ENV",
            "KTEARDOWN_",
            "XDG_",
            "PIPX_",
            "UV_TOOL",
            "UV_PYTHON",
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        # Packages in the cache of uv are not fetched again.
        shared = {"UV_CACHE_DIR": _uv("cache", "dir").strip(), "UV_PYTHON_DOWNLOADS": "never"}
        return {**kept, **shared, "HOME": str(self.home), "COLUMNS": "200"}

    def manage(self, *arguments: str) -> None:
        """Run the installer."""
        command = [
            sys.executable,
            "-P",
            "-m",
            self.installer,
            *(["tool"] if self.installer == "uv" else []),
        ]
        _run([*command, *arguments], self.home, self.environment)

    def kteardown(self, *arguments: str, **environment: str) -> str:
        """Run the installed program outside the checkout, and return what it prints."""
        program = self.home / ".local" / "bin" / "kteardown"
        return _run([str(program), *arguments], self.home, {**self.environment, **environment})

    def refused(self, *arguments: str) -> str:
        """Run the installed program, which must exit with 2, and return its errors."""
        program = self.home / ".local" / "bin" / "kteardown"
        done = subprocess.run(
            [str(program), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stderr

    def traces(self) -> set[Path]:
        """Files, links and folders in the home directory named after the program, the topmost ones
        only."""
        found = {path.relative_to(self.home) for path in self.home.rglob("*kteardown*")}
        return {path for path in found if not found & set(path.parents)}


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _uv(*arguments: str) -> str:
    return _run([sys.executable, "-P", "-m", "uv", *arguments], CHECKOUT, dict(os.environ))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    _uv("build", "--quiet", "--python", sys.executable, "--out-dir", str(folder), str(CHECKOUT))
    return folder


def _install(home: Path, installer: str, built: Path) -> Installed:
    copy = Installed(home, installer)
    (package,) = built.glob(PACKAGE[installer])
    copy.manage("install", "--python", sys.executable, str(package))
    return copy


def test_the_wheel_has_all_files_that_the_lab_needs(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    shipped = {name.removeprefix("kteardown/data/") for name in zipfile.ZipFile(wheel).namelist()}
    folders = [CHECKOUT / kind for kind in DATA]
    wanted = {path.relative_to(CHECKOUT) for folder in folders for path in folder.rglob("*")}
    files = {str(path) for path in wanted if (CHECKOUT / path).is_file()}
    assert len(files) > 100
    assert files <= shipped
    pages = {
        f"kteardown/report/page/{name}" for name in ("report.html.j2", "report.css", "report.js")
    }
    # Of each optional package everything that git knows.
    more = subprocess.run(
        ["git", "ls-files", "src/kteardown_*"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert pages | {name.removeprefix("src/") for name in more.stdout.split()} <= shipped


@pytest.mark.parametrize("installer", ["uv", pytest.param("pipx", marks=pytest.mark.full)])
def test_it_works_outside_the_checkout_and_is_removed_completely(
    installer: str, built: Path, tmp_path: Path
) -> None:
    copy = _install(tmp_path, installer, built)
    assert copy.kteardown("--version") == f"kteardown {version()}\n"
    listed = json.loads(copy.kteardown("list", "--json"))
    for kind, pattern in (("experiments", "*.toml"), ("workloads", "*.toml"), ("series", "*/")):
        assert {row["name"] for row in listed[kind]} == {
            path.stem for path in (CHECKOUT / kind).glob(pattern)
        }
    assert "freezer-skip-exited" in copy.kteardown("plan", "freezer", "--quick")
    # What only some commands need is added by the command that they print.
    _, command = copy.refused("history").split("install it: ")
    tool, *words = shlex.split(command)
    _run([sys.executable, "-P", "-m", tool, *words], tmp_path, copy.environment)
    assert "no run has figures yet" in copy.kteardown("history")
    assert Path(".local/bin/kteardown") in copy.traces()
    copy.manage("uninstall", "kteardown")
    # The lock file is pipx's own.
    assert copy.traces() <= {*LEFT, Path(".local/share/pipx/venvs/.kteardown.lock")}


def test_its_agent_builds_and_a_run_measures(built: Path, tmp_path: Path) -> None:
    copy = _install(tmp_path, "uv", built)
    report = copy.kteardown("doctor")
    (agent,) = (tmp_path / ".cache" / "kteardown" / "agent").glob("x86_64-*")
    assert str(agent) in report
    options = (
        "--quick",
        "--seeds",
        "1",
        "--repetitions",
        "1",
        "--jobs",
        "1",
        "--variant",
        "freezer-skip-exited",
    )
    points = ("--workload", "zombies", "--set", "zombies=0,300")
    # Kernels take minutes to build, so they come from the user's cache.
    out = copy.kteardown("run", "freezer", *options, *points, KTEARDOWN_CACHE=str(cache_dir()))
    assert "freezer-skip-exited changes freezing user space" in out
    (run,) = (tmp_path / ".local" / "share" / "kteardown" / "runs").iterdir()
    assert json.loads((run / "result.json").read_bytes())["boots"]["ok"] == 2
    copy.manage("uninstall", "kteardown")
    assert copy.traces() == LEFT
    assert run.is_dir()
