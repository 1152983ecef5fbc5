"""Find the kernel source to which a posted series applies."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kteardown.errors import BuildError, LabError
from kteardown.kernels import apply_patches, git
from kteardown.kernels.source import Sources
from kteardown.patches import three_way
from kteardown.patches.failing_hunks import FailingHunk, failing_hunks

KNOWN = ("debian:7.3", "debian:7.2", "debian:6.12", "debian:6.1")
"""The sources that are tried, newest first."""
_TAGS = 150
_SHOWN = 30
"""Lines of failing hunks that a message has; all of them are in a file."""
How = Literal["exactly", "with offsets", "merged", "with less context", "already there", "fails", "not here"]
_SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_NAME = re.compile(rb"diff --git a/(\S+) b/(\S+)")
# Nothing else of tools/ is left out: objtool and what it includes are built with the kernel.
_NOT_BUILT = re.compile(
    r"(?:Documentation|samples|LICENSES|tools/(?:testing|perf|mm|power|sched_ext|cgroup|accounting|lib/bpf))/.*"
    r"|MAINTAINERS|CREDITS|COPYING|README|\.[\w.-]+|.*\.(?:rst|txt|yaml|md)"
)


@dataclass(frozen=True)
class TriedSource:
    """What became of the series on one source."""

    source: str
    """As it was named: debian:7.2."""
    id: str
    how: How
    failing: tuple[FailingHunk, ...] = ()
    hunks: int = 0
    same_files: int = 0
    """How many of the files that the series changes are exactly those that it was made from."""
    files: int = 0
    merged: tuple[str, ...] = ()
    """Files that the series adds, and that the source has: a version of the series was merged there."""
    reason: str = ""

    def sentence(self) -> str:
        """Return the outcome in words."""
        name = self.id or self.source
        if self.how == "fails":
            there = f"; it has {', '.join(self.merged[:2])}, which the series adds" if self.merged else ""
            return f"{name}: {len(self.failing)} of {self.hunks} hunks fail{there}"
        if self.how == "exactly":
            return f"{name}: applies exactly: its author had the same files"
        if self.how == "with offsets":
            known = f"; {self.same_files} of {self.files} files are those that it was made from"
            return f"{name}: applies, in files that differ elsewhere{known if self.files else ''}"
        if self.how == "merged":
            return f"{name}: DOES NOT APPLY AS POSTED; merged (three-way) without conflicts"
        if self.how == "with less context":
            return f"{name}: DOES NOT APPLY AS POSTED; applies if one line of context is compared, not three"
        return f"{name}: has this change already" if self.how == "already there" else f"{name}: {self.reason}"


@dataclass(frozen=True)
class Base:
    """The source that takes the series, and the patches as they apply to it."""

    source: str
    id: str
    how: How
    patches: tuple[Path, ...]
    attempts: tuple[TriedSource, ...]
    left_out: tuple[str, ...] = ()
    """Files of the series that no kernel is built from, and that keep it from applying."""

    @property
    def chosen(self) -> TriedSource:
        """The attempt that succeeded."""
        return next(a for a in self.attempts if a.source == self.source and a.how == self.how)


Store = Callable[[Sequence[tuple[str, bytes]]], tuple[Path, ...]]


def find_base(
    patches: Sequence[Path],
    sources: Sources,
    store: Store,
    *,
    specs: Sequence[str] = KNOWN,
    base_commit: str = "",
    fetch: bool = True,
) -> Base:
    """Return the source that takes ``patches``: exactly, or else with offsets, or else fitted.

    ``specs`` are tried in order; a git tree without a revision at ``base_commit``, if it has that. If
    documentation, tests or tools alone keep the series from applying, these are left out. ``store`` keeps
    patches that were changed. ``fetch``: a source that is not unpacked yet is fetched if no other takes the
    series. Raises BuildError if no source takes it, InputError, LabError.
    """
    named = [_with_revision(spec, base_commit, patches) for spec in specs]
    attempts = [_attempt(spec, patches, sources, fetch=False) for spec in named]
    if fetch and not any(a.how in ("exactly", "with offsets") for a in attempts):
        absent = [number for number, a in enumerate(attempts) if a.how == "not here"]
        for number in absent:
            attempts[number] = _attempt(named[number], patches, sources, fetch=True)
    found = _direct(patches, attempts)
    texts, left_out = code_only(patches)
    if found is None and texts and left_out:
        patches = store(texts)
        attempts = [
            a if a.how in ("not here", "already there") else _attempt(a.source, patches, sources, fetch=False)
            for a in attempts
        ]
        found = _direct(patches, attempts)
    else:
        left_out = []
    found = found or _fitted(patches, attempts, sources, store)
    if found is None:
        raise _nothing_takes_it(patches, attempts)
    return replace(found, left_out=tuple(left_out))


def is_code(name: str) -> bool:
    """Return whether a kernel may be built from the file ``name``."""
    return not _NOT_BUILT.fullmatch(name)


def code_only(patches: Sequence[Path]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Return the patches without the files that no kernel is built from, and the names of these files.

    Each patch is a file name and a text; a patch of which nothing is left is left out.
    """
    kept: list[tuple[str, bytes]] = []
    dropped: dict[str, None] = {}
    for patch in patches:
        head, *sections = _SECTION.split(patch.read_bytes())
        mine = [section for section in sections if is_code(_name(section))]
        dropped |= {_name(section): None for section in sections if section not in mine}
        if mine or not sections:
            kept.append((patch.name, head + b"".join(mine)))
    return kept, list(dropped)


