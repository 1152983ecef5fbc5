"""The catalogue of problems, ``problems.toml``: which count makes a problem, and which law says
what it costs."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import Field, model_validator

from kteardown.errors import InputError
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import StrictModel


class LiveProblem(StrictModel):
    """What many of one kind of object cost when something happens."""

    name: str
    title: str
    event: str
    """When the cost arises."""
    count: str
    """The name of a count of the collector."""
    of: Literal["number", "largest"] = "number"
    """Whether all of the machine matter, or those of the owner that has most."""
    least: Annotated[int, Field(ge=1)]
    """With how many it is a problem."""
    law: str = ""
    """``WORKLOAD.METRIC`` of a published result."""
    point: dict[str, ParamValue] = Field(default={})
    """The other parameters of that result."""
    machine: tuple[Literal["possible_cpus"], ...] = ()
    """Parameters of the law that the machine has."""
    kind: str = ""
    way: str = ""
    """A kind of the hunt, and the way in which it is released."""
    cost: Literal["work", "held"] = "work"
    """Whether it is about the instructions of the release, or about the memory that is kept."""
    scale: Annotated[float, Field(gt=0)] = 1
    """Objects of the law for one of the count."""
    at_most: str = ""
    at_least: str = ""
    """Why the figure is a bound."""
    needs: str = ""
    """A count that must not be 0."""
    part_of: str = ""
    """A problem whose teardown releases these, too."""
    relief: str = ""
    relief_if: str = ""
    """The law that says what a release or a series saves, if it is not ``law``, and when it
    does."""

    @model_validator(mode="after")
    def _has_one_law(self) -> "LiveProblem":
        if bool(self.law) == bool(self.kind) or bool(self.kind) != bool(self.way):
            raise ValueError(f"{self.name}: give either law, or kind and way")
        return self


@cache
def load_problems() -> tuple[LiveProblem, ...]:
    """Return the catalogue, in the order of its file."""
    text = files("kteardown.catalogue").joinpath("problems.toml").read_text(encoding="utf-8")
    return tuple(LiveProblem(name=name, **fields) for name, fields in tomllib.loads(text).items())


def find_problem(name: str) -> LiveProblem:
    """Return the problem ``name``. Raises InputError if there is none."""
    by_name = {problem.name: problem for problem in load_problems()}
    if name not in by_name:
        raise InputError.unknown(f"{name}: there is no such problem", name, by_name)
    return by_name[name]
