"""The published figures: measures them, splices them into the texts, and says which are stale.

    results.py list                every result: its state, its age, how long it took, what shows it
    results.py measure NAME...     measures again, or continues where it was interrupted; then splices
    results.py analyse NAME...     analyses the last run anew, after a change of the analysis alone
    results.py renew               does what each result needs of these two, the quickest first
    results.py tables              writes the tables and figures into the texts
    results.py check               fails where a text is not what results/ gives, or a result is stale

CONTRIBUTING.md describes how to publish a table. ``measure`` keeps its runs in the folder ``published``
beside the user's runs, so that ``analyse`` finds their records.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from claims import Claim, Measured, claims, ids, load, result_files
from kteardown.errors import KteardownError, LabError
from kteardown.model.result import Result
from kteardown.paths import runs_dir
from kteardown.vm.installed_qemu import qemu_version
from splice import splice

ROOT = Path(__file__).parents[1]
_LEFT_OUT: dict[str, Any] = {
    **dict.fromkeys(("profiles", "distributions", "outliers"), True),
    **{key: {"__all__": {"value_unit"}} for key in ("comparisons", "metric_verdicts", "laws", "ablations")},
}
"""Parts of a result that no table shows, and that can be large; what the clock says once for all values."""
_DIGITS = 9


class Refused(Exception):
    """A command cannot do what was asked for; the message says why."""


class Begun(BaseModel):
    """A measuring that has begun: its inputs, the seconds that it took so far, and the runs before it."""

    ids: dict[str, str]
    seconds: float
    runs: list[str]


def check(root: Path) -> list[str]:
    """Everything that must be corrected, as lines. An empty list: no published figure is stale.

    A claim that was never measured publishes no figure; ``unmeasured`` names it.
    """
    known = claims(root)
    spliced = splice(root, known)
    lines = list(spliced.problems)
    lines += [f"{name}: not what results/ gives: run `make tables`" for name in spliced.changed(root)]
    for claim in known:
        again = f"run `make results NAME={claim.name}`"
        if claim.measured is None:
            continue
        if claim.moved == ["analysis"]:
            lines.append(
                f"results/{claim.name}: the rules of the analysis have changed: {again}, or, where it was "
                f"measured, `make results-analyse NAME={claim.name}`"
            )
        elif claim.moved:
            since = f"changed since it was measured on {claim.measured.date}"
            lines.append(f"results/{claim.name}: {claim.moved_text} {since}: {again}")
    return lines


def unmeasured(root: Path) -> str:
    """A warning about the claims that were never measured; empty without any."""
    names = [claim.name for claim in claims(root) if claim.measured is None]
    return f"warning: never measured (`make results-renew`): {', '.join(names)}" if names else ""


def write_tables(root: Path) -> list[str]:
    """Splice every text; return those that changed. Raises Refused after that if a place is wrong."""
    spliced = splice(root, claims(root))
    changed = spliced.changed(root)
    for name in changed:
        (root / name).write_text(spliced.texts[name], encoding="utf-8")
    if spliced.problems:
        raise Refused("\n".join(spliced.problems))
    return changed


def measure(root: Path, name: str) -> None:
    """Measure one claim and keep its result. Raises Refused.

    The content ids are computed before and after: what changed meanwhile might be in some boots only.
    """
    claim, folder = load(root, name), _runs_of(name)
    before = ids(root, claim.spec.command)
    file, begun = folder / "begun.json", Begun(ids=before, seconds=0.0, runs=_runs(folder))
    if file.is_file() and (earlier := Begun.model_validate_json(file.read_bytes())).ids == before:
        begun = earlier
    started = [run for run in _runs(folder) if run not in begun.runs]
    command = claim.spec.command
    if started:
        command = shlex.join(["kteardown", "run", "--resume", str(folder / started[-1])])
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(begun.model_dump_json())
    since, env = time.monotonic(), {**os.environ, "KTEARDOWN_RUNS": str(folder)}
    done = subprocess.run([sys.executable, "-P", "-m", *shlex.split(command)], cwd=root, env=env, check=False)
    begun = begun.model_copy(update={"seconds": begun.seconds + time.monotonic() - since})
    file.write_text(begun.model_dump_json())
    if done.returncode:
        raise Refused(f"{name}: {command} ended with {done.returncode}")
    if ids(root, claim.spec.command) != before:
        # What was measured so far must not be continued, even if the tree is changed back.
        file.unlink()
        raise Refused(f"{name}: not kept, because the tree changed while it was measured; measure it again")
    run = next(run for run in reversed(_runs(folder)) if run not in begun.runs)
    keep(claim, result_files(folder / run), before, begun.seconds)
    file.unlink()


def analyse(root: Path, name: str) -> None:
    """Analyse the last run of a claim with the present rules and keep the result. Raises Refused."""
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
        found.append(max(file.parent.glob("analysis-*/result.json"), key=lambda path: path.stat().st_mtime))
    keep(claim, found, claim.now, claim.measured.duration_s)


def renew(root: Path) -> list[str]:
    """Measure or analyse every result that is not current, the quickest first; return why some are not.

    Claims that were never measured come last. If a claim cannot be renewed, the others still are.
    """
    stale = [claim for claim in claims(root) if claim.state != "current"]
    failed = []
    for claim in sorted(stale, key=lambda one: one.measured.duration_s if one.measured else math.inf):
        try:
            if claim.moved == ["analysis"] and _runs(_runs_of(claim.name)):
                analyse(root, claim.name)
            else:
                measure(root, claim.name)
        except (Refused, ValueError, KteardownError) as error:
            failed.append(str(error))
    return failed


def listing(root: Path) -> list[str]:
    """A paragraph for each result, and what on this machine differs from where it was measured."""
    known = claims(root)
    places = splice(root, known).places
    lines = []
    for claim in known:
        lines += [f"{claim.name}: {claim.state}{_age(claim)}", f"    {claim.spec.about}"]
        if claim.measured and claim.moved:
            lines.append(f"    changed since: {claim.moved_text}")
        lines += [f"    {note}" for note in _elsewhere(claim)]
        lines.append(f"    {claim.spec.command}")
        lines.append(f"    shown in {', '.join(sorted(places.get(claim.name, ()))) or 'no text'}")
    stale = [claim for claim in known if claim.state != "current"]
    took = sum(claim.measured.duration_s for claim in stale if claim.measured)
    lines.append(
        f"{len(known)} results, {len(stale)} to measure"
        + (f", which took {took / 60:.0f} min" if took else "")
    )
    return lines


def _age(claim: Claim) -> str:
    if claim.measured is None:
        return ""
    days = (date.today() - date.fromisoformat(claim.measured.date)).days
    return f", measured {claim.measured.date} ({days} days ago) in {claim.measured.duration_s / 60:.1f} min"


def _elsewhere(claim: Claim) -> list[str]:
    """What the result was measured with; the versions here may be others, and that makes nothing stale."""
    if claim.measured is None or not claim.results:
        return []
    result = next(iter(claim.results.values()))
    arch = next((kernel.arch for kernel in result.kernels.values()), "x86_64")
    then = result.machine.get("qemu", {}).get(arch, "not recorded")
    try:
        here = qemu_version("arm64" if arch == "arm64" else "x86_64")
    except LabError:
        here = "none"
    sources = dict.fromkeys(kernel.source for kernel in result.kernels.values())
    return [f"with QEMU {then}{'' if here == then else f' (here: {here})'}, {', '.join(sources)}"]


def keep(claim: Claim, files: Sequence[Path], measured_ids: dict[str, str], seconds: float) -> None:
    """Write the results, reduced, and when they were measured."""
    if not files:
        raise Refused(f"{claim.name}: the run left no result")
    for old in result_files(claim.folder):
        old.unlink()
    for file in files:
        result = Result.model_validate_json(file.read_bytes())
        target = claim.folder / ("" if len(files) == 1 else result.clock) / "result.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(reduced(result), encoding="utf-8")
    measured = Measured(date=date.today().isoformat(), duration_s=round(seconds, 1), ids=measured_ids)
    (claim.folder / "measured.json").write_text(measured.model_dump_json(indent=1) + "\n", encoding="utf-8")


def reduced(result: Result) -> str:
    """A result as it is kept: what tables can show, with a line for each comparison and each law.

    Left out are profiles, histograms and the list of outliers, which the run directory has, fields that have
    their default value, and digits after the ninth.
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
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _print_check() -> int:
    """Print what ``check`` found, and return the exit status."""
    if lines := check(ROOT):
        print("\n".join(lines), file=sys.stderr)
        return 1
    print(f"results: {len(claims(ROOT))} results, none is stale, and every text has their figures")
    if warning := unmeasured(ROOT):
        print(warning)
    return 0


def main(arguments: list[str]) -> int:
    """Run one of the commands."""
    try:
        match arguments:
            case ["list"]:
                print("\n".join(listing(ROOT)))
            case ["check"]:
                return _print_check()
            case ["renew"]:
                failed = renew(ROOT)
                print("\n".join(write_tables(ROOT)))
                if failed:
                    raise Refused("\n".join(failed))
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
