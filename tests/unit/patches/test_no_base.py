"""What is said if no source takes a series."""

from __future__ import annotations

from kteardown.patches.no_base import ABSENT, _tree_to_name, no_source
from kteardown.patches.tried_source import FailingHunk, TriedSource


def test_the_advice_names_the_git_tree_on_which_the_fewest_hunks_fail() -> None:
    hunk = FailingHunk("1.patch", "kernel/exit.c", 1, "")
    tried = [
        TriedSource(f"git:/{name}@v7", f"git:{name}@7", "fails", (hunk,) * failing)
        for name, failing in (("first", 3), ("nearest", 1), ("last", 2))
    ]
    assert _tree_to_name(tried, "").endswith("--source git:/nearest@COMMIT.")
    assert "git:/nearest@111111111111." in _tree_to_name(tried, "1" * 40)


def test_of_absent_sources_that_of_the_version_is_named() -> None:
    absent = [TriedSource(f"debian:{v}", "", "not here", reason=ABSENT) for v in ("7.3", "6.12")]
    assert "fetches debian:7.3 (" in no_source(absent, "").hint
    assert "fetches debian:6.12 (" in no_source(absent, "6.12").hint
    assert "debian:6.12 is not on this machine" in no_source(absent[1:], "").message
