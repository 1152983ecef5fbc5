"""The report as one HTML file that needs no network.

It has the verdict in words and a picture, then charts with their tables, then how it was measured
and how to repeat it. Every chart is in the page as SVG, so it is there on paper, in a saved page
and without JavaScript. A script shows of each kind the chart that the reader chooses.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from kteardown.judge.metrics import metric_name, variants
from kteardown.judge.verdicts import VERDICTS
from kteardown.model.judged import Comparison
from kteardown.report import contents
from kteardown.report.chart_model import Chart, Forest, Gallery
from kteardown.report.charts import asset, markup, stylesheet, templates, verdict_rules
from kteardown.report.contents import limits
from kteardown.report.formatting import WORDS, without_options
from kteardown.report.material import BothMaterial, Material, Measured
from kteardown.report.publication import Publication
from kteardown.report.result_file import metrics_in_words
from kteardown.report.sections.ablation import waterfalls
from kteardown.report.sections.both_clocks_table import clock_faults, clock_notes, clock_tables
from kteardown.report.sections.by_cpus import galleries_by_cpus
from kteardown.report.sections.cards import cards
from kteardown.report.sections.changes import comparison_table
from kteardown.report.sections.fault_lines import (
    fault_source,
    fault_title,
    reported_faults,
    uncompared_sentences,
)
from kteardown.report.sections.forests import forest_plots, forests
from kteardown.report.sections.growth import growth_galleries
from kteardown.report.sections.profile import flame_gallery
from kteardown.report.sections.published import posted_charts
from kteardown.report.sections.samples import samples_table, spread_gallery, tail_gallery
from kteardown.report.sentence import VariantLine, lines
from kteardown.report.table import Cell, LongTable, Table


@dataclass(frozen=True)
class Section:
    """A section of the page: charts, and tables with the same figures."""

    title: str
    anchor: str
    intro: str = ""
    galleries: Sequence[Gallery] = ()
    tables: Sequence[Table] = ()
    rows: LongTable | None = None
    plots: Sequence[Forest] = ()
    sentences: Sequence[Cell] = ()
    """Shown below the title."""
    notes: Sequence[str] = ()
    """Shown below the sentences."""
    thread: str = ""
    """The address of the discussion of the change on its list."""

    def __bool__(self) -> bool:
        return bool(self.galleries or self.tables or self.plots or self.rows or self.sentences)


NEEDS = ("material",)


def render(publication: Publication) -> str:
    """Return the page of a run."""
    return html_report(publication.run)


def html_report(material: Measured) -> str:
    """Return the whole page."""
    if isinstance(material, BothMaterial):
        return _of_both(material)
    further = contents.further_commands(material.result, alone=True)
    return _page(
        material, list(_sections(material)), lines(material.result, material.workloads), further
    )


def _of_both(both: BothMaterial) -> str:
    """Return the page of a run on both clocks: side by side, then the instruction clock, then the
    other."""
    exact = replace(both.clocks[0], name=both.name)
    wall = both.clocks[1]
    side_by_side = Section(
        "Both clocks",
        "clocks",
        tables=clock_tables(both.both, exact.workloads),
        sentences=clock_faults(both.both),
        notes=clock_notes(both.both, exact.workloads),
    )
    verdict = Section(
        "Verdict",
        "verdict",
        tables=_about_the_run(wall),
        sentences=contents.verdicts(wall),
        notes=limits(wall.result, alone=False),
    )
    sections = [*_sections(exact), *(_of_wall(section) for section in (verdict, *_sections(wall)))]
    whole = lines(both.both, exact.workloads)
    further = [
        command
        for side in (exact, wall)
        for command in contents.further_commands(side.result, alone=False)
    ]
    return _page(
        exact, sections, whole, further, opening=side_by_side, others=wall.result.asked_for
    )


def _page(
    material: Material,
    every: Sequence[Section],
    answer: Sequence[VariantLine],
    further: Sequence[tuple[str, str]],
    *,
    opening: Section | None = None,
    others: Sequence[Comparison] = (),
) -> str:
    """Return the page of ``material`` with these sections, ``opening`` before the verdict.

    ``answer`` are the lines with which it begins; ``further`` are commands that measure more, each
    with what it adds; ``others`` are further comparisons that the filters must know.
    """
    sections = [section for section in every if section]
    result = material.result
    compared = (*result.asked_for, *others)
    named = metrics_in_words(
        result.model_copy(update={"comparisons": compared}), material.workloads
    )
    return page(
        "report.html.j2",
        material=material,
        result=result,
        answer=answer,
        faults=[
            (fault, fault_title(fault), fault_source(fault)) for fault in reported_faults(result)
        ],
        uncompared=uncompared_sentences(result),
        opening=opening,
        cards=cards(material),
        lines=contents.verdicts(material),
        limits=limits(result, alone=opening is None),
        further=further,
        sections=sections,
        variants=variants(result),
        metrics={c.metric: metric_name(material.workloads, c.workload, c.metric) for c in compared},
        verdicts=[v for v in VERDICTS if any(c.verdict == v for c in compared)],
        explained={f"metric-{m.workload}-{m.metric}": m for m in named},  # As ``Group.anchor``.
        environment_tables=_about_the_run(material),
        # The page says by itself what the metrics are.
        facts=[
            fact for fact in contents.facts(result, alone=opening is None) if fact[0] != "metrics"
        ],
        script=asset("report.js"),
    )


def page(template: str, of: tuple[str, str] = ("kteardown.report", "page"), **values: Any) -> str:
    """Return a page that needs no other file, from one of the templates of pages and its
    ``values``.

    ``of``: the package and the folder of the template.
    """
    # Sentences have options for a terminal. Here the commands of the last section have them
    # instead.
    environment = templates(
        *of,
        keep_trailing_newline=True,
        finalize=lambda value: without_options(value) if type(value) is str else value,
    )
    # All blocks of a table next to each other; the page scrolls if they are too wide.
    environment.filters["whole"] = lambda table: table.cut(10**6, 1)[0]
    # Words in backquotes are code.
    environment.filters["prose"] = lambda text: Markup(
        re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(without_options(text))))
    )
    environment.filters["drawing"] = lambda chart: Markup(markup(chart.drawn))
    environment.globals |= {
        "theme": stylesheet(),
        "symbols": (
            '<svg width="0" height="0" class="defs" '
            f'aria-hidden="true">{asset("symbols.svg")}</svg>'
        ),
        "style": verdict_rules() + asset("charts.css") + asset("report.css"),
    }
    return environment.get_template(template).render(values)


def _of_wall(section: Section) -> Section:
    """Return a section under names of its own, for a page that has the same one of the other
    clock."""
    galleries = tuple(
        replace(gallery, name=f"wall-{gallery.name}") for gallery in section.galleries
    )
    title = f"{section.title}, wall clock"
    anchor = f"wall-{section.anchor}"
    return replace(section, title=title, anchor=anchor, galleries=galleries)


def all_charts(material: Material) -> list[Chart]:
    """Return every chart of the page as a figure, in the page's order."""
    galleries = [gallery for section in _sections(material) for gallery in section.galleries]
    every = (
        *forests(material),
        *(chart for gallery in galleries for chart in gallery.charts.values()),
    )
    return list({chart.name: chart for chart in every}.values())


