"""The published figures: measure them, check that they hold, and write them into the texts.

    figures.py list               every result, with what changed since it was measured
    figures.py measure NAME...    measure again, or continue where that was interrupted
    figures.py keep NAME RUN      keep a run, or the JSON of a hunt, that was measured otherwise
    figures.py confirm [NAME...]  boot what was measured once, and compare it to the digit
    figures.py tables             write all figures into the texts and pages
    figures.py check              fail if a text does not have the figures of its result
    figures.py release-check      also fail if something changed and nobody measured or confirmed

findings/README.md says how to publish a figure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import boots
import generated
import problem_data
from claims import RESULTS, ROOT, Evidence, claims, load
from hunts import hunts
from keeping import keep_hunt, keep_run, measure
from kteardown.errors import KteardownError
from pages import pages
from splice import splice


def evidence(root: Path) -> list[Evidence]:
    """Every result, of experiments and of hunts."""
    return [*claims(root), *hunts(root)]


def texts_of(root: Path) -> tuple[dict[str, str], list[str]]:
    """Every text as it should be, by path, and the places that no program can correct."""
    spliced = splice(root, claims(root))
    shipped = {**generated.texts(root), **problem_data.texts(root)}
    return {**spliced.texts, **pages(root), **shipped}, spliced.problems


def different(root: Path, texts: dict[str, str]) -> list[str]:
    """The texts whose files have something else."""
    return [
        name
        for name, text in texts.items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    ]


def write_texts(root: Path) -> list[str]:
    """Write every figure into its text, and return the names of the texts that changed.

    Raises ValueError after that if a text has no place for a figure.
    """
    texts, problems = texts_of(root)
    names = different(root, texts)
    for name in names:
        (root / name).write_text(texts[name], encoding="utf-8")
    if problems:
        raise ValueError("\n".join(problems))
    return names


def check(root: Path) -> list[str]:
    """Every text that must be corrected, a line each."""
    texts, problems = texts_of(root)
    wrong = [
        f"{name}: not what the results give: run `make tables`" for name in different(root, texts)
    ]
    return [*problems, *wrong]


def unseen(root: Path) -> list[str]:
    """Every result whose inputs changed without its being measured or confirmed, a line each."""
    return [
        f"{result.name}: {', '.join(result.changed)} changed since it was measured"
        if result.measured
        else f"{result.name}: never measured"
        for result in evidence(root)
        if result.changed or not result.measured
    ]


def listing(root: Path) -> list[str]:
    """Every result, a line each: commit, day, minutes, what was seen later, and what changed."""
    lines = []
    for result in evidence(root):
        measured = result.measured
        if measured is None:
            lines.append(f"{result.name}: never measured")
            continue
        minutes = f"{measured.duration_s / 60:.1f} min"
        line = f"{result.name}: measured at {measured.commit} on {measured.date} ({minutes})"
        if seen := measured.confirmed:
            line += f"; at {seen.commit} on {seen.date} {seen.differs or 'equal to the digit'}"
        if result.changed:
            line += f"; changed since: {', '.join(result.changed)}"
        lines.append(line)
    return lines


def confirm(root: Path, names: Sequence[str]) -> int:
    """Confirm results and print a line for each; the exit status is 1 if figures differ."""
    differing = False
    for result in evidence(root):
        if names and result.name not in names:
            continue
        try:
            seen = boots.confirm(result)
        except boots.NotConfirmed as error:
            print(f"{result.name}: not confirmed: {error}", flush=True)
            continue
        differing |= bool(seen.differs)
        print(f"{result.name}: {seen.differs or 'equal to the digit'}", flush=True)
    return int(differing)


def _print_check(root: Path, *, release: bool) -> int:
    lines = check(root)
    if release:
        lines += [*unseen(root), *boots.conflicts(claims(root))]
    if lines:
        print("\n".join(lines), file=sys.stderr)
        return 1
    print("findings: every text has the figures of its result")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("list", "tables", "check", "release-check"):
        verbs.add_parser(name)
    verbs.add_parser("measure").add_argument("names", nargs="+", metavar="NAME")
    verbs.add_parser("confirm").add_argument("names", nargs="*", metavar="NAME")
    keep = verbs.add_parser("keep")
    keep.add_argument("name", metavar="NAME")
    keep.add_argument("run", metavar="RUN", type=Path)
    keep.add_argument("--commit", default="", help="with which it was measured, if not the present")
    return parser.parse_args(arguments)


def _do(given: argparse.Namespace) -> int:
    match given.verb:
        case "list":
            print("\n".join(listing(ROOT)))
        case "check" | "release-check":
            return _print_check(ROOT, release=given.verb == "release-check")
        case "confirm":
            return confirm(ROOT, given.names)
        case "measure":
            for name in given.names:
                measure(load(ROOT, name))
        case "keep":
            if (ROOT / RESULTS / given.name / "claim.toml").is_file():
                keep_run(load(ROOT, given.name), given.run, commit=given.commit)
            else:
                keep_hunt(ROOT, given.name, given.run, commit=given.commit)
    if given.verb in ("measure", "keep", "tables"):
        print("\n".join(write_texts(ROOT)) or "every text was as it should be")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands, and return the exit status."""
    try:
        return _do(_arguments(arguments))
    except (ValueError, KteardownError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
