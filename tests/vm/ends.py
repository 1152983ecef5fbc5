"""The ends of guests whose PID 1 is ``guest_init.c``, and their outcomes, whatever runs the
guest."""

from __future__ import annotations

SILENCE_S = 15.0
"""Until a guest is said to hang: more than a boot takes on a host with a load of 8."""

ENDS: tuple[tuple[str, dict[str, object], str, str], ...] = (
    ("off", {}, "agent-error", "powered off before the agent's bye"),
    ("error", {}, "agent-error", "the plan is empty"),
    ("exit", {}, "agent-error", "the agent exited with 3"),
    ("crash", {}, "agent-error", "the agent was killed by signal 11"),
    ("oom", {}, "oom", "System is deadlocked on memory"),
    ("flood", {}, "agent-error", "the guest wrote a record of more than 1 MB"),
    ("reset", {}, "panic", "the last record was cut after 12 bytes"),
    ("bye", {"kernel_args": ("rdinit=/missing",)}, "panic", "Kernel panic - not syncing"),
    ("hang", {"silence_s": SILENCE_S}, "hang", f"no record for {SILENCE_S:g} s, at ffffffff8"),
)
"""How the guest ends, what is different in its job, its outcome, and what the detail contains."""
