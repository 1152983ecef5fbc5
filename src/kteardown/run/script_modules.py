"""The modules that a script needs on a prebuilt kernel: rehearsals find them, and the kernel's own
package has them.

In the guest, the agent acts as modprobe (agent/script/modprobe.c). It logs each name and alias for
which it has no module. A script can log the same: it gets modules of the package, and no others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kteardown.kernels import build, prebuilt
from kteardown.kernels.cache import Cache
from kteardown.kernels.package_modules import ModuleIndex
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.experiment import Experiment
from kteardown.model.workload import MODULE_ALIAS, MOST_ALIASES
from kteardown.paths import cache_dir, replace_text, shipped_table
from kteardown.progress import Reporter
from kteardown.run.places import HERE
from kteardown.run.rehearse import NOT_IMPLEMENTED, Rehearsal, Rehearsed, rehearse
from kteardown.run.resolve import base_of
from kteardown.run.setting import Bootable
from kteardown.script.beside import read_file
from kteardown.script.describe import Described, as_toml
from kteardown.script.elf import is_elf

_ROUNDS = 10
"""Of rehearsals that add modules. One may ask for others when it is used."""
_LINE = re.compile(rf"kteardown: (?:no module|loaded the modules) for ({MODULE_ALIAS})")
_MOST_TEXT = 1 << 20
_MOST_OFFERED = 24 << 20
"""Bytes of the modules that a rehearsal has for the case that the script asks for them."""
_WORDS = shipped_table("run/rehearse")
_CLOUD = re.compile(r"-cloud(?=-)")


class _More(Exception):
    """The script asks for modules that the package has, and the rehearsal begins anew."""

    def __init__(self, words: Sequence[str], index: ModuleIndex) -> None:
        super().__init__()
        self.words = tuple(words)
        self.index = index


def rehearse_on_base(
    described: Described, experiment: Experiment, reporter: Reporter
) -> tuple[Described, KernelImage, Rehearsed]:
    """Rehearse the script of ``experiment`` on base, which is built or fetched for that.

    On a prebuilt kernel it runs again with the modules that it asks for, until it asks for no
    more. Return it with these modules, base, and the last rehearsal. Raises as ``rehearse``, with
    what the kernel lacks in the hint.
    """
    offered: Mapping[str, tuple[str, ...]] = {}
    for left in reversed(range(_ROUNDS + 1)):
        base = base_of(experiment)
        image, kernel = _with_offers(base, offered if left else {}, reporter)
        asking = _Asking(base, image, described, reporter, may_add=left > 0)
        lacks = asking.lacks if prebuilt.is_prebuilt(base.source) else lambda _: ""
        try:
            return described, image, rehearse(kernel, experiment, HERE, reporter, lacks)
        except _More as more:
            described = _with_modules(described, more.words)
            toml = Path(experiment.folder, "workloads", f"{described.workload.name}.toml")
            replace_text(toml, as_toml(described.workload))
            # A script that ends at the first failure asks for one module in each rehearsal.
            offered = offered or more.index.named_in(_words_of(described))
    raise AssertionError("the last rehearsal adds no modules")


def _with_offers(
    base: KernelRequest, offered: Mapping[str, tuple[str, ...]], reporter: Reporter
) -> tuple[KernelImage, Bootable]:
    """Return base, and the same with modules that the guest loads only if the script asks."""
    request = replace(base, modules=tuple(dict.fromkeys((*base.modules, *offered))))
    image = build.ensure([request], cache_dir=cache_dir(), reporter=reporter).images[base.name]
    left = _MOST_OFFERED
    offers = {}
    for module, aliases in offered.items():
        left -= sum(file.stat().st_size for file in image.optional_modules[module])
        if left < 0:
            break
        offers[module] = aliases
    return image, replace(Bootable.of(image), offers=offers)


def _words_of(described: Described) -> list[str]:
    """Return the words of a script and its files, each once."""
    texts = [described.workload.script.command if described.workload.script else ""]
    for path in described.files.values():
        data = read_file(path)[0][:_MOST_TEXT]
        texts += [] if is_elf(data) else [data.decode(errors="replace")]
    return list(dict.fromkeys(word for text in texts for word in re.findall(r"[\w-]+", text)))


def wanted(run: Rehearsal) -> list[str]:
    """Return the names and aliases of modules that the guest did not have, in their order."""
    matches = map(_LINE.fullmatch, run.lines("log"))
    return list(dict.fromkeys(match[1] for match in matches if match))[:MOST_ALIASES]


def _with_modules(described: Described, words: Sequence[str]) -> Described:
    script = described.workload.script
    assert script is not None
    more = script.model_copy(update={"modules": (*script.modules, *words)[:MOST_ALIASES]})
    workload = described.workload.model_copy(update={"script": more})
    return replace(described, workload=workload)


@dataclass(frozen=True)
class _Asking:
    """What a script asks of a prebuilt kernel in a rehearsal."""

    base: KernelRequest
    image: KernelImage
    described: Described
    reporter: Reporter
    may_add: bool

    def lacks(self, run: Rehearsal) -> str:
        """Return a hint about what the kernel lacks, if ``run`` failed for that reason; else empty.

        Raises _More if its package has modules that the script asked for. A script may ask for them
        and go on without.
        """
        words = wanted(run)
        lines = run.lines()
        if not prebuilt.has_package(self.base.source):
            asked = words or any(_lacks_disk(line) or _lacks_module(line) for line in lines)
            return self._no_package() if asked else ""
        missing: list[str] = []
        if words:
            cache = cache_dir()
            sources = Sources(cache, self.reporter)
            index = prebuilt.module_index(self.base, Cache(cache), sources, self.reporter)
            found = {word: index.find(word) for word in words}
            self._add({w: names for w, names in found.items() if names}, index)
            missing = [word for word, names in found.items() if names is None]
        return next(self._hints(missing, lines), "")

    def _add(self, found: Mapping[str, Sequence[str]], index: ModuleIndex) -> None:
        """Note the modules that are new, and raise _More; only note them if there are too many."""
        script = self.described.workload.script
        known = script.modules if script else ()
        more = [word for word in found if word not in known]
        if not more:
            return
        texts = [
            word if found[word] == (word,) else f"{', '.join(found[word])} ({word})"
            for word in more
        ]
        asks = f"{self.described.workload.name} asks for modules of {self._name}: "
        if not self.may_add or len(known) == MOST_ALIASES:
            self.reporter.note(f"{asks}{'; '.join(texts)}; kteardown adds no more of them")
            return
        self.reporter.note(f"{asks}{'; '.join(texts)}; kteardown loads them before the script")
        raise _More(more, index)

    def _hints(self, missing: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
        if missing:
            yield f"{self._name} has no module for {', '.join(missing)}: {self._elsewhere()}."
        if any(NOT_IMPLEMENTED in line for line in lines):
            symbols = prebuilt.missing_symbols(self.image, self.base.fragments, or_modules=True)
            without = f", and was built without {', '.join(symbols)}" if symbols else ""
            yield (
                f"{self._name} lacks a system call{without}: use a source that kteardown builds, "
                f"such as debian:{self._version}."
            )
        if any(map(_lacks_disk, lines)):
            yield (
                "the guest has no disk of the host: let the script make one in the memory of the "
                "guest, with `modprobe brd rd_size=262144` (/dev/ram0, in kB) or a loop device."
            )

    def _no_package(self) -> str:
        return (
            f"{self._name} has no modules: use debian-image:{self._version}, or a package that has "
            "the kernel with its modules, image:FILE.deb (`make bindeb-pkg` makes one of a tree)."
        )

    def _elsewhere(self) -> str:
        """Return where a module may be that the package of this kernel does not have."""
        if not _CLOUD.search(self.image.release):
            built = f"use a source that kteardown builds, such as debian:{self._version}"
            return f"{built}, or leave out what needs it"
        full = _CLOUD.sub("", self.image.release)
        return (
            f"use debian-image:{self._version}, whose package linux-image-{full} has modules that "
            "this flavour leaves out"
        )

    @property
    def _name(self) -> str:
        return self.image.source.partition("#")[0]

    @property
    def _version(self) -> str:
        match = re.match(r"\d+\.\d+", self.image.release)
        return match[0] if match else "X.Y"


def _lacks_disk(line: str) -> bool:
    return bool(re.search(_WORDS["disk"], line))


def _lacks_module(line: str) -> bool:
    return bool(re.search(_WORDS["module"], line))
