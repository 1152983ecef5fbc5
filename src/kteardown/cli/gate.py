"""``kteardown gate``: whether a kernel is worse than a kept run or a branch, by more than a margin."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from kteardown.analysis.conclude import across, check_alike, last_agent
from kteardown.analysis.dataset import headlines
from kteardown.analysis.margins import Margins
from kteardown.cli import complete, options
from kteardown.cli.outcome import check_broken
from kteardown.cli.outcome import gate as apply_gate
from kteardown.cli.run import boot_rest, start
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import GateError, InputError, NotBuiltError
from kteardown.extras import need
from kteardown.inputs.load import load_experiment, load_workloads
from kteardown.inputs.options import Overrides, apply
from kteardown.judge.verdicts import Outcome
from kteardown.kernels import git
from kteardown.kernels.source import file_hash, paths_of
from kteardown.model.experiment import Experiment
from kteardown.model.record import BASE
from kteardown.paths import cache_dir
from kteardown.report.formats import markdown
from kteardown.report.formatting import point_text
from kteardown.report.material import Material
from kteardown.report.metrics import metric_sentence
from kteardown.report.publication import Publication
from kteardown.report.sentence import sentence
from kteardown.run import lab
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import all_runs, find_runs
from kteardown.rundir.snapshot import load
from kteardown.visible import echo, visible

_WORDS = {True: "pass", False: "FAIL", None: "uncertain"}
_PASSES: Mapping[Outcome, bool | None] = {"pass": True, "unsure": None, "fail": False, "broken": False}


@dataclass(frozen=True)
class GateLine:
    """A metric, or a drift of one: whether it passes, None if that is not certain, and why."""

    passes: bool | None
    text: str
    metric: str
    drift: bool = False


def gate(
    asked: Overrides,
    execution: options.Execution,
    experiment: options.ExperimentArg,
    against: Annotated[str, typer.Option(metavar="RUN|REV", autocompletion=complete.runs)],
    margin: Annotated[list[str] | None, typer.Option(metavar="[METRIC=]PERCENT")] = None,
) -> None:
    reporter = execution.begin()
    if asked.clock == "both":
        raise InputError("--clock both: a gate has one clock", hint="run one gate for each clock.")
    margins = Margins.parse(",".join(margin or ()), "--margin")
    if len(asked.variant or ()) > 1:
        raise InputError("--variant: a gate judges one kernel", hint="name one variant, or none for base.")
    # The experiment gives what is measured; its own variants are the question of another command.
    chosen = apply(load_experiment(experiment), asked)
    chosen = chosen.model_copy(update={"variants": tuple(asked.variant or ())})
    margins.check(metric for _, metric, _ in headlines(chosen, load_workloads(chosen)))
    kept = _kept(against, chosen)
    if kept is None:
        chosen = _on_branch(against, chosen, asked.source or "git:.")
    elif chosen.design.clock == "wall":
        chosen = _beside(kept, chosen)
    design = chosen.design.model_copy(update={"same_within": max(margins.least, 1e-6)})
    if design.clock == "wall" and not design.until:
        design = design.model_copy(update={"until": f"margin={margins.text}"})
    chosen = chosen.model_copy(update={"design": design})
    if kept is not None and design.clock == "instructions":
        reference = load(kept)
        # Built only if the run has recorded its own: earlier ones have not.
        agent = lab.agent_of(chosen, load_workloads(chosen), reporter) if last_agent(reference) else None
        check_alike(reference, chosen, file_hash(agent) if agent else "")
    else:
        kept = None
    material = _measured(chosen, kept, margins, reporter, execution)
    if material is None:
        _nothing(against, execution)
        return
    lines = [*_metric_lines(material), *_drift_lines(material.name, chosen, margins, reporter)]
    _publish(material, lines, against, execution)


def _kept(against: str, experiment: Experiment) -> RunDir | None:
    """Return the kept run that is named, on the clock of the experiment; None if it is a revision."""
    try:
        found = find_runs(against)
    except InputError:
        if against == "last":
            raise
        return None
    for run in found.runs:
        if load(run).experiment.design.clock == experiment.design.clock:
            return run
    raise InputError(
        f"{against} was measured on another clock than {experiment.design.clock}",
        hint="name a run on this clock, or choose the clock with --clock.",
    )


def _on_branch(against: str, experiment: Experiment, source: str) -> Experiment:
    """Return the experiment with all that a tree has more than a branch as the only variant; none if nothing.

    Base is the commit at which both part, so that what the branch has more is no change.
    """
    kind, _, rest = source.partition(":")
    path, revision = rest.rsplit("@", 1) if "@" in rest else (rest, "HEAD")
    hint = "name a run of `kteardown list runs`, or a revision of the git tree of --source git:PATH."
    if kind != "git" or experiment.variants:
        raise InputError(
            f"--against {against}: no such run; a branch needs --source git:PATH and no --variant", hint=hint
        )
    repository = Path(path).expanduser().absolute()
    try:
        fork = git.forked_at(repository, against, revision)
    except InputError as error:
        what = f"--against {against}: no such run, and no branch, tag or commit: {error.message}"
        raise InputError(what, hint=hint) from error
    with git.view(repository) as git_dir:
        folder = git.as_patch(git_dir, fork, git.commit(repository, revision), cache_dir())
    variants = (str(folder),) if folder else ()
    return experiment.model_copy(update={"source": f"git:{repository}@{fork}", "variants": variants})


def _beside(kept: RunDir, experiment: Experiment) -> Experiment:
    """Return the experiment with the base of a kept run as base: real time is compared side by side only."""
    snapshot = load(kept)
    source, built = snapshot.experiment.source, snapshot.kernels[BASE].source
    if source.startswith("git:"):
        source = f"git:{source.removeprefix('git:').partition('@')[0]}@{built.rpartition('@')[2]}"
    if unnamed := {*paths_of(source)} - {*paths_of(experiment.source)}:
        raise InputError(
            f"--against {kept.name}: its base is of {min(unnamed)}: kteardown uses it only if you name "
            "it again",
            hint="if it is what you want to use, name it with --source.",
        )
    elsewhere = experiment.source != source
    variants = tuple(f"{name} on {experiment.source}" if elsewhere else name for name in experiment.variants)
    if not variants and elsewhere:
        variants = (experiment.source,)
    return experiment.model_copy(update={"source": source, "variants": variants})


def _measured(
    experiment: Experiment,
    kept: RunDir | None,
    margins: Margins,
    reporter: TerminalReporter,
    execution: options.Execution,
) -> Material | None:
    """Boot, and return the result by the margins, compared with a kept run if there is one.

    None if both kernels are the same.
    """
    if kept is None and not experiment.variants:
        return None
    try:
        run = start([experiment], reporter, execution)
        material = boot_rest(run, reporter, execution)
    except NotBuiltError:
        if kept is not None:
            raise
        return None
    result = material.result
    if kept is not None:
        compared = across(load(kept), load(run.runs[0]))
        result = compared.model_copy(update={"boots_left": result.boots_left})
    return Material(run.name, margins.applied(result), material.workloads)


def _metric_lines(material: Material) -> Iterator[GateLine]:
    for variant in material.answer.variants:
        for finding in variant.headlines:
            yield GateLine(_PASSES[finding.outcome], metric_sentence(finding), finding.group.key)


def _drift_lines(
    run: str, experiment: Experiment, margins: Margins, reporter: TerminalReporter
) -> list[GateLine]:
    try:
        need("history", "a look at earlier runs")
    except InputError as error:
        reporter.note(f"drifts are not looked for: {error.message}")
        return []
    from kteardown.history.lines import drifts

    return [
        GateLine(
            False,
            f"{each.kernel}: {each.metric}{f' at {point_text(each.point)}' if each.point else ''} is "
            f"{each.by:.1%} worse than in {each.since} ({each.at[:10]}), in {each.steps} "
            f"step{'s' if each.steps > 1 else ''}, none of them beyond the margin",
            f"{each.metric} since {each.since}",
            drift=True,
        )
        for each in drifts(all_runs(), run, experiment, margins)
    ]


def _publish(
    material: Material, lines: Sequence[GateLine], against: str, execution: options.Execution
) -> None:
    drifted = [line for line in lines if line.drift]
    page = [
        f"{material.result.experiment} against {against}:",
        *(f"{_WORDS[line.passes]}: {line.text}" for line in lines),
        *(f"note: {note}" for note in material.result.notes if note.startswith("both runs differ")),
    ]

    def gates() -> None:
        check_broken(material)
        if drifted:
            raise GateError(drifted[0].text, hint="see all its runs with `kteardown history --order time`.")
        apply_gate(material, execution.fail_on or options.FailOn.worse)

    said = sentence(material.result, material.workloads)
    publication = Publication(
        "gate",
        "\n".join([*(f"Drift: {line.text}." for line in drifted), said]),
        "fail" if drifted and material.answer.outcome != "broken" else material.answer.outcome,
        (material,),
        page=markdown.listed(page) + "\n",
        details={"against": against, "lines": [vars(line) for line in lines]},
        drifts={line.metric: line.text for line in drifted},
    )
    execution.publish(publication, lambda: echo(visible("\n".join(page))), gates)


def _nothing(against: str, execution: options.Execution) -> None:
    """Report that both kernels are the same, so that there is nothing to measure."""
    text = f"pass: nothing in the kernel differs from {against}"
    details: dict[str, Any] = {"against": against, "lines": []}
    publication = Publication("gate", text, "pass", page=f"{text}\n", details=details)
    execution.publish(publication, lambda: echo(text), lambda: None)
