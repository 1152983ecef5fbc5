"""The answer as JUnit XML, which continuous integration shows as tests.

A test case is a headline metric of a variant over all its points, or at one point. It fails where
the answer does (``judge.answer``). What was not compared, what is only suspected to be broken, and
a run that is not finished, is an error; what is unsure is skipped, since it is no failure of the
patch and no pass either.
"""

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as Xml

from kteardown.errors import NotBuiltError
from kteardown.judge.answer import MetricAnswer, VariantAnswer
from kteardown.judge.verdicts import OUTCOME_OF, Outcome
from kteardown.report.formatting import change, point_text, with_remedy
from kteardown.report.metrics import metric_sentence, points_text
from kteardown.report.publication import Publication
from kteardown.report.sections.fault_lines import fault_sentence

_ELEMENTS: Mapping[Outcome, str] = {"broken": "failure", "fail": "failure", "unsure": "skipped"}
"""The element of a case by its outcome; a case that passes has none."""
_TYPES: Mapping[Outcome, str] = {"fail": "worse"}
_COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


NEEDS = ("answers",)


def render(publication: Publication) -> str:
    """Return the XML, with a newline at the end; there is a suite for each clock and workload."""
    root = Xml.Element(
        "testsuites", name=f"kteardown: {' | '.join(publication.headline.splitlines())}"
    )
    if publication.unmeasured:
        case = Xml.Element("testcase", classname="kteardown", name="measures the patch")
        _add(case, "error", "not measured", publication.unmeasured)
        _suite(root, "kteardown", [case])
    for name, text in publication.drifts.items():
        case = Xml.Element("testcase", classname="kteardown.drift", name=name)
        _add(case, "failure", "drift", text)
        _suite(root, "drifts", [case])
    if not publication.answers and not publication.unmeasured and not publication.drifts:
        case = Xml.Element("testcase", classname="kteardown", name=publication.headline)
        _suite(root, "kteardown", [case])
    for answer in publication.answers:
        suites: dict[str, list[Xml.Element]] = {}
        for variant in answer.variants:
            for suite, case in _cases(variant):
                suites.setdefault(suite, []).append(case)
        for name, cases in suites.items():
            _suite(root, name, cases)
    _count(root, list(root.iter("testcase")))
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _suite(root: Xml.Element, name: str, cases: Sequence[Xml.Element]) -> None:
    suite = Xml.SubElement(root, "testsuite", name=name)
    _count(suite, cases)
    suite.extend(cases)


def _count(element: Xml.Element, cases: Sequence[Xml.Element]) -> None:
    element.set("tests", str(len(cases)))
    for name, count in _COUNTS.items():
        element.set(count, str(sum(case.find(name) is not None for case in cases)))


def _cases(variant: VariantAnswer) -> Iterator[tuple[str, Xml.Element]]:
    """Yield every test case of a variant with the name of its suite."""
    about = f"kernels.{variant.name}"
    if variant.is_unfinished:
        case = Xml.Element("testcase", classname=about, name="finishes the run")
        _add(case, "error", "not finished", "the run is not finished, and a part of it cannot pass")
        yield "kernels", case
    # The test that a variant fails only where base does has the log of the first fault.
    case = Xml.Element("testcase", classname=about, name="fails only where base does")
    for _, fault in (*variant.with_status("broken"), *variant.with_status("suspected"))[:1]:
        kind = "failure" if fault.status == "broken" else "error"
        _add(case, kind, fault.status, fault_sentence(fault)).text = "\n".join(fault.excerpt)
    yield "kernels", case
    if not variant.is_built:
        case = Xml.Element("testcase", classname=about, name="is in the kernel")
        _add(case, "error", "not built", NotBuiltError.of(variant.name).message)
        yield "kernels", case
        return
    for finding in variant.headlines:
        suite = f"{finding.group.workload} ({finding.clock})"
        yield from ((suite, case) for case in _of_metric(finding))
    for clock, lost in variant.lost:
        name = point_text(lost.point) or "the only point"
        case = Xml.Element("testcase", classname=f"{lost.workload}.{lost.variant}", name=name)
        _add(case, "error", "not compared", lost.reason)
        yield f"{lost.workload} ({clock})", case


def _of_metric(finding: MetricAnswer) -> Iterator[Xml.Element]:
    group = finding.group
    whole = finding.whole
    about = f"{group.workload}.{group.key}.{finding.variant}"
    if whole is not None and whole.planned > 1:
        case = Xml.Element(
            "testcase", classname=about, name=f"{group.name}, over {points_text(whole)}"
        )
        _judge(case, finding.outcome_over_points, metric_sentence(finding))
        yield case
    for point in finding.points:
        place = point_text(point.point)
        case = Xml.Element(
            "testcase", classname=about, name=f"{group.name}{f', {place}' if place else ''}"
        )
        reason = f"; {with_remedy(point.reason)}" if point.reason else ""
        text = f"{finding.variant}: {point.verdict}: {change(point)}{reason}"
        _judge(case, OUTCOME_OF[point.verdict], text)
        yield case


def _judge(case: Xml.Element, outcome: Outcome, text: str) -> None:
    if element := _ELEMENTS.get(outcome):
        _add(case, element, _TYPES.get(outcome, outcome), text)
    else:
        Xml.SubElement(case, "system-out").text = text


def _add(case: Xml.Element, name: str, kind: str, text: str) -> Xml.Element:
    about = {} if name == "skipped" else {"type": kind}
    return Xml.SubElement(case, name, {"message": text, **about})
