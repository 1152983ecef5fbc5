"""Histograms of the kernel are read, and instances that a killed collector left are removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown_observe.collector.files import Host, Malformed
from kteardown_observe.collector.tracing import (
    INSTANCE,
    Tracing,
    parse_histogram,
    parse_tracefs,
    remove_left,
)

HISTOGRAM = b"""\
# event histogram
#
# trigger info: hist:keys=comm:vals=hitcount:sort=hitcount:size=2048 [active]
#

{ comm: sh                                                 } hitcount:          3
{ comm: kworker/u4:1                                       } hitcount:          1
{ comm: } hitcount: 9 }                                    } hitcount:          2

Totals:
    Hits: 6
    Entries: 3
    Dropped: 0
"""


def test_hits_by_name_and_in_all() -> None:
    histogram = parse_histogram(HISTOGRAM)
    assert histogram.total == 6
    assert histogram.by_key["sh"] == 3
    assert sum(histogram.by_key.values()) == 6
    assert histogram.dropped == 0


def test_a_histogram_without_hits_is_malformed() -> None:
    with pytest.raises(Malformed):
        parse_histogram(b"# event histogram\n")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        histogram = parse_histogram(HISTOGRAM.replace(b"sh ", text))
    except Malformed:
        return
    assert histogram.total >= 0
    assert all(name.isprintable() for name in histogram.by_key)


def test_tracefs_is_found_where_it_is_mounted() -> None:
    mountinfo = (
        b"24 30 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
        b"36 24 0:12 / /sys/kernel/tracing rw shared:9 - tracefs tracefs rw\n"
        b"37 24 0:12 / /mnt/a\\040b rw - tracefs tracefs rw\n"
        b"38 24 0:13 / /mnt/tracefs rw - tmpfs tracefs rw\n"
        b"broken\n"
    )
    assert list(parse_tracefs(mountinfo)) == ["/sys/kernel/tracing", "/mnt/a b"]


def test_an_instance_exists_only_inside_of_the_context(tmp_path: Path) -> None:
    with Tracing(Host(), str(tmp_path)) as tracing:
        assert Path(tracing.path).is_dir()
        # A plain folder has no events.
        assert set(tracing.missing) == {"exits", "cgroup_removals"}
    assert not Path(tracing.path).exists()


def test_only_instances_that_are_not_busy_are_removed(tmp_path: Path) -> None:
    left, busy = f"{INSTANCE}12_aa", f"{INSTANCE}13_bb"
    for name in (left, busy, "somebody_else"):
        (tmp_path / name).mkdir()
    (tmp_path / busy / "file").touch()  # rmdir fails, as that of a busy instance does.
    assert remove_left(Host(), str(tmp_path)) == [left]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([busy, "somebody_else"])
