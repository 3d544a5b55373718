"""Lower and upper bounds of a query's measures, for releases whose rows are the original's (rewriting.md of the docs).

Hard bounds (confidence 1): each released row adds to a group at least and at most so much, whichever of the possible
values of its cells is the true one. COUNT and SUM add these up; AVG, MIN and MAX follow from the rows that
must and those that may belong to the group, and the least and the most of their values. In a bucket of n rows of which
m qualify by their own columns and c by the permuted ones, between m + c - n and min(m, c) qualify by both (Frechet).

95% intervals (confidence 0.95): of randomized columns a total is a sum over independent rows of weights W with
E[W] = f, the row's true contribution; the sum of W^2 - V, V being the weight of f^2, estimates its variance without
bias (Guo, Ying and Wu 2011, equation 2). Of samples with probability r it is the sum of f^2 (1 - r) / r^2. Made records
carry the error of their counts (`kernels.differential_privacy.count_errors`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.rewrite.compile_query import Steps, of_step, spread_over
from duckdb_anon.rewrite.factors import BucketFactor, ColumnUse, Factor, RandomizedFactor, where_all
from duckdb_anon.rewrite.interval_factor import IntervalFactor
from duckdb_anon.rewrite.linear import too_many, unlisted
from duckdb_anon.rewrite.query.tables import Bounds
from duckdb_anon.rewrite.query.trees import all_of, groups_of, outermost_aggregates, quoted, tree, without_filter
from duckdb_anon.rewrite.reading import Pushed, Reading, cell_name, constants_beside, source_of

NO_BOUNDS = "no bounds: only counts, sums, means and extremes of one table have them"
REACH = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""
OF_MADE = "no bounds: of made records only counts have intervals"
MOST_SETS = 32
_EXTREMES = (exp.Min, exp.Max)
_CERTAIN = (
    *(exp.StddevSamp, exp.VariancePop, exp.Variance, exp.Stddev, exp.StddevPop, exp.LogicalAnd, exp.LogicalOr),
    *(exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Quantile),
)
"""Aggregates without bounds that are exact where the values are."""
_MONOTONE = (exp.Paren, exp.Cast, exp.TryCast, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt)
Ends = tuple[exp.Expr, exp.Expr]


@dataclass(frozen=True)
class Measure:
    """One aggregate.

    Attributes:
        kind: 'count', 'sum', 'avg', 'min' or 'max'.
        value: what is aggregated, None for rows.
        conditions: what a row must satisfy, NULL values left out.
    """

    kind: str
    value: exp.Expr | None
    conditions: tuple[exp.Expr, ...]

    @property
    def filter(self) -> str:
        """FILTER clause, '' without conditions."""
        return _filter([condition.sql("duckdb") for condition in self.conditions])


@dataclass
class FoundBounds:
    """Bounds of output columns, and the steps they are read from.

    Attributes:
        ends: number of the output column to its low and high.
        confidence: number of the output column to their confidence.
        steps: alias to the name of a step with a row for each group: its keys `_k0`, ... and `level`.
        leveled: whether there are several grouping sets, which `level` tells apart.
    """

    ends: dict[int, Ends] = field(default_factory=dict)
    confidence: dict[int, float] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    leveled: bool = False


def read_measure(node: exp.Expr) -> Measure | None:
    """An aggregate that has bounds; None for any other."""
    inner, where = without_filter(node)
    conditions = () if where is None else (where,)
    if any(cast.to.is_type(exp.DType.FLOAT) for cast in all_of(inner, exp.Cast)):
        return None  # sums that SQL rounds to single precision
    if isinstance(inner, exp.CountIf):
        return Measure("count", None, (*conditions, inner.this))
    if not isinstance(inner, (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)) or inner.args.get("expressions"):
        return None
    argument = inner.this
    if isinstance(argument, exp.Distinct):
        if not isinstance(inner, (exp.Min, exp.Max)) or len(argument.expressions) != 1:
            return None
        argument = argument.expressions[0]
    if isinstance(inner, exp.Count):
        plain = argument is None or isinstance(argument, (exp.Star, exp.Literal))
        return Measure("count", None, conditions if plain else (*conditions, _present(argument)))
    return Measure(type(inner).__name__.lower(), argument, (*conditions, _present(argument)))


def bounds_of(r: Reading, steps: Steps, wanted: Bounds) -> tuple[FoundBounds, str]:
    """The bounds of the measures of a SELECT, which is changed, and why one may have none."""
    copy = Reading(r.select.copy(), r.model, r.release, r.original)
    if unlisted(copy, copy.factors(), _EXTREMES):
        return FoundBounds(), NO_BOUNDS
    why = too_many(copy, copy.factors(), _EXTREMES)
    none = OF_MADE if r.model.count_error else NO_BOUNDS
    return (FoundBounds(), f"no bounds: {why}") if why else (_bounds_of(r, steps, wanted), none)


def _bounds_of(r: Reading, steps: Steps, wanted: Bounds) -> FoundBounds:
    found, factors = FoundBounds(leveled=len(r.sets()) > 1), r.factors()
    counted = any(factor.counted for factor in r.model.factors)
    if r.select.args.get("distinct") or counted or not r.preserved or len(r.sets()) > MOST_SETS:
        return found
    if r.model.count_error:
        return found if wanted == "hard" or r.select.args.get("joins") else _of_made_records(r, found)
    inverted = bool(factors) and all(isinstance(factor, RandomizedFactor) for factor in factors)
    sampled = bool(r.model.rate) and not factors
    if not factors and r.model.weight == "1":
        return _exact_bounds(r, found) if r.model.has_original_values else found
    if (inverted and r.model.weight == "1") or sampled:
        return found if wanted == "hard" else _intervals(r, steps, found, factors)
    rows_are_original = r.model.bounded and ((r.model.weight == "1" and r.model.complete) or r.model.missing)
    if not rows_are_original or any(factor.signed for factor in factors):
        return found
    if _reads_one_bucket_factor(r, factors):
        return _exact_bounds(r, found)
    if r.select.args.get("joins"):
        return found
    return _hard_bounds(r, steps, found, factors)


def _reads_one_bucket_factor(r: Reading, factors: Sequence[Factor]) -> bool:
    """Whether only values are read that each bucket holds as a whole, whichever row has which."""
    if len(factors) != 1 or not isinstance(factors[0], BucketFactor) or r.model.missing:
        return False
    return set(r.read) <= set(factors[0].columns) and not r.select.args.get("joins")


def _exact_bounds(r: Reading, found: FoundBounds) -> FoundBounds:
    """An answer that is exact lies between itself and itself."""
    for position, item in enumerate(r.select.expressions):
        nodes = list(outermost_aggregates(item))
        certain = all(_is_certain(node) for node in nodes)
        if nodes and certain and not all_of(item, exp.Window):
            name = exp.column(item.alias_or_name, table="_answers", quoted=True)
            found.ends[position], found.confidence[position] = (name, name), 1.0
    return found


def _of_made_records(r: Reading, found: FoundBounds) -> FoundBounds:
    """Intervals of counts of made records, which carry their error; none of 0. 90% or more were found to hold."""
    error = r.model.count_error
    for position, item in enumerate(r.select.expressions):
        measure = read_measure(item.unalias())
        if measure is None or measure.kind != "count":
            continue
        count = f"_answers.{quoted(item.alias_or_name)}"
        columns = f"pow(({error}).per_column, {len(r.read)})"
        reach = f"{REACH} * sqrt(({error}).factor * pow({count}, ({error}).power) * {columns})"
        found.ends[position] = tuple(
            exp.Var(this=f"case when {count} > 0 then {end} end")
            for end in (f"greatest(0, {count} - {reach})", f"{count} + {reach}")
        )  # type: ignore[assignment]
        found.confidence[position] = 0.9
    return found


def _hard_bounds(r: Reading, steps: Steps, found: FoundBounds, factors: Sequence[Factor]) -> FoundBounds:
    pushed, measures = r.pushed(factors), _measures(r)
    in_buckets = _counts_in_buckets(pushed, measures)
    if in_buckets:
        found.steps["_bucket_bounds"] = steps.add("bucket_bounds", in_buckets[1])
    aliases = {i: "_bucket_bounds" if in_buckets and i in in_buckets[0] else "_bounds" for i, _ in enumerate(measures)}
    if "_bounds" in aliases.values():
        found.steps["_bounds"] = steps.add("bounds", _bounds_of_rows(pushed, steps, measures))
    _fill(r, found, measures, aliases, 1.0)
    return found


def _bounds_of_rows(pushed: Pushed, steps: Steps, measures: Sequence[Measure]) -> str:
    """SELECT of bounds from the possible values of each row."""
    r, rows = pushed.reading, steps.add("possible_rows", _numbered_rows(pushed))
    text, ends = _possible(pushed, steps, rows)
    source = _source(r, steps.add("possible", text))
    texts = []
    for level, keys in _levels(r):
        texts.append(_of_groups(r, measures, keys, level, row_cells(measures, keys, source, ends)))
    return _with_open_cells(pushed, " union all ".join(texts), rows, measures)


def _intervals(r: Reading, steps: Steps, found: FoundBounds, factors: Sequence[Factor]) -> FoundBounds:
    """95% intervals of totals and means over inverted channels, or over a sample."""
    pushed = r.pushed(factors)
    measures = [measure for measure in _measures(r) if measure.kind in ("count", "sum", "avg")]
    rows = steps.add("rows", _numbered_rows(pushed))
    joins, columns, share = spread_over(pushed, steps, rows)
    selected = [*(f"g.{quoted(column)}" for column in pushed.carried(r.exact)), *columns]
    selected += ["g._id", "g._records", f"{share} as _share", *["g._rate"] * bool(r.model.rate)]
    text = f"select {', '.join(selected)} from {quoted(rows)} as g {' '.join(joins)}"
    source = _source(r, steps.add("values", text))
    levels = [interval_of_groups(measures, keys, level, source, bool(r.model.rate)) for level, keys in _levels(r)]
    found.steps["_bounds"] = steps.add("intervals", " union all ".join(levels))
    _fill(r, found, measures, dict.fromkeys(range(len(measures)), "_bounds"), 0.95)
    return found


def _measures(r: Reading) -> list[Measure]:
    """The aggregates of output columns that may have bounds."""
    found: dict[Measure, None] = {}
    for projection in r.select.expressions:
        if not all_of(projection, exp.Window, exp.Query, exp.Grouping):
            found.update(
                (m, None) for node in outermost_aggregates(projection) if (m := read_measure(node)) is not None
            )
    return list(found)


def _fill(
    r: Reading, found: FoundBounds, measures: Sequence[Measure], aliases: Mapping[int, str], confidence: float
) -> None:
    """Bounds of output columns from those of their aggregates."""

    def ends_of(node: exp.Expr) -> Ends | None:
        measure = read_measure(node)
        if measure not in measures or measure is None:
            return None
        i = list(measures).index(measure)
        low, high = (exp.Var(this=f"{aliases[i]}.{end}_{i}") for end in ("low", "high"))
        return low, high

    for position, item in enumerate(r.select.expressions):
        nodes = list(outermost_aggregates(item))
        if not nodes or (confidence < 1 and len(nodes) > 1) or all_of(item, exp.Window, exp.Query, exp.Grouping):
            continue
        ends = range_of(item.unalias(), ends_of)
        if ends is not None:
            found.ends[position], found.confidence[position] = ends, confidence


def _levels(r: Reading) -> list[tuple[int, list[exp.Expr | None]]]:
    """Each grouping set: its GROUPING number, and its keys, None for those that are not in it."""
    groups = groups_of(r.select)
    return [
        (
            groups.level_of(keys) if len(groups.sets) > 1 else 0,
            [key if key in keys else None for key in groups.keys],
        )
        for keys in groups.sets
    ]


def _numbered_rows(pushed: Pushed) -> str:
    """SELECT of the released rows that pass the conditions, equal ones together, each with a number."""
    r = pushed.reading
    columns = [f"{r.exact[column]} as {quoted(column)}" for column in pushed.carried(r.exact)]
    columns += [f"{factor.cell} as {cell_name(factor)}" for factor in pushed.factors]
    columns += [f"{r.model.rate} as _rate"] * bool(r.model.rate)
    selected = ", ".join([*columns, "count(*) as _records"])
    grouped = f"select {selected} from {r.release.sql} as r{pushed.where} group by all"
    return f"select row_number() over () as _id, * from ({grouped}) as g"


def _possible(pushed: Pushed, steps: Steps, rows: str) -> tuple[str, dict[str, Ends]]:
    """SELECT of each row's possible values, and the columns that hold the ends of intervals."""
    r = pushed.reading
    selected = [f"g.{quoted(column)}" for column in pushed.carried(r.exact)]
    numbers: dict[str, list[str]] = {"_hits": ["1"], "_total": ["1"]}
    joins: list[str] = []
    ends: dict[str, Ends] = {}
    for factor in pushed.factors:
        possible, needed = of_step(pushed, factor, rows), pushed.needed(factor)
        text = possible.possible(pushed.uses(factor, _EXTREMES), pushed.inside(factor), needed)
        alias = quoted(f"_v_{factor.name}")
        step = quoted(steps.add(f"{factor.name}_possible", text))
        joins.append(f"join {step} as {alias} on g.{cell_name(factor)} is not distinct from {alias}._cell")
        for c in needed:
            selected.append(r.typed(c, f"{alias}.{quoted(c)}"))
            if isinstance(factor, IntervalFactor):
                low, high = (quoted(f"_{end}_{c}") for end in ("low", "high"))
                selected += [f"{alias}.{low}", f"{alias}.{high}"]
                ends[c] = exp.Var(this=f"{quoted(r.alias)}.{low}"), exp.Var(this=f"{quoted(r.alias)}.{high}")
        for number, used in numbers.items():
            used.append(f"{alias}.{number}")
    selected += ["g._id", "g._records"]
    selected += [f"{' * '.join(used)} as {number}" for number, used in numbers.items()]
    return f"select {', '.join(selected)} from {quoted(rows)} as g {' '.join(joins)}", ends


