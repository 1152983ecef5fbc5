"""How long it takes to measure a series, before anything is built, and on which base less."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from kteardown.flows.runner import Runner
from kteardown.flows.scripts import is_own
from kteardown.flows.try_series.experiments import experiments_of
from kteardown.inputs.fragments import located
from kteardown.inputs.options import Designed, Kernels, Overrides
from kteardown.kernels import build
from kteardown.kernels.cache import Cache
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.record import BASE
from kteardown.patches.config_of_series import SeriesConfig
from kteardown.patches.find_base import attempt, default_sources
from kteardown.patches.posted import PostedSeries
from kteardown.patches.tried_source import Base
from kteardown.paths import cache_dir, program
from kteardown.report.forecast_text import duration
from kteardown.report.try_page import MeasuredWorkload, Tried
from kteardown.run.create import plan_boots
from kteardown.run.forecast import forecast_of
from kteardown.run.resolve import resolve

WHOLE = 0.5
"""Of all files: a patched kernel of which more is compiled takes as long as base."""
BASE_S = (300.0, 1200.0)
"""A build of base with two CPUs, on a host that has built none."""
_VARIANT_S = (15.0, 120.0)
_RUN_S = (30.0, 240.0)
_COUNT_S = (15.0, 60.0)
Span = tuple[float, float]
"""The least and the most seconds."""


def with_forecast(
    tried: Tried, kernels: Kernels, designed: Designed, runner: Runner, *, piped: bool = False
) -> Tried:
    """Return ``tried`` with how long the builds and the boots take, and the command that does them.

    The time is that of earlier builds and boots on this host, or else a range. ``piped``: the
    patches came on standard input.
    """
    base = base_request(kernels, tried.base)
    base = replace(base, fragments=(*base.fragments, *tried.config.fragments))
    name = tried.posted.name
    series = replace(base, name=name, series=name, patches=tried.base.patches)
    missing = build.missing([base, series], cache_dir=cache_dir())
    whole = _recorded(base, BASE_S, variant=False)
    spans: dict[str, Span] = {}
    if base in missing:
        spans["for base"] = whole
    if series in missing:
        part = _recorded(base, _VARIANT_S, variant=True)
        spans["for the patched kernel"] = whole if tried.config.recompiled > WHOLE else part
    wanted = replace(kernels, config=[*(kernels.config or ()), *tried.config.fragments])
    asked = Overrides.of(wanted, designed, variant=[str(tried.base.patches[0].parent)])
    spans["for the boots"] = _sum(
        [_of_workload(choice, tried, asked, runner) for choice in tried.measured] or [_RUN_S]
    )
    parts = [f"{_text(span)} {what}" for what, span in spans.items()]
    built = [] if base in missing else ["base is built already"]
    time = f"{_text(_sum(list(spans.values())))}: {', '.join([*parts, *built])}."
    next_command = without_dry_run(tried.command, piped=piped)
    return replace(tried, time=time, next_command=next_command)


def without_dry_run(command: str, *, piped: bool = False) -> str:
    """Return the command that does what ``command`` only shows, as this shell finds the program.

    ``piped``: standard input is a pipe, and what writes to it is not known here.
    """
    words = [word for word in shlex.split(command)[1:] if word != "--dry-run"]
    return f"{'... | ' * piped}{program()} {shlex.join(words)}"


def base_request(kernels: Kernels, base: Base) -> KernelRequest:
    fragments = located(kernels.config or ())
    arch = kernels.arch or DEFAULT_ARCH
    return KernelRequest(
        BASE, base.source, fragments=fragments, arch=arch, compiler=kernels.compiler or ""
    )


def built_elsewhere(
    plain: KernelRequest,
    config: SeriesConfig,
    base: Base,
    posted: PostedSeries,
    sources: Sources,
) -> str:
    """Return in a sentence a source whose base kernel is built and that takes the series; empty if
    there is none, or if that saves no time."""
    request = replace(plain, fragments=(*plain.fragments, *config.fragments))
    is_for_one = posted.version or base.source.startswith("patched:") or config.recompiled > WHOLE
    if is_for_one or not build.missing([request], cache_dir=cache_dir()):
        return ""
    tried = {a.source: a.how for a in base.attempts}
    for spec in dict.fromkeys((*tried, *default_sources(sources))):
        how = tried.get(spec)
        if spec == base.source or how not in (None, "exactly", "with offsets"):
            continue
        if build.missing([replace(request, source=spec)], cache_dir=cache_dir()):
            continue
        how = how or attempt(spec, base.patches, sources).how
        if how in ("exactly", "with offsets"):
            lines = " at other lines" if how == "with offsets" else ""
            return (
                f"The base of {spec} is built already, and the series applies to it{lines}: "
                f"--source {spec} measures in a few minutes."
            )
    return ""


def _of_workload(choice: MeasuredWorkload, tried: Tried, asked: Overrides, runner: Runner) -> Span:
    if choice.only_counted or is_own(choice.workload):
        return _COUNT_S if choice.only_counted else _RUN_S
    spans: list[Span] = []
    for experiment in experiments_of(choice, tried.base.source, asked):
        resolved = resolve(experiment)
        planned = plan_boots(resolved)
        seconds = forecast_of(experiment, resolved.workloads, planned, runner.jobs).seconds
        spans.append(_RUN_S if seconds is None else (seconds, seconds))
    return _sum(spans)


def _recorded(request: KernelRequest, usual: Span, *, variant: bool) -> Span:
    """Return how long builds of this kind took on this host, or ``usual``."""
    seconds = Cache(cache_dir()).built(request.arch, "seconds", variant=variant)
    return (median(seconds), median(seconds)) if seconds else usual


def _sum(spans: Sequence[Span]) -> Span:
    return sum(low for low, _ in spans), sum(high for _, high in spans)


def _text(span: Span) -> str:
    low, high = map(duration, span)
    return f"about {high}" if low == high else f"{low} to {high}"
