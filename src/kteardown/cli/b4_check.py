"""The check of a mail for b4, which ``kteardown try`` answers from the queue."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from kteardown.errors import InputError
from kteardown.paths import queue_dir
from kteardown.queue.check import check_mail
from kteardown.visible import echo

_MOST_BYTES = 32_000_001


def check_for_b4(what: Sequence[str]) -> None:
    """Print the check of b4 for the mail on the standard input. Raises InputError."""
    if list(what) != ["-"]:
        raise InputError(
            "--format b4-check reads one mail from the standard input",
            hint="write: kteardown try - --format b4-check.",
        )
    raw = sys.stdin.buffer.read(_MOST_BYTES)
    own_options = ("-", "--format", "b4-check", "--format=b4-check")
    arguments = [word for word in sys.argv[2:] if word not in own_options]
    checks: list[dict[str, Any]] = [
        dict(check) for check in check_mail(raw, arguments, queue_dir())
    ]
    echo(json.dumps(checks, indent=1))
