"""``kteardown replicate``: what is run for a posting, with which patch, and what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.options import Overrides, apply
from kteardown.inputs.published import Posting, load_posting, posting_names
from kteardown.progress import SilentReporter
from kteardown.run.resolve import experiment_of, resolve
from kteardown_replicate.flow import measured_with, our_series, posted_patch
from kteardown_replicate.table import claim_notes
from kteardown_replicate.verb import command_line
from outputs import output_in
from unit.cli.test_main import kteardown

MAIL = """From: A <a@b>
Date: Wed, 16 Jul 2025 14:26:39 +0800
Subject: [PATCH] PM: skip
Message-ID: <{}>

Skip.
---
diff --git a/kernel/power/process.c b/kernel/power/process.c
--- a/kernel/power/process.c
+++ b/kernel/power/process.c
@@ -1 +1 @@
-a
+b
--
2.40
"""


def shipped(name: str) -> Posting:
    posting = load_posting(name)
    assert posting is not None
    return posting


def test_the_points_of_the_posting_are_run_also_with_quick(tmp_path: Path) -> None:
    (tmp_path / "0001.patch").write_text(MAIL.format("x@y"))
    experiment = apply(experiment_of(shipped("freezer"), str(tmp_path)), Overrides(quick=True))
    (sweep,) = experiment.workloads
    assert sweep.params["zombies"] == tuple(range(3000, 30001, 3000))
    assert (experiment.design.seeds, experiment.source) == (3, "debian:6.12")
    assert [kernel.name for kernel in resolve(experiment).series] == [
        tmp_path.name.replace("_", "-")
    ]


@pytest.mark.parametrize("name", posting_names())
def test_every_posting_with_a_run_names_a_valid_experiment(name: str) -> None:
    posting = shipped(name)
    if posting.run is None:
        with pytest.raises(InputError, match=posting.name):
            experiment_of(posting, "lore:x@y")
        return
    experiment = apply(experiment_of(posting, "lore:x@y"), Overrides())
    run = {**experiment.workloads[0].params, **experiment.machine.swept}
    assert posting.run.params.items() <= run.items()
    assert experiment.variants == ("lore:x@y",)


def test_a_file_with_the_message_id_is_the_posted_patch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    posting = shipped("freezer")
    assert posting.run is not None
    for message_id, source in ((posting.run.patch, ""), ("other@mail", str(tmp_path / "my.mbox"))):
        file = tmp_path / "my.mbox"
        file.write_text(MAIL.format(message_id))
        variant, found = posted_patch(posting, str(file), SilentReporter())
        assert found == source
        assert Path(variant).is_dir()
    part = posting.model_copy(update={"run": posting.run.model_copy(update={"patches": 1})})
    assert posted_patch(part, str(file), SilentReporter())[0] == f"{variant}@1"
    with pytest.raises(InputError, match="in no archive") as caught:
        posted_patch(shipped("zsmalloc"), "", SilentReporter())
    assert "--patch" in caught.value.hint


def test_a_script_of_a_posting_without_a_patch_is_run_with_our_series(tmp_path: Path) -> None:
    found = {name: our_series(shipped(name)) for name in ("memcg", "pipes", "throttle", "zsmalloc")}
    assert found == {
        "memcg": "memcg-release-percpu",
        "pipes": "exit-linear",
        "throttle": "sched-task-throttle",
        "zsmalloc": "zsmalloc-lockless-free",
    }
    done = kteardown("replicate", "umount-expedited", "--script", "true 1", home=tmp_path)
    assert done.returncode == 2
    assert (
        "none of our series is about the same subject" in done.stderr
        and "--patch FILE" in done.stderr
    )


def test_a_script_does_not_differ_as_our_workload_does() -> None:
    (own,) = claim_notes(measured_with(shipped("freezer"), "./x.sh", "STEP"), None)[-1:]
    assert own == "here: measured with ./x.sh; its STEP replaces the posting's parameter"
    assert claim_notes(measured_with(shipped("freezer"), "./x.sh", ""), None)[-1].endswith("./x.sh")
    assert measured_with(shipped("memcg"), "./x.sh", "N") == shipped("memcg")


def test_the_command_to_repeat_has_no_local_file(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [
        "kteardown",
        "replicate",
        "freezer",
        "--patch",
        "/x/v4.mbox",
        "--quick",
        "--json=a",
        "--jobs",
        "1",
    ]
    monkeypatch.setattr("sys.argv", words)
    assert command_line("") == "kteardown replicate freezer --quick"
    assert command_line("/x/v4.mbox") == "kteardown replicate freezer --quick --patch v4.mbox"


def test_a_posting_that_cannot_be_run_is_printed_with_the_reason(tmp_path: Path) -> None:
    done = kteardown("replicate", "pipes", "--json", str(tmp_path / "r.json"), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "undecided: the change is of the DragonFly BSD kernel" in done.stdout
    output = output_in(tmp_path / "r.json")
    assert (output["command"], output["outcome"], output["runs"]) == ("replicate", None, [])
    assert "undecided" in output["headline"]
    (clock,) = output["details"]["clocks"]
    (claim,) = clock["claims"]
    assert (claim["finding"], claim["claimed"], claim["interval"]) == ("undecided", "-99.2%", None)


def test_an_unknown_posting_lists_the_known_ones(tmp_path: Path) -> None:
    done = kteardown("replicate", "frezer", home=tmp_path)
    assert done.returncode == 2
    assert "there is no such posting" in done.stderr
    assert "freezer, memcg" in done.stderr.replace("\n", " ")
