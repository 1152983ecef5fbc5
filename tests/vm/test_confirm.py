"""Confirming a published figure with real boots, of an agent that changes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import claims
import confirm
from claims import Measured
from kteardown.kernels import build
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from kteardown.vm.qemu import QemuMachine

pytestmark = [pytest.mark.vm, pytest.mark.build]

EXPERIMENT = """
name = "small"
question = "What does a suspend cost?"
source = "debian:6.12"
variants = ["debian:6.12"]
workloads = [{ workload = "zombies", params.zombies = [200] }]
design = { seeds = 1, repetitions = 1 }
"""
CLAIM = 'about = "A suspend"\ncommand = "kteardown run small"\n'


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of its own, whose agent guests run, with a claim that has what its boot counts."""
    root = tmp_path / "tree"
    for name in ("agent", "workloads", "kernels"):
        shutil.copytree(data_dir(name), root / name)
    for name, text in {
        "experiments/small.toml": EXPERIMENT,
        "results/small/claim.toml": CLAIM,
    }.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    monkeypatch.setattr("kteardown.vm.agent.data_dir", lambda kind: root / kind)
    publish(root)
    return root


def publish(root: Path) -> None:
    """Keep what a boot of the tree as it is counts as the published result."""
    claim = claims.load(root, "small")
    resolved = confirm.resolved_of(claim)
    images = build.ensure(resolved.kernels, cache_dir=cache_dir(), reporter=SilentReporter()).images
    facts = ("release", "source", "arch", "compiler", "config_hash", "image_hash")
    kernels = {
        name: {fact: getattr(image, fact) for fact in facts} for name, image in images.items()
    }

    def write(suspend_ns: float) -> None:
        side = {"median": suspend_ns, "mean": suspend_ns, "sd": 0, "n": 1, "boots": 1}
        figure = {
            "workload": "zombies",
            "variant": "debian:6.12",
            "metric": "suspend_call_ns",
            "unit": "ns",
            "better": "lower",
            "point": {"zombies": 200},
            "base": side,
            "changed": side,
            "ratio": 1,
            "ci": (1, 1),
            "confidence": 0.95,
            "mde": 0,
            "verdict": "same",
        }
        about = {
            "experiment": "small",
            "question": "",
            "clock": "instructions",
            "command": "",
            "machine": {},
        }
        result = {**about, "kernels": kernels, "comparisons": [figure], "laws": [], "boots": {}}
        (claim.folder / "result.json").write_text(json.dumps(result))

    write(1)
    boots = confirm.boots_of(claims.load(root, "small"), QemuMachine(), SilentReporter())
    assert not isinstance(boots, str)
    (root / "build/confirm").mkdir(parents=True)
    write(confirm.counted(boots[0], root / "build/confirm").values["suspend_call_ns"])
    measured = Measured(
        commit="", date="2026-01-01", command="", ids=claims.load(root, "small").now
    )
    claims.write_json(claim.folder / "measured.json", measured)


def confirmed(root: Path) -> claims.Evidence:
    """The claim after it was confirmed on the tree as it is."""
    claim = claims.load(root, "small")
    (outcome,) = confirm.Confirming(root, SilentReporter(), 2).confirm([claim])
    claim = claims.load(root, "small")
    assert claim.confirmed is not None
    assert (outcome.state, outcome.note) == (claim.confirmed.state, claim.confirmed.note)
    return claim


def add_to_stretch(root: Path, instructions: str) -> None:
    """Let the agent execute more in the stretch that it measures."""
    file = root / "agent/lib/suspend.c"
    old = "\tn = write(fd,"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, f'\tasm volatile("{instructions}");\n{old}'))


def test_an_instruction_more_in_the_measured_stretch_is_noticed_and_a_changed_help_is_not(
    tree: Path,
) -> None:
    claim = confirmed(tree)
    assert claim.confirmed is not None and claim.confirmed.state == "equal"
    (before,) = {values["suspend_call_ns"] for values in claim.confirmed.values.values()}
    main = tree / "agent/core/main.c"
    main.write_text(main.read_text().replace("agent: runs", "agent: executes"))
    assert claims.load(tree, "small").state == "current"

    add_to_stretch(tree, "nop")
    assert claims.load(tree, "small").moved == ["agent"]
    claim = confirmed(tree)
    assert claim.confirmed is not None and claim.confirmed.state == "within"
    assert " of zombies zombies=200, " in claim.confirmed.note
    (after,) = {values["suspend_call_ns"] for values in claim.confirmed.values.values()}
    assert before < after < before + 100
    assert claim.state == "current", "it is confirmed with the present agent"

    add_to_stretch(tree, ".rept 100000; nop; .endr")
    assert claims.load(tree, "small").state == "older"
    claim = confirmed(tree)
    assert claim.state == "stale"
