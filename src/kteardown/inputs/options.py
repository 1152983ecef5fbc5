"""The options that change an experiment: each is declared here, and nowhere else; ``apply`` applies
them.

An option is a field of one of the groups. A field with the name of a field of the design or of the
machine replaces it. A verb takes the groups of which it has the options, and
``cli.options.grouped`` makes an option of the command line of each field. What --help says of them
is in ``cli/texts/options.toml``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from kteardown import sandbox
from kteardown.errors import InputError
from kteardown.inputs.assignments import parse_assignments
from kteardown.inputs.check import check_experiment, check_values
from kteardown.inputs.contention import designed
from kteardown.inputs.fragments import fragments
from kteardown.inputs.load import load_workloads
from kteardown.model.arch import Arch
from kteardown.model.clock import Clock
from kteardown.model.experiment import MACHINE_PARAMETERS, PREBUILT, UNTIL, Experiment
from kteardown.model.record_fields import ParamValue

MOST_BOOTS = 40
MOST_SEEDS = 20
"""The maximum numbers of a run with ``--until``, unless ``--boots`` or ``--seeds`` gives
another."""
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def option(flag: str, default: Any = None, **more: Any) -> Any:
    """Return a field of a group that is given by ``flag``.

    ``more``: what ``typer.Option`` takes, and with ``completes`` the function of ``cli.complete``
    that offers values.
    """
    return field(default=default, metadata={"flag": flag, **more})


_what = partial(option, rich_help_panel="What is compared")
_how = partial(option, rich_help_panel="How it is measured")
_script = partial(option, rich_help_panel="A script of your own")


def _permit_unsafe_build(given: bool) -> bool:
    sandbox.unsafe_build = given
    return given


@dataclass(frozen=True)
class Parts:
    """The parts of an experiment to run, and the source of base."""

    source: str | None = _what("--source", completes="sources")
    variant: list[str] | None = _what("--variant", completes="series_and_sources")
    workload: list[str] | None = _what("--workload", completes="workloads")


@dataclass(frozen=True)
class Kernels:
    """The architecture, and the kernels that are built in addition to base and the variants."""

    arch: Arch | None = _what("--arch")
    config: list[str] | None = _what("--config", completes="fragments")
    ablate: bool = _what("--ablate", default=False)
    layout_twin: bool = _what("--layout-twin", default=False)
    compiler: str | None = _what("--compiler", metavar="COMPILER")
    unsafe_build: bool = _what("--unsafe-build", callback=_permit_unsafe_build, default=False)


@dataclass(frozen=True)
class Designed:
    """The design: clock, points, number of boots, stopping rule, and the guests' machine."""

    clock: Literal[Clock, "both"] | None = _how("--clock", metavar="CLOCK")
    quick: bool = _how("--quick", default=False)
    assignments: list[str] | None = _how("--set", metavar="PARAM=VALUES", completes="assignments")
    seeds: int | None = _how("--seeds", min=1)
    boots: int | None = _how("--boots", min=1)
    repetitions: int | None = _how("--repetitions", min=1)
    until: str | None = _how("--until", metavar="RULE")
    budget: str | None = _how("--budget", metavar="TIME")
    lost_limit: str | None = _how("--lost-limit", metavar="SHARE")
    predict: list[str] | None = _how("--predict", metavar="PARAM=N")
    profile: bool = _how("--profile", default=False)
    counts: bool = _how("--counts", default=False)
    cpus: int | None = _how("--cpus", min=1)
    memory_mb: int | None = _how("--memory-mb", min=64)

    def only_of(self, clock: Clock) -> Self:
        """Return these options without those that are only for the other clock."""
        if clock == "wall":
            return replace(self, seeds=None)
        return replace(self, boots=None, lost_limit=None, counts=False)


@dataclass(frozen=True)
class Scripted:
    """What the options say of a script, a C file or a command."""

    metric: list[str] | None = _script("--metric", metavar="NAME=WHERE")
    programs: list[str] | None = _script("--programs", metavar="NAMES")
    file: list[Path] | None = _script("--file")
    root: str = _script("--root", metavar="FOLDER|TAR", default="")
    allow: list[str] | None = _script("--allow", metavar="WAY")
    limit: str = _script("--limit", metavar="TIME", default="")


@dataclass(frozen=True)
class Span:
    """Two commits of a git tree, or a series with its source, and which commits between them
    count."""

    good: str = _what("--good", metavar="REV", default="")
    bad: str = _what("--bad", metavar="REV", default="")
    source: str = _what("--source", default="git:.")
    series: str = _what("--series", default="")
    path: list[str] | None = _what("--path")
    first_parent: bool = _what("--first-parent", default=False)


@dataclass(frozen=True)
class Overrides(Designed, Kernels, Parts):
    """All of these options; None, False or empty keeps the value of the experiment."""

    @classmethod
    def of(cls, *groups: Designed | Kernels | Parts, **more: Any) -> "Overrides":
        return cls(
            **{**{name: value for group in groups for name, value in vars(group).items()}, **more}
        )


