"""What the verbs that report a run make of it, measured on one clock or on both."""

from kteardown.report import saved
from kteardown.report.material import Material, Measured, material_of, side_by_side
from kteardown.rundir.find import RunFolder
from kteardown.rundir.snapshot import load
from kteardown.visible import visible


def material_of_folder(found: RunFolder, *, samples: bool = False) -> Measured:
    """Return the material of a run, with its ``samples`` if the format needs them.

    Nothing is written. Raises InputError, GuestError.
    """
    materials = []
    for run in found.runs:
        snapshot = load(run)
        result = saved.result_of(run)
        one = Material(run.name, result, snapshot.workloads, snapshot.published)
        materials.append(material_of(snapshot, result) if samples else one)
    return side_by_side(found.name, *materials) if found.both_clocks else materials[0]


def written(material: Measured, form: str) -> str:
    """Return the report in one of the text formats, without control characters, which no format needs."""
    from kteardown.report.formats.registry import TEXTS

    return visible(TEXTS[form](material))
