"""``python -m kteardown``."""

from kteardown.cli import main

main()
