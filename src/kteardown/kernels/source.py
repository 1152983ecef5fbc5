"""Kernel sources: what a source name means exactly, and its tree unpacked once in the cache."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from kteardown.errors import InputError, LabError
from kteardown.kernels import cache_folder, toolchain
from kteardown.kernels.apt import Apt, Package, Tier
from kteardown.progress import Reporter

_KINDS = ("debian", "git", "tar", "image", "debian-image")
_FORMS = "debian:X.Y, git:PATH@REV, tar:FILE, image:FILE or debian-image:X.Y"
# A tree of 6.12 takes 1.5 GB, and its package 150 MB beside it.
_TREE_MB = 2200


@dataclass(frozen=True)
class Source:
    """A source as it was found. ``id`` is exact: equal ids are equal trees."""

    id: str
    slug: str
    """``id`` as a folder's name."""
    origin: str
    """What the tree is unpacked from: a file, a repository, or the JSON of a package."""

    @property
    def kind(self) -> str:
        return self.id.partition(":")[0]


def split(spec: str) -> tuple[str, str]:
    """Kind and rest of a source's name. Raises InputError where it is none."""
    kind, colon, rest = spec.partition(":")
    if not colon or not rest or kind not in _KINDS:
        raise InputError(f"{spec!r} is no kernel source", hint=f"Write {_FORMS}.")
    return kind, rest


def is_source(text: str) -> bool:
    """Whether ``text`` names a kernel source or a ready image, as opposed to a series or a file."""
    return text.partition(":")[0] in _KINDS and ":" in text


class UnpackError(LabError):
    """An archive that could not be unpacked."""


class Sources:
    """The sources of one cache."""

    def __init__(self, cache_dir: Path, reporter: Reporter) -> None:
        self._cache = cache_dir
        self._reporter = reporter

    @property
    def folder(self) -> Path:
        """The cache's folder."""
        return self._cache

    def identify(self, spec: str) -> Source:
        """What ``spec`` is, exactly. Asks the network only for a Debian package never resolved before.

        Raises InputError where it does not exist.
        """
        kind, rest = split(spec)
        if kind == "debian":
            return self._debian(rest)
        if kind == "git":
            return _git(rest)
        if kind == "tar":
            return self._tar(rest)
        raise InputError(
            f"{spec} is a ready image, which has no source tree",
            hint="patches need a source: debian:X.Y, git:PATH@REV or tar:FILE.",
        )

    def known(self, spec: str) -> Source | None:
        """As ``identify``, and None where that would have to ask the network."""
        if split(spec)[0] == "debian" and not self._answer_path(spec, "").exists():
            return None
        return self.identify(spec)

    def tree(self, source: Source) -> Path:
        """The unpacked tree of ``source``. Never write to it: builds and patches work on copies."""
        target = self.tree_path(source)
        if target.is_dir():
            return target
        with cache_folder.locked(target, self._reporter, f"unpack {source.id}"):
            if target.is_dir():
                return target
            cache_folder.need_space(target.parent, _TREE_MB, f"the source tree of {source.id}")
            unpack: dict[str, Callable[[Source, Path], None]] = {
                "debian": self._unpack_debian,
                "git": self._unpack_git,
                "tar": self._unpack_tar,
            }
            with cache_folder.published(target) as folder:
                unpack[source.kind](source, folder)
                _protect(folder)
        return target

    def tree_path(self, source: Source) -> Path:
        """Where the tree is or will be."""
        return self._cache / "sources" / source.slug

    def remember(self, spec: str, facts: object, find: Callable[[], dict[str, str]]) -> dict[str, str]:
        """What ``find`` answered the first time for this ``spec`` while ``facts`` stayed the same."""
        path = self._answer_path(spec, facts)
        if path.exists():
            answer: dict[str, str] = json.loads(path.read_text())["answer"]
            return answer
        answer = find()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps({"spec": spec, "answer": answer}, indent=1) + "\n")
        partial.replace(path)
        return answer

    def _answer_path(self, spec: str, facts: object) -> Path:
        name = hashlib.sha256(f"{spec}\n{facts}".encode()).hexdigest()[:24]
        return self._cache / "resolved" / f"{name}.json"

    def package_file(self, package: Package, architecture: str) -> Path:
        """The downloaded .deb of ``package``."""
        return self._apt(architecture).download(package, self._cache / "downloads")

    def find_package(self, pattern: str, architecture: str, version: str = "") -> Package:
        return self._apt(architecture).find(pattern, version)

    def _apt(self, architecture: str) -> Apt:
        return Apt(self._cache / "apt", self._reporter, architecture)

    def _debian(self, version: str) -> Source:
        match = re.fullmatch(r"(\d+\.\d+)(\.\S+)?", version)
        if not match:
            raise InputError(
                f"debian:{version} is no kernel version",
                hint="Write debian:6.12, or the whole version of a package.",
            )
        series, exact = match[1], version if match[2] else ""

        def find() -> dict[str, str]:
            pattern = f"linux-source-{re.escape(series)}"
            return {"package": json.dumps(asdict(self.find_package(pattern, _host_architecture(), exact)))}

        package = package_from_json(self.remember(f"debian:{version}", "", find)["package"])
        # A colon separates an epoch; kernels have none, and a folder's name should not have one either.
        slug = f"debian-{package.version}".replace(":", "_")
        return Source(f"debian:{package.version}", slug, json.dumps(asdict(package)))

    def _tar(self, name: str) -> Source:
        path = Path(name).expanduser().absolute()
        if not path.is_file():
            raise InputError(f"tar:{name}: there is no such file", hint="Name a tarball of a kernel tree.")
        stat = path.stat()
        facts = (path, stat.st_size, stat.st_mtime_ns)
        digest = self.remember(f"tar:{path}", facts, lambda: {"sha256": file_hash(path)})["sha256"]
        return Source(f"tar:{path.name}#{digest[:16]}", f"tar-{digest[:16]}", str(path))

    def _unpack_debian(self, source: Source, folder: Path) -> None:
        package = package_from_json(source.origin)
        deb = self.package_file(package, _host_architecture())
        with self._reporter.task(f"Unpacking {package.name} {package.version}"):
            member = f"./usr/src/{package.name}.tar.xz"
            outer = ["dpkg-deb", "--fsys-tarfile", str(deb)]
            _pipe([outer, ["tar", "-xO", member], _untar(folder, "--xz")], folder)

    def _unpack_git(self, source: Source, folder: Path) -> None:
        commit = source.id.rpartition("@")[2]
        with self._reporter.task(f"Unpacking {source.id}"):
            archive = ["git", "-C", source.origin, "archive", "--format=tar", commit]
            _pipe([archive, ["tar", "-x", "-C", str(folder)]], folder)
        _expect_kernel(source, folder)

    def _unpack_tar(self, source: Source, folder: Path) -> None:
        with self._reporter.task(f"Unpacking {source.origin}"):
            try:
                _pipe([["cat", source.origin], _untar(folder, _decompressor(Path(source.origin)))], folder)
            except UnpackError as error:
                raise InputError(
                    f"{source.origin} is no whole tarball: {error.message}",
                    hint="Name the tarball of a kernel tree, plain or packed by gzip, bzip2, xz or zstd.",
                ) from error
        _expect_kernel(source, folder)