def apply(experiment: Experiment, overrides: Overrides) -> Experiment:
    """Return ``experiment`` changed by these options, for one clock, and checked again. Raises
    InputError."""
    _refuse_empty(overrides)
    values_given = {
        name: value
        for name, value in vars(overrides).items()
        if value is not None and value is not False
    }
    if overrides.budget is not None:
        values_given["budget_s"] = parse_seconds(overrides.budget, "--budget")
    if overrides.lost_limit is not None:
        values_given["lost_limit"] = parse_share(overrides.lost_limit, "--lost-limit")
    params = parse_assignments(overrides.assignments or ())
    demanded = {*params} - {*MACHINE_PARAMETERS}
    predict = parse_assignments(overrides.predict or (), "--predict")
    fields = experiment.model_dump()
    if overrides.quick:
        quick = experiment.quick
        fields["design"] |= {
            "seeds": quick.seeds,
            "boots": quick.boots,
            "repetitions": quick.repetitions,
        }
        params = {**quick.params, **params}
    if overrides.until is not None:
        _check_until(overrides.until)
        fields["design"] |= {"boots": MOST_BOOTS, "seeds": MOST_SEEDS}
    fields["machine"] |= {
        name: _counts(f"--set {name}", params[name])
        for name in MACHINE_PARAMETERS
        if name in params
    }
    for part in ("design", "machine"):
        fields[part] |= {name: values_given[name] for name in fields[part] if name in values_given}
    fields |= _of_clock(fields, overrides, params)
    fields |= {
        name: getattr(overrides, name)
        for name in ("source", "compiler")
        if getattr(overrides, name)
    }
    if overrides.variant:
        fields["variants"] = tuple(overrides.variant)
    if overrides.workload:
        fields |= _part(experiment, overrides.workload)
    # After the workloads, whose choice keeps the fragments of the whole experiment.
    fields["config"] = tuple(dict.fromkeys([*fields["config"], *(overrides.config or ())]))
    workload_params = {
        name: values for name, values in params.items() if name not in MACHINE_PARAMETERS
    }
    _set_params(fields["workloads"], workload_params, experiment, demanded)
    fields["predict"] |= {
        name: _counts(f"--predict {name}", values) for name, values in predict.items()
    }
    changed = designed(Experiment.model_validate(fields))
    _check_design(changed, overrides)
    _check_built(changed, overrides)
    check_experiment(changed, load_workloads(changed), f"experiment {experiment.name}")
    return changed


def _of_clock(
    fields: Mapping[str, Any], overrides: Overrides, params: Mapping[str, Sequence[ParamValue]]
) -> dict[str, Any]:
    """Return the parts of an experiment that follow from the clock that it is changed to."""
    design = fields["design"]
    machine = fields["machine"]
    if design["clock"] != "contention" and "transfer_ticks" not in params:
        machine = {**machine, "transfer_ticks": None}
    if overrides.clock == "contention" and overrides.repetitions is None:
        # Counts have no noise of a clock: what differs between repetitions does so between seeds.
        design = {**design, "repetitions": 1}
    return {"design": design, "machine": machine}


def _check_until(until: str) -> None:
    if not re.fullmatch(UNTIL, until or "-"):
        raise InputError(
            f"--until {until}: expected verdict, ci=WIDTH% or margin=WIDTH%",
            hint=(
                "use --until verdict to stop when no headline metric is inconclusive, --until "
                "ci=2% to stop when every headline metric is known to within 2%, or --until "
                "margin=2% to stop when it is certain, for every headline metric, whether it is "
                "more than 2% worse."
            ),
        )


def on_clocks(experiment: Experiment, overrides: Overrides) -> tuple[Experiment, ...]:
    """Return ``experiment`` changed by these options, once for each clock to measure. Raises
    InputError."""
    if overrides.clock != "both":
        return (apply(experiment, overrides),)
    exact = replace(overrides.only_of("instructions"), clock="instructions", layout_twin=False)
    uncounted = experiment.design.model_copy(update={"counts": False})
    return (
        apply(experiment.model_copy(update={"design": uncounted}), exact),
        apply(experiment, replace(overrides.only_of("wall"), clock="wall")),
    )


def _refuse_empty(overrides: Overrides) -> None:
    values_by_option = {
        "source": [overrides.source],
        "lost-limit": [overrides.lost_limit],
        "variant": overrides.variant or (),
    }
    for option, values in values_by_option.items():
        if "" in values:
            raise InputError(
                f"--{option}: is empty",
                hint="give a value, or leave out the option; a shell variable may be unset.",
            )


