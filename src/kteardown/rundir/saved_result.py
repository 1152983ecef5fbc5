"""Whether ``result.json`` is of all boots that have ended: the rule that all its readers share."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from kteardown.rundir.directory import RunDir


class _Head(BaseModel):
    """What the rule needs of a ``result.json`` of any version."""

    ended_boots: int | None = None
    sentence: str = ""


def current(run: RunDir) -> bytes | None:
    """Return ``result.json``; None if it is missing or damaged, or if boots have ended since its analysis."""
    try:
        text = run.result_file.read_bytes()
        return text if _Head.model_validate_json(text).ended_boots == run.ended_boots() else None
    except (OSError, ValidationError):
        return None


def sentence(text: bytes) -> str:
    """Return the sentence of a ``result.json``; empty if it did not record it."""
    return _Head.model_validate_json(text).sentence
