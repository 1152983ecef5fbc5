"""Whether a posted claim replicates: the claimed change against the interval of ours.

Both are ratios, after / before and changed / base, so units and clocks may differ, and are compared
on the log scale. A claim about what one more object costs may be a difference instead. The interval
is divided by the claimed change: 1 is as large as claimed, 0 no change, and -1 as large in the
other direction. findings/replications.md has the rules.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from kteardown.inputs.published import Claim, Posting
from kteardown.model.record import BASE
from kteardown.model.result import Result

Finding = Literal["replicates", "smaller", "absent", "opposite", "undecided"]
FINDINGS: tuple[Finding, ...] = get_args(Finding)
NEARLY = 0.8
"""An interval that is above this share of the claimed change everywhere replicates it."""
MARGIN = 0.02
"""The margin of no change, where the result does not have one."""


@dataclass(frozen=True)
class MeasuredClaim:
    """What we measured at the point of a claim, or why there is nothing.

    ``change`` is changed / base, or changed - base for a claim about a difference; ``ci`` is its
    interval.
    """

    change: float | None = None
    ci: tuple[float, float] | None = None
    margin: float = MARGIN
    """The margin of no change: of the ratio, or in the unit of the difference."""
    missing: str = ""


@dataclass(frozen=True)
class Replicated:
    """A claim with what we measured there, and what follows."""

    claim: Claim
    ours: MeasuredClaim
    finding: Finding
    reason: str


def judge(claim: Claim, ours: MeasuredClaim) -> tuple[Finding, str]:
    """Return whether a claim replicates, and why in a few words."""
    if ours.ci is None or (ours.ci[0] <= 0 and not claim.difference):
        return "undecided", ours.missing or "there is no interval"
    before, after = claim.least
    least = after - before
    claimed = claim.after - claim.before
    if min(before, after) <= 0 or least * claimed < 0 or (least == 0 and claimed != 0):
        return "undecided", "the claim is within the resolution of its own figures"
    if claim.difference:
        return compare(least, ours.ci, ours.margin)
    low, high = ours.ci
    return compare(
        math.log(after / before), (math.log(low), math.log(high)), math.log1p(ours.margin)
    )


def compare(claimed: float, ours: tuple[float, float], edge: float) -> tuple[Finding, str]:
    """Return the finding for a change ``claimed`` and an interval of ours; no change is -edge to
    edge."""
    within = -edge <= ours[0] and ours[1] <= edge
    if abs(claimed) <= edge:
        return _no_change(ours, within)
    if within:
        return "absent", "no change"
    low, high = sorted(end / claimed for end in ours)
    if high < 0:
        return "opposite", "a change in the other direction"
    if low <= 0:
        more = "" if high >= 1 else ", and excludes the claimed one"
        return "undecided", f"the interval includes no change{more}"
    if high >= 1 or low >= NEARLY:
        return "replicates", _size(low, high)
    return "smaller", _size(low, high)


def replicate(posting: Posting, result: Result | None, size: str = "") -> list[Replicated]:
    """Return every claim of ``posting`` with its finding; ``result`` is that of the posted patch.

    ``size``: the parameter of a script in place of the one in the posting.
    """
    findings = []
    for posted in posting.all_claims:
        claim = _about(posted, size) if size else posted
        ours = _measured(claim, posting, result)
        finding, reason = judge(claim, ours)
        findings.append(Replicated(claim, ours, finding, reason))
    return findings


def _about(claim: Claim, size: str) -> Claim:
    """Return ``claim`` with ``size`` as its parameter; unchanged if it has several."""
    names = [name for name in claim.point if name != "cpus"]
    if len(names) > 1:
        return claim
    point = {size if name in names else name: value for name, value in claim.point.items()}
    return claim.model_copy(update={"point": point, "per": size if claim.per else ""})


def _no_change(ours: tuple[float, float], within: bool) -> tuple[Finding, str]:
    if within:
        return "replicates", "no change was claimed, and there is none"
    if ours[0] > 0 or ours[1] < 0:
        return "opposite", "no change was claimed, and there is one"
    return "undecided", "the interval includes no change, and changes beyond the margin"


def _size(low: float, high: float) -> str:
    texts = dict.fromkeys(f"{end:.2f}" for end in (low, high))
    return f"{' to '.join(texts)} {'times' if low >= 1 else 'of'} the claimed change"


def _measured(claim: Claim, posting: Posting, result: Result | None) -> MeasuredClaim:
    why = _why_not(claim, posting, result)
    if why or result is None:
        return MeasuredClaim(missing=why)
    variant = _variants(result)[0]
    if claim.per:
        return _slope(claim, result, variant)
    wanted = (variant, claim.metric, "median")
    at = [c for c in result.comparisons if (c.variant, c.metric, c.statistic) == wanted]
    matching = [c for c in at if claim.point.items() <= c.point.items()]
    if len(matching) != 1:
        return MeasuredClaim(
            missing="not measured at this point" if not matching else "measured at several points"
        )
    c = matching[0]
    if c.outside == "contradicts":
        return MeasuredClaim(c.ratio, missing=c.reason)
    return MeasuredClaim(c.ratio, c.ci, c.same_within or MARGIN, c.reason)


def _why_not(claim: Claim, posting: Posting, result: Result | None) -> str:
    """Return why a claim is not compared; empty if it is."""
    cpus = claim.point.get("cpus", 1)
    if claim.cannot or posting.cannot:
        return claim.cannot or "the posting cannot be run"
    if not claim.metric or result is None:
        return "not measured" if claim.metric else "no workload measures it"
    if result.clock == "instructions" and cpus != 1:
        return f"the claim is about {cpus} CPUs at once, which the instruction clock does not show"
    return "" if _variants(result) else "the kernel with the patch is broken"


def _variants(result: Result) -> list[str]:
    return [name for name in result.requested if not result.broken(name)]


def _slope(claim: Claim, result: Result, variant: str) -> MeasuredClaim:
    wanted = (claim.metric, claim.per)
    laws = [law for law in result.laws if (law.metric, law.param) == wanted]
    laws = [law for law in laws if claim.point.items() <= law.point.items()]
    base, changed = ([law for law in laws if law.kernel == kernel] for kernel in (BASE, variant))
    if len(base) != 1 or len(changed) != 1:
        return MeasuredClaim(missing="there are no slopes to compare")
    if changed[0].outside == "contradicts":
        return MeasuredClaim(changed[0].ratio, missing=changed[0].reason)
    if not claim.difference:
        return MeasuredClaim(changed[0].ratio, changed[0].ratio_ci, MARGIN, changed[0].reason)
    slopes = [(law.per_unit, law.per_unit_ci) for law in (*base, *changed)]
    (before, before_ci), (after, after_ci) = slopes
    if before is None or before_ci is None or after is None or after_ci is None:
        return MeasuredClaim(missing="a slope has no interval")
    low = math.hypot(after - after_ci[0], before_ci[1] - before)
    high = math.hypot(after_ci[1] - after, before - before_ci[0])
    return MeasuredClaim(
        after - before, (after - before - low, after - before + high), MARGIN * abs(before)
    )
