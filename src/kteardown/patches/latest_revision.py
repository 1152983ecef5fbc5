"""Choose one series from the mails of a thread: its latest revision, without replies and duplicates."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kteardown.errors import InputError
from kteardown.patches.one_mail import Mail

_MANY = 6
"""So many mails that were left out are named; of more, the number is given."""

_MOST = 1000
"""The largest number of patches, and of a revision."""


@dataclass(frozen=True)
class ChosenMails:
    """The mails of one series in order, its cover letter, and what was left out, one sentence each."""

    patches: tuple[Mail, ...]
    cover: Mail | None
    missing: tuple[int, ...]
    notes: tuple[str, ...]


def choose(mails: Sequence[Mail], message_id: str = "") -> ChosenMails:
    """Return the series of ``mails``; with the ``message_id`` of one of its mails, that revision of it.

    No patches if no mail has a diff. Raises InputError if there are too many.
    """
    notes: list[str] = []
    patches = _patches(mails, notes)
    covers = [mail for mail in mails if mail.is_cover]
    if not patches:
        return ChosenMails((), covers[0] if covers else None, (), tuple(notes))
    # The named mail decides which series is meant, or else the first one.
    order = {id(mail): number for number, mail in enumerate(mails)}
    candidates = [*covers, *patches]
    named = (mail for mail in candidates if message_id and mail.message_id == message_id)
    lead = next(named, None) or min(candidates, key=lambda mail: order.get(id(mail), len(order)))
    groups = list(dict.fromkeys((mail.revision, mail.total) for mail in patches))
    group = _group(lead, patches, groups, exact=bool(message_id) and lead.message_id == message_id)
    mine = [mail for mail in patches if (mail.revision, mail.total) == group]
    if max(*group[0], group[1], len(mine)) > _MOST:
        raise InputError(
            f"{mine[0].place} is damaged: {mine[0].subject[:80]!r} has a number above {_MOST:,}",
            hint=f"give a series of at most {_MOST:,} patches, with a subject such as [PATCH v2 1/3].",
        )
    mine = _without_duplicates(mine, notes)
    mine, missing = _completed(mine, group, patches, notes)
    ids = {id(mail) for mail in mine}
    left = [mail for mail in patches if id(mail) not in ids and (mail.revision, mail.total) != group]
    for revision in dict.fromkeys(mail.revision for mail in left if mail.revision != group[0]):
        count = sum(mail.revision == revision for mail in left)
        notes.append(f"left out: {count} patch{'es' * (count != 1)} of revision {_version(revision)}")
    _note_left_out("of another series", [mail for mail in left if mail.revision == group[0]], notes)
    cover = next((mail for mail in covers if (mail.revision, mail.total) == group), None)
    return ChosenMails(tuple(mine), cover, missing, tuple(notes))


def _patches(mails: Sequence[Mail], notes: list[str]) -> list[Mail]:
    """Return the mails that are patches: with a diff, and neither a reply nor a report about a patch."""
    with_diff = []
    for mail in mails:
        if mail.diffs and not mail.is_cover:
            # A subject without a number: that of its file's name (0002-x.patch).
            number = re.match(r"(?:v\d+-)?(\d{4})-", mail.title)
            with_diff.append(replace(mail, number=int(number[1])) if number and mail.total == 1 else mail)
    first = [mail for mail in with_diff if not mail.is_reply]
    posted = [mail for mail in first if mail.is_posted] or first or with_diff
    if posted and posted[0].is_reply:
        notes.append("the patch is from a reply, because no other mail has a diff")
    replies = [mail for mail in with_diff if mail.is_reply and mail not in posted]
    _note_left_out("in a reply", replies, notes)
    _note_left_out("without [PATCH]", [mail for mail in first if mail not in posted], notes)
    return posted


def _group(
    lead: Mail, patches: Sequence[Mail], groups: Sequence[tuple[tuple[int, int], int]], *, exact: bool
) -> tuple[tuple[int, int], int]:
    """Return the revision and the number of patches of the series that is meant."""
    own = (lead.revision, lead.total)
    if exact and own in groups:
        return own
    related = [
        group
        for group in groups
        if group[1] == lead.total
        or (
            (group[1] > 1 or lead.total == 1)
            and any(mail.sender == lead.sender and (mail.revision, mail.total) == group for mail in patches)
        )
    ]
    # The revision of a part (v3.1) or of few patches completes another one; see _completed.
    whole = [group for group in related if _share(group, patches) > 0.5] or related or list(groups)
    return max(whole, key=lambda group: (group[0], group == own, _share(group, patches)))


def _share(group: tuple[tuple[int, int], int], patches: Sequence[Mail]) -> float:
    """Return which share of its patches a revision has."""
    numbers = {mail.number for mail in patches if (mail.revision, mail.total) == group}
    return len(numbers) / group[1]


def _without_duplicates(mine: Sequence[Mail], notes: list[str]) -> list[Mail]:
    """Return the patches by number; of a numbered patch that was sent again, the latest mail.

    Patches without numbers stay in the order of the mails.
    """
    chosen: dict[object, Mail] = {}
    for mail in mine:
        key = mail.number if mail.total > 1 else (mail.number, mail.diffs)
        before = chosen.get(key)
        if before is not None:
            notes.append(f"{mail.subject!r} is there twice; the later mail is used")
        if before is None or mail.moment >= before.moment:
            chosen[key] = mail
    return sorted(chosen.values(), key=lambda mail: mail.number)


def _completed(
    mine: Sequence[Mail], group: tuple[tuple[int, int], int], patches: Iterable[Mail], notes: list[str]
) -> tuple[list[Mail], tuple[int, ...]]:
    """Return the patches with those of a partial revision in their places, and the missing numbers."""
    by_number: dict[int, list[Mail]] = {}
    for mail in mine:
        by_number.setdefault(mail.number, []).append(mail)
    later = sorted(
        (mail for mail in patches if mail.total == group[1] > 1 and mail.revision > group[0]),
        key=lambda mail: mail.revision,
    )
    for mail in later:
        by_number[mail.number] = [mail]
        notes.append(f"patch {mail.number} is taken from revision {_version(mail.revision)}")
    missing = tuple(number for number in range(1, group[1] + 1) if number not in by_number)
    if missing:
        listed = ", ".join(map(str, missing))
        notes.append(f"the series is incomplete: patch {listed} of {group[1]} is missing")
    return [mail for number in sorted(by_number) for mail in by_number[number]], missing


def _note_left_out(why: str, mails: Sequence[Mail], notes: list[str]) -> None:
    if len(mails) > _MANY:
        notes.append(f"left out: {len(mails)} diffs {why}")
    else:
        notes += [
            f"left out: the diff {why}, {mail.subject!r} by {mail.sender or 'unknown'}" for mail in mails
        ]


def _version(revision: tuple[int, int]) -> str:
    return f"v{revision[0]}" + (f".{revision[1]}" if revision[1] else "")
