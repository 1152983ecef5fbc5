"""The headline comparisons as JUnit XML, which continuous integration shows as tests.

A test case is a headline metric of a variant over all its points, or at one point. It fails where
``--fail-on worse`` does (``analysis.failing``), and if the variant is broken. What was not compared, what is
only suspected to be broken, and a run that is not finished, is an error; what is inconclusive is skipped,
since it is no failure of the patch and no pass either.
"""

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as Xml

from kteardown.analysis.failing import fails
from kteardown.errors import NotBuiltError
from kteardown.model.result import Comparison, MetricVerdict, Verdict
from kteardown.report.formatting import change, point_text, with_remedy
from kteardown.report.material import Material, Measured
from kteardown.report.metrics import Group, headline_rows, metric_sentence, points_of
from kteardown.report.sections.fault_lines import fault_sentence
from kteardown.report.sentence import sentence
from kteardown.visible import visible

_OUTCOMES = ("failure", "error", "skipped")


def render(material: Measured) -> str:
    """Return the XML, with a newline at the end; there is a suite for each clock and workload."""
    return render_all(material.clocks, sentence(material.answer, material.workloads))


def render_all(
    materials: Sequence[Material], answer: str, error: str = "", drifts: Mapping[str, str] | None = None
) -> str:
    """Return the XML of several results, summed up by ``answer``; ``error``: why it is not whole.

    ``drifts`` are failures over several runs, by the name of their test.
    """
    root = Xml.Element("testsuites", name=f"kteardown: {' | '.join(answer.splitlines())}")
    if error:
        case = Xml.Element("testcase", classname="kteardown", name="measures the patch")
        _outcome(case, "error", "not measured", error)
        _suite(root, "kteardown", [case])
    for name, text in (drifts or {}).items():
        case = Xml.Element("testcase", classname="kteardown.drift", name=name)
        _outcome(case, "failure", "drift", text)
        _suite(root, "drifts", [case])
    for material in materials:
        cases: dict[str, list[Xml.Element]] = {}
        for suite, case in _cases(material):
            cases.setdefault(f"{suite} ({material.result.clock})", []).append(case)
        for name, mine in cases.items():
            _suite(root, name, mine)
    _count(root, list(root.iter("testcase")))
    Xml.indent(root)
    return visible(f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n')


def _suite(root: Xml.Element, name: str, cases: Sequence[Xml.Element]) -> None:
    suite = Xml.SubElement(root, "testsuite", name=name)
    _count(suite, cases)
    suite.extend(cases)


def _count(element: Xml.Element, cases: Sequence[Xml.Element]) -> None:
    element.set("tests", str(len(cases)))
    for outcome, name in zip(_OUTCOMES, ("failures", "errors", "skipped"), strict=True):
        element.set(name, str(sum(case.find(outcome) is not None for case in cases)))


def _cases(material: Material) -> Iterator[tuple[str, Xml.Element]]:
    """Yield every test case with the name of its suite."""
    result = material.result
    if result.unfinished:
        case = Xml.Element("testcase", classname="kteardown", name="finishes the run")
        _outcome(case, "error", "not finished", "the run is not finished, and a part of it cannot pass")
        yield "kernels", case
    for variant in result.requested:
        # The test that a variant fails only where base does has the log of the first fault.
        case = Xml.Element("testcase", classname=f"kernels.{variant}", name="fails only where base does")
        faults = [f for f in result.faults if f.kernel == variant and f.status in ("broken", "suspected")]
        for fault in sorted(faults, key=lambda fault: fault.status)[:1]:
            kind = "failure" if fault.status == "broken" else "error"
            _outcome(case, kind, fault.status, fault_sentence(fault)).text = "\n".join(fault.excerpt)
        yield "kernels", case
    for variant in result.not_built:
        case = Xml.Element("testcase", classname=f"kernels.{variant}", name="is in the kernel")
        _outcome(case, "error", "not built", NotBuiltError.of(variant).message)
        yield "kernels", case
    for group, variant, rows, metric in headline_rows(result, material.workloads):
        yield from ((group.workload, case) for case in _of_metric(group, variant, rows, metric))
    for lost in result.uncompared:
        name = point_text(lost.point) or "the only point"
        case = Xml.Element("testcase", classname=f"{lost.workload}.{lost.variant}", name=name)
        _outcome(case, "error", "not compared", lost.reason)
        yield lost.workload, case


def _of_metric(
    group: Group, variant: str, rows: Sequence[Comparison], metric: MetricVerdict | None
) -> Iterator[Xml.Element]:
    about = f"{group.workload}.{group.key}.{variant}"
    if metric is not None and metric.planned > 1:
        case = Xml.Element("testcase", classname=about, name=f"{group.name}, over {points_of(metric)}")
        verdict = "worse" if metric.verdict == "mixed" and fails(metric, rows, "worse") else metric.verdict
        _judge(case, verdict, metric_sentence(group, rows, metric))
        yield case
    for row in rows:
        place = point_text(row.point)
        case = Xml.Element("testcase", classname=about, name=f"{group.name}{f', {place}' if place else ''}")
        reason = f"; {with_remedy(row.reason)}" if row.reason else ""
        _judge(case, row.verdict, f"{variant}: {row.verdict}: {change(row)}{reason}")
        yield case


def _judge(case: Xml.Element, verdict: Verdict, text: str) -> None:
    if verdict in ("broken", "worse"):
        _outcome(case, "failure", verdict, text)
    elif verdict == "inconclusive":
        _outcome(case, "skipped", verdict, text)
    else:
        Xml.SubElement(case, "system-out").text = text


def _outcome(case: Xml.Element, name: str, kind: str, text: str) -> Xml.Element:
    about = {} if name == "skipped" else {"type": kind}
    return Xml.SubElement(case, name, {"message": text, **about})
