"""Devices, addresses, neighbours and routes of this network namespace, by netlink.

Locks: in Linux 6.1 every dump holds rtnl, for each answer of up to 32 kB (net/core/rtnetlink.c,
rtnetlink_net_init: cb_mutex). In 6.12, 7.2 and 7.3 only those of devices, nexthops and qdiscs do
(rtnl_dumpit: RTNL_FLAG_DUMP_UNLOCKED); the others hold RCU. IPv6 routes also take tb6_lock of the
table with softirqs off (net/ipv6/ip6_fib.c, fib6_dump_table). /proc/net/igmp and igmp6 hold RCU.
If another task holds rtnl for long, this reading waits as long.
"""

import os
import socket
import struct
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from kteardown_observe.collector.files import Host, Malformed, Unreadable, printable, unreadable
from kteardown_observe.collector.tally import CountTable, Tally

AF_INET, AF_INET6 = 2, 10
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP_INTR, NLM_F_DUMP = 0x1, 0x10, 0x300
IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO, IFLA_EXT_MASK = 3, 10, 18, 29
IFLA_LINK_NETNSID = 37
IFLA_INFO_KIND, IFLA_INFO_SLAVE_KIND = 1, 4
RTEXT_FILTER_SKIP_STATS = 1 << 3
RTM_GETLINK, RTM_GETADDR = 18, 22
IFA_ADDRESS, IFA_LOCAL = 1, 2
MESSAGE_HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
RECEIVE_MOST = 65536
TIMEOUT_S = 2.0
DUMPS = {
    "neighbours4": (30, AF_INET, 12),
    "neighbours6": (30, AF_INET6, 12),
    "routes4": (26, AF_INET, 12),
    "routes6": (26, AF_INET6, 12),
    "rules4": (34, AF_INET, 12),
    "rules6": (34, AF_INET6, 12),
    "nexthops": (106, 0, 8),
    "qdiscs": (38, 0, 20),
}
"""The type of the request, the family and the length of what follows, for each count."""
KINDS = {
    "vlan": "vlans",
    "macvlan": "macvlans",
    "macvtap": "macvlans",
    "ipvlan": "macvlans",
    "dummy": "dummies",
    "vrf": "vrfs",
    "amt": "tunnels",
    "bareudp": "tunnels",
    "erspan": "tunnels",
    "geneve": "tunnels",
    "gre": "tunnels",
    "gretap": "tunnels",
    "gtp": "tunnels",
    "ip6erspan": "tunnels",
    "ip6gre": "tunnels",
    "ip6gretap": "tunnels",
    "ip6tnl": "tunnels",
    "ipip": "tunnels",
    "sit": "tunnels",
    "tun": "tunnels",
    "vti": "tunnels",
    "vti6": "tunnels",
    "vxlan": "tunnels",
    "wireguard": "tunnels",
    "xfrm": "tunnels",
}
"""The count for each kind of device."""
PORTS = {"bridge": "bridge_ports", "bond": "bond_ports"}
DEVICE_COUNTS = ("devices", "veth_pairs", *sorted(set(KINDS.values())), *PORTS.values())


class Link(NamedTuple):
    number: int
    name: str
    master: int
    kind: str
    port_kind: str
    is_peer_elsewhere: bool
    """Whether the other end is in another network namespace."""


def parse_messages(data: bytes) -> Iterator[Tuple[int, int, bytes]]:
    """Yield the type, the flags and the content of each message. Raises Malformed."""
    at = 0
    while at < len(data):
        if len(data) - at < MESSAGE_HEADER.size:
            raise Malformed("a netlink message is cut")
        length, kind, flags, _, _ = MESSAGE_HEADER.unpack_from(data, at)
        if not MESSAGE_HEADER.size <= length <= len(data) - at:
            raise Malformed("a netlink message has a wrong length")
        yield kind, flags, data[at + MESSAGE_HEADER.size : at + length]
        at += (length + 3) & ~3


