"""What was counted, and what could not be counted and why."""

import heapq
from typing import Any, Callable, Dict, Hashable, Iterable, List, Optional, Tuple

from kteardown_observe.collector.files import Unreadable, Visit, printable, shown

LARGEST = 5
OWNERS_MOST = 200000


class Tally:
    """A number of objects, and which owners have the most of them."""

    def __init__(self) -> None:
        self.number = 0
        self.by: Dict[Hashable, int] = {}
        self.top: List[Tuple[int, int, Hashable]] = []
        self.order = 0

    def add(self, owner: Hashable, number: int = 1) -> None:
        """Count objects of an owner that can come again; each owner takes memory."""
        self.number += number
        if owner in self.by or len(self.by) < OWNERS_MOST:
            self.by[owner] = self.by.get(owner, 0) + number

    def add_owner(self, owner: Hashable, number: int) -> None:
        """Count all objects of an owner that does not come again."""
        self.number += number
        if not number:
            return
        self.order += 1
        entry = (number, -self.order, owner)
        if len(self.top) < LARGEST:
            heapq.heappush(self.top, entry)
        elif entry[:2] > self.top[0][:2]:
            heapq.heapreplace(self.top, entry)

    def largest(self, name: Callable[[Any], str]) -> List[Dict[str, Any]]:
        """Return the owners with the most objects, the largest first."""
        entries = [(number, -order, owner) for number, order, owner in self.top]
        entries += [(number, 0, owner) for owner, number in self.by.items() if number]
        entries = heapq.nsmallest(LARGEST, entries, key=lambda entry: (-entry[0], entry[1]))
        return [{"name": name(owner), "number": number} for number, _, owner in entries]


class CountTable:
    """The counts and what is missing, as in the output."""

    def __init__(self) -> None:
        self.counts: Dict[str, Dict[str, Any]] = {}
        self.missing: List[Dict[str, Any]] = []

    def put(
        self,
        name: str,
        number: int,
        complete: bool = True,
        largest: Optional[List[Dict[str, Any]]] = None,
        how: Optional[str] = None,
    ) -> None:
        """Set a count. ``how`` says what the number is if its name does not say it."""
        count: Dict[str, Any] = {"number": number, "complete": complete}
        if largest:
            count["largest"] = largest
        if how is not None:
            count["how"] = how
        self.counts[name] = count

    def put_visited(
        self,
        visit: Visit,
        where: str,
        tallies: Dict[str, Tally],
        name: Callable[[Any], str],
    ) -> None:
        """Set counts over entities that were visited, and say which of these could not be read."""
        self.miss_visited(visit, where, tallies)
        if not visit.read_ok and visit.failed:
            return
        for key, tally in tallies.items():
            self.put(key, tally.number, visit.complete(), tally.largest(name))
            self.counts[key]["seen"] = visit.seen
            self.counts[key]["of"] = visit.of

    def miss_visited(self, visit: Visit, where: str, names: Iterable[str]) -> None:
        """Say which entities of a visit could not be read, and whether the time was too short."""
        for reason, number in sorted(visit.failed.items()):
            if reason != "not there" or not visit.read_ok:
                example = visit.examples[reason]
                detail = f"{where}: {number} of {visit.seen}, such as {example}"
                self.miss(names, reason, detail)
        if not visit.whole:
            self.miss(names, "time", f"{where}: {visit.seen} of {visit.of} visited")

    def miss_earlier(self, earlier: Optional[Visit], where: str, names: Iterable[str]) -> None:
        """Make counts incomplete if the visit that found where to count them was not complete."""
        if earlier is None or earlier.complete():
            return
        known = list(names)
        self.miss_visited(earlier, where, known)
        for name in known:
            if name in self.counts:
                self.counts[name]["complete"] = False

    def miss(self, names: Iterable[str], reason: str, detail: str) -> None:
        """Say that counts are missing, or are too small."""
        entry = {"counts": sorted(names), "reason": reason, "detail": shown(detail)}
        self.missing.append(entry)

    def missed(self, names: Iterable[str], failure: Unreadable) -> None:
        """Say that counts are missing since a file cannot be read."""
        self.miss(names, failure.reason, failure.detail)


def text_of(owner: bytes) -> str:
    """Return the name of an owner that is a text of the kernel."""
    return printable(owner)
