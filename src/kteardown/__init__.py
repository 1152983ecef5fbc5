"""kteardown: benchmarks Linux kernel patches that kill, freeze or free things in bulk.

It builds the kernels, boots them in virtual machines, measures, and says whether the difference is real.
"""

from importlib import metadata


def version() -> str:
    """Return the installed version."""
    return metadata.version("kteardown")
