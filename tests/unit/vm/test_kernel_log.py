from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.record import ProblemKind
from kteardown.vm.kernel_log import kind_of, last_lines_of, problems, signature

CIRCULAR = "WARNING: possible circular locking dependency detected"
LEAK = "kteardown: kmemleak: {} unreferenced objects, the first:"
WARNING = "WARNING: CPU: 0 PID: 1 at kernel/power/process.c:52 f+0x2f9/0x300"
CONSOLES = Path(__file__).parents[2] / "data/console"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            "WARNING: CPU: 0 PID: 1 at kernel/power/process.c:52 try_to_freeze_tasks+0x2f9/0x300",
            "warning",
        ),
        (
            "WARNING: kernel/power/process.c:52 at try_to_freeze_tasks+0x2f9/0x300, CPU#0: agent/1",
            "warning",
        ),
        (
            "workqueue: work func psi_release_fn enqueued on deprecated workqueue. "
            "Use system_{percpu|dfl}_wq instead.",
            "warning",
        ),
        ("psi: inconsistent task state! task=1:a cpu=0 psi_flags=4 clear=0 set=4", "warning"),
        ("workqueue: round-robin CPU selection forced, expect performance impact", None),
        ("WARNING: possible circular locking dependency detected", "lockdep"),
        ("WARNING: possible recursive locking detected", "lockdep"),
        ("WARNING: inconsistent lock state", "lockdep"),
        ("WARNING: bad unlock balance detected!", "lockdep"),
        ("WARNING: lock held when returning to user space!", "lockdep"),
        ("WARNING: suspicious RCU usage", "lockdep"),
        ("WARNING: HARDIRQ-safe -> HARDIRQ-unsafe lock order detected", "lockdep"),
        (
            "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:579",
            "lockdep",
        ),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000008", "oops"),
        (
            "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008",
            "oops",
        ),
        ("kernel BUG at kernel/power/process.c:150!", "oops"),
        ("BUG: KASAN: slab-use-after-free in try_to_freeze_tasks+0x10/0x20", "corruption"),
        ("list_add corruption. prev->next should be next (ffff), but was dead.", "corruption"),
        ("BUG task_struct (Not tainted): Poison overwritten", "corruption"),
        (
            "BUG kmalloc-64 (Not tainted): Objects remaining in kmalloc-64 on "
            "__kmem_cache_shutdown()",
            "leak",
        ),
        ("kteardown: kmemleak: 3 unreferenced objects, the first:", "leak"),
        ("BUG: Bad rss-counter state mm:00000000a type:MM_ANONPAGES val:1", "leak"),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "stall"),
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [agent:1]", "stall"),
        ("INFO: task agent:1 blocked for more than 120 seconds.", "stall"),
        ("Kernel panic - not syncing: broken on purpose", "panic"),
        ("[ BUG: Invalid wait context ]", "lockdep"),
        ("INFO: trying to register non-static key.", "lockdep"),
        ("BUG: MAX_LOCKDEP_CHAINS too low!", None),
        ("Spectre V2 : WARNING: Unprivileged eBPF is enabled", None),
        ("Freezing user space processes", None),
        ("printk: legacy bootconsole disabled", None),
    ],
)
def test_kinds(line: str, kind: str | None) -> None:
    assert kind_of(line) == kind


def test_a_problem_knows_the_trial_in_which_it_was_reported() -> None:
    console = (
        "[ 1.0] kteardown: trial 0: zombies zombies=0\n"
        "[ 1.5] kteardown: trial 4: zombies zombies=6000\n"
        "[ 2.0] ------------[ cut here ]------------\n"
        "[ 2.0] WARNING: CPU: 0 PID: 1 at kernel/power/process.c:52 "
        "try_to_freeze_tasks+0x2f9/0x300\n"
        "[ 2.0] Call Trace:\n"
        "[ 2.0] ---[ end trace 0000000000000000 ]---\n"
        "[ 2.5] Freezing user space processes\n"
    )
    (found,) = problems(console)
    assert (found.kind, found.trials) == ("warning", (4,))
    assert found.excerpt[0].startswith("WARNING: ") and found.excerpt[-1].startswith(
        "---[ end trace"
    )
    assert len(found.excerpt) == 3


def test_a_problem_that_is_reported_twice_is_one_problem_of_both_trials() -> None:
    line = (
        "WARNING: CPU: 0 PID: {} at kernel/power/process.c:{} f+0x2f9/0x300\n---[ end trace 0 "
        "]---\n"
    )
    console = (
        f"kteardown: trial 1: x\n{line.format(7, 52)}kteardown: trial 2: x\n{line.format(9, 53)}"
        "WARNING: possible recursive locking detected\n"
    )
    warning, lockdep = problems(console)
    assert warning.trials == (1, 2)
    assert (lockdep.kind, lockdep.trials) == ("lockdep", (2,))


def test_an_oops_and_its_panic_are_one_problem() -> None:
    console = (
        "BUG: kernel NULL pointer dereference, address: 8\nOops: Oops: 0002 [#1]\nRIP: "
        "0010:f+0x1/0x2\n"
        "Kernel panic - not syncing: Fatal exception\n"
    )
    (found,) = problems(console)
    assert found.kind == "oops"
    assert "Kernel panic - not syncing: Fatal exception" in found.excerpt


