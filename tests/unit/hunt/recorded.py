"""Recorded boots of two kinds, ``flocks`` by exit and ``zombies_group``, on Debian's 6.12."""

from __future__ import annotations

from pathlib import Path

from kteardown.rundir.directory import RunDir
from kteardown_hunt import finds as finds_module
from kteardown_hunt.catalogue import Kind
from kteardown_hunt.finds import MeasuredCase, measured
from kteardown_hunt.functions import growing_functions
from kteardown_hunt.plan import Case
from kteardown_hunt.result import CaseResult, Find, FunctionResult, GrowthResult, HuntResult

RECORDED = Path(__file__).parents[2] / "data" / "hunt" / "recorded"
FLOCKS = Case("flocks", "exit")
ZOMBIES = Case("zombies_group", "call")


def kind(case: Case, part: str, limit: str) -> Kind:
    return Kind(
        name=case.kind,
        part=part,
        object="object",
        shape="on one",
        privileged=False,
        limit=limit,
        needs="",
        modules=(),
        call="",
        most=0,
        ways=(case.way,),
    )


KINDS = (kind(FLOCKS, "files", "nofile"), kind(ZOMBIES, "processes", "nproc"))


def stage(name: str) -> dict[Case, MeasuredCase]:
    found = measured(RunDir(RECORDED / name).boots())
    return {case: each for (_, case), each in found.items()}


def confirmed_cases() -> list[CaseResult]:
    return finds_module.case_results(KINDS, stage("screen"), stage("confirm"), {}, {})


def recorded_finds() -> list[Find]:
    functions = growing_functions(RunDir(RECORDED / "profile-sync").boots())
    causes = {case: {"sync": function} for case, function in functions.items()}
    cases = finds_module.case_results(KINDS, stage("screen"), stage("confirm"), causes, {})  # type: ignore[arg-type]
    return finds_module.finds_of(cases, stage("confirm"), KINDS)


def result_of(cases: list[CaseResult], finds: list[Find]) -> HuntResult:
    return HuntResult(
        kteardown="0",
        command="kteardown hunt",
        source="debian-image:6.12",
        release="6.12.117",
        against=("debian-image:7.3",),
        measured_s=1.0,
        kinds=2,
        cases=tuple(cases),
        finds=tuple(finds),
    )


def find_of(kind: str, place: str, share: float) -> Find:
    function = FunctionResult(
        name=place, share=share, exponent=2.0, callers=(), no_interrupts=0.0, place=f"{place}()"
    )
    growth = GrowthResult(
        verdict="superlinear",
        reason="",
        exponent=2.0,
        sizes=(10, 20),
        costs=(1.0, 4.0),
        confirmed=True,
    )
    return Find(
        kind=kind, way="exit", user="root", object="", cost="sync", growth=growth, function=function
    )
