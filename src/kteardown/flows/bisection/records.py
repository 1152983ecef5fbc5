"""What is kept of a bisection: what each commit was measured to have, what was confirmed, and the
answer."""

from pydantic import BaseModel

from kteardown.model.workload import FiniteModel


class MeasuredCommit(BaseModel):
    """What a commit was measured to have: a value, or why it has none, and the run."""

    value: float | None = None
    why: str = ""
    run: str = ""
    is_bad: bool | None = None
    """On the wall clock: what its blocks decided; None if they did not."""
    mean: float | None = None
    error: float | None = None
    """On the wall clock: of the logarithm of its ratio to the good commit; None if it has none."""
    ci: tuple[float, float] | None = None
    """The interval of the value; None if it is exact."""


class Confirmed(BaseModel):
    """What a change was confirmed with: the values with it, without it, and with the code moved
    alone."""

    without: str = ""
    """What was booted without it."""
    run: str = ""
    boots: int = 0
    values: tuple[float | None, ...] = ()
    """The last one is missing if no layout twin can be made."""
    holds: bool = False
    why: str = ""


class Kept(BaseModel):
    """What is kept of a bisection, by commit; the runs that have begun by the hash of their
    experiment."""

    measured: dict[str, MeasuredCommit] = {}
    confirmed: dict[str, Confirmed] = {}
    begun: dict[str, str] = {}


class FoundChange(FiniteModel):
    """A commit that changes the compared value, or several of which one does: each with its
    subject."""

    commits: tuple[str, ...]
    before: float
    after: float
    share: float
    """Of the difference between both ends."""
    holds: bool
    """Whether it was confirmed."""
    confirmation: str


class FoundChanges(FiniteModel):
    """The answer of a bisection, ``answer.json`` in its folder: what was compared, in ``unit``,
    between which commits."""

    compared: str
    unit: str
    good: str
    bad: str
    changes: tuple[FoundChange, ...]


ANSWER_FILE = "answer.json"
