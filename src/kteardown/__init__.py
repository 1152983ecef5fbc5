"""kteardown: benchmarks Linux kernel patches that kill, freeze or free things in bulk.

It builds the kernels, boots them in virtual machines, measures, and says whether the difference is
real.
"""


def version() -> str:
    """Return the installed version."""
    from importlib import (
        metadata,
    )  # It takes longer to import than the rest of the program's start.

    return metadata.version("kteardown")
