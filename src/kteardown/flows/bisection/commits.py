"""Measure the commits of a bisection, each as the good one with a patch, and keep what was
measured."""

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError

from kteardown.door import Entry
from kteardown.errors import BuildError, GuestError, InputError, NotBuiltError
from kteardown.flows.bisection import search
from kteardown.flows.bisection.records import Confirmed, Kept, MeasuredCommit
from kteardown.flows.bisection.search import Change, CommitValue, Walk
from kteardown.flows.bisection.value import BisectedValue
from kteardown.flows.runner import Runner
from kteardown.kernels import git, layout_twin
from kteardown.kernels.cache import Cache
from kteardown.kernels.source import Sources
from kteardown.model.experiment import Experiment
from kteardown.model.record import BASE
from kteardown.model.result import Result
from kteardown.paths import cache_dir, key_of
from kteardown.progress import Task
from kteardown.report.forecast_text import duration
from kteardown.report.formatting import number
from kteardown.run import named
from kteardown.run.forecast import forecast_of
from kteardown.run.resolve import resolve
from kteardown.rundir.find import RunFolder, find_runs
from kteardown.rundir.snapshot import load
from kteardown.visible import on_one_line


class MeasuredCommits:
    """Measures commits as the good one with a patch, and keeps what was measured in ``folder``."""

    def __init__(
        self,
        walk: Walk,
        folder: Path,
        ends: tuple[str, str],
        experiment: Experiment,
        runner: Runner,
    ) -> None:
        self._walk, self._experiment = walk, experiment
        self.good, self.bad = ends
        self.reporter = runner.reporter
        self._runner = runner
        self.task = Task()
        self._file = Entry(folder) / "measured.json"
        self._kept = Kept()
        with suppress(OSError, ValidationError):
            self._kept = Kept.model_validate_json(self._file.content())
        self.measured = self._kept.measured
        self.compared = BisectedValue()

    def result(self, commit: str) -> tuple[str, Result]:
        """Return the run of a commit beside the good one, and its result. Raises all that a run
        raises."""
        folder = git.as_patch(self._walk.git_dir, self.good, commit, cache_dir())
        if folder is None:
            raise NotBuiltError.of(f"the change from {self.good[:12]} to {commit[:12]}")
        return self.booted([folder])

    def booted(self, folders: Sequence[Path], **design: int) -> tuple[str, Result]:
        """Build and boot the good commit with each of some patches; return the name and result of
        the run.

        ``design`` replaces a part of the design. Raises all that a run raises.
        """
        variants = tuple(map(str, folders))
        more = design | ({"until": self.compared.until} if self.compared.size else {})
        update = {"variants": variants, "design": self._experiment.design.model_copy(update=more)}
        experiment = self._experiment.model_copy(update=update)
        # A run that was killed goes on.
        key = key_of(experiment.model_dump_json().encode())
        run = begun_run(self._kept.begun.get(key, ""), experiment)
        if run is None:
            run = self._runner.start([experiment])
            self._kept.begun[key] = run.name
            self._save()
        return run.name, self._runner.boot_rest(run, repeat=True).result

    def value(self, commit: str) -> float | None:
        """Return the value of a commit; None if it does not build, or does not boot as far as is
        needed."""
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
                self.measured[commit] = MeasuredCommit(why=on_one_line(error.message))
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
            more |= {
                "mean": math.log(metric.ratio),
                "error": metric.spread / math.sqrt(metric.boots),
            }
        faults = "; ".join(fault.message for fault in result.broken(variant))
        changed_value, ci = self.compared.figures(result, variant)
        self.measured[commit] = MeasuredCommit(
            value=changed_value, why=on_one_line(faults), run=run, ci=ci, **more
        )
        if self.good not in self.measured:
            value, ci = self.compared.figures(result, BASE)
            itself = MeasuredCommit(value=value, run=run, ci=ci, is_bad=False, mean=0.0, error=1e-6)
            self.measured[self.good] = itself
        self._save()

    def _save(self) -> None:
        self._file.replace(self._kept.model_dump_json(indent=1))

    def is_bad(self, commit: str) -> bool | None:
        """Return whether a commit has more than half of the change, or on the wall clock the
        change.

        None if it has no value, or if its blocks do not say.
        """
        value, before, after = map(self.value, (commit, self.good, self.bad))
        if self.compared.size or value is None or before is None or after is None:
            return self.measured[commit].is_bad
        return _nearer(value, after, before)

    def show(self, commit: str) -> None:
        """Report what a commit was measured to be, all that were, and where the change may still
        be."""
        tested = self.tested().get(commit)
        if tested is None:  # `git bisect run` asked for a commit that is not between the ends.
            return
        word = {True: "bad", False: "good", None: "uncertain, and skipped"}[tested.is_bad]
        parts = (
            sorted(self.posterior().items(), key=lambda part: -part[1])
            if self.compared.size
            else []
        )
        most = ", ".join(f"{share:.0%} {self.subject(suspect)}" for suspect, share in parts[:3])
        likely = f"; most probable: {most}" if parts else ""
        self.reporter.note(f"{word}: {tested.figures} {tested.text}{likely}")
        self.task.update(len(self.measured) - 2, f"{self.line()}{likely}")

    def line(self) -> str:
        """Return the history on one line, in real time with the places at which the change may
        still be."""
        shares = self.posterior().values() if self.compared.size else ()
        left = [at for at, share in enumerate(shares, 1) if share > 0.001]
        return search.line(self.tested().values(), len(self.within(self.bad)), left)

    def tested(self) -> dict[str, CommitValue]:
        """Return what was measured, in the order of history, a commit after its parents."""
        values = {}
        for at, commit in enumerate([self.good, *self.within(self.bad)]):
            if commit in self.measured:
                measured = self.measured[commit]
                text = self.subject(commit)
                ends = (
                    f" [{number(measured.ci[0])}, {number(measured.ci[1])}]" if measured.ci else ""
                )
                figures = (
                    "no value" if measured.value is None else f"{number(measured.value)}{ends}"
                )
                text += f": {measured.why}" if measured.value is None else ""
                values[commit] = CommitValue(
                    at, self.is_bad(commit), measured.value, measured.ci, figures, text
                )
        return values

    def posterior(self) -> dict[str, float]:
        """Return the probability of each commit that it made the change, after all blocks."""
        commits = self.within(self.bad)
        means = {
            commit: (measured.mean, measured.error) for commit, measured in self.measured.items()
        }
        block_means = {
            c: search.BlockMean(m, e)
            for c, (m, e) in means.items()
            if m is not None and e is not None
        }
        within = {commit: frozenset(self.within(commit)) for commit in block_means}
        return search.posterior(commits, within, block_means, math.log1p(self.compared.size))

    def forecast(self) -> str:
        """Return how many kernels and boots one change takes, and how long that takes on this
        host."""
        # Two more: with the commit reverted, and with code that is moved alone.
        kernels = search.steps_of(len(self.within(self.bad))) + 2
        with suppress(InputError):  # The run may have been removed.
            snapshot = load(find_runs(self.measured[self.bad].run).runs[0])
            plan = snapshot.plan
            arch = snapshot.experiment.machine.arch
            names = {boot.kernel for boot in plan.boots}
            boots = len(names) * self.compared.blocks if self.compared.size else len(plan.boots)
            expected = forecast_of(snapshot.experiment, snapshot.workloads, plan, self._runner.jobs)
            boot_s = (expected.seconds or 0.0) / len(plan.boots)
            build_s = median(Cache(cache_dir()).built(arch, "seconds", variant=True) or [0.0])
            return (
                f"one change takes about {kernels} kernels and {kernels * boots} boots: about "
                f"{duration(kernels * (build_s + boots * boot_s))}, at {duration(build_s)} a "
                f"kernel and {duration(boot_s)} a boot, as so far on this host"
            )
        return f"one change takes about {kernels} kernels"

    def confirm(self, change: Change) -> Confirmed:
        """Boot a change, and the bad commit without it, three times each, beside a layout twin.

        Where it cannot be reverted, or that does not build, its parent is booted in place of the
        bad commit.
        """
        last = change.commits[-1]
        if last not in self._kept.confirmed:
            ways = {
                "the bad commit with it reverted": self._walk.without(change.commits, self.bad),
                "its parent, since it cannot be reverted": self._walk.parent(change.commits[0]),
            }
            confirmed = Confirmed()
            for without, tree in ways.items():
                if tree is not None and not confirmed.values:
                    try:
                        confirmed = self._confirmed(change, without, tree)
                    except (BuildError, GuestError, NotBuiltError) as error:
                        confirmed = Confirmed(why=on_one_line(error.message))
            self._kept.confirmed[last] = confirmed
            self._save()
        return self._kept.confirmed[last]

    def _confirmed(self, change: Change, without: str, tree: str) -> Confirmed:
        commits = (change.commits[-1], tree)
        folders = [
            git.as_patch(self._walk.git_dir, self.good, commit, cache_dir()) for commit in commits
        ]
        folders += self._moved([folder for folder in folders if folder])
        booted = [folder for folder in folders if folder]
        run, result = self.booted(booted, **({} if self.compared.size else {"seeds": 3}))
        kernels = dict(zip(booted, result.requested, strict=True))
        good, bad = (self.measured[commit].value or 0.0 for commit in (self.good, self.bad))
        reverted = bad - change.by if without.startswith("the bad") else change.before
        values = []
        are_bad = []
        for folder, low in zip(folders, (change.before, reverted, good), strict=False):
            # What is not built differs in nothing from the good commit.
            kernel = kernels[folder] if folder and kernels[folder] not in result.not_built else BASE
            value, _ = self.compared.figures(result, kernel)
            metric = self.compared.verdict(result, kernel) if self.compared.size else None
            near = None if value is None else _nearer(value, low + change.by, low)
            are_bad.append(self.compared.is_bad(metric) if metric else near)
            values.append(value)
        boots = max((row.changed.boots for row in result.comparisons), default=0)
        holds = are_bad == [True, False, False][: len(are_bad)]
        return Confirmed(without=without, run=run, boots=boots, values=tuple(values), holds=holds)

    def _moved(self, folders: Sequence[Path]) -> list[Path | None]:
        """Return the patch that only moves the code of what others change; none if that is no .c
        file."""
        variants = {"variants": tuple(map(str, folders))}
        resolved = resolve(self._experiment.model_copy(update=variants))
        twin = layout_twin.request(
            resolved.base, resolved.series, Sources(cache_dir(), self.reporter)
        )
        files = [("0001-layout-twin.patch", twin.patches[0].read_bytes())] if twin else []
        return [git.store(files, "layout-twin", cache_dir())[0].parent] if files else []

    def within(self, commit: str) -> list[str]:
        """Return the commits that ``commit`` contains and the good one does not, oldest first."""
        command = ("rev-list", "--reverse", "--topo-order", f"{self.good}..{commit}")
        return git.run(*command, git_dir=self._walk.git_dir).text.split()

    def subject(self, commit: str) -> str:
        """Return the abbreviated hash and the subject of a commit, as in a ``Fixes:`` line."""
        command = ("log", "-1", "--abbrev=12", '--format=%h ("%s")', commit)
        return on_one_line(git.run(*command, git_dir=self._walk.git_dir).text)


def begun_run(name: str, experiment: Experiment) -> RunFolder | None:
    """Return the run ``name``, if it is there and names nothing that ``experiment`` does not."""
    # What is asked for is what the user has typed.
    typed = [item.text for item in named.of_experiment(experiment)]
    with suppress(InputError):
        folder = find_runs(name) if name and "/" not in name else None
        if folder:
            named.need(named.of_runs(folder), typed, name, "")
        return folder
    return None


def _nearer(value: float, target: float, alternative: float) -> bool:
    return abs(value - target) < abs(value - alternative)
