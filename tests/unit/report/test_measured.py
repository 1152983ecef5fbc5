"""What a kernel by itself does, in words."""

from __future__ import annotations

import pytest

from kteardown.model.judged import Summary
from kteardown.model.laws import Law, LawModel
from kteardown.model.levels import Level
from kteardown.model.waits import WaitFor, WaitPlace, WaitProfile
from kteardown.model.workload import Metric, Workload
from kteardown.report.measured import growth_line, measured_lines, wait_lines
from unit.report.sections.test_levels import result


def level(n: int, ns: float) -> Level:
    summary = Summary(median=ns, mean=ns, sd=0, n=3, boots=3)
    return Level(
        workload="x", metric="exit_ns", unit="ns", kernel="base", point={"N": n}, summary=summary
    )


def law(
    model: LawModel, per_unit: float | None, exponent: float | None = None, points: int = 6
) -> Law:
    return Law(
        workload="x",
        metric="exit_ns",
        unit="ns",
        kernel="base",
        param="N",
        model=model,
        per_unit=per_unit,
        per_unit_ci=None,
        intercept=0.0,
        exponent=exponent,
        exponent_ci=(1.9, 2.1) if exponent else None,
        r2=None,
        points=points,
    )


LEVELS = [level(100, 3.6e9), level(1000, 36e9)]


@pytest.mark.parametrize(
    ("fitted", "text"),
    [
        (law("linear", 36e6), "exit time: 36 ms for one more N, linear; 36 s at N=1,000."),
        (
            law("quadratic", 36e6, 2.0),
            "exit time: 36 ms for one more N, quadratic (exponent 2.00 [1.90, 2.10]); "
            "36 s at N=1,000.",
        ),
        (law("constant", 0.0), "exit time: 3.6 s, whatever N is."),
        (
            law("unknown", 36e6),
            "exit time: 3.6 s at N=100, 36 s at N=1,000; no law fits these.",
        ),
        (
            law("linear", 36e6, points=4),
            "exit time: 36 ms for one more N, on average (4 sizes are too few for a law); "
            "36 s at N=1,000.",
        ),
        (None, "exit time: 3.6 s at N=100, 36 s at N=1,000."),
    ],
)
def test_a_figure_is_said_in_the_units_of_a_reporter(fitted: Law | None, text: str) -> None:
    assert growth_line(LEVELS, fitted, "exit time") == text


def place(
    function: str, share: float, *, process: bool = True, waits_for: WaitFor = "kernel"
) -> WaitPlace:
    return WaitPlace(
        function=function,
        callers=("caller",),
        is_process=process,
        waits_for=waits_for,
        count=200,
        ns=share * 7.2e9,
        share=share,
        count_per_object=1.0,
    )


def profile(*places: WaitPlace) -> WaitProfile:
    return WaitProfile(
        workload="x",
        kernel="base",
        param="N",
        point={"N": 200},
        stretches=1,
        stretch_ns=7.2e9,
        lost=0,
        places=places,
    )


def test_waits_for_other_processes_and_short_ones_are_not_said() -> None:
    lines = [
        *wait_lines(
            profile(
                place("do_wait", 0.99, waits_for="process"),
                place("hrtimer_nanosleep", 0.9, waits_for="time"),
                place("synchronize_rcu", 0.66),
                place("mutex_lock", 0.01),
                place("flush_work", 0.2, process=False),
            )
        )
    ]
    assert [line.partition("()")[0].rpartition(" in ")[2] for line in lines] == [
        "synchronize_rcu",
        "flush_work",
    ]
    assert "200 waits of 23.76 ms each, 1 for one more N" in lines[0]
    assert "called by caller()" in lines[0]


def test_a_function_that_the_guest_has_named_stays_on_its_line() -> None:
    hostile = place("a\x1b[2J\nexit: 1 ns", 0.9)
    (line,) = measured_lines(result(waits=(profile(hostile),)), {})
    assert "\n" not in line
    assert "\x1b" not in line


def test_a_process_that_only_sleeps_is_said_to() -> None:
    (line,) = wait_lines(profile(place("hrtimer_nanosleep", 0.9, waits_for="time")))
    assert "hrtimer_nanosleep()" in line


@pytest.mark.parametrize(("model", "said"), [("constant", True), ("linear", False)])
def test_a_script_whose_figures_do_not_depend_on_its_size_may_be_wrong(
    model: LawModel, *, said: bool
) -> None:
    workload = Workload(
        name="x", summary="", silence_s=1, law="N", metrics={"exit_ns": Metric(help="its end")}
    )
    # The sizes in the order of the user.
    found = result(levels=LEVELS[::-1], laws=(law(model, 36e6),))
    lines = measured_lines(found, {"x": workload})
    assert ("at N=1,000" in lines[0]) != said
    assert any("may not do what it is meant to do" in line for line in lines) == said
