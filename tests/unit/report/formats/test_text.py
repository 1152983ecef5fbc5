"""What is printed after a run: at most 45 lines, with the worst first and where the rest is."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from kteardown.report.formats import text
from kteardown.report.material import BothMaterial, Material, side_by_side
from kteardown.report.sentence import lines
from unit.report.contexts import instructions, wall


def printed(material: Material | BothMaterial, width: int) -> list[str]:
    out = io.StringIO()
    text.brief(material, Console(file=out, width=width, force_terminal=False))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_on_a_terminal_and_names_the_rest(width: int) -> None:
    both = side_by_side("RUN", instructions(), wall())
    for material, name in (
        (instructions(), instructions().name),
        (wall(), wall().name),
        (both, "RUN"),
    ):
        shown = printed(material, width)
        assert len(shown) <= text.LINES
        assert max(map(len, shown[:-2])) <= width
        assert shown[0].startswith("With freezer-skip-exited, freez")
        assert any(line.startswith("Headline metrics") for line in shown)
        assert any("growth of freezing user space with zombies" in line for line in shown)
        assert shown[-2] == f"The whole report: kteardown report {name}"


def test_many_variants_are_cut_and_counted() -> None:
    one = instructions()
    first = one.result.requested[0]
    names = [f"variant-{n}" for n in range(60)]
    kernels = {
        "base": one.result.kernels["base"],
        **dict.fromkeys(names, one.result.kernels[first]),
    }
    update = {
        "kernels": kernels,
        **{
            field: tuple(
                row.model_copy(update={"variant": name})
                for name in names
                for row in getattr(one.result, field)
                if row.variant == first
            )
            for field in ("comparisons", "metric_verdicts")
        },
    }
    many = replace(one, result=one.result.model_copy(update=update))
    shown = printed(many, 120)
    assert len(shown) <= text.LINES
    assert lines(many.result, many.workloads)[0].text in " ".join(" ".join(shown).split())
    assert any(line.endswith(" more variants") for line in shown)
    assert any(line.endswith(" more rows") for line in shown)
