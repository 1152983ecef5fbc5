"""Devices, addresses and neighbours of the network namespace of this process, by rtnetlink."""

from __future__ import annotations

import os
import socket
import struct

NEW_LINK, DELETE_LINK, NEW_ADDRESS, DELETE_ADDRESS, NEW_NEIGHBOUR = 16, 17, 20, 21, 28
_REQUEST, _ACK, _EXCLUSIVE, _CREATE = 1, 4, 0x200, 0x400
_NLMSG_ERROR = 2
_UP = 1
_PERMANENT = 0x80
_IFNAME, _LINKINFO, _GROUP = 3, 18, 27
_KIND, _DATA, _PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NDA_DST, _NDA_LLADDR = 1, 2
_MOST_BYTES = 16000


def _attribute(kind: int, data: bytes) -> bytes:
    padding = b"\0" * (-len(data) % 4)
    return struct.pack("HH", 4 + len(data), kind) + data + padding


def _link(index: int, *attributes: bytes, up: bool) -> bytes:
    flags = _UP if up else 0
    return struct.pack("BxHiII", 0, 0, index, flags, flags) + b"".join(attributes)


def address(number: int) -> bytes:
    """Return an address of 10.0.0.0/8."""
    return struct.pack(">I", 0x0A000001 + number)


def link(kind: str, name: str, group: int) -> bytes:
    """Return the request for a device of ``kind``, which is up; a veth comes with its peer, and is
    down."""
    info = _attribute(_KIND, kind.encode())
    if kind == "veth":
        peer = _link(0, _attribute(_IFNAME, f"{name}p".encode() + b"\0"), up=False)
        info += _attribute(_DATA, _attribute(_PEER, peer))
    return _link(
        0,
        _attribute(_IFNAME, name.encode() + b"\0"),
        _attribute(_GROUP, struct.pack("I", group)),
        _attribute(_LINKINFO, info),
        up=kind != "veth",
    )


def up(device: str) -> bytes:
    return _link(socket.if_nametoindex(device), up=True)


def named(device: str) -> bytes:
    return _link(socket.if_nametoindex(device), up=False)


def of_group(group: int) -> bytes:
    return _link(0, _attribute(_GROUP, struct.pack("I", group)), up=False)


def address_of(device: str, number: int) -> bytes:
    head = struct.pack("BBBBI", socket.AF_INET, 8, 0, 0, socket.if_nametoindex(device))
    both = (_IFA_ADDRESS, _IFA_LOCAL)
    return head + b"".join(_attribute(kind, address(number)) for kind in both)


def neighbour_of(device: str, number: int) -> bytes:
    index = socket.if_nametoindex(device)
    head = struct.pack("BxxxiHBB", socket.AF_INET, index, _PERMANENT, 0, 0)
    lladdr = b"\x02\0" + struct.pack(">I", number)
    return head + _attribute(_NDA_DST, address(number)) + _attribute(_NDA_LLADDR, lladdr)


def request(kind: int, *bodies: bytes) -> None:
    """Send requests of one kind. Raises OSError about the first that the kernel refuses."""
    flags = _REQUEST | (0 if kind in (DELETE_LINK, DELETE_ADDRESS) else _CREATE | _EXCLUSIVE)
    if kind == NEW_LINK and len(bodies) == 1:
        flags &= ~_EXCLUSIVE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as port:
        waiting = b""
        for number, body in enumerate(bodies, 1):
            last = number == len(bodies)
            head = struct.pack("IHHII", 16 + len(body), kind, flags | last * _ACK, number, 0)
            waiting += head + body
            if last or len(waiting) > _MOST_BYTES:
                port.send(waiting)
                waiting = b""
        if bodies:
            _check(port, len(bodies))


def _check(port: socket.socket, last: int) -> None:
    while True:
        answer = port.recv(65536)
        while answer:
            length, kind, _, number, _ = struct.unpack_from("IHHII", answer)
            error = struct.unpack_from("i", answer, 16)[0] if kind == _NLMSG_ERROR else 0
            if error:
                raise OSError(-error, os.strerror(-error), f"rtnetlink request {number}")
            if number == last:
                return
            answer = answer[length + 3 & ~3 :]
