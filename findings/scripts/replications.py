"""The tables of ``findings/replications.md``: what became of the claims of each posting."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from claims import Claim
from kteardown.inputs.published import Posting, posting_names, read_posting
from kteardown.model.result import Result
from kteardown_replicate.claims import FINDINGS, replicate
from kteardown_replicate.table import CLAIM_COLUMNS, claim_notes, claim_row
from markdown_table import markdown


def posting_of(claim: Claim) -> Posting | None:
    """The posting that a claim replicates; None if its command is another one."""
    _, verb, *arguments = shlex.split(claim.spec.command)
    return (
        read_posting(claim.root / "postings" / f"{arguments[0]}.toml")
        if verb == "replicate"
        else None
    )


def findings(claim: Claim, result: Result) -> str:
    """The table of one replication, and how it differs from the posting."""
    posting = posting_of(claim)
    if posting is None:
        raise ValueError(f"results/{claim.name}: the command replicates no posting")
    lines = [list(claim_row(one, posting).values()) for one in replicate(posting, result)]
    remarks = "; ".join(claim_notes(posting, result))
    return (
        f"{markdown([CLAIM_COLUMNS, *lines], len(CLAIM_COLUMNS))}\n"
        "\n"
        f"{remarks[:1].upper()}{remarks[1:]}."
    )


def overview(root: Path, claims: Sequence[Claim]) -> str:
    """One line for each posting and each result of it: how many of its claims have which
    finding."""
    lines = [["posting", *FINDINGS, "command, or why it is not run"]]
    for name in posting_names():
        posting = read_posting(root / "postings" / f"{name}.toml")
        measured = [c for c in claims if c.results and (of := posting_of(c)) and of.name == name]
        results = [(c.spec.command, result) for c in measured for result in c.results.values()]
        lines += [_line(posting, command, result) for command, result in results] or [
            _line(posting)
        ]
    return markdown(lines, 1, left={len(lines[0]) - 1})


def _line(posting: Posting, command: str = "", result: Result | None = None) -> list[str]:
    found = [one.finding for one in replicate(posting, result)]
    numbers = [str(found.count(finding) or "") for finding in FINDINGS]
    why = f"`{command}`" if command else posting.cannot or _reason(posting)
    return [_link(posting), *numbers, why]


def _reason(posting: Posting) -> str:
    """Why a posting that could be run is not, or the reasons of its claims."""
    if posting.run is not None:
        return f"`kteardown replicate {posting.name}`, not measured yet"
    return "; ".join(
        dict.fromkeys(claim.cannot or "no workload measures it" for claim in posting.all_claims)
    )


def _link(posting: Posting) -> str:
    source = posting.source
    url = str((source.model_extra or {}).get("url", ""))
    if source.message_id:
        url = f"https://lore.kernel.org/all/{source.message_id}/"
    return f"[{posting.name}]({url})" if url else posting.name
