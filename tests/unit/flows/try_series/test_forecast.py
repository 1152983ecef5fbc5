"""What a dry run says of the time, and of a base that is built."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.flows.try_series import forecast
from kteardown.flows.try_series.forecast import built_elsewhere, without_dry_run
from kteardown.kernels import build
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Sources
from kteardown.patches.config_of_series import SeriesConfig
from kteardown.patches.posted import PostedSeries
from kteardown.patches.tried_source import Base, How, TriedSource
from kteardown.progress import SilentReporter

PATCH = Path("/cache/series/key/fix/0001-fix.patch")
RANGE = "git:/linux@1234"


def posted(version: str = "") -> PostedSeries:
    return PostedSeries("fix", "fix", "", "", "", "", "", (PATCH,), ("fix",), "", version=version)


def hint(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    tried: dict[str, How],
    built: Sequence[str],
    *,
    version: str = "",
    recompiled: float = 0.0,
    applies: How = "with offsets",
) -> str:
    """Return the hint for a series on RANGE, where the bases of ``built`` are in the cache.

    ``applies``: what becomes of it on sources that were not tried.
    """

    def missing(requests: Sequence[KernelRequest], **_: object) -> list[KernelRequest]:
        return [request for request in requests if request.source not in built]

    monkeypatch.setattr(build, "missing", missing)
    monkeypatch.setattr(
        forecast, "attempt", lambda spec, *_: TriedSource(spec, spec, applies, reason="")
    )
    monkeypatch.setattr(forecast, "default_sources", lambda _: ("debian:7.3", "debian:6.12"))
    attempts = tuple(
        TriedSource(spec, spec, how) for spec, how in {RANGE: "exactly", **tried}.items()
    )
    return built_elsewhere(
        KernelRequest("base", RANGE, arch="x86_64"),
        SeriesConfig((), recompiled=recompiled),
        Base(RANGE, RANGE, "exactly", (PATCH,), attempts),
        posted(version),
        Sources(tmp_path, SilentReporter()),
    )


def test_a_built_base_that_takes_the_series_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A git range is tried on its own base only, so the others are tried for the hint.
    assert "--source debian:6.12 measures" in hint(monkeypatch, tmp_path, {}, ["debian:6.12"])
    exact = hint(monkeypatch, tmp_path, {"debian:7.3": "exactly"}, ["debian:7.3", "debian:6.12"])
    assert "--source debian:7.3" in exact and "other lines" not in exact


@pytest.mark.parametrize(
    ("tried", "built", "options"),
    [
        ({}, [], {}),
        ({}, ["debian:6.12", RANGE], {}),  # Its own base is built, too.
        ({"debian:6.12": "fails"}, ["debian:6.12"], {}),
        ({}, ["debian:6.12"], {"applies": "fails"}),
        ({}, ["debian:6.12"], {"version": "6.18"}),
        ({}, ["debian:6.12"], {"recompiled": 0.9}),  # The patched kernel takes as long as a base.
    ],
)
def test_no_base_is_named_that_saves_no_time(
    tried: dict[str, How],
    built: Sequence[str],
    options: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert hint(monkeypatch, tmp_path, tried, built, **options) == ""  # type: ignore[arg-type]


def test_the_command_that_measures_has_all_but_the_dry_run() -> None:
    typed = "kteardown try './my patch' --dry-run --source debian:6.12"
    assert without_dry_run(typed) == "kteardown try './my patch' --source debian:6.12"


def test_the_command_of_piped_patches_reads_a_pipe() -> None:
    said = without_dry_run("kteardown try - --dry-run --quick", piped=True)
    assert said.endswith(" | kteardown try - --quick")


def test_the_command_starts_the_program_that_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "a b" / "kteardown"
    monkeypatch.setattr(sys, "argv", [str(script)])
    words = shlex.split(without_dry_run("kteardown try ./x.diff --dry-run"))
    assert words == [str(script), "try", "./x.diff"]
