"""The program in the guest: makes the objects of chosen problems, lets the collector count them,
and releases them.

Its only argument is a JSON file: ``problems`` with the number of objects of each, by name;
``measure``, whether the releases are measured; ``collector``, a program or empty, and the
``arguments`` for it. It prints what ``guest.py`` reads.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import signal
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from typing import Any

from vm.planted import cgroups, files, namespaces, processes, release
from vm.planted.problem import Problem

PROBLEMS: dict[str, type[Problem]] = {
    **processes.PROBLEMS,
    **files.PROBLEMS,
    **cgroups.PROBLEMS,
    **namespaces.PROBLEMS,
}
_LOCK_STATISTICS = "/proc/lock_stat"
_FIELDS = 12
_CLASSES = 60
_PIECE = 1500
_USER = 1000
_UNLIMITED = ("RLIMIT_SIGPENDING", "RLIMIT_NPROC", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE")
_SYSCTLS = {
    "fs/inotify/max_user_watches": "1000000",
    "fs/inotify/max_user_instances": "100000",
    "fs/epoll/max_user_watches": "1000000",
    "fs/pipe-user-pages-soft": "0",
    "fs/nr_open": "1048576",
    "fs/file-max": "1000000",
    "fs/mount-max": "1000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "100000000",
    "kernel/pid_max": "4000000",
    "kernel/threads-max": "1000000",
    "kernel/pty/max": "100000",
    "kernel/sched_rt_runtime_us": "-1",
    "net/ipv4/tcp_max_tw_buckets": "1000000",
    "vm/max_map_count": "1000000",
}


def _raise_limits() -> None:
    for path, value in _SYSCTLS.items():
        with suppress(OSError), open(f"/proc/sys/{path}", "w", encoding="ascii") as stream:
            stream.write(value)
    for name in _UNLIMITED:
        resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY,) * 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20,) * 2)


def _count_locks() -> None:
    """Begin to count the locks that are taken, if this kernel can."""
    if os.path.exists(_LOCK_STATISTICS):
        for path, value in ((_LOCK_STATISTICS, "0"), ("/proc/sys/kernel/lock_stat", "1")):
            with open(path, "w", encoding="ascii") as stream:
                stream.write(value)


def _counted_locks() -> list[dict[str, Any]]:
    """Return the classes of locks that were held longest since ``_count_locks``, in us."""
    if not os.path.exists(_LOCK_STATISTICS):
        return []
    with open("/proc/sys/kernel/lock_stat", "w", encoding="ascii") as stream:
        stream.write("0")
    classes: list[dict[str, Any]] = []
    with open(_LOCK_STATISTICS, encoding="ascii") as stream:
        for line in stream:
            name, _, rest = line.rpartition(":")
            numbers = rest.split()
            if name and len(numbers) == _FIELDS:
                held = [float(number) for number in numbers[-4:]]
                classes.append(
                    {
                        "name": name.strip(),
                        "taken": int(numbers[7]),
                        "longest_us": held[1],
                        "total_us": held[2],
                    }
                )
    classes.sort(key=lambda lock: -lock["total_us"])
    return classes[:_CLASSES]


def _collect(plan: dict[str, Any], user: int) -> dict[str, Any]:
    """Run the collector, and return what it printed with how it ended."""
    if not plan["collector"]:
        return {}
    output = f"/tmp/counts-{user}"

    def as_user() -> None:
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    _count_locks()
    with open(output, "wb") as stream:
        done = subprocess.run(
            [sys.executable, "-I", "-S", plan["collector"], *plan["arguments"]],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.PIPE,
            preexec_fn=as_user,
            cwd="/",
            check=False,
        )
    locks = _counted_locks()
    with open(output, encoding="utf-8") as text:
        printed = text.read()
    stderr = done.stderr.decode()
    return {"status": done.returncode, "stderr": stderr, "printed": printed, "locks": locks}


def _unused() -> dict[str, int]:
    """Return how many dentries and inodes the kernel keeps although nobody uses them, and kB."""
    with open("/proc/sys/fs/dentry-state", encoding="ascii") as stream:
        dentries = int(stream.read().split()[1])
    with open("/proc/sys/fs/inode-nr", encoding="ascii") as stream:
        inodes = int(stream.read().split()[0])
    return {"dentries": dentries, "inodes": inodes, "slab_kb": release.memory_kb()["Slab"]}


def _drop_unused() -> None:
    """Free dentries and inodes of the files that the collector has read.

    Those of /proc/PID stay until the process ends, and would be a part of its exit.
    """
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as stream:
        stream.write("2")
    release.let_others_run()


def _named(names: dict[str, int]) -> dict[str, Problem]:
    # Those that leave a namespace come last.
    return {name: PROBLEMS[name](names[name]) for name in PROBLEMS if name in names}


def _make(problem: Problem) -> dict[str, Any]:
    release.let_others_run()
    before = release.memory_kb()
    begin = time.monotonic_ns()
    problem.make()
    made_ns = time.monotonic_ns() - begin
    release.let_others_run()
    after = release.memory_kb()
    return {
        "n": problem.n,
        "release_is": problem.release_is,
        "made_ns": made_ns,
        "expected": [vars(one) for one in problem.expected()],
        "held_kb": release.more_used_kb(before, after),
    }


def _release(problem: Problem) -> dict[str, Any]:
    before = release.memory_kb()
    cost: dict[str, Any] = dict(release.measure(problem))
    after = release.memory_kb()
    problem.clean()
    return {**cost, "freed_kb": release.more_used_kb(after, before)}


def _empty_release(kind: type[Problem], calls: int) -> dict[str, int]:
    """Return what the release costs without objects."""
    if issubclass(kind, namespaces.TimeWait):
        namespaces.enter_own(kind.namespace)
    problem = kind(0, calls)
    problem.make()
    cost = release.measure(problem)
    problem.clean()
    return cost


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the record of the guest: problems by name, and what the collector printed."""
    result: dict[str, Any] = {
        "release": os.uname().release,
        "cpus": os.cpu_count(),
        "problems": {},
        "collected": {},
    }
    namespaces.enter_own()
    result["collected"]["clean"] = _collect(plan, 0)
    result["collected"]["clean_user"] = _collect(plan, _USER) if plan["user"] else {}
    problems = _named(plan["problems"])
    for name, problem in problems.items():
        result["problems"][name] = _make(problem)
        print("made", name, problem.n, flush=True)
    result["unused"] = {"made": _unused()}
    result["collected"]["planted"] = _collect(plan, 0)
    result["collected"]["planted_user"] = _collect(plan, _USER) if plan["user"] else {}
    result["unused"]["collected"] = _unused()
    _drop_unused()
    result["unused"]["dropped"] = _unused()
    for name, problem in problems.items() if plan["measure"] else ():
        cost = _release(problem)
        empty = _empty_release(type(problem), problem.n)
        result["problems"][name] |= {"released": cost, "empty": empty}
        print("released", name, cost, empty, flush=True)
    return result


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as stream:
        plan = json.load(stream)
    _raise_limits()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])
    packed = base64.b64encode(zlib.compress(json.dumps(run(plan)).encode())).decode()
    for at in range(0, len(packed), _PIECE):
        print("=" + packed[at : at + _PIECE])


if __name__ == "__main__":
    main()
