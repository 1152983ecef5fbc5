"""Export the boots of a run to a folder, for machines that are not of this lab, and read back their
logs.

A boot of it is the kernel as it is, an initramfs and a command line. The first process
(agent/machine) runs the same agent as in a guest, and sends its records over a serial line after
the last trial. Each boot signs its records with a key of its own, which follows from a secret that
stays in the run directory.
"""

import re
import secrets
import shutil
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from kteardown.door import Entry
from kteardown.errors import InputError, LabError, failing
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan
from kteardown.progress import Reporter
from kteardown.run import create
from kteardown.run.boot_job import boot_job
from kteardown.run.lab import make_lab
from kteardown.run.places import Where
from kteardown.rundir.directory import RunDir, writing
from kteardown.rundir.snapshot import Snapshot
from kteardown_metal import exported
from kteardown_metal.console_records import kernel_line, key_of_boot, named

_PLAIN = re.compile(r"[\w .,:=@%/+~^-]*", re.ASCII)
"""What means nothing of its own to GRUB, PXELINUX, YAML in quotes, and Markdown."""
_TEXTS = ("README.md", "kexec.sh", "grub.cfg", "pxelinux.cfg")
_TEXTS_OF_A_BOOT = ("cmdline", "kernel", "lava.yaml")
SECRET = "bundle.key"
"""The file of a run directory with the secret from which the keys of its boots follow."""


def check_plain(experiment: Experiment, plan: Plan) -> None:
    """Raise InputError if a boot loader would read a kernel's name or argument as something of its
    own."""
    for name in sorted({boot.kernel for boot in plan.boots} | set(experiment.machine.kernel_args)):
        if not _PLAIN.fullmatch(name):
            raise InputError(
                f"{name!r} is not plain text for a boot loader",
                hint="use letters, digits and .,:=@%/+~^- .",
            )


def export(snapshot: Snapshot, target: Path, line: str, reporter: Reporter) -> None:
    """Write the bundle of a run to ``target``, which must not exist.

    ``line``: as of ``kernel_line``. What is not complete is removed. Raises LabError, BuildError,
    InputError.
    """
    with failing(f"cannot create {target}", hint="choose another folder.", kind=LabError):
        target.mkdir(parents=True)
    try:
        _write(snapshot, target, line, reporter)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _write(snapshot: Snapshot, target: Path, line: str, reporter: Reporter) -> None:
    run = snapshot.run
    plan = snapshot.plan
    secret = secrets.token_bytes(32)
    token = secrets.token_hex(8)
    kernels = create.bootable(run)
    lab = make_lab(snapshot, reporter, Where(exported.ExportedPlace()))
    templates = Environment(
        loader=PackageLoader("kteardown_metal", "bundle_files"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )

    def write(folder: Path, *names: str, **values: object) -> None:
        for name in names:
            text = templates.get_template(f"{name}.j2").render(
                run=run.name, line=line, plan=plan, **values
            )
            (folder / name).write_text(text)

    boots: list[dict[str, str]] = []
    hint = "choose another folder, or free some space."
    with (
        failing(f"cannot write the bundle to {target}", hint=hint, kind=LabError),
        reporter.task(f"writing {len(plan.boots)} boots", total=len(plan.boots)) as task,
    ):
        for boot in plan.boots:
            kernel = kernels[boot.kernel]
            number = f"{boot.index:04d}"
            folder = target / "boots" / number
            folder.mkdir(parents=True)
            image = target / "kernels" / kernel.image.parent.name
            if not image.exists():
                image.parent.mkdir(exist_ok=True)
                shutil.copyfile(kernel.image, image)
            job = boot_job(boot, plan, lab, kernel, Entry(folder, ("initramfs",)), None)
            key = key_of_boot(secret, token, boot.index)
            command_line = kernel_line(job, named(token, boot.index, key), line)
            boots.append(
                {
                    "number": number,
                    "kernel": boot.kernel,
                    "image": image.name,
                    "command_line": command_line,
                }
            )
            write(folder, *_TEXTS_OF_A_BOOT, **boots[-1])
            task.update(len(boots))
        write(target, *_TEXTS, boots=boots)
        (target / "kexec.sh").chmod(0o755)
    with writing(run.folder / SECRET):
        # Only this user may read it.
        (run.folder / SECRET).replace(f"{secret.hex()}\n", permissions=0o600)
    run.save(run.folder / "on", f"{exported.PREFIX}{token}\n")


def exported_name(run: RunDir) -> tuple[str, bytes | None]:
    """Return the name of a run in the lines of its machines, and its secret; empty if it is not
    exported.

    The secret is None if an earlier version exported it, without keys.
    """
    place = _text(run.folder / "on")
    if not place.startswith(exported.PREFIX):
        return "", None
    try:
        secret = bytes.fromhex(_text(run.folder / SECRET))
    except ValueError:
        secret = b""
    return place.removeprefix(exported.PREFIX).strip(), secret or None


def _text(file: Entry) -> str:
    """Return the text of a file; empty if there is none, or if it is not opened."""
    try:
        return file.text()
    except OSError:
        return ""
