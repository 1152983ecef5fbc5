"""``kteardown run`` and ``compare``: run an experiment, or one that is made of one workload or script."""

import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kteardown import pipeline
from kteardown.cli import complete, options
from kteardown.cli.outcome import check_broken, check_built, gate, material_of_folder, written
from kteardown.cli.terminal import TerminalReporter
from kteardown.coverage.executed import count_script
from kteardown.coverage.maps import own_scripts
from kteardown.errors import InputError
from kteardown.inputs.load import load_experiment, load_workload, parse_assignments, workload_names
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted, on_clocks
from kteardown.kernels import build
from kteardown.model.clock import CLOCKS
from kteardown.model.experiment import MACHINE_PARAMETERS, Experiment
from kteardown.model.result import Result
from kteardown.paths import cache_dir
from kteardown.report.formats import text
from kteardown.run import lab
from kteardown.run.execute import Bootable
from kteardown.run.forecast import keep_rehearsal
from kteardown.run.rehearse import chosen_metrics, notes, rehearse, with_resolution
from kteardown.run.resolve import base_and_variants, base_of, experiment_for, experiment_of_script
from kteardown.rundir.find import RunFolder, find_runs
from kteardown.rundir.snapshot import load
from kteardown.script.describe import Described, describe, is_script, keep, known, with_headlines, write


def experiments_on(
    workload: str, source: str, asked: Overrides, scripted: Scripted, reporter: TerminalReporter
) -> tuple[Experiment, ...]:
    """Return the experiment with one workload, known by its name or a script, once for each clock.

    A script is rehearsed on base, which is built for that. Raises InputError, GuestError if the script does
    not run, BuildError, LabError.
    """
    here = Path.cwd()
    own = workload in own_scripts(here)
    if not is_own(workload):
        if scripted != Scripted():
            what = "the name of a workload" if workload in workload_names(here) else "no path of a file"
            raise InputError(
                f"{workload} is {what}, and --metric, --programs, --file, --root, --allow "
                "and --limit are for a script of your own",
                hint="remove these options, or give the path of a script: ./NAME.sh",
            )
        return on_clocks(experiment_for(workload, source), asked)
    if own and replace(scripted, metric=None) != Scripted():
        raise InputError(
            f"{workload} is described in workloads/{workload}.toml, and --programs, --file, --root, --allow "
            "and --limit are for a script that is not",
            hint="write these into the table [script] of that file.",
        )
    with tempfile.TemporaryDirectory(prefix="kteardown-script-") as folder:
        described, first = described_in(Path(folder), workload, source, asked, scripted)
        base = base_of(first)
        image = build.ensure([base], cache_dir=cache_dir(), reporter=reporter).images[base.name]
        kernel = Bootable(image.image, image.modules)
        rehearsed = rehearse(kernel, first, lab.choose_acceleration(first, reporter), reporter)
        if own:
            count_script(image, described, first, rehearsed.sizes[0].params, reporter)
        asked_for = scripted.metric or ()
        if asked_for or not any(metric.read for metric in described.workload.metrics.values()):
            metrics = chosen_metrics(described, rehearsed, asked_for)
            described = with_headlines(described, metrics, asked=bool(asked_for))
    described = described.with_metrics(with_resolution(described.workload.metrics, rehearsed))
    for note in notes(described.workload, rehearsed):
        reporter.note(note)
    kept = keep(described, cache_dir())
    keep_rehearsal(rehearsed.seen, kept)
    return _experiments(described.workload.name, source, kept, asked)


def is_own(workload: str) -> bool:
    """Return whether this is a script of the user's: a file, a command, or one that ./workloads describes."""
    return is_script(workload) or workload in own_scripts(Path.cwd())


def described_in(
    folder: Path, workload: str, source: str, asked: Overrides, scripted: Scripted
) -> tuple[Described, Experiment]:
    """Describe a script in ``folder``, and return the experiment with it on the first clock, not rehearsed.

    Raises InputError.
    """
    here = Path.cwd()
    if workload in workload_names(here):
        described = known(load_workload(workload, str(here)), here)
    else:
        given = parse_assignments(asked.assignments or ())
        params = {name: values for name, values in given.items() if name not in MACHINE_PARAMETERS}
        described = describe(workload, scripted, params)
    write(described, folder)
    return described, _experiments(described.workload.name, source, folder, asked)[0]


