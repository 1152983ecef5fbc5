"""``kteardown export-boot`` and ``import``: boots for machines of other labs, and their records."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kteardown import pipeline
from kteardown.cli import options
from kteardown.cli.options import command_line
from kteardown.door import LARGE
from kteardown.errors import GuestError, InputError, failing
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides, on_clocks
from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import BASE, TWIN, BootStart, Record
from kteardown.progress import Reporter
from kteardown.report.formats import text
from kteardown.report.saved import material_of_folder
from kteardown.run.create import plan_boots
from kteardown.run.execute import completed_record, forged_end
from kteardown.run.guest_records import ForgedError, GuestRecords, Reports, reports_of
from kteardown.run.resolve import resolve
from kteardown.rundir.counting import METAL
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, all_runs
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown.script.left_behind import LeftBehind
from kteardown.visible import on_one_line
from kteardown.vm import kernel_log
from kteardown_metal.bundle import check_plain, export, exported_name
from kteardown_metal.console_records import Consoles, LoggedBoot, key_of_boot, read_logs
from kteardown_metal.exported import check_measurable

_SERIAL = re.compile(r"tty[A-Za-z]{1,6}\d{1,3}", re.ASCII)


def export_boot(
    experiment: options.ExperimentArg,
    overrides: Overrides,
    to: Annotated[Path, typer.Option(metavar="FOLDER")],
    serial: Annotated[str, typer.Option(metavar="TTY")] = "ttyS0",
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    reporter = options.reporter(verbose, quiet)
    out = options.output()
    if not _SERIAL.fullmatch(serial):
        raise InputError(
            f"--serial {on_one_line(serial)}: not a serial line", hint="name ttyS0 or ttyS1."
        )
    with failing(f"--to {to}: cannot be created", hint="name a new folder, where you may write."):
        to.mkdir(parents=True)  # Before anything is built.
        to.rmdir()
    experiments = on_clocks(
        load_experiment(experiment),
        overrides if overrides.clock else replace(overrides, clock="wall"),
    )
    for candidate in experiments:
        # Before anything is built.
        if candidate.design.until:
            raise InputError(
                "--until: a bundle has all boots from the start", hint="use --boots instead."
            )
        check_measurable(candidate)
        check_plain(candidate, plan_boots(resolve(candidate, ablate=overrides.ablate)))
    run = pipeline.start(
        experiments, reporter, ablate=overrides.ablate, command=command_line()
    ).runs[0]
    export(load(run), to, serial, reporter)
    count = len(load(run).plan.boots)
    out.print(f"{to} has {count} boots; its README.md says how to boot them", soft_wrap=True)
    out.print("then, on this host: kteardown import LOG...")


def import_logs(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...")],
    boot: Annotated[list[str] | None, typer.Option(metavar="N=LOG")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    reporter = options.reporter(verbose, quiet)
    out = options.output()
    chosen_logs = _chosen_logs(boot or (), logs)
    runs: dict[str, tuple[RunDir, bytes | None]] = {}
    for exported in all_runs():
        token, secret = exported_name(exported)
        if token:
            runs[token] = exported, secret

    def key_of(token: str, number: int) -> bytes | None:
        secret = runs[token][1] if token in runs else None
        return key_of_boot(secret, token, number) if secret else None

    with reporter.task("reading the logs"):
        consoles = read_logs(logs, key_of)
    token = _token_of(consoles, runs)
    run = runs[token][0]
    for line in _adopt(
        run,
        [logged for logged in consoles.boots.values() if logged.token == token],
        chosen_logs,
        reporter,
    ):
        reporter.note(line)
    if consoles.damaged:
        reporter.note(
            f"{consoles.damaged} lines of the logs are damaged, or are not signed with the key of "
            "their boot; a line counts if one of its copies is whole"
        )
    pipeline.analyse_and_save(load(run))
    if as_json:
        out.print_json(run.result_file.text(LARGE))
    else:
        text.brief(material_of_folder(RunFolder.of(run)), out)


def _chosen_logs(texts: Sequence[str], logs: Sequence[Path]) -> dict[int, int]:
    """Return by boot the number of the log from which it was asked for. Raises InputError."""
    chosen_logs = {}
    for pair in texts:
        number, _, log = pair.partition("=")
        if not number.isdecimal() or Path(log) not in logs:
            raise InputError(
                f"--boot {on_one_line(pair)}: expected the number of a boot and one of the logs",
                hint="write --boot 3=second.log, and also name second.log as a log.",
            )
        chosen_logs[int(number)] = logs.index(Path(log))
    return chosen_logs


def _token_of(logs: Consoles, runs: Mapping[str, tuple[RunDir, bytes | None]]) -> str:
    """Return the run of the boots in ``logs``. Raises InputError if there is none, or more than
    one."""
    tokens = {boot.token for boot in logs.boots.values()}
    if not tokens and logs.strange:
        old = ", ".join(run.name for run, secret in runs.values() if secret is None)
        raise InputError(
            "these logs have boots, but this host has no run with the keys of these boots",
            hint="import the logs on the host that made the bundle."
            + (
                f" An earlier version exported these runs; export them again: {old}." if old else ""
            ),
        )
    if not tokens:
        raise InputError(
            f"these logs have no boot of a bundle (damaged lines: {logs.damaged})",
            hint="name the log of the serial line on which the machine sent its records. Export "
            "a bundle of an earlier version again: its lines have no signature.",
        )
    if len(tokens) > 1:
        names = ", ".join(runs[token][0].name for token in sorted(tokens))
        raise InputError(
            f"these logs have boots of several runs: {names}",
            hint="import the logs of each bundle separately.",
        )
    return tokens.pop()


def _adopt(
    run: RunDir, boots: Sequence[LoggedBoot], chosen_logs: Mapping[int, int], reporter: Reporter
) -> Iterator[str]:
    """Write the boots of whole blocks to the run; yield what a reader must know. Raises
    InputError."""
    snapshot = load(run)
    plan = snapshot.plan
    reports = reports_of(snapshot.workloads)
    chosen, notes = _choose(plan, boots, chosen_logs)
    yield from notes
    _check_machine(plan, chosen)
    whole = [boot for boot in chosen.values() if boot.sent]
    if not whole:
        raise GuestError(
            "no boot in these logs ended", hint="look at the logs, and boot the bundle again."
        )
    with (
        open_writer(run, whole[0].facts()) as log,
        reporter.task("importing", total=len(chosen)) as task,
    ):
        done = log.finished()
        absent: dict[int, list[int]] = {boot.block: [] for boot in plan.boots}
        for boot in plan.boots:
            if boot.index not in chosen and boot.index not in done:
                absent[boot.block].append(boot.index)
        new = [
            index for index in chosen if index not in done and not absent[plan.boots[index].block]
        ]
        for number, index in enumerate(new):
            log.adopt([_records_of(chosen[index], plan.boots[index], reports)], boot=index)
            task.update(number + 1)
    for block, missing in absent.items():
        if 0 < len(missing) < sum(boot.block == block for boot in plan.boots):
            names = ", ".join(map(str, missing))
            yield (
                f"block {block} is not used: these boots are missing: {names}. Boot them, and "
                "import all logs together"
            )
    if new != sorted(new):
        yield f"the boots were not in the order of the plan, but {', '.join(map(str, new))}"
    yield (
        f"imported {len(new)} boots into {run.name}, which has {len(done) + len(new)} "
        f"of {len(plan.boots)}"
    )


def _choose(
    plan: Plan, boots: Sequence[LoggedBoot], chosen_logs: Mapping[int, int]
) -> tuple[dict[int, LoggedBoot], list[str]]:
    """Return what to use for each boot of the plan, which was whole or panicked once, and what to
    say.

    Of a boot with two different ends none is used, unless one log of it is in ``chosen_logs``.
    """
    ends: dict[int, list[LoggedBoot]] = {}
    notes = []
    void = []
    why = {}
    for boot in boots:
        if boot.boot >= len(plan.boots):
            notes.append(f"boot {boot.boot} is not in the plan")
        elif boot.boot in chosen_logs and chosen_logs[boot.boot] not in boot.files:
            continue
        elif reason := why_unusable(boot, plan):
            why[boot.boot] = reason
        else:
            ends.setdefault(boot.boot, []).append(boot)
    for index in sorted(ends):
        if len(ends[index]) > 1 or ends[index][0].differs:
            void.append(
                f"boot {index} is void: the logs have different records of it. Look at the "
                f"logs, and choose one of them: --boot {index}=LOG"
            )
    chosen = {
        index: logged[0]
        for index, logged in ends.items()
        if len(logged) == 1 and not logged[0].differs
    }
    notes += [
        f"boot {index} is not used: {reason}" for index, reason in why.items() if index not in ends
    ]
    return chosen, [*void, *dict.fromkeys(notes)]


def why_unusable(boot: LoggedBoot, plan: Plan) -> str:
    """Return why the records of a boot are no result; empty if they are, or if its kernel
    panicked."""
    sent = boot.sent
    planned = plan.boots[boot.boot]
    swept = {"cpus": plan.cpus, "possible_cpus": plan.possible_cpus} | dict(planned.machine)
    if sent is None:
        if any(p.kind == "panic" for p in kernel_log.problems("\n".join(boot.console))):
            return ""
        return (
            f"only {len(boot.lines)} of its lines are in the logs"
            if boot.lines
            else "none of its lines are in the logs"
        )
    if sent.status:
        return on_one_line(f"the agent ended with status {sent.status}{boot.error}")
    if "build" not in boot.machine:
        return "its kernel does not report a build ID"
    return boot.lacks(swept["possible_cpus"] or swept["cpus"] or 1)


def _check_machine(plan: Plan, chosen: Mapping[int, LoggedBoot]) -> None:
    """Raise InputError if a boot ran another kernel than that of its plan, or on another
    machine."""
    pairs: dict[str, str] = {}
    machines = set()
    for index, boot in chosen.items():
        facts = boot.machine
        kernel = plan.boots[index].kernel
        build = str(facts.pop("build", ""))
        kernel = BASE if kernel == TWIN else kernel
        if not facts:  # A panic before the first process.
            continue
        machines.add(on_one_line(", ".join(f"{name} {value}" for name, value in facts.items())))
        if not build:  # It panicked, and counts as a fault alone.
            continue
        if (pairs.setdefault(kernel, build), pairs.setdefault(build, kernel)) != (build, kernel):
            raise InputError(
                f"boot {index} should have run {kernel}, and ran the kernel of other boots",
                hint="start each boot with the kernel that the file `kernel` in its folder names.",
            )
    if len(machines) > 1:
        raise InputError(
            f"the boots ran on machines that differ: {'; '.join(sorted(machines))}",
            hint="import the logs of one machine.",
        )


def _records_of(
    boot: LoggedBoot, planned: PlannedBoot, reports: Mapping[str, Reports]
) -> list[Record]:
    """Return the records of a boot as the lab keeps them. It is usable, or its kernel failed."""
    left_behind = LeftBehind(planned.trials)
    guest = GuestRecords(planned, reports)
    start = BootStart(
        kernel=planned.kernel,
        block=planned.block,
        seed=planned.seed,
        acceleration=METAL,
        host_load=0.0,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        machine=planned.machine,
        job=f"{boot.token} {boot.boot} {boot.attempt}",
    )
    kept: list[Record] = []
    try:
        for line in boot.raw_records:
            kept += left_behind.add(completed_record(guest.next(line), planned, None, None, None))
        if boot.sent:
            guest.end()
    except ForgedError as error:
        return [start, forged_end(error)]
    return [start, *kept, boot.end(kernel_log.Ending("powered-off" if boot.sent else "silent"))]
