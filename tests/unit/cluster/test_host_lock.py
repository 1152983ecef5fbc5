"""The lock of the host is held as long as a guest runs, also without the process that started
it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown_cluster.node_job import host_lock


def test_guests_of_the_instruction_clock_share_the_host(tmp_path: Path) -> None:
    with (
        host_lock(tmp_path, exclusive=False, wait_s=0),
        host_lock(tmp_path, exclusive=False, wait_s=0),
    ):
        pass


def _refused(folder: Path, message: str) -> None:
    with pytest.raises(LabError, match=message), host_lock(folder, exclusive=True, wait_s=0):
        pass


def test_a_guest_of_the_wall_clock_has_the_host_for_itself(tmp_path: Path) -> None:
    with host_lock(tmp_path, exclusive=False, wait_s=0):
        _refused(tmp_path, "another guest has run on this host")
    with host_lock(tmp_path, exclusive=True, wait_s=0):
        pass


def test_a_guest_that_is_left_behind_keeps_the_lock(tmp_path: Path) -> None:
    with host_lock(tmp_path, exclusive=True, wait_s=0) as lock:
        orphan = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    try:
        _refused(tmp_path, "another guest has run on this host")
    finally:
        orphan.kill()
        orphan.wait()
    with host_lock(tmp_path, exclusive=True, wait_s=5):
        pass


def test_a_lock_is_not_taken_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "kteardown-guests.lock").symlink_to(tmp_path / "elsewhere")
    _refused(tmp_path, "cannot be opened")


def test_another_user_can_take_the_lock_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with host_lock(tmp_path, exclusive=False, wait_s=0):
            assert (tmp_path / "kteardown-guests.lock").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
