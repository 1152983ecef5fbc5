"""Who sends a series, and whose name its patches have until then."""

from dataclasses import dataclass

from kteardown.errors import InputError

PLACEHOLDER = "kteardown developers <kteardown@localhost>"
"""The author of the shipped series. This is nobody: it certifies nothing."""


@dataclass(frozen=True)
class Person:
    """Who answers for a series."""

    name: str
    mail: str

    def __str__(self) -> str:
        return f"{self.name} <{self.mail}>"

    @property
    def is_nobody(self) -> bool:
        """Return whether this is the placeholder."""
        return str(self) == PLACEHOLDER


NOBODY = Person(*PLACEHOLDER.removesuffix(">").split(" <"))


def parse_person(text: str) -> Person:
    """Return the person ``NAME <MAIL>``. Raises InputError if this names nobody who can answer."""
    name, _, rest = text.strip().partition("<")
    mail = rest.removesuffix(">")
    name = name.strip()
    user, _, host = mail.partition("@")
    is_address = bool(user and "." in host and not set(mail) & set(' \t<>(),;:"\\'))
    is_name = bool(name) and not set(name) & set('<>@"\\,;:()')
    if not (rest.endswith(">") and is_address and is_name and text.isprintable()):
        raise InputError(
            f"--author {text!r} is not a name and an address",
            hint="write your own, as in: --author 'Jane Doe <jane@example.org>'.",
        )
    return Person(name, mail)
