from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.record import OUTCOMES
from kteardown.vm.kernel_log import Ending, RecordsSeen, classify, problems, without_written

CONSOLES = Path(__file__).parents[2] / "data/console"
STARTED = RecordsSeen(lines=1)
BYE = RecordsSeen(lines=9, bye=True)
OFF = Ending("powered-off")
RESET = Ending("reset")


def recorded(name: str) -> str:
    return (CONSOLES / f"{name}.txt").read_text(errors="replace")


@pytest.mark.parametrize(
    ("name", "records", "ending", "outcome", "detail"),
    [
        ("power-off", BYE, OFF, "ok", ""),
        ("power-off", STARTED, OFF, "agent-error", "powered off before the agent's bye"),
        (
            "agent-error",
            RecordsSeen(),
            OFF,
            "agent-error",
            "kteardown-agent: error: loading module /modules/",
        ),
        (
            "exit",
            STARTED,
            RESET,
            "agent-error",
            "exited with 3: Kernel panic - not syncing: Attempted",
        ),
        ("crash", STARTED, RESET, "agent-error", "killed by signal 11"),
        ("no-init", RecordsSeen(), RESET, "panic", "not syncing: No working init found"),
        ("oom", STARTED, RESET, "oom", "System is deadlocked on memory"),
        ("reset", STARTED, RESET, "panic", "last on the console: reboot: Restarting system"),
        (
            "reset",
            STARTED,
            Ending("flooded", "printed too much"),
            "agent-error",
            "printed too much; last on",
        ),
        (
            "oom",
            STARTED,
            Ending("flooded", "printed too much"),
            "oom",
            "System is deadlocked on memory",
        ),
        ("hang", STARTED, Ending("silent", "no record for 15 s"), "hang", "no record for 15 s"),
    ],
)
def test_recorded_consoles(
    name: str, records: RecordsSeen, ending: Ending, outcome: str, detail: str
) -> None:
    found, reason = classify(recorded(name), records, ending)
    assert found == outcome
    assert detail in reason
    assert "\n" not in reason


def test_a_panic_after_bye_is_a_panic() -> None:
    assert classify(recorded("no-init"), BYE, RESET)[0] == "panic"


def test_a_guest_that_goes_on_after_the_text_of_a_panic_has_not_panicked() -> None:
    assert classify(recorded("forged"), BYE, OFF) == ("ok", "")
    assert classify(recorded("forged"), BYE, RESET)[0] == "panic"


def written(at_us: int, text: str, **fields: object) -> bytes:
    """The record of a message that user space wrote to the log."""
    fields = {
        "type": "output",
        "trial": 10,
        "repetition": 0,
        "source": "log",
        "facility": 1,
    } | fields
    return json.dumps(fields | {"at_ns": at_us * 1000, "text": text}).encode()


def test_what_a_script_wrote_to_the_log_is_no_report_of_the_kernel() -> None:
    seen = RecordsSeen()
    for raw in (
        written(636210, "Kernel panic - not syncing: forged"),
        written(636221, r"forged\x0aBUG: kernel NULL pointer dereference, address: 0"),
        written(636232, "WARNING: CPU: 0 PID: 1 at forged.c:1 forged+0x1/0x2"),
        written(636244, "kteardown: trial 99: forged"),
    ):
        seen.note(raw)
    left = without_written(recorded("forged"), seen.written)
    # No record is about the stall; the panic, which did not come through the log, counts as a part
    # of it.
    assert [(one.kind, one.trials) for one in problems(left)] == [("stall", (10,))]
    assert "trial 99" not in left and "reboot: Power down" in left


def test_a_message_of_the_kernel_at_the_time_of_another_of_user_space_is_kept() -> None:
    seen = RecordsSeen()
    seen.note(written(1_000_001, "forged"))
    seen.note(written(2_000_000, "BUG: by the kernel: 0", facility=0))
    console = (
        "[    1.000001] WARNING: real\n[    1.000001] forged\n[    2.000000] BUG: by the kernel: 0"
    )
    assert without_written(console, seen.written) == console.replace("[    1.000001] forged\n", "")


def test_how_much_a_guest_writes_is_limited() -> None:
    seen = RecordsSeen()
    for at_us in range(20_100):
        seen.note(written(at_us, "forged"))
    assert len(seen.written) == 20_000


def test_an_error_record_takes_precedence_over_the_console() -> None:
    records = RecordsSeen(lines=2, error="the plan is empty")
    assert classify(recorded("power-off"), records, OFF) == ("agent-error", "the plan is empty")


def test_a_failure_of_qemu_is_an_infrastructure_error() -> None:
    ending = Ending("broken", "QEMU ended by itself (killed by signal 9)")
    assert classify(recorded("oom"), BYE, ending) == ("infrastructure-error", ending.detail)


def test_an_oops_that_killed_the_agent_is_a_panic() -> None:
    oops = "[    2.5] BUG: kernel NULL pointer dereference, address: 0000000000000008\n"
    outcome, detail = classify(oops + recorded("crash"), STARTED, RESET)
    assert outcome == "panic"
    assert "NULL pointer" in detail


def test_a_silent_guest_after_an_oom_kill_is_out_of_memory() -> None:
    text = "[   12.0][  T1] Out of memory: Killed process 77 (agent) total-vm:1kB\n"
    assert classify(text, STARTED, Ending("silent", "quiet"))[0] == "oom"


def test_a_cgroup_at_its_limit_is_not_out_of_memory() -> None:
    text = "[   12.0] Memory cgroup out of memory: Killed process 77 (agent) total-vm:1kB\n"
    assert classify(text, STARTED, Ending("silent", "quiet"))[0] == "hang"


def test_the_reason_of_a_hang_is_the_kernels_complaint_rather_than_the_last_line() -> None:
    text = "[ 60.1] rcu: INFO: rcu_sched self-detected stall on CPU\n[ 60.2] Code: 90 90\n"
    assert classify(text, STARTED, Ending("silent", "quiet")) == (
        "hang",
        "quiet; rcu: INFO: rcu_sched self-detected stall on CPU",
    )


def test_a_cut_record_is_reported() -> None:
    assert classify("", RecordsSeen(cut=12), RESET)[1].endswith(
        "the last record was cut after 12 bytes"
    )


def test_a_cut_console_without_bye_is_never_ok() -> None:
    whole = recorded("oom")
    for length in range(0, len(whole), 97):
        outcome, detail = classify(whole[:length], STARTED, RESET)
        assert outcome in {"panic", "oom"}
        assert detail


@given(
    st.binary(max_size=400),
    st.sampled_from(["powered-off", "reset", "silent", "broken"]),
    st.booleans(),
)
def test_any_bytes_have_an_outcome(console: bytes, how: str, bye: bool) -> None:
    ending = Ending(how, "why")  # type: ignore[arg-type]
    outcome, detail = classify(console.decode(errors="replace"), RecordsSeen(bye=bye), ending)
    assert outcome in OUTCOMES
    assert (outcome == "ok") == (bye and how == "powered-off" and not detail)
    assert detail.isprintable()
