"""Judge a kernel against a kept run or a branch: is it worse by more than a margin?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.analysis.across import across, check_alike, last_agent
from kteardown.analysis.dataset import headlines
from kteardown.analysis.margins import Margins
from kteardown.errors import GateError, InputError, NotBuiltError
from kteardown.extensions import hook
from kteardown.extras import need
from kteardown.flows.ending import check_broken
from kteardown.flows.ending import gate as apply_gate
from kteardown.flows.runner import Runner
from kteardown.inputs.load import load_experiment, load_workloads
from kteardown.inputs.options import Overrides, apply
from kteardown.judge.answer import FailOn
from kteardown.judge.verdicts import Outcome
from kteardown.kernels import git
from kteardown.kernels.source import file_hash
from kteardown.kernels.source_name import paths_of
from kteardown.model.experiment import Experiment
from kteardown.model.record import BASE
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
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

_WORDS = {True: "pass", False: "FAIL", None: "uncertain"}
_PASSES: Mapping[Outcome, bool | None] = {
    "pass": True,
    "unsure": None,
    "fail": False,
    "broken": False,
}


@dataclass(frozen=True)
class GateLine:
    """A metric, or a drift of one: whether it passes, None if that is not certain, and why."""

    passes: bool | None
    text: str
    metric: str
    drift: bool = False


@dataclass(frozen=True)
class GateQuestion:
    """Whether a kernel is worse in ``experiment`` than ``against``, a run or a revision, by the
    margins."""

    experiment: str
    asked: Overrides
    against: str
    margins: Margins

    @classmethod
    def of(
        cls, experiment: str, asked: Overrides, against: str, margin: Sequence[str]
    ) -> "GateQuestion":
        """Return the question of these options. Raises InputError."""
        if asked.clock == "both":
            raise InputError(
                "--clock both: a gate has one clock", hint="run one gate for each clock."
            )
        margins = Margins.parse(",".join(margin), "--margin")
        if len(asked.variant or ()) > 1:
            raise InputError(
                "--variant: a gate judges one kernel", hint="name one variant, or none for base."
            )
        return cls(experiment, asked, against, margins)


@dataclass(frozen=True)
class GateAnswer:
    """What a gate found. ``material``: the run by the margins; None if both kernels are the
    same."""

    against: str
    material: Material | None = None
    lines: tuple[GateLine, ...] = ()

    @property
    def drifts(self) -> list[GateLine]:
        """Return the lines about several runs, each of which is a failure."""
        return [line for line in self.lines if line.drift]

    @property
    def text(self) -> list[str]:
        """Return the page, line by line."""
        if self.material is None:
            return [f"pass: nothing in the kernel differs from {self.against}"]
        result = self.material.result
        return [
            f"{result.experiment} against {self.against}:",
            *(f"{_WORDS[line.passes]}: {line.text}" for line in self.lines),
            *(f"note: {note}" for note in result.notes if note.startswith("both runs differ")),
        ]

    def publication(self) -> Publication:
        """Return what is said in every format."""
        details = {"against": self.against, "lines": [vars(line) for line in self.lines]}
        if self.material is None:
            (answer,) = self.text
            return Publication("gate", answer, "pass", page=f"{answer}\n", details=details)
        outcome = self.material.answer.outcome
        drifts = self.drifts
        answer = sentence(self.material.result, self.material.workloads)
        return Publication(
            "gate",
            "\n".join([*(f"Drift: {line.text}." for line in drifts), answer]),
            "fail" if drifts and outcome != "broken" else outcome,
            (self.material,),
            page=markdown.listed(self.text) + "\n",
            details=details,
            drifts={line.metric: line.text for line in drifts},
        )

    def check(self, fail_on: FailOn) -> None:
        """Raise BrokenError, NotBuiltError, or GateError if the kernel does not pass."""
        if self.material is None:
            return
        check_broken(self.material)
        if drifts := self.drifts:
            raise GateError(
                drifts[0].text, hint="see all its runs with `kteardown history --order time`."
            )
        apply_gate(self.material, fail_on)


def judge_kernel(question: GateQuestion, runner: Runner) -> GateAnswer:
    """Measure the kernel, and its base where that is not kept.

    Raises InputError and all that a run raises.
    """
    against = question.against
    margins = question.margins
    asked = question.asked
    # The experiment gives what is measured; its own variants are the question of another command.
    chosen = apply(load_experiment(question.experiment), asked)
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
    if kept is not None and design.clock != "wall":
        reference = load(kept)
        # Built only if the run has recorded its own: earlier ones have not.
        has_agent = last_agent(reference)
        agent = lab.agent_of(chosen, load_workloads(chosen), runner.reporter) if has_agent else None
        check_alike(reference, chosen, file_hash(agent) if agent else "")
    else:
        kept = None
    material = _measured(chosen, kept, margins, runner)
    if material is None:
        return GateAnswer(against)
    drifts = _drift_lines(material.name, chosen, margins, runner.reporter)
    return GateAnswer(against, material, (*_metric_lines(material), *drifts))


def _kept(against: str, experiment: Experiment) -> RunDir | None:
    """Return the kept run that is named, on the clock of the experiment; None if it is a
    revision."""
    try:
        folder = find_runs(against)
    except InputError:
        if against == "last":
            raise
        return None
    for run in folder.runs:
        if load(run).experiment.design.clock == experiment.design.clock:
            return run
    raise InputError(
        f"{against} was measured on another clock than {experiment.design.clock}",
        hint="name a run on this clock, or choose the clock with --clock.",
    )


def _on_branch(against: str, experiment: Experiment, source: str) -> Experiment:
    """Return the experiment with all that a tree has more than a branch as the only variant; none
    if nothing.

    Base is the commit at which both part, so that what the branch has more is no change.
    """
    kind, _, rest = source.partition(":")
    path, revision = rest.rsplit("@", 1) if "@" in rest else (rest, "HEAD")
    hint = (
        "name a run of `kteardown list runs`, or a revision of the git tree of --source git:PATH."
    )
    if kind != "git" or experiment.variants:
        raise InputError(
            f"--against {against}: no such run; a branch needs --source git:PATH and no --variant",
            hint=hint,
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
    return experiment.model_copy(
        update={"source": f"git:{repository}@{fork}", "variants": variants}
    )


def _beside(kept: RunDir, experiment: Experiment) -> Experiment:
    """Return the experiment with the base of a kept run as base: real time is compared side by side
    only."""
    snapshot = load(kept)
    source = snapshot.experiment.source
    built = snapshot.kernels[BASE].source
    if source.startswith("git:"):
        source = f"git:{source.removeprefix('git:').partition('@')[0]}@{built.rpartition('@')[2]}"
    if unnamed := {*paths_of(source)} - {*paths_of(experiment.source)}:
        raise InputError(
            f"--against {kept.name}: the base of this run is from {min(unnamed)}, which kteardown "
            "uses only if you name this path again",
            hint="if you want to use this path, name it with --source.",
        )
    elsewhere = experiment.source != source
    variants = tuple(
        f"{name} on {experiment.source}" if elsewhere else name for name in experiment.variants
    )
    if not variants and elsewhere:
        variants = (experiment.source,)
    return experiment.model_copy(update={"source": source, "variants": variants})


def _measured(
    experiment: Experiment,
    kept: RunDir | None,
    margins: Margins,
    runner: Runner,
) -> Material | None:
    """Boot, and return the result by the margins, compared with a kept run if there is one.

    None if both kernels are the same.
    """
    if kept is None and not experiment.variants:
        return None
    try:
        run = runner.start([experiment])
        material = runner.boot_rest(run)
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
    run: str, experiment: Experiment, margins: Margins, reporter: Reporter
) -> list[GateLine]:
    drifts = hook("drifts")
    if drifts is None:
        reporter.note("kteardown does not look for drifts: kteardown_history is not installed")
        return []
    try:
        need("history", "a look at earlier runs")
    except InputError as error:
        reporter.note(f"kteardown does not look for drifts: {error.message}")
        return []
    return [
        GateLine(
            False,
            f"{drift.kernel}: {drift.metric}"
            f"{f' at {point_text(drift.point)}' if drift.point else ''} is {drift.by:.1%} worse "
            f"than in {drift.since} ({drift.at[:10]}), in {drift.steps} "
            f"step{'s' if drift.steps > 1 else ''}, none of them beyond the margin",
            f"{drift.metric} since {drift.since}",
            drift=True,
        )
        for drift in drifts(all_runs(), run, experiment, margins)
    ]
