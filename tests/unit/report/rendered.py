"""What a run says in each format, as the commands write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kteardown.report import formats
from kteardown.report.material import Measured
from kteardown.report.publication import of_run


def written(material: Measured, form: str) -> str:
    return formats.render(form, of_run(material))


def _text(form: str, material: Measured) -> str:
    return written(material, form)


TEXTS: Mapping[str, Callable[[Measured], str]] = {
    form: partial(_text, form) for form in formats.FORMATS
}
