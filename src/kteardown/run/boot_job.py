"""What a planned boot asks of a machine."""

from collections.abc import Mapping, Sequence

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
    more = (path for name in boot.modules for path in kernel.optional_modules.get(name, ()))
    modules = tuple(dict.fromkeys((*kernel.modules, *more)))
    initramfs = pack(
        console.with_suffix(".cpio"),
        agent=lab.agent,
        plan=guest_plan(boot, [f"/modules/{path.name}" for path in modules]),
        modules=modules,
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
