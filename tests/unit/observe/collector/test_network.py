"""What netlink answers, as messages that are made here and from this machine."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown_observe.collector.files import Host, Malformed, Unreadable
from kteardown_observe.collector.network import (
    Dump,
    parse_address,
    parse_attributes,
    parse_group,
    parse_link,
    parse_messages,
    read_network,
)
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, only_malformed, write


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def message(kind: int, content: bytes, flags: int = 0) -> bytes:
    return struct.pack("=IHHII", 16 + len(content), kind, flags, 1, 0) + content


def device(
    index: int,
    name: str,
    kind: str = "",
    master: int = 0,
    port: str = "",
    peer_elsewhere: bool = False,
) -> bytes:
    info = attribute(1, kind.encode() + b"\0") + attribute(4, port.encode() + b"\0")
    content = struct.pack("=BBHiII", 0, 0, 1, index, 0, 0)
    content += attribute(3, name.encode() + b"\0") + attribute(18 | 0x8000, info)
    content += attribute(37, struct.pack("=i", 0)) if peer_elsewhere else b""
    return content + (attribute(10, struct.pack("=I", master)) if master else b"")


DONE = message(3, struct.pack("=i", 0))


@given(st.binary())
def test_any_message(data: bytes) -> None:
    only_malformed(lambda text: list(parse_messages(text)), data)
    only_malformed(parse_attributes, data)
    only_malformed(parse_link, data)
    only_malformed(parse_link, bytes(16) + data)


@given(TEXTS)
def test_any_group(line: bytes) -> None:
    only_malformed(lambda text: parse_group(text, "lo"), line)


def test_a_device() -> None:
    found = parse_link(device(7, "veth0", "veth", 3, "bridge"))
    assert found == (7, "veth0", 3, "veth", "bridge", False)
    assert parse_link(device(8, "veth1", "veth", peer_elsewhere=True)).is_peer_elsewhere
    assert parse_link(device(1, "lo")).kind == ""


class FakeSocket:
    """A socket on which the answers wait, each to the request with its type and family."""

    answers: dict[tuple[int, int], list[bytes]]

    def __init__(self, *_: int) -> None:
        self.waiting: Iterator[bytes] = iter(())

    def __enter__(self) -> FakeSocket:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def settimeout(self, _: float) -> None:
        return None

    def sendto(self, data: bytes, _: tuple[int, int]) -> None:
        kind = struct.unpack_from("=IH", data)[1]
        self.waiting = iter(self.answers.get((kind, data[16]), [DONE]))

    def recv(self, _: int) -> bytes:
        return next(self.waiting)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, int], list[bytes]]:
    """What netlink answers; there is nothing but the end of each dump."""
    FakeSocket.answers = {}
    monkeypatch.setattr("kteardown_observe.collector.network.socket.socket", FakeSocket)
    return FakeSocket.answers


def test_counts_of_a_namespace(tmp_path: Path, answers: dict[tuple[int, int], list[bytes]]) -> None:
    host, counts = host_of(tmp_path), CountTable()
    devices = [
        device(1, "lo"),
        device(2, "br0", "bridge"),
        device(3, "veth0", "veth", 2, "bridge"),
        device(4, "veth1", "veth", 2, "bridge"),
        device(5, "wg0", "wireguard"),
        device(6, "eth0.5", "vlan"),
    ]
    answers[18, 0] = [
        b"".join(message(16, content) for content in devices[:4]),
        b"".join(message(16, content) for content in devices[4:]) + DONE,
    ]
    address = struct.pack("=BBBBI", 2, 24, 0, 0, 5)
    answers[22, 2] = [message(20, address) * 3 + DONE]
    # A kernel without IPv6 answers with what it has of IPv4.
    answers[22, 10] = [message(20, address) + DONE]
    answers[26, 2] = [message(24, bytes([2]) + bytes(11)) * 4 + DONE]
    write(tmp_path / "proc/net", {"igmp": IGMP, "igmp6": IGMP6})
    read_network(host, counts)
    numbers = {name: count["number"] for name, count in counts.counts.items() if count["number"]}
    assert numbers == {
        "devices": 6,
        "veth_pairs": 1,
        "vlans": 1,
        "tunnels": 1,
        "bridge_ports": 2,
        "addresses4": 3,
        "routes4": 4,
        "multicast4": 3,
        "multicast6": 2,
    }
    assert counts.counts["bridge_ports"]["largest"] == [{"name": "br0", "number": 2}]
    assert counts.counts["addresses4"]["largest"] == [{"name": "wg0, a subnet of /24", "number": 3}]
    assert counts.counts["multicast4"]["largest"][0] == {"name": "eth0", "number": 2}
    assert not counts.missing


IGMP = (
    b"Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n"
    b"1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n"
    b"2\teth0      :     2      V3\n"
    b"\t\t\t\t010000E0     1 0:00000000\t\t0\n\t\t\t\tFB0000E0     1 0:00000000\t\t0\n"
)
IGMP6 = (
    b"1    lo              ff020000000000000000000000000001     1 0000000C 0\n"
    b"2    eth0            ff010000000000000000000000000001     1 00000008 0\n"
)


def test_a_refusal_is_said(tmp_path: Path, answers: dict[tuple[int, int], list[bytes]]) -> None:
    answers[106, 0] = [message(2, struct.pack("=i", -errno.EOPNOTSUPP) + bytes(16))]
    answers[38, 0] = [message(2, struct.pack("=i", -errno.EPERM) + bytes(16))]
    answers[34, 2] = [b"\1"]
    counts = CountTable()
    read_network(host_of(tmp_path), counts)
    reasons = {entry["counts"][0]: entry["reason"] for entry in counts.missing}
    assert reasons["nexthops"] == "not there" and reasons["qdiscs"] == "permission"
    assert reasons["rules4"] == "error" and reasons["multicast4"] == "not there"
    assert counts.counts["devices"]["number"] == 0


def test_a_dump_that_was_interrupted_is_not_whole(
    answers: dict[tuple[int, int], list[bytes]],
) -> None:
    host = Host()
    answers[26, 2] = [message(24, bytes(12)), message(3, bytes(4), flags=0x10)]
    dump = Dump(host, 26, bytes([2]) + bytes(11))
    assert len(list(dump)) == 1 and not dump.whole


def test_a_dump_stops_when_the_time_is_used(
    answers: dict[tuple[int, int], list[bytes]],
) -> None:
    host = Host()
    answers[26, 2] = [message(24, bytes(12))] * 10
    dump = Dump(host, 26, bytes([2]) + bytes(11))
    number = 0
    for _ in dump:
        number += 1
        host.end_s = 0.0
    assert number == 1 and not dump.whole


def test_this_machine() -> None:
    counts = CountTable()
    try:
        read_network(Host(), counts)
    except (Unreadable, Malformed) as failure:
        pytest.fail(str(failure))
    assert counts.counts["devices"]["number"] >= 1


def address4(device: int, text: str, length: int) -> bytes:
    local = attribute(2, socket.inet_aton(text))
    return struct.pack("=BBBBI", 2, length, 0, 0, device) + local


def test_addresses_of_one_subnet_are_known_by_their_prefix() -> None:
    first, second, other = (
        parse_address(address4(5, text, 24)) for text in ("10.1.2.3", "10.1.2.250", "10.1.3.3")
    )
    assert first == second != other
    # Each service of IPVS has an address of its own: no subnet has two of them.
    assert parse_address(address4(5, "10.1.2.3", 32)) != parse_address(address4(5, "10.1.2.4", 32))


@given(st.binary(max_size=60))
def test_any_address(data: bytes) -> None:
    only_malformed(parse_address, data)
