"""The text to paste below a quoted patch, for readers who do not know kteardown."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.model.faults import VoidTrials
from kteardown.model.kernel_facts import PatchSet
from kteardown.report.formats.cover import WIDTH
from kteardown.report.material import BothMaterial, Material
from kteardown.report.saved import material_of_folder
from unit.report.contexts import contention, instructions, rich, wall, write_both
from unit.report.rendered import TEXTS


def words_of(material: Material) -> str:
    return " ".join(TEXTS["reply"](material).split())


def with_command(command: str) -> str:
    plain = instructions()
    result = plain.result.model_copy(update={"command": command})
    return TEXTS["reply"](replace(plain, result=result)).partition("To repeat it")[2]


@pytest.mark.parametrize("make", [instructions, rich, wall, contention])
def test_it_has_72_columns_of_plain_text(make: Callable[[], Material]) -> None:
    text = TEXTS["reply"](make())
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= WIDTH


def test_it_says_what_was_measured_the_result_its_limits_and_the_command() -> None:
    material = instructions()
    text = words_of(material)
    parts = [
        "Measured with",
        "Base is Linux",
        "random seed",
        "With freezer",
        "What the words mean:",
    ]
    parts += ["What this does not say", "To repeat it", material.result.command]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_metric_without_a_table_is_explained_too() -> None:
    text = words_of(instructions())
    without_table = text.partition("Metrics without a table")[2]
    assert "freezing the cgroup: " in without_table
    assert "- freezing the cgroup: " in text.partition("Metrics without a table")[0]


def test_many_subjects_of_a_series_are_counted() -> None:
    plain = instructions()
    name = "freezer-skip-exited"
    subjects = tuple(f"PM: part {n}" for n in range(1, 21))
    patches = PatchSet(series=name, patches=tuple(range(1, 21)), total=20, subjects=subjects)
    facts = plain.result.kernels[name].model_copy(update={"patch_set": patches})
    kernels = {**plain.result.kernels, name: facts}
    text = TEXTS["reply"](
        replace(plain, result=plain.result.model_copy(update={"kernels": kernels}))
    )
    assert "  PM: part 12\n  and 8 more patches\n" in text
    assert "PM: part 13" not in text


def test_a_run_that_is_not_finished_says_so_before_its_figures() -> None:
    plain = instructions()
    text = words_of(replace(plain, result=plain.result.model_copy(update={"boots_left": 3})))
    warning = "The measurement is not finished (3 boots left); all of this can change."
    assert text.index(warning) < text.index("So far, with 3 boots left")


def test_base_alone_says_that_no_patch_was_measured() -> None:
    plain = instructions()
    base = {"base": plain.result.kernels["base"]}
    result = plain.result.model_copy(
        update={"kernels": base, "comparisons": (), "metric_verdicts": (), "laws": ()}
    )
    text = words_of(replace(plain, result=result))
    assert "Only base was measured, and no patch." in text
    assert "random seed" not in text


def test_lost_trials_have_their_reasons() -> None:
    plain = instructions()
    lost = VoidTrials(
        kernel="base",
        workload="zombies",
        point={"zombies": 3000},
        status="void",
        detail="all_zombies: one is missing",
        count=2,
    )
    text = words_of(replace(plain, result=plain.result.model_copy(update={"voids": (lost,)})))
    assert "base: 2 trials void at zombies=3,000 of zombies: all_zombies: one is missing." in text
    assert "the report" not in text


def test_a_failure_is_said_once() -> None:
    plain = instructions()
    reason = {"reason": "the whole call does not show it", "outside": "contradicts"}
    first, *others = plain.result.comparisons
    changed = (first.model_copy(update=reason), *others)
    verdicts = tuple(
        verdict.model_copy(update={"outside": None}) for verdict in plain.result.metric_verdicts
    )
    updated = {"comparisons": changed, "metric_verdicts": verdicts}
    text = words_of(replace(plain, result=plain.result.model_copy(update=updated)))
    assert text.count("the whole call does not show it") == 1


def test_the_command_has_no_files_that_it_wrote() -> None:
    said = with_command(
        "kteardown run freezer --json /tmp/x.json --quick --markdown=out.md --jobs 2"
    )
    assert "\n  kteardown run freezer --quick\n" in said


def test_a_long_command_is_one_for_the_shell() -> None:
    command = "kteardown run swapfree --quick" + " --set mb=64,128,256 --variant 'a b'" * 4
    said = with_command(command)
    assert max(map(len, said.splitlines())) <= WIDTH
    lines = said.partition("\n\n  ")[2].splitlines()
    assert len(lines) > 2 and all(line.endswith(" \\") for line in lines[:-1])
    assert shlex.split(said.partition("\n\n  ")[2].replace("\\\n", "")) == shlex.split(command)


def test_a_local_file_in_the_command_has_its_name_and_no_folder() -> None:
    said = with_command("kteardown try /home/me/v3.mbox --source=git:/src/linux@v6.12")
    assert "\n  kteardown try v3.mbox --source=git:linux@v6.12\n" in said
    assert "v3.mbox, linux are not part of" in said
    assert "ask for it" not in with_command("kteardown run freezer --set zombies=0:9:3")
    assert "unclosed ' quote" in with_command("unclosed ' quote")


def test_a_patch_of_the_archive_is_whole_in_the_command() -> None:
    address = "https://lore.kernel.org/all/20260301-1@kernel.org/"
    for word in (address, f"--series={address}", "lore:20260301-1@kernel.org"):
        said = with_command(f"kteardown try {word}").partition("\n\n  ")[2]
        assert shlex.split(said.replace("\\\n", "")) == ["kteardown", "try", word]


@pytest.mark.parametrize(
    "typed",
    [
        "kteardown try patches/0001-x.patch",
        "kteardown try --quick patches/0001-x.patch",
        "kteardown try a/0001-x.patch b/0001-x.patch",
        "kteardown compare zombies --series=patches/0001-x.patch",
    ],
)
def test_a_patch_of_the_host_is_said_to_be_missing(typed: str) -> None:
    said = with_command(typed)
    assert "/" not in said.replace("To repeat", "")
    assert said.endswith("\n\n0001-x.patch is not part of kteardown; ask for it.\n")


def test_a_folder_of_patches_is_missing_and_a_range_is_not() -> None:
    assert "\n\nmy-fix is not part of" in with_command("kteardown try my-fix --quick")
    assert "part of" not in with_command("kteardown try origin/master..feature/x --quick")


def test_piped_patches_are_said_to_be_missing() -> None:
    said = with_command("kteardown try - --quick")
    assert "kteardown try - --quick\n" in said and "standard input" in said


def of_both(tmp_path: Path) -> BothMaterial:
    material = material_of_folder(write_both(tmp_path))
    assert isinstance(material, BothMaterial)
    return material


def test_a_reply_on_both_clocks_explains_its_words(tmp_path: Path) -> None:
    text = TEXTS["reply"](of_both(tmp_path))
    assert "- freezing user space: " in text.partition("On average:")[0]
    assert "\n- zombies: " in text


def test_of_clocks_with_other_boots_each_says_of_what_its_figures_are(tmp_path: Path) -> None:
    both = of_both(tmp_path)
    assert " ".join(TEXTS["reply"](both).split()).count("Figures are medians") == 1
    exact, wall_clock = both.clocks
    once = tuple(
        c.model_copy(
            update={
                "base": c.base.model_copy(update={"boots": 1}),
                "changed": c.changed.model_copy(update={"boots": 1}),
            }
        )
        for c in exact.result.comparisons
    )
    alone = replace(exact, result=exact.result.model_copy(update={"comparisons": once}))
    text = " ".join(TEXTS["reply"](replace(both, clocks=(alone, wall_clock))).split())
    of_exact, _, of_wall = text.partition("Wall clock: ")
    assert "without an interval" in of_exact and "interval over boots" not in of_exact
    assert "interval over boots" in of_wall.partition("What the words mean")[0]
