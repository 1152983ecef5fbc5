"""Whether a published result still holds: its first boots are run again, and compared to the digit.

The instruction clock is exact, so the same agent, kernel and seed count the same on every host. The
command of a claim is run with one seed, which boots each kernel once as the first boots of the
whole run did. Of a hunt, five of the kinds that it names are hunted again.

The figures of the wall clock are only measured.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from statistics import median

from claims import ROOT, Claim, Confirmed, Evidence, head, result_files
from hunts import Hunt
from kteardown.model.record_fields import ParamValue
from kteardown.paths import runs_dir
from kteardown.rundir import snapshot
from kteardown.rundir.counting import trials
from kteardown.rundir.directory import RunDir
from kteardown_hunt.result import HuntResult

Digits = dict[str, dict[str, float]]
"""What boots counted: by kernel, workload and point, and then by metric."""

KINDS = 5
"""So many kinds of a hunt are hunted again."""
NEAR = 0.02
"""Two results may differ by this share at one point: other points ran before it in the guest."""
_REPLACED = {"--seeds", "--boots", "--clock"}
_OF_THE_WHOLE_HUNT = {"--kinds", "--against", "--locks", "--owners"}


class NotConfirmed(ValueError):
    """The boots cannot be compared; the message says why."""


def digits_of_run(folder: Path) -> Digits:
    """The median of each metric in the first boot of each kernel; empty on the wall clock.

    ``folder`` is a run, which on both clocks has a run for each.
    """
    counted: Digits = {}
    for file in result_files(folder):
        run = snapshot.load(RunDir.open(file.parent))
        if run.experiment.design.clock != "instructions":
            continue
        for boot in run.boots:
            if boot.start.block:
                continue
            machine = run.plan.boots[boot.boot].machine
            for trial in trials(boot.records):
                place = _place(boot.start.kernel, trial.workload, {**machine, **trial.params})
                if trial.usable:
                    counted[place] = {name: median(v) for name, v in trial.samples.items()}
    return counted


def digits_of_hunt(result: HuntResult, kinds: Iterable[str]) -> Digits:
    """The costs of the finds about ``kinds``, by find and number of objects."""
    wanted = set(kinds)
    return {
        f"{find.kind}, {find.way}, {find.cost}": dict(
            zip(map(str, find.growth.sizes), (cost or 0 for cost in find.growth.costs), strict=True)
        )
        for find in result.finds
        if find.growth and find.cost and find.kind in wanted
    }


def kinds_of(result: HuntResult) -> list[str]:
    """Kinds of which a hunt has finds, evenly spread over the alphabet."""
    kinds = sorted({find.kind for find in result.finds if find.growth and find.cost})
    return kinds[:: max(1, len(kinds) // KINDS)][:KINDS]


def confirm(evidence: Evidence) -> Confirmed:
    """Boot what the result was measured with once, compare, and keep what was seen.

    Raises NotConfirmed if there is nothing to compare, and ValueError if the tree is not committed.
    """
    measured = evidence.measured
    if measured is None:
        raise NotConfirmed("it was never measured")
    commit = head(evidence.root)
    if isinstance(evidence, Hunt):
        kept, counted = _hunted_again(evidence)
    else:
        assert isinstance(evidence, Claim)
        kept, counted = _booted_again(evidence)
    confirmed = Confirmed(
        commit=commit, date=date.today().isoformat(), differs=difference(kept, counted)
    )
    evidence.keep(measured.model_copy(update={"confirmed": confirmed}))
    return confirmed


def _booted_again(claim: Claim) -> tuple[Digits, Digits]:
    file = claim.folder / "boot.json"
    if not file.is_file():
        raise NotConfirmed("it has no figures of the instruction clock: measure it")
    words = without(shlex.split(claim.command), _REPLACED)
    folder = _new_folder(claim.name)
    _run([*words, "--clock", "instructions", "--seeds", "1"], folder)
    (run,) = (path for path in folder.iterdir() if path.is_dir())
    kernels = snapshot.load(RunDir.open(run)).kernels
    published = claim.results["instructions"].kernels
    for name, kernel in kernels.items():
        known = published.get(name)
        if known and (known.source, known.compiler) != (kernel.source, kernel.compiler):
            raise NotConfirmed(
                f"{name} is {kernel.source} by {kernel.compiler} here, and was {known.source} by "
                f"{known.compiler}"
            )
    return json.loads(file.read_bytes()), digits_of_run(run)


def _hunted_again(hunt: Hunt) -> tuple[Digits, Digits]:
    kinds = kinds_of(hunt.result)
    if not kinds:
        raise NotConfirmed("the hunt has no find whose cost grows")
    words = without(shlex.split(hunt.command), _OF_THE_WHOLE_HUNT)
    folder = _new_folder(hunt.name)
    answer = folder / "hunt.json"
    _run([*words, "--kinds", ",".join(kinds), "--json", str(answer)], folder)
    again = HuntResult.model_validate_json(answer.read_bytes())
    if again.release != hunt.result.release:
        raise NotConfirmed(f"the kernel is {again.release} here, and was {hunt.result.release}")
    return digits_of_hunt(hunt.result, kinds), digits_of_hunt(again, kinds)


def without(words: list[str], options: set[str]) -> list[str]:
    """A command line without these options and their values."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif word.partition("=")[0] not in options:
            kept.append(word)
    return kept


