"""Fragments of the kernel configuration: the shipped ones, and those in the user's own folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.fragments import fragment_files, fragment_places, fragment_summary, located
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides, apply
from kteardown.paths import data_dir
from kteardown.run.resolve import resolve

SHIPPED = data_dir("kernels") / "fragments"
EXPERIMENT = """\
name = "mine"
question = "?"
source = "debian:6.12"
config = ["{fragment}"]
[[workloads]]
workload = "zombies"
"""


def fragment(folder: Path, name: str, text: str = "CONFIG_X=y\n") -> Path:
    """Write a fragment of the user's own into ``folder``."""
    file = folder / "kernels" / "fragments" / f"{name}.config"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def experiment(folder: Path, fragment: str) -> str:
    """Write an experiment of shipped workloads that names a fragment, and return its path."""
    file = folder / "experiments" / "mine.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(EXPERIMENT.format(fragment=fragment))
    return str(file)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, now the current one."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_the_current_folder_is_searched_after_that_of_the_experiment(
    here: Path, tmp_path: Path
) -> None:
    theirs, mine = fragment(tmp_path / "theirs", "one"), fragment(here, "one")
    assert located(["one"], tmp_path / "theirs") == (str(theirs),)
    assert located(["one"]) == (str(mine),)
    other = fragment(here, "two")
    assert located(["two", "one"], tmp_path / "theirs") == (str(other), str(theirs))


def test_a_shipped_fragment_cannot_be_replaced_and_stays_a_name(here: Path) -> None:
    fragment(here, "debug")
    assert located(["debug", "CONFIG_NET=y", 'CONFIG_X="/sbin"?']) == (
        "debug",
        "CONFIG_NET=y",
        'CONFIG_X="/sbin"?',
    )
    assert fragment_files(fragment_places())["debug"] == SHIPPED / "debug.config"


def test_a_fragment_may_be_a_path(here: Path) -> None:
    file = fragment(here, "one")
    assert located(["kernels/fragments/one.config", "one"]) == (str(file),)
    (here / "two.config").write_text("")
    assert located(["two.config"]) == (str(here / "two.config"),)
    with pytest.raises(InputError, match=r"\./none\.config: there is no such fragment"):
        located(["./none.config"])


def test_two_files_of_one_name_are_refused(here: Path, tmp_path: Path) -> None:
    one, other = fragment(here, "one"), fragment(tmp_path, "one")
    with pytest.raises(InputError, match="two fragments are called 'one'") as refused:
        located(["one", str(other)])
    assert str(one) in refused.value.message and str(other) in refused.value.message
    assert refused.value.hint


def test_the_error_names_the_folders_and_the_known_fragments(here: Path, tmp_path: Path) -> None:
    fragment(here, "latency")
    (here / "kernels/fragments/folder.config").mkdir()
    with pytest.raises(
        InputError, match=r"no fragment 'latncy'; did you mean 'latency'\?"
    ) as unknown:
        located(["latncy"], tmp_path / "theirs")
    for folder in (SHIPPED, tmp_path / "theirs/kernels/fragments", here / "kernels/fragments"):
        assert str(folder) in unknown.value.message
    assert "kasan" in unknown.value.hint and "latency" in unknown.value.hint
    assert "folder" not in unknown.value.hint.split(";")[0]


def test_the_option_adds_a_fragment_of_the_current_folder(here: Path) -> None:
    file = fragment(here, "latency")
    changed = apply(load_experiment("freezer"), Overrides(config=["latency", "debug"]))
    assert changed.config == ("latency", "debug")
    assert resolve(changed).base.fragments == ("debug", str(file))
    with pytest.raises(
        InputError, match=r"experiment freezer: config: there is no fragment 'latncy'"
    ) as unknown:
        apply(load_experiment("freezer"), Overrides(config=["latncy"]))
    assert str(here / "kernels/fragments") in unknown.value.message


def test_an_experiment_finds_its_fragments_from_any_folder(here: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    file, path = fragment(theirs, "latency"), experiment(theirs, "latency")
    found = load_experiment(path)
    assert (found.folder, resolve(found).base.fragments) == (str(theirs), (str(file),))
    # With an option, which is about the current folder.
    mine = fragment(here, "mine")
    changed = apply(found, Overrides(config=["mine"]))
    assert set(resolve(changed).base.fragments) == {str(file), str(mine)}
    # A file of this name in the current folder comes first, as a workload does.
    mine = fragment(here, "latency")
    assert resolve(load_experiment(path)).base.fragments == (str(mine),)


def test_a_wrong_fragment_of_an_experiment_names_its_file(here: Path, tmp_path: Path) -> None:
    path = experiment(tmp_path / "theirs", "latency")
    with pytest.raises(InputError, match="config: there is no fragment 'latency'") as unknown:
        load_experiment(path)
    assert unknown.value.message.startswith(path)


def test_the_fragments_of_a_workload_are_in_its_folder(here: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    file = fragment(theirs, "latency")
    workload = theirs / "workloads" / "mine.toml"
    workload.parent.mkdir()
    workload.write_text(
        'name = "mine"\nsummary = "s"\nsilence_s = 1\nconfig = ["latency"]\nmetrics = {}\n'
    )
    text = EXPERIMENT.format(fragment="kasan").replace("zombies", "mine")
    path = Path(experiment(theirs, "kasan"))
    path.write_text(text)
    assert resolve(load_experiment(str(path))).base.fragments == ("kasan", str(file))


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (
            "# Shows what waits: see\n# wait.c. And more.\n# More.\nCONFIG_X=y\n",
            "Shows what waits: see wait.c.",
        ),
        ("# No end\nCONFIG_X=y\n# later.\n", "No end"),
        ("CONFIG_X=y\n", ""),
        ("", ""),
    ],
)
def test_the_first_sentence_says_what_a_fragment_is_for(
    text: str, summary: str, tmp_path: Path
) -> None:
    assert fragment_summary(fragment(tmp_path, "one", text)) == summary


def test_every_shipped_fragment_says_what_it_is_for() -> None:
    assert all(fragment_summary(path).endswith(".") for path in SHIPPED.glob("*.config"))
