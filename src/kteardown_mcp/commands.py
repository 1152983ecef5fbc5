"""The commands of the tools: each is built from typed values, and never from free text.

A text is checked by what it may be. None can begin with a hyphen, so none is read as an option,
and there is no tool for --unsafe-build, --own, --on or any other option that is not here. The
parameters of ``tools`` limit numbers and how many items a list has.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import InputError
from kteardown.inputs.load import workload_names
from kteardown.kernels.series import known_series
from kteardown_mcp.outside import quoted
from kteardown_mcp.roots import Roots

MOST_MAIL = 32_000_000
"""Bytes. kteardown reads no larger mail."""
MOST_SCRIPT = 1_000_000
_RELEASE = re.compile(r"(debian|debian-image|kernel\.org):[0-9][0-9A-Za-z.~+-]{0,60}")
_FILE = re.compile(r"(image|tar):(.+)")
_TREE = re.compile(r"git:(.+?)(?:@([^@]+))?")
_REVISION = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_./^~+-]{0,199}")
_RUN = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.+@-]{0,120}(/(wall|instructions|contention))?")


@dataclass(frozen=True)
class GivenFile:
    """A file that is written for the job; the command has its path."""

    name: str
    content: bytes
    shown: str
    """What the command is shown with: the path that the client named."""


@dataclass(frozen=True)
class NamedPath:
    """A word of the command with a path below a root, which kteardown opens by itself."""

    option: str
    path: str
    """As the client named it."""
    find: Callable[[str], Path]
    """Checks the path. A job may wait for hours, so this is called again when it begins."""
    revision: str = ""

    @property
    def shown(self) -> str:
        return f"{self.option}{self.path}{self.revision}"

    def word(self) -> str:
        """Return the word with an absolute path. Raises InputError if the path is refused."""
        return f"{self.option}{self.find(self.path)}{self.revision}"


Word = str | GivenFile | NamedPath


@dataclass(frozen=True)
class ToolCommand:
    """A command of kteardown without the program, and where it writes its JSON."""

    words: tuple[Word, ...]
    json: bool = True
    """Whether it takes ``--json FILE``."""
    boots: bool = True
    """Whether it may build or boot kernels, so that it waits for its turn."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The words for a person, with the paths that the client named."""
        return tuple(word if isinstance(word, str) else word.shown for word in self.words)

    @property
    def command(self) -> str:
        return shlex.join(["kteardown", *self.shown])


def try_patch(
    roots: Roots, path: str, mail: str, source: Sequence[str], full: bool, dry_run: bool
) -> ToolCommand:
    """Return the command that tries the patch of a mail. Raises InputError."""
    placed = _given(roots, path, mail, "mail.mbox", MOST_MAIL, ("path", "mail"))
    flags = [*(["--full"] if full else []), *(["--dry-run"] if dry_run else [])]
    return ToolCommand(("try", placed, *_sources(roots, source), *flags), boots=not dry_run)


def measure(
    roots: Roots,
    what: "AskedWorkload",
    sizes: Sequence[int],
    source: Sequence[str],
    seeds: int | None,
) -> ToolCommand:
    """Return the command that measures a workload on kernels. Raises InputError."""
    counts = [f"--seeds={seeds}"] if seeds else []
    words = [*_sources(roots, source), *_sizes(what, sizes), *counts]
    return ToolCommand(("measure", what.word(roots), *words))


def compare(
    roots: Roots,
    what: "AskedWorkload",
    change: "AskedChange",
    source: str,
    sizes: Sequence[int],
    full: bool,
) -> ToolCommand:
    """Return the command that compares a change with its base. Raises InputError."""
    words = [*change.words(roots, source), *_sizes(what, sizes), *([] if full else ["--quick"])]
    return ToolCommand(("compare", what.word(roots), *words))


def hunt_kind(
    roots: Roots, kinds: Sequence[str], known: Mapping[str, str], source: str
) -> ToolCommand:
    """Return the command that hunts a few kinds; ``known``: the part of the catalogue by kind.

    kteardown takes parts, too, and pieces of names. Here a part would take hours. Raises
    InputError.
    """
    for kind in kinds:
        if kind not in known:
            like = [name for name in known if kind and kind in (known[name], *name.split("_"))]
            raise InputError.unknown(f"there is no kind {quoted(kind)}", kind, like or known)
    kernel = _sources(roots, [source]) if source else []
    return ToolCommand(("hunt", f"--kinds={','.join(kinds)}", *kernel))


def bisect(
    roots: Roots, what: "AskedWorkload", tree: str, good: str, bad: str, sizes: Sequence[int]
) -> ToolCommand:
    """Return the command that finds the commit of a change between two. Raises InputError."""
    ends = [f"--good={_revision(good)}", f"--bad={_revision(bad)}"]
    source = _below(roots.tree, "--source=git:", tree)
    return ToolCommand(("bisect", what.word(roots), source, *ends, *_sizes(what, sizes), "--quick"))


def list_kinds() -> ToolCommand:
    return ToolCommand(("list", "kinds", "--json"), json=False)


def list_runs() -> ToolCommand:
    return ToolCommand(("list", "runs", "--json"), json=False)


