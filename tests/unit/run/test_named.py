"""What a stranger's run or hunt names on this host is not compiled, executed or reached until it is
typed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.errors import InputError, LabError
from kteardown.flows.bisection.commits import begun_run
from kteardown.kernels.source import file_hash
from kteardown.model.experiment import Experiment
from kteardown.run import create, named
from kteardown.run.places import HERE, remembered_place
from kteardown.run.setting import Bootable
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder
from kteardown.rundir.snapshot import load
from kteardown_cluster.journal import Journal
from kteardown_hunt.folder import HuntFolder, Request
from unit.cli.test_main import kteardown
from unit.report.contexts import write_run
from unit.simulation import freezer

SECRET = "secret_of_the_user"
VARIANT = "freezer-skip-exited"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of this host whose files write ``executed`` when they run, and show a secret if
    compiled."""
    folder = tmp_path / "theirs"
    canary, secret = folder / "executed", tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    code = f'__attribute__((constructor)) static void run(void) {{ fopen("{canary}", "w"); }}'
    texts = {
        "kinds/evil.c": f"#include <stdio.h>\n{code}\n",
        "agent/workloads/evil.c": f'#include "{secret}"\n',
        "bin/gcc": f"#!/bin/sh\ntouch {canary}\necho gcc 14\n",
        "linux.tar": "no tarball\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "bin/gcc").chmod(0o755)
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A run of which nothing has been measured."""
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    made = write_run(tmp_path / "runs", freezer(zombies=(0, 3000), boots=2))
    made.records_file.replace("")
    return made


def change(file: Entry, **fields: object) -> None:
    file.replace(json.dumps({**json.loads(file.text()), **fields}))


def missing_variant(run: RunDir, **fields: object) -> None:
    """Let the run still need its variant, which is made of ``fields``."""
    base = json.loads(run.kernels_file.text())["base"]
    run.kernels_file.replace(json.dumps({"base": base}))
    request = {"source": "debian:6.12", "patches": [], "fragments": [], "series": VARIANT, **fields}
    (run.folder / "requests.json").replace(
        json.dumps({"base": {"source": "debian:6.12"}, VARIANT: request})
    )


def own_workload(run: RunDir, folder: str) -> None:
    """Let the run measure the workload ``evil``, which is not shipped, of ``folder``."""
    for file in (run.experiment_file, run.workloads_file, run.plan_file):
        file.replace(file.text().replace('"zombies"', '"evil"'))
    change(run.experiment_file, folder=folder)


def refused(home: Path, *words: str, **environment: str) -> str:
    done = kteardown(*words, home=home, cwd=home, **environment)
    assert done.returncode == 2, done
    assert SECRET not in done.stdout + done.stderr
    return " ".join(done.stderr.split())


def test_the_workloads_of_a_run_are_compiled_only_from_a_folder_that_is_typed(
    run: RunDir, theirs: Path, tmp_path: Path
) -> None:
    own_workload(run, str(theirs))
    said = refused(tmp_path, "run", "--resume", "last")
    assert f"{theirs} (the C files of the workload evil)" in said
    assert f"kteardown run --resume last --own {theirs}" in said
    assert refused(tmp_path, "run", "--resume", "last", "--own", str(tmp_path / "other"))
    named.need(named.of_runs(RunFolder.of(run)), [str(theirs)], "", "")


def test_a_run_without_a_folder_does_not_compile_what_is_in_the_current_one(
    run: RunDir, theirs: Path
) -> None:
    own_workload(run, "")
    done = kteardown("run", "--resume", str(run.path), home=theirs.parent, cwd=theirs)
    assert (done.returncode, SECRET in done.stderr) == (2, False)
    assert "--own ." in done.stderr


def test_the_compiler_and_the_source_of_a_run_are_used_only_if_they_are_typed(
    run: RunDir, theirs: Path, tmp_path: Path
) -> None:
    compiler = str(theirs / "bin/gcc")
    missing_variant(run, source=f"tar:{theirs}/linux.tar", compiler=compiler)
    said = refused(tmp_path, "run", "--resume", "last", "--own", str(theirs / "linux.tar"))
    assert f"{compiler} (a compiler)" in said
    assert f"{theirs}/linux.tar (a kernel source)" not in said
    assert f"{theirs}/linux.tar (a kernel source)" in refused(tmp_path, "run", "--resume", "last")
    assert not (theirs / "executed").exists()


def test_a_run_is_sent_to_a_machine_only_if_that_is_typed(tmp_path: Path, run: RunDir) -> None:
    (run.folder / "on").replace("ssh:box\n")
    programs, canary = tmp_path / "bin", tmp_path / "executed"
    programs.mkdir()
    (programs / "ssh").write_text(f"#!/bin/sh\ntouch {canary}\n")
    (programs / "ssh").chmod(0o755)
    said = refused(tmp_path, "run", "--resume", "last", PATH=f"{programs}:/usr/bin:/bin")
    assert "began on ssh:box" in said and "--on ssh:box" in said
    assert not canary.exists()
    assert remembered_place(run, "local") == HERE


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"own": "."}, "--own ."),
        ({"compiler": "./bin/gcc"}, "--own ./bin/gcc"),
        ({"source": "git:/src/linux@v6.12"}, "--own /src/linux"),
        ({"against": ["image:/boot/vmlinuz"]}, "--own /boot/vmlinuz"),
        ({"against": ["lore:1@example.org on debian:6.12"]}, "--own lore:1@example.org"),
        ({"against": ["./series/x@2"]}, "--own ./series/x"),
        ({"against": ["git:/src/linux@v1..v2"]}, "--own /src/linux"),
        ({"source": "debian-image:6.12 on git:/src/linux@HEAD"}, "--own /src/linux"),
        ({"locks": "patched:/src/p@git:/src/linux@v6.12"}, "--own /src/p --own /src/linux"),
    ],
)
def test_what_a_hunt_names_is_used_only_if_it_is_typed(
    theirs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, object],
    word: str,
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    folder = HuntFolder.begin(Request(source="debian-image:6.12", command="kteardown hunt"))
    change(folder.folder / "hunt.json", **fields)
    done = kteardown("hunt", "--resume", "last", home=tmp_path, cwd=theirs)
    assert done.returncode == 2 and f"kteardown hunt --resume last {word}" in " ".join(
        done.stderr.split()
    )
    assert not (theirs / "executed").exists()
    named.need(folder.request().named, word.removeprefix("--own ").split(" --own "), "", "")


def test_a_hunt_of_shipped_things_needs_no_name() -> None:
    request = Request(
        source="debian:6.12",
        against=("exit-linear", "exit-linear@1 on debian:7.3"),
        compiler="gcc-14",
    )
    assert request.named == []


def test_a_link_and_dots_do_not_lead_out_of_what_is_typed(tmp_path: Path) -> None:
    wanted = [named.Named(f"{tmp_path}/a/../b", "")]
    with pytest.raises(InputError):
        named.need(wanted, [str(tmp_path)], "", "")
    named.need(wanted, [f"{tmp_path}/b"], "", "")


def test_a_bisection_takes_up_only_a_run_that_names_what_was_typed(
    run: RunDir, theirs: Path
) -> None:
    experiment = load(run).experiment
    found = begun_run(run.name, experiment)
    assert found is not None and found.path == run.path
    assert begun_run(str(run.path), experiment) is None
    missing_variant(run, compiler=str(theirs / "bin/gcc"))
    assert begun_run(run.name, experiment) is None
    typed: Experiment = experiment.model_copy(update={"compiler": str(theirs / "bin/gcc")})
    assert begun_run(run.name, typed) is not None


@pytest.mark.parametrize("field", ["image", "modules", "optional_modules"])
def test_only_kernels_and_modules_of_the_cache_are_booted(
    run: RunDir, tmp_path: Path, field: str
) -> None:
    kernel, secret = tmp_path / "cache" / "kernels" / "x" / "bzImage", tmp_path / "secret"
    kernel.parent.mkdir(parents=True)
    for file in (kernel, secret):
        file.write_text("a kernel")
    fields = {
        "image": str(kernel),
        "modules": [str(kernel)],
        "optional_modules": {"fs-ext4": [str(kernel)]},
        "builtin": ["unix"],
        "image_hash": file_hash(kernel),
    }
    run.kernels_file.replace(json.dumps({"base": fields}))
    assert create.bootable(run)["base"] == Bootable(
        kernel, (kernel,), {"fs-ext4": (kernel,)}, ("unix",)
    )
    wrong = {
        "image": str(secret),
        "modules": [str(secret)],
        "optional_modules": {"fs-ext4": [str(secret)]},
    }
    run.kernels_file.replace(json.dumps({"base": {**fields, field: wrong[field]}}))
    with pytest.raises(InputError, match="is not in the cache"):
        create.bootable(run)


@pytest.mark.parametrize("path", ["/etc/hostname", "../../secret", "series/../../secret"])
@pytest.mark.parametrize("field", ["patches", "fragments"])
def test_patches_and_fragments_are_only_those_that_the_run_keeps(
    run: RunDir, field: str, path: str
) -> None:
    missing_variant(run, **{field: [path]})
    with pytest.raises(InputError, match="leads out of the folder"):
        create.missing_kernels(run)


def test_the_name_of_a_workload_is_no_path(run: RunDir) -> None:
    workloads = json.loads(run.workloads_file.text())
    change(run.workloads_file, **{"../../x": workloads["zombies"]})
    with pytest.raises(InputError, match=r"workloads\.json"):
        load(run)


def test_a_run_does_not_name_the_jobs_that_are_cancelled(run: RunDir) -> None:
    journal = Journal(run)
    journal.create()
    assert journal.token() == journal.token()
    (journal.folder / "token").replace("1234567890,other-jobs")
    with pytest.raises(LabError, match="is not the token of a run"):
        journal.token()


def test_lists_and_completion_compile_and_execute_nothing_of_the_current_folder(
    theirs: Path, tmp_path: Path
) -> None:
    for name in ("experiments", "workloads", "series"):
        assert kteardown("list", name, home=tmp_path, cwd=theirs).returncode == 0
    for words in ("kteardown hunt --kinds ", "kteardown compare ", "kteardown run "):
        environment = {"_KTEARDOWN_COMPLETE": "complete_bash", "COMP_WORDS": words}
        kteardown(home=tmp_path, cwd=theirs, **environment, COMP_CWORD=str(len(words.split())))
    assert not (theirs / "executed").exists()
    assert not list((tmp_path / "cache").rglob("*-kinds"))


def test_the_canary_of_these_tests_is_found_when_it_is_executed(theirs: Path) -> None:
    subprocess.run([theirs / "bin/gcc"], check=True, capture_output=True)
    assert (theirs / "executed").exists()


def test_what_is_read_to_count_a_series_is_typed(run: RunDir, tmp_path: Path) -> None:
    base = {"source": f"git:{tmp_path}/linux@v6.12", "patches": []}
    made = {**base, "patches": ["series/x/1.patch"], "series": VARIANT}
    (run.folder / "requests.json").replace(json.dumps({"base": base, VARIANT: made}))
    assert [one.text for one in named.of_runs(RunFolder.of(run))] == [f"{tmp_path}/linux"]


@pytest.mark.parametrize(
    "damage", [{"image": 5}, {"modules": []}, {"image": "\0", "modules": 5}, []]
)
def test_a_damaged_list_of_kernels_is_an_error(run: RunDir, damage: object) -> None:
    run.kernels_file.replace(json.dumps({"base": damage}))
    with pytest.raises(InputError, match=r"kernels\.json"):
        create.bootable(run)
