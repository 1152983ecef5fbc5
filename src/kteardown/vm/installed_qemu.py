"""The QEMU of this host: its version, or the error that it is missing."""

import re
import subprocess

from kteardown.errors import MissingError
from kteardown.model.arch import ARCHITECTURES, Arch


def qemu_version(arch: Arch) -> str:
    """Return the version of QEMU for ``arch``, such as ``7.2.22``. Raises LabError if it is not installed."""
    try:
        output = subprocess.run(
            [ARCHITECTURES[arch].qemu, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise missing_qemu(arch) from error
    version = re.search(r"version (\d[\w.]*)", output)
    return version[1] if version else output.strip()


def missing_qemu(arch: Arch) -> MissingError:
    """Return the error for a missing QEMU for ``arch``."""
    known = ARCHITECTURES[arch]
    return MissingError(f"{known.qemu} is not installed", [known.qemu_package])