def read_run(run: str, part: str, boot: int) -> ToolCommand:
    """Return the command that prints a part of a run: its ``page``, ``json``, ``boots``, or the
    ``console`` of a boot. Raises InputError."""
    verb, *options = {
        "page": ("report",),
        "json": ("report", "--format=json"),
        "boots": ("show", "--json"),
        "console": ("show", f"--console={boot}"),
    }[part]
    return ToolCommand((verb, run_name(run), *options), json=False)


def run_name(run: str) -> str:
    """Return the name of a run. Raises InputError: it is no path."""
    return _fitting(_RUN, run, "the name of a run, as list_runs gives it, or `last`")


@dataclass(frozen=True)
class AskedWorkload:
    """What is executed in the guests: a script or C file by its path or text, or a shipped
    workload."""

    path: str = ""
    text: str = ""
    language: str = "sh"
    workload: str = ""

    def word(self, roots: Roots) -> str | GivenFile:
        """Return the argument for it. Raises InputError."""
        if not self.workload:
            names = ("script_path", "script_text", "workload")
            name = f"script.{self.language}"
            return _given(roots, self.path, self.text, name, MOST_SCRIPT, names)
        if self.path or self.text:
            raise InputError("a workload and a script are given", hint="give one of them.")
        if self.workload not in workload_names():
            raise InputError.unknown(
                f"there is no workload {quoted(self.workload)}", self.workload, workload_names()
            )
        return self.workload


@dataclass(frozen=True)
class AskedChange:
    """What is compared with base: a series by path, text or shipped name, or a branch of a tree."""

    path: str = ""
    text: str = ""
    series: str = ""
    tree: str = ""
    base: str = ""
    topic: str = ""

    def words(self, roots: Roots, source: str) -> list[Word]:
        """Return the options for it, with that of the source of base. Raises InputError."""
        if self.tree:
            if self.path or self.text or self.series or source:
                raise InputError(
                    "a branch of a tree is given, and also a series or a source",
                    hint="give tree, base and topic alone: base is then the source.",
                )
            branch = f"{_revision(self.base)}..{_revision(self.topic)}"
            return [_below(roots.tree, "--source=git:", self.tree), f"--branch={branch}"]
        kernel = _sources(roots, [source]) if source else []
        if not self.series:
            names = ("patch_path", "patch_text", "series", "tree")
            placed = _given(roots, self.path, self.text, "series.mbox", MOST_MAIL, names)
            return [*kernel, "--series", placed]
        shipped = [series.name for series in known_series()]
        if self.series not in shipped:
            raise InputError.unknown(
                f"there is no series {quoted(self.series)}", self.series, shipped
            )
        return [*kernel, f"--series={self.series}"]


def _given(
    roots: Roots, path: str, text: str, name: str, most: int, parameters: Sequence[str]
) -> GivenFile:
    """Return a file that is given by its path or its text. Raises InputError."""
    if bool(path) == bool(text):
        raise InputError(
            f"{'more than one' if path else 'none'} of {', '.join(parameters)} is given",
            hint="give exactly one of them.",
        )
    if path:
        file_name, content = roots.content(path, most)
        return GivenFile(re.sub(r"[^0-9A-Za-z_.+-]", "_", file_name), content, path)
    content = text.encode("utf-8", "replace")
    if len(content) > most:
        raise InputError(
            f"the text has {len(content):,} bytes", hint=f"give at most {most:,} bytes."
        )
    return GivenFile(name, content, name)


def _sources(roots: Roots, sources: Sequence[str]) -> list[Word]:
    return [_source(roots, source) for source in sources]


def _source(roots: Roots, source: str) -> Word:
    """Return the option for a kernel source. Raises InputError."""
    if _RELEASE.fullmatch(source):
        return f"--source={source}"
    if match := _FILE.fullmatch(source):
        return _below(roots.plain, f"--source={match[1]}:", match[2])
    if match := _TREE.fullmatch(source):
        revision = f"@{_revision(match[2])}" if match[2] else ""
        return _below(roots.tree, "--source=git:", match[1], revision)
    raise InputError(
        f"{quoted(source)} is no kernel source that this server takes",
        hint=(
            "write debian:6.12, debian-image:6.12, kernel.org:6.12.1, git:PATH@REV, image:FILE or "
            "tar:FILE."
        ),
    )


def _below(find: Callable[[str], Path], option: str, path: str, revision: str = "") -> NamedPath:
    """Return a path that ``find`` takes. Raises InputError."""
    named = NamedPath(option, path, find, revision)
    named.word()
    return named


def _revision(text: str) -> str:
    revision = _fitting(_REVISION, text, "a revision of git")
    if ".." in revision:
        raise InputError(f"{quoted(text)} is a range", hint="name one commit, branch or tag.")
    return revision


def _sizes(what: AskedWorkload, sizes: Sequence[int]) -> list[str]:
    if not sizes:
        return []
    if what.workload:
        raise InputError(
            "sizes are for a script, which has the parameter N",
            hint="leave sizes out: a shipped workload has its own.",
        )
    return [f"--set=N={','.join(map(str, sizes))}"]


def _fitting(form: re.Pattern[str], text: str, what: str) -> str:
    if not form.fullmatch(text):
        raise InputError(f"{quoted(text)} is not {what}", hint=f"give {what}.")
    return text
