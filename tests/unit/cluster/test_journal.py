"""What jobs publish: once, whole, and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.model.record import BootEnd, BootStart, Record, Sample, TrialEnd, TrialStart
from kteardown.rundir.directory import RunDir
from kteardown_cluster.journal import (
    Compared,
    Failure,
    Journal,
    Receipt,
    compare,
    publish,
    write_failure,
)


def _records(value: int = 7, at_s: float = 1.0) -> list[Record]:
    return [
        BootStart(
            kernel="base",
            block=0,
            seed=1,
            acceleration="icount",
            host_load=0,
            started_at="",
            boot=3,
        ),
        TrialStart(trial=0, workload="zombies", params={}, boot=3),
        Sample(trial=0, repetition=0, metric="freeze_user_ns", value=value, boot=3),
        TrialEnd(trial=0, status="ok", at_s=at_s, boot=3),
        BootEnd(outcome="ok", duration_s=at_s, first_record_s=0.5, command=[], host_load=0, boot=3),
    ]


def _publish(journal: Journal, name: str, records: list[Record]) -> bool:
    own = journal.folder / "attempts" / "boot-0003" / "0" / name
    own.make_folder()
    receipt = Receipt(
        key="boot-0003",
        attempt=0,
        name=name,
        node=name[:2],
        job="1",
        qemu="",
        machine={},
        records=len(records),
    )
    return publish(journal.folder, "done", own, receipt, records)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(RunDir.create(tmp_path, "test"))
    made.create()
    return made


def test_the_first_complete_result_stays_and_the_second_is_put_aside(journal: Journal) -> None:
    assert _publish(journal, "n1-a", _records(7))
    assert not _publish(journal, "n2-b", _records(8))
    assert journal.read("done", "boot-0003").receipt.node == "n1"
    assert [file.name for file in (journal.path / "aside").iterdir()] == ["boot-0003.n2-b.ndjson"]


@pytest.mark.parametrize("cut", [2, 40, 300, 900])
def test_a_result_that_is_cut_is_never_read(journal: Journal, cut: int) -> None:
    _publish(journal, "n1-a", _records())
    file = journal.path / "done" / "boot-0003.ndjson"
    file.write_bytes(file.read_bytes()[:-cut])
    with pytest.raises(ValueError):
        journal.read("done", "boot-0003")


def test_times_of_the_host_do_not_matter_to_a_comparison(journal: Journal) -> None:
    _publish(journal, "n1-a", _records(7, at_s=1.0))
    first = journal.read("done", "boot-0003")
    journal.put_aside("done", "boot-0003")
    _publish(journal, "n2-b", _records(7, at_s=2.0))
    assert [each.same for each in compare(first, journal.read("done", "boot-0003"))] == [True]


def test_a_figure_that_differs_is_found(journal: Journal) -> None:
    _publish(journal, "n1-a", _records(7))
    first = journal.read("done", "boot-0003")
    journal.put_aside("done", "boot-0003")
    _publish(journal, "n2-b", _records(8))
    (found,) = compare(first, journal.read("done", "boot-0003"))
    assert (found.same, found.trial, found.nodes) == (False, 0, ("n1", "n2"))
    journal.add_compared([found])
    assert journal.compared() == [found]


def test_the_token_and_the_attempts_of_a_run_are_its_own(journal: Journal) -> None:
    assert journal.token() == journal.token()
    assert [journal.new_attempt("boot-0003")[0] for _ in range(3)] == [0, 1, 2]


def test_a_failure_is_found_by_its_attempt(journal: Journal) -> None:
    failure = Failure(key="boot-0003", attempt=2, node="n1", reason="full", host=True)
    write_failure(journal.folder, failure, "n1-a")
    assert journal.failures({("boot-0003", 2), ("boot-0004", 0)}) == {("boot-0003", 2): failure}
    assert journal.failures({("boot-0003", 1)}) == {}


def test_a_comparison_that_a_full_disk_cut_takes_no_other_with_it(journal: Journal) -> None:
    first = Compared(key="a", boot=0, kernel="base", nodes=("n1", "n2"), same=True)
    journal.add_compared([first])
    with (journal.path / "compared.ndjson").open("a") as stream:
        stream.write('{"key":"b","boo')
    second = Compared(key="c", boot=2, kernel="base", nodes=("n1", "n2"), same=False)
    journal.add_compared([second])
    assert journal.compared() == [first, second]


def test_paths_are_those_of_a_job_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Journal(RunDir(Path("runs") / "one")).path == tmp_path / "runs" / "one" / "jobs"
