"""The scripts of the findings, and the shared parts of the tool's tests."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "findings/scripts"), str(ROOT / "tests")]
