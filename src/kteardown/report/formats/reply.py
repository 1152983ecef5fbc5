"""The text to paste below a quoted patch: what was measured and on what, the figures with their
intervals, what they do not say, and how to repeat it.

Plain ASCII text of at most 72 columns, without a greeting and without a judgement of anybody's
work. Its readers do not know kteardown: it explains each word that is not of the kernel. The
command that repeats the run continues on further lines, as a shell reads it. Names that are longer
than a line are not broken.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

from kteardown.judge.metrics import metric_name
from kteardown.patches.given import commit_range, message_id
from kteardown.report.contents import as_sentence, facts, limits
from kteardown.report.formats.cover import WIDTH, layout, quoted_logs, said_lines, wrapped
from kteardown.report.formatting import counted
from kteardown.report.material import BothMaterial, Material, Measured
from kteardown.report.publication import Publication
from kteardown.report.sections.both_clocks_table import (
    clock_faults,
    least_seen,
    rate_sentences,
)
from kteardown.report.sections.fault_lines import fault_lines
from kteardown.report.sections.mail_both_clocks import (
    clock_averages,
    clock_mail_tables,
    readings_legend,
)
from kteardown.report.sections.mail_tables import (
    ROWS,
    TABLES,
    MailTable,
    chosen,
    definitions,
    figures,
    legend,
    other_metrics,
    table_of,
)
from kteardown.report.sections.setup import base_sentence, figures_sentence, kernel_lines, method
from kteardown.report.table import Table
from kteardown.visible import on_one_line

NEEDS = ("material",)
_SUBJECTS = 12
"""So many subjects of a series are named."""
_OTHERS = 4
"""So many of the other metrics are named."""
_LOST = 3
_OF_THE_HOST = re.compile(r"--(json|markdown|comment|junit|report|jobs)(=.*)?")
"""Options that concern the host where the command ran, and no figure."""
_LOCAL_PATH = re.compile(
    r"(?<![^=:,])(?:(?:~|\.\.?)?/[^@,]*|[^@,=:]+\.(?:patch|diff|mbox|mbx|eml)(?![^,]))"
)
"""A path that need not exist where the command is repeated; of a patch, one of the current folder,
too."""
_OF_THE_LAB = re.compile(
    r"trials could not be used; the report|^(The agent recorded|No trial of workload) "
)
"""What a reply says in other words, and notes for who runs the measurement."""


def render(publication: Publication) -> str:
    """Return the whole text, with a newline at the end."""
    material = publication.run
    failed = _failures(material)
    parts = [
        *map(wrapped, _warnings(material)),
        wrapped(_opening(material)),
        _kernels(material),
        *map(wrapped, _methods(material)),
        said_lines(material),
        "\n".join(wrapped(text, "- ") for text in failed),
        *quoted_logs(material),
        *_figures(material),
        _listed("What this does not say:", _limits(material, failed)),
        _repeat(material.result.command),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _opening(material: Measured) -> str:
    """Return what measured, and what the workloads do."""
    version = on_one_line(material.clocks[0].version)
    summaries = [on_one_line(workload.summary) for workload in material.workloads.values()]
    text = "; ".join(summary.rstrip(".") for summary in summaries)
    return (
        f"Measured with kteardown{f' {version}' if version else ''}, which boots each kernel in "
        f"QEMU and runs the same workload in it: {text}{'' if text.endswith('?') else '.'}"
    )


def _kernels(material: Measured) -> str:
    """Return what base is, and what each variant is, with the subjects of its patches."""
    texts = [wrapped(base_sentence(material.result))]
    for text, subjects in kernel_lines(material.result):
        shown = subjects[:_SUBJECTS]
        if len(subjects) > _SUBJECTS:
            shown.append(f"and {len(subjects) - _SUBJECTS} more patches")
        texts += [wrapped(text), *(wrapped(subject, "  ") for subject in shown)]
    return "\n".join(texts)


def _methods(material: Measured) -> list[str]:
    """Return how the figures were made: of both clocks that of each, and then what is the same."""
    methods = list(map(method, material.clocks))
    of_figures = list(map(figures_sentence, material.clocks))
    together = [f"{text} {figure}" for text, figure in zip(methods, of_figures, strict=True)]
    if not isinstance(material, BothMaterial):
        return together
    is_same = len({*of_figures}) == 1
    exact, wall = methods if is_same else together
    return [f"Instruction clock: {exact}", f"Wall clock: {wall}", *of_figures[:is_same]]


def _warnings(material: Measured) -> Iterator[str]:
    """Yield why the figures are not those of a comparison that is finished."""
    results = [clock_material.result for clock_material in material.clocks]
    left = sum(result.boots_left for result in results)
    if any(result.unfinished for result in results):
        boots = f" ({counted(left, 'boot')} left)" if left else ""
        yield f"The measurement is not finished{boots}; all of this can change."
    if not material.result.requested:
        yield "Only base was measured, and no patch."
    elif not any(result.asked_for for result in results):
        yield "Nothing could be compared with base."


def _failures(material: Measured) -> list[str]:
    if isinstance(material, BothMaterial):
        return [cell.text for cell in clock_faults(material.both)]
    return [cell.text for cell in fault_lines(material.result)]


def _figures(material: Measured) -> Iterator[str]:
    """Yield the tables with what explains them, and what the other metrics did."""
    if isinstance(material, BothMaterial):
        of_clocks = [
            item
            for clock_material in material.clocks
            for item in figures(clock_material.result, clock_material.workloads)
        ]
        yield _listed("What the words mean:", definitions(of_clocks))
        yield _listed("On average:", clock_averages(material.both, material.workloads))
        tables = clock_mail_tables(material.both, material.workloads, TABLES, ROWS[TABLES])
        yield from map(_laid_out, tables)
        yield wrapped(readings_legend(material.both, material.workloads, tables))
        return
    shown, others = chosen(figures(material.result, material.workloads))
    yield _listed("What the words mean:", definitions([*shown, *others]))
    for item in shown:
        yield _laid_out(table_of(item, WIDTH, ROWS[len(shown)]))
    rest = [f"{item.title}: {item.over_all}" for item in others if item.over_all]
    yield _listed("Metrics without a table, on average:", rest)
    further = other_metrics(material.result, material.workloads, _OTHERS)
    yield _listed("Other metrics, the smallest and the largest change:", further)
    yield wrapped(legend(shown)) if shown else ""


def _laid_out(table: MailTable) -> str:
    text = layout(Table(table.title, table.block))
    return "\n".join([text, *map(wrapped, table.notes)])


def _listed(title: str, texts: Sequence[str]) -> str:
    """Return a list under its title; empty without items."""
    items = [wrapped(text, "- ") for text in dict.fromkeys(texts)]
    return "\n".join([title, *items]) if items else ""


def _limits(material: Measured, failed: Sequence[str]) -> list[str]:
    """Return what the figures do not show, without what the text has said before."""
    texts: list[str] = []
    for clock_material in material.clocks:
        (_, *of_clock) = limits(clock_material.result, alone=False)
        texts += of_clock
        if _has_several_cpus(clock_material):
            texts.append(
                "The CPUs of the guest run in turn, so this is one interleaving, and not what as "
                "many processors do at once"
            )
        # Of points that could not be compared the reasons are said.
        texts += [] if failed else _lost_trials(clock_material)
    if isinstance(material, BothMaterial):
        pair = [least_seen(material.both, material.workloads)]
        pair += rate_sentences(material.both, material.workloads)
        texts += [as_sentence(text) for text in (*pair, *material.both.notes) if text]
    texts.append("The workload is made for this path; how often systems take it was not measured")
    said = {text.rstrip(".") for text in failed}
    return [
        f"{_with_names(text, material).rstrip('.')}."
        for text in texts
        if text.rstrip(".") not in said and not _OF_THE_LAB.search(text)
    ]


def _has_several_cpus(material: Material) -> bool:
    plan = material.plan
    return plan is not None and plan.cpus > 1 and material.result.clock == "instructions"


def _lost_trials(material: Material) -> list[str]:
    lines = [text for name, text in facts(material.result) if name == "unusable trials"]
    return [*lines[:_LOST], *["more trials were lost"] * (len(lines) > _LOST)]


def _with_names(text: str, material: Measured) -> str:
    """Return a text in which metrics have their names and not their keys."""
    for workload in material.workloads.values():
        for key in workload.metrics:
            if key in text:
                name = metric_name(material.workloads, workload.name, key)
                text = re.sub(rf"\b{re.escape(key)}\b", name.replace("\\", r"\\"), text)
    return text


def _repeat(command: str) -> str:
    """Return the command without what concerns only the host where it ran; of a file there, its
    name."""
    try:
        words = shlex.split(on_one_line(command))
    except ValueError:
        return f"To repeat it, with kteardown:\n\n  {on_one_line(command)}"
    kept: list[str] = []
    files: list[str] = []
    is_patch = False
    for n, word in enumerate(words):
        # What follows the verb is a patch; after the first option it may be the option's value.
        is_option = word.startswith("-") and word != "-"
        is_patch = words[1:2] == ["try"] and (n == 2 or is_patch) and not is_option
        if kept and kept[-1] == "":
            kept.pop()
            continue
        if option := _OF_THE_HOST.fullmatch(word):
            kept += [] if option[2] else [""]
            continue
        shown, names = _without_folders(word, is_patch=is_patch)
        kept.append(shown)
        files += names
    text = f"To repeat it, with kteardown:\n\n  {_command_lines(list(filter(None, kept)))}"
    files = list(dict.fromkeys(files))
    named = ", ".join(files)
    rest = "is not part of kteardown; ask for it" if len(files) == 1 else "are not part of it"
    piped = "The patches that came on standard input (-) are not part of kteardown; ask for them."
    sentences = [f"{named} {rest}."] * bool(files) + [piped] * ("-" in kept)
    return "\n\n".join([text, *map(wrapped, sentences)])


def _without_folders(word: str, *, is_patch: bool) -> tuple[str, list[str]]:
    """Return a word of a command in which files of its host have their names alone, and these
    names."""
    _, _, value = word.partition("=")
    if word == "-" or message_id(word) or message_id(value):
        return word, []
    if is_patch and not word.startswith("git:") and not commit_range(word):
        name = _name_of(word)
        return name, [name]
    names = [_name_of(match[0]) for match in _LOCAL_PATH.finditer(word)]
    return _LOCAL_PATH.sub(lambda match: _name_of(match[0]), word), names


def _command_lines(words: Sequence[str]) -> str:
    """Return a command on lines that a shell reads as one. An option is on the line of its
    value."""
    groups: list[str] = []
    for word in map(shlex.quote, words):
        if groups and not word.startswith("-") and groups[-1].startswith("-"):
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    lines = [""]
    for group in groups:
        joined = f"{lines[-1]} {group}".lstrip()
        # Two columns are the margin, four more that of a further line, and two the backslash.
        if lines[-1] and len(joined) > WIDTH - 8:
            lines.append(group)
        else:
            lines[-1] = joined
    return " \\\n      ".join(lines)


def _name_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
