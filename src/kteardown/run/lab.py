"""Where the guests of a run are, and what they need: QEMU, the agent, programs, the acceleration."""

import os
import platform
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

from kteardown.door import Entry
from kteardown.errors import InputError, LabError, failing
from kteardown.inputs.load import own_sources, runs_own_programs, uncounted
from kteardown.inputs.load import programs as programs_of
from kteardown.kernels import cache_folder, prebuilt
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.experiment import Experiment
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.execute import Lab
from kteardown.run.executors.cluster import Cluster
from kteardown.run.executors.node_job import qemu_hash
from kteardown.run.executors.slurm import Slurm, config_file, load_config
from kteardown.run.forecast import jobs_of
from kteardown.run.guest_records import reports_of
from kteardown.run.repeat import RepeatingMachine
from kteardown.rundir.counting import METAL
from kteardown.rundir.directory import RunDir, writing
from kteardown.rundir.snapshot import Snapshot
from kteardown.script.files import script_archives
from kteardown.visible import on_one_line
from kteardown.vm import acceleration, host
from kteardown.vm.agent import Also, build_agent, build_machine_init
from kteardown.vm.job import Acceleration
from kteardown.vm.metal import MachineConfig, MetalMachine, Proof
from kteardown.vm.qemu import QemuMachine
from kteardown.vm.qemu_library import main_loop_library

LOCAL = "local"
EXPORTED = "exported:"
"""Followed by the token of its bundle, the place of a run whose boots are exported (``run.bundle``)."""
SSH = "ssh:"
"""Followed by a host, the place of a run whose boots are on that machine (``vm.metal``)."""
PSTORE = "pstore"
_MACHINES = (EXPORTED, SSH)
LOST_LIMIT = 0.05
"""The default of ``--lost-limit``; docs/wall-clock.md has the reasons."""


class Where(NamedTuple):
    """Where boots are (without ``on``, here), and whether equal ones are only repeated (``run.repeat``)."""

    on: str = ""
    jobs: int | None = None
    repeat: bool = False


def make_lab(snapshot: Snapshot, reporter: Reporter, where: Where, *, counts: bool = True) -> Lab:
    """Prepare this host for the boots of a run. Raises BuildError, LabError, InputError.

    Without ``counts``, guests do not count events of the processor, even if the design does.
    """
    experiment, on = snapshot.experiment, where.on
    spec = experiment.machine
    wanted = programs_of(experiment, snapshot.workloads)
    counted = counts and experiment.design.counts
    agent = agent_of(experiment, snapshot.workloads, reporter, counts=counted)
    cluster = None
    if on and not on.startswith(_MACHINES):
        config = load_config().slurm
        try:
            qemu = config.qemu or qemu_hash(spec.arch)
        except LabError as error:
            hint = f"set qemu to the SHA-256 of the QEMU of the nodes in {config_file()}."
            raise LabError(error.message, hint=hint) from error
        cluster = Cluster(scheduler(on), config, qemu)
    # On the wall clock all nodes of a cluster must use the same.
    of_nodes = load_config().slurm.wall if cluster and experiment.design.clock == "wall" else None
    best = of_nodes or choose_acceleration(experiment, reporter, on)
    if counted:
        for name in uncounted(experiment, snapshot.workloads):
            reporter.note(f"--counts: {name} is not counted, because it marks no stretch")
        if cluster is None or best == "mttcg":
            _check_counters(best)
    if best == "icount":
        # Nodes of a cluster need no compiler: they find it in the cache.
        cache_folder.hold(main_loop_library(reporter))
    owner = f"{platform.node()}:{snapshot.run.path.resolve()}"
    metal = machine_of(on, owner, reporter) if on.startswith(SSH) else None
    return Lab(
        machine=metal or (RepeatingMachine if where.repeat else QemuMachine)(reporter.command),
        release=metal.release if metal else lambda: None,
        agent=agent,
        agent_hash=file_hash(agent),
        arch=spec.arch,
        acceleration=best,
        reports=reports_of(snapshot.workloads),
        lost_limit=lost_limit(experiment, best, snapshot.plan.cpus, on_nodes=cluster is not None),
        lost_asked=experiment.design.lost_limit is not None,
        jobs=jobs_of(experiment, where.jobs),
        kernel_args=spec.kernel_args,
        programs=prebuilt.guest_programs(wanted, spec.arch, Sources(cache_dir(), reporter), reporter),
        archives=script_archives(
            snapshot.workloads, experiment.folder, snapshot.run.folder, spec.arch, reporter
        ),
        has_own_programs=runs_own_programs(snapshot.workloads),
        first=build_machine_init(spec.arch, cache=cache_dir(), reporter=reporter) if best == METAL else None,
        executor=cluster,
    )


