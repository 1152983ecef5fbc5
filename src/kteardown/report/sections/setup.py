"""On what a run was measured, and how, in sentences for readers who do not know kteardown: the
kernels, the guest, what a figure is and what an interval is of."""

import re
from collections.abc import Iterator, Mapping

from kteardown.kernels.source_name import with_short_commit
from kteardown.model.clock import Clock
from kteardown.model.experiment import PREBUILT
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.record import BASE
from kteardown.model.result import Result
from kteardown.report.formatting import counted
from kteardown.report.material import Material
from kteardown.visible import on_one_line

_COMPILERS = ("gcc", "clang")
_PATCHED = re.compile(r"patched:(.+?)(?:-[0-9a-f]{32})?@(.+)")
_CONFIG = "a small configuration (tinyconfig, and what a server has on the measured paths)"
_ORIGINS: Mapping[str, str] = {
    "debian": "Debian's source {}",
    "debian-image": "Debian's finished kernel {}",
    "kernel.org": "the source of kernel.org",
    "tar": "the tarball {}",
    "image": "the finished kernel {}",
}
"""By kind of source, where a kernel comes from; in braces is the rest of its name."""


def base_sentence(result: Result) -> str:
    """Return what base is: its version, its source, its compiler and its configuration."""
    facts = result.kernels.get(BASE)
    if facts is None:
        return "There is no base."
    return f"Base is {kernel_in_words(facts)}{_built(facts)}."


def kernel_in_words(facts: KernelFacts) -> str:
    """Return a kernel as its version with its source: ``Linux 6.12.117 (Debian's source 6.12.117-1,
    x86_64)``."""
    origin = on_one_line(origin_in_words(facts.source))
    return f"Linux {on_one_line(facts.release)} ({origin}, {on_one_line(facts.arch)})"


def origin_in_words(source: str) -> str:
    """Return where a kernel comes from; a source of an unknown kind as it is written."""
    if match := _PATCHED.fullmatch(source):
        return f"{origin_in_words(match[2])} with the patches of {_file_name(match[1])}"
    kind, _, rest = source.partition(":")
    if kind == "git":
        return f"git commit {with_short_commit(source).rpartition('@')[2]}"
    name = rest if kind.startswith("debian") else _file_name(rest)
    return _ORIGINS[kind].format(name) if kind in _ORIGINS else source


def method(material: Material) -> str:
    """Return how this clock makes the figures, and how often each kernel was booted."""
    result = material.result
    measured = f"{_CLOCKS[result.clock].format(qemu=_qemu(result), guest=_guest(material))}."
    boots = _boots(result)
    return f"{measured} {_booted(result, boots)}" if boots else measured


def _boots(result: Result) -> int:
    """Return of how many boots a figure is at most; 0 if nothing was compared."""
    return max((side.boots for c in result.asked_for for side in (c.base, c.changed)), default=0)


def figures_sentence(material: Material) -> str:
    """Return what a figure is of, and an interval, and an average; empty if nothing was
    compared."""
    boots = _boots(material.result)
    if not boots:
        return ""
    confidence = f"{material.result.comparisons[0].confidence * 100:.4g}%"
    ends = f", with its {confidence} interval over boots" if boots > 1 else ", without an interval"
    return (
        f"Figures are medians over boots{_in_a_boot(material)}; a change is (changed / base) - 1"
        f"{ends}. A point is a row of the tables; averages over points are geometric means."
    )


_CLOCKS: Mapping[Clock, str] = {
    "instructions": "{qemu} emulates a guest{guest} and counts its instructions (-icount). The "
    "guest's clock advances by a nanosecond with each, so a time is a number of instructions; time "
    "in which the guest is idle is included",
    "contention": "{qemu} emulates a guest{guest}, and a plugin counts the cache lines that move "
    "between its CPUs, in a model: caches are infinite, and a moved line costs 100 instructions in "
    "one half of the boots and 200 in the other (transfer_ticks)",
    "wall": "{qemu} runs a guest{guest} in real time",
}