def _source(r: Reading, step: str) -> str:
    """FROM and WHERE of the SELECT with a step in the place of the original."""
    r.item.set("this", exp.to_identifier(step, quoted=True))
    return source_of(r.select).sql("duckdb").strip().removeprefix("SELECT").strip()


def _of_groups(r: Reading, measures: Sequence[Measure], keys: Sequence[exp.Expr | None], level: int, cells: str) -> str:
    """SELECT of the bounds of each group from what each released row adds to it at least and at most."""
    selected = [f"_k{i}" for i, _ in enumerate(keys)] + [f"{level} as level"]
    for i, measure in enumerate(measures):
        low, high = _ends_of_groups(i, measure)
        selected += [f"{low} as low_{i}", f"{high} as high_{i}"]
        if measure.kind in _SURE:
            selected.append(f"{_SURE[measure.kind].format(i=i)} as sure_{i}")
    grouped = [f"_k{i}" for i, key in enumerate(keys) if key is not None]
    return f"select {', '.join(selected)} from ({cells}) as c" + _group_by([*grouped, *_nulls(keys)])


def _with_open_cells(pushed: Pushed, text: str, rows: str, measures: Sequence[Measure]) -> str:
    """Add rows of which anything may be true: cells without ends, and rows that were left out."""
    r, cells = pushed.reading, ((factor, f"g.{cell_name(factor)}") for factor in pushed.factors)
    opened = " or ".join(factor.open_cell(cell) for factor, cell in cells if factor.open_cell(cell))
    more = [f"(select coalesce(sum(_records), 0) from {quoted(rows)} as g where {opened})"] if opened else []
    more += [r.model.missing] if r.model.missing else []
    if not more:
        return text
    number = " + ".join(more)
    selected = [f"_k{i}" for i, _ in enumerate(groups_of(r.select).keys)] + ["level"]
    for i, measure in enumerate(measures):
        if measure.kind == "count":
            selected += [f"low_{i}", f"high_{i} + {number} as high_{i}"]
        else:
            # a group of such rows alone has an extreme of any value
            chosen = {"min": "high", "max": "low"}.get(measure.kind)
            for end in ("low", "high"):
                otherwise = f" else sure_{i}" if end == chosen else ""
                selected.append(f"case when {number} = 0 then {end}_{i}{otherwise} end as {end}_{i}")
    return f"select {', '.join(selected)} from ({text}) as b"


