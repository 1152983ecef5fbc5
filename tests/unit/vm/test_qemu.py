from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown.vm.qemu import need_descriptors


def test_a_host_without_names_of_descriptors_is_refused(tmp_path: Path) -> None:
    need_descriptors()
    with pytest.raises(LabError, match="missing does not exist") as error:
        need_descriptors(tmp_path / "missing")
    assert f"ln -s /proc/self/fd {tmp_path / 'missing'}" in error.value.hint
