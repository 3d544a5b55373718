"""From a query over the original to the same query over one weighted relation made of the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import sqlglot
from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.rewrite.aggregates import LINEAR, Quantile, read_quantile, weighted, weighted_quantile
from duckdb_anon.rewrite.factors import BucketFactor, Factor, GeneralizedFactor, SliceFactor, where_all
from duckdb_anon.rewrite.interval_factor import IntervalFactor
from duckdb_anon.rewrite.likely_groups import Estimated, keep_likely_groups
from duckdb_anon.rewrite.query.parse import grounded
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import (
    SOURCE,
    aggregate_nodes,
    all_of,
    groups_of,
    quoted,
    reads_original,
)
from duckdb_anon.rewrite.reading import Pushed, Reading, cell_name, source_of
from duckdb_anon.rewrite.release_model import ReleaseModel

_ADDITIVE = (exp.Count, exp.CountIf, exp.Sum)


@dataclass
class Steps:
    """CTEs in order.

    Attributes:
        taken: names of tables, folded, that a step must not hide.
        texts: name to SELECT.
    """

    taken: frozenset[str] = frozenset()
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, text: str) -> str:
        """Add a step under a name of its own; an equal one is used twice."""
        for earlier, other in self.texts.items():
            if other == text:
                return earlier
        while name in self.texts or fold(name) in self.taken:
            name += "_"
        self.texts[name] = text
        return name

    def attach(self, query: exp.Query, tables: Sequence[TableInfo], readable: bool, first: bool = False) -> None:
        """Put the steps among those of a query, each after what it reads.

        Args:
            query: changed in place.
            tables: what the steps may read.
            readable: lay the steps out for people; parsing them takes longer than the rest of a plan.
            first: whether the steps read none of the query's.
        """
        with_ = query.args.get("with_") or exp.With(expressions=[])
        written = with_.expressions
        as_they_are = (
            not readable and (first or not written) and not any(SOURCE in text for text in self.texts.values())
        )
        made = [
            exp.CTE(
                this=exp.Var(this=text) if as_they_are else grounded(parsed(text), tables),
                alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)),
                materialized=True,
            )
            for name, text in self.texts.items()
        ]
        if made:
            with_.set("expressions", [*made, *written] if as_they_are else _merged(made, written))
            query.set("with_", with_)


def _merged(steps: Sequence[exp.CTE], written: Sequence[exp.CTE]) -> list[exp.CTE]:
    """Steps and CTEs of a query in one order: each step after what it reads, the query's own in their order."""
    local = {fold(step.alias) for step in written}
    placed: list[exp.CTE] = []
    missing = set(local)
    waiting = list(steps)
    for cte in [*written, None]:
        later = []
        for step in waiting:
            if missing.isdisjoint(fold(table.name) for table in all_of(step.this, exp.Table)):
                placed.append(step)
            else:
                missing.add(fold(step.alias))
                later.append(step)
        waiting = later
        if cte is not None:
            placed.append(cte)
            missing = local - {fold(node.alias) for node in placed}
    return placed


def parsed(text: str) -> exp.Query:
    """A SELECT as a tree."""
    found = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(found, exp.Query)  # noqa: S101 -- steps are SELECTs
    return found


def compile_tree(tree: exp.Query, release: TableInfo, original: TableInfo, model: ReleaseModel, steps: Steps) -> None:
    """Rewrite a bound query over the original, which is linear, into one over the release, in place."""
    for select in [select for select in all_of(tree, exp.Select) if reads_original(select)]:
        if select.root() is tree.root():  # of equal keys one is read
            _compile(Reading(select, model, release, original), steps)


def _compile(r: Reading, steps: Steps) -> None:
    """Rewrite one SELECT in place."""
    factors = r.factors()
    if r.is_as_released(factors):
        _exact(r, steps)
        return
    aggregates = list(aggregate_nodes(r.select))
    carried = {column: sql for column, sql in r.exact.items() if column in r.read}
    if r.is_of_each_row(factors):
        r.exact = {column: f"r.{quoted(column)}" for column in carried}
    pushed, moments = r.pushed(factors), dict[str, str]()
    read = [(aggregate, read_quantile(aggregate)) for aggregate in aggregates]
    groups = None if r.is_correlated() else groups_of(r.select)
    estimates = _weigh(r, [aggregate for aggregate, quantile in read if quantile is None], moments)
    if r.is_of_each_row(factors):
        _relation_of_each_row(pushed, steps, carried, moments)
    else:
        _relation(pushed, steps, moments)
    estimates += _add_quantiles(r, steps, [(node, quantile) for node, quantile in read if quantile is not None])
    if groups is not None and groups.keys:
        keep_likely_groups(r.select, groups, estimates, r.weight(), f"_{r.alias}_groups")


