"""Pages of the site that are not files of docs/: the texts of the top folder, the commands, the modules.

The links in them are written for a reader of the checkout; here they are changed to point to the pages. A
link to a file or folder of the checkout that the site does not have, such as a folder of patches, becomes
plain text. A link to something that does not exist is not changed, and fails the build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click
from typer.main import get_command

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
    {p.stem for p in SOURCES.iterdir() if p.suffix in (".py", "") and p.stem[0] != "_"} - {"cli", "data"}
)
_LINK = re.compile(r"\[([^\]]*)\]\(([^()\s]+)\)")


def on_config(config: Any) -> Any:
    """Fill the sections of the navigation that list existing pages and modules."""
    named = {page for entry in config.nav for page in entry.values() if isinstance(page, str)}
    for entry in config.nav:
        if "Experiments" in entry:
            pages = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
            entry["Experiments"] = [page for page in pages if page not in named]
        elif "Modules" in entry:
            entry["Modules"] = [{stage: f"reference/{stage}.md"} for stage in STAGES]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    pages = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in TEXTS.items()}
    pages["reference/cli.md"] = commands()
    pages |= {f"reference/{stage}.md": modules(stage) for stage in STAGES}
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Change the links of a page to the addresses of the site."""
    origin = next((name for name, made in TEXTS.items() if made == page.file.src_uri), "")
    folder = "" if origin else posixpath.join("docs", posixpath.dirname(page.file.src_uri))
    here = posixpath.dirname(page.file.src_uri)

    def rewritten(match: re.Match[str]) -> str:
        label, link = match[1], match[2]
        target, _, anchor = link.partition("#")
        if ":" in link or not target:
            return match[0]
        place = posixpath.normpath(posixpath.join(folder, target))
        page_there = TEXTS.get(place, place.removeprefix("docs/") if place.startswith("docs/") else "")
        if page_there and files.get_file_from_path(page_there):
            found = posixpath.relpath(page_there, here or ".")
            return f"[{label}]({found}{'#' + anchor if anchor else ''})"
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


def modules(stage: str) -> str:
    """Return the page of one stage: its modules, each from its docstrings."""
    names = "\n\n".join(f"::: {name}" for name in _names(SOURCES / stage))
    return f"# kteardown.{stage}\n\n{names}\n"


def _names(path: Path) -> Iterator[str]:
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    for file in files:
        if file.name != "__init__.py":
            yield ".".join(file.relative_to(ROOT / "src").with_suffix("").parts)
