"""The claims of a posting next to what was measured here."""

from collections.abc import Sequence

from kteardown.inputs.published import Posting
from kteardown.model.judged import Verdict
from kteardown.model.result import Result
from kteardown.report.charts import written
from kteardown.report.formatting import (
    change_of,
    number,
    percent,
)
from kteardown.report.metrics import shipped_name
from kteardown.report.table import Block, Table, Text
from kteardown_replicate.claims import Finding, Replicated

TONES: dict[Finding, Verdict | None] = {
    "replicates": "better",
    "smaller": "inconclusive",
    "absent": "same",
    "opposite": "worse",
    "undecided": None,
}
_CLAIM_UNITS = ("s", "ms", "us", "ns")
CLAIM_COLUMNS = ("claim", "posted", "claimed", "here", "finding", "why")


def replication_table(
    posting: Posting, claims: Sequence[Replicated], result: Result | None
) -> Table:
    """Return the table of all claims of a posting; ``result`` is that of the posted patch."""
    rows: list[list[Text]] = []
    for claim in claims:
        texts = claim_row(claim, posting)
        tones = {"finding": TONES[claim.finding]}
        rows.append([(texts[name], tones.get(name)) for name in CLAIM_COLUMNS])
    source = posting.source
    title = f'Claims of "{source.title}", {source.posted}'
    return Table(
        title, Block.of(CLAIM_COLUMNS, rows, left=CLAIM_COLUMNS), notes=claim_notes(posting, result)
    )


def claim_row(replicated: Replicated, posting: Posting) -> dict[str, str]:
    """Return the texts of one claim, by column."""
    claim = replicated.claim
    what = replicated.claim.what
    # The claims of a figure have the key of its metric, here in words.
    if posting.run is not None and claim.metric and what.startswith(claim.metric):
        what = shipped_name(posting.run.workload, claim.metric) + what.removeprefix(claim.metric)
    texts = (
        f"{what} ({claim.machine})" if claim.machine else what,
        # As it was posted: all its digits, and separators of thousands.
        f"{claim.before:,.10g} -> {claim.after:,.10g} {claim.unit}",
        f"{claim.after - claim.before:+.3g} {claim.unit}"
        if claim.difference
        else percent(claim.ratio),
        _here(replicated),
        replicated.finding,
        replicated.reason,
    )
    return dict(zip(CLAIM_COLUMNS, texts, strict=True))


def claim_notes(posting: Posting, result: Result | None) -> tuple[str, ...]:
    """Return how the measurement differs from the posting."""
    times = any(claim.unit in _CLAIM_UNITS for claim in posting.all_claims)
    return tuple(
        written("compared_with", posting, result, times, of=("kteardown_replicate", "texts"))
    )


def _here(replicated: Replicated) -> str:
    ours = replicated.ours
    if ours.change is None:
        return "-"
    if not replicated.claim.difference:
        return change_of(ours.change, ours.ci)
    ends = f" [{number(ours.ci[0])}, {number(ours.ci[1])}]" if ours.ci else ""
    return f"{number(ours.change)}{ends} {replicated.claim.unit}"