def _sections(material: Material) -> Iterator[Section]:
    tables = contents.tables(material)
    message_id = material.reference.source.message_id if material.reference else ""
    shown: dict[str, dict[str, Any]] = {
        "changes": {
            "rows": comparison_table(material) if material.result.asked_for else None,
            "plots": forest_plots(material),
        },
        "growth": {"galleries": growth_galleries(material)},
        "posting": {
            "galleries": [
                _single_chart(chart) for pair in posted_charts(material) for chart in pair
            ],
            "thread": f"https://lore.kernel.org/all/{quote(message_id, safe='@')}/"
            if message_id
            else "",
        },
        "samples": {
            "galleries": _if_any(spread_gallery(material)),
            "rows": samples_table(material) if material.evidence.samples else None,
        },
        "tail": {"galleries": _if_any(tail_gallery(material))},
        "patches": {
            "galleries": [_single_chart(chart, of.metric) for of, chart in waterfalls(material)]
        },
        "sharing": {"galleries": galleries_by_cpus(material)},
        "profile": {"galleries": _if_any(flame_gallery(material))},
    }
    for anchor, words in WORDS["sections"].items():
        yield Section(
            words["title"], anchor, words["intro"], tables=tables.get(anchor, []), **shown[anchor]
        )


def _if_any(gallery: Gallery | None) -> list[Gallery]:
    return [gallery] if gallery else []


def _about_the_run(material: Material) -> list[Table]:
    result = material.result
    workloads = material.workloads
    further = (
        *contents.other_metrics(result, workloads),
        *contents.outliers_table(result, workloads),
    )
    return [*further, contents.kernels_table(result)]


def _single_chart(chart: Chart, metric: str = "") -> Gallery:
    return Gallery(chart.name, (), {(): chart}, (), metric)
