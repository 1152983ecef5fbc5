"""Problems of namespaces, and of what is in them: mounts, devices, addresses, queues."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress

from vm.planted import calls, netlink
from vm.planted.problem import OWN_FILES, Expected, Held, Problem

_FIRST_GROUP = 1000


def _mounts() -> int:
    with open("/proc/self/mountinfo", encoding="utf-8") as stream:
        return len(stream.readlines())


class Mounts(Held):
    """Bind mounts beside one another in one mount namespace, which ends with its process."""

    objects = 500
    release_is = "exit of the only process of their namespace"
    flags = calls.MS_PRIVATE

    def build(self) -> int:
        calls.private_mounts()
        os.makedirs("/tmp/planted-mounts", exist_ok=True)
        calls.mount("planted", "/tmp/planted-mounts", "tmpfs")
        os.chdir("/tmp/planted-mounts")
        os.mkdir("from")
        calls.mount("from", "from", "", calls.MS_BIND)
        calls.mount("none", "from", "", self.flags)
        for i in range(self.n):
            os.mkdir(str(i))
            calls.mount("from", str(i), "", calls.MS_BIND)
        return _mounts()

    def expected(self) -> list[Expected]:
        every = int(self.said)
        return [
            *self.process(),
            Expected("mounts", every, every),
            Expected("mount_namespaces", 1),
        ]


class MountPeers(Mounts):
    flags = calls.MS_SHARED

    def expected(self) -> list[Expected]:
        return [*super().expected(), Expected("mount_peers", self.n + 1, self.n + 1)]


class NetworkNamespaces(Held):
    objects = 25
    release_is = "kill of the processes that are in them"

    def build(self) -> None:
        self._tasks = calls.Tasks(self.n)
        for _ in range(self.n):
            self._tasks.sleeper(calls.CLONE_VM | calls.CLONE_NEWNET | signal.SIGCHLD)

    def release(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def expected(self) -> list[Expected]:
        return [*self.process(self.n), Expected("network_namespaces", self.n)]


class KeptNetworkNamespaces(Held):
    objects = 25
    release_is = "exit of the process that has their descriptors"

    def build(self) -> None:
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        for _ in range(self.n):
            calls.unshare(calls.CLONE_NEWNET)
            os.open("/proc/self/ns/net", os.O_RDONLY)
        calls.set_namespace(home)
        os.close(home)

    def expected(self) -> list[Expected]:
        kept = self.by_process("kept_network_namespaces")
        return [*self.process(), kept, Expected("network_namespaces", self.n)]


class _Devices(Problem):
    """Devices of one group in the collector's own namespace."""

    release_is = "one RTM_DELLINK of their group"
    group = _FIRST_GROUP

    def release(self) -> None:
        try:
            netlink.request(netlink.DELETE_LINK, netlink.of_group(self.group))
        except OSError:
            # Without a device there is no group.
            if self.n:
                raise


class Dummies(_Devices):
    objects = 40
    modules = ("dummy",)
    group = _FIRST_GROUP

    def make(self) -> None:
        links = [netlink.link("dummy", f"dum{i}", self.group) for i in range(self.n)]
        netlink.request(netlink.NEW_LINK, *links)

    def expected(self) -> list[Expected]:
        return [Expected("devices", self.n), Expected("dummies", self.n)]


class Veths(_Devices):
    objects = 20
    modules = ("veth",)
    group = _FIRST_GROUP + 1

    def make(self) -> None:
        links = [netlink.link("veth", f"vet{i}", self.group) for i in range(self.n)]
        netlink.request(netlink.NEW_LINK, *links)

    def expected(self) -> list[Expected]:
        return [Expected("devices", 2 * self.n), Expected("veth_pairs", self.n)]


class Neighbours(_Devices):
    """Of one device."""

    objects = 1000
    modules = ("dummy",)
    release_is = "RTM_DELLINK of their device"
    group = _FIRST_GROUP + 2
    device = "neigh"

    def make(self) -> None:
        netlink.request(netlink.NEW_LINK, netlink.link("dummy", self.device, self.group))
        one_more = [netlink.neighbour_of(self.device, i) for i in range(self.n)]
        netlink.request(netlink.NEW_NEIGHBOUR, *one_more)

    def release(self) -> None:
        netlink.request(netlink.DELETE_LINK, netlink.of_group(self.group))

    def expected(self) -> list[Expected]:
        return [
            Expected("devices", 1),
            Expected("dummies", 1),
            Expected("neighbours4", self.n),
        ]


class Addresses(Neighbours):
    """Of one device in one subnet."""

    objects = 250
    group = _FIRST_GROUP + 3
    device = "addr"

    def make(self) -> None:
        with open("/proc/sys/net/ipv4/conf/all/promote_secondaries", "w", encoding="utf-8") as it:
            it.write("1")
        netlink.request(netlink.NEW_LINK, netlink.link("dummy", self.device, self.group))
        one_more = [netlink.address_of(self.device, i) for i in range(self.n)]
        netlink.request(netlink.NEW_ADDRESS, *one_more)

    def expected(self) -> list[Expected]:
        return [
            Expected("devices", 1),
            Expected("dummies", 1),
            Expected("addresses4", self.n, self.n, self.device),
        ]


