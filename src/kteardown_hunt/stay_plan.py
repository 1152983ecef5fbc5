"""What stays while objects are released: which numbers of both are measured.

A kind may declare residents of its own. Beside these, objects of any kind of the catalogue can
stay, made by processes of their own (``agent/hunt/residents.c``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import InputError, did_you_mean
from kteardown.paths import shipped_table
from kteardown_hunt.catalogue import Kind
from kteardown_hunt.growth import MIN_SIZES, spaced
from kteardown_hunt.plan import NO_RESIDENTS, Case, TrialPoint

DECLARED = "declared"
"""What stays is what the released kind declares itself."""
GENERAL: Mapping[str, int] = shipped_table("residents", Path(__file__).parent)
"""What stays with ``--stay all``: by kind, how many."""
ALL = "all"
MOST_OBJECTS = 288
"""So many are released, or as many as there can be: their number matters less than that of the
residents."""
MOST_RESIDENTS = 2304
_RESIDENT_SIZES = MIN_SIZES
_OBJECT_SIZES = 3
_FEWEST = 5
FEWEST_RESIDENTS = _FEWEST << (_RESIDENT_SIZES - 1)
"""With fewer, there are not enough numbers of them for a law."""


@dataclass(frozen=True)
class StayGrid:
    """The numbers at which one case is measured beside residents of one sort.

    ``objects`` and ``residents`` ascend. Every number of residents is measured with the largest
    number of objects, every number of objects with the largest number of residents, and all of
    these without the one or the other. ``baseline``: also without any object.
    """

    stay: str
    """``DECLARED``, or the name of a kind."""
    objects: tuple[int, ...]
    residents: tuple[int, ...]
    baseline: bool = False

    def points(self) -> list[TrialPoint]:
        """Return the points, ordered so that residents that can stay for several trials do."""
        most = self.objects[-1]
        numbers = [
            (objects, residents)
            for residents in (0, *self.residents)
            for objects in (0, *self.objects)
            if (objects == most or residents in (0, self.residents[-1]) or not objects)
            and (objects or self.baseline)
        ]
        return [TrialPoint(objects, self.text(residents)) for objects, residents in numbers]

    def text(self, residents: int) -> str:
        """Return the parameter ``stay`` for this number of residents."""
        # "declared=0": without objects, a trial with "-" would have the largest number of them.
        if not residents and self.stay != DECLARED:
            return NO_RESIDENTS
        return f"{self.stay}={residents}"


def declared_grid(kind: Kind, largest: int) -> StayGrid | None:
    """Return the grid of what a kind declares; None if it declares nothing.

    ``largest``: the largest number of its objects that the screen measured.
    """
    if not kind.resident or not largest:
        return None
    residents = _ladder(min(kind.most_residents or MOST_RESIDENTS, MOST_RESIDENTS), _RESIDENT_SIZES)
    return StayGrid(DECLARED, _objects(largest), residents, baseline=True) if residents else None


def without_other_orders(cases: Iterable[Case]) -> list[Case]:
    """Return the cases of which the residents can say something new.

    In which order objects are released one by one matters to these objects, and not to those that
    stay: one order is enough.
    """
    return [case for case in cases if case.way not in ("youngest", "random")]


def general_grid(resident: str, number: int, largest: int) -> StayGrid:
    """Return the grid of a case beside objects of the kind ``resident``."""
    return StayGrid(resident, _objects(largest), _ladder(number, _RESIDENT_SIZES))


def _objects(largest: int) -> tuple[int, ...]:
    most = min(largest, MOST_OBJECTS)
    return _ladder(most, _OBJECT_SIZES) or (most,)


def _ladder(most: int, count: int) -> tuple[int, ...]:
    """Return up to ``count`` numbers, each twice the one before; empty if ``most`` is too few for
    three."""
    doublings = min(count, (most // _FEWEST).bit_length())
    return spaced(most, doublings) if doublings >= min(count, MIN_SIZES) else ()


def chosen_residents(names: Iterable[str], kinds: Sequence[Kind], user: str) -> dict[str, int]:
    """Return what ``--stay`` asks for: by kind, how many of its objects stay.

    ``KIND`` means as many as with ``all``, or ``MOST_RESIDENTS``; ``KIND=NUMBER`` so many. What
    ``user`` cannot make is left out of ``all``. Raises InputError.
    """
    by_name = {kind.name: kind for kind in kinds}
    chosen: dict[str, int] = {}
    for name in names:
        if name == ALL:
            chosen |= {
                resident: number
                for resident, number in GENERAL.items()
                if user == "root" or not by_name[resident].privileged
            }
            continue
        resident = name.partition("=")[0]
        kind = by_name.get(resident)
        if kind is None:
            raise InputError(
                f"--stay: there is no kind called {resident!r}{did_you_mean(resident, by_name)}",
                hint=f"write {ALL}, or choose from `kteardown list kinds`.",
            )
        if user != "root" and kind.privileged:
            raise InputError(
                f"--stay {name}: only root can make the objects of {resident}",
                hint="leave --unprivileged out, or choose another kind.",
            )
        chosen[resident] = _number_of(name, kind)
    return chosen


def _number_of(name: str, kind: Kind) -> int:
    """Return how many residents ``KIND`` or ``KIND=NUMBER`` means. Raises InputError."""
    _, given, number = name.partition("=")
    most = kind.most or 1_000_000
    usual = GENERAL.get(kind.name, min(most, MOST_RESIDENTS))
    if most < FEWEST_RESIDENTS:
        raise InputError(
            f"--stay {name}: there can be only {most} of these objects, which is too few for a law",
            hint="choose another kind.",
        )
    if not given:
        return usual
    if not (number.isdecimal() and FEWEST_RESIDENTS <= int(number) <= most):
        raise InputError(
            f"--stay {name}: {number!r} is not a number from {FEWEST_RESIDENTS} to {most:,}",
            hint=f"write {kind.name}={usual}.",
        )
    return int(number)


def together(residents: Mapping[str, int]) -> str:
    """Return the parameter ``stay`` with which all of these are there at once."""
    return ",".join(f"{name}={number}" for name, number in residents.items())


def screen_points(groups: Sequence[Mapping[str, int]], largest: int) -> list[TrialPoint]:
    """Return the points that show whether anything that stays matters: none, a group, none again,
    and so on."""
    objects = min(largest, MOST_OBJECTS)
    stays = [NO_RESIDENTS]
    for group in groups:
        stays += [together(group), NO_RESIDENTS]
    return [TrialPoint(objects, stay) for stay in stays]


def single_points(residents: Mapping[str, int], largest: int) -> list[TrialPoint]:
    """Return the points that show which of them matters, with none before and after each."""
    return screen_points([{name: number} for name, number in residents.items()], largest)


def profile_points(grid: StayGrid) -> list[TrialPoint]:
    """Return the points that are sampled: with and without residents, with and without objects."""
    objects = (grid.objects[-1], 0) if grid.baseline else (grid.objects[-1],)
    return [
        TrialPoint(number, grid.text(residents))
        for residents in (0, grid.residents[-1])
        for number in objects
    ]
