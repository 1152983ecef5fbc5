"""Prebuilt kernels: an image, or packages with the modules that the guest needs."""

import hashlib
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from kteardown import paths
from kteardown.errors import InputError, damaged
from kteardown.kernels import cache_folder, kconfig, unpack
from kteardown.kernels.archive import Package
from kteardown.kernels.cache import Cache
from kteardown.kernels.package_modules import ModuleIndex, PackageModules
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.kernels.source_name import file_of, split
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.model.experiment import PREBUILT
from kteardown.paths import key_of
from kteardown.progress import Reporter, Task

# The drivers of the records port and of the bus that it is on.
_MODULES = ("virtio_pci", "virtio_console")
_ELF = b"\x7fELF"
_MOST_BYTES = 512 << 20
"""Of an image, decompressed: half of the memory of a usual guest. One with all that can be debugged
has a quarter of it."""
_MOST_TEXT_BYTES = 16 << 20
"""Of a configuration."""
_OF_SCRIPTS = "userland"
"""The fragment with what scripts usually need."""
# Offsets of Documentation/arch/x86/boot.rst.
_HEAD = 0x238
_SETUP_SECTS = 0x1F1
_SYSSIZE = 0x1F4
_BOOT_FLAG = 0x1FE
_VERSION = 0x20E
_XLOADFLAGS = 0x236
_XLF_KERNEL_64 = 1


def is_prebuilt(spec: str) -> bool:
    """Return whether a source is a prebuilt image. Raises InputError if ``spec`` is malformed."""
    return split(spec)[0] in PREBUILT


def ensure(
    request: KernelRequest, kernels: Cache, sources: Sources, reporter: Reporter
) -> KernelImage:
    """Copy the prebuilt kernel of ``request`` into the cache, if it is not there yet, and return
    it.

    Raises InputError if it is not a kernel, is for another architecture or has no driver for
    the records port, and LabError if it cannot be fetched or unpacked.
    """
    if request.patches:
        raise InputError(
            f"cannot apply {request.series or request.name} to {request.source}, which is a "
            "prebuilt image",
            hint="use a source of the same version, such as debian:6.12.",
        )
    origin = _origin(request, sources)
    identity = origin.identity
    facts_of = " ".join((f"2 {identity} {request.arch}", *request.modules))
    key = key_of(facts_of.encode())
    if kernels.lookup(key, request.name) is None:
        target = kernels.kernel_path(key)
        with cache_folder.locked(target, reporter, f"unpack {identity}"):
            if not target.is_dir():
                files = _files(origin, request, sources)
                with cache_folder.published(target) as folder:
                    _import_kernel(folder, files, request, identity, kernels, sources, reporter)
    image = kernels.lookup(key, request.name)
    assert image is not None
    # What scripts may need is said if one fails.
    named = [fragment for fragment in request.fragments if fragment != _OF_SCRIPTS]
    if missing := missing_symbols(image, named):
        reporter.note_once(
            f"{image.source} was built without {', '.join(missing)}; the trials of a workload that "
            "needs them will fail"
        )
    return image


def has_package(source: str) -> bool:
    """Return whether a prebuilt kernel comes with modules, and is not an image alone. Raises
    InputError."""
    return split(source)[0] != "image" or _is_package(file_of(source))


def module_index(
    request: KernelRequest, kernels: Cache, sources: Sources, reporter: Reporter
) -> ModuleIndex:
    """Return which modules the package of a prebuilt kernel has. Raises InputError, LabError."""
    origin = _origin(request, sources)

    def read(task: Task) -> ModuleIndex:
        target = kernels.kernel_path(key_of(f"modules of {origin.identity}".encode()))
        with (
            cache_folder.locked(target, reporter, f"read {origin.identity}"),
            cache_folder.scratch(target) as folder,
        ):
            for file in _files(origin, request, sources):
                unpack.unpack_deb(file, folder)
            return PackageModules(folder).read_index(task)

    return _index(origin.identity, sources, reporter, read)


def missing_symbols(
    image: KernelImage, fragments: Sequence[str], *, or_modules: bool = False
) -> list[str]:
    """Return the symbols of ``fragments`` that a prebuilt kernel was built without.

    ``or_modules``: what is a module is not missing. Empty if the configuration is not known.
    """
    file = image.image.with_name("config")
    if not file.is_file() or not fragments:
        return []
    config = kconfig.parse_config(file.read_text(errors="replace"))
    folder = paths.data_dir("kernels")
    wanted = {want.symbol: want for want in kconfig.wanted_symbols(folder, image.arch, fragments)}
    for base in kconfig.wanted_symbols(folder, image.arch, ()):
        wanted.pop(base.symbol, None)
    missing = kconfig.refused([want for want in wanted.values() if want.value != "n"], config)
    return [
        f"CONFIG_{want.symbol}"
        for want in missing
        if not (or_modules and config.get(want.symbol) == "m")
    ]


