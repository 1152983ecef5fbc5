"""The form of series: a good one has no finding, and each kind of mistake is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BAD = """From: a <a@localhost>
Subject: [PATCH] PM: freezer: wrong in three ways

Test.

Signed-off-by: a <a@localhost>
---
diff --git a/kernel/power/process.c b/kernel/power/process.c
--- a/kernel/power/process.c
+++ b/kernel/power/process.c
@@ -51,6 +51,9 @@ static int try_to_freeze_tasks(bool user_only)
 \t\ttodo = 0;
 \t\tread_lock(&tasklist_lock);
 \t\tfor_each_process_thread(g, p) {
+\t\t\tstruct task_struct __user *user = p ;
+\t\t\tint unused;
+
 \t\t\tif (p == current || !freeze_task(p))
 \t\t\t\tcontinue;
 
"""


def form(*arguments: str) -> tuple[int, str]:
    """The exit status and the output of the script."""
    command = [sys.executable, "scripts/series_form.py", "--source", "debian:6.12", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


# It configures a second kernel.
@pytest.mark.full
def test_a_shipped_series_has_no_finding_and_a_bad_one_has_each_kind(tmp_path: Path) -> None:
    kinds = ["--build", "gcc W=1", "--build", "sparse"]
    status, output = form(*kinds, "freezer-skip-exited")
    assert (status, output.count(": ok\n")) == (0, 4), output
    (tmp_path / "bad.patch").write_text(BAD)
    status, output = form(*kinds, str(tmp_path / "bad.patch"))
    assert status == 1
    assert "checkpatch: 0001: WARNING: space prohibited before semicolon" in output
    assert "gcc W=1: kernel/power/process.c: error: unused variable" in output
    status, output = form(*kinds, "zsmalloc-lockless-free@9")
    assert (status, "9" in output) == (2, True)
