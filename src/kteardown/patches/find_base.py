"""Find the kernel source to which a posted series applies, and fit the series into it if it does not.

Where the files that it was made from are known, by the ids on its ``index`` lines, it is merged (three-way).
Elsewhere its hunks may be applied with one line of context instead of three. What it says of the kernels that
it is for, the change that it fixes and stable versions, is compared with the source. If a series is made on
top of others, those are applied to the source first.
"""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from kteardown.errors import BuildError, InputError, LabError
from kteardown.kernels import apply_patches, cache_folder, git
from kteardown.kernels.git import store
from kteardown.kernels.series import subject
from kteardown.kernels.source import Source, Sources, patched, with_short_commit
from kteardown.patches.choice import ranges
from kteardown.patches.posted import PostedSeries, message_id, read
from kteardown.progress import Reporter

KNOWN = ("debian:7.3", "debian:7.2", "debian:6.12", "debian:6.1")
"""The sources that are tried, newest first."""
_TAGS = 150
_SHOWN = 30
"""Lines of failing hunks that a message has; all of them are in a file."""
How = Literal["exactly", "with offsets", "merged", "with less context", "already there", "fails", "not here"]
_TAB = re.compile(rb"^[ +-].*\t", re.MULTILINE)
_INDENTED = re.compile(rb"^[ +-] {8}", re.MULTILINE)
_SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_NAME = re.compile(rb"diff --git a/(\S+) b/(\S+)")
_DIFF = re.compile(r"^diff --git a/(\S+) b/(\S+)$")
_INDEX = re.compile(r"^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})")
_RENAME = re.compile(r"^rename from (\S+)$")
# What git apply --reject prints.
_FILE = re.compile(r"^Applying patch (.+) with \d+ rejects?\.\.\.$")
_HUNK = re.compile(r"^Rejected hunk #(\d+)\.$")
_WHOLE = re.compile(
    r"^error: (.+): (No such file or directory|already exists in working directory|does not exist in index)$"
)
_IDENTITY = ("-c", "user.name=kteardown", "-c", "user.email=kteardown@localhost")
# Nothing else of tools/ is left out: objtool and what it includes are built with the kernel.
_NOT_BUILT = re.compile(
    r"(?:Documentation|samples|LICENSES|tools/(?:testing|perf|mm|power|sched_ext|cgroup|accounting|lib/bpf))/.*"
    r"|MAINTAINERS|CREDITS|COPYING|README|\.[\w.-]+|.*\.(?:rst|txt|yaml|md)"
)


@dataclass(frozen=True)
class FailingHunk:
    """One hunk that a source does not take; ``number`` is 0 if the whole file is not as it should be."""

    patch: str
    file: str
    number: int
    text: str

    def lines(self) -> list[str]:
        """Return the hunk under the name of its patch and file."""
        number = f", hunk {self.number}" if self.number else ""
        return [f"{self.patch}: {self.file}{number}", *(f"  {line}" for line in self.text.splitlines())]