class DummiesOneByOne(Dummies):
    release_is = "RTM_DELLINK of each"
    group = _FIRST_GROUP + 4
    kind, prefix = "dummy", "one"

    def make(self) -> None:
        names = [f"{self.prefix}{i}" for i in range(self.n)]
        links = [netlink.link(self.kind, name, self.group) for name in names]
        netlink.request(netlink.NEW_LINK, *links)
        self._requests = [netlink.named(name) for name in names]

    def release(self) -> None:
        netlink.request(netlink.DELETE_LINK, *self._requests)


class VethsOneByOne(DummiesOneByOne):
    objects = 20
    modules = ("veth",)
    group = _FIRST_GROUP + 5
    kind, prefix = "veth", "both"

    def expected(self) -> list[Expected]:
        return [Expected("devices", 2 * self.n), Expected("veth_pairs", self.n)]


class AddressesOneByOne(Addresses):
    """The next one becomes the primary address, each time."""

    release_is = "RTM_DELADDR of each, the oldest first"
    objects = 60
    group = _FIRST_GROUP + 6
    device = "addr1"

    def make(self) -> None:
        super().make()
        self._requests = [netlink.address_of(self.device, i) for i in range(self.n)]

    def release(self) -> None:
        netlink.request(netlink.DELETE_ADDRESS, *self._requests)

    def clean(self) -> None:
        super().release()


class TimeWait(Problem):
    """Connections in TIME_WAIT in the collector's namespace, which the release leaves last."""

    objects = 500
    release_is = "end of their network namespace"
    namespace = calls.CLONE_NEWNET
    kept = "/proc/self/ns/net"

    def make(self) -> None:
        netlink.request(netlink.NEW_LINK, netlink.up("lo"))
        with socket.create_server(("127.0.0.1", 6000), backlog=8) as listening:
            for _ in range(self.n):
                connected = socket.create_connection(("127.0.0.1", 6000))
                accepted = listening.accept()[0]
                connected.close()
                accepted.close()

    def expected(self) -> list[Expected]:
        # The loopback device is up, and its own neighbour.
        return [
            Expected("tcp_time_wait", self.n),
            Expected("addresses4", 1),
            Expected("neighbours4", 1),
        ]

    def release(self) -> None:
        first = _FIRST[self.kept]
        calls.set_namespace(first)


class MessageQueues(TimeWait):
    objects = 500
    release_is = "end of their IPC namespace"
    namespace = calls.CLONE_NEWIPC
    kept = "/proc/self/ns/ipc"

    def make(self) -> None:
        for _ in range(self.n):
            calls.message_queue()

    def expected(self) -> list[Expected]:
        return [Expected("msg_queues", self.n)]


class Messages(Problem):
    objects = 2000
    release_is = "msgctl(IPC_RMID) of their queue"

    def make(self) -> None:
        self._queue = calls.message_queue()
        for _ in range(self.n):
            calls.send_message(self._queue)

    def expected(self) -> list[Expected]:
        owner = str(self._queue)
        return [
            Expected("msg_queues", 1),
            Expected("msg_messages", self.n, self.n, owner),
        ]

    def release(self) -> None:
        calls.remove_queue(self._queue)


_FIRST: dict[str, int] = {}


def enter_own(flags: int = calls.CLONE_NEWNET | calls.CLONE_NEWIPC) -> None:
    """Move this process into a network and an IPC namespace of its own, without IPv6 devices.

    ``TimeWait`` and ``MessageQueues`` leave them; a process that was made meanwhile would keep
    them.
    """
    for path in ("/proc/self/ns/net", "/proc/self/ns/ipc"):
        if path not in _FIRST:
            _FIRST[path] = os.open(path, os.O_RDONLY)
            OWN_FILES.append(_FIRST[path])
    calls.unshare(flags)
    with suppress(OSError), open("/proc/sys/kernel/msgmnb", "w", encoding="utf-8") as stream:
        stream.write(str(1 << 20))
    with suppress(OSError), open("/proc/sys/kernel/msgmni", "w", encoding="utf-8") as stream:
        stream.write("32000")
    path = "/proc/sys/net/ipv6/conf/default/disable_ipv6"
    with suppress(OSError), open(path, "w", encoding="utf-8") as stream:
        stream.write("1")


PROBLEMS: dict[str, type[Problem]] = {
    "mounts": Mounts,
    "mount_peers": MountPeers,
    "network_namespaces": NetworkNamespaces,
    "kept_network_namespaces": KeptNetworkNamespaces,
    "dummies": Dummies,
    "veths": Veths,
    "neighbours4": Neighbours,
    "addresses4": Addresses,
    "dummies_one_by_one": DummiesOneByOne,
    "veths_one_by_one": VethsOneByOne,
    "addresses4_one_by_one": AddressesOneByOne,
    "msg_messages": Messages,
    # These leave a namespace in which all others are made.
    "msg_queues": MessageQueues,
    "tcp_time_wait": TimeWait,
}
