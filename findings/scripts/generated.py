"""What kteardown itself knows from the published results: ``coverage/spreads.json`` and
``coverage/laws.json``.

- The spreads have a row for each metric of a shipped workload: the medians over all results on the
  instruction clock of the standard deviations over boots of the log ratio, of the metric and of one
  point. ``kteardown try`` reads them (``kteardown.flows.try_series.smallest``).
- The laws say what one more object costs an unpatched kernel: a row for each metric, parameter,
  release and point of the other parameters. If several results have one, that with the most points
  counts. ``kteardown show workload`` prints them (``kteardown.coverage.laws``).
"""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from claims import RESULTS


def texts(root: Path) -> dict[str, str]:
    """The content of both files, by path."""
    results = list(_results(root))
    shipped = {
        path.stem: set(tomllib.loads(path.read_text(encoding="utf-8")).get("metrics", {}))
        for path in (root / "workloads").glob("*.toml")
    }
    return {
        "coverage/spreads.json": _lines(_spreads(results, shipped)),
        "coverage/laws.json": _lines(_laws(results, shipped)),
    }


def _results(root: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(root.glob(f"{RESULTS}/*/result.json")):
        result = json.loads(path.read_bytes())
        if result.get("clock") == "instructions":
            yield result


def _lines(rows: Sequence[Any]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"


def _spreads(results: Sequence[dict[str, Any]], shipped: dict[str, set[str]]) -> list[list[Any]]:
    spreads: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for result in results:
        for verdict in result["metric_verdicts"]:
            pair = verdict.get("spread"), verdict.get("point_spread")
            is_median = verdict.get("statistic", "median") == "median"
            # A script may have the name of another script, so its spreads are left out.
            if is_median and verdict["workload"] in shipped and None not in pair:
                spreads[verdict["workload"], verdict["metric"]].append(pair)
    return [
        [*name, *(float(f"{median(column):.3g}") for column in zip(*pairs, strict=True))]
        for name, pairs in sorted(spreads.items())
    ]


def _laws(results: Sequence[dict[str, Any]], shipped: dict[str, set[str]]) -> list[list[Any]]:
    best: dict[str, tuple[int, list[Any]]] = {}
    for result in results:
        release = result["kernels"]["base"]["release"]
        for law in result["laws"]:
            of_base = law["kernel"] == "base" and law["metric"] in shipped.get(law["workload"], ())
            if not of_base or law["model"] == "unknown" or law["per_unit"] is None:
                continue
            place = [law["workload"], law["metric"], law["param"], release, law.get("point", {})]
            row = [*place, law["model"], law["per_unit"], law.get("exponent")]
            key = json.dumps(place, sort_keys=True)
            if key not in best or best[key][0] < law["points"]:
                best[key] = law["points"], row
    return [best[key][1] for key in sorted(best)]