def _counts_in_buckets(pushed: Pushed, measures: Sequence[Measure]) -> tuple[set[int], str] | None:
    """Numbers of counts with Frechet bounds, and their SELECT; None unless conditions are of one side each."""
    r, factor = pushed.reading, next(iter(pushed.factors), None)
    several = len(pushed.factors) != 1 or r.model.missing or r.select.args.get("where")
    if several or not isinstance(factor, BucketFactor):
        return None
    counts = {
        i: _two_sides(r, measure.conditions, factor) for i, measure in enumerate(measures) if measure.kind == "count"
    }
    sides = {i: both for i, both in counts.items() if both is not None}
    keys = groups_of(r.select).keys
    if not sides or any(_side(r, key, factor) is None for key in keys):
        return None
    uses = {c: ColumnUse(every_value=True) for c in factor.columns if c in r.read}
    size = f"select {factor.cell} as _cell, count(*) as n from {r.release.sql} as r group by all"
    inside = pushed.inside(factor)
    texts = []
    for level, chosen in _levels(r):
        rows, values = ["_cell"], ["_cell"]
        for i, key in enumerate(chosen):
            if key is not None and _side(r, key, factor) == "factor":
                values.append(f"{r.plain(key)} as _k{i}")
            elif key is not None:
                rows.append(f"{r.over_row(key)} as _k{i}")
        grouped = [_group_by([str(n + 1) for n, _ in enumerate(side)]) for side in (rows, values)]
        for i, (local, permuted) in sides.items():
            rows.append(f"count(*){_filter([r.over_row(node) for node in local])} as m_{i}")
            values.append(f"sum(_share){_filter([r.plain(node) for node in permuted])} as c_{i}")
        rows[0] = f"{factor.cell} as _cell"
        of_rows = f"select {', '.join(rows)} from {r.release.sql} as r{pushed.where}{grouped[0]}"
        listed = f"({factor.listing(uses)}) as l{where_all(inside)}"
        of_values = f"select {', '.join(values)} from {listed}{grouped[1]}"
        selected = [f"_k{i}" if key is not None else f"null as _k{i}" for i, key in enumerate(chosen)]
        selected.append(f"{level} as level")
        for i in sides:
            c = f"coalesce(round(c_{i} * n), 0)"
            selected.append(f"coalesce(sum(greatest(m_{i} + {c} - n, 0)), 0) as low_{i}")
            selected.append(f"coalesce(sum(least(m_{i}, {c})), 0) as high_{i}")
        last = _group_by([f"_k{i}" for i, key in enumerate(chosen) if key is not None])
        texts.append(
            f"select {', '.join(selected)} from ({of_rows}) as r join ({of_values}) as v "
            "on r._cell is not distinct from v._cell "
            f"join ({size}) as s on r._cell is not distinct from s._cell{last}"
        )
    return set(sides), " union all ".join(texts)


