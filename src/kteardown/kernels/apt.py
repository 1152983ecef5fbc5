"""Debian packages of any suite, through a private apt root that does not change the system.

The apt root has its own sources, lists, state and an empty dpkg status. The mirror, the
proxy and the credentials are those of the system's apt, and packages are verified against
the keyring of debian-archive-keyring. Root privileges are not needed.
"""

import functools
import math
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import InputError, LabError, MissingError
from kteardown.kernels import cache_folder, toolchain
from kteardown.progress import Reporter
from kteardown.vm import seal

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Oldest first. On a system older or newer than these, only the system's own suites are searched.
_RELEASES = ("bookworm", "trixie", "forky", "sid")
_ROLLING = ("testing", "unstable", "sid", "stable", "oldstable", "experimental")


@dataclass(frozen=True)
class Target:
    """One suite of the system's apt sources, as ``apt-get indextargets`` reports it."""

    uri: str
    suite: str
    origin: str
    """Empty if the system's lists were never fetched."""


@dataclass(frozen=True)
class Tier:
    """Suites that are searched together. The system's own are the first tier; each newer release is one."""

    name: str
    suites: tuple[tuple[str, str], ...]
    """Pairs of mirror and suite."""


@dataclass(frozen=True)
class Package:
    """One version of a binary package, and the tier in which it was found."""

    name: str
    version: str
    tier: Tier


def parse_targets(text: str) -> list[Target]:
    """Parse tab-separated lines of REPO_URI, RELEASE, ORIGIN into suites without duplicates.

    apt leaves the key of an absent field unexpanded (``$(ORIGIN)``).
    """
    found = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3:
            uri, suite, origin = fields
            target = Target(uri.rstrip("/"), suite, "" if origin.startswith("$(") else origin)
            if target not in found:
                found.append(target)
    return found


def tiers(targets: Iterable[Target], codename: str) -> list[Tier]:
    """Return the tiers to search, in order. Raises LabError if no target is a Debian mirror."""
    # The origin is empty if the system's lists were never fetched.
    names = {codename, *_RELEASES, *_ROLLING}
    own = [t for t in targets if (t.origin or "Debian") == "Debian"]
    own = [t for t in own if t.origin or re.split("[-/]", t.suite)[0] in names]
    archive = next((t.uri for t in own if not _is_security(t.suite)), "")
    security = next((t.uri for t in own if _is_security(t.suite)), "")
    if not archive:
        raise LabError(
            "the apt sources of this host contain no mirror of the Debian archive",
            hint="use a git:PATH@REV or tar:FILE source, or add a Debian mirror to the apt sources.",
        )
    suites = dict.fromkeys((t.uri, t.suite) for t in own)
    if codename in _RELEASES[:-2]:
        suites.setdefault((archive, f"{codename}-backports"))
    found = [Tier(codename, tuple(suites))]
    later = _RELEASES[_RELEASES.index(codename) + 1 :] if codename in _RELEASES else ()
    for release in later:
        newer = [(archive, release)]
        # The last two are testing and unstable, which have neither backports nor a security suite.
        if release not in _RELEASES[-2:]:
            newer.append((archive, f"{release}-backports"))
            if security:
                newer.append((security, f"{release}-security"))
        found.append(Tier(release, tuple(newer)))
    return found


def parse_madison(text: str) -> list[tuple[str, str]]:
    """Return name and version of each line of ``apt-cache madison``."""
    rows = [[part.strip() for part in line.split("|")] for line in text.splitlines()]
    return [(row[0], row[1]) for row in rows if len(row) == 3]


def newest(versions: Sequence[str]) -> str:
    """Return the highest of these Debian version numbers, compared by dpkg."""

    def order(one: str, other: str) -> int:
        if one == other:
            return 0
        later = toolchain.capture(["dpkg", "--compare-versions", one, "gt", other]).returncode == 0
        return 1 if later else -1

    return max(versions, key=functools.cmp_to_key(order))


def readable(pattern: str) -> str:
    """Return a pattern for messages: what it begins with, and ``*`` where it matches several names."""
    plain = re.split(r"\\[a-z]|\(", pattern)[0]
    return plain.replace("\\", "") + "*" * (plain != pattern)


