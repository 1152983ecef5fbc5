"""The records of a script: what it left behind, and what its tasks waited for."""

from typing import Literal

from kteardown.model.record_fields import Count, Int, RecordFields


class OutputLine(RecordFields):
    """A line that a script printed, or that the kernel logged meanwhile.

    ``at_ns`` is when the agent read it, or of the log the kernel's own time of it, in whole
    microseconds: the times of one source can be compared with each other.
    """

    type: Literal["output"] = "output"
    trial: Count
    repetition: Count
    source: Literal["script", "log"]
    at_ns: Int
    text: str
    facility: Int = 0
    """Of a message of the log: 0 is the kernel's, any other that of user space, which wrote to
    /dev/kmsg."""


class Delta(RecordFields):
    """A counter of the kernel before and after a script, if it changed: ``name`` in the file
    ``file``."""

    type: Literal["delta"] = "delta"
    trial: Count
    repetition: Count
    file: str
    name: str
    before: Int
    after: Int


class ScriptEnd(RecordFields):
    """How a script ended: ``exit`` or ``signal`` with ``code``, or ``limit``: it was killed.

    ``dropped`` lines of its output and of the log were more than the agent keeps.
    """

    type: Literal["ended"] = "ended"
    trial: Count
    repetition: Count
    how: Literal["exit", "signal", "limit"]
    code: Int
    dropped: Int = 0


class WaitedStretch(RecordFields):
    """While a script ran, for ``stretch_ns``, its tasks and others waited ``waits`` times.

    ``lost`` switches of tasks did not fit into the buffer.
    """

    type: Literal["waits"] = "waits"
    trial: Count
    repetition: Count
    stretch_ns: Count
    waits: Count
    lost: Count


class Wait(RecordFields):
    """``count`` waits of a stretch with the same stack, ``outermost;...;innermost``: ``ns`` in all.

    A wait is from when a task gives up its CPU without being able to run until it runs again.
    """

    type: Literal["wait"] = "wait"
    trial: Count
    repetition: Count
    stack: str
    count: Count
    ns: Count


Scripted = OutputLine | Delta | ScriptEnd
Waited = WaitedStretch | Wait