@dataclass(frozen=True)
class TriedSource:
    """What became of the series on one source."""

    source: str
    """As it was named: debian:7.2."""
    id: str
    how: How
    failing: tuple[FailingHunk, ...] = ()
    hunks: int = 0
    same: tuple[str, ...] = ()
    """Which of the files that the series changes are exactly those that it was made from."""
    files: int = 0
    present: tuple[int, ...] = ()
    """The numbers of the patches that the source has already, if the series does not apply."""
    merged: tuple[str, ...] = ()
    """Files that the series adds, and that the source has: a version of the series was merged there."""
    reason: str = ""

    def sentence(self) -> str:
        """Return the outcome in words."""
        there = f"; it has {', '.join(self.merged[:2])}, which the series adds" if self.merged else ""
        known = f"; {len(self.same)} of {self.files} files are those that it was made from"
        has = f"; it has patch {ranges(self.present)} already" if self.present else ""
        words: dict[How, str] = {
            "fails": f"{len(self.failing)} of {self.hunks} hunks fail{there}{has}",
            "exactly": "applies exactly: its author had the same files",
            "with offsets": f"applies, in files that differ elsewhere{known if self.files else ''}",
            "merged": "DOES NOT APPLY AS POSTED; merged (three-way) without conflicts",
            "with less context": "DOES NOT APPLY AS POSTED; applies if one line of context is compared, "
            "not three",
            "already there": "has this change already",
            "not here": self.reason,
        }
        return f"{with_short_commit(self.id or self.source)}: {words[self.how]}"


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
    warnings: tuple[str, ...] = ()
    """Why the series may not be for this source, though it applies, and for which it is, in sentences."""

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
    images = pre_images(patches)
    at = [_with_revision(spec, base_commit, images) for spec in specs]
    named, from_releases = [spec for spec, _ in at], [where for _, where in at if where]
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
        same = {a.source: a.same for a in attempts if not a.source.startswith("git:")}
        where = made_between({name: same[name] for name in by_version(list(same))}, len(images))
        raise _nothing_takes_it(patches, attempts, [*from_releases, *([where] if where else [])], base_commit)
    source = sources.identify(found.source)
    unfit = warnings(found.patches, source, sources.tree(source))
    known = () if found.how == "exactly" else from_releases
    return replace(found, left_out=tuple(left_out), warnings=(*unfit, *known))


def default_sources(sources: Sources) -> tuple[str, ...]:
    """Return ``KNOWN``, or the same versions of kernel.org on a host that has nothing of Debian."""
    known = (sources.identify_offline(spec) for spec in KNOWN)
    if any(source and sources.tree_path(source).is_dir() for source in known) or sources.has_mirror():
        return KNOWN
    return tuple(spec.replace("debian:", "kernel.org:") for spec in KNOWN)


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


def _with_revision(spec: str, base_commit: str, images: Mapping[str, str]) -> tuple[str, str]:
    """Return a git tree that is named without a revision at the commit that the series was made from.

    That is its base commit, or else the newest release that has exactly the files ``images``. If none has,
    the second part says between which releases they are.
    """
    kind, _, path = spec.partition(":")
    if kind != "git" or "@" in path:
        return spec, ""
    same: dict[str, list[str]] = {}
    with git.view(Path(path).expanduser()) as git_dir:
        if base_commit and git.run("cat-file", "-e", f"{base_commit}^{{commit}}", git_dir=git_dir).ok:
            return f"{spec}@{base_commit}", ""
        for tag in git.releases(Path(path).expanduser())[:_TAGS] if images else ():
            listed = git.run("--literal-pathspecs", "ls-tree", "-r", tag, "--", *images, git_dir=git_dir).text
            blobs = {line.partition("\t")[2]: line.split()[2] for line in listed.splitlines()}
            same[tag] = [name for name, blob in images.items() if blobs.get(name, "").startswith(blob)]
            if len(same[tag]) == len(images):
                return f"{spec}@{tag}", ""
    return spec, made_between(same, len(images))


def _attempt(spec: str, patches: Sequence[Path], sources: Sources, *, fetch: bool) -> TriedSource:
    try:
        source = sources.identify(spec) if fetch else sources.identify_offline(spec)
        unpacked = source is not None and sources.tree_path(source).is_dir()
        if source is None or (source.kind in ("debian", "kernel.org") and not fetch and not unpacked):
            return TriedSource(spec, source.id if source else "", "not here", reason="is not on this machine")
        tree = sources.tree(source)
    except LabError as error:
        return TriedSource(spec, "", "not here", reason=f"cannot be fetched: {error.message.splitlines()[0]}")
    images = pre_images(patches)
    same = tuple(path for path, blob in images.items() if blob_id(tree / path).startswith(blob))
    attempt = TriedSource(spec, source.id, "fails", same=same, files=len(images))
    if not apply_patches.failure(tree, patches, source.id):
        exact = bool(images) and len(same) == len(images)
        return replace(attempt, how="exactly" if exact else "with offsets")
    return failing_hunks(attempt, tree, patches)


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
                merge(patches, tree, trees, repositories)
                if way == "merged"
                else with_less_context(patches, tree)
            )
            if texts is not None and len(texts) == len(patches):
                fitted = replace(attempt, how=way)
                every = tuple(fitted if a is attempt else a for a in attempts)
                return Base(attempt.source, attempt.id, way, store(texts), every)
    return None


