"""Prove that a machine boots base by ssh, and comes back by itself after success, a panic and a
hang."""

import platform
from dataclasses import replace
from datetime import UTC, datetime

from kteardown.cli import options
from kteardown.errors import LabError
from kteardown.inputs.load import load_experiment
from kteardown.kernels import build
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.resolve import base_of
from kteardown.rundir.directory import writing
from kteardown.visible import echo
from kteardown.vm.agent import build_agent
from kteardown.vm.initramfs import pack
from kteardown.vm.job import BootJob
from kteardown_metal.metal import MetalMachine, Proof, Returned, SshError
from kteardown_metal.ssh import PSTORE, SshPlace

_PLAN = "kteardown-plan 1\nseed 1\ntrial 0 zombies 0 1 until=freezer make=fork zombies=100\n"
_WATCHDOG_S = 60
"""The period of the watchdog while the machine is hung on purpose."""


def prove(place: SshPlace, reporter: Reporter) -> Proof:
    """Boot base on the machine of ``--machine ssh:HOST`` three times, and store what it did.

    The consoles stay beside it. Raises InputError, BuildError, LabError if the machine does not
    come back.
    """
    machine = place.unproved(f"doctor on {platform.node()}", reporter)
    more = () if machine.config.serial else (PSTORE,)
    base = base_of(load_experiment("freezer").model_copy(update={"config": more}))
    cache = cache_dir()
    folder = place.proof_file.parent
    image = build.ensure([base], cache_dir=cache, reporter=reporter).images[base.name].image
    agent = build_agent(DEFAULT_ARCH, cache=cache, reporter=reporter)
    with writing(folder):
        folder.root.mkdir(parents=True, exist_ok=True)
    initramfs = pack(folder / "initramfs", agent=agent, plan=_PLAN, first=machine.first)
    job = BootJob(
        image, initramfs, DEFAULT_ARCH, "metal", 1, 512, 1, folder / "console", _WATCHDOG_S
    )
    try:
        proof = _proof(machine, job, reporter)
    except SshError as error:
        raise LabError(
            str(error), hint="correct what the message says; docs/machine.md may help."
        ) from error
    finally:
        machine.release()
    with writing(place.proof_file):
        place.proof_file.replace(proof.model_dump_json(indent=1))
    return proof


def _proof(machine: MetalMachine, job: BootJob, reporter: Reporter) -> Proof:
    def boot(fault: str, watchdog_s: int = 0) -> Returned:
        console = job.console.parent / f"{fault}.console"
        console.remove()
        faulty_job = replace(job, console=console, kernel_args=(f"kteardown.fault={fault}",))
        with reporter.task(f"booting base on {machine.host}, fault: {fault}"):
            return replace(machine, watchdog_s=watchdog_s).run(faulty_job)

    success = boot("none")
    panic = boot("panic")
    problems = {problem.kind for problem in panic.boot.end(panic.ending).problems}
    if success.boot.sent is None or "panic" not in problems:
        what = "a panic" if success.boot.sent else "the records of a boot"
        raise LabError(
            f"{machine.host} comes back, but it did not send {what}",
            hint=(
                "correct serial and line in the configuration; without them, firmware may clear "
                f"the memory at a reset. What the machine sent is in {job.console.parent}."
            ),
        )
    watchdog_s = min(_WATCHDOG_S, machine.config.boot_s)
    try:
        hang = boot("hang", watchdog_s)
    except SshError as error:
        if not machine.config.power_command:
            raise SshError(f"it has no power command, and no watchdog: {error}") from error
        machine.note(f"without a watchdog: {error}")
        hang = boot("hang")
    return Proof(
        proved_at=datetime.now(UTC).isoformat(timespec="seconds"),
        success_s=round(success.total_s, 1),
        panic_s=round(panic.total_s, 1),
        hang_s=round(hang.total_s, 1),
        by="power command" if hang.powered else "watchdog",
        back_s=round(
            max(success.back_s, panic.total_s, 0 if hang.powered else hang.total_s - watchdog_s), 1
        ),
        facts=success.boot.facts(),
    )


def examine(place: SshPlace, *, as_json: bool) -> None:
    """Prove the machine, and print what it did, for ``kteardown doctor``."""
    echo(prove(place, options.reporter(False, as_json)).model_dump_json(indent=1))
