"""One boot that belongs to no run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.errors import GuestError, InputError, LabError
from kteardown.inputs.load import load_workload
from kteardown.model.record import BootEnd, Outcome
from kteardown.run.boot_once import _check, check_size, programs_of


def test_files_that_do_not_fit_into_the_guest_are_an_error_that_says_how_much_does() -> None:
    check_size(149 << 20, 512)
    with pytest.raises(InputError, match="179 MB, do not fit into its memory of 512 MB") as caught:
        check_size((178 << 20) + 1, 512)
    assert "--memory-mb 857" in caught.value.hint


def _end(outcome: Outcome, detail: str) -> BootEnd:
    return BootEnd(
        outcome=outcome, detail=detail, duration_s=1, first_record_s=None, command=[], host_load=0
    )


def test_programs_are_those_of_the_choices() -> None:
    workload = load_workload("dyingcg")
    assert programs_of(workload, [{"how": "agent"}]) == ()
    assert programs_of(workload, [{"how": "agent"}, {"how": "script"}]) == ("busybox",)


def test_a_qemu_without_plugins_is_named(tmp_path: Path) -> None:
    detail = "QEMU ended by itself (exit status 1): qemu-system-x86_64: -plugin: invalid option"
    with pytest.raises(LabError, match="does not load the plugin"):
        _check(_end("infrastructure-error", detail), load_workload("zombies"), Entry(tmp_path))


def test_the_console_of_a_guest_that_failed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "console").write_text("BUG: bad")
    with pytest.raises(GuestError, match="ended with panic: oops") as error:
        _check(_end("panic", "oops"), load_workload("zombies"), Entry(tmp_path))
    kept = tmp_path / "cache" / "logs" / "boot-zombies.console"
    assert kept.read_text() == "BUG: bad" and str(kept) in error.value.hint
