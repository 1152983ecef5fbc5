"""Bisect: measure both ends, walk between them, and confirm what was found."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.flows.bisection import search
from kteardown.flows.bisection.commits import MeasuredCommits
from kteardown.flows.bisection.page import details, found_changes, headline, page
from kteardown.flows.bisection.records import ANSWER_FILE
from kteardown.flows.bisection.search import Change, Walk
from kteardown.flows.bisection.value import BisectedValue
from kteardown.flows.runner import Runner
from kteardown.flows.scripts import experiments_on
from kteardown.inputs.load import load_workloads
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted, Span
from kteardown.kernels import cache_folder, git
from kteardown.kernels.source import Sources, file_hash
from kteardown.kernels.source_name import is_source
from kteardown.model.experiment import Experiment
from kteardown.model.faults import FaultKind
from kteardown.patches.posted import resolve as series_patches
from kteardown.patches.series_history import history
from kteardown.paths import cache_dir, key_of, runs_dir
from kteardown.progress import Reporter
from kteardown.report.charts import draw
from kteardown.report.publication import Publication
from kteardown.visible import visible


class _Ends(NamedTuple):
    """The repository, the source of the good commit, and both commits."""

    repository: Path
    source: str
    good: str
    bad: str


@dataclass(frozen=True)
class BisectionQuestion:
    """Which commits of ``span`` change ``workload``, or let guests fail with ``outcome``.

    ``judge``: only what this commit is, for ``git bisect run``.
    """

    workload: str
    span: Span
    kernels: Kernels
    designed: Designed
    scripted: Scripted
    outcome: str = ""
    judge: str = ""

    def check(self) -> None:
        """Raise InputError if a bisection does not answer it."""
        designed = self.designed
        outcome = self.outcome
        if (
            designed.clock in ("both", "contention")
            or designed.until
            or (designed.clock == "wall" and outcome)
        ):
            raise InputError(
                "a bisection takes neither --clock both or contention nor --until, nor --clock "
                "wall together with --outcome",
                hint="remove these options.",
            )
        if designed.seeds == 1 and not outcome:  # Before the first kernel is built.
            raise InputError(
                "no difference can be measured with one seed", hint="give --seeds 2 or more."
            )
        kinds = [kind for kind in get_args(FaultKind) if kind != "ok"]
        if outcome and outcome not in kinds:
            raise InputError.unknown(
                f"--outcome {outcome}: no kernel fails in this way", outcome, kinds
            )

    @property
    def metric(self) -> str:
        """Return the metric that is named; empty: the first one that differs."""
        return (self.scripted.metric or [""])[0].partition("=")[0]


@dataclass(frozen=True)
class Bisection:
    """A bisection whose ends are measured. ``judged``: the commit of ``question.judge``, or
    empty."""

    question: BisectionQuestion
    commits: MeasuredCommits
    walk: Walk
    folder: Path
    judged: str

    def is_bad(self) -> bool | None:
        """Measure the judged commit, and return whether it is bad; None if it has no value."""
        return self.commits.is_bad(self.judged)

    def find(self) -> tuple[Publication, str]:
        """Find the changes and confirm them; return what is said, and the page for a terminal."""
        commits = self.commits
        commits.reporter.note(commits.forecast())
        changes = _walked(commits, self.walk)
        (Entry(self.folder) / "bisect.log").replace(self.walk.log + "\n")
        drawn_chart = search.chart(
            [*commits.tested().values()], commits.compared.text, commits.compared.unit
        )
        (drawn,) = draw([drawn_chart], "svg", self.folder)
        facts = details(commits, changes, self.folder) | {"picture": visible(str(drawn))}
        kept = found_changes(commits, facts).model_dump_json(indent=1)
        (Entry(self.folder) / ANSWER_FILE).replace(visible(kept) + "\n")
        text = page(commits, changes, facts)
        publication = Publication("bisect", headline(commits, changes), page=text, details=facts)
        return publication, page(commits, changes, facts, quoted=str)


@contextmanager
def bisection(question: BisectionQuestion, runner: Runner) -> Iterator[Bisection]:
    """Measure both ends of a bisection, which no other process goes on with meanwhile.

    Raises InputError if the question is not one, or if the ends do not differ, and all that a run
    raises.
    """
    question.check()
    reporter = runner.reporter
    span = question.span
    ends = _ends_of(span, reporter)
    count = _count(span, ends)
    judged = git.commit(ends.repository, question.judge) if question.judge else ""
    experiment = _experiment(question, ends, count, reporter)
    facts = [experiment.model_dump_json(), ends.source, ends.bad, question.metric, question.outcome]
    key = key_of(json.dumps(facts).encode())
    folder = runs_dir() / f"bisect-{key}"
    # Not in that folder, which can come from a stranger: git executes hooks and what its
    # configuration names.
    git_dir = cache_dir() / "bisections" / key
    folder.mkdir(parents=True, exist_ok=True)
    with cache_folder.locked(git_dir, reporter, "the same bisection"):
        walk = Walk(ends.repository, git_dir, span.path or (), first_parent=span.first_parent)
        commits = MeasuredCommits(walk, folder, (ends.good, ends.bad), experiment, runner)
        _measure_ends(commits, folder, question.metric, question.outcome)
        yield Bisection(question, commits, walk, folder, judged)


def _count(span: Span, ends: _Ends) -> int:
    """Return how many commits are between the ends. Raises InputError if there is none."""
    path = span.path or ()
    between = ("rev-list", "--count", f"{ends.good}..{ends.bad}", "--", *path)
    count = int(git.run_reading(ends.repository, *between).text or 0)
    if not count:
        what = f"{span.good or ends.good}..{span.bad or ends.bad} has no commit"
        what += f" that touches {' or '.join(path)}" if path else ""
        raise InputError(
            what,
            hint="name the older commit with --good, and with --path a path from the top of the "
            "tree.",
        )
    return count


def _experiment(
    question: BisectionQuestion, ends: _Ends, count: int, reporter: Reporter
) -> Experiment:
    """Return the experiment with which each of ``count`` commits is measured. Raises InputError."""
    designed = question.designed
    scripted = question.scripted
    metric = question.metric
    if "=" not in (scripted.metric or [""])[0]:
        scripted = replace(scripted, metric=None)
    wall = designed.clock == "wall"
    rule = {"until": "verdict", "boots": designed.boots or search.MOST_BOOTS}
    design: dict[str, Any] = rule if wall else {"clock": "instructions"}
    asked = Overrides.of(question.kernels, replace(designed, **design))
    (experiment,) = experiments_on(question.workload, ends.source, asked, scripted, reporter)
    metrics = [
        name for workload in load_workloads(experiment).values() for name in workload.metrics
    ]
    if metric and metric not in metrics:
        raise InputError.unknown(
            f"--metric {metric}: {question.workload} has no such metric", metric, metrics
        )
    if not wall:
        return experiment
    confidence = {"confidence": search.confidence_of_step(count)}
    return experiment.model_copy(update={"design": experiment.design.model_copy(update=confidence)})


def _walked(commits: MeasuredCommits, walk: Walk) -> list[Change]:
    """Return the changes between both ends."""
    size = commits.compared.size
    steps = search.steps_of(len(commits.within(commits.bad)))
    try:
        with commits.reporter.task("Bisecting", total=steps) as commits.task:
            if size:  # Noise allows one change only: a part of it would need many times the boots.
                bad_commits = walk.first_bad(commits.good, commits.bad, commits.is_bad)
                return [Change(tuple(reversed(bad_commits)), 1.0, 1 + size)]
            return walk.changes(commits.good, commits.bad, commits.value)
    except KeyboardInterrupt:
        count = len(commits.measured)
        commits.reporter.note(
            f"interrupted; {count} commits are measured. Give the same command again to go on"
        )
        raise


def _ends_of(span: Span, reporter: Reporter) -> _Ends:
    """Find both ends. Raises InputError, BuildError."""
    if span.series:
        return _ends_of_series(span, reporter)
    source = span.source
    good = span.good
    bad = span.bad
    if is_source(good) and is_source(bad):
        raise InputError(
            f"no source has the commits between {good} and {bad}: a release is one tree",
            hint=(
                f"compare them: kteardown compare WORKLOAD --source {good} --series {bad}; or give "
                "git commits: --source git:PATH --good v7.2 --bad v7.3."
            ),
        )
    kind, _, rest = source.partition(":")
    if kind != "git" or not good or not bad:
        raise InputError(
            f"--source {source}: a bisection needs a git tree and two of its commits, or a series",
            hint=(
                "write --source git:PATH --good REV --bad REV, or --source debian:6.12 --series "
                "FILE."
            ),
        )
    repository = Path(rest).expanduser().absolute()
    first, last = (git.commit(repository, name) for name in (good, bad))
    return _Ends(repository, f"git:{repository}@{first}", first, last)


def _ends_of_series(span: Span, reporter: Reporter) -> _Ends:
    """Return the source of a series, and its last patch. Raises InputError, BuildError."""
    if span.good or span.bad:
        raise InputError(
            "--series: the ends are the source and the last patch", hint="remove --good and --bad."
        )
    sources = Sources(cache_dir(), reporter)
    identified = sources.identify(span.source)
    patches = series_patches(span.series, cache_dir=cache_dir(), reporter=reporter).patches
    digest = key_of("".join([identified.id, *map(file_hash, patches)]).encode())
    repository, first, last = history(
        patches, sources.tree(identified), cache_dir() / "histories" / digest
    )
    return _Ends(repository, span.source, first, last)


def _measure_ends(commits: MeasuredCommits, folder: Path, metric: str, outcome: str) -> None:
    """Measure both ends, and choose what is compared. Raises InputError if they do not differ."""
    kept = Entry(folder) / "compared.json"
    bad = commits.bad
    if commits.good in commits.measured and bad in commits.measured and kept.exists():
        commits.compared = BisectedValue(**json.loads(kept.content()))
        return
    run, result = commits.result(bad)
    commits.compared = BisectedValue.of(result, metric, outcome)
    commits.keep(bad, run, result)
    if outcome and not commits.measured[bad].value:
        raise InputError(
            f"the bad commit does not fail with {outcome}",
            hint=(
                f"`kteardown show {run}` lists its boots; name another commit, or give more "
                "--seeds."
            ),
        )
    kept.replace(json.dumps(vars(commits.compared)))
