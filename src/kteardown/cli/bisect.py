"""``kteardown bisect``: which commits made a metric better or worse, or broke the kernel."""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any, get_args

import typer
from pydantic import BaseModel, ValidationError

from kteardown import bisect as search
from kteardown.analysis.margins import Margins
from kteardown.bisect import Change, CommitValue, Walk
from kteardown.cli import complete, options
from kteardown.cli.run import boot_rest, start
from kteardown.cli.script import experiments_on
from kteardown.cli.terminal import TerminalReporter
from kteardown.door import Entry
from kteardown.errors import BuildError, GuestError, InputError, NotBuiltError
from kteardown.inputs.load import load_workloads
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted
from kteardown.judge.answer import DIRECTIONS
from kteardown.kernels import cache_folder, git, layout_twin
from kteardown.kernels.cache import Cache
from kteardown.kernels.source import Sources, file_hash, is_source
from kteardown.model.experiment import Experiment
from kteardown.model.record import BASE
from kteardown.model.result import FaultKind, MetricVerdict, Result
from kteardown.patches.find_base import history
from kteardown.patches.posted import resolve as series_patches
from kteardown.paths import cache_dir, key_of, runs_dir
from kteardown.progress import Task
from kteardown.report.charts import draw
from kteardown.report.forecast_text import duration
from kteardown.report.formats.markdown import plain
from kteardown.report.formatting import number
from kteardown.report.publication import Publication
from kteardown.run import named
from kteardown.run.forecast import forecast_of
from kteardown.run.resolve import resolve
from kteardown.rundir.find import RunFolder, find_runs
from kteardown.rundir.snapshot import load
from kteardown.visible import echo, on_one_line, visible

_WIDTH = 24


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
    ci: tuple[float, float] | None = None
    """The interval of the value; None if it is exact."""


class Confirmed(BaseModel):
    """What a change was confirmed with: the values with it, without it, and with the code moved alone."""

    without: str = ""
    """What was booted without it."""
    run: str = ""
    boots: int = 0
    values: tuple[float | None, ...] = ()
    """The last one is missing if no layout twin can be made."""
    holds: bool = False
    why: str = ""


class Kept(BaseModel):
    """What is kept of a bisection, by commit; the runs that have begun by the hash of their experiment."""

    measured: dict[str, Measured] = {}
    confirmed: dict[str, Confirmed] = {}
    begun: dict[str, str] = {}


