"""Measure a result, and keep it in ``findings/results``."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from boots import digits_of_run
from claims import ROOT, Claim, Evidence, Measured, head, result_files
from hunts import Hunt, lines
from kteardown.model.result import Result
from kteardown.paths import runs_dir
from kteardown_hunt.result import HuntResult

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


class Begun(BaseModel):
    """A measurement that has begun: its commit, the seconds that it took so far, and the runs
    before it."""

    commit: str
    seconds: float = 0
    runs: list[str]


def measure(claim: Claim) -> None:
    """Measure a claim with its command, and keep the result.

    The runs are in the folder ``published`` beside the user's runs. A measurement that was
    interrupted continues if the commit is the same. Raises ValueError.
    """
    folder = runs_dir().parent / "published" / claim.name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "begun.json"
    begun = Begun(commit=head(claim.root), runs=_runs(folder))
    if file.is_file():
        earlier = Begun.model_validate_json(file.read_bytes())
        if earlier.commit == begun.commit:
            begun = earlier
    started = [run for run in _runs(folder) if run not in begun.runs]
    command = claim.command
    if started:
        command = shlex.join(["kteardown", "run", "--resume", str(folder / started[-1])])
    file.write_text(begun.model_dump_json())
    since = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-m", *shlex.split(command)],
        cwd=ROOT,
        env={**os.environ, "KTEARDOWN_RUNS": str(folder)},
        check=False,
    )
    begun.seconds += time.monotonic() - since
    file.write_text(begun.model_dump_json())
    if done.returncode:
        raise ValueError(f"{claim.name}: {command} ended with {done.returncode}")
    if head(claim.root) != begun.commit:
        raise ValueError(f"{claim.name}: not kept, because the commit changed: measure it again")
    run = next(run for run in reversed(_runs(folder)) if run not in begun.runs)
    keep_run(claim, folder / run, commit=begun.commit, seconds=begun.seconds)
    file.unlink()


def keep_run(claim: Claim, run: Path, *, commit: str = "", seconds: float = 0) -> None:
    """Keep the results of a run, its first boots, and how it was measured. Raises ValueError.

    Without ``commit`` the run was measured with the present one.
    """
    files = result_files(run)
    if not files:
        raise ValueError(f"{run}: the run has no result")
    results = [Result.model_validate_json(file.read_bytes()) for file in files]
    for old in result_files(claim.folder):
        old.unlink()
    for result in results:
        target = claim.folder / ("" if len(results) == 1 else result.clock) / "result.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(reduced(result), encoding="utf-8")
    _keep_digits(claim, run)
    kernels = {name: kernel for result in results for name, kernel in result.kernels.items()}
    measured = Measured(
        commit=commit or head(claim.root),
        date=date.today().isoformat(),
        command=claim.command,
        duration_s=round(seconds, 1),
        compiler="; ".join(dict.fromkeys(kernel.compiler for kernel in kernels.values())),
        kernels={name: kernel.image_hash for name, kernel in kernels.items()},
    )
    claim.keep(measured)


def keep_hunt(root: Path, name: str, file: Path, *, commit: str = "") -> None:
    """Keep the result that ``kteardown hunt --json FILE`` wrote.

    Without ``commit`` it was measured with the present one.
    """
    result = HuntResult.model_validate_json(file.read_bytes())
    # The reader does not need to know where the result was written.
    command = re.sub(r" --json[ =]\S+", "", result.command)
    result = result.model_copy(update={"command": command})
    hunt = Hunt(root, name)
    hunt.folder.mkdir(parents=True, exist_ok=True)
    text = lines(result.model_dump(mode="json", exclude_defaults=True))
    (hunt.folder / "hunt.json").write_text(text, encoding="utf-8")
    measured = Measured(
        commit=commit or head(root),
        date=date.today().isoformat(),
        command=command,
        duration_s=result.measured_s,
        kernels=dict(result.image_hashes),
    )
    hunt.keep(measured)


def _keep_digits(claim: Evidence, run: Path) -> None:
    digits = digits_of_run(run)
    file = claim.folder / "boot.json"
    if digits:
        places = (f" {json.dumps(place)}: {json.dumps(digits[place])}" for place in sorted(digits))
        file.write_text("{\n" + ",\n".join(places) + "\n}\n", encoding="utf-8")
    else:
        file.unlink(missing_ok=True)


def reduced(result: Result) -> str:
    """A result as it is kept: what tables can show, with a line for each comparison and each law.

    Left out are profiles, histograms and the list of outliers, which the run directory has, fields
    that have their default value, and digits after the ninth.
    """
    fields = result.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=_LEFT_OUT)
    parts = []
    for name, value in _rounded(fields).items():
        several = isinstance(value, list) and value and isinstance(value[0], dict)
        text = ",\n".join(f"  {json.dumps(row)}" for row in value) if several else json.dumps(value)
        parts.append(f' "{name}": [\n{text}\n ]' if several else f' "{name}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def _runs(folder: Path) -> list[str]:
    """The runs in a folder, oldest first: their names begin with the time."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir())
