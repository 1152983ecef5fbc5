from __future__ import annotations

import copy
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.vm import host
from kteardown.vm.host import HostCheck
from unit.vm.test_host_watch import put


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


QUIET: dict[str, Any] = {
    "cpu": {
        "online": 8,
        "usable": 8,
        "governor": "performance",
        "turbo": False,
        "smt": "off",
        "isolated": "4-7",
        "topology": {"cores": 8, "packages": 1, "nodes": 1},
    },
    "hypervisor": None,
    "clocksource": "tsc",
    "mitigations": {"meltdown": "Mitigation: PTI"},
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A quiet host of eight CPUs."""
    monkeypatch.setattr(host, "why_no_counters", lambda: "")
    monkeypatch.setattr(host, "STEAL_S", 0.01)
    put(tmp_path, "proc/loadavg", "0.10 0.20 0.30 1/100 4711\n")
    put(tmp_path, "proc/stat", "cpu0 1 1 1 1 1 1 1 7 0 0\n")
    put(tmp_path, "proc/cpuinfo", "flags : fpu constant_tsc nonstop_tsc\n")
    put(tmp_path, "proc/self/cgroup", "0::/lab\n")
    put(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    return tmp_path


def checks(root: Path, **cpu: object) -> dict[str, HostCheck]:
    facts = copy.deepcopy(QUIET)
    facts["cpu"] |= cpu
    return {check.name: check for check in host.wall_checks(facts, root)}


def test_a_quiet_host_is_ok_in_everything(tree: Path) -> None:
    found = checks(tree)
    assert [check.name for check in found.values() if not check.ok] == []
    assert {"governor", "turbo", "SMT", "steal", "load", "huge pages", "CPU quota"} <= found.keys()


@pytest.mark.parametrize(
    ("name", "cpu", "command"),
    [
        ("governor", {"governor": "powersave"}, "scaling_governor"),
        ("turbo", {"turbo": True}, "cpufreq/boost"),
        ("SMT", {"smt": "on"}, "smt/control"),
        ("isolated CPUs", {"isolated": None}, "isolcpus=managed_irq,domain,4-7"),
    ],
)
def test_a_setting_that_adds_noise_has_its_cost_and_the_command(
    tree: Path, name: str, cpu: dict[str, object], command: str
) -> None:
    found = checks(tree, **cpu)
    assert [check.name for check in found.values() if not check.ok] == [name]
    assert found[name].cost
    assert command in found[name].command


def test_frequencies_are_named_and_intel_has_its_own_switch(tree: Path) -> None:
    put(tree, "sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")
    known = {"cpuinfo_min_freq": 800000, "cpuinfo_max_freq": 4700000, "base_frequency": 2600000}
    for name, value in known.items():
        put(tree, f"sys/devices/system/cpu/cpu0/cpufreq/{name}", f"{value}\n")
    found = checks(tree, governor="powersave", turbo=True)
    assert found["governor"].cost.endswith(": 800 to 4700 MHz")
    assert found["turbo"].cost.endswith(": 2600 to 4700 MHz")
    assert "no_turbo" in found["turbo"].command


def test_load_quota_and_small_pages_are_found(tree: Path) -> None:
    put(tree, "proc/loadavg", "3.50 0.20 0.30 1/100 4711\n")
    put(tree, "sys/fs/cgroup/lab/cpu.stat", "nr_throttled 0\n")
    put(tree, "sys/fs/cgroup/lab/cpu.max", "50000 100000\n")
    put(tree, "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")
    found = checks(tree)
    assert [c.name for c in found.values() if not c.ok] == ["huge pages", "load", "CPU quota"]
    put(tree, "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "512\n")
    put(tree, "sys/fs/cgroup/lab/cpu.max", "max 100000\n")
    assert [c.name for c in checks(tree).values() if not c.ok] == ["load"]


def test_steal_is_measured(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = min(os.sched_getaffinity(0))
    put(tree, "proc/stat", f"cpu{cpu} 1 1 1 1 1 1 1 7 0 0\n")

    def steal(seconds: float) -> None:
        put(tree, "proc/stat", f"cpu{cpu} 1 1 1 1 1 1 1 17 0 0\n")

    monkeypatch.setattr("kteardown.vm.host.time.sleep", steal)
    found = checks(tree)["steal"]
    assert not found.ok
    assert found.state.startswith("0.10 s in the last")


def test_a_host_that_is_a_guest_and_has_no_counters(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "why_no_counters", lambda: "this user may not count events")
    facts = {**QUIET, "hypervisor": "QEMU", "clocksource": "hpet", "mitigations": {}}
    found = {check.name: check for check in host.wall_checks(facts, tree)}
    names = [check.name for check in found.values() if not check.ok]
    assert names == ["hardware", "clock source", "hardware counters"]
    assert found["hardware counters"].command == "sudo sysctl kernel.perf_event_paranoid=1"


def test_an_empty_tree_is_no_error(tmp_path: Path) -> None:
    assert host.wall_checks(QUIET, tmp_path)


def test_this_host_says_whether_it_counts_events() -> None:
    assert isinstance(host.why_no_counters(), str)


@pytest.mark.parametrize(
    ("error", "outside", "inside"),
    [
        (0, "", ""),
        (errno.ENOENT, "has no counters", "has no counters"),
        # KVM counts for its guests, whatever this user may count.
        (errno.EACCES, "may not count", ""),
        (errno.EMFILE, "Too many open files", ""),
    ],
)
def test_guests_have_counters_that_the_user_may_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, outside: str, inside: str
) -> None:
    monkeypatch.setattr(host, "_counter_error", lambda: error)
    assert outside in host.why_no_counters() and bool(outside) == bool(host.why_no_counters())
    assert inside in host.why_guests_have_no_counters(tmp_path) and bool(inside) == bool(
        host.why_guests_have_no_counters(tmp_path)
    )


def test_kvm_can_be_set_to_give_guests_no_counters(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_counter_error", lambda: 0)
    put(tree, "sys/module/kvm/parameters/enable_pmu", "N\n")
    assert "enable_pmu is off" in host.why_guests_have_no_counters(tree)
    put(tree, "sys/module/kvm/parameters/enable_pmu", "Y\n")
    assert host.why_guests_have_no_counters(tree) == ""
