"""What the notes say of a rehearsal: its figures, their growth, errors, and what was not found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kteardown.model.workload import Metric
from kteardown.run.rehearsal_notes import notes
from kteardown.run.rehearse import Rehearsal
from kteardown.script.describe import Described, with_headlines
from unit.run.test_rehearse import SAMPLES, both, ran, script
from unit.script.lines import printed


def said(described: Described, *runs: Rehearsal) -> list[str]:
    return list(notes(described.workload, both(*runs)))


def figures(described: Described, *runs: Rehearsal) -> dict[str, str]:
    """The first figures that the notes have, by the key of their metric."""
    split = (line.strip().partition("): ") for line in said(described, *runs) if "): " in line)
    return {label.partition("(")[2]: figure for label, _, figure in split}


def sized(n: int, **samples: float) -> Rehearsal:
    return replace(ran(printed(f"made {n}"), params={"N": n}), samples=samples)


def test_the_notes_begin_with_the_guests_clock_and_the_last_line(tmp_path: Path) -> None:
    small, large = sized(1, whole_ns=2_000_000_000), sized(2, whole_ns=3_500_000_000)
    first, second, *_ = said(script(tmp_path, N=(1, 2)), small, large)
    assert "at N=1 and N=2 for 2 s and 3.5 s of the guest's clock" in first and "12 s" in first
    assert second.endswith("made 2")
    assert said(script(tmp_path), ran())[0].startswith("make ran on base once for 35.21 ms")


def test_a_figure_has_its_unit_the_cost_of_one_more_and_its_growth(tmp_path: Path) -> None:
    described = script(tmp_path, N=(10, 40))
    small = sized(10, whole_ns=360_000_000, cpu_us=1_000, all_gone_ns=5_000)
    large = sized(40, whole_ns=1_440_000_000, cpu_us=16_000, all_gone_ns=5_000)
    found = figures(described, small, large)
    assert found["whole_ns"].startswith("360 ms at N=10, 1,440 ms at N=40; 36 ms")
    assert "36,000,000 instructions" in found["whole_ns"] and "linear" in found["whole_ns"]
    assert found["cpu_us"].startswith("1 ms at N=10, 16 ms at N=40; 500 us")
    assert "500,000 instructions" in found["cpu_us"] and "quadratic" in found["cpu_us"]
    assert "one more" not in found["all_gone_ns"]


def test_in_real_time_no_figure_is_in_instructions(tmp_path: Path) -> None:
    runs = both(sized(10, whole_ns=1_000), sized(20, whole_ns=2_000))
    timed = replace(runs, seen=replace(runs.seen, acceleration="kvm"))
    lines = list(notes(script(tmp_path, N=(10, 20)).workload, timed))
    assert any("100 ns for one more N" in line for line in lines)
    assert not any("instruction" in line for line in lines)


def test_a_script_without_sizes_has_only_its_figures(tmp_path: Path) -> None:
    found = figures(script(tmp_path), ran())
    assert found["whole_ns"] == "35.21 ms" and found["cpu_us"] == "31 ms"
    words = script(tmp_path, "echo $N\n", N=("fast",))
    found = figures(words, replace(ran(), params={"N": "fast"}))
    assert found["whole_ns"] == "35.21 ms"


def test_a_difference_of_one_step_is_no_growth(tmp_path: Path) -> None:
    metric = {"time_ns": Metric(help="time", read="/Time: ([0-9.]+)/ s")}
    described = with_headlines(script(tmp_path, N=(1, 2)), metric)

    def found(small: str, large: str) -> str:
        runs = (ran(printed(f"Time: {s}"), params={"N": n}) for n, s in ((1, small), (2, large)))
        return figures(described, *runs)["time_ns"]

    assert "in steps of 10 ms" in found("0.01", "0.02")
    assert "one more" not in found("0.01", "0.02")
    assert "20 ms (20,000,000 instructions) for one more N" in found("0.02", "0.04")


def test_a_rate_has_no_cost_of_one_more(tmp_path: Path) -> None:
    metric = {"ops_per_s": Metric(help="ops", unit="per_s", read="/([0-9]+) ops/")}
    described = with_headlines(script(tmp_path, N=(1, 2)), metric)
    runs = (ran(printed(f"{ops} ops"), params={"N": n}) for n, ops in ((1, 900), (2, 300)))
    figure = figures(described, *runs)["ops_per_s"]
    assert figure.startswith("900/s at N=1, 300/s at N=2") and "falls" in figure
    assert "one more" not in figure


def test_a_script_that_mostly_sleeps_is_said_to(tmp_path: Path) -> None:
    sleeping = replace(ran(), samples={"whole_ns": 1_001_292_571, "cpu_us": 1189})
    (line,) = (line for line in said(script(tmp_path), sleeping) if "waits" in line)
    assert line.startswith("make uses the CPU for 0.1% of its time: whole_ns")
    assert not any("waits" in line for line in said(script(tmp_path), ran()))
    assert not any("waits" in line for line in said(script(tmp_path), replace(ran(), samples={})))


def test_processes_that_were_left_and_killed_are_said(tmp_path: Path) -> None:
    samples = {name: value for name, value in SAMPLES.items() if name != "all_gone_ns"}
    assert "make left processes" in said(script(tmp_path), replace(ran(), samples=samples))[-1]
    assert not any("left processes" in line for line in said(script(tmp_path), ran()))


def test_the_notes_say_what_is_not_found_and_what_looks_like_it(tmp_path: Path) -> None:
    metric = {"time_ns": Metric(help="time", read="/Took: ([0-9.]+)/ s")}
    lines = said(
        with_headlines(script(tmp_path), metric),
        ran(printed("Time taken by reclamation: 0.0073 seconds")),
    )
    (line,) = (line.strip() for line in lines if "matches" in line)
    assert line.startswith("time_ns: nothing matches /Took: ([0-9.]+)/ s; did you mean --metric '")
    assert "reclamation: ([0-9.]+)" in line


def test_lines_that_look_like_a_metric_are_named_if_no_line_is_read(tmp_path: Path) -> None:
    run = ran(printed("munmap in bandwidth: 21053761 bytes/ms"))
    (line,) = (line for line in said(script(tmp_path), run) if "looks like" in line)
    assert line == (
        "make prints what looks like a metric; compare it with --metric "
        "'munmap_in_bandwidth=/munmap in bandwidth: ([0-9.]+) bytes/ms/'"
    )
    slab = {"slab_kb": Metric(help="slab", read="delta meminfo Slab")}
    assert any("looks like" in line for line in said(with_headlines(script(tmp_path), slab), run))
    read = {"in_per_s": Metric(help="x", unit="per_s", read="/bandwidth: ([0-9]+)/")}
    assert not any(
        "looks like" in line for line in said(with_headlines(script(tmp_path), read), run)
    )


def test_the_notes_say_that_several_values_are_repetitions_and_warn_of_a_trend(
    tmp_path: Path,
) -> None:
    metric = {"time_ns": Metric(help="time", read="/Time: ([0-9.]+)/ s")}
    rising = printed(*(f"Time: 0.{n}" for n in range(1, 10)))
    lines = said(with_headlines(script(tmp_path), metric), ran(rising))
    (figure,) = (line for line in lines if "(time_ns)" in line)
    assert "100 ms, in steps of 100 ms" in figure and "the first of 9" in figure
    assert any("they may be points" in line for line in lines)
    same = said(with_headlines(script(tmp_path), metric), ran(printed("Time: 0.1", "Time: 0.1")))
    assert not any("points" in line for line in same)


def test_errors_of_a_script_that_went_on_are_shown_once(tmp_path: Path) -> None:
    output = printed(
        *["/files/04-proc-cgroups.sh: line 4: echo: write error: Invalid argument"] * 3,
        "mount: /mnt: mount point does not exist.",
        *(f"rmdir: failed to remove '{n}'" for n in range(9)),
    )
    lines = said(script(tmp_path), ran(output, dropped=1200))
    first = next(n for n, line in enumerate(lines) if "went on" in line)
    assert lines[first : first + 2] == [
        "make printed this and went on: /files/04-proc-cgroups.sh: line 4: echo: write error: "
        "Invalid argument",
        "make printed this and went on: mount: /mnt: mount point does not exist.",
    ]
    assert lines[-2:] == [
        "and 6 more lines like these",
        "1,200 lines of its output are lost: the agent keeps no more",
    ]
