"""``kteardown build``: build the kernels of an experiment."""

from rich.table import Table

from kteardown.cli import options
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Kernels, Overrides, Parts
from kteardown.inputs.override import apply
from kteardown.run.create import build_kernels
from kteardown.run.resolve import resolve


def build(
    experiment: options.ExperimentArg,
    parts: Parts,
    kernels: Kernels,
    verbose: options.VerboseOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Build the kernels of an experiment, unless they are in the cache, and print their image files."""
    # Kernels do not depend on the clock, but --layout-twin is accepted only with the wall clock.
    asked = Overrides.of(parts, kernels, clock="wall" if kernels.layout_twin else None)
    wanted = apply(load_experiment(experiment), asked)
    built = build_kernels(resolve(wanted, ablate=kernels.ablate), options.reporter(verbose, quiet))
    table = Table("kernel", "release", "source", "image", box=None)
    for name, image in built.images.items():
        table.add_row(name, image.release, image.source, str(image.image))
    options.output().print(table)
