"""Compare two results: of a reviewer and an author, of two machines, or of two revisions.

Comparisons of the same workload, metric and point belong together if their variants do: those of
one name, those that the user names as a pair, and the only variant of each result that the other
does not have. What a revision of a series keeps of the one before is about the headline metrics
that both have, in two results or in one.
"""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from kteardown.errors import InputError
from kteardown.judge.metrics import metric_label
from kteardown.model.clock import value_unit
from kteardown.model.judged import Comparison, Verdict
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Better
from kteardown.report.formatting import point_text
from kteardown.report.revisions import key, recorded_name, revision
from kteardown.report.table import Block, Table
from kteardown.rundir.environment import differences

_KERNEL_FACTS = ("release", "source", "series", "arch", "compiler", "config_hash", "image_hash")
_HASH_DIGITS = 12


class SideValue(BaseModel):
    """The result of one side for one comparison; ``value_unit`` is that of the values it
    compared."""

    base: float
    changed: float
    ratio: float | None
    ci: tuple[float, float] | None
    verdict: Verdict
    value_unit: str

    @property
    def change(self) -> str:
        """Return the change with its interval: ``-61.02% [-61.20, -60.80]``."""
        if self.ratio is None:
            return "-"
        interval = (
            ""
            if self.ci is None
            else " [{:+.2f}, {:+.2f}]".format(*(100 * (x - 1) for x in self.ci))
        )
        return f"{100 * (self.ratio - 1):+.2f}%{interval}"


class ComparedRow(BaseModel):
    """One comparison that both sides have.

    ``agree``: the two intervals overlap; None if a side has no interval. ``base_ratio``: the value
    of base in b / in a, None if the clocks differ or a value is not positive. ``variant_b`` is the
    variant of b, which may have another name. ``name`` is that of the metric in a.
    """

    workload: str
    variant: str
    variant_b: str
    metric: str
    name: str
    unit: str
    better: Better
    statistic: str
    point: dict[str, ParamValue]
    a: SideValue
    b: SideValue
    agree: bool | None
    same_verdict: bool
    base_ratio: float | None


class Difference(BaseModel):
    """Two compared results; each sentence gives the value of a before that of b.

    ``sentence_a`` and ``sentence_b`` are the results in one sentence each, empty if they did not
    record it; ``sentence`` is their difference. ``revisions`` says of each pair of variants with
    different names what the second one keeps of the first.
    """

    a: str
    b: str
    sentence: str
    sentence_a: str
    sentence_b: str
    revisions: tuple[str, ...]
    environment: tuple[str, ...]
    kernels: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def compare_results(
    a: Result,
    b: Result,
    names: tuple[str, str],
    guests: tuple[str, ...] = (),
    given: Mapping[str, str] | None = None,
) -> Difference:
    """Compare ``a`` with ``b``.

    ``guests`` are sentences about differences of their guests, if those are known. ``given`` are
    variants of a with the variant of b that each is compared with. Raises InputError if one of them
    does not exist.
    """
    pairs = _paired(a, b, given or {})
    ours = {
        key(row, pairs.get(row.variant, "")): row for row in a.comparisons if row.variant in pairs
    }
    theirs = {key(row, row.variant): row for row in b.comparisons}
    left = [
        row for row in a.comparisons if key(row, pairs.get(row.variant, row.variant)) not in theirs
    ]
    # Of two variants of one run that are compared, both results have both.
    ours_by_own_name = {key(row, row.variant) for row in a.comparisons}
    right = [row for k, row in theirs.items() if k not in ours and k not in ours_by_own_name]
    arch = a.kernels["base"].arch if "base" in a.kernels else None
    rows = tuple(
        _row(row, theirs[k], recorded_name(a, row), (a.clock, b.clock))
        for k, row in ours.items()
        if k in theirs
    )
    revisions = tuple(
        revision(variant_a, variant_b, a, b)
        for variant_a, variant_b in pairs.items()
        if variant_a != variant_b or variant_a in (given or {})
    )
    conditions = (
        [f"experiment: {a.experiment} / {b.experiment}"] if a.experiment != b.experiment else []
    )
    if a.clock != b.clock:
        conditions.append(f"clock: {a.clock} / {b.clock}, which measure different things")
    return Difference(
        a=names[0],
        b=names[1],
        sentence=f"{'; '.join((*revisions, summary(rows)))}.",
        sentence_a=a.sentence,
        sentence_b=b.sentence,
        revisions=revisions,
        environment=(*conditions, *differences(a.machine, b.machine, arch=arch), *guests),
        kernels=tuple(_kernels(a.kernels, b.kernels, pairs)),
        rows=rows,
        only_a=tuple(_labels(a, left)),
        only_b=tuple(_labels(b, right)),
    )


def summary(rows: Sequence[ComparedRow]) -> str:
    """Return how many comparisons both results have, and how many of them disagree."""
    if not rows:
        return "no comparison is in both results; name variants that belong together with --map A=B"
    disjoint = sum(row.agree is False for row in rows)
    differing = sum(not row.same_verdict for row in rows)
    return (
        f"{len(rows)} comparisons in both results: {disjoint} with disjoint intervals, "
        f"{differing} with different verdicts"
    )


