"""Whether published figures still hold, from a few boots: `make confirm`.

    confirm.py [--json] [--workload NAME] [NAME...]

The instruction clock is exact: the same agent, kernel, seed and point count the same on every host.
So each kernel of a result is booted once, with one seed at one point of each workload, alone in its
guest. Later boots are compared with the first ones or, without them, with the published figures:

- ``first``: the first boots, on a tree in which nothing has changed since it was measured. They may
  differ from the published figures, for which a guest ran many points, by what one point leaves to
  the next;
- ``equal``: to the digit what the boots before counted, or what is published;
- ``within``: not equal, but not farther away than one boot may be from the others (``one_boot``);
  the largest difference is named, with the largest difference that is allowed;
- ``stale``: farther away;
- ``not comparable``: this machine has another compiler or source than the one it was measured with;
- ``not confirmed``: a kernel cannot be built, or a guest hangs before its first record.

``results/NAME/confirmed.json`` keeps what was counted, with the commit. Figures of the wall clock
are confirmed only by measuring. Of a hunt, each kind of a find is released in the way of the find,
with the two largest numbers of objects: the cost must grow as published. Boots that several results
share run once, and what has run is kept in ``build/confirm``: what was interrupted goes on. Kernels
that are missing are built.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path

from scipy import stats

from claims import (
    Claim,
    Confirmed,
    Evidence,
    Seen,
    Values,
    confirmable,
    experiments_of,
    options_of,
    write_json,
)
from content_ids import text_id, tree_commit
from hunts import Hunt
from kteardown.analysis.estimate.bootstrap import Boots
from kteardown.cli.options import reporter as reporter_of
from kteardown.errors import KteardownError, LabError
from kteardown.inputs.load import own_sources, programs
from kteardown.kernels import build
from kteardown.kernels.guest_programs import guest_programs
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.judged import Summary
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.point import Point, key
from kteardown.model.record import BASE, ParamValue
from kteardown.model.result import Result
from kteardown.paths import cache_dir
from kteardown.progress import Reporter, SilentReporter
from kteardown.run.boot_job import guest_plan
from kteardown.run.create import plan_boots, settle
from kteardown.run.execute import execute
from kteardown.run.guest_records import reports_of
from kteardown.run.resolve import Resolved, resolve
from kteardown.run.setting import Bootable, Lab
from kteardown.rundir.counting import trials
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown.vm.agent import build_agent, build_hunt_agent
from kteardown.vm.host import qemu_version
from kteardown.vm.qemu import QemuMachine
from kteardown_hunt import flow
from kteardown_hunt.finds import METRICS
from kteardown_hunt.folder import Request
from kteardown_hunt.plan import CONFIRM_SEEDS, REPORTS, Case, Options, plan_of_sizes
from kteardown_hunt.result import Find
from one_boot import RATE, Spread, moderated, spread_of
from results import ROOT, evidence

REPETITIONS = 3
DIGITS = 0.005
"""What a published figure of three digits cannot show."""
EXPONENTS = 0.05
"""What makes no difference to how steep a cost is said to be."""
ORDER = (
    "stale",
    "within",
    "equal",
    "first",
    "not comparable",
    "not confirmed",
    "only by measuring",
)


@dataclass(frozen=True)
class Boot:
    """A plan of one boot, with its kernel and lab. ``place`` names it: its point and its kernel.

    ``percentiles`` are those that are compared, by metric.
    """

    place: str
    plan: Plan
    kernel: KernelImage
    lab: Lab
    percentiles: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The id of everything that decides what it counts."""
        lab, plan, (boot,) = self.lab, self.plan, self.plan.boots
        made_of = (lab.agent_hash, self.kernel.image_hash, qemu_version(lab.arch), lab.kernel_args)
        programs = sorted(path.name for path in lab.programs)
        guest = (plan.cpus, plan.memory_mb, plan.possible_cpus, plan.numa_nodes, boot.machine)
        return text_id(json.dumps([made_of, programs, guest, guest_plan(boot, boot.modules)]))


@dataclass(frozen=True)
class Counted:
    """What a boot counted by metric, or why there is nothing, and how many seconds it took."""

    values: dict[str, float]
    failure: str
    seconds: float


