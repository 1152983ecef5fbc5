"""Kernel sources: resolve a source name to an exact version, and unpack its tree once into the
cache."""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel, TypeAdapter, ValidationError

from kteardown import spawn
from kteardown.errors import InputError, LabError
from kteardown.kernels import apply_patches, cache_folder, git, release
from kteardown.kernels.archive import Archive, Package
from kteardown.kernels.source_name import file_of, parts_of_patched, split
from kteardown.kernels.unpack import UnpackError, deb_stages, pipe, remove_special, untar
from kteardown.model.arch import ARCHITECTURES, DEFAULT_ARCH
from kteardown.paths import key_of, replace_text
from kteardown.progress import Reporter, SilentReporter
from kteardown.vm import seal

# A tree of 6.12 takes 1.5 GB, and its package another 150 MB.
_TREE_MB = 2200
_XZ = b"\xfd7zXZ"
_EVERY_REPOSITORY = (".git", "git", "repo", "src", "/")
_SOURCES = ARCHITECTURES[DEFAULT_ARCH].debian
"""The architecture in whose lists sources are looked up: their packages are for all."""


@dataclass(frozen=True)
class Source:
    """A resolved source. ``id`` is exact: sources with equal ids have equal trees."""

    id: str
    slug: str
    """The name of the folder of its tree, made from the contents of ``id``."""
    origin: str
    """Where the tree comes from: a file, a repository, or a package as JSON."""

    @property
    def kind(self) -> str:
        """The part of ``id`` before the colon, such as ``debian`` or ``git``."""
        return self.id.partition(":")[0]

    def pinned(self, spec: str) -> str:
        """Return ``spec``, which this is, with the commit in place of a revision of a git tree."""
        if self.kind == "patched":
            return f"patched:{self.origin}"
        return f"git:{self.origin}@{self.id.rpartition('@')[2]}" if self.kind == "git" else spec


def check_source(spec: str) -> None:
    """Check a source as far as that needs neither the cache nor the network. Raises InputError."""
    kind, rest = split(spec)
    if kind in ("tar", "image"):
        file_of(spec)
    elif kind == "git":
        _git(rest)
    elif kind == "kernel.org":
        release.check_version(rest)
    elif kind == "patched":
        check_source(parts_of_patched(spec)[1])


class _Answer(BaseModel):
    spec: str
    answer: dict[str, str]