def _advice(tried: Sequence[TriedSource], base_commit: str) -> str:
    """Return what to do if no source takes a series, of which the mails name ``base_commit``.

    Of the git trees, that is named on which the fewest hunks fail.
    """
    trees = [one for one in tried if one.source.startswith("git:")]
    if not trees:
        return (
            "name a git tree of Linux (--source git:~/linux): kteardown looks up the release "
            "that the series was made for there."
        )
    nearest = min(trees, key=lambda one: len(one.failing)).source
    tree, at, _ = nearest.rpartition("@")
    tree = tree if at else nearest
    if base_commit:
        commit = base_commit[:12]
        return f"the mails say that it is made from {commit}: fetch that, and name {tree}@{commit}."
    return f"fetch the branch that it was made for, and name its commit: --source {tree}@COMMIT."


def _nothing_takes_it(
    patches: Sequence[Path], attempts: Sequence[TriedSource], from_releases: Sequence[str], base_commit: str
) -> BuildError:
    lines = ["no known source takes this series:", *(f"  {a.sentence()}" for a in attempts)]
    lines += [f"  {line}" for line in from_releases]
    present = next((a for a in attempts if a.how == "already there"), None)
    if present is not None:
        return BuildError(
            "\n".join(lines),
            hint=f"{present.source} has the change: name the older tree that it was made for with --source.",
        )
    tried = [a for a in attempts if a.how == "fails"]
    advice = _advice(tried or attempts, base_commit)
    if not tried:
        return BuildError("\n".join(lines), hint=advice)
    best = min(tried, key=lambda a: len(a.failing))
    text = [line for hunk in best.failing for line in hunk.lines()]
    lines += [f"what fails on {with_short_commit(best.id)}:", *(f"  {line}" for line in text[:_SHOWN])]
    file = patches[0].parents[1] / "failing-hunks.txt"
    file.write_text(
        "".join(
            f"{a.sentence()}\n" + "".join(f"{line}\n" for h in a.failing for line in h.lines()) + "\n"
            for a in tried
        )
    )
    lines.append(f"  all failing hunks: {file}")
    diffs = b"".join(section for patch in patches for section in _SECTION.split(patch.read_bytes())[1:])
    there = len(patches) == 1 and any(len(a.same) == a.files > 0 for a in tried)
    if there or (_INDENTED.search(diffs) and not _TAB.search(diffs)):
        return BuildError(
            "\n".join(lines),
            hint="the diff has blanks in place of tabs, or wrapped lines, as a mail program leaves them when "
            "it forwards or copies a mail: give the mail as it was sent (lore:MESSAGE-ID, its source, or an "
            "attachment).",
        )
    return BuildError("\n".join(lines), hint=advice)


def _name(section: bytes) -> str:
    match = _NAME.match(section)
    return match[2].decode(errors="replace") if match else ""


def failing_hunks(attempt: TriedSource, tree: Path, patches: Sequence[Path]) -> TriedSource:
    """Apply ``patches`` to copies of the files of ``tree``, hunk by hunk, and return which hunks fail.

    They are those of ``attempt``, which is returned with them.
    """
    found: list[FailingHunk] = []
    total = 0
    series = apply_patches.read_series(tree, patches)
    files = apply_patches.touched(tree, series)
    present = _present(series, files)
    with TemporaryDirectory(prefix="kteardown-") as work:
        folder = Path(work)
        apply_patches.copy_files(files, folder)
        for patch in series:
            texts = {name: list(map(str, hunks)) for name, hunks in patch.hunks().items()}
            total += sum(max(len(hunks), 1) for hunks in texts.values())  # A renamed file has no hunk.
            if patch in present:
                continue
            done = apply_patches.git_apply(folder, patch, "--reject")
            if not done.ok:
                found += _rejected(done.said, patch.path.name, texts)
            apply_patches.check_links(folder, patch)
    added = dict.fromkeys(name for patch in series for name in patch.names if name in patch.created)
    there = tuple(name for name in added if os.path.lexists(tree / name))
    how: How = "already there" if len(present) == len(patches) else "fails"
    numbers = tuple(number for number, patch in enumerate(series, 1) if patch in present)
    return replace(attempt, how=how, failing=tuple(found), hunks=total, merged=there, present=numbers)


