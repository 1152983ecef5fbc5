"""The README's commands on fresh hosts of several distributions: `make test-hosts`.

    hosts.py run [--step STEP] [HOST...]   run and record the steps that have not passed at this
                                           commit
    hosts.py enter HOST                    a shell in a host, as its user
    hosts.py table                         write the table of the records into docs/install.md

A host is a root made by debootstrap, kept below ~/.cache/kteardown-hosts. Each step runs as an
ordinary user in namespaces of its own, with a checkout of the present commit. Hosts share sources
and kernels, never an environment. The steps of a host that passed are in its record, so that what
was interrupted goes on. Needs root, or subordinate ids (newuidmap) for `unshare --map-auto`.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HOSTS = Path.home() / ".cache" / "kteardown-hosts"
RECORD = Path("tests") / "hosts.json"
FRESH = "ca-certificates,git,make,python3,sudo"
"""What a machine has before the README's first command, beside the base system."""
USER = 1000
CERTIFICATES = "/etc/host-certificates.crt"
NETWORK = re.compile(r"(https?|ftp|no|all)_proxy|KTEARDOWN_DEBIAN_MIRROR", re.IGNORECASE)
"""Variables of this host that the others get."""
LIMIT_S = 5400
"""For one step."""
NO_APT = "apt apt-get apt-cache apt-config apt-mark dpkg dpkg-deb dpkg-query x86_64-linux-gnu-gcc"
"""Programs that a distribution other than Debian does not have."""


@dataclass(frozen=True)
class Host:
    """A fresh machine: a suite of Debian, and what its user has or lacks."""

    suite: str
    steps: str = "demo doctor try hunt equal wall test"
    sudo: bool = True
    python: str = ""
    """A version of Python that is not the distribution's, first in the path: ``3.12``."""
    packages: str = ""
    """``base``: what an administrator has installed for `make demo`; further names follow."""
    without: str = ""
    """Programs that are taken away."""


KTEARDOWN = ".venv/bin/kteardown"
QUICK = "--seeds 1 --repetitions 1 --set zombies=0,3000"
STEPS = {
    "refused": "make demo",
    "demo": "make demo",
    "doctor": f"{KTEARDOWN} doctor",
    "try": f"{KTEARDOWN} try series/freezer-skip-exited --source debian:6.12 {QUICK}",
    "hunt": f"{KTEARDOWN} hunt --source debian-image:6.12 --kinds pipes",
    # Equal boots on the instruction clock, which depends on the version of QEMU.
    "equal": ".venv/bin/python bench/equal_boots.py",
    "wall": (
        f"{KTEARDOWN} compare zombies --source debian:6.12 --series freezer-skip-exited --clock "
        "wall --boots 3 --repetitions 2 --set zombies=3000"
    ),
    # The wheel by pipx, where the checkout is not to be found.
    "installed": "python3 -m venv /tmp/pipx && /tmp/pipx/bin/pip install -q pipx && "
    ".venv/bin/pip wheel -q --no-deps -w /tmp/wheel . && export PIPX_HOME=/tmp/home "
    "PIPX_BIN_DIR=/tmp/bin && /tmp/pipx/bin/pipx install -q /tmp/wheel/*.whl && mv ~/kteardown "
    "~/away && cd / && /tmp/bin/kteardown run freezer --quick; code=$?; mv ~/away ~/kteardown; "
    "exit $code",
    "test": "make test",
}
# The compilers of a suite besides its own: a comparison with kernels of each.
COMPILERS = ("gcc-13", "gcc-15", "clang-19")
STEPS |= {
    compiler: f"make setup && sudo apt-get install -y -qq --no-install-recommends {compiler} && "
    f"{KTEARDOWN} compare zombies --source debian:6.12 --series freezer-skip-exited --compiler "
    f"{compiler} {QUICK}"
    for compiler in COMPILERS
}
MATRIX = {
    "debian-12": Host("bookworm"),
    "debian-12-python-3.12": Host("bookworm", "demo try", python="3.12"),
    "debian-13": Host("trixie", "demo doctor try hunt equal wall installed test"),
    "debian-13-no-sudo": Host("trixie", "refused", sudo=False),
    "debian-13-no-apt": Host(
        "trixie", "demo try hunt", sudo=False, packages="base gpgv", without=NO_APT
    ),
    "debian-unstable": Host("sid", f"demo doctor try hunt equal wall test {' '.join(COMPILERS)}"),
}


