"""From what a script asks of modprobe to the modules of its kernel's package.

The package is a real one; the guest is simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest

from kteardown.errors import GuestError
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Scripted
from kteardown.kernels import prebuilt
from kteardown.kernels.package_modules import normalized
from kteardown.model.experiment import Experiment
from kteardown.model.workload import MOST_ALIASES
from kteardown.progress import Reporter
from kteardown.run import script_modules
from kteardown.run.rehearse import Rehearsal, Rehearsed, failure
from kteardown.run.resolve import experiment_of_script
from kteardown.run.script_modules import rehearse_on_base, wanted
from kteardown.run.setting import Bootable
from kteardown.script.describe import Described, describe, write
from unit.kernels.test_prebuilt import RELEASE, SCRIPTED, bzimage, deb
from unit.run.test_rehearse import both, ran
from unit.script.lines import logged, printed

SCRIPT = "ip link add base type dummy\nmount -t ext4 /dev/x /mnt\n"


class Noting(Reporter):
    def __init__(self) -> None:
        self.noted: list[str] = []

    def note(self, text: str) -> None:
        self.noted.append(text)


@dataclass
class Guest:
    """A script that asks for modules one after another."""

    asks: Sequence[str]
    goes_on: bool = False
    """Whether it goes on where a module is missing."""
    prints: str = ""
    booted: list[Bootable] = field(default_factory=list)
    loaded: list[tuple[str, ...]] = field(default_factory=list)
    """Of each rehearsal, what was loaded before the script."""

    def rehearse(
        self,
        kernel: Bootable,
        experiment: Experiment,
        _place: object,
        _reporter: Reporter,
        lacks: Callable[[Rehearsal], str],
    ) -> Rehearsed:
        workload = load_workload(experiment.workloads[0].workload, experiment.folder)
        assert workload.script is not None
        self.booted.append(kernel)
        self.loaded.append(workload.script.modules)
        log: list[str] = []
        failed = False
        for word in self.asks:
            if kernel.optional_modules.get(word) and word in workload.script.modules:
                continue
            offered = [alias for aliases in kernel.offers.values() for alias in aliases]
            if any(fnmatch(normalized(word), alias) for alias in offered):
                log.append(f"kteardown: loaded the modules for {word}")
                continue
            log.append(f"kteardown: no module for {word}")
            failed = not self.goes_on
            if failed:
                break
        output = [*logged(*enumerate(log)), *printed(self.prints)]
        run = ran(output, code=int(failed or bool(self.prints)))
        lacked = lacks(run)
        if failed or self.prints:
            raise failure(workload, run, lacked)
        return both(run)


@dataclass
class Lab:
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    reporter: Noting = field(default_factory=Noting)

    def run(self, guest: Guest, source: str, script: str = SCRIPT) -> tuple[Described, Rehearsed]:
        path = self.folder / "make.sh"
        path.write_text(script)
        described = describe(str(path), Scripted(), {})
        folder = self.folder / "described"
        write(described, folder)
        experiment = experiment_of_script(described.workload.name, source, folder)
        self.monkeypatch.setattr(script_modules, "rehearse", guest.rehearse)
        found, image, rehearsed = rehearse_on_base(described, experiment, self.reporter)
        assert image.release
        return found, rehearsed


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    return Lab(tmp_path, monkeypatch)


def modules_in(described: Described) -> tuple[str, ...]:
    assert described.workload.script is not None
    return described.workload.script.modules


def test_modules_that_a_script_asks_for_are_loaded_before_it(lab: Lab, tmp_path: Path) -> None:
    guest = Guest(("rtnl-link-dummy", "fs-ext4"))
    described, rehearsed = lab.run(guest, f"image:{deb(tmp_path, SCRIPTED)}")
    assert modules_in(described) == ("rtnl-link-dummy", "fs-ext4")
    assert rehearsed.sizes[0].lines("log") == []
    # The second rehearsal has ext4 at hand, because the text of the script names it.
    assert guest.loaded == [(), ("rtnl-link-dummy",), ("rtnl-link-dummy", "fs-ext4")]
    files = guest.booted[-1].optional_modules["fs-ext4"]
    assert [path.name for path in files] == ["crc_x.ko", "mbcache.ko", "ext4.ko"]
    assert "dummy (rtnl-link-dummy)" in lab.reporter.noted[0]
    assert "linux-image.deb" in lab.reporter.noted[0]
    assert len(lab.reporter.noted) == 2


def test_modules_that_no_text_names_are_found_one_after_another(lab: Lab, tmp_path: Path) -> None:
    guest = Guest(("rtnl-link-dummy", "fs-ext4"))
    described, _ = lab.run(guest, f"image:{deb(tmp_path, SCRIPTED)}", "./other\n")
    assert modules_in(described) == ("rtnl-link-dummy", "fs-ext4")


def test_a_script_that_goes_on_without_a_module_gets_it_too(lab: Lab, tmp_path: Path) -> None:
    guest = Guest(("zfs", "rtnl-link-dummy"), goes_on=True)
    described, rehearsed = lab.run(guest, f"image:{deb(tmp_path, SCRIPTED)}")
    assert modules_in(described) == ("rtnl-link-dummy",)
    assert rehearsed.sizes[0].lines("log") == ["kteardown: no module for zfs"]


def test_a_script_that_asks_for_nothing_is_rehearsed_once(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prebuilt, "module_index", lambda *_: pytest.fail("the package is read"))
    guest = Guest(())
    described, _ = lab.run(guest, f"image:{deb(tmp_path, SCRIPTED)}")
    assert modules_in(described) == () and guest.loaded == [()]
    assert lab.reporter.noted == []


def test_what_was_asked_for_before_is_loaded_in_the_first_rehearsal(
    lab: Lab, tmp_path: Path
) -> None:
    package = deb(tmp_path, SCRIPTED)
    guest = Guest(("rtnl-link-dummy",))
    described, _ = lab.run(guest, f"image:{package}")
    experiment = experiment_of_script(
        described.workload.name, f"image:{package}", tmp_path / "described"
    )
    guest.loaded.clear()
    rehearse_on_base(described, experiment, lab.reporter)
    assert guest.loaded == [("rtnl-link-dummy",)]


def test_a_module_that_the_package_does_not_have_is_named(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(GuestError) as failed:
        lab.run(Guest(("rtnl-link-dummy", "zfs")), f"image:{deb(tmp_path, SCRIPTED)}")
    assert "linux-image.deb has no module for zfs" in failed.value.hint
    assert "debian:6.12" in failed.value.hint and "--allow 'exit 1'" in failed.value.hint
    assert "dummy" not in failed.value.hint and "--config" not in failed.value.hint


def test_the_package_with_more_modules_is_named(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = "6.12.117+deb12-cloud-amd64"
    monkeypatch.setattr("unit.kernels.test_prebuilt.IMAGE", bzimage(f"{release} (a@b)"))
    with pytest.raises(GuestError) as failed:
        lab.run(Guest(("fs-xfs",)), f"image:{deb(tmp_path, SCRIPTED)}")
    assert "no module for fs-xfs" in failed.value.hint
    assert "debian-image:6.12" in failed.value.hint
    assert "linux-image-6.12.117+deb12-amd64" in failed.value.hint


@pytest.mark.parametrize(
    ("guest", "says"),
    [
        (Guest(("fs-ext4",)), "has no modules"),
        (Guest((), prints="Error: Unknown device type."), "has no modules"),
        (Guest((), prints="mount: unknown filesystem type 'ext4'"), "has no modules"),
        (Guest((), prints="something else"), "correct the script"),
    ],
)
def test_an_image_without_modules_is_said_to_have_none(
    lab: Lab, tmp_path: Path, guest: Guest, says: str
) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(bzimage(f"{RELEASE} (a@b)"))
    with pytest.raises(GuestError) as failed:
        lab.run(guest, f"image:{image}")
    assert says in failed.value.hint and "--config" not in failed.value.hint
    assert ("debian-image:6.12" in failed.value.hint) == (says == "has no modules")


@pytest.mark.parametrize(
    ("prints", "says"),
    [
        ("mkfs: /dev/nvme0n1: No such file or directory", "modprobe brd"),
        ("memfd_secret: Function not implemented", "CONFIG_OVERLAY_FS"),
        ("something else", "correct the script"),
    ],
)
def test_hints_about_a_package_fit_what_failed(
    lab: Lab, tmp_path: Path, prints: str, says: str
) -> None:
    with pytest.raises(GuestError) as failed:
        lab.run(Guest((), prints=prints), f"image:{deb(tmp_path, SCRIPTED)}")
    assert says in failed.value.hint and "--config" not in failed.value.hint
    assert ("CONFIG_" in failed.value.hint) == ("CONFIG_" in says)
    assert lab.reporter.noted == []


def test_rehearsals_end_whatever_a_script_asks_for(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_modules, "_ROUNDS", 1)
    guest = Guest(("rtnl-link-dummy", "fs-ext4"))
    with pytest.raises(GuestError):
        lab.run(guest, f"image:{deb(tmp_path, SCRIPTED)}")
    assert guest.loaded == [(), ("rtnl-link-dummy",)]
    # The last one is as the guests that are measured: nothing is at hand.
    assert not guest.booted[-1].offers
    assert "ext4 (fs-ext4); kteardown adds no more" in lab.reporter.noted[-1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kteardown: no module for fs-ext4", ["fs-ext4"]),
        ("kteardown: loaded the modules for crypto-cbc(aes)", ["crypto-cbc(aes)"]),
        ("kteardown: no module for ../../etc/passwd", []),
        ("kteardown: no module for a b", []),
        ("kteardown: no module for *", []),
        ("kteardown: no module for -x", []),
        ("kteardown: no module for " + "a" * 56, []),
        ("x kteardown: no module for a", []),
        ("kteardown: no module for ", []),
    ],
)
def test_only_names_and_aliases_of_modules_are_wanted(text: str, words: list[str]) -> None:
    assert wanted(ran(logged((1, text), (2, text)))) == words
    # What the script prints is no request.
    assert wanted(ran(printed(text))) == []


def test_a_script_that_asks_for_many_modules_has_a_limit() -> None:
    lines = [(n, f"kteardown: no module for m{n}") for n in range(MOST_ALIASES + 50)]
    assert len(wanted(ran(logged(*lines)))) == MOST_ALIASES
