"""Debian packages of any suite, through a private apt root that leaves the system untouched.

The root has its own sources, lists, state and an empty dpkg status; the mirror, the
proxy and the credentials are those that the system's own apt uses, and packages are
verified against the keyring of debian-archive-keyring. Root is not needed.
"""

from __future__ import annotations

import functools
import os
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

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LISTS_FRESH_S = 24 * 3600
# Oldest first. A system older or newer than these still has its own suites.
_RELEASES = ("bookworm", "trixie", "forky", "sid")
_ROLLING = ("testing", "unstable", "sid", "stable", "oldstable", "experimental")


@dataclass(frozen=True)
class Target:
    """One suite that the system's apt knows, as ``apt-get indextargets`` tells it."""

    uri: str
    suite: str
    origin: str
    """Empty where the system's lists were never fetched."""


@dataclass(frozen=True)
class Tier:
    """Suites that are searched together: the system's own first, then each newer release."""

    name: str
    suites: tuple[tuple[str, str], ...]
    """Mirror and suite."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    tier: Tier


def parse_targets(text: str) -> list[Target]:
    """The suites in tab-separated lines of REPO_URI, RELEASE, ORIGIN; the keys of absent fields stay."""
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
    """Where to look, in order. Raises LabError where the system has no mirror of the Debian archive."""
    own = [t for t in targets if _is_debian(t, codename)]
    archive = next((t.uri for t in own if not _is_security(t.suite)), "")
    security = next((t.uri for t in own if _is_security(t.suite)), "")
    if not archive:
        raise LabError(
            "the apt sources of this machine name no mirror of the Debian archive",
            hint="Use a git:PATH@REV or tar:FILE source, or add a Debian mirror to the apt sources.",
        )
    suites = dict.fromkeys((t.uri, t.suite) for t in own)
    if codename in _RELEASES[:-2]:
        suites.setdefault((archive, f"{codename}-backports"))
    found = [Tier(codename, tuple(suites))]
    later = _RELEASES[_RELEASES.index(codename) + 1 :] if codename in _RELEASES else ()
    for release in later:
        newer = [(archive, release)]
        # The two last are testing and unstable, which have neither of these.
        if release not in _RELEASES[-2:]:
            newer.append((archive, f"{release}-backports"))
            if security:
                newer.append((security, f"{release}-security"))
        found.append(Tier(release, tuple(newer)))
    return found


def parse_madison(text: str) -> list[tuple[str, str]]:
    """Name and version of each line of ``apt-cache madison``."""
    rows = [[part.strip() for part in line.split("|")] for line in text.splitlines()]
    return [(row[0], row[1]) for row in rows if len(row) == 3]


def newest(versions: Sequence[str]) -> str:
    """The highest of Debian version numbers, compared as dpkg does."""

    def order(one: str, other: str) -> int:
        if one == other:
            return 0
        return (
            1 if toolchain.capture(["dpkg", "--compare-versions", one, "gt", other]).returncode == 0 else -1
        )

    return max(versions, key=functools.cmp_to_key(order))


class Apt:
    """Finds and downloads packages. ``architecture`` is Debian's name for it."""

    def __init__(self, folder: Path, reporter: Reporter, architecture: str) -> None:
        self._folder = folder
        self._reporter = reporter
        self._architecture = architecture

    def find(self, pattern: str, version: str = "") -> Package:
        """The newest package whose whole name matches ``pattern``, of the first tier that has one.

        ``version``: exactly this one. Raises InputError where no suite has it and
        LabError where the archive cannot be asked.
        """
        failures = []
        for tier in self._tiers():
            root = _Root(self._folder / f"{tier.name}-{self._architecture}", tier, self._architecture)
            fetched = not root.fresh()
            if fetched:
                failures += self._fetch(root, tier)
            matches = _matching(root, pattern, version)
            if not matches and not fetched:
                failures += self._fetch(root, tier)
                matches = _matching(root, pattern, version)
            if matches:
                best = newest([v for _, v in matches])
                return Package(next(n for n, v in matches if v == best), best, tier)
        wanted = f"{pattern} {version}".strip().replace("\\", "")
        if failures:
            raise LabError(
                f"no package {wanted} was found, and not all lists could be fetched: {failures[0]}",
                hint="Check the network and the mirror of /etc/apt, then try again.",
            )
        raise InputError(
            f"no Debian suite has a package {wanted}",
            hint="`apt-cache search linux-source` lists the versions that the system's own suites have.",
        )

    def download(self, package: Package, folder: Path) -> Path:
        """The package's .deb, verified by apt, in ``folder``; one that is there is used again."""
        target = folder / f"{package.name}_{package.version}_{self._architecture}.deb"
        with cache_folder.locked(target, self._reporter, f"download of {package.name}"):
            if target.exists():
                return target
            root = _Root(
                self._folder / f"{package.tier.name}-{self._architecture}", package.tier, self._architecture
            )
            size = root.size(package)
            cache_folder.need_space(folder, 2 * size // 2**20, f"{package.name} {package.version}")
            with cache_folder.scratch(target) as work:
                title = f"Downloading {package.name} {package.version} (MB)"
                with self._reporter.task(title, total=size / 1e6) as task:
                    for done in root.download(package, work, self._reporter):
                        task.update(done / 1e6)
                next(work.glob("*.deb")).rename(target)
            return target

    def _fetch(self, root: _Root, tier: Tier) -> list[str]:
        with self._reporter.task(f"Fetching the package lists of Debian {tier.name}"):
            return root.update(self._reporter)

    def _tiers(self) -> list[Tier]:
        for tool in ("apt-get", "apt-cache", "apt-config", "dpkg", "dpkg-deb"):
            if not shutil.which(tool):
                raise LabError(
                    f"{tool} is missing, so there is no Debian archive to fetch from",
                    hint="Use a git:PATH@REV, tar:FILE or image:FILE source on this system.",
                )
        if not KEYRING.exists():
            raise MissingError(
                f"{KEYRING} is missing, so packages of newer suites cannot be verified",
                ["debian-archive-keyring"],
            )
        # The system's own view of its sources covers both of their formats.
        text = _output(
            ["apt-get", "indextargets", "--format", "$(REPO_URI)\t$(RELEASE)\t$(ORIGIN)"], dict(os.environ)
        )
        return tiers(parse_targets(text), _codename())


class _Root:
    """The private root of one tier."""

    def __init__(self, folder: Path, tier: Tier, architecture: str) -> None:
        self._folder = folder
        self._lists = folder / "state" / "lists"
        self._stamp = folder / "fetched"
        self._environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}
        # apt warns about each of its folders that is not there.
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
        return self._stamp.exists() and time.time() - self._stamp.stat().st_mtime < _LISTS_FRESH_S

    def update(self, reporter: Reporter) -> list[str]:
        """Fetch the lists; what apt says of those it could not fetch."""
        if self._stamp.exists() and time.time() - self._stamp.stat().st_mtime < 600:
            return []
        argv = ["apt-get", "-qq", "update"]
        reporter.command(argv)
        with cache_folder.locked(self._folder, reporter, "apt-get update"):
            done = toolchain.capture(argv, env=self._environment)
        if done.returncode == 0:
            self._stamp.touch()
            return []
        return [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))] or [done.stderr]

    def versions(self, pattern: str) -> list[tuple[str, str]]:
        names = _output(["apt-cache", "pkgnames", re.split(r"[\[(\\.*+?]", pattern)[0]], self._environment)
        matching = [name for name in names.split() if re.fullmatch(pattern, name)]
        if not matching:
            return []
        return parse_madison(_output(["apt-cache", "madison", *matching], self._environment))

    def size(self, package: Package) -> int:
        """Bytes of the package file."""
        shown = _output(["apt-cache", "show", f"{package.name}={package.version}"], self._environment)
        match = re.search(r"^Size: (\d+)$", shown, re.MULTILINE)
        return int(match[1]) if match else 0

    def download(self, package: Package, folder: Path, reporter: Reporter) -> Iterable[int]:
        """Download into ``folder``, yielding the bytes that are there now and then."""
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
                f"{package.name} {package.version} could not be downloaded: {text}",
                hint="Check the network and the mirror of /etc/apt, then try again.",
            )