def counted(boot: Boot, folder: Path) -> Counted:
    """What a boot counts; it runs unless ``folder`` has its records. Raises LabError,
    InputError."""
    run = RunDir(folder / boot.key)
    if not run.path.is_dir():
        run = RunDir.create_at(run.path)
    (planned,), image = boot.plan.boots, boot.kernel
    files = {planned.kernel: Bootable(image.image, image.modules, image.optional_modules)}
    with open_writer(run) as log:
        execute(boot.plan, files, boot.lab, log, SilentReporter())
    (ended,) = run.boots()
    if ended.end.outcome == "hang" and ended.end.first_record_s is None:
        # Nothing was counted. QEMU 7.2 can give all turns to one CPU while the others start
        # (METHODOLOGY.md).
        where = ended.end.detail.partition(", 000f")[0]
        raise LabError(
            f"{boot.place} hangs before its first record: {where}", hint="try a newer QEMU."
        )
    found = list(trials(ended.records))
    bad = [
        f"{trial.status}: {trial.detail}" for trial in found if trial.status and not trial.usable
    ]
    if ended.end.outcome != "ok":
        bad.append(f"{ended.end.outcome}: {ended.end.detail}")
    values = {}
    for trial in found:
        # Of a hunt, a boot has several ways and numbers of objects.
        where = (
            f"{trial.params['way']} {trial.params['objects']} " if trial.workload == "hunt" else ""
        )
        for metric, samples in trial.samples.items():
            one = Boots({0: samples})
            values[f"{where}{metric}"] = one.median
            for percent in boot.percentiles.get(metric, ()):
                values[f"{where}{metric}:p{percent:g}"] = one.quantiles(percent / 100)[0]
    return Counted({} if bad else values, "; ".join(bad), ended.end.duration_s)


@dataclass(frozen=True)
class Outcome:
    """What became of one result: one of ``ORDER``, and why."""

    name: str
    state: str
    note: str = ""
    boots: int = 0
    seconds: float = 0


@dataclass(frozen=True)
class _Difference:
    """One figure that differs from the expected one: ``share`` of it, and how much of what is
    allowed."""

    text: str
    share: float
    of_allowed: float


@dataclass(frozen=True)
class _Figure:
    """What was counted, what was expected, and how single boots spread.

    ``boots``: the expected figure is the median of so many; None: it is that of one other boot.
    ``least``: what is always allowed.
    """

    name: str
    value: float
    expected: float
    spread: Spread
    boots: int | None
    least: float

    def difference(self, rate: float) -> _Difference:
        """How far it is from the expected one, if a boot of the same may be farther away at
        ``rate``."""
        apart = abs(self.value - self.expected)
        allowed = max(self.least, self.spread.allowed(rate, self.boots))
        shown = f"{self.name}: {self.value:,.12g} for {self.expected:,.12g}"
        if self.expected:
            change, single = self.value / self.expected - 1, allowed / abs(self.expected)
            shown += (
                f" ({_percent(change):+,g}%; single boots differ by up to {_percent(single):,g}%)"
            )
        share = apart / abs(self.expected) if self.expected else float(apart > 0)
        return _Difference(shown, share, apart / allowed if allowed else math.inf if apart else 0)


def _percent(share: float) -> float:
    """Return a share in per cent, with two digits."""
    return float(f"{share * 100:.2g}")


