"""``kteardown try``: from a mail to one page that says what the patch does."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from kteardown.cli import complete, options
from kteardown.cli.gate import check_broken, gate
from kteardown.cli.run import boot_rest, command_line, start
from kteardown.cli.run_report import material_of_folder
from kteardown.cli.terminal import TerminalReporter
from kteardown.cli.try_workloads import (
    Chosen,
    changed_for_certain,
    choose_by_code,
    choose_workloads,
    count_executions,
    needed_settings,
    no_workload,
    with_call_paths,
)
from kteardown.errors import NotBuiltError, NotExercisedError
from kteardown.inputs.fragments import located
from kteardown.inputs.options import Designed, Kernels, Overrides
from kteardown.inputs.override import on_clocks
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.record import BASE
from kteardown.patches.config_of_series import config_of_series, reasons
from kteardown.patches.find_base import KNOWN, find_base
from kteardown.patches.posted import read, store
from kteardown.paths import cache_dir
from kteardown.report import try_page
from kteardown.report.try_page import MeasuredWorkload, Tried
from kteardown.run.create import build_kernels, settle
from kteardown.run.resolve import experiment_for, resolve
from kteardown.visible import echo

WhatArg = Annotated[
    str,
    typer.Argument(
        help="A mail, an mbox (also .gz), a folder of mails or patches, lore:MESSAGE-ID, or a git range: "
        "git:PATH@BASE..TOPIC."
    ),
]


def try_patch(
    what: WhatArg,
    kernels: Kernels,
    designed: Designed,
    execution: options.Execution,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            help="Run this workload. Default: those that execute most of what the patch changes. Repeatable.",
            autocompletion=complete.workloads,
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            help="Try only this base kernel: debian:6.12, tar:FILE, git:PATH@REV, or git:PATH, in which the "
            f"commit is found from which the patch was made. Repeatable. Default: {', '.join(KNOWN)}.",
            autocompletion=complete.sources,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Use the whole design of the workload's experiment, not the quick one."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be done; fetch no source, build and boot nothing."),
    ] = False,
) -> None:
    """Try a patch from a mailing list: find its base kernel and its workload, measure, print one page.

    Replies, older revisions and duplicates in the mails are left out, and the answer names them. The known
    sources are tried from the newest to the oldest. Configuration symbols that the patch
    needs are added to base and to the patched kernel.

    Examples:

      kteardown try ./v4-freezer.mbox --workload zombies

      kteardown try lore:20250716062639.1528066-1-zhangzihuan@kylinos.cn --dry-run

      kteardown try ./thread.mbox.gz --source git:~/linux --markdown reply.txt
    """
    reporter = execution.begin()
    tried, chosen = prepare(what, kernels, workload or [], source or [], reporter, fetch=not dry_run)
    text = try_page.plan(tried)
    echo(text, err=not dry_run, nl=False)
    show = partial(echo, "", nl=False)
    if not dry_run and tried.error is None:
        wanted = replace(kernels, config=[*(kernels.config or ()), *tried.config.fragments])
        quick = replace(designed, quick=designed.quick or not full)
        tried = measure(tried, chosen, wanted, quick, execution, reporter)
        text = try_page.page(tried)
        shown = try_page.first_page(tried, text) if sys.stdout.isatty() else text
        show = partial(echo, shown, nl=False)
    execution.publish(partial(try_page.written, tried, text), show, partial(check, tried, execution))


def prepare(
    what: str,
    kernels: Kernels,
    workloads: Sequence[str],
    specs: Sequence[str],
    reporter: TerminalReporter,
    *,
    fetch: bool,
) -> tuple[Tried, Chosen]:
    """Read the mails, find the base, the symbols and the workloads. Builds nothing.

    Raises InputError, BuildError, LabError.
    """
    cache = cache_dir()
    sources = Sources(cache, reporter)
    fragments = located(kernels.config or ())
    with reporter.task(f"Reading {what}"):
        posted = read(what, cache_dir=cache, reporter=reporter)
    with reporter.task("Looking for the source to which it applies"):
        base = find_base(
            posted.patches,
            sources,
            lambda texts: store(texts, posted.name, cache),
            specs=specs or ([posted.source] if posted.source else KNOWN),
            base_commit=posted.base_commit,
            fetch=fetch,
        )
    with reporter.task("Looking for what is compiled"):
        arch = kernels.arch or DEFAULT_ARCH
        plain = KernelRequest(BASE, base.source, fragments=fragments, arch=arch)
        config = config_of_series(plain, base.patches, sources)
    chosen = choose_workloads(workloads, base, sources)
    error = no_workload(chosen)
    if not config.compiled:
        error = NotBuiltError(
            f"nothing of this patch can be in a kernel for {arch}: {reasons(config.files)}",
            hint="only a patch of code that is compiled can be measured.",
        )
    objects = build.base_objects(plain, sources)
    if isinstance(error, NotExercisedError) and objects is not None:
        with reporter.task("Looking for the system calls that reach what it changes"):
            chosen = with_call_paths(chosen, objects)
    tried = Tried(
        posted, base, config, changed_objects=(), command=command_line(), error=error, **_facts(chosen)
    )
    return tried, chosen


def measure(
    tried: Tried,
    chosen: Chosen,
    kernels: Kernels,
    designed: Designed,
    execution: options.Execution,
    reporter: TerminalReporter,
) -> Tried:
    """Build, check what the series changes in the kernel, and run every chosen workload.

    If nothing of the series is in the kernel, nothing is run. Raises all that a run raises.
    """
    if chosen.after_build:
        tried, chosen = _chosen_by_code(tried, chosen, kernels, reporter)
        if tried.error:
            return tried
    variant = [str(tried.base.patches[0].parent)]
    wanted = []
    for choice in chosen.choices:
        experiment = experiment_for(choice.workload, tried.base.source)
        given = designed.assignments or []
        names = {assignment.partition("=")[0] for assignment in given}
        needed = [one for one in needed_settings(choice, experiment) if one.partition("=")[0] not in names]
        settings = [*needed, *given]
        # The clock may be that of the workload, which the user does not know beforehand.
        own = designed.only_of(experiment.design.clock) if designed.clock is None else designed
        design = replace(own, assignments=settings)
        wanted.append((choice, on_clocks(experiment, Overrides.of(kernels, design, variant=variant))))
    found: list[MeasuredWorkload] = []
    for choice, experiments in wanted:
        resolved = settle(resolve(experiments[0]), reporter)
        built = build_kernels(resolved, reporter)
        base, image = (built.images[kernel.name] for kernel in resolved.kernels[:2])
        tried = _with_kernels(tried, base, image)
        if tried.error:
            return tried
        run = start(experiments, reporter, execution, ablate=kernels.ablate)
        boot_rest(run, reporter, execution)
        changed = changed_for_certain(chosen.changed, image)
        exercise = count_executions(choice, image, experiments[0], changed, reporter)
        found.append(
            MeasuredWorkload(choice.workload, choice.why, run.name, material_of_folder(run), exercise)
        )
    error = None
    if all(one.exercise.exercised is False for one in found):
        error = NotExercisedError(
            "no workload that ran executed a line that the series changes",
            hint="name another workload with --workload, or write one: `kteardown new workload NAME`.",
        )
    return replace(tried, measured=tuple(found), error=error)


def check(tried: Tried, execution: options.Execution) -> None:
    """Raise BrokenError, what kept the series from being measured, or GateError, in this order."""
    for one in tried.measured:
        for material in one.materials:
            check_broken(material.name, material.result)
    if tried.error:
        raise tried.error
    for one in tried.measured:
        for material in one.materials:
            gate(material.name, material.result, material.workloads, execution.fail_on)


def _chosen_by_code(
    tried: Tried, chosen: Chosen, kernels: Kernels, reporter: TerminalReporter
) -> tuple[Tried, Chosen]:
    """Build base and the series, and choose the workloads that execute functions whose code differs."""
    fragments = located(kernels.config or ())
    base = KernelRequest(BASE, tried.base.source, fragments=fragments, arch=kernels.arch or DEFAULT_ARCH)
    series = replace(base, name=tried.posted.name, series=tried.posted.name, patches=tried.base.patches)
    built = build.ensure([base, series], cache_dir=cache_dir(), reporter=reporter).images
    tried = _with_kernels(tried, built[base.name], built[series.name])
    if tried.error:
        return tried, chosen
    chosen = choose_by_code(chosen, tried.base, built[series.name])
    return replace(tried, **_facts(chosen), error=no_workload(chosen)), chosen


def _facts(chosen: Chosen) -> dict[str, Any]:
    """Return what the page says of the choice of workloads, as fields of ``Tried``."""
    return {
        "measured": tuple(MeasuredWorkload(choice.workload, choice.why) for choice in chosen.choices),
        "not_executed": chosen.not_executed,
        "notes": chosen.notes,
        "changed": chosen.changed,
    }


def _with_kernels(tried: Tried, base: KernelImage, variant: KernelImage) -> Tried:
    found = build.changed_objects(base, variant)
    changed = tuple(dict.fromkeys((*tried.changed_objects, *found)))
    error = None if found else NotBuiltError.of("this patch", f" ({reasons(tried.config.files)})")
    return replace(tried, kernels=(base, variant), changed_objects=changed, error=error)
