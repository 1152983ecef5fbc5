"""What processes have open."""

from __future__ import annotations

import os
import select
import socket
from array import array
from pathlib import Path

import pytest
from hypothesis import given

from kteardown_observe.collector import descriptors
from kteardown_observe.collector.descriptors import (
    DESCRIPTOR_COUNTS,
    kind_of,
    parse_in_flight,
    read_descriptors,
    read_in_flight,
)
from kteardown_observe.collector.files import Host, Unreadable
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, link, only_malformed, write


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("pipe:[123]", ("pipes", "[123]")),
        ("socket:[9]", ("socket_descriptors", "[9]")),
        ("net:[4026531833]", ("kept_network_namespaces", "[4026531833]")),
        ("anon_inode:[eventfd]", ("eventfds", "")),
        ("anon_inode:inotify", ("inotify_instances", "")),
        ("anon_inode:bpf-map", ("bpf_maps", "")),
        ("anon_inode:[later]", ("", "")),
        ("/memfd:shm (deleted)", ("memfds", "")),
        ("/tmp/gone (deleted)", ("deleted_files", "")),
        ("/dev/zero (deleted)", ("", "")),
        ("/SYSV00000000 (deleted)", ("", "")),
        ("/etc/passwd", ("", "")),
        ("pipe:x", ("", "")),
        ("", ("", "")),
        ("\udcff\x1b", ("", "")),
    ],
)
def test_kinds(target: str, expected: tuple[str, str]) -> None:
    assert kind_of(target) == expected
    assert expected[0] in ("", *DESCRIPTOR_COUNTS)


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    kind_of(os.fsdecode(text))
    only_malformed(parse_in_flight, b"scm_fds:" + text)


def two_processes(folder: Path) -> Host:
    proc = folder / "proc"
    own = {
        "0": "/dev/null",
        "3": "pipe:[7]",
        "4": "pipe:[7]",
        "5": "socket:[8]",
        "6": "anon_inode:[eventpoll]",
        "7": "anon_inode:inotify",
        "8": "anon_inode:[fanotify]",
        "9": "net:[4026532000]",
        "10": "/tmp/x\n (deleted)",
    }
    link(proc / "5/fd", own)
    link(proc / "6/fd", {"3": "pipe:[7]", "4": "socket:[8]", "5": "anon_inode:[eventfd]"})
    watches = b"inotify wd:1 ino:2\ninotify wd:2 ino:3\n"
    marks = b"fanotify flags:0 event-flags:0\nfanotify ino:1 sdev:2\nfanotify mnt_id:9 mflags:0\n"
    write(
        proc / "5/fdinfo",
        {
            "5": b"pos:\t0\nscm_fds: 12\n",
            "6": b"pos:\t0\ntfd: 3\ntfd: 5\ntfd: 7\n",
            "7": b"pos:\t0\n" + watches,
            "8": b"pos:\t0\n" + marks,
        },
    )
    write(proc, {"5/comm": b"a\n", "6/comm": b"b\n"})
    host = host_of(folder)
    host.user_pids = array("q", [5, 6, 99])
    return host


def test_two_processes_that_share(tmp_path: Path) -> None:
    host, counts = two_processes(tmp_path), CountTable()
    read_descriptors(host, counts)
    read_in_flight(host, counts)
    numbers = {name: count["number"] for name, count in counts.counts.items() if count["number"]}
    assert numbers == {
        "descriptors": 12,
        "pipes": 1,
        "socket_descriptors": 1,
        "epolls": 1,
        "inotify_instances": 1,
        "fanotify_groups": 1,
        "eventfds": 1,
        "deleted_files": 1,
        "kept_network_namespaces": 1,
        "network_namespaces": 1,
        "epoll_items": 3,
        "inotify_watches": 2,
        "fanotify_marks": 2,
        "unix_in_flight": 12,
    }
    assert counts.counts["epoll_items"]["largest"] == [{"name": "a[5] descriptor 6", "number": 3}]
    assert counts.counts["pipes"]["largest"][0]["number"] == 1
    assert counts.counts["descriptors"]["complete"] and not counts.missing
    assert host.inotify == {5: (1, 2)}


def test_epolls_among_many_descriptors_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "DESCRIPTORS_FOR_EPOLL", 5)
    host, counts = two_processes(tmp_path), CountTable()
    read_descriptors(host, counts)
    assert counts.counts["epoll_items"]["number"] == 0
    assert not counts.counts["epoll_items"]["complete"]
    assert counts.counts["inotify_watches"]["number"] == 2
    assert counts.missing[0]["counts"] == ["epoll_items"]


def test_a_pipe_in_place_of_fdinfo(tmp_path: Path) -> None:
    host, counts = two_processes(tmp_path), CountTable()
    for name in ("5", "6"):
        (tmp_path / "proc/5/fdinfo" / name).unlink()
        os.mkfifo(tmp_path / "proc/5/fdinfo" / name)
    read_descriptors(host, counts)
    read_in_flight(host, counts)
    assert counts.counts["epolls"]["number"] == 1 and counts.counts["epoll_items"]["number"] == 0
    assert "unix_in_flight" not in counts.counts


def test_this_process() -> None:
    host, counts = Host(), CountTable()
    host.user_pids.append(os.getpid())
    receiver, sender = socket.socketpair()
    with select.epoll() as polled, receiver, sender:
        polled.register(receiver.fileno())
        polled.register(sender.fileno())
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [sender.fileno()] * 3).tobytes())
        sender.sendmsg([b"x"], [rights])
        read_descriptors(host, counts)
        read_in_flight(host, counts)
    assert counts.counts["epoll_items"]["number"] >= 2
    assert counts.counts["unix_in_flight"]["number"] >= 3


def test_files_in_flight_are_not_complete_if_a_process_may_not_be_seen(tmp_path: Path) -> None:
    host, counts = two_processes(tmp_path), CountTable()
    host.user_pids.append(99)
    read_descriptors(host, counts)
    read_in_flight(host, counts)
    assert counts.counts["unix_in_flight"]["complete"], "process 99 has exited"
    assert host.descriptors_visit is not None
    host.descriptors_visit.fail(Unreadable("permission", "EACCES on /proc/99/fd"))
    read_in_flight(host, counts)
    assert counts.counts["unix_in_flight"]["number"] == 12
    assert not counts.counts["unix_in_flight"]["complete"]
    assert counts.missing[-1]["counts"] == ["unix_in_flight"]
