"""The published figures: where they are written, what changed since, and what boots say later.

The result is the recorded run of ``tests/data/runs``, of the whole way: its command is the claim's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import boots
import claims
import figures
import keeping
import replications
import splice
import tables
from kteardown.inputs.published import posting_names
from kteardown.model.result import Result
from kteardown.paths import runs_dir

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests/data/runs/20261122-112017-freezer"
COMMAND = json.loads((RUN / "environment.json").read_text())["command"]
SERIES = "series/freezer-skip-exited"
FOLDER = "findings/results/zombie"
PAGE = "docs/page.md"
COVER = f"{SERIES}/0000-cover-letter.md"
PATCH = f"{SERIES}/0002-thaw.patch"
COST = "{per_unit thaw_ns freezer-skip-exited}"
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
text = "Thawing costs {COST} instructions a zombie instead of {{per_unit thaw_ns base}}."
"""
TEXTS = {
    PAGE: "# Page\n\n<!-- results: zombie thaw -->\n<!-- end of results -->\nAfter.\n",
    COVER: (
        "# Cover\n\n## Figures\nInstructions for a freeze,\nby zombies:\n\n"
        "| old |\n|---|\n\nAfter.\n"
    ),
    f"{FOLDER}/claim.toml": CLAIM,
}
MESSAGE = "Subject: thaw\n\nThawing costs 1,234 instructions a\nzombie instead of 5.\n---\n\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree in git: a claim that is not measured, a page, a cover letter, a patch."""
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    root = tmp_path / "tree"
    for name in ("agent", "workloads", "kernels", "experiments", "postings", SERIES):
        shutil.copytree(ROOT / name, root / name)
    patch = next(root.glob(f"{SERIES}/0002-*.patch"))
    diff = patch.read_text()
    patch.unlink()
    (root / PATCH).write_text(MESSAGE + diff[diff.index("diff --git ") :])
    for name, text in TEXTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "coverage").mkdir()
    subprocess.run(["git", "init", "-q", root], check=True)
    commit(root)
    return root


