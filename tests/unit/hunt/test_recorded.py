"""From recorded boots of two kinds to finds: ``flocks`` by exit, and ``zombies_group``, on Debian's
6.12."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.model.record import BootEnd, BootStart, ParamValue, Sample, TrialEnd, TrialStart
from kteardown.rundir.counting import BootRecords
from kteardown.rundir.directory import RunDir
from kteardown_hunt import finds as finds_module
from kteardown_hunt import limits
from kteardown_hunt.catalogue import Cost, Kind
from kteardown_hunt.finds import MeasuredCase, measured
from kteardown_hunt.functions import growing_functions, place_of
from kteardown_hunt.plan import Case
from kteardown_hunt.result import (
    CaseResult,
    CostPrediction,
    FailureResult,
    Find,
    FunctionResult,
    GrowthResult,
    HuntResult,
    OwnersResult,
    Rate,
    rough_time,
)
from kteardown_hunt.tables import (
    failures_table,
    finds_table,
    owners_table,
    predicted,
    report_text,
    shown_tables,
    summary,
)

RECORDED = Path(__file__).parents[2] / "data" / "hunt" / "recorded"
FLOCKS = Case("flocks", "exit")
ZOMBIES = Case("zombies_group", "call")


def kind(case: Case, part: str, limit: str) -> Kind:
    return Kind(
        name=case.kind,
        part=part,
        object="object",
        shape="on one",
        privileged=False,
        limit=limit,
        needs="",
        modules=(),
        call="",
        most=0,
        ways=(case.way,),
    )


KINDS = (kind(FLOCKS, "files", "nofile"), kind(ZOMBIES, "processes", "nproc"))


def stage(name: str) -> dict[Case, MeasuredCase]:
    found = measured(RunDir(RECORDED / name).boots())
    return {case: each for (_, case), each in found.items()}


def confirmed_cases() -> list[CaseResult]:
    return finds_module.case_results(KINDS, stage("screen"), stage("confirm"), {}, {})


@pytest.fixture(scope="module")
def finds() -> list[Find]:
    functions = growing_functions(RunDir(RECORDED / "profile-sync").boots())
    causes = {case: {"sync": function} for case, function in functions.items()}
    cases = finds_module.case_results(KINDS, stage("screen"), stage("confirm"), causes, {})  # type: ignore[arg-type]
    return finds_module.finds_of(cases, stage("confirm"), KINDS)


def test_the_screen_asks_for_both_up_to_the_budget() -> None:
    screened = stage("screen")
    assert finds_module.worth_confirming(screened.values()) == {FLOCKS: 4608, ZOMBIES: 1152}
    assert screened[FLOCKS].beyond_budget == 18432
    assert screened[ZOMBIES].beyond_budget == 4608


def test_memory_at_one_size_or_two_asks_for_nothing() -> None:
    linear = {(1, size): 100_000.0 * size for size in (72, 288, 1152, 4608)}
    figures = {f"{cost}_ns": linear for cost in ("sync", "deferred", "make")}
    for sizes in [(4608,), (1152, 4608)]:
        few = {"held_kb": {(1, size): 40_000.0 * size for size in sizes}}
        assert not finds_module.worth_confirming([MeasuredCase(FLOCKS, figures | few)])
    square = {"held_kb": {(1, size): size**2 / 100 for size in (72, 288, 1152, 4608)}}
    assert finds_module.worth_confirming([MeasuredCase(FLOCKS, figures | square)]) == {FLOCKS: 4608}


def test_memory_that_begins_in_slabs_that_are_there_asks_for_nothing() -> None:
    """Recorded: processes that wait for a byte of a pipe, kB."""
    held = {"held_kb": {(1, 72): 2032.0, (1, 288): 11612.0, (1, 1152): 56404.0}}
    assert not finds_module.worth_confirming([MeasuredCase(FLOCKS, held)])


def test_a_size_that_was_left_out_and_measured_later_is_not_beyond_the_budget() -> None:
    measured_later = MeasuredCase(FLOCKS, {"sync_ns": {(1, 72): 1.0, (1, 288): 4.0}})
    measured_later.left_out |= {288, 1152}
    assert measured_later.beyond_budget == 1152
    measured_later.left_out.remove(1152)
    assert measured_later.beyond_budget is None


def test_after_one_seed_only_what_may_still_grow_is_confirmed() -> None:
    sizes = [144 * 2**n for n in range(6)]
    linear = {"sync_ns": {(1, size): 1000.0 * size for size in sizes}}
    square = {"sync_ns": {(1, size): 10.0 * size**2 for size in sizes}}
    # What made the screen ask: one size that is too dear, which is no law.
    step = {"sync_ns": {(1, size): 1000.0 * size + 5e6 * (size > 1000) for size in sizes}}
    assert finds_module.may_grow(MeasuredCase(FLOCKS, square))
    assert not finds_module.may_grow(MeasuredCase(FLOCKS, linear))
    assert not finds_module.may_grow(MeasuredCase(FLOCKS, step))


def test_deferred_work_of_a_few_million_instructions_asks_for_a_confirmation() -> None:
    """Recorded: masters of pseudoterminals, closed one by one."""
    deferred = {
        "deferred_ns": {(1, 18): 58e3, (1, 72): 449e3, (1, 288): 1_815e3, (1, 1152): 10_485e3}
    }
    assert finds_module.worth_confirming([MeasuredCase(FLOCKS, deferred)]) == {FLOCKS: 1152}


def test_what_the_screen_does_not_ask_for_is_never_superlinear() -> None:
    held = {"held_kb": {(1, size): 40.0 * size**1.2 for size in (72, 288, 1152, 4608)}}
    (case,) = finds_module.case_results(KINDS, {FLOCKS: MeasuredCase(FLOCKS, held)}, {}, {}, {})
    growth = case.growth["held"]
    assert growth.verdict == "unknown"
    assert growth.reason.startswith("exponents ")
    assert growth.reason.endswith("too little to be confirmed")


def test_the_bystanders_are_those_of_the_largest_number() -> None:
    zombies = stage("screen")[ZOMBIES]
    assert zombies.largest("objects_count") == 1152
    # The whole release, 37 million instructions, had interrupts off.
    assert zombies.largest("irqs_off_ns") == pytest.approx(37_494_146, rel=0.01)


def test_the_release_of_both_grows_with_the_square(finds: list[Find]) -> None:
    release = {find.kind: find for find in finds if find.cost == "sync"}
    for name in ("flocks", "zombies_group"):
        growth = release[name].growth
        assert growth is not None
        assert growth.verdict == "superlinear"
        assert growth.exponent == pytest.approx(1.94, abs=0.02)


def test_the_function_that_is_responsible_is_named(finds: list[Find]) -> None:
    place = {
        find.kind: find.function.place for find in finds if find.cost == "sync" and find.function
    }
    assert place == {"flocks": "locks_check_ctx_file_list()", "zombies_group": "do_exit()"}


def test_finds_with_interrupts_off_come_first(finds: list[Find]) -> None:
    assert finds[0].kind == "zombies_group"
    assert finds[0].function
    assert finds[0].function.no_interrupts > 0.9


def test_the_cost_at_the_limit_is_that_of_the_square(finds: list[Find]) -> None:
    flocks = next(find for find in finds if (find.kind, find.cost) == ("flocks", "sync"))
    assert flocks.prediction
    assert flocks.growth
    assert flocks.prediction.objects == 1_000_000
    exact = (flocks.growth.costs[-1] or 0) * (1_000_000 / flocks.growth.sizes[-1]) ** 2
    assert flocks.prediction.instructions[1] == pytest.approx(exact, rel=0.1)
    assert predicted(
        flocks.prediction, Rate(ns=2.0, deviation=0.1, acceleration="kvm", cases=3)
    ).endswith(" at 1,000,000")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0042, "0.0042 s"),
        (66.34, "66 s"),
        (400, "6.7 min"),
        (33_400, "9.3 h"),
        (1.65e6, "19 days"),
    ],
)
def test_a_prediction_has_two_digits(seconds: float, text: str) -> None:
    assert rough_time(seconds) == text


def result_of(cases: list[CaseResult], finds: list[Find]) -> HuntResult:
    return HuntResult(
        kteardown="0",
        command="kteardown hunt",
        source="debian-image:6.12",
        release="6.12.117",
        against=("debian-image:7.3",),
        measured_s=1.0,
        kinds=2,
        cases=tuple(cases),
        finds=tuple(finds),
    )


def test_the_tables_and_the_sentence(finds: list[Find]) -> None:
    result = result_of(confirmed_cases(), finds)
    assert summary(result).startswith("2 kinds in 2 ways of release on 6.12.117: ")
    table = finds_table(result)
    assert len(table.keys.rows) == len(finds)
    assert table.keys.columns[-1] == "debian-image:7.3"
    assert [shown.title for shown in shown_tables(result, everything=True)] == [
        "Finds",
        "All kinds",
    ]
    assert HuntResult.model_validate_json(result.model_dump_json()) == result


def test_what_may_still_be_superlinear_is_listed_unless_it_is_found_in_another_way(
    finds: list[Find],
) -> None:
    cases = confirmed_cases()
    rising = (
        cases[0]
        .growth["make"]
        .model_copy(update={"verdict": "unknown", "rising": True, "confirmed": True})
    )
    other = cases[0].model_copy(update={"kind": "other", "growth": {"make": rising}})
    same = cases[0].model_copy(update={"way": "oldest", "growth": {"sync": rising}})
    tables = shown_tables(result_of([*cases, other, same], finds), everything=False)
    (undecided,) = [table for table in tables if table.title.startswith("Undecided")]
    assert [row[0].text for row in undecided.keys.rows] == ["other, exit"]


def test_before_the_confirmation_the_screen_is_shown() -> None:
    cases = finds_module.case_results(KINDS, stage("screen"), {}, {}, {})
    result = result_of(cases, []).model_copy(update={"unconfirmed": 2})
    assert summary(result).endswith("on 6.12.117: not finished, 2 ways are to be confirmed")
    (table,) = shown_tables(result, everything=False)
    assert table.title == "Superlinear in the screen, from one seed"
    shown = {(row[0].text, row[1].text) for row in table.keys.rows}
    assert shown == {("flocks, exit", "release"), ("flocks, exit", "making")}
    assert not shown_tables(result_of(cases, []), everything=False)


def test_a_guest_that_hung_is_a_find_and_a_call_that_failed_is_not() -> None:
    hung, refused = MeasuredCase(FLOCKS), MeasuredCase(ZOMBIES)
    hung.failures.append(FailureResult(outcome="hang", objects=4608, detail="no record: for 60 s"))
    refused.failures.append(FailureResult(outcome="failed", objects=72, detail="fork(): hang on"))
    cases = finds_module.case_results(KINDS, {FLOCKS: hung, ZOMBIES: refused}, {}, {}, {})
    (find,) = finds_module.finds_of(cases, {}, KINDS)
    assert find.failed == FailureResult(outcome="hang", objects=4608, detail="no record: for 60 s")
    assert find.failure == "hang at 4,608 objects: no record: for 60 s"
    result = result_of(cases, [find])
    assert finds_table(result).keys.rows[0][1].text == "hang at 4,608 objects"
    assert report_text(find, result).startswith("Subject: flocks: hang at 4,608 objects\n")
    failed = failures_table(result)
    assert failed is not None
    assert [row[2].text for row in failed.keys.rows] == ["no record: for 60 s", "fork(): hang on"]


@pytest.mark.parametrize(
    ("name", "callers", "place"),
    [
        ("do_sigtimedwait", ("__x64_sys_rt_sigtimedwait",), "do_sigtimedwait()"),
        ("_raw_write_unlock_irq", ("do_exit", "do_group_exit"), "do_exit()"),
        (
            "finish_task_switch",
            ("__schedule", "schedule", "fcntl_setlk", "do_fcntl"),
            "fcntl_setlk()",
        ),
        (
            "finish_task_switch",
            ("__schedule", "schedule", "schedule_timeout", "__wait_for_common"),
            None,
        ),
        ("_raw_spin_unlock_irqrestore", ("__wake_up", "perf_event_wakeup"), "perf_event_wakeup()"),
        (
            "generic_exec_single",
            ("__smp_call_function_single", "perf_event_open"),
            "perf_event_open()",
        ),
        (
            "clear_highpages_kasan_tagged",
            ("__alloc_pages_noprof", "do_swap_page"),
            "do_swap_page()",
        ),
        ("kmem_cache_free", ("unlink_anon_vmas",), "unlink_anon_vmas()"),
        ("kfree", ("free_fib_info_rcu",), "free_fib_info_rcu()"),
        ("pcpu_alloc_noprof", ("fib_nh_common_init",), "pcpu_alloc_noprof()"),
        ("__wait_rcu_gp", ("synchronize_rcu", "perf_trace_destroy"), "perf_trace_destroy()"),
        ("__synchronize_srcu", ("uprobe_unregister_sync",), "uprobe_unregister_sync()"),
        ("free_pid", ("release_task",), "free_pid()"),
        ("free_nsproxy", ("do_exit",), "free_nsproxy()"),
    ],
)
def test_the_place_is_what_the_switch_of_tasks_or_the_unlock_is_for(
    name: str, callers: tuple[str, ...], place: str | None
) -> None:
    assert place_of(name, callers) == (place or f"{name}()")


def find_of(kind: str, place: str, share: float) -> Find:
    function = FunctionResult(
        name=place, share=share, exponent=2.0, callers=(), no_interrupts=0.0, place=f"{place}()"
    )
    growth = GrowthResult(
        verdict="superlinear",
        reason="",
        exponent=2.0,
        sizes=(10, 20),
        costs=(1.0, 4.0),
        confirmed=True,
    )
    return Find(
        kind=kind, way="exit", user="root", object="", cost="sync", growth=growth, function=function
    )


@pytest.mark.parametrize(
    ("kinds", "share", "finds"),
    [(("a", "b"), 0.5, 1), (("a", "b"), 0.1, 2), (("a", "a"), 0.1, 1)],
)
def test_kinds_are_one_find_if_what_they_have_in_common_takes_much_of_the_time(
    kinds: tuple[str, str], share: float, finds: int
) -> None:
    merged = finds_module._merged([find_of(kind, "walk", share) for kind in kinds])
    assert len(merged) == finds
    other = finds_module._merged([find_of("a", "walk", 0.5), find_of("b", "scan", 0.5)])
    assert len(other) == 2


def test_a_find_says_what_other_kernels_did_and_what_failed_there() -> None:
    confirmed = stage("confirm")
    failed = MeasuredCase(FLOCKS, {"sync_ns": {(1001, 72): 1e5, (1001, 144): 4e5}})
    failed.failures.append(FailureResult(outcome="panic", objects=288, detail="Oops: 0000"))
    elsewhere = {FLOCKS: {"debian-image:7.3": failed}}
    cases = finds_module.case_results(KINDS, stage("screen"), confirmed, {}, elsewhere)
    found = finds_module.finds_of(cases, confirmed, KINDS)
    flocks = next(find for find in found if (find.kind, find.cost) == ("flocks", "sync"))
    assert flocks.elsewhere["debian-image:7.3"].sizes == (72, 144)
    cells = finds_table(result_of(cases, [flocks])).keys.rows[0]
    assert cells[-1].text == "unknown, 400,000 at 144; panic at 288 objects: Oops: 0000"
    assert "On debian-image:7.3: panic at 288 objects: Oops: 0000." in report_text(
        flocks, result_of(cases, [flocks])
    )


def test_bystanders_that_fail_are_reported_at_the_largest_number_so_far() -> None:
    start = BootStart(
        kernel="kernel",
        block=0,
        seed=1,
        acceleration="icount",
        host_load=0,
        started_at="2026-01-01T00:00:00",
    )
    end = BootEnd(
        outcome="hang", detail="silence", duration_s=1, first_record_s=0, command=[], host_load=0
    )
    params: dict[str, ParamValue] = {"kind": "flocks", "way": "exit", "user": "root", "owners": 1}
    records = (
        TrialStart(trial=0, workload="hunt", params={**params, "objects": 288}),
        Sample(trial=0, repetition=0, metric="sync_ns", value=1e6, warmup=False),
        TrialEnd(trial=0, status="ok"),
        TrialStart(trial=1, workload="hunt", params={**params, "objects": 0}),
    )
    (case,) = measured([BootRecords(0, 0, start, end, records)]).values()
    assert [(failure.objects, failure.outcome) for failure in case.failures] == [(288, "hang")]


def test_what_fits_into_memory_is_predicted() -> None:
    """The kind has no other limit: 16 GiB of objects that take 32 kB each."""
    zombies = kind(ZOMBIES, "processes", "memory")
    confirmed = stage("confirm")
    figures = confirmed[ZOMBIES].figures
    figures["held_kb"] = {at: 32.0 * at[1] for at in figures["sync_ns"]}
    cases = finds_module.case_results([zombies], stage("screen"), confirmed, {}, {})
    find = next(
        find for find in finds_module.finds_of(cases, confirmed, [zombies]) if find.cost == "sync"
    )
    assert find.prediction
    assert (find.prediction.objects, find.prediction.limit) == (524_288, "16 GiB of memory")


@pytest.mark.parametrize(
    ("cost", "user", "sentence"),
    [
        ("sync", "root", "The program flocks.c shows it without any other file, run as root:"),
        (
            "make",
            "ordinary",
            "The program flocks.c shows it without any other file, run as an ordinary user:",
        ),
        (
            "deferred",
            "root",
            "The program flocks.c makes and releases the objects, run as root; this cost it ",
        ),
    ],
)
def test_the_report_says_what_the_program_shows_and_which_user_runs_it(
    cost: Cost, user: str, sentence: str
) -> None:
    find = find_of("flocks", "walk", 0.5).model_copy(update={"cost": cost, "user": user})
    text = report_text(find, result_of([], [find]))
    assert sentence in text
    of = {"sync": "release", "make": "making", "deferred": "deferred work"}[cost]
    assert f"walk() has 50% of the samples of the {of} of 20 objects; this time grows with" in text
    # It makes four times as many in the end, as many as were measured.
    assert "./flocks 5 exit\n" in text


@pytest.mark.parametrize(
    ("name", "callers", "off", "sentence"),
    [
        (
            "_raw_write_unlock_irq",
            ("do_exit", "do_group_exit"),
            0.9,
            "do_exit(), called by do_group_exit(), has 50% of the samples of the release of 20 "
            "objects; this time grows with the exponent 2.0. Interrupts were off; such samples are "
            "taken where they are enabled, in _raw_write_unlock_irq().",
        ),
        (
            "kfree",
            ("free_fib_info_rcu",),
            0.0,
            "free_fib_info_rcu() has 50% of the samples of the release of 20 objects, taken in "
            "kfree(); this time grows with the exponent 2.0.",
        ),
    ],
)
def test_the_report_names_the_function_that_the_table_names(
    name: str, callers: tuple[str, ...], off: float, sentence: str
) -> None:
    find = find_of("flocks", "walk", 0.5)
    assert find.function
    update = {
        "name": name,
        "callers": callers,
        "no_interrupts": off,
        "place": place_of(name, callers),
    }
    function = find.function.model_copy(update=update)
    find = find.model_copy(update={"function": function})
    assert f"\n{sentence}\n" in report_text(find, result_of([], [find]))


@pytest.mark.parametrize(
    ("objects", "limit", "acceleration", "sentences"),
    [
        (
            1_000_000,
            "fs.inotify.max_user_instances, fs.nr_open",
            "mttcg",
            (
                "For 1,000,000 objects (fs.inotify.max_user_instances and fs.nr_open allow more) "
                "that is 5,000 thousand million instructions, 2.8 h (up to 4.2 h) of an emulated "
                "CPU on the host that was used, if the cost goes on growing as it did.",
                "The number of objects is limited by fs.inotify.max_user_instances and fs.nr_open: "
                "raise each of them first if it is lower than 20.",
            ),
        ),
        (
            65_536,
            "fs.aio-max-nr",
            "kvm",
            (
                "For 65,536 objects (as many as fs.aio-max-nr allows) that is 5,000 thousand "
                "million instructions, 2.8 h (up to 4.2 h) on the host that was used, if the cost "
                "goes on growing as it did.",
                "The number of objects is limited by fs.aio-max-nr: raise it first if it is lower "
                "than 20.",
            ),
        ),
    ],
)
def test_the_report_says_what_is_predicted_and_what_limits_it(
    objects: int, limit: str, acceleration: str, sentences: tuple[str, ...]
) -> None:
    prediction = CostPrediction(objects=objects, limit=limit, instructions=(4e12, 5e12, 7.5e12))
    find = find_of("flocks", "walk", 0.5).model_copy(update={"prediction": prediction})
    rate = Rate(ns=2.0, deviation=0.1, acceleration=acceleration, cases=3)
    result = result_of([], [find])
    text = report_text(find, result.model_copy(update={"rate": rate}))
    assert all(f"\n{sentence}\n" in text for sentence in sentences)
    assert " s on " not in report_text(find, result)


@pytest.mark.parametrize("name", ["memory", "inotify_events", "nothing"])
def test_no_sysctl_is_to_be_raised_where_none_limits_or_the_program_does_it(name: str) -> None:
    limit = limits.LIMITS[name].set_by if name in limits.LIMITS else "16 GiB of memory"
    prediction = CostPrediction(objects=500_000, limit=limit, instructions=(4e12, 5e12, None))
    find = find_of("flocks", "walk", 0.5).model_copy(update={"prediction": prediction})
    text = report_text(find, result_of([], [find]))
    assert "For 500,000 objects (as many as " in text
    assert "is limited by" not in text


def test_the_report_lists_the_other_kinds_and_ways_and_names_the_call() -> None:
    also = ("flocks, oldest", "leases, exit", "flocks, call")
    find = find_of("flocks", "walk", 0.5).model_copy(update={"also": also, "way": "call"})
    (case, _) = confirmed_cases()
    case = case.model_copy(update={"way": "call", "call": "munmap()"})
    text = report_text(find, result_of([case], [find]))
    assert "\nRelease: one call releases all of them: munmap().\n" in text
    assert "in other kinds and ways, too: flocks (call, oldest), leases (exit).\n" in text
    assert "\nRelease: one call releases all of them.\n" in report_text(find, result_of([], [find]))


def test_a_case_has_the_call_of_its_kind_only_if_it_is_released_by_it() -> None:
    kinds = [each.model_copy(update={"call": "kill()"}) for each in KINDS]
    cases = finds_module.case_results(kinds, stage("screen"), stage("confirm"), {}, {})
    assert {case.way: case.call for case in cases} == {"exit": "", "call": "kill()"}


def test_the_report_says_how_long_others_waited(finds: list[Find]) -> None:
    result = result_of(confirmed_cases(), finds)
    zombies = next(find for find in finds if (find.kind, find.cost) == ("zombies_group", "sync"))
    text = report_text(zombies, result)
    assert (
        "During the release of 1,152 objects and shortly after it, interrupts are off for up to "
        "37,4" in text
    )
    making = zombies.model_copy(update={"cost": "make"})
    assert "shortly after it" not in report_text(making, result)


def test_a_linear_release_that_waits_for_others_is_a_find_of_its_own() -> None:
    waits = OwnersResult(
        kind="flocks",
        way="exit",
        user="root",
        owners=2,
        objects=100,
        boots=5,
        ratio=1.9,
        ci=(1.8, 2.0),
        verdict="serial",
        alone="linear",
    )
    steep = waits.model_copy(update={"alone": "superlinear"})
    result = result_of([], []).model_copy(update={"owners": (waits, steep)})
    assert summary(result).endswith(
        "; 1 linear release in which several processes wait for each other"
    )
    table = owners_table(result, everything=False)
    assert table
    assert [(row[4].text, row[4].tone, row[5].text) for row in table.keys.rows] == [
        ("serial", "worse", "linear"),
        ("serial", None, "superlinear"),
    ]
    text = report_text(waits, result)
    assert text.startswith(
        "Subject: flocks: 2 processes that release at once take 1.90 times as long\n"
    )
    assert "    ./flocks 100 exit & ./flocks 100 exit & wait\n" in text
