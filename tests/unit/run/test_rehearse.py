"""What a rehearsal finds: the errors of scripts that failed, and the metrics of those that ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.options import Scripted
from kteardown.model.record_fields import ParamValue
from kteardown.model.script_records import Delta, OutputLine, ScriptEnd
from kteardown.model.workload import Metric, Parameter, Script, Workload
from kteardown.run.forecast import REHEARSAL, SeenBoot
from kteardown.run.rehearse import (
    Rehearsal,
    Rehearsed,
    chosen_metrics,
    failure,
    with_resolution,
)
from kteardown.script.describe import Described, describe
from unit.script.lines import delta, logged, printed, recorded

SAMPLES = {"whole_ns": 35_214_889, "cpu_us": 31_000, "all_gone_ns": 35_300_000}


def ran(
    output: Sequence[OutputLine] = (),
    *,
    how: str = "exit",
    code: int = 0,
    params: Mapping[str, ParamValue] | None = None,
    deltas: Sequence[Delta] = (),
    dropped: int = 0,
    detail: str = "",
) -> Rehearsal:
    ended = ScriptEnd.model_validate(
        {"type": "ended", "trial": 0, "repetition": 0, "how": how, "code": code, "dropped": dropped}
    )
    return Rehearsal(params or {}, output, deltas, SAMPLES, ended, "ok", detail)


def both(*sizes: Rehearsal, again: Rehearsal | None = None) -> Rehearsed:
    return Rehearsed(
        sizes, 12.0, SeenBoot(REHEARSAL, "icount", 512, 4.0, None, ()), lambda: again or sizes[0]
    )


def script(
    folder: Path, text: str = "for i in $(seq $N); do :; done\n", **params: Sequence[ParamValue]
) -> Described:
    path = folder / "make.sh"
    path.write_text(text)
    return describe(str(path), Scripted(), params)


@pytest.mark.parametrize(
    ("run", "says", "hint"),
    [
        (
            ran(printed("/files/x.sh: line 1: umonut: command not found"), how="exit", code=127),
            "umonut is not in the guest",
            "install umonut on this host",
        ),
        (
            ran(
                printed("/files/x.sh: line 37: /usr/local/bin/tar: No such file or directory"),
                code=127,
            ),
            "/usr/local/bin/tar is not in the guest",
            "install /usr/local/bin/tar",
        ),
        (ran(printed("sh: tail: not found"), code=127), "tail is not", "--programs tail"),
        (
            ran(printed("env: 'tail': No such file or directory"), code=127),
            "tail is not",
            "--programs tail",
        ),
        (
            ran(printed("FileNotFoundError: [Errno 2] No such file or directory: 'tail'"), code=1),
            "tail is not",
            "--programs tail",
        ),
        (
            ran(
                printed("/files/x.sh: line 3: /sys/fs/cgroup/foo: No such file or directory"),
                code=1,
            ),
            "it ended with exit status 1",
            "--allow 'exit 1'",
        ),
        (ran((), how="signal", code=8), "it ended with signal 8", "--allow 'signal 8'"),
        (
            ran(printed("x"), how="limit", detail="ended: killed after 600 s; its last line: x"),
            "make failed on base: killed after 600 s of the guest's clock\n",
            "--limit 30m",
        ),
        (
            ran(logged((5, "Out of memory: Killed process 77 (x)")), how="signal", code=9),
            "ran out of memory: Out of memory: Killed process 77",
            "--memory-mb",
        ),
        (
            ran(
                logged(
                    (
                        5,
                        "__vm_enough_memory: pid: 77, bytes: 9 not enough memory for the "
                        "allocation",
                    )
                ),
                how="signal",
                code=11,
            ),
            "ran out of memory",
            "--memory-mb",
        ),
        (
            ran(printed("quotactl: Function not implemented"), code=1),
            "exit status 1",
            "CONFIG_QUOTA=y",
        ),
        (
            ran(printed("mount: /mnt: unknown filesystem type 'ext4'."), code=32),
            "exit status 32",
            "--config disk",
        ),
        (
            ran(printed("The file /dev/nvme0n1 does not exist and no size was specified."), code=1),
            "exit status 1",
            "--config disk",
        ),
    ],
)
def test_a_failure_has_its_most_certain_reason(
    run: Rehearsal, says: str, hint: str, tmp_path: Path
) -> None:
    error = failure(script(tmp_path).workload, run)
    assert says in error.message and hint in error.hint
    for line in run.lines():
        assert error.message.count(line) == 1


def test_what_the_kernel_lacks_comes_after_what_the_guest_lacks(tmp_path: Path) -> None:
    workload = script(tmp_path).workload
    failed = ran(printed("mount: unknown filesystem type 'ext4'"), code=32)
    hint = failure(workload, failed, "use another kernel.").hint
    assert hint.startswith("use another kernel. ") and "--allow 'exit 32'" in hint
    assert "--config" not in hint
    absent = ran(printed("sh: tail: not found"), code=127)
    assert "--programs tail" in failure(workload, absent, "use another kernel.").hint


def test_a_failure_shows_the_last_lines_only(tmp_path: Path) -> None:
    message = failure(
        script(tmp_path).workload, ran(printed(*(f"line {n}" for n in range(50))), code=1)
    ).message
    assert "line 49" in message and "| line 29\n" not in message
    long = failure(script(tmp_path).workload, ran(printed("y" * 1000), code=1)).message
    assert long.count("y") < 400
    assert "(it printed nothing)" in failure(script(tmp_path).workload, ran((), code=1)).message


def test_the_metrics_are_of_the_best_kind_that_there_is(tmp_path: Path) -> None:
    described = script(tmp_path, N=(100, 200))
    marked = logged((1, "kt-begin freeze"), (9, "kt-end freeze"))
    lines = printed("elapsed 3.25 ms")
    grown = [[delta("meminfo", "Slab", 40 * n)] for n in (100, 200)]

    def found(output: Sequence[OutputLine], again: int = 4000) -> set[str]:
        runs = [
            ran(output, params={"N": n}, deltas=d) for n, d in zip((100, 200), grown, strict=True)
        ]
        other = ran(deltas=[delta("meminfo", "Slab", again)])
        return set(chosen_metrics(described, both(*runs, again=other), ()))

    assert found([*marked, *lines]) == {"freeze_ns"}
    assert found(lines) == {"elapsed_ns"}
    assert found(printed("a sentence")) == {"meminfo_slab_kb"}
    assert found(printed("a sentence"), again=6000) == set()


def test_one_size_has_no_growth_and_a_script_no_preset(tmp_path: Path) -> None:
    run = ran(deltas=[delta("meminfo", "Slab", 4000)])
    assert chosen_metrics(script(tmp_path), both(run), ()) == {}
    run = ran(recorded("stress-ng"))
    command = describe("stress-ng --mmap 1", Scripted(), {})
    assert "operations_per_s" in chosen_metrics(command, both(run), ())


def test_metrics_that_were_asked_for_are_the_only_ones(tmp_path: Path) -> None:
    run = ran(printed("munmap in bandwidth: 21053761 bytes/ms", "time 5 ms"))
    asked = chosen_metrics(script(tmp_path), both(run), ["bandwidth=/bandwidth: ([0-9]+)/"])
    assert set(asked) == {"bandwidth_per_s"} and asked["bandwidth_per_s"].better == "higher"
    with pytest.raises(InputError, match="expected NAME=WHERE"):
        chosen_metrics(script(tmp_path), both(run), ["bandwidth"])


def test_the_coarsest_step_of_all_sizes_is_the_resolution() -> None:
    metric = {"time_ns": Metric(help="time", read="/Time: ([0-9.]+)/ s")}
    runs = both(ran(printed("Time: 0.01")), ran(printed("Time: 1.002")))
    assert with_resolution(metric, runs)["time_ns"].resolution == 10_000_000
    other = {"whole_ns": Metric(help="whole")}
    assert with_resolution(other, runs) == other


def test_a_failure_says_when_it_came_by_the_guests_clock(tmp_path: Path) -> None:
    message = failure(script(tmp_path).workload, ran(printed("x"), code=1)).message
    assert "exit status 1 after 35.21 ms of the guest's clock\n" in message


@pytest.mark.parametrize(
    ("took_s", "said"),
    [
        (1.2, "N=25 took 1.2 s: it grows at least with the third power between 25 and 100"),
        (20.0, "N=25 took 20 s: it grows at least quadratically between 25 and 100"),
        (100.0, "N=25 took 100 s: it grows at least linearly between 25 and 100"),
        (400.0, "N=25 took 400 s\n"),
    ],
)
def test_a_size_that_does_not_end_says_how_fast_it_grows_at_least(took_s: float, said: str) -> None:
    workload = Workload(
        name="make",
        summary="",
        silence_s=1,
        law="N",
        metrics={},
        parameters={"N": Parameter(help="size", default=25)},
        script=Script(file="x.sh"),
    )
    smaller = replace(ran((), how="exit"), params={"N": 25}, samples={"whole_ns": took_s * 1e9})
    killed = replace(ran((), how="limit", detail="ended: killed after 600 s"), params={"N": 100})
    assert said in failure(workload, killed, smaller=smaller).message
