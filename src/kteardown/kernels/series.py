"""Patch series: a shipped one by its name, or a folder of patches. ``mail`` reads all other
forms."""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from email.errors import MessageError
from email.header import decode_header, make_header
from email.parser import BytesHeaderParser
from pathlib import Path

from kteardown import paths
from kteardown.errors import InputError, did_you_mean
from kteardown.model.experiment import Series
from kteardown.model.kernel_facts import PatchSet

_SUBJECT = re.compile(r"^\s*\[([^\]]*)\]\s*(.*)$", re.DOTALL)
_COUNT = re.compile(r"\b(\d{1,9})/\d+\b")
_MOST_HEADERS_BYTES = 64_000
_MOST_SUBJECT = 8_000
"""Of a patch; the time to decode a header is quadratic."""
_PART = re.compile(r"(.+)@(?=[\d-])(\d+)?(?:-(\d+))?")


@dataclass(frozen=True)
class Selection:
    """A series, or some of its patches: ``NAME@2`` the first two, ``NAME@-1`` all but the first.

    ``label`` is its name; for a shipped series, ``resolve(label)`` returns the same selection.
    """

    label: str
    series: str
    backports: tuple[tuple[Path, ...], ...]
    """Every patch of the series, in each of its backports; most series have only one text."""
    numbers: tuple[int, ...]
    """The numbers of the selected patches, in order, counted from 1."""
    revision: str = ""
    """The revision of a posted series, such as ``v2``; empty for the first one."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Every patch of the first backport."""
        return self.backports[0]

    @property
    def patches(self) -> tuple[Path, ...]:
        """The selected patches in the order in which they apply."""
        return tuple(self.files[number - 1] for number in self.numbers)

    @property
    def patch_set(self) -> PatchSet:
        """The description of the selection in the result."""
        subjects = tuple(map(subject, self.patches))
        return PatchSet(
            series=self.series, patches=self.numbers, total=len(self.files), subjects=subjects
        )


def resolve(name_or_path: str) -> Selection:
    """Return the patches that ``name_or_path`` selects, in the order in which they apply.

    ``name_or_path`` is the name of a folder in ``series/`` or the path of a folder of patches. The
    suffix ``@2`` selects the first two patches, ``@-2`` all but the second, ``@3-2`` the first
    three without the second. Raises InputError if the series or the patch does not exist.
    """
    name, part = split_part(name_or_path)
    if "/" not in name and _folder(name).is_dir():
        return select(name, backports_in(_folder(name)), name, part)
    path = Path(name).expanduser()
    if path.is_dir():
        return select(slug(path.absolute().name), backports_in(path.absolute()), name, part)
    names = _names(Path.cwd())
    raise InputError(
        f"there is no series or file {name!r}{did_you_mean(name, names)}",
        hint=f"give a path, or one of the series: {', '.join(names) or 'none'}.",
    )


def split_part(name_or_path: str) -> tuple[str, str]:
    """Return the name of the series and the suffix that selects a part of it, which is usually
    empty."""
    match = _PART.fullmatch(name_or_path)
    if match and not Path(name_or_path).exists():
        return match[1], name_or_path.removeprefix(match[1])
    return name_or_path, ""


def select(
    series: str, backports: tuple[tuple[Path, ...], ...], called: str, part: str, revision: str = ""
) -> Selection:
    """Return the ``part`` of a series; ``called`` is the user's name for it. Raises InputError."""
    files = backports[0] if backports else ()
    if not files:
        raise InputError(
            f"{called} contains no patches",
            hint="give a folder with files NNNN-*.patch, or a mailbox with diffs.",
        )
    match = _PART.fullmatch(called + part) if part else None
    first = int(match[2]) if match and match[2] else len(files)
    without = int(match[3]) if match and match[3] else None
    for number in (first, without or 1):
        if number > len(files):
            raise InputError(
                f"{called}{part}: the series has {len(files)} patches, not {number}",
                hint=f"write numbers up to {len(files)}, such as {called}@{len(files)}.",
            )
    numbers = tuple(number for number in range(1, first + 1) if number != without)
    if not numbers or without == 0:
        raise InputError(
            f"{called}{part} selects no patches", hint=f"write {called}@1 or a higher number."
        )
    return Selection(series + part, series, backports, numbers, revision)


