"""A script and a kernel are enough: the law, and in which functions the script waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.vm, pytest.mark.build]

SLEEPS = """\
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	struct timespec ms = {0, 1000000};
	int i, n = atoi(getenv("N"));

	if (!fork()) {
		for (i = 0; i < n; i++)
			nanosleep(&ms, NULL);
		_exit(0);
	}
	wait(NULL);
	printf("slept %d times\\n", n);
	return 0;
}
"""


def measured(folder: Path, image: Path, text: str) -> tuple[dict[str, Any], str]:
    """The JSON of the command and the report of a bug, of a C file at three sizes."""
    source = folder / "sleeps.c"
    source.write_text(text)
    written = {name: folder / name for name in ("answer.json", "bug.txt")}
    arguments = [
        *("measure", str(source), "--source", f"image:{image}", "--set", "N=20,40,80"),
        *("--seeds", "2", "--json", str(written["answer.json"])),
        *("--report", str(written["bug.txt"])),
    ]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kteardown", *arguments],
        env={**os.environ, "KTEARDOWN_RUNS": str(folder / "runs")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(written["answer.json"].read_text()), written["bug.txt"].read_text()


def test_a_script_that_sleeps_for_each_object(base_image: Path, tmp_path: Path) -> None:
    answer, bug = measured(tmp_path, base_image, SLEEPS)
    (run,) = answer["runs"]
    result = run["results"]["instructions"]
    (law,) = (law for law in result["laws"] if law["metric"] == "whole_ns")
    assert law["model"] == "linear"
    # A millisecond, and what the kernel adds to it: with its tick, up to two more.
    assert 1e6 < law["per_unit"] < 4e6
    (waits,) = result["waits"]
    assert waits["point"] == {"N": 80}
    sleeps = [place for place in waits["places"] if "nanosleep" in place["function"]]
    assert [place["count"] for place in sleeps] == [80]
    assert sleeps[0]["count_per_object"] == 1
    assert (sleeps[0]["is_process"], sleeps[0]["waits_for"]) == (True, "time")
    assert 0.5 < sleeps[0]["share"] <= 1
    # Its parent waits for as long, for another process.
    (parent,) = (place for place in waits["places"] if place["function"] == "do_wait")
    assert parent["waits_for"] == "process"
    assert "nanosleep" in bug
    assert "do_wait" not in bug
    assert SLEEPS.splitlines()[0] in bug
