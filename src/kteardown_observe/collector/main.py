"""The order of the readings, the limits, and the output.

A child reads and sends what each reading found to its parent. So if a reading hangs in the
kernel, for instance since another task holds a lock for long, the parent still prints what was
found.
"""

import argparse
import contextlib
import errno
import functools
import json
import os
import re
import resource
import select
import signal
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from kteardown_observe.collector.calibration import calibrate
from kteardown_observe.collector.cgroup_folders import FOLDER_COUNTS, read_cgroup_folders
from kteardown_observe.collector.cgroup_totals import CGROUP_COUNTS, read_cgroup_totals
from kteardown_observe.collector.descriptors import (
    DESCRIPTOR_COUNTS,
    read_descriptors,
    read_in_flight,
)
from kteardown_observe.collector.files import Host, Malformed, Unreadable
from kteardown_observe.collector.limits import LIMITS_READ, read_limits
from kteardown_observe.collector.locks import LOCK_COUNTS, read_locks
from kteardown_observe.collector.machine import read_machine
from kteardown_observe.collector.maps import read_mappings, read_timers
from kteardown_observe.collector.memory import MEMINFO_COUNTS, read_memory
from kteardown_observe.collector.mounts import MOUNT_COUNTS, read_mounts
from kteardown_observe.collector.namespaces import NAMESPACES, read_namespaces
from kteardown_observe.collector.network import DEVICE_COUNTS, DUMPS, read_network
from kteardown_observe.collector.processes import PROCESS_COUNTS, read_processes
from kteardown_observe.collector.rates import RATE_COUNTS, read_rates
from kteardown_observe.collector.status import STATUS_COUNTS, read_status
from kteardown_observe.collector.system import read_system
from kteardown_observe.collector.tally import CountTable
from kteardown_observe.collector.tracing import find_instances, remove_left

FORMAT = 1
SPARE_S = 2.0
"""More elapsed time, for a machine with much to do."""
FOUND = ("machine", "limits", "calibration", "rates")
"""Readings that return what the output has under their name."""
END_S = 1.0
"""A child that is asked to end has so long to remove its instance of tracefs."""
WALL_FACTOR = 5
"""A limit of the elapsed time is so many times the limit of the CPU time."""
HANGS_S = 0.3
"""So much later a reading is interrupted: it has not ended by itself, since a file hangs."""


class HostReading(NamedTuple):
    """What is read, with its share of the CPU time that is left, and its most important counts."""

    name: str
    read: Callable[[Host, CountTable], Any]
    share: float
    counts: Tuple[str, ...]


READINGS = (
    HostReading("machine", read_machine, 0.2, ()),
    HostReading("memory", read_memory, 0.2, tuple(MEMINFO_COUNTS)),
    HostReading("cgroup totals", read_cgroup_totals, 0.2, CGROUP_COUNTS),
    HostReading("system", read_system, 0.2, ("open_files", "dentries", "inodes")),
    HostReading("processes", read_processes, 0.5, PROCESS_COUNTS),
    HostReading("file locks", read_locks, 0.2, LOCK_COUNTS),
    HostReading("status", read_status, 0.3, STATUS_COUNTS),
    HostReading("cgroup folders", read_cgroup_folders, 0.3, FOLDER_COUNTS),
    HostReading("network", read_network, 0.2, (*DEVICE_COUNTS, *DUMPS)),
    HostReading("namespaces", read_namespaces, 0.3, tuple(NAMESPACES.values())),
    HostReading("mounts", read_mounts, 0.3, MOUNT_COUNTS),
    HostReading("timers", read_timers, 0.2, ("posix_timers",)),
    HostReading("descriptors", read_descriptors, 0.6, DESCRIPTOR_COUNTS),
    HostReading("sockets in flight", read_in_flight, 0.3, ("unix_in_flight",)),
    HostReading("limits", read_limits, 0.3, LIMITS_READ),
    HostReading("mappings", read_mappings, 0.9, ("vmas",)),
)
CALIBRATION = HostReading("calibration", calibrate, 1.0, ("calibration",))
CALIBRATION_CPU_S = 3.0
"""It comes after the readings, and does not use their time."""
RATES = "rates"


