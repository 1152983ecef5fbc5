"""On what a run was measured, and how, for readers who do not know kteardown."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from kteardown.model.kernel_facts import KernelFacts, PatchSet
from kteardown.model.result import Result
from kteardown.report.sections.setup import (
    base_sentence,
    figures_sentence,
    kernel_lines,
    method,
    origin_in_words,
)
from kteardown.run.make_plan import make_plan
from unit.report.contexts import contention, instructions, wall
from unit.simulation import WORKLOADS, freezer

SERIES = ("mm: take no lock", "mm: free outside of the lock")


def facts(source: str = "debian:6.12.117-1", patches: PatchSet | None = None) -> KernelFacts:
    return KernelFacts(
        release="6.12.117",
        source=source,
        arch="x86_64",
        compiler="x86_64-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0",
        config_hash="",
        image_hash="",
        patch_set=patches,
    )


def lines_of(**kernels: KernelFacts) -> list[tuple[str, list[str]]]:
    named = {name.replace("_at_", "@"): made for name, made in kernels.items()}
    result: Result = instructions().result.model_copy(update={"kernels": named})
    return list(kernel_lines(result))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("debian:6.12.117-1", "Debian's source 6.12.117-1"),
        ("debian-image:6.12.117-1", "Debian's finished kernel 6.12.117-1"),
        (f"git:/src/linux@{'0a1b2c3d4e' * 4}", "git commit 0a1b2c3d4e0a"),
        ("tar:/tmp/linux.tar.xz", "the tarball linux.tar.xz"),
        (
            f"patched:theirs-{'0a1b2c3d' * 4}@debian:7.3.4-1",
            "Debian's source 7.3.4-1 with the patches of theirs",
        ),
        ("simulated", "simulated"),
        ("{", "{"),
    ],
)
def test_a_source_in_words_has_no_path_of_the_host(source: str, words: str) -> None:
    assert origin_in_words(source) == words


def test_a_kernel_that_is_built_has_its_compiler_and_a_finished_one_none() -> None:
    def said(source: str) -> str:
        kernels = {"base": facts(source)}
        return base_sentence(instructions().result.model_copy(update={"kernels": kernels}))

    assert "built with gcc 12.2.0 and a small configuration" in said("debian:6.12.117-1")
    assert "built" not in said("debian-image:6.12.117-1")
    assert base_sentence(instructions().result.model_copy(update={"kernels": {}})) == (
        "There is no base."
    )


def test_a_part_of_a_series_repeats_no_subject_of_the_whole() -> None:
    whole = PatchSet(series="fast", patches=(1, 2), total=2, subjects=SERIES)
    part = PatchSet(series="fast", patches=(1,), total=2, subjects=SERIES[:1])
    kernels = {"base": facts(), "fast_at_1": facts(patches=part)}
    assert lines_of(**kernels, fast=facts(patches=whole)) == [
        ("fast is the base with:", list(SERIES)),
        ("fast@1 is the base with patch 1 of 2 of fast alone.", []),
    ]
    assert lines_of(**kernels) == [("fast@1 is the base with patch 1 of 2:", [SERIES[0]])]


def test_another_kernel_has_its_version() -> None:
    other = facts("debian:7.2.12-1").model_copy(update={"release": "7.2.12"})
    ((text, subjects),) = lines_of(base=facts(), newer=other)
    assert text == "newer is Linux 7.2.12 (Debian's source 7.2.12-1, x86_64)."
    assert subjects == []


def test_the_method_has_the_guest_the_seeds_and_the_repetitions() -> None:
    plan = make_plan(freezer(), WORKLOADS, ("freezer-skip-exited",))
    machine = {"qemu": {"x86_64": "7.2.22"}}
    result = instructions().result.model_copy(update={"machine": machine})
    material = replace(instructions(), result=result, plan=plan)
    said = method(material)
    for part in (
        "QEMU 7.2.22 emulates a guest of 1 CPU and 256 MB",
        "booted 5 times, each time with",
    ):
        assert part in said
    assert "in a boot over 3 repetitions" in figures_sentence(material)
    assert "guest and counts" in method(instructions())


def test_one_boot_has_no_interval() -> None:
    plain = instructions().result
    comparisons = tuple(
        c.model_copy(
            update={
                "base": c.base.model_copy(update={"boots": 1}),
                "changed": c.changed.model_copy(update={"boots": 1}),
            }
        )
        for c in plain.comparisons
    )
    once = replace(instructions(), result=plain.model_copy(update={"comparisons": comparisons}))
    assert "booted once" in method(once)
    assert "without an interval" in figures_sentence(once)
    assert "95% interval over boots" in figures_sentence(instructions())


def test_the_method_of_each_clock() -> None:
    assert "number of instructions" in method(instructions())
    assert "real time" in method(wall()) and "base twice as often" in method(wall())
    assert "at each of the two costs" in method(contention())


def test_a_series_without_subjects_is_told_by_the_number_of_its_patches() -> None:
    whole = PatchSet(series="fast", patches=(1, 2), total=2)
    part = PatchSet(series="fast", patches=(2,), total=2)
    assert lines_of(base=facts(), fast=facts(patches=whole)) == [
        ("fast is the base with all 2 patches of fast.", [])
    ]
    assert lines_of(base=facts(), second=facts(patches=part)) == [
        ("second is the base with patch 2 of 2 of fast.", [])
    ]


def test_a_compiler_of_any_length_takes_no_time() -> None:
    base = facts().model_copy(update={"compiler": "gcc " * 100_000})
    result = instructions().result.model_copy(update={"kernels": {"base": base}})
    started = time.process_time()
    assert "built with gcc" in base_sentence(result)
    assert time.process_time() - started < 1
