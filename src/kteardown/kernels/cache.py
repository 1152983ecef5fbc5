"""The cache of kernels: its entries, their keys, and how they are removed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from kteardown.errors import InputError
from kteardown.kernels import cache_folder
from kteardown.kernels.kconfig import WantedSymbol
from kteardown.kernels.request import KernelImage
from kteardown.model.arch import Arch

# To be increased when the same inputs produce another image, or when the layout of an entry changes.
_FORMAT = 3
_META = "kernel.json"
_SERIES_WITH_OBJECTS = 8
EntryKind = Literal["kernel", "tree", "object", "source", "download", "log"]


@dataclass(frozen=True)
class CacheEntry:
    """One entry of the cache. Fields that its kind does not have are empty."""

    kind: EntryKind
    key: str
    """The folder's name: for a kernel or tree, a hash of everything it is built from; for others, a name."""
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
        return f"{self.kind} {self.key} {facts}".strip() + f" ({self.size_kb // 1024} MB)"


def key(
    source_id: str, patches: Iterable[Path], wanted: Iterable[WantedSymbol], arch: Arch, compiler: str
) -> str:
    """Return the key of a kernel: a hash of everything it is built from, in 16 hexadecimal digits."""
    digest = hashlib.sha256()
    # Of the symbols, not of the files: comments in fragments and their order do not change a kernel.
    config = sorted(want.text() for want in wanted)
    contents = [hashlib.sha256(patch.read_bytes()).hexdigest() for patch in patches]
    digest.update(json.dumps([_FORMAT, source_id, contents, config, arch, compiler]).encode())
    return digest.hexdigest()[:16]


