"""The records of a script with the values that are read from them, as they come."""

from collections.abc import Iterator, Sequence

from kteardown.model.plan import PlannedTrial
from kteardown.model.record import Record, Sample, TrialEnd
from kteardown.model.script_records import Delta, OutputLine, ScriptEnd
from kteardown.model.workload import unit_of
from kteardown.script.extract import LINES, parse_reading, values
from kteardown.script.tap import tap_failures

_FAILURES = 3
_FAILURE_CHARACTERS = 160
"""Failures of TAP in the detail of a trial, and characters of each."""

_KEPT = 1000
"""Lines of a repetition that a run keeps of each source, besides those that a value was read
from."""
_DELTAS = 10_000
"""Counters of a repetition; those of all files that the agent reads are fewer."""


class LeftBehind:
    """Collects what the scripts of one boot leave behind, and makes samples of it.

    Records of other workloads pass through unchanged. All are such as the agent sends
    (``run.guest_records``): of a script those of one repetition after another. What is collected
    has limits.
    """

    def __init__(self, trials: Sequence[PlannedTrial]) -> None:
        self._trials = {trial.index: trial for trial in trials if trial.script is not None}
        self._failures: dict[int, list[str]] = {}
        self._clear()

    def _clear(self) -> None:
        self._output: list[OutputLine] = []
        self._deltas: list[Delta] = []
        self._lost = 0

    def add(self, record: Record) -> Sequence[Record]:
        """Return the records to keep now: none until a repetition of a script has ended, then all
        of it.

        The end of a trial becomes void if a script printed TAP with a failure. Raises as
        ``extract.values``.
        """
        if isinstance(record, OutputLine):
            self._lost += len(self._output) >= LINES
            self._output += [record] if len(self._output) < LINES else []
            return ()
        if isinstance(record, Delta):
            self._deltas += [record] if len(self._deltas) < _DELTAS else []
            return ()
        trial = self._trials.get(getattr(record, "trial", -1))
        if trial is None:
            return (record,)
        if isinstance(record, ScriptEnd):
            return tuple(self._all_of(trial, record))
        # Where the agent has a metric of the user's name, the user's is meant.
        is_other = isinstance(record, Sample) and record.metric in (trial.script or {})
        return () if is_other else (self._judged(record, trial),)

    def _judged(self, record: Record, trial: PlannedTrial) -> Record:
        failures = self._failures.get(trial.index)
        if not isinstance(record, TrialEnd) or record.status != "ok" or not failures:
            return record
        remaining = [f"and {len(failures) - _FAILURES} more"] if len(failures) > _FAILURES else []
        summary = "; ".join(
            [text[:_FAILURE_CHARACTERS] for text in failures[:_FAILURES]] + remaining
        )
        return record.model_copy(update={"status": "void", "detail": f"a test failed: {summary}"})

    def _all_of(self, trial: PlannedTrial, end: ScriptEnd) -> Iterator[Record]:
        """Yield what a repetition left behind, the samples that were read from it, and its end."""
        output = self._output
        deltas = self._deltas
        lost = self._lost
        self._clear()
        if failures := tap_failures(output):
            self._failures.setdefault(trial.index, []).extend(failures)
        samples = []
        read = set()
        for key, spec in (trial.script or {}).items():
            for value in values(parse_reading(spec), unit_of(key), output, deltas):
                samples.append(
                    Sample(
                        trial=end.trial,
                        repetition=end.repetition,
                        metric=key,
                        value=value.value,
                        warmup=end.repetition < trial.warmup,
                    )
                )
                read.add((value.at_ns, value.line))
        left = {"script": _KEPT, "log": _KEPT}
        for line in output:
            left[line.source] -= 1
            if left[line.source] >= 0 or (line.at_ns, line.text) in read:
                yield line
            else:
                lost += 1
        yield from deltas
        yield from samples
        yield end.model_copy(update={"dropped": end.dropped + lost})
