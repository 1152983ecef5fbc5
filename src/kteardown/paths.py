"""Where things live: the data that the package ships, the cache, the runs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_APP = "kteardown"


def data_dir(kind: str) -> Path:
    """The shipped folder ``kind``: agent, workloads, experiments, kernels, series, reference.

    An installed copy carries them inside the package; a checkout has them beside ``src``.
    """
    packaged = Path(__file__).parent / "data" / kind
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / kind


def cache_dir() -> Path:
    """Built things: ``KTEARDOWN_CACHE``, else the user's cache folder."""
    return Path(os.environ.get("KTEARDOWN_CACHE") or platformdirs.user_cache_dir(_APP))


def runs_dir() -> Path:
    """Run directories: ``KTEARDOWN_RUNS``, else the user's data folder."""
    chosen = os.environ.get("KTEARDOWN_RUNS")
    return Path(chosen) if chosen else Path(platformdirs.user_data_dir(_APP)) / "runs"


def programs_dir() -> Path | None:
    """The user's own programs for guests: ``KTEARDOWN_PROGRAMS``; None without it."""
    chosen = os.environ.get("KTEARDOWN_PROGRAMS")
    return Path(chosen) if chosen else None
