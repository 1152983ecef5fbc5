"""The models of a record: one line of NDJSON, from the agent or from the lab.

The agent writes ``hello``, ``settled``, ``trial_start``, ``sample``, ``histogram``, ``check``,
``alive``, ``trial_end``, ``error`` and ``bye``, of a sampled trial also ``profile`` and ``stack``,
of a script ``output``, ``delta`` and ``ended``, of which the lab makes samples, and of a sampled
script ``waits`` and ``wait``. On the contention clock the lab makes the samples of what QEMU
counts, and adds ``sharing``. The lab adds
``boot_start`` and ``boot_end`` around them, puts ``boot`` and ``attempt`` on every line, and
completes ``trial_start`` (the values of the swept machine) and ``trial_end`` (``at_s``, ``lost``).
Samples are stored unchanged; nothing is averaged.

docs/formats.md says which records count ("Which records count"), and ``rundir.counting`` applies
it.

Fields with a default of None or an empty value are newer than the first records, which do not have
them.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from kteardown.model.record_fields import Count, Float, Int, OpenModel, RecordFields, Value
from kteardown.model.script_records import Scripted, Waited
from kteardown.model.sharing import Sharing

Outcome = Literal["ok", "panic", "hang", "oom", "agent-error", "infrastructure-error"]
ProblemKind = Literal["panic", "oops", "lockdep", "leak", "corruption", "stall", "warning"]
OUTCOMES: tuple[Outcome, ...] = (
    "ok",
    "panic",
    "hang",
    "oom",
    "agent-error",
    "infrastructure-error",
)
BASE = "base"
"""The name in the records of the kernel that the others are compared with."""
TWIN = "base-twin"
"""The same kernel once more: a difference between the two is noise."""
LAYOUT = "base-layout"
"""Base with a function that is never called: a difference is an effect of code layout."""
NOT_VARIANTS = (BASE, TWIN, LAYOUT)


def _moment(text: str) -> str:
    if text and not 1970 <= datetime.fromisoformat(text).year < 2200:
        raise ValueError("not a time of this or the next century")
    return text


class BootStart(RecordFields):
    """The lab is about to boot ``kernel`` (``base``, ``base-twin`` or a variant)."""

    type: Literal["boot_start"] = "boot_start"
    kernel: str
    block: Count
    seed: Int
    acceleration: str
    host_load: Float
    started_at: Annotated[str, AfterValidator(_moment)]
    """Host time, ISO 8601. Never part of a result."""
    session: Count = 0
    """The index of the session of the run (environment.json) that booted it."""
    machine: dict[str, Int] = Field(default={})
    """The values of the swept machine parameters, such as ``{"possible_cpus": 32}``."""
    lost_limit: Float | None = None
    """The share of its time above which a trial that lost it is disturbed; None: there is no
    limit."""
    node: str = ""
    """The node of a cluster that booted it; empty if it was the machine of the session."""
    job: str = ""
    """The name of the execution of a job on that node (``kteardown_cluster.journal``)."""


class KernelProblem(OpenModel):
    """A problem that the kernel reported in its log: ``line`` is the first line of the report.

    ``signature`` is what two reports of the same problem have in common, in another boot or kernel.
    ``trials`` are the trials in which it was reported, by index; empty if it was before the first
    one. ``excerpt`` is the report, up to 40 lines; lines of a stack have their source line added if
    the kernel's line table is known.
    """

    kind: ProblemKind
    line: str
    signature: str = ""
    trials: tuple[Int, ...] = ()
    excerpt: tuple[str, ...] = ()


class Placed(OpenModel):
    """Where on the host a guest ran under KVM.

    ``vcpus`` are the CPUs of the host for the virtual CPUs, each of a core of its own, whose other
    CPUs are ``siblings``; ``others`` those for QEMU's other threads; all are of ``node``. Empty and
    None if the host has too few cores. ``memory`` says in words what the guest's memory was made
    of.
    """

    vcpus: tuple[Int, ...] = ()
    siblings: tuple[Int, ...] = ()
    others: tuple[Int, ...] = ()
    node: Int | None = None
    memory: str = ""


class BootEnd(RecordFields):
    """How the boot ended; ``duration_s`` and ``first_record_s`` are host seconds from its start.

    ``problems`` are those that the kernel reported in its log, whatever the outcome. ``last_lines``
    is the end of the console of a boot that was not ok; of a hung guest, the stacks of its CPUs.
    """

    type: Literal["boot_end"] = "boot_end"
    outcome: Outcome
    detail: str = ""
    duration_s: Float
    first_record_s: Float | None
    command: list[str]
    host_load: Float
    peak_rss_kb: Int | None = None
    """The largest memory of the host that QEMU used at once; None if it was not recorded."""
    problems: tuple[KernelProblem, ...] = ()
    last_lines: tuple[str, ...] = ()
    placed: Placed | None = None
    """None under emulation, and in records of older versions."""
    kept_from: str = ""
    """When the equal boot was run of which these are the records (``run.repeat``); empty if this
    one was."""
    forged: bool = False
    """The guest sent a record that the agent would not have sent: nothing of the boot counts."""


class Hello(RecordFields):
    """The guest as its kernel describes it, before the first trial.

    Counts are 0 if the kernel does not report them. ``mitigations`` are those for vulnerabilities
    of the CPU, as the kernel of the guest reports them. ``debug`` names features that the kernel
    reported at boot and that add overhead everywhere (``lockdep``, ``kasan``, ``init_on_alloc``).
    """

    type: Literal["hello"] = "hello"
    protocol: Int
    release: str
    version: str
    machine: str
    cpus_online: Int
    cpus_possible: Int
    memory_kb: Int
    cmdline: str
    clocksource: str = ""
    """At the start of the agent; on x86 often not yet the one of the trials."""
    banner: str = ""
    """The complete version string of the kernel, including the compiler."""
    cpu_model: str = ""
    hypervisor: str = ""
    """The CPUID signature, such as ``KVMKVMKVM`` or ``TCGTCGTCGTCG``."""
    packages: Int = 0
    cores: Int = 0
    nodes: Int = 0
    """NUMA nodes that are online."""
    page_size: Int = 0
    mitigations: dict[str, str] = Field(default={})
    debug: tuple[str, ...] = ()


class Settled(RecordFields):
    """The final clock source and timer resolution of the guest, which time the trials."""

    type: Literal["settled"] = "settled"
    clocksource: str
    resolution_ns: Int


class TrialStart(RecordFields):
    """A trial begins; ``params`` has every parameter of its point, those of the swept machine
    included."""

    type: Literal["trial_start"] = "trial_start"
    trial: Count
    workload: str
    params: dict[str, Int | str]


class Sample(RecordFields):
    """One measured value of ``metric``, in the unit at the end of its name."""

    type: Literal["sample"] = "sample"
    trial: Count
    repetition: Count
    metric: str
    value: Value
    warmup: bool = False


class Buckets(RecordFields):
    """All values of ``metric`` in a repetition, counted in buckets; several lines of one metric add
    up.

    A bucket is its lowest value and the number of values. There are 2 ** ``bits`` buckets for each
    power of two; each value below 2 ** (``bits`` + 1) has its own bucket. ``analysis.dataset``
    reads them.
    """

    type: Literal["histogram"] = "histogram"
    trial: Count
    repetition: Count
    metric: str
    bits: Annotated[int, Field(ge=1, le=32)]
    buckets: tuple[
        tuple[Annotated[int, Field(ge=0, lt=2**63)], Annotated[int, Field(ge=1, lt=2**63)]], ...
    ]
    warmup: bool = False


class Check(RecordFields):
    """An invariant that the agent checked while it measured; a failed one voids the trial."""

    type: Literal["check"] = "check"
    trial: Count
    repetition: Count
    name: str
    ok: bool
    detail: str = ""


class LostTime(OpenModel):
    """What the host took from a trial in real time, in seconds; None where the host has no such
    counter.

    ``run_delay_s``: a virtual CPU was runnable and the host ran something else, beyond what an idle
    host needs to wake it; of the virtual CPU that waited most. ``steal_s``: a hypervisor under the
    host ran something else; of the CPU of the host that lost most, and at least, since it is
    counted in clock ticks. ``throttled_s``: the CPU quota of our control group was used up.
    ``hot_s``: a CPU had a lower frequency because of its temperature.
    """

    elapsed_s: Float
    run_delay_s: Float | None = None
    steal_s: Float | None = None
    throttled_s: Float | None = None
    hot_s: Float | None = None

    @property
    def share(self) -> float:
        """Return the lost time as a share of the trial, at most 1."""
        # A thread that is throttled counts as runnable as well, so of these two the larger is
        # taken.
        waited = max(self.run_delay_s or 0.0, self.throttled_s or 0.0) + (self.steal_s or 0.0)
        return min(1.0, max(waited, self.hot_s or 0.0) / self.elapsed_s) if self.elapsed_s else 0.0


class TrialEnd(RecordFields):
    """``void``: an invariant failed, so the samples must not be used. ``failed``: it could not
    run."""

    type: Literal["trial_end"] = "trial_end"
    trial: Count
    status: Literal["ok", "void", "failed"]
    detail: str = ""
    at_s: Float | None = None
    """Host seconds since this attempt started its machine, added by the lab. Never part of a
    result."""
    lost: LostTime | None = None
    """Added by the lab in real time; None on the instruction clock, to which the host does not
    matter."""
    disturbed: str = ""
    """Why the lab does not use a trial that ended ok: it lost more time than the limit of its
    boot."""


class ProfileStretch(RecordFields):
    """One sampled stretch: a repetition, or the part of it that the workload's profile is about.

    It took ``stretch_ns``. ``samples`` were taken every ``period_ns`` on each of ``cpus``; ``lost``
    more did not fit into the buffer.
    """

    type: Literal["profile"] = "profile"
    trial: Count
    repetition: Count
    period_ns: Int
    stretch_ns: Int
    cpus: Int
    samples: Int
    lost: Int


class Stack(RecordFields):
    """``count`` samples of a stretch with the same stack, ``outermost;...;innermost``.

    ``ns`` is the time that they represent: for each, the time since the previous sample of its CPU.
    """

    type: Literal["stack"] = "stack"
    trial: Count
    repetition: Count
    stack: str
    count: Int
    ns: Int


class AgentError(RecordFields):
    """The agent cannot continue: a bad plan, a missing file, a failed mount."""

    type: Literal["error"] = "error"
    detail: str


class Bye(RecordFields):
    """The agent ran its whole plan and powers off."""

    type: Literal["bye"] = "bye"
    trials: Int


class Alive(RecordFields):
    """The guest is slow but not hung; ``detail`` is what the trial does now."""

    type: Literal["alive"] = "alive"
    trial: Count
    detail: str = ""


Sampled = ProfileStretch | Stack
Measured = Sample | Buckets | Check
AgentRecord = (
    Hello | Settled | TrialStart | Measured | Alive | Sampled | TrialEnd | AgentError | Bye
)
Record = Annotated[
    BootStart | BootEnd | AgentRecord | Scripted | Waited | Sharing, Field(discriminator="type")
]
_adapter: TypeAdapter[Record] = TypeAdapter(Record)


def parse(raw: bytes | str) -> Record:
    """Parse one line. Raises ``pydantic.ValidationError`` (a ValueError) if it is not a record."""
    return _adapter.validate_json(raw, strict=True)
