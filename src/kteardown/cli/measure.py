"""``kteardown measure``: what a script costs on a kernel, how that grows, and what it waits for."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kteardown.cli import complete, options
from kteardown.flows.ending import gate
from kteardown.flows.measurement import measured, text_of
from kteardown.inputs.options import Designed, Kernels, Overrides, Scripted
from kteardown.report.formats import text
from kteardown.report.publication import of_run


def measure(
    workload: Annotated[str, typer.Argument(autocompletion=complete.workloads)],
    kernels: Kernels,
    designed: Designed,
    scripted: Scripted,
    execution: options.Execution,
    source: Annotated[list[str] | None, typer.Option(autocompletion=complete.sources)] = None,
    bug_report: Annotated[Path | None, typer.Option("--report", metavar="FILE")] = None,
) -> None:
    reporter = execution.begin()
    options.need_writable(bug_report, *execution.files.values())
    asked = Overrides.of(kernels, designed)
    experiments = measured(workload, source or (), asked, scripted, reporter)
    # As it was when it was measured.
    reproducer = {"name": Path(workload).name, "text": text_of(workload)}
    runner = execution.runner(reporter)
    folder = runner.start(experiments)
    material = runner.boot_rest(folder)
    publication = replace(of_run(material, "measure"), details={"reproducer": reproducer})
    show = partial(text.brief, material, options.output())
    gates = partial(gate, material, execution.fail_on)
    more = {"bugreport": bug_report} if bug_report else {}
    execution.publish(
        publication, show, gates, kept=f"kteardown report {folder.name}", more_files=more
    )
