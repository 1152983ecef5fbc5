"""``kteardown try``, from a mail to its page, on the base kernel of 6.12 that is in the cache."""

from __future__ import annotations

import quopri
import shutil
from pathlib import Path

import pytest

from kteardown.coverage.maps import counted_points
from kteardown.inputs.load import load_workload
from kteardown.kernels import build, kconfig
from kteardown.kernels.cache import Cache
from kteardown.kernels.cache_folder import remove
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Sources
from kteardown.kernels.source_name import patched
from kteardown.patches.posted import resolve
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from kteardown.run.boot_once import boot_counted
from kteardown.run.setting import Bootable
from outputs import output_in
from vm.test_run import kteardown

pytestmark = [pytest.mark.vm, pytest.mark.build]

SMALL = ["--source", "debian:6.12", "--seeds", "1", "--repetitions", "1", "--set", "zombies=0,300"]


def mail(subject: str, body: str, ident: str) -> str:
    return (
        "From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: A. Author <author@example.org>\n"
        f"Date: Thu, 05 Mar 2026 10:00:00 +0100\nSubject: {subject}\nMessage-ID: "
        f"<{ident}@example.org>\n"
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n"
        + quopri.encodestring(body.encode()).decode()
        + "\n"
    )


@pytest.fixture(scope="module")
def thread(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped freezer series as a thread of mails, with a review that quotes it and a diff in a
    reply."""
    mails = [
        mail("[PATCH v2 0/2] freezer: skip exited tasks", "They need not be frozen.\n", "cover")
    ]
    for number, patch in enumerate(resolve("freezer-skip-exited").patches, 1):
        text = patch.read_text().partition("\n\n")[2]
        mails.append(mail(f"[PATCH v2 {number}/2] freezer: part {number}", text, f"part-{number}"))
        quoted = "".join(f"> {line}\n" for line in text.splitlines())
        mails.append(
            mail(f"Re: [PATCH v2 {number}/2] freezer: part {number}", quoted, f"review-{number}")
        )
    file = tmp_path_factory.mktemp("mails") / "thread.mbox"
    file.write_text("".join(mails))
    return file


def test_a_mail_becomes_a_page(thread: Path, tmp_path: Path) -> None:
    file, page = tmp_path / "answer.json", tmp_path / "page.txt"
    done = kteardown(
        *("try", str(thread), *SMALL, "--json", str(file), "--markdown", str(page)),
        runs=tmp_path / "runs",
    )
    answer = output_in(file)["details"]
    assert done.stdout == page.read_text()
    assert all(len(line) <= 72 for line in done.stdout.partition("To repeat it")[0].splitlines())
    assert done.stdout.startswith("v2: freezer: skip exited tasks\n")
    assert (answer["base"]["source"], len(answer["series"]["subjects"])) == ("debian:6.12", 2)
    assert "kernel/power/process.o" in answer["changed_objects"]
    assert "freeze_user_ns" in done.stdout
    # The workload was found, and it executed what the series changes.
    assert answer["workloads"][0]["exercised"] is True
    assert all(one["run"] for one in answer["workloads"])
    again = kteardown("try", str(thread), *SMALL, "--json", str(file), runs=tmp_path / "runs")
    assert "2 of 2 boots were run before" in " ".join(again.stdout.split())
    # The table is the same; the notes and the command differ.
    assert (
        again.stdout.partition("What was compared")[0]
        == done.stdout.partition("What was compared")[0]
    )


def test_a_series_on_top_of_another_starts_from_its_objects(tmp_path: Path) -> None:
    """The base is the source with the first patch; it is booted, and the second one is built on
    it."""
    first, second = resolve("freezer-skip-exited").patches[:2]
    folder = tmp_path / "below"
    folder.mkdir()
    shutil.copy(first, folder)
    source = patched(folder, "debian:6.12")
    plain = KernelRequest("base", source)
    build.ensure(
        [KernelRequest("below", "debian:6.12")], cache_dir=cache_dir(), reporter=SilentReporter()
    )
    made = (
        build.ensure([plain], cache_dir=cache_dir(), reporter=SilentReporter())
        .images["base"]
        .image.parent
    )
    # It is built again, from patched files that are newer than the objects, whatever earlier tests
    # left.
    sources = Sources(cache_dir(), SilentReporter())
    for left in (
        made,
        Cache(cache_dir()).tree_path(made.name),
        sources.tree_path(sources.identify(source)),
    ):
        remove(left)
    both = [plain, KernelRequest("top", source, series="top", patches=(second,))]
    images = build.ensure(both, cache_dir=cache_dir(), reporter=SilentReporter()).images
    assert build.changed_objects(images["base"], images["top"])
    compiled = (images["base"].image.parent / "build.log").read_text()
    assert "CC      kernel/power/process.o" in compiled and "CC      kernel/fork.o" not in compiled
    point = counted_points(load_workload("zombies"))[0]
    booted = boot_counted(
        Bootable(images["base"].image),
        load_workload("zombies"),
        [point],
        SilentReporter(),
        counted=False,
    )
    assert booted.end.outcome == "ok"


def test_a_patch_of_which_nothing_is_compiled_is_not_the_same(tmp_path: Path) -> None:
    """A comment moves lines and changes nothing that runs."""
    patch = tmp_path / "comment.patch"
    patch.write_text(
        "From: A. Author <author@example.org>\nSubject: [PATCH] freezer: say what this file "
        "does\n\n---\n"
        "diff --git a/kernel/power/process.c b/kernel/power/process.c\n"
        "--- a/kernel/power/process.c\n+++ b/kernel/power/process.c\n@@ -7,3 +7,4 @@\n" + _context()
    )
    file = tmp_path / "answer.json"
    options = [*SMALL, "--workload", "zombies", "--json", str(file)]
    done = kteardown("try", str(patch), *options, runs=tmp_path / "runs", expect=7)
    assert "nothing of this patch is in the kernel that was built" in done.stderr
    assert "same" not in done.stdout
    output = output_in(file)
    answer = output["details"]
    assert output["headline"].startswith("Nothing of this patch is in the kernel that was built")
    assert (output["exit_code"], answer["changed_objects"], answer["changed"]) == (7, [], [])
    assert [one["release"] for one in answer["kernels"]] == [answer["kernels"][0]["release"]] * 2


def test_what_a_configuration_resolves_to_is_known_before_it_is_built() -> None:
    """FREEZER has no prompt: Kconfig sets it, and no fragment names it."""
    sources = Sources(cache_dir(), SilentReporter())
    other = KernelRequest("base", "debian:6.12", fragments=("CONFIG_INPUT_MISC=y?",))
    config = build.resolved_config(other, sources, SilentReporter())
    assert (config["FREEZER"], config["X86"], config.get("PREEMPT_RT")) == ("y", "y", None)
    assert "FREEZER" not in {
        want.symbol for want in kconfig.wanted_symbols(data_dir("kernels"), "x86_64", ())
    }


def _context() -> str:
    """Return a hunk that adds a comment to lines 7 to 9 of kernel/power/process.c of 6.12."""
    sources = Sources(cache_dir(), SilentReporter())
    tree = sources.tree(sources.identify("debian:6.12"))
    lines = (tree / "kernel/power/process.c").read_text().splitlines()[6:9]
    return "".join([f" {lines[0]}\n", "+/* A comment. */\n", *(f" {line}\n" for line in lines[1:])])
