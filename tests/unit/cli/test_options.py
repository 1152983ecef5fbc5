"""Groups of options: each field is an option, and the verb gets the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from kteardown.cli.options import grouped
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Designed, Kernels, Overrides, Parts, apply


@dataclass(frozen=True)
class Group:
    size: Annotated[int, typer.Option("--size", help="How large.")] = 3
    names: Annotated[list[str] | None, typer.Option("--name")] = None


def test_the_fields_of_a_group_are_options_of_the_verb() -> None:
    seen: list[tuple[str, Group, bool]] = []

    def verb(what: Annotated[str, typer.Argument()], group: Group, loud: bool = False) -> None:
        """Do it."""
        seen.append((what, group, loud))

    app = typer.Typer()
    app.command()(grouped(verb))
    runner = CliRunner()
    assert runner.invoke(app, ["thing"]).exit_code == 0
    arguments = ["thing", "--size", "5", "--name", "a", "--name", "b", "--loud"]
    assert runner.invoke(app, arguments).exit_code == 0
    assert seen == [("thing", Group(), False), ("thing", Group(5, ["a", "b"]), True)]
    assert "How large." in runner.invoke(app, ["--help"]).output


def test_options_that_are_not_given_change_nothing() -> None:
    freezer = load_experiment("freezer")
    assert apply(freezer, Overrides.of(Parts(), Kernels(), Designed())) == freezer


def test_options_reach_the_design() -> None:
    design = apply(
        load_experiment("freezer"), Overrides(until="ci=2%", budget="30m", seeds=9)
    ).design
    assert (design.until, design.budget_s, design.seeds) == ("ci=2%", 1800, 9)