def as_root(argv: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command with namespaces of its own, as root in them."""
    mapped = [] if os.geteuid() == 0 else ["--map-root-user", "--map-auto"]
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *mapped, "--", *argv]
    return subprocess.run(command, text=True, check=False, **options)


def base_system(suite: str) -> Path:
    """Return the base system of a suite, which is made once. Raises SystemExit."""
    base, partial = HOSTS / "bases" / suite, HOSTS / "bases" / f"{suite}.partial"
    if not (base / "etc" / "debian_version").exists():
        base.parent.mkdir(parents=True, exist_ok=True)
        as_root(["rm", "-rf", str(partial)])
        print(f"making the base system of {suite} ...", flush=True)
        command = ["debootstrap", "--variant=minbase", f"--include={FRESH}", suite, str(partial)]
        if as_root(command, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"debootstrap failed for {suite}: see {partial}/debootstrap/debootstrap.log")
        partial.rename(base)
    return base


def make(name: str, host: Host) -> None:
    """Make the root of a host anew. Raises SystemExit."""
    root = HOSTS / name / "root"
    if as_root(["rm", "-rf", str(root)]).returncode:
        sys.exit(f"{name}: its root is in use: {root}")
    root.parent.mkdir(parents=True, exist_ok=True)
    as_root(["cp", "-a", str(base_system(host.suite)), str(root)])
    for file in ("resolv.conf", "hosts"):
        shutil.copyfile(f"/etc/{file}", root / "etc" / file)
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    if certificates.exists():
        shutil.copyfile(certificates, f"{root}{CERTIFICATES}")
    # What apt of this host allows its mirrors, such as lists that are older than they should be.
    dumped = subprocess.run(
        ["apt-config", "dump", "--no-empty"], capture_output=True, text=True, check=False
    )
    allowed = [
        line for line in dumped.stdout.splitlines() if re.match(r"Acquire::(Check-|https?::)", line)
    ]
    (root / "etc" / "apt" / "apt.conf.d" / "90mirror").write_text("\n".join(allowed) + "\n")
    if host.python:
        add_python(root, host.python)
    home = root / "home" / "user"
    subprocess.run(
        ["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(home / "kteardown")], check=True
    )
    if host.without:  # It must read Debian's archive itself.
        for kept in ("answers", "lists"):
            shutil.rmtree(HOSTS / "cache" / kept, ignore_errors=True)
    log = HOSTS / name / "prepare.log"
    if inside(name, host, " && ".join(preparation(host)), user=0, log=log):
        sys.exit(f"{name}: its root could not be prepared: see {log}")


def preparation(host: Host) -> list[str]:
    """Return the commands that root runs in a new root."""
    steps = [f"useradd --uid {USER} --shell /bin/bash user", f"chown -R {USER}:{USER} /home/user"]
    if host.sudo:
        steps.append("echo 'user ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/user")
    if host.python:
        steps.append("echo /opt/python/lib > /etc/ld.so.conf.d/python.conf && ldconfig")
    if host.packages:
        setup = "KTEARDOWN_NO_APT=1 scripts/setup | sed -n 2p"
        names = host.packages.replace("base", f"$(cd /home/user/kteardown && {setup})")
        steps.append(
            f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {names}"
        )
    without = [*host.without.split(), *([] if host.sudo else ["sudo"])]
    return [*steps, *(f"rm -f /usr/bin/{program}" for program in without)]


def add_python(root: Path, version: str) -> None:
    """Copy an interpreter of ``version`` that this host has. Raises SystemExit."""
    interpreters = [
        *Path.home().glob(f".pyenv/versions/{version}.*"),
        *Path("/opt").glob(f"python-{version}*"),
    ]
    if not interpreters:
        sys.exit(f"no interpreter of Python {version} below ~/.pyenv/versions or /opt")
    shutil.copytree(interpreters[-1], root / "opt" / "python", symlinks=True, dirs_exist_ok=True)


def inside(
    name: str, host: Host, command: str, *, user: int = USER, log: Path | None = None
) -> int:
    """Run a shell command in a host; return its exit code. ``log`` gets what it prints, else the
    terminal."""
    root, cache = HOSTS / name / "root", HOSTS / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    cache.chmod(0o777)
    home = "/home/user" if user else "/root"
    variables = {
        "HOME": home,
        "USER": "user" if user else "root",
        "PATH": "/opt/python/bin:" * bool(host.python)
        + "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "TERM": os.environ.get("TERM", "dumb"),
        "COLUMNS": "120",
        "DEBIAN_FRONTEND": "noninteractive",
        "KTEARDOWN_CACHE": "/cache",
        "PIP_CACHE_DIR": "/cache/pip",
        **{key: value for key, value in os.environ.items() if NETWORK.fullmatch(key)},
    }
    if host.without:  # The mirror from which debootstrap made the base system.
        listed = (base_system(host.suite) / "etc" / "apt" / "sources.list").read_text()
        variables["KTEARDOWN_DEBIAN_MIRROR"] = listed.split()[1]
    if Path(f"{root}{CERTIFICATES}").exists():
        variables |= {"PIP_CERT": CERTIFICATES, "SSL_CERT_FILE": CERTIFICATES}
    env = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
    # After chroot alone, no program may make a user namespace, which the sandbox of builds needs.
    script = f"""set -e
        mount --bind {root} {root}; cd {root}
        mkdir -p cache .outside; mount --bind {cache} cache
        mount -t proc proc proc; mount --rbind /dev dev; mount --rbind /sys sys
        mount -t tmpfs tmpfs run
        pivot_root . .outside; umount -l /.outside
        exec setpriv --reuid {user} --regid {user} --clear-groups \\
            env -i {env} \\
                sh -c {shlex.quote(f"cd {home}/kteardown 2>/dev/null || cd /; {command}")}"""
    if log is None:
        return as_root(["sh", "-c", script]).returncode
    with log.open("w") as sink:
        try:
            streams = {"stdin": subprocess.DEVNULL, "stdout": sink, "stderr": sink}
            return as_root(["sh", "-c", script], timeout=LIMIT_S, **streams).returncode
        except subprocess.TimeoutExpired:
            return 124


VERSIONS = {
    "Python": "python3 --version",
    "gcc": "gcc -dumpfullversion",
    "QEMU": "qemu-system-x86_64 --version",
}


def versions(name: str, host: Host) -> dict[str, str]:
    """Return the versions of what decides figures on a host; those it lacks are absent."""
    numbers = {}
    log = HOSTS / name / "version.log"
    for program, command in VERSIONS.items():
        inside(name, host, f"{command} 2>/dev/null", log=log)
        if match := re.search(r"\d+\.\d+\.\d+", log.read_text()):
            numbers[program] = match[0]
    return numbers


def run_host(name: str, only: list[str], commit: str) -> int:
    """Run the steps of a host that have not passed at ``commit``; return the number that failed."""
    host, file, failed = MATRIX[name], HOSTS / name / "record.json", 0
    record = json.loads(file.read_text()) if file.exists() else {}
    if record.get("commit") != commit:
        print(f"{name}: making its root ...", flush=True)
        make(name, host)
        record = {"steps": {}, **record, "commit": commit}
    for step in host.steps.split():
        done = record["steps"].get(step)
        if (only and step not in only) or (done and done["passed"] and done["commit"] == commit):
            continue
        print(f"{name}: {step} ...", end=" ", flush=True)
        started, log = time.monotonic(), HOSTS / name / f"{step}.log"
        code = inside(name, host, STEPS[step], log=log)
        passed = code == (2 if step == "refused" else 0)
        duration_s = round(time.monotonic() - started)
        print(f"{'passed' if passed else f'FAILED with {code}: {log}'}, {duration_s} s", flush=True)
        record["steps"][step] = {
            "passed": passed,
            "code": code,
            "duration_s": duration_s,
            "commit": commit,
        }
        record |= {"date": time.strftime("%Y-%m-%d"), "versions": versions(name, host)}
        file.write_text(json.dumps(record, indent=1) + "\n")
        failed += not passed
    file = ROOT / RECORD
    kept = json.loads(file.read_text()) if file.exists() else {}
    kept[name] = record
    file.write_text(
        json.dumps(
            {host_name: kept[host_name] for host_name in MATRIX if host_name in kept}, indent=1
        )
        + "\n"
    )
    return failed


def table(root: Path) -> str:
    """Return the table of the recorded hosts as Markdown; each step has its seconds."""
    record_file = root / RECORD
    records = json.loads(record_file.read_text()) if record_file.exists() else {}
    names = ["demo", "doctor", "try", "hunt", "equal", "wall", "installed", "test"]
    lines = [
        f"| host | {' | '.join(VERSIONS)} | {' | '.join(names)} |",
        "|---" * (len(names) + 4) + "|",
    ]
    for host, record in records.items():
        cells = [record["versions"].get(program, "") for program in VERSIONS]
        for name in names:
            step = record["steps"].get(name) or (
                record["steps"].get("refused") if name == "demo" else None
            )
            if step and not step["passed"]:
                cells.append(f"**failed** ({step['code']})")
            elif step and step["code"]:
                cells.append("refused, names the packages")
            else:
                cells.append(f"{step['duration_s']} s" if step else "")
        lines.append(f"| {host} | {' | '.join(cells)} |")
    built = []
    for host, record in records.items():
        for compiler in COMPILERS:
            if step := record["steps"].get(compiler):
                passed = (
                    f"{step['duration_s']} s" if step["passed"] else f"**failed** ({step['code']})"
                )
                built.append(f"| {compiler} | {host} | {passed} |")
    head = ["", "| compiler | host | a comparison with kernels of it |", "|---|---|---|"]
    return "\n".join([*lines, *head, *built] if built else lines)


def write_table(root: Path) -> None:
    """Write the table into docs/install.md, between its two comments."""
    file = root / "docs/install.md"
    text = file.read_text(encoding="utf-8")
    begin = "<!-- hosts -->\n"
    end = "<!-- end of hosts -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    file.write_text(f"{before}{begin}{table(root)}\n{end}{after}", encoding="utf-8")


def main() -> int:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("run", "enter", "table"))
    parser.add_argument(
        "hosts", nargs="*", metavar="HOST", help=f"of {', '.join(MATRIX)}; all without any"
    )
    parser.add_argument("--step", action="append", default=[], choices=STEPS)
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.hosts if name not in MATRIX]:
        parser.error(f"no host {unknown[0]}; there are {', '.join(MATRIX)}")
    if arguments.command == "enter":
        return inside(arguments.hosts[0], MATRIX[arguments.hosts[0]], "exec bash -i")
    if arguments.command == "table":
        write_table(ROOT)
        return 0
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    return min(sum(run_host(name, arguments.step, head) for name in arguments.hosts or MATRIX), 1)


if __name__ == "__main__":
    sys.exit(main())
