"""The table of the hosts on which the README's commands were run."""

import json
from pathlib import Path

import hosts


def test_a_host_has_the_time_of_each_step_and_what_failed(tmp_path: Path) -> None:
    passed, failed = ({"passed": code == 0, "code": code, "duration_s": 61} for code in (0, 3))
    record = {
        "debian-13": {"versions": {"Python": "3.13.5"}, "steps": {"demo": passed, "try": failed}},
        "no-sudo": {"versions": {}, "steps": {"refused": {**passed, "code": 2}, "gcc-15": failed}},
    }
    (tmp_path / "tests").mkdir()
    (tmp_path / hosts.RECORD).write_text(json.dumps(record))
    head, _, first, second, *_, compiler = hosts.table(tmp_path).splitlines()
    columns = [cell.strip() for cell in head.split("|")]
    cells = dict(zip(columns, (cell.strip() for cell in first.split("|")), strict=True))
    assert (cells["Python"], cells["demo"], cells["try"], cells["hunt"]) == (
        "3.13.5",
        "61 s",
        "**failed** (3)",
        "",
    )
    assert "refused, names the packages" in second
    assert compiler == "| gcc-15 | no-sudo | **failed** (3) |"


def test_each_host_has_steps_that_are_known() -> None:
    assert {step for host in hosts.MATRIX.values() for step in host.steps.split()} == set(
        hosts.STEPS
    )
