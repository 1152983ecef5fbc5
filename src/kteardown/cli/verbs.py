"""The verbs of the command line. The module of a verb is imported when the verb is used.

To import all of them takes most of a second, more than `kteardown --version` and many verbs need in all.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

SUMMARIES: Mapping[str, str] = {
    "try": "Try a patch from a mailing list: find its base kernel and its workload, measure, print one page.",
    "run": "Run an experiment: build its kernels, boot them, measure, and print the result.",
    "compare": "Compare a patch with its base on one workload.",
    "replicate": "Measure the posted patch itself, and say of each of its claims whether it replicates.",
    "hunt": "Find kernel objects whose making or release costs more than in proportion to their number.",
    "build": "Build the kernels of an experiment, unless they are in the cache, and print their image files.",
    "plan": "Print the order of the boots, the trials of each boot, a forecast of time and memory, and what "
    "the design can decide.",
    "report": "Print or write the report of a run. The run directory is only read.",
    "analyse": "Analyse a run again with the installed version, and print what changed.",
    "show": "Show the boots of a run, or what a workload, a series, an experiment or a kernel is.",
    "diff": "Compare two results: of an author and a reviewer, of two machines, or of two revisions of a "
    "patch.",
    "history": "Show a metric over the kernel releases and the time of all runs, and where its level "
    "changes.",
    "serve": "Serve web pages on this host: all runs, two runs compared, the history, and the progress of a "
    "run.",
    "query": "Query the records of all runs, in SQL. Nothing can be written.",
    "export": "Write each table of `kteardown query` to a file, such as samples.csv or samples.parquet.",
    "list": "List experiments, workloads, stress tests, kinds, series, fragments, postings, kernels and "
    "runs.",
    "new": "Write a skeleton that works unchanged, to be edited.",
    "prune": "Remove kernels, build trees, sources, downloads and logs from the cache. Runs are never "
    "removed.",
    "doctor": "Check what this host can do: acceleration (by a real probe boot), toolchains, memory, disk.",
    "selftest": "Show what this host measures: its settings, a probe boot, noise, and whether both clocks "
    "agree.",
}
"""What `kteardown --help` says of each verb, in its order: the first paragraph of the verb's own help."""
_MODULES = {"try": "try_patch", "list": "listing"}
"""The modules and functions whose names differ from their verbs, because those are words of Python."""


class Verbs(TyperGroup):
    """The group of all verbs."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": None})
        self.commands = cast(Any, _Commands())

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group with short types."""
        return with_short_types(super().get_params(ctx), ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the group from ``SUMMARIES``."""
        listed = copy.copy(self)
        listed.commands = {name: TyperCommand(name, help=text) for name, text in SUMMARIES.items()}
        super(Verbs, listed).format_help(ctx, formatter)


class _Commands(Mapping[str, Any]):
    """The command of each verb, from its module."""

    def __getitem__(self, name: str) -> Any:
        if name not in SUMMARIES:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


@cache
def _command(name: str) -> Any:
    from kteardown.cli.options import grouped

    own = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    verb = _MODULES.get(name, name)
    own.command(name, cls=Verb)(grouped(getattr(import_module(f"kteardown.cli.{verb}"), verb)))
    return get_command(own)


class Verb(TyperCommand):
    """A command whose help has short types, and paragraphs without the line breaks of the source."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.help = joined(self.help or "")

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters with short types."""
        return with_short_types(super().get_params(ctx), ctx)


def joined(text: str) -> str:
    """Return ``text`` with each paragraph on one line, and no empty line between indented lines."""
    paragraphs = [
        part if re.search("^ ", part, re.M) else " ".join(part.split()) for part in text.split("\n\n")
    ]
    return re.sub(r"(?m)^( .*)\n\n(?= )", r"\1\n", "\n\n".join(paragraphs))


def with_short_types(parameters: list[Any], ctx: Any) -> list[Any]:
    """Return ``parameters``; an option that does not name its value gets a short name for it.

    typer shows Python's types, as ``<list[str]>``, in a column that is as wide as the longest one. The texts
    then have less than half of 80 columns. An argument has a name, and its text says what it may be.
    """
    for option in parameters:
        if isinstance(option, TyperArgument):
            option.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        if isinstance(option, TyperOption) and option.metavar is None:
            option.metavar = _value(option, ctx)
    return parameters


def _value(option: TyperOption, ctx: Any) -> str:
    """Return what an option is followed by; a flag by nothing."""
    kind = option.type_descriptor
    if option.is_flag:
        return ""
    if kind.is_choice:
        return option.display_type(ctx).strip("<>")
    if kind.is_path:
        return "FILE"
    return "N" if kind.is_ranged else max(option.opts, key=len).lstrip("-").upper()
