"""``kteardown build``: the kernels of an experiment, and nothing else."""

from __future__ import annotations

import typer
from rich.table import Table

from kteardown import pipeline
from kteardown.cli import options


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(help=build.__doc__)(build)


def build(
    experiment: options.ExperimentArg,
    source: options.SourceOption = None,
    variant: options.VariantOption = None,
    arch: options.ArchOption = None,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Build the kernels of an experiment, or find them in the cache, and say where they are."""
    chosen = options.Chosen(source=source, arch=arch, variants=variant)
    study = pipeline.prepare(chosen.experiment(experiment))
    images = pipeline.build_kernels(study, options.reporter(verbose, quiet))
    table = Table("kernel", "release", "source", "image", box=None)
    for name, image in images.items():
        table.add_row(name, image.release, image.source, str(image.image))
    options.output().print(table)
