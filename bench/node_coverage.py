#!/usr/bin/env python3
"""Coverage of the intervals of a run on the nodes of a cluster, in simulations: the table of METHODOLOGY.md.

    node_coverage.py [--runs N]

The true change is -20%. It differs between nodes by ``between``; the nodes as a whole differ by 30% in speed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from unit import validation as v


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    print("| nodes | between | blocks alone | width | with nodes | width |\n|---|---|---|---|---|---|")
    for nodes in (2, 3, 4, 8):
        for between in (0.0, 0.02, 0.07, 0.2):
            found = v.node_coverage(nodes, 20, between, runs)
            print(
                f"| {nodes} | {between:.0%} | {found.alone:.1%} | {found.width_alone:.1%} "
                f"| {found.inside:.1%} | {found.width:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
