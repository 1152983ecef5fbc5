"""What boots kernels: QEMU, a machine by ssh, or a fake for tests."""

from collections.abc import Callable
from typing import Protocol

from kteardown.model.record import BootEnd
from kteardown.vm.job import BootJob


class Machine(Protocol):
    """Boots kernels, each to its end."""

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        """Run one boot to its end, and call ``on_line`` with every line of its records.

        A failure of the guest is a result, not an exception. Raises LabError if the machine cannot
        be used, KeyboardInterrupt after ``stop``, and whatever ``on_line`` raises.
        """

    def stop(self) -> None:
        """End every boot in progress and prevent later ones. May be called from any thread."""

    def release(self) -> None:
        """Give back what the machine holds; no more boots are to run."""
