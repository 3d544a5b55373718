"""Which queries have a closed form: those that are linear in the rows of the original.

One predicate decides it, from the query and the types of the release, before anything is written; one statement counts
the combinations of values where the types do not bound them. Plausible tables answer the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sqlglot import exp

from duckdb_anon.model.errors import listed
from duckdb_anon.model.release_formats.duckdb_types import is_moment, is_number
from duckdb_anon.rewrite.aggregates import LINEAR, Quantile, read_quantile, several_quantiles
from duckdb_anon.rewrite.factors import Factor, ListFactor
from duckdb_anon.rewrite.interval_factor import IntervalFactor
from duckdb_anon.rewrite.query.prepare import adds_up_groups
from duckdb_anon.rewrite.query.refusals import misspelt, single_row_reason
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import (
    aggregate_nodes,
    all_of,
    columns_of,
    from_items,
    is_original,
    plain,
    reads_original,
    without_filter,
)
from duckdb_anon.rewrite.reading import STRICT, Reading
from duckdb_anon.rewrite.release_model import ReleaseModel

MOST_COMBINATIONS = 10_000_000
"""Rows with values of their cells that a query makes at most: some hundred megabytes."""
_PICKS = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif)


def why_not_linear(query: exp.Query, model: ReleaseModel, release: TableInfo, original: TableInfo) -> str:
    """Why a bound query has no closed form; '' where it has one."""
    if model.person in {column.name for column in all_of(query, exp.Column)}:
        return f"'{model.person}' is not in the release, so individuals are distinguished in plausible tables"
    if _aggregates_groups(query):
        return "the query aggregates groups of the original"
    # conditions are moved in a copy
    for select in [select for select in all_of(query.copy(), exp.Select) if reads_original(select)]:
        reason = _joins(select, original)
        if reason:
            return reason
        reading = Reading(select, model, release, original)
        factors = reading.factors()
        for check in _SHAPES:
            reason = check(reading)
            if reason:
                return reason
        if reading.is_as_released(factors):
            continue
        for check in _ESTIMATES:
            reason = check(reading)
            if reason:
                return reason
        reason = _values(reading, factors)
        if reason:
            return reason
    return ""


def _aggregates_groups(query: exp.Query) -> bool:
    """Whether aggregates depend on which groups of the original exist, which estimates do not say; sums do not."""
    for outer in all_of(query, exp.Select):
        aggregates = [] if reads_original(outer) else list(aggregate_nodes(outer))
        if not aggregates or all(map(adds_up_groups, aggregates)):
            continue
        inner = [select for select in all_of(outer, exp.Select) if select is not outer and reads_original(select)]
        if any(select.args.get("group") for select in inner):
            return True
    return False


def _joins(select: exp.Select, original: TableInfo) -> str:
    items = [source for source in from_items(select) if is_original(source)]
    if len(items) != 1:
        return f"{original.name} is joined with itself: a release does not say which rows belong together"
    joins = select.args.get("joins") or []
    joined = [join for join in joins if join.this is items[0] or join.method == "POSITIONAL"]
    if any(join.method in ("ASOF", "POSITIONAL") for join in joined):
        return f"ASOF and POSITIONAL JOIN take single rows of {original.name}"
    return ""


def _correlation(r: Reading) -> str:
    for column in r.columns:
        inner = column.find_ancestor(exp.Select)
        while inner is not None and inner is not r.select:
            if reads_original(inner):
                return "a subquery of the original is correlated with the original"
            inner = inner.find_ancestor(exp.Select)
    return ""


def _single_rows(r: Reading) -> str:
    reason = single_row_reason(r.select)
    return f"{reason}, and no row of a release is known to be the original's" if reason else ""


def _rows(r: Reading) -> str:
    if r.is_rows:
        of = f"a SELECT of rows of {r.original.name} without an aggregate shows single records"
        return f"{of}{misspelt(r.select)}"
    aggregated = any(True for _ in aggregate_nodes(r.select))
    if not aggregated and any(all_of(projection, exp.Window) for projection in r.select.expressions):
        return "a window function goes through single records"
    return ""


def _presence(r: Reading) -> str:
    """Joins whose rows without a match depend on values that the release does not show."""
    joins = r.select.args.get("joins") or []
    types = {(join.kind or "").upper() for join in joins if join.this is r.item}
    if types & {"SEMI", "ANTI"}:
        return f"{r.original.name} stands on the optional side of {types.pop()} JOIN"
    if r.preserved:
        return ""
    conditions = [join.args["on"] for join in joins if join.args.get("on")]
    selected = {c.name for on in conditions for c in all_of(on, exp.Column) if c.table == r.alias}
    if r.model.weight == "1" and selected <= r.exact.keys():
        return ""
    reads_columns = all(
        columns_of(aggregate, r.alias) and isinstance(without_filter(aggregate)[0], STRICT)
        for aggregate in aggregate_nodes(r.select)
    )
    where = r.select.args.get("where")
    parts = list(where.this.flatten()) if where is not None and isinstance(where.this, exp.And) else []
    parts = parts or ([where.this] if where is not None else [])
    if reads_columns and all(r.rejects_null(part) for part in parts):
        return ""
    return f"{r.original.name} stands on the optional side of an outer join"


def _aggregates(r: Reading) -> str:
    """Aggregates that are neither sums over rows nor one quantile."""
    for node in aggregate_nodes(r.select):
        several = several_quantiles(node)
        if several:
            return several
        quantile = read_quantile(node)
        reason = _quantile(r, quantile) if quantile is not None else _sum(r, without_filter(node)[0])
        if reason:
            return reason
    return ""


def _sum(r: Reading, node: exp.Expr) -> str:
    if isinstance(node, exp.Avg) and _is_moment(node.this.unnest(), r.original):
        return "a mean of dates or times is no ratio of sums"
    if isinstance(node.this, exp.Distinct) or (node.args.get("expressions") and isinstance(node, exp.Count)):
        return f"{plain(node)} counts distinct values"
    return "" if isinstance(node, LINEAR) else f"{plain(node)} is not a sum over rows"


def _quantile(r: Reading, quantile: Quantile) -> str:
    if len(r.sets()) > 1:
        return "the query has quantiles of several grouping sets"
    sources = [r.select.args.get("from_"), *(r.select.args.get("joins") or []), r.select.args.get("where")]
    if any(reads_original(inner) for part in sources if part is not None for inner in all_of(part, exp.Select)):
        return "the query has quantiles of rows that a subquery of the original picks"
    if r.is_correlated():
        return "a correlated subquery has quantiles"
    # values lie between others: numbers that are no decimals, or any where one of them is taken
    value = quantile.value.unnest()
    types = [r.original.types.get(column.name, "") for column in all_of(value, exp.Column)]
    if isinstance(value, exp.Cast):
        types = [value.to.sql("duckdb")]
    if quantile.continuous and not all(is_number(kind) and "DECIMAL" not in kind.upper() for kind in types):
        return "a median of anything but plain numbers has the digits of its type"
    return ""


def _is_moment(node: exp.Expr, original: TableInfo) -> bool:
    """Whether an expression may be a date or a time."""
    if isinstance(node, exp.Column):
        return is_moment(original.types.get(node.name, ""))
    if isinstance(node, exp.Cast):
        return is_moment(node.to.sql("duckdb"))
    passed_on = (exp.Add, exp.Sub, exp.Case, exp.If, *_PICKS)
    return isinstance(node, (exp.DateTrunc, exp.TimestampTrunc)) or (
        isinstance(node, passed_on) and any(_is_moment(one, original) for one in all_of(node, exp.Column, exp.Cast))
    )


def _values(r: Reading, factors: Sequence[Factor]) -> str:
    """Cells whose values cannot be listed, or too many of them."""
    if r.is_of_each_row(factors):
        return ""
    return unlisted(r, factors) or too_many(r, factors)


def unlisted(r: Reading, factors: Sequence[Factor], monotone: tuple[type[exp.Expr], ...] = ()) -> str:
    """Why the values of a cell cannot be listed; '' where all can. The SELECT stays as it is."""
    for factor in factors:
        column = factor.columns[0]
        if isinstance(factor, ListFactor):
            return f"'{column}' is published as lists of hierarchy nodes, which stand for too many lists to go through"
        if isinstance(factor, IntervalFactor) and not factor.discrete and r.use(column, {}, monotone).every_value:
            return f"values of '{column}', intervals of a continuous type, cannot be listed"
    return ""


def too_many(r: Reading, factors: Sequence[Factor], monotone: tuple[type[exp.Expr], ...] = ()) -> str:
    """Why combinations of values are too many to go through; '' where they are not.

    Conditions of the SELECT that one factor decides are taken out of it.
    """
    pushed = r.pushed(factors)
    spelled = [factor for factor in factors if pushed.needed(factor)]
    size = r.release.reader.size() if spelled else None
    if size is None:
        return ""
    limit = max(MOST_COMBINATIONS, 4 * size)

    def number(query: str) -> float:
        return next((float(found or 0) for (found,) in r.release.reader.rows(query) or ()), 0.0)

    uses = {factor.name: pushed.uses(factor, monotone) for factor in spelled}
    most = [factor.most_values(uses[factor.name]) for factor in spelled]
    if all(most):
        product = " * ".join(f"({one})::double" for one in ["count(*)", *most])
        known = size * math.prod(map(int, most)) if all(one.isdecimal() for one in most) else None
        if (number(f"select {product} from {r.release.sql} as r") if known is None else known) <= limit:
            return ""
    cells = ", ".join(f"{factor.cell} as _cell_{k}" for k, factor in enumerate(spelled))
    rows = f"select {cells}, count(*) as _records from {r.release.sql} as r{pushed.where} group by all"
    joins = []
    for k, factor in enumerate(spelled):
        inside = pushed.inside(factor)
        listing = f"from ({factor.values(uses[factor.name], inside, pushed.needed(factor))}) as v"
        numbers = factor.numbers_of_values(listing, uses[factor.name], inside)
        joins.append(f"join ({numbers}) as n{k} on g._cell_{k} is not distinct from n{k}._cell")
    product = " * ".join(f"n{k}.n" for k, _ in enumerate(spelled))
    found = number(f"select coalesce(sum({product}), 0) from ({rows}) as g {' '.join(joins)}")
    if found <= limit:
        return ""
    columns = [column for factor in spelled for column in factor.columns if column in r.read]
    return (
        f"rows of {r.release.name} may stand for {found:,.0f} combinations of values of {listed(columns)}, and at "
        f"most {limit:,.0f} are gone through; ask for fewer of these columns at once"
    )


Check = Callable[[Reading], str]
_SHAPES: tuple[Check, ...] = (_correlation, _single_rows)
_ESTIMATES: tuple[Check, ...] = (_rows, _presence, _aggregates)
"""What a SELECT must pass in order; the second ones where the release changed what it reads."""