class Cache:
    """The kernels below one folder, with the trees, sources, downloads and logs that they come from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kernel_path(self, key: str) -> Path:
        """Return the folder of a finished kernel.

        It contains the image, config, System.map, vmlinux, build.log and kernel.json.
        """
        return self.folder / "kernels" / key

    def tree_path(self, key: str) -> Path:
        """Return the folder with the objects of a base kernel, from which builds of variants start."""
        return self.folder / "trees" / key

    def objects_path(self, series: str) -> Path:
        """Return the folder of ccache for the kernels of a series, which limits its size.

        Each series has its own, because makefiles of a patch can write anything into it. Those of all but
        the last few series are removed.
        """
        folder = self.folder / "objects"
        mine = folder / hashlib.sha256(series.encode()).hexdigest()[:16]
        others = [path for path in folder.glob("*") if path != mine]
        for path in sorted(others, key=lambda path: path.stat().st_mtime)[: 1 - _SERIES_WITH_OBJECTS]:
            cache_folder.remove(path)
        return mine

    def log_path(self, key: str) -> Path:
        """Return the folder for the logs of a build in progress; it is kept if the build fails."""
        return self.folder / "logs" / key

    def lookup(self, key: str, name: str) -> KernelImage | None:
        """Return the finished kernel, named ``name``, and mark it as used now; None if it is missing."""
        meta = self.kernel_path(key) / _META
        try:
            fields = json.loads(meta.read_text())["image"]
            os.utime(meta)
        except FileNotFoundError:
            return None
        folder = meta.parent
        return KernelImage(
            **{
                **fields,
                "name": name,
                "image": folder / fields["image"],
                "modules": tuple(folder / module for module in fields["modules"]),
                "optional_modules": {
                    module: tuple(folder / path for path in paths)
                    for module, paths in fields.get("optional_modules", {}).items()
                },
            }
        )

    def describe(self, folder: Path, image: KernelImage, **more: Any) -> None:
        """Write the description of a kernel whose files are in ``folder``, which may be renamed later."""
        fields = asdict(image)
        del fields["name"]
        fields["image"] = str(image.image.relative_to(folder))
        fields["modules"] = [str(module.relative_to(folder)) for module in image.modules]
        fields["optional_modules"] = {
            name: [str(path.relative_to(folder)) for path in paths]
            for name, paths in image.optional_modules.items()
        }
        size = cache_folder.size_kb([folder])
        (folder / _META).write_text(json.dumps({"image": fields, "size_kb": size, **more}, indent=1) + "\n")

    def steps(self, arch: Arch, *, variant: bool) -> int | None:
        """Return the compile steps of the most recently used kernel of this kind; None without one."""
        found = self._built(arch, "steps", variant=variant)
        return int(found[-1]) if found else None

    def build_seconds(self, arch: Arch, *, variant: bool) -> list[float]:
        """Return the build times, in seconds, of the kernels of this kind, the most recently used last."""
        return self._built(arch, "seconds", variant=variant)

    def _built(self, arch: Arch, what: str, *, variant: bool) -> list[float]:
        """Return the field ``what`` of the kernels built here that have it, the most recently used last."""
        found: list[tuple[float, float]] = []
        for path in self._folders("kernels"):
            fields = json.loads((path / _META).read_text())
            mine = fields["image"]["arch"] == arch and bool(fields["image"]["series"]) == variant
            if mine and fields.get(what):
                found.append(((path / _META).stat().st_mtime, fields[what]))
        return [value for _, value in sorted(found)]

    def entries(self) -> list[CacheEntry]:
        """Return the finished kernels, the most recently used first."""
        found = []
        for path in self._folders("kernels"):
            fields = json.loads((path / _META).read_text())
            image = fields["image"]
            found.append(
                CacheEntry(
                    "kernel", path.name, path, fields["size_kb"], _modified(path / _META),
                    image["source"], image["series"], image["arch"], image["release"],
                )
            )  # fmt: skip
        return sorted(found, key=lambda entry: entry.last_used, reverse=True)

    def others(self) -> list[CacheEntry]:
        """Return all other entries: trees, objects, sources, downloads, logs of failed builds."""
        folders: dict[str, EntryKind] = {
            "trees": "tree",
            "objects": "object",
            "sources": "source",
            "downloads": "download",
            "apt": "download",
            "logs": "log",
        }
        return [
            CacheEntry(kind, path.name, path, cache_folder.size_kb([path]), _modified(path))
            for name, kind in folders.items()
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
        ``older_than_days`` all entries that have not been used for so many days;
        ``everything`` all entries. Entries that another process is making now are kept.
        With ``dry_run`` nothing is removed. Raises InputError if no kernel has a key of ``keys``.
        """
        entries = [*self.entries(), *self.others()]
        for wanted in keys:
            if not any(entry.kind == "kernel" and entry.key.startswith(wanted) for entry in entries):
                raise InputError(
                    f"no kernel {wanted!r} in the cache",
                    hint="choose a key that `kteardown list kernels` shows.",
                )
        limit = datetime.now() - timedelta(days=older_than_days) if older_than_days is not None else None

        def selected(entry: CacheEntry) -> bool:
            named = entry.kind in ("kernel", "tree") and any(entry.key.startswith(wanted) for wanted in keys)
            return everything or named or (limit is not None and entry.last_used < limit)

        chosen = [entry for entry in entries if selected(entry) and not cache_folder.is_locked(entry.path)]
        if not dry_run:
            self._remove(chosen)
        return chosen

    def _remove(self, entries: Sequence[CacheEntry]) -> None:
        for entry in entries:
            cache_folder.remove(entry.path)
        if any(entry.kind == "source" for entry in entries):
            # Resolve debian:X.Y again next time: the archive may have dropped that version.
            cache_folder.remove(self.folder / "resolved")
        for name in ("kernels", "trees", "sources", "downloads", "apt"):
            if (self.folder / name).is_dir():
                cache_folder.sweep(self.folder / name)

    def _folders(self, name: str) -> Iterator[Path]:
        parent = self.folder / name
        for path in sorted(parent.iterdir()) if parent.is_dir() else ():
            if not path.name.startswith(".") and (name != "kernels" or (path / _META).is_file()):
                yield path


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime)