@dataclass(frozen=True)
class BisectedValue:
    """What is compared: a way in which kernels fail, or a metric, by its cost of one more ``param``."""

    outcome: str = ""
    metric: str = ""
    param: str = ""
    unit: str = ""
    size: float = 0.0
    """On the wall clock: by how much the bad commit is worse than the good one, as a share of it."""
    blocks: int = 0
    """On the wall clock: how many blocks decide a commit, as the noise of those of the ends has it."""

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
            if law.verdict in DIRECTIONS:
                return cls(metric=law.metric, param=law.param, unit=law.value_unit)
        rows = [c for c in result.comparisons if c.statistic == "median" and metric in ("", c.metric)]
        for row in reversed(rows):
            if row.verdict in DIRECTIONS:
                return cls(metric=row.metric, unit=row.value_unit)
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
            needed = search.boots_needed(math.log(row.ratio), row.spread, row.confidence)
            if row.verdict == "worse" and needed <= most:
                return cls(metric=row.metric, size=row.ratio - 1, blocks=needed)
            why = (
                f"{row.metric} is {row.ratio - 1:.2%} worse and blocks differ by {row.spread:.2%}: about "
                f"{needed} boots of each commit would show it"
            )
        raise InputError(
            f"this clock cannot see the difference between the good and the bad commit: {why}",
            hint="give so many --boots, or use --clock instructions, which also finds what became better.",
        )

    def figures(self, result: Result, kernel: str) -> tuple[float | None, tuple[float, float] | None]:
        """Return the value of a kernel and its interval; None for what it does not have."""
        failed = [fault.kind for fault in result.broken(kernel)]
        if self.outcome:
            return float(self.outcome in failed), None
        if failed:
            return None, None
        if self.size:
            metric = self.verdict(result, kernel)
            return (1.0, None) if kernel == BASE else (metric.ratio, metric.ci) if metric else (None, None)
        if self.param:
            asked = (kernel, self.metric, self.param)
            laws = (w for w in result.laws if (w.kernel, w.metric, w.param) == asked)
            return next(((law.per_unit, law.per_unit_ci) for law in laws), (None, None))
        rows = [c for c in result.comparisons if c.metric == self.metric and c.statistic == "median"]
        mine = [(c.base if kernel == BASE else c.changed) for c in rows if kernel in (BASE, c.variant)]
        return (mine[-1].median if mine else None), None

    def verdict(self, result: Result, kernel: str) -> MetricVerdict | None:
        """Return the verdict on the metric of a kernel."""
        mine = (m for m in result.metric_verdicts if (m.metric, m.variant) == (self.metric, kernel))
        return next(mine, None)

    def is_bad(self, metric: MetricVerdict) -> bool | None:
        """On the wall clock, return whether a kernel has the change; None if its blocks do not say."""
        keeps = Margins(0.99, {metric.metric: self.step}, as_steps=True).keeps(metric)
        return None if keeps is None else not keeps

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
        ends: tuple[str, str],
        experiment: Experiment,
        reporter: TerminalReporter,
        execution: options.Execution,
    ) -> None:
        self._walk, self._experiment = walk, experiment
        self.good, self.bad = ends
        self.reporter, self._execution = reporter, execution
        self.task = Task()
        self._file = Entry(folder) / "measured.json"
        self._kept = Kept()
        with suppress(OSError, ValidationError):
            self._kept = Kept.model_validate_json(self._file.content())
        self.measured = self._kept.measured
        self.compared = BisectedValue()

    def result(self, commit: str) -> tuple[str, Result]:
        """Return the run of a commit beside the good one, and its result. Raises all that a run raises."""
        folder = git.as_patch(self._walk.git_dir, self.good, commit, cache_dir())
        if folder is None:
            raise NotBuiltError.of(f"the change from {self.good[:12]} to {commit[:12]}")
        return self.booted([folder])

    def booted(self, folders: Sequence[Path], **design: int) -> tuple[str, Result]:
        """Build and boot the good commit with each of some patches; return the name and result of the run.

        ``design`` replaces a part of the design. Raises all that a run raises.
        """
        variants = tuple(map(str, folders))
        more = design | ({"until": self.compared.until} if self.compared.size else {})
        update = {"variants": variants, "design": self._experiment.design.model_copy(update=more)}
        experiment = self._experiment.model_copy(update=update)
        # A run that was killed goes on.
        key = key_of(experiment.model_dump_json().encode())
        run = _begun(self._kept.begun.get(key, ""), experiment)
        if run is None:
            run = start([experiment], self.reporter, self._execution)
            self._kept.begun[key] = run.name
            self._save()
        return run.name, boot_rest(run, self.reporter, self._execution, repeat=True).result

    def value(self, commit: str) -> float | None:
        """Return the value of a commit; None if it does not build, or does not boot as far as is needed."""
        if commit not in self.measured:
            self.reporter.note(f"commit {len(self.measured) - 1}: {self.subject(commit)}")
            try:
                run, result = self.result(commit)
                if result.not_built:
                    raise NotBuiltError.of(self.subject(commit))
                self.keep(commit, run, result)
            except NotBuiltError:  # Nothing differs from the good one.
                self.measured[commit] = self.measured[self.good]
            except (BuildError, GuestError) as error:
                self.measured[commit] = Measured(why=on_one_line(error.message))
            self._save()
            self.show(commit)
        return self.measured[commit].value

    def keep(self, commit: str, run: str, result: Result) -> None:
        """Keep the values of a commit and of the good one."""
        (variant,) = result.requested
        more: dict[str, Any] = {}
        metric = self.compared.verdict(result, variant) if self.compared.size else None
        if metric is not None and metric.ratio and metric.spread is not None:
            more["is_bad"] = self.compared.is_bad(metric)
            more |= {"mean": math.log(metric.ratio), "error": metric.spread / math.sqrt(metric.boots)}
        faults = "; ".join(fault.message for fault in result.broken(variant))
        found, ci = self.compared.figures(result, variant)
        self.measured[commit] = Measured(value=found, why=on_one_line(faults), run=run, ci=ci, **more)
        if self.good not in self.measured:
            value, ci = self.compared.figures(result, BASE)
            itself = Measured(value=value, run=run, ci=ci, is_bad=False, mean=0.0, error=1e-6)
            self.measured[self.good] = itself
        self._save()

    def _save(self) -> None:
        self._file.replace(self._kept.model_dump_json(indent=1))

    def is_bad(self, commit: str) -> bool | None:
        """Return whether a commit has more than half of the change, or on the wall clock the change.

        None if it has no value, or if its blocks do not say.
        """
        value, before, after = map(self.value, (commit, self.good, self.bad))
        if self.compared.size or value is None or before is None or after is None:
            return self.measured[commit].is_bad
        return _nearer(value, after, before)

    def show(self, commit: str) -> None:
        """Report what a commit was measured to be, all that were, and where the change may still be."""
        one = self.tested().get(commit)
        if one is None:  # `git bisect run` asked for a commit that is not between the ends.
            return
        word = {True: "bad", False: "good", None: "uncertain, and skipped"}[one.is_bad]
        parts = sorted(self.posterior().items(), key=lambda part: -part[1]) if self.compared.size else []
        most = ", ".join(f"{share:.0%} {self.subject(one)}" for one, share in parts[:3])
        likely = f"; most probable: {most}" if parts else ""
        self.reporter.note(f"{word}: {one.figures} {one.text}{likely}")
        self.task.update(len(self.measured) - 2, f"{self.line()}{likely}")

    def line(self) -> str:
        """Return the history on one line, in real time with the places at which the change may still be."""
        shares = self.posterior().values() if self.compared.size else ()
        left = [at for at, share in enumerate(shares, 1) if share > 0.001]
        return search.line(self.tested().values(), len(self.within(self.bad)), left)

    def tested(self) -> dict[str, CommitValue]:
        """Return what was measured, in the order of history, a commit after its parents."""
        found = {}
        for at, commit in enumerate([self.good, *self.within(self.bad)]):
            if commit in self.measured:
                one, text = self.measured[commit], self.subject(commit)
                ends = f" [{number(one.ci[0])}, {number(one.ci[1])}]" if one.ci else ""
                figures = "no value" if one.value is None else f"{number(one.value)}{ends}"
                text += f": {one.why}" if one.value is None else ""
                found[commit] = CommitValue(at, self.is_bad(commit), one.value, one.ci, figures, text)
        return found

    def posterior(self) -> dict[str, float]:
        """Return the probability of each commit that it made the change, after all blocks."""
        commits = self.within(self.bad)
        means = {commit: (one.mean, one.error) for commit, one in self.measured.items()}
        seen = {c: search.BlockMean(m, e) for c, (m, e) in means.items() if m is not None and e is not None}
        within = {commit: frozenset(self.within(commit)) for commit in seen}
        return search.posterior(commits, within, seen, math.log1p(self.compared.size))

    def forecast(self) -> str:
        """Return how many kernels and boots one change takes, and how long that takes on this host."""
        # Two more: with the commit reverted, and with code that is moved alone.
        kernels = search.steps_of(len(self.within(self.bad))) + 2
        with suppress(InputError):  # The run may have been removed.
            snapshot = load(find_runs(self.measured[self.bad].run).runs[0])
            plan, arch = snapshot.plan, snapshot.experiment.machine.arch
            names = {boot.kernel for boot in plan.boots}
            boots = len(names) * self.compared.blocks if self.compared.size else len(plan.boots)
            expected = forecast_of(snapshot.experiment, snapshot.workloads, plan, self._execution.jobs)
            boot_s = (expected.seconds or 0.0) / len(plan.boots)
            build_s = median(Cache(cache_dir()).built(arch, "seconds", variant=True) or [0.0])
            return (
                f"for one change about {kernels} kernels and {kernels * boots} boots: about "
                f"{duration(kernels * (build_s + boots * boot_s))}, at {duration(build_s)} a kernel and "
                f"{duration(boot_s)} a boot, as so far on this host"
            )
        return f"for one change about {kernels} kernels"

    def confirm(self, change: Change) -> Confirmed:
        """Boot a change, and the bad commit without it, three times each, beside a layout twin.

        Where it cannot be reverted, or that does not build, its parent is booted in place of the bad commit.
        """
        last = change.commits[-1]
        if last not in self._kept.confirmed:
            ways = {
                "the bad commit with it reverted": self._walk.without(change.commits, self.bad),
                "its parent, since it cannot be reverted": self._walk.parent(change.commits[0]),
            }
            found = Confirmed()
            for without, tree in ways.items():
                if tree is not None and not found.values:
                    try:
                        found = self._confirmed(change, without, tree)
                    except (BuildError, GuestError, NotBuiltError) as error:
                        found = Confirmed(why=on_one_line(error.message))
            self._kept.confirmed[last] = found
            self._save()
        return self._kept.confirmed[last]

    def _confirmed(self, change: Change, without: str, tree: str) -> Confirmed:
        commits = (change.commits[-1], tree)
        folders = [git.as_patch(self._walk.git_dir, self.good, one, cache_dir()) for one in commits]
        folders += self._moved([folder for folder in folders if folder])
        booted = [folder for folder in folders if folder]
        run, result = self.booted(booted, **({} if self.compared.size else {"seeds": 3}))
        named = dict(zip(booted, result.requested, strict=True))
        good, bad = (self.measured[one].value or 0.0 for one in (self.good, self.bad))
        reverted = bad - change.by if without.startswith("the bad") else change.before
        values, seen = [], []
        for folder, low in zip(folders, (change.before, reverted, good), strict=False):
            # What is not built differs in nothing from the good commit.
            kernel = named[folder] if folder and named[folder] not in result.not_built else BASE
            value, _ = self.compared.figures(result, kernel)
            metric = self.compared.verdict(result, kernel) if self.compared.size else None
            near = None if value is None else _nearer(value, low + change.by, low)
            seen.append(self.compared.is_bad(metric) if metric else near)
            values.append(value)
        boots = max((row.changed.boots for row in result.comparisons), default=0)
        holds = seen == [True, False, False][: len(seen)]
        return Confirmed(without=without, run=run, boots=boots, values=tuple(values), holds=holds)

    def _moved(self, folders: Sequence[Path]) -> list[Path | None]:
        """Return the patch that only moves the code of what others change; none if that is no .c file."""
        variants = {"variants": tuple(map(str, folders))}
        resolved = resolve(self._experiment.model_copy(update=variants))
        twin = layout_twin.request(resolved.base, resolved.series, Sources(cache_dir(), self.reporter))
        files = [("0001-layout-twin.patch", twin.patches[0].read_bytes())] if twin else []
        return [git.store(files, "layout-twin", cache_dir())[0].parent] if files else []

    def within(self, commit: str) -> list[str]:
        """Return the commits that ``commit`` contains and the good one does not, oldest first."""
        asked = ("rev-list", "--reverse", "--topo-order", f"{self.good}..{commit}")
        return git.run(*asked, git_dir=self._walk.git_dir).text.split()

    def subject(self, commit: str) -> str:
        """Return the abbreviated hash and the subject of a commit, as in a ``Fixes:`` line."""
        asked = ("log", "-1", "--abbrev=12", '--format=%h ("%s")', commit)
        return on_one_line(git.run(*asked, git_dir=self._walk.git_dir).text)