def file_hash(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def package_from_json(text: str) -> Package:
    """The inverse of ``json.dumps(asdict(package))``."""
    fields = json.loads(text)
    tier = fields["tier"]
    suites = tuple((str(mirror), str(suite)) for mirror, suite in tier["suites"])
    return Package(fields["name"], fields["version"], Tier(tier["name"], suites))


def _git(rest: str) -> Source:
    path, at, revision = rest.rpartition("@")
    if not at:
        path, revision = rest, "HEAD"
    repository = Path(path).expanduser().absolute()
    if not repository.is_dir():
        raise InputError(f"git:{rest}: {repository} is no folder", hint="Write git:PATH@REV.")
    argv = ["git", "-C", str(repository), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    done = toolchain.capture(argv)
    commit = done.stdout.strip()
    if done.returncode or not commit:
        raise InputError(
            f"git:{rest}: {revision!r} is no commit of {repository}",
            hint="Name a branch, a tag or a commit id; fetch it first where it is remote.",
        )
    return Source(f"git:{repository.name}@{commit}", f"git-{commit[:16]}", str(repository))


def _host_architecture() -> str:
    return toolchain.capture(["dpkg", "--print-architecture"]).stdout.strip()


def _untar(folder: Path, decompress: str) -> list[str]:
    # The tarballs have one folder at the top, whose name says nothing that the id does not.
    return ["tar", "-x", decompress, "--strip-components=1", "-C", str(folder)]


def _decompressor(path: Path) -> str:
    known = {b"\xfd7zXZ": "--xz", b"\x1f\x8b": "--gzip", b"BZh": "--bzip2", b"\x28\xb5\x2f\xfd": "--zstd"}
    with path.open("rb") as stream:
        head = stream.read(8)
    return next((option for magic, option in known.items() if head.startswith(magic)), "--no-same-owner")


def _pipe(stages: list[list[str]], folder: Path) -> None:
    """Run a pipeline that unpacks into ``folder``. Raises LabError with what the failing stages said."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for argv in stages:
            last = running[-1].stdout if running else subprocess.DEVNULL
            running.append(subprocess.Popen(argv, stdin=last, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            if running[:-1]:
                stdout = running[-2].stdout
                assert stdout is not None
                stdout.close()
        failures: list[str] = []
        for argv, process in reversed(list(zip(stages, running, strict=True))):
            assert process.stderr is not None
            said = process.stderr.read().decode(errors="replace").strip()
            if process.wait():
                failures.append(said or f"{argv[0]}: exit status {process.returncode}")
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
    if failures:
        text = "; ".join(failures)
        if "No space left" in text:
            raise cache_folder.disk_full(folder)
        raise UnpackError(text, hint="Try again; where it fails again, prune the cache of its downloads.")


def _expect_kernel(source: Source, folder: Path) -> None:
    if not (folder / "Kconfig").is_file() or not (folder / "Kbuild").is_file():
        raise InputError(
            f"{source.id} is no kernel tree: it has no Kconfig and Kbuild at its top",
            hint="Name the tarball or the repository of a Linux kernel.",
        )


def _protect(folder: Path) -> None:
    """Take the write permission from every file, which the hard-linked copies of it share."""
    subprocess.run(["find", str(folder), "-type", "f", "-exec", "chmod", "a-w", "{}", "+"], check=True)
