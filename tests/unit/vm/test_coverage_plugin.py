"""The plugin builds, and what it writes is read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import agent_addresses, build_agent
from kteardown.vm.qemu_library import (
    CodeBlock,
    TrialBlocks,
    build_plugin,
    plugin_arguments,
    read_counts,
)


def test_counts_are_read(tmp_path: Path) -> None:
    out = tmp_path / "counts"
    out.write_text("trial 0 0\nffffffff81000000 0 7 35\ntrial 1 2\nffffffff81000010 4 0 1f2\nend\n")
    boot, trial = read_counts(out)
    assert boot == TrialBlocks(0, (CodeBlock(0xFFFFFFFF81000000, 0, 7, "35"),))
    assert trial.stretches == 2
    assert list(trial.blocks[0].addresses()) == [
        0xFFFFFFFF81000010 + offset for offset in (0, 1, 16)
    ]


@pytest.mark.parametrize("text", ["", "trial 0 0\nffffffff81000000 0 7 35\n"])
def test_counts_that_are_not_whole_are_refused(tmp_path: Path, text: str) -> None:
    out = tmp_path / "counts"
    with pytest.raises(LabError, match="no counts"):
        read_counts(out)
    out.write_text(text)
    with pytest.raises(LabError, match="no counts"):
        read_counts(out)


def test_the_plugin_exports_what_qemu_asks_for(tmp_path: Path) -> None:
    plugin = build_plugin("x86_64", cache=tmp_path, reporter=SilentReporter())
    symbols = subprocess.run(
        ["nm", "-D", str(plugin)], capture_output=True, text=True, check=True
    ).stdout
    assert " D qemu_plugin_version" in symbols and " T qemu_plugin_install" in symbols
    assert build_plugin("x86_64", cache=tmp_path, reporter=SilentReporter()) == plugin


def test_the_marks_are_functions_of_the_agent_that_guests_run(tmp_path: Path) -> None:
    cache, silent = cache_dir(), SilentReporter()
    words = plugin_arguments("x86_64", tmp_path / "out", cache=cache, reporter=silent)
    assert [word.partition("=")[0] for word in words] == [
        "file",
        "out",
        "trial",
        "begin",
        "end",
        "end",
    ]
    agent = build_agent("x86_64", cache=cache, reporter=silent)
    with_symbols = agent.with_name(agent.name + "-symbols")
    code = []
    for program in (agent, with_symbols):
        text = tmp_path / f"{program.name}.text"
        subprocess.run(
            ["objcopy", "-O", "binary", "-j", ".text", str(program), str(text)], check=True
        )
        code.append(text.read_bytes())
    assert code[0] == code[1]
    with pytest.raises(LabError, match="no functions nothing"):
        agent_addresses(["nothing"], "x86_64", cache=cache, reporter=silent)
