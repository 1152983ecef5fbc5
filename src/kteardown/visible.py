"""Text from outside (mails, patches, consoles, run directories) without characters that a terminal
obeys."""

import re

import typer

# Control characters but \n and \t, what reverses or separates lines, lone surrogates, what XML
# cannot have.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """Return ``text`` with each character that would act and not be seen as ``\\u001b``, as JSON
    writes it.

    A line break and a tab are unchanged. JSON keeps its meaning.
    """
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def on_one_line(text: str) -> str:
    """Return ``text`` visible, with a space for each line break and tab."""
    return visible(" ".join(text.replace("\t", " ").splitlines()))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print ``text``, visible, on standard output or on standard error."""
    typer.echo(visible(text), err=err, nl=nl)
