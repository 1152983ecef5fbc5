"""Numbers that the kernel keeps anyway."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given

from kteardown_observe.collector.system import (
    parse_key_user,
    parse_protocols,
    parse_sockstat,
    parse_sysvipc,
    read_system,
)
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, only_malformed, write

FILES = {
    "sys/fs/aio-nr": b"3\n",
    "sys/kernel/pty/nr": b"4\n",
    "sys/fs/inode-nr": b"1000\t20\n",
    "sys/fs/dentry-state": b"2000\t1500\t45\t0\t700\t0\n",
    "sys/fs/file-nr": b"900\t0\t2466165\n",
    "net/sockstat": b"sockets: used 19\nTCP: inuse 1 orphan 5 tw 6 alloc 7 mem 173\n",
    "net/protocols": (
        b"protocol  size sockets  memory press\n"
        b"PACKET    1600      1      -1   NI\n"
        b"RAWv6     1344      2      -1   NI\n"
        b"UDPv6     1472      3      7   NI\n"
        b"UNIX-STREAM 1024   10      -1   NI\n"
        b"UNIX      1024      5      -1   NI\n"
        b"RAW       1152      0      -1   NI\n"
        b"UDP       1344      4      7   NI\n"
    ),
    "sysvipc/msg": (
        b"       key      msqid perms      cbytes       qnum lspid lrpid   uid\n"
        b"         0          0   644           0          9     0     0     0\n"
        b"         1          5   644           0          2     0     0     0\n"
    ),
    "sysvipc/sem": b"       key      semid perms      nsems\n         0    3   600   250     0\n",
    "sysvipc/shm": b"       key      shmid perms\n         0    3   600\n",
    "key-users": b"    0:    30 29/29 23/1000000 400/25000000\n 1000:     2 2/2 2/200 9/20000\n",
    "modules": b"loop 32768 0 - Live 0x0\nzram 1 0 - Live 0x0\n",
}


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    only_malformed(parse_sockstat, text)
    only_malformed(parse_sockstat, b"TCP:" + text)
    only_malformed(parse_protocols, text)
    only_malformed(parse_key_user, text)
    only_malformed(lambda line: parse_sysvipc(line, 3), text)


def test_counts_of_a_machine(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", FILES)
    write(tmp_path / "sys/power", {"state": b"freeze mem disk\n"})
    write(tmp_path / "sys/kernel/tracing", {"uprobe_events": b"p a\np b\n", "kprobe_events": b""})
    read_system(host, counts)
    numbers = {name: count["number"] for name, count in counts.counts.items()}
    assert numbers == {
        "sleep_states": 2,
        "aio_requests": 3,
        "ptys": 4,
        "inodes": 1000,
        "inodes_unused": 20,
        "dentries": 2000,
        "dentries_unused": 1500,
        "negative_dentries": 700,
        "open_files": 900,
        "tcp_sockets": 7,
        "tcp_time_wait": 6,
        "tcp_orphans": 5,
        "udp_sockets": 7,
        "raw_sockets": 2,
        "packet_sockets": 1,
        "unix_sockets": 15,
        "msg_queues": 2,
        "msg_messages": 11,
        "sem_sets": 1,
        "sem_semaphores": 250,
        "shm_segments": 1,
        "keys": 31,
        "modules": 2,
        "uprobes": 2,
        "kprobes": 0,
    }
    assert counts.counts["keys"]["largest"][0] == {"name": "uid 0", "number": 29}
    assert counts.counts["msg_messages"]["largest"][0] == {"name": "queue 0", "number": 9}
    assert counts.missing == [
        {
            "counts": ["netlink_sockets"],
            "reason": "not there",
            "detail": "no NETLINK in /proc/net/protocols",
        }
    ]


def test_one_damaged_file_is_no_loss_of_the_others(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {**FILES, "sys/fs/inode-nr": b"x", "key-users": b"x\n"})
    read_system(host, counts)
    errors = [entry["counts"] for entry in counts.missing if entry["reason"] == "error"]
    assert errors == [["inodes"], ["inodes_unused"], ["keys"]]
    assert counts.counts["modules"]["number"] == 2


def test_no_files_at_all(tmp_path: Path) -> None:
    counts = CountTable()
    read_system(host_of(tmp_path), counts)
    assert not counts.counts
    assert {entry["reason"] for entry in counts.missing} == {"not there"}


def test_a_kernel_that_cannot_be_suspended_has_no_states(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "sys/devices/system/cpu", {"possible": b"0-3\n"})
    read_system(host, counts)
    assert counts.counts["sleep_states"]["number"] == 0