def parse_attributes(data: bytes) -> Dict[int, bytes]:
    """Return the attributes of a message by type. Raises Malformed."""
    found = {}
    at = 0
    while len(data) - at >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if not ATTRIBUTE.size <= length <= len(data) - at:
            raise Malformed("a netlink attribute has a wrong length")
        found[kind & 0x3FFF] = data[at + ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found


def parse_link(content: bytes) -> Link:
    """Read a network device. Raises Malformed."""
    if len(content) < 16:
        raise Malformed("a network device is cut")
    attributes = parse_attributes(content[16:])
    info = parse_attributes(attributes.get(IFLA_LINKINFO, b""))
    master = attributes.get(IFLA_MASTER, b"")
    return Link(
        number=struct.unpack_from("=i", content, 4)[0],
        name=_word(attributes.get(IFLA_IFNAME, b"")),
        master=struct.unpack("=I", master)[0] if len(master) == 4 else 0,
        kind=_word(info.get(IFLA_INFO_KIND, b"")),
        port_kind=_word(info.get(IFLA_INFO_SLAVE_KIND, b"")),
        is_peer_elsewhere=IFLA_LINK_NETNSID in attributes,
    )


def _word(text: bytes) -> str:
    return printable(text.partition(b"\0")[0])


class Dump:
    """The answers to a request for all objects of a type. ``whole`` tells whether all came.

    Iterating raises Unreadable if the kernel refuses, or Malformed.
    """

    def __init__(self, host: Host, kind: int, content: bytes) -> None:
        self.host = host
        self.kind = kind
        self.content = content
        self.whole = False

    def __iter__(self) -> Iterator[bytes]:
        self.host.files += 1
        try:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as opened:
                opened.settimeout(TIMEOUT_S)
                length = MESSAGE_HEADER.size + len(self.content)
                flags = NLM_F_REQUEST | NLM_F_DUMP
                header = MESSAGE_HEADER.pack(length, self.kind, flags, 1, 0)
                opened.sendto(header + self.content, (0, 0))
                while not self.host.spent():
                    for content in self._answers(opened.recv(RECEIVE_MOST)):
                        if content is None:
                            return
                        yield content
        except socket.timeout:
            raise Unreadable("time", "netlink did not answer") from None
        except OSError as error:
            raise unreadable(error, "netlink") from None

    def _answers(self, data: bytes) -> Iterator[Optional[bytes]]:
        """Yield the objects in what was received, and None at the end."""
        for kind, flags, content in parse_messages(data):
            if kind == NLMSG_ERROR or (kind == NLMSG_DONE and len(content) >= 4):
                number = -struct.unpack_from("=i", content)[0] if len(content) >= 4 else 0
                if number > 0:
                    raise unreadable(OSError(number, os.strerror(number)), "netlink")
            if kind in (NLMSG_ERROR, NLMSG_DONE):
                self.whole = not flags & NLM_F_DUMP_INTR
                yield None
                return
            yield content


def read_network(host: Host, counts: CountTable) -> None:
    """Count what this network namespace has."""
    names: Dict[int, str] = {}
    parts: List[Tuple[Callable[[], None], Tuple[str, ...]]] = [
        (partial(_read_devices, host, counts, names), DEVICE_COUNTS),
        (partial(_read_addresses, host, counts, names, AF_INET, "addresses4"), ("addresses4",)),
        (partial(_read_addresses, host, counts, names, AF_INET6, "addresses6"), ("addresses6",)),
        (partial(_read_groups, host, counts, "igmp", "multicast4"), ("multicast4",)),
        (partial(_read_groups, host, counts, "igmp6", "multicast6"), ("multicast6",)),
    ]
    parts += [(partial(_read_number, host, counts, name), (name,)) for name in DUMPS]
    for part, missing in parts:
        try:
            part()
        except (Unreadable, Malformed) as failure:
            counts.miss(missing, getattr(failure, "reason", "error"), str(failure))


def _put_own(
    counts: CountTable, whole: bool, tallies: Dict[str, Tally], name: Callable[[Any], str]
) -> None:
    for key, tally in tallies.items():
        counts.put(key, tally.number, whole, tally.largest(name), "of this network namespace")
    if not whole:
        counts.miss(tallies, "time", "only a part of what netlink has")


def _read_devices(host: Host, counts: CountTable, names: Dict[int, str]) -> None:
    tallies = {name: Tally() for name in DEVICE_COUNTS}
    veths_here = 0
    mask = ATTRIBUTE.pack(8, IFLA_EXT_MASK) + struct.pack("=I", RTEXT_FILTER_SKIP_STATS)
    dump = Dump(host, RTM_GETLINK, bytes(16) + mask)
    for content in dump:
        link = parse_link(content)
        names[link.number] = link.name
        tallies["devices"].number += 1
        if link.kind == "veth" and link.is_peer_elsewhere:
            tallies["veth_pairs"].number += 1
        elif link.kind == "veth":
            veths_here += 1
        if link.kind in KINDS:
            tallies[KINDS[link.kind]].number += 1
        if link.master and link.port_kind in PORTS:
            tallies[PORTS[link.port_kind]].add(link.master)
    tallies["veth_pairs"].number += (veths_here + 1) // 2
    _put_own(counts, dump.whole, tallies, lambda index: names.get(index, f"device {index}"))


def parse_address(content: bytes) -> Tuple[int, bytes]:
    """Return the device of an address, and its subnet: the length of the prefix, and its bits."""
    if len(content) < 8:
        raise Malformed("an address is cut")
    _, length, _, _, device = struct.unpack_from("=BBBBI", content)
    attributes = parse_attributes(content[8:])
    address = attributes.get(IFA_LOCAL) or attributes.get(IFA_ADDRESS) or b""
    bits = int.from_bytes(address, "big") >> max(0, 8 * len(address) - length)
    return device, bytes([length]) + bits.to_bytes(16, "big")


def _read_addresses(
    host: Host, counts: CountTable, names: Dict[int, str], family: int, name: str
) -> None:
    tally = Tally()
    dump = Dump(host, RTM_GETADDR, struct.pack("=BBBBI", family, 0, 0, 0, 0))
    for content in dump:
        if content[:1] == bytes([family]):
            tally.add(parse_address(content))

    def name_of(subnet: Tuple[int, bytes]) -> str:
        device, prefix = subnet
        return f"{names.get(device, f'device {device}')}, a subnet of /{prefix[0]}"

    _put_own(counts, dump.whole, {name: tally}, name_of)


def _read_number(host: Host, counts: CountTable, name: str) -> None:
    kind, family, length = DUMPS[name]
    tally = Tally()
    dump = Dump(host, kind, bytes([family]) + bytes(length - 1))
    for content in dump:
        # A kernel without IPv6 answers with what it has of all families.
        if content and (not family or content[0] == family):
            tally.number += 1
    _put_own(counts, dump.whole, {name: tally}, str)


def parse_group(line: bytes, device: str) -> Tuple[str, bool]:
    """Read a line of /proc/net/igmp or igmp6: its device, and whether it is a group.

    In igmp, groups are indented below the line of their device. Raises Malformed.
    """
    if line.startswith((b"\t", b" ")):
        return device, True
    fields = line.split()
    if len(fields) < 3:
        raise Malformed(printable(line))
    return printable(fields[1]), fields[2] != b":"


def _read_groups(host: Host, counts: CountTable, file: str, name: str) -> None:
    tally = Tally()
    device = ""
    lines = host.lines(f"{host.proc}/net/{file}", 4 << 20)
    for line in lines:
        if line.startswith(b"Idx"):
            continue
        device, is_group = parse_group(line, device)
        if is_group:
            tally.add(device)
    _put_own(counts, lines.whole, {name: tally}, str)
