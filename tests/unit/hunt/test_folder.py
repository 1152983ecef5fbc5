"""The folder of a hunt keeps the fragments of the user's own, so that it can be finished from any
folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.kernels.request import KernelImage
from kteardown.paths import runs_dir
from kteardown.progress import SilentReporter, Task
from kteardown.run.setting import Lab
from kteardown.vm.job import Acceleration, BootJob
from kteardown_hunt.folder import HuntFolder, Request, measure_stage, requests_of
from kteardown_hunt.plan import REPORTS, Case, Options, plan_of_sizes
from unit.fake_machine import FakeBoot, FakeMachine


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a fragment in the current folder."""
    file = tmp_path / "here" / "kernels" / "fragments" / "mine.config"
    file.parent.mkdir(parents=True)
    file.write_text("CONFIG_X=y\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    return file


def test_a_hunt_keeps_the_fragments_that_are_not_shipped(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request(
        source="debian:6.12", config=("mine", "debug", "CONFIG_NET=y"), command="kteardown hunt"
    )
    folder = HuntFolder.begin(request)
    mine.unlink()
    monkeypatch.chdir(tmp_path)
    folder.extend(["debian:7.3"], "")
    moved = HuntFolder(folder.path.rename(tmp_path / "moved"))
    found = moved.request()
    kept = moved.path / "fragments" / "mine.config"
    assert (found.config, found.against) == ((str(kept), "debug", "CONFIG_NET=y"), ("debian:7.3",))
    assert kept.read_text() == "CONFIG_X=y\n"
    assert requests_of(found.source, found.against, found.config)[1].fragments == found.config


def test_the_folder_of_own_kinds_may_have_fragments_too(mine: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs" / "kernels" / "fragments" / "theirs.config"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("CONFIG_Y=y\n")
    request = Request(source="debian:6.12", config=("theirs", "mine"), own=str(tmp_path / "theirs"))
    folder = HuntFolder.begin(request)
    assert [Path(one).read_text() for one in folder.request().config] == [
        "CONFIG_Y=y\n",
        "CONFIG_X=y\n",
    ]


def test_a_wrong_fragment_leaves_no_folder(mine: Path) -> None:
    with pytest.raises(InputError, match="no fragment 'mien'; did you mean 'mine'") as unknown:
        HuntFolder.begin(Request(source="debian:6.12", config=("mien",)))
    assert str(mine.parent) in unknown.value.message
    assert not list(runs_dir().glob("*"))


# Of two kinds, each with a boot of its own: three trials and one, of which the first has a warm-up,
# too.
PLAN = plan_of_sizes(
    {Case("a", "exit"): [72, 288, 1152], Case("b", "exit"): [4608]},
    ["kernel"],
    [0],
    Options(budget_minstr=0),
)


class Shares(SilentReporter):
    """Keeps how much of each task was done after each trial, as a share of its total."""

    def __init__(self) -> None:
        self.shares: list[float] = []

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        yield _Task(self.shares, total or 0.0)


class _Task(Task):
    def __init__(self, shares: list[float], total: float) -> None:
        self._shares = shares
        self._total = total

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        share = completed / self._total
        if share not in (0.0, *self._shares):
            self._shares.append(share)


def shares_of(path: Path, acceleration: Acceleration) -> list[float]:
    """Measure the stage, and return the shares of it that were displayed."""

    def script(job: BootJob) -> FakeBoot:
        lines: list[dict[str, object]] = []
        for trial in next(boots).trials:
            lines.append(
                {
                    "type": "trial_start",
                    "trial": trial.index,
                    "workload": "hunt",
                    "params": trial.params,
                }
            )
            lines.append({"type": "trial_end", "trial": trial.index, "status": "ok"})
        return FakeBoot(lines=tuple(json.dumps(line).encode() for line in lines))

    boots = iter(PLAN.boots)
    agent = path / "agent"
    agent.write_bytes(b"agent")
    image = KernelImage("kernel", path / "image", "kernel", "", "x86_64", "6.12", "gcc", "", "")
    reporter = Shares()
    lab = Lab(agent, "x86_64", acceleration, REPORTS, machine=FakeMachine(script))
    measure_stage(HuntFolder(path), "rate", PLAN, {"kernel": image}, lab, reporter)
    return reporter.shares


def test_the_start_of_a_guest_counts_as_several_trials_on_the_instruction_clock(
    tmp_path: Path,
) -> None:
    # (10 + 2) + 1 + 1, then 10 + 2
    assert shares_of(tmp_path, "icount") == pytest.approx([12 / 26, 13 / 26, 14 / 26, 1])


def test_in_real_time_only_what_is_measured_counts(tmp_path: Path) -> None:
    assert shares_of(tmp_path, "mttcg") == pytest.approx([2 / 6, 3 / 6, 4 / 6, 1])
