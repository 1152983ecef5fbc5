"""The figures of the catalogue of problems, taken from the published results.

Both files have rows for what ``problems.toml`` and the calibration of ``kteardown observe`` name,
and for nothing else.

- ``laws.json``: [workload, metric, parameter, release, series, point, cost of one more, its
  interval, unit, result], for kernels without patches (``series`` is empty) and for our series
  where they are better. If several results have a row, that with the most points counts.
- ``costs.json``: an object for each kind, way, kind of cost (``work``: instructions of the call and
  of deferred work; ``held``: kB), release and series: the verdict on the growth, the numbers of
  objects, the costs of these numbers, the interval of the exponent at the last doubling, whether
  these are all instructions (a part whose growth is not known is left out), in which function the
  release of each object sleeps, and the result.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from claims import RESULTS
from kteardown_observe.calibrate import CALIBRATIONS

PACKAGE = "src/kteardown/catalogue"
_KNOWN = ("linear", "superlinear")
_MATTERS = 0.15
"""A part that is left out matters if it has more than this share of the other."""
_RELEASE = re.compile(r"[0-9]+\.[0-9]+")


def texts(root: Path) -> dict[str, str]:
    """Return the content of both files, by path; none in a tree without the package."""
    if not (root / PACKAGE).is_dir():
        return {}
    problems = tomllib.loads((root / PACKAGE / "problems.toml").read_text(encoding="utf-8"))
    keys = ("law", "relief")
    metrics = {problem[key] for problem in problems.values() for key in keys if key in problem}
    kinds = {
        (problem["kind"], problem["way"], problem.get("cost", "work"))
        for problem in problems.values()
        if "kind" in problem
    }
    kinds |= {(kind, way, "work") for kind, way in CALIBRATIONS.values()}
    series = {path.name for path in (root / "series").iterdir() if path.is_dir()}
    return {
        f"{PACKAGE}/laws.json": _lines(_laws(root, metrics, series)),
        f"{PACKAGE}/costs.json": _lines(_costs(root, kinds, series)),
    }


def _lines(rows: Sequence[Any]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"


def _laws(root: Path, metrics: set[str], series: set[str]) -> list[list[Any]]:
    best: dict[str, tuple[int, list[Any]]] = {}
    for path in sorted(root.glob(f"{RESULTS}/*/result.json")):
        result = json.loads(path.read_bytes())
        if result.get("clock") != "instructions":
            continue
        for law in result["laws"]:
            place = _place(law, result, metrics, series)
            kernel = result["kernels"][law["kernel"]]
            cost = _cost_of_one(law, kernel, result["laws"]) if place else None
            if not place or not cost:
                continue
            unit = "instructions" if law["unit"] == "ns" else law["unit"]
            row = [*place, *cost, unit, path.parent.name]
            key = json.dumps(place, sort_keys=True)
            if key not in best or best[key][0] < law["points"]:
                best[key] = law["points"], row
    return [best[key][1] for key in sorted(best)]


def _place(
    law: dict[str, Any], result: dict[str, Any], metrics: set[str], series: set[str]
) -> list[Any] | None:
    """Return what a law is about; None if it says nothing for a live machine."""
    kernel = result["kernels"][law["kernel"]]
    of_series = kernel.get("series", "")
    is_better = of_series in series and law.get("verdict") == "better" and "@" not in law["kernel"]
    if f"{law['workload']}.{law['metric']}" not in metrics or (of_series and not is_better):
        return None
    release = _release(kernel["release"])
    point = law.get("point") or {}
    return [law["workload"], law["metric"], law["param"], release, of_series, point]


def _cost_of_one(
    law: dict[str, Any], kernel: dict[str, Any], laws: Sequence[dict[str, Any]]
) -> tuple[float, list[float]] | None:
    """Return what one more object costs, and the interval; None if the law is not known.

    With a series, and on a kernel that releases much at once, which is no line, it is the cost of
    base times the ratio of both slopes: its interval is narrower than that of a slope.
    """
    is_line = law["model"] in ("linear", "constant") and law["per_unit_ci"] is not None
    if is_line and not kernel.get("series"):
        return law["per_unit"], law["per_unit_ci"]
    keys = ("workload", "metric", "param", "point")
    base = next(
        other
        for other in laws
        if other["kernel"] == "base" and all(other.get(key) == law.get(key) for key in keys)
    )
    if law.get("ratio_ci") is None or base["model"] != "linear" or law["ratio_ci"][0] <= 0:
        return None
    low, high = law["ratio_ci"]
    return base["per_unit"] * law["ratio"], [base["per_unit"] * low, base["per_unit"] * high]


def _release(text: str) -> str:
    found = _RELEASE.match(text)
    assert found is not None, text
    return found[0]


def _costs(root: Path, kinds: set[tuple[str, str, str]], series: set[str]) -> list[dict[str, Any]]:
    hunts = {path.parent.name: json.loads(path.read_bytes()) for path in _hunts(root)}
    sleeps = _sleeps(hunts.values())
    best: dict[str, tuple[int, dict[str, Any]]] = {}
    for name, hunt in hunts.items():
        for place, growths in _measured(hunt, kinds, series):
            parts, is_whole = _known_parts(growths, place["cost"])
            if not parts:
                continue
            sizes = parts[0]["sizes"]
            costs = [sum(column) for column in zip(*(part["costs"] for part in parts), strict=True)]
            row = {
                **place,
                "verdict": parts[0]["verdict"],
                "sizes": sizes,
                # Six digits: more are of one boot.
                "costs": [float(f"{cost:.6g}") for cost in costs],
                "exponent_ci": parts[0]["exponent_ci"],
                "is_whole": is_whole,
                "sleeps_in": sleeps.get((place["kind"], place["way"]), ""),
                "result": name,
            }
            key = json.dumps(place)
            if key not in best or best[key][0] < sizes[-1]:
                best[key] = sizes[-1], row
    return [best[key][1] for key in sorted(best)]


def _hunts(root: Path) -> list[Path]:
    return sorted(root.glob(f"{RESULTS}/*/hunt.json"))


def _sleeps(hunts: Iterable[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Return in which function the release of each object sleeps, by kind and way."""
    return {
        (wait["kind"], wait["way"]): wait["functions"][0]["name"]
        for hunt in hunts
        for wait in hunt.get("waits", ())
        if wait["functions"]
    }