def _direct(patches: Sequence[Path], attempts: Sequence[TriedSource]) -> Base | None:
    """Return the first source that takes the series exactly, or else the first that takes it with offsets."""
    for how in ("exactly", "with offsets"):
        for attempt in attempts:
            if attempt.how == how:
                return Base(attempt.source, attempt.id, attempt.how, tuple(patches), tuple(attempts))
    return None


def _with_revision(spec: str, base_commit: str, patches: Sequence[Path]) -> str:
    """Return a git tree that is named without a revision at the commit that the series was made from.

    That is its base commit, or else the newest release that has exactly the files that the series changes.
    """
    kind, _, path = spec.partition(":")
    if kind != "git" or "@" in path:
        return spec
    with git.view(Path(path).expanduser()) as git_dir:
        if base_commit and git.run("cat-file", "-e", f"{base_commit}^{{commit}}", git_dir=git_dir).ok:
            return f"{spec}@{base_commit}"
        names = {image.path: image.blob for image in three_way.pre_images(patches)}
        tags = git.run("tag", "-l", "v[0-9]*", "--sort=-v:refname", git_dir=git_dir).text.split()[:_TAGS]
        for tag in tags if names else ():
            listed = git.run("--literal-pathspecs", "ls-tree", "-r", tag, "--", *names, git_dir=git_dir).text
            blobs = {line.partition("\t")[2]: line.split()[2] for line in listed.splitlines()}
            if all(blobs.get(name, "").startswith(blob) for name, blob in names.items()):
                return f"{spec}@{tag}"
    return spec


def _attempt(spec: str, patches: Sequence[Path], sources: Sources, *, fetch: bool) -> TriedSource:
    try:
        source = sources.identify(spec) if fetch else sources.identify_offline(spec)
        unpacked = source is not None and sources.tree_path(source).is_dir()
        if source is None or (source.kind == "debian" and not fetch and not unpacked):
            return TriedSource(spec, source.id if source else "", "not here", reason="is not on this machine")
        tree = sources.tree(source)
    except LabError as error:
        return TriedSource(spec, "", "not here", reason=f"cannot be fetched: {error.message.splitlines()[0]}")
    images = three_way.pre_images(patches)
    same = sum(three_way.blob_id(tree / image.path).startswith(image.blob) for image in images)
    attempt = TriedSource(spec, source.id, "fails", same_files=same, files=len(images))
    if not apply_patches.failure(tree, patches, source.id):
        exact = bool(images) and same == len(images)
        return replace(attempt, how="exactly" if exact else "with offsets")
    failure = failing_hunks(tree, patches)
    how: How = "already there" if failure.present == len(patches) else "fails"
    return replace(attempt, how=how, failing=failure.hunks, hunks=failure.total, merged=failure.there)


def _fitted(
    patches: Sequence[Path], attempts: Sequence[TriedSource], sources: Sources, store: Store
) -> Base | None:
    """Return the first source into which the series can be merged, or else the one that it nearly fits."""
    there = [sources.identify(a.source) for a in attempts if a.how not in ("not here", "already there")]
    trees = [sources.tree(source) for source in there]
    repositories = [Path(source.origin) for source in there if source.kind == "git"]
    tried = [a for a in attempts if a.how == "fails"]
    ways: tuple[How, ...] = ("merged", "with less context")
    for way in ways:
        for attempt in tried if way == "merged" else sorted(tried, key=lambda a: len(a.failing)):
            tree = sources.tree(sources.identify(attempt.source))
            texts = (
                three_way.merge(patches, tree, trees, repositories)
                if way == "merged"
                else three_way.with_less_context(patches, tree)
            )
            if texts is not None and len(texts) == len(patches):
                fitted = replace(attempt, how=way)
                every = tuple(fitted if a is attempt else a for a in attempts)
                return Base(attempt.source, attempt.id, way, store(texts), every)
    return None


def _nothing_takes_it(patches: Sequence[Path], attempts: Sequence[TriedSource]) -> BuildError:
    lines = ["no known source takes this series:", *(f"  {a.sentence()}" for a in attempts)]
    present = next((a for a in attempts if a.how == "already there"), None)
    if present is not None:
        return BuildError(
            "\n".join(lines),
            hint=f"{present.source} has the change: name the older tree that it was made for with --source.",
        )
    tried = [a for a in attempts if a.how == "fails"]
    if not tried:
        return BuildError("\n".join(lines), hint="name a source that is here: --source git:~/linux.")
    best = min(tried, key=lambda a: len(a.failing))
    text = [line for hunk in best.failing for line in hunk.lines()]
    lines += [f"what fails on {best.id}:", *(f"  {line}" for line in text[:_SHOWN])]
    file = patches[0].parents[1] / "failing-hunks.txt"
    file.write_text(
        "".join(
            f"{a.sentence()}\n" + "".join(f"{line}\n" for h in a.failing for line in h.lines()) + "\n"
            for a in tried
        )
    )
    lines.append(f"  all failing hunks: {file}")
    return BuildError(
        "\n".join(lines),
        hint="name a git tree of Linux (--source git:~/linux): kteardown looks up the release "
        "that the series was made for there.",
    )


def _name(section: bytes) -> str:
    match = _NAME.match(section)
    return match[2].decode(errors="replace") if match else ""
