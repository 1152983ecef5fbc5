"""What a guest may send next: every place that reads the records of a guest asks this module.

A script is root in its guest, and the kernel is a stranger's: both can write to the port of the
agent. So each record is compared with the plan of the boot: the agent runs its trials one after
another, in their order and with their parameters, and reports what their workloads declare, for a
repetition that is planned. What only the lab writes is refused. Of a script the order of all
records is known, since the agent sends them when no process of the script is left.

The first record that does not fit makes the whole boot void: what came before it may be forged as
well.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from kteardown.errors import InputError
from kteardown.model.plan import PlannedBoot, PlannedTrial
from kteardown.model.record import (
    AgentError,
    Alive,
    Buckets,
    Bye,
    Check,
    Hello,
    ProfileStretch,
    Record,
    Sample,
    Settled,
    Stack,
    TrialEnd,
    TrialStart,
    parse,
)
from kteardown.model.script_records import Delta, OutputLine, ScriptEnd, Wait, WaitedStretch
from kteardown.model.workload import Workload
from kteardown.paths import shipped_table
from kteardown.vm.kernel_log import plain_line

_OF_EVERY_SCRIPT = frozenset(shipped_table("script/standard"))
"""Metrics that the agent measures of a script; the others are read from what it prints, by the
lab."""
_COUNTED = shipped_table("inputs/counts")
_OF_THE_LAB = frozenset({"boot", "attempt"})
_OF_THE_LAB_AT_END = _OF_THE_LAB | {"at_s", "lost", "disturbed"}
"""Fields that only the lab adds: to each record, and to the end of a trial."""
_MOST = 1_000_000
"""More samples of a metric, or checks of an invariant, no repetition has: `holder` has one an
operation."""
_CUT = 1000
"""The agent does not cut texts of a record that have fewer characters in all."""
_SHOWN = 200
_AROUND = ("", "checked", "unfinished")
"""The steps of a script's report at which comes what the agent measures around it: counts and a
profile."""


class ForgedError(Exception):
    """A guest sent what the agent would not have sent then."""


@dataclass(frozen=True)
class Reports:
    """The names of what the agent may report of a workload."""

    metrics: frozenset[str] = frozenset()
    histograms: frozenset[str] = frozenset()
    invariants: frozenset[str] = frozenset()
    waits: bool = False
    """Whether it may report what tasks wait for."""


def reports_of(workloads: Mapping[str, Workload]) -> dict[str, Reports]:
    """Return what the agent may report of each workload, by name."""
    return {name: _reports_of(workload) for name, workload in workloads.items()}


def _reports_of(workload: Workload) -> Reports:
    metrics = frozenset((*workload.metrics, *workload.unused))
    invariants = frozenset(workload.invariants)
    if workload.script is not None:
        metrics = _OF_EVERY_SCRIPT | (metrics & _COUNTED["metrics"].keys())
        invariants = frozenset({"ended"}) | (invariants & _COUNTED["invariants"].keys())
    watched = workload.script is not None
    histograms = frozenset((*workload.histograms, *workload.unused))
    return Reports(metrics, histograms, invariants, waits=watched)


def of_agent(trial: PlannedTrial) -> tuple[str, dict[str, str]]:
    """Return the workload of the agent that runs a trial, and its parameters as the agent reads
    them."""
    params = {name: str(value) for name, value in trial.params.items()}
    if trial.script is None:
        return trial.workload, params
    environment = ",".join(f"{name}={value}" for name, value in params.items())
    return "script", {"script": trial.workload, "environment": environment or "-"}


class GuestRecords:
    """The records of one attempt at a boot, in their order. ``reports`` is by the workloads of its
    trials."""

    def __init__(self, boot: PlannedBoot, reports: Mapping[str, Reports]) -> None:
        """Raise InputError if a script shares the boot with a workload whose figures it could then
        forge."""
        self._trials = boot.trials
        self._reports = reports
        names = {trial.workload for trial in boot.trials}
        if len(names) > 1 and any(trial.script is not None for trial in boot.trials):
            raise InputError(
                f"boot {boot.index} runs a script beside other workloads: "
                f"{', '.join(sorted(names))}",
                hint="plan the run anew: a script has boots of its own.",
            )
        self._begun = 0
        """How many trials have begun."""
        self._running: _RunningTrial | None = None
        self._last: Record | None = None

    def next(self, line: bytes) -> Record:
        """Return the next line of the guest as a record. Raises ForgedError."""
        shown = plain_line(line[:_SHOWN].decode(errors="backslashreplace"))
        try:
            record: Record = parse(line)
        except ValidationError:
            raise ForgedError(f"not a record: {shown}") from None
        if wrong := self._wrong(record):
            raise ForgedError(f"{wrong}: {shown}")
        self._last = record
        return record

    def end(self) -> None:
        """Raise ForgedError unless the last record was the last one of the plan."""
        if not isinstance(self._last, Bye):
            raise ForgedError("its records have no end")

    def _wrong(self, record: Record) -> str:
        """Return why a record may not come now; empty if it may."""
        of_the_lab = _OF_THE_LAB_AT_END if isinstance(record, TrialEnd) else _OF_THE_LAB
        if record.model_extra or record.model_fields_set & of_the_lab:
            return "a field that the agent does not write"
        if isinstance(self._last, Bye | AgentError):
            return "a record after the last one"
        if isinstance(record, AgentError):
            return ""
        if isinstance(record, Hello) == (self._last is not None):
            return "hello is the first record, and comes once"
        return self._wrong_after_hello(record)

    def _wrong_after_hello(self, record: Record) -> str:
        match record:
            case Hello():
                return ""
            case Settled():
                return "" if isinstance(self._last, Hello) else "settled comes after hello"
            case TrialStart():
                return self._begin(record)
            case Bye():
                left = self._running or self._begun < len(self._trials)
                return "trials are left" if left or record.trials != len(self._trials) else ""
        running = self._running
        if running is None or getattr(record, "trial", None) != running.trial.index:
            return "it belongs to no running trial"
        if isinstance(record, TrialEnd):
            self._running = None
        return running.wrong(record)

    def _begin(self, record: TrialStart) -> str:
        if self._running or self._begun == len(self._trials):
            return "no trial begins now"
        planned = self._trials[self._begun]
        workload, params = of_agent(planned)
        if (record.trial, record.workload) != (planned.index, workload) or not _same(
            record.params, params
        ):
            return f"trial {planned.index} of {planned.workload} begins now"
        self._begun += 1
        kind = _RunningTrial if planned.script is None else _RunningScript
        self._running = kind(planned, self._reports.get(planned.workload, Reports()))
        return ""


def _same(sent: Mapping[str, int | str], planned: Mapping[str, str]) -> bool:
    texts = {name: str(value) for name, value in sent.items()}
    if sum(map(len, (*planned, *planned.values()))) < _CUT:
        return texts == planned
    return all(planned.get(name, "").startswith(text) for name, text in texts.items())


class _RunningTrial:
    """What the records of the running trial said so far."""

    def __init__(self, trial: PlannedTrial, reports: Reports) -> None:
        self.trial = trial
        self._reports = reports
        self._begin_repetition(0)

    def _begin_repetition(self, number: int) -> None:
        self.repetition = number
        self._count: Counter[tuple[str, str]] = Counter()
        self._lowest: dict[str, int] = {}
        """By histogram, what its next bucket begins with at least."""
        self._samples: int | None = None
        """How many samples of its profile have no stack yet."""
        self._waits: int | None = None
        """How many of its waits have no stack yet."""

    def wrong(self, record: Record) -> str:
        """Return why a record of this trial may not come now; empty if it may."""
        if isinstance(record, Alive):
            return ""
        if isinstance(record, TrialEnd):
            return self._wrong_end(record)
        if why := self._wrong_repetition(getattr(record, "repetition", -1)):
            return why
        rules: dict[type, Callable[[Record], str]] = {
            Sample: self._wrong_sample,
            Buckets: self._wrong_histogram,
            Check: self._wrong_check,
            ProfileStretch: self._wrong_profile,
            Stack: self._wrong_stack,
            WaitedStretch: self._wrong_waits,
            Wait: self._wrong_wait,
        }
        rule = rules.get(type(record), self._wrong_other)
        return rule(record)

    def _wrong_end(self, record: TrialEnd) -> str:
        return ""

    def _wrong_repetition(self, number: int) -> str:
        if not self.repetition <= number < self.trial.warmup + self.trial.repetitions:
            return "its repetition is not the next one"
        if number > self.repetition:
            self._begin_repetition(number)
        return ""

    def _wrong_sample(self, record: Record) -> str:
        assert isinstance(record, Sample)
        if record.warmup != (record.repetition < self.trial.warmup):
            return "its warm-up differs from the plan"
        return self._too_many("metric", record.metric, self._reports.metrics)

    def _wrong_check(self, record: Record) -> str:
        assert isinstance(record, Check)
        return self._too_many("invariant", record.name, self._reports.invariants)

    def _too_many(self, kind: str, name: str, declared: frozenset[str]) -> str:
        if name not in declared:
            return f"the file of the workload declares no such {kind}"
        self._count[kind, name] += 1
        return f"more than {_MOST:,} of one {kind}" if self._count[kind, name] > _MOST else ""

    def _wrong_histogram(self, record: Record) -> str:
        assert isinstance(record, Buckets)
        if record.warmup != (record.repetition < self.trial.warmup):
            return "its warm-up differs from the plan"
        if record.metric not in self._reports.histograms:
            return "the file of the workload declares no such histogram"
        # Several lines are one histogram: each value has one bucket.
        for low, _ in record.buckets:
            if low < self._lowest.get(record.metric, 0):
                return "its buckets do not ascend"
            self._lowest[record.metric] = low + 1
        return ""

    def _wrong_profile(self, record: Record) -> str:
        assert isinstance(record, ProfileStretch)
        if (
            not self.trial.profile_ns
            or record.repetition < self.trial.warmup
            or self._samples is not None
        ):
            return "no profile is planned here"
        self._samples = record.samples
        return ""

    def _wrong_stack(self, record: Record) -> str:
        assert isinstance(record, Stack)
        if self._samples is None or not 0 < record.count <= self._samples:
            return "its profile does not have that many samples"
        self._samples -= record.count
        return ""

    def _wrong_waits(self, record: Record) -> str:
        assert isinstance(record, WaitedStretch)
        # Waits are watched where a profile is planned, and at no other time.
        if not self._reports.waits or not self.trial.profile_ns or self._waits is not None:
            return "no waits are planned here"
        self._waits = record.waits
        return ""

    def _wrong_wait(self, record: Record) -> str:
        assert isinstance(record, Wait)
        if self._waits is None or not 0 < record.count <= self._waits:
            return "no task waited that often"
        self._waits -= record.count
        return ""

    def _wrong_other(self, record: Record) -> str:
        return (
            "only the lab writes it"
            if not hasattr(record, "repetition")
            else "the trial runs no script"
        )


class _RunningScript(_RunningTrial):
    """The same for a script, of which the agent reports each repetition in one order when it has
    ended."""

    def _begin_repetition(self, number: int) -> None:
        super()._begin_repetition(number)
        self._step: str = ""
        """How far the report of the repetition is: samples, output, ended, checked.

        ``unfinished``: the script did not end, or did not begin, and only what the agent measures
        around every repetition is reported.
        """

    def _wrong_end(self, record: TrialEnd) -> str:
        whole = (
            self._step == "checked"
            and self.repetition + 1 == self.trial.warmup + self.trial.repetitions
        )
        return "" if whole or record.status != "ok" else "repetitions are left"

    def _wrong_repetition(self, number: int) -> str:
        if number > self.repetition and (number > self.repetition + 1 or self._step != "checked"):
            return "the repetition before it has not ended"
        return super()._wrong_repetition(number)

    def _wrong_sample(self, record: Record) -> str:
        assert isinstance(record, Sample)
        is_of_script = record.metric in _OF_EVERY_SCRIPT
        steps = ("", "samples") if is_of_script else _AROUND
        if self._step not in steps or self._count["metric", record.metric]:
            return "no sample of a script comes now"
        self._step = self._step or ("samples" if is_of_script else "unfinished")
        return super()._wrong_sample(record)

    def _wrong_check(self, record: Record) -> str:
        assert isinstance(record, Check)
        steps = ("ended",) if record.name == "ended" else _AROUND
        if self._step not in steps or self._count["invariant", record.name]:
            return "no check of a script comes now"
        self._step = "checked" if record.name == "ended" else self._step or "unfinished"
        return super()._wrong_check(record)

    def _wrong_profile(self, record: Record) -> str:
        if self._step not in _AROUND:
            return "the script has not ended"
        self._step = self._step or "unfinished"
        return super()._wrong_profile(record)

    def _wrong_waits(self, record: Record) -> str:
        return super()._wrong_waits(record) if self._step == "ended" else "no waits come now"

    def _wrong_wait(self, record: Record) -> str:
        return super()._wrong_wait(record) if self._step == "ended" else "no waits come now"

    def _wrong_other(self, record: Record) -> str:
        if not isinstance(record, OutputLine | Delta | ScriptEnd):
            return super()._wrong_other(record)
        if self._step not in ("samples", "output"):
            return "no output of a script comes now"
        self._step = "ended" if isinstance(record, ScriptEnd) else "output"
        return ""