def agent_of(
    experiment: Experiment, workloads: Mapping[str, Workload], reporter: Reporter, *, counts: bool = False
) -> Path:
    """Return the agent of the guests, from the cache or built into it. Raises BuildError, LabError."""
    own = own_sources(workloads, experiment.folder)
    also: Also = "counts" if counts else ""
    built = build_agent(experiment.machine.arch, cache=cache_dir(), reporter=reporter, own=own, also=also)
    return cache_folder.hold(built)


def choose_acceleration(experiment: Experiment, reporter: Reporter, on: str = "") -> Acceleration:
    """Return the acceleration for an experiment's clock; print the reason if it is not KVM."""
    if on.startswith(_MACHINES):
        return "metal"
    if experiment.design.clock == "instructions":
        return "icount"
    found = acceleration.best_wall_acceleration(experiment.machine.arch, cache=cache_dir())
    if found.reason:
        reporter.note(found.reason)
    return found.acceleration


def check_host(experiment: Experiment, on: str | None, *, kvm: bool) -> None:
    """Check that guests have counters (``--counts``) and, if asked, KVM, before anything is built.

    ``on`` is the value of ``--on``. The nodes of a cluster are not known: there the agent reports what they
    lack, and a node without KVM is not used, unless the configuration says otherwise. Raises LabError.
    """
    if on and on.startswith(SSH):
        check_measurable(experiment, load_config().machines.get(on.removeprefix(SSH)), kvm=kvm)
        return
    if experiment.design.clock == "instructions" or not (kvm or experiment.design.counts):
        return
    best: Acceleration = load_config().slurm.wall
    reason = "the configuration lets nodes emulate (slurm.wall)"
    if on in (None, LOCAL):
        found = acceleration.best_wall_acceleration(experiment.machine.arch, cache=cache_dir())
        best, reason = found.acceleration, found.reason
    if kvm and best != "kvm":
        raise LabError(
            f"--require kvm: the wall clock would be emulated: {reason}",
            hint="use a host for which `kteardown doctor` shows the wall clock on KVM as ok (a user may have "
            "to join the group kvm), or --clock instructions, which needs no KVM.",
        )
    if experiment.design.counts and on in (None, LOCAL):
        _check_counters(best)


def _check_counters(acceleration: Acceleration) -> None:
    # Whether an emulated processor has counters on the instruction clock is checked with the experiment, and
    # the agent reports whether another machine has them.
    if acceleration in ("icount", METAL):
        return
    reason = "it has no KVM, and emulation has no counters"
    if acceleration == "kvm":
        reason = host.why_guests_have_no_counters()
    if reason:
        raise LabError(
            f"--counts: guests of this host have no hardware counters on the wall clock: {reason}",
            hint="leave out --counts (in an experiment file, counts), or use a host for which "
            "`kteardown doctor` shows hardware counters as ok.",
        )


def lost_limit(
    experiment: Experiment, acceleration: Acceleration, cpus: int, *, on_nodes: bool = False
) -> float | None:
    """Return the share of its time that a trial of a guest with ``cpus`` CPUs may lose; None: any.

    There is no default under emulation, whose own threads compete with each other, nor where the host has no
    CPU besides those of the guest: there a guest loses time to QEMU and to the lab, and the more it does, the
    more it loses. ``on_nodes``: each node of a cluster decides that for itself.
    """
    asked = experiment.design.lost_limit
    if acceleration in ("icount", METAL):
        return None
    if asked is not None:
        return asked if asked < 1 else None
    spare = on_nodes or len(os.sched_getaffinity(0)) > cpus
    return LOST_LIMIT if acceleration == "kvm" and spare else None


def check_place(on: str | None) -> None:
    """Check the value of ``--on`` and the configuration, before anything is built. Raises InputError."""
    if on and on.startswith(SSH):
        proof_of(on)
    elif on not in (None, LOCAL):
        scheduler(on)


