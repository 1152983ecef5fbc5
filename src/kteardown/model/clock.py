"""The clocks of a guest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Clock = Literal["instructions", "wall"]
CLOCKS: Mapping[Clock, str] = {"instructions": "the instruction clock", "wall": "the wall clock"}
"""What each is called in texts. The exact one is first, because it is the faster one to a first answer."""
