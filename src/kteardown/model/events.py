"""What kernel code does to other tasks and CPUs: waits for grace periods, broadcasts, later work
(``events.toml``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from pydantic import TypeAdapter

from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import FiniteModel
from kteardown.paths import shipped_table

ONCE = 0.95
"""What happens so often for each object happens once for each."""


@dataclass(frozen=True)
class EventKind:
    """One kind of event, and how it is recognised; ``events.toml`` says what the fields mean."""

    label: str
    unit: str
    blocking: bool
    functions: tuple[str, ...]
    not_from: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    waits_in: tuple[str, ...] = ()


EVENTS: Mapping[str, EventKind] = TypeAdapter(dict[str, EventKind]).validate_python(
    shipped_table("model/events")
)
"""The kinds by name, in the order in which they are shown."""


class EventFigure(FiniteModel):
    """How often an event happens on base and on a variant, one value for each seed.

    ``objects``: the parameter of which one more adds this; empty if it is the number in a whole
    stretch at the larger size. ``afterwards``: not in the stretch, but in the work that the kernel
    does later.
    """

    event: str
    label: str
    unit: str
    objects: str
    afterwards: bool
    base: tuple[float, ...]
    changed: tuple[float, ...]
    differs: bool

    @property
    def shown(self) -> bool:
        """Whether a reader should see it: it differs, or tasks or CPUs wait for it for each
        object."""
        blocks = EVENTS[self.event].blocking and not self.afterwards
        once = bool(self.objects) and min(map(median, (self.base, self.changed))) >= ONCE
        return self.differs or (blocks and once)


class EventCounts(FiniteModel):
    """What a variant does to waits and broadcasts in a workload.

    Counted at ``point`` and at twice its size. Without figures, ``reason`` says why not.
    """

    variant: str
    workload: str
    point: dict[str, ParamValue]
    figures: tuple[EventFigure, ...] = ()
    reason: str = ""