class Sources:
    """Resolves sources and unpacks them into the cache ``folder``."""

    def __init__(self, cache_dir: Path, reporter: Reporter) -> None:
        cache_folder.check_path(cache_dir)
        self.folder = cache_dir
        self._reporter = reporter
        self._checked: set[Path] = set()
        self._absent: dict[Source, tuple[str, ...]] = {}

    def identify(self, spec: str) -> Source:
        """Resolve ``spec`` to an exact source.

        The network is used only for a Debian version that was not resolved before. Raises
        InputError if the source does not exist or is a prebuilt image, LabError if the Debian
        archive cannot be reached.
        """
        kind, rest = split(spec)
        if kind == "debian":
            package = self.kernel_package(spec, "", "linux-source-{}", _SOURCES)
            # A colon ends the epoch of a version. Kernels have none, and no folder should have a
            # colon.
            slug = f"debian-{package.version}".replace(":", "_")
            return Source(f"debian:{package.version}", slug, json.dumps(asdict(package)))
        if kind == "git":
            return self._of_git(rest)
        if kind == "kernel.org":
            release.check_version(rest)
            return Source(spec, f"kernel.org-{rest}", rest)
        if kind == "tar":
            path = file_of(spec)
            digest = self.digest(f"tar:{path}", path)[:32]
            return Source(f"tar:{path.name}#{digest}", f"tar-{digest}", str(path))
        if kind == "patched":
            folder, below, patches = parts_of_patched(spec)
            source = self.identify(below)
            digest = key_of(" ".join([source.id, *map(file_hash, patches)]).encode())
            name = f"patched:{folder.name}-{digest}@{source.id}"
            return Source(name, f"patched-{digest}", f"{folder}@{source.pinned(below)}")
        raise InputError(
            f"{spec} is a prebuilt image, which has no source tree",
            hint=(
                "name a source with a tree: debian:X.Y, kernel.org:X.Y.Z, git:PATH@REV or tar:FILE."
            ),
        )

    def _of_git(self, rest: str) -> Source:
        """Return the source of ``PATH@REV``; one without a few files if these are not in the
        repository."""
        source = _git(rest)
        if self.tree_path(source).is_dir():
            return source
        name, _, commit = source.id.rpartition("@")
        if source not in self._absent:
            gone = self._absent[source] = git.absent(Path(source.origin), commit)
            if gone:
                lacking = gone[0] if len(gone) == 1 else f"{len(gone)} files, such as {gone[0]},"
                self._reporter.note(
                    f"{source.origin} lacks {lacking} of {commit[:12]}: kteardown uses the "
                    "commit without"
                )
        gone = self._absent[source]
        if not gone:
            return source
        digest = key_of("\0".join(gone).encode(errors="surrogateescape"))
        short = replace(
            source, id=f"{name}-without-{len(gone)}-files@{commit}", slug=f"{source.slug}-{digest}"
        )
        self._absent[short] = gone
        return short

    def identify_offline(self, spec: str) -> Source | None:
        """Resolve ``spec`` like ``identify``, but return None if that needs the network."""
        kind = split(spec)[0]
        if kind == "patched" and self.identify_offline(parts_of_patched(spec)[1]) is None:
            return None
        if kind == "debian" and not self._answer_path(spec, "").exists():
            return None
        return self.identify(spec)

    def tree(self, source: Source) -> Path:
        """Return the tree of ``source``, unpacked if necessary. Never write to it: builds work on
        copies.

        A tree that is not what was unpacked, or of which that is not known, is unpacked again, and
        noted. It is not removed before this process ends. Raises InputError if it is not a kernel
        tree, LabError if it cannot be fetched or unpacked.
        """
        target = self.tree_path(source)
        cache_folder.hold(target)
        if target in self._checked or seal.is_intact(target, SilentReporter()):
            self._checked.add(target)
            return target
        with cache_folder.locked(target, self._reporter, f"unpack {source.id}"):
            if seal.is_intact(target, self._reporter):
                return target
            cache_folder.need_space(target.parent, _TREE_MB, f"the source tree of {source.id}")
            with cache_folder.published(target) as folder:
                self._unpack(source, folder)
                if not (folder / "Kconfig").is_file() or not (folder / "Kbuild").is_file():
                    raise InputError(
                        f"{source.id} is not a kernel tree: it has no Kconfig and Kbuild at its "
                        "top",
                        hint="give the tarball or the repository of a Linux kernel.",
                    )
                # Builds may use hard links to the files.
                find = ["-type", "f", "-perm", "/222", "-exec", "chmod", "a-w", "{}", "+"]
                spawn.run(["find", str(folder), *find], check=True)
        return target

    def tree_path(self, source: Source) -> Path:
        """Return the path of the tree, whether it is unpacked yet or not."""
        return self.folder / "sources" / source.slug

    def remember(
        self, spec: str, facts: object, find: Callable[[], dict[str, str]]
    ) -> dict[str, str]:
        """Return the result of ``find``, which is called once for each pair of ``spec`` and
        ``facts``.

        The result is stored in the cache; ``facts`` are what it depends on, such as a file's time
        and size.
        """
        path = self._answer_path(spec, facts)
        with suppress(OSError, ValidationError):
            return _Answer.model_validate_json(path.read_bytes()).answer
        if path.exists():
            self._reporter.note(
                f"{path} in the cache is damaged, so kteardown resolves {spec} again"
            )
        answer = find()
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, _Answer(spec=spec, answer=answer).model_dump_json(indent=1) + "\n")
        return answer

    def _answer_path(self, spec: str, facts: object) -> Path:
        name = hashlib.sha256(f"{spec}\n{facts}".encode()).hexdigest()[:24]
        return self.folder / "answers" / f"{name}.json"

    def package_file(self, package: Package, architecture: str) -> Path:
        """Return the .deb of ``package``, downloaded if necessary. Raises LabError."""
        return self._archive(architecture).download(package, self.folder / "downloads")

    def find_package(self, pattern: str, architecture: str, version: str = "") -> Package:
        """Return the newest Debian package whose name matches ``pattern``; see ``Archive.find``."""
        return self._archive(architecture).find(pattern, version)

    def has_mirror(self) -> bool:
        """Return whether this host names a mirror of the Debian archive; it may be out of reach."""
        with suppress(LabError):
            return bool(self._archive(_SOURCES).tiers())
        return False

    def _archive(self, architecture: str) -> Archive:
        return Archive(self.folder / "lists", self._reporter, architecture)

    def kernel_package(self, spec: str, facts: str, pattern: str, architecture: str) -> Package:
        """Return the package of ``KIND:VERSION``, found once; ``pattern`` has ``{}`` for its major
        version.

        Raises InputError if this is not a version.
        """
        kind, version = split(spec)
        match = re.fullmatch(r"(\d+\.\d+)(\.\S+)?", version)
        if not match:
            hint = f"write {kind}:6.12, or the full version of a package."
            raise InputError(f"{spec} is not a kernel version", hint=hint)
        pattern = pattern.replace("{}", re.escape(match[1]))
        exact = version if match[2] else ""
        return self.package(spec, facts, pattern, architecture, exact)

    def package(
        self, spec: str, facts: str, pattern: str, architecture: str, version: str = ""
    ) -> Package:
        """Return the package that ``find_package`` finds, which is remembered for ``spec`` and
        ``facts``."""

        def find() -> dict[str, str]:
            return {
                "package": json.dumps(asdict(self.find_package(pattern, architecture, version)))
            }

        return package_from_json(self.remember(spec, facts, find)["package"])

    def digest(self, spec: str, path: Path) -> str:
        """Return the SHA-256 of the file ``path``, which is read only if it may have changed."""
        stat = path.stat()
        # A program that downloads or unpacks it may set its time to any, but not that of its last
        # change.
        facts = (path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        return self.remember(spec, facts, lambda: {"sha256": file_hash(path)})["sha256"]

    def _unpack(self, source: Source, folder: Path) -> None:
        again = f"try again; if it fails again, remove {self.folder / 'downloads'} first."
        if source.kind == "debian":
            package = package_from_json(source.origin)
            file = self.package_file(package, _SOURCES)
            what = f"{package.name} {package.version}"
            stages = deb_stages(file, "-O", f"./usr/src/{package.name}.tar.xz")
            with self._reporter.task(f"Unpacking {what}"):
                pipe([*stages, *untar(_XZ, *_into(folder))], folder, what, again)
        elif source.kind == "git":
            trees = [path for path in self.tree_path(source).parent.glob("git-*") if path.is_dir()]
            commit = source.id.rpartition("@")[2]
            gone = self._absent.get(source, ())
            with self._reporter.task(f"Unpacking {source.id}"):
                git.unpack(Path(source.origin), commit, folder, gone, trees)
            with suppress(OSError):
                if "filter=lfs" in (folder / ".gitattributes").read_text(errors="replace"):
                    self._reporter.note(
                        f"{source.id}: kteardown does not fetch files that are kept with Git LFS"
                    )
        elif source.kind == "patched":
            _, below, patches = parts_of_patched(f"patched:{source.origin}")
            tree = self.tree(self.identify(below))
            with TemporaryDirectory(prefix="kteardown-") as scratch:
                changed = apply_patches.apply(tree, patches, Path(scratch), below)
                git.link(tree, (), folder)
                apply_patches.install(changed, folder)
        else:
            file = Path(source.origin)
            if source.kind == "kernel.org":
                file = release.download(source.origin, self.folder, self._reporter)
            with file.open("rb") as stream:
                magic = stream.read(8)
            stages = [["cat", str(file)], *untar(magic, *_into(folder))]
            with self._reporter.task(f"Unpacking {file}"):
                try:
                    pipe(stages, folder, str(file), again)
                except UnpackError as error:
                    hint = (
                        "give an undamaged tarball, either plain or compressed by gzip, bzip2, xz "
                        "or zstd."
                    )
                    raise InputError(error.message, hint=hint) from error
            remove_special(folder, links=True)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def package_from_json(text: str) -> Package:
    """Return the package that ``json.dumps(asdict(package))`` has written."""
    return TypeAdapter(Package).validate_json(text)


def _git(rest: str) -> Source:
    path, at, revision = rest.rpartition("@")
    repository = Path(path if at else rest).expanduser().absolute()
    if not repository.is_dir():
        raise InputError(
            f"git:{rest}: {repository} is not a folder",
            hint="write git:PATH@REV with the path of a git tree.",
        )
    if not at:
        # A repository without its branch, as after git init and git fetch, at its newest release.
        born = git.run_reading(repository, "rev-parse", "--verify", "--quiet", "HEAD").ok
        revision = next(iter([] if born else git.releases(repository)), "HEAD")
    result = git.run_reading(repository, "rev-parse", "--verify", f"{revision}^{{commit}}")
    if not (result.ok and result.text):
        errors = git.run_reading(
            repository, "rev-list", "-n1", "--end-of-options", revision, "--"
        ).said
        raise InputError(
            f"git:{rest}: {revision!r} is not a commit of {repository}: {git.first_line(errors)}",
            hint="give a branch, a tag or a commit id; fetch it first if it is remote.",
        )
    # Those of many trees have the same name, as the folder of a mirror or the .git of a work tree.
    name = next(
        (part for part in reversed(repository.parts) if part not in _EVERY_REPOSITORY), "git"
    )
    return Source(f"git:{name}@{result.text}", f"git-{result.text}", str(repository))


def _into(folder: Path) -> tuple[str, ...]:
    # The tarballs have one folder at the top, which is not needed.
    return "--strip-components=1", "-C", str(folder)
