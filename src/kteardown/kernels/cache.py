"""The cache of kernels: its entries, their keys, and how they are removed."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from kteardown.errors import InputError
from kteardown.kernels import cache_folder
from kteardown.kernels.kconfig import WantedSymbol
from kteardown.kernels.request import KernelImage
from kteardown.model.arch import Arch
from kteardown.paths import key_of
from kteardown.progress import Reporter, SilentReporter
from kteardown.vm import seal

# To be increased when the same inputs produce another image, or when the layout of an entry
# changes.
_FORMAT = 4
META = "kernel.json"
_image = TypeAdapter(KernelImage)
DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What a damaged description raises."""
FOLDERS = (
    *("trees", "sources", "downloads", "lists", "logs", "resolved", "layout"),
    # Of a user's patches, of bisections, of mailing lists, and of scripts; boots of all.
    *("series", "histories", "bisections", "mail", "archive", "scripts", "coverage", "boots"),
    # ``machines`` is what `doctor --machine` proved.
    *("agent", "plugins", "programs", "machines"),
    # Of earlier versions: lists of packages, and what ccache kept of a series.
    *("apt", "objects"),
)
"""What a cache has besides kernels; the answers about sources are removed with these."""


@dataclass(frozen=True)
class CacheEntry:
    """One entry of the cache. Fields that only kernels have are otherwise empty."""

    folder: str
    """``kernels``, or one of ``FOLDERS``."""
    key: str
    """Its name: for a kernel or tree, a hash of everything it is built from."""
    path: Path
    size_kb: int
    last_used: datetime
    """Local time."""
    source: str = ""
    series: str = ""
    arch: str = ""
    release: str = ""

    def __str__(self) -> str:
        facts = " ".join(filter(None, (self.release, self.arch, self.source, self.series)))
        return f"{self.folder}/{self.key} {facts}".strip() + f" ({self.size_kb // 1024} MB)"


def key(
    source_id: str,
    patches: Iterable[Path],
    wanted: Iterable[WantedSymbol],
    arch: Arch,
    compiler: str,
) -> str:
    """Return the key of a kernel: a hash of everything it is built from."""
    # Of the symbols, not of the files: comments in fragments and their order do not change a
    # kernel.
    config = sorted(want.text() for want in wanted)
    contents = [hashlib.sha256(patch.read_bytes()).hexdigest() for patch in patches]
    return key_of(json.dumps([_FORMAT, source_id, contents, config, arch, compiler]).encode())