def _part(experiment: Experiment, names: Sequence[str]) -> dict[str, object]:
    """Return the fields of the experiment that change if only the workloads called ``names`` are
    run."""
    # The fragments stay those of the whole experiment, so that every part of it uses the same
    # kernel images.
    workloads = load_workloads(experiment)
    fields = experiment.model_dump()
    have = [sweep.workload for sweep in experiment.workloads]
    for name in names:
        if name not in have:
            raise InputError.unknown(
                f"--workload {name}: the experiment does not run it", name, have
            )
    theirs = {parameter for name in names for parameter in workloads[name].parameters}
    quick = {
        name: values
        for name, values in experiment.quick.params.items()
        if name in {*theirs, *MACHINE_PARAMETERS}
    }
    laws = {workloads[name].law for name in names}
    return {
        "config": fragments(experiment, workloads),
        "workloads": [sweep for sweep in fields["workloads"] if sweep["workload"] in names],
        "quick": {**fields["quick"], "params": quick},
        "predict": {name: sizes for name, sizes in experiment.predict.items() if name in laws},
    }


def parse_seconds(text: str, where: str) -> float:
    """Return ``"90s"``, ``"30m"`` or ``"2h"`` in seconds. Raises InputError that names
    ``where``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not match or float(match[1]) == 0:
        raise InputError(
            f"{where} {text}: expected a time with a unit", hint="write it as in 90s, 30m or 2h."
        )
    return float(match[1]) * _SECONDS[match[2]]


def parse_share(text: str, where: str) -> float:
    """Return ``"5%"`` as 0.05. Raises InputError that names ``where``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if not match or not 0 < float(match[1]) <= 100:
        raise InputError(
            f"{where} {text}: expected a share above 0% and up to 100%",
            hint="write it as in 5% or 0.5%.",
        )
    return float(match[1]) / 100


def _counts(option: str, values: Sequence[ParamValue]) -> tuple[ParamValue, ...]:
    if not values or not all(isinstance(value, int) and value > 0 for value in values):
        raise InputError(
            f"{option}: expected integers above 0", hint=f"write them as in {option}=2,32."
        )
    return tuple(values)


def _check_design(experiment: Experiment, overrides: Overrides) -> None:
    if overrides.cpus is not None and "cpus" in parse_assignments(overrides.assignments or ()):
        raise InputError(
            f"--cpus {overrides.cpus} and --set cpus are both given", hint="leave one of them out."
        )
    design = experiment.design
    if overrides.budget is not None and not design.until:
        raise InputError(
            "--budget is only for a run with --until", hint="add --until verdict or --until ci=2%."
        )
    if overrides.lost_limit is not None and design.clock != "wall":
        raise InputError(
            "--lost-limit is only for the wall clock: other work of the host does not change an "
            "instruction count",
            hint="add --clock wall.",
        )
    wall = design.clock == "wall"
    count, wrong_option, right_option = (
        (overrides.seeds, "seeds", "boots") if wall else (overrides.boots, "boots", "seeds")
    )
    if count is not None:
        raise InputError(
            f"--{wrong_option} {count} has no effect on the clock of this run, which is "
            f"{design.clock}",
            hint=f"write --{right_option} {count}, or choose the other clock with --clock.",
        )
    if overrides.layout_twin and design.clock != "wall":
        raise InputError(
            "--layout-twin is only for the wall clock: instruction counts do not depend on code "
            "layout",
            hint="add --clock wall.",
        )


def _check_built(experiment: Experiment, overrides: Overrides) -> None:
    """Raise InputError about options of a build if no kernel is built."""
    sources = [variant.rpartition(" on ")[2] for variant in experiment.variants]
    kinds = [source.partition(":")[0] for source in (experiment.source, *sources)]
    for option, value in (("config", overrides.config), ("compiler", overrides.compiler)):
        if value and all(kind in PREBUILT for kind in kinds):
            raise InputError(
                f"--{option}: {experiment.source} is a finished kernel, which kteardown does not "
                "build",
                hint=f"leave out --{option}, or name a source that kteardown builds, such as "
                "--source debian:6.12. Modules of the image's package are loaded when a script "
                "asks for them.",
            )


def _set_params(
    sweeps: Sequence[dict[str, object]],
    params: Mapping[str, tuple[ParamValue, ...]],
    experiment: Experiment,
    demanded: set[str],
) -> None:
    workloads = load_workloads(experiment)
    used: set[str] = set()
    for sweep in sweeps:
        parameters = workloads[str(sweep["workload"])].parameters
        sweep_params = {name: values for name, values in params.items() if name in parameters}
        for name in sweep_params.keys() & demanded:
            check_values(sweep_params[name], parameters[name], f"--set {name}")
        sweep["params"] = {**sweep["params"], **sweep_params}  # type: ignore[dict-item]
        used |= sweep_params.keys()
    for name in sorted(demanded - used):
        parameters_of_all = {
            p for sweep in sweeps for p in workloads[str(sweep["workload"])].parameters
        }
        have = sorted({*MACHINE_PARAMETERS, *parameters_of_all})
        what = f"--set {name}: no workload of the experiment has this parameter"
        raise InputError.unknown(what, name, have)
