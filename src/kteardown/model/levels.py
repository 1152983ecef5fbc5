"""The figures of base by themselves."""

from kteardown.model.judged import Summary, Valued
from kteardown.model.record_fields import ParamValue


class Level(Valued):
    """A metric of one kernel at one point."""

    kernel: str
    point: dict[str, ParamValue]
    summary: Summary
