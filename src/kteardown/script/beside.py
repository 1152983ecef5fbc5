"""The files that lie beside a script, read within a limit."""

import os
import stat
from pathlib import Path

from kteardown.errors import InputError, failing

_FILE_BYTES = 1 << 30


def beside(where: Path, name: str) -> Path:
    """Return the path of ``name`` in the folder of a TOML file. Raises InputError if it is
    elsewhere."""
    path = where / name
    wrong = Path(name).is_absolute() or ".." in Path(name).parts or not name.isprintable()
    if wrong or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(where)):
        raise InputError(
            f"{name!r} is not a file beside the description of its workload",
            hint=f"copy the file into {where}, and name it without a folder.",
        )
    return path


def read_file(path: Path) -> tuple[bytes, int]:
    """Return the contents of a file of a guest, and its permissions.

    Raises InputError if it is a device or a pipe, too large, or cannot be read.
    """
    with failing(f"cannot read {path}", hint="check the path, and that you may read the file."):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES:
            raise InputError(
                f"{path} is not a file of at most {_FILE_BYTES >> 20} MB",
                hint="give a smaller file: the guest holds all its files in memory.",
            )
        return path.read_bytes(), stat.S_IMODE(status.st_mode) & 0o777
