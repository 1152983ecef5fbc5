"""``kteardown report``: the report of a run, from its run directory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from kteardown import pipeline
from kteardown.cli import options
from kteardown.cli.extras import need
from kteardown.cli.run import gate
from kteardown.errors import InputError, LabError
from kteardown.report.context import Material, material_of
from kteardown.report.formats import text
from kteardown.rundir.find import find_run
from kteardown.rundir.snapshot import load


class ReportFormat(StrEnum):
    """The formats of a report."""

    text = "text"
    html = "html"
    cover = "cover"
    markdown = "markdown"
    csv = "csv"
    json = "json"
    mmtests = "mmtests"
    benchstat = "benchstat"
    svg = "svg"
    png = "png"


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command(help=report.__doc__)(report)


def report(
    run: options.RunArg = "last",
    form: Annotated[
        ReportFormat, typer.Option("--format", help="The format of the report.")
    ] = ReportFormat.text,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The file to write (svg, png: a file or a folder); - is standard output."
        ),
    ] = None,
    chart: Annotated[
        str,
        typer.Option(
            "--chart", help="svg, png: only the charts whose names begin with this. Default: all charts."
        ),
    ] = "",
    fail_on: options.FailOnOption = None,
) -> None:
    """Print or write the report of a run. The run directory is only read.

    html is one file that needs no network; cover is the text for a cover letter, in 72 columns; mmtests and
    benchstat are the layouts of those tools; svg and png are the charts. Without --output, html is written
    to RUN.html and charts to the folder RUN-charts, both in the current folder; the other formats are
    written to standard output.

    Examples:

      kteardown report last --format cover

      kteardown report last --format html --output freezer.html

      kteardown report last --format svg --chart forest --output ./figures
    """
    snapshot = load(find_run(run))
    result = pipeline.result_of(snapshot.run)
    if form is ReportFormat.text and output is None:
        text.render(result, snapshot.workloads, snapshot.published, options.output())
    else:
        options.need_folders(output)
        _make(material_of(snapshot, result), form, output, chart)
    gate(snapshot.run.name, result, snapshot.workloads, fail_on)


def _make(material: Material, form: ReportFormat, output: Path | None, chart: str) -> None:
    if form is ReportFormat.svg or form is ReportFormat.png:
        need("pictures", f"--format {form.value}")
        for file in _pictures(material, "svg" if form is ReportFormat.svg else "png", output, chart):
            typer.echo(str(file))
        return
    from kteardown.report.formats.registry import TEXTS

    if form is ReportFormat.text:
        raise InputError(
            "--output: --format text is only for the terminal",
            hint="use --format cover or markdown for a file.",
        )
    made = TEXTS[form.value](material)
    if output is None and form is ReportFormat.html:
        output = Path(f"{material.name}.html")
        typer.echo(str(output))
    if output is None or str(output) == "-":
        typer.echo(made, nl=False)
    else:
        options.write_text(output, made)


def _pictures(material: Material, form: Literal["svg", "png"], output: Path | None, chart: str) -> list[Path]:
    """Write the charts and return their files.

    ``output`` may be a file if only one chart is selected; otherwise it is a folder.
    """
    from kteardown.report.formats.html import all_charts
    from kteardown.report.formats.image import choose, draw, names

    charts = choose(all_charts(material), chart)
    single = output is not None and output.suffix == f".{form}"
    if single and len(charts) > 1:
        raise InputError(
            f"--output {output}: is one file, and {len(charts)} charts are selected",
            hint=f"name a folder, or one chart with --chart:\n  {names(charts)}",
        )
    folder = output.parent if output and single else output or Path(f"{material.name}-charts")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise LabError(
            f"{folder}: cannot be created: {error.strerror}", hint="name another folder with --output."
        ) from error
    files = draw(charts, form, folder)
    return [files[0].replace(output)] if output and single else files