def _experiments(name: str, source: str, folder: Path, asked: Overrides) -> tuple[Experiment, ...]:
    """Return the experiment with the script ``name`` of ``folder``, once for each clock."""
    found = on_clocks(experiment_of_script(name, source, folder), asked)
    machine = found[0].machine
    if (machine.largest("cpus") or 1) > 1 or (machine.largest("possible_cpus") or 1) == 1:
        return found
    # As in experiments/dyingcg.toml: else a boot with 32 possible CPUs takes minutes.
    args = tuple(dict.fromkeys((*machine.kernel_args, "noapictimer")))
    quick = machine.model_copy(update={"kernel_args": args})
    return tuple(experiment.model_copy(update={"machine": quick}) for experiment in found)


def run(
    asked: Overrides,
    execution: options.Execution,
    experiment: options.ExperimentArg = "",
    resume: Annotated[str | None, typer.Option(metavar="RUN", autocompletion=complete.runs)] = None,
) -> None:
    reporter = execution.begin()
    if resume is not None:
        if experiment or asked != Overrides():
            raise InputError(
                "--resume: a run is resumed as it was planned, so no option may change the experiment",
                hint=f"run `kteardown run --resume {resume}`.",
            )
        found = find_runs(resume)
    else:
        if not experiment:
            raise InputError(
                "no experiment is named", hint="name one; `kteardown list experiments` shows them."
            )
        found = start(on_clocks(load_experiment(experiment), asked), reporter, execution, ablate=asked.ablate)
    finish(found, reporter, execution)


def start(
    experiments: Sequence[Experiment],
    reporter: TerminalReporter,
    execution: options.Execution,
    *,
    ablate: bool = False,
    command: str = "",
) -> RunFolder:
    """Create the run of an experiment (on both clocks: one for each), with the kernels that it begins with.

    ``command``, if it is not the one as it was typed, repeats it. Raises InputError, BuildError, LabError.
    """
    for experiment in experiments:
        lab.check_host(experiment, execution.on, kvm=execution.require is not None)
    return pipeline.start(experiments, reporter, ablate=ablate, command=command or command_line())


def boot_rest(found: RunFolder, reporter: TerminalReporter, execution: options.Execution) -> list[Result]:
    """Boot the rest of the plan, and return the result of each clock.

    Raises InputError, BuildError, GuestError, LabError.
    """
    reporter.note(f"run directory: {found.path}")
    on = lab.remembered_place(found.path, execution.on)
    for run in found.runs:
        lab.check_host(load(run).experiment, on, kvm=execution.require is not None)
    results = []
    try:
        for run in found.runs:
            if found.both_clocks:
                reporter.note(f"{CLOCKS[load(run).experiment.design.clock]}:")
            results.append(pipeline.finish(run, reporter, jobs=execution.jobs, on=on))
            if run is not found.runs[-1]:
                reporter.note(f"done; its report: kteardown report {run.name}")
    except KeyboardInterrupt:
        reporter.note(f"interrupted; finish it with: kteardown run --resume {found.name}")
        raise
    return results


def finish(found: RunFolder, reporter: TerminalReporter, execution: options.Execution) -> None:
    """Boot the rest of the plan, print the result, write the files of ``execution``, apply the gate.

    Raises InputError, BuildError, GuestError, LabError, BrokenError, NotBuiltError,
    GateError.
    """
    boot_rest(found, reporter, execution)
    material = material_of_folder(found)
    text_of, show = partial(written, material), partial(text.brief, material, options.output())

    def gates() -> None:
        for one in material.clocks:
            check_broken(one.name, one.result)
            check_built(one.result)
        for one in material.clocks:
            gate(one.name, one.result, one.workloads, execution.fail_on)

    execution.publish(text_of, show, gates, kept=f"kteardown report {found.name}")


def command_line() -> str:
    """Return the command as it was typed, for the run's ``environment.json``."""
    return shlex.join(["kteardown", *sys.argv[1:]])


def compare(
    workload: Annotated[str, typer.Argument(autocompletion=complete.workloads)],
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    source: Annotated[str, typer.Option(autocompletion=complete.sources)] = "",
    series: Annotated[list[str] | None, typer.Option(autocompletion=complete.series_and_sources)] = None,
    branch: Annotated[list[str] | None, typer.Option(metavar="BASE..TOPIC")] = None,
) -> None:
    reporter = execution.begin()
    source, variants = base_and_variants(source, series or [], branch or [])
    asked = Overrides.of(kernels, designed, variant=variants)
    experiments = experiments_on(workload, source, asked, scripted, reporter)
    finish(start(experiments, reporter, execution, ablate=asked.ablate), reporter, execution)
