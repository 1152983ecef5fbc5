"""Releases of kernel.org: their tarballs, each signed uncompressed by one of those that make
releases.

Incremental patches are not used: their result has no signature, and they save one download of 150
MB.
"""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from kteardown import spawn
from kteardown.errors import InputError, LabError, MissingError
from kteardown.kernels import archive, archive_download, cache_folder
from kteardown.kernels.unpack import MOST_UNPACKED
from kteardown.progress import Reporter, Task
from kteardown.vm import seal

MIRROR = "KTEARDOWN_KERNEL_MIRROR"
"""The variable with the address of the folder that has v6.x/linux-6.16.1.tar.xz."""
KEYRING = "KTEARDOWN_KERNEL_KEYRING"
"""The variable with a file of keys, as gpgv reads it, of which one must have signed."""
_ADDRESS = "https://cdn.kernel.org/pub/linux/kernel"
# The web key directory of kernel.org: the file of each account that makes releases.
_KEYS = "https://kernel.org/.well-known/openpgpkey/hu/"
_SIGNERS = {
    "ABAF11C65A2970B130ABE3C479BE3E4300411886": "pf113mfnx1f3eb1yiwhsipa91xfc7o4x?l=torvalds",
    "647F28654894E3BD457199BE38DBBDC86092693E": "e3n9xnm94c5apezqnj1pmrfuaoyfm8cf?l=gregkh",
    "E27E5D8A3403A2EF66873BBCDEA66FF797772CDC": "7j1cnb5wfkj3ts7cgy4xz1gwsz9xs5mj?l=sashal",
}
"""By the fingerprint of the key; the keys themselves may come over any way."""
_VERSION = re.compile(r"([3-9]|[1-9]\d)\.\d{1,3}(\.[1-9]\d{0,2})?")
_MOST_BYTES = 1 << 30
_USUAL_MB = 300
_XZ = b"\xfd7zXZ\x00"
_SIGNATURE = b"-----BEGIN PGP SIGNATURE-----"


def check_version(version: str) -> None:
    """Raise InputError unless ``version`` is that of a release, such as 6.16 or 6.16.1."""
    if not _VERSION.fullmatch(version):
        raise InputError(
            f"kernel.org:{version} is not a release with a signed tarball",
            hint=(
                "write kernel.org:6.16 or kernel.org:6.16.1; for a candidate, write "
                "git:PATH@v6.17-rc1."
            ),
        )


def download(version: str, cache_dir: Path, reporter: Reporter) -> Path:
    """Return the tarball of a release in the cache, downloaded and verified if it is not there yet.

    An interrupted download is continued. Raises InputError if there is no such release, LabError if
    it cannot be downloaded, MissingError if this host cannot verify it.
    """
    check_version(version)
    name = f"linux-{version}.tar"
    url = f"{_address()}/v{version.partition('.')[0]}.x/{name}"
    folder = cache_dir / "downloads"
    target = folder / f"{name}.xz"
    partial = folder / f"{name}.xz.partial"
    with cache_folder.locked(target, reporter, f"download of {name}"):
        if seal.is_intact(target, reporter):
            return target
        if not shutil.which("gpgv"):
            raise MissingError(
                "cannot verify releases of kernel.org: gpgv is not installed", ["gpgv"]
            )
        cache_folder.need_space(folder, _USUAL_MB, f"{name}.xz")
        with cache_folder.scratch(target) as work:
            keyring, keys = _keyring(cache_dir, reporter)
            signature = work / f"{name}.sign"
            _fetch(f"{url}.sign", signature, _SIGNATURE)
            with reporter.task(f"Downloading {name}.xz, in MB") as task:
                _fetch(f"{url}.xz", partial, _XZ, task)
            with reporter.task(f"Verifying the signature of {name}, in MB") as task:
                reason = _problem(partial, signature, keyring, keys, task)
            if reason:
                partial.unlink()
                raise LabError(
                    f"kteardown does not use {url}.xz: {reason}",
                    hint=f"set {MIRROR} to another mirror, or {KEYRING} to a file with its key.",
                )
            seal.publish(partial, target)
    return target


def _address() -> str:
    return os.environ.get(MIRROR, "").rstrip("/") or _ADDRESS


def _fetch(url: str, target: Path, magic: bytes, task: Task | None = None) -> None:
    try:
        archive_download.fetch(url, target, task=task, most=_MOST_BYTES, magic=magic)
    except LabError as error:
        if " 404 " in f"{error.message} ":
            version = url.rpartition("/linux-")[2].partition(".tar")[0]
            hint = (
                "write a version that was released (www.kernel.org, or its folder "
                "pub/linux/kernel)."
            )
            raise InputError(f"{_address()} has no release {version}", hint=hint) from error
        raise


def _keyring(cache_dir: Path, reporter: Reporter) -> tuple[Path, frozenset[str]]:
    """Return a file of keys, and the fingerprints of those of them that may sign: empty for all."""
    if keyring := os.environ.get(KEYRING):
        path = Path(keyring).expanduser().absolute()
        if not path.is_file():
            raise InputError(
                f"{KEYRING}: there is no file {path}", hint="write the file with `gpg --export`."
            )
        return path, frozenset()
    target = cache_dir / "lists" / "kernel.org.gpg"
    if not target.exists():
        with cache_folder.scratch(target) as work, reporter.task("Fetching the keys of kernel.org"):
            for number, place in enumerate(_SIGNERS.values()):
                archive_download.fetch(_KEYS + place, work / str(number))
            (work / "all").write_bytes(
                b"".join(path.read_bytes() for path in sorted(work.iterdir()))
            )
            (work / "all").replace(target)
    return target, frozenset(_SIGNERS)


def _problem(ball: Path, signature: Path, keyring: Path, keys: frozenset[str], task: Task) -> str:
    """Return why ``signature`` is not one of the uncompressed ``ball``; empty if it is."""
    xz = spawn.start(["xz", "-dc", str(ball)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    argv = ["gpgv", "--status-fd", "1", "--keyring", str(keyring), str(signature), "-"]
    pipe = subprocess.PIPE
    gpgv = spawn.start(argv, stdin=pipe, stdout=pipe, stderr=pipe)
    assert xz.stdout and gpgv.stdin
    sent = 0
    try:
        with suppress(BrokenPipeError):  # It ends early if the signature cannot be read.
            while (block := xz.stdout.read(1 << 20)) and sent <= MOST_UNPACKED:
                gpgv.stdin.write(block)
                sent += len(block)
                task.update(sent / 1e6)
        if sent > MOST_UNPACKED:
            return f"the tarball has more than {MOST_UNPACKED >> 30} GB uncompressed"
        xz.stdout.close()
        broken = xz.wait()
        out, errors = (text.decode(errors="replace") for text in gpgv.communicate())
    finally:
        for process in (xz, gpgv):
            process.kill()
            process.wait()
    if archive.is_signed(out, keys):
        return "the compressed data are damaged" if broken else ""
    return f"no known key has signed it: {(errors.strip().splitlines() or ['no signature'])[-1]}"