class Cache:
    """The kernels below one folder, with the trees, sources, downloads and logs that they come
    from."""

    def __init__(self, folder: Path, reporter: Reporter | None = None) -> None:
        self.folder = folder
        self._reporter = reporter or SilentReporter()

    def kernel_path(self, key: str) -> Path:
        """Return the folder of a finished kernel.

        It contains the image, config, System.map, vmlinux, build.log and kernel.json.
        """
        return self.folder / "kernels" / key

    def tree_path(self, key: str) -> Path:
        """Return the folder with the objects of a base kernel, from which builds of variants
        start."""
        return self.folder / "trees" / key

    def lookup(self, key: str, name: str) -> KernelImage | None:
        """Return the finished kernel, named ``name``, and mark it as used now; None if it is
        missing.

        It is not removed before this process ends (``cache_folder.hold``). A damaged one counts as
        missing: it is removed, and noted.
        """
        folder = self.kernel_path(key)
        if not folder.is_dir():
            return None
        cache_folder.hold(folder)
        if not seal.is_intact(folder, SilentReporter()):
            with cache_folder.locked(folder, self._reporter, "remove a damaged kernel"):
                if not seal.is_intact(folder, self._reporter):
                    cache_folder.remove(folder)
                    return None
        image = _image.validate_python(
            json.loads((folder / META).read_text())["image"] | {"name": name}
        )
        optional = {
            name: tuple(map(folder.joinpath, files))
            for name, files in image.optional_modules.items()
        }
        modules = tuple(map(folder.joinpath, image.modules))
        return replace(
            image, image=folder / image.image, modules=modules, optional_modules=optional
        )

    def describe(self, folder: Path, image: KernelImage, **more: Any) -> None:
        """Write the description of a kernel whose files are in ``folder``, which may be renamed
        later."""
        fields = {"image": asdict(image), "size_kb": cache_folder.size_kb([folder]), **more}
        del fields["image"]["name"]
        text = json.dumps(fields, indent=1, default=lambda path: str(path.relative_to(folder)))
        (folder / META).write_text(text + "\n")

    def steps(self, arch: Arch, *, variant: bool) -> int | None:
        """Return the compile steps of the most recently used kernel of this kind; None without
        one."""
        counts = self.built(arch, "steps", variant=variant)
        return int(counts[-1]) if counts else None

    def built(self, arch: Arch, what: Literal["steps", "seconds"], *, variant: bool) -> list[float]:
        """Return the steps, or the seconds, of the kernels that were built here, the last used one
        last."""
        measured: list[tuple[float, float]] = []
        for path in self.folders():
            with suppress(*DAMAGED):
                fields = json.loads((path / META).read_text())
                same_kind = (
                    fields["image"]["arch"] == arch and bool(fields["image"]["series"]) == variant
                )
                if same_kind and fields.get(what):
                    measured.append((path.stat().st_mtime, float(fields[what])))
        return [value for _, value in sorted(measured)]

    def folders(self) -> Iterator[Path]:
        """Return the folders of the finished kernels."""
        return self._folders("kernels")

    def entries(self) -> list[CacheEntry]:
        """Return the finished kernels, the most recently used first.

        The source of a kernel whose description cannot be read is ``damaged``.
        """
        kernels = []
        for path in self.folders():
            try:
                fields = json.loads((path / META).read_text())
                facts = [
                    str(fields["image"][name]) for name in ("source", "series", "arch", "release")
                ]
                size = int(fields["size_kb"])
            except DAMAGED:
                facts = ["damaged"]
                size = cache_folder.size_kb([path])
            kernels.append(CacheEntry("kernels", path.name, path, size, _modified(path), *facts))
        return sorted(kernels, key=lambda entry: entry.last_used, reverse=True)

    def others(self) -> list[CacheEntry]:
        """Return all other entries."""
        return [
            CacheEntry(name, path.name, path, cache_folder.size_kb([path]), _modified(path))
            for name in FOLDERS
            for path in self._folders(name)
        ]

    def prune(
        self,
        keys: Sequence[str] = (),
        *,
        older_than_days: float | None = None,
        everything: bool = False,
        dry_run: bool = False,
    ) -> list[CacheEntry]:
        """Remove entries and return them.

        ``keys`` selects kernels by a key or its beginning, with their build trees;
        ``older_than_days`` all entries that have not been used for so many days; ``everything`` all
        entries. Entries that a process makes or uses now are kept, and noted. With ``dry_run``
        nothing is removed. Raises InputError unless each of ``keys`` fits one kernel.
        """
        entries = [*self.entries(), *self.others()]
        full_keys = {
            _the_one(prefix, [e.key for e in entries if e.folder == "kernels"]) for prefix in keys
        }
        limit = (
            datetime.now() - timedelta(days=older_than_days)
            if older_than_days is not None
            else None
        )

        def selected(entry: CacheEntry) -> bool:
            named = entry.folder in ("kernels", "trees") and entry.key in full_keys
            return everything or named or (limit is not None and entry.last_used < limit)

        chosen = []
        for entry in filter(selected, entries):
            with cache_folder.free(entry.path) as is_free:
                if not is_free:
                    self._reporter.note(f"kept {entry}, because a run or a build uses it")
                    continue
                if not dry_run:
                    cache_folder.remove(entry.path)
                chosen.append(entry)
        if not dry_run:
            if everything or any(entry.folder == "sources" for entry in chosen):
                # Resolve debian:X.Y again next time: the archive may have dropped that version.
                cache_folder.remove(self.folder / "answers")
            for name in ("kernels", *FOLDERS):
                cache_folder.sweep(self.folder / name)
        return chosen

    def _folders(self, name: str) -> Iterator[Path]:
        parent = self.folder / name
        for path in sorted(parent.iterdir()) if parent.is_dir() else ():
            if not path.name.startswith("."):
                yield path


def _the_one(prefix: str, keys: Sequence[str]) -> str:
    """Return the only one of ``keys`` that is or begins with ``prefix``. Raises InputError."""
    matches = sorted(key for key in keys if prefix and key.startswith(prefix))
    matches = [prefix] if prefix in matches else matches
    if len(matches) != 1:
        raise InputError(
            f"{prefix!r} fits several kernels: {', '.join(matches)}"
            if matches
            else f"no kernel {prefix!r} in the cache",
            hint="choose a key that `kteardown list kernels` shows.",
        )
    return matches[0]


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime)
