"""From the records of scripts in a guest to samples, while the guest runs."""

from collections.abc import Sequence

from kteardown.model.plan import PlannedTrial
from kteardown.model.record import Delta, OutputLine, Record, Sample, ScriptEnd
from kteardown.model.workload import unit_of
from kteardown.script.extract import parse_reading, values

_KEPT = 1000
"""Lines of a repetition that a run keeps of each source, besides those that a value was read from."""


class LeftBehind:
    """Collects what the scripts of one boot leave behind, and makes samples of it.

    Records of other workloads pass through unchanged.
    """

    def __init__(self, trials: Sequence[PlannedTrial]) -> None:
        self._trials = {trial.index: trial for trial in trials if trial.script is not None}
        self._output: list[OutputLine] = []
        self._deltas: list[Delta] = []

    def add(self, record: Record) -> Sequence[Record]:
        """Return the records to keep now: none until a repetition of a script has ended, then all of it."""
        if isinstance(record, OutputLine):
            self._output.append(record)
            return ()
        if isinstance(record, Delta):
            self._deltas.append(record)
            return ()
        if not isinstance(record, ScriptEnd) or record.trial not in self._trials:
            return (record,)
        trial, output, deltas = self._trials[record.trial], self._output, self._deltas
        self._output, self._deltas = [], []
        samples, read = [], set()
        for key, spec in (trial.script or {}).items():
            for value in values(parse_reading(spec), unit_of(key), output, deltas):
                warmup = record.repetition < trial.warmup
                samples.append(
                    Sample(
                        trial=record.trial,
                        repetition=record.repetition,
                        metric=key,
                        value=value.value,
                        warmup=warmup,
                    )
                )
                read.add((value.at_ns, value.line))
        kept: list[OutputLine] = []
        left = {"script": _KEPT, "log": _KEPT}
        for line in output:
            left[line.source] -= 1
            if left[line.source] >= 0 or (line.at_ns, line.text) in read:
                kept.append(line)
        dropped = record.dropped + len(output) - len(kept)
        return (*kept, *deltas, *samples, record.model_copy(update={"dropped": dropped}))
