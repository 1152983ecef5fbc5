"""What a command says, in the form that every format takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kteardown.errors import KteardownError
from kteardown.judge.answer import Answer
from kteardown.judge.verdicts import Outcome
from kteardown.report.material import Measured
from kteardown.report.sentence import sentence


@dataclass(frozen=True)
class Publication:
    """The headline of a command and what is behind it. What is empty is what the command does not
    have.

    A format names in ``NEEDS`` the fields without which it has nothing to write.
    """

    command: str
    """The verb; that of a report is ``run``."""
    headline: str
    outcome: Outcome | None = None
    """None of a command that does not say whether anything passes."""
    materials: tuple[Measured, ...] = ()
    """The runs."""
    page: str = ""
    """The command's own page in Markdown; empty: the report of the run is the page."""
    is_plain: bool = False
    """Whether the page is plain text, as for a mail, and has what the runs say."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What only this command says, for scripts."""
    unmeasured: str = ""
    """Why nothing was measured, or not everything."""
    drifts: Mapping[str, str] = field(default_factory=dict)
    """Failures over several runs, by the name of their test."""
    exit_code: int = 0
    error: str = ""
    """The message of the error with which the command ends; empty if it ends with 0."""

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Return what the runs say."""
        return tuple(material.answer for material in self.materials)

    @property
    def material(self) -> Measured | None:
        """Return the run that is reported beside the page, if there is one."""
        return self.materials[0] if len(self.materials) == 1 and not self.is_plain else None

    @property
    def run(self) -> Measured:
        """Return the run, which a format that needs it has."""
        assert self.material is not None
        return self.material

    def ended_by(self, error: KteardownError | None) -> "Publication":
        """Return the same with the error with which the command ends; None: it has none."""
        return (
            self if error is None else replace(self, exit_code=error.exit_code, error=error.message)
        )


def of_run(material: Measured, command: str = "run") -> Publication:
    """Return what a run says."""
    headline = sentence(material.whole, material.workloads)
    return Publication(command, headline, material.answer.outcome, (material,))
