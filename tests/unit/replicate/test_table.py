"""The table of a replication: the texts of a claim, and what is said below."""

from __future__ import annotations

from kteardown.inputs.published import Claim, Posting, load_posting
from kteardown_replicate.claims import MeasuredClaim, Replicated, replicate
from kteardown_replicate.table import claim_row, replication_table


def claim(**more: object) -> Claim:
    return Claim.model_validate(
        {"what": "freezing", "before": 0.043, "after": 0.016, "unit": "s"} | more
    )


def posting() -> Posting:
    found = load_posting("freezer")
    assert found is not None
    return found


def test_a_claim_of_a_figure_has_the_name_of_its_metric() -> None:
    first = posting().all_claims[0]
    assert first.what == "freeze_user_ns at 3,000 zombies"
    texts = claim_row(Replicated(first, MeasuredClaim(None, None), "undecided", ""), posting())
    assert texts["claim"] == "freezing user space at 3,000 zombies"


def test_a_row_has_the_posted_values_and_both_changes() -> None:
    ours = MeasuredClaim(0.3, (0.29, 0.31))
    found = Replicated(
        claim(machine="a phone"), ours, "replicates", "1.22 times the claimed change"
    )
    texts = claim_row(found, posting())
    assert texts == {
        "claim": "freezing (a phone)",
        "posted": "0.043 -> 0.016 s",
        "claimed": "-62.8%",
        "here": "-70.0% [-71.0, -69.0]",
        "finding": "replicates",
        "why": "1.22 times the claimed change",
    }


def test_a_difference_has_its_unit() -> None:
    slope = claim(before=8.192, after=5.312, unit="kB", per="cgroups", difference=True)
    texts = claim_row(
        Replicated(slope, MeasuredClaim(-2.5, (-2.6, -2.4)), "replicates", ""), posting()
    )
    assert (texts["claimed"], texts["here"]) == ("-2.88 kB", "-2.500 [-2.600, -2.400] kB")


def test_what_differs_is_below_the_table() -> None:
    freezer, pipes = load_posting("freezer"), load_posting("pipes")
    assert freezer is not None
    assert pipes is not None
    assert any("one virtual CPU" in note for note in replication_table(freezer, [], None).notes)
    table = replication_table(pipes, replicate(pipes, None), None)
    assert table.notes[0] == "undecided: the change is of the DragonFly BSD kernel"
    assert [cell.text for cell in table.keys.rows[0]][3:] == [
        "-",
        "undecided",
        "the posting cannot be run",
    ]