def parts(selection: Selection) -> list[Selection]:
    """Return the parts that an ablation builds: every prefix, then the series without each single
    patch.

    The series without its last patch is the longest prefix, which is returned once. The list is
    empty for a series of one patch.
    """
    total = len(selection.files)
    chosen = [(f"@{k}", tuple(range(1, k + 1))) for k in range(1, total)]
    for left_out in range(1, total):
        chosen.append((f"@-{left_out}", tuple(n for n in range(1, total + 1) if n != left_out)))
    return [
        replace(selection, label=selection.series + suffix, numbers=numbers)
        for suffix, numbers in chosen
    ]


def subject(patch: Path) -> str:
    """Return the subject of a patch without ``[PATCH n/m]``, or the name of its file without a
    subject."""
    text = _subject_line(patch)
    match = _SUBJECT.match(text)
    return (match[2] if match else text) or patch.stem


def number_of(patch: Path) -> int:
    """Return the number of a patch in its series, as ``[PATCH n/m]`` says; 0 if it says none."""
    tags = _SUBJECT.match(_subject_line(patch))
    count = _COUNT.search(tags[1]) if tags else None
    return int(count[1]) if count else 0


def _subject_line(patch: Path) -> str:
    with patch.open("rb") as stream:
        headers = BytesHeaderParser().parsebytes(stream.read(_MOST_HEADERS_BYTES))
    header = next((value for name, value in headers.raw_items() if name.lower() == "subject"), "")
    text = header.encode(errors="surrogateescape").decode(errors="replace")[:_MOST_SUBJECT]
    with suppress(LookupError, ValueError, MessageError):
        text = str(make_header(decode_header(text)))
    return " ".join(text.split())


def known_series(user_folder: Path | None = None) -> list[Series]:
    """Return the shipped series and those in ``user_folder``/series, sorted by name."""
    series = []
    for name in _names(user_folder):
        backports: tuple[tuple[Path, ...], ...] = ()
        with suppress(InputError):  # It is said where the series is used.
            backports = backports_in(_folder(name))
        series.append(Series(name=name, patches=backports[0] if backports else ()))
    return series


def backports_in(folder: Path) -> tuple[tuple[Path, ...], ...]:
    """Return the patches of each backport: of ``folder`` itself, or else of each folder in it, by
    name.

    Raises InputError if the backports have different numbers of patches.
    """
    patches = patches_in(folder)
    groups = (
        [patches]
        if patches
        else [patches_in(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    )
    backports = tuple(files for files in groups if files)
    if len({len(files) for files in backports}) > 1:
        counts = ", ".join(f"{files[0].parent.name} {len(files)}" for files in backports)
        raise InputError(
            f"{folder}: the backports have different numbers of patches: {counts}",
            hint="give every backport the same patches, one for one.",
        )
    return backports


def patches_in(folder: Path) -> tuple[Path, ...]:
    """Return the patches of a folder in the order of their numbers, without the cover letter
    (0000-*)."""
    patches = [
        path for path in folder.iterdir() if path.suffix in (".patch", ".diff") and path.is_file()
    ]

    def order(path: Path) -> tuple[int, str]:
        number = re.match(r"(?:v\d+-)?(\d+)", path.name)
        return (int(number[1]) if number else 1, path.name)

    return tuple(sorted((p for p in patches if order(p)[0] != 0), key=order))


def _names(user_folder: Path | None) -> list[str]:
    folders = [paths.data_dir("series"), *([user_folder / "series"] if user_folder else [])]
    return sorted(
        {
            path.name
            for folder in folders
            if folder.is_dir()
            for path in folder.iterdir()
            if path.is_dir()
        }
    )


def _folder(name: str) -> Path:
    """Return the folder of a series by its name: a shipped one, or else one in ``./series``."""
    shipped = paths.data_dir("series") / name
    return shipped if shipped.is_dir() else Path.cwd() / "series" / name


def slug(text: str) -> str:
    """Turn ``text`` into a name of lower-case letters, digits and dashes that begins with a
    letter."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return re.sub(r"^(?:v\d+-)?[\d-]+", "", words) or "patch"
