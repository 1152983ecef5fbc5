"""Keep the files that the guests of a run had beside the agent, so that each guest of it has the same."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from kteardown.errors import InputError, LabError, failing
from kteardown.kernels.prebuilt import guest_programs
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.arch import Arch, host_arch
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir, replace_text
from kteardown.progress import Reporter
from kteardown.rundir.directory import GUEST_FILE
from kteardown.rundir.snapshot import read_json
from kteardown.script.files import guest_files

_ARCHIVE = "guest.cpio"


def script_archives(
    workloads: Mapping[str, Workload], folder: str, place: Path, arch: Arch, reporter: Reporter
) -> tuple[Path, ...]:
    """Return the archive with the files of the scripts of ``workloads``: none if none is a script.

    It is made from ``folder``, where the descriptions are, unless ``place``, such as a run directory, has it
    already. ``guest.json`` there has the SHA-256 of each file. Raises InputError if the archive is damaged,
    or if a file cannot be read, BuildError if a C file does not compile, LabError.
    """
    scripts = {name: workload for name, workload in workloads.items() if workload.script is not None}
    if not scripts:
        return ()
    archive, hashes = place / _ARCHIVE, place / GUEST_FILE
    if hashes.is_file():
        if not archive.is_file() or file_hash(archive) != read_json(hashes).get("archive"):
            raise InputError(
                f"{archive}: is damaged or no longer there, and guests of one run must have the same files",
                hint="start the run anew.",
            )
        return (archive,)
    busybox = None
    if arch != host_arch() or shutil.which("busybox") is None:
        (busybox,) = guest_programs(["busybox"], arch, Sources(cache_dir(), reporter), reporter)
    made = guest_files(scripts, Path(folder), arch=arch, reporter=reporter, busybox=busybox)
    for note in made.notes:
        reporter.note_once(note)  # The rehearsal has the same files as the run.
    with failing(f"cannot write {archive}", hint="free some disk space.", kind=LabError):
        archive.write_bytes(made.archive)
        fields = {"archive": file_hash(archive), "files": made.hashes, "notes": made.notes}
        replace_text(hashes, json.dumps(fields, indent=1) + "\n")
    return (archive,)
