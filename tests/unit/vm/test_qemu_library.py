"""QEMU gets the rights that it needs and no others, and what a host cannot do is left out."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.errors import LabError, MissingError
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import agent_addresses, build_agent
from kteardown.vm.job import BootJob
from kteardown.vm.qemu_library import (
    _NO_RIGHTS,
    _OTHER_USER,
    _ROOT,
    USER,
    WITH_LAB,
    CodeBlock,
    TrialBlocks,
    build_library,
    build_plugin,
    confinement,
    opened,
    plugin_arguments,
    preloaded,
    read_counts,
)
from kteardown.vm.qemu_library import main_loop_library as library
from unit.vm.test_qemu_command import JOB

IS_ROOT = os.geteuid() == 0
# What a user may drop depends on what the user has: nothing, in some containers.
LEAST = _ROOT if subprocess.call([*_ROOT, "true"], stderr=subprocess.DEVNULL) == 0 else _NO_RIGHTS
STRICTEST = (*_OTHER_USER, "--clear-groups") if IS_ROOT else LEAST


@pytest.fixture
def job(tmp_path: Path) -> BootJob:
    """A job whose files other users cannot find, and of which they may not read the initramfs."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    for name in ("image", "initramfs", "plugin.so"):
        (folder / name).write_text(name)
    (folder / "initramfs").chmod(0o600)
    return replace(
        JOB,
        image=folder / "image",
        initramfs=folder / "initramfs",
        console=Entry(folder) / "console",
        plugin=(f"file={folder / 'plugin.so'}", f"out={folder / 'counts'}", "trial=0x10"),
    )


def output(words: list[str], inherit: Sequence[int] = ()) -> str:
    command = [*STRICTEST, *WITH_LAB, str(os.getpid()), *words]
    return subprocess.check_output(command, pass_fds=tuple(inherit), text=True)


def test_the_process_has_no_rights_that_it_does_not_need() -> None:
    status = dict(
        line.split(":\t", 1) for line in output(["cat", "/proc/self/status"]).splitlines()
    )
    assert status["NoNewPrivs"] == "1"
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert output(["sh", "-c", "ulimit -c"]) == "0\n"
    if IS_ROOT:
        assert status["Uid"].split() == status["Gid"].split() == [str(USER)] * 4
        assert not status["Groups"].strip()
        assert status["CapBnd"] == "0" * 16


def test_it_reads_and_writes_the_files_of_the_job_by_their_descriptors(job: BootJob) -> None:
    with opened(job) as (lent, inherit, (option, console)):
        plugin, out, mark = lent.plugin
        names = [str(lent.image), str(lent.initramfs), plugin.removeprefix("file=")]
        assert output(["cat", *names], inherit) == "imageinitramfsplugin.so"
        output(["sh", "-c", f"echo counted >{out.removeprefix('out=')}"], inherit)
        number = int(console.removeprefix("fd=").removesuffix(",set=1"))
        output(["bash", "-c", f"echo printed >&{number}"], inherit)
    assert job.console.path.read_text() == "printed\n"
    assert (job.console.parent / "counts").text() == "counted\n"
    assert (option, str(lent.console), mark) == ("-add-fd", "/dev/fdset/1", "trial=0x10")
    for inherited in inherit:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(inherited)


def test_a_missing_file_is_named(job: BootJob, tmp_path: Path) -> None:
    missing = replace(job, initramfs=tmp_path / "missing")
    with pytest.raises(LabError, match=r"cannot open .*missing: No such"), opened(missing):
        pass


def test_what_does_not_work_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU is in a folder that other users cannot open, and was built without the filter."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    program = folder / "qemu-system-x86_64"
    program.write_text('#!/bin/sh\ncase "$*" in *-sandbox*) exit 1;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    assert confinement(JOB.arch, JOB.acceleration) == ((*LEAST, *WITH_LAB, str(os.getpid())), ())


@pytest.mark.skipif(not IS_ROOT, reason="only root can change to another user")
@pytest.mark.parametrize(
    ("mode", "group", "words"),
    [
        (0o666, 0, (*_OTHER_USER, "--clear-groups")),
        (0o660, 104, (*_OTHER_USER, "--groups=104")),
        (0o660, 0, _ROOT),
        (0o600, 104, _ROOT),
    ],
)
def test_qemu_is_another_user_only_if_that_may_use_kvm(
    monkeypatch: pytest.MonkeyPatch, mode: int, group: int, words: tuple[str, ...]
) -> None:
    # Not below tmp_path, which other users cannot open.
    with tempfile.NamedTemporaryFile() as kvm:
        os.chown(kvm.name, 0, group)
        os.chmod(kvm.name, mode)
        monkeypatch.setattr("kteardown.vm.qemu_library._KVM", kvm.name)
        assert confinement(JOB.arch, "kvm")[0][: -len(WITH_LAB) - 1] == words


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_console_that_is_a_link_is_replaced(
    job: BootJob, link: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    link(secret, job.console.path)
    with opened(job) as (_, inherit, (_, console)):
        number = console.removeprefix("fd=").removesuffix(",set=1")
        output(["bash", "-c", f"echo printed >&{number}"], inherit)
    assert (job.console.text(), secret.read_text()) == ("printed\n", "secret")


EXACT = replace(JOB, acceleration="icount")
REPLACED = {"ppoll", "pthread_cond_wait", "pthread_cond_signal", "pthread_cond_broadcast", "write"}


def test_the_library_replaces_only_what_qemu_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path))
    built = library(SilentReporter())
    listing = subprocess.check_output(["nm", "--dynamic", "--defined-only", str(built)], text=True)
    assert {line.split()[-1] for line in listing.splitlines()} == REPLACED
    assert library(SilentReporter()) == built


