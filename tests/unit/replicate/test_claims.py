"""Whether a claim replicates: the rules, their symmetries, and whole postings against results."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kteardown.inputs.published import Claim, Posting, PublishedSource, load_posting, posting_names
from kteardown.model.laws import Law
from kteardown.model.result import Result
from kteardown_replicate.claims import NEARLY, MeasuredClaim, compare, judge, replicate
from unit.simulation import Noise, analysed, freezer, simulate

EDGE = math.log1p(0.02)


def claim(before: float, after: float) -> Claim:
    return Claim(what="x", before=before, after=after, unit="ms", metric="x_ns")


@pytest.mark.parametrize(
    ("ci", "finding"),
    [
        ((0.38, 0.40), "replicates"),  # as large, or larger, than 100 -> 40
        ((0.20, 0.30), "replicates"),
        ((0.35, 0.70), "replicates"),  # contains the claimed ratio, and excludes no change
        ((0.41, 0.45), "replicates"),  # more than four fifths of it everywhere, on the log scale
        ((0.45, 0.60), "smaller"),
        ((0.60, 0.90), "smaller"),
        ((0.99, 1.01), "absent"),
        ((0.981, 0.999), "absent"),
        ((1.05, 1.20), "opposite"),
        ((0.80, 1.10), "undecided"),
        ((0.30, 1.10), "undecided"),
    ],
)
def test_the_findings_for_a_claimed_change_from_100_to_40(
    ci: tuple[float, float], finding: str
) -> None:
    ours = MeasuredClaim((ci[0] * ci[1]) ** 0.5, ci)
    assert judge(claim(100, 40), ours)[0] == finding
    # A claim about a rate, which gets higher, is the same with all ratios inverted.
    inverse = MeasuredClaim(1.0, (1 / ci[1], 1 / ci[0]))
    assert judge(claim(40, 100), inverse)[0] == finding


@pytest.mark.parametrize(
    ("ci", "finding"),
    [((0.99, 1.01), "replicates"), ((0.80, 0.90), "opposite"), ((0.97, 1.05), "undecided")],
)
def test_a_claim_of_no_change(ci: tuple[float, float], finding: str) -> None:
    assert judge(claim(100, 101), MeasuredClaim(1.0, ci))[0] == finding


def test_the_reason_says_how_large_the_change_is() -> None:
    assert judge(claim(100, 25), MeasuredClaim(0.5, (0.5, 0.5))) == (
        "smaller",
        "0.50 of the claimed change",
    )
    finding, reason = judge(claim(100, 50), MeasuredClaim(0.9, (0.8, 1.1)))
    assert (finding, reason) == (
        "undecided",
        "the interval includes no change, and excludes the claimed one",
    )


def test_without_an_interval_the_finding_is_the_reason() -> None:
    assert judge(claim(2, 1), MeasuredClaim(missing="void")) == ("undecided", "void")
    assert judge(claim(2, 1), MeasuredClaim(0.5)) == ("undecided", "there is no interval")


def test_the_resolution_of_posted_figures_counts() -> None:
    """In whole milliseconds 8 and 9 may be equal, and 18 and 7 are at least 17.5 and 7.5."""
    small = claim(8, 9).model_copy(update={"step": 1.0})
    assert judge(small, MeasuredClaim(0.8, (0.8, 0.8)))[0] == "undecided"
    large = claim(18, 7).model_copy(update={"step": 1.0})
    assert large.least == (17.5, 7.5)
    assert judge(large, MeasuredClaim(0.43, (0.43, 0.43))) == (
        "replicates",
        "1.00 of the claimed change",
    )
    assert claim(7, 18).model_copy(update={"step": 1.0}).least == (7.5, 17.5)


changes = st.floats(0.01, 5).flatmap(lambda size: st.sampled_from((size, -size)))
# Rounded: the smallest floats become 0 when they are scaled.
end = st.floats(-6, 6).map(lambda value: round(value, 6))
ends = st.tuples(end, end).map(lambda pair: (min(pair), max(pair)))


@given(changes, ends)
def test_both_directions_are_treated_alike(claimed: float, ours: tuple[float, float]) -> None:
    mirrored = compare(-claimed, (-ours[1], -ours[0]), EDGE)
    assert compare(claimed, ours, EDGE)[0] == mirrored[0]


@given(changes, ends)
def test_a_finding_means_what_it_says(claimed: float, ours: tuple[float, float]) -> None:
    assume(abs(claimed) > EDGE)
    finding, _ = compare(claimed, ours, EDGE)
    low, high = sorted(end / claimed for end in ours)
    if finding == "replicates":
        assert low > 0
        assert low <= 1 <= high or low >= NEARLY
    elif finding == "smaller":
        assert low > 0
        assert high < 1
    elif finding == "opposite":
        assert high < 0
    elif finding == "absent":
        assert max(abs(ours[0]), abs(ours[1])) <= EDGE
    else:
        assert low <= 0 <= high


@given(changes, st.floats(0, 0.1))
def test_the_claimed_change_itself_replicates(claimed: float, width: float) -> None:
    assume(abs(claimed) > EDGE + width)
    assert compare(claimed, (claimed - width, claimed + width), EDGE)[0] == "replicates"


@given(changes, ends, st.floats(0.5, 2))
def test_a_unit_changes_nothing(claimed: float, ours: tuple[float, float], by: float) -> None:
    assume(abs(abs(claimed) - EDGE) > 1e-6)
    assume(all(abs(abs(end) - EDGE) > 1e-6 and abs(end / claimed - 1) > 1e-6 for end in ours))
    assume(all(abs(end / claimed - NEARLY) > 1e-6 for end in ours))
    scaled = compare(by * claimed, (by * ours[0], by * ours[1]), by * EDGE)
    assert compare(claimed, ours, EDGE)[0] == scaled[0]


def simulated() -> Result:
    """The freezer at two points, with its true saving and little noise."""
    experiment = freezer(zombies=(3000, 30000), variants=("freezer-skip-exited",))
    return analysed(experiment, simulate(experiment, noise=Noise(boot=0.002, sample=0.001)))


def posting(*claims: Claim, cannot: str = "") -> Posting:
    return Posting(
        name="x", source=PublishedSource(title="x", posted="x"), claims=claims, cannot=cannot
    )


def at(zombies: int, before: float, after: float, **more: object) -> Claim:
    fields = {"metric": "freeze_user_ns", "point": {"zombies": zombies}} | more
    return Claim.model_validate(
        {"what": "x", "before": before, "after": after, "unit": "s"} | fields
    )


def test_claims_are_compared_at_their_points() -> None:
    result = simulated()
    (ours,) = [
        c.ratio
        for c in result.comparisons
        if c.metric == "freeze_user_ns" and c.point["zombies"] == 3000
    ]
    assert ours is not None
    found = replicate(
        posting(at(3000, 1, ours), at(3000, ours, 1), at(3000, 1, ours**3), at(6000, 1, ours)),
        result,
    )
    assert [one.finding for one in found] == ["replicates", "opposite", "smaller", "undecided"]
    assert found[3].reason == "not measured at this point"


def test_the_size_of_a_script_has_the_place_of_the_posted_parameter() -> None:
    result = simulated()
    claims = posting(
        at(3000, 2, 1, point={"holders": 3000}), at(3000, 2, 1, point={"a": 1, "b": 3000})
    )
    assert {one.reason for one in replicate(claims, result)} == {"not measured at this point"}
    measured, several = replicate(claims, result, "zombies")
    assert measured.ours.ci is not None
    assert several.reason == "not measured at this point"
    laws = (law("base", 20, 0.1), law(result.requested[0], 17, 0.1, 0.85))
    result = result.model_copy(update={"laws": laws})
    slope = posting(at(0, 20, 17, metric="slab_kb", per="groups", point={}))
    assert replicate(slope, result)[0].ours.ci is None
    assert replicate(slope, result, "cgroups")[0].finding == "replicates"


def test_a_claim_that_cannot_be_measured_says_why() -> None:
    result = simulated()
    found = replicate(posting(at(3000, 2, 1, cannot="arm64"), at(3000, 2, 1, metric="")), result)
    assert [one.reason for one in found] == ["arm64", "no workload measures it"]
    assert (
        replicate(posting(at(3000, 2, 1), cannot="DragonFly"), None)[0].reason
        == "the posting cannot be run"
    )
    assert replicate(posting(at(3000, 2, 1)), None)[0].reason == "not measured"


def test_instructions_decide_no_claim_about_several_cpus() -> None:
    several = at(3000, 2, 1, point={"zombies": 3000, "cpus": 4})
    (found,) = replicate(posting(several), simulated())
    assert found.reason == (
        "the claim is about 4 CPUs at once, which the instruction clock does not show"
    )
    wall = simulated().model_copy(update={"clock": "wall"})
    assert replicate(posting(several), wall)[0].reason == "not measured at this point"


def law(kernel: str, per_unit: float, half: float, ratio: float | None = None) -> Law:
    return Law(
        workload="dyingcg",
        kernel=kernel,
        metric="slab_kb",
        unit="kb",
        param="cgroups",
        model="linear",
        per_unit=per_unit,
        per_unit_ci=(per_unit - half, per_unit + half),
        intercept=0,
        exponent=1,
        r2=1,
        points=6,
        ratio=ratio,
        ratio_ci=(ratio, ratio) if ratio else None,
    )


@pytest.mark.parametrize(
    ("changed", "finding"),
    [(17.0, "replicates"), (18.5, "smaller"), (20.0, "absent"), (23.0, "opposite")],
)
def test_a_difference_of_what_one_more_costs(changed: float, finding: str) -> None:
    result = simulated()
    variant = result.requested[0]
    result = result.model_copy(
        update={"laws": (law("base", 20, 0.1), law(variant, changed, 0.1, 0.9))}
    )
    difference = at(0, 8, 5, metric="slab_kb", per="cgroups", difference=True, point={})
    (one,) = replicate(posting(difference), result)
    assert one.finding == finding
    assert one.ours.ci is not None
    assert one.ours.ci[1] - one.ours.ci[0] == pytest.approx(2 * math.hypot(0.1, 0.1))
    (ratio,) = replicate(posting(at(0, 10, 9, metric="slab_kb", per="cgroups", point={})), result)
    assert ratio.finding == "replicates"


@pytest.mark.parametrize("name", posting_names())
def test_every_shipped_posting_has_a_source_and_claims_with_a_fate(name: str) -> None:
    shipped = load_posting(name)
    assert shipped is not None
    assert shipped.all_claims
    extra = shipped.source.model_extra or {}
    assert shipped.source.message_id or {"url", "commit"} & set(extra)
    for one in replicate(shipped, None):
        assert one.finding == "undecided"
        assert (one.reason == "not measured") == (shipped.run is not None and not one.claim.cannot)
