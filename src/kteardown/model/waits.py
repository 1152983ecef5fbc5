"""What the tasks of a script wait for."""

from typing import Literal

from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import StrictModel

WaitFor = Literal["kernel", "process", "time"]
"""What a task waits for: something in the kernel, another process, or a time that it asked
for."""


class WaitPlace(StrictModel):
    """A function in which tasks wait, at the largest point.

    ``function`` is the innermost one that says for what: not that of the scheduler. ``callers`` are
    those through which most of its time came, the nearest first. ``is_process``: a process waits;
    else a kernel thread does, for a work item. ``count`` and ``ns`` are of one stretch, all tasks
    together; ``share`` is ``ns`` as a part of the stretch, above 1 if several tasks wait at once.
    ``count_per_object`` is how many more waits one more object adds; None if only one size was
    watched.
    """

    function: str
    callers: tuple[str, ...]
    is_process: bool
    waits_for: WaitFor
    count: float
    ns: float
    share: float
    count_per_object: float | None = None


class WaitedEvent(StrictModel):
    """An event that tasks wait for, such as a grace period, whatever function they wait in.

    ``event`` and ``label`` are those of ``events.toml``; the other fields are as in ``WaitPlace``.
    """

    event: str
    label: str
    count: float
    ns: float
    count_per_object: float | None = None


class WaitProfile(StrictModel):
    """What the tasks of one kernel wait for, at the largest point of ``param``.

    ``stretch_ns`` is the mean length of a stretch, ``stretches`` how many were watched. ``lost``
    counts the switches of tasks that did not fit into the buffer. ``places`` are by decreasing
    time; what was less than a thousandth of the stretch is left out. ``events`` has every wait for
    one of the events.
    """

    workload: str
    kernel: str
    param: str
    point: dict[str, ParamValue]
    stretches: int
    stretch_ns: float
    lost: int
    places: tuple[WaitPlace, ...]
    events: tuple[WaitedEvent, ...] = ()
