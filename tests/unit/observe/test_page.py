"""The page, as text and as Markdown."""

from __future__ import annotations

from kteardown_observe.calibrate import InstructionRate
from kteardown_observe.judge import judge
from kteardown_observe.page import markdown_of, text_of
from unit.observe.documents import counted, counts
from unit.observe.test_limits import machine, use

ZOMBIES = judge(counts(zombies=counted(4213, ("bash[123]", 4000))))


def test_the_page_has_the_count_the_cost_and_what_helps() -> None:
    text = text_of(ZOMBIES, None)
    for part in ("4,213", "bash[123] has 4,000", "287 thousand instructions", "6.12"):
        assert part in text
    assert "our series freezer-skip-exited (by 69%, on 6.12)" in text


def test_a_time_needs_a_rate_and_is_a_range() -> None:
    assert "CPU time here" not in text_of(ZOMBIES, None)
    text = text_of(ZOMBIES, InstructionRate(0.5, 1.0, ("eventfds", "pipes")))
    assert "143 to 287 us of CPU time here" in text


def test_what_is_missing_is_said() -> None:
    assert "not counted" in text_of(ZOMBIES, None)


def test_names_from_outside_act_nowhere() -> None:
    hostile = "\x1b[2J<b>|`# x\n\u202e"
    found = judge(counts(zombies=counted(4213, (hostile, 4000))))
    for text in (text_of(found, None), markdown_of(found, None)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<b>" not in markdown_of(found, None).replace("\\<b\\>", "")


def test_limits_are_printed_only_if_the_machine_is_close() -> None:
    close = judge(machine(use("pid_max", 30_000, 32_768), counts={"zombies": counted(20_000)}))
    far = judge(machine(use("pid_max", 3_000, 32_768)))
    assert "30,000 of 32,768, 91%; 20,000 of them are zombies" in text_of(close, None)
    assert "## Close to a limit" in markdown_of(close, None)
    assert "close to a limit" not in text_of(far, None).lower()
    assert "EAGAIN" not in text_of(far, None) + markdown_of(far, None)


def test_parts_of_a_teardown_have_no_page_of_their_own() -> None:
    found = judge(counts(network_namespaces=counted(3000), veth_pairs=counted(4000)))
    text = text_of(found, None)
    assert text.count("measured on") == 1
    assert "    pairs of veth devices: 4,000; " in text
    assert "  - pairs of veth devices: 4,000; " in markdown_of(found, None)


def test_markdown_has_a_heading_for_each_problem() -> None:
    lines = markdown_of(ZOMBIES, None).splitlines()
    assert [line for line in lines if line.startswith("## zombies")]
