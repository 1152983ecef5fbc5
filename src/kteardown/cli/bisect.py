"""``kteardown bisect``: which commits made a metric better or worse, or broke the kernel."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic import BaseModel, TypeAdapter, ValidationError

from kteardown.analysis.margins import Margins
from kteardown.bisect.decide import MOST_BOOTS, BlockMean, boots_needed, confidence_of_step, posterior
from kteardown.bisect.walk import Change, Walk
from kteardown.cli import complete, options
from kteardown.cli.run import boot_rest, start
from kteardown.cli.script import experiments_on
from kteardown.cli.terminal import TerminalReporter
from kteardown.errors import BuildError, GuestError, InputError, NotBuiltError
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted
from kteardown.kernels import git
from kteardown.kernels.source import Sources, file_hash, is_source
from kteardown.model.experiment import Experiment
from kteardown.model.record import BASE
from kteardown.model.result import FaultKind, MetricVerdict, Result
from kteardown.patches.find_base import history
from kteardown.patches.posted import resolve as series_patches
from kteardown.paths import cache_dir, replace_text, runs_dir
from kteardown.report.formatting import number
from kteardown.visible import echo, on_one_line

_WIDTH = 40


class Measured(BaseModel):
    """What a commit was measured to have: a value, or why it has none, and the run."""

    value: float | None = None
    why: str = ""
    run: str = ""
    is_bad: bool | None = None
    """On the wall clock: what its blocks decided; None if they did not."""
    mean: float | None = None
    error: float | None = None
    """On the wall clock: of the logarithm of its ratio to the good commit; None if it has none."""


_Measurements = TypeAdapter(dict[str, Measured])


@dataclass(frozen=True)
class BisectedValue:
    """What is compared: a way in which kernels fail, or a metric, by its cost of one more ``param``."""

    outcome: str = ""
    metric: str = ""
    param: str = ""
    unit: str = ""
    size: float = 0.0
    """On the wall clock: by how much the bad commit is worse than the good one, as a share of it."""

    @classmethod
    def of(cls, result: Result, metric: str, outcome: str) -> "BisectedValue":
        """Return the first law, or else metric, that differs between base and the variant of ``result``.

        Raises InputError if none does.
        """
        if outcome:
            return cls(outcome)
        if result.clock == "wall":
            return cls._in_real_time(result, metric)
        laws = [law for law in result.laws if law.kernel != BASE and metric in ("", law.metric)]
        for law in laws:
            if law.verdict in ("better", "worse"):
                return cls(metric=law.metric, param=law.param, unit=law.value_unit)
        rows = [c for c in result.comparisons if c.statistic == "median" and metric in ("", c.metric)]
        for row in reversed(rows):
            if row.verdict in ("better", "worse"):
                return cls(metric=row.metric, unit=row.value_unit)
        if metric and not rows:
            known = ", ".join(dict.fromkeys(c.metric for c in result.comparisons))
            raise InputError(f"there is no metric {metric}", hint=f"name one of: {known}.")
        why = "; ".join(dict.fromkeys(row.reason for row in rows if row.reason))
        raise InputError(
            f"no difference between the good and the bad commit is measured{f': {why}' if why else ''}",
            hint="name other points with --set, more --seeds, or other commits; `kteardown report last` has "
            "the figures.",
        )

    @classmethod
    def _in_real_time(cls, result: Result, metric: str) -> "BisectedValue":
        rows = [m for m in result.metric_verdicts if metric in ("", m.metric) and m.ratio]
        why = "no headline metric of which less is better is worse in the bad commit"
        for row in rows:
            if row.ratio is None or row.ratio <= 1 or row.better != "lower" or row.spread is None:
                continue
            most = result.stopping.looks[-1] if result.stopping else row.boots
            needed = boots_needed(math.log(row.ratio), row.spread, row.confidence)
            if row.verdict == "worse" and needed <= most:
                return cls(metric=row.metric, size=row.ratio - 1)
            why = (
                f"{row.metric} is {row.ratio - 1:.2%} worse and blocks differ by {row.spread:.2%}: about "
                f"{needed} boots of each commit would show it"
            )
        raise InputError(
            f"this clock cannot see the difference between the good and the bad commit: {why}",
            hint="give so many --boots, or use --clock instructions, which also finds what became better.",
        )

    def value(self, result: Result, kernel: str) -> float | None:
        """Return the value of a kernel; None if it has none."""
        failed = [fault.kind for fault in result.broken(kernel)]
        if self.outcome:
            return float(self.outcome in failed)
        if failed:
            return None
        if self.size:
            metric = self.verdict(result)
            return 1.0 if kernel == BASE else metric.ratio if metric else None
        if self.param:
            laws = (
                w for w in result.laws if (w.kernel, w.metric, w.param) == (kernel, self.metric, self.param)
            )
            return next((law.per_unit for law in laws), None)
        rows = [c for c in result.comparisons if c.metric == self.metric and c.statistic == "median"]
        return (rows[-1].base if kernel == BASE else rows[-1].changed).median if rows else None

    def verdict(self, result: Result) -> MetricVerdict | None:
        """Return the verdict on the metric."""
        return next((m for m in result.metric_verdicts if m.metric == self.metric), None)

    @property
    def until(self) -> str:
        """On the wall clock, the rule by which a commit is decided."""
        return f"step=99%,{self.metric}={100 * self.step:.6f}%"

    @property
    def step(self) -> float:
        """The change by which a commit is decided; a margin is below 100%."""
        return min(self.size, 0.99)

    @property
    def text(self) -> str:
        """What it is in words."""
        if self.size:
            return f"{self.metric} as a ratio to the good commit, in real time"
        return self.outcome or (f"{self.metric} for one more of {self.param}" if self.param else self.metric)


class Judge:
    """Measures commits as the good one with a patch, and keeps what was measured in ``folder``."""

    def __init__(
        self,
        walk: Walk,
        folder: Path,
        good: str,
        experiment: Experiment,
        reporter: TerminalReporter,
        execution: options.Execution,
    ) -> None:
        self._walk, self.good, self._experiment = walk, good, experiment
        self.reporter, self._execution = reporter, execution
        self._file = folder / "measured.json"
        self.measured: dict[str, Measured] = {}
        try:
            self.measured = _Measurements.validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            self.measured = {}
        self.compared = BisectedValue()

    def result(self, commit: str) -> tuple[str, Result]:
        """Build and boot a commit beside the good one; return the name of the run and its result.

        Raises all that a run raises.
        """
        folder = git.as_patch(self._walk.git_dir, self.good, commit, cache_dir())
        if folder is None:
            raise NotBuiltError.of(f"the change from {self.good[:12]} to {commit[:12]}")
        experiment = self._experiment.model_copy(update={"variants": (str(folder),)})
        if self.compared.size:
            design = experiment.design.model_copy(update={"until": self.compared.until})
            experiment = experiment.model_copy(update={"design": design})
        run = start([experiment], self.reporter, self._execution)
        return run.name, boot_rest(run, self.reporter, self._execution)[0]

    def value(self, commit: str) -> float | None:
        """Return the value of a commit; None if it does not build, or does not boot as far as is needed."""
        if commit not in self.measured:
            self.reporter.note(f"commit {len(self.measured) - 1}: {self.subject(commit)}")
            try:
                run, result = self.result(commit)
                if result.not_built:  # Nothing differs from the good one.
                    self._save(commit, self.measured[self.good])
                else:
                    self.keep(commit, run, result)
            except NotBuiltError:
                self._save(commit, self.measured[self.good])
            except (BuildError, GuestError) as error:
                self._save(commit, Measured(why=on_one_line(error.message)))
        return self.measured[commit].value

    def keep(self, commit: str, run: str, result: Result) -> None:
        """Keep the values of a commit and of the good one."""
        (variant,) = result.requested
        more: dict[str, Any] = {}
        metric = self.compared.verdict(result) if self.compared.size else None
        if metric is not None and metric.ratio and metric.spread is not None:
            keeps = Margins(0.99, {metric.metric: self.compared.step}, as_steps=True).keeps(metric)
            more["is_bad"] = None if keeps is None else not keeps
            more |= {"mean": math.log(metric.ratio), "error": metric.spread / math.sqrt(metric.boots)}
        faults = "; ".join(fault.message for fault in result.broken(variant))
        found = self.compared.value(result, variant)
        self._save(commit, Measured(value=found, why=on_one_line(faults), run=run, **more))
        if self.good not in self.measured:
            value = self.compared.value(result, BASE)
            itself = Measured(value=value, run=run, is_bad=False, mean=0.0, error=1e-6)
            self._save(self.good, itself)

    def _save(self, commit: str, found: Measured) -> None:
        self.measured[commit] = found
        replace_text(self._file, _Measurements.dump_json(self.measured, indent=1).decode())

    def is_bad(self, commit: str, bad: str) -> bool | None:
        """Return whether blocks in real time show that a commit has the change; None if they do not say."""
        self.value(commit)
        parts = sorted(self.posterior(bad).items(), key=lambda part: -part[1])[:3]
        likely = ", ".join(f"{share:.0%} {self.subject(one)}" for one, share in parts)
        found = self.measured[commit].is_bad
        words = {True: "bad", False: "good", None: "uncertain, and skipped"}[found]
        self.reporter.note(f"{commit[:12]} is {words}; most probable: {likely}")
        return found

    def posterior(self, bad: str) -> dict[str, float]:
        """Return the probability of each commit up to ``bad`` that it made the change, after all blocks."""
        commits = self.within(bad)
        seen = {
            c: BlockMean(m.mean, m.error)
            for c, m in self.measured.items()
            if m.mean is not None and m.error is not None
        }
        within = {commit: frozenset(self.within(commit)) for commit in seen}
        return posterior(commits, within, seen, math.log1p(self.compared.size))

    def within(self, commit: str) -> list[str]:
        """Return the commits that ``commit`` contains and the good one does not, oldest first."""
        asked = ("rev-list", "--reverse", "--topo-order", f"{self.good}..{commit}")
        return git.run(*asked, git_dir=self._walk.git_dir).text.split()

    def in_order(self, bad: str) -> dict[str, Measured]:
        """Return what was measured, a commit after its parents."""
        commits = [self.good, *self.within(bad)]
        return {commit: self.measured[commit] for commit in commits if commit in self.measured}

    def subject(self, commit: str) -> str:
        """Return the abbreviated hash and the subject of a commit, as in a ``Fixes:`` line."""
        asked = ("log", "-1", "--abbrev=12", '--format=%h ("%s")', commit)
        return on_one_line(git.run(*asked, git_dir=self._walk.git_dir).text)


def bisect(
    workload: Annotated[str, typer.Argument(autocompletion=complete.workloads)],
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    good: Annotated[str, typer.Option(metavar="REV")] = "",
    bad: Annotated[str, typer.Option(metavar="REV")] = "",
    source: str = "git:.",
    series: str = "",
    outcome: Annotated[str, typer.Option(metavar="KIND")] = "",
    path: list[str] | None = None,
    first_parent: Annotated[bool, typer.Option("--first-parent")] = False,
    judge: Annotated[str, typer.Option(metavar="REV")] = "",
) -> None:
    reporter = execution.begin()
    _check(designed, outcome)
    repository, base, first, last = _span(source, good, bad, series, reporter)
    metric = (scripted.metric or [""])[0].partition("=")[0]
    if "=" not in (scripted.metric or [""])[0]:
        scripted = replace(scripted, metric=None)
    asked = Overrides.of(kernels, replace(designed, clock="instructions"))
    if designed.clock == "wall":
        asked = Overrides.of(kernels, replace(designed, until="verdict", boots=designed.boots or MOST_BOOTS))
    (experiment,) = experiments_on(workload, base, asked, scripted, reporter)
    if designed.clock == "wall":
        count = git.read(repository, "rev-list", "--count", f"{first}..{last}").text
        design = experiment.design.model_copy(update={"confidence": confidence_of_step(int(count))})
        experiment = experiment.model_copy(update={"design": design})
    folder = _folder(experiment, base, last, metric, outcome)
    walk = Walk(repository, folder / "git", path or (), first_parent=first_parent)
    judging = Judge(walk, folder, first, experiment, reporter, execution)
    _ends(judging, folder, last, metric, outcome)
    if judge:
        raise typer.Exit(_verdict(judging, last, git.commit(repository, judge)))
    found = _walked(judging, walk, last)
    replace_text(folder / "bisect.log", walk.log + "\n")
    facts = as_facts(judging, found, last, folder)
    text = page(judging, found, facts)
    forms = {"json": json.dumps(facts, indent=1) + "\n"}
    execution.publish(lambda form: forms.get(form, text), lambda: echo(text, nl=False), lambda: None)


def _check(designed: Designed, outcome: str) -> None:
    if designed.clock == "both" or designed.until or (designed.clock == "wall" and outcome):
        raise InputError(
            "commits are bisected on one clock, by a stopping rule of its own, and --outcome has no clock",
            hint="leave --until out, and --clock with --outcome.",
        )
    kinds = [kind for kind in get_args(FaultKind) if kind != "ok"]
    if outcome and outcome not in kinds:
        raise InputError(f"--outcome {outcome}: no kernel fails so", hint=f"name one of: {', '.join(kinds)}.")


def _walked(judging: Judge, walk: Walk, bad: str) -> list[Change]:
    size = judging.compared.size
    try:
        if size:  # Noise allows one change only: a part of it would need many times the boots.
            found = walk.first_bad(judging.good, bad, lambda commit: judging.is_bad(commit, bad))
            return [Change(tuple(reversed(found)), 1.0, 1 + size)]
        return walk.changes(judging.good, bad, judging.value)
    except KeyboardInterrupt:
        count = len(judging.measured)
        judging.reporter.note(f"interrupted; {count} commits are measured, and the same command goes on")
        raise


def _span(
    source: str, good: str, bad: str, series: str, reporter: TerminalReporter
) -> tuple[Path, str, str, str]:
    """Return the repository, the source of the good commit, and both ends. Raises InputError, BuildError."""
    if series:
        if good or bad:
            raise InputError("--series has its own ends", hint="remove --good and --bad.")
        sources = Sources(cache_dir(), reporter)
        found = sources.identify(source)
        patches = series_patches(series, cache_dir=cache_dir(), reporter=reporter).patches
        digest = hashlib.sha256("".join([found.id, *map(file_hash, patches)]).encode()).hexdigest()
        target = cache_dir() / "histories" / digest[:16]
        repository, first, last = history(patches, sources.tree(found), target)
        return repository, source, first, last
    if is_source(good) and is_source(bad):
        raise InputError(
            f"no source has the commits between {good} and {bad}: a release is one tree",
            hint=f"compare them: kteardown compare WORKLOAD --source {good} --series {bad}; or give git "
            "commits: --source git:PATH --good v7.2 --bad v7.3.",
        )
    kind, _, rest = source.partition(":")
    if kind != "git" or not good or not bad:
        raise InputError(
            "the commits between which to bisect are not given",
            hint="write --source git:PATH --good REV --bad REV, or --source debian:6.12 --series FILE.",
        )
    repository = Path(rest).expanduser().absolute()
    first, last = (git.commit(repository, name) for name in (good, bad))
    return repository, f"git:{repository}@{first}", first, last


def _folder(experiment: Experiment, *asked: str) -> Path:
    """Return the folder in which the measurements of this question are kept."""
    digest = hashlib.sha256(json.dumps([experiment.model_dump_json(), *asked]).encode()).hexdigest()
    folder = runs_dir() / f"bisect-{digest[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _ends(judging: Judge, folder: Path, bad: str, metric: str, outcome: str) -> None:
    """Measure both ends, and choose what is compared. Raises InputError if they do not differ."""
    kept = folder / "compared.json"
    if judging.good in judging.measured and bad in judging.measured and kept.is_file():
        judging.compared = BisectedValue(**json.loads(kept.read_text()))
        return
    run, result = judging.result(bad)
    judging.compared = BisectedValue.of(result, metric, outcome)
    judging.keep(bad, run, result)
    if outcome and not judging.measured[bad].value:
        raise InputError(
            f"the bad commit shows no {outcome}",
            hint=f"`kteardown show {run}` lists its boots; name another commit, or more --seeds.",
        )
    replace_text(kept, json.dumps(vars(judging.compared)))


def _verdict(judging: Judge, bad: str, commit: str) -> int:
    """Return the exit code for `git bisect run`."""
    if judging.compared.size:
        return {True: 1, False: 0, None: 125}[judging.is_bad(commit, bad)]
    value, before, after = (judging.value(one) for one in (commit, judging.good, bad))
    if value is None or before is None or after is None:
        return 125
    return int((value - before) / (after - before) > 0.5)


def as_facts(judging: Judge, found: Sequence[Change], bad: str, folder: Path) -> dict[str, Any]:
    """Return what was found, for scripts."""
    whole = (judging.measured[bad].value or 0) - (judging.measured[judging.good].value or 0)
    return {
        "compared": vars(judging.compared),
        "good": judging.good,
        "bad": bad,
        "changes": [{**vars(one), "by": one.by, "share": one.by / whole} for one in found],
        "unexplained_share": 1 - sum(one.by for one in found) / whole,
        "measured": {commit: one.model_dump() for commit, one in judging.measured.items()},
        "posterior": judging.posterior(bad) if judging.compared.size else {},
        "log": str(folder / "bisect.log"),
    }


def page(judging: Judge, found: Sequence[Change], facts: dict[str, Any]) -> str:
    """Return the answer as Markdown: the commits found, all that were measured, and how to go on by hand."""
    compared, subject = judging.compared, judging.subject
    lines = [f"{compared.text}, from {subject(facts['good'])} to {subject(facts['bad'])}:", ""]
    for change, one in zip(found, facts["changes"], strict=True):
        names = [subject(commit) for commit in change.commits]
        which = "one of these, since some have no value or are uncertain: " if len(names) > 1 else ""
        step = f"{number(change.before)} -> {number(change.after)} {compared.unit}".rstrip()
        lines.append(f"- {which}{'; '.join(names)}: {step}, {one['share']:.0%} of the difference")
        lines.append(f"  Fixes: {names[-1]}")
        if facts["posterior"]:
            share = sum(facts["posterior"][commit] for commit in change.commits)
            lines.append(f"  by all blocks of all commits together: probable to {share:.1%}")
    lines += [f"- not explained: {abs(facts['unexplained_share']):.0%}", ""]
    lines += [f"{len(judging.measured)} commits were measured, in their order:", ""]
    largest = max(one.value or 1e-9 for one in judging.measured.values())
    for commit, one in judging.in_order(facts["bad"]).items():
        if one.value is None:
            lines.append(f"    {'no value':>10} {'':<{_WIDTH}} {subject(commit)}: {one.why}")
        else:
            bar = "#" * round(_WIDTH * one.value / largest)
            lines.append(f"    {number(one.value):>10} {bar:<{_WIDTH}} {subject(commit)}")
    return "\n".join([*lines, "", f"To go on by hand: git bisect replay {facts['log']}"]) + "\n"
