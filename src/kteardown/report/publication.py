"""What a command says, in the form that every format takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kteardown.judge.answer import Answer
from kteardown.report.material import Measured
from kteardown.report.sentence import sentence


@dataclass(frozen=True)
class Publication:
    """The headline of a command and what is behind it. What is empty is what the command does not have.

    A format names in ``NEEDS`` the fields without which it has nothing to write.
    """

    headline: str
    answers: tuple[Answer, ...] = ()
    material: Measured | None = None
    """The run, if there is exactly one."""
    page: str = ""
    """The command's own page in Markdown; empty: the report of the run is the page."""
    is_plain: bool = False
    """Whether the page is plain text, as for a mail."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the command says for scripts; empty: the result of the run."""
    error: str = ""
    """Why it is not whole."""
    drifts: Mapping[str, str] = field(default_factory=dict)
    """Failures over several runs, by the name of their test."""

    @property
    def run(self) -> Measured:
        """Return the run, which a format that needs it has."""
        assert self.material is not None
        return self.material


def of_run(material: Measured) -> Publication:
    """Return what a run says."""
    return Publication(sentence(material.whole, material.workloads), (material.answer,), material)
