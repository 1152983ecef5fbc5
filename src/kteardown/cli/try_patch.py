"""``kteardown try``: from a mail to one page that says what the patch does."""

import json
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import typer

from kteardown.analysis.decidable import decidable
from kteardown.cli import complete, options
from kteardown.cli.outcome import check_broken, gate
from kteardown.cli.queue import check_for_b4
from kteardown.cli.run import boot_rest, command_line, start
from kteardown.cli.script import described_in, experiments_on, is_own
from kteardown.cli.terminal import TerminalReporter
from kteardown.coverage.attribute import FunctionId, call_paths
from kteardown.coverage.changed import (
    ChangedFunction,
    changed_for_certain,
    changed_functions,
    may_change_executed,
    may_change_users,
)
from kteardown.coverage.executed import executed
from kteardown.coverage.maps import WorkloadCoverage, points_of, shipped_map, small, stress_tests, with_own
from kteardown.coverage.propose import Proposal, Proposals, propose, share_of
from kteardown.errors import (
    BuildError,
    GuestError,
    InputError,
    KteardownError,
    LabError,
    NotBuiltError,
    NotExercisedError,
)
from kteardown.inputs.fragments import located
from kteardown.inputs.load import load_workload, load_workloads
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted, on_clocks
from kteardown.kernels import build
from kteardown.kernels.cache import Cache
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan, Spread
from kteardown.model.point import points_of as points_of_experiment
from kteardown.model.record import BASE, ParamValue
from kteardown.patches.config_of_series import SeriesConfig, config_of_series, reasons
from kteardown.patches.find_base import KNOWN, Base, base_of_stack, read_stack
from kteardown.paths import cache_dir, data_dir
from kteardown.report import charts, try_page
from kteardown.report.formatting import share
from kteardown.report.try_page import Chosen, Exercise, MeasuredWorkload, Tried
from kteardown.run.beside import boot_and_count
from kteardown.run.create import build_kernels, settle, spreads
from kteardown.run.forecast import jobs_of
from kteardown.run.resolve import experiment_for, resolve
from kteardown.rundir.find import all_runs
from kteardown.rundir.snapshot import load_plan
from kteardown.script.describe import ENDINGS
from kteardown.visible import echo
from kteardown.vm.qemu import QemuMachine

_MOST = 2
"""So many of the proposed workloads are run; the others are named."""
_SHOWN = 3
_LEAST_SHARE = 0.01
"""Of its stretch: a workload that executes less of what is changed, and not for each object, is not run."""
_NOISY = 0.05
"""A workload whose metrics show no smaller change is run only after the others."""
_WHOLE = 0.5
_NOT_MEASURED = "executed, but not measured by anything here"
_OTHER = (
    "run a script that executes it more often, with --script (docs/script.md), or name another workload "
    "with --workload."
)
_SEEDS = 3
"""With so many seeds the executions of a change are counted, or with fewer, if the design has fewer."""


