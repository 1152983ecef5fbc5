"""How the time of a run was made, from its records and ``environment.json`` alone, and what
disturbed it."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kteardown.model.record import BASE, LAYOUT, TWIN, Record, Settled, TrialEnd
from kteardown.model.timing import LostShares, Made, Timing
from kteardown.rundir.counting import EXACT, METAL, Attempt, BootRecords, attempts, boots, trials
from kteardown.rundir.directory import RunDir

_SETTINGS = ("model", "governor", "turbo", "smt", "isolated")
_TOO_MANY = 0.2
"""Above this share of void trials a note says what to do."""
_CHANCE = 0.05
NO_LIMIT = "--lost-limit 100%"
"""The option with which no trial is void for the time that it lost."""


def timing_of(run: RunDir, records: Sequence[Record]) -> Timing | None:
    """Return how the time of a run with these records was made; None before its first boot."""
    # On the instruction clock it does not depend on the host, so that a run which was killed and
    # resumed has the same.
    tried = attempts(records)
    if not tried:
        return None
    environment = run.environment()
    sessions = [session["machine"] for session in environment.get("sessions", ())] or [
        environment["machine"]
    ]
    made = tuple(dict.fromkeys(_made(attempt, sessions) for attempt in tried))
    if made == ("instruction clock",):
        return Timing(made=made)
    ended = [attempt for attempt in tried if attempt.end is not None]
    host = sessions[0]
    cpu = host.get("cpu") or {}
    mitigations = host.get("mitigations")
    vulnerable = sum(text.startswith("Vulnerable") for text in (mitigations or {}).values())
    settled = (
        r.clocksource for attempt in tried for r in attempt.records if isinstance(r, Settled)
    )
    in_guests = [a for a in ended if a.start.acceleration != METAL]
    loads = [
        load
        for a in in_guests
        if a.end is not None
        for load in (a.start.host_load, a.end.host_load)
    ]
    return Timing(
        made=made,
        hypervisor=host.get("hypervisor"),
        **{"processor" if name == "model" else name: cpu.get(name) for name in _SETTINGS},
        mitigated=None if mitigations is None else len(mitigations) - vulnerable,
        vulnerable=None if mitigations is None else vulnerable,
        clocksource=tuple(dict.fromkeys(name.removesuffix("-early") for name in settled)),
        load=(min(loads), statistics.median(loads), max(loads)) if loads else None,
        placed=tuple(
            dict.fromkeys(a.end.placed for a in ended if a.end is not None and a.end.placed)
        ),
        lost=_lost(tried, boots(records)),
        lost_limit=next(
            (a.start.lost_limit for a in tried if a.start.lost_limit is not None), None
        ),
    )


def _made(attempt: Attempt, sessions: Sequence[Mapping[str, Any]]) -> Made:
    acceleration = attempt.start.acceleration
    if acceleration == EXACT:
        return "instruction clock"
    host = sessions[min(attempt.start.session, len(sessions) - 1)]
    if acceleration == METAL:
        return "metal guest" if host.get("hypervisor") else "metal"
    if acceleration != "kvm":
        return "mttcg"
    return "nested kvm" if host.get("hypervisor") else "kvm"


def _lost(tried: Sequence[Attempt], ended: Sequence[BootRecords]) -> tuple[LostShares, ...]:
    shares: dict[str, list[float]] = {}
    disturbed = Counter[str]()
    void = Counter[str]()
    kept = Counter[str]()
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


def disturbance_notes(timing: Timing | None) -> list[str]:
    """Return the notes on disturbed trials; empty without any, or if no limit was set."""
    # There is one for each variant whose trials were disturbed more or less often than those of
    # base. The limit is the same for all kernels, so a kernel whose trials exceed it more often
    # loses more time to the host, for example because it wakes up more often. Fisher's exact test,
    # two-sided, with Bonferroni's correction over the variants.
    if timing is None or timing.lost_limit is None or not any(of.disturbed for of in timing.lost):
        return []
    from scipy.stats import fisher_exact

    notes = []
    lost = timing.lost
    void = sum(of.void for of in lost)
    kept = sum(of.kept for of in lost)
    if void > _TOO_MANY * (void + kept):
        notes.append(
            f"{void} of {void + kept} trials are void, because other work of the host took more "
            f"than {timing.lost_limit * 100:g}% of their time in each try: this host is too busy "
            "for the wall clock. End the other work, or see what `kteardown doctor` says of the "
            "wall clock; a higher limit voids fewer (--lost-limit), and the instruction clock does "
            "not depend on the load (--clock instructions)"
        )
    base = [of for of in lost if of.kernel in (BASE, TWIN)]
    variants = [of for of in lost if of.kernel not in (BASE, TWIN, LAYOUT)]
    theirs = sum(of.disturbed for of in base)
    all_of_base = sum(of.trials for of in base)
    for of in variants:
        table = [[of.disturbed, of.trials - of.disturbed], [theirs, all_of_base - theirs]]
        p = float(fisher_exact(table).pvalue) * len(variants)
        if p < _CHANCE:
            notes.append(
                f"{of.kernel}: {of.disturbed} of {of.trials} trials were disturbed, of base "
                f"{theirs} of {all_of_base} (p = {p:.2g}): how much a trial loses depends on the "
                "kernel, and the comparison is of the quieter trials. Measure again without a "
                f"limit ({NO_LIMIT}), and compare"
            )
    return notes