def commit(root: Path) -> None:
    """Commit the tree as it is."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["add", "."], [*identity, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=root, check=True)


@pytest.fixture
def measured(tree: Path) -> Path:
    """The tree after its claim was measured, from a run that only had to be resumed."""
    folder = runs_dir().parent / "published/zombie"
    shutil.copytree(RUN, folder / RUN.name)
    begun = keeping.Begun(commit=claims.head(tree), seconds=60, runs=[])
    (folder / "begun.json").write_text(begun.model_dump_json())
    keeping.measure(claims.load(tree, "zombie"))
    figures.write_texts(tree)
    commit(tree)
    return tree


def replace(file: Path, old: str, new: str) -> None:
    """Change one place of a file."""
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def changed(root: Path) -> tuple[str, ...]:
    return claims.load(root, "zombie").changed


def test_what_was_measured_is_in_every_text(measured: Path) -> None:
    assert figures.check(measured) == []
    page = (measured / PAGE).read_text()
    assert (
        "<!-- results: zombie thaw -->\n"
        "|                     | thaw_ns |\n"
        "| ------------------- | ------: |\n"
        "| base                |    52.9 |\n"
        "| freezer-skip-exited |    22.9 |\n"
        "\n"
        f"Measured with `{COMMAND}` (6.12.117, 3 seeds, "
    ) in page
    assert page.endswith("<!-- end of results -->\nAfter.\n")
    cover = (measured / COVER).read_text()
    assert "old" not in cover and "<!--" not in cover and cover.endswith("\n\nAfter.\n")
    assert "by zombies:\n\n| zombies |   6.12 | " in cover
    text = (measured / PATCH).read_text()
    assert "Thawing costs 22.9 instructions a\nzombie instead of 52.9.\n---\n" in text


def test_writing_again_changes_nothing(measured: Path) -> None:
    assert figures.write_texts(measured) == []


def test_a_result_belongs_to_a_commit(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    assert claim.measured is not None and claim.measured.duration_s >= 60
    facts = next(iter(claim.results.values())).kernels["base"]
    assert claim.measured.kernels["base"] == facts.image_hash
    assert f" at {claim.measured.commit})." in (measured / COVER).read_text()
    (measured / "agent/core/main.c").write_text("int more;\n")
    with pytest.raises(ValueError, match=r"commit first.*\n.*agent/core/main\.c"):
        claims.head(measured)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (PATCH, SERIES),
        ("workloads/zombies.toml", "workloads/zombies.toml"),
        ("agent/lib/suspend.c", "agent/lib"),
        ("agent/Makefile", "agent/Makefile"),
        ("experiments/freezer.toml", "experiments/freezer.toml"),
        ("agent/workloads/zombies/zombies.c", "agent/workloads/zombies"),
        ("kernels/base.config", "kernels"),
        (COVER, ""),
        ("agent/workloads/forkexit/forkexit.c", ""),
        ("workloads/forkexit.toml", ""),
    ],
)
def test_what_changed_since_is_named(measured: Path, file: str, name: str) -> None:
    more = "\n[other]\nkey = 1\n" if file.endswith(".toml") else "\n"
    with (measured / file).open("a") as stream:
        stream.write("CFLAGS += -g\n" if file.endswith("Makefile") else more)
    assert changed(measured) == ((name,) if name else ())
    assert bool(figures.unseen(measured)) == bool(name)
    assert (f"changed since: {name}" in figures.listing(measured)[0]) == bool(name)


@pytest.mark.parametrize(
    ("old", "new"), [("[about]", "# A comment.\n[about]"), ("kernel/power/", "kernel/other/")]
)
def test_what_is_not_measured_does_not_count(measured: Path, old: str, new: str) -> None:
    file = measured / "workloads/zombies.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert changed(measured) == ()


def test_a_commit_that_is_not_here_is_named(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    assert claim.measured is not None
    claim.keep(claim.measured.model_copy(update={"commit": "1234567"}))
    assert changed(measured) == ("everything: commit 1234567 is not in this repository",)


def test_what_a_later_boot_showed_counts_for_its_commit(measured: Path) -> None:
    (measured / "agent/lib/suspend.c").open("a").write("\n")
    commit(measured)
    assert changed(measured) == ("agent/lib",)
    claim = claims.load(measured, "zombie")
    assert claim.measured is not None
    seen = claims.Confirmed(commit=claims.head(measured), date="2026-11-29", differs="a little")
    claim.keep(claim.measured.model_copy(update={"confirmed": seen}))
    assert changed(measured) == () and figures.unseen(measured) == []
    assert figures.listing(measured)[0].endswith(" on 2026-11-29 a little")


def test_the_first_boots_of_a_run_are_kept_to_the_digit(measured: Path) -> None:
    kept = json.loads((measured / FOLDER / "boot.json").read_text())
    assert kept == boots.digits_of_run(RUN)
    assert {place.partition(":")[0] for place in kept} == {"base", "freezer-skip-exited"}
    assert boots.difference(kept, boots.digits_of_run(RUN)) == ""


def test_a_difference_is_named_with_the_largest_first() -> None:
    kept = {"base: w n=1": {"a_ns": 100.0, "b_ns": 50.0, "c_ns": 7.0}}
    counted = {"base: w n=1": {"a_ns": 101.0, "b_ns": 55.0, "c_ns": 7.0}}
    text = boots.difference(kept, counted)
    assert text == ("2 of 3 figures differ, most by 0.1 of it b_ns of base: w n=1: 55 for 50")
    assert "nothing for 7" in boots.difference(kept, {"base: w n=1": {"a_ns": 100.0}})
    with pytest.raises(boots.NotConfirmed, match="none of its figures"):
        boots.difference(kept, {})


def test_a_command_is_run_with_one_seed_in_place_of_its_own() -> None:
    words = ["kteardown", "run", "x", "--seeds", "3", "--clock=both", "--set", "n=1"]
    assert boots.without(words, {"--seeds", "--clock"}) == [
        "kteardown",
        "run",
        "x",
        "--set",
        "n=1",
    ]


def test_two_results_with_two_values_for_one_point_are_named(measured: Path) -> None:
    other = measured / "findings/results/other"
    shutil.copytree(measured / FOLDER, other)
    assert list(boots.conflicts(claims.claims(measured))) == []
    kept = json.loads((other / "boot.json").read_text())
    place, metrics = next(iter(kept.items()))
    kept[place] = {**metrics, "thaw_ns": 2 * metrics["thaw_ns"]}
    (other / "boot.json").write_text(json.dumps(kept))
    (line,) = boots.conflicts(claims.claims(measured))
    assert line.startswith(f"thaw_ns of {place}: ") and line.endswith(" in zombie")


def test_a_claim_that_was_never_measured_says_so_and_has_no_figure(tree: Path) -> None:
    figures.write_texts(tree)
    again = "**Not measured** on this text yet: `make figures NAME=zombie`."
    assert f"-->\n{again}\n<!--" in (tree / PAGE).read_text()
    assert f"by zombies:\n\n{again}" in (tree / COVER).read_text()
    assert "costs 1,234 instructions" in (tree / PATCH).read_text()
    assert figures.check(tree) == []
    assert figures.unseen(tree) == ["zombie: never measured"]


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        (PAGE, "zombie thaw", "zombie thawing", f"there is no table thawing in {FOLDER}"),
        (PAGE, "<!-- end of results -->", "", "a block of results has no end"),
        (COVER, "Instructions for", "Cycles for", "0 paragraphs, not one"),
        (PATCH, "Thawing costs", "Thawing takes", "0 sentences, not one"),
        (f"{FOLDER}/claim.toml", "{per_unit thaw_ns base}", "{per_unit a base}", "no such figure"),
        (f"{FOLDER}/claim.toml", "[tables.thaw]", "[tables.a]", f"no table thaw in {FOLDER}"),
        (f"{FOLDER}/claim.toml", 'rows = ["zombies"]', "row = []", f"{FOLDER}/claim.toml: "),
    ],
)
def test_a_place_that_is_wrong_is_named(
    measured: Path, name: str, old: str, new: str, problem: str
) -> None:
    replace(measured / name, old, new)
    with pytest.raises(ValueError, match=problem):
        figures.write_texts(measured)


def test_a_figure_that_was_edited_by_hand_is_corrected(measured: Path) -> None:
    replace(measured / PATCH, "costs 22.9 ", "costs 23 ")
    assert figures.check(measured) == [f"{PATCH}: not what the results give: run `make tables`"]
    assert figures.write_texts(measured) == [PATCH]
    assert figures.check(measured) == []


def test_the_page_of_a_result_has_every_table_and_the_notes_of_its_folder(measured: Path) -> None:
    (measured / FOLDER / "notes.md").write_text("## Why\nA walk.\n")
    figures.write_texts(measured)
    text = (measured / FOLDER / "README.md").read_text()
    assert text.startswith("# zombie\n\nA zombie's cost\n\n## thaw\n\n|")
    assert text.endswith("\n\n## Why\nA walk.\n")
    assert text.count("Measured with") == 2


def test_a_result_is_kept_smaller_and_says_the_same(measured: Path) -> None:
    whole = Result.model_validate_json((RUN / "result.json").read_bytes())
    file = measured / FOLDER / "result.json"
    kept = Result.model_validate_json(file.read_bytes())
    assert file.stat().st_size < 0.75 * (RUN / "result.json").stat().st_size
    assert [c.verdict for c in kept.comparisons] == [c.verdict for c in whole.comparisons]
    for short, full in zip(kept.comparisons, whole.comparisons, strict=True):
        assert short.ratio == pytest.approx(full.ratio, rel=1e-8)
    assert len(kept.laws) == len(whole.laws)


def test_the_part_of_a_report_on_a_terminal(measured: Path) -> None:
    claim = claims.load(measured, "zombie")
    spec = claims.TableSpec(metrics=("freeze_user_ns",), terminal=True)
    text = "\n\n".join(splice.paragraphs(claim, spec))
    assert text.startswith("    With freezer-skip-exited, freezing user space takes ")
    assert "zombies: growth of freezing user space with zombies" in text
    assert "thaw_ns" not in text.split("Measured")[0]


def test_every_claim_of_this_tree_can_be_read_and_has_its_texts() -> None:
    for claim in claims.claims(ROOT):
        assert {"agent/core", "kernels"} <= set(claim.inputs)
    assert figures.check(ROOT) == []


def test_a_script_depends_on_its_files_and_on_what_runs_it() -> None:
    inputs = claims.load(ROOT, "script-freezer").inputs
    files = {"postings/scripts/freezer.sh", "postings/scripts/create_zombie.c"}
    assert {*files, "agent/script", "series/freezer-skip-exited"} <= set(inputs)


def test_every_posting_has_a_line() -> None:
    overview = replications.overview(ROOT, claims.claims(ROOT))
    assert all(f"[{name}]" in overview or name in overview for name in posting_names())


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1234.5, "1,234"), (0.05, "0.05"), (12.34, "12.3"), (2.0, "2")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert tables.brief(value) == text
