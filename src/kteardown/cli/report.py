"""``kteardown report``: the report of a run, from its run directory."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from kteardown.cli import options
from kteardown.errors import InputError, LabError, failing
from kteardown.extras import need
from kteardown.flows.ending import gate
from kteardown.report import formats
from kteardown.report.formats import FORMATS, text
from kteardown.report.material import BothMaterial, Material, Measured
from kteardown.report.publication import Publication, of_run
from kteardown.report.saved import material_of_folder
from kteardown.rundir.find import find_runs
from kteardown.visible import echo

_PICTURES = ("svg", "png")
_FORMATS = ("text", *FORMATS, *_PICTURES)


def _format(text: str) -> str:
    """Check the name of a format. Raises InputError."""
    if text == "csv" and text not in _FORMATS:
        raise InputError(
            "--format csv: a report is not written as a table",
            hint=(
                "use `kteardown export RUN --to FOLDER`, which writes comparisons.csv and the "
                "other tables."
            ),
        )
    if text not in _FORMATS:
        raise InputError.unknown(f"--format {text}: no such format", text, _FORMATS)
    return text


_FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        parser=_format,
        autocompletion=lambda: list(_FORMATS),
        help=f"The format: {', '.join(_FORMATS)}.",
    ),
]


def report(
    run: options.RunArg = "last",
    form: _FormatOption = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    chart: str = "",
    fail_on: options.FailOnOption = None,
) -> None:
    if chart and form not in _PICTURES:
        raise InputError(
            f"--chart {chart}: --format {form} has no single charts",
            hint="add --format svg or png.",
        )
    if form in _PICTURES and str(output) == "-":
        raise InputError(
            f"--output -: the charts of --format {form} are files",
            hint="name a file or a folder instead of -.",
        )
    if form == "png":
        need("pictures", f"--format {form}")
    folder = find_runs(run)
    printed = form == "text" and output is None
    if output is not None and str(output) != "-" and not output.is_dir():
        options.need_writable(output)
    material = material_of_folder(folder, samples=not printed)
    ending = options.error_of(partial(gate, material, fail_on)) if fail_on is not None else None
    if printed:
        text.report(material, options.output())
    else:
        _make(of_run(material).ended_by(ending), form, output, chart)
    if ending is not None:
        raise ending


def _make(publication: Publication, form: str, output: Path | None, chart: str) -> None:
    material = publication.run
    if form in _PICTURES:
        if isinstance(material, BothMaterial):
            raise InputError(
                f"{material.name} was measured on both clocks: --format {form} draws the charts of "
                "one clock",
                hint=f"name one run: {' or '.join(clock.name for clock in material.clocks)}.",
            )
        for file in _pictures(material, "svg" if form == "svg" else "png", output, chart):
            echo(str(file))
        return
    if form == "text":
        raise InputError(
            "--output: --format text is only for the terminal",
            hint="use --format cover or markdown for a file.",
        )
    rendered = formats.render(form, publication)
    if output is None and form == "html":
        output = Path(f"{_file_name(material)}.html")
        echo(str(output))
    if output is None or str(output) == "-":
        # On a terminal a line ends as all lines do, also in a format whose files have other ends.
        echo(rendered.replace("\r\n", "\n"), nl=False)
    else:
        options.write_text(output, rendered)


def _file_name(material: Measured) -> str:
    """Return the run's id as part of a file's name; that of one clock of a run on both has a
    slash."""
    return material.name.replace("/", "-")


def _pictures(
    material: Material, form: Literal["svg", "png"], output: Path | None, chart: str
) -> list[Path]:
    """Write the charts and return their files.

    ``output`` may be a file if only one chart is selected; otherwise it is a folder.
    """
    from kteardown.report.charts import choose_charts, draw, names
    from kteardown.report.formats.html import all_charts

    charts = choose_charts(all_charts(material), chart)
    single = output is not None and output.suffix == f".{form}"
    if single and len(charts) > 1:
        raise InputError(
            f"--output {output} is one file, but {len(charts)} charts are selected",
            hint=f"name a folder, or one chart with --chart:\n  {names(charts)}",
        )
    folder = (
        output.parent if output and single else output or Path(f"{_file_name(material)}-charts")
    )
    hint = "name another folder with --output."
    with failing(f"{folder}: cannot be created", hint=hint, kind=LabError):
        folder.mkdir(exist_ok=True)
    files = draw(charts, form, folder)
    return [files[0].replace(output)] if output and single else files