def check_measurable(asked: Experiment, config: MachineConfig | None = None, *, kvm: bool = False) -> None:
    """Raise InputError if a machine, of which ``config`` is known, cannot measure what is asked for."""
    design, machine = asked.design, asked.machine
    lacks = config and not config.serial and PSTORE not in asked.config
    suspends = any("platform" in sweep.params.get("until", ()) for sweep in asked.workloads)
    for wrong, why, hint in (
        (design.clock != "wall", "--clock: a machine has no instruction clock", "name --clock wall."),
        (design.profile, "--profile: stacks are only sampled in guests", "remove --profile."),
        (machine.numa_nodes, "numa_nodes: a machine has the nodes that it has", "remove numa_nodes."),
        (suspends, "until=platform suspends the machine, which then may not wake up", "choose another."),
        (kvm, "--require kvm: a machine has no KVM", "remove --require."),
        (lacks, f"a machine without serial needs the fragment {PSTORE}", f"add --config {PSTORE}."),
        (machine.arch != "x86_64", "only x86_64 machines are known", "remove --arch."),
    ):
        if wrong:
            raise InputError(why, hint=hint)


def machine_of(on: str, owner: str, reporter: Reporter, *, proved: bool = True) -> MetalMachine:
    """Return the machine of ``--machine ssh:HOST``. ``owner`` names what uses it, in its lock.

    Raises InputError if it is not in the configuration, or is to be ``proved`` and is not; BuildError,
    LabError.
    """
    host = on.removeprefix(SSH)
    config = load_config().machines.get(host)
    if config is None:
        raise InputError(
            f"--machine {on}: there is no section for it in {config_file()}",
            hint=f'add [machines."{host}"], with serial = "COMMAND" if it has a line (docs/machine.md).',
        )
    first = build_machine_init(DEFAULT_ARCH, cache=cache_dir(), reporter=reporter)
    proof = proof_of(on) if proved else None
    watchdog_s = config.boot_s if proof and proof.by == "watchdog" else 0
    return MetalMachine(host, config, first, owner, proof, reporter.note, watchdog_s)


def proof_file(on: str) -> Entry:
    return Entry(cache_dir() / "machines" / quote(on.removeprefix(SSH), safe="@"), ("proof.json",))


def proof_of(on: str) -> Proof:
    """Return what a machine was seen to do. Raises InputError if it was not proved."""
    try:
        return Proof.model_validate_json(proof_file(on).content())
    except (OSError, ValidationError) as error:
        raise InputError(
            f"--machine {on}: it is not proved that this machine comes back",
            hint=f"prove it, which boots it three times: kteardown doctor --machine {on}",
        ) from error


def scheduler(on: str) -> Slurm:
    """Return the scheduler that ``on`` names. Raises InputError."""
    named = re.fullmatch(r"slurm(?::(\w[\w.,-]*)?)?", on, re.ASCII)
    if not named:
        raise InputError(
            f"--on {on}: not a place where guests can run",
            hint="the places are local, slurm, slurm:PARTITION (see `sinfo --summarize`) and ssh:HOST.",
        )
    return Slurm(load_config().slurm, named[1] or "")


def remembered_place(run: RunDir, on: str | None) -> str:
    """Return where the run at ``run`` is executed, and remember it: empty for this host.

    Raises LabError; InputError if its boots are exported, or if it began elsewhere and ``on`` does not say
    where it goes on: no file of a run sends boots to a machine.
    """
    file = run.folder / "on"
    with failing(f"{file}: cannot be read", hint="restore the run directory from a copy."):
        kept = file.text().strip() if file.exists() else ""
    if kept.startswith(EXPORTED):
        raise InputError(
            f"the boots of {run.name} are exported: they run on a machine that is not of this lab",
            hint="import the logs of that machine: kteardown import LOG...",
        )
    if on is None and kept:
        raise InputError(
            f"{run.name} began on {on_one_line(kept)}: kteardown sends boots there only if you name it again",
            hint=f"add --on {shlex.quote(on_one_line(kept))}, or another place; --on {LOCAL} is this host.",
        )
    if on is None:
        return ""
    with writing(file):
        if on != LOCAL:
            file.replace(f"{on}\n")
        else:
            file.remove()
    return "" if on == LOCAL else on
