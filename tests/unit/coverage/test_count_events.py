"""What variants do to waits and broadcasts is counted once after a run with a profile, and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from kteardown.analysis.conclude import conclude
from kteardown.coverage import count_events as module
from kteardown.coverage.attribute import Entered
from kteardown.coverage.count_events import count_events
from kteardown.errors import GuestError, InputError
from kteardown.kernels.request import KernelImage
from kteardown.model.record import BASE, BootEnd
from kteardown.progress import SilentReporter
from kteardown.run import create
from kteardown.run.boot_once import CountedBoot, CountedTrial
from kteardown.run.places.local import LocalPlace
from kteardown.run.setting import Bootable
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.vm.qemu_library import CodeBlock, TrialBlocks
from unit.fake_machine import FakeBoot, FakeMachine
from unit.pipelines import VARIANT, run_maker

END = BootEnd(outcome="ok", duration_s=1, first_record_s=0.5, command=["fake"], host_load=0)
WAIT, CALLBACK = 1, 2


class _Info:
    """Debug information of a kernel with two functions."""

    def __init__(self, folder: Path) -> None:
        if folder.name == "prebuilt":
            raise InputError("it has no debug information", hint="build it")

    def entered(self, counts: Mapping[int, int], names: frozenset[str]) -> list[Entered]:
        functions = {WAIT: "synchronize_rcu", CALLBACK: "call_rcu"}
        return [Entered(functions[at], frozenset(), count) for at, count in counts.items()]


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDir]:
    monkeypatch.setattr(module, "DebugInfo", _Info)
    machine = FakeMachine(lambda job: FakeBoot())
    monkeypatch.setattr(LocalPlace, "machine", lambda *_, **__: machine)
    monkeypatch.setattr(create, "built", lambda run, name: (None, built(name)))
    return run_maker(tmp_path, monkeypatch)


def built(name: str, folder: str = "built") -> KernelImage:
    return KernelImage(name, Path(folder) / name, "debian:6.12", "", "x86_64", "", "", "", "")


class Guests:
    """Guests of which base waits once for each zombie, and the variant queues a callback."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failure: str = "") -> None:
        self.points: list[Sequence[Mapping[str, object]]] = []
        self._failure = failure
        monkeypatch.setattr(module, "boot_counted", self.boot)

    def boot(
        self,
        kernel: Bootable,
        workload: object,
        points: Sequence[dict[str, int | str]],
        *_: object,
        **__: object,
    ) -> CountedBoot:
        self.points.append(points)
        if self._failure:
            raise GuestError(self._failure, hint="")
        address = WAIT if kernel.image.name == BASE else CALLBACK
        trials = [
            CountedTrial(
                "zombies",
                dict(point),
                "ok",
                "",
                TrialBlocks(1, (CodeBlock(address, int(point["zombies"]), 0, "1"),)),
            )
            for point in points
        ]
        return CountedBoot(TrialBlocks(0, ()), tuple(trials), (), END)


def counted(run: RunDir, *, here: bool = True) -> bool:
    return count_events(load(run), SilentReporter(), here=here)


def test_one_boot_of_each_kernel_at_two_sizes(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(points=(3000, 6000), profile=True)
    guests = Guests(monkeypatch)
    assert counted(run)
    # A tenth of the smallest size of the run, and twice that.
    assert [[point["zombies"] for point in points] for points in guests.points] == [
        [300, 300, 600]
    ] * 2
    (counts,) = load(run).events
    assert (counts.variant, counts.workload, counts.reason) == (VARIANT, "zombies", "")
    assert [(f.event, f.objects, f.base, f.changed) for f in counts.figures] == [
        ("rcu", "zombies", (1,), (0,)),
        ("callbacks", "zombies", (0,), (1,)),
    ]
    # It is kept, and is a part of the result.
    assert not counted(run)
    assert len(guests.points) == 2
    result, _ = conclude(load(run))
    assert result.events == (counts,)
    assert not any("not counted" in note for note in result.notes)


def test_without_a_profile_nothing_is_booted(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = Guests(monkeypatch)
    assert not counted(make_run(points=(3000,)))
    assert guests.points == []


def test_kernels_without_debug_information_have_no_counts(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = Guests(monkeypatch)
    monkeypatch.setattr(create, "built", lambda run, name: (None, built(name, "prebuilt")))
    run = make_run(points=(3000,), profile=True)
    assert not counted(run)
    assert guests.points == []
    assert not run.events_file.exists()


def test_a_guest_that_fails_is_named_in_the_result(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = Guests(monkeypatch, failure="the guest ended with hang")
    run = make_run(points=(3000,), profile=True)
    assert counted(run)
    result, _ = conclude(load(run))
    assert [note for note in result.notes if "ended with hang" in note]
    # It is not tried again.
    booted = len(guests.points)
    assert not counted(run)
    assert len(guests.points) == booted


def test_a_run_of_another_host_says_why_it_has_no_counts(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = Guests(monkeypatch)
    run = make_run(points=(3000,), profile=True)
    assert counted(run, here=False)
    assert guests.points == []
    assert "this host" in load(run).events[0].reason
