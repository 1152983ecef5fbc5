"""The analysis in a run directory: ``result.json`` and ``report.md``, written once, then only
read."""

from kteardown.analysis.both_clocks import both_clocks
from kteardown.door import LARGE, Entry
from kteardown.errors import GuestError, InputError
from kteardown.model.result import Result
from kteardown.report import result_file
from kteardown.report.formats import markdown
from kteardown.report.material import Measured, material_of, of_snapshot, side_by_side
from kteardown.report.sentence import sentence
from kteardown.rundir.counting import trials
from kteardown.rundir.directory import ResultHead, RunDir
from kteardown.rundir.find import RunFolder
from kteardown.rundir.snapshot import Snapshot, load
from kteardown.visible import visible


def write(run: RunDir, result: Result, snapshot: Snapshot, folder: Entry | None = None) -> None:
    """Save an analysis in the run directory, or in ``folder`` below it. Raises LabError."""
    folder = folder or run.folder
    run.make_folder(folder)
    run.save(
        folder / run.result_file.name,
        visible(result_file.dumps(result_file.in_words(result, snapshot.workloads))),
    )
    material = of_snapshot(snapshot, result)
    run.save(folder / run.report_file.name, visible(markdown.report(material)))


def saved_result(run: RunDir) -> Result | None:
    """Return the saved analysis; None if it cannot be read or is not current
    (``RunDir.current_result``)."""
    try:
        text = run.current_result()
        return None if text is None else result_file.loads(text)
    except InputError:
        return None


def result_of(run: RunDir) -> Result:
    """Return the saved result, or a new one if boots ended since. Raises InputError, GuestError."""
    result = saved_result(run)
    if result is None:
        # It imports scipy, which a saved result does not need.
        from kteardown.analysis.conclude import conclude

        result = conclude(load(run))[0]
    return with_outcome(run, result)


def answer(run: RunDir) -> str:
    """Return the sentence of the saved result; empty if there is no current result.

    It is read without the rest of the result, which may be large.
    """
    text = run.current_result()
    return "" if text is None else ResultHead.model_validate_json(text).sentence


def answer_of(folder: RunFolder) -> str:
    """Return the sentence of a run, on both clocks that of both; empty if a clock has no current
    result.

    Raises InputError.
    """
    if not folder.both_clocks:
        return answer(folder.runs[0])
    exact, wall = map(saved_result, folder.runs)
    if exact is None or wall is None:
        return ""
    return sentence(both_clocks(exact, wall), load(folder.runs[0]).workloads)


def material_of_folder(folder: RunFolder, *, samples: bool = False) -> Measured:
    """Return the material of a run, with its ``samples`` if the format needs them.

    Nothing is written. Raises InputError, GuestError.
    """
    materials = []
    for run in folder.runs:
        snapshot = load(run)
        result = result_of(run)
        made = material_of if samples else of_snapshot
        materials.append(made(snapshot, result))
    return side_by_side(folder.name, *materials) if folder.both_clocks else materials[0]


def with_outcome(run: RunDir, result: Result) -> Result:
    """Return ``result``. Raises GuestError if no boot was ok and no trial usable: nothing can be
    reported."""
    failed = any(result.boots.values()) and not result.comparisons and not result.boots.get("ok")
    if failed and not any(trial.usable for boot in run.boots() for trial in trials(boot.records)):
        counts = ", ".join(f"{count} {outcome}" for outcome, count in result.boots.items() if count)
        raise GuestError(
            f"no boot of {run.name} was ok: {counts}",
            hint=f"see the boots and their consoles with `kteardown show {run.name}`.",
        )
    return result


def damage(run: RunDir) -> str:
    """Return why the saved result of a run cannot be read; empty if it can, or if there is none."""
    try:
        result_file.loads(run.result_file.content(LARGE))
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except InputError as error:
        return error.message
    return ""
