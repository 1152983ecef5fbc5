"""From what QEMU counted to the samples of a trial, by recorded counts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kteardown.inputs.contention import METRICS
from kteardown.kernels.source_lines import SourceLines
from kteardown.kernels.symbol_map import SymbolMap
from kteardown.model.plan import PlannedTrial
from kteardown.model.record import Sample, TrialEnd, TrialStart
from kteardown.model.sharing import Sharing
from kteardown.run.contention import BootCounts, Names, Uncounted
from kteardown.vm.contention import StretchReader

MAP = """\
ffffffff81000000 T do_exit
ffffffff81000100 T release_task
ffffffff81000200 T _raw_spin_lock
ffffffff82000000 D tasklist_lock
ffffffff82000010 D pidmap_lock
"""
STRETCH = """\
stretch {trial} {number}
cpu 0 100 60 3 10
count kernel 12 2 8 3 0
count programs 4 0 0 1 0
site ffffffff81000010 7 0 2
site ffffffff81000110 1 2 0
site ffffffff81000210 4 0 6
line ffffffff82000000 6 0 2 5 800 ffffffff81000210:0:0:4 ffffffff81000010:0:4:2
line 1000 4 0 2 0 400 ffffffff81000010:0:0:3 ffffffff81000210:ffffffff81000110:8:1
line 2000 2 0 2 0 200 ffffffff81000010:0:0:2
line 3000 4 0 2 0 400 401000:0:0:4
end
"""


def trial(index: int, *, warmup: int = 0, repetitions: int = 1) -> PlannedTrial:
    return PlannedTrial(
        index=index,
        workload="pipechain",
        params={"processes": 4},
        warmup=warmup,
        repetitions=repetitions,
    )


def counts(folder: Path, text: str, *trials: PlannedTrial) -> BootCounts:
    (folder / "System.map").write_text(MAP)
    names = Names(SymbolMap(folder, folder / "bzImage"), SourceLines(folder, "x86_64"))
    return BootCounts(trials, lambda trial: 4, names, (), StretchReader(io.BytesIO(text.encode())))


def ended(index: int, status: str = "ok") -> TrialEnd:
    return TrialEnd(trial=index, status=status)  # type: ignore[arg-type]


def stretches(trial_number: int, count: int) -> str:
    return "".join(STRETCH.format(trial=trial_number, number=n) for n in range(count))


def test_the_samples_of_a_trial_are_for_one_object(tmp_path: Path) -> None:
    *samples, sharing, end = counts(tmp_path, stretches(0, 1), trial(0)).add(ended(0))
    values = {record.metric: record.value for record in samples if isinstance(record, Sample)}
    assert values.keys() == METRICS.keys()
    assert (values["line_moves_count"], values["locked_count"]) == (3.0, 2.0)
    assert (values["shared_lines_count"], values["program_line_moves_count"]) == (0.75, 1.0)
    assert isinstance(sharing, Sharing)
    assert (sharing.elapsed_ticks, sharing.busy_ticks) == (100, (90,))
    assert (sharing.data[0].spins, sharing.data[0].waited_ticks) == (5, 800)
    assert end == ended(0)


def test_functions_and_data_have_names(tmp_path: Path) -> None:
    (sharing,) = (
        record
        for record in counts(tmp_path, stretches(0, 1), trial(0)).add(ended(0))
        if isinstance(record, Sharing)
    )
    assert [(f.name, f.moves, f.locked) for f in sharing.functions] == [
        ("do_exit", 7, 2),
        ("_raw_spin_lock", 4, 6),
        ("release_task", 1, 0),
    ]
    by_name = {(data.name, data.movers): (data.moves, data.lines) for data in sharing.data}
    assert by_name == {
        ("tasklist_lock", ("do_exit",)): (6, 1),
        # The function that took the lock, and not the one that locks.
        ("", ("do_exit", "release_task")): (4, 1),
        ("", ("programs",)): (4, 1),
        ("", ("do_exit",)): (2, 1),
    }


def test_warm_up_is_left_out_and_several_stretches_of_a_repetition_add_up(tmp_path: Path) -> None:
    planned = trial(0, warmup=1, repetitions=2)
    records = counts(tmp_path, stretches(0, 6), planned).add(ended(0))
    moves = [r for r in records if isinstance(r, Sample) and r.metric == "line_moves_count"]
    assert [(r.repetition, r.value, r.warmup) for r in moves] == [(1, 6.0, False), (2, 6.0, False)]


@pytest.mark.parametrize("count", [0, 3])
def test_a_trial_whose_repetitions_were_not_all_counted_is_void(tmp_path: Path, count: int) -> None:
    planned = trial(0, repetitions=2)
    (end,) = counts(tmp_path, stretches(0, count), planned).add(ended(0))
    assert isinstance(end, TrialEnd)
    assert (end.status, end.detail) == ("void", f"{count} stretches were counted in 2 repetitions")


def test_a_failed_trial_stays_failed(tmp_path: Path) -> None:
    boot = counts(tmp_path, stretches(0, 1), trial(3), trial(4))
    assert boot.add(ended(3, "failed")) == (ended(3, "failed"),)


def test_what_the_agent_measures_is_left_out(tmp_path: Path) -> None:
    boot = counts(tmp_path, "", trial(0))
    start = TrialStart(trial=0, workload="pipechain", params={})
    assert boot.add(start) == (start,)
    assert boot.add(Sample(trial=0, repetition=0, metric="kill_call_ns", value=1)) == ()


def test_on_another_clock_everything_stays() -> None:
    sample = Sample(trial=0, repetition=0, metric="kill_call_ns", value=1)
    assert Uncounted().add(sample) == (sample,)


def test_a_line_has_the_symbols_that_are_accessed(tmp_path: Path) -> None:
    line = "line ffffffff82000000 9 0 2 0 900 ffffffff81000010:0:{}:{} ffffffff81000020:0:{}:{}"
    named = {}
    for movers in ((4, 7, 20, 2), (4, 5, 20, 4), (4, 5, 8, 4)):
        text = STRETCH.format(trial=0, number=0).partition("line")[0] + line.format(*movers)
        (sharing,) = (
            record
            for record in counts(tmp_path, f"{text}\nend\n", trial(0)).add(ended(0))
            if isinstance(record, Sharing)
        )
        named[movers] = sharing.data[0].name
    assert [*named.values()] == ["tasklist_lock", "pidmap_lock, tasklist_lock", "tasklist_lock"]
