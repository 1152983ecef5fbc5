"""What a design can decide before it is run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Standard deviations over boots of the log ratio, of a metric and of one point, in an earlier run."""

    metric: float
    point: float
    run: str


@dataclass(frozen=True)
class Decidable:
    """The smallest change of a metric, and of one of its points, that is found with 80% power.

    As relative increases: 0.1 is +10%; a decrease is found from 1 / 1.1 on. None if nothing can be found.
    ``metric_name`` is empty for the metrics whose spread is not known; ``run`` then too.
    """

    workload: str
    metric_name: str
    points: int
    spread: float
    metric: float | None
    point: float | None
    run: str


@dataclass(frozen=True)
class DesignPower:
    """What a design can decide: ``tests`` headline metrics times variants, from ``boots`` pairs of boots."""

    tests: int
    boots: int
    rows: tuple[Decidable, ...]