def _side(r: Reading, node: exp.Expr, factor: Factor) -> str | None:
    """Whether an expression reads 'exact' columns or those of a 'factor' alone; None for any other."""
    if all_of(node, exp.Query):
        return None
    sides = {"factor" if column.name in factor.columns else "exact" for column in all_of(node, exp.Column)}
    return next(iter(sides), "exact") if len(sides) < 2 else None


def _two_sides(
    r: Reading, conditions: Sequence[exp.Expr], factor: Factor
) -> tuple[list[exp.Expr], list[exp.Expr]] | None:
    """Conditions on a row's own columns, and those on the permuted ones; None where one reads both."""
    parts = [
        piece
        for condition in conditions
        for piece in (condition.flatten() if isinstance(condition, exp.And) else [condition])
    ]
    sides = [_side(r, part, factor) for part in parts]
    if None in sides:
        return None
    return tuple(
        [node for node, side in zip(parts, sides, strict=True) if side == name] for name in ("exact", "factor")
    )  # type: ignore[return-value]


def row_cells(
    measures: Sequence[Measure], keys: Sequence[exp.Expr | None], source: str, ends: Mapping[str, Ends]
) -> str:
    """SELECT of what each released row adds to each group: fewest_i, most_i rows, least_i to greatest_i a value."""
    selected = ["_id", "any_value(_records) as n", "any_value(_total) as total", *_key_columns(keys)]
    for i, measure in enumerate(measures):
        selected.append(f"coalesce(sum(_hits){measure.filter}, 0) as hits_{i}")
        selected += _least_and_greatest(i, measure, ends)
    cells = f"select {', '.join(selected)} {source}{_group_by(['_id', *_named(keys), *_nulls(keys)])}"
    added = []
    for i, measure in enumerate(measures):
        added += [f"(hits_{i} = total)::integer as fewest_{i}", f"(hits_{i} > 0)::integer as most_{i}"]
        if measure.kind == "sum":
            for end in ("least", "greatest"):
                value = f"{end}_{i}"
                added.append(
                    f"case when hits_{i} = total then {value} when hits_{i} > 0 then {end}({value}, 0) end "
                    f"as {end}_total_{i}"
                )
    return f"select *, {', '.join(added)} from ({cells}) as c"