def _matching(root: _Root, pattern: str, version: str) -> list[tuple[str, str]]:
    return [(n, v) for n, v in root.versions(pattern) if not version or v == version]


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
        # Started by root, apt would download as _apt, who cannot write to the cache.
        "APT::Sandbox::User": "root",
        "APT::Architecture": architecture,
        "Acquire::Languages": "none",
        "Acquire::GzipIndexes": "true",
        # What would take 100 MB a suite to save less than a second, once a kernel version.
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Acquire::Retries": "3",
    }
    # The way out: proxies, certificates and time limits that the system's apt was given.
    system = _output(["apt-config", "dump", "--no-empty"], dict(os.environ))
    wanted = re.compile(r"^Acquire::(https?|ftp)::", re.IGNORECASE)
    lines = [line for line in system.splitlines() if wanted.match(line)]
    lines += [f'{key} "{value}";' for key, value in own.items()]
    lines.append(f'APT::Architectures {{ "{architecture}"; }};')
    return "\n".join(lines) + "\n"


def _is_security(suite: str) -> bool:
    return suite.endswith(("-security", "/updates"))


def _is_debian(target: Target, codename: str) -> bool:
    if target.origin:
        return target.origin == "Debian"
    return target.suite.split("-")[0].split("/")[0] in {codename, *_RELEASES, *_ROLLING}


def _codename() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return value.strip('"')
    # Testing and unstable have no version of their own.
    return _RELEASES[-1]


def _output(argv: list[str], environment: dict[str, str]) -> str:
    done = toolchain.capture(argv, env=environment)
    if done.returncode:
        raise LabError(
            f"{' '.join(argv[:2])} failed: {done.stderr.strip()}",
            hint="run `apt-get update` to see whether apt works here; git:, tar: and image: need none.",
        )
    return done.stdout
