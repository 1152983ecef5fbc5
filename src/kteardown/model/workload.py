"""The model of a workload: its parameters, metrics and requirements, read from
``workloads/NAME.toml``."""

import re
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Better = Literal["lower", "higher"]
Reporter = Literal["agent", "kernel", "script"]
Unit = Literal["ns", "kb", "share", "count", "us", "per_s", "per_cycle"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
"""Those of a script are environment variables, which are often written in capitals."""


Word = Annotated[str, Field(pattern=r"^[!-+\--<>-~]+$")]
"""A value in the plan of a guest: without blanks, commas and equals signs."""


MODULE_ALIAS = r"[A-Za-z0-9][A-Za-z0-9_.:,()+-]{0,54}"
"""A name or an alias of a module. The kernel asks for at most 55 characters (MODULE_NAME_LEN)."""
ModuleAlias = Annotated[str, Field(pattern=f"^{MODULE_ALIAS}$")]
MOST_ALIASES = 100
"""That a script may ask for."""

_OF_THE_KERNEL = re.compile(r"\s*(?:last\s+)?(?:mark |delta |/.*/\.\./)", re.DOTALL)
_WHOLE_SCRIPT = "whole_ns"


def unit_of(key: str) -> Unit:
    """Return the unit at the end of a metric's key. Raises ValueError if it has none."""
    units: list[Unit] = [unit for unit in get_args(Unit) if key.endswith(f"_{unit}")]
    if not units:
        raise ValueError(f"{key} does not end in a unit")
    return max(units, key=len)


class StrictModel(BaseModel):
    """Base class of read-only models in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FiniteModel(StrictModel):
    """Base class of models whose numbers are finite."""

    model_config = ConfigDict(allow_inf_nan=False)


class Document(StrictModel, populate_by_name=True, alias_generator=lambda name: name.rstrip("_")):
    """Base class of models that are a JSON document: its key ``schema`` is the field
    ``schema_``."""

    schema_: int = 1


class Parameter(StrictModel):
    """One parameter of a workload: an integer in a range, or one of the words in ``choices``."""

    help: str
    default: int | Word
    min: int = 0
    max: int = 2**31 - 1
    choices: tuple[Word, ...] = ()
    values: tuple[int | Word, ...] = ()
    """Of a script: what ``compare`` measures unless ``--set`` gives others; empty: the default."""
    programs: dict[str, tuple[str, ...]] = {}
    """By choice, programs that the guest needs besides the agent: ``kernels.guest_programs``."""


class Metric(StrictModel):
    """One metric of a workload; its unit is at the end of its key."""

    help: str
    name: str = ""
    """The name for people, such as ``freezing user space``; if it is empty, the key in words."""
    better: Better = "lower"
    unit: Unit = "ns"
    headline: bool = False
    """Shown in the main table; other metrics are in result.json and the table of other metrics."""
    percentiles: tuple[Annotated[float, Field(gt=0, lt=100)], ...] = ()
    """Percentiles of the samples of a boot, for latency metrics, compared in addition to the
    median."""
    decides: dict[str, str] = {}
    """The choice with which this, and no headline metric, has what only that choice adds
    (`try`)."""
    optional: bool = False
    """Only some kernels or settings can provide it; if none does, that is not reported."""
    compare: bool = True
    """False for cross-checks, which are reported but have no verdict."""
    resolution: float = Field(default=0, ge=0)
    """Of a script: the step of what is printed, in the metric's unit; a smaller change has no
    verdict."""
    read: str = ""
    """Of a script: where in what it left behind the values are (``script.extract`` has the
    forms)."""
    reported_by: Literal["agent", "kernel"] = "agent"
    """``kernel``: the judged kernel reads the clock, or prints the number. The agent cannot check
    it."""
    within: str = ""
    """Of such a metric of time: the metric of the agent's own whose time contains it."""

    @property
    def reporter(self) -> Reporter:
        """What made the figure: of a script, the kernel if it is a counter or a time between log
        lines."""
        if not self.read:
            return self.reported_by
        return "kernel" if _OF_THE_KERNEL.match(self.read) else "script"

    @property
    def whole(self) -> str:
        """The metric of the agent's own whose time contains this one; empty if there is none."""
        if self.reporter == "agent":
            return ""
        return self.within or (_WHOLE_SCRIPT if self.read and self.unit in ("ns", "us") else "")


class HistogramSpec(StrictModel):
    """All values of a time, counted in buckets, in addition to the metrics that are computed from
    them.

    Values of all boots are merged and shown but not compared, because only a boot is a replication.
    """

    help: str
    unit: Literal["ns"] = "ns"
    percentiles: tuple[Annotated[float, Field(gt=0, lt=100)], ...] = (50, 90, 99, 99.9)


class Script(StrictModel):
    """A workload that is a script, a C file or a command, which the guest runs on a terminal of its
    own."""

    file: str = ""
    """The script or C file, beside the TOML file; empty if ``command`` is all."""
    command: str = ""
    """A command line for the shell of the guest; empty: ``file`` is run, by the program of its
    first line."""
    arguments: tuple[str, ...] = ()
    """Of ``file``, before the values of the parameters."""
    programs: tuple[str, ...] = ()
    """Programs of this host that the guest has besides those that the text names."""
    files: tuple[str, ...] = ()
    """Further files beside the TOML file, which are in the script's folder in the guest."""
    root: str = ""
    """A folder or a tar archive with the root file system; empty: programs of this host."""
    allow: tuple[Annotated[str, Field(pattern=r"^(exit|signal) [0-9]{1,3}$")], ...] = ()
    """Ways to end besides ``exit 0`` that leave the trial valid."""
    limit_s: float = Field(default=600, gt=0, le=86400)
    """Seconds of the guest after which the script is killed, and the trial failed."""
    modules: tuple[ModuleAlias, ...] = Field(default=(), max_length=MOST_ALIASES)
    """Of a prebuilt kernel: the names and aliases of modules of its package that are loaded before
    the script. A rehearsal finds them."""


class About(StrictModel):
    """What a workload is made to measure. It may execute other code by the way.

    ``try`` prefers it for a patch of this code, however few instructions of it are executed.
    """

    code: tuple[str, ...] = ()
    """Files and folders of the kernel's source; with functions after a colon: ``mm/oom_kill.c``,
    ``kernel/power/``, ``mm/memcontrol.c:*charge*``."""
    system_calls: tuple[str, ...] = ()
    """Their names, such as ``execve``."""


class Contention(StrictModel):
    """What the contention clock counts of a workload."""

    object: str = ""
    """What is counted for one of, such as ``freed page``; empty: one of the parameter ``law``."""
    objects: tuple[int | ParameterName, ...] = ()
    """Their number is the product of these parameters and numbers; empty: ``law`` itself."""
    refused: str = ""
    """Why this clock cannot count the workload; empty: it can."""


class Workload(StrictModel):
    """``workloads/NAME.toml``: what a workload requires and reports.

    Its C files are ``agent/workloads/NAME/`` or ``agent/workloads/NAME.c``, unless it is a script.
    """

    name: Name
    summary: str
    config: tuple[str, ...] = ()
    """Fragments of ``kernels/fragments`` that the kernel needs in addition to
    ``kernels/base.config``.

    A workload that is not shipped may name fragments of its own folder, too.
    """
    silence_s: float = Field(gt=0)
    """Seconds without a record, on hardware, after which the guest counts as hung."""
    cpus: int = Field(default=1, ge=1)
    memory_mb: int = Field(default=256, ge=64)
    law: str = ""
    """The parameter over which a growth law is fitted."""
    about: About = About()
    contention: Contention = Contention()
    profile_ns: int = Field(default=499_979, ge=10_000)
    """The sampling period of each CPU in a profile.

    A sample costs thousands of instructions, so a longer period distorts less. A prime number
    avoids synchronization with the timers of the kernel.
    """
    script: Script | None = None
    """Not None: it is run by the agent's workload ``script``."""
    parameters: dict[ParameterName, Parameter] = {}
    metrics: dict[Name, Metric]
    unused: tuple[Name, ...] = ()
    """What the agent reports and the clock of the run does not use: it is not recorded."""
    histograms: dict[Name, HistogramSpec] = {}
    invariants: dict[Name, str] = {}
    """What the agent checks while it measures, by name; a failed one voids the trial."""
