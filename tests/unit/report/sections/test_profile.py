"""The table of a profile, and the sentences below it."""

from __future__ import annotations

from kteardown.model.result import Result
from kteardown.model.stack_profile import FunctionCost, Profile, ProfiledFunction, ProfiledStretch
from kteardown.report.sections.profile import profile_tables


def stretch(kernel: str, things: int) -> ProfiledStretch:
    return ProfiledStretch(
        kernel=kernel,
        point={"things": things},
        boots=1,
        stretches=3,
        stretch_ns=1e6,
        busy_ns=2e6,
        idle_share=0.125,
        period_ns=99_991,
        cpus=2,
        samples=1234,
        lost=0,
    )


def cost(kernel: str, **fields: object) -> FunctionCost:
    plain: dict[str, object] = {
        "kernel": kernel,
        "self_share": 0.5,
        "all_share": 0.6,
        "smallest_share": 0.1,
        "self_ns": 1234.5,
        "self_ci": (1200, 1270),
        "no_interrupts": 0.0,
        "samples": 100,
        "exponent": 1.0,
        "exponent_ci": (0.9, 1.1),
    }
    return FunctionCost.model_validate({**plain, **fields})


SCAN = ProfiledFunction(
    function="do_exit",
    callers=("do_group_exit", "get_signal"),
    costs=(
        cost("base", exponent=2.06, exponent_ci=(1.95, 2.17), grows=True, no_interrupts=0.97),
        cost(
            "gate",
            self_share=0.01,
            difference_ns=-1100.0,
            difference_ci=(-1200.0, -1000.0),
            differs=True,
        ),
    ),
)
FREE = ProfiledFunction(
    function="free",
    callers=(),
    costs=(
        cost("base", exponent_ci=(-2.0, 3.0), self_ns=0.25),
        cost("gate", difference_ns=3.0, difference_ci=(-9.0, 15.0)),
    ),
)


def profile(
    *functions: ProfiledFunction, param: str = "things", sizes: tuple[int, ...] = (100, 16_000)
) -> Profile:
    return Profile(
        workload="exit",
        param=param,
        rest={},
        confidence=0.95,
        least_share=0.01,
        margin=0.1,
        stretches=tuple(stretch(kernel, size) for kernel in ("base", "gate") for size in sizes),
        functions=functions,
    )


def result(freezer_result: Result, *profiles: Profile) -> Result:
    return freezer_result.model_copy(update={"profiles": profiles})


def test_a_result_without_profiles_has_no_table(freezer_result: Result) -> None:
    assert profile_tables(freezer_result) == []
    assert profile_tables(result(freezer_result, profile())) == []


def test_the_table_shows_shares_time_growth_and_change(freezer_result: Result) -> None:
    (table,) = profile_tables(result(freezer_result, profile(SCAN, FREE)))
    assert table.title == "exit: where the time goes at things=16,000"
    assert [[cell.text for cell in row] for row in table.keys.rows] == [
        ["do_exit", "do_group_exit"],
        ["free", ""],
    ]
    base, gate = table.blocks
    assert base.columns == ("base at 100", "at 16,000", "instructions each", "exponent")
    assert gate.columns == ("gate at 100", "at 16,000", "instructions each", "exponent", "change")
    assert [cell.text for cell in base.rows[0]] == ["10.0%", "50.0%", "1,234", "2.1 [1.9, 2.2]"]
    assert [cell.text for cell in base.rows[1]] == ["10.0%", "50.0%", "0.2", "-"]
    assert [cell.text for cell in gate.rows[0]][-1] == "-1,100"
    assert (base.rows[0][3].tone, base.rows[1][3].tone) == ("worse", None)
    assert (gate.rows[0][4].tone, gate.rows[1][4].tone) == ("better", None)


def test_claims_are_in_the_notes(freezer_result: Result) -> None:
    (table,) = profile_tables(result(freezer_result, profile(SCAN, FREE)))
    grows, differs, *about = table.notes
    assert grows == (
        "base: do_exit grows faster than things: exponent 2.1 [1.9, 2.2], 10.0% of the time at the "
        "smallest point and 50.0% at the largest; 97% of its time without interrupts"
    )
    assert differs == (
        "gate: do_exit differs from base by -1,100 [-1,200, -1,000] instructions for each of things"
    )
    assert len(about) == 5
    assert about[3].startswith("one boot of several CPUs")
    assert about[0].startswith(
        "base: 1,234 samples every 99,991 instructions on 2 CPUs, 3 repetitions in 1 boot, each "
        "1,000,000 instructions "
    )


def test_one_point_has_no_growth(freezer_result: Result) -> None:
    (table,) = profile_tables(result(freezer_result, profile(FREE, sizes=(100,))))
    assert table.blocks[0].columns == ("base", "instructions each")
    assert [cell.text for cell in table.blocks[0].rows[0]] == ["50.0%", "0.2"]


def test_a_long_table_is_cut_but_keeps_functions_with_claims(freezer_result: Result) -> None:
    many = [FREE] * 30 + [SCAN]
    (table,) = profile_tables(result(freezer_result, profile(*many)))
    assert len(table.keys.rows) == 16
    assert table.keys.rows[-1][0].text == "do_exit"
