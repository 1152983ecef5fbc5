"""``kteardown export-boot`` and ``import``: boots for machines of other labs, and their records."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from kteardown import pipeline
from kteardown.cli import options
from kteardown.cli.outcome import material_of_folder
from kteardown.cli.run import command_line
from kteardown.errors import GuestError, InputError, failing
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides, on_clocks
from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import BASE, TWIN, AgentError, BootStart, Bye, Hello, Record, TrialEnd
from kteardown.progress import Reporter
from kteardown.report.formats import text
from kteardown.run.bundle import check_plain, export
from kteardown.run.create import plan_boots
from kteardown.run.execute import completed_record
from kteardown.run.lab import EXPORTED, check_measurable
from kteardown.run.resolve import resolve
from kteardown.rundir.counting import METAL
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, all_runs
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown.script.extract import LeftBehind
from kteardown.visible import on_one_line
from kteardown.vm import kernel_log
from kteardown.vm.console_records import Consoles, LoggedBoot, read_logs

_SERIAL = re.compile(r"tty[A-Za-z]{1,6}\d{1,3}", re.ASCII)


def export_boot(
    experiment: options.ExperimentArg,
    asked: Overrides,
    to: Annotated[Path, typer.Option(metavar="FOLDER")],
    serial: Annotated[str, typer.Option(metavar="TTY")] = "ttyS0",
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    reporter, out = options.reporter(verbose, quiet), options.output()
    if not _SERIAL.fullmatch(serial):
        raise InputError(f"--serial {on_one_line(serial)}: not a serial line", hint="name ttyS0 or ttyS1.")
    with failing(f"--to {to}: cannot be created", hint="name a new folder, where you may write."):
        to.mkdir(parents=True)  # Before anything is built.
        to.rmdir()
    wanted = on_clocks(load_experiment(experiment), asked if asked.clock else replace(asked, clock="wall"))
    for one in wanted:
        # Before anything is built.
        if one.design.until:
            raise InputError("--until: a bundle has all boots from the start", hint="name --boots instead.")
        check_measurable(one)
        check_plain(one, plan_boots(resolve(one, ablate=asked.ablate)))
    run = pipeline.start(wanted, reporter, ablate=asked.ablate, command=command_line()).runs[0]
    export(load(run), to, serial, reporter)
    count = len(load(run).plan.boots)
    out.print(f"{to} has {count} boots; its README.md says how to boot them", soft_wrap=True)
    out.print("then, on this host: kteardown import LOG...")


def import_logs(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...")],
    as_json: Annotated[bool, typer.Option("--json")] = False,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    reporter, out = options.reporter(verbose, quiet), options.output()
    with reporter.task("reading the logs"):
        found = read_logs(logs)
    run = _run_of(found)
    for line in _adopt(run, found, reporter):
        reporter.note(line)
    pipeline.analyse_and_save(load(run))
    if as_json:
        out.print_json(run.result_file.read_text(encoding="utf-8"))
    else:
        text.brief(material_of_folder(RunFolder.of(run)), out)


def _token(run: RunDir) -> str:
    """Return what names the boots of a run in logs; empty if they are not exported."""
    file = run.path / "on"
    place = file.read_text() if file.is_file() and not file.is_symlink() else ""
    return place.removeprefix(EXPORTED).strip() if place.startswith(EXPORTED) else ""


def _run_of(logs: Consoles) -> RunDir:
    """Return the run of the boots in ``logs``. Raises InputError if there is none, or more than one."""
    tokens = {boot.token for boot in logs.boots.values()}
    if not tokens:
        raise InputError(
            f"no boot of a bundle is in these logs (damaged lines: {logs.damaged})",
            hint="name the log of the serial line on which the machine sent its records.",
        )
    runs = [run for run in all_runs() if _token(run) in tokens]
    if len(runs) != 1:
        names = ", ".join(run.name for run in runs)
        raise InputError(
            f"the boots in these logs are of {names or 'no run of this host'}",
            hint="import the logs of each bundle by themselves, on the host that made it.",
        )
    return runs[0]


def _adopt(run: RunDir, logs: Consoles, reporter: Reporter) -> Iterator[str]:
    """Write the boots of whole blocks to the run; yield what a reader must know. Raises InputError."""
    plan, token = load(run).plan, _token(run)
    chosen, said = _choose(plan, [boot for boot in logs.boots.values() if boot.token == token])
    yield from said
    if logs.damaged:
        yield f"{logs.damaged} lines of the logs are damaged; a line counts if one of its copies is whole"
    _check_machine(plan, chosen)
    whole = [boot for boot in chosen.values() if boot.sent]
    if not whole:
        raise GuestError("no boot in these logs ended", hint="look at the logs; boot them again.")
    with open_writer(run, whole[0].facts()) as log, reporter.task("importing", total=len(chosen)) as task:
        done = log.finished()
        absent: dict[int, list[int]] = {boot.block: [] for boot in plan.boots}
        for boot in plan.boots:
            if boot.index not in chosen and boot.index not in done:
                absent[boot.block].append(boot.index)
        new = [index for index in chosen if index not in done and not absent[plan.boots[index].block]]
        for number, index in enumerate(new):
            log.adopt([_records_of(chosen[index], plan.boots[index])], boot=index)
            task.update(number + 1)
    for block, missing in absent.items():
        if 0 < len(missing) < sum(boot.block == block for boot in plan.boots):
            names = ", ".join(map(str, missing))
            yield f"block {block} is not used: boot {names} is missing. Boot it, and import all logs together"
    if new != sorted(new):
        yield f"the boots were not in the order of the plan, but {', '.join(map(str, new))}"
    yield f"imported {len(new)} boots into {run.name}, which has {len(done) + len(new)} of {len(plan.boots)}"


def _choose(plan: Plan, boots: Sequence[LoggedBoot]) -> tuple[dict[int, LoggedBoot], list[str]]:
    """Return what to use for each boot of the plan: the first time that it was whole, or panicked."""
    chosen: dict[int, LoggedBoot] = {}
    said, why = [], {}
    for boot in boots:
        if boot.boot >= len(plan.boots):
            said.append(f"boot {boot.boot} is not in the plan")
            continue
        reason = why_unusable(boot, plan)
        if boot.boot in chosen:
            said += [] if reason else [f"boot {boot.boot} was booted more than once: the first time counts"]
        elif not reason or any(p.kind == "panic" for p in kernel_log.problems("\n".join(boot.console))):
            chosen[boot.boot] = boot
        else:
            why[boot.boot] = reason
    said += [f"boot {index} is not used: {reason}" for index, reason in why.items() if index not in chosen]
    return chosen, list(dict.fromkeys(said))


def why_unusable(boot: LoggedBoot, plan: Plan) -> str:
    """Return why the records of a boot are no result; empty if they are."""
    sent, planned = boot.sent, plan.boots[boot.boot]
    swept = {"cpus": plan.cpus, "possible_cpus": plan.possible_cpus} | dict(planned.machine)
    if sent is None:
        return f"{len(boot.lines)} of its lines are there, and not all" if boot.lines else "it has no line"
    try:
        records = boot.records()
    except ValidationError:
        return "a line is not a record"
    if sent.status or not records or not isinstance(records[-1], Bye):
        error = next((f": {record.detail}" for record in records if isinstance(record, AgentError)), "")
        return on_one_line(f"the agent ended with status {sent.status}{error}")
    hello, named = records[0], f"kteardown.boot={boot.token}:{boot.boot}"
    if not isinstance(hello, Hello) or named not in hello.cmdline.split():
        return "its kernel had another command line"
    ended = [record.trial for record in records if isinstance(record, TrialEnd)]
    if ended != [trial.index for trial in planned.trials]:
        return "its trials are not those of its plan"
    return boot.lacks(swept["possible_cpus"] or swept["cpus"] or 1)


def _check_machine(plan: Plan, chosen: Mapping[int, LoggedBoot]) -> None:
    """Raise InputError if a boot ran another kernel than that of its plan, or on another machine."""
    seen: dict[str, str] = {}
    machines = set()
    for index, boot in chosen.items():
        facts, kernel = boot.machine, plan.boots[index].kernel
        build, kernel = str(facts.pop("build", "")), BASE if kernel == TWIN else kernel
        if facts:
            machines.add(on_one_line(", ".join(f"{name} {value}" for name, value in facts.items())))
        if build and (seen.setdefault(kernel, build), seen.setdefault(build, kernel)) != (build, kernel):
            raise InputError(
                f"boot {index} should have run {kernel}, and ran the kernel of other boots",
                hint="boot each with the kernel that its file kernel in the bundle names.",
            )
    if len(machines) > 1:
        raise InputError(
            f"the boots are of machines that differ: {'; '.join(sorted(machines))}",
            hint="import the logs of one machine.",
        )


def _records_of(boot: LoggedBoot, planned: PlannedBoot) -> list[Record]:
    """Return the records of a boot as the lab keeps them. It is usable, or its kernel failed."""
    left_behind = LeftBehind(planned.trials)
    completed = (completed_record(line, planned, None, None, None) for line in boot.raw_records)
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
    end = boot.end(kernel_log.Ending("powered-off" if boot.sent else "silent"))
    return [start, *(record for one in completed for record in left_behind.add(one)), end]
