"""The published figures: what they depend on, where they are spliced, and what the check says.

The result is the recorded run of ``tests/data/runs``, of the whole way: its command is the claim's.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import claims
import confirm
import content_ids
import replications
import result_tables
import results
import splice
from kteardown import analysis
from kteardown.inputs.published import posting_names
from kteardown.model.result import Result
from kteardown.paths import runs_dir
from kteardown.run.create import plan_boots

ROOT = Path(__file__).parents[3]
RUN = ROOT / "tests/data/runs/20261122-112017-freezer"
COMMAND = json.loads((RUN / "environment.json").read_text())["command"]
SERIES = "series/freezer-skip-exited"
PAGE = "docs/page.md"
COVER = f"{SERIES}/0000-cover-letter.md"
PATCH = f"{SERIES}/0002-thaw.patch"
SERIES_COST = "{per_unit thaw_ns freezer-skip-exited}"
CLAIM = f"""
about = "A zombie's cost"
command = "{COMMAND}"

[tables.thaw]
rows = ["kernel"]
columns = ["metric"]
metrics = ["thaw_ns"]
cell = "{{per_unit}}"

[tables.points]
rows = ["zombies"]
columns = ["kernel"]
metrics = ["freeze_user_ns"]
where = {{ zombies = [1200, 0] }}
cell = "{{value}}, {{change}} {{verdict}}"
labels = {{ base = "6.12" }}
shown = [{{ in = "{COVER}", below = "Instructions for" }}]

[[sentences]]
in = "{SERIES}/0002-*.patch"
text = "Thawing costs {SERIES_COST} instructions a zombie instead of {{per_unit thaw_ns base}}."
"""
TEXTS = {
    PAGE: "# Page\n\n<!-- results: zombie thaw -->\n<!-- end of results -->\nAfter.\n",
    COVER: (
        "# Cover\n\n## Figures\nInstructions for a freeze,\nby zombies:\n\n"
        "| old |\n|---|\n\nAfter.\n"
    ),
}
MESSAGE = "Subject: thaw\n\nThawing costs 1,234 instructions a\nzombie instead of 5.\n---\n\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source tree in git: a claim that is not measured, a page, a cover letter, a
    patch."""
    folder = tmp_path_factory.mktemp("made")
    tree = folder / "tree"
    for name in ("agent", "workloads", "kernels", "experiments", "postings", SERIES):
        shutil.copytree(ROOT / name, tree / name)
    patch = next(tree.glob(f"{SERIES}/0002-*.patch"))
    text = patch.read_text()
    patch.unlink()
    (tree / PATCH).write_text(MESSAGE + text[text.index("diff --git ") :])
    for name, text in {**TEXTS, "results/zombie/claim.toml": CLAIM}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    subprocess.run(["git", "init", "-q", tree], check=True)
    commit(tree)
    return folder


def commit(tree: Path) -> str:
    """Commit the tree as it is, and return the short hash."""
    for command in (
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"],
    ):
        subprocess.run(["git", *command], cwd=tree, check=True)
    return content_ids.tree_commit(tree)