def _present(
    series: Sequence[apply_patches.ReadPatch], files: Mapping[str, Path]
) -> list[apply_patches.ReadPatch]:
    """Return the patches that can be taken out of the tree of ``files``, the last one first."""
    found = []
    with TemporaryDirectory(prefix="kteardown-") as work:
        apply_patches.copy_files(files, Path(work))
        for patch in reversed(series):
            if apply_patches.git_apply(Path(work), patch, "--reverse").ok:
                found.append(patch)
            apply_patches.check_links(Path(work), patch)
    return found


def _rejected(said: str, patch: str, hunks: dict[str, list[str]]) -> Iterator[FailingHunk]:
    file, any_found = "", False
    whole: set[str] = set()
    for line in said.splitlines():
        if match := _FILE.match(line):
            file = apply_patches.unquoted(match[1])
        elif match := _HUNK.match(line):
            number, texts = int(match[1]), hunks.get(file, [])
            text = texts[number - 1] if number <= len(texts) else ""
            any_found = True
            yield FailingHunk(patch, file, number, text)
        elif match := _WHOLE.match(line):
            any_found = True
            # A patch can have a file a thousand times: there is such a line for each, for all hunks.
            if match[1] in whole:
                continue
            whole.add(match[1])
            there = match[2].startswith("already")
            reason = "there is such a file already" if there else "there is no such file"
            for text in hunks.get(match[1], [""]):
                yield FailingHunk(patch, match[1], 0, f"{reason}\n{text}")
    if not any_found:
        yield FailingHunk(patch, "", 0, said.strip())


def pre_images(patches: Sequence[Path]) -> dict[str, str]:
    """Return the files that a series changes, each with the id of what it was before, abbreviated.

    Without those that the series creates; empty if the diffs have no ``index`` lines.
    """
    seen: dict[str, str] = {}
    for patch in patches:
        file = old = ""
        for line in patch.read_text(errors="replace").splitlines():
            if match := _DIFF.match(line):
                old, file = match[1], match[2]
            elif match := _RENAME.match(line):
                old = match[1]
            elif file and (match := _INDEX.match(line)):
                if old not in seen:
                    seen[old] = "" if set(match[1]) == {"0"} else match[1]
                seen.setdefault(file, "")
                file = ""
    return {path: blob for path, blob in seen.items() if blob}


def blob_id(path: Path) -> str:
    """Return what ``git hash-object`` prints for a file; empty if there is no such file."""
    if not path.is_file():
        return ""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def merge(
    patches: Sequence[Path], tree: Path, known: Sequence[Path], repositories: Sequence[Path]
) -> list[tuple[str, bytes]] | None:
    """Merge ``patches`` into ``tree`` with ``git am --3way``, and return them as they then are.

    ``known`` are trees, and ``repositories`` git trees, that may have the files that the series was made
    from. Returns None if these are not known, or if the merge has conflicts.
    """
    originals: dict[str, Path] = {}
    for path, blob in pre_images(patches).items():
        found = next((tree / path for tree in known if blob_id(tree / path).startswith(blob)), None)
        if found is None and not repositories:
            return None
        if found is not None:
            originals[path] = found
    with TemporaryDirectory(prefix="kteardown-") as work:
        repository = _Repository(Path(work), repositories, tree, patches)
        if originals:
            # All states of the files in between become known too, which later patches refer to.
            repository.commit(originals)
            repository.am()
            repository.git("am", "--abort")
        return repository.fitted("--3way")