def difference(kept: Mapping[str, Mapping[str, float]], counted: Digits) -> str:
    """How many figures differ, and which differs most; empty if none does.

    Raises NotConfirmed if no figure was counted.
    """
    pairs = [
        (f"{metric} of {place}", before, counted.get(place, {}).get(metric))
        for place, metrics in kept.items()
        for metric, before in metrics.items()
    ]
    if not any(now is not None for _, _, now in pairs):
        raise NotConfirmed("none of its figures was counted")
    apart = [(_share(before, now), name, before, now) for name, before, now in pairs]
    differing = [one for one in apart if one[0]]
    if not differing:
        return ""
    share, name, before, now = max(differing)
    seen = "nothing" if now is None else f"{now:,.12g}"
    return (
        f"{len(differing)} of {len(pairs)} figures differ, most by {share:.2g} of it {name}: "
        f"{seen} for {before:,.12g}"
    )


def _share(before: float, now: float | None) -> float:
    if now is None:
        return float("inf")
    return abs(now - before) / abs(before) if before else float(now != before)


def conflicts(claims: Iterable[Claim]) -> Iterator[str]:
    """Each point that two results of one commit measured, and for which they have two values.

    One of them has then counted something else as well.
    """
    seen: dict[tuple[str, ...], dict[str, tuple[str, float]]] = defaultdict(dict)
    for claim in claims:
        file = claim.folder / "boot.json"
        if claim.measured is None or not file.is_file():
            continue
        for place, metrics in json.loads(file.read_bytes()).items():
            image = claim.measured.kernels.get(place.partition(":")[0], "")
            for metric, value in metrics.items():
                before, first = seen[claim.measured.commit, image, place].setdefault(
                    metric, (claim.name, value)
                )
                if abs(value - first) > NEAR * max(abs(value), abs(first)):
                    yield (
                        f"{metric} of {place}: {first:g} in {before} and {value:g} in {claim.name}"
                    )


def _place(kernel: str, workload: str, point: Mapping[str, ParamValue]) -> str:
    shown = " ".join(f"{name}={value}" for name, value in sorted(point.items()))
    return f"{kernel}: {workload} {shown}".rstrip()


def _new_folder(name: str) -> Path:
    folder = runs_dir().parent / "confirm" / name
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def _run(words: list[str], folder: Path) -> None:
    command = [sys.executable, "-P", "-m", *words]
    environment = {**os.environ, "KTEARDOWN_RUNS": str(folder)}
    # The progress stays visible; the result is compared, not read.
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode not in (0, 1):
        raise NotConfirmed(f"{shlex.join(words)} ended with {done.returncode}")
