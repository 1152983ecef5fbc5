"""Pages of the site that are not files of docs/: the texts of the top folder, the commands, the
modules, and our findings with the page of each result.

The links in them are written for a reader of the checkout; here they are changed to point to the
pages. A link to a file or folder of the checkout that the site does not have, such as a folder of
patches, becomes plain text. A link to something that does not exist is not changed, and fails the
build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation
from typer.cli import get_docs_for_click
from typer.main import get_command

from kteardown.inputs.load import load_workload, stress_names, workload_names

ROOT = Path(__file__).parents[1]

TEXTS = {
    "README.md": "index.md",
    "METHODOLOGY.md": "methodology.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
SOURCES = ROOT / "src/kteardown"
# The stages of the data flow; the command line has a page of its own.
STAGES = sorted(
    {p.stem for p in SOURCES.iterdir() if p.suffix in (".py", "") and p.stem[0] != "_"}
    - {"cli", "data"}
) + sorted(path.name for path in SOURCES.parent.glob("kteardown_*") if path.is_dir())
_LINK = re.compile(r"\[([^\]]*)\]\(([^()\s]+)\)")


def on_config(config: Any) -> Any:
    """Fill the section of the navigation that lists the modules."""
    for entry in config.nav:
        if "Modules" in entry:
            entry["Modules"] = [{stage: f"reference/{stage}.md"} for stage in STAGES]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    pages = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in TEXTS.items()}
    pages["reference/cli.md"] = commands()
    pages |= {f"reference/{stage}.md": modules(stage) for stage in STAGES}
    pages["reference/workloads.md"] = workloads()
    pages |= findings()
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_nav(nav: Navigation, config: Any, files: Files) -> Navigation:
    """Add the pages of our results, which `make docs` writes after these."""
    nav.items.append(Link("All results, side by side", "results/index.html"))
    return nav


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Change the links of a page to the addresses of the site."""
    origin = next((name for name, made in TEXTS.items() if made == page.file.src_uri), "")
    here = posixpath.dirname(page.file.src_uri)
    folder = "" if origin else here if here.startswith("findings") else f"docs/{here}"

    def rewritten(match: re.Match[str]) -> str:
        label, link = match[1], match[2]
        target, _, anchor = link.partition("#")
        if ":" in link or not target:
            return match[0]
        place = posixpath.normpath(posixpath.join(folder, target))
        if place.startswith("workloads/"):
            place, anchor = (
                "docs/reference/workloads.md",
                posixpath.basename(place).removesuffix(".toml"),
            )
        if place.startswith("findings") and (ROOT / place / "README.md").is_file():
            place = f"{place}/README.md"
        page_there = TEXTS.get(place) or place.removeprefix("docs/")
        if page_there and files.get_file_from_path(page_there):
            address = posixpath.relpath(page_there, here or ".")
            return f"[{label}]({address}{'#' + anchor if anchor else ''})"
        return label if (ROOT / place).exists() else match[0]

    return _LINK.sub(rewritten, markdown)


def commands() -> str:
    """Return the page of every command with its options, from the command line itself."""
    from kteardown.cli import app

    command = get_command(app)
    context = command.make_context("kteardown", ["doctor"], resilient_parsing=True)
    # typer has a copy of click, whose types it does not export.
    text = get_docs_for_click(obj=command, ctx=context, name="kteardown", title="Commands")  # type: ignore[arg-type]
    # Examples are code, and so are their continuation lines.
    return re.sub(r"^ {2}(\S.*)$", r"    \1", text, flags=re.MULTILINE)


def findings() -> dict[str, str]:
    """Return the pages of findings/, by their places in the site."""
    return {
        file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted((ROOT / "findings").rglob("*.md"))
        if file.name != "notes.md"
    }


def workloads() -> str:
    """Return the page with the parameters, metrics and invariants of every workload."""
    stress = stress_names()
    parts = [f"## {_workload(name)}" for name in workload_names() if name not in stress]
    parts = ["# Workloads", *parts, "## Stress tests", "They only check invariants."]
    parts += [f"### {_workload(name)}" for name in stress]
    return "\n\n".join(parts) + "\n"


def _workload(name: str) -> str:
    """Return the name of a workload, what it does, and its tables."""
    it = load_workload(name)
    rows = [["parameter", "default", "what it is"]]
    rows += [[f"`{key}`", f"`{spec.default}`", spec.help] for key, spec in it.parameters.items()]
    metrics = [["metric", "key", "what it is"]]
    metrics += [[spec.name, f"`{key}`", spec.help] for key, spec in it.metrics.items()]
    checks = [
        ["invariant", "what it is"],
        *([f"`{key}`", text] for key, text in it.invariants.items()),
    ]
    tables = [_table(table) for table in (rows, metrics, checks) if len(table) > 1]
    return "\n\n".join([name, f"{it.summary[:1].upper()}{it.summary[1:]}.", *tables])


def _table(rows: list[list[str]]) -> str:
    """Return rows, the header first, as a table of Markdown."""
    rule = ["---"] * len(rows[0])
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


def modules(stage: str) -> str:
    """Return the page of one stage: its modules, each from its docstrings."""
    path = SOURCES.parent / stage if stage.startswith("kteardown_") else SOURCES / stage
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    names = [
        file.relative_to(ROOT / "src").with_suffix("").parts
        for file in files
        # A folder without it has programs for other interpreters.
        if file.stem != "__init__" and (file.parent / "__init__.py").is_file()
    ]
    return (
        "\n\n".join(
            [
                f"# {stage if stage.startswith('kteardown_') else f'kteardown.{stage}'}",
                *(f"::: {'.'.join(name)}" for name in names),
            ]
        )
        + "\n"
    )
