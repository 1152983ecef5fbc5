"""Whether ``result.json`` is of all boots that have ended: the rule that all its readers share."""

from __future__ import annotations

from pydantic import BaseModel, Field, ValidationError

from kteardown.errors import InputError
from kteardown.rundir import counting
from kteardown.rundir.directory import RunDir


class _Stopping(BaseModel):
    done: bool = False


class _Head(BaseModel):
    """What the rule needs of a ``result.json`` of any version."""

    boots: dict[str, int] = Field(default_factory=dict)
    stopping: _Stopping | None = None
    ended_boots: int | None = None
    sentence: str = ""


def current(run: RunDir) -> bytes | None:
    """Return ``result.json``; None if it is missing or damaged, or if boots have ended since its analysis."""
    try:
        text = run.result_file.read_bytes()
        is_current = _is_current(run, _Head.model_validate_json(text))
    except (OSError, ValidationError, InputError):
        return None
    return text if is_current else None


def sentence(text: bytes) -> str:
    """Return the sentence of a ``result.json``; empty if it did not record it."""
    return _Head.model_validate_json(text).sentence


def _is_current(run: RunDir, head: _Head) -> bool:
    if head.ended_boots is not None:
        return head.ended_boots == run.ended_boots()
    # Results of schema 1 did not record it; those of a run that stopped early have fewer boots.
    stopped = head.stopping is not None and head.stopping.done
    return stopped or sum(head.boots.values()) == len(counting.boots(run.records()))
