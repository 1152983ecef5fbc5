"""Import all that a verb may import, once, for the processes that are forked from this one."""

from __future__ import annotations

import gc
import os
from importlib import import_module
from pathlib import Path

import __main__
import kteardown
from sources import modules

# Without a file this would be an interactive Python to duckdb, which prints its progress there.
__main__.__file__ = str(Path(kteardown.__file__).with_name("__main__.py"))
for _module in modules():
    assert _module
# Libraries that are imported where they are used, and what starts the processes: each imports
# pytest.
for _name in ("scipy.stats", "unit.processes", "unit.run.killable"):
    import_module(_name)
# Else the first garbage collection in each process copies the pages of all that is imported.
os.register_at_fork(after_in_child=gc.freeze)
