"""Shared by tests that run the lab on a host with KVM: that host, L1, and boots in it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kteardown.door import Entry
from kteardown.vm.initramfs import pack
from kvm.l1 import L1, L1Error, server_of_files
from vm.conftest import base_image, guest_init

__all__ = ["base_image", "guest_init"]

TIMEOUT_S = 5400
"""For one test and the start of L1; a job that gets no answer ends earlier."""

_started: list[L1] = []
_of_workers: list[str] = []

Guest = tuple[str, Mapping[str, object]]
Boot = Callable[[Sequence[Guest]], list[dict[str, Any]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test a limit: one that hangs fails by its name."""
    for item in items:
        if item.path.parent == Path(__file__).parent and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass the report on from a worker of xdist to the process that prints it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["kvm"] = _report()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep the report of a worker."""
    _of_workers.extend(getattr(node, "workeroutput", {}).get("kvm", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how often L1 was started, and how often a job was tried again."""
    for line in [*_of_workers, *_report()]:
        terminalreporter.write_line(line)


def _report() -> list[str]:
    lines = []
    for l1 in _started:
        starts = ", ".join(f"{seconds:.0f} s" for seconds in l1.started_s)
        retries = "".join(f"; {reason}" for reason in l1.retries)
        lines.append(f"kvm: L1 was ready in {starts}; {len(l1.retries)} retries{retries}")
    return lines


def listed(host: L1) -> L1:
    """Report on ``host`` when the tests have ended."""
    _started.append(host)
    return host


@pytest.fixture(scope="session")
def l1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[L1]:
    """A host with KVM, which starts with its first job."""
    if os.geteuid() and "--preserve-noatime" not in server_of_files()[1]:
        # The overlay of L1 opens files with O_NOATIME, which only their owner and root may do.
        pytest.skip("this virtiofsd passes O_NOATIME on, for which it must be root")
    host = listed(L1(tmp_path_factory.mktemp("l1")))
    yield host
    host.stop()


@pytest.fixture(scope="session")
def boot(l1: L1, base_image: Path, guest_init: Path) -> Boot:
    """Boot guests in L1 one after the other, each given by how it ends and what is different in its
    job.

    The results are the fields of a ``BootEnd``, with ``lines``.
    """

    def boot_all(guests: Sequence[Guest]) -> list[dict[str, Any]]:
        jobs = []
        for number, (how, changes) in enumerate(guests):
            job = {
                "image": base_image,
                "initramfs": pack(
                    Entry(l1.jobs) / f"initramfs-{number}", agent=guest_init, plan=""
                ),
                "arch": "x86_64",
                "acceleration": "kvm",
                "cpus": 1,
                "memory_mb": 128,
                "seed": 1,
                "console": l1.jobs / f"console-{number}",
                "silence_s": 60.0,
                "kernel_args": (f"guest={how}",),
            }
            jobs.append({**job, **changes})
        return _boot_all(l1, jobs)

    return boot_all


def _boot_all(l1: L1, jobs: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Boot ``jobs``. A guest that gets stuck, and L1 with it, has a second try in a new L1."""
    program = Path(__file__).with_name("boot_in_l1.py")
    file = l1.jobs / "boots.json"
    results: list[dict[str, Any]] = []
    lost = -1
    while len(results) < len(jobs):
        file.write_text(json.dumps(jobs[len(results) :], default=str))
        try:
            done = l1.attempt(shlex.join(map(str, (sys.executable, program, file))))
            assert done.status == 0, done.output
            results += map(json.loads, done.output.splitlines())
        except L1Error as error:
            results += [
                json.loads(line) for line in error.output.splitlines() if line.endswith("}")
            ]
            if lost == len(results):
                raise
            lost = len(results)
            l1.retry(error)
    return results