def _begun(name: str, experiment: Experiment) -> RunFolder | None:
    """Return the run ``name``, if it is there and names nothing that ``experiment`` does not."""
    # What is asked for is what the user has typed.
    typed = [one.text for one in named.of_experiment(experiment)]
    with suppress(InputError):
        found = find_runs(name) if name and "/" not in name else None
        if found:
            named.need(named.of_runs(found), typed, name, "")
        return found
    return None


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
    reporter = execution.begin("a bisection", ("page",))
    _check(designed, outcome, execution)
    repository, base, first, last = _span(source, good, bad, series, reporter)
    metric = (scripted.metric or [""])[0].partition("=")[0]
    if "=" not in (scripted.metric or [""])[0]:
        scripted = replace(scripted, metric=None)
    wall = designed.clock == "wall"
    rule = {"until": "verdict", "boots": designed.boots or search.MOST_BOOTS}
    design: dict[str, Any] = rule if wall else {"clock": "instructions"}
    asked = Overrides.of(kernels, replace(designed, **design))
    span = ("rev-list", "--count", f"{first}..{last}", "--", *(path or ()))
    count = int(git.read(repository, *span).text or 0)
    if not count:
        what = f"{good or first}..{bad or last} has no commit"
        what += f" that touches {' or '.join(path)}" if path else ""
        raise InputError(what, hint="--good is the older commit, and --path a path from the top of the tree.")
    judged = git.commit(repository, judge) if judge else ""
    (experiment,) = experiments_on(workload, base, asked, scripted, reporter)
    known = [name for each in load_workloads(experiment).values() for name in each.metrics]
    if metric and metric not in known:
        raise InputError.unknown(f"--metric {metric}: {workload} has no such metric", metric, known)
    if wall:
        confidence = {"confidence": search.confidence_of_step(count)}
        experiment = experiment.model_copy(update={"design": experiment.design.model_copy(update=confidence)})
    question = json.dumps([experiment.model_dump_json(), base, last, metric, outcome])
    key = key_of(question.encode())
    folder = runs_dir() / f"bisect-{key}"
    # Not in that folder, which can come from a stranger: git executes hooks and what its configuration names.
    git_dir = cache_dir() / "bisections" / key
    folder.mkdir(parents=True, exist_ok=True)
    with cache_folder.locked(git_dir, reporter, "the same bisection"):
        walk = Walk(repository, git_dir, path or (), first_parent=first_parent)
        judging = Judge(walk, folder, (first, last), experiment, reporter, execution)
        _ends(judging, folder, metric, outcome)
        if judged:
            raise typer.Exit({True: 1, False: 0, None: 125}[judging.is_bad(judged)])
        reporter.note(judging.forecast())
        found = _walked(judging, walk)
        (Entry(folder) / "bisect.log").replace(walk.log + "\n")
        chart = search.chart([*judging.tested().values()], judging.compared.text, judging.compared.unit)
        (drawn,) = draw([chart], "svg", folder)
        facts = as_facts(judging, found, folder) | {"picture": visible(str(drawn))}
    said = page(judging, found, facts)
    publication = Publication("bisect", headline(judging, found), page=said, details=facts)
    shown = page(judging, found, facts, quoted=str)
    execution.publish(publication, lambda: echo(shown, nl=False), lambda: None)


