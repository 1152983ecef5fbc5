"""The agent on the host: its unit tests with the sanitizers, and its command line.

Its workloads run only in guests (tests/vm); the plans here have no trials.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.inputs.load import load_workload, own_sources, stress_names, workload_names
from kteardown.model.record import AgentError, Bye, Hello, parse
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from kteardown.vm import host
from kteardown.vm.agent import build_agent


@pytest.fixture(scope="session")
def agent() -> Path:
    """The agent, from the cache of the user if its sources are those that it was built from."""
    return build_agent("x86_64", cache=cache_dir(), reporter=SilentReporter())


@pytest.fixture(scope="session")
def sanitized() -> Path:
    """The program of the agent's unit tests, built with the address and undefined behaviour
    sanitizers.

    ``make lint`` builds the same file, which takes longer than all that is done with it here.
    """
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")
    }
    folder = data_dir("agent")
    done = subprocess.run(
        ["make", "--silent", "--jobs=2", "-C", str(folder), "../build/agent/check"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return folder / "../build/agent/check"


def run(*argv: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def run_plan(agent: Path, folder: Path, plan: str) -> subprocess.CompletedProcess[str]:
    (folder / "plan").write_text(plan)
    return run(agent, "--run-on-this-host", folder / "plan")


def test_the_unit_tests_of_the_agent_pass_with_the_sanitizers(sanitized: Path) -> None:
    done = run(sanitized, cwd=data_dir("agent"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" 0 failed\n")


def _echoed(sanitized: Path, strings: list[bytes]) -> list[dict[str, object]]:
    done = subprocess.run(
        [sanitized, "--echo"],
        input=b"".join(s + b"\0" for s in strings),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]


@given(
    strings=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=300))
)
def test_strings_survive_the_json_writer(sanitized: Path, strings: list[str]) -> None:
    echoed = _echoed(sanitized, [text.encode() for text in strings])
    assert [line["text"] for line in echoed] == strings


@given(strings=st.lists(st.binary(min_size=1, max_size=4000).filter(lambda b: b"\0" not in b)))
def test_any_bytes_give_valid_json(sanitized: Path, strings: list[bytes]) -> None:
    assert [line["type"] for line in _echoed(sanitized, strings)] == ["echo"] * len(strings)


@given(numbers=st.lists(st.integers(min_value=-(2**70), max_value=2**70)))
def test_numbers_of_64_bits_are_json_numbers(sanitized: Path, numbers: list[int]) -> None:
    echoed = _echoed(sanitized, [str(number).encode() for number in numbers])
    expected = [n if -(2**63) <= n < 2**63 else str(n) for n in numbers]
    assert [line["value"] for line in echoed] == expected


def test_without_arguments_the_agent_refuses_to_run_on_the_host(agent: Path) -> None:
    done = run(agent)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--help" in done.stderr


def test_unknown_arguments_are_an_error(agent: Path) -> None:
    assert run(agent, "--frobnicate").returncode == 2


def test_help_names_the_option_to_run_a_plan(agent: Path) -> None:
    done = run(agent, "--help")
    assert done.returncode == 0
    assert "--run-on-this-host PLAN" in done.stdout


def test_the_parameters_of_each_workload_are_those_of_its_toml_file() -> None:
    own = own_sources({name: load_workload(name) for name in workload_names()})
    stress = build_agent("x86_64", cache=cache_dir(), reporter=SilentReporter(), own=own)
    listed: dict[str, list[str]] = {}
    for line in run(stress, "--list").stdout.splitlines():
        if line.startswith(" "):
            listed[list(listed)[-1]].append(line.strip())
        else:
            listed[line.partition(":")[0]] = []
    described = {name: load_workload(name) for name in workload_names()}
    assert {name: set(params) for name, params in listed.items()} == {
        name: set(workload.parameters) for name, workload in described.items()
    }


def test_measured_guests_do_not_read_the_stress_tests(agent: Path) -> None:
    listed = run(agent, "--list").stdout
    assert "\nzombies: " in listed
    assert not [name for name in stress_names() if f"{name}:" in listed]


def test_a_plan_without_trials_gives_hello_and_bye(agent: Path, tmp_path: Path) -> None:
    done = run_plan(agent, tmp_path, "kteardown-plan 1\nseed 0\n")
    assert done.returncode == 0, done.stderr
    hello, bye = [parse(line) for line in done.stdout.splitlines()]
    assert isinstance(hello, Hello)
    assert hello.release == os.uname().release
    assert hello.cpus_possible >= hello.cpus_online >= 1
    assert hello.cpu_model == host.facts()["cpu"]["model"]
    assert os.uname().version in hello.banner
    assert hello.mitigations == host.facts()["mitigations"]
    assert bye == Bye(trials=0)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("", "plan line 1: the plan is empty"),
        (
            "kteardown-plan 1\ntrial 0 nonesuch 1 1\n",
            'plan line 2: this agent has no workload "nonesuch"',
        ),
        ("kteardown-plan 1\ntrial 0 zombies 1 1 zombies=3", "plan line 2: the line is cut off"),
        ("kteardown-plan 1\ntrial 0 zombies 1 1 zombies=3\n", "plan line 2: parameter make"),
    ],
)
def test_a_bad_plan_gives_an_error_record(
    agent: Path, tmp_path: Path, plan: str, words: str
) -> None:
    done = run_plan(agent, tmp_path, plan)
    assert done.returncode == 1
    (error,) = [parse(line) for line in done.stdout.splitlines()]
    assert isinstance(error, AgentError)
    assert words in error.detail


def test_a_missing_plan_gives_an_error_record(agent: Path, tmp_path: Path) -> None:
    done = run(agent, "--run-on-this-host", tmp_path / "none")
    (error,) = [parse(line) for line in done.stdout.splitlines()]
    assert isinstance(error, AgentError)
    assert "none: No such file or directory" in error.detail
