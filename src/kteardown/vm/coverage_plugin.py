"""The emulator's plugin that counts what a guest's kernel executes: build it, and read what it wrote."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kteardown.errors import LabError
from kteardown.model.arch import Arch
from kteardown.progress import Reporter
from kteardown.vm.agent import agent_addresses
from kteardown.vm.installed_qemu import qemu_version
from kteardown.vm.qemu_library import build_library

_MARKS = (
    ("trial", "trial_run"),
    ("begin", "wl_profile_begin"),
    ("end", "wl_profile_end"),
    ("end", "profile_report"),
)
"""The agent's functions that mark trials and stretches; ``profile_report`` ends those of a whole run()."""


class CodeBlock(NamedTuple):
    """A block of instructions that the emulator translates and executes as one."""

    address: int
    inside: int
    """How often it was executed in the measured stretches of the trial."""
    outside: int
    lengths: str
    """The length of each instruction, as a hexadecimal digit."""

    def addresses(self) -> Iterator[int]:
        """Yield the address of each instruction."""
        at = self.address
        for length in self.lengths:
            yield at
            at += int(length, 16)


@dataclass(frozen=True)
class TrialBlocks:
    """What one trial executed. ``stretches``: how many measured stretches it had."""

    stretches: int
    blocks: tuple[CodeBlock, ...]


def build_plugin(arch: Arch, *, cache: Path, reporter: Reporter) -> Path:
    """Return the plugin for the host's QEMU, from ``cache`` or built into it. Raises LabError, BuildError."""
    # QEMU 9.0 refuses plugins that state version 1 of the interface; older ones do not know version 2.
    api = 2 if int(qemu_version(arch).split(".")[0]) >= 9 else 1
    return build_library("coverage", f"-DAPI={api}", cache=cache, reporter=reporter)


def plugin_arguments(
    arch: Arch, out: Path, *, cache: Path, reporter: Reporter, own: Sequence[Path] = ()
) -> tuple[str, ...]:
    """Return the plugin and its arguments for a boot whose counts go to ``out``; ``own`` as for the agent."""
    plugin = build_plugin(arch, cache=cache, reporter=reporter)
    functions = [function for _, function in _MARKS]
    addresses = agent_addresses(functions, arch, cache=cache, reporter=reporter, own=own)
    marks = (f"{kind}={address:#x}" for (kind, _), address in zip(_MARKS, addresses, strict=True))
    return (f"file={plugin}", f"out={out}", *marks)


def read_counts(out: Path) -> list[TrialBlocks]:
    """Return what the plugin wrote: the boot first, then each trial. Raises LabError if it is not whole."""
    sections: list[tuple[int, list[CodeBlock]]] = []
    ended = False
    try:
        with out.open(encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if words[0] == "trial":
                    sections.append((int(words[2]), []))
                elif words[0] == "end":
                    ended = True
                else:
                    sections[-1][1].append(
                        CodeBlock(int(words[0], 16), int(words[1]), int(words[2]), words[3])
                    )
    except OSError:
        ended = False
    if not ended:
        raise LabError(
            "QEMU wrote no counts of what the guest's kernel executed",
            hint="check that QEMU has TCG plugins (-plugin in the list of `qemu-system-x86_64 -help`).",
        )
    return [TrialBlocks(stretches, tuple(blocks)) for stretches, blocks in sections]
