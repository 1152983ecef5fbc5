"""Find the kernel source to which a posted series applies, and fit the series into it if it does
not.

Where the files that it was made from are known, by the ids on its ``index`` lines, it is merged
(three-way). Elsewhere its hunks may be applied with one line of context instead of three. What it
says of the kernels that it is for, the change that it fixes and stable versions, is compared with
the source. If a series is made on top of others, those are applied to the source first.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from kteardown.errors import BuildError, LabError
from kteardown.kernels import apply_patches, git
from kteardown.kernels.source import Source, Sources, package_from_json
from kteardown.patches.failing_hunks import failing_hunks
from kteardown.patches.merging import blob_id, merge, pre_images, with_less_context
from kteardown.patches.moved_changes import moved_elsewhere
from kteardown.patches.no_base import ABSENT, TREE_GB, USUAL_MB, advice, no_source, nothing_takes_it
from kteardown.patches.tried_source import Base, How, TriedSource
from kteardown.patches.warnings import (
    by_version,
    made_between,
    release_of,
    version_of,
    warnings,
)
from kteardown.progress import Reporter, SilentReporter

KNOWN = ("debian:7.3", "debian:7.2", "debian:6.12", "debian:6.1")
"""The sources that are tried, newest first."""
_TAKES = ("exactly", "with offsets")
_TAGS = 150
_SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_NAME = re.compile(rb"diff --git a/(\S+) b/(\S+)")
# Nothing else of tools/ is left out: objtool and what it includes are built with the kernel.
_NOT_BUILT = re.compile(
    r"(?:Documentation|samples|LICENSES|tools/(?:testing|perf|mm|power|sched_ext|cgroup|accounting|lib/bpf))/.*"
    r"|MAINTAINERS|CREDITS|COPYING|README|\.[\w.-]+|.*\.(?:rst|txt|yaml|md)"
)


Store = Callable[[Sequence[tuple[str, bytes]]], tuple[Path, ...]]


def find_base(
    patches: Sequence[Path],
    sources: Sources,
    store: Store,
    *,
    specs: Sequence[str] = KNOWN,
    base_commit: str = "",
    version: str = "",
    fetch: bool = True,
    reporter: Reporter | None = None,
) -> Base:
    """Return the source that takes ``patches``: exactly, or else with offsets, or else fitted.

    ``specs`` are tried in order; a git tree without a revision at ``base_commit``, if it has that.
    A source of ``version`` (6.12), for which the subjects say that the series is, comes first.
    If documentation, tests or tools alone keep the series from applying, these are left out.
    ``store`` keeps patches that were changed. ``fetch``: sources that are not unpacked yet are
    fetched, one after the other, until one takes the series. Raises BuildError if no source takes
    it, NoSourceError if none is there, InputError, LabError.
    """
    images = pre_images(patches)
    at = [_with_revision(spec, base_commit, images) for spec in specs]
    named = [spec for spec, _ in at]
    from_releases = [where for _, where in at if where]
    attempts = [_attempt(spec, patches, sources, fetch=False) for spec in named]
    if fetch:
        attempts = _fetched(attempts, patches, sources, version, reporter or SilentReporter())
    if all(attempt.how == "not here" for attempt in attempts):
        raise no_source(attempts, version)
    # A backport that its kernel has is for no other one, even if it applies there.
    has_it = [a for a in attempts if a.version == version and a.how == "already there" and version]
    attempts = has_it or attempts
    base = _direct(patches, attempts, version)
    texts, left_out = code_only(patches)
    if base is None and texts and left_out:
        patches = store(texts)
        attempts = [
            a
            if a.how in ("not here", "already there")
            else _attempt(a.source, patches, sources, fetch=False)
            for a in attempts
        ]
        base = _direct(patches, attempts, version)
    else:
        left_out = []
    base = base or _fitted(patches, attempts, sources, store, version)
    if base is None:
        raise _nothing(patches, attempts, sources, base_commit, version, from_releases, fetch=fetch)
    source = sources.identify(base.source)
    unfit = warnings(base.patches, source, sources.tree(source), version)
    hints = () if base.how == "exactly" else from_releases
    base = replace(base, left_out=tuple(left_out))
    first = () if fetch else _fetched_first(base, attempts, version)
    return replace(base, warnings=(*unfit, *hints, *first))


def _nothing(
    patches: Sequence[Path],
    attempts: Sequence[TriedSource],
    sources: Sources,
    base_commit: str,
    version: str,
    from_releases: Sequence[str],
    *,
    fetch: bool,
) -> BuildError:
    """Return the error if no source takes the series."""
    same = {a.source: a.same for a in attempts if not a.source.startswith("git:")}
    files = len(pre_images(patches))
    where = made_between({name: same[name] for name in by_version(list(same))}, files)
    hint = advice(patches, attempts, sources, base_commit, version)
    absent = [a for a in attempts if a.how == "not here" and not fetch]
    if absent:
        hint = f"{hint} Or leave out --dry-run, which does not fetch {absent[0].source}."
    return nothing_takes_it(patches, attempts, [*from_releases, *([where] if where else [])], hint)


def _fetched_first(base: Base, attempts: Sequence[TriedSource], version: str) -> list[str]:
    """Return which source would be fetched before ``base`` is taken, as a sentence."""
    absent = [attempt.source for attempt in attempts if attempt.how == "not here"]
    meant = [spec for spec in absent if version and version == release_of(spec)]
    takes_it_as_it_is = base.how in _TAKES and not base.left_out
    wanted = meant or ([] if takes_it_as_it_is else absent)
    return [
        f"without --dry-run, kteardown fetches {spec} first, and measures there if it takes the "
        "series"
        for spec in wanted[:1]
    ]


def _fetched(
    attempts: Sequence[TriedSource],
    patches: Sequence[Path],
    sources: Sources,
    version: str,
    reporter: Reporter,
) -> list[TriedSource]:
    """Return ``attempts`` after those sources were fetched that are needed: one after the other,
    until one takes the series.

    Those of ``version`` come first. They are needed also if a source of another version takes it.
    """
    after = list(attempts)
    absent = [number for number, attempt in enumerate(attempts) if attempt.how == "not here"]
    meant = [n for n in absent if version and version == release_of(attempts[n].source)]
    for number in [*meant, *(n for n in absent if n not in meant)]:
        of_version = [a for a in after if version and a.version == version]
        decided = any(a.how in (*_TAKES, "already there") for a in of_version)
        if decided or (number not in meant and any(a.how in _TAKES for a in after)):
            break
        spec = after[number].source
        after[number] = _attempt(spec, patches, sources, fetch=True, reporter=reporter)
    return after


def default_sources(sources: Sources) -> tuple[str, ...]:
    """Return ``KNOWN``, or the same versions of kernel.org on a host that has nothing of Debian."""
    identified = (sources.identify_offline(spec) for spec in KNOWN)
    if (
        any(source and sources.tree_path(source).is_dir() for source in identified)
        or sources.has_mirror()
    ):
        return KNOWN
    return tuple(spec.replace("debian:", "kernel.org:") for spec in KNOWN)


def is_code(name: str) -> bool:
    """Return whether a kernel may be built from the file ``name``."""
    return not _NOT_BUILT.fullmatch(name)


def code_only(patches: Sequence[Path]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Return the patches without the files that no kernel is built from, and the names of these
    files.

    Each patch is a file name and a text; a patch of which nothing is left is left out.
    """
    texts: list[tuple[str, bytes]] = []
    dropped: dict[str, None] = {}
    for patch in patches:
        head, *sections = _SECTION.split(patch.read_bytes())
        code = [section for section in sections if is_code(_name(section))]
        dropped |= {_name(section): None for section in sections if section not in code}
        if code or not sections:
            texts.append((patch.name, head + b"".join(code)))
    return texts, list(dropped)


