"""``kteardown try`` up to where it would build: with small trees in git instead of kernels."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from kteardown.cli import app, try_patch
from kteardown.cli.terminal import TerminalReporter
from kteardown.cli.try_patch import (
    choose_by_code,
    needed_settings,
    no_workload,
    scripts_in,
    whole_builds,
    with_call_paths,
    with_fewer_sizes,
)
from kteardown.coverage import attribute
from kteardown.coverage import changed as changed_module
from kteardown.coverage.attribute import Counts, FunctionId
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import CoverageMap, PointCoverage, WorkloadCoverage, points_of
from kteardown.errors import (
    BuildError,
    GuestError,
    InputError,
    KteardownError,
    NotBuiltError,
    NotExercisedError,
)
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Designed, Overrides, apply
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.model.record import ParamValue
from kteardown.patches.config_of_series import SeriesConfig
from kteardown.patches.find_base import Base
from kteardown.report.try_page import Chosen, MeasuredWorkload
from kteardown.run.resolve import experiment_for
from outputs import output_in

MAILS = Path(__file__).parents[2] / "data" / "mail"
NAMES = [f"{word}_{n}" for word in ("old", "new") for n in (1, 2)]
IMAGE = KernelImage("s", Path("bzImage"), "debian:6.12", "s", "x86_64", "", "", "", "")
OURS = "".join(f"int before_{n};\nint old_{n};\nint after_{n};\n" for n in (1, 2, 3))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tree of a kernel with the file that the sample mails change, as the name of a source."""
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "linux"
    (tree / "kernel").mkdir(parents=True)
    files = {
        "Kconfig": 'config OURS\n\tbool "ours"\n\tdepends on OURS_CORE\n\nconfig OURS_CORE\n\tbool "core"\n',
        "Kbuild": "obj-y += kernel/\n",
        "kernel/Makefile": "obj-$(CONFIG_OURS) += ours.o\n",
        "kernel/ours.c": OURS,
        "kernel/ours.h": "#define LIMIT 1\n",
    }
    for name, text in files.items():
        (tree / name).write_text(text)
    for argv in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        subprocess.run(["git", "-C", str(tree), *identity, *argv], check=True)
    return f"git:{tree}"


def run(*argv: str) -> Result:
    return CliRunner().invoke(app, ["try", *argv, "--dry-run"])


def failed(*argv: str) -> KteardownError:
    error = run(*argv).exception
    assert isinstance(error, KteardownError)
    return error