@pytest.fixture(scope="module")
def done(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after the claim was measured: the recorded run is complete, and only had to be
    kept."""
    folder = copied(made, tmp_path_factory.mktemp("done"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KTEARDOWN_RUNS", str(folder / "runs"))
        begin_again(folder / "tree")
        results.measure(folder / "tree", "zombie")
        results.write_tables(folder / "tree")
    return folder


def copied(folder: Path, target: Path) -> Path:
    subprocess.run(["cp", "-a", f"{folder}/.", target], check=True)
    return target


def begin_again(tree: Path) -> None:
    """Copy the recorded run as an interrupted one, which the next measurement finishes."""
    folder = runs_dir().parent / "published/zombie"
    shutil.copytree(RUN, folder / RUN.name)
    now = claims.load(tree, "zombie").now
    begun = {"ids": now, "commit": content_ids.tree_commit(tree), "seconds": 60.0, "runs": []}
    (folder / "begun.json").write_text(json.dumps(begun))


@pytest.fixture
def tree(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tree before its claim is measured, for one test."""
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    return copied(made, tmp_path) / "tree"


@pytest.fixture
def measured(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tree after its claim was measured, for one test."""
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    return copied(done, tmp_path) / "tree"


def replace(file: Path, old: str, new: str) -> None:
    """Change one place of a file."""
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def change_series(tree: Path) -> None:
    replace(
        tree / PATCH,
        "+\t\tif (READ_ONCE(p->exit_state))",
        "+\t\tif (READ_ONCE(p->exit_state) != 0)",
    )


def change_experiment(tree: Path) -> None:
    (tree / "experiments/freezer.toml").write_text(
        (tree / "experiments/freezer.toml")
        .read_text()
        .replace("repetitions = 9", "repetitions = 8")
    )


def change_workload(tree: Path) -> None:
    replace(tree / "workloads/zombies.toml", "silence_s = ", "silence_s = 1")


def change_agent(tree: Path) -> None:
    replace(
        tree / "agent/workload.h", "#include <stdint.h>", "#include <stdint.h>\n#include <float.h>"
    )


def change_library(tree: Path) -> None:
    file = tree / "agent/lib/suspend.c"
    file.write_text(file.read_text() + "int one_more;\n")


def change_flags(tree: Path) -> None:
    replace(tree / "agent/Makefile", "guest := -O2", "guest := -O3")


def change_configuration(tree: Path) -> None:
    file = tree / "kernels/base.config"
    file.write_text(file.read_text() + "\nCONFIG_ONE_MORE=y\n")


def test_what_was_measured_is_current_and_in_the_texts(measured: Path) -> None:
    assert results.check(measured) == []
    assert claims.load(measured, "zombie").state == "current"
    assert (
        "<!-- results: zombie thaw -->\n"
        "|                     | thaw_ns |\n"
        "| ------------------- | ------: |\n"
        "| base                |    52.9 |\n"
        "| freezer-skip-exited |    22.9 |\n"
        "\n"
        f"Measured with `{COMMAND}` (6.12.117, 3 seeds, "
    ) in (measured / PAGE).read_text()
    assert (measured / PAGE).read_text().endswith("<!-- end of results -->\nAfter.\n")


def test_a_cover_letter_gets_its_table_without_a_mark(measured: Path) -> None:
    text = (measured / COVER).read_text()
    assert "old" not in text and "<!--" not in text
    result = Result.model_validate_json((measured / "results/zombie/result.json").read_bytes())
    last = [c for c in result.comparisons if c.metric == "freeze_user_ns"][-1]
    row = f"| 1,200   | {last.base.median:,.0f} | {last.changed.median:,.0f}, "
    assert "by zombies:\n\n| zombies |   6.12 | " in text
    assert row in text and text.index(row) < text.index("| 0       |")
    assert text.count("Measured with") == 1 and text.endswith("\n\nAfter.\n")


def test_a_sentence_of_a_message_gets_its_figures(measured: Path) -> None:
    text = (measured / PATCH).read_text()
    assert "Thawing costs 22.9 instructions a\nzombie instead of 52.9.\n---\n" in text


def test_splicing_again_changes_nothing(measured: Path) -> None:
    before = {name: (measured / name).read_text() for name in (PAGE, COVER, PATCH)}
    assert results.write_tables(measured) == []
    assert before == {name: (measured / name).read_text() for name in before}


def state(tree: Path) -> str:
    return claims.load(tree, "zombie").state


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (change_series, SERIES),
        (change_experiment, "design"),
        (change_workload, "workloads/zombies"),
        (change_agent, "agent"),
        (change_library, "agent"),
        (change_flags, "agent"),
        (change_configuration, "kernels"),
    ],
)
def test_after_one_changed_line_a_result_is_older_and_its_text_stays_true(
    measured: Path, change: Callable[[Path], None], name: str
) -> None:
    change(measured)
    assert results.check(measured) == []
    assert results.outdated(measured) == "1 older than what they depend on: `make results`"
    lines = results.listing(measured)
    assert lines[0].startswith("older: zombie, measured at ")
    assert f"    changed since: {name}" in lines

    # Measured again: what is kept are the ids of the tree as it is now.
    claim = claims.load(measured, "zombie")
    assert claim.measured is not None
    again = claim.measured.model_copy(update={"ids": claim.now, "commit": "1234567"})
    results.keep(claim, [RUN / "result.json"], again)
    assert results.check(measured) != [], "the table has another commit"
    results.write_tables(measured)
    assert results.check(measured) == [] and not results.outdated(measured)
    assert " at 1234567)." in (measured / PAGE).read_text()


@pytest.mark.parametrize(
    ("seen", "change", "expected"),
    [
        ("equal", change_agent, "current"),
        ("within", change_series, "current"),
        ("stale", change_agent, "stale"),
        ("equal", change_experiment, "older"),
    ],
)
def test_what_boots_showed_on_the_present_tree_counts(
    measured: Path, seen: str, change: Callable[[Path], None], expected: str
) -> None:
    change(measured)
    claim = claims.load(measured, "zombie")
    ids = claims.confirmable(claim.now)
    fields = {
        "state": seen,
        "note": "a note",
        "commit": "c",
        "date": "d",
        "agent": "",
        "ids": ids,
        "values": {},
    }
    confirmed = claims.Confirmed.model_validate(fields)
    claims.write_json(claim.folder / "confirmed.json", confirmed)
    assert state(measured) == expected
    assert (
        f"confirmed at c on d: {seen}: a note" in "\n".join(results.listing(measured))
    ) or expected == "older"
    # Of the tree after that nothing is known.
    change_library(measured)
    assert state(measured) == "older"


def test_a_mix_of_what_was_measured_and_what_was_confirmed_is_older(measured: Path) -> None:
    header = (measured / "agent/workload.h").read_text()
    change_agent(measured)
    claim = claims.load(measured, "zombie")
    fields = {"state": "equal", "note": "", "commit": "c", "date": "d", "agent": "", "values": {}}
    confirmed = claims.Confirmed.model_validate({**fields, "ids": claims.confirmable(claim.now)})
    claims.write_json(claim.folder / "confirmed.json", confirmed)
    assert state(measured) == "current"
    change_series(measured)
    assert claims.load(measured, "zombie").moved == [SERIES], "confirmed with another series"
    (measured / "agent/workload.h").write_text(header)
    assert claims.load(measured, "zombie").moved == [SERIES], "measured with another series"


def test_a_result_belongs_to_a_commit(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    assert claim.measured is not None
    facts = next(iter(claim.results.values())).kernels["base"]
    assert claim.measured.kernels["base"] == facts.image_hash
    assert claim.measured.compiler == facts.compiler
    assert claim.measured.command == COMMAND
    known = claim.measured.commit
    assert len(known) == 7 and f" at {known})." in (measured / COVER).read_text()
    assert content_ids.tree_commit(measured) == known, (
        "the texts were written since, and nothing that is run"
    )
    change_library(measured)
    assert content_ids.tree_commit(measured) == f"{known}+"
    assert commit(measured) != known


def test_words_make_nothing_older(measured: Path) -> None:
    before = claims.load(measured, "zombie").now
    replace(measured / PATCH, "Subject: thaw", "Subject: thaw faster")
    (measured / PATCH).rename(measured / SERIES / "0002-thaw-faster.patch")
    replace(measured / COVER, "After.", "Afterwards.")
    for name, old, new in (
        ("core/main.c", "agent: runs", "agent: executes"),
        ("core/guest.c", "static const", "static const int one_more;\nstatic const"),
        ("core/trial.c", "/* One trial", "/* Every trial"),
        ("Makefile", "# The agents.", "# The programs."),
        ("workloads/zombies/zombies.c", '.summary = "', '.summary = "in short: '),
    ):
        file = measured / "agent" / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new, 1))
    (measured / "agent/workloads/forkexit/forkexit.c").write_text("another workload")
    (measured / "kernels/base.config").write_text(
        "# A comment.\n\n" + (measured / "kernels/base.config").read_text()
    )
    replace(measured / "workloads/zombies.toml", 'summary = "', 'summary = "In short: ')
    assert claims.load(measured, "zombie").now == before
    assert results.check(measured) == []


def test_a_change_of_the_analysis_alone_needs_no_guest(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = claims.load(measured, "zombie").measured
    monkeypatch.setattr(analysis, "RULES", analysis.RULES + 1)
    assert claims.load(measured, "zombie").moved == ["analysis"]
    results.analyse(measured, "zombie")
    results.write_tables(measured)
    assert results.check(measured) == [] and not results.outdated(measured)
    after = claims.load(measured, "zombie").measured
    assert before is not None and after is not None and after.commit == before.commit
    change_series(measured)
    with pytest.raises(results.Refused, match=f"{SERIES} changed since; measure it"):
        results.analyse(measured, "zombie")


def test_everything_that_is_older_is_renewed_and_a_failure_does_not_end_it(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (measured / "results/zombie/measured.json").read_text()
    other = measured / "results/other/claim.toml"
    other.parent.mkdir()
    other.write_text(
        'about = "No such experiment"\ncommand = "kteardown run freezer --source tar:no"\n'
    )
    monkeypatch.setattr(analysis, "RULES", analysis.RULES + 1)
    (failed,) = results.renew(measured)
    assert failed.startswith("other: kteardown run freezer --source tar:no ended with ")
    assert claims.load(measured, "zombie").state == "current"
    assert (measured / "results/zombie/measured.json").read_text() != before


def test_a_series_on_another_source_is_depended_on(tree: Path) -> None:
    found = claims.ids(
        tree, "kteardown run freezer --variant 'freezer-skip-exited@1 on debian:7.2'"
    )
    assert found[SERIES] == claims.load(tree, "zombie").now[SERIES]


def test_both_clocks_are_depended_on(tree: Path) -> None:
    both = "kteardown run freezer --clock both"
    designs = {
        claims.ids(tree, f"{both} {more}")["design"] for more in ("", "--boots 8", "--seeds 8")
    }
    assert len(designs) == 3
    one = claims.ids(tree, "kteardown run freezer --clock wall")
    assert (
        one["guest"]
        != claims.ids(tree, both)["guest"]
        != claims.ids(tree, "kteardown run freezer")["guest"]
    )


def test_the_files_that_count_are_depended_on_where_it_is_asked_for(tree: Path) -> None:
    plain = "kteardown run freezer --clock wall"
    before = [claims.ids(tree, command) for command in (plain, f"{plain} --counts")]
    assert before[0]["agent"] != before[1]["agent"] and before[0]["design"] != before[1]["design"]
    replace(
        tree / "agent/counts/counters.h",
        "#include <stdint.h>",
        "#include <stdint.h>\n#include <float.h>",
    )
    after = [claims.ids(tree, command) for command in (plain, f"{plain} --counts")]
    assert after[0] == before[0]
    assert after[1]["agent"] != before[1]["agent"]


def test_a_series_that_is_named_by_its_folder_is_depended_on(tree: Path) -> None:
    command = f"kteardown run freezer --variant ./{SERIES}"
    before = claims.ids(tree, command)
    change_series(tree)
    assert before[SERIES] != claims.ids(tree, command)[SERIES]


def test_nothing_is_kept_where_the_tree_changes_while_it_is_measured(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_again(tree)

    def ids_of_a_busy_tree(root: Path, command: str) -> dict[str, str]:
        found = claims.ids(root, command)
        if not (root / "changed").exists():
            change_series(root)
            (root / "changed").touch()
        return found

    monkeypatch.setattr("results.ids", ids_of_a_busy_tree)
    with pytest.raises(results.Refused, match="the tree changed while it was measured"):
        results.measure(tree, "zombie")
    assert claims.load(tree, "zombie").state == "not measured"


def test_a_table_that_was_never_measured_says_so_and_has_no_figure(tree: Path) -> None:
    results.write_tables(tree)
    assert (
        "-->\n**Not measured** on this text yet: `make results NAME=zombie`.\n<!--"
        in (tree / PAGE).read_text()
    )
    assert "by zombies:\n\n**Not measured** on this text yet" in (tree / COVER).read_text()
    assert "costs 1,234 instructions" in (tree / PATCH).read_text()
    assert results.check(tree) == []
    assert results.outdated(tree) == "1 never measured: `make results`"


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        (PAGE, "zombie thaw", "zombie thawing", "there is no table thawing in results/zombie"),
        (PAGE, "<!-- end of results -->", "", "a block of results has no end"),
        (COVER, "Instructions for", "Cycles for", "0 paragraphs, not one"),
        (PATCH, "Thawing costs", "Thawing takes", "0 sentences, not one"),
        (
            "results/zombie/claim.toml",
            "{per_unit thaw_ns base}",
            "{per_unit thaw_ns twin}",
            "no such figure",
        ),
        (
            "results/zombie/claim.toml",
            "[tables.thaw]",
            "[tables.other]",
            "no table thaw in results/zombie",
        ),
        (
            "results/zombie/claim.toml",
            'rows = ["zombies"]',
            "row = []",
            "results/zombie/claim.toml: ",
        ),
        ("results/zombie/claim.toml", " --seeds 3", " --seeds 0", "--seeds 0 .*greater than"),
    ],
)
def test_a_place_that_is_wrong_is_named(
    measured: Path, name: str, old: str, new: str, problem: str
) -> None:
    replace(measured / name, old, new)
    with pytest.raises((results.Refused, ValueError), match=problem):
        results.write_tables(measured)
        results.outdated(measured)


def test_the_page_of_a_result_has_every_table_and_the_notes_in_its_folder(measured: Path) -> None:
    (measured / "results/zombie/notes.md").write_text("## Why\nA walk.\n")
    text = results.page(measured, "zombie")
    assert text.startswith("# zombie\n\nA zombie's cost\n\n## thaw\n\n|")
    assert text.endswith("\n\n## Why\nA walk.\n")
    assert text.count("Measured with") == 2
    (measured / "results/only").mkdir()
    (measured / "results/only/notes.md").write_text("One.\n")
    assert results.page(measured, "only") == "# only\n\nOne.\n"
    with pytest.raises(ValueError, match=r"results/none/claim\.toml"):
        results.page(measured, "none")


def test_a_figure_that_was_edited_by_hand_is_found(measured: Path) -> None:
    replace(measured / PATCH, "costs 22.9 ", "costs 23 ")
    assert results.check(measured) == [f"{PATCH}: not what results/ gives: run `make tables`"]
    assert results.write_tables(measured) == [PATCH]
    assert results.check(measured) == []


def test_a_result_is_kept_smaller_and_says_the_same(measured: Path) -> None:
    whole = Result.model_validate_json((RUN / "result.json").read_bytes())
    file = measured / "results/zombie/result.json"
    kept = Result.model_validate_json(file.read_bytes())
    assert file.stat().st_size < 0.75 * (RUN / "result.json").stat().st_size
    assert [c.verdict for c in kept.comparisons] == [c.verdict for c in whole.comparisons]
    for one, other in zip(kept.comparisons, whole.comparisons, strict=True):
        assert one.ratio == pytest.approx(other.ratio, rel=1e-8)
    assert len(kept.laws) == len(whole.laws)


def test_the_part_of_a_report_on_a_terminal(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    spec = claims.TableSpec(metrics=("freeze_user_ns",), terminal=True)
    text = "\n\n".join(splice.paragraphs(claim, spec))
    assert text.startswith("    With freezer-skip-exited, freezing user space takes ")
    assert "freezer: How much do zombies" in text
    assert "zombies: growth of freezing user space with zombies" in text
    assert "thaw_ns" not in text.split("Measured")[0]
    assert "Kernels" not in text


def test_a_claim_of_a_script_depends_on_its_files_and_not_on_how_it_is_called(tree: Path) -> None:
    command = (
        "kteardown compare postings/scripts/pipes.sh --file postings/scripts/pipes.c --source "
        "debian:6.12"
    )
    command += f" --series ./{SERIES} --set N=10,20"
    before = claims.ids(tree, command)
    assert {"agent", "analysis", "design", "guest", "kernels", SERIES, "workloads/pipes"} == set(
        before
    )
    replace(tree / "postings/scripts/pipes.c", "sleep(1);", "sleep(2);")
    now = claims.ids(tree, command)
    assert [name for name in now if now[name] != before[name]] == ["workloads/pipes"]
    replace(tree / "agent/script/process.c", "#define KILL_NS 1", "#define KILL_NS 2")
    assert claims.ids(tree, command)["agent"] != before["agent"]
    assert claims.is_of_script(command)
    assert not claims.is_of_script(
        "kteardown compare zombies --source debian:6.12 --series freezer-skip-exited"
    )


def test_every_claim_of_this_tree_can_be_read_and_its_places_exist() -> None:
    found = claims.claims(ROOT)
    for claim in found:
        assert {"agent", "analysis", "design", "kernels"} < set(claim.now)
    assert splice.splice(ROOT, found).problems == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.016234, "0.0162"),
        (4.66, "4.66"),
        (68.0, "68"),
        (99.96, "100"),
        (1028754.2, "1,028,754"),
    ],
)
def test_a_number_has_three_digits_or_all_before_the_point(value: float, text: str) -> None:
    assert result_tables.brief(value) == text
    assert result_tables.brief(-value) == (f"-{text}" if value else "0")


@pytest.mark.parametrize(("margin", "said"), [(0.1, "worse"), (19.5, "open"), (30, "not worse")])
def test_a_change_is_judged_by_its_whole_interval(margin: float, said: str) -> None:
    """The interval of the ratio is 20.0 to 20.8 in this published result."""
    spec = claims.TableSpec(
        rows=("kernel",),
        metrics=("teardown_ns",),
        kernels=("exit-gate",),
        where={"state": ("fuse",), "groups": ("none",)},
        cell="{judged}",
        margin=margin,
    )
    shown = result_tables.table(spec, claims.load(ROOT, "masskill-exits"))
    assert shown.splitlines()[-1].split("|")[2].strip() == said


def test_a_value_can_be_divided_and_only_some_kernels_shown(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    spec = claims.TableSpec(
        rows=("kernel",), metrics=("freeze_user_ns",), kernels=("base",), where={"zombies": (1200,)}
    )
    divided = spec.model_copy(update={"divide": 1200})
    (base,) = {
        c.base.median
        for c in claim.results["instructions"].comparisons
        if c.point == {"zombies": 1200} and c.metric == "freeze_user_ns"
    }
    assert result_tables.table(spec, claim).splitlines()[-1].split("|")[2].strip() == f"{base:,.0f}"
    assert result_tables.table(divided, claim).splitlines()[-1].split("|")[
        2
    ].strip() == result_tables.brief(base / 1200)
    with pytest.raises(result_tables.NoFigure):
        result_tables.table(spec.model_copy(update={"metrics": ("no_ns",)}), claim)


def test_a_replication_does_not_depend_on_the_words_of_its_posting(tree: Path) -> None:
    command = "kteardown replicate freezer --quick"
    before = claims.ids(tree, command)
    posting = tree / "postings/freezer.toml"
    replace(posting, "after = 16\n", "after = 17\n")
    replace(posting, 'what = "freezing user space', 'what = "in other words, freezing user space')
    assert claims.ids(tree, command) == before
    replace(posting, "params.zombies = [3000, ", "params.zombies = [")
    assert claims.ids(tree, command) != before


def test_every_posting_has_a_line_with_its_findings(tree: Path) -> None:
    page = tree / PAGE
    page.write_text("<!-- results: postings overview -->\nold\n<!-- end of results -->\n")
    replace(tree / "results/zombie/claim.toml", COMMAND, "kteardown replicate freezer --quick")
    lines = replications.overview(tree, claims.claims(tree)).splitlines()
    assert len(lines) == 2 + len(posting_names())
    assert "replicate freezer`, not measured yet" in next(
        line for line in lines if "[freezer]" in line
    )
    assert "DragonFly BSD" in next(line for line in lines if "| pipes" in line)


def test_the_table_of_a_replication(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    (result,) = claim.results.values()
    with pytest.raises(ValueError, match="replicates no posting"):
        replications.findings(claim, result)
    spec = claim.spec.model_copy(update={"command": "kteardown replicate freezer --quick"})
    table = replications.findings(claims.Claim(measured, "zombie", spec), result)
    assert "freezing user space at 3,000 zombies" in table
    assert table.endswith("on the log scale.")


def test_the_table_of_both_clocks(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    spec = claims.TableSpec(
        metrics=("freeze_user_ns",),
        kernels=("freezer-skip-exited",),
        where={"zombies": (1200,)},
        both_clocks=True,
    )
    with pytest.raises(result_tables.NoFigure, match="not measured on both clocks"):
        result_tables.table(spec, claim)
    (counted,) = claim.results.values()
    # The same changes on the other clock: both agree.
    vars(claim)["results"] = {
        "instructions": counted,
        "wall": counted.model_copy(update={"clock": "wall"}),
    }
    lines = result_tables.table(spec, claim).splitlines()
    assert lines[0].endswith("change on both clocks; lower is better:")
    (row,) = (line for line in lines if line.startswith("|   1,200 |"))
    _, _, exact, wall, *_, reading, _ = (cell.strip() for cell in row.split("|"))
    assert exact == wall != ""
    assert reading == "agree"
    with pytest.raises(result_tables.NoFigure, match="no headline figures"):
        result_tables.table(spec.model_copy(update={"where": {"zombies": (7,)}}), claim)


def test_the_point_that_is_booted_is_one_that_a_table_shows_and_has_objects(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    plan = plan_boots(confirm.resolved_of(claim))
    (point,) = confirm.points_of(claim, plan)
    assert point.shown == {"zombies": 600}, "the table thaw is about all of them"
    only = claim.spec.model_copy(update={"tables": {"points": claim.spec.tables["points"]}})
    (point,) = confirm.points_of(claims.Claim(measured, "zombie", only), plan)
    assert point.shown == {"zombies": 1200}


def counted(
    claim: claims.Claim, factor: float = 1, failure: str = ""
) -> dict[str, confirm.Counted]:
    """What boots at 1,200 zombies counted: what is published, times a factor."""
    found: dict[str, dict[str, float]] = {}
    for c in claim.results["instructions"].comparisons:
        if c.point == {"zombies": 1200} and not failure:
            for kernel, summary in (("base", c.base), (c.variant, c.changed)):
                found.setdefault(f"zombies zombies=1200, {kernel}", {})[c.metric] = (
                    summary.median * factor
                )
    places = [f"zombies zombies=1200, {kernel}" for kernel in ("base", "freezer-skip-exited")]
    return {place: confirm.Counted(found.get(place, {}), failure, 1) for place in places}


@pytest.mark.parametrize(
    ("factor", "failure", "state", "note"),
    [
        (1, "", "equal", ""),
        (1.001, "", "within", r"_ns of zombies zombies=1200, .*: [\d,.]+ for [\d,.]+ \(\+0.1%; "),
        (1.5, "", "stale", r"\(\+50%; single boots differ by up to \d"),
        (1, "panic: oops", "stale", "zombies zombies=1200, base: panic: oops"),
    ],
)
def test_without_a_reference_what_boots_count_is_compared_with_what_is_published(
    measured: Path, factor: float, failure: str, state: str, note: str
) -> None:
    change_library(measured)
    claim = claims.load(measured, "zombie")
    found, why = confirm.judged(claim, counted(claim, factor, failure))
    assert found == state and re.search(note, why) and bool(why) == bool(note)


def test_the_first_boots_of_the_tree_that_measured_are_the_reference(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    assert confirm.judged(claim, counted(claim, 1.5))[0] == "first", (
        "what one point leaves to the next differs"
    )


def keep_confirmed(claim: claims.Claim, state: str, found: Mapping[str, confirm.Counted]) -> None:
    """Keep what boots counted, without other boots as their reference."""
    values = {place: each.values for place, each in found.items()}
    fields = {
        "state": state,
        "note": "",
        "commit": "",
        "date": "",
        "agent": "",
        "ids": {},
        "values": values,
    }
    claims.write_json(claim.folder / "confirmed.json", claims.Confirmed.model_validate(fields))


def test_boots_that_were_compared_with_what_is_published_are_no_reference(measured: Path) -> None:
    change_library(measured)
    claim = claims.load(measured, "zombie")
    apart = counted(claim, 1.001)
    keep_confirmed(claim, "within", apart)
    claim = claims.load(measured, "zombie")
    assert confirm.judged(claim, apart)[0] == "within", "what is published is still the reference"


def test_with_a_reference_what_boots_count_is_compared_to_the_digit(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    first = counted(claim, 1.5)
    keep_confirmed(claim, "first", first)
    change_library(measured)
    claim = claims.load(measured, "zombie")
    assert confirm.judged(claim, first) == ("equal", "")
    assert confirm.judged(claim, counted(claim))[0] == "stale"
    first["zombies zombies=1200, base"].values["thaw_ns"] += 1
    state, note = confirm.judged(claim, first)
    assert state == "within" and note.startswith("thaw_ns of zombies zombies=1200, base: ")
