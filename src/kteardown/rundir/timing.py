"""How the time of a run was made, from its records and ``environment.json`` alone."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kteardown.model.record import Record, Settled, TrialEnd
from kteardown.model.timing import LostShares, Made, Timing
from kteardown.rundir.counting import EXACT, Attempt, BootRecords, attempts, boots, trials
from kteardown.rundir.directory import RunDir


def timing_of(run: RunDir, records: Sequence[Record]) -> Timing | None:
    """Return how the time of a run with these records was made; None before its first boot.

    On the instruction clock it does not depend on the host, so that a run which was killed and resumed has
    the same.
    """
    tried = attempts(records)
    if not tried:
        return None
    environment = run.environment()
    sessions = [session["machine"] for session in environment.get("sessions", ())] or [environment["machine"]]
    made = tuple(dict.fromkeys(_made(attempt, sessions) for attempt in tried))
    if made == ("instruction clock",):
        return Timing(made=made)
    ended = [attempt for attempt in tried if attempt.end is not None]
    host = sessions[0]
    cpu, mitigations = host.get("cpu") or {}, host.get("mitigations")
    vulnerable = sum(text.startswith("Vulnerable") for text in (mitigations or {}).values())
    settled = (r.clocksource for attempt in tried for r in attempt.records if isinstance(r, Settled))
    loads = [load for a in ended if a.end is not None for load in (a.start.host_load, a.end.host_load)]
    return Timing(
        made=made,
        hypervisor=host.get("hypervisor"),
        **{"processor" if name == "model" else name: cpu.get(name) for name in _SETTINGS},
        mitigated=None if mitigations is None else len(mitigations) - vulnerable,
        vulnerable=None if mitigations is None else vulnerable,
        clocksource=tuple(dict.fromkeys(name.removesuffix("-early") for name in settled)),
        load=(min(loads), statistics.median(loads), max(loads)) if loads else None,
        placed=tuple(dict.fromkeys(a.end.placed for a in ended if a.end is not None and a.end.placed)),
        lost=_lost(tried, boots(records)),
        lost_limit=next((a.start.lost_limit for a in tried if a.start.lost_limit is not None), None),
    )


_SETTINGS = ("model", "governor", "turbo", "smt", "isolated")


def _made(attempt: Attempt, sessions: Sequence[Mapping[str, Any]]) -> Made:
    acceleration = attempt.start.acceleration
    if acceleration == EXACT:
        return "instruction clock"
    if acceleration != "kvm":
        return "mttcg"
    host = sessions[min(attempt.start.session, len(sessions) - 1)]
    return "nested kvm" if host.get("hypervisor") else "kvm"


def _lost(tried: Sequence[Attempt], ended: Sequence[BootRecords]) -> tuple[LostShares, ...]:
    shares: dict[str, list[float]] = {}
    disturbed, void, kept = Counter[str](), Counter[str](), Counter[str]()
    for attempt in tried:
        for record in attempt.records:
            if isinstance(record, TrialEnd) and record.lost is not None:
                shares.setdefault(attempt.start.kernel, []).append(record.lost.share)
                disturbed[attempt.start.kernel] += bool(record.disturbed)
    for boot in ended:
        for trial in trials(boot.records):
            void[boot.start.kernel] += trial.status == "disturbed"
            kept[boot.start.kernel] += trial.status == "ok"
    return tuple(
        LostShares(
            kernel=kernel,
            trials=len(of),
            median=statistics.median(of),
            most=max(of),
            disturbed=disturbed[kernel],
            void=void[kernel],
            kept=kept[kernel],
        )
        for kernel, of in shares.items()
    )
