"""The collector as a whole: what is hostile, hangs or is not there is said, and nothing more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kteardown_observe import bundle
from kteardown_observe.collector import main
from kteardown_observe.collector.files import Host
from kteardown_observe.collector.main import READINGS, HostReading, collect, options_of
from kteardown_observe.collector.tally import CountTable
from unit.observe.children import in_a_child
from unit.observe.fake_host import HOSTILE_COMM, link, process, stat, status, write

NOBODY = 65534


def run(*words: str, inside: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Run the program as `python3 -` does; return its code, its output and its errors."""
    done = subprocess.run(
        [*inside, sys.executable, "-P", "-I", "-S", "-", *words],
        input=bundle.program(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def counts_of(folder: Path, *words: str) -> dict[str, Any]:
    where = ("--proc", str(folder / "proc"), "--sys", str(folder / "sys"))
    code, output, errors = run(*where, *words)
    assert code == 0 and not errors
    assert output.isascii() and len(output) < 1_000_000
    assert output.endswith("\n") and output[:-1].isprintable()
    found: dict[str, Any] = json.loads(output)
    return found


def reasons(found: dict[str, Any]) -> set[str]:
    return {entry["reason"] for entry in found["missing"]}


def test_this_machine() -> None:
    code, output, errors = run()
    assert code == 0 and not errors
    found = json.loads(output)
    assert found["kteardown_counts"] == 1 and found["rates"] is None
    assert found["calibration"] is None
    assert found["counts"]["processes"]["number"] >= 1
    assert found["machine"]["release"] == os.uname().release
    assert [entry["name"] for entry in found["taken"]["readings"]] == [
        reading.name for reading in READINGS
    ]
    assert "error" not in reasons(found)
    assert found["taken"]["python"].startswith("3.") and found["taken"]["peak_kb"] > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_some_files() -> None:
    def as_nobody() -> dict[str, Any]:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return collect(options_of([]))

    found = in_a_child(as_nobody)
    assert found["taken"]["user"] == f"uid {NOBODY}"
    assert found["counts"]["processes"]["number"] > 0
    refused = [set(e["counts"]) for e in found["missing"] if e["reason"] == "permission"]
    assert any("descriptors" in names for names in refused)
    assert any("vmas" in names for names in refused)
    assert "error" not in reasons(found)


def test_a_container_with_a_proc_of_its_own(tmp_path: Path) -> None:
    namespaces = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork")
    if subprocess.run([*namespaces, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces")
    process(tmp_path / "proc", 1, stat(1))
    link(tmp_path / "proc/self/ns", {"pid": "pid:[4026532999]"})
    code, output, errors = run("--proc", str(tmp_path / "proc"), inside=namespaces)
    found = json.loads(output)
    assert code == 0 and not errors and found["machine"]["container"] is True
    assert found["counts"]["processes"]["number"] == 1
    code, output, _ = run(inside=namespaces)
    assert code == 0 and json.loads(output)["counts"]["processes"]["number"] >= 1


def test_hostile_names(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    process(proc, 1, stat(1, HOSTILE_COMM, parent=0, threads=2), status(0, VmSwap=7))
    process(proc, 2, stat(2, HOSTILE_COMM, "D", parent=1), status(0, VmSwap=7))
    link(proc / "1/fd", {"3": "/x\n\x1b[2J (deleted)", "4": "anon_inode:[\x1b[2J]"})
    write(proc, {"locks": b"1: FLOCK ADVISORY WRITE 1 \x1b[2J\xff 0 EOF\n"})
    name = os.fsencode(tmp_path / "sys/fs/cgroup") + b"/\n\x1b[2J\xff"
    os.makedirs(name)
    write(tmp_path / "sys/fs/cgroup", {"cgroup.controllers": b""})
    with open(name + b"/cpu.max", "wb") as file:
        file.write(b"1000 100000\n")
    found = counts_of(tmp_path)
    assert found["counts"]["threads"]["largest"][0]["name"] == "?[2J?) Z 1 (??[1]"
    assert found["counts"]["cgroups_with_quota"]["number"] == 1


def test_pipes_links_and_endless_files(tmp_path: Path) -> None:
    proc, sys_folder = tmp_path / "proc", tmp_path / "sys"
    process(proc, 1, stat(1))
    for name in ("locks", "meminfo", "uptime", "modules", "5/stat"):
        (proc / name).parent.mkdir(exist_ok=True)
        os.mkfifo(proc / name)
    link(proc, {"cgroups": "/dev/zero", "config.gz": "/dev/zero"})
    for name in ("key-users", "sysvipc/msg", "1/timers", "1/maps"):
        (proc / name).parent.mkdir(exist_ok=True)
        with (proc / name).open("wb") as file:
            file.truncate(1 << 40)
    (sys_folder / "kernel").mkdir(parents=True)
    (sys_folder / "fs").symlink_to("/sys/fs")
    found = counts_of(tmp_path)
    assert found["counts"]["processes"]["number"] == 1
    assert "slab_kb" not in found["counts"] and "flocks" not in found["counts"]
    assert "error" in reasons(found)


def test_no_sys(tmp_path: Path) -> None:
    process(tmp_path / "proc", 1, stat(1))
    found = counts_of(tmp_path)
    assert found["machine"]["cgroups"] == "none" and found["counts"]["processes"]["number"] == 1
    assert "cgroups_with_quota" not in found["counts"]


def test_no_proc(tmp_path: Path) -> None:
    code, output, errors = run("--proc", str(tmp_path / "nothing"))
    assert code == 1 and not output and errors.count("\n") == 1


@pytest.mark.parametrize("words", [["--cpu-limit", "0"], ["--memory-limit", "-1"], ["--for", "3h"]])
def test_options_that_are_wrong(words: list[str]) -> None:
    code, output, errors = run(*words)
    assert code == 2 and not output and "usage" in errors


def test_many_processes_with_little_time_are_a_part(tmp_path: Path) -> None:
    for pid in range(1, 3001):
        process(tmp_path / "proc", pid, stat(pid, state="Z" if pid % 2 else "S"))
    found = counts_of(tmp_path, "--cpu-limit", "0.08")
    assert "time" in reasons(found)
    visited = [count for count in found["counts"].values() if "of" in count]
    assert visited and all(count["seen"] <= count["of"] for count in visited)
    assert any(not count["complete"] for count in visited)


def with_readings(monkeypatch: pytest.MonkeyPatch, *readings: Any) -> dict[str, Any]:
    first = READINGS[0]
    made = [
        HostReading(f"r{number}", read, 0.5, (f"c{number}",))
        for number, read in enumerate(readings)
    ]
    monkeypatch.setattr(main, "READINGS", (first, *made))
    monkeypatch.setattr(main, "SPARE_S", 1.0)
    return collect(options_of(["--cpu-limit", "0.4", "--memory-limit", "20"]))


def good(host: Host, counts: CountTable) -> None:
    counts.put("good", 1)


def missing(found: dict[str, Any], name: str) -> tuple[str, str]:
    (entry,) = [entry for entry in found["missing"] if name in entry["counts"]]
    return entry["reason"], entry["detail"]


def test_whatever_one_reading_does_the_others_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(host: Host, counts: CountTable) -> None:
        raise ZeroDivisionError("a mistake of ours")

    def takes_memory(host: Host, counts: CountTable) -> None:
        kept = [bytes(1 << 20) + b"x" for _ in range(1000)]
        counts.put("never", len(kept))

    def sleeps(host: Host, counts: CountTable) -> None:
        counts.put("before", 1)
        time.sleep(1000)

    found = with_readings(monkeypatch, fails, takes_memory, sleeps, good)
    assert missing(found, "c0")[0] == "error" and "ZeroDivisionError" in missing(found, "c0")[1]
    assert missing(found, "c1")[0] == "memory"
    assert missing(found, "c2")[0] == "time"
    assert found["counts"] == {
        "before": {"number": 1, "complete": True},
        "good": {"number": 1, "complete": True},
    }


def test_a_file_that_hangs_ends_only_its_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(host: Host, counts: CountTable) -> None:
        end_s = host.narrow(0.5)
        source, _ = os.pipe()
        try:
            os.read(source, 1)
        except OSError as error:
            counts.miss(["c0"], "time", str(error))
        host.end_s = end_s
        assert host.spent()

    found = with_readings(monkeypatch, hangs, good)
    assert missing(found, "c0")[0] == "time" and found["counts"]["good"]["number"] == 1
    assert "error" not in reasons(found)


def test_a_reading_that_no_signal_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(host: Host, counts: CountTable) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(1000)

    found = with_readings(monkeypatch, good, hangs, good)
    assert found["counts"]["good"]["number"] == 1
    assert missing(found, "c1") == ("time", "r1: it did not end in time; what follows was not read")


def test_a_reading_that_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(host: Host, counts: CountTable) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    found = with_readings(monkeypatch, good, dies)
    assert missing(found, "c1")[0] == "error" and found["machine"]["arch"]


def test_a_clock_that_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([2e9, 1e9, 0.0, -1e9] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(times))
    found = with_readings(monkeypatch, good)
    assert found["taken"]["at_s"] == 2e9 and 0 < found["taken"]["wall_s"] < 1000
    assert not found["missing"]


_SLOW = """
import signal, sys, time
from kteardown_observe.collector import main
signal.signal(signal.SIGINT, signal.default_int_handler)
def slow(host, counts):
    print("ready", flush=True)
    time.sleep(1000)
main.READINGS = (main.HostReading("slow", slow, 1.0, ()),)
sys.exit(main.main(["--cpu-limit", "600"]))
"""


def test_control_c_ends_it_without_a_traceback() -> None:
    started = subprocess.Popen(
        [sys.executable, "-P", "-c", _SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    os.killpg(started.pid, signal.SIGINT)
    output, errors = started.communicate()
    assert started.returncode == 130 and not output and not errors


def test_calibration_has_time_of_its_own() -> None:
    code, output, _ = run("--calibrate", "--cpu-limit", "0.05")
    assert code == 0
    found = json.loads(output)
    assert {"pipes", "anonymous_pages"} <= {entry["kind"] for entry in found["calibration"]}
    assert found["taken"]["readings"][-1]["name"] == "calibration"