def _add_quantiles(r: Reading, steps: Steps, requested: Sequence[tuple[exp.Expr, Quantile]]) -> list[Estimated]:
    """Let quantiles be read from steps that have them for each group."""
    if not requested:
        return []
    keys = r.sets()[0]
    source = source_of(r.select)
    found = []
    for number, (node, quantile) in enumerate(requested):
        text = weighted_quantile(quantile, keys, r.weight(), source)
        step = steps.add(f"quantile_{number + 1}", text)
        alias = f"_quantile_{number + 1}"
        if keys:
            join_step(r.select, step, alias, keys)
        selected = f"any_value({alias}.value)" if keys else f"any_value((select value from {quoted(step)}))"
        made = exp.Var(this=selected)
        node.replace(made)
        found.append(Estimated(made, additive=False))
    return found


def _exact(r: Reading, steps: Steps) -> None:
    """Nothing that is read was changed: the release's columns stand for the original's."""
    columns = ", ".join(f"{r.exact[column]} as {quoted(column)}" for column in sorted(r.read)) or "1 as one"
    name = steps.add("released", f"select {columns} from {r.release.sql} as r")
    r.item.set("this", exp.to_identifier(name, quoted=True))


def _weigh(r: Reading, aggregates: Sequence[exp.Expr], moments: dict[str, str]) -> list[Estimated]:
    """Replace each aggregate by its estimate; sums over exact columns alone are added up before rows are spread."""
    weight, found = r.weight(), []
    for node in aggregates:
        outer, where = node, None
        if isinstance(node, exp.Filter):
            node, where = node.this, node.expression.this
        if isinstance(node, (exp.Sum, exp.Avg)) and not isinstance(node.this, exp.Distinct):
            node.set("this", as_number(node.this, r.original))
        reads = [column for part in (node, where) if part is not None for column in all_of(part, exp.Column)]
        exact = r.preserved and all(read.table == r.alias and read.name in r.exact for read in reads)
        if reads and exact and isinstance(node, LINEAR) and not isinstance(node.this, exp.Distinct):
            made = _added_before(r, node, where, moments)
        else:
            made = weighted(node, where, weight)
        made = exp.Paren(this=made) if isinstance(made, exp.Binary) else made
        outer.replace(made)
        found.append(Estimated(made, isinstance(node, _ADDITIVE)))
    return found


def _added_before(r: Reading, node: exp.Expr, where: exp.Expr | None, moments: dict[str, str]) -> exp.Expr:
    """An aggregate of exact columns from sums and counts of the released rows."""
    condition = f" filter (where {r.over_row(where)})" if where is not None else ""
    rows = r.model.weight

    def moment(text: str) -> exp.Expr:
        name = (
            next((moment for moment, expression in moments.items() if expression == text), None)
            or f"moment_{len(moments) + 1}"
        )
        moments[name] = text
        return exp.Mul(this=r.step_column("share"), expression=r.step_column(name))

    def summed(text: str) -> exp.Expr:
        return exp.Sum(this=moment(text))

    if isinstance(node, exp.CountIf):
        test = r.over_row(node.this)
        return summed(f"sum(case when {test} then {rows} when not ({test}) then 0 end){condition}")
    if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, (exp.Star, exp.Literal))):
        return exp.Coalesce(this=summed(f"sum({rows}){condition}"), expressions=[exp.Literal.number(0)])
    argument = r.over_row(node.this)
    present = f"sum(case when ({argument}) is not null then {rows} end){condition}"
    if isinstance(node, exp.Count):
        return exp.Coalesce(this=summed(present), expressions=[exp.Literal.number(0)])
    amount = f"sum({argument})" if rows == "1" else f"sum({rows} * ({argument}))"
    total = summed(f"{amount}{condition}")
    return total if isinstance(node, exp.Sum) else exp.Div(this=total, expression=summed(present), typed=False)


def _relation(pushed: Pushed, steps: Steps, moments: Mapping[str, str]) -> None:
    """Write the steps: released rows grouped by equal cells, values of each factor, and the weighted relation."""
    r = pushed.reading
    exact = pushed.carried(r.exact)
    columns = [f"{r.exact[node]} as {quoted(node)}" for node in exact]
    columns += [f"{factor.cell} as {cell_name(factor)}" for factor in pushed.factors]
    rows = "count(*)" if r.model.weight == "1" else f"sum({r.model.weight})"
    numbers = [f"{rows} as _records", *(f"{text} as _{name}" for name, text in moments.items())]
    text = f"select {', '.join([*columns, *numbers])} from {r.release.sql} as r{pushed.where} group by all"
    released = steps.add("released", text)
    joins, columns, share = spread_over(pushed, steps, released)
    selected = [*(f"g.{quoted(node)}" for node in exact), *columns]
    numbers = [f"{share} as _share", f"g._records * {share} as _weight", *(f"g._{m}" for m in moments)]
    _read_step(r, steps, f"select {', '.join([*selected, *numbers])} from {quoted(released)} as g {' '.join(joins)}")


def _read_step(r: Reading, steps: Steps, text: str) -> None:
    """Let the weighted relation stand for the original."""
    r.item.set("this", exp.to_identifier(steps.add("weighted", text), quoted=True))


