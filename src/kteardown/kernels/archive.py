"""Debian packages of any suite, read from the archive itself: the host needs neither apt nor dpkg.

The files of a package are read with ``ar`` and ``tar``. The lists of a suite are used if a key of
Debian signed them, and a package if its digest is in the lists. How old the lists are is not
checked: an old mirror has old kernels, and those are what was asked for.
"""

import os
import platform
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from debian.debian_support import Version

from kteardown.errors import InputError, LabError, MissingError, damaged
from kteardown.kernels import cache_folder, toolchain, unpack
from kteardown.kernels.archive_download import MOST_BYTES, fetch
from kteardown.progress import Reporter
from kteardown.vm import seal

MIRROR = "KTEARDOWN_DEBIAN_MIRROR"
"""The variable with the address of a mirror; the mirror of the host's apt is the default."""
_KEYRINGS = [
    Path(f"/usr/share/keyrings/debian-archive-keyring.{ending}") for ending in ("gpg", "pgp")
]
_KEYS = frozenset(
    (
        "1F89983E0081FDE018F3CC9673A4F27B8DD47936",
        "AC530D520F2F3269F5E98313A48449044AAD5C5D",  # 11
        "B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8",
        "05AB90340C0C5E797F44A8C8254CF3B5AEC0A8F0",  # 12
        "04B54C3CDCA79751B16BC6B5225629DF75B188BD",
        "5E04A1E3223A19A20706E20F9904613D4CCE68C6",  # 13
    )
)
"""The fingerprints of the keys that sign the archive and its security suites, by Debian's release.

They stand for the keyring on a host that has none: it is then taken from the archive.
"""
# Oldest first; the last two are testing and unstable, which have neither backports nor a security
# suite.
_RELEASES = ("bookworm", "trixie", "forky", "sid")
_ROLLING = ("testing", "unstable", "sid", "stable", "oldstable", "experimental")
_IN_RELEASE = re.compile(r"^'(\S+)/dists/(\S+)/InRelease'", re.MULTILINE)
_LISTS_S = 24 * 3600


@dataclass(frozen=True)
class Target:
    """One suite of the system's apt sources, as ``apt-get indextargets`` reports it."""

    uri: str
    suite: str
    origin: str
    """Empty if the system's lists were never fetched."""


Suites = tuple[tuple[str, str], ...]
"""Pairs of mirror and suite, which are searched together."""


@dataclass(frozen=True)
class Package:
    """One version of a binary package: where it is, and what it must be."""

    name: str
    version: str
    url: str
    bytes: int
    sha256: str
    depends: str
    """The field of this name."""


def parse_targets(text: str) -> list[Target]:
    """Parse tab-separated lines of REPO_URI, RELEASE, ORIGIN into suites without duplicates.

    apt leaves the key of an absent field unexpanded (``$(ORIGIN)``).
    """
    targets = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3:
            uri, suite, origin = fields
            target = Target(uri.rstrip("/"), suite, "" if origin.startswith("$(") else origin)
            if target not in targets:
                targets.append(target)
    return targets


def parse_uris(text: str) -> list[Target]:
    """Parse what ``apt-get --print-uris update`` prints into suites. Their origin is not known."""
    return [Target(uri, suite, "") for uri, suite in _IN_RELEASE.findall(text)]


def tiers(targets: Iterable[Target], codename: str) -> dict[str, Suites]:
    """Return the suites to search, by release, in order: the system's own, each newer one, each
    older one.

    ``codename`` is the system's release. Raises LabError if no target is a Debian mirror.
    """
    # The origin is empty if the system's lists were never fetched.
    names = {codename, *_RELEASES, *_ROLLING}
    debian_targets = [t for t in targets if (t.origin or "Debian") == "Debian"]
    debian_targets = [
        t for t in debian_targets if t.origin or re.split("[-/]", t.suite)[0] in names
    ]
    archive = next((t.uri for t in debian_targets if not _is_security(t.suite)), "")
    security = next((t.uri for t in debian_targets if _is_security(t.suite)), "")
    if not archive:
        raise LabError(
            "the apt sources of this host name no mirror of the Debian archive",
            hint=(
                f"set {MIRROR} to the address of a mirror (www.debian.org/mirror/list), add a "
                "mirror to the apt sources, or use a source kernel.org:X.Y, git:PATH@REV or "
                "tar:FILE."
            ),
        )
    suites = dict.fromkeys((t.uri, t.suite) for t in debian_targets)
    if codename in _RELEASES[:-2]:
        suites.setdefault((archive, f"{codename}-backports"))
    position = _RELEASES.index(codename) if codename in _RELEASES else len(_RELEASES)
    other_releases = (*_RELEASES[position + 1 :], *reversed(_RELEASES[:position]))
    return {codename: tuple(suites)} | {
        name: _release(name, archive, security) for name in other_releases
    }


def _release(name: str, archive: str, security: str) -> Suites:
    suites = [(archive, name)]
    if name not in _RELEASES[-2:]:
        suites.append((archive, f"{name}-backports"))
        if security:
            suites.append((security, f"{name}-security"))
    return tuple(suites)


