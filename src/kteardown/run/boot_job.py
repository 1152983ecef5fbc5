"""What a planned boot asks of a machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kteardown.door import Entry
from kteardown.model.plan import Plan, PlannedBoot
from kteardown.run.guest_records import of_agent
from kteardown.run.setting import Bootable, GuestSetup
from kteardown.vm.host_watch import HostWatch
from kteardown.vm.initramfs import pack
from kteardown.vm.job import Acceleration, BootJob

SILENCE_FACTOR: Mapping[Acceleration, float] = {
    "kvm": 1.0,
    "mttcg": 5.0,
    "icount": 0.5,
    "metal": 1.0,
}


def guest_plan(boot: PlannedBoot, modules: Sequence[str] = ()) -> str:
    """Return the plan of one boot as the agent reads it; docs/formats.md has the format."""
    lines = ["kteardown-plan 1", f"seed {boot.seed}"]
    lines += [f"module {path}" for path in modules]
    profile_ns = 0
    for trial in boot.trials:
        if trial.profile_ns != profile_ns:
            profile_ns = trial.profile_ns
            lines.append(f"profile {profile_ns}")
        name, params = of_agent(trial)
        words = (f"{key}={value}" for key, value in params.items())
        lines.append(
            " ".join([f"trial {trial.index} {name} {trial.warmup} {trial.repetitions}", *words])
        )
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class GuestModules:
    """The modules of a guest: their files, those that the agent loads first, by their paths, and
    the index for modprobe."""

    files: tuple[Path, ...]
    first: tuple[str, ...]
    index: str

    @classmethod
    def of(cls, boot: PlannedBoot, kernel: Bootable) -> "GuestModules":
        """Return those of a boot of ``kernel``.

        What a script asks for is loaded by its agent, as modprobe does it: some of several drivers
        for one alias may not load.
        """
        words = dict.fromkeys((*boot.modules, *kernel.offers))
        wanted = {word: kernel.optional_modules.get(word, ()) for word in words}
        files = tuple(dict.fromkeys((*kernel.modules, *chain(*wanted.values()))))
        if all(trial.script is None for trial in boot.trials):
            return cls(files, _guest_paths(files), "")
        lines = [f"builtin {name}" for name in kernel.builtin]
        lines += [_line("alias", word, wanted[word]) for word in boot.modules]
        for module, aliases in kernel.offers.items():
            lines += [_line("offer", alias, wanted[module]) for alias in aliases]
        index = "".join(f"{line}\n" for line in lines if line)
        return cls(files, _guest_paths(kernel.modules), index)


def _line(kind: str, alias: str, files: Sequence[Path]) -> str:
    """Return the line of the index about an alias; empty if it loads nothing."""
    return " ".join([kind, alias, *(path.stem for path in files)]) if files else ""


def _guest_paths(files: Sequence[Path]) -> tuple[str, ...]:
    return tuple(f"/modules/{path.name}" for path in files)


def boot_job(
    boot: PlannedBoot,
    plan: Plan,
    lab: GuestSetup,
    kernel: Bootable,
    console: Entry,
    host: HostWatch | None,
) -> BootJob:
    """Return the job of a boot. Its initramfs is written beside ``console``. Raises InputError,
    LabError."""
    modules = GuestModules.of(boot, kernel)
    initramfs = pack(
        console.with_suffix(".cpio"),
        agent=lab.agent,
        plan=guest_plan(boot, modules.first),
        modules=modules.files,
        module_index=modules.index,
        programs=lab.programs,
        archives=lab.archives,
        first=lab.first,
    )
    return BootJob(
        image=kernel.image,
        initramfs=initramfs,
        arch=lab.arch,
        acceleration=lab.acceleration,
        cpus=boot.machine.get("cpus", plan.cpus),
        memory_mb=plan.memory_mb,
        seed=boot.seed,
        console=console,
        silence_s=plan.silence_s * SILENCE_FACTOR[lab.acceleration],
        kernel_args=lab.kernel_args,
        has_own_programs=lab.has_own_programs,
        possible_cpus=boot.machine.get("possible_cpus", plan.possible_cpus),
        numa_nodes=boot.machine.get("numa_nodes", plan.numa_nodes),
        on_vcpus=host.vcpus if host else None,
    )