def with_less_context(patches: Sequence[Path], tree: Path) -> list[tuple[str, bytes]] | None:
    """Apply ``patches`` to ``tree`` with one line of context, and return them as they then are, or None."""
    with TemporaryDirectory(prefix="kteardown-") as work:
        return _Repository(Path(work), (), tree, patches).fitted("-C1")


class _Repository:
    """A scratch repository that has only the files that a series touches."""

    def __init__(
        self, folder: Path, repositories: Sequence[Path], tree: Path, patches: Sequence[Path]
    ) -> None:
        # Nothing of git is in the work tree, which has what the patches put there.
        self._git_dir, self._work, self._out = (folder / name for name in ("git", "tree", "out"))
        self._work.mkdir()
        self._tree = tree
        git.prepare(self._git_dir)
        self.git("init", "-q", "--template=")
        objects = [git.folders(each)[1] / "objects" for each in repositories]
        alternates = self._git_dir / "objects/info/alternates"
        alternates.write_text("".join(f"{path}\n" for path in objects))
        self.series = apply_patches.read_series(tree, patches)

    def git(self, *argv: str) -> git.Done:
        """Run git in the work tree."""
        work_tree = f"--work-tree={self._work}"
        return git.run(*_IDENTITY, work_tree, *argv, git_dir=self._git_dir, cwd=self._work)

    def commit(self, files: Mapping[str, Path]) -> None:
        """Commit exactly these files, whatever was there."""
        self.git("rm", "-rqf", "--ignore-unmatch", ".")
        apply_patches.copy_files(files, self._work)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", "base")

    def am(self, *how: str) -> bool:
        """Commit the patches until one does not apply, and return whether all do. Raises InputError."""
        for patch in self.series:
            if not self.git("am", "-q", *how, f"-p{patch.strip}", str(patch.path.absolute())).ok:
                return False
            apply_patches.check_links(self._work, patch)
        return True

    def fitted(self, how: str) -> list[tuple[str, bytes]] | None:
        """Apply the patches to the tree and return them as they then are; None if that fails."""
        self.commit(apply_patches.touched(self._tree, self.series))
        if not self.am(how):
            return None
        options = ("--no-signature", "--zero-commit", "--full-index")  # Equal for equal patches.
        written = self.git("format-patch", *options, "-o", str(self._out), f"-{len(self.series)}")
        return [(path.name, path.read_bytes()) for path in map(Path, written.text.splitlines())]


def history(patches: Sequence[Path], tree: Path, target: Path) -> tuple[Path, str, str]:
    """Commit a series on the files of ``tree`` that it touches, once, to a repository in ``target``.

    Return the git folder, the commit of base and the last one. Raises BuildError if a patch does not apply.
    """
    if not target.is_dir():
        with cache_folder.published(target) as work:
            made = _Repository(work, (), tree, patches)
            made.commit(apply_patches.touched(tree, made.series))
            if not made.am():
                applied = len(made.git("rev-list", "HEAD").text.splitlines()) - 1
                raise BuildError(
                    f"{patches[applied]} does not apply on top of the patches before it",
                    hint="name the source for which the series was made with --source.",
                )
            made.git("config", "--unset", "core.worktree")  # The folder is renamed.
    first, *_, last = git.run("rev-list", "--reverse", "HEAD", git_dir=target / "git").text.splitlines()
    return cache_folder.hold(target) / "git", first, last


_MOST_TEXT = 100_000
_FIXES = re.compile(r"^Fixes: *([0-9a-f]{8,40})\b *(\(.{1,150}\))?", re.MULTILINE)
# The first of the stable trees that the fix is for; a prerequisite has a line of its own.
_STABLE = re.compile(
    r"^Cc: .{0,99}stable@(?:vger\.)?kernel\.org.{0,20}#.{0,20}?\bv?(\d+)\.(\d+)", re.M | re.I
)
_MAKEFILE = re.compile(r"^VERSION *= *(\d+)\nPATCHLEVEL *= *(\d+)$", re.MULTILINE)
_VERSION = re.compile(r"(?<!\d)(\d++)\.(\d+)")