class Apt:
    """Finds and downloads packages of ``architecture``, given by its Debian name (``amd64``)."""

    def __init__(self, folder: Path, reporter: Reporter, architecture: str) -> None:
        self._folder = folder
        self._reporter = reporter
        self._architecture = architecture

    def find(self, pattern: str, version: str = "") -> Package:
        """Return the newest package whose whole name matches ``pattern``, from the first tier that has one.

        With ``version``, only exactly this version matches. Raises InputError if no suite has the
        package, and LabError if the package lists cannot be fetched.
        """
        failures = []
        for tier in self._tiers():
            root = _Root(self._folder / f"{tier.name}-{self._architecture}", tier, self._architecture)
            # Lists that are fresh are fetched again if the package is not in them.
            matches = root.versions(pattern, version) if root.fresh() else []
            if not matches:
                with self._reporter.task(f"Fetching the package lists of Debian {tier.name}"):
                    failures += root.update(self._reporter)
                matches = root.versions(pattern, version)
            if matches:
                best = newest([v for _, v in matches])
                return Package(next(n for n, v in matches if v == best), best, tier)
        wanted = f"{readable(pattern)} {version}".strip()
        if failures:
            raise LabError(
                f"package {wanted} was not found, and not all package lists could be fetched: {failures[0]}",
                hint="check the network and the mirror in /etc/apt, then try again.",
            )
        raise InputError(
            f"no Debian suite has a package {wanted}",
            hint="choose another version; `apt-cache search linux-source` lists those of this system.",
        )

    def download(self, package: Package, folder: Path) -> Path:
        """Return the package's .deb in ``folder``; download it, verified by apt, if it is not there yet.

        Raises LabError if it cannot be downloaded or the disk is full.
        """
        target = folder / f"{package.name}_{package.version}_{self._architecture}.deb"
        with cache_folder.locked(target, self._reporter, f"download of {package.name}"):
            if seal.is_intact(target, self._reporter):
                return target
            root = _Root(
                self._folder / f"{package.tier.name}-{self._architecture}", package.tier, self._architecture
            )
            size = root.size(package)
            cache_folder.need_space(folder, 2 * size // 2**20, f"{package.name} {package.version}")
            with cache_folder.scratch(target) as work:
                title = f"Downloading {package.name} {package.version}, {size / 1e6:.0f} MB"
                with self._reporter.task(title, total=size / 1e6) as task:
                    for done in root.download(package, work, self._reporter):
                        task.update(done / 1e6)
                seal.publish(next(work.glob("*.deb")), target)
            return target

    def _tiers(self) -> list[Tier]:
        for tool in ("apt-get", "apt-cache", "apt-config", "dpkg", "dpkg-deb"):
            if not shutil.which(tool):
                raise LabError(
                    f"cannot fetch Debian packages: {tool} is not installed",
                    hint="use a git:PATH@REV, tar:FILE or image:FILE source on this system.",
                )
        if not KEYRING.exists():
            raise MissingError(
                f"cannot verify packages of newer suites: {KEYRING} is missing",
                ["debian-archive-keyring"],
            )
        # Asking the system's apt covers both formats of its source lists.
        text = _output(
            ["apt-get", "indextargets", "--format", "$(REPO_URI)\t$(RELEASE)\t$(ORIGIN)"], dict(os.environ)
        )
        # os-release of testing and unstable may have no codename.
        codename = platform.freedesktop_os_release().get("VERSION_CODENAME", _RELEASES[-1])
        return tiers(parse_targets(text), codename)


class _Root:
    """The private root of one tier."""

    def __init__(self, folder: Path, tier: Tier, architecture: str) -> None:
        self._folder = folder
        self._lists = folder / "state" / "lists"
        self._stamp = folder / "fetched"
        self._environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}
        # apt warns about each of its folders that does not exist.
        for name in ("apt.conf.d", "preferences.d", "trusted.gpg.d", "sources.list.d"):
            (folder / "etc" / name).mkdir(parents=True, exist_ok=True)
        (self._lists / "partial").mkdir(parents=True, exist_ok=True)
        (folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        (folder / "apt.conf").write_text(_configuration(folder, architecture))
        blocks = (
            f"Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n"
            for uri, suite in tier.suites
        )
        (folder / "etc" / "sources.list.d" / "lab.sources").write_text("\n".join(blocks))

    def fresh(self) -> bool:
        """Return whether the package lists were fetched within the last 24 hours."""
        return self._age_s() < 24 * 3600

    def _age_s(self) -> float:
        return time.time() - self._stamp.stat().st_mtime if self._stamp.exists() else math.inf

    def update(self, reporter: Reporter) -> list[str]:
        """Fetch the package lists. Return the messages of apt about those that it could not fetch."""
        if self._age_s() < 600:
            return []
        argv = ["apt-get", "-qq", "update"]
        reporter.command(argv)
        with cache_folder.locked(self._folder, reporter, "apt-get update"):
            done = toolchain.capture(argv, env=self._environment)
        if done.returncode == 0:
            self._stamp.touch()
            return []
        return [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))] or [done.stderr]

    def versions(self, pattern: str, version: str) -> list[tuple[str, str]]:
        """Return name and version of each package whose whole name matches ``pattern``.

        With ``version``, only those of this version.
        """
        names = _output(["apt-cache", "pkgnames", re.split(r"[\[(\\.*+?]", pattern)[0]], self._environment)
        matching = [name for name in names.split() if re.fullmatch(pattern, name)]
        if not matching:
            return []
        found = parse_madison(_output(["apt-cache", "madison", *matching], self._environment))
        return [(n, v) for n, v in found if not version or v == version]

    def size(self, package: Package) -> int:
        """Return the size of the package file in bytes, 0 if it is unknown."""
        shown = _output(["apt-cache", "show", f"{package.name}={package.version}"], self._environment)
        match = re.search(r"^Size: (\d+)$", shown, re.MULTILINE)
        return int(match[1]) if match else 0

    def download(self, package: Package, folder: Path, reporter: Reporter) -> Iterable[int]:
        """Download into ``folder``; yield the number of bytes so far every 0.2 s. Raises LabError."""
        argv = ["apt-get", "-qq", "download", f"{package.name}={package.version}"]
        reporter.command(argv)
        log = folder / "apt.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                argv, cwd=folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
        try:
            while process.poll() is None:
                yield sum(path.stat().st_size for path in folder.glob("*.deb"))
                time.sleep(0.2)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if process.returncode:
            text = log.read_text(errors="replace").strip()
            if "No space left" in text:
                raise cache_folder.disk_full(folder)
            raise LabError(
                f"cannot download {package.name} {package.version}: {text}",
                hint="check the network and the mirror in /etc/apt, then try again.",
            )