def _check(designed: Designed, outcome: str, execution: options.Execution) -> None:
    if execution.fail_on:
        raise InputError("a bisection has no --fail-on", hint="read its answer with --json.")
    if designed.clock == "both" or designed.until or (designed.clock == "wall" and outcome):
        raise InputError(
            "a bisection takes neither --clock both nor --until, and with --outcome no --clock wall",
            hint="remove these options.",
        )
    if designed.seeds == 1 and not outcome:  # Before the first kernel is built.
        raise InputError("no difference can be measured with one seed", hint="give --seeds 2 or more.")
    kinds = [kind for kind in get_args(FaultKind) if kind != "ok"]
    if outcome and outcome not in kinds:
        raise InputError.unknown(f"--outcome {outcome}: no kernel fails so", outcome, kinds)


def _walked(judging: Judge, walk: Walk) -> list[Change]:
    size, steps = judging.compared.size, search.steps_of(len(judging.within(judging.bad)))
    try:
        with judging.reporter.task("Bisecting", total=steps) as judging.task:
            if size:  # Noise allows one change only: a part of it would need many times the boots.
                found = walk.first_bad(judging.good, judging.bad, judging.is_bad)
                return [Change(tuple(reversed(found)), 1.0, 1 + size)]
            return walk.changes(judging.good, judging.bad, judging.value)
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
        digest = key_of("".join([found.id, *map(file_hash, patches)]).encode())
        target = cache_dir() / "histories" / digest
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
            f"--source {source}: a bisection needs a git tree and two of its commits, or a series",
            hint="write --source git:PATH --good REV --bad REV, or --source debian:6.12 --series FILE.",
        )
    repository = Path(rest).expanduser().absolute()
    first, last = (git.commit(repository, name) for name in (good, bad))
    return repository, f"git:{repository}@{first}", first, last