def options_of(words: List[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="observe.py",
        allow_abbrev=False,
        description="Counts what this machine has many of, from /proc and /sys. It changes nothing"
        " and prints JSON. Read what it prints with: kteardown observe counts.json",
    )
    parser.add_argument("--proc", default="/proc", metavar="DIR", help="instead of /proc")
    parser.add_argument("--sys", default="/sys", metavar="DIR", help="instead of /sys")
    parser.add_argument(
        "--cpu-limit", type=float, default=2.0, metavar="SECONDS", help="CPU time (2)"
    )
    parser.add_argument(
        "--memory-limit", type=int, default=50, metavar="MB", help="memory beyond the start (50)"
    )
    parser.add_argument(
        "--calibrate", action="store_true", help="also time how fast this machine frees objects"
    )
    parser.add_argument(
        "--for",
        dest="seconds",
        type=seconds_of,
        default=0.0,
        metavar="SECONDS",
        help="also watch exits, throttling and waits for so long, such as 30s; best as root",
    )
    options = parser.parse_args(words)
    if not 0 < options.cpu_limit <= 3600 or not 0 < options.memory_limit <= 100000:
        parser.error("a limit is not positive, or too large")
    options.proc = options.proc.rstrip("/") or "/"
    options.sys = options.sys.rstrip("/") or "/"
    return options


def seconds_of(text: str) -> float:
    """Return the seconds of ``30``, ``30s`` or ``2m``; raises ValueError."""
    match = re.match(r"([0-9]{1,5}(?:\.[0-9]+)?)(s|m|)\Z", text)
    if not match or not 0 < float(match.group(1)) * (60 if match.group(2) == "m" else 1) <= 3600:
        raise ValueError(text)
    return float(match.group(1)) * (60 if match.group(2) == "m" else 1)


def chosen_readings(options: argparse.Namespace) -> List[HostReading]:
    """Return the readings that are wanted, in their order."""
    readings = list(READINGS)
    if options.calibrate:
        readings.append(CALIBRATION)
    if options.seconds:
        watch = functools.partial(read_rates, seconds=options.seconds)
        readings.append(HostReading(RATES, watch, 1.0, RATE_COUNTS))
    return readings


def take_readings(host: Host, options: argparse.Namespace, send: Callable[[Any], None]) -> None:
    """Make every reading; ``send`` gets what each one found, and before that its name."""

    def wake(number: int, frame: Any) -> None:
        host.late = True
        raise OSError(errno.ETIMEDOUT, "a file took too long")

    signal.signal(signal.SIGALRM, wake)
    for reading in chosen_readings(options):
        send({"begin": reading.name, "counts": reading.counts})
        begin_s = time.process_time()
        cpu_s = max(0.001, (options.cpu_limit - begin_s) * reading.share)
        if reading is CALIBRATION:
            cpu_s = CALIBRATION_CPU_S
        elapsed_s = WALL_FACTOR * cpu_s + 0.1
        host.allow(cpu_s, elapsed_s)
        counts = CountTable()
        watched_s = options.seconds if reading.name == RATES else 0.0
        # Between files a reading ends by itself, and keeps what it has. Only a file that hangs is
        # interrupted.
        found = take_one(host, reading, counts, elapsed_s + HANGS_S + 2 * watched_s)
        complete = not any(e["reason"] in ("time", "memory", "error") for e in counts.missing)
        send(
            {
                "reading": {
                    "name": reading.name,
                    "cpu_s": round(time.process_time() - begin_s, 6),
                    "files": host.files,
                    "complete": complete,
                },
                "counts": counts.counts,
                "missing": counts.missing,
                "found": found,
                "cpu_s": time.process_time(),
                "peak_kb": peak_kb(),
            }
        )


def take_one(host: Host, reading: HostReading, counts: CountTable, wall_s: float) -> Any:
    """Make one reading. Whatever goes wrong, the other ones follow."""
    try:
        signal.setitimer(signal.ITIMER_REAL, wall_s)
        try:
            return reading.read(host, counts)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Unreadable as failure:
        counts.missed(reading.counts, failure)
    except MemoryError:
        counts.miss(reading.counts, "memory", f"{reading.name}: the memory limit was reached")
    except Malformed as failure:
        counts.miss(reading.counts, "error", f"{reading.name}: unknown format: {failure}")
    except Exception as error:
        late = isinstance(error, OSError) and error.errno == errno.ETIMEDOUT
        reason = "time" if late else "error"
        counts.miss(reading.counts, reason, f"{reading.name}: {type(error).__name__}: {error}")
    return None


def peak_kb() -> int:
    """Return the most memory that this process had. ru_maxrss is also that of the program which
    started it."""
    with open("/proc/self/status", "rb") as file:
        match = re.search(rb"^VmHWM:\s+([0-9]+) kB$", file.read(65536), re.MULTILINE)
    return int(match.group(1)) if match else 0


def limit_memory(limit_mb: int) -> None:
    """Let this process have at most so much more memory than now."""
    with open("/proc/self/statm", "rb") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    most = now + (limit_mb << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def end_process(number: int, frame: Any) -> None:
    """End as after Ctrl-C: what was made is removed again."""
    raise SystemExit(128 + number)


def end_child(pid: int) -> None:
    """Ask a child to end, and kill it if it does not."""
    os.kill(pid, signal.SIGTERM)
    end_s = time.monotonic() + END_S
    while time.monotonic() < end_s:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)


def child(options: argparse.Namespace, output: int) -> None:
    """Read everything, and send it as lines of JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end_process)

    def send(message: Any) -> None:
        data = json.dumps(message).encode("ascii") + b"\n"
        while data:
            data = data[os.write(output, data) :]

    with contextlib.suppress(OSError, ValueError, IndexError):
        limit_memory(options.memory_limit)
    take_readings(Host(options.proc, options.sys), options, send)
    send({"end": True})


def messages(source: int, end_s: float) -> Tuple[List[Any], bool]:
    """Return what the child sends until it ends, and whether the time was over before."""
    data = b""
    late = False
    while not late:
        left_s = end_s - time.monotonic()
        late = left_s <= 0 or not select.select([source], [], [], left_s)[0]
        piece = b"" if late else os.read(source, 1 << 20)
        if not piece:
            break
        data += piece
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()], late


def joined(sent: List[Any], late: bool) -> Dict[str, Any]:
    """Make one output of what the child sent."""
    output: Dict[str, Any] = {"machine": None, "counts": {}, "missing": []}
    output.update(limits=None, calibration=None, rates=None, readings=[], cpu_s=0.0, peak_kb=0)
    begun: Dict[str, Any] = {"begin": "start", "counts": []}
    for message in sent:
        if "begin" in message:
            begun = message
        elif "reading" in message:
            output["counts"].update(message["counts"])
            output["missing"] += message["missing"]
            output["readings"].append(message["reading"])
            if message["reading"]["name"] not in (CALIBRATION.name, RATES):
                output["cpu_s"] = message["cpu_s"]
                output["peak_kb"] = message["peak_kb"]
            if message["reading"]["name"] in FOUND:
                output[message["reading"]["name"]] = message["found"]
    if not any("end" in message for message in sent):
        what = "did not end in time" if late else "ended the program"
        detail = f"{begun['begin']}: it {what}; what follows was not read"
        reason = "time" if late else "error"
        entry = {"counts": sorted(begun["counts"]), "reason": reason, "detail": detail}
        output["missing"].append(entry)
    return output


def collect(options: argparse.Namespace) -> Dict[str, Any]:
    """Let a child read, and return the output."""
    at_s, begin_s = time.time(), time.monotonic()
    removed = remove_instances()
    source, target = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(source)
        try:
            child(options, target)
        except (BrokenPipeError, SystemExit):
            pass
        finally:
            os._exit(0)
    os.close(target)
    try:
        cpu_s = options.cpu_limit + (CALIBRATION_CPU_S if options.calibrate else 0)
        limit_s = WALL_FACTOR * cpu_s + SPARE_S + 2 * options.seconds
        sent, late = messages(source, begin_s + limit_s)
    finally:
        end_child(pid)
        if options.seconds:
            remove_instances()
    output = joined(sent, late)
    own = resource.getrusage(resource.RUSAGE_SELF)
    taken = {
        "at_s": round(at_s, 3),
        "wall_s": round(time.monotonic() - begin_s, 6),
        "cpu_s": round(own.ru_utime + own.ru_stime + output.pop("cpu_s"), 6),
        "peak_kb": max(peak_kb(), output.pop("peak_kb")),
        "cpu_limit_s": options.cpu_limit,
        "user": "root" if os.geteuid() == 0 else f"uid {os.geteuid()}",
        "python": ".".join(str(number) for number in sys.version_info[:3]),
        "removed_instances": removed,
        "readings": output.pop("readings"),
    }
    return {"kteardown_counts": FORMAT, "taken": taken, **output}


def remove_instances() -> List[str]:
    """Remove the instances of tracefs that killed collectors left, and return their names."""
    host = Host()
    host.allow(0.1)
    with contextlib.suppress(Unreadable):
        return remove_left(host, find_instances(host))
    return []


def main(words: Optional[List[str]] = None) -> int:
    """Print the counts; return 1 if /proc cannot be read at all, and 130 after Ctrl-C."""
    options = options_of(sys.argv[1:] if words is None else words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_process)
    try:
        try:
            with os.scandir(options.proc) as entries:
                next(entries, None)
        except OSError as error:
            print(f"observe.py: cannot read {options.proc}: {error.strerror}", file=sys.stderr)
            return 1
        text = json.dumps(collect(options))
        print(text)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    return 0
