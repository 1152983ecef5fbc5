"""What a script does while it is rehearsed, so that a slow script can be told from a hung one.

The seconds of the host say little: a busy host needs a minute for five seconds of a guest.
"""

import re

from kteardown.model.record import Alive, Record, TrialEnd, TrialStart

_REPORT = re.compile(r"(\d+) s of \d+ s; its last line: (.*)", re.DOTALL)
"""What the agent says of a script that runs, about every 5 s of the guest's clock."""
_SILENT_S = 20.0
"""The agent misses several of its reports in this time of the guest's clock."""


class ScriptProgress:
    """Follows one script by the guest's clock, which QEMU tells, and by the agent's reports.

    The agent's reports alone would be late, and more of them would be work within what is measured.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._guest_s = 0.0
        self._state = "starts"
        self._script_s = 0.0
        """For how long the script had run at the last record."""
        self._record_at_s: float | None = None
        """The guest's clock at the last record; None until the clock is known."""
        self._last_line: str | None = None
        """None before the first report, and empty if the script has printed nothing."""

    def see_clock(self, guest_s: float) -> None:
        """Take note of the guest's clock, in seconds since the guest started."""
        self._guest_s = guest_s
        if self._record_at_s is None:
            self._record_at_s = guest_s

    def see_record(self, record: Record) -> None:
        """Take note of a record of the agent."""
        if isinstance(record, TrialStart):
            self._state = "runs"
            self._record_at_s = None
        elif isinstance(record, TrialEnd):
            self._state = "ends"
        elif isinstance(record, Alive) and (report := _REPORT.match(record.detail)):
            self._script_s = float(report[1])
            self._record_at_s = None
            self._last_line = report[2].strip()

    def words(self) -> str:
        """Return a line about the time, and a line about the output once there was a report."""
        if self._state != "runs":
            return f"the guest {self._state}, at {self._guest_s:.0f} s of its clock"
        silent_s = 0.0 if self._record_at_s is None else self._guest_s - self._record_at_s
        time = (
            f"the script has run for {self._script_s + silent_s:.0f} s of {self._limit_s:g} s of "
            "the guest's clock (--limit)"
        )
        return "\n".join(filter(None, (time, self._output(), self._silence(silent_s))))

    def _output(self) -> str:
        if self._last_line is None:
            return "its last line is known after 5 s"
        if not self._last_line:
            return f"after {self._script_s:.0f} s it had printed nothing"
        return f"its last line after {self._script_s:.0f} s: {self._last_line}"

    def _silence(self, silent_s: float) -> str:
        if silent_s < _SILENT_S:
            return ""
        return (
            f"the agent has reported nothing for {silent_s:.0f} s of the guest's clock: the kernel "
            "may be stuck"
        )
