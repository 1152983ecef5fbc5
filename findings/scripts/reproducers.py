"""Run the program of each find of a published hunt, outside the lab.

    reproducers.py HUNT [KIND...]

Each find of ``results/HUNT/hunt.json`` has a program of one file, as ``kteardown hunt
--reproducers`` writes it. It is built with gcc, and runs in a guest of its own on the kernel that
was hunted on: busybox, the modules that the kind needs, raised limits, and no agent. QEMU counts
instructions, so the times do not depend on this host. The program is asked for a quarter of the
find's largest number, and makes and releases that number, two and four times as many, in three
runs; their medians count. Keeps ``results/HUNT/reproducers.json``, from which ``make tables`` makes
a column. Exits with 1 if a program fails, or if the last doubling of the number takes less than 2.2
times as long. Deferred costs and memory are not measured by these programs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from string import Template

import numpy as np

from claims import RESULTS, ROOT
from hunts import ProgramRun, keep_programs, programs
from kteardown.kernels import prebuilt
from kteardown.kernels.cache import Cache
from kteardown.kernels.guest_programs import guest_programs
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.initramfs import archive, character_device, file, folder
from kteardown_hunt.catalogue import Kind, load_kinds
from kteardown_hunt.limits import LIMITS
from kteardown_hunt.result import Find, HuntResult
from kteardown_hunt.tables import program

PATIENCE_S = 900
JOBS = 2
RUNS = 3
GROWS = 2.2
QEMU = """qemu-system-x86_64 -machine pc -cpu max -m 2048 -smp 1 -nodefaults -no-user-config
    -nographic -accel tcg,thread=single -icount shift=1,sleep=off -serial stdio -no-reboot"""
ARGUMENTS = "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off nokaslr audit=0"
INIT = Template("""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue /tmp
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
for module in $$(cat /modules/order); do
    insmod "/modules/$$module" || echo "cannot load $$module"
done
ifconfig lo 127.0.0.1 up
ulimit -n 1048576
ulimit -l unlimited
ulimit -q unlimited
for sysctl in $sysctls; do echo 1000000 >$$sysctl || echo 32000 >$$sysctl; done
cd /tmp
for run in $runs; do sleep 5; /program $objects $way || break; done
echo "status $$?"
poweroff -f
""")
_LINE = re.compile(r"(\d+) objects: made in +([0-9.]+) ms, released in +([0-9.]+) ms")

_SYSCTL = re.compile(r"[a-z]+(?:\.[a-z0-9_-]+)+")


def main(name: str, wanted: Sequence[str]) -> int:
    """Run the programs of all finds, or of those of the kinds that are wanted. Return the exit
    status."""
    result = HuntResult.model_validate_json((ROOT / RESULTS / name / "hunt.json").read_bytes())
    finds = [find for find in result.finds if find.growth and (not wanted or find.kind in wanted)]
    kinds = {kind.name: kind for kind in load_kinds((), SilentReporter())}
    image = _kernel(
        result.source, {module for find in finds for module in kinds[find.kind].modules}
    )
    # Of an earlier hunt only what is about the same finds is kept.
    known = {f"{find.kind}, {find.way}" for find in result.finds}
    runs, bad = {key: run for key, run in programs(ROOT, name).items() if key in known}, 0
    # Two finds of one way, such as its making and its release, are shown by one run of the program.
    ways = {(find.kind, find.way): find for find in finds}
    with ThreadPoolExecutor(max_workers=JOBS) as pool:
        for way, run in zip(
            ways,
            pool.map(lambda find: _run(find, kinds[find.kind], image), ways.values()),
            strict=True,
        ):
            runs[", ".join(way)] = run
            keep_programs(ROOT, name, runs)
            for find in (find for find in finds if (find.kind, find.way) == way):
                grown = run.growth(find.cost)
                bad += bool(run.failure) or (grown is not None and grown < GROWS)
                shown = run.failure or (f"{grown:.2f}" if grown else "not measured by a program")
                print(f"{', '.join(way)}, {find.cost}: {shown}", flush=True)
    return min(bad, 1)


def _kernel(source: str, modules: set[str]) -> KernelImage:
    request = KernelRequest(source, source, modules=tuple(sorted(modules)))
    sources = Sources(cache_dir(), SilentReporter())
    return prebuilt.ensure(request, Cache(cache_dir()), sources, SilentReporter())


def _run(find: Find, kind: Kind, image: KernelImage) -> ProgramRun:
    """Run the program of a find's kind in a guest."""
    assert find.growth
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "program.c").write_text(program(find.kind))
        built = ["gcc", "-O2", "-static", "-o", f"{name}/program", f"{name}/program.c"]
        subprocess.run(built, check=True)
        init = INIT.substitute(
            objects=max(1, find.growth.sizes[-1] // 4),
            way=find.way,
            sysctls=_sysctls(kind),
            runs=" ".join(map(str, range(RUNS))),
        )
        (place / "initrd").write_bytes(_initramfs(init, place / "program", kind, image))
        boot = [
            *QEMU.split(),
            "-kernel",
            str(image.image),
            "-initrd",
            f"{name}/initrd",
            "-append",
            ARGUMENTS,
        ]
        try:
            done = subprocess.run(boot, capture_output=True, timeout=PATIENCE_S, check=False)
        except subprocess.TimeoutExpired:
            return ProgramRun(failure=f"not finished after {PATIENCE_S} s")
    console = done.stdout.decode(errors="replace")
    shown = _LINE.findall(console)
    status = re.search(r"^status (\d+)", console, re.MULTILINE)
    if len(shown) != 3 * RUNS or not status or status[1] != "0":
        lines = [line.strip() for line in console.splitlines() if line.strip()]
        return ProgramRun(failure=" / ".join(lines[-4:]))
    # Rows are runs, then sizes; columns the number of objects and the two times.
    sizes, made, released = np.median(np.array(shown, dtype=float).reshape(RUNS, 3, 3), axis=0).T
    return ProgramRun(tuple(map(int, sizes)), tuple(made.tolist()), tuple(released.tolist()))


def _sysctls(kind: Kind) -> str:
    """Return the files of the sysctls that limit a kind, with blanks between."""
    limit = LIMITS.get(kind.limit)
    names = _SYSCTL.findall(limit.set_by) if limit else []
    return " ".join("/proc/sys/" + name.replace(".", "/") for name in names)


def _initramfs(init: str, built: Path, kind: Kind, image: KernelImage) -> bytes:
    sources = Sources(cache_dir(), SilentReporter())
    (busybox,) = guest_programs(["busybox"], DEFAULT_ARCH, sources, SilentReporter())
    needed = [path for name in kind.modules for path in image.optional_modules.get(name, ())]
    modules = dict.fromkeys([*image.modules, *needed])
    return archive(
        [
            *map(folder, ("bin", "dev", "modules", "proc", "sys", "tmp")),
            character_device("dev/console", 5, 1),
            file("init", init.encode(), 0o755),
            file("program", built.read_bytes(), 0o755),
            file("bin/busybox", busybox.read_bytes(), 0o755),
            file("modules/order", "".join(f"{module.name}\n" for module in modules).encode()),
            *(file(f"modules/{module.name}", module.read_bytes()) for module in modules),
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
