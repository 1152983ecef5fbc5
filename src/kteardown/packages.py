"""Packages of the distribution, by the names of its package manager (``packages.tsv``).

Errors name packages as in Debian. The names of others are from their public package lists, and not
tested.
"""

import shutil
from collections.abc import Iterable, Sequence
from importlib.resources import files

_INSTALL = {
    "apt": (
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "-y",
        "--no-install-recommends",
    ),
    "dnf": ("dnf", "install", "-y"),
    "pacman": ("pacman", "-S", "--needed", "--noconfirm"),
    "zypper": ("zypper", "--non-interactive", "install"),
}


def manager() -> str:
    """Return the package manager of this host; ``apt`` if it is none of those that are known."""
    return next(
        (name for name in _INSTALL if shutil.which("apt-get" if name == "apt" else name)), "apt"
    )


def named(packages: Iterable[str]) -> list[str]:
    """Return ``packages``, named as in Debian, by their names on this host, without duplicates."""
    lines = files("kteardown").joinpath("packages.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    column = 2 + list(_INSTALL).index(manager())
    translations: dict[str, list[str]] = {}
    for row in rows:
        translations.setdefault(row[2], []).append(row[column])
    names = [
        name for package in packages for name in translations.get(package, [package]) if name != "-"
    ]
    return list(dict.fromkeys(names))


def install_command(packages: Sequence[str]) -> list[str]:
    """Return the command that installs ``packages``, named as in Debian; it must be run as root."""
    return [*_INSTALL[manager()], *named(packages)]


def how_to_install(packages: Sequence[str]) -> str:
    """Return what a user without these packages should do."""
    verb = "-S" if manager() == "pacman" else "install"
    return f"install them: {manager()} {verb} {' '.join(named(packages))}"