LIKE_QEMU = """\
#include <pthread.h>
#include <stdio.h>

struct element {
	void (*notify)(void);
	struct element *next, **place;
};
static struct reader {
	unsigned long since;
	char waiting;
	unsigned int depth;
	struct reader *next, **place;
	struct element *first;
} reader;
static struct element ends_turn = {.place = &reader.first};
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_ready;

struct reader *get_ptr_rcu_reader(void)
{
	return &reader;
}

void rcu_remove_force_rcu_notifier(struct element *element)
{
	puts(element == &ends_turn ? "removed" : "another one");
}

static void *run_cpus(void *data)
{
	pthread_mutex_lock(&mutex);
	is_ready = 1;
	pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return data;
}

int main(int argc, char **argv)
{
	struct reader *head = &reader;
	pthread_t thread;

	/* In the list of all readers; it has something to call only with an argument. */
	reader.since = 4;
	reader.place = &head;
	reader.first = argc > 1 ? &ends_turn : NULL;
	pthread_create(&thread, NULL, run_cpus, argv);
	for (int ready = 0; !ready; pthread_mutex_unlock(&mutex)) {
		pthread_mutex_lock(&mutex);
		ready = is_ready;
	}
	pthread_cond_broadcast(&cond);
	pthread_join(thread, NULL);
	return 0;
}
"""


def test_other_threads_of_qemu_end_no_turn(tmp_path: Path) -> None:
    source = tmp_path / "like_qemu.c"
    source.write_text(LIKE_QEMU)
    program = tmp_path / "like_qemu"
    subprocess.run(["gcc", "-rdynamic", "-pthread", "-o", program, source], check=True)
    with preloaded(EXACT) as (prefix, inherit):
        for arguments, printed in ((["x"], "removed\n"), ([], "")):
            command = [*prefix, str(program), *arguments]
            assert subprocess.check_output(command, pass_fds=inherit, text=True) == printed


@pytest.mark.parametrize("others", ["", "/nowhere/other.so"])
def test_it_is_loaded_beside_others_from_a_path_with_any_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "with blanks: and colons"))
    monkeypatch.setenv("LD_PRELOAD", others)
    with preloaded(EXACT) as (prefix, inherit):
        assert prefix[1].endswith(f":{others}" if others else f"/{inherit[0]}")
        command = [*prefix, "cat", "/proc/self/maps"]
        loaded = subprocess.check_output(
            command, pass_fds=inherit, stderr=subprocess.DEVNULL, text=True
        )
    assert "main_loop-" in loaded
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(inherit[0])


def test_in_real_time_nothing_is_loaded() -> None:
    with preloaded(replace(JOB, acceleration="mttcg")) as start:
        assert start == ((), ())


def test_without_a_compiler_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match=r"cannot build main_loop\.c for QEMU: no C compiler"):
        build_library("main_loop", cache=tmp_path, reporter=SilentReporter())


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(LabError, match=r"plugins/main_loop in .*cache: Not a directory"):
        build_library("main_loop", cache=tmp_path / "cache", reporter=SilentReporter())


def test_counts_are_read(tmp_path: Path) -> None:
    out = tmp_path / "counts"
    out.write_text("trial 0 0\nffffffff81000000 0 7 35\ntrial 1 2\nffffffff81000010 4 0 1f2\nend\n")
    boot, trial = read_counts(out)
    assert boot == TrialBlocks(0, (CodeBlock(0xFFFFFFFF81000000, 0, 7, "35"),))
    assert trial.stretches == 2
    assert list(trial.blocks[0].addresses()) == [
        0xFFFFFFFF81000010 + offset for offset in (0, 1, 16)
    ]


@pytest.mark.parametrize("text", ["", "trial 0 0\nffffffff81000000 0 7 35\n"])
def test_counts_that_are_not_whole_are_refused(tmp_path: Path, text: str) -> None:
    out = tmp_path / "counts"
    with pytest.raises(LabError, match="did not write the counts"):
        read_counts(out)
    out.write_text(text)
    with pytest.raises(LabError, match="did not write the counts"):
        read_counts(out)


def test_the_plugin_exports_what_qemu_asks_for(tmp_path: Path) -> None:
    plugin = build_plugin("x86_64", cache=tmp_path, reporter=SilentReporter())
    symbols = subprocess.run(
        ["nm", "-D", str(plugin)], capture_output=True, text=True, check=True
    ).stdout
    assert " D qemu_plugin_version" in symbols and " T qemu_plugin_install" in symbols
    assert build_plugin("x86_64", cache=tmp_path, reporter=SilentReporter()) == plugin


def test_the_marks_are_functions_of_the_agent_that_guests_run(tmp_path: Path) -> None:
    cache, silent = cache_dir(), SilentReporter()
    words = plugin_arguments("x86_64", tmp_path / "out", cache=cache, reporter=silent)
    assert [word.partition("=")[0] for word in words] == [
        "file",
        "out",
        "trial",
        "begin",
        "end",
        "end",
    ]
    agent = build_agent("x86_64", cache=cache, reporter=silent)
    with_symbols = agent.with_name(agent.name + "-symbols")
    code = []
    for program in (agent, with_symbols):
        text = tmp_path / f"{program.name}.text"
        subprocess.run(
            ["objcopy", "-O", "binary", "-j", ".text", str(program), str(text)], check=True
        )
        code.append(text.read_bytes())
    assert code[0] == code[1]
    with pytest.raises(LabError, match="lacks the functions nothing"):
        agent_addresses(["nothing"], "x86_64", cache=cache, reporter=silent)
