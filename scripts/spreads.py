"""Write ``coverage/spreads.json``: how much boots differ in each metric of the results.

    scripts/spreads.py make     writes it
    scripts/spreads.py check    fails if it is not what the results give

It has a row for each metric of a workload: the medians over all results on the instruction clock of
the standard deviations over boots of the log ratio, of the metric and of one point. ``kteardown
try`` reads it (kteardown.flows.try_series.smallest).
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from generated import ROOT, main

FILE = ROOT / "coverage" / "spreads.json"
SHIPPED = {path.stem for path in (ROOT / "workloads").glob("*.toml")}


def text(results: Path) -> str:
    """Return the content of the file."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for path in sorted(results.glob("*/result.json")):
        result = json.loads(path.read_text())
        if result.get("clock") != "instructions":
            continue
        for m in result["metric_verdicts"]:
            spreads = m.get("spread"), m.get("point_spread")
            is_median = m.get("statistic", "median") == "median"
            # Not those of scripts: another script may have the same name.
            if is_median and m["workload"] in SHIPPED and None not in spreads:
                found[m["workload"], m["metric"]].append(spreads)
    rows = [
        [*name, *(float(f"{median(column):.3g}") for column in zip(*spreads, strict=True))]
        for name, spreads in sorted(found.items())
    ]
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"


if __name__ == "__main__":
    sys.exit(main(FILE, text))