def _ends(judging: Judge, folder: Path, metric: str, outcome: str) -> None:
    """Measure both ends, and choose what is compared. Raises InputError if they do not differ."""
    kept, bad = Entry(folder) / "compared.json", judging.bad
    if judging.good in judging.measured and bad in judging.measured and kept.exists():
        judging.compared = BisectedValue(**json.loads(kept.content()))
        return
    run, result = judging.result(bad)
    judging.compared = BisectedValue.of(result, metric, outcome)
    judging.keep(bad, run, result)
    if outcome and not judging.measured[bad].value:
        raise InputError(
            f"the bad commit shows no {outcome}",
            hint=f"`kteardown show {run}` lists its boots; name another commit, or more --seeds.",
        )
    kept.replace(json.dumps(vars(judging.compared)))


def as_facts(judging: Judge, found: Sequence[Change], folder: Path) -> dict[str, Any]:
    """Return what was found, for scripts."""
    whole = (judging.measured[judging.bad].value or 0) - (judging.measured[judging.good].value or 0)
    return {
        "compared": vars(judging.compared),
        "good": judging.good,
        "bad": judging.bad,
        "changes": [{**vars(one), "by": one.by, "share": one.by / whole} for one in found],
        "confirmed": [judging.confirm(one).model_dump() for one in found],
        "unexplained_share": 1 - sum(one.by for one in found) / whole,
        "measured": {commit: one.model_dump() for commit, one in judging.measured.items()},
        "posterior": judging.posterior() if judging.compared.size else {},
        "log": visible(str(folder / "bisect.log")),
    }


