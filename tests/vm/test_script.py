"""Scripts of the user's own in guests: the harness changes nothing of what is measured.

The scripts are those of ``postings/scripts``. The kernel is that of the other tests, without the
fragment `userland`: none of them needs it, since the lab reads the first line of a script itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kteardown.coverage.attribute import FunctionId
from kteardown.coverage.executed import count_script
from kteardown.coverage.maps import read_map
from kteardown.errors import GuestError
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Overrides, Scripted, apply
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage
from kteardown.model.experiment import MACHINE_PARAMETERS, MachineSpec
from kteardown.model.record import Sample
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import unit_of
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from kteardown.run.boot_once import boot_counted
from kteardown.run.places import HERE
from kteardown.run.rehearse import Rehearsal, Rehearsed, chosen_metrics, rehearse
from kteardown.run.resolve import base_of, experiment_of_script
from kteardown.run.setting import Bootable
from kteardown.script.describe import describe, write
from kteardown.script.extract import parse_reading, values

pytestmark = [pytest.mark.vm, pytest.mark.build]

SCRIPTS = data_dir("postings") / "scripts"
FREEZE = "freeze=/Freezing user space processes$/../Freezing user space processes completed/"
ZOMBIES = (500, 4500)
CGROUPS = (20, 60)
POSSIBLE_CPUS = 8
FILES = """\
mkfs.ext4 -q /dev/{disk}
mount -t ext4 /dev/{disk} /mnt
for i in $(seq $N); do echo $i > /mnt/$i; done
sync
umount /mnt
mount -t ext4 /dev/{disk} /mnt
rmdir /mnt/lost+found
echo $(ls /mnt | wc -l) files
"""
QUEUED = """\
mount -t configfs none /sys/kernel/config
mkdir /sys/kernel/config/nullb/nullb1 && cd /sys/kernel/config/nullb/nullb1
echo 1 > memory_backed; echo 256 > size; echo 2 > irqmode; echo 50000 > completion_nsec
echo 1 > power
cd /
"""
ARGUMENTS = ("noapictimer",)
"""A guest with CPUs that are only possible boots in a fraction of the time."""

needs_pkill = pytest.mark.skipif(not shutil.which("pkill"), reason="pkill is not on this host")


def run_script(
    folder: Path, image: Path, script: Path, params: Mapping[str, Sequence[int]], *further: Path
) -> tuple[Rehearsed, dict[str, str]]:
    """The script at its two sizes, in one guest, and where each of its metrics is read."""
    asked = Scripted(file=list(further), metric=[FREEZE] if script.stem == "freezer" else None)
    own = {name: of for name, of in params.items() if name not in MACHINE_PARAMETERS}
    described = describe(str(script), asked, own)
    folder.mkdir()
    write(described, folder)
    experiment = apply(
        experiment_of_script(described.workload.name, "debian:6.12", folder),
        Overrides(assignments=[f"{name}={','.join(map(str, of))}" for name, of in params.items()]),
    )
    experiment = experiment.model_copy(
        update={"machine": experiment.machine.model_copy(update={"kernel_args": ARGUMENTS})}
    )
    found = rehearse(Bootable(image), experiment, HERE, SilentReporter())
    metrics = chosen_metrics(described, found, asked.metric or ())
    return found, {key: spec.read for key, spec in metrics.items()}


def value_of(run: Rehearsal, key: str, read: str) -> float:
    (value,) = values(parse_reading(read), unit_of(key), run.output, run.deltas)
    return float(value.value)


def law(found: Rehearsed, metrics: Mapping[str, str], key: str, param: str) -> float:
    """What one more costs in the script."""
    small, large = found.sizes
    more = value_of(large, key, metrics[key]) - value_of(small, key, metrics[key])
    return more / (int(large.params[param]) - int(small.params[param]))


def built_in(
    image: Path, workload: str, param: str, sizes: Sequence[int], possible_cpus: int = 1
) -> dict[str, float]:
    """What one more costs in the workload that is shipped, by metric. Both sizes are in one
    guest."""
    spec = load_workload(workload)
    rest: dict[str, ParamValue] = {name: one.default for name, one in spec.parameters.items()}
    points = [{**rest, param: size} for size in sizes]
    booted = boot_counted(
        Bootable(image),
        spec,
        points,
        SilentReporter(),
        spec=MachineSpec(possible_cpus=possible_cpus, kernel_args=ARGUMENTS),
        counted=False,
    )
    found = {
        (one.trial, one.metric): one.value for one in booted.records if isinstance(one, Sample)
    }
    return {
        metric: (found[1, metric] - value) / (sizes[1] - sizes[0])
        for (trial, metric), value in found.items()
        if trial == 0
    }


@pytest.fixture(scope="module")
def freezer(
    tmp_path_factory: pytest.TempPathFactory, base_image: Path
) -> tuple[Rehearsed, dict[str, str]]:
    """Really suspends, at each size once, and is woken."""
    folder = tmp_path_factory.mktemp("freezer") / "first"
    params = {"STEP": ZOMBIES, "ROUNDS": (1,), "WAIT": (1,)}
    return run_script(
        folder, base_image, SCRIPTS / "freezer.sh", params, SCRIPTS / "create_zombie.c"
    )


@needs_pkill
def test_a_zombie_costs_the_freezer_what_it_costs_in_the_built_in_workload(
    base_image: Path, freezer: tuple[Rehearsed, dict[str, str]]
) -> None:
    found, metrics = freezer
    # The log has steps of a microsecond, 1000 instructions, and a timer tick of some 5000 may be
    # in one of the two freezes: together less than 3 instructions a zombie.
    wanted = built_in(base_image, "zombies", "zombies", ZOMBIES)["freeze_user_ns"]
    assert law(found, metrics, "freeze_ns", "STEP") == pytest.approx(wanted, abs=3)


@needs_pkill
def freezing(run: Rehearsal) -> list[tuple[int, str]]:
    """What the kernel logged of freezing, with its times."""
    return [(line.at_ns, line.text) for line in run.output if "Freezing" in line.text]


def test_a_script_that_suspends_is_woken_and_is_exact_until_then(
    tmp_path: Path, base_image: Path, freezer: tuple[Rehearsed, dict[str, str]]
) -> None:
    found, _ = freezer
    for run in found.sizes:
        assert any("PM: suspend entry (deep)" in line for line in run.lines("log"))
        assert any("PM: suspend exit" in line for line in run.lines("log"))
        assert run.lines() == [f"{run.params['STEP']} zombies"]
    params = {"STEP": ZOMBIES, "ROUNDS": (1,), "WAIT": (1,)}
    again, _ = run_script(
        tmp_path / "again", base_image, SCRIPTS / "freezer.sh", params, SCRIPTS / "create_zombie.c"
    )
    # A busy host wakes the guest at another instruction: from then on the two differ.
    first, second = (list(map(freezing, one.sizes)) for one in (found, again))
    assert second == first
    assert all(len(lines) >= 2 for lines in first)


def test_a_dying_cgroup_holds_what_it_holds_in_the_built_in_workload(
    tmp_path: Path, base_image: Path
) -> None:
    params = {"N": CGROUPS, "possible_cpus": (POSSIBLE_CPUS,)}
    found, metrics = run_script(tmp_path / "memcg", base_image, SCRIPTS / "memcg.sh", params)
    wanted = built_in(base_image, "dyingcg", "cgroups", CGROUPS, POSSIBLE_CPUS)
    # Per-CPU memory has steps of a page for each CPU.
    step = 4 * POSSIBLE_CPUS / (CGROUPS[1] - CGROUPS[0])
    assert law(found, metrics, "meminfo_percpu_kb", "N") == pytest.approx(
        wanted["percpu_kb"], abs=2 * step
    )
    # In the built-in workload the second size finds free slabs that the first one has left.
    assert law(found, metrics, "meminfo_slab_kb", "N") == pytest.approx(wanted["slab_kb"], rel=0.5)


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("mkfs.ext4"), reason="mkfs.ext4 is not on this host")
@pytest.mark.parametrize("disk", ["ram0", "nullb1"])
def test_a_disk_is_exact(tmp_path: Path, disk: str) -> None:
    script = tmp_path / f"{disk}.sh"
    make = QUEUED if disk == "nullb1" else ""
    script.write_text(f"#!/bin/sh -e\n{make}{FILES.format(disk=disk)}")
    write(describe(str(script), Scripted(), {"N": (10,)}), tmp_path)
    experiment = apply(
        experiment_of_script(disk, "debian:6.12", tmp_path), Overrides(config=["disk"])
    )
    built = build.ensure([base_of(experiment)], cache_dir=cache_dir(), reporter=SilentReporter())
    image = built.images["base"].image
    found, again = (run_script(tmp_path / name, image, script, {"N": (10, 20)})[0] for name in "ab")
    assert [run.lines() for run in found.sizes] == [["10 files"], ["20 files"]]
    # A busy host wakes the guest at another instruction: from then on the two differ.
    first, second = (list(map(freezing, one.sizes)) for one in (found, again))
    assert second == first
    assert all(len(lines) >= 2 for lines in first)


def test_the_terminal_interrupts_all_processes_of_a_script(
    tmp_path: Path, base_image: Path
) -> None:
    found, metrics = run_script(
        tmp_path / "pipes", base_image, SCRIPTS / "pipes.sh", {"N": (10, 200)}, SCRIPTS / "pipes.c"
    )
    assert [run.lines()[0] for run in found.sizes] == ["kt-interrupt"] * 2
    assert 40_000 < law(found, metrics, "gone_ns", "N") < 160_000


def test_a_script_that_fails_ends_with_its_last_lines(tmp_path: Path, base_image: Path) -> None:
    script = tmp_path / "fails.sh"
    script.write_text("#!/bin/sh -e\necho N is $N\ncat /nonesuch\necho not reached\n")
    with pytest.raises(GuestError) as caught:
        run_script(tmp_path / "fails", base_image, script, {"N": (1, 2)})
    assert caught.value.message.startswith("fails failed on base: ")
    assert "\n  | N is 1\n  | cat: " in caught.value.message
    assert "not reached" not in caught.value.message
    assert "--allow 'exit 1'" in caught.value.hint


def test_a_script_that_changes_its_root_ends_as_any_other(tmp_path: Path, base_image: Path) -> None:
    text = (
        "#!/bin/sh -e\nmount -t tmpfs none /mnt\nmkdir /mnt/bin\ncp /bin/busybox /mnt/bin\ncd "
        "/mnt\n"
        "[ ! -e ./init ] || exec chroot . /init\n"
        "umount -l /proc\n/bin/busybox mount --move . /\nexec chroot . /bin/busybox sh -c 'echo /* "
        "'$N\n"
    )
    script = tmp_path / "over.sh"
    script.write_text(text)
    small = run_script(tmp_path / "folder", base_image, script, {"N": (1, 2)})[0].sizes[0]
    assert (small.status, small.lines()) == ("ok", ["/bin 1"])
    # What is hidden has not become 0.
    assert small.deltas and "meminfo" not in {one.file for one in small.deltas}


def test_what_a_script_executes_is_counted_once(
    tmp_path: Path, base_image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = SilentReporter()
    script = tmp_path / "folders.sh"
    script.write_text("#!/bin/sh -e\nfor i in $(seq $N); do mkdir /tmp/d; rmdir /tmp/d; done\n")
    described = describe(str(script), Scripted(), {"N": (20,)})
    write(described, tmp_path)
    monkeypatch.setattr(
        "kteardown.coverage.executed.map_of", lambda described: tmp_path / "map.json.xz"
    )
    kernel = KernelImage("base", base_image, "debian:6.12", "", "x86_64", "6.12", "gcc", "", "")
    experiment = experiment_of_script("folders", "debian:6.12", tmp_path)
    for _ in range(2):
        count_script(kernel, described, experiment, {"N": 20}, silent)
        found = read_map(tmp_path / "map.json.xz")
        (point,) = found.workloads["folders"].points
        assert (found.source, point.params) == ("debian:6.12", {"N": 20})
        assert point.inside[FunctionId("fs/namei.c", "do_rmdir")].calls == 20
        # The second time nothing is booted.
        monkeypatch.setattr("kteardown.coverage.executed.boot_counted", None)
