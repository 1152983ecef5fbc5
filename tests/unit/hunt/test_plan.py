"""Plans of a hunt, and what is booted again after a guest failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis.strategies import integers

from kteardown.errors import InputError
from kteardown.model.plan import Plan, rests
from kteardown.model.record import BootEnd, BootStart, Outcome, Sample, TrialEnd, TrialStart
from kteardown.paths import data_dir
from kteardown.progress import SilentReporter
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown_hunt import growth, limits, plan
from kteardown_hunt.catalogue import Kind, choose_kinds, load_kinds, possible
from kteardown_hunt.finds import measured
from kteardown_hunt.folder import (
    HuntFolder,
    Request,
    further_boots,
    requests_of,
    without,
    without_figures,
)
from kteardown_hunt.plan import (
    AFTER_THEM,
    CONFIRM_SIZES,
    FEWEST_BOOTS,
    KINDS_PER_BOOT,
    LARGEST,
    SCREEN_SIZES,
    Case,
    Options,
    alone_plan,
    can_confirm,
    confirm_plan,
    kinds_in,
    screen_plan,
    shares_boots,
)

OPTIONS = Options(budget_minstr=10)
MANY = FEWEST_BOOTS * KINDS_PER_BOOT


def kind(name: str, **fields: object) -> Kind:
    values: dict[str, object] = {
        "name": name,
        "part": "files",
        "object": "object",
        "shape": "of one",
        "privileged": False,
        "limit": "",
        "needs": "",
        "modules": (),
        "call": "",
        "most": 0,
        "ways": ("exit", "oldest"),
    }
    return Kind.model_validate({**values, **fields})


def test_each_kind_has_a_boot_of_its_own_with_all_its_ways() -> None:
    plan = screen_plan([kind("a"), kind("b", most=300), kind("c", most=2000)], "kernel", OPTIONS)
    assert plan.independent
    first, second, third = plan.boots
    assert {trial.params["kind"] for trial in first.trials} == {"a"}
    sizes = [*SCREEN_SIZES, *AFTER_THEM, LARGEST]
    assert [trial.params["objects"] for trial in first.trials] == sizes * 2
    few = [5, 10, 18, 36, 72, 288]
    assert [trial.params["objects"] for trial in second.trials] == [*few, LARGEST] * 2
    # Three sizes are too few for a verdict, so the small ones do not depend on the budget.
    assert [trial.params["objects"] for trial in third.trials] == [*few, 1152, LARGEST] * 2
    assert [trial.warmup for trial in first.trials] == [1, *[0] * (2 * len(sizes) - 1)]


def names_in(plan: Plan) -> list[list[str]]:
    return [kinds_in(boot) for boot in plan.boots]


def test_many_kinds_share_boots() -> None:
    kinds = [kind(f"k{n}") for n in range(FEWEST_BOOTS + 1)]
    assert not shares_boots(screen_plan(kinds[:FEWEST_BOOTS], "kernel", OPTIONS))
    plan = screen_plan(kinds, "kernel", OPTIONS)
    assert shares_boots(plan)
    together = names_in(plan)
    first = plan.boots[0]
    # The catalogue is in order of its parts, so that neighbours are alike.
    assert together[0][:2] == ["k0", f"k{len(plan.boots)}"]
    warm = [trial.params["kind"] for trial in first.trials if trial.warmup]
    assert warm == together[0]
    assert [trial.index for trial in first.trials] == list(range(len(first.trials)))


@given(number=integers(1, 300), kernels=integers(1, 3))
def test_kinds_that_share_a_boot_have_other_neighbours_for_each_seed(
    number: int, kernels: int
) -> None:
    cases = {Case(f"k{n}", "exit"): 4608 for n in range(number)}
    plan = confirm_plan(cases, [f"kernel{n}" for n in range(kernels)], range(3), OPTIONS)
    before: set[tuple[str, str]] = set()
    for seed in (1001, 1003, 1005):
        boots = [boot for boot in plan.boots if boot.seed == seed and boot.kernel == "kernel0"]
        together = [kinds_in(boot) for boot in boots]
        assert sorted(name for names in together for name in names) == sorted(
            case.kind for case in cases
        )
        assert max(map(len, together)) <= KINDS_PER_BOOT
        assert len(boots) >= min(number, FEWEST_BOOTS)
        neighbours = {pair for names in together for pair in combinations(sorted(names), 2)}
        assert not neighbours & before
        before |= neighbours
    assert [boot.index for boot in plan.boots] == list(range(len(plan.boots)))


def test_a_kernel_that_is_added_gets_boots_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))
    hunt = HuntFolder.begin(
        Request(source="a", against=("b",), command="kteardown hunt --against b")
    )
    cases = {Case(f"k{n}", "exit"): 4608 for n in range(MANY)}
    first = confirm_plan(cases, ["b"], [0], OPTIONS)
    hunt.stage("kernels", first, "hash")
    hunt.extend(["b", "SERIES on a"], "")
    assert (hunt.request().against, hunt.request().locks) == (("b", "SERIES on a"), "")
    assert hunt.request().command == "kteardown hunt --against b --against 'SERIES on a'"
    for _ in range(2):
        hunt.extend([], "a")
        assert (hunt.request().against, hunt.request().locks) == (("b", "SERIES on a"), "a")
        assert (
            hunt.request().command == "kteardown hunt --against b --against 'SERIES on a' --locks a"
        )
    both = confirm_plan(cases, hunt.request().against, [0], OPTIONS)
    for _ in range(2):
        run = hunt.stage("kernels", both, "hash")
        planned = Plan.model_validate_json(run.plan_file.path.read_bytes())
        assert planned.boots == both.boots
    assert not rests(planned)


def test_a_way_that_is_added_gets_a_boot_and_those_that_are_there_keep_their_sizes(
    tmp_path: Path,
) -> None:
    hunt = HuntFolder(tmp_path)
    before = confirm_plan({Case("a", "exit"): 4608, Case("b", "exit"): 4608}, ["k"], [0], OPTIONS)
    hunt.stage("narrow", before, "hash")
    wanted = {Case("a", "exit"): 1152, Case("a", "call"): 1152, Case("b", "exit"): 4608}
    for _ in range(2):
        run = hunt.stage("narrow", confirm_plan(wanted, ["k"], [0], OPTIONS), "hash")
        first, second, added = Plan.model_validate_json(run.plan_file.path.read_bytes()).boots
        assert (first, second) == before.boots
        assert (added.index, added.block) == (2, 2)
        assert {(trial.params["kind"], trial.params["way"]) for trial in added.trials} == {
            ("a", "call")
        }
        assert [trial.index for trial in added.trials] == list(range(6))
        assert [trial.warmup for trial in added.trials] == [1, 0, 0, 0, 0, 0]


def test_all_kinds_of_a_boot_that_failed_are_measured_again_each_alone(tmp_path: Path) -> None:
    plan = screen_plan([kind(f"k{n}") for n in range(MANY)], "kernel", OPTIONS)
    run = HuntFolder(tmp_path).stage("screen", plan, "hash")
    failed_boot(run, plan)
    failed = without_figures(plan, run.boots())
    assert failed == [(0, name) for name in names_in(plan)[0]]
    (rest,) = (without(boot, failed) for boot in run.boots())
    assert not measured([rest])
    again = alone_plan(plan, failed)
    assert names_in(again) == [[name] for name in names_in(plan)[0]]
    assert not shares_boots(again)
    for index, boot in enumerate(again.boots):
        assert (boot.index, boot.block) == (index, index)
        assert [trial.index for trial in boot.trials] == list(range(len(boot.trials)))
        assert [trial.warmup for trial in boot.trials] == [1, *[0] * (len(boot.trials) - 1)]


def test_of_a_boot_that_ended_only_a_kind_with_a_trial_without_figures_is_measured_again(
    tmp_path: Path,
) -> None:
    plan = screen_plan([kind(f"k{n}") for n in range(MANY)], "kernel", OPTIONS)
    run = HuntFolder(tmp_path).stage("screen", plan, "hash")
    first, second, *_ = names_in(plan)[0]
    begins = next(trial.index for trial in plan.boots[0].trials if trial.params["kind"] == second)
    boot_with(run, plan, ok=range(begins), outcome="ok", failed=begins)
    (boot,) = run.boots()
    assert without_figures(plan, [boot]) == [(0, second)]
    kept = measured([without(boot, [(0, second)])])
    assert {case.kind for _, case in kept} == {first}


def test_modules_of_kinds_that_share_a_boot_are_loaded_once() -> None:
    kinds = [kind(f"k{n}") for n in range(MANY)]
    modules = {each.name: ("m", f"m-{each.name}") for each in kinds}
    boot = screen_plan(kinds, "kernel", Options(budget_minstr=10, modules=modules)).boots[0]
    assert len(boot.modules) == 1 + KINDS_PER_BOOT


def test_the_screen_measures_small_sizes_until_there_are_enough_for_a_verdict() -> None:
    text = (data_dir("agent") / "hunt" / "sizes.h").read_text()
    assert f"#define ENOUGH_SIZES {growth.MIN_SIZES}\n" in text
    assert plan.ENOUGH_SIZES == growth.MIN_SIZES


def test_an_ordinary_user_is_not_asked_for_what_needs_privileges() -> None:
    kinds = [kind("a"), kind("b", privileged=True)]
    assert [each.name for each in possible(kinds, "ordinary")] == ["a"]
    assert len(possible(kinds, "root")) == 2
    with pytest.raises(InputError, match="only root can make the objects of b"):
        possible(kinds[1:], "ordinary")


def test_no_kind_has_a_function_of_the_program_of_a_find() -> None:
    """Such a program is one C file with both."""
    folder = data_dir("agent") / "hunt"
    function = re.compile(r"^(?:static )?[\w *]*?\b(\w+)\([^;()]*\)\n\{", re.MULTILINE)
    programs = {
        name
        for file in ("owner.c", "reproducer.c")
        for name in function.findall((folder / file).read_text())
    }
    assert {"kill_descendants", "delete_entry", "owner_start"} <= programs
    for file in [*folder.glob("kinds/*.c"), *folder.glob("lib/*.h")]:
        assert programs.isdisjoint(function.findall(file.read_text())), file


def test_the_limits_of_an_ordinary_user_are_the_same_in_the_guest_and_in_predictions() -> None:
    text = (data_dir("agent") / "hunt" / "owner.c").read_text()
    assert f"#define DESCRIPTORS_OF_A_USER {limits.LIMITS['nofile'].ordinary}\n" in text
    assert f"#define TASKS_OF_A_USER {limits.LIMITS['nproc'].ordinary}\n" in text


def test_a_confirmation_has_six_doublings_and_three_seeds() -> None:
    plan = confirm_plan({Case("a", "exit"): 4608}, ["one", "two"], range(3), OPTIONS)
    assert [boot.kernel for boot in plan.boots] == ["one"] * 3 + ["two"] * 3
    assert [boot.seed for boot in plan.boots] == [1001, 1003, 1005] * 2
    assert not rests(plan)
    sizes = [int(trial.params["objects"]) for trial in plan.boots[0].trials][:6]
    assert sizes[-1] <= 4608
    assert [b / a for a, b in pairwise(sizes)] == [2.0] * 5


@given(integers(1, 20_000))
def test_few_objects_are_confirmed_with_fewer_sizes(most: int) -> None:
    assert can_confirm(most) == (most >= 40)
    if can_confirm(most):
        plan = confirm_plan({Case("a", "exit"): most}, ["one"], [0], OPTIONS)
        sizes = [int(trial.params["objects"]) for trial in plan.boots[0].trials]
        assert growth.MIN_SIZES <= len(sizes) <= CONFIRM_SIZES
        assert most / 2.3 < sizes[-1] <= most
        assert len(sizes) == CONFIRM_SIZES or sizes[0] < 10


def test_a_malformed_source_is_named() -> None:
    with pytest.raises(InputError, match="'nonsense' is not a kernel source"):
        requests_of("nonsense", (), ())


def test_names_and_parts_are_chosen_and_a_wrong_one_is_named() -> None:
    kinds = [kind("a"), kind("b", part="mounts"), kind("c", part="mounts")]
    assert [each.name for each in choose_kinds(kinds, ["mounts"])] == ["b", "c"]
    assert [each.name for each in choose_kinds(kinds, [])] == ["a", "b", "c"]
    with pytest.raises(InputError, match="did you mean 'mounts'"):
        choose_kinds(kinds, ["mount"])


def test_another_word_chooses_the_kinds_whose_names_contain_it() -> None:
    kinds = [
        kind("flocks"),
        kind("posix_locks"),
        kind("locks_of", part="mounts"),
        kind("mounts_deep"),
    ]
    assert [each.name for each in choose_kinds(kinds, ["locks"])] == [
        "flocks",
        "posix_locks",
        "locks_of",
    ]
    # A name or a part is not also a piece of names.
    assert [each.name for each in choose_kinds(kinds, ["mounts"])] == ["locks_of"]
    with pytest.raises(InputError, match="called 'flock_'"):
        choose_kinds(kinds, ["flock_"])
    with pytest.raises(InputError, match="called ''"):
        choose_kinds(kinds, [""])


def failed_boot(run: RunDir, plan: Plan) -> None:
    """Write the records of a boot whose guest hung in its third trial."""
    boot_with(run, plan, ok=range(2), outcome="hang", hung=2)


def boot_with(
    run: RunDir,
    plan: Plan,
    *,
    ok: Sequence[int],
    outcome: Outcome,
    failed: int | None = None,
    hung: int | None = None,
) -> None:
    """Write the records of the first boot: some trials end ok, one fails, and one does not end."""
    with open_writer(run) as log:
        boot = plan.boots[0]
        start = BootStart(
            kernel=boot.kernel,
            block=0,
            seed=boot.seed,
            acceleration="icount",
            host_load=0,
            started_at="2026-01-01T00:00:00",
        )
        log.append(start, boot=0, attempt=0)
        for index in (*ok, *(each for each in (failed, hung) if each is not None)):
            begun = TrialStart(trial=index, workload="hunt", params=boot.trials[index].params)
            log.append(begun, boot=0, attempt=0)
            if index in ok:
                sample = Sample(trial=index, repetition=0, metric="sync_ns", value=5, warmup=False)
                log.append(sample, boot=0, attempt=0)
                log.append(TrialEnd(trial=index, status="ok"), boot=0, attempt=0)
            elif index == failed:
                log.append(
                    TrialEnd(trial=index, status="failed", detail="mount()"), boot=0, attempt=0
                )
        end = BootEnd(
            outcome=outcome, detail="", duration_s=1, first_record_s=0.5, command=[], host_load=0
        )
        log.append(end, boot=0, attempt=0)


def test_after_a_hang_the_other_ways_are_booted_again_and_nothing_else(tmp_path: Path) -> None:
    plan = screen_plan([kind("a")], "kernel", OPTIONS)
    run = HuntFolder(tmp_path).stage("screen", plan, "hash")
    failed_boot(run, plan)
    (again,) = further_boots(plan, run)
    assert (again.index, again.place) == (1, plan.boots[0].place)
    assert {trial.params["way"] for trial in again.trials} == {"oldest"}
    assert [trial.index for trial in again.trials] == list(
        range(len(SCREEN_SIZES) + len(AFTER_THEM) + 1)
    )
    longer = plan.model_copy(update={"boots": (*plan.boots, again)})
    assert again.index in rests(longer)
    assert not further_boots(longer, run)
    (hung,) = [each for each in measured(run.boots()).values() if each.failures]
    assert hung.sizes == SCREEN_SIZES[:2]
    assert (hung.failures[0].outcome, hung.failures[0].objects) == ("hang", SCREEN_SIZES[2])


def test_a_stage_of_other_kinds_is_not_continued(tmp_path: Path) -> None:
    plan = screen_plan([kind("a")], "kernel", OPTIONS)
    folder = HuntFolder(tmp_path)
    folder.stage("screen", plan, "hash")
    assert folder.stage("screen", plan, "hash").plan_file.path.is_file()
    with pytest.raises(InputError, match="have changed"):
        folder.stage("screen", plan, "another")


def test_a_hunt_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))
    with pytest.raises(InputError, match="there is no hunt"):
        HuntFolder.find("last")
    made = HuntFolder.begin(Request(source="debian-image:6.12", kinds=("files",)))
    assert HuntFolder.find("last").request().kinds == ("files",)
    assert HuntFolder.find(made.name[:10]).path == made.path


@pytest.mark.parametrize(
    ("limit", "most", "user", "expected"),
    [
        ("nofile", 0, "root", 1_000_000),
        ("nofile", 0, "ordinary", 524_288),
        ("inotify_instances", 0, "ordinary", 128),
        # systemd lets a user have a third of all tasks, which is below RLIMIT_NPROC.
        ("nproc", 0, "ordinary", 42_213),
        # In a network or IPC namespace of its own, an ordinary user raises the sysctl.
        ("somaxconn", 0, "ordinary", 1_000_000),
        ("semmni", 0, "ordinary", 32_768),
        # But not the limit on the bytes of message queues.
        ("mqueue_queues", 0, "ordinary", 7_876),
        ("memory_cgroups", 0, "root", 65_535),
        ("", 300, "root", 300),
        ("nofile", 300, "root", 300),
    ],
)
def test_the_largest_number_is_that_of_the_limit(
    limit: str, most: int, user: str, expected: int
) -> None:
    found = limits.largest(limit, most, user)
    assert found is not None
    assert found[0] == expected


def test_nothing_that_is_known_limits_some_kinds() -> None:
    assert limits.largest("", 0, "root") is None


def test_each_shipped_kind_names_a_limit_that_is_known() -> None:
    kinds = load_kinds((), SilentReporter())
    named = {kind.limit for kind in kinds} - {""}
    assert named == named & (limits.LIMITS.keys() | {"memory", "memlock", "swap", "wmem"})
    assert len(kinds) == len({kind.name for kind in kinds})
    assert all(kind.ways for kind in kinds)
