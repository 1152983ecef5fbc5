"""The tools: their parameters, and what they say of themselves, which a language model reads.

What they say is fixed: nothing from outside is in it.
"""

import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, cast

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from kteardown.errors import KteardownError
from kteardown.visible import on_one_line
from kteardown_mcp import commands, outside, reports
from kteardown_mcp.jobs import Jobs, ServerJob
from kteardown_mcp.roots import Roots

MOST_WAIT_S = 3600
MOST_KINDS = 5
_MOST_LINE = 200
_PROGRESS_S = 0.5
"""At most one line of progress in this time."""

_Path = Annotated[str, Field(max_length=4096)]
_Name = Annotated[str, Field(max_length=200)]
_SOURCES = (
    "debian:6.12 is built from source with Debian's patches, debian-image:6.12 is the "
    "distribution's own and is not built, kernel.org:6.12.1, git:PATH@REV, image:FILE, tar:FILE."
)
_Sources = Annotated[
    list[_Path],
    Field(max_length=4, description=f"Kernels: {_SOURCES} Empty: the default."),
]
_Source = Annotated[_Path, Field(description=f"A kernel: {_SOURCES} Empty: the default.")]
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
_Workload = Annotated[
    _Name,
    Field(description="A shipped workload, such as zombies or masskill, instead of a script."),
]
_Sizes = Annotated[
    list[Annotated[int, Field(ge=1, le=1_000_000)]],
    Field(
        max_length=12,
        description="Values of N of a script, from 1 to 1,000,000. Three or more show whether a "
        "cost grows; six give the law an interval. Empty: kteardown chooses six. A shipped "
        "workload has its own.",
    ),
]
_Quick = Annotated[
    bool, Field(description="true: few boots. false: all boots of the design, much slower.")
]
_At = Annotated[
    str,
    Field(
        max_length=1000,
        description="A place in the JSON: names and numbers with slashes, such as "
        "runs/0/results/instructions/laws. A slash in a name is ~1. Empty: all, in a short form.",
    ),
]
_Start = Annotated[
    int | None,
    Field(
        description="Where to begin in a long text or list: the number of its character or item. "
        "Negative: so many before its end. Default: 0, or the end of a console.",
    ),
]
_JobId = Annotated[_Name, Field(description="The id of a job, as the call that started it said.")]


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
            str,
            Field(max_length=commands.MOST_MAIL, description="The text of a mail, mbox or diff."),
        ] = "",
        source: _Sources = [],  # noqa: B006
        quick: _Quick = True,
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
        seeds: Annotated[int | None, Field(ge=1, le=20, description="Boots at each size.")] = None,
        wait_s: _Wait = 45,
    ) -> dict[str, Any]:
        """Measure what a script, a C program or a shipped workload costs on a kernel.

        Give one of script_path, script_text and workload. The answer says what one object more (N)
        costs, by which growth law, and in which kernel functions the script waits or uses the CPU.
        Use it for "is this linear or quadratic?", "why does it hang?" and "is 7.3 slower than
        6.12?": with several kernels the others are compared with the first. Without source it is
        debian-image:6.12, which is not built. A small script takes one to eight minutes.
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
            str,
            Field(max_length=commands.MOST_MAIL, description="The text of an mbox, mail or diff."),
        ] = "",
        series: Annotated[
            _Name,
            Field(description="A shipped series, such as freezer-skip-exited: the change."),
        ] = "",
        tree: Annotated[
            _Path, Field(description="A git tree below a root, with the change from base to topic.")
        ] = "",
        base: Annotated[_Name, Field(description="The commit of tree without the change.")] = "",
        topic: Annotated[_Name, Field(description="The commit of tree with the change.")] = "",
        source: _Source = "",
        quick: _Quick = True,
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
                max_length=MOST_KINDS,
                description="Names of kinds of kernel objects, such as flocks or mounts_stacked. "
                "A name that is no kind, such as files, gives an error with the kinds like it.",
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
            listed = await self._jobs.read(commands.list_kinds())
            if listed.exit_code != 0:
                return _failed(listed)
            known = reports.listed_kinds(listed)
            command = commands.hunt_kind(self._roots, kinds, known, source)
        return await self._job("hunt_kind", command, wait_s, ctx)

    async def bisect(
        self,
        ctx: Context,
        tree: Annotated[_Path, Field(description="A git tree of Linux below a root.")],
        good: Annotated[_Name, Field(description="A commit, tag or branch without the change.")],
        bad: Annotated[_Name, Field(description="A later commit, tag or branch with the change.")],
        workload: _Workload = "",
        script_path: _ScriptPath = "",
        script_text: _ScriptText = "",
        language: _Language = "sh",
        sizes: _Sizes = [],  # noqa: B006
        wait_s: _Wait = 45,
    ) -> dict[str, Any]:
        """Find the commits between two that made a workload or script better or worse.

        Every step builds a kernel, so this takes from half an hour to many hours, and the server
        stops a job after some hours: call bisect again in the same way, and it goes on. Measure
        both ends first, with measure and two kernels of the tree, to see that they differ.
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
        self, ctx: Context, job: _JobId, at: _At = "", start: _Start = None, wait_s: _Wait = 45
    ) -> dict[str, Any]:
        """Wait for a job, and return its answer, or a part of its JSON.

        If something is left out, ask again with `at`, and with `start` if it is a long text or
        list. `start` alone reads on in the page. To cancel this call does not cancel the job.
        """
        with _errors():
            found = self._jobs.named(job)
            await self._jobs.wait(found, wait_s, _progress(ctx))
            report = reports.of_job(found, self._jobs)
            if at or start is not None:
                return report | reports.answer_at(found, at, start or 0)
            return report | reports.answer(found)

    async def cancel_job(self, job: _JobId) -> dict[str, Any]:
        """Stop a job: its guests and builds end. What a run has measured is kept."""
        with _errors():
            found = self._jobs.named(job)
            self._jobs.cancel(found)
            await self._jobs.wait(found, 30, _nothing)
            return reports.of_job(found, self._jobs)

    async def list_runs(
        self,
        newest: Annotated[int, Field(ge=1, le=100, description="How many of the newest.")] = 20,
    ) -> dict[str, Any]:
        """List the runs of this user, the newest first: id, when, kernels, the result in a line.

        Runs are kept on disk, also those of other sessions and of the command line.
        """
        with _errors():
            listed = await self._jobs.read(commands.list_runs())
            return reports.listed(listed, newest) if listed.exit_code == 0 else _failed(listed)

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
        start: _Start = None,
        boot: Annotated[
            int, Field(ge=0, le=1_000_000, description="The number of a boot, for its console.")
        ] = 0,
    ) -> dict[str, Any]:
        """Read a run that is kept: its report, figures, boots, or the console of a boot.

        It measures nothing and takes seconds. Use it to compare with earlier results, and to see
        why a boot failed.
        """
        with _errors():
            read = await self._jobs.read(commands.read_run(run, part, boot))
            if read.exit_code != 0:
                return _failed(read)
            if part == "console" and start is None:
                start = -outside.MOST_PAGE
            if part in ("page", "console"):
                return reports.printed_text(read, start or 0)
            return reports.printed_json(read, at, start or 0)

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
        return reports.of_job(job, self._jobs) | reports.answer(job)


def _failed(job: ServerJob) -> dict[str, Any]:
    """Return the error of a tool whose command failed. What the command printed is marked."""
    report = reports.ending(job)
    content = TextContent(text=json.dumps(report, indent=2, ensure_ascii=False))
    error = CallToolResult(content=[content], structured_content=report, is_error=True)
    # The SDK returns it as it is, whatever else the tool returns.
    return cast(dict[str, Any], error)


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