def _least_and_greatest(i: int, measure: Measure, ends: Mapping[str, Ends]) -> list[str]:
    if measure.value is None:
        return []
    corners = ", ".join(_corners(measure.value, ends))
    return [
        f"min(least({corners})){measure.filter} as least_{i}",
        f"max(greatest({corners})){measure.filter} as greatest_{i}",
    ]


_SURE = {
    "min": "min(greatest_{i}) filter (where fewest_{i} > 0)",
    "max": "max(least_{i}) filter (where fewest_{i} > 0)",
}
"""The bound of an extreme by the rows that are surely in the group."""


def _ends_of_groups(i: int, measure: Measure) -> Ends | tuple[str, str]:
    """Low and high of one aggregate in a group, from what each row adds."""
    may, must = f"most_{i} > 0", f"fewest_{i} > 0"
    if measure.kind == "count":
        return f"coalesce(sum(n * fewest_{i}), 0)", f"coalesce(sum(n * most_{i}), 0)"
    low, high = f"min(least_{i}) filter (where {may})", f"max(greatest_{i}) filter (where {may})"
    if measure.kind == "min":
        return low, f"coalesce({_SURE['min'].format(i=i)}, {high})"
    if measure.kind == "max":
        return f"coalesce({_SURE['max'].format(i=i)}, {low})", high
    if measure.kind == "sum":
        low, high = f"sum(n * least_total_{i})", f"sum(n * greatest_total_{i})"
    elif measure.kind == "avg":
        low, high = (_mean(i, end, may, must) for end in ("least", "greatest"))
    low, high = (f"case when isfinite(({end})::double) then {end} end" for end in (low, high))
    return low, high