def _known_parts(growths: dict[str, Any], cost: str) -> tuple[list[dict[str, Any]], bool]:
    """Return the parts of a cost whose growth is known, the largest first, and whether what is left
    out does not matter.

    Nothing is returned if the growth of the larger part is not known.
    """
    names = ("sync", "deferred") if cost == "work" else ("held",)
    both = [growths[name] for name in names if name in growths]
    parts = [part for part in both if None not in part["costs"] and len(part["costs"]) > 1]
    known = [part for part in parts if part["verdict"] in _KNOWN and _is_bounded(part)]
    known.sort(key=_last_slope, reverse=True)
    known = [part for part in known if part["sizes"] == known[0]["sizes"]]
    left_out = max((abs(_last_slope(part)) for part in parts if part not in known), default=0)
    if not known or left_out > _last_slope(known[0]):
        return [], False
    return known, left_out <= _MATTERS * _last_slope(known[0])


def _is_bounded(part: dict[str, Any]) -> bool:
    return None not in part.get("exponent_ci", (None,))


def _last_slope(part: dict[str, Any]) -> float:
    sizes = part["sizes"]
    costs = part["costs"]
    return float((costs[-1] - costs[-2]) / (sizes[-1] - sizes[-2]))


def _measured(
    hunt: dict[str, Any], kinds: set[tuple[str, str, str]], series: set[str]
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield each wanted cost of a hunt, of its kernel and of those it is compared with."""
    finds = [find for find in hunt["finds"] if find["cost"] == "sync"]
    release = _release(hunt["release"])
    plain = not hunt["source"].partition(" on ")[2]
    for kind, way, cost in sorted(kinds):
        place = {"kind": kind, "way": way, "cost": cost}
        for case in hunt["cases"]:
            if plain and (case["kind"], case["way"], case["user"]) == (kind, way, "root"):
                here = {**place, "release": release, "series": ""}
                yield here, case["growth"]
        for find in finds:
            if (find["kind"], find["way"], cost) != (kind, way, "work"):
                continue
            for other, growth in find.get("elsewhere", {}).items():
                where = _elsewhere(other, release, series)
                if where:
                    there = {**place, "release": where[0], "series": where[1]}
                    yield there, {"sync": growth}


def _elsewhere(kernel: str, release: str, series: set[str]) -> tuple[str, str] | None:
    """Return the release and the series of a kernel that a hunt compared with."""
    if kernel in series:
        return release, kernel
    name, _, number = kernel.partition(":")
    return (_release(number), "") if name in ("debian", "debian-image") else None