def try_patch(
    what: list[str],
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    workload: Annotated[list[str] | None, typer.Option(autocompletion=complete.workloads)] = None,
    script: Annotated[list[str] | None, typer.Option(metavar="SCRIPT")] = None,
    source: Annotated[list[str] | None, typer.Option(autocompletion=complete.sources)] = None,
    full: Annotated[bool, typer.Option("--full")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    form: Annotated[Literal["b4-check"] | None, typer.Option("--format")] = None,
) -> None:
    if form:
        return check_for_b4(what)
    reporter = execution.begin("try", ("answers", "page"))
    named = [*(workload or ()), *scripts_in(script or ())]
    quick = replace(designed, quick=designed.quick or not full)
    tried = prepare(what, kernels, quick, named, source or [], reporter, fetch=not dry_run)
    text = try_page.plan(tried)
    echo(text, err=not dry_run, nl=False)
    show = partial(echo, "", nl=False)
    if not dry_run and tried.error is None:
        wanted = replace(kernels, config=[*(kernels.config or ()), *tried.config.fragments])
        try:
            tried = measure(tried, wanted, quick, scripted, execution, reporter)
        except (BuildError, GuestError) as error:  # An answer about the series, which the files keep.
            tried = replace(tried, error=error)
        text = try_page.page(tried)
        shown = try_page.first_page(tried, text) if sys.stdout.isatty() else text
        show = partial(echo, shown, nl=False)
    execution.publish(try_page.publication(tried, text), show, partial(check, tried, execution))


def prepare(
    what: Sequence[str],
    kernels: Kernels,
    designed: Designed,
    workloads: Sequence[str],
    specs: Sequence[str],
    reporter: TerminalReporter,
    *,
    fetch: bool,
) -> Tried:
    """Read the mails, find the base, the symbols and the workloads. Builds nothing.

    Raises InputError, BuildError, LabError.
    """
    sources = Sources(cache_dir(), reporter)
    with reporter.task(f"Reading {', '.join(what)}"):
        stack = read_stack(what, cache_dir=sources.folder, reporter=reporter, sources=specs or KNOWN)
    with reporter.task("Looking for the source to which it applies"):
        posted, base = base_of_stack(stack, sources, specs=specs, fetch=fetch)
    with reporter.task("Looking for what is compiled"):
        plain = _base_request(kernels, base)
        config = config_of_series(plain, base.patches, sources, reporter)
    chosen = choose_workloads(workloads, base, sources, designed, config.users)
    error = no_workload(chosen)
    if not config.compiled:
        error = NotBuiltError(
            f"nothing of this patch can be in a kernel for {plain.arch}: {reasons(config.files)}",
            hint="only a patch of code that is compiled can be measured.",
        )
    objects = build.base_objects(plain, sources)
    if isinstance(error, NotExercisedError) and objects is not None:
        with reporter.task("Looking for the system calls that reach what it changes"):
            chosen = with_call_paths(chosen, objects)
    builds = whole_builds(plain, config)
    return Tried(posted, base, config, chosen, command_line(), chosen.workloads, builds=builds, error=error)


def _base_request(kernels: Kernels, base: Base) -> KernelRequest:
    fragments, arch = located(kernels.config or ()), kernels.arch or DEFAULT_ARCH
    return KernelRequest(BASE, base.source, fragments=fragments, arch=arch, compiler=kernels.compiler or "")


def whole_builds(plain: KernelRequest, config: SeriesConfig) -> tuple[str, ...]:
    """Return in sentences which of the kernels are built from the beginning, and how long that takes."""
    base = replace(plain, fragments=(*plain.fragments, *config.fragments))
    missing = bool(build.missing([base], cache_dir=cache_dir()))
    seconds = Cache(cache_dir()).built(plain.arch, "seconds", variant=False)
    each = f"about {max(1, round(median(seconds) / 60))} minutes, as" if seconds else "as long as"
    lines = [f"The base kernel is not in the cache: its build takes {each} others on this host."] * missing
    if config.recompiled > _WHOLE:
        lines.append(
            f"{config.recompiled:.0%} of all files include a header of the patch, so the patched kernel is "
            f"compiled as a whole{', too' if missing else f': {each} others on this host'}."
        )
    return tuple(lines)


def measure(
    tried: Tried,
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    reporter: TerminalReporter,
) -> Tried:
    """Build, check what the series changes in the kernel, and run every chosen workload.

    If nothing of the series is in the kernel, nothing is run. Raises all that a run raises.
    """
    if tried.chosen.after_build:
        tried = _chosen_by_code(tried, kernels, designed, reporter)
        if tried.error:
            return tried
    asked = Overrides.of(kernels, designed, variant=[str(tried.base.patches[0].parent)])
    chosen = tried.chosen
    counted: list[MeasuredWorkload] = []
    left = [one for one in chosen.workloads if not (is_own(one.workload) or one.only_counted)]
    for choice in (one for one in chosen.workloads if one not in left):
        tried, exercise = _counted(choice, tried, asked, scripted, reporter)
        if tried.error:
            return tried
        counted.append(replace(choice, exercise=exercise))
    # Nothing else says which scripts execute what is changed.
    counted.sort(key=lambda one: -one.exercise.share)
    able = [one for one in counted if (cost := one.exercise.cost) is None or one.shows(cost.share)]
    best = [one for one in able if one.exercise.exercised is not False][:_MOST]
    found = [one for one in counted if one not in best]
    for choice in [*best, *left]:
        experiments = _experiments(choice, tried, asked, scripted, reporter)
        tried, image = _built(experiments[0], tried, reporter)
        if tried.error:
            return tried
        run = start(experiments, reporter, execution, ablate=kernels.ablate)
        changed = changed_for_certain(chosen.changed, image)
        count = partial(count_executions, choice, tried.kernels, experiments[0], asked, changed, reporter)
        boot = partial(boot_rest, run, reporter, execution, repeat=True)
        if choice in left:
            exact = len(run.runs) == 1 and _is_exact(experiments[0], load_plan(run.runs[0]))
            most = jobs_of(experiments[0], execution.jobs)
            material, exercise = boot_and_count(boot, count, reporter, exact=exact, jobs=most)
        else:
            material, exercise = boot(), choice.exercise
        found.append(replace(choice, run=run.name, material=material, exercise=exercise, only_counted=False))
    error = None
    if all(one.exercise.exercised is False for one in found):
        error = NotExercisedError("no workload that ran executed a line that the series changes", hint=_OTHER)
    elif not any(one.run for one in found):
        cost, least = counted[0].exercise.cost, share(counted[0].smallest)
        error = NotExercisedError(
            f"{_NOT_MEASURED}: with all that they call, the changed functions are "
            f"{share(cost.share if cost else 0.0)} of what the kernel executes in the stretch of "
            f"{counted[0].workload}, whose metrics show a change from {least} on",
            hint=_OTHER,
        )
    return replace(tried, measured=tuple(found), error=error)


def _is_exact(experiment: Experiment, plan: Plan) -> bool:
    """Return whether no other work of the host changes a figure."""
    return experiment.design.clock == "instructions" and (plan.possible_cpus or plan.cpus) == 1


def _built(experiment: Experiment, tried: Tried, reporter: TerminalReporter) -> tuple[Tried, KernelImage]:
    """Build base and the series; return them in ``tried``, and the latter."""
    resolved = settle(resolve(experiment), reporter)
    built = build_kernels(resolved, reporter)
    base, image = (built.images[kernel.name] for kernel in resolved.kernels[:2])
    return _with_kernels(tried, base, image), image


def _counted(
    choice: MeasuredWorkload, tried: Tried, asked: Overrides, scripted: Scripted, reporter: TerminalReporter
) -> tuple[Tried, Exercise]:
    """Count what is executed of the change before a workload is run, and before a script is rehearsed."""
    with tempfile.TemporaryDirectory(prefix="kteardown-script-") as folder:
        if is_own(choice.workload):
            source = tried.base.source
            _, experiment = described_in(Path(folder), choice.workload, source, asked, scripted, reporter)
        else:
            experiment = _experiments(choice, tried, asked, scripted, reporter)[0]
        tried, image = _built(experiment, tried, reporter)
        if tried.error:
            return tried, Exercise()
        changed = changed_for_certain(tried.chosen.changed, image)
        return tried, count_executions(choice, tried.kernels, experiment, asked, changed, reporter)


def scripts_in(words: Sequence[str]) -> list[str]:
    """Return ``words`` with each folder replaced by the scripts and C files in it. Raises InputError."""
    found: list[str] = []
    for word in words:
        folder = Path(word).expanduser()
        files = (
            [str(path) for path in sorted(folder.iterdir()) if path.suffix in ENDINGS and path.is_file()]
            if folder.is_dir()
            else [word]
        )
        if not files:
            raise InputError(
                f"--script {word}: has no script", hint=f"name a folder with files {', '.join(ENDINGS)}."
            )
        found += files
    return found


def _experiments(
    choice: MeasuredWorkload, tried: Tried, asked: Overrides, scripted: Scripted, reporter: TerminalReporter
) -> tuple[Experiment, ...]:
    """Return the experiment of a workload, once for each clock; a script is rehearsed first."""
    source = tried.base.source
    if is_own(choice.workload):
        return experiments_on(choice.workload, source, asked, scripted, reporter)
    experiment = experiment_for(choice.workload, source)
    (sweep,) = experiment.workloads
    chosen = sweep.model_copy(update={"metrics": choice.metrics})
    experiment = with_fewer_sizes(experiment.model_copy(update={"workloads": (chosen,)}))
    given = asked.assignments or []
    names = {assignment.partition("=")[0] for assignment in given}
    needed = [one for one in needed_settings(choice, experiment) if one.partition("=")[0] not in names]
    # The clock may be that of the workload, which the user does not know beforehand.
    own = asked.only_of(experiment.design.clock) if asked.clock is None else asked
    return on_clocks(experiment, replace(own, assignments=[*needed, *given]))


def with_fewer_sizes(experiment: Experiment) -> Experiment:
    """Return an experiment of one workload whose quick design has as few sizes as a growth law needs."""
    (sweep,) = experiment.workloads
    law, quick = load_workload(sweep.workload, experiment.folder).law, experiment.quick
    sizes = quick.params.get(law, sweep.params.get(law, ()))
    few = tuple(dict.fromkeys(sizes[n] for n in (0, (len(sizes) - 1) // 2, -1) if sizes))
    params = {**quick.params, law: few} if few else quick.params
    return experiment.model_copy(update={"quick": quick.model_copy(update={"params": params})})


def check(tried: Tried, execution: options.Execution) -> None:
    """Raise BrokenError, what kept the series from being measured, or GateError, in this order."""
    materials = [one.material for one in tried.measured if one.material is not None]
    for material in materials:
        check_broken(material)
    if tried.error:
        raise tried.error
    for material in materials:
        gate(material, execution.fail_on)


def _chosen_by_code(tried: Tried, kernels: Kernels, designed: Designed, reporter: TerminalReporter) -> Tried:
    """Build base and the series, and choose the workloads that execute functions whose code differs."""
    base = _base_request(kernels, tried.base)
    series = replace(base, name=tried.posted.name, series=tried.posted.name, patches=tried.base.patches)
    built = build.ensure([base, series], cache_dir=cache_dir(), reporter=reporter).images
    tried = _with_kernels(tried, built[base.name], built[series.name])
    if tried.error:
        return tried
    chosen = choose_by_code(tried.chosen, tried.base, built[series.name], designed)
    return replace(tried, chosen=chosen, measured=chosen.workloads, error=no_workload(chosen))


def _with_kernels(tried: Tried, base: KernelImage, variant: KernelImage) -> Tried:
    found = build.changed_objects(base, variant)
    changed = tuple(dict.fromkeys((*tried.changed_objects, *found)))
    error = None if found else NotBuiltError.of("this patch", f" ({reasons(tried.config.files)})")
    return replace(tried, kernels=(base, variant), changed_objects=changed, error=error)


def choose_workloads(
    named: Sequence[str],
    base: Base,
    sources: Sources,
    designed: Designed,
    users: Mapping[str, Collection[str]],
) -> Chosen:
    """Return the workloads that the user named, or else those that execute most of what is changed.

    ``users``: by header, the files that include it, as far as that is known. Raises InputError if a named
    workload does not exist.
    """
    changed = tuple(changed_functions(base.patches, sources.tree(sources.identify(base.source))))
    chosen = _choose(named, base, changed, designed)
    if (
        chosen.workloads
        or not chosen.known
        or not may_change_executed(changed, shipped_map(base.source), users)
    ):
        return chosen
    note = "The workloads are chosen when the code of both kernels says which functions use what is changed."
    return replace(chosen, notes=(*chosen.notes, note), after_build=True)


def choose_by_code(chosen: Chosen, base: Base, variant: KernelImage, designed: Designed) -> Chosen:
    """Return the workloads that execute functions whose code differs, after the build of ``variant``."""
    return _choose((), base, changed_for_certain(chosen.changed, variant), designed)


def _choose(
    named: Sequence[str], base: Base, changed: tuple[ChangedFunction, ...], designed: Designed
) -> Chosen:
    wanted = {one.id for one in changed if one.kind == "function"}
    choices = [
        MeasuredWorkload(name, "a script of your own")
        if is_own(name)
        else MeasuredWorkload(name, "named with --workload", params=_small(name))
        for name in named
    ]
    try:
        coverage, missing = with_own(shipped_map(base.source), Path.cwd())
    except InputError:
        return Chosen(changed, tuple(choices), known=False)
    found = propose(changed, coverage)
    notes = (
        [] if coverage.source == base.id else [f"What workloads execute was counted on {coverage.source}."]
    )
    if missing:
        notes.append(f"What these scripts in ./workloads execute is not known: {', '.join(missing)}.")
    best: dict[str, Proposal] = {}
    for proposal in found.measured:
        if proposal.workload not in stress_tests():
            best.setdefault(proposal.workload, proposal)
    unmeasured = ""
    if not choices:
        worth = [one for one in best.values() if one.share >= _LEAST_SHARE or _for_each_object(one)]
        choices = [
            _without_blind_choices(one, coverage.workloads[one.workload], wanted)
            for one in _deciding(worth, base.source, designed)
        ]
        others = [one for one in best if one not in {choice.workload for choice in choices}]
        if others:
            notes.append(f"Other workloads execute changed functions too: {', '.join(others)}.")
        if best and not choices:
            most = max(best.values(), key=lambda one: one.share)
            unmeasured = (
                f"{share(most.share)} of what a workload executes in its stretch ({most.workload}), "
                "and not for each of its objects"
            )
    return Chosen(changed, tuple(choices), _not_executed(found), tuple(notes), unmeasured=unmeasured)


def _for_each_object(proposal: Proposal, word: str = "") -> bool:
    objects = proposal.params.get(load_workload(proposal.workload, str(Path.cwd())).law)
    calls = [counts.calls for one, counts in proposal.functions.items() if word in one.name]
    return isinstance(objects, int) and 0 < objects <= max(calls, default=0)


def _deciding(proposals: Sequence[Proposal], source: str, designed: Designed) -> list[MeasuredWorkload]:
    """Return the workloads to run: those whose metrics can show the change, the quiet ones first.

    If none can, the change is only counted, in the one that executes most of it and in the nearest one.
    """
    found: dict[MeasuredWorkload, float] = {}
    for one in proposals:
        smallest = _smallest(one, source, designed)
        specs = load_workload(one.workload, str(Path.cwd())).metrics
        decides = [
            m for m, spec in specs.items() if spec.decides and spec.decides.items() <= one.params.items()
        ]
        shown = [
            m for m, size in smallest.items() if MeasuredWorkload("", "", smallest=size).shows(one.share)
        ]
        # Of the others nothing is known, so they may show it.
        others = [m for m, spec in specs.items() if spec.headline and m not in smallest]
        metrics = decides or ([*shown, *others] if len(shown) < len(smallest) else ())
        least = 0.0 if decides else min(smallest.values(), default=0.0)
        names = ", ".join(try_page.listed([function.name for function in one.functions], _SHOWN))
        why = f"executes {names} in its measured stretch, {share(one.share)} of its instructions"
        why += f"; of its metrics, {', '.join(metrics)} can show it" if metrics else ""
        choice = MeasuredWorkload(
            one.workload, why, params=one.params, smallest=least, metrics=tuple(metrics)
        )
        found[choice] = one.share
    able = sorted((one for one in found if one.shows(found[one])), key=lambda one: one.smallest > _NOISY)
    if able or not found:
        return able[:_MOST]
    nearest = max(found, key=lambda one: found[one] / one.smallest)
    return [
        replace(
            one,
            why=f"{one.why.partition(';')[0]}; its metrics show a change from {share(one.smallest)} on",
            only_counted=True,
        )
        for one in dict.fromkeys((next(iter(found)), nearest))
    ]


def _without_blind_choices(
    choice: MeasuredWorkload, counted: WorkloadCoverage, wanted: Collection[FunctionId]
) -> MeasuredWorkload:
    """Return ``choice`` with those choices of parameters with which the change can be seen."""
    able: dict[str, tuple[ParamValue, ...]] = {}
    for name in choice.params:
        alike = [p for p in counted.points if {**p.params, name: choice.params[name]} == choice.params]
        able[name] = tuple(p.params[name] for p in alike if choice.shows(share_of(p, wanted)))
    return replace(choice, choices=able)


def _smallest(proposal: Proposal, source: str, designed: Designed) -> dict[str, float]:
    """Return the smallest change that each metric of a workload shows with this design."""
    experiment = experiment_for(proposal.workload, source)
    # What is asked of parameters may be for another workload.
    asked = replace(Overrides.of(designed), assignments=None, predict=None)
    own = asked.only_of(experiment.design.clock) if asked.clock is None else asked
    each = _for_each_object(proposal, "alloc")
    sizes: dict[str, float] = {}
    for one in on_clocks(experiment, own):
        for name, size in smallest_changes(one, each_object=each).items():
            sizes[name] = min(size, sizes.get(name, size))
    return sizes


def smallest_changes(experiment: Experiment, *, each_object: bool = False) -> dict[str, float]:
    """Return the smallest change, 0.1 for 10%, that each headline metric of ``experiment`` shows.

    It shows it four times in five, by the spreads of the shipped results on the instruction clock, or else of
    the newest runs on this host, whose few boots can agree by chance; a metric whose spread is not known is
    left out. A smaller one than the margin of "same" has no other verdict. It is 0 if memory is measured and
    a change of its allocation is executed for ``each_object``: a few instructions decide what it holds.
    """
    margin = experiment.design.same_within
    workloads = load_workloads(experiment)
    shipped = _shipped() if experiment.design.clock == "instructions" else {}
    known = {**spreads(experiment, all_runs()), **shipped}
    found = decidable(experiment, workloads, 1, points_of_experiment(experiment, workloads), known)
    rows = [row for row in found.rows if row.run and row.metric is not None]
    return {
        row.metric_name: 0.0
        if each_object and workloads[row.workload].metrics[row.metric_name].unit == "kb"
        else max(row.metric or 0, margin)
        for row in rows
    }


@cache
def _shipped() -> dict[tuple[str, str], Spread]:
    """Return the spreads of the shipped results by workload and metric (``scripts/spreads.py``)."""
    rows = json.loads((data_dir("coverage") / "spreads.json").read_text())
    return {(one, metric): Spread(of_all, of_point, "results") for one, metric, of_all, of_point in rows}


def with_call_paths(chosen: Chosen, kernel: Path) -> Chosen:
    """Return ``chosen`` with notes on how the first changed functions are reached from a system call.

    ``kernel`` is a folder with the vmlinux of base.
    """
    functions = [one for one in chosen.changed if one.kind == "function" and one.exists_before]
    paths = call_paths([FunctionId(one.file, one.name) for one in functions[:_SHOWN]], kernel)
    notes = [f"{function.name} is reached by {path}." for function, path in paths.items()]
    return replace(chosen, notes=(*chosen.notes, *notes))


def no_workload(chosen: Chosen) -> KteardownError | None:
    """Return the error with which the command ends if there is no workload to run."""
    if chosen.workloads or chosen.after_build:
        return None
    if not chosen.known:
        return InputError(
            "which workload executes what the patch changes is not known",
            hint="name one with --workload (`kteardown list workloads`).",
        )
    functions = [one.name for one in chosen.changed if one.kind == "function"]
    what = ", ".join(functions[:_SHOWN]) or "the declarations and macros that the patch changes"
    if chosen.unmeasured:
        return NotExercisedError(
            f"{_NOT_MEASURED}: what the patch changes ({what}) is {chosen.unmeasured}", hint=_OTHER
        )
    return NotExercisedError(
        f"no workload executes in its measured stretch what the patch changes: {what}", hint=_OTHER
    )


def needed_settings(choice: MeasuredWorkload, experiment: Experiment) -> list[str]:
    """Return the settings with which the change is executed and that ``experiment`` does not have."""
    swept = {name: values for sweep in experiment.workloads for name, values in sweep.params.items()}
    usual, settings = _small(choice.workload), []
    for name, value in choice.params.items():
        values = swept.get(name, ())
        able = [one for one in values if one in choice.choices.get(name, ())]
        if value != usual.get(name) and value not in values:
            settings.append(f"{name}={value}")
        elif isinstance(value, str) and 0 < len(able) < len(values):
            settings.append(f"{name}={','.join(map(str, able))}")
    return settings


def count_executions(
    choice: MeasuredWorkload,
    kernels: Sequence[KernelImage],
    experiment: Experiment,
    asked: Overrides,
    changed: Sequence[ChangedFunction],
    reporter: TerminalReporter,
    qemu: QemuMachine | None = None,
) -> Exercise:
    """Boot base and the variant and count how often the changed lines are executed, and what they cost."""
    workload = load_workload(experiment.workloads[0].workload, experiment.folder)
    points = [point.params for point in points_of_experiment(experiment, {workload.name: workload})]
    own = {name: (choice.params or points[0])[name] for name in workload.parameters}
    # The size stays small. Choices, and what else the user has set, are counted as they are measured.
    given = {one.partition("=")[0] for one in asked.assignments or ()} - {workload.law}
    given |= {name for name, value in own.items() if isinstance(value, str)}
    other = [n for n in given & own.keys() if all(p[n] != own[n] for p in points)]
    own |= {name: small(name, points[0][name], workload) for name in other}
    seeds = min(experiment.design.seeds, _SEEDS)
    try:
        found = executed(
            kernels, workload, own, changed, reporter, folder=experiment.folder, seeds=seeds, qemu=qemu
        )
    except (GuestError, LabError) as error:
        return Exercise((f"{choice.workload}: not counted: {error.message}",))
    # Without the code of both kernels, nothing says whether a changed macro or structure is executed.
    known = found.exercised or build.functions_of(kernels[-1]) is not None or not may_change_users(changed)
    exercised = found.exercised if known and found.functions else None
    sentences = charts.written("executed", found, _SHOWN, share(found.share))
    return Exercise(tuple(sentences), exercised, found.share, found.cost)


def _not_executed(found: Proposals) -> tuple[str, ...]:
    outside = [f"{one.name} (only outside of a measured stretch)" for one in found.not_inside]
    tests = stress_tests()
    stressed = dict.fromkeys(f for one in found.measured if one.workload in tests for f in one.functions)
    others = {f for one in found.measured if one.workload not in tests for f in one.functions}
    stress = [f"{f.name} (only in stress tests, which have no figures)" for f in stressed if f not in others]
    return (*(f"{one.name} ({one.file})" for one in found.not_executed), *outside, *stress)


def _small(name: str) -> dict[str, ParamValue]:
    return points_of(load_workload(name))[0]
