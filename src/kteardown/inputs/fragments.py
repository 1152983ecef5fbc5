"""Fragments of the kernel configuration: where a name is looked up, and what an experiment
needs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kteardown.errors import InputError, did_you_mean
from kteardown.model.experiment import SYMBOL, Experiment
from kteardown.model.workload import Workload
from kteardown.paths import data_dir


def fragments(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """Return the sorted fragments that the kernels need in addition to ``kernels/base.config``."""
    return tuple(
        sorted(
            {
                *experiment.config,
                *(fragment for workload in workloads.values() for fragment in workload.config),
            }
        )
    )


def fragment_places(user_folder: str | Path = "", shipped: Path | None = None) -> list[Path]:
    """Return the folders of fragments in the order in which a name is looked up in them.

    First comes the shipped one, then ``kernels/fragments`` in ``user_folder`` and in the current
    folder.
    """
    first = shipped or data_dir("kernels") / "fragments"
    folders = [*([Path(user_folder).absolute()] if user_folder else []), Path.cwd()]
    return list(dict.fromkeys([first, *(folder / "kernels" / "fragments" for folder in folders)]))


def fragment_files(places: Iterable[Path]) -> dict[str, Path]:
    """Return the files of all fragments in these folders, by name; earlier folders precede later
    ones."""
    files: dict[str, Path] = {}
    for place in places:
        for path in sorted(place.glob("*.config")):
            if path.is_file():
                files.setdefault(path.stem, path)
    return files


def is_fragment_path(fragment: str) -> bool:
    """Return whether a fragment is given by the path of its file, and not as a name or a symbol."""
    return not re.fullmatch(SYMBOL, fragment) and ("/" in fragment or fragment.endswith(".config"))


def fragment_file(fragment: str, places: Sequence[Path]) -> Path:
    """Return the file of a fragment that is a name or a path. Raises InputError with the folders
    searched."""
    if is_fragment_path(fragment):
        path = Path(fragment).expanduser().absolute()
        if path.is_file():
            return path
        raise InputError(f"{fragment}: there is no such fragment", hint="check the path.")
    files = fragment_files(places)
    if fragment not in files:
        raise InputError(
            f"there is no fragment {fragment!r}{did_you_mean(fragment, files)} "
            f"(searched: {', '.join(str(place) for place in places)})",
            hint=(
                f"choose one of: {', '.join(sorted(files))}; or give a "
                "file, ./kernels/fragments/NAME.config, or a symbol, CONFIG_NAME=y."
            ),
        )
    return files[fragment]


def located(wanted: Iterable[str], user_folder: str | Path = "") -> tuple[str, ...]:
    """Return fragments with the path of its file in place of each that is not shipped.

    A path means the same in every folder, and in later sessions. Raises InputError if there is no
    such fragment, or if two files have one name.
    """
    places = fragment_places(user_folder)
    result: list[str] = []
    files: dict[str, Path] = {}
    for fragment in wanted:
        if re.fullmatch(SYMBOL, fragment):
            result.append(fragment)
            continue
        path = fragment_file(fragment, places)
        shipped = not is_fragment_path(fragment) and path.parent == places[0]
        result.append(fragment if shipped else str(path))
        first = path if shipped else files.setdefault(path.stem, path)
        if first != path:
            raise InputError(
                f"two fragments are called {path.stem!r}: {first} and {path}",
                hint="rename one of them.",
            )
    return tuple(dict.fromkeys(result))


def fragment_summary(path: Path) -> str:
    """Return the first sentence of the comment with which a fragment begins; empty if it has
    none."""
    try:
        comment = re.match(r"(?:#.*\n?)*", path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    text = " ".join(line.strip("# ") for line in (comment[0] if comment else "").splitlines())
    sentence = re.match(r".*?\.(?= |$)", text)
    return sentence[0] if sentence else text