def _direct(patches: Sequence[Path], attempts: Sequence[TriedSource], version: str) -> Base | None:
    """Return the first source that takes the series exactly, or else the first that takes it with
    offsets; of the meant version, if there is one."""
    meant = [attempt for attempt in attempts if version and attempt.version == version]
    for group, how in product((meant, attempts), ("exactly", "with offsets")):
        for attempt in group:
            if attempt.how == how:
                return Base(
                    attempt.source, attempt.id, attempt.how, tuple(patches), tuple(attempts)
                )
    return None


def _with_revision(spec: str, base_commit: str, images: Mapping[str, str]) -> tuple[str, str]:
    """Return a git tree that is named without a revision at the commit that the series was made
    from.

    That is its base commit, or else the newest release that has exactly the files ``images``. If
    none has, the second part says between which releases they are.
    """
    kind, _, path = spec.partition(":")
    if kind != "git" or "@" in path:
        return spec, ""
    same: dict[str, list[str]] = {}
    with git.view(Path(path).expanduser()) as git_dir:
        if (
            base_commit
            and git.run("cat-file", "-e", f"{base_commit}^{{commit}}", git_dir=git_dir).ok
        ):
            return f"{spec}@{base_commit}", ""
        for tag in git.releases(Path(path).expanduser())[:_TAGS] if images else ():
            listed = git.run(
                "--literal-pathspecs", "ls-tree", "-r", tag, "--", *images, git_dir=git_dir
            ).text
            blobs = {line.partition("\t")[2]: line.split()[2] for line in listed.splitlines()}
            same[tag] = [
                name for name, blob in images.items() if blobs.get(name, "").startswith(blob)
            ]
            if len(same[tag]) == len(images):
                return f"{spec}@{tag}", ""
    return spec, made_between(same, len(images))


