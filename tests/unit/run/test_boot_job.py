"""What a guest is given of the modules of a prebuilt kernel."""

from __future__ import annotations

from pathlib import Path

from kteardown.model.plan import PlannedBoot, PlannedTrial
from kteardown.run.boot_job import GuestModules
from kteardown.run.setting import Bootable

FOLDER = Path("/cache/modules")


def files(*names: str) -> tuple[Path, ...]:
    return tuple(FOLDER / f"{name}.ko" for name in names)


KERNEL = Bootable(
    Path("bzImage"),
    files("virtio_pci"),
    {"fs-ext4": files("jbd2", "ext4"), "zram": files("zram"), "gone": ()},
    ("unix", "8250"),
)


def boot(*modules: str, script: bool) -> PlannedBoot:
    trial = PlannedTrial(
        index=0,
        workload="x",
        params={},
        warmup=0,
        repetitions=1,
        script={} if script else None,
    )
    return PlannedBoot(index=0, block=0, kernel="base", seed=1, trials=(trial,), modules=modules)


def test_the_agent_loads_first_what_other_workloads_need() -> None:
    found = GuestModules.of(boot("zram", "gone", script=False), KERNEL)
    assert found.files == files("virtio_pci", "zram")
    assert found.first == ("/modules/virtio_pci.ko", "/modules/zram.ko")
    assert found.index == ""


def test_modprobe_has_an_index_of_what_a_script_needs() -> None:
    found = GuestModules.of(boot("fs-ext4", "gone", "other", script=True), KERNEL)
    assert found.files == files("virtio_pci", "jbd2", "ext4")
    assert found.first == ("/modules/virtio_pci.ko",)
    assert found.index == "builtin unix\nbuiltin 8250\nalias fs-ext4 jbd2 ext4\n"


def test_a_rehearsal_offers_modules_by_all_their_aliases() -> None:
    offers = {"zram": ("zram", "block_major_*"), "gone": ("gone",)}
    kernel = Bootable(KERNEL.image, KERNEL.modules, KERNEL.optional_modules, offers=offers)
    found = GuestModules.of(boot("fs-ext4", script=True), kernel)
    assert found.files == files("virtio_pci", "jbd2", "ext4", "zram")
    assert found.index == ("alias fs-ext4 jbd2 ext4\noffer zram zram\noffer block_major_* zram\n")


def test_a_kernel_that_is_built_has_no_index() -> None:
    found = GuestModules.of(boot("fs-ext4", script=True), Bootable(Path("bzImage")))
    assert (found.files, found.first, found.index) == ((), (), "")
