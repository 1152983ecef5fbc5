"""The page of each result, ``findings/results/NAME/README.md``: its tables, and its notes."""

from __future__ import annotations

from pathlib import Path

import hunts
from claims import RESULTS, Claim, claims
from splice import paragraphs
from tables import caption


def pages(root: Path) -> dict[str, str]:
    """The page of each result, by path. A folder without a claim or hunt has a page by hand."""
    found = {claim.name: _of_claim(claim) for claim in claims(root)}
    found |= {hunt.name: hunts.page(root, hunt.name) for hunt in hunts.hunts(root)}
    return {
        f"{RESULTS}/{name}/README.md": _text(root, name, parts) for name, parts in found.items()
    }


def _text(root: Path, name: str, parts: list[str]) -> str:
    notes = root / RESULTS / name / "notes.md"
    ending = [notes.read_text(encoding="utf-8").rstrip()] if notes.is_file() else []
    return "\n\n".join([f"# {name}", *parts, *ending]) + "\n"


def _of_claim(claim: Claim) -> list[str]:
    parts = [claim.spec.about]
    for title, spec in claim.spec.tables.items():
        parts += [f"## {title}", *paragraphs(claim, spec)]
    if not claim.spec.tables and claim.measured:
        parts.append(f"Its figures are in sentences. {caption(claim)}")
    return parts