class Confirming:
    """Confirms results of one tree."""

    def __init__(self, root: Path, reporter: Reporter, jobs: int) -> None:
        self._root, self._reporter, self._jobs = root, reporter, jobs
        self._machine = QemuMachine(reporter.command)
        self._folder = root / "build/confirm"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._commit = tree_commit(root)

    def confirm(self, chosen: Sequence[Evidence]) -> Iterator[Outcome]:
        """Confirm results; yield what became of each as soon as it is known, and keep it."""
        futures: dict[str, Future[Counted]] = {}
        running: list[tuple[Evidence, list[Boot]]] = []
        with ThreadPoolExecutor(self._jobs) as pool:
            try:
                for one in chosen:
                    try:
                        boots = boots_of(one, self._machine, self._reporter)
                    except (KteardownError, ValueError) as error:
                        yield Outcome(one.name, "not confirmed", str(error).splitlines()[0])
                        continue
                    if not boots:
                        boots = "its command measures none of its points any more: measure it"
                    if isinstance(boots, str):
                        yield Outcome(one.name, "not comparable", boots)
                        continue
                    for boot in boots:
                        if boot.key not in futures:
                            futures[boot.key] = pool.submit(counted, boot, self._folder)
                    running.append((one, boots))
                    yield from self._ended(running, futures)
                while running:
                    wait([f for f in futures.values() if not f.done()], return_when=FIRST_COMPLETED)
                    yield from self._ended(running, futures)
            except BaseException:
                self._machine.stop()
                pool.shutdown(cancel_futures=True)
                raise

    def _ended(
        self, running: list[tuple[Evidence, list[Boot]]], futures: Mapping[str, Future[Counted]]
    ) -> Iterator[Outcome]:
        for one, boots in [
            each for each in running if all(futures[boot.key].done() for boot in each[1])
        ]:
            running.remove((one, boots))
            try:
                found = {boot.place: futures[boot.key].result() for boot in boots}
            except KteardownError as error:
                yield Outcome(one.name, "not confirmed", error.message)
                continue
            seconds = round(sum(each.seconds for each in found.values()), 1)
            yield replace(self._keep(one, boots[0].lab, found), boots=len(boots), seconds=seconds)

    def _keep(self, one: Evidence, lab: Lab, found: Mapping[str, Counted]) -> Outcome:
        values = {place: each.values for place, each in found.items()}
        (state, note), first = judged(one, found), reference_of(one)
        confirmed = Confirmed(
            state=state,
            note=note,
            commit=self._commit,
            date=date.today().isoformat(),
            agent=lab.agent_hash,
            ids=confirmable(one.now),
            values=values,
            reference=first if first != values else {},
        )
        write_json(one.folder / "confirmed.json", confirmed)
        return Outcome(one.name, state, note)


def reference_of(one: Evidence) -> Values:
    """What the first boots counted; empty if what is published is the reference."""
    seen = one.confirmed
    return (
        (seen.reference or (seen.values if seen.state in ("first", "equal") else {}))
        if seen
        else {}
    )


def judged(one: Evidence, found: Mapping[str, Counted]) -> tuple[Seen, str]:
    """Whether what was counted is what the reference says, or what is published; and what differs
    most."""
    values = {place: each.values for place, each in found.items()}
    reference = reference_of(one)
    differences = _differences(one, values, reference)
    wrong = [f"{place}: {each.failure}" for place, each in found.items() if each.failure]
    outside = [each for each in differences if each.of_allowed > 1]
    then = confirmable(one.measured.ids) if one.measured else {}
    first = not reference and then == confirmable(one.now)
    if outside and not first:
        wrong.append(max(outside, key=lambda each: each.of_allowed).text)
    if not differences and not wrong:
        wrong.append("none of its figures was counted")
    if wrong:
        return "stale", "; ".join(wrong)
    before = one.confirmed.values if one.confirmed and reference else {}
    if values == before or not any(each.share for each in differences):
        return "equal", ""
    return "first" if first else "within", max(differences, key=lambda each: each.share).text


def boots_of(one: Evidence, machine: QemuMachine, reporter: Reporter) -> list[Boot] | str:
    """The boots that confirm a result, or why it cannot be compared with what this machine boots.

    Builds the kernels and the agent. Raises InputError, BuildError, LabError.
    """
    return (
        _of_hunt(one, machine, reporter)
        if isinstance(one, Hunt)
        else _of_claim(one, machine, reporter)
    )


