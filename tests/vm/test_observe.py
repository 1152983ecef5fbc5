"""``kteardown observe`` in a guest whose objects are known: the collector counts each of them."""

from __future__ import annotations

from typing import Any

import pytest

from kteardown_observe.bundle import program
from vm.planted.check import collected, differences, expected, missing
from vm.planted.guest import HOST_PYTHON, boot_planted, sizes

pytestmark = [
    pytest.mark.vm,
    pytest.mark.build,
    pytest.mark.skipif(not HOST_PYTHON.exists(), reason="this host's Python is elsewhere"),
]

SOURCE = "debian-image:6.12"
PLANTED = (
    "zombies_group",
    "threads",
    "vmas",
    "posix_timers",
    "flocks",
    "posix_locks",
    "inotify_watches",
    "epoll_items",
    "pipes",
    "unix_in_flight",
    "keys",
    "dying_cgroups_pages",
    "quota_tasks",
    "mount_peers",
    "kept_network_namespaces",
    "addresses4",
    "msg_messages",
    "tcp_time_wait",
)
SCALE = 0.1
NOT_PLANTED = 20
"""A guest with nothing planted has less than this of what is planted; its own mounts, mappings and
keys are not counted in."""
ITS_OWN = {"mounts", "vmas", "keys", "processes", "threads", "socket_descriptors"}


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return boot_planted(SOURCE, sizes(PLANTED, SCALE), collector=program(), measure=False)


def test_root_counts_exactly_what_was_planted(record: dict[str, Any]) -> None:
    assert len(expected(record)) > len(PLANTED)
    assert differences(record) == {}
    # Only process 1, the agent, is closed to the root of a script.
    reasons = missing(collected(record, "planted"))
    assert all(" 1 of " in reasons.get(name, " 1 of ") for name in expected(record))


def test_an_ordinary_user_counts_the_same_or_is_told_what_is_missing(
    record: dict[str, Any],
) -> None:
    reasons = missing(collected(record, "planted_user"))
    assert {name for name in differences(record, "_user") if name not in reasons} == set()
    for name in ("zombies", "threads", "flocks", "dying_cgroups", "quota_tasks", "tcp_time_wait"):
        assert name not in reasons


def test_a_clean_guest_has_none_of_it(record: dict[str, Any]) -> None:
    for moment in ("clean", "clean_user"):
        counts = collected(record, moment)["counts"]
        found = {name: counts[name]["number"] for name in expected(record) if name in counts}
        more = {name for name, number in found.items() if number >= NOT_PLANTED}
        assert more <= ITS_OWN