def warnings(patches: Sequence[Path], source: Source, tree: Path) -> tuple[str, ...]:
    """Return, in sentences, which of ``patches`` say that they are not for ``source``.

    Of a git tree, its history says whether it has the change that a patch fixes; of others, the versions of
    the stable kernels that the patch names are compared with that of the tree.
    """
    found = [line for patch in patches for line in _history(patch, source)] if source.kind == "git" else []
    own = _MAKEFILE.search(_head(tree / "Makefile"))
    for patch in patches if own else ():
        versions = [(int(major), int(minor)) for major, minor in _STABLE.findall(_head(patch))]
        if own and versions and min(versions) > (version := (int(own[1]), int(own[2]))):
            first = ".".join(map(str, min(versions)))
            found.append(
                f'NOT FOR THIS VERSION: "{subject(patch)}" is for {first} and newer (Cc: stable), and '
                f"{source.id} is {version[0]}.{version[1]}"
            )
    return tuple(found)


def _history(patch: Path, source: Source) -> list[str]:
    """Return a sentence for each change that ``patch`` fixes and that the history of ``source`` lacks."""
    lines = []
    with git.view(Path(source.origin)) as git_dir:
        whole = git.run("rev-parse", "--is-shallow-repository", git_dir=git_dir).text == "false"
        for fixed, title in _FIXES.findall(_head(patch)) if whole else ():
            what = f'"{subject(patch)}" fixes {fixed[:12]} {title}'.rstrip()
            found = git.run("rev-parse", "--verify", "-q", f"{fixed}^{{commit}}", git_dir=git_dir).text
            if not found.startswith(fixed):
                lines.append(f"{what}; {source.origin} has no such commit to compare with")
                continue
            commit = source.id.rpartition("@")[2]
            if not git.run("merge-base", "--is-ancestor", found, commit, git_dir=git_dir).ok:
                lines.append(f"FIXES WHAT IS NOT THERE: {what}, which is not in the history of {commit[:12]}")
    return lines


def _head(file: Path) -> str:
    """Return the text before the diff of a patch, or the beginning of another file; empty without it."""
    if not file.is_file():
        return ""
    with file.open(errors="replace") as stream:
        return stream.read(_MOST_TEXT).partition("\ndiff --git ")[0]


def made_between(same: Mapping[str, Collection[str]], files: int) -> str:
    """Return which releases have the files from which a series was made, in words; empty if none has any.

    ``same`` has by the name of each release, newest first, those of the ``files`` that are exactly these.
    """
    names = list(same)
    places = [
        [number for number, name in enumerate(names) if file in same[name]]
        for file in sorted({file for found in same.values() for file in found})
    ]
    if not places:
        return ""
    oldest, newest = max(map(min, places)), min(map(max, places))
    if oldest <= newest:  # All files that any release has are in one.
        return f"{len(places)} of the {files} files that it was made from are those of {names[oldest]}"
    return f"the files that it was made from are between those of {names[oldest]} and {names[newest]}"


def by_version(names: Sequence[str]) -> list[str]:
    """Return those of ``names`` that have a version, the newest first."""
    versions = {name: tuple(map(int, found.groups())) for name in names if (found := _VERSION.search(name))}
    return sorted(versions, key=lambda name: versions[name], reverse=True)


_MOST = 10
"""So many series below another are fetched."""
_NAMED_MOST = 3


@dataclass(frozen=True)
class PatchStack:
    """A series, and those that are applied before it, in order."""

    below: tuple[PostedSeries, ...]
    top: PostedSeries
    is_given: bool
    """Whether the user named those below; the mails of ``top`` do otherwise."""


