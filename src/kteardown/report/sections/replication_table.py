"""The table of a replication: what was claimed, what was measured here, and what follows."""

from collections.abc import Sequence

from kteardown.analysis.replication import Finding, Replicated
from kteardown.inputs.published import Claim, Posting
from kteardown.model.result import Result, Verdict
from kteardown.report.formatting import change_of, number, percent
from kteardown.report.metric_names import shipped_name
from kteardown.report.table import Block, Table, Text

TONES: dict[Finding, Verdict | None] = {
    "replicates": "better",
    "smaller": "inconclusive",
    "absent": "same",
    "opposite": "worse",
    "undecided": None,
}
_TIMES = ("s", "ms", "us", "ns")
COLUMNS = ("claim", "posted", "claimed", "here", "finding", "why")


def replication_table(posting: Posting, found: Sequence[Replicated], result: Result | None) -> Table:
    """Return the table of all claims of a posting; ``result`` is that of the posted patch."""
    rows: list[list[Text]] = []
    for one in found:
        texts = row(one, posting)
        tones = {"finding": TONES[one.finding]}
        rows.append([(texts[name], tones.get(name)) for name in COLUMNS])
    source = posting.source
    title = f'Claims of "{source.title}", {source.posted}'
    return Table(title, Block.of(COLUMNS, rows, left=COLUMNS), notes=notes(posting, result))


def row(one: Replicated, posting: Posting) -> dict[str, str]:
    """Return the texts of one claim, by column."""
    claim = one.claim
    on = f" ({claim.machine})" if claim.machine else ""
    texts = (
        f"{_what(claim, posting)}{on}",
        f"{number_of(claim.before)} -> {number_of(claim.after)} {claim.unit}",
        claimed_change(claim),
        _here(one),
        one.finding,
        one.reason,
    )
    return dict(zip(COLUMNS, texts, strict=True))


def _what(claim: Claim, posting: Posting) -> str:
    """Return what a claim is about: the claims of a figure have the key of its metric, here in words."""
    if posting.run is None or not claim.metric or not claim.what.startswith(claim.metric):
        return claim.what
    return shipped_name(posting.run.workload, claim.metric) + claim.what.removeprefix(claim.metric)


def notes(posting: Posting, result: Result | None) -> tuple[str, ...]:
    """Return how the measurement differs from the posting."""
    found = [f"undecided: {posting.cannot}"] if posting.cannot else []
    if posting.source.machine:
        found.append(f"posted for: {posting.source.machine}")
    if posting.run and posting.run.differs:
        found.append(f"here: {posting.run.differs}")
    times = any(claim.unit in _TIMES for claim in posting.all_claims)
    if times and result is not None and result.clock == "instructions":
        found.append("claims about time are compared as ratios with ratios of instruction counts")
    if result is not None:
        found.append("shares of a claimed change are on the log scale")
    return tuple(found)


def claimed_change(claim: Claim) -> str:
    """Return the claimed change as a text: in percent, or in the unit of a difference."""
    if claim.difference:
        return f"{claim.after - claim.before:+.3g} {claim.unit}"
    return percent(claim.ratio)


def number_of(value: float) -> str:
    """Return a posted value as it was posted: all its digits, and separators of thousands."""
    return f"{value:,.10g}"


def _here(one: Replicated) -> str:
    ours = one.ours
    if ours.change is None:
        return "-"
    if not one.claim.difference:
        return change_of(ours.change, ours.ci)
    ends = f" [{number(ours.ci[0])}, {number(ours.ci[1])}]" if ours.ci else ""
    return f"{number(ours.change)}{ends} {one.claim.unit}"
