#!/usr/bin/env python3
"""Coverage of the intervals of a run on the nodes of a cluster, in simulations.

Prints a table and writes it to findings/results/simulations. The true change is -20%. It differs
between nodes by ``between``; the nodes as a whole differ by 30% in speed.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from markdown_table import markdown  # noqa: E402
from unit import validation as v  # noqa: E402

RUNS = 400
ABOUT = (
    "Coverage and median width of the 95% interval over points, 20 blocks, boots that differ by "
    "5%; `between` is the standard deviation of the change between nodes."
)


def main() -> None:
    """Print and write the table."""
    lines = [["nodes", "between", "blocks alone", "width", "with nodes", "width"]]
    for nodes in (2, 3, 4, 8):
        for between in (0.0, 0.02, 0.07, 0.2):
            it = v.node_coverage(nodes, 20, between, RUNS)
            alone, inside = (
                (f"{it.alone:.1%}", f"{it.width_alone:.1%}"),
                (f"{it.inside:.1%}", f"{it.width:.0%}"),
            )
            lines.append([str(nodes), f"{between:.0%}", *alone, *inside])
    text = f"## nodes\n{ABOUT} {RUNS} runs each.\n\n{markdown(lines, 0)}\n"
    print(text)
    (ROOT / "findings/results/simulations/nodes.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
