"""The published figures: measures them, splices them into the texts, and says which are older than
the tree.

    results.py list every result: what is stale, then what is older than what it depends on
    results.py measure NAME... measures again, or continues where it was interrupted; then splices
    results.py analyse NAME... analyses the last run anew, after a change of the analysis alone
    results.py renew does what each result needs of these two, the quickest first results.py show
    NAME... prints every table and note of a result, the page that `make docs` makes results.py
    tables writes the tables and figures into the texts results.py check fails where a text is not
    what results/ gives results.py release-check also where a result is not that of this tree, or a
    point has two values

CONTRIBUTING.md describes how to publish a table. ``measure`` keeps its runs in the folder
``published`` beside the user's runs, so that ``analyse`` finds their records.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

import hunts
import laws
import spreads
from claims import (
    Claim,
    Confirmed,
    Evidence,
    Measured,
    State,
    claims,
    ids,
    load,
    result_files,
    write_json,
)
from content_ids import tree_commit
from kteardown.errors import KteardownError
from kteardown.model.result import Result
from kteardown.paths import runs_dir
from one_value import conflicts
from result_tables import caption
from splice import paragraphs, splice

ROOT = Path(__file__).parents[1]
_LEFT_OUT: dict[str, Any] = {
    **dict.fromkeys(("profiles", "distributions", "outliers"), True),
    **{
        key: {"__all__": {"value_unit"}}
        for key in ("comparisons", "metric_verdicts", "laws", "ablations")
    },
}
"""Parts of a result that no table shows, and that can be large; what the clock says once for all
values."""
_DIGITS = 9


class Refused(Exception):
    """A command cannot do what was asked for; the message says why."""


class Begun(BaseModel):
    """A measuring that has begun: its inputs, the seconds that it took so far, and the runs before
    it."""

    ids: dict[str, str]
    commit: str
    seconds: float
    runs: list[str]


def evidence(root: Path) -> list[Evidence]:
    """Every result, of experiments and of hunts."""
    return [*claims(root), *hunts.hunts(root)]


def check(root: Path) -> list[str]:
    """Every text that must be corrected, as lines."""
    spliced = splice(root, claims(root))
    wrong = (
        f"{name}: not what results/ gives: run `make tables`" for name in spliced.changed(root)
    )
    return [*spliced.problems, *wrong]


def outdated(root: Path) -> str:
    """How many results are not those of this tree, as a line; empty if all are."""
    states = Counter(one.state for one in evidence(root))
    words: dict[State, str] = {
        "older": "older than what they depend on",
        "not measured": "never measured",
    }
    found = [
        f"{states[s]} {words.get(s, s)}" for s in get_args(State) if states[s] and s != "current"
    ]
    return f"{', '.join(found)}: `make results`" if found else ""


def write_tables(root: Path) -> list[str]:
    """Splice every text, and write the spreads and the laws; return the texts that changed.

    Raises Refused after that if a place is wrong.
    """
    spliced = splice(root, claims(root))
    changed = spliced.changed(root)
    for name in changed:
        (root / name).write_text(spliced.texts[name], encoding="utf-8")
    if (file := root / "coverage/spreads.json").is_file():
        file.write_text(spreads.text(root / "results"))
        (root / "coverage/laws.json").write_text(laws.text(root / "results"))
    if spliced.problems:
        raise Refused("\n".join(spliced.problems))
    return changed


def page(root: Path, name: str) -> str:
    """The page of ``results/NAME``: its tables, and the notes in its folder. Raises ValueError."""
    folder, parts = root / "results" / name, [f"# {name}"]
    notes = sorted(folder.glob("*.md"))
    if (folder / "hunt.json").is_file():
        parts += hunts.page(root, name)
    elif not notes or (folder / "claim.toml").is_file():
        claim = load(root, name)
        parts.append(claim.spec.about)
        for title, spec in claim.spec.tables.items():
            parts += [f"## {title}", *paragraphs(claim, spec)]
        if not claim.spec.tables:
            parts.append(f"Its figures are in sentences. {caption(claim)}")
    return (
        "\n\n".join([*parts, *(file.read_text(encoding="utf-8").rstrip() for file in notes)]) + "\n"
    )


def measure(root: Path, name: str) -> None:
    """Measure one claim and keep its result. Raises Refused.

    The content ids are computed before and after: what changed meanwhile might be in some boots
    only.
    """
    claim, folder = load(root, name), _runs_of(name)
    before = ids(root, claim.spec.command)
    file, begun = (
        folder / "begun.json",
        Begun(ids=before, commit=tree_commit(root), seconds=0.0, runs=_runs(folder)),
    )
    if file.is_file() and (earlier := Begun.model_validate_json(file.read_bytes())).ids == before:
        begun = earlier
    started = [run for run in _runs(folder) if run not in begun.runs]
    command = claim.spec.command
    if started:
        command = shlex.join(["kteardown", "run", "--resume", str(folder / started[-1])])
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(begun.model_dump_json())
    since, env = time.monotonic(), {**os.environ, "KTEARDOWN_RUNS": str(folder)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", *shlex.split(command)], cwd=root, env=env, check=False
    )
    begun = begun.model_copy(update={"seconds": begun.seconds + time.monotonic() - since})
    file.write_text(begun.model_dump_json())
    if done.returncode:
        raise Refused(f"{name}: {command} ended with {done.returncode}")
    if ids(root, claim.spec.command) != before:
        # What was measured so far must not be continued, even if the tree is changed back.
        file.unlink()
        raise Refused(
            f"{name}: not kept, because the tree changed while it was measured; measure it again"
        )
    run = next(run for run in reversed(_runs(folder)) if run not in begun.runs)
    files = result_files(folder / run)
    keep(claim, files, _measured(claim, files, begun))
    file.unlink()


def _measured(claim: Claim, files: Sequence[Path], begun: Begun) -> Measured:
    """What is recorded of a complete run."""
    results = [Result.model_validate_json(file.read_bytes()) for file in files]
    kernels = {name: kernel for result in results for name, kernel in result.kernels.items()}
    environments = (json.loads((file.parent / "environment.json").read_bytes()) for file in files)
    agents = {
        session.get("agent_hash", "") for each in environments for session in each["sessions"]
    }
    return Measured(
        commit=begun.commit,
        date=date.today().isoformat(),
        command=claim.spec.command,
        duration_s=round(begun.seconds, 1),
        agent=agents.pop() if len(agents) == 1 else "",
        compiler="; ".join(dict.fromkeys(kernel.compiler for kernel in kernels.values())),
        kernels={name: kernel.image_hash for name, kernel in kernels.items()},
        ids=begun.ids,
    )


def analyse(root: Path, name: str) -> None:
    """Analyse the last run of a claim with the present rules and keep the result. Raises
    Refused."""
    claim, folder = load(root, name), _runs_of(name)
    runs = _runs(folder)
    if claim.measured is None or not runs or (folder / "begun.json").exists():
        raise Refused(f"{name}: no complete run of it is on this machine; measure it")
    if claim.moved not in ([], ["analysis"]):
        raise Refused(f"{name}: {', '.join(claim.moved)} changed since; measure it")
    found = []
    for file in result_files(folder / runs[-1]):
        subprocess.run(
            [sys.executable, "-P", "-m", "kteardown", "analyse", file.parent], cwd=root, check=True
        )
        found.append(
            max(file.parent.glob("analysis-*/result.json"), key=lambda path: path.stat().st_mtime)
        )
    keep(claim, found, claim.measured.model_copy(update={"ids": claim.now}))


def renew(root: Path) -> list[str]:
    """Measure or analyse every result that is not current, the quickest first; return why some are
    not.

    Claims that were never measured come last. If a claim cannot be renewed, the others still are.
    """
    outdated = [claim for claim in claims(root) if claim.state != "current"]
    failed = []
    for claim in sorted(
        outdated, key=lambda one: one.measured.duration_s if one.measured else math.inf
    ):
        try:
            if claim.moved == ["analysis"] and _runs(_runs_of(claim.name)):
                analyse(root, claim.name)
            else:
                measure(root, claim.name)
        except (Refused, ValueError, KteardownError) as error:
            failed.append(str(error))
    return failed


def listing(root: Path) -> list[str]:
    """Every result: first what is stale or older, with what to do, then the others in a line
    each."""
    known = evidence(root)
    places = splice(root, claims(root)).places
    lines = []
    for one in sorted(known, key=lambda one: (get_args(State).index(one.state), one.name)):
        lines.append(f"{one.state}: {one.name}{_when(one)}")
        if one.state in ("stale", "older") and one.confirmed:
            lines.append(
                f"    confirmed at {one.confirmed.commit} on {one.confirmed.date}: "
                f"{_seen(one.confirmed)}"
            )
        if one.state == "older":
            everything = set(one.now) <= set(one.moved)
            lines.append(
                f"    changed since: {'everything' if everything else ', '.join(one.moved)}"
            )
        if one.state != "current":
            lines.append(f"    shown in {', '.join(sorted(places.get(one.name, ()))) or 'no text'}")
    lines.append(f"results: {len(known)}; {outdated(root) or 'all are those of this tree'}")
    return lines


def _when(one: Evidence) -> str:
    if one.measured is None:
        return ""
    text = (
        f", measured at {one.measured.commit} on {one.measured.date} "
        f"({one.measured.duration_s / 60:.1f} min)"
    )
    seen = one.confirmed if one.state == "current" else None
    return text + (f", confirmed at {seen.commit} on {seen.date}: {_seen(seen)}" if seen else "")


def _seen(confirmed: Confirmed) -> str:
    return ": ".join(filter(None, (confirmed.state, confirmed.note)))


def keep(claim: Claim, files: Sequence[Path], measured: Measured) -> None:
    """Write the results, reduced, and with what they were measured."""
    if not files:
        raise Refused(f"{claim.name}: the run left no result")
    for old in result_files(claim.folder):
        old.unlink()
    for file in files:
        result = Result.model_validate_json(file.read_bytes())
        target = claim.folder / ("" if len(files) == 1 else result.clock) / "result.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(reduced(result), encoding="utf-8")
    (claim.folder / "confirmed.json").unlink(missing_ok=True)
    write_json(claim.folder / "measured.json", measured)


def reduced(result: Result) -> str:
    """A result as it is kept: what tables can show, with a line for each comparison and each law.

    Left out are profiles, histograms and the list of outliers, which the run directory has, fields
    that have their default value, and digits after the ninth.
    """
    fields = result.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=_LEFT_OUT)
    lines = []
    for name, value in _rounded(fields).items():
        several = isinstance(value, list) and value and isinstance(value[0], dict)
        text = ",\n".join(f"  {json.dumps(one)}" for one in value) if several else json.dumps(value)
        lines.append(f' "{name}": [\n{text}\n ]' if several else f' "{name}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def _runs_of(name: str) -> Path:
    return runs_dir().parent / "published" / name


def _runs(folder: Path) -> list[str]:
    """The runs in a folder, oldest first: their names begin with the time."""
    return (
        sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    )


def _print_check(*, release: bool) -> int:
    """Print what ``check`` found and what is outdated, and return the exit status."""
    lines, old = check(ROOT), outdated(ROOT)
    lines += conflicts(claims(ROOT)) if release else []
    if lines:
        print("\n".join(lines), file=sys.stderr)
    else:
        print(f"results: every text has their figures; {old or 'all are those of this tree'}")
    return int(bool(lines) or (release and bool(old)))


def main(arguments: list[str]) -> int:
    """Run one of the commands."""
    try:
        match arguments:
            case ["list"]:
                print("\n".join(listing(ROOT)))
            case ["check" | "release-check" as verb]:
                return _print_check(release=verb == "release-check")
            case ["renew"]:
                failed = renew(ROOT)
                print("\n".join(write_tables(ROOT)))
                if failed:
                    raise Refused("\n".join(failed))
            case ["show", *names] if names:
                print("\n".join(page(ROOT, name) for name in names))
            case ["tables"]:
                print("\n".join(write_tables(ROOT)) or "every text was as it should be")
            case ["measure" | "analyse" as verb, *names] if names:
                for name in names:
                    (measure if verb == "measure" else analyse)(ROOT, name)
                print("\n".join(write_tables(ROOT)))
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (Refused, ValueError, KteardownError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
