"""``kteardown doctor --on slurm``: look at every node."""

import json
from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.table import Column, Table

from kteardown.cli import options
from kteardown.errors import LabError
from kteardown.paths import runs_dir
from kteardown.visible import echo
from kteardown_cluster.node_job import NodeFacts
from kteardown_cluster.place import ClusterPlace
from kteardown_cluster.slurm import SlurmConfig
from kteardown_cluster.survey import Surveyed, survey

_LOUD = 0.5
"""A load above this, beside the job that looks, disturbs a guest."""


def examine(place: ClusterPlace, *, as_json: bool) -> None:
    """Look at every node, and print what was found. Raises InputError; LabError if a node is of no
    use."""
    config = place.config
    nodes = survey(place.scheduler, config, runs_dir())
    if not nodes:
        raise LabError(
            f"--on {place.on}: Slurm lists no nodes",
            hint="choose a partition with nodes: see `sinfo`.",
        )
    problems = {node.node: _problems_of(node, nodes, config) for node in nodes}
    if as_json:
        echo(
            json.dumps([{**n.model_dump(), "problems": problems[n.node]} for n in nodes], indent=1)
        )
    else:
        columns = (
            "node",
            "state",
            "QEMU",
            "KVM",
            "cores",
            "memory",
            "disk",
            "load",
            "SMT",
            "governor",
        )
        table = Table(*columns, Column("problems", overflow="fold"), box=box.SIMPLE, pad_edge=False)
        for node in nodes:
            table.add_row(
                node.node, node.state, *_cells(node.found), "; ".join(problems[node.node])
            )
        options.output().print(table)
    bad = [name for name, node_problems in problems.items() if node_problems]
    if bad:
        raise LabError(
            f"{len(bad)} of {len(nodes)} nodes have problems: {', '.join(bad)}",
            hint="fix them; docs/cluster.md lists what a node needs.",
        )


def _cells(facts: NodeFacts | None) -> list[str]:
    if facts is None:
        return ["-"] * 8
    return [
        f"{facts.qemu_version} {facts.qemu[:12]}",
        "no" if facts.kvm else "yes",
        str(facts.cores),
        f"{facts.memory_mb / 1024:.0f} GB",
        f"{facts.disk_mb / 1024:.0f} GB",
        f"{facts.load:.1f}",
        facts.smt or "-",
        facts.governor or "-",
    ]


def _problems_of(node: Surveyed, nodes: Sequence[Surveyed], config: SlurmConfig) -> list[str]:
    """Return why a node is of no use, or adds noise on the wall clock."""
    facts = node.found
    if facts is None:
        return [node.reason]
    builds = Counter(surveyed.found.qemu for surveyed in nodes if surveyed.found)
    wanted = config.qemu or builds.most_common(1)[0][0]
    checks = {
        "QEMU is not installed": not facts.qemu,
        f"its build of QEMU is not {wanted[:12]}": bool(facts.qemu) and facts.qemu != wanted,
        "it does not see the shared cache": not facts.cache,
        f"no KVM: {facts.kvm}": bool(facts.kvm) and config.wall == "kvm",
        "other work runs on it": facts.load > _LOUD + facts.cores * 0.1,
        f"the governor is {facts.governor}": facts.governor not in ("", "performance"),
    }
    return [text for text, applies in checks.items() if applies]
