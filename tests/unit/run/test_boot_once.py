"""One boot that belongs to no run."""

from __future__ import annotations

import pytest

from kteardown.errors import InputError
from kteardown.run.boot_once import check_size


def test_files_that_do_not_fit_into_the_guest_are_an_error_that_says_how_much_does() -> None:
    check_size(149 << 20, 512)
    with pytest.raises(InputError, match="179 MB, do not fit into its memory of 512 MB") as caught:
        check_size((178 << 20) + 1, 512)
    assert "--memory-mb 857" in caught.value.hint
