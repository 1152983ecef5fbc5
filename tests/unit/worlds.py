"""Worlds of noise with a known truth, in which the statistics are tested.

All sizes are of logarithms: 0.05 is five percent. In each world a boot of the changed kernel is a
boot of base times the true ratio, except where stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kteardown.analysis.estimate.bootstrap import Boots
from kteardown.analysis.estimate.student import PointBoots
from kteardown.model.clock import Clock
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.record_fields import ParamValue
from kteardown.rundir.counting import BootRecords
from unit.simulation import Logs, Noise, simulate

Shape = tuple[int, ...]
Draw = Callable[[np.random.Generator, Shape], Logs]

MODES = 1.49
"""The measured ratio of the medians of two boots of one image."""


def normal(sd: float) -> Draw:
    """Normally distributed."""
    return lambda rng, shape: rng.normal(0, sd, shape)


def student(df: float, scale: float) -> Draw:
    """Student's t distribution, with heavy tails."""
    return lambda rng, shape: scale * rng.standard_t(df, shape)


def exponential(scale: float) -> Draw:
    """Exponential: a lower bound and a tail above it."""
    return lambda rng, shape: rng.exponential(scale, shape)


def delays(scale: float) -> Draw:
    """Additional log-normal delays: mostly small, sometimes large."""
    return lambda rng, shape: np.log1p(scale * rng.lognormal(0, 1, shape))


def two_modes(share: float) -> Draw:
    """A ``share`` of the boots is slower by ``MODES``; each mode has a spread of 2%."""
    return lambda rng, shape: (
        math.log(MODES) * (rng.random(shape) < share) + rng.normal(0, 0.02, shape)
    )


BOOTS = normal(0.05)
SAMPLES = normal(0.03)
"""The default noise of a world."""


@dataclass(frozen=True)
class World(Noise):
    """A world: ``block`` is the spread of blocks, ``trend`` the drift from the first to the last.

    ``shifts`` are drawn for each boot, ``jitter`` for each sample; ``louder`` multiplies both for
    the changed kernel in ``pair``. A boot has ``repetitions``.
    """

    name: str = ""
    shifts: Draw = BOOTS
    jitter: Draw = SAMPLES
    trend: float = 0.0
    louder: float = 1.0
    repetitions: int = 5

    def of_blocks(self, rng: np.random.Generator, count: int) -> Logs:
        drift: Logs = rng.normal(0, self.block, count) + np.linspace(-0.5, 0.5, count) * self.trend
        return drift

    def of_boot(self, rng: np.random.Generator) -> float:
        return float(self.shifts(rng, (1,))[0])

    def of_trial(self, rng: np.random.Generator) -> float:
        return 0.0

    def of_sample(self, rng: np.random.Generator) -> float:
        return float(self.jitter(rng, (1,))[0])

    def pair(self, ratio: float, boots: int, rng: np.random.Generator) -> tuple[Boots, Boots]:
        """Return base, and a kernel that costs ``ratio`` times as much, in the same blocks."""
        blocks = self.of_blocks(rng, boots)[:, None]
        sides = []
        for cost, spread in ((1.0, 1.0), (ratio, self.louder)):
            shifts = self.shifts(rng, (boots, 1)) + self.jitter(rng, (boots, self.repetitions))
            sides.append(Boots(dict(enumerate((cost * np.exp(blocks + spread * shifts)).tolist()))))
        return sides[0], sides[1]

    def points(
        self, ratios: Sequence[float], boots: int, rng: np.random.Generator, *, own: bool
    ) -> list[PointBoots]:
        """Return a point for each of ``ratios``, in the same boots.

        The noise of a boot is that of all its points, or with ``own`` drawn anew at each of them.
        """
        blocks = self.of_blocks(rng, boots)[:, None]
        shared = [self.shifts(rng, (boots, 1)) for _ in range(2)]
        found = []
        for ratio in ratios:
            sides = []
            for shift, cost, spread in zip(shared, (1.0, ratio), (1.0, self.louder), strict=True):
                at = self.shifts(rng, (boots, 1)) if own else shift
                noise = at + self.jitter(rng, (boots, self.repetitions))
                sides.append(
                    Boots(dict(enumerate((cost * np.exp(blocks + spread * noise)).tolist())))
                )
            found.append(PointBoots(sides[0], sides[1]))
        return found


WORLDS = (
    World(name="bell-shaped"),
    World(name="bell-shaped, blocks as much", block=0.05),
    World(name="blocks three times as much", block=0.15),
    World(name="drift of 30%", block=0.02, trend=0.3),
    World(name="skewed boots", block=0.05, shifts=exponential(0.1)),
    World(name="log-normal delays", block=0.05, shifts=delays(0.05)),
    World(name="heavy-tailed boots", block=0.05, shifts=student(3, 0.05)),
    World(name="two modes, half and half", block=0.05, shifts=two_modes(0.5)),
    World(name="two modes, one in five", block=0.05, shifts=two_modes(0.2)),
    World(name="noise inside boots alone", shifts=normal(0.0), jitter=normal(0.1)),
    World(
        name="heavy-tailed inside boots", block=0.05, shifts=normal(0.03), jitter=student(2, 0.05)
    ),
    World(name="skewed inside boots", block=0.05, shifts=normal(0.03), jitter=delays(0.2)),
    World(name="one repetition", block=0.05, jitter=normal(0.05), repetitions=1),
    World(name="thirty repetitions", block=0.05, jitter=normal(0.1), repetitions=30),
    World(name="changed three times as noisy", block=0.05, louder=3.0),
)


def experiment(
    boots: int, *, points: int = 1, variants: int = 1, repetitions: int = 5, clock: Clock = "wall"
) -> Experiment:
    """Return an experiment with one headline metric at ``points`` points and ``variants``
    variants."""
    sizes = tuple(range(1000, 1000 * points + 1, 1000))
    return Experiment(
        name="validation",
        question="Do the verdicts keep their promise?",
        source="simulated",
        variants=tuple(f"variant-{number}" for number in range(variants)),
        workloads=(Sweep(workload="zombies_cgroup", params={"zombies": sizes}),),
        design=Design(clock=clock, boots=boots, seeds=boots, repetitions=repetitions, warmup=0),
    )


def records(
    noise: Noise,
    ratio: float,
    wanted: Experiment,
    seed: int,
    *,
    but: Mapping[int, float] | None = None,
) -> list[BootRecords]:
    """Return the boots of ``wanted`` if every variant costs ``ratio`` times base.

    ``but`` has other ratios of the first variant, by the number of the point, from 0.
    """

    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        if not kernel.startswith("variant"):
            return 1e9
        place = int(params["zombies"]) // 1000 - 1
        return 1e9 * ((but or {}).get(place, ratio) if kernel == "variant-0" else ratio)

    return simulate(wanted, cost, noise, seed=seed)