def _configuration(folder: Path, architecture: str) -> str:
    own = {
        "Dir": f"{folder}/",
        "Dir::Etc": f"{folder}/etc/",
        "Dir::Etc::netrc": "/etc/apt/auth.conf",
        "Dir::Etc::netrcparts": "/etc/apt/auth.conf.d",
        "Dir::State": f"{folder}/state/",
        "Dir::State::lists": f"{folder}/state/lists/",
        "Dir::State::status": f"{folder}/status",
        "Dir::Cache": f"{folder}/cache/",
        "Dir::Log": f"{folder}/log/",
        # When root starts apt, it would download as the user _apt, which cannot write to the cache.
        "APT::Sandbox::User": "root",
        "APT::Architecture": architecture,
        "Acquire::Languages": "none",
        "Acquire::GzipIndexes": "true",
        # These caches take 100 MB per suite and save less than a second, once per kernel version.
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Acquire::Retries": "3",
    }
    # Access to the network: proxies, certificates and time limits of the system's apt.
    system = _output(["apt-config", "dump", "--no-empty"], dict(os.environ))
    wanted = re.compile(r"^Acquire::(https?|ftp)::", re.IGNORECASE)
    lines = [line for line in system.splitlines() if wanted.match(line)]
    lines += [f'{key} "{value}";' for key, value in own.items()]
    lines.append(f'APT::Architectures {{ "{architecture}"; }};')
    return "\n".join(lines) + "\n"


def _is_security(suite: str) -> bool:
    return suite.endswith(("-security", "/updates"))


def _output(argv: list[str], environment: dict[str, str]) -> str:
    done = toolchain.capture(argv, env=environment)
    if done.returncode:
        raise LabError(
            f"{' '.join(argv[:2])} failed: {done.stderr.strip()}",
            hint="run `apt-get update` to check apt on this host, or use a git:, tar: or image: source, "
            "which does not need apt.",
        )
    return done.stdout
