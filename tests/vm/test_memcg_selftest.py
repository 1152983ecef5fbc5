"""The kselftests of the memcg series pass with the series, and fail on a kernel that is wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from kteardown.kernels import apply_patches
from kteardown.kernels.source import Sources
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SCRIPTS = Path(__file__).parents[1] / "data" / "selftest"
SELFTESTS = "tools/testing/selftests"
COUNTS = ("passed_count", "failed_count", "skipped_count")
PASSED = (1, 0, 0)
FAILED = (0, 1, 0)
_TEST = re.compile(r"^\tT\((test_\w+)\),\n", re.MULTILINE)


def compile_test(folder: Path, series: str, source: str, name: str) -> None:
    """Compile ``test_memcontrol`` of ``source`` with ``series`` into ``folder``: the one test."""
    sources = Sources(cache_dir(), SilentReporter())
    tree = sources.tree(sources.identify(source))
    (folder / "patched").mkdir()
    patches = sorted((data_dir("series") / series).glob("*.patch"))
    patched = apply_patches.apply(tree, patches, folder / "patched", source)
    tests = shutil.copytree(tree / SELFTESTS, folder / "selftests", symlinks=True)
    shutil.copytree(patched.folder / SELFTESTS, tests, dirs_exist_ok=True)
    program = tests / "cgroup" / "test_memcontrol.c"
    text, count = _TEST.subn(lambda test: test[0] if test[1] == name else "", program.read_text())
    assert count > 1
    program.write_text(text)
    (helpers,) = program.parent.rglob("cgroup_util.c")
    folders = (tests, program.parent / "lib/include", tree / "tools/include")
    include = [f"-I{path}" for path in folders]
    # The other tests are not used; and getaddrinfo() needs libraries that a guest does not have.
    command = ["gcc", "-O2", "-w", "-static", "-pthread", *include, str(program), str(helpers)]
    subprocess.run([*command, "-o", str(folder / "workloads" / "test_memcontrol")], check=True)


def run(
    folder: Path,
    source: str,
    variants: list[str],
    config: Collection[str] = (),
    workload: str = "memcg_selftest",
) -> dict[str, tuple[float, ...]]:
    """By kernel: how many tests passed, failed and were skipped. Two CPUs really run at once."""
    boots = lab.stress(
        folder, workload, source, variants, lab.WALL, config, machine=lab.NO_IRQ_ROUTING
    )
    found = {}
    for boot in boots:
        assert boot.outcome == "ok", boot.detail
        samples = boot.trials[0].samples
        # The twin of base is base, too.
        found[boot.kernel.removesuffix("-twin")] = tuple(samples[name][0] for name in COUNTS)
    return found


def prepare(folder: Path, series: str, source: str, test: str) -> Path:
    """A new folder with the script, for a run."""
    folder.mkdir()
    shutil.copytree(SCRIPTS, folder / "workloads")
    compile_test(folder, series, source, test)
    return folder


SERIES = "memcg-swap-reparent"
SOURCE = "debian:7.3"
FREED = 3
"""The first patches of the series, which free the removed cgroup."""
CONFIG = ("kasan", "debug")


def test_a_removed_cgroup_is_freed(tmp_path: Path) -> None:
    """Each kernel has a run of its own: the first patches change a header, so as a variant they
    would be built again."""
    first, _ = lab.in_two_steps(tmp_path, SERIES, FREED, SOURCE)
    for source, answer in ((SOURCE, FAILED), (first, PASSED)):
        folder = tmp_path / f"run-{answer[0]}"
        prepare(folder, SERIES, SOURCE, "test_memcg_removed_child_freed")
        assert run(folder, source, [], CONFIG) == {"base": answer}


def test_the_limit_of_the_ancestor_is_kept(tmp_path: Path) -> None:
    first, rest = lab.in_two_steps(tmp_path, SERIES, FREED, SOURCE)
    folder = prepare(tmp_path / "run", SERIES, SOURCE, "test_memcg_removed_child_swap")
    found = run(folder, first, [rest], CONFIG)
    # With the first patches alone the reader is charged, as on base.
    assert found == {"base": FAILED, Path(rest).name: PASSED}


def test_the_parent_has_what_a_removed_child_holds(tmp_path: Path) -> None:
    """It waits until the counts are summed up before the removal, so it does not catch
    ``memcg-broken-no-fold``."""
    series, source = "memcg-release-percpu", "debian:6.12"
    folder = prepare(tmp_path / "run", series, source, "test_memcg_removed_child_stat")
    wrong = lab.on_top(tmp_path, series, "memcg-broken-no-parent")
    found = run(folder, source, [series, wrong], workload="memcg_selftest_ramfs")
    assert found == {"base": PASSED, series: PASSED, "memcg-broken-no-parent": FAILED}