def _is_security(suite: str) -> bool:
    return suite.endswith(("-security", "/updates"))


def mirrored(mirror: str, release: str) -> list[Target]:
    """Return the suites of a release, from the address of a mirror of the archive."""
    archive = mirror.rstrip("/")
    suites = _release(release, archive, f"{archive}-security")
    return [Target(uri, suite, "Debian") for uri, suite in suites]


def readable(pattern: str) -> str:
    """Return a pattern for messages: what it begins with, and ``*`` where it matches several
    names."""
    plain = re.split(r"\\[a-z]|\(", pattern)[0]
    return plain.replace("\\", "") + "*" * (plain != pattern)


class Archive:
    """Finds and downloads packages of ``architecture``, given by its Debian name (``amd64``)."""

    def __init__(self, folder: Path, reporter: Reporter, architecture: str) -> None:
        self._folder = folder
        self._reporter = reporter
        self._architecture = architecture

    def find(self, pattern: str, version: str = "") -> Package:
        """Return the newest package whose whole name matches ``pattern``, from the first tier that
        has one.

        With ``version``, only exactly this version matches. Raises InputError if no suite has the
        package, and LabError if the package lists cannot be fetched or are not signed by Debian.
        """
        failures: list[str] = []
        for tier, pairs in self.tiers().items():
            suites = [
                Suite(self._folder, mirror, name, self._architecture) for mirror, name in pairs
            ]
            # Lists that are fresh are fetched again if the package is not in them.
            for limit_s in (_LISTS_S, 600):
                if any(suite.age_s() > limit_s for suite in suites):
                    failures += self._update(tier, suites)
                packages = [
                    package for suite in suites for package in suite.packages(pattern, version)
                ]
                if packages:
                    return max(packages, key=lambda package: Version(package.version))
        description = f"{readable(pattern)} {version}".strip()
        if failures:
            raise LabError(
                f"package {description} was not found, and not all package lists could be fetched: "
                f"{failures[0]}",
                hint="check the network and the mirror, then try again.",
            )
        raise InputError(
            f"no Debian suite has a package {description}", hint="choose another version."
        )

    def _update(self, tier: str, suites: Sequence["Suite"]) -> list[str]:
        """Fetch the lists of ``suites``; return why some could not be fetched."""
        failures = []
        with (
            self._reporter.task(f"Fetching the package lists of Debian {tier}"),
            cache_folder.locked(self._folder / tier, self._reporter, "fetch package lists"),
        ):
            for suite in suites:
                try:
                    suite.update(next((path for path in _KEYRINGS if path.exists()), None))
                except LabError as error:
                    failures.append(error.message)
        return failures

    def download(self, package: Package, folder: Path) -> Path:
        """Return the package's .deb in ``folder``; download and verify it if it is not there yet.

        Raises LabError if it cannot be downloaded or the disk is full.
        """
        target = folder / f"{package.name}_{package.version}_{self._architecture}.deb"
        with cache_folder.locked(target, self._reporter, f"download of {package.name}"):
            if seal.is_intact(target, self._reporter):
                return target
            cache_folder.need_space(
                folder, 2 * package.bytes // 2**20, f"{package.name} {package.version}"
            )
            with cache_folder.scratch(target) as work:
                title = (
                    f"Downloading {package.name} {package.version}, {package.bytes / 1e6:.0f} MB"
                )
                with self._reporter.task(title, total=package.bytes / 1e6) as task:
                    fetch(package.url, work / target.name, package.sha256, task, package.bytes)
                seal.publish(work / target.name, target)
            return target

    def tiers(self) -> dict[str, Suites]:
        """Return what is searched, by release, in order. Raises LabError if this host names no
        mirror."""
        host = {}
        with suppress(OSError):
            host = platform.freedesktop_os_release()
        codename = _RELEASES[-3]  # For other distributions.
        if host.get("ID") == "debian":  # Testing and unstable may have no codename.
            codename = host.get("VERSION_CODENAME", _RELEASES[-1])
        if mirror := os.environ.get(MIRROR):
            return tiers(mirrored(mirror, codename), codename)
        if not shutil.which("apt-get"):
            return tiers([], codename)
        # Asking the system's apt covers both formats of its source lists.
        form = "$(REPO_URI)\t$(RELEASE)\t$(ORIGIN)"
        targets = parse_targets(
            toolchain.capture(["apt-get", "indextargets", "--format", form]).stdout
        )
        # Without lists, as in a container, apt 3 has no targets.
        uris = "" if targets else toolchain.capture(["apt-get", "--print-uris", "update"]).stdout
        return tiers(targets or parse_uris(uris), codename)


