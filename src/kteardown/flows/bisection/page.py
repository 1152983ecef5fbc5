"""The page of a bisection, its headline, and what it says for scripts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kteardown.flows.bisection.commits import MeasuredCommits
from kteardown.flows.bisection.records import Confirmed, FoundChange, FoundChanges
from kteardown.flows.bisection.search import Change
from kteardown.report.formats.markdown import plain
from kteardown.report.formatting import number
from kteardown.visible import visible

_WIDTH = 24


def headline(commits: MeasuredCommits, changes: Sequence[Change]) -> str:
    """Return the answer in a sentence: the commit with the largest part of the difference."""
    compared = commits.compared
    if not changes:
        return f"No commit was found that changes {compared.text}."
    whole = (commits.measured[commits.bad].value or 0) - (commits.measured[commits.good].value or 0)
    largest = max(changes, key=lambda change: abs(change.by))
    names = " or ".join(commits.subject(commit) for commit in largest.commits)
    if compared.outcome:
        parts = [f"{compared.outcome} begins with {names}"]
    else:
        step = f"{number(largest.before)} to {number(largest.after)} {compared.unit}".rstrip()
        share = f"{largest.by / whole:.0%} of the difference"
        parts = [f"{names} changes {compared.text} from {step}, {share}"]
    if not commits.confirm(largest).holds:
        parts.append("this is not confirmed")
    if others := len(changes) - 1:
        parts.append(f"{others} more {'commit changes' if others == 1 else 'commits change'} it")
    return f"{'; '.join(parts)}."


def page(
    commits: MeasuredCommits,
    changes: Sequence[Change],
    facts: dict[str, Any],
    quoted: Callable[[str], str] = plain,
) -> str:
    """Return the answer as Markdown: the commits found, all that were measured, and how to go on by
    hand.

    ``quoted`` makes a subject inert.
    """
    compared = commits.compared

    def subject(commit: str) -> str:
        return quoted(commits.subject(commit))

    lines = [f"{compared.text}, from {subject(facts['good'])} to {subject(facts['bad'])}:", ""]
    for change, fact in zip(changes, facts["changes"], strict=True):
        names = [subject(commit) for commit in change.commits]
        which = (
            "one of these, since some have no value or are uncertain: " if len(names) > 1 else ""
        )
        step = f"{number(change.before)} -> {number(change.after)} {compared.unit}".rstrip()
        lines.append(f"- {which}{'; '.join(names)}: {step}, {fact['share']:.0%} of the difference")
        lines.append(f"  Fixes: {names[-1]}")
        if facts["posterior"]:
            share = sum(facts["posterior"][commit] for commit in change.commits)
            lines.append(f"  probability from the blocks of all commits together: {share:.1%}")
        lines.append(f"  {confirmation(commits.confirm(change))}")
    lines += [f"- not explained: {abs(facts['unexplained_share']):.0%}", ""]
    lines += [f"{len(commits.measured)} commits were measured, in their order:", ""]
    lines += [f"    {commits.line()}  o good, # bad, ? no value or uncertain, = perhaps", ""]
    largest = max(measured.value or 1e-9 for measured in commits.measured.values())
    for tested in commits.tested().values():
        bar = "#" * round(_WIDTH * max(tested.value or 0.0, 0.0) / largest)
        lines.append(f"    {tested.figures:>24} {bar:<{_WIDTH}} {tested.text}")
    lines += ["", f"![The measured commits, in their order]({facts['picture']})"]
    return "\n".join([*lines, "", f"To go on by hand: git bisect replay {facts['log']}"]) + "\n"


def confirmation(confirmed: Confirmed) -> str:
    """Return what was booted to confirm a change, and whether it holds."""
    if not confirmed.values:
        return (
            f"not confirmed: {confirmed.why or 'neither its revert nor its parent can be booted'}"
        )
    values = ["no value" if value is None else number(value) for value in confirmed.values]
    moved = (
        f"code moved alone {values[2]}"
        if len(values) > 2
        else "no .c file is changed, so no layout twin"
    )
    how = (
        f"{confirmed.boots} boots each: with the change {values[0]}, without it {values[1]} "
        f"({confirmed.without})"
    )
    return f"{'confirmed' if confirmed.holds else 'NOT CONFIRMED'}, {how}, {moved}"


def found_changes(commits: MeasuredCommits, facts: dict[str, Any]) -> FoundChanges:
    """Return the answer as it is kept, from what ``details`` says."""
    changes = [
        FoundChange(
            commits=tuple(commits.subject(commit) for commit in change["commits"]),
            before=change["before"],
            after=change["after"],
            share=change["share"],
            holds=confirmed["holds"],
            confirmation=confirmation(Confirmed(**confirmed)),
        )
        for change, confirmed in zip(facts["changes"], facts["confirmed"], strict=True)
    ]
    compared = commits.compared
    return FoundChanges(
        compared=compared.text,
        unit=compared.unit,
        good=commits.subject(facts["good"]),
        bad=commits.subject(facts["bad"]),
        changes=tuple(changes),
    )


def details(commits: MeasuredCommits, changes: Sequence[Change], folder: Path) -> dict[str, Any]:
    """Return what was found, for scripts."""
    whole = (commits.measured[commits.bad].value or 0) - (commits.measured[commits.good].value or 0)
    return {
        "compared": vars(commits.compared),
        "good": commits.good,
        "bad": commits.bad,
        "changes": [
            {**vars(change), "by": change.by, "share": change.by / whole} for change in changes
        ],
        "confirmed": [commits.confirm(change).model_dump() for change in changes],
        "unexplained_share": 1 - sum(change.by for change in changes) / whole,
        "measured": {commit: value.model_dump() for commit, value in commits.measured.items()},
        "posterior": commits.posterior() if commits.compared.size else {},
        "log": visible(str(folder / "bisect.log")),
    }
