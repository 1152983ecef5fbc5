"""What a user names as a series: a shipped one, a folder of patches, or anything that ``read`` reads."""

from __future__ import annotations

from pathlib import Path

from kteardown import paths
from kteardown.errors import InputError
from kteardown.kernels import series
from kteardown.kernels.series import Selection, slug
from kteardown.patches import lore
from kteardown.patches.posted import PostedSeries, read
from kteardown.progress import Reporter, SilentReporter


def resolve(
    name_or_path: str, *, cache_dir: Path | None = None, reporter: Reporter | None = None
) -> Selection:
    """Return the patches that ``name_or_path`` selects; see ``series.resolve`` for a part of a series.

    ``name_or_path`` is also the path of a patch or a mailbox, ``lore:MESSAGE-ID`` or a git range. Raises
    InputError if there is no such series, or if patches of it are missing; LabError.
    """
    whole, part = series.split_part(name_or_path)
    path = Path(whole).expanduser()
    if lore.message_id(whole) or whole.startswith("git:"):
        cache = cache_dir or paths.cache_dir()
        posted = read(whole, cache_dir=cache, reporter=reporter or SilentReporter())
        return series.select(posted.name, (posted.patches,), whole, part, posted.revision)
    if name_or_path and not path.is_file():
        return series.resolve(name_or_path)
    posted = _of_file(whole, cache_dir or paths.cache_dir())
    return series.select(slug(path.stem), (posted.patches,), whole, part, posted.revision)


def _of_file(path: str, cache_dir: Path) -> PostedSeries:
    """Return the series of a file, which must be whole. Raises InputError."""
    posted = read(path, cache_dir=cache_dir, reporter=SilentReporter())
    if posted.missing and len(posted.patches) > 1:
        raise InputError(
            f"{path} is incomplete: patch {', '.join(map(str, posted.missing))} is missing",
            hint="fetch the whole series again, for example with `b4 am`, or use `kteardown try`.",
        )
    return posted