def test_a_dry_run_says_what_would_be_done(source: str, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    done = run(str(MAILS / "thread.mbox"), "--source", source, "--workload", "zombies", "--json", str(file))
    assert done.exit_code == 0, done.exception
    text = done.stdout
    assert text.startswith(
        "ours: free counters earlier\n  A. Author <author@example.org>, 2026-03-05, 2 patches"
    )
    assert "kernel/ours.c needs CONFIG_OURS, CONFIG_OURS_CORE, which are" in text
    assert "- Left out: the diff in a reply" in text
    assert "- would run zombies: named with --workload" in text
    assert "The base kernel is not in the cache: its build takes as long as others" in " ".join(text.split())
    assert all(len(line) <= 72 for line in text.splitlines())
    output = output_in(file)
    answer = output["details"]
    assert answer["series"]["message_id"] == "202603-1-0@example.org"
    assert answer["symbols"] == ["OURS", "OURS_CORE"]
    assert (answer["base"]["how"], output["headline"]) == ("with offsets", "Nothing was measured.")


def test_every_sample_mail_ends_with_an_answer_or_one_line(source: str) -> None:
    outcomes = {}
    for mail in sorted(MAILS.iterdir()):
        error = run(str(mail), "--source", source, "--workload", "zombies").exception
        assert error is None or isinstance(error, KteardownError), mail
        outcomes[mail.name] = error
    assert [name for name, error in outcomes.items() if isinstance(error, InputError)] == ["no-patch.eml"]


def test_a_workload_is_needed_if_none_executes_the_change(source: str, tmp_path: Path) -> None:
    files = tmp_path / "answer.json", tmp_path / "reply.txt"
    error = failed(
        str(MAILS / "thread.mbox"),
        *("--source", source, "--json", str(files[0]), "--markdown", str(files[1])),
    )
    assert isinstance(error, NotExercisedError)
    assert "--workload" in error.hint
    output, reply = output_in(files[0]), files[1].read_text()
    answer = output["details"]
    assert (output["exit_code"], answer["workloads"], answer["kernels"]) == (8, [], [])
    assert output["error"] == error.message
    assert answer["changed"] == [{"file": "kernel/ours.c", "name": n, "kind": "declaration"} for n in NAMES]
    assert output["headline"].startswith("No workload executes in its measured stretch")
    assert output["headline"] in " ".join(reply.split())


def test_what_uses_a_macro_is_known_after_the_build(source: str, tmp_path: Path) -> None:
    patch = tmp_path / "macro.patch"
    patch.write_text(
        "Subject: [PATCH] macro\n\n---\ndiff --git a/kernel/ours.h b/kernel/ours.h\n--- a/kernel/ours.h\n"
        "+++ b/kernel/ours.h\n@@ -1 +1 @@\n-#define LIMIT 1\n+#define LIMIT 2\n"
    )
    done = run(str(patch), "--source", source)
    assert done.exit_code == 0, done.exception
    assert "Workloads:\n- chosen after the build" in done.stdout
    assert "the code of both kernels says which functions use" in " ".join(done.stdout.split())


def test_the_code_of_both_kernels_chooses_the_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    class Info:
        def __init__(self, folder: Path) -> None: ...

        def named(self, names: set[str]) -> set[FunctionId]:
            return {FunctionId("kernel/freezer.c", name) for name in names}

    monkeypatch.setattr(changed_module, "DebugInfo", Info)
    functions = {"kernel/freezer.o": ["freeze_task"]}
    monkeypatch.setattr("kteardown.cli.try_patch.build.functions_of", lambda image: (functions, {}))
    macro = ChangedFunction("include/linux/freezer.h", "LIMIT", "macro")
    before = Chosen((macro,), after_build=True)
    base = Base("debian:6.12", "debian:6.12.117-1", "exactly", (), ())
    found = choose_by_code(before, base, IMAGE, Designed(quick=True))
    assert [choice.workload for choice in found.workloads] == ["zombies"]
    assert [str(one) for one in found.changed] == [str(macro), "kernel/freezer.c:freeze_task"]
    assert no_workload(before) is no_workload(found) is None
    functions.clear()
    assert isinstance(
        no_workload(choose_by_code(before, base, IMAGE, Designed(quick=True))), NotExercisedError
    )


SELDOM = {"zombies": 300}


@pytest.mark.parametrize(
    ("calls", "own", "params", "smallest", "chosen"),
    [
        (1, 100, SELDOM, 0.0, "run"),  # 1% of its stretch.
        (300, 10, SELDOM, 0.0, "run"),  # Once for each zombie.
        (299, 99, SELDOM, 0.0, "nothing"),
        (300, 10, SELDOM, 0.002, "count"),  # 0.1% of the stretch, and its metrics show 0.2%.
        (1, 1000, SELDOM, 0.1, "run"),
        (1, 1000, SELDOM, 0.2, "count"),
    ],
)
def test_a_workload_is_run_if_its_metrics_can_show_the_change(
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
    own: int,
    params: dict[str, ParamValue],
    smallest: float,
    chosen: str,
) -> None:
    function = FunctionId("kernel/freezer.c", "freeze_task")
    point = PointCoverage(params, 10_000, {function: Counts(calls, own)})
    coverage = CoverageMap("debian:6.12", {"zombies": WorkloadCoverage("zombies", (point,), frozenset())})
    monkeypatch.setattr(try_patch, "shipped_map", lambda source: coverage)
    monkeypatch.setattr(
        try_patch, "smallest_changes", lambda experiment, each_object: {"freeze_user_ns": smallest}
    )
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(try_patch, "changed_for_certain", lambda changed, variant: changed)
    before = Chosen(changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    found = choose_by_code(before, base, IMAGE, Designed(quick=True, assignments=["other=1"]))
    assert [one.only_counted for one in found.workloads] == {"run": [False], "count": [True], "nothing": []}[
        chosen
    ]
    error = no_workload(found)
    if chosen == "nothing":
        assert isinstance(error, NotExercisedError)
        assert error.message.startswith("executed, but not measured by anything here: what the patch changes")
        assert "1.0% of what a workload executes in its stretch (zombies)" in error.message
        assert "--script" in error.hint
    else:
        assert error is None
    whys = [one.why for one in found.workloads if one.only_counted]
    assert all("show a change from" in why and "can show it" not in why for why in whys)


def test_a_change_that_no_metric_shows_is_counted_in_two_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the one that executes most of it, and in the quietest one."""
    function = FunctionId("kernel/exit.c", "kill_orphaned_pgrp")
    counted = {"pipechain": 10, "crowd": 8, "threadexit": 6}
    laws = {name: load_workload(name).law for name in counted}
    coverage = CoverageMap(
        "debian:6.12",
        {
            name: WorkloadCoverage(
                name, (PointCoverage({laws[name]: 9}, 10_000, {function: Counts(9, own)}),), frozenset()
            )
            for name, own in counted.items()
        },
    )
    monkeypatch.setattr(try_patch, "shipped_map", lambda source: coverage)
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(try_patch, "changed_for_certain", lambda changed, variant: changed)
    smallest = {"compare-pipechain": 0.4, "compare-crowd": 0.2, "compare-threadexit": 0.01}
    monkeypatch.setattr(try_patch, "smallest_changes", lambda one, each_object: {"x": smallest[one.name]})
    before = Chosen(changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    found = choose_by_code(before, base, IMAGE, Designed(quick=True))
    assert [one.workload for one in found.workloads] == ["pipechain", "threadexit"]
    assert all(one.only_counted for one in found.workloads)


def test_metrics_and_choices_that_cannot_show_the_change_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function, usual = FunctionId("kernel/exit.c", "do_exit"), points_of(load_workload("threadexit"))[0]
    points = (
        PointCoverage({**usual, "how": "exit"}, 10_000, {function: Counts(999, 1000)}),
        PointCoverage({**usual, "how": "kill"}, 10_000, {function: Counts(1, 1)}),
    )
    counted = WorkloadCoverage("threadexit", points, frozenset())
    monkeypatch.setattr(
        try_patch, "shipped_map", lambda s: CoverageMap("debian:6.12", {"threadexit": counted})
    )
    sizes = {"threadexit_ns": 0.02, "noisy_ns": 0.5}
    monkeypatch.setattr(try_patch, "smallest_changes", lambda one, each_object: sizes)
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(try_patch, "changed_for_certain", lambda changed, variant: changed)
    before = Chosen(changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    (choice,) = choose_by_code(before, base, IMAGE, Designed(quick=True)).workloads
    assert (choice.metrics, choice.only_counted) == (("threadexit_ns",), False)
    assert needed_settings(choice, experiment_for("threadexit", "debian:6.12")) == ["how=exit"]


def test_what_only_a_choice_adds_has_a_metric_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    function, usual = (
        FunctionId("drivers/base/power/main.c", "device_resume"),
        points_of(load_workload("zombies"))[0],
    )
    devices = PointCoverage({**usual, "until": "platform"}, 10_000, {function: Counts(9, 350)})
    counted = WorkloadCoverage("zombies", (PointCoverage(usual, 10_000, {}), devices), frozenset())
    monkeypatch.setattr(try_patch, "shipped_map", lambda s: CoverageMap("debian:6.12", {"zombies": counted}))
    changed = (ChangedFunction(function.file, function.name),)
    monkeypatch.setattr(try_patch, "changed_for_certain", lambda changed, variant: changed)
    before = Chosen(changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    (choice,) = choose_by_code(before, base, IMAGE, Designed(quick=True)).workloads
    assert (choice.metrics, choice.only_counted) == (("suspend_call_ns",), False)
    assert needed_settings(choice, experiment_for("zombies", "debian:6.12")) == ["until=platform"]


def test_functions_that_only_a_stress_test_executes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    both, stress = FunctionId("mm/a.c", "both"), FunctionId("mm/a.c", "stress")

    def executing(workload: str, *functions: FunctionId) -> WorkloadCoverage:
        point = PointCoverage({}, 100, {function: Counts(1, 10) for function in functions})
        return WorkloadCoverage(workload, (point,), frozenset())

    counted = [executing("zsmalloc_stress", both, stress), executing("zombies", both)]
    coverage = CoverageMap("debian:6.12.117-1", {one.name: one for one in counted})
    monkeypatch.setattr(try_patch, "shipped_map", lambda source: coverage)
    changed = tuple(ChangedFunction(one.file, one.name) for one in (both, stress))
    monkeypatch.setattr(try_patch, "changed_for_certain", lambda changed, variant: changed)
    before = Chosen(changed)
    base = Base("debian:6.12", "", "exactly", (), ())
    found = choose_by_code(before, base, IMAGE, Designed(quick=True))
    assert [choice.workload for choice in found.workloads] == ["zombies"]
    assert found.not_executed == ("stress (only in stress tests, which have no figures)",)


def test_the_call_path_of_what_no_workload_executes_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, inlined = FunctionId("kernel/a.c", "reached"), FunctionId("kernel/a.c", "inlined")
    exit_call = FunctionId("kernel/exit.c", "__do_sys_exit")
    monkeypatch.setattr(attribute, "callers_of", lambda folder: {reached: [inlined], inlined: [exit_call]})
    changed = (
        ChangedFunction("kernel/a.c", "reached"),
        ChangedFunction("kernel/a.c", "added", exists_before=False),
        ChangedFunction("kernel/a.c", "by_pointer"),
    )
    found = with_call_paths(Chosen(changed, notes=("a note",)), tmp_path)
    path = "reached is reached by exit(2) -> __do_sys_exit -> inlined -> reached."
    assert found.notes == ("a note", path)


def test_what_cannot_be_compiled_has_an_exit_status_of_its_own(source: str, tmp_path: Path) -> None:
    tree = Path(source.removeprefix("git:"))
    (tree / "Documentation").mkdir()
    (tree / "Documentation" / "a.rst").write_text("one\n")
    patch = tmp_path / "docs.patch"
    patch.write_text(
        "Subject: [PATCH] docs\n\n---\ndiff --git a/Documentation/b.rst b/Documentation/b.rst\n"
        "new file mode 100644\nindex 0000000..5626abf\n--- /dev/null\n+++ b/Documentation/b.rst\n"
        "@@ -0,0 +1 @@\n+one\n"
    )
    file = tmp_path / "answer.json"
    error = failed(str(patch), "--source", source, "--workload", "zombies", "--json", str(file))
    assert isinstance(error, NotBuiltError)
    assert (error.exit_code, "documentation" in error.message) == (7, True)
    output = output_in(file)
    assert (output["exit_code"], output["details"]["series"]["title"]) == (7, "docs")
    assert output["details"]["base"]["source"] == source
    assert output["headline"].startswith("Nothing of this patch can be in a kernel for x86_64")


def test_a_series_that_no_source_takes_says_which_hunks_fail(source: str) -> None:
    error = failed(str(MAILS / "two-diffs.eml"), "--source", source, "--workload", "zombies")
    assert isinstance(error, BuildError)
    assert "mm/theirs.c" in error.message
    assert "--source git:" in error.hint


def test_a_series_on_top_of_another(source: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.eml", tmp_path / "second.eml"
    first.write_bytes((MAILS / "base64.eml").read_bytes())
    diff = "--- a/kernel/ours.c\n+++ b/kernel/ours.c\n@@ -1,3 +1,3 @@\n int before_1;\n"
    second.write_text(
        "From: B <b@example.org>\nSubject: [PATCH] ours: go on\nMessage-ID: <second@x>\n\n"
        f"Depends-on: <first@x>\n---\n{diff}-int new_1;\n+int newer_1;\n int after_1;\n"
    )
    error = failed(str(second), "--source", source, "--workload", "zombies")
    assert error.exit_code == 3
    assert "made on top of <first@x>" in error.message
    done = run(str(first), str(second), "--source", source, "--workload", "zombies")
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("ours: go on\n")
    assert "- Applied before it: ours: free the counter earlier" in done.stdout


def test_a_git_range_is_a_series(source: str) -> None:
    tree = Path(source.removeprefix("git:"))
    (tree / "kernel" / "ours.c").write_text(OURS.replace("old_2", "new_2"))
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", "-C", str(tree), *identity, "commit", "-qam", "ours: change it"], check=True)
    span = f"git:{tree}@HEAD~1..HEAD"
    done = run(span, "--workload", "zombies")
    assert done.exit_code == 0, done.exception
    assert "applies exactly" in done.stdout


def test_a_workload_is_run_where_it_executes_the_change() -> None:
    experiment = experiment_for("zombies", "debian:6.12")
    usual = points_of(load_workload("zombies"))[0]
    other = {**usual, "make": "fork"}
    assert needed_settings(MeasuredWorkload("zombies", "", params=usual), experiment) == []
    assert needed_settings(MeasuredWorkload("zombies", "", params=other), experiment) == ["make=fork"]


@pytest.mark.parametrize(
    ("workload", "law", "few"),
    [
        ("zombies", "zombies", (0, 6000, 15000)),
        ("dyingcg", "cgroups", (0, 500, 1000)),
        ("pipechain", "processes", (500, 1000, 4000)),
    ],
)
def test_the_quick_design_has_as_few_sizes_as_a_law_needs(
    workload: str, law: str, few: tuple[int, ...]
) -> None:
    experiment = with_fewer_sizes(experiment_for(workload, "debian:6.12"))
    assert apply(experiment, Overrides(quick=True)).workloads[0].params[law] == few
    mine = apply(experiment, Overrides(quick=True, assignments=[f"{law}=7"]))
    assert mine.workloads[0].params[law] == (7,)


def test_whole_builds_are_named_with_their_time(source: str, tmp_path: Path) -> None:
    plain = KernelRequest("base", source, arch="x86_64")
    kept = tmp_path / "cache" / "kernels" / "0123456789abcdef"
    kept.mkdir(parents=True)
    fields = {"image": {"arch": "x86_64", "series": ""}, "seconds": 540}
    (kept / "kernel.json").write_text(json.dumps(fields))
    base, patched = whole_builds(plain, SeriesConfig((), recompiled=0.93))
    assert (
        base
        == "The base kernel is not in the cache: its build takes about 9 minutes, as others on this host."
    )
    assert patched.startswith(
        "93% of all files include a header of the patch, so the patched kernel is compiled"
    )
    assert whole_builds(plain, SeriesConfig((), recompiled=0.3)) == (base,)


def test_a_folder_is_its_scripts(tmp_path: Path) -> None:
    for name in ("b.sh", "a.c", "notes.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "d.sh").mkdir()
    one = str(tmp_path / "b.sh")
    assert scripts_in([str(tmp_path), "perf bench", one]) == [str(tmp_path / "a.c"), one, "perf bench", one]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no script"):
        scripts_in([str(tmp_path / "empty")])


def test_what_the_user_has_set_is_counted_as_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, ParamValue]] = []
    reporter = TerminalReporter(Console(), quiet=True)

    def counted(
        kernels: object, workload: object, params: dict[str, ParamValue], *_: object, **_k: object
    ) -> None:
        seen.append(params)
        raise GuestError("enough", hint="")

    monkeypatch.setattr(try_patch, "executed", counted)
    usual = points_of(load_workload("swapfree"))[0]
    choice = MeasuredWorkload("swapfree", "", params=usual)
    for assignments in ([], ["processes=4", "mb=64", "end=exit"]):
        asked = Overrides(assignments=assignments)
        experiment = apply(experiment_for("swapfree", "debian:6.12"), asked)
        try_patch.count_executions(choice, (IMAGE, IMAGE), experiment, asked, (), reporter)
    # The size, by which the counts of two guests differ, stays small.
    assert seen == [usual, {**usual, "processes": 4, "end": "exit"}]
    assert usual["processes"] != 4 and usual["mb"] != 64


@pytest.mark.parametrize(("calls", "each"), [(300, True), (299, False)])
def test_an_allocation_decides_memory_if_it_is_itself_executed_for_each_object(
    monkeypatch: pytest.MonkeyPatch, calls: int, each: bool
) -> None:
    functions = {
        FunctionId("mm/a.c", "css_alloc"): Counts(calls, 5),
        FunctionId("mm/a.c", "css_online"): Counts(300, 5),
    }
    point = PointCoverage({"zombies": 300}, 10_000, functions)
    coverage = CoverageMap("debian:6.12", {"zombies": WorkloadCoverage("zombies", (point,), frozenset())})
    monkeypatch.setattr(try_patch, "shipped_map", lambda source: coverage)
    seen: list[bool] = []

    def smallest(experiment: object, *, each_object: bool) -> dict[str, float]:
        seen.append(each_object)
        return {}

    monkeypatch.setattr(try_patch, "smallest_changes", smallest)
    changed = tuple(ChangedFunction(one.file, one.name) for one in functions)
    monkeypatch.setattr(try_patch, "changed_for_certain", lambda changed, variant: changed)
    base = Base("debian:6.12", "debian:6.12", "exactly", (), ())
    choose_by_code(Chosen(changed), base, IMAGE, Designed(quick=True))
    assert set(seen) == {each}
