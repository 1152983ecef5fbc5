"""The cache of kernels: what is there, what it is keyed by, and how it is emptied."""

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
from kteardown.kernels.kconfig import Wanted
from kteardown.kernels.request import KernelImage
from kteardown.model.arch import Arch

# Raised where the same inputs come to mean another image or another layout of an entry.
_FORMAT = 1
_META = "kernel.json"
Kind = Literal["kernel", "tree", "source", "download", "log"]


@dataclass(frozen=True)
class Entry:
    """One thing in the cache. Fields that a kind does not have are empty."""

    kind: Kind
    key: str
    """The folder's name: a hash of all that went into a kernel or tree, else a source's name."""
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


def key(source_id: str, patches: Iterable[Path], wanted: Iterable[Wanted], arch: Arch, compiler: str) -> str:
    """The name of a kernel in the cache: 16 hexadecimal digits over all that goes into it."""
    digest = hashlib.sha256()
    # By meaning: a comment in a fragment or the order of the fragments changes no kernel.
    config = sorted(want.text() for want in wanted)
    contents = [hashlib.sha256(patch.read_bytes()).hexdigest() for patch in patches]
    digest.update(json.dumps([_FORMAT, source_id, contents, config, arch, compiler]).encode())
    return digest.hexdigest()[:16]


class Cache:
    """Kernels, and what they are made from, below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kernel_path(self, key: str) -> Path:
        """The folder of a finished kernel: image, config, System.map, vmlinux, build.log, kernel.json."""
        return self.folder / "kernels" / key

    def tree_path(self, key: str) -> Path:
        """The objects of a base's build, from which variants start."""
        return self.folder / "trees" / key

    def log_path(self, key: str) -> Path:
        """Where tuxmake writes while a kernel is built; kept where that fails."""
        return self.folder / "logs" / key

    def lookup(self, key: str, name: str) -> KernelImage | None:
        """The finished kernel, called ``name``, and marked as used now; None where there is none."""
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
            }
        )

    def describe(self, folder: Path, image: KernelImage, **more: Any) -> None:
        """Write the description of a kernel whose files are in ``folder``, which may be renamed."""
        fields = asdict(image)
        del fields["name"]
        fields["image"] = str(image.image.relative_to(folder))
        fields["modules"] = [str(module.relative_to(folder)) for module in image.modules]
        size = cache_folder.size_kb([folder])
        (folder / _META).write_text(json.dumps({"image": fields, "size_kb": size, **more}, indent=1) + "\n")

    def steps(self, arch: Arch, *, variant: bool) -> int | None:
        """Compile steps of the kernel of this kind that was used last; None where there is none yet."""
        found = self._built(arch, "steps", variant=variant)
        return int(found[-1]) if found else None

    def build_seconds(self, arch: Arch, *, variant: bool) -> list[float]:
        """How long the kernels of this kind that are there took to build, the one used last at the end."""
        return self._built(arch, "seconds", variant=variant)

    def _built(self, arch: Arch, what: str, *, variant: bool) -> list[float]:
        """``what`` the cache's records say of the kernels built here, where they say it."""
        found: list[tuple[float, float]] = []
        for path in self._folders("kernels"):
            fields = json.loads((path / _META).read_text())
            mine = fields["image"]["arch"] == arch and bool(fields["image"]["series"]) == variant
            if mine and fields.get(what):
                found.append(((path / _META).stat().st_mtime, fields[what]))
        return [value for _, value in sorted(found)]

    def entries(self) -> list[Entry]:
        """The finished kernels, the one used last first."""
        found = []
        for path in self._folders("kernels"):
            fields = json.loads((path / _META).read_text())
            image = fields["image"]
            found.append(
                Entry(
                    "kernel", path.name, path, fields["size_kb"], _modified(path / _META),
                    image["source"], image["series"], image["arch"], image["release"],
                )
            )  # fmt: skip
        return sorted(found, key=lambda entry: entry.last_used, reverse=True)

    def others(self) -> list[Entry]:
        """All else: build trees, unpacked sources, downloads, logs of builds that failed."""
        folders: dict[str, Kind] = {
            "trees": "tree",
            "sources": "source",
            "downloads": "download",
            "apt": "download",
            "logs": "log",
        }
        return [
            Entry(kind, path.name, path, cache_folder.size_kb([path]), _modified(path))
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
    ) -> list[Entry]:
        """Remove entries, and say which.

        ``keys``: kernels by key or the beginning of one, with their build trees;
        ``older_than_days``: all not used for so long; ``everything``: all. What another
        process is making now stays. Raises InputError for a key that is not there.
        """
        entries = [*self.entries(), *self.others()]
        for wanted in keys:
            if not any(entry.kind == "kernel" and entry.key.startswith(wanted) for entry in entries):
                raise InputError(
                    f"no kernel {wanted!r} in the cache", hint="`kteardown list kernels` shows them."
                )
        limit = datetime.now() - timedelta(days=older_than_days) if older_than_days is not None else None

        def goes(entry: Entry) -> bool:
            named = entry.kind in ("kernel", "tree") and any(entry.key.startswith(wanted) for wanted in keys)
            return everything or named or (limit is not None and entry.last_used < limit)

        chosen = [entry for entry in entries if goes(entry) and not cache_folder.is_locked(entry.path)]
        if not dry_run:
            self._remove(chosen)
        return chosen

    def _remove(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            cache_folder.remove(entry.path)
        if any(entry.kind == "source" for entry in entries):
            # What debian:X.Y means is asked again: the archive may have dropped that version.
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
