"""Read the mails of a series, find its base and the workloads to run. Nothing is built."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

from kteardown.coverage.attribute import FunctionId
from kteardown.coverage.by_headers import functions_by_headers
from kteardown.coverage.call_paths import call_paths
from kteardown.coverage.maps import shipped_map, stress_tests
from kteardown.coverage.propose import propose
from kteardown.errors import InputError, NotBuiltError, NotExercisedError
from kteardown.flows.runner import Runner
from kteardown.flows.try_series.choose import SHOWN, choose_workloads, no_workload
from kteardown.flows.try_series.forecast import BASE_S, WHOLE, base_request, built_elsewhere
from kteardown.inputs.options import Designed, Kernels
from kteardown.kernels import build, build_plan
from kteardown.kernels.cache import Cache
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Sources
from kteardown.patches.config_of_series import SeriesConfig, config_of_series, reasons
from kteardown.patches.find_base import KNOWN
from kteardown.patches.no_base import NoSourceError
from kteardown.patches.stack import base_of_stack, read_stack
from kteardown.paths import cache_dir
from kteardown.report import try_page
from kteardown.report.try_page import Chosen, Tried


def prepare(
    what: Sequence[str],
    kernels: Kernels,
    designed: Designed,
    workloads: Sequence[str],
    specs: Sequence[str],
    runner: Runner,
    *,
    fetch: bool,
) -> Tried:
    """Read the mails, find the base, the symbols and the workloads. Builds nothing.

    Raises InputError, BuildError, LabError; NoSourceError with the workloads that execute what the
    hunk headers name.
    """
    reporter = runner.reporter
    sources = Sources(cache_dir(), reporter)
    with reporter.task(f"Reading {', '.join(what)}"):
        stack = read_stack(
            what, cache_dir=sources.folder, reporter=reporter, sources=specs or KNOWN
        )
    with reporter.task("Looking for the source to which it applies"):
        try:
            posted, base = base_of_stack(
                stack, sources, specs=specs, fetch=fetch, reporter=reporter
            )
        except NoSourceError as absent:
            known = by_headers(stack.top.patches, (specs or KNOWN)[0])
            message = "\n  ".join(filter(None, (absent.message, known)))
            raise NoSourceError(message, hint=absent.hint) from absent
    with reporter.task("Looking for what is compiled"):
        plain = base_request(kernels, base)
        config = config_of_series(plain, base.patches, sources, reporter)
    chosen = choose_workloads(workloads, base, sources, designed, config.users)
    error = no_workload(chosen)
    if not config.compiled:
        error = NotBuiltError(
            f"nothing of this patch can be in a kernel for {plain.arch}: {reasons(config.files)}",
            hint="only a patch of code that is compiled can be measured.",
        )
    objects = build_plan.base_objects(plain, sources)
    if isinstance(error, NotExercisedError) and objects is not None:
        with reporter.task("Looking for the system calls that reach what it changes"):
            chosen = with_call_paths(chosen, objects)
    other = built_elsewhere(plain, config, base, posted, sources)
    builds = (*whole_builds(plain, config), *([other] if other else []))
    return Tried(
        posted, base, config, chosen, runner.command, chosen.workloads, builds=builds, error=error
    )


def by_headers(patches: Sequence[Path], spec: str) -> str:
    """Return in a sentence which workloads execute the functions that the hunk headers name.

    ``spec`` is the source whose coverage map says it. Empty if the headers name no function.
    """
    changed = functions_by_headers(patches)
    names = ", ".join(try_page.listed([function.name for function in changed], SHOWN))
    with suppress(InputError):
        coverage = shipped_map(spec)
        tests = stress_tests()
        proposals = propose(changed, coverage, stress_tests=tests).measured
        workloads = list(dict.fromkeys(p.workload for p in proposals if p.workload not in tests))
        executing = ", ".join(try_page.listed(workloads, SHOWN))
        found = f"workloads that execute {names}: {executing}"
        none = f"no workload executes {names} in its measured stretch"
        if names:
            return f"on {coverage.source}, by the hunk headers, {found if workloads else none}"
    return ""


def whole_builds(plain: KernelRequest, config: SeriesConfig) -> tuple[str, ...]:
    """Return in sentences which of the kernels are built from the beginning, and how long that
    takes."""
    base = replace(plain, fragments=(*plain.fragments, *config.fragments))
    missing = bool(build.missing([base], cache_dir=cache_dir()))
    seconds = Cache(cache_dir()).built(plain.arch, "seconds", variant=False)
    few, many = (round(limit / 60) for limit in BASE_S)
    duration = (
        f"about {max(1, round(median(seconds) / 60))} minutes, as others on this host"
        if seconds
        else f"{few} to {many} minutes with two CPUs"
    )
    lines = [f"The base kernel is not in the cache: its build takes {duration}."] * missing
    if config.recompiled > WHOLE:
        lines.append(
            f"{config.recompiled:.0%} of all files include a header of the patch, so the patched "
            "kernel is compiled as a "
            f"whole{', too' if missing else f': {duration}'}."
        )
    return tuple(lines)


def with_call_paths(chosen: Chosen, kernel: Path) -> Chosen:
    """Return ``chosen`` with notes on how the first changed functions are reached from a system
    call.

    ``kernel`` is a folder with the vmlinux of base.
    """
    functions = [
        changed
        for changed in chosen.changed
        if changed.kind == "function" and changed.exists_before
    ]
    paths = call_paths(
        [FunctionId(changed.file, changed.name) for changed in functions[:SHOWN]], kernel
    )
    notes = [f"{function.name} is reached by {path}." for function, path in paths.items()]
    return replace(chosen, notes=(*chosen.notes, *notes))
