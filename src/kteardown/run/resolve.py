"""Resolve an experiment: its workloads, and the source and patches of each of its kernels.

A command that names a change, or a posting, and no experiment gets one here.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kteardown.errors import InputError
from kteardown.inputs.fragments import fragments, located
from kteardown.inputs.load import (
    experiment_names,
    load_experiment,
    load_workload,
    load_workloads,
    readable,
    workload_names,
)
from kteardown.inputs.options import Overrides, apply
from kteardown.inputs.patch_files import is_patch, try_command
from kteardown.inputs.published import Posting, load_posting
from kteardown.kernels.git import of_branch
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.series import Selection, parts
from kteardown.kernels.source import check_source
from kteardown.kernels.source_name import is_source
from kteardown.model.experiment import MACHINE_PARAMETERS, Design, Experiment, Quick, Sweep
from kteardown.model.plan import controls, modules_of
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.workload import Workload
from kteardown.patches import posted
from kteardown.paths import cache_dir

# What is before the end takes whatever comes: no search begins anew at each character.
_ON_SOURCE = re.compile(r"(.+) on (\S+:.*)", re.DOTALL)


@dataclass(frozen=True)
class Resolved:
    """An experiment with its workloads, kernels and published figures, ready to be built and
    planned."""

    experiment: Experiment
    workloads: dict[str, Workload]
    published: Posting | None
    kernels: tuple[KernelRequest, ...]
    """The base first, then the variants in the order of the report, then the parts of an
    ablation."""

    @property
    def base(self) -> KernelRequest:
        return self.kernels[0]

    @property
    def series(self) -> tuple[KernelRequest, ...]:
        """The kernels that are base with patches."""
        return tuple(kernel for kernel in self.kernels if kernel.patches)


def resolve(experiment: Experiment, *, ablate: bool = False) -> Resolved:
    """Find workloads, series and fragments; with ``ablate`` the parts of series, too. Raises
    InputError."""
    if experiment.design.until:
        # Imported here: it loads numpy and scipy.
        from kteardown.analysis.sequential import parse_until

        parse_until(experiment.design.until)
    base = base_of(experiment)
    kernels = [base]
    whole: list[Selection] = []
    variants = [kernel_of(variant, base) for variant in experiment.variants]
    named = Counter(kernel.name for kernel, _ in variants)
    for request, series in variants:
        kernel = request
        chosen = series
        if series and named[request.name] > 1:
            # With its revision, a series has a name of its own.
            name = f"{series.series}-{series.revision or 'v1'}"
            chosen = replace(
                series, label=name + series.label.removeprefix(series.series), series=name
            )
            name = chosen.label + request.name.removeprefix(request.series)
            kernel = replace(request, name=name, series=chosen.label, patch_set=chosen.patch_set)
        kernels.append(kernel)
        if chosen and kernel.source == base.source and len(chosen.files) > 1:
            whole += [chosen] if chosen.patches == chosen.files else []
    names = [kernel.name for kernel in kernels]
    for name in names[1:]:
        if names.count(name) > 1 or name in (TWIN, LAYOUT):
            written = zip(experiment.variants, names[1:], strict=True)
            same_name = ", ".join(variant for variant, label in written if label == name)
            raise InputError(
                f"variants: two kernels are called {name!r}: {same_name}",
                hint="name each variant once.",
            )
    if ablate:
        kernels += _ablation(base, whole, names)
    patched = [kernel for kernel in kernels if kernel.patches and kernel.source == base.source]
    if LAYOUT in controls(experiment.design) and not patched:
        raise InputError(
            "--layout-twin: there is no layout twin, because no variant is a series",
            hint="remove --layout-twin, or name a series with --variant.",
        )
    return Resolved(
        experiment, load_workloads(experiment), load_posting(experiment.reference), tuple(kernels)
    )


def series_and_source(variant: str) -> tuple[str, str]:
    """Return the parts of ``SERIES on SOURCE``; the source is empty if the variant names none."""
    elsewhere = _ON_SOURCE.fullmatch(variant)
    return (elsewhere[1], elsewhere[2]) if elsewhere else (variant, "")


def kernel_of(variant: str, base: KernelRequest) -> tuple[KernelRequest, Selection | None]:
    """Return the request for a variant of ``base``, and its series if it has one.

    A variant is a source, a series or a part of one on the source of ``base``, or ``SERIES on
    SOURCE``. Raises InputError.
    """
    if is_source(variant):
        check_source(variant)
        return replace(base, name=variant, source=variant), None
    series, source = series_and_source(variant)
    chosen = posted.resolve(series)
    if source:
        check_source(source)
        name = f"{chosen.label} on {source}"
        return replace(_patched(base, chosen), name=name, source=source), chosen
    return _patched(base, chosen), chosen


def base_of(experiment: Experiment) -> KernelRequest:
    """Return the request for the base kernel of an experiment. Raises InputError."""
    check_source(experiment.source)
    workloads = load_workloads(experiment)
    needed = located(fragments(experiment, workloads), experiment.folder)
    return KernelRequest(
        BASE,
        experiment.source,
        fragments=needed,
        arch=experiment.machine.arch,
        modules=modules_of(workloads.values()),
        compiler=experiment.compiler,
    )


def _patched(base: KernelRequest, chosen: Selection) -> KernelRequest:
    return replace(
        base,
        name=chosen.label,
        patches=chosen.patches,
        series=chosen.label,
        patch_set=chosen.patch_set,
        backports=chosen.backports if len(chosen.backports) > 1 else (),
    )


def _ablation(
    base: KernelRequest, whole: Sequence[Selection], names: Sequence[str]
) -> list[KernelRequest]:
    """Return the parts of every series, except those that are variants; each may fail to apply or
    build."""
    if not whole:
        raise InputError(
            "--ablate: there is nothing to ablate: no variant is a whole series of more than one "
            "patch",
            hint="remove --ablate, or name such a series with --variant.",
        )
    requests: list[KernelRequest] = []
    for part in (part for chosen in whole for part in parts(chosen)):
        if part.label not in names:
            patch_set = part.patch_set.model_copy(update={"for_ablation": True})
            requests.append(replace(_patched(base, part), patch_set=patch_set, optional=True))
    return requests


def base_and_variants(
    source: str, series: list[str], branches: list[str], *, workload: str = "", alone: str = ""
) -> tuple[str, list[str]]:
    """Return the source of base and the names of the variants.

    ``branches`` are written BASE..TOPIC. Without ``source``, base is the commit where they begin.
    ``workload`` may be a patch by mistake. ``alone``: the command that measures base by itself.

    Raises InputError if there is no variant, or if the options do not determine one base.
    """
    if not series and not branches:
        by_itself = f" To measure one kernel by itself: {alone}" if alone else ""
        if is_patch(workload):
            by_itself = f" To measure a patch: {try_command(workload)}"
        raise InputError(
            "there is nothing to compare with base: neither --series nor --branch is given",
            hint=f"name a patch, an mbox or a folder: --series ./my.mbox.{by_itself}",
        )
    kind, _, rest = source.partition(":")
    path, at, _ = rest.rpartition("@") if kind == "git" else ("", "", "")
    repository = Path(path if at else rest).expanduser() if kind == "git" else Path()
    forks = [of_branch(text, repository, cache_dir()) for text in branches]
    variants = [*series, *(str(folder) for _, folder in forks)]
    if at or (source and not (kind == "git" and forks)):
        return source, variants
    bases = list(dict.fromkeys(fork for fork, _ in forks))
    if len(bases) != 1:
        patches = [name for name in series if is_patch(name)]
        found = f" Or let kteardown find it: {try_command(patches[0])}" if patches else ""
        raise InputError(
            f"--branch: the branches begin at different commits: {', '.join(bases)}"
            if bases
            else "the base kernel is not given: --source is missing",
            hint=f"add a base: --source git:PATH@REV or --source debian:6.12.{found}",
        )
    return f"git:{repository.absolute()}@{bases[0]}", variants


def experiment_for(workload: str, source: str) -> Experiment:
    """Return an experiment with one workload, base ``source`` and no variant.

    Sweep and design are those of the known experiment that changes fewest of the workload's
    defaults, if there is one: settings that are for another question are not for this one.

    Raises InputError if there is no such workload.
    """
    here = Path.cwd()
    described = load_workload(workload, str(here))
    if described.script is not None:
        return experiment_of_script(workload, source, here)
    name = f"compare-{workload}"
    question = f"What does the change do to {workload}?"
    examples = [
        example
        for example in readable(load_experiment, experiment_names(here))
        if workload in (sweep.workload for sweep in example.workloads)
    ]
    if examples:
        plainest = min(examples, key=lambda example: _distance(example, described))
        # The published figures are of another change than this one.
        about = {
            "name": name,
            "question": question,
            "source": source,
            "reference": None,
            "variants": (),
        }
        return apply(plainest, Overrides(workload=[workload])).model_copy(update=about)
    folder = "" if workload in workload_names() else str(here)
    sweeps = (Sweep(workload=workload),)
    return Experiment(name=name, question=question, source=source, workloads=sweeps, folder=folder)


def _distance(experiment: Experiment, workload: Workload) -> tuple[bool, int]:
    """Return how far the sweep of ``workload`` in ``experiment`` is from a plain one: whether it
    shows no growth, and how many parameters it never leaves at their defaults."""
    (sweep, *_) = (sweep for sweep in experiment.workloads if sweep.workload == workload.name)
    settings = {name: values for name, values in sweep.params.items() if name != workload.law}
    changed = [
        name for name, values in settings.items() if workload.parameters[name].default not in values
    ]
    one_size = len(sweep.params.get(workload.law, ())) < 2
    return one_size, len(changed)


def experiment_of_script(workload: str, source: str, folder: Path) -> Experiment:
    """Return an experiment with the script ``workload`` of ``folder``/workloads. Raises
    InputError."""
    parameters = load_workload(workload, str(folder)).parameters
    params = {name: parameter.values for name, parameter in parameters.items() if parameter.values}
    # A script is run once in each guest: what it leaves behind would be there when it is run again.
    return Experiment(
        name=f"compare-{workload.replace('_', '-')}",
        question=f"What does the change do to {workload}?",
        source=source,
        workloads=(Sweep(workload=workload, params=params),),
        design=Design(repetitions=1, warmup=0),
        quick=Quick(repetitions=1),
        folder=str(folder),
    )


def experiment_of(posting: Posting, variant: str) -> Experiment:
    """Return the experiment that tests the claims of ``posting`` with the kernel change
    ``variant``.

    Points and design are those of the first experiment with its workload, unless the posting has
    others. Raises InputError if the posting has no patch that can be run.
    """
    run = posting.run
    if run is None:
        raise InputError(
            f"{posting.name}: {posting.cannot or 'it has no patch that can be run'}",
            hint="choose another posting; `kteardown list postings` shows which can be run.",
        )
    experiment = experiment_for(run.workload, run.source)
    machine = {name: values for name, values in run.params.items() if name in MACHINE_PARAMETERS}
    workload_params = {
        name: values for name, values in run.params.items() if name not in MACHINE_PARAMETERS
    }
    (sweep,) = experiment.workloads
    quick = {
        name: values for name, values in experiment.quick.params.items() if name not in run.params
    }
    return experiment.model_copy(
        update={
            "name": f"replicate-{posting.name}",
            "question": f"Does this replicate: {posting.source.title}?",
            "variants": (variant,),
            "reference": posting.name,
            "workloads": (
                sweep.model_copy(update={"params": {**sweep.params, **workload_params}}),
            ),
            "machine": experiment.machine.model_copy(update=machine),
            "design": experiment.design.model_copy(update={"clock": run.clock}),
            "quick": experiment.quick.model_copy(update={"params": quick}),
        }
    )
