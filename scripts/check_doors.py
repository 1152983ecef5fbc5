"""Fails where code that handles runs opens a file in another way than by ``kteardown.door``.

Any file in a run directory may be a link or a pipe that a stranger put there, and a path does not
say whose it is. So the packages that know runs may not call these functions at all; modules that
handle other files as well are listed, with what those files are.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path("src/kteardown")
PACKAGES = ("analysis", "cli", "flows", "report", "run", "rundir")
MODULES = ("pipeline.py",)
METHODS = {
    "hardlink_to",
    "open",
    "read_bytes",
    "read_text",
    "rename",
    "rmdir",
    "symlink_to",
    "touch",
    "unlink",
    "write_bytes",
    "write_text",
}
"""Methods of a path. A dialog's or a module's own ``open`` is called on a name of ``OWN``."""
OWN = {"HuntFolder", "RunDir", "RunFolder", "executor", "options"}
OF_OS = {"link", "open", "remove", "rename", "replace", "rmdir", "symlink", "truncate", "unlink"}
OF_SHUTIL = {"disk_usage", "get_terminal_size", "which"}
"""The functions of shutil that are allowed: they change no file."""
OTHER_FILES = {
    "cli/__init__.py": "/dev/null",
    "kteardown_metal/verbs.py:export_boot": "a new folder that the user named",
    "cli/doctor.py": "temporary files",
    "cli/new.py": (
        "skeletons of this package, patches that the user named, and files that the user asked for"
    ),
    "cli/options.py:write_text": "files that the user asked for",
    "cli/verbs.py": "texts of this package and of optional ones",
    "cli/things.py": "patches of series, which the user named",
    "flows/bisection/commits.py:_moved": "the patch of a layout twin, in the cache",
    "flows/bisection/search.py": "the git folder of a bisection, in the cache",
    "flows/mail_series/checks.py": "a temporary folder",
    "flows/mail_series/flow.py": "a temporary folder, and a new one that the user named",
    "flows/mail_series/letter.py": "the cover letter of a series, which the user named",
    "flows/mail_series/patch_text.py": "patches of a series, which the user named",
    "flows/mail_series/repository.py": "a temporary folder",
    "flows/try_series/smallest.py": "a table of this package",
    "kteardown_hunt/tables.py": "sources of kinds, of this package or named by the user",
    "report/charts.py": "files of this package",
    "kteardown_metal/console_records.py": "logs that the user named",
    "kteardown_metal/metal.py": "a script of this package, and what a boot is given",
    "kteardown_watch/archive.py": "what was seen of a list, in the data of the user",
    "kteardown_watch/verb.py": "mails, in a temporary folder",
    "kteardown_mcp/guard.py": "the temporary folder of a job",
    "kteardown_mcp/jobs.py": "the temporary folder of a job, and the lock of the user's servers",
    "kteardown_metal/bundle.py": "a new folder that the user named",
    "kteardown_cluster/node_job.py:host_lock": "the lock of the host",
    "kteardown_cluster/node_job.py:staged": "the cache of a node",
    "run/repeat.py:_read": "the cache",
    "kteardown_observe/bundle.py": "modules of this package",
    "kteardown_observe/collector/calibration.py": "the folder /, to have a descriptor",
    "kteardown_observe/collector/files.py": "/proc and /sys",
    "kteardown_observe/collector/main.py:limit_memory": "/proc/self/statm",
    "kteardown_observe/collector/main.py:peak_kb": "/proc/self/status",
    "kteardown_observe/collector/tracing.py": "tracefs",
    "kteardown_observe/counts.py:read_counts": "counts that the user named",
    "kteardown_observe/limits.py": "a table of this package",
    "kteardown_observe/programs/pins.py": "memory.stat, on the machine that is observed",
    "kteardown_observe/verb.py:observe": "the program for drgn, of this package",
    "kteardown_observe/verb.py:_replace_text": "files that the user asked for",
    "kteardown_history/sql/database.py": "texts of this package",
}
"""By module or ``MODULE:FUNCTION``, the files that it opens, none of which is in a run."""


def calls(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield each call that opens a file: its line, the function that has it, and what is called."""
    for top in ast.walk(tree):
        if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            for node in _own_nodes(top):
                if isinstance(node, ast.Call) and (name := opener(node.func)):
                    yield node.lineno, getattr(top, "name", ""), name


def _own_nodes(top: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of the functions in it."""
    for node in ast.iter_child_nodes(top):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from _own_nodes(node)


def opener(called: ast.expr) -> str:
    """Return the name of a function that opens or moves a file; empty if it is another function."""
    if isinstance(called, ast.Name):
        return called.id if called.id == "open" else ""
    if not isinstance(called, ast.Attribute):
        return ""
    of, name = ast.unparse(called.value), called.attr
    if of == "shutil":
        return f"shutil.{name}" if name not in OF_SHUTIL else ""
    if of == "os":
        return f"os.{name}" if name in OF_OS else ""
    return name if name in METHODS and of not in OWN else ""


def problems(path: Path, module: str, used: set[str]) -> list[str]:
    """Return a message for each call that is not allowed; ``used`` gets the entries of
    ``OTHER_FILES``."""
    messages = []
    for line, function, name in calls(ast.parse(path.read_text(encoding="utf-8"))):
        allowed = {module, f"{module}:{function}"} & OTHER_FILES.keys()
        used |= allowed
        if not allowed:
            messages.append(
                f"{path}:{line}: {name}: files of a run are opened by kteardown.door (Entry); if "
                "this is another file, OTHER_FILES in scripts/check_doors.py says which"
            )
    return messages


def main() -> int:
    used: set[str] = set()
    messages = []
    folders = [*(PACKAGE / name for name in PACKAGES), *sorted(PACKAGE.parent.glob("kteardown_*"))]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    for file in [*files, *(PACKAGE / name for name in MODULES)]:
        name = str(file.relative_to(PACKAGE.parent)).removeprefix(f"{PACKAGE.name}/")
        messages += problems(file, name, used)
    messages += [
        f"scripts/check_doors.py: {entry}: opens no file" for entry in OTHER_FILES.keys() - used
    ]
    print(
        "\n".join(
            [
                *messages,
                f"doors: {len(files) + len(MODULES)} modules, {len(messages)} files opened past it",
            ]
        )
    )
    return bool(messages)


if __name__ == "__main__":
    sys.exit(main())