@dataclass(frozen=True)
class _Origin:
    """To what a source refers now: a file, or a package of the distribution."""

    identity: str
    file: Path | None = None
    package: Package | None = None


def _origin(request: KernelRequest, sources: Sources) -> _Origin:
    if split(request.source)[0] == "image":
        path = file_of(request.source)
        return _Origin(f"image:{path.name}#{sources.digest(str(path), path)[:32]}", file=path)
    architecture = ARCHITECTURES[request.arch].debian
    # linux-image-6.12.117+deb12-amd64, linux-image-6.1.0-56-amd64, not the cloud or real-time
    # flavours.
    pattern = rf"linux-image-{{}}\.\d+(?:[+-][a-z0-9.~+]+)?-{architecture}(?:-unsigned)?"
    package = sources.kernel_package(request.source, architecture, pattern, architecture)
    return _Origin(f"debian-image:{package.version}", package=package)


def _files(origin: _Origin, request: KernelRequest, sources: Sources) -> list[Path]:
    """Return the file, or those of the packages, which are fetched if necessary."""
    if origin.file is not None:
        return [origin.file]
    assert origin.package is not None
    return _package_files(origin.package, ARCHITECTURES[request.arch].debian, sources)


def _is_package(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(8) == b"!<arch>\n"


def _index(
    identity: str, sources: Sources, reporter: Reporter, read: Callable[[Task], ModuleIndex]
) -> ModuleIndex:
    """Return the index of a package, which is read once: that takes seconds."""
    kind = TypeAdapter(ModuleIndex)

    def find() -> dict[str, str]:
        with reporter.task(f"Reading which modules {identity.partition('#')[0]} has") as task:
            return {"index": kind.dump_json(read(task)).decode()}

    return kind.validate_json(sources.remember(f"modules of {identity}", 1, find)["index"])


def exact_depends(depends: str, version: str) -> list[str]:
    """Return the packages that the ``Depends`` field of a package requires in exactly
    ``version``."""
    clauses = (re.fullmatch(r"\s*(\S+) \(= (\S+)\)\s*", clause) for clause in depends.split(","))
    return [clause[1] for clause in clauses if clause and clause[2] == version]


def _package_files(package: Package, architecture: str, sources: Sources) -> list[Path]:
    """Return the files of ``package`` and of the packages that it requires in its own version.

    A kernel is one package, or an empty one that requires those of the image, the modules and the
    rest.
    """
    packages = {package.name: package}
    files: list[Path] = []
    while len(files) < len(packages):
        package = list(packages.values())[len(files)]
        files.append(sources.package_file(package, architecture))
        for name in exact_depends(package.depends, package.version):
            if name not in packages:
                exact = f"{name}={package.version}"
                packages[name] = sources.package(
                    exact, architecture, re.escape(name), architecture, package.version
                )
    return files


def _import_kernel(
    folder: Path,
    files: Sequence[Path],
    request: KernelRequest,
    identity: str,
    kernels: Cache,
    sources: Sources,
    reporter: Reporter,
) -> None:
    path = files[0]
    modules: list[Path] = []
    optional: dict[str, tuple[Path, ...]] = {}
    builtin: set[str] = set()
    config = ""
    if _is_package(path):
        path, config = _unpack(files, folder)
        package = PackageModules(folder / "package")
        builtin = package.builtin

        def index() -> ModuleIndex:
            return _index(identity, sources, reporter, package.read_index)

        modules, optional = _modules(folder, identity, package, request.modules, index)
        cache_folder.remove(folder / "package")
    arch, release, data = read_header(path, identity)
    if path.parent == folder:
        path.unlink()
    if arch != request.arch:
        raise InputError(
            f"{identity} is a kernel for {arch}, but the experiment is for {request.arch}",
            hint=f"give a kernel for {request.arch}, or set machine.arch to {arch}.",
        )
    name = Path(ARCHITECTURES[arch].image).name
    (folder / name).write_bytes(data)
    compiler = re.search(r'^CONFIG_CC_VERSION_TEXT="(.*)"', config, re.MULTILINE)
    described = KernelImage(
        name="",
        image=folder / name,
        source=identity,
        series="",
        arch=arch,
        release=release,
        compiler=compiler[1] if compiler else "unknown",
        config_hash=kconfig.digest(config) if config else "",
        image_hash=hashlib.sha256(data).hexdigest(),
        modules=tuple(modules),
        optional_modules=optional,
        builtin=tuple(sorted(builtin)),
    )
    kernels.describe(folder, described)


def _unpack(debs: Sequence[Path], folder: Path) -> tuple[Path, str]:
    """Unpack packages below ``package`` and move their kernel and System.map into ``folder``.

    Return the path of the kernel and the text of its configuration.
    """
    unpacked = folder / "package"
    for file in debs:
        unpack.unpack_deb(file, unpacked)
    kernel = _boot_file(unpacked, "vmlinu[xz]")
    if kernel is None:
        raise InputError(
            f"{debs[0].name} has no kernel",
            hint=(
                "give a package that has its kernel and its modules, or write "
                "debian-image:VERSION, which also fetches the packages on which it depends."
            ),
        )
    config = _boot_file(unpacked, "config")
    text = _text(config) if config else ""
    (folder / "config").write_text(text)
    if symbols := _boot_file(unpacked, "System.map"):
        symbols.rename(folder / "System.map")
    return kernel.rename(folder / "vmlinuz"), text


def _text(path: Path) -> str:
    with damaged(path.name, hint="name another package."):
        return unpack.unpacked(path, _MOST_TEXT_BYTES).decode(errors="replace")


def _boot_file(unpacked: Path, name: str) -> Path | None:
    """Return the file ``name`` of the kernel, which is in ``boot`` or beside the modules."""
    places = (f"boot/{name}-*", f"lib/modules/*/{name}", f"usr/lib/modules/*/{name}")
    return next((path for place in places for path in sorted(unpacked.glob(place))), None)


def _modules(
    folder: Path,
    identity: str,
    package: PackageModules,
    optional: Sequence[str],
    index: Callable[[], ModuleIndex],
) -> tuple[list[Path], dict[str, tuple[Path, ...]]]:
    """Put modules into ``folder``/modules: those of every guest, and by name or alias others."""
    try:
        order = package.load_order(_MODULES)
    except KeyError as error:
        raise InputError(
            f"{identity} has no module {error.args[0]}, which the guest needs to send records",
            hint="use another flavour of the kernel, or a source of the same version.",
        ) from error
    order_by_word: dict[str, list[str]] = {
        word: [] for word in optional
    }  # Nothing if it is built in or missing.
    for word in optional:
        with suppress(KeyError):
            names = package.find(word, index) or ()
            order_by_word[word] = [
                module for module in package.load_order(names, index) if module not in order
            ]
    (folder / "modules").mkdir()
    for name in {*order, *(module for names in order_by_word.values() for module in names)}:
        (folder / "modules" / f"{name}.ko").write_bytes(package.content(name))

    def files(names: Sequence[str]) -> list[Path]:
        return [folder / "modules" / f"{name}.ko" for name in names]

    return files(order), {word: tuple(files(names)) for word, names in order_by_word.items()}


def read_header(path: Path, name: str) -> tuple[Arch, str, bytes]:
    """Return architecture and release of the image in ``path``, and the image as it boots,
    decompressed.

    QEMU does not check it: it boots any file, and the guest stays silent. Messages refer to it as
    ``name``. Raises InputError if it is not a kernel that can be booted.
    """
    try:
        data = unpack.unpacked(path, _MOST_BYTES)
    except ValueError as error:
        raise _not_a_kernel(name, str(error)) from error
    magics = {arch: architecture.image_magic for arch, architecture in ARCHITECTURES.items()}
    arch = next((arch for arch, (at, magic) in magics.items() if data.startswith(magic, at)), None)
    if arch == "x86_64" and len(data) >= _HEAD and data[_BOOT_FLAG : _BOOT_FLAG + 2] == b"\x55\xaa":
        return arch, _release_of_bzimage(data, name), data
    if arch == "arm64":
        match = re.search(rb"Linux version (\S{1,64}) ", data)
        if not match:
            raise _not_a_kernel(name, "it has the header of an arm64 Image, but no version")
        return arch, match[1].decode(errors="replace"), data
    if data.startswith(_ELF):
        raise _not_a_kernel(
            name, "it is an ELF file, such as vmlinux, which does not boot by itself"
        )
    raise _not_a_kernel(name, "it has neither header")


def _release_of_bzimage(data: bytes, name: str) -> str:
    if not struct.unpack_from("<H", data, _XLOADFLAGS)[0] & _XLF_KERNEL_64:
        raise _not_a_kernel(name, "it is a 32-bit kernel")
    start = struct.unpack_from("<H", data, _VERSION)[0] + 0x200
    words = data[start : start + 256].split(b"\0")[0].decode(errors="replace").split()
    if not words:
        raise _not_a_kernel(name, "its header has no version")
    # Boot sector, setup code and protected-mode code.
    (paragraphs,) = struct.unpack_from("<I", data, _SYSSIZE)
    expected = ((data[_SETUP_SECTS] or 4) + 1) * 512 + int(paragraphs) * 16
    if len(data) < expected:
        raise _not_a_kernel(
            name, f"it is cut off: it has {len(data)} bytes, but its header says {expected}"
        )
    return words[0]


def _not_a_kernel(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} is neither an x86-64 bzImage nor an arm64 Image: {reason}",
        hint="give arch/x86/boot/bzImage, arch/arm64/boot/Image, or a linux-image package.",
    )