def _of_claim(one: Evidence, machine: QemuMachine, reporter: Reporter) -> list[Boot] | str:
    assert isinstance(one, Claim)
    resolved, published = settle(resolved_of(one), reporter), one.results["instructions"].kernels
    wanted = [kernel for kernel in resolved.kernels if kernel.name in published]
    images = build.ensure(wanted, cache_dir=cache_dir(), reporter=reporter).images
    for name, image in images.items():
        facts = published[name]
        # From the same source, the same compiler makes another image only of other patches or
        # symbols.
        if (image.source, image.compiler) != (facts.source, facts.compiler):
            here = f"{name} is {image.source} by {image.compiler} here"
            return f"{here}, and was {facts.source} by {facts.compiler}"
    experiment, arch = resolved.experiment, resolved.experiment.machine.arch
    agent = build_agent(
        arch,
        cache=cache_dir(),
        reporter=reporter,
        own=own_sources(resolved.workloads, experiment.folder),
        also="counts" if experiment.design.counts else "",
    )
    names, sources = programs(experiment, resolved.workloads), Sources(cache_dir(), reporter)
    lab = Lab(
        machine=machine,
        agent=agent,
        agent_hash=file_hash(agent),
        arch=arch,
        acceleration="icount",
        reports=reports_of(resolved.workloads),
        kernel_args=experiment.machine.kernel_args,
        programs=guest_programs(names, arch, sources, reporter),
    )
    plan = plan_boots(resolved)
    return [
        Boot(
            f"{_place(point.workload, point.shown)}, {image.name}",
            _alone(plan, point, image.name),
            image,
            lab,
            {name: m.percentiles for name, m in resolved.workloads[point.workload].metrics.items()},
        )
        for point in points_of(one, plan)
        for image in images.values()
    ]


def resolved_of(claim: Claim) -> Resolved:
    """The experiment of a claim on the instruction clock. Raises InputError, ValueError."""
    experiments, switches = experiments_of(claim.root, claim.spec.command)
    exact = next(each for each in experiments if each.design.clock == "instructions")
    return resolve(exact, ablate=switches["ablate"] == "True")


