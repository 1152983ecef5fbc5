"""What this user has put into the queue is known by a secret of the user's, which no file of a
queue has.

A job is a command with its options that is executed later, so it cannot be typed again.
"""

import hmac
import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import platformdirs

_BYTES = 32


def sealed(words: Sequence[str], mail: bytes) -> str:
    """Return the code of a job: of its words and its mail, with the secret, made if there is none.

    Raises OSError if the secret cannot be read or written.
    """
    message = json.dumps(list(words)).encode() + b"\0" + mail
    return hmac.new(_secret(), message, "sha256").hexdigest()


def is_sealed(code: str, words: Sequence[str], mail: bytes) -> bool:
    """Return whether ``code`` is that of the job. Raises OSError."""
    return hmac.compare_digest(code.encode(), sealed(words, mail).encode())


def _secret() -> bytes:
    file = Path(platformdirs.user_data_dir("kteardown")) / "secret"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        made = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(made, "wb") as stream:
            stream.write(secrets.token_bytes(_BYTES))
        # Another process may have made one: all have the same.
        with suppress(FileExistsError):
            os.link(partial, file)
        partial.unlink()
    return file.read_bytes()
