"""A job on a node of a cluster: ``python -m kteardown_cluster.node_job ORDER.json``.

With ``FILE CACHE NODE_CACHE`` it writes what its host is like to FILE, for ``kteardown doctor --on
slurm``.

It boots one piece of a plan, writes the records into a folder of its own, and publishes them in the
journal of the run by an atomic link. It trusts nothing that it can check: the build of QEMU, each
file by its hash, and that no other guest runs on its host. A piece is published whole or not at
all.
"""

import fcntl
import os
import platform
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from kteardown.door import LARGE, Entry
from kteardown.errors import KteardownError, LabError
from kteardown.kernels.source import file_hash
from kteardown.model.arch import ARCHITECTURES, DEFAULT_ARCH, Arch
from kteardown.model.plan import Plan
from kteardown.model.record import BootEnd, BootStart, Record
from kteardown.model.workload import StrictModel
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.run.execute import run_boot
from kteardown.run.setting import Bootable, GuestSetup, Lab, Setting, Watch
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import RecordWriter
from kteardown.vm import host
from kteardown.vm.acceleration import best_wall_acceleration
from kteardown.vm.host import missing_qemu, qemu_version
from kteardown.vm.qemu import QemuMachine
from kteardown_cluster.journal import Failure, Kind, Receipt, publish, write_failure
from kteardown_cluster.slurm import SlurmConfig

_LOCK_EVERY_S = 0.25
_LOCK_FOLDERS = (Path("/run/lock"), Path("/tmp"))


class Order(StrictModel):
    """All that a job needs; the only argument of a job is the file of its order."""

    key: str
    attempt: int
    kind: Kind
    journal: Path
    plan: Plan
    """The boots of the piece."""
    kernels: dict[str, Bootable]
    setup: GuestSetup
    hashes: dict[str, str]
    """The SHA-256 of each file, by its path."""
    qemu: str
    """The SHA-256 of the QEMU of the run."""
    exclusive: bool
    """Whether no other guest may run on the host."""
    config: SlurmConfig = SlurmConfig()


class NodeFacts(StrictModel):
    qemu: str
    """The SHA-256 of QEMU for x86-64; empty if there is none."""
    qemu_version: str
    kvm: str
    """Why guests do not run on KVM; empty if a probe guest ran."""
    cores: int
    cpu: str
    memory_mb: int
    disk_mb: int
    """What is free where the node keeps copies of kernels."""
    cache: bool
    """Whether the node sees the shared cache."""
    load: float
    smt: str
    governor: str


@dataclass(frozen=True)
class Me:
    node: str
    job: str
    name: str

    @classmethod
    def here(cls) -> "Me":
        """Return this execution; no other has its name."""
        node = os.environ.get("SLURMD_NODENAME") or platform.node()
        job = os.environ.get("SLURM_JOB_ID", "0")
        restarts = os.environ.get("SLURM_RESTART_COUNT", "0")
        return cls(node, job, f"{job}-{restarts}-{node}-{os.getpid()}-{secrets.token_hex(3)}")


class _Log(RecordWriter):
    """The records of an execution, in its own folder; each boot starts with the node and the
    execution."""

    def __init__(self, run: RunDir, me: Me) -> None:
        super().__init__(run)
        self._me = me

    def append(self, *records: Record, boot: int, attempt: int) -> None:
        origin = {"node": self._me.node, "job": self._me.name}
        marked = (
            record.model_copy(update=origin) if isinstance(record, BootStart) else record
            for record in records
        )
        super().append(*marked, boot=boot, attempt=attempt)

    def completed(self, boot: int) -> frozenset[int]:
        """Return the trials that attempts of this execution completed."""
        return self._completed_of(boot)


def run_order(order: Order, me: Me) -> bool:
    """Boot the piece and publish it; return whether it was the first time. Raises KteardownError,
    OSError."""
    run = RunDir.create_at(_folder_of(order, me))
    lock_folder = order.config.lock_folder
    cache = order.config.node_cache
    folders = (folder for folder in _LOCK_FOLDERS if folder.is_dir() and os.access(folder, os.W_OK))
    folder = Path(lock_folder) if lock_folder else next(folders)
    with host_lock(folder, exclusive=order.exclusive, wait_s=order.config.lock_wait_s) as lock:
        qemu = check_qemu(order)
        log = _Log(run, me)
        try:

            def stage(path: Path) -> Path:
                return staged(path, order.hashes, Path(cache) if cache else None)

            used = {boot.kernel for boot in order.plan.boots}
            kernels = {
                name: replace(files.placed(stage), lines=files.image.parent)
                for name, files in order.kernels.items()
                if name in used
            }
            spare_cpu = len(os.sched_getaffinity(0)) > order.plan.cpus
            lab_fields = vars(order.setup.placed(stage))
            if not (order.setup.lost_asked or spare_cpu):
                lab_fields["lost_limit"] = None
            lab = Lab(**lab_fields, machine=QemuMachine(inherit=(lock,)))
            setting = Setting(order.plan, kernels, lab, log, Watch(), SilentReporter())
            for boot in order.plan.boots:
                run_boot(boot, setting)
        finally:
            log.close()
    records = run.records()
    receipt = Receipt(
        key=order.key,
        attempt=order.attempt,
        name=me.name,
        node=me.node,
        job=me.job,
        qemu=qemu,
        machine=host.facts(),
        records=len(records),
    )
    first = publish(Entry(order.journal), order.kind, run.folder, receipt, records)
    guests = sum(record.duration_s for record in records if isinstance(record, BootEnd))
    beside = time.time() - psutil.Process().create_time() - guests
    print(f"published{'' if first else ' too late'}; seconds beside the guests: {beside:.2f}")
    return first