def attempt(spec: str, patches: Sequence[Path], sources: Sources) -> TriedSource:
    """Return what becomes of a series on one source, which is not fetched."""
    return _attempt(spec, patches, sources, fetch=False)


def _attempt(
    spec: str,
    patches: Sequence[Path],
    sources: Sources,
    *,
    fetch: bool,
    reporter: Reporter | None = None,
) -> TriedSource:
    try:
        source = sources.identify(spec) if fetch else sources.identify_offline(spec)
        unpacked = source is not None and sources.tree_path(source).is_dir()
        if source is None or (
            source.kind in ("debian", "kernel.org") and not fetch and not unpacked
        ):
            return TriedSource(spec, source.id if source else "", "not here", reason=ABSENT)
        if reporter and not unpacked and source.kind in ("debian", "kernel.org"):
            reporter.note(f"kteardown fetches {spec}: {_size(source)}")
        tree = sources.tree(source)
    except LabError as error:
        return TriedSource(
            spec, "", "not here", reason=f"cannot be fetched: {error.message.splitlines()[0]}"
        )
    images = pre_images(patches)
    same = tuple(path for path, blob in images.items() if blob_id(tree / path).startswith(blob))
    attempt = TriedSource(
        spec, source.id, "fails", same=same, files=len(images), version=version_of(tree)
    )
    if not apply_patches.failure(tree, patches, source.id):
        exact = bool(images) and len(same) == len(images)
        return replace(attempt, how="exactly" if exact else "with offsets")
    return failing_hunks(attempt, tree, patches)


def _size(source: Source) -> str:
    """Return how much is fetched for a source of Debian or of kernel.org, in words."""
    is_package = source.kind == "debian"
    size = package_from_json(source.origin).bytes / 1e6 if is_package else USUAL_MB
    return f"{'' if is_package else 'about '}{size:.0f} MB, about {TREE_GB} GB when unpacked"


def _fitted(
    patches: Sequence[Path],
    attempts: Sequence[TriedSource],
    sources: Sources,
    store: Store,
    version: str,
) -> Base | None:
    """Return the first source into which the series can be merged, or else the one that it nearly
    fits.

    A source that has a part of the series is none: it would be applied a second time, and only the
    rest would be measured.
    """
    available = [
        sources.identify(a.source) for a in attempts if a.how not in ("not here", "already there")
    ]
    trees = [sources.tree(source) for source in available]
    repositories = [Path(source.origin) for source in available if source.kind == "git"]
    tried = [a for a in attempts if a.how == "fails" and not a.present and not a.has_most]
    tried.sort(key=lambda a: a.version != version)
    ways: tuple[How, ...] = ("merged", "with less context")
    for way in ways:
        candidates = (
            tried
            if way == "merged"
            else sorted((a for a in tried if not a.present_hunks), key=lambda a: len(a.failing))
        )
        for attempt in candidates:
            tree = sources.tree(sources.identify(attempt.source))
            texts = (
                merge(patches, tree, trees, repositories)
                if way == "merged"
                else with_less_context(patches, tree)
            )
            if texts is None or len(texts) != len(patches):
                continue
            stored = store(texts)
            if moved_elsewhere(tree, patches, stored):
                continue
            fitted = replace(attempt, how=way)
            every = tuple(fitted if a is attempt else a for a in attempts)
            return Base(attempt.source, attempt.id, way, stored, every)
    return None


def _name(section: bytes) -> str:
    match = _NAME.match(section)
    return match[2].decode(errors="replace") if match else ""