def points_of(claim: Claim, plan: Plan) -> list[Point]:
    """One point of each workload: of those that a table shows the one in the middle, by what base
    counts.

    The last ones cost most; at the first ones, and where there are no objects, a change often does
    not show.
    """
    costs: dict[str, float] = {}
    for c in claim.results["instructions"].comparisons:
        place = _place(c.workload, c.point)
        costs[place] = max(costs.get(place, 0), c.base.median if c.unit == "ns" else 0)
    found: dict[str, list[Point]] = {}
    for point in plan.points:
        if _place(point.workload, point.shown) in costs:
            found.setdefault(point.workload, []).append(point)
    chosen = []
    for points in found.values():
        tables = claim.spec.tables.values()
        shown = [
            point for point in points if any(_shows(table.where, point) for table in tables)
        ] or points
        some = [point for point in shown if 0 not in point.shown.values()] or shown
        ordered = sorted(some, key=lambda point: costs[_place(point.workload, point.shown)])
        chosen.append(ordered[(len(ordered) - 1) // 2])
    return chosen


def _shows(where: Mapping[str, tuple[ParamValue, ...]], point: Point) -> bool:
    return all(point.shown.get(name) in values for name, values in where.items())


def _place(workload: str, point: Mapping[str, ParamValue]) -> str:
    return " ".join([workload, *(f"{name}={value}" for name, value in key(point))])


def _alone(plan: Plan, point: Point, kernel: str) -> Plan:
    """The plan of the first boot of a kernel in which the point is, with the trial at the point
    alone."""
    for boot in plan.boots:
        for trial in boot.trials:
            whole = {
                **boot.machine,
                **trial.params,
            } == point.params and trial.workload == point.workload
            if boot.kernel == kernel and whole:
                few = min(trial.repetitions, REPETITIONS)
                return _only(
                    plan, boot, [trial.model_copy(update={"index": 0, "repetitions": few})]
                )
    raise ValueError(f"the plan has no boot of {kernel} at {_place(point.workload, point.shown)}")


def _only(plan: Plan, boot: PlannedBoot, trials: Sequence[PlannedTrial]) -> Plan:
    alone = boot.model_copy(update={"index": 0, "block": 0, "trials": tuple(trials)})
    return plan.model_copy(update={"boots": (alone,)})


def _of_hunt(hunt: Hunt, machine: QemuMachine, reporter: Reporter) -> list[Boot] | str:
    result, given = hunt.result, options_of(hunt.result.command)[1]
    user = "ordinary" if given["unprivileged"] else "root"
    request = Request(source=result.source, config=tuple(given["config"] or ()), user=user)
    image = flow.kernels_of(request, reporter)[result.source]
    known = hunt.measured.kernels if hunt.measured else {}
    if (
        image.release != result.release
        or known.get(result.source, image.image_hash) != image.image_hash
    ):
        return (
            f"the kernel is {image.release} here, and was {result.release} or another build of it"
        )
    agent = build_hunt_agent(flow.ARCH, cache=cache_dir(), reporter=reporter)
    lab = Lab(agent, flow.ARCH, "icount", REPORTS, machine=machine, agent_hash=file_hash(agent))
    modules = {kind.name: kind.modules for kind in flow.kinds_of(request, reporter) if kind.modules}
    finds = {Case(find.kind, find.way, find.user): find for find in result.finds}
    sizes = {case: find.growth.sizes[-2:] for case, find in finds.items() if find.growth}
    plan = plan_of_sizes(
        sizes, [result.source], [0], Options(budget_minstr=0, user=user, modules=modules)
    )
    return [
        Boot(str(boot.trials[0].params["kind"]), _only(plan, boot, boot.trials), image, lab)
        for boot in plan.boots
    ]


def _differences(one: Evidence, values: Values, reference: Values) -> list[_Difference]:
    """Every published figure of what was booted: what was counted, for the reference or what is
    published."""
    figures: list[_Figure] = []
    if isinstance(one, Hunt):
        figures = list(_of_finds(one.result.finds, values, reference))
    elif isinstance(one, Claim):
        figures = list(_of_comparisons(one.results["instructions"], values, reference))
    # Together they are outside as often as RATE says, whatever the figures of one boot have in
    # common.
    return [figure.difference(RATE / len(figures)) for figure in figures]


def _of_comparisons(result: Result, values: Values, reference: Values) -> Iterator[_Figure]:
    """The figures of a claim: each metric at the points that were booted."""
    spreads = _spreads(result)
    for (place, metric), published in _summaries(result).items():
        value = values.get(place, {}).get(metric)
        if value is not None:
            first = reference.get(place, {}).get(metric)
            expected, boots = (
                (published.compared, published.boots) if first is None else (first, None)
            )
            name, least = f"{metric} of {place}", DIGITS * abs(expected)
            yield _Figure(name, value, expected, spreads[place, metric], boots, least)


def _summaries(result: Result) -> dict[tuple[str, str], Summary]:
    """What is published, by the place and the metric."""
    return {
        (
            f"{_place(c.workload, c.point)}, {kernel}",
            c.metric if c.statistic == "median" else f"{c.metric}:{c.statistic}",
        ): published
        for c in result.comparisons
        for kernel, published in ((BASE, c.base), (c.variant, c.changed))
    }


def _spreads(result: Result) -> dict[tuple[str, str], Spread]:
    """How single boots spread, by the place and the metric. Those of a metric are seen together."""
    found, groups = (
        dict[tuple[str, str], Spread](),
        dict[tuple[str, str], dict[tuple[str, str], Summary]](),
    )
    for (place, metric), published in _summaries(result).items():
        found[place, metric] = spread_of(published.sd, published.n, published.boots)
        # Where the figure is zero, there is no relative spread.
        if published.compared:
            groups.setdefault((place.split()[0], metric), {})[place, metric] = published
    for group in groups.values():
        sizes = [abs(published.compared) for published in group.values()]
        relative = [
            replace(found[name], sd=found[name].sd / size)
            for name, size in zip(group, sizes, strict=True)
        ]
        for name, size, spread in zip(group, sizes, moderated(relative), strict=True):
            found[name] = replace(spread, sd=spread.sd * size)
    return found


def _of_finds(finds: Sequence[Find], values: Values, reference: Values) -> Iterator[_Figure]:
    """The growth of each find at the last doubling."""
    grown = [
        find for find in finds if find.growth and find.cost and find.growth.exponent is not None
    ]
    for find, spread in zip(
        grown, moderated([_spread_of_find(find) for find in grown]), strict=True
    ):
        name = f"exponent of {find.kind}, {find.way} ({find.cost})"
        value, boots = _exponent(find, values), None if find.kind in reference else CONFIRM_SEEDS
        expected = _exponent(find, reference) if boots is None else _published_exponent(find)
        yield _Figure(name, value, expected, spread, boots, EXPONENTS)


def _spread_of_find(find: Find) -> Spread:
    """How the exponents of single seeds spread, from the published interval with its two 95%
    bounds."""
    assert find.growth and find.growth.exponent is not None
    ends = [abs(end - find.growth.exponent) for end in find.growth.exponent_ci if end is not None]
    df = CONFIRM_SEEDS - 1
    return (
        Spread(max(ends) * math.sqrt(CONFIRM_SEEDS) / float(stats.t.isf(0.05, df)), df)
        if ends
        else Spread(0, 0)
    )


def _published_exponent(find: Find) -> float:
    """The exponent between the two largest sizes, by the published costs."""
    assert find.growth and find.growth.exponent is not None
    before, last = (cost or 0 for cost in find.growth.costs[-2:])
    return math.log2(last / before) if min(before, last) > 0 else find.growth.exponent


def _exponent(find: Find, values: Values) -> float:
    """The exponent of the cost of a find between its two largest sizes; 0 if it was not counted."""
    sizes = find.growth.sizes[-2:] if find.growth else ()
    names = [f"{find.way} {size} {METRICS[find.cost or 'sync']}" for size in sizes]
    costs = [values.get(find.kind, {}).get(name, 0) for name in names]
    return math.log2(costs[1] / costs[0]) if min(costs, default=0) > 0 else 0


def chosen(root: Path, names: Sequence[str], workload: str) -> list[Evidence]:
    """The results to confirm, the cheapest first; after them those for which a base kernel must be
    built.

    Raises ValueError.
    """
    known = {one.name: one for one in evidence(root) if one.measured}
    if wrong := [name for name in names if name not in known]:
        raise ValueError(f"there is no result {wrong[0]} that was measured")
    found = [known[name] for name in names] or list(known.values())
    if workload:
        found = [one for one in found if f"workloads/{workload}" in one.now]
    return sorted(found, key=_cost)


def _cost(one: Evidence) -> tuple[bool, int, float]:
    """Whether base kernels are missing, which take minutes; how many kernels are; how long
    measuring took."""
    took = one.measured.duration_s if one.measured else 0
    if isinstance(one, Claim) and "instructions" in one.results:
        try:
            missing = build.missing(resolved_of(one).kernels, cache_dir=cache_dir())
            return any(not kernel.patches for kernel in missing), len(missing), took
        except (KteardownError, ValueError):
            pass
    return True, 0, took


def main() -> int:
    """Confirm what the arguments name, and print what became of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--workload", default="", help="only results of this workload")
    parser.add_argument(
        "--json", action="store_true", help="print what became of each result as JSON"
    )
    given = parser.parse_args()
    reporter, outcomes = reporter_of(verbose=False, quiet=False), list[Outcome]()
    try:
        found = chosen(ROOT, given.names, given.workload)
        wall = "figures of the wall clock, or of a script"
        outcomes += [Outcome(one.name, "only by measuring", wall) for one in found if not one.exact]
        exact = [
            one for one in found if one.exact or (isinstance(one, Claim) and len(one.results) > 1)
        ]
        confirming = Confirming(ROOT, reporter, os.cpu_count() or 1)
        with reporter.task(f"confirming {len(exact)} results", total=len(exact)) as task:
            for number, outcome in enumerate(confirming.confirm(exact), 1):
                outcomes.append(outcome)
                reporter.note(_line(outcome))
                task.update(number, "")
    except (KteardownError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        reporter.note("interrupted; what is confirmed is kept, and the same command goes on")
    outcomes.sort(key=lambda each: ORDER.index(each.state))
    print(
        json.dumps([asdict(each) for each in outcomes], indent=1)
        if given.json
        else _table(outcomes)
    )
    return int(any(outcome.state == "stale" for outcome in outcomes))


def _line(outcome: Outcome) -> str:
    cost = f" ({outcome.boots} boots, {outcome.seconds:.0f} s)" if outcome.boots else ""
    return f"{outcome.state}: {outcome.name}{cost}{': ' if outcome.note else ''}{outcome.note}"


def _table(outcomes: Sequence[Outcome]) -> str:
    counts = ", ".join(
        f"{n} {state}" for state in ORDER if (n := sum(o.state == state for o in outcomes))
    )
    return "\n".join([*map(_line, outcomes), f"{len(outcomes)} results: {counts}"])


if __name__ == "__main__":
    sys.exit(main())
