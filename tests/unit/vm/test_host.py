from __future__ import annotations

import json
import os

from hypothesis import given
from hypothesis import strategies as st

from kteardown.vm import host


def test_facts_describe_this_host_and_are_json() -> None:
    facts = host.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["cpu"]["usable"] == len(os.sched_getaffinity(0))
    assert facts["cpu"]["possible"] >= facts["cpu"]["online"] >= facts["cpu"]["usable"]
    assert facts["kernel"] == os.uname().release
    assert facts["memory_kb"] * 1024 >= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


@given(st.sets(st.integers(0, 500), min_size=1))
def test_cpu_lists_are_counted(cpus: set[int]) -> None:
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and spans[-1][1] == cpu - 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    text = ",".join(f"{first}-{last}" if first < last else str(first) for first, last in spans)
    assert host.count_cpus(text) == len(cpus)
