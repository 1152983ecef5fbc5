"""The experiment that is made of a script of the user's own."""

import tempfile
from dataclasses import replace
from pathlib import Path

from kteardown.coverage.executed import count_script
from kteardown.coverage.maps import own_scripts
from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.inputs.assignments import parse_assignments
from kteardown.inputs.load import load_workload, workload_names
from kteardown.inputs.options import Overrides, Scripted, on_clocks
from kteardown.model.experiment import MACHINE_PARAMETERS, Experiment
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.boot_once import check_size
from kteardown.run.forecast import keep_rehearsal
from kteardown.run.rehearsal_notes import notes
from kteardown.run.rehearse import chosen_metrics, with_resolution
from kteardown.run.resolve import experiment_for, experiment_of_script
from kteardown.run.script_modules import rehearse_on_base
from kteardown.script.describe import (
    Described,
    describe,
    is_script,
    keep,
    with_files,
    with_headlines,
    write,
)
from kteardown.script.files import script_archives


def experiments_on(
    workload: str, source: str, asked: Overrides, scripted: Scripted, reporter: Reporter
) -> tuple[Experiment, ...]:
    """Return the experiment with one workload, known by its name or a script, once for each clock.

    A script is rehearsed on base, which is built for that. Raises InputError, GuestError if the
    script does not run, BuildError, LabError.
    """
    here = Path.cwd()
    is_described = workload in own_scripts(here)
    if not is_own(workload):
        if scripted != Scripted():
            what = (
                "the name of a workload"
                if workload in workload_names(here)
                else "no path of a file"
            )
            raise InputError(
                f"{workload} is {what}, and --metric, --programs, --file, --root, --allow "
                "and --limit are for a script of your own",
                hint="remove these options, or give the path of a script: ./NAME.sh",
            )
        return on_clocks(experiment_for(workload, source), asked)
    if is_described and replace(scripted, metric=None) != Scripted():
        raise InputError(
            f"{workload} is described in workloads/{workload}.toml, and --programs, --file, "
            "--root, --allow and --limit are for a script without such a file",
            hint="write these into the table [script] of that file.",
        )
    with tempfile.TemporaryDirectory(prefix="kteardown-script-") as folder:
        described, first = described_in(Path(folder), workload, source, asked, scripted, reporter)
        described, image, rehearsed = rehearse_on_base(described, first, reporter)
        if is_described:
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
    """Return whether this is a script of the user's: a file, a command, or one that ./workloads
    describes."""
    return is_script(workload) or workload in own_scripts(Path.cwd())


def described_in(
    folder: Path,
    workload: str,
    source: str,
    asked: Overrides,
    scripted: Scripted,
    reporter: Reporter,
) -> tuple[Described, Experiment]:
    """Describe a script in ``folder``, and return the experiment with it on the first clock, not
    rehearsed.

    Its guest's files are made here, too, so that what is wrong with one is known before a kernel is
    built. Raises InputError, MissingError, BuildError if a C file does not compile, LabError.
    """
    here = Path.cwd()
    if workload in workload_names(here):
        described = with_files(load_workload(workload, str(here)), here)
    else:
        assignments = parse_assignments(asked.assignments or ())
        params = {
            name: values for name, values in assignments.items() if name not in MACHINE_PARAMETERS
        }
        described = describe(workload, scripted, params)
    write(described, folder)
    script_workload = described.workload
    experiment = _experiments(script_workload.name, source, folder, asked)[0]
    machine = experiment.machine
    for archive in script_archives(
        {script_workload.name: script_workload}, str(folder), Entry(folder), machine.arch, reporter
    ):
        check_size(archive.stat().st_size, machine.memory_mb or script_workload.memory_mb)
    return described, experiment


def _experiments(name: str, source: str, folder: Path, asked: Overrides) -> tuple[Experiment, ...]:
    """Return the experiment with the script ``name`` of ``folder``, once for each clock."""
    experiments = on_clocks(experiment_of_script(name, source, folder), asked)
    machine = experiments[0].machine
    if (machine.largest("cpus") or 1) > 1 or (machine.largest("possible_cpus") or 1) == 1:
        return experiments
    # As in experiments/dyingcg.toml: else a boot with 32 possible CPUs takes minutes.
    args = tuple(dict.fromkeys((*machine.kernel_args, "noapictimer")))
    quick = machine.model_copy(update={"kernel_args": args})
    return tuple(experiment.model_copy(update={"machine": quick}) for experiment in experiments)
