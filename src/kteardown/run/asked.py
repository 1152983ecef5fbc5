"""What is measured if a command names a change, or a posting, and no experiment."""

from pathlib import Path

from kteardown.errors import InputError
from kteardown.inputs.load import experiment_names, load_experiment, load_workload, readable, workload_names
from kteardown.inputs.options import Overrides
from kteardown.inputs.override import apply
from kteardown.inputs.published import Posting
from kteardown.kernels.git import of_branch
from kteardown.model.experiment import MACHINE_PARAMETERS, Experiment, Sweep
from kteardown.paths import cache_dir


def base_and_variants(source: str, series: list[str], branches: list[str]) -> tuple[str, list[str]]:
    """Return the source of base and the names of the variants.

    ``branches`` are written BASE..TOPIC. Without ``source``, base is the commit where they begin.

    Raises InputError if there is no variant, or if the options do not determine one base.
    """
    if not series and not branches:
        raise InputError(
            "there is nothing to compare with base: neither --series nor --branch is given",
            hint="name a patch, an mbox or a folder: --series ./my.mbox",
        )
    kind, _, rest = source.partition(":")
    path, at, _ = rest.rpartition("@") if kind == "git" else ("", "", "")
    repository = Path(path if at else rest).expanduser() if kind == "git" else Path()
    found = [of_branch(text, repository, cache_dir()) for text in branches]
    variants = [*series, *(str(folder) for _, folder in found)]
    if at or (source and not (kind == "git" and found)):
        return source, variants
    bases = list(dict.fromkeys(fork for fork, _ in found))
    if len(bases) != 1:
        raise InputError(
            f"--branch: the branches begin at different commits: {', '.join(bases)}"
            if bases
            else "the base kernel is not given: --source is missing",
            hint="add --source git:PATH@REV or --source debian:6.12.",
        )
    return f"git:{repository.absolute()}@{bases[0]}", variants


def experiment_for(workload: str, source: str) -> Experiment:
    """Return an experiment with one workload and base ``source``.

    Sweep and design are those of the first known experiment with this workload, if there is one.

    Raises InputError if there is no such workload.
    """
    here = Path.cwd()
    load_workload(workload, str(here))
    name = f"compare-{workload}"
    question = f"What does the change do to {workload}?"
    for known in readable(load_experiment, experiment_names(here)):
        if workload in (sweep.workload for sweep in known.workloads):
            # The published figures are of another change than this one.
            about = {"name": name, "question": question, "source": source, "reference": None}
            return apply(known, Overrides(workload=[workload])).model_copy(update=about)
    own = "" if workload in workload_names() else str(here)
    sweeps = (Sweep(workload=workload),)
    return Experiment(name=name, question=question, source=source, workloads=sweeps, folder=own)


def experiment_of(posting: Posting, variant: str) -> Experiment:
    """Return the experiment that tests the claims of ``posting`` with the kernel change ``variant``.

    Points and design are those of the first experiment with its workload, unless the posting has others.
    Raises InputError if the posting has no patch that can be run.
    """
    run = posting.run
    if run is None:
        raise InputError(
            f"{posting.name}: {posting.cannot or 'it has no patch that can be run'}",
            hint="choose another posting; `kteardown list postings` shows which can be run.",
        )
    known = experiment_for(run.workload, run.source)
    machine = {name: values for name, values in run.params.items() if name in MACHINE_PARAMETERS}
    own = {name: values for name, values in run.params.items() if name not in MACHINE_PARAMETERS}
    (sweep,) = known.workloads
    quick = {name: values for name, values in known.quick.params.items() if name not in run.params}
    return known.model_copy(
        update={
            "name": f"replicate-{posting.name}",
            "question": f"Does this replicate: {posting.source.title}?",
            "variants": (variant,),
            "reference": posting.name,
            "workloads": (sweep.model_copy(update={"params": {**sweep.params, **own}}),),
            "machine": known.machine.model_copy(update=machine),
            "design": known.design.model_copy(update={"clock": run.clock}),
            "quick": known.quick.model_copy(update={"params": quick}),
        }
    )