def test_a_good_boot_has_no_problems() -> None:
    assert problems((CONSOLES / "power-off.txt").read_text(errors="replace")) == ()


def test_the_end_of_a_panic_is_its_beginning_not_the_log_that_is_printed_again() -> None:
    again = "".join(f"[ {n}.0] line {n}\n" for n in range(90))
    lines = last_lines_of(
        f"{again}[ 91.0] Kernel panic - not syncing: why\n[ 91.0] Call Trace:\n{again}"
    )
    assert lines[:2] == ("Kernel panic - not syncing: why", "Call Trace:")
    assert len(lines) == 40


def test_where_the_cpus_are_idle_the_blocked_tasks_are_shown() -> None:
    console = (
        "Kernel panic - not syncing: NMI: Not continuing\nCall Trace:\n do_idle+0x1/0x2\n"
        "sysrq: Show Blocked State\ntask:init            state:D stack:0     pid:1\nCall Trace:\n"
        " __mutex_lock.constprop.0+0x1/0x2\n try_to_freeze_tasks+0x1/0x2\n"
    )
    lines = last_lines_of(console)
    assert lines[0].startswith("task:init") and lines[-1].startswith("try_to_freeze_tasks")
    assert last_lines_of(console.replace("do_idle", "spin"))[0].startswith("Kernel panic")


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (
            "warning",
            ("WARNING: CPU: 0 PID: 1 at kernel/power/process.c:52 f+0x2f9/0x300",),
            ("WARNING: CPU: 1 PID: 31 at kernel/power/process.c:54 f.constprop.0+0x2fb/0x302",),
        ),
        (
            "warning",
            ("WARNING: mm/x.c:1 at foo+0x1/0x2, CPU#0: kworker/u4:2/33",),
            ("WARNING: mm/x.c:3 at foo+0x1/0x2, CPU#1: zombies/77",),
        ),
        (
            "lockdep",
            (
                CIRCULAR,
                "zombies/77 is trying to acquire lock:",
                "ffff888 (a_lock){+.+.}-{3:3}, at: f+0x1/0x2",
            ),
            (
                CIRCULAR,
                "init/1 is trying to acquire lock:",
                "ffff999 (a_lock){+.+.}-{3:3}, at: f+0x9/0x20",
            ),
        ),
        (
            "leak",
            (
                LEAK.format(1),
                "unreferenced object 0xffff888 (size 1024):",
                "kmalloc+0x1/0x2",
                "f+0x1/0x2",
            ),
            (
                LEAK.format(600),
                "unreferenced object 0xffff999 (size 1024):",
                "kmalloc+0x1/0x2",
                "f+0x3/0x9",
            ),
        ),
    ],
)
def test_the_same_problem_has_the_same_signature(
    kind: ProblemKind, one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert signature(kind, one) == signature(kind, other)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("warning", (WARNING,), (WARNING.replace("process.c", "freezer.c"),)),
        ("warning", ("WARNING: mm/x.c:1 at foo+0x1/0x2",), ("WARNING: mm/x.c:1 at bar+0x1/0x2",)),
        (
            "lockdep",
            (CIRCULAR, "ffff888 (a_lock){+.+.}-{3:3}, at: f+0x1/0x2"),
            (CIRCULAR, "ffff888 (b_lock){+.+.}-{3:3}, at: f+0x1/0x2"),
        ),
        (
            "leak",
            (LEAK.format(1), "kmalloc+0x1/0x2", "f+0x1/0x2"),
            (LEAK.format(1), "kmalloc+0x1/0x2", "g+0x1/0x2"),
        ),
    ],
)
def test_another_problem_has_another_signature(
    kind: ProblemKind, one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert signature(kind, one) != signature(kind, other)


def test_a_second_report_in_the_next_trial_or_after_a_rule_is_another_problem() -> None:
    rcu = "WARNING: suspicious RCU usage"
    sleeping = "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:579"
    kasan = "BUG: KASAN: slab-use-after-free in {}+0x10/0x20"
    first, second = problems(f"kteardown: trial 0: x\n{rcu}\nkteardown: trial 1: x\n{sleeping}\n")
    assert (first.trials, second.trials) == ((0,), (1,))
    rule = "=" * 66
    assert len(problems(f"{rule}\n{kasan.format('f')}\n{rule}\n{kasan.format('g')}\n")) == 2


def test_the_log_that_a_panic_prints_again_is_not_read() -> None:
    log = f"[ 0.0] Linux version 6.12\n[ 0.1] {WARNING}\n[ 1.0] kteardown: trial 0: x\n"
    found = problems(
        f"{log}[ 2.0] Kernel panic - not syncing: why\n{log}[ 2.1] ---[ end Kernel panic\n"
    )
    assert [(p.kind, p.trials) for p in found] == [("warning", ()), ("panic", (0,))]


@given(st.text(max_size=400))
def test_any_console_is_read(console: str) -> None:
    for problem in problems(console):
        assert problem.excerpt[0] == problem.line
