"""The tools: their parameters, and what they say of themselves, which a language model reads.

What they say is fixed: nothing from outside is in it.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from kteardown.errors import KteardownError
from kteardown.visible import on_one_line
from kteardown_mcp import commands, reports
from kteardown_mcp.jobs import Jobs, ServerJob
from kteardown_mcp.roots import Roots

MOST_WAIT_S = 3600
_MOST_LINE = 200
_PROGRESS_S = 0.5
"""At most one line of progress in this time."""

_Path = Annotated[str, Field(max_length=4096)]
_Name = Annotated[str, Field(max_length=200)]
_Sources = Annotated[
    list[_Path],
    Field(
        max_length=commands.MOST_SOURCES,
        description="Kernels: debian:6.12 is built from source with Debian's patches, "
        "debian-image:6.12 is the distribution's own and is not built, kernel.org:6.12.1, "
        "git:PATH@REV, image:FILE, tar:FILE. Empty: the default.",
    ),
]
_Source = Annotated[_Path, Field(description="One kernel, written as in `source` of try_patch.")]
_Wait = Annotated[
    float,
    Field(
        ge=0,
        le=MOST_WAIT_S,
        description="Seconds to wait for the end. After that the job goes on, and job_result "
        "waits again. Keep it below the time limit of your client: a client that gives up cancels "
        "the request, and with it the job.",
    ),
]
_ScriptPath = Annotated[
    _Path, Field(description="A shell script or C file below a root. It gets no other file.")
]
_ScriptText = Annotated[
    str,
    Field(
        max_length=commands.MOST_SCRIPT,
        description="The text of a script or C program. It is root in a guest without network. "
        "$N (getenv in C) is the number of objects that it makes.",
    ),
]
_Language = Annotated[Literal["sh", "c"], Field(description="The language of script_text.")]
_Workload = Annotated[_Name, Field(description="A shipped workload, such as zombies or masskill.")]
_Sizes = Annotated[
    list[int],
    Field(
        max_length=commands.MOST_SIZES,
        description="Values of N. Three or more show whether a cost grows; six give the law an "
        "interval. Empty: kteardown chooses six.",
    ),
]
_At = Annotated[
    str,
    Field(
        max_length=1000,
        description="A place in the JSON: names and numbers with slashes, such as "
        "runs/0/results/instructions/laws. Empty: the headline, the page and a short form.",
    ),
]
_JobId = Annotated[_Name, Field(description="The id of a job, such as job-1.")]


@contextmanager
def _errors() -> Iterator[None]:
    """Turn an error of kteardown into one that the client sees."""
    try:
        yield
    except KteardownError as error:
        message = on_one_line(error.message)
        end = "" if message.endswith(("?", ".")) else "."
        raise ToolError(f"{message}{end} What to do: {error.hint}") from error


class Tools:
    """The functions of the tools. Their parameters are checked before they are called."""

    def __init__(self, roots: Roots, jobs: Jobs) -> None:
        self._roots = roots
        self._jobs = jobs

    @property
    def long(self) -> list[Callable[..., Any]]:
        """Those that start a job."""
        return [self.try_patch, self.measure, self.compare, self.hunt_kind, self.bisect]

    @property
    def short(self) -> list[Callable[..., Any]]:
        """Those that change nothing but a job."""
        return [self.job_state, self.job_result, self.cancel_job, self.list_runs, self.read_run]

    async def try_patch(
        self,
        ctx: Context,
        path: Annotated[_Path, Field(description="A mail, mbox or diff below a root.")] = "",
        mail: Annotated[
            str, Field(max_length=commands.MOST_MAIL, description="Its text, instead of a path.")
        ] = "",
        source: _Sources = [],  # noqa: B006
        quick: Annotated[bool, Field(description="Few boots; false: the whole design.")] = True,
        dry_run: Annotated[
            bool, Field(description="Only say what would be done; build and boot nothing.")
        ] = False,
        wait_s: _Wait = 45,
    ) -> dict[str, Any]:
        """Measure what a kernel patch from a mail does to teardown: killing, freezing, freeing.

        kteardown finds the kernel to which the patch applies and the workloads that execute what it
        changes, builds both kernels in a sandbox, boots them in QEMU and compares instruction
        counts. Use it to check a performance claim of a commit log, or to see whether a patch makes
        teardown worse. dry_run takes seconds and says which kernel and workloads fit. A whole try
        takes one to thirty minutes, most of it for kernels that are not built yet.

        The verdict of a metric is better, worse, same or inconclusive, with an interval. Exit code
        7: nothing of the patch is in the built kernel; 8: no workload executes it, so write a
        script that does, and use compare. Neither says that the patch has no effect.
        """
        with _errors():
            command = commands.try_patch(self._roots, path, mail, source, not quick, dry_run)
        return await self._job("try_patch", command, wait_s, ctx)

    async def measure(
        self,
        ctx: Context,
        script_path: _ScriptPath = "",
        script_text: _ScriptText = "",
        language: _Language = "sh",
        workload: _Workload = "",
        sizes: _Sizes = [],  # noqa: B006
        source: _Sources = [],  # noqa: B006
        seeds: Annotated[int | None, Field(ge=1, le=20, description="Boots of each size.")] = None,
        wait_s: _Wait = 45,
    ) -> dict[str, Any]:
        """Measure what a script, a C program or a shipped workload costs on a kernel.

        Give one of script_path, script_text and workload. The answer says what one object more (N)
        costs, by which growth law, and in which kernel functions the script waits or uses the CPU.
        Use it for "is this linear or quadratic?", "why does it hang?" and "is 7.3 slower than
        6.12?": with several kernels the others are compared with the first. Without source it is
        debian-image:6.12, which is not built. A small script takes one to five minutes.
        """
        with _errors():
            what = commands.AskedWorkload(script_path, script_text, language, workload)
            command = commands.measure(self._roots, what, sizes, source, seeds)
        return await self._job("measure", command, wait_s, ctx)

    async def compare(
        self,
        ctx: Context,
        workload: _Workload = "",
        script_path: _ScriptPath = "",
        script_text: _ScriptText = "",
        language: _Language = "sh",
        sizes: _Sizes = [],  # noqa: B006
        patch_path: Annotated[
            _Path, Field(description="An mbox, mail or diff below a root: the change.")
        ] = "",
        patch_text: Annotated[
            str, Field(max_length=commands.MOST_MAIL, description="Its text, instead of a path.")
        ] = "",
        series: Annotated[_Name, Field(description="A shipped series, instead of a patch.")] = "",
        tree: Annotated[
            _Path, Field(description="A git tree below a root, instead of a patch.")
        ] = "",
        base: Annotated[_Name, Field(description="With tree: where the branch begins.")] = "",
        topic: Annotated[_Name, Field(description="With tree: the branch or commit.")] = "",
        source: _Source = "",
        quick: Annotated[bool, Field(description="Few boots; false: the whole design.")] = True,
        wait_s: _Wait = 45,
    ) -> dict[str, Any]:
        """Compare a changed kernel with its base, on a workload or script that you choose.

        Use it for a patch or a branch if you know what to run; try_patch chooses by itself. A patch
        needs source, the base kernel; a branch of a tree has its own. Both kernels are built: one
        to thirty minutes. Each metric gets a verdict (better, worse, same, inconclusive) and an
        interval. Exit code 6: the changed kernel crashes or hangs where base does not.
        """
        with _errors():
            what = commands.AskedWorkload(script_path, script_text, language, workload)
            change = commands.AskedChange(patch_path, patch_text, series, tree, base, topic)
            command = commands.compare(self._roots, what, change, source, sizes, not quick)
        return await self._job("compare", command, wait_s, ctx)

    async def hunt_kind(
        self,
        ctx: Context,
        kinds: Annotated[
            list[_Name],
            Field(
                min_length=1,
                max_length=commands.MOST_KINDS,
                description="Names of kinds of kernel objects, such as files or mounts. A wrong "
                "name gives an error with similar names.",
            ),
        ],
        source: _Source = "",
        wait_s: _Wait = 45,
    ) -> dict[str, Any]:
        """Ask whether releasing many kernel objects of a kind costs more than in proportion.

        Each kind makes files with locks, mounts, timers and the like in a guest, and releases them
        in several ways. The answer names costs that grow faster than the number of objects, and the
        function whose time grows. One kind takes one to five minutes with a kernel that is built.
        """
        with _errors():
            command = commands.hunt_kind(self._roots, kinds, source)
        return await self._job("hunt_kind", command, wait_s, ctx)

    async def bisect(
        self,
        ctx: Context,
        tree: Annotated[_Path, Field(description="A git tree of Linux below a root.")],
        good: Annotated[_Name, Field(description="The earlier commit, tag or branch.")],
        bad: Annotated[_Name, Field(description="The later one.")],
        workload: _Workload = "",
        script_path: _ScriptPath = "",
        script_text: _ScriptText = "",
        language: _Language = "sh",
        sizes: _Sizes = [],  # noqa: B006
        wait_s: _Wait = 45,
    ) -> dict[str, Any]:
        """Find the commits between two that made a workload or script better or worse.

        Every step builds a kernel, so this takes from half an hour to many hours: measure both ends
        first, with measure and two kernels of the tree, to see that they differ.
        """
        with _errors():
            what = commands.AskedWorkload(script_path, script_text, language, workload)
            command = commands.bisect(self._roots, what, tree, good, bad, sizes)
        return await self._job("bisect", command, wait_s, ctx)

    async def job_state(self, job: _JobId) -> dict[str, Any]:
        """Say at once whether a job waits, runs or has ended, and what it printed last."""
        with _errors():
            return reports.of_job(self._jobs.named(job), self._jobs)

    async def job_result(
        self, ctx: Context, job: _JobId, at: _At = "", wait_s: _Wait = 45
    ) -> dict[str, Any]:
        """Wait for a job, and return its answer, or a part of its JSON.

        If a list or text is cut, `is_cut` is true: ask again with `at` for what is left out. To
        cancel this call does not cancel the job.
        """
        with _errors():
            found = self._jobs.named(job)
            await self._jobs.wait(found, wait_s, _progress(ctx))
            return reports.of_job(found, self._jobs, at)

    async def cancel_job(self, job: _JobId) -> dict[str, Any]:
        """Stop a job: its guests and builds end. What a run has measured is kept."""
        with _errors():
            found = self._jobs.named(job)
            self._jobs.cancel(found)
            await self._jobs.wait(found, 30, _nothing)
            return reports.of_job(found, self._jobs)

    async def list_runs(
        self, newest: Annotated[int, Field(ge=1, le=100, description="How many.")] = 20
    ) -> dict[str, Any]:
        """List the runs of this user, the newest first: id, when, kernels, the result in a line.

        Runs are kept on disk, also those of other sessions and of the command line.
        """
        with _errors():
            listed = await self._jobs.read(commands.list_runs())
            return reports.listed(listed, newest)

    async def read_run(
        self,
        run: Annotated[_Name, Field(description="The id of a run, or last.")],
        part: Annotated[
            Literal["page", "json", "boots", "console"],
            Field(
                description="page: the report as text; json: the place `at` of its JSON; boots: "
                "each boot and how it ended; console: what the kernel of `boot` printed."
            ),
        ] = "page",
        at: _At = "",
        boot: Annotated[int, Field(ge=0, le=1_000_000, description="For console.")] = 0,
    ) -> dict[str, Any]:
        """Read a run that is kept: its report, figures, boots, or the console of a boot.

        It measures nothing and takes seconds. Use it to compare with earlier results, and to see
        why a boot failed.
        """
        with _errors():
            if part == "page":
                return reports.printed_text(await self._jobs.read(commands.page(run)))
            if part == "console":
                shown = await self._jobs.read(commands.console(run, boot))
                return reports.printed_text(shown, end=True)
            command = commands.report(run) if part == "json" else commands.boots(run)
            return reports.printed_json(await self._jobs.read(command), at)

    async def _job(
        self, tool: str, command: commands.ToolCommand, wait_s: float, ctx: Context
    ) -> dict[str, Any]:
        """Start a job and wait for it. If the request is cancelled, so is the job."""
        with _errors():
            job: ServerJob = self._jobs.start(tool, command)
        try:
            await self._jobs.wait(job, wait_s, _progress(ctx))
        except anyio.get_cancelled_exc_class():
            self._jobs.cancel(job)
            raise
        return reports.of_job(job, self._jobs, "")


def _progress(ctx: Context) -> Callable[[float, str], Awaitable[None]]:
    """Return what reports the seconds and one line. The line may have words from outside."""

    last = 0.0

    async def report(seconds: float, line: str) -> None:
        nonlocal last
        if time.monotonic() - last < _PROGRESS_S:
            return
        last = time.monotonic()
        await ctx.report_progress(round(seconds, 1), None, on_one_line(line)[:_MOST_LINE])

    return report


async def _nothing(_seconds: float, _line: str) -> None:
    return