def read_stack(
    whats: Sequence[str], *, cache_dir: Path, reporter: Reporter, sources: Sequence[str] = ()
) -> PatchStack:
    """Read one or more series, each made on top of those before it; files with parts of one are one series.

    One of the archive comes with those that its mails name, if they are in the archive. Raises as ``read``.
    """
    series = [read(what, cache_dir=cache_dir, reporter=reporter, sources=sources) for what in whats]
    totals = {len(one.patches) + len(one.missing) if one.missing else 0 for one in series}
    if len(whats) > 1 and len(totals) == 1 and 0 not in totals:
        series = [read(whats[0], cache_dir=cache_dir, reporter=reporter, sources=sources, more=whats[1:])]
    *below, top = series
    found: dict[tuple[Path, ...], PostedSeries] = {}

    def add_needed(series: PostedSeries) -> PostedSeries:
        """Return ``series`` with what cannot be fetched of that which it is made on."""
        missing = []
        for name in series.made_on:
            needed = None
            if "@" in name and len(found) < _MOST:
                with suppress(InputError, LabError):
                    needed = read(f"lore:{name}", cache_dir=cache_dir, reporter=reporter)
            if needed is None:
                missing.append(name)
            elif needed.patches not in (*found, top.patches):
                found[needed.patches] = needed  # Two could name each other.
                add_needed(needed)
                found[needed.patches] = found.pop(needed.patches)
        return replace(series, made_on=tuple(missing))

    if len(whats) == 1 and message_id(whats[0]):
        top = add_needed(top)
    return PatchStack((*below, *found.values()), top, is_given=bool(below))


def base_of_stack(
    stack: PatchStack, sources: Sources, *, specs: Sequence[str] = (), fetch: bool = True
) -> tuple[PostedSeries, Base]:
    """Return the series on top with a note on each below it, and its base, to which these are applied.

    Without those below if no source takes them and the user did not name them. Raises as ``find_base``; the
    error of a series whose mails say what it is made on names that, if the user did not give it.
    """
    top = stack.top
    errors = []
    for below in (stack.below,) if stack.is_given or not stack.below else (stack.below, ()):
        try:
            base = _base(below, top, sources, specs, fetch=fetch)
        except BuildError as error:
            errors.append(error)
            continue
        notes = [f"applied before it: {one.title} ({one.author})" for one in below]
        left = [*top.made_on, *(one.message_id for one in stack.below if one not in below)]
        if left and not stack.is_given:
            notes.append(f"made on top of {_named(left)}, which is not applied")
        return replace(top, notes=(*notes, *top.notes)), base
    if top.made_on and not stack.is_given:
        other = f"lore:{top.made_on[0]}" if "@" in top.made_on[0] else "THE-OTHER"
        raise BuildError(
            f"no known source takes this series: it is made on top of {_named(top.made_on)}",
            hint=f"give it first, then this: kteardown try {other} SERIES.",
        ) from errors[0]
    raise errors[0]


def _base(
    below: Sequence[PostedSeries], top: PostedSeries, sources: Sources, specs: Sequence[str], *, fetch: bool
) -> Base:
    """Return the first source that takes the whole stack, and what remains of ``top`` on top of the rest."""
    keep = partial(store, name=top.name, cache_dir=sources.folder)
    every = [patch for one in (*below, top) for patch in one.patches]
    first = every[: len(every) - len(top.patches)]
    if first:  # The order of the names is that of the patches.
        names = (f"{number:04}-{patch.name.lstrip('-0123456789')}" for number, patch in enumerate(every, 1))
        every = list(keep([(name, patch.read_bytes()) for name, patch in zip(names, every, strict=True)]))
    base = find_base(
        every,
        sources,
        keep,
        specs=specs or ([top.source] if top.source else default_sources(sources)),
        base_commit=top.base_commit,
        fetch=fetch,
    )
    count = len(code_only(every[: len(first)])[0]) if base.left_out else len(first)
    if not count:
        return base
    texts = [(patch.name, patch.read_bytes()) for patch in base.patches]
    source = patched(store(texts[:count], below[-1].name, sources.folder)[0].parent, base.source)
    attempts = tuple(replace(a, source=source) if a is base.chosen else a for a in base.attempts)
    name = sources.identify(source).id
    return replace(base, source=source, id=name, patches=keep(texts[count:]), attempts=attempts)


def _named(names: Sequence[str]) -> str:
    shown = [f"<{name}>" if "@" in name else name for name in names[:_NAMED_MOST]]
    more = [f"{len(names) - _NAMED_MOST} more"] if len(names) > _NAMED_MOST else []
    return ", ".join(shown + more)
