"""The series that is meant by the mails of a thread: its latest revision, without replies and
duplicates."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kteardown.errors import InputError
from kteardown.patches.mails import Group, Mail, number_of

_DISPLACED = re.compile(
    r"^.{1,200}?(?:diff --git \S{1,300} \S{1,300}\s?$|--- \S.{0,300}\n.{0,200}?\+\+\+ \S)",
    re.MULTILINE,
)
"""A diff that is indented, quoted, or behind other text."""
_MANY = 6
"""So many mails that were left out are named; of more, the number is given."""
_MOST = 1000
"""The largest number of patches, and of a revision."""


@dataclass(frozen=True)
class ChosenMails:
    """The mails of one series in order, its cover letter, and what was left out, one sentence
    each."""

    patches: tuple[Mail, ...]
    cover: Mail | None
    missing: tuple[int, ...]
    notes: tuple[str, ...]


def choose_series(
    mails: Sequence[Mail], message_id: str = "", releases: Sequence[str] = ()
) -> ChosenMails:
    """Return the series of ``mails``; with the ``message_id`` of one of its mails, that revision of
    it.

    Of several for stable kernels, that for the first of ``releases`` (6.12) is returned, or the
    newest. No patches if no mail has a diff. Raises InputError if there are too many.
    """
    notes: list[str] = []
    # Archives also have copies of a mail that a server sent on to the list, cut short.
    longest = {
        mail.message_id or id(mail): mail for mail in sorted(mails, key=lambda mail: mail.size)
    }
    mails = [mail for mail in mails if longest[mail.message_id or id(mail)] is mail]
    patches = _patches(mails, notes)
    covers = [mail for mail in mails if mail.is_cover]
    if not patches:
        notes += [
            f"the diff in {mail.subject!r} does not start at the beginning of a line: it is "
            "indented or follows other text"
            for mail in mails
            if _DISPLACED.search(mail.body)
        ][:_MANY]
        return ChosenMails((), covers[0] if covers else None, (), tuple(notes))
    # The named mail decides which series is meant, or else the first one.
    order = {id(mail): number for number, mail in enumerate(mails)}
    candidates = [*covers, *patches]
    named = (mail for mail in candidates if message_id and mail.message_id == message_id)
    lead = next(named, None) or min(candidates, key=lambda mail: order.get(id(mail), len(order)))
    exact = (
        message_id and lead.message_id == message_id and any(m.group == lead.group for m in patches)
    )
    group = lead.group if exact else _group(lead, patches, releases)
    # A patch without a number is a series of its own, even if the thread has others.
    is_single = exact and lead.total == 1 and not lead.is_cover
    members = [
        m for m in patches if m.group == group and (not is_single or m.title == lead.title or m.fix)
    ]
    if max(*group[0], group[1], len(members)) > _MOST:
        raise InputError(
            f"{members[0].place} is damaged: {members[0].subject[:80]!r} has a number above "
            f"{_MOST:,}",
            hint=(
                f"give a series of at most {_MOST:,} patches, with a subject such as [PATCH v2 "
                "1/3]."
            ),
        )
    ids = {id(mail) for mail in members}
    members, missing = _completed(_without_duplicates(members, notes), group, patches, notes)
    ids |= {id(mail) for mail in members}
    left = [mail for mail in patches if id(mail) not in ids]
    left = _without_other_branches(left, group[2], notes)
    for revision, count in Counter(m.revision for m in left if m.revision != group[0]).items():
        notes.append(
            f"left out: {count} patch{'es' * (count != 1)} of revision {_version(revision)}"
        )
    _note_left_out("of another series", [mail for mail in left if mail.revision == group[0]], notes)
    return ChosenMails(tuple(members), _cover(covers, group, members), missing, tuple(notes))


def _without_other_branches(left: list[Mail], branch: str, notes: list[str]) -> list[Mail]:
    """Leave out the mails of the same series for other stable kernels, and note which these are."""
    branches = {mail.branch for mail in left if branch} - {"", branch}
    if not branches:
        return left
    names = " and ".join(f"{name}.y" for name in sorted(branches, key=_release, reverse=True))
    notes.append(f"the series for {branch}.y is used; the mails have others for {names}")
    return [mail for mail in left if mail.branch not in branches]


def _cover(covers: Sequence[Mail], group: Group, members: Sequence[Mail]) -> Mail | None:
    """Return the latest cover letter of a series; it may be the only mail with the revision."""
    senders = {mail.sender for mail in members}
    numbered = [mail for mail in covers if mail.group == group]
    unnumbered = [
        mail
        for mail in covers
        if mail.total in (0, group[1])
        and group[0] in (mail.revision, (1, 0))
        and mail.sender in senders
    ]
    return max(
        numbered or (unnumbered if group[1] > 1 else []), key=lambda mail: mail.moment, default=None
    )


def _patches(mails: Sequence[Mail], notes: list[str]) -> list[Mail]:
    """Return the mails that are patches: with a diff, and neither a reply nor a report about a
    patch."""
    with_diff = []
    for mail in mails:
        if mail.diffs and not mail.is_cover:
            # A subject without a number: that of its file's name (0002-x.patch).
            number = re.match(r"(?:v\d+-)?(\d{4})-", mail.title)
            with_diff.append(
                replace(mail, number=int(number[1])) if number and mail.total == 1 else mail
            )
    first = [mail for mail in with_diff if not mail.is_reply]
    posted = [mail for mail in first if mail.is_posted] or first or with_diff
    if posted and posted[0].is_reply:
        notes.append("the patch is from a reply, because no other mail has a diff")
    chosen = {id(mail) for mail in posted}
    replies = [mail for mail in with_diff if mail.is_reply and id(mail) not in chosen]
    _note_left_out("in a reply", replies, notes)
    _note_left_out("without [PATCH]", [mail for mail in first if id(mail) not in chosen], notes)
    return posted


def _group(lead: Mail, patches: Sequence[Mail], releases: Sequence[str]) -> Group:
    """Return the latest revision of the series that ``lead`` is of, for the first of
    ``releases``."""
    mails: dict[Group, list[Mail]] = {}
    for mail in patches:
        mails.setdefault(mail.group, []).append(mail)
    related = [
        group
        for group, its in mails.items()
        if group[1] == lead.total
        or ((group[1] > 1 or lead.total == 1) and lead.sender in {mail.sender for mail in its})
    ]
    related = [group for group in related if bool(group[2]) == bool(lead.branch)] or related
    share = {group: len({mail.number for mail in its}) / group[1] for group, its in mails.items()}
    # The revision of a part (v3.1) or of few patches completes another one; see _completed.
    complete = [group for group in related if share[group] > 0.5] or related or list(share)
    titles = {mail.title for mail in mails.get(lead.group, ())}

    def rank(group: Group) -> tuple[object, ...]:
        revision, _, branch = group
        place = -releases.index(branch) if branch in releases else -len(releases)
        # The same revision, posted again: with another number of patches, but with some of the old
        # ones.
        again = not titles or any(mail.title in titles for mail in mails[group])
        newest = max(mail.moment for mail in mails[group])
        return place, _release(branch), revision, again, newest, group == lead.group, share[group]

    return max(complete, key=rank)


def _release(branch: str) -> tuple[int, ...]:
    return tuple(map(number_of, re.findall(r"\d+", branch)))


def _without_duplicates(members: Sequence[Mail], notes: list[str]) -> list[Mail]:
    """Return the patches by number; of a numbered patch that was sent again, the latest mail.

    Fixes come after what they fix. Patches without numbers stay in the order of the mails.
    """
    chosen: dict[object, Mail] = {}
    for mail in members:
        key = mail.number if mail.total > 1 and not mail.fix else (mail.number, mail.diffs)
        before = chosen.get(key)
        if before is not None:
            notes.append(f"two mails are {mail.subject!r}; the later mail is used")
        if before is None or mail.moment >= before.moment:
            chosen[key] = mail
    fixed = {mail.number for mail in members if not mail.fix}  # [PATCH fix 1/2] can be a series.
    fixes = [mail for mail in chosen.values() if mail.fix and mail.number in fixed]
    notes += [f"{mail.subject!r} is applied after patch {mail.number}" for mail in fixes]
    return sorted(
        chosen.values(), key=lambda mail: (mail.number, mail.fix, mail.fix and mail.moment)
    )


def _completed(
    members: Sequence[Mail], group: Group, patches: Iterable[Mail], notes: list[str]
) -> tuple[list[Mail], tuple[int, ...]]:
    """Return the patches with those of a partial revision in their places, and the missing
    numbers."""
    by_number: dict[int, list[Mail]] = {}
    for mail in members:
        by_number.setdefault(mail.number, []).append(mail)
    later = sorted(
        (mail for mail in patches if mail.total == group[1] > 1 and mail.revision > group[0]),
        key=lambda mail: mail.revision,
    )
    for mail in later:
        by_number[mail.number] = [mail]
        notes.append(f"patch {mail.number} is taken from revision {_version(mail.revision)}")
    missing = tuple(number for number in range(1, group[1] + 1) if number not in by_number)
    if missing and len(by_number) == 1 and group[2]:
        notes.append(
            f"this is patch {next(iter(by_number))} alone of the {group[1]} for {group[2]}"
        )
    elif missing:
        verb = "are" if len(missing) > 1 else "is"
        notes.append(
            f"the series is incomplete: {counted('patch', missing)} of {group[1]} {verb} missing"
        )
    return [mail for number in sorted(by_number) for mail in by_number[number]], missing


def ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers in words: ``1-32, 35``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def counted(what: str, numbers: Sequence[int]) -> str:
    """Return a word and its numbers: ``patch 3``, ``patches 1, 3-4``."""
    plural = "es" if what.endswith("ch") else "s"
    return f"{what}{plural if len(numbers) > 1 else ''} {ranges(numbers)}"


def _note_left_out(why: str, mails: Sequence[Mail], notes: list[str]) -> None:
    if len(mails) > _MANY:
        notes.append(f"left out: {len(mails)} diffs {why}")
    else:
        notes += [
            f"left out: the diff {why}, {mail.subject!r} by {mail.sender or 'unknown'}"
            for mail in mails
        ]


def _version(revision: tuple[int, int]) -> str:
    return f"v{revision[0]}" + (f".{revision[1]}" if revision[1] else "")
