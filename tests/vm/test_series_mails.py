"""The shipped series as mails, with the scripts of the kernels that they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.flows.mail_series.flow import WrittenMails, write_mails
from kteardown.flows.mail_series.letter import letter_of
from kteardown.flows.mail_series.person import parse_person
from kteardown.kernels.series import known_series, resolve
from kteardown.kernels.source import Sources
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter

JANE = parse_person("Jane Doe <jane@example.org>")
LETTER = "Subject: [PATCH] PM: freezer: wrong\n\nText.\n"
BAD = """From: kteardown developers <kteardown@localhost>
Subject: [PATCH] PM: freezer: wrong

Test.

Signed-off-by: kteardown developers <kteardown@localhost>
---
diff --git a/kernel/power/process.c b/kernel/power/process.c
--- a/kernel/power/process.c
+++ b/kernel/power/process.c
@@ -51,6 +51,8 @@ static int try_to_freeze_tasks(bool user_only)
 \t\ttodo = 0;
 \t\tread_lock(&tasklist_lock);
 \t\tfor_each_process_thread(g, p) {
+\t\t\tint unused ;
+
 \t\t\tif (p == current || !freeze_task(p))
 \t\t\t\tcontinue;
 
"""


def written(name: str, base: str, folder: Path) -> WrittenMails:
    silent = SilentReporter()
    sources = Sources(cache_dir(), silent)
    return write_mails(
        resolve(name), folder / "out", sources, base=base, author=JANE, reporter=silent
    )


def test_the_scripts_of_linux_find_what_is_wrong_and_name_who_maintains_it(tmp_path: Path) -> None:
    series = tmp_path / "bad"
    series.mkdir()
    (series / "0000-cover-letter.md").write_text(LETTER)
    (series / "0001-bad.patch").write_text(BAD)
    mails = written(str(series), "debian:6.12", tmp_path)
    assert [check.passed for check in mails.checks] == [False, False, True]
    for check in mails.checks[:2]:
        assert any("space prohibited before semicolon" in text for text in check.findings), check
    assert "linux-pm@vger.kernel.org" in mails.recipients.cc
    assert any("rafael@kernel.org" in person for person in mails.recipients.to)


# It unpacks four sources.
@pytest.mark.full
@pytest.mark.parametrize("name", [known.name for known in known_series()])
def test_every_check_passes_on_every_base(name: str, tmp_path: Path) -> None:
    for base in letter_of(resolve(name)).bases:
        (tmp_path / base.name).mkdir()
        mails = written(name, base.name, tmp_path / base.name)
        assert [check.findings for check in mails.checks] == [()] * 3, base.name
        assert mails.recipients.to and mails.recipients.cc
