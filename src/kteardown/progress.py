"""The interface through which long steps report progress, independent of the terminal."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class InterimResult:
    """The interim result of one metric for one variant, formatted as text.

    ``base`` and ``changed`` (medians over boots), ``change`` and ``verdict`` are those of the last
    point, ``point``. ``others`` counts the verdicts of all points.
    """

    metric: str
    point: str
    base: str
    variant: str
    changed: str
    change: str
    verdict: str
    others: str


class Task:
    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        """Report ``completed`` of ``total`` units; each line of ``detail`` says what is being done
        now."""


class Reporter:
    """Receives the progress of a stage. This one reports nothing."""

    def note(self, text: str) -> None:
        """Show ``text`` as one line that stays."""

    def note_once(self, text: str) -> None:
        """Show ``text`` as ``note`` does, unless that was done before."""
        self.note(text)

    def command(self, argv: list[str]) -> None:
        """Report a command that is about to be run; shown with ``-v``."""

    def interim_results(self, compute: Callable[[], Sequence[InterimResult]]) -> None:
        """Offer the interim results after a boot ended.

        ``compute`` returns them, which takes time: the reporter calls it only if they are shown,
        and not after every boot.
        """

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        """Report a step that takes longer than two seconds. ``total`` is None if it is not
        known."""
        yield Task()


SilentReporter = Reporter
"""For tests, and for use as a library."""
