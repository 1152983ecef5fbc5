"""A real Slurm on this machine: munged, slurmctld and some slurmd, with all their files in one
folder.

The daemons run as the user of the tests. Nothing outside the folder is read or written besides the
programs.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scancel", "scontrol")
_START_S = 60.0

_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=100000
ReturnToService=2
SlurmdTimeout=15
SlurmctldTimeout=10
KillWait=2
MinJobAge=3600
JobRequeue=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
{nodes}
PartitionName=boots Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=empty Nodes="" MaxTime=INFINITE State=UP
PartitionName=down Nodes=ALL MaxTime=INFINITE State=DOWN
"""


def missing() -> list[str]:
    """Return the programs of Slurm that are not installed."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    return [name for name in PROGRAMS if not shutil.which(name, path=path)]


class Cluster:
    """Daemons of a cluster, each of which can be killed and started again.

    ``pinned``: each node has one CPU of the host.
    """

    def __init__(
        self, folder: Path, nodes: int = 2, features: str = "", *, pinned: bool = False
    ) -> None:
        self.folder = folder
        self._pinned = pinned
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self._features = features
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.conf = folder / "slurm.conf"
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(self.conf),
            "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin",
        }

    def start(self) -> None:
        """Start the daemons, and wait until every node is idle."""
        self.folder.chmod(0o755)
        for name in ("state", *(f"spool-{node}" for node in self.nodes)):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        controller, *ports = _free_ports(1 + len(self.nodes))
        host = socket.gethostname().split(".")[0]
        own = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 "
            f"RealMemory=8000 State=UNKNOWN {f'Feature={self._features}' if self._features else ''}"
            for node, port in zip(self.nodes, ports, strict=True)
        ]
        user = pwd.getpwuid(os.getuid()).pw_name
        text = _CONF.format(
            host=host, user=user, folder=self.folder, port=controller, nodes="\n".join(own)
        )
        self.conf.write_text(text)
        self.start_munged()
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self.until(
            lambda: (
                self.command("sinfo", "-h", "-N", "-p", "boots", "-o", "%T").split().count("idle")
                == len(self.nodes)
            )
        )

    def start_munged(self) -> None:
        """Start the daemon that authenticates the others."""
        files = [
            f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("key", "pid", "log", "seed")
        ]
        socket_file = self.folder / "munge.socket"
        self._start("munged", "--foreground", "--force", f"--socket={socket_file}", *files)
        self.until(socket_file.exists)

    def start_controller(self) -> None:
        """Start slurmctld, or start it again with the state that it saved."""
        self._start("slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, node: str) -> None:
        """Start the slurmd of a node, or start it again."""
        arguments = ("-D", "-N", node, "-f", str(self.conf))
        if self._pinned:
            cpu = str(self.nodes.index(node) % (os.cpu_count() or 1))
            pin = (
                "--cpu-list",
                cpu,
                shutil.which("slurmd", path=self.environment["PATH"]) or "slurmd",
            )
            self._start(f"slurmd-{node}", *pin, *arguments, program="taskset")
        else:
            self._start(f"slurmd-{node}", *arguments, program="slurmd")

    def kill(self, daemon: str) -> None:
        """Kill a daemon: ``slurmctld``, ``munged`` or ``slurmd-NODE``. What it started is left
        alone."""
        process = self._daemons.pop(daemon)
        process.kill()
        process.wait()

    def alive(self, daemon: str) -> bool:
        """Return whether a daemon runs."""
        return daemon in self._daemons and self._daemons[daemon].poll() is None

    def command(self, *argv: str) -> str:
        """Run one of Slurm's commands and return its output, empty if it failed."""
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout if done.returncode == 0 else ""

    def until(self, done: Callable[[], bool], limit_s: float = _START_S) -> None:
        """Wait until ``done``. Raises TimeoutError with the logs."""
        until = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > until:
                raise TimeoutError(self.logs())
            time.sleep(0.2)

    def logs(self) -> str:
        """Return the ends of the logs."""
        return "\n".join(
            f"--- {file.name}\n{file.read_text(errors='replace')[-1500:]}"
            for file in sorted(self.folder.glob("*.log"))
        )

    def stop(self) -> None:
        """Cancel all jobs and end every process of the cluster."""
        self.command("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name)
        for name in sorted(self._daemons):
            self._daemons[name].send_signal(signal.SIGTERM)
        for process in self._daemons.values():
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._daemons.clear()
        for pid in self.steps():
            os.kill(pid, signal.SIGKILL)

    def steps(self) -> list[int]:
        """Return the processes that keep jobs of this cluster: they survive their slurmd."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                text = (folder / "environ").read_bytes()
                name = (folder / "comm").read_text().strip()
            except OSError:
                continue
            if name == "slurmstepd" and f"SLURM_CONF={self.conf}".encode() in text.split(b"\0"):
                found.append(int(folder.name))
        return found

    def _start(self, name: str, *arguments: str, program: str = "") -> None:
        with (self.folder / f"{name}.out.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [program or name, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


@dataclass(frozen=True)
class Site:
    """The cluster, and a user of it: the shared folder of the runs, and the configuration."""

    cluster: Cluster
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **self.cluster.environment,
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "KTEARDOWN_RUNS": str(self.folder / "runs"),
        }

    def configure(self, **settings: str | float | bool) -> None:
        """Write the configuration."""
        given = {
            "poll_s": 0.5,
            "grace_s": 2,
            "wall": "mttcg",
            "lock_folder": str(self.folder),
            **settings,
        }
        file = self.folder / "config" / "kteardown" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
        file.write_text("\n".join(["[slurm]", *lines, ""]))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kteardown."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "kteardown", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kteardown(self, *arguments: str) -> tuple[int, str, str]:
        """Run kteardown; return its exit status and what it printed."""
        process = self.start(*arguments)
        out, err = process.communicate()
        return process.returncode, out, err

    def last_run(self) -> Path:
        """Return the newest run directory."""
        return max((self.folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime)

    def live_jobs(self) -> list[str]:
        """Return the jobs that wait or run."""
        return self.cluster.command("squeue", "-h", "-t", "PD,R,CG", "-o", "%i").split()


def small_experiment(name: str, seeds: int) -> str:
    """Return the text of an experiment of ``seeds`` boots, or of two blocks, that take seconds
    each."""
    return f"""name = "{name}"
question = "Is it the same?"
source = "debian:6.12"

[[workloads]]
workload = "zombies"
params.zombies = "0"

[design]
seeds = {seeds}
boots = 2
repetitions = 2
warmup = 1
"""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
