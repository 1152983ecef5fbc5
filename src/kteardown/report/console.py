"""The console of everything that is printed with colours or as a table: no text of a run commands
it."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from kteardown.visible import visible


class TextConsole(Console):
    """A console that takes no text as markup, and prints each control character in a visible
    form."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text of a line or of a cell, visible, so that a column is as wide as what it
        prints."""
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the parts of anything that is printed, visible; those that move the cursor are
        ours."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(visible(part.text), part.style)