class Suite:
    """The lists of one suite, kept in the cache below ``folder``."""

    def __init__(self, folder: Path, mirror: str, name: str, architecture: str) -> None:
        self._mirror = mirror
        self._url = f"{mirror}/dists/{name}"
        self._list = f"main/binary-{architecture}/Packages.xz"
        self._name = name
        self._folder = folder / re.sub(r"[^\w.-]+", "_", f"{mirror}_{name}_{architecture}")
        self._packages = self._folder / "Packages.xz"

    def age_s(self) -> float:
        """Return the time since the lists were fetched."""
        with suppress(FileNotFoundError):
            return time.time() - self._packages.stat().st_mtime
        return float("inf")

    def update(self, keyring: Path | None) -> None:
        """Fetch the lists; without a ``keyring``, with the one of the archive. Raises LabError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        signed = self._folder / "InRelease"
        partial = self._folder / "partial"
        fetch(f"{self._url}/InRelease", signed)
        keys: frozenset[str] = frozenset()
        if keyring is None:
            keyring = self._folder.parent / "keyring.pgp"
            keys = _KEYS
            if not keyring.exists():
                self._fetch_packages(signed.read_text(errors="replace"), partial)
                self._fetch_keyring(partial, keyring)
        self._fetch_packages(verified(signed, keyring, keys), partial)
        partial.replace(self._packages)

    def _fetch_packages(self, release: str, target: Path) -> None:
        match = re.search(
            rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(self._list)}$", release, re.MULTILINE
        )
        if not match:
            raise LabError(
                f"{self._url} has no list {self._list}",
                hint="check the mirror, and the architecture.",
            )
        by_hash = re.search(r"^Acquire-By-Hash: *yes$", release, re.MULTILINE)
        place = (
            f"{self._list.rpartition('/')[0]}/by-hash/SHA256/{match[1]}" if by_hash else self._list
        )
        fetch(f"{self._url}/{place}", target, match[1])

    def _fetch_keyring(self, packages: Path, target: Path) -> None:
        """Take the keyring from the archive; only what one of ``_KEYS`` signed is used."""
        for package in self._search(packages, "debian-archive-keyring", ""):
            file = self._folder / "keyring.deb"
            fetch(package.url, file, package.sha256)
            target.write_bytes(unpack.deb_member(file, "*/debian-archive-keyring.[gp]*"))

    def packages(self, pattern: str, version: str) -> list[Package]:
        """Return the packages whose whole name matches ``pattern``, with ``version`` only those of
        it."""
        return (
            list(self._search(self._packages, pattern, version)) if self._packages.exists() else []
        )

    def _search(self, file: Path, pattern: str, version: str) -> Iterator[Package]:
        with damaged(str(file), hint="remove the file and run this again."):
            text = unpack.unpacked(file, MOST_BYTES).decode(errors="replace")
        # The first list is not verified yet, and debian.deb822 may need minutes for one line.
        for match in re.finditer(rf"^Package: (?:{pattern})\n(?:.+\n)*", text, re.MULTILINE):
            fields = dict(re.findall(r"^([\w-]+): (.*)$", match[0], re.MULTILINE))
            with suppress(KeyError, ValueError):
                package = Package(
                    fields["Package"],
                    str(Version(fields["Version"])),
                    f"{self._mirror}/{urllib.parse.quote(fields['Filename'])}",
                    int(fields["Size"]),
                    fields["SHA256"],
                    fields.get("Depends", ""),
                )
                if not version or package.version == version:
                    yield package


def verified(signed: Path, keyring: Path, keys: frozenset[str] = frozenset()) -> str:
    """Return the text of a clear-signed file, if a key of ``keyring`` has signed it.

    With ``keys``, fingerprints, it must be one of them. Raises LabError if it is not signed so,
    MissingError if the host has no program that verifies.
    """
    out = signed.with_suffix(".text")
    out.unlink(missing_ok=True)
    if shutil.which("gpgv"):
        argv = [
            "gpgv",
            "--status-fd",
            "1",
            "--keyring",
            str(keyring),
            "--output",
            str(out),
            str(signed),
        ]
        result = toolchain.capture(argv)
        good = is_signed(result.stdout, keys)
    elif shutil.which("sqv") and not keys:
        result = toolchain.capture(
            ["sqv", "--keyring", str(keyring), "--output", str(out), "--cleartext", str(signed)]
        )
        good = result.returncode == 0
    else:
        raise MissingError("cannot verify packages of Debian: gpgv is not installed", ["gpgv"])
    if not good or not out.exists():
        reason = (result.stderr.strip().splitlines() or ["no signature"])[-1]
        raise LabError(
            f"the lists in {signed} are not signed by a known key of Debian: {reason}",
            hint=(
                "use another mirror; if this host has no keyring of Debian, install a kteardown "
                "that knows the keys."
            ),
        )
    return out.read_text()


def is_signed(status: str, keys: frozenset[str]) -> bool:
    """Return whether gpgv, which printed ``status``, found a good signature, of one of ``keys`` if
    given."""
    # A newer key may have signed too, which the keyring need not have: gpgv fails, though one is
    # good.
    by = re.findall(r"^\[GNUPG:\] VALIDSIG .* ([0-9A-F]{40})$", status, re.MULTILINE)
    return any(not keys or key in keys for key in by) and "[GNUPG:] BADSIG" not in status
