"""The rules of a find, each alone, and what must not change a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown_hunt.growth import Curve, Growth, judge, screen, spaced
from unit.hunt.controls import FINDS, LINEAR, SCREENED, SIZES, TICK

NAN = math.nan


def of(
    cost: Callable[[float], float],
    sizes: tuple[int, ...] = SIZES,
    *,
    seeds: int = 1,
    floor: float = TICK,
) -> Growth:
    return judge(
        Curve(sizes, np.array([[cost(n) for n in sizes]] * seeds, dtype=np.float64), floor)
    )


@pytest.mark.parametrize("name", list(FINDS))
def test_an_exact_find_is_found(name: str) -> None:
    n = np.array(SIZES, dtype=np.float64)
    found = judge(Curve(SIZES, FINDS[name](n)[None, :], TICK))
    assert found.verdict == "superlinear", found.reason
    assert found.share is not None
    assert found.share > 0.4
    assert not found.rising


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("constant", "constant"),
        ("linear", "linear"),
        ("linear, setup of 100 ms", "linear"),
        ("N log N", "linear"),
        ("linear, a table that doubles", "linear"),
        ("linear, one step of 5 ms at 1,000", "unknown"),
    ],
)
def test_an_exact_cost_that_is_no_find(name: str, verdict: str) -> None:
    n = np.array(SIZES, dtype=np.float64)
    assert judge(Curve(SIZES, LINEAR[name](n)[None, :], TICK)).verdict == verdict


def test_four_points_of_a_square_are_superlinear_and_never_constant() -> None:
    """Zombies in a foreign process group: 28,300 instructions for each of 1,000, 55,200 for each of
    2,000.

    The interval of the slope of a straight line contains zero, and so the cost was called constant.
    """
    costs = {250: 7_300.0, 500: 14_300.0, 1000: 28_300.0, 2000: 55_200.0}
    found = of(lambda n: n * costs[int(n)], (250, 500, 1000, 2000))
    assert found.verdict == "superlinear"
    assert [each.value for each in found.exponents] == [
        pytest.approx(1.98, abs=0.02),
        pytest.approx(1.96, abs=0.02),
    ]


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=4), st.integers(1, 3))
def test_up_to_four_sizes_are_never_constant(costs: list[float], seeds: int) -> None:
    sizes = tuple(100 * 2**i for i in range(len(costs)))
    assert judge(Curve(sizes, np.array([costs] * seeds), TICK)).verdict != "constant"


def test_three_sizes_are_too_few() -> None:
    found = of(lambda n: n * n * 100, (1000, 2000, 4000))
    assert (found.verdict, found.exponents) == ("unknown", ())
    assert "3 sizes are a doubling apart, and 4 are needed" in found.reason


def test_six_sizes_that_are_close_are_too_few() -> None:
    assert of(lambda n: n * n * 100, (1000, 1100, 1200, 1400, 1500, 1600)).verdict == "unknown"


def test_the_exponent_must_be_above_the_limit_at_both_of_the_last_doublings() -> None:
    one = of(lambda n: 1e4 * n + 40 * max(n - 2600, 0) ** 2)
    assert (one.verdict, one.rising) == ("unknown", True)
    assert "larger size" in one.reason
    assert (
        of(lambda n: 1e4 * n + 40 * max(n - 2600, 0) ** 2, spaced(10_000, 6)).verdict
        == "superlinear"
    )


@pytest.mark.parametrize("largest", [170, 300, 500, 1000, 5000, 10**6])
def test_n_log_n_is_no_find_at_any_size(largest: int) -> None:
    """At 200 objects its exponent is 1.18."""
    found = of(lambda n: 500 * n * math.log(n), spaced(largest, 6), floor=0.0)
    assert found.verdict in ("linear", "unknown")
    assert not found.rising


def test_a_square_up_to_a_limit_is_no_find() -> None:
    found = of(lambda n: 50 * min(n, 1200) ** 2 + 1.2e5 * max(n - 1200, 0))
    assert found.verdict != "superlinear"


def test_a_superlinear_part_below_a_fifth_is_no_find() -> None:
    small = of(lambda n: 1e4 * n**1.17)
    assert (small.verdict, small.rising) == ("unknown", True)
    assert "of the cost is superlinear" in small.reason
    assert of(lambda n: 1e4 * n**1.25).verdict == "superlinear"


def test_a_square_whose_bounds_are_too_wide_is_unknown_and_may_rise() -> None:
    """Recorded: zombies of one process group, up to 288; with 1,152 of them they are a find."""
    rows = [
        [140_297, 164_437, 260_434, 457_774, 1_097_957, 3_063_050],
        [139_645, 164_168, 252_659, 457_510, 963_155, 2_923_775],
        [140_658, 164_346, 251_952, 466_088, 1_076_846, 2_917_748],
    ]
    wide = judge(Curve((9, 18, 36, 72, 144, 288), np.array(rows, dtype=np.float64), TICK))
    assert (wide.verdict, wide.rising) == ("unknown", True), wide


def test_one_more_object_must_cost_more_in_every_seed() -> None:
    square = [40.0 * n * n for n in SIZES]
    rows = np.array([square, square, [9e4 * n for n in SIZES]])
    assert judge(Curve(SIZES, rows, TICK), confidence=0.5).verdict == "unknown"


def test_a_cost_that_falls_first_is_no_find() -> None:
    """Pages that 7.3 frees after MADV_FREE: 576 cost more than 4,608, whatever else the release did
    then."""
    sizes = (576, 1152, 2304, 4608, 9216, 18432)
    costs = np.array([878_389, 371_860, 617_936, 491_129, 852_295, 1_864_790], dtype=np.float64)
    found = judge(Curve(sizes, costs * np.array([[0.98], [1.0], [1.02]]), TICK))
    assert (found.verdict, found.rising) == ("unknown", True)
    assert "the cost falls from 576 to 4,608 objects before it grows" in found.reason


def test_a_cost_that_falls_within_its_error_may_be_a_find() -> None:
    """A square beyond a threshold: what is below it is noise, and some of that falls."""
    costs = np.array([1000, 1010, 990, 995, 10_000, 60_000]) * TICK
    rows = costs + np.array([[30.0], [-30.0], [0.0]]) * np.array([1, -1, 1, -1, 1, -1]) * TICK
    assert judge(Curve((576, 1152, 2304, 4608, 9216, 18432), rows, TICK)).verdict == "superlinear"


def test_objects_that_are_cheaper_than_the_floor_say_nothing() -> None:
    found = of(lambda n: n)
    assert found.verdict == "unknown"
    assert "within the floor" in found.reason


def test_the_floor_bounds_seeds_that_agree_to_the_last_digit() -> None:
    """The increments are 10,000 to 300,000 instructions, which ticks of 20,000 could bend."""
    assert of(lambda n: 0.002 * n * n, floor=0.0, seeds=3).verdict == "superlinear"
    assert of(lambda n: 0.002 * n * n, floor=TICK, seeds=3).verdict != "superlinear"


def test_costs_that_fall_and_roots_are_sublinear() -> None:
    assert of(lambda n: 1e7 - 1e3 * n).verdict == "sublinear"
    assert of(lambda n: 1e5 * math.sqrt(n)).verdict == "sublinear"


def test_noise_that_hides_the_growth_is_not_constant() -> None:
    rows = np.array([[1e6] * 6, [1e6] * 5 + [3e6], [1e6] * 5 + [1.1e6]])
    found = judge(Curve(SIZES, rows, TICK))
    assert found.verdict == "unknown"
    assert "+-" in found.reason


def test_kilobytes() -> None:
    assert of(lambda n: 300 + 4 * n, floor=64).verdict == "linear"
    assert of(lambda n: 300 + 0.01 * n * n, floor=64).verdict == "superlinear"


def test_a_size_that_hangs_leaves_the_verdict_to_the_others() -> None:
    rows = np.array([[5.0 * n * n for n in SIZES]] * 3)
    rows[:, -1] = NAN
    found = judge(Curve(SIZES, rows, TICK))
    assert found.verdict == "superlinear"
    assert found.exponents[-1].sizes == SIZES[2:5]


# What must not change a verdict. Whole numbers and powers of two make the sums exact.

_EXPONENTS = st.sampled_from([0.0, 0.5, 1.0, 1.1, 1.15, 1.2, 1.5, 2.0, 2.5])


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    n = np.array(SIZES, dtype=np.float64)
    seeds = draw(st.sampled_from([1, 2, 3]))
    setup, linear, rest = (draw(st.integers(0, 10**6)) for _ in range(3))
    cost = setup + linear * n + rest * (n / 100) ** draw(_EXPONENTS)
    noise = draw(st.sampled_from([0.0, 0.01, 0.1]))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    return Curve(SIZES, np.round(cost * np.exp(rng.normal(0, noise, (seeds, len(n))))), TICK)


@given(curves(), st.integers(-20, 20))
def test_the_unit_changes_no_verdict(curve: Curve, power: int) -> None:
    scaled = Curve(curve.sizes, curve.rows * 2.0**power, curve.floor * 2.0**power)
    assert judge(scaled).verdict == judge(curve).verdict
    assert screen(scaled) == screen(curve)


@given(curves(), st.integers(0, 10**12))
def test_a_constant_changes_no_find(curve: Curve, setup: int) -> None:
    moved = judge(Curve(curve.sizes, curve.rows + setup, curve.floor))
    before = judge(curve)
    assert (moved.verdict == "superlinear") == (before.verdict == "superlinear")
    assert moved.rising == before.rising


@given(curves(), st.permutations(range(3)))
def test_the_order_of_the_seeds_changes_nothing(curve: Curve, order: list[int]) -> None:
    rows = curve.rows[[i for i in order if i < len(curve.rows)]]
    assert judge(Curve(curve.sizes, rows, curve.floor)).verdict == judge(curve).verdict


@given(curves())
def test_a_boot_and_a_size_without_costs_change_nothing(curve: Curve) -> None:
    more = np.full((len(curve.rows) + 1, len(SIZES) + 1), NAN)
    more[:-1, :-1] = curve.rows
    assert judge(Curve((*SIZES, 99_999), more, curve.floor)) == judge(curve)


@given(curves(), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=18))
def test_missing_costs_make_no_find_of_what_is_linear(
    curve: Curve, missing: list[tuple[int, int]]
) -> None:
    n = np.array(SIZES, dtype=np.float64)
    rows = np.array([1e6 + 5e3 * n] * len(curve.rows))
    for seed, size in missing:
        rows[seed % len(rows), size] = NAN
    assert judge(Curve(SIZES, rows, TICK)).verdict in ("linear", "unknown")


@pytest.mark.parametrize("name", list(FINDS))
def test_the_screen_asks_for_every_find(name: str) -> None:
    n = np.array(SCREENED, dtype=np.float64)
    assert screen(Curve(SCREENED, FINDS[name](n)[None, :], TICK))


@pytest.mark.parametrize(
    "name", ["constant", "linear", "linear, setup of 100 ms", "linear, a table that doubles"]
)
def test_the_screen_asks_for_no_exact_linear_cost(name: str) -> None:
    n = np.array(SCREENED, dtype=np.float64)
    assert not screen(Curve(SCREENED, LINEAR[name](n)[None, :], TICK))


def test_the_screen_asks_where_a_size_is_missing() -> None:
    assert screen(Curve(SCREENED, np.array([[1e6, 2e6, 3e6, NAN]]), TICK))
    assert screen(Curve((10, 20), np.array([[1e6, 2e6]]), TICK))
    assert screen(Curve((), np.empty((0, 0)), TICK))
    assert not screen(Curve(SCREENED, np.array([[1e3, 2e3, 3e3, 9e3]]), TICK))


@given(
    first=st.integers(50, 200),
    ratio=st.floats(1.0, 2.0),
    share=st.floats(0.01, 10),
)
def test_a_table_that_doubles_at_any_size_is_linear(first: int, ratio: float, share: float) -> None:
    """Sizes that are exact doublings have one doubling of the table between them."""

    def cost(n: float) -> float:
        return 5e3 * (share * n + 2.0 ** math.ceil(math.log2(n / ratio)))

    sizes = spaced(first * 32, 6)
    if min(abs(math.remainder(math.log2(sizes[0] / ratio), 1)), 1) > 1e-6:
        found = of(cost, sizes)
        assert found.verdict != "superlinear"
        assert not found.rising