def _mean(i: int, end: str, may: str, must: str) -> str:
    """The least (or greatest) mean of any rows that hold all that must qualify.

    With S and n the sum and number of the must rows, m the least value of the c others that may qualify: a mean of k of
    them is at least (S + k m) / (n + k), which is monotone in k, so it is least at k = 0 or at k = c.
    """
    furthest = "min" if end == "least" else "max"
    others = f"{may} and not {must}"
    surely, doubtful = (f"coalesce(sum(n) filter (where {node}), 0)" for node in (must, others))
    summed = f"sum(n * {end}_{i}::double) filter (where {must})"
    far = f"{furthest}({end}_{i}) filter (where {others})"
    return (
        f"{end}({summed} / nullif({surely}, 0), (coalesce({summed}, 0) + {doubtful} * coalesce({far}, 0)) "
        f"/ nullif({surely} + {doubtful}, 0))"
    )


def interval_of_groups(
    measures: Sequence[Measure], keys: Sequence[exp.Expr | None], level: int, source: str, sampled: bool
) -> str:
    """SELECT of the keys, `level`, and the 95% interval of each total or mean."""
    cells = ["_id", "any_value(_records) as n", *_key_columns(keys), *["any_value(_rate) as rate"] * sampled]
    for i, measure in enumerate(measures):
        value = "1" if measure.value is None else f"({measure.value.sql('duckdb')})::double"
        cells += [
            f"coalesce(sum(_share * {value}){measure.filter}, 0) as w_{i}",
            f"coalesce(sum(_share * {value} * {value}){measure.filter}, 0) as v_{i}",
            f"coalesce(sum(_share){measure.filter}, 0) as c_{i}",
        ]
    selected = [f"_k{i}" for i, _ in enumerate(keys)] + [f"{level} as level"]
    scale = "/ rate" if sampled else ""
    for i, measure in enumerate(measures):

        def product(a: str, b: str, both: str) -> str:
            """The sum of the covariances of two totals' rows."""
            term = f"{a} * {b} * (1 - rate) / (rate * rate)" if sampled else f"({a} * {b} - {both})"
            return f"sum(n * {term})"

        w, v, c = (f"{name}_{i}" for name in "wvc")
        middle, variance = f"sum(n * {w} {scale})", product(w, w, v)
        one_row = "0" if sampled else f"case when {variance} > 1e-6 then max({w} * {w}) else 0 end"
        if measure.kind == "avg":
            count = f"sum(n * {c} {scale})"
            one_row = "0"
            middle = f"({middle} / {count})"
            variance = (
                f"({variance} - 2 * {middle} * {product(w, c, w)} + {middle} * {middle} * {product(c, c, c)}) "
                f"/ ({count} * {count})"
            )
        # a value that no row is estimated to have may still be that of one
        reach = f"{REACH} * sqrt(greatest({variance} + {one_row}, 0))"
        selected += [f"{middle} - {reach} as low_{i}", f"{middle} + {reach} as high_{i}"]
    inner = f"select {', '.join(cells)} {source}{_group_by(['_id', *_named(keys), *_nulls(keys)])}"
    return f"select {', '.join(selected)} from ({inner}) as c{_group_by([f'_k{i}' for i, _ in enumerate(keys)])}"


