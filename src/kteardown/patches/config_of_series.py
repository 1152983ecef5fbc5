"""Which configuration symbols a series needs beside those of the base kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown import paths
from kteardown.kernels import apply_patches, build, kconfig
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Sources
from kteardown.patches.built_files import TouchedFile, built_files
from kteardown.patches.find_base import is_code


@dataclass(frozen=True)
class SeriesConfig:
    """The files that a series touches, and the symbols that compile those that base does not compile."""

    files: tuple[TouchedFile, ...]

    @property
    def compiled(self) -> bool:
        """Whether any of the files can be in a kernel of this architecture."""
        return any(file.built or file.symbols for file in self.files)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, without CONFIG_, in the order in which they were found."""
        return tuple(dict.fromkeys(symbol for file in self.files for symbol in file.symbols))

    @property
    def fragments(self) -> tuple[str, ...]:
        """The symbols as fragments; Kconfig may refuse one, for base has no symbol that the series adds."""
        return tuple(f"CONFIG_{symbol}=y?" for symbol in self.symbols)


def config_of_series(base: KernelRequest, patches: Sequence[Path], sources: Sources) -> SeriesConfig:
    """Return what ``patches`` need so that all that they touch is compiled. Builds nothing.

    Raises BuildError, LabError.
    """
    tree = sources.tree(sources.identify(base.source))
    objects = build.base_objects(base, sources)
    if objects is not None:
        config = kconfig.parse_config((objects / ".config").read_text())
    else:
        wanted = kconfig.wanted_symbols(paths.data_dir("kernels"), base.arch, base.fragments)
        config = {want.symbol: want.value for want in wanted}
    names = [name for patch in patches for name, _ in apply_patches.files_in(patch, tree=tree)]
    names = [name for name in dict.fromkeys(names) if is_code(name)]
    with TemporaryDirectory(prefix="kteardown-") as folder:
        apply_patches.apply(tree, patches, Path(folder), base.source)
        files = tuple(built_files(names, (Path(folder), tree), config, base.arch, objects))
    return SeriesConfig(files)


def reasons(files: Sequence[TouchedFile]) -> str:
    """Return why files are not compiled, at most three."""
    shown = [f"{file.name} {why(file)}" for file in files if not file.built and why(file)]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    if shown:
        return "; ".join(shown[:3]) + more
    if any(file.built for file in files):
        return "its files are compiled, but it changes only comments, or what their conditions leave out"
    return "it has documentation, tests or tools only"


def why(file: TouchedFile) -> str:
    """Return why a file is not compiled in base, as the end of a sentence."""
    if file.symbols:
        return "needs " + ", ".join(f"CONFIG_{symbol}" for symbol in file.symbols)
    return file.reason if not file.reason.startswith("no ") else f"is not compiled: {file.reason}"
