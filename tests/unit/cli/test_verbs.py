"""The verbs: what each process of kteardown imports, and the list of verbs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import import_module

import pytest
from typer.core import TyperArgument, TyperOption
from typer.main import get_command
from typer.testing import CliRunner

from kteardown.cli import app, verbs
from kteardown.flows.try_series.choose import MOST
from kteardown.patches import find_base
from unit.processes import forked

EVERY = verbs.every()
HEAVY = {"asyncio", "duckdb", "numpy", "scipy"}
"""What takes long to import, and is for measuring, statistics, charts and queries alone."""


def texts() -> dict[str, dict[str, str]]:
    """Return the texts of options.toml, by table."""
    folders = {verb.texts for verb in verbs.every().values()}
    files = [
        folder.joinpath("options.toml").read_text(encoding="utf-8") for folder in sorted(folders)
    ]
    return {name: table for file in files for name, table in tomllib.loads(file).items()}


def imported(*command: str) -> set[str]:
    """Return the modules that Python imports for ``command``."""
    done = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", *command],
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_version_and_the_help_import_no_verb(option: str) -> None:
    modules = imported("-m", "kteardown", option)
    assert {name for name in modules if name.startswith("kteardown.")} == {
        "kteardown.cli",
        "kteardown.cli.verbs",
        "kteardown.errors",
        "kteardown.extensions",
        "kteardown.packages",
        "kteardown.spawn",
        "kteardown.visible",
    }
    assert modules & {*HEAVY, "pydantic", "jinja2", "psutil"} == set()
    assert ("rich" in modules) == (option == "--help")


@pytest.mark.parametrize("module", ["report", "plan", "listing", "show", "diff"])
def test_verbs_that_boot_nothing_do_not_import_what_boots(module: str) -> None:
    modules = imported("-c", f"import kteardown.cli.{module}")
    assert modules & {*HEAVY, "kteardown.pipeline", "kteardown.vm.qemu"} == set()


def _import_anew(module: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0].startswith("kteardown")]:
        del sys.modules[name]
    import_module(module)


@pytest.mark.parametrize("verb", EVERY)
def test_a_verb_imports_what_it_needs(verb: str) -> None:
    """Whatever has been imported before it: other tests run in processes that have imported
    everything."""
    process = forked().Process(target=_import_anew, args=(EVERY[verb].where.partition(":")[0],))
    process.start()
    process.join()
    assert process.exitcode == 0


def test_the_list_has_the_first_paragraph_of_each_verb() -> None:
    verbs = get_command(app).commands  # type: ignore[attr-defined]
    assert {name: verb.help for name, verb in verbs.items()} == {
        name: verb.help for name, verb in EVERY.items()
    }
    listed = " ".join(
        CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout.replace("│", " ").split()
    )
    for name, verb in EVERY.items():
        assert f" {name} {verb.help.splitlines()[0]}" in listed


def test_every_option_has_a_text_and_every_text_an_option() -> None:
    own = texts()
    shared = own.pop("shared")
    verbs = get_command(app).commands  # type: ignore[attr-defined]
    assert set(own) <= set(verbs)
    using = Counter[str]()
    for name, verb in verbs.items():
        shown = {parameter.name: parameter.help for parameter in verb.params}
        if name == "report":
            assert shown.pop("form").startswith(
                "The format: text, "
            )  # Its names are those of the code.
        mine = tomllib.loads(EVERY[name].texts.joinpath("options.toml").read_text()).get(name, {})
        assert {**{key: shared[key] for key in shown.keys() - mine.keys()}, **mine} == shown, name
        using.update(shown.keys() - mine.keys())
    # A text of one verb is in the table of this verb.
    assert set(using) == set(shared)
    assert [key for key, verbs_with_it in using.items() if verbs_with_it < 2] == []


def test_the_texts_of_try_name_its_bases_and_how_many_workloads_it_runs() -> None:
    own = texts()["try"]
    assert own["source"].endswith(f" Default: {', '.join(find_base.KNOWN)}.")
    assert f"the {MOST} that execute most of it" in own["script"]


@pytest.mark.parametrize("name", EVERY)
def test_the_help_is_whole_at_80_columns(name: str) -> None:
    verb = get_command(app).commands[name]  # type: ignore[attr-defined]
    text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}).stdout
    lines = [line.strip("│* ") for line in text.splitlines()]
    for option in (option for option in verb.params if isinstance(option, TyperOption)):
        words = " ".join((option.help or "").split()[:2])
        names = ",".join(name for name in option.opts if name.startswith("--"))
        line = next(line for line in lines if line.startswith(f"{names}  "))
        assert f" {option.metavar}" in line
        # The text has at least half of the line.
        assert line.index(words) <= 40, line
    for argument in (argument for argument in verb.params if isinstance(argument, TyperArgument)):
        first = " ".join((argument.help or "").split()[:2])
        # Its name is enough: a column of types would be as wide as the longest list of choices.
        name_and_text = rf"[\w|]+(\.\.\.)? {{2,14}}{re.escape(first)}"
        assert any(re.match(name_and_text, line) for line in lines)
    own = [line for line in verb.help.splitlines() if line.startswith(" ")]
    assert [line for line in own if line.strip() not in lines] == []
    assert not re.search(r"\w\n\w", verb.help)
