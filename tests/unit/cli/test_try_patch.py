"""``kteardown try`` up to where it would build: with small trees in git instead of kernels."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kteardown.cli import app
from kteardown.errors import (
    BuildError,
    InputError,
    KteardownError,
    NotBuiltError,
    NotExercisedError,
)
from kteardown.flows.try_series.prepare import whole_builds
from kteardown.kernels.request import KernelRequest
from kteardown.patches.config_of_series import SeriesConfig
from outputs import output_in

MAILS = Path(__file__).parents[2] / "data" / "mail"
NAMES = [f"{word}_{n}" for word in ("old", "new") for n in (1, 2)]
OURS = "".join(f"int before_{n};\nint old_{n};\nint after_{n};\n" for n in (1, 2, 3))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tree of a kernel with the file that the sample mails change, as the name of a source."""
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    tree = tmp_path / "linux"
    (tree / "kernel").mkdir(parents=True)
    files = {
        "Kconfig": (
            "config OURS\n"
            '\tbool "ours"\n'
            "\tdepends on OURS_CORE\n"
            "\n"
            "config OURS_CORE\n"
            '\tbool "core"\n'
        ),
        "Kbuild": "obj-y += kernel/\n",
        "kernel/Makefile": "obj-$(CONFIG_OURS) += ours.o\n",
        "kernel/ours.c": OURS,
        "kernel/ours.h": "#define LIMIT 1\n",
    }
    for name, text in files.items():
        (tree / name).write_text(text)
    for argv in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        subprocess.run(["git", "-C", str(tree), *identity, *argv], check=True)
    return f"git:{tree}"


def run(*argv: str) -> Result:
    return CliRunner().invoke(app, ["try", *argv, "--dry-run"])


def failed(*argv: str) -> KteardownError:
    error = run(*argv).exception
    assert isinstance(error, KteardownError)
    return error