def _paired(a: Result, b: Result, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variants of a with the variant of b that each is compared with."""
    # With those that are parts of an ablation.
    ours, theirs = ([*dict.fromkeys(row.variant for row in side.comparisons)] for side in (a, b))
    for names, has, which in ((given.keys(), ours, "first"), (given.values(), theirs, "second")):
        for name in names:
            if name not in has:
                raise InputError.unknown(
                    f"--map: the {which} result has no variant {name!r}", name, has
                )
    same = {name: name for name in ours if name in theirs and name not in given.values()}
    pairs = same | dict(given)
    left = [name for name in ours if name not in pairs]
    right = [name for name in theirs if name not in pairs.values()]
    if not given and len(left) == len(right) == 1:
        pairs[left[0]] = right[0]
    return pairs


def _kernels(
    a: Mapping[str, KernelFacts], b: Mapping[str, KernelFacts], pairs: Mapping[str, str]
) -> Iterator[str]:
    """Yield what differs between the kernels that are compared, and which kernels only one result
    has."""
    renamed = {name_a: name_b for name_a, name_b in pairs.items() if name_a != name_b}
    for name in dict.fromkeys((*a, *b)):
        name_b = renamed.get(name, name)
        if name not in a or name_b not in b:
            if name in a or name not in renamed.values():
                yield f"{name}: only in {'A' if name in a else 'B'}"
            continue
        label = name
        facts = list(_KERNEL_FACTS)
        if name != name_b:
            # Two names, as of revisions, mean different patches.
            label = f"{name} (A) and {name_b} (B)"
            facts = [fact for fact in facts if fact not in ("series", "image_hash")]
            if a[name].image_hash == b[name_b].image_hash:
                yield f"{label}: the same image"
        for fact in facts:
            sides = [str(getattr(kernel, fact)) for kernel in (a[name], b[name_b])]
            if sides[0] != sides[1]:
                short = [side[:_HASH_DIGITS] if fact.endswith("_hash") else side for side in sides]
                yield (
                    f"{label}: {fact.replace('_', ' ')}: "
                    f"{' / '.join(text or 'none' for text in short)}"
                )


def _row(a: Comparison, b: Comparison, name: str, clocks: tuple[str, str]) -> ComparedRow:
    base_a = a.base.compared
    base_b = b.base.compared
    about = ("workload", "variant", "metric", "unit", "better", "statistic", "point")
    return ComparedRow(
        **{field: getattr(a, field) for field in about},
        variant_b=b.variant,
        name=name,
        a=_side_value(a, clocks[0]),
        b=_side_value(b, clocks[1]),
        agree=None if a.ci is None or b.ci is None else a.ci[0] <= b.ci[1] and b.ci[0] <= a.ci[1],
        same_verdict=a.verdict == b.verdict,
        base_ratio=base_b / base_a
        if clocks[0] == clocks[1] and base_a > 0 and base_b > 0
        else None,
    )


def _side_value(c: Comparison, clock: str) -> SideValue:
    return SideValue(
        base=c.base.compared,
        changed=c.changed.compared,
        ratio=c.ratio,
        ci=c.ci,
        verdict=c.verdict,
        value_unit=value_unit(c.unit, clock),
    )


def _labels(result: Result, rows: Sequence[Comparison]) -> Iterator[str]:
    """Yield a line for each variant and workload: ``V on zombies: freezing user space at 6
    points``."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for row in rows:
        groups.setdefault((row.variant, row.workload), []).append(row)
    for (variant, workload), mine in groups.items():
        metrics = dict.fromkeys(recorded_name(result, row) for row in mine)
        points = list(dict.fromkeys(point_text(row.point) for row in mine))
        place = f"{len(points)} points" if len(points) > 1 else points[0] or "its only point"
        yield f"{variant} on {workload}: {', '.join(metrics)} at {place}"


_AGREE = {True: "overlap", False: "disjoint", None: "-"}


def passages(difference: Difference) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield headings, each with its sentences."""
    yield "environment, A / B", difference.environment or ("no difference that can matter",)
    yield "kernels, A / B", difference.kernels or ("the same",)
    if difference.only_a:
        yield "only in A", difference.only_a
    if difference.only_b:
        yield "only in B", difference.only_b


def comparison_tables(difference: Difference) -> list[Table]:
    """Return a table for each metric and variant that both results have, with a row for each
    point."""
    by_key: dict[tuple[str, ...], list[ComparedRow]] = {}
    for row in difference.rows:
        group_key = (row.workload, row.metric, row.statistic, row.variant, row.variant_b)
        by_key.setdefault(group_key, []).append(row)
    columns = ("point", "A", "verdict of A", "B", "verdict of B", "intervals", "base B / A")
    tables = []
    for rows in by_key.values():
        cells = []
        for row in rows:
            sides = [
                text
                for side in (row.a, row.b)
                for text in (side.change, (side.verdict, side.verdict))
            ]
            levels = None if row.base_ratio is None else f"{row.base_ratio:.3f}"
            cells.append((point_text(row.point), *sides, _AGREE[row.agree], levels))
        first = rows[0]
        variant = rows[0].variant
        if variant != first.variant_b:
            variant = f"{variant} (A) and {first.variant_b} (B)"
        name = f"{first.name} ({metric_label(first.metric, first.statistic)})"
        block = Block.of(columns, cells, ("point", "verdict of A", "verdict of B", "intervals"))
        tables.append(Table(f"{first.workload}: {name}, {variant} against base", block))
    return tables