def _booted(result: Result, boots: int) -> str:
    if result.clock == "wall":
        return (
            f"Each kernel was booted {_times(boots)}, all of them by turns in random order, and "
            "base twice as often: a difference that base also has to itself does not count."
        )
    costs = " at each of the two costs" * (result.clock == "contention")
    if boots == 1:
        return f"Each kernel was booted once{costs}, all with the same random seed."
    return (
        f"Each kernel was booted {_times(boots)}{costs}, each time with another random seed "
        "(memory layout, phase of the timer), and all kernels with the same seeds."
    )


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _in_a_boot(material: Material) -> str:
    """Return of what the figure of one boot is the median; empty if it is not known or single."""
    boots = material.plan.boots if material.plan else ()
    trials = [trial for boot in boots for trial in boot.trials]
    numbers = {trial.repetitions for trial in trials if not trial.profile_ns}
    if len(numbers) != 1 or numbers == {1}:
        return ""
    return f", and in a boot over {max(numbers)} repetitions"


def _qemu(result: Result) -> str:
    versions = result.machine.get("qemu")
    base = result.kernels.get(BASE)
    version = versions.get(base.arch) if isinstance(versions, Mapping) and base else versions
    return f"QEMU {on_one_line(version)}" if isinstance(version, str) and version else "QEMU"


def _guest(material: Material) -> str:
    """Return the size of the guest; empty if it is not known."""
    plan = material.plan
    if plan is None:
        return ""
    counts = {point.shown["cpus"] for point in plan.points if "cpus" in point.shown}
    numbers = sorted(number for number in counts if isinstance(number, int))
    cpus = counted(plan.cpus, "CPU")
    if len(numbers) > 1:
        cpus = f"{', '.join(map(str, numbers[:-1]))} or {numbers[-1]} CPUs"
    return f" of {cpus} and {plan.memory_mb} MB"


def _built(facts: KernelFacts) -> str:
    if facts.source.partition(":")[0] in PREBUILT:
        return ""
    # "x86_64-linux-gnu-gcc (Debian 12.2.0-14+deb12u1) 12.2.0": a name, and the version at the end.
    name = next((name for name in _COMPILERS if name in facts.compiler), "")
    version = facts.compiler.split()[-1] if name else ""
    is_version = version[:1].isdecimal()
    made_with = f"{name} {version}" if is_version else on_one_line(facts.compiler)
    return f", built with {made_with} and {_CONFIG}"


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def kernel_lines(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Yield what each variant is, and the subjects of the patches that it names.

    A part of a series that is a variant too is said by the numbers of its patches.
    """
    base = result.kernels.get(BASE)
    wholes = {
        facts.patch_set.series
        for name, facts in result.kernels.items()
        if facts.patch_set and facts.patch_set.whole and result.is_asked_for(name)
    }
    for name in sorted(result.requested, key=lambda name: _is_part(result.kernels[name])):
        facts = result.kernels[name]
        shown = on_one_line(name)
        on = "the base" if base and facts.source == base.source else kernel_in_words(facts)
        patch_set = facts.patch_set
        if patch_set is None:
            yield f"{shown} is {kernel_in_words(facts)}.", []
            continue
        numbers = ", ".join(map(str, patch_set.patches))
        which = f"patch{'es' * (len(patch_set.patches) != 1)} {numbers} of {patch_set.total}"
        if _is_part(facts) and patch_set.series in wholes:
            yield f"{shown} is {on} with {which} of {on_one_line(patch_set.series)} alone.", []
            continue
        if not patch_set.subjects:
            count = which if _is_part(facts) else f"all {patch_set.total} patches"
            yield f"{shown} is {on} with {count} of {on_one_line(patch_set.series)}.", []
            continue
        part = f" {which}" if _is_part(facts) else ""
        yield f"{shown} is {on} with{part}:", [on_one_line(text) for text in patch_set.subjects]


def _is_part(facts: KernelFacts) -> bool:
    return facts.patch_set is not None and not facts.patch_set.whole