def test_a_dry_run_says_what_would_be_done(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "answer.json"
    typed = ["kteardown", "try", str(MAILS / "thread.mbox"), "--dry-run"]
    monkeypatch.setattr("sys.argv", typed)
    done = run(
        str(MAILS / "thread.mbox"), "--source", source, "--workload", "zombies", "--json", str(file)
    )
    assert done.exit_code == 0, done.exception
    text = done.stdout
    assert text.startswith(
        "ours: free counters earlier\n  A. Author <author@example.org>, 2026-03-05, 2 patches"
    )
    assert "kernel/ours.c needs CONFIG_OURS, CONFIG_OURS_CORE, which are" in text
    assert "- Left out: the diff in a reply" in text
    assert "- would run zombies: named with --workload" in text
    words = " ".join(text.split())
    assert "The base kernel is not in the cache: its build takes 5 to 20 minutes" in words
    assert "5 min to 20 min for base" in words and "for the boots" in words
    *lines, command = text.rstrip().splitlines()
    assert command == f"  kteardown try {MAILS / 'thread.mbox'}"
    assert all(len(line) <= 72 for line in lines)
    output = output_in(file)
    answer = output["details"]
    assert answer["series"]["message_id"] == "202603-1-0@example.org"
    assert answer["symbols"] == ["OURS", "OURS_CORE"]
    assert (answer["base"]["how"], output["headline"]) == ("with offsets", "Nothing was measured.")


def test_the_command_of_a_piped_patch_does_not_wait_for_a_terminal(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["try", "-", "--source", source, "--workload", "zombies", "--dry-run"]
    monkeypatch.setattr("sys.argv", ["kteardown", *words])
    patch = (MAILS / "thread.mbox").read_bytes()
    done = CliRunner().invoke(app, words, input=patch)
    assert done.exit_code == 0, done.exception
    assert "| kteardown try - " in done.stdout.splitlines()[-1]


def test_the_time_of_a_build_is_that_of_earlier_ones(source: str, tmp_path: Path) -> None:
    for name, series, seconds in (("0" * 16, "", 540), ("1" * 16, "other", 100)):
        kept = tmp_path / "cache" / "kernels" / name
        kept.mkdir(parents=True)
        fields = {"image": {"arch": "x86_64", "series": series}, "seconds": seconds}
        (kept / "kernel.json").write_text(json.dumps(fields))
    done = run(str(MAILS / "thread.mbox"), "--source", source, "--workload", "zombies")
    words = " ".join(done.stdout.split())
    assert "about 9 min for base, about 2 min for the patched kernel" in words
    assert " to 15 min: " in words  # With the boots, of which there is no record.


def test_every_sample_mail_ends_with_an_answer_or_one_line(source: str) -> None:
    outcomes = {}
    for mail in sorted(MAILS.iterdir()):
        error = run(str(mail), "--source", source, "--workload", "zombies").exception
        assert error is None or isinstance(error, KteardownError), mail
        outcomes[mail.name] = error
    assert [name for name, error in outcomes.items() if isinstance(error, InputError)] == [
        "no-patch.eml"
    ]


def test_a_workload_is_needed_if_none_executes_the_change(source: str, tmp_path: Path) -> None:
    files = tmp_path / "answer.json", tmp_path / "reply.txt"
    error = failed(
        str(MAILS / "thread.mbox"),
        *("--source", source, "--json", str(files[0]), "--markdown", str(files[1])),
    )
    assert isinstance(error, NotExercisedError)
    assert "--workload" in error.hint
    output, reply = output_in(files[0]), files[1].read_text()
    answer = output["details"]
    assert (output["exit_code"], answer["workloads"], answer["kernels"]) == (8, [], [])
    assert output["error"] == error.message
    assert answer["changed"] == [
        {"file": "kernel/ours.c", "name": n, "kind": "declaration"} for n in NAMES
    ]
    assert output["headline"].startswith("No workload executes in its measured stretch")
    assert output["headline"] in " ".join(reply.split())
    assert "Workloads:" not in reply


def test_what_uses_a_macro_is_known_after_the_build(source: str, tmp_path: Path) -> None:
    patch = tmp_path / "macro.patch"
    patch.write_text(
        "Subject: [PATCH] macro\n\n---\ndiff --git a/kernel/ours.h b/kernel/ours.h\n--- "
        "a/kernel/ours.h\n"
        "+++ b/kernel/ours.h\n@@ -1 +1 @@\n-#define LIMIT 1\n+#define LIMIT 2\n"
    )
    done = run(str(patch), "--source", source)
    assert done.exit_code == 0, done.exception
    assert "Workloads:\n- kteardown chooses the workloads after the build" in done.stdout
    assert "the code of both kernels says which functions use" in " ".join(done.stdout.split())


def test_what_cannot_be_compiled_has_an_exit_status_of_its_own(source: str, tmp_path: Path) -> None:
    tree = Path(source.removeprefix("git:"))
    (tree / "Documentation").mkdir()
    (tree / "Documentation" / "a.rst").write_text("one\n")
    patch = tmp_path / "docs.patch"
    patch.write_text(
        "Subject: [PATCH] docs\n\n---\ndiff --git a/Documentation/b.rst b/Documentation/b.rst\n"
        "new file mode 100644\nindex 0000000..5626abf\n--- /dev/null\n+++ b/Documentation/b.rst\n"
        "@@ -0,0 +1 @@\n+one\n"
    )
    file = tmp_path / "answer.json"
    error = failed(str(patch), "--source", source, "--workload", "zombies", "--json", str(file))
    assert isinstance(error, NotBuiltError)
    assert (error.exit_code, "documentation" in error.message) == (7, True)
    output = output_in(file)
    assert (output["exit_code"], output["details"]["series"]["title"]) == (7, "docs")
    assert output["details"]["base"]["source"] == source
    assert output["headline"].startswith("Nothing of this patch can be in a kernel for x86_64")


def test_a_series_that_no_source_takes_says_which_hunks_fail(source: str) -> None:
    error = failed(str(MAILS / "two-diffs.eml"), "--source", source, "--workload", "zombies")
    assert isinstance(error, BuildError)
    assert "mm/theirs.c" in error.message
    assert "--source git:" in error.hint


def test_without_a_source_a_dry_run_answers_by_the_hunk_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    text = (
        "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -51,2 +51,2 @@ static int {1}(bool x)\n"
        " \t\tone;\n-\t\ttwo;\n+\t\tthree;\n"
    )
    patch = tmp_path / "plain.diff"
    patch.write_text(text.format("kernel/power/process.c", "try_to_freeze_tasks"))
    error = failed(str(patch), "--source", "kernel.org:7.2")
    assert error.exit_code == 5
    assert "kernel.org:7.2 is not on this machine" in error.message
    assert "workloads that execute try_to_freeze_tasks: zombies" in error.message
    patch.write_text(text.format("kernel/ours.c", "of_nobody"))
    assert "no workload executes of_nobody" in failed(str(patch)).message


def test_a_series_on_top_of_another(source: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.eml", tmp_path / "second.eml"
    first.write_bytes((MAILS / "base64.eml").read_bytes())
    diff = "--- a/kernel/ours.c\n+++ b/kernel/ours.c\n@@ -1,3 +1,3 @@\n int before_1;\n"
    second.write_text(
        "From: B <b@example.org>\nSubject: [PATCH] ours: go on\nMessage-ID: <second@x>\n\n"
        f"Depends-on: <first@x>\n---\n{diff}-int new_1;\n+int newer_1;\n int after_1;\n"
    )
    error = failed(str(second), "--source", source, "--workload", "zombies")
    assert error.exit_code == 3
    assert "made on top of <first@x>" in error.message
    done = run(str(first), str(second), "--source", source, "--workload", "zombies")
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("ours: go on\n")
    assert "- Applied before it: ours: free the counter earlier" in done.stdout


def test_a_git_range_is_a_series(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Path(source.removeprefix("git:"))
    (tree / "kernel" / "ours.c").write_text(OURS.replace("old_2", "new_2"))
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(
        ["git", "-C", str(tree), *identity, "commit", "-qam", "ours: change it"], check=True
    )
    span = f"git:{tree}@HEAD~1..HEAD"
    done = run(span, "--workload", "zombies")
    assert done.exit_code == 0, done.exception
    assert "applies exactly" in done.stdout
    monkeypatch.chdir(tree)
    here = run("HEAD~1..", "--workload", "zombies")
    assert "applies exactly" in here.stdout, here.exception


def test_whole_builds_are_named_with_their_time(source: str, tmp_path: Path) -> None:
    plain = KernelRequest("base", source, arch="x86_64")
    kept = tmp_path / "cache" / "kernels" / "0123456789abcdef"
    kept.mkdir(parents=True)
    fields = {"image": {"arch": "x86_64", "series": ""}, "seconds": 540}
    (kept / "kernel.json").write_text(json.dumps(fields))
    base, patched = whole_builds(plain, SeriesConfig((), recompiled=0.93))
    assert base == (
        "The base kernel is not in the cache: its build takes about 9 minutes, as others on "
        "this host."
    )
    assert patched.startswith(
        "93% of all files include a header of the patch, so the patched kernel is compiled"
    )
    assert whole_builds(plain, SeriesConfig((), recompiled=0.3)) == (base,)
