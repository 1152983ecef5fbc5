"""``kteardown observe --for`` in a guest: what happens is counted, and tracefs stays as it was."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

from kteardown_observe.bundle import program
from kteardown_observe.counts import MachineCounts, parse_counts
from vm.planted.guest import HOST_PYTHON, boot_script

pytestmark = [
    pytest.mark.vm,
    pytest.mark.build,
    pytest.mark.skipif(not HOST_PYTHON.exists(), reason="this host's Python is elsewhere"),
]

REMOVED = 25
SCRIPT = f"""\
#!/bin/sh
mount -t tracefs tracefs /sys/kernel/tracing
instances=/sys/kernel/tracing/instances
observe() {{ python3 -S /files/observe.py --cpu-limit 60 --memory-limit 200 "$@"; }}
show() {{ python3 -S /files/show.py "$1" < "$2"; }}

echo "before: $(ls $instances)"
observe --for 3s > /tmp/watched.json &
sleep 2
for number in $(seq {REMOVED}); do
    mkdir /sys/fs/cgroup/removed
    rmdir /sys/fs/cgroup/removed
    sh -c :
done
wait
show watched /tmp/watched.json
echo "after: $(ls $instances)"

observe --for 60s > /dev/null &
while [ -z "$(ls $instances)" ]; do sleep 0.2; done
observe > /tmp/beside.json
show beside /tmp/beside.json
echo "beside: $(ls $instances | wc -l)"
kill -9 $(pgrep -f observe.py)
sleep 0.5
echo "killed: $(ls $instances | wc -l)"
observe > /tmp/cleaned.json
show cleaned /tmp/cleaned.json
echo "cleaned: $(ls $instances)"
"""
SHOW = """\
import base64, sys, zlib

packed = base64.b64encode(zlib.compress(sys.stdin.buffer.read())).decode()
for at in range(0, len(packed), 1500):
    print(f"={sys.argv[1]}={packed[at : at + 1500]}")
"""


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return boot_script("debian-image:6.12", SCRIPT, {"observe.py": program(), "show.py": SHOW})


def counts_of(lines: list[str], name: str) -> MachineCounts:
    packed = "".join(line.split("=", 2)[2] for line in lines if line.startswith(f"={name}="))
    return parse_counts(zlib.decompress(base64.b64decode(packed)), name)


def said(lines: list[str]) -> dict[str, Any]:
    pairs = (line.split(":", 1) for line in lines if ":" in line and not line.startswith("="))
    return {name: value.strip() for name, value in pairs}


def test_what_happens_meanwhile_is_counted(lines: list[str]) -> None:
    rates = counts_of(lines, "watched").rates
    assert rates is not None, json.dumps(lines[-20:])
    assert rates.seconds >= 3
    assert rates.events["cgroup_removals"].number == REMOVED
    exits = {owner.name: owner.number for owner in rates.events["exits"].largest}
    assert exits["sh"] >= REMOVED
    assert rates.events["exits"].number >= sum(exits.values())


def test_the_instance_is_removed(lines: list[str]) -> None:
    assert said(lines)["before"] == ""
    assert said(lines)["after"] == ""


def test_that_of_another_collector_stays_and_that_of_a_killed_one_goes(lines: list[str]) -> None:
    assert said(lines)["beside"] == "1"
    assert counts_of(lines, "beside").taken.removed_instances == ()
    assert said(lines)["killed"] == "1"
    assert len(counts_of(lines, "cleaned").taken.removed_instances) == 1
    assert said(lines)["cleaned"] == ""