def range_of(node: exp.Expr, ends_of: Callable[[exp.Expr], Ends | None]) -> Ends | None:
    """Ends of an expression by interval arithmetic; None where a part has none."""
    found = ends_of(node)
    if found is not None:
        return found
    if not any(True for _ in outermost_aggregates(node)):
        return node, node
    if isinstance(node, _MONOTONE):
        inner = range_of(node.this, ends_of)
        return None if inner is None else tuple(_with(node, "this", end) for end in inner)  # type: ignore[return-value]
    if isinstance(node, exp.Coalesce) and not any(
        list(outermost_aggregates(projection)) for projection in node.expressions
    ):
        inner = range_of(node.this, ends_of)
        return None if inner is None else tuple(_with(node, "this", end) for end in inner)  # type: ignore[return-value]
    if isinstance(node, exp.Neg):
        inner = range_of(node.this, ends_of)
        return None if inner is None else (_with(node, "this", inner[1]), _with(node, "this", inner[0]))
    if not isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        return None
    left, right = range_of(node.this, ends_of), range_of(node.expression, ends_of)
    if left is None or right is None:
        return None
    corners = [
        _with(_with(node, "this", exp.Paren(this=a)), "expression", exp.Paren(this=b)).sql("duckdb")
        for a, b in itertools.product(left, right)
    ]
    ends = [f"{function}({', '.join(dict.fromkeys(corners))})" for function in ("least", "greatest")]
    if isinstance(node, exp.Div):
        zero = " and ".join(f"{end.sql('duckdb')} > 0" for end in right)
        ends = [f"case when {zero} then {end} end" for end in ends]
    return exp.Var(this=f"({ends[0]})"), exp.Var(this=f"({ends[1]})")


def _with(node: exp.Expr, key: str, value: exp.Expr) -> exp.Expr:
    made = node.copy()
    made.set(key, value.copy())
    return made


def _corners(value: exp.Expr, ends: Mapping[str, Ends]) -> list[str]:
    """SQL of a value that is linear in each column, at every combination of their ends; conditions stay as they are."""
    columns = [
        column for column in all_of(value, exp.Column) if column.name in ends and constants_beside(column) is None
    ]
    names = sorted({column.name for column in columns})
    corners = []
    for chosen in itertools.product((0, 1), repeat=len(names)):
        holder = exp.Paren(this=value.copy())
        for node in all_of(holder, exp.Column):
            if node.name in names and constants_beside(node) is None:
                node.replace(ends[node.name][chosen[names.index(node.name)]].copy())
        corners.append(holder.sql("duckdb"))
    return corners


def _is_certain(node: exp.Expr) -> bool:
    """Whether an aggregate of exact values is exact."""
    inner = without_filter(node)[0]
    inner = inner.this if isinstance(inner, exp.WithinGroup) else inner
    return isinstance(inner, _CERTAIN) or read_measure(node) is not None


def _key_columns(keys: Sequence[exp.Expr | None]) -> list[str]:
    return [f"{key.sql('duckdb') if key is not None else 'null'} as _k{i}" for i, key in enumerate(keys)]


def _named(keys: Sequence[exp.Expr | None]) -> list[str]:
    return [f"_k{i}" for i, key in enumerate(keys) if key is not None]


def _nulls(keys: Sequence[exp.Expr | None]) -> list[str]:
    return [f"_k{i}" for i, key in enumerate(keys) if key is None]


def _group_by(names: Sequence[str]) -> str:
    return f" group by {', '.join(names)}" if names else ""


def _filter(conditions: Sequence[str]) -> str:
    return f" filter ({where_all(conditions).strip()})" if conditions else ""


def _present(value: exp.Expr) -> exp.Expr:
    return tree("{x} is not null", x=value)