def headline(judging: Judge, found: Sequence[Change]) -> str:
    """Return the answer in a sentence: the commit with the largest part of the difference."""
    compared = judging.compared
    if not found:
        return f"No commit was found that changes {compared.text}."
    whole = (judging.measured[judging.bad].value or 0) - (judging.measured[judging.good].value or 0)
    largest = max(found, key=lambda change: abs(change.by))
    names = " or ".join(judging.subject(commit) for commit in largest.commits)
    if compared.outcome:
        parts = [f"{compared.outcome} begins with {names}"]
    else:
        step = f"{number(largest.before)} to {number(largest.after)} {compared.unit}".rstrip()
        share = f"{largest.by / whole:.0%} of the difference"
        parts = [f"{names} changes {compared.text} from {step}, {share}"]
    if not judging.confirm(largest).holds:
        parts.append("this is not confirmed")
    if others := len(found) - 1:
        parts.append(f"{others} more {'commit changes' if others == 1 else 'commits change'} it")
    return f"{'; '.join(parts)}."


def page(
    judging: Judge,
    found: Sequence[Change],
    facts: dict[str, Any],
    quoted: Callable[[str], str] = plain,
) -> str:
    """Return the answer as Markdown: the commits found, all that were measured, and how to go on by hand.

    ``quoted`` makes a subject inert.
    """
    compared = judging.compared

    def subject(commit: str) -> str:
        return quoted(judging.subject(commit))

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
        lines.append(f"  {confirmation(judging.confirm(change))}")
    lines += [f"- not explained: {abs(facts['unexplained_share']):.0%}", ""]
    lines += [f"{len(judging.measured)} commits were measured, in their order:", ""]
    lines += [f"    {judging.line()}  o good, # bad, ? no value or uncertain, = perhaps", ""]
    largest = max(one.value or 1e-9 for one in judging.measured.values())
    for one in judging.tested().values():
        bar = "#" * round(_WIDTH * max(one.value or 0.0, 0.0) / largest)
        lines.append(f"    {one.figures:>24} {bar:<{_WIDTH}} {one.text}")
    lines += ["", f"![The measured commits, in their order]({facts['picture']})"]
    return "\n".join([*lines, "", f"To go on by hand: git bisect replay {facts['log']}"]) + "\n"


def confirmation(found: Confirmed) -> str:
    """Return what was booted to confirm a change, and whether it holds."""
    if not found.values:
        return f"not confirmed: {found.why or 'neither its revert nor its parent can be booted'}"
    values = ["no value" if value is None else number(value) for value in found.values]
    moved = f"code moved alone {values[2]}" if len(values) > 2 else "no .c file is changed, so no layout twin"
    how = f"{found.boots} boots each: with it {values[0]}, without it {values[1]} ({found.without})"
    return f"{'confirmed' if found.holds else 'NOT CONFIRMED'}, {how}, {moved}"


def _nearer(value: float, one: float, other: float) -> bool:
    return abs(value - one) < abs(value - other)