def _relation_of_each_row(pushed: Pushed, steps: Steps, carried: Mapping[str, str], moments: Mapping[str, str]) -> None:
    """Write the steps as `_relation` does: rows that have equal shares are counted before they are weighed.

    Whole numbers are multiplied before they are divided, so that all records of a bucket are whole again.
    """
    r, factor = pushed.reading, pushed.factors[0]
    assert isinstance(factor, BucketFactor)  # noqa: S101 -- as `is_of_each_row` says
    column, exact = factor.columns[0], pushed.carried(r.exact)
    keys = [f"r.{quoted(node)}" for node in sorted(pushed.left) if node in exact or node == column]
    numbers = ["count(*) as _records", *(f"{text} as _{name}" for name, text in moments.items())]
    nulls = not any(map(r.rejects_null, pushed.conditions[factor.name]))
    rows = factor.of_each_row(carried, pushed.exact, nulls)
    where = where_all(["r._hits > 0", *pushed.inside(factor)])
    selected = ", ".join([*keys, "r._hits", "r._total", *numbers])
    released = steps.add("released", f"select {selected} from ({rows}) as r{where} group by all")
    columns = [f"g.{quoted(node)}" for node in exact]
    columns += [r.typed(column, f"g.{quoted(column)}")] if column in pushed.left else []
    weighed = [f"g._{name} * g._hits / g._total as _{name}" for name in moments]
    numbers = ["1 as _share", "g._records * g._hits / g._total as _weight", *weighed]
    _read_step(r, steps, f"select {', '.join([*columns, *numbers])} from {quoted(released)} as g")


def spread_over(pushed: Pushed, steps: Steps, step: str) -> tuple[list[str], list[str], str]:
    """Joins of grouped rows `g` with the values of each factor, the columns of these, and the product of shares."""
    r = pushed.reading
    joins, columns, shares = [], [], []
    for node in pushed.factors:
        factor = of_step(pushed, node, step)
        if isinstance(factor, SliceFactor):
            fields = tuple(with_shares(steps, field) if field.name in r.read else field for field in factor.generalized)
            factor = replace(factor, generalized=fields)
        elif isinstance(factor, GeneralizedFactor) and isinstance(node, GeneralizedFactor):
            factor = replace(factor, shares=with_shares(steps, node).shares)
        if isinstance(factor, IntervalFactor):
            ends = steps.add(f"{node.name}_ends", factor.ends_of_cells())
            factor = replace(factor, ends=quoted(ends))
        text = factor.values(pushed.uses(node), pushed.inside(node), pushed.needed(node))
        values, alias = steps.add(f"{node.name}_values", text), quoted(f"v_{node.name}")
        joins.append(f"join {quoted(values)} as {alias} on g.{cell_name(node)} is not distinct from {alias}._cell")
        columns += [r.typed(c, f"{alias}.{quoted(c)}") for c in pushed.needed(node)]
        shares.append(f"{alias}._share")
    return joins, columns, " * ".join(shares) or "1.0"


def with_shares(steps: Steps, factor: GeneralizedFactor) -> GeneralizedFactor:
    """A factor with the step that holds its learnt shares."""
    text = factor.learnt_shares()
    if not text:
        return factor
    return replace(factor, shares=quoted(steps.add(f"{factor.name}_shares", text)))


def of_step(pushed: Pushed, factor: Factor, step: str) -> Factor:
    """A factor whose cells are read from a step, where that has all of the release's, so that it is read once."""
    if isinstance(factor, GeneralizedFactor) and not pushed.exact and pushed.reading.model.weight == "1":
        return factor.of_step(quoted(step), cell_name(factor))
    return factor


def as_number(node: exp.Expr, original: TableInfo) -> exp.Expr:
    """What is added up, as something that a weight multiplies: a boolean is 1 or 0."""
    return node if _is_number(node, original) else exp.cast(node.copy(), exp.DType.DOUBLE)


def _is_number(node: exp.Expr, original: TableInfo) -> bool:
    """Whether an expression is a number for certain."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return is_number(original.types.get(node.name, ""))
    if isinstance(node, (exp.Case, exp.If)):
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        values = [branch.args["true"] for branch in branches] + [node.args.get("default"), node.args.get("false")]
        return all(_is_number(value, original) for value in values if value is not None)
    numeric = isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.NUMERIC_TYPES)
    return numeric or isinstance(node, (exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Null)) or node.is_number


def join_step(select: exp.Select, step: str, alias: str, keys: Sequence[exp.Expr]) -> None:
    """Join a step with a row for each group, whose keys are k0, k1, ..., to the rows of a SELECT."""
    on = " and ".join(f"{alias}._k{i} is not distinct from ({key.sql('duckdb')})" for i, key in enumerate(keys))
    source = exp.Table(this=exp.to_identifier(step, quoted=True), alias=exp.TableAlias(this=exp.to_identifier(alias)))
    select.append("joins", exp.Join(this=source, side="LEFT", on=exp.Var(this=on)))
