"""``kteardown analyse``: analyse an earlier run with the installed version."""

from kteardown import pipeline
from kteardown.cli import options
from kteardown.cli.diff import print_difference
from kteardown.errors import InputError
from kteardown.report import saved
from kteardown.report.diff import compare_results
from kteardown.report.formats import json as result_json
from kteardown.report.side import read
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import find_runs
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import locked


def analyse(run: options.RunArg = "last") -> None:
    """Analyse a run again with the installed version, and print what changed.

    `run` analyses a run when it ends, and every report shows that analysis. This verb writes another one
    into the folder analysis-1 (analysis-2, ...) of the run directory; the first one stays. A run without
    an analysis gets its first one. An analysis that is damaged, or after which more boots have ended, is
    replaced.

    Examples:

      kteardown analyse last

      kteardown diff last RUN/analysis-1/result.json
    """
    for directory in find_runs(run).runs:
        with locked(directory):
            _analyse(directory)


def _analyse(directory: RunDir) -> None:
    snapshot, out = load(directory), options.output()
    from kteardown.analysis.conclude import conclude

    if saved.read(directory) is None:
        if reason := _why_not_compared(directory):
            text = f"the saved result is replaced, not compared: {reason}"
            out.print(text, soft_wrap=True)
        pipeline.analyse_and_save(snapshot)
        out.print(f"wrote {directory.result_file}", soft_wrap=True)
        return
    before = directory.result_file.read_bytes()
    result = conclude(snapshot)[0]
    folder = saved.next_folder(directory)
    saved.write(directory, result, snapshot, folder)
    file = folder / directory.result_file.name
    out.print(f"wrote {file}", soft_wrap=True)
    if file.read_bytes() == before:
        out.print("nothing changed: both results are identical byte for byte")
        return
    old, new = read(before, str(directory.result_file)), read(file.read_bytes(), str(file))
    print_difference(compare_results(old, new, ("the saved result", "this analysis")), out)


def _why_not_compared(run: RunDir) -> str:
    """Return why the result of a run is not current; empty if there is none."""
    try:
        result_json.loads(run.result_file.read_bytes())
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except InputError as error:
        return error.message
    return "boots have ended since it was written"