@contextmanager
def host_lock(folder: Path, *, exclusive: bool, wait_s: float) -> Iterator[int]:
    """Yield the descriptor of a lock of the host, so that a guest on the wall clock has the host
    for itself.

    It is an advisory lock (flock) on a file of the host. QEMU inherits its descriptor: when the
    process that took the lock is gone and its guest is still running, the lock is still held.
    Guests on the instruction clock share it, since they do not disturb each other. Raises LabError
    if others still hold it after ``wait_s``.
    """
    file = folder / "kteardown-guests.lock"
    # Reading is enough for a lock: another user may have made the file.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with suppress(FileExistsError):
            made = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o644)
            # Whatever the umask of the first user.
            os.fchmod(made, 0o644)
            os.close(made)
        fd = os.open(file, flags)
    except OSError as error:
        raise LabError(
            f"{file}: the lock of the host cannot be opened: {error.strerror}",
            hint=(
                "in the configuration, set lock_folder of [slurm] to a local folder of every host."
            ),
        ) from error
    try:
        until = time.monotonic() + wait_s
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                break
            if time.monotonic() > until:
                raise LabError(
                    f"another guest has run on this host for {wait_s:g} s ({file} is locked)",
                    hint=f"see which process holds it: fuser -v {file}",
                )
            time.sleep(_LOCK_EVERY_S)
        yield fd
    finally:
        os.close(fd)


def check_qemu(order: Order) -> str:
    """Return the hash of this node's QEMU. Raises LabError if it is not that of the run."""
    qemu = qemu_hash(order.setup.arch)
    if order.qemu and qemu != order.qemu:
        raise LabError(
            f"this node has another build of QEMU ({qemu[:12]}) than the run ({order.qemu[:12]})",
            hint=(
                "install the same build on all nodes, or set qemu and qemu_feature in the "
                "configuration."
            ),
        )
    if order.setup.acceleration == "kvm":
        best = best_wall_acceleration(order.setup.arch, cache=cache_dir())
        if best.acceleration != "kvm":
            raise LabError(best.reason, hint='set wall = "mttcg" in the configuration.')
    return qemu


def qemu_hash(arch: Arch) -> str:
    """Return the SHA-256 of the QEMU that this host runs. Raises LabError if there is none."""
    path = shutil.which(ARCHITECTURES[arch].qemu)
    if path is None:
        raise missing_qemu(arch)
    return file_hash(Path(path).resolve())


def staged(path: Path, hashes: Mapping[str, str], cache: Path | None) -> Path:
    """Return the file to use for ``path``: with a ``cache`` of the node, its copy.

    Raises LabError if it has not the hash of ``hashes``, which are by path.
    """
    wanted = hashes[str(path)]
    try:
        if cache is not None:
            # Under its own name, which is that of a module in the guest.
            copy = cache / wanted / path.name
            if copy.is_file() and file_hash(copy) == wanted:
                return copy
        if file_hash(path) == wanted:
            if cache is None:
                return path
            # Whole or not at all.
            copy.parent.mkdir(parents=True, exist_ok=True)
            partial = copy.with_name(f"{copy.name}.{os.getpid()}.{secrets.token_hex(3)}")
            try:
                shutil.copyfile(path, partial)
                return partial.replace(copy)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise LabError(
            f"{error.filename or path}: {error.strerror}",
            hint="the node needs the shared file system with the cache, and space in node_cache.",
        ) from error
    raise LabError(
        f"{path} is not the file that the run began with",
        hint="run the experiment again from its start.",
    )


def look(cache: Path, node_cache: Path) -> NodeFacts:
    facts = host.facts()
    cpu = facts["cpu"]
    try:
        qemu = qemu_hash(DEFAULT_ARCH)
        version = qemu_version(DEFAULT_ARCH)
        kvm = best_wall_acceleration(DEFAULT_ARCH, cache=cache).reason
    except LabError as error:
        qemu = ""
        version = ""
        kvm = error.message
    existing = next(folder for folder in (node_cache, *node_cache.parents) if folder.exists())
    return NodeFacts(
        qemu=qemu,
        qemu_version=version,
        kvm=kvm.removeprefix("KVM is not used: ").partition(". ")[0],
        cores=cpu["topology"]["cores"] or cpu["online"] or 0,
        cpu=cpu["model"] or "",
        memory_mb=facts["memory_kb"] // 1024,
        disk_mb=psutil.disk_usage(str(existing)).free >> 20,
        cache=cache.is_dir(),
        load=os.getloadavg()[0],
        smt=cpu["smt"] or "",
        governor=cpu["governor"] or "",
    )


def _folder_of(order: Order, me: Me) -> Entry:
    """Return the folder of this execution."""
    return Entry(order.journal) / "attempts" / order.key / str(order.attempt) / me.name


def main(arguments: Sequence[str]) -> int:
    """Execute the order in the file that is named; the exit status is 1 if nothing was
    published."""
    if len(arguments) == 3:
        file, *folders = map(Path, arguments)
        Entry.of(file).replace(look(*folders).model_dump_json())
        return 0
    order = Order.model_validate_json(Entry.of(Path(arguments[0])).content(LARGE))
    me = Me.here()
    # Slurm's first signal: leave no files behind, and let the lock go only with the guest.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        run_order(order, me)
        return 0
    except KteardownError as error:
        reason = error.message
        at_host = isinstance(error, LabError)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        reason = f"{where}{error.strerror or error}"
        at_host = True
    finally:
        for left in (_folder_of(order, me) / "console").entries("*.cpio"):
            left.remove()
    print(reason, file=sys.stderr)
    failure = Failure(
        key=order.key, attempt=order.attempt, node=me.node, reason=reason, host=at_host
    )
    try:
        write_failure(Entry(order.journal), failure, me.name)
    except OSError as error:
        print(f"cannot be reported: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
