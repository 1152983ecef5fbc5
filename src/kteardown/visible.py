"""Text from outside (mails, patches, consoles, run directories) without characters that a terminal
obeys."""

import re

import typer

# Control characters but \n and \t, what reverses or separates lines, lone surrogates, what XML
# cannot have; and what has no width, in which text for a language model can be hidden: soft
# hyphens, joiners, variation selectors, and tags.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    r"\ufe00-\ufe0f\ufeff\ufffe\uffff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Return ``text`` with each character that would act and not be seen as ``\\u001b``, as JSON
    writes it.

    A line break and a tab are unchanged. JSON keeps its meaning.
    """
    return _UNSEEN.sub(lambda match: _written(ord(match[0])), text)


def _written(code: int) -> str:
    """Return a character as JSON writes it; one above U+FFFF has two parts."""
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def on_one_line(text: str) -> str:
    """Return ``text`` visible, with a space for each line break and tab."""
    return visible(" ".join(text.replace("\t", " ").splitlines()))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print ``text``, visible, on standard output or on standard error."""
    typer.echo(visible(text), err=err, nl=nl)
