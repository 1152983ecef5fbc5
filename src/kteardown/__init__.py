"""kteardown: evidence about changes to the paths on which Linux tears things down."""

from importlib import metadata


def version() -> str:
    """The version that is installed."""
    return metadata.version("kteardown")
