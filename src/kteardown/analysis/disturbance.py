"""Whether trials that other work of the host disturbed were too many, or depended on the kernel."""

from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.timing import Timing

_TOO_MANY = 0.2
"""Above this share of void trials a note says what to do."""
_CHANCE = 0.05
NO_LIMIT = "--lost-limit 100%"
"""The option with which no trial is void for the time that it lost."""


def disturbance_notes(timing: Timing | None) -> list[str]:
    """Return the notes on disturbed trials; empty without any, or if no limit was set.

    There is one for each variant whose trials were disturbed more or less often than those of base. The
    limit is the same for all kernels, so a kernel whose trials exceed it more often loses more time to the
    host, for example because it wakes up more often. Fisher's exact test, two-sided, with Bonferroni's
    correction over the variants.
    """
    if timing is None or timing.lost_limit is None or not any(of.disturbed for of in timing.lost):
        return []
    from scipy.stats import fisher_exact

    notes, lost = [], timing.lost
    void, kept = sum(of.void for of in lost), sum(of.kept for of in lost)
    if void > _TOO_MANY * (void + kept):
        notes.append(
            f"{void} of {void + kept} trials are void, because other work of the host took more than "
            f"{timing.lost_limit * 100:g}% of their time in each try: this host is too busy for the wall "
            "clock. End the other work, or see what `kteardown doctor` says of the wall clock; a higher "
            "limit voids fewer (--lost-limit), and the instruction clock does not depend on the load "
            "(--clock instructions)"
        )
    base = [of for of in lost if of.kernel in (BASE, TWIN)]
    variants = [of for of in lost if of.kernel not in (BASE, TWIN, LAYOUT)]
    theirs, all_of_base = sum(of.disturbed for of in base), sum(of.trials for of in base)
    for of in variants:
        table = [[of.disturbed, of.trials - of.disturbed], [theirs, all_of_base - theirs]]
        p = float(fisher_exact(table).pvalue) * len(variants)
        if p < _CHANCE:
            notes.append(
                f"{of.kernel}: {of.disturbed} of {of.trials} trials were disturbed, of base {theirs} of "
                f"{all_of_base} (p = {p:.2g}): how much a trial loses depends on the kernel, and the "
                "comparison is of the quieter trials. Measure again without a limit "
                f"({NO_LIMIT}), and compare"
            )
    return notes
