"""Queries that are not linear in the rows, run unchanged on plausible tables, and their answers put together.

Numbers are the mean of the answers, where a draw that lacks a group counts 0 for its counts and sums; minima, maxima,
times and what is picked from a record the median; modes, booleans, texts and lists the most frequent answer, the least
of equally frequent ones. A row with keys is left out where fewer than half of the draws have it, or have it fulfil
HAVING. ORDER BY and LIMIT hold of the combined answers. The spread over draws is no interval.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import build_scope

from duckdb_anon.model.errors import RewriteError, when_run
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_moment, is_number, list_type
from duckdb_anon.rewrite.likely_groups import NO_GROUP
from duckdb_anon.rewrite.query.parse import grounded, measure_flags
from duckdb_anon.rewrite.query.prepare import answers_of
from duckdb_anon.rewrite.query.refusals import unnests
from duckdb_anon.rewrite.query.tables import PlausibleTables, TableInfo, contents_of
from duckdb_anon.rewrite.query.trees import (
    aggregate_nodes,
    all_of,
    groups_of,
    has_aggregate,
    laid_out,
    leftmost,
    literal,
    quoted,
    step_of,
    table_number,
    unquote,
    without_filter,
)

COMBINED = "combined"
"""Name of the step with a row for each row of the answers, whether it is `kept`, and whether too few draws
have it (`rare`)."""
_DRAW = "\0draw"
"""Stands for the number of a draw in a text, which cannot hold it."""
_PICKS = (exp.Min, exp.Max, exp.ArgMin, exp.ArgMax, exp.AnyValue, exp.First, exp.Last)
_OF_SHARES = (exp.WithinGroup, exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc)
_COUNTS = (exp.Count, exp.CountIf, exp.Sum)
_NUMBERS = (*_COUNTS, exp.Avg, exp.Median, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
            exp.Div, exp.Mul, exp.Add, exp.Sub, exp.Round, exp.Corr)  # fmt: skip


@dataclass
class DrawQuery:
    """A query as it runs on each draw.

    Attributes:
        tree: the query; what is done after the answers are put together is taken out of it, and its columns added.
        names: output columns of the query.
        measures: whether each column of `tree` is a measure.
        kept: number of the column that says whether HAVING keeps a row; None without.
        order: columns that rows are ordered by, each with what follows it in ORDER BY.
        limits: LIMIT and OFFSET.
    """

    tree: exp.Query
    names: list[str]
    measures: list[bool]
    kept: int | None = None
    order: list[tuple[int, exp.Ordered]] = field(default_factory=list)
    limits: dict[str, exp.Expr] = field(default_factory=dict)

    @staticmethod
    def of(tree: exp.Query, measures: Sequence[bool]) -> DrawQuery:
        """Take out of a query what is to be done with its answers."""
        made = tree.copy()
        found = DrawQuery(made, [projection.alias_or_name for projection in leftmost(made).expressions], list(measures))
        if isinstance(made, exp.Select) and not made.args.get("distinct"):
            found._take_having(made)
            found._show_keys(made)
        found._take_order(made)
        return found

    def _show_keys(self, select: exp.Select) -> None:
        """Add the keys that are not shown, so that answers about the same group are put together."""
        groups = groups_of(select)
        shown = [projection.unalias() for projection in select.expressions]
        for key in [*groups.keys, *([groups.level()] if len(groups.sets) > 1 else [])]:
            if key not in shown:
                self._added(select, key.copy(), measure=False)

    def _take_having(self, select: exp.Select) -> None:
        having = select.args.get("having")
        if having is not None and not any(all_of(select, exp.Window)):
            select.set("having", None)
            self.kept = self._added(select, exp.func("coalesce", having.this, exp.false()))

    def _take_order(self, query: exp.Query) -> None:
        """Take ORDER BY and LIMIT, where output columns can say the order."""
        ordered = query.args.get("order")
        outputs = {
            projection.unalias(): index for index, projection in reversed(list(enumerate(leftmost(query).expressions)))
        }
        places = {name: index for index, name in reversed(list(enumerate(self.names)))}
        found = []
        for term in ordered.expressions if ordered is not None else []:
            is_name = isinstance(term.this, exp.Column) and not term.this.table
            position = places.get(term.this.name) if is_name else outputs.get(term.this)
            if position is None:
                if not isinstance(query, exp.Select) or query.args.get("distinct"):
                    return
                position = self._added(query, term.this.copy())
            found.append((position, term))
        self.order = found
        for key in ("order", "limit", "offset"):
            node = query.args.get(key)
            query.set(key, None)
            if node is not None and key != "order":
                self.limits[key] = node

    def _added(self, select: exp.Select, node: exp.Expr, measure: bool = True) -> int:
        position = len(select.expressions)
        select.append("expressions", exp.alias_(node, f"_added_{position}", quoted=True))
        self.measures.append(measure)
        return position

    @property
    def has_unique_keys(self) -> bool:
        """Whether no two rows of an answer have the same keys."""
        tree = self.tree
        if not isinstance(tree, exp.Select) or tree.args.get("distinct") or any(map(unnests, all_of(tree, exp.Expr))):
            return False
        group = tree.args.get("group")
        if group is None:
            return any(True for _ in aggregate_nodes(tree))
        return not any(isinstance(key, (exp.Rollup, exp.Cube, exp.GroupingSets)) for key in group.expressions)


def combined(query: DrawQuery, drawn: str, answer: str, draws: int, types: Sequence[str]) -> exp.Query:
    """Write the query that puts the answers of all draws together.

    Args:
        query: the query.
        drawn: steps of its WITH.
        answer: the query's text over the draw `_DRAW`.
        draws: how many there are.
        types: types of the columns of its answer.
    """
    half = draws / 2
    columns = [f"c{index}" for index, _ in enumerate(query.measures)]
    keys = [column for column, measure in zip(columns, query.measures, strict=True) if not measure]
    values = [column for column, measure in zip(columns, query.measures, strict=True) if measure]
    groups, source = list(keys), "answers"
    if not query.has_unique_keys:
        # rows that have the same keys are paired by the order of their measures
        order = f" order by {', '.join(values)}" if values else ""
        source = (
            f"(select *, row_number() over (partition by {', '.join(['draw', *keys])}{order}) as place from answers)"
        )
        groups.append("place")
    put = [*keys]
    outputs = zip(*(select.expressions for select in answers_of(query.tree)), strict=True)
    for column, measure, kind, projections in zip(columns, query.measures, types, outputs, strict=True):
        if measure:
            nodes = [without_filter(projection.unalias())[0] for projection in projections]
            alike = all(type(node) is type(nodes[0]) for node in nodes)
            together = _together(column, kind, nodes[0] if alike else exp.null())
            if all(map(_is_additive, nodes)):
                together = f"sum({column}) / {draws}"  # a group that a draw lacks counts nothing there
            put.append(f"case when 2 * count({column}) >= count(*) then {together} end as {column}")
    present = "count(*)" if query.kept is None else f"count(*) filter (where c{query.kept})"
    put += [f"{present} >= {half:g} as kept", f"count(*) < {half:g} as rare", "count(*) as found"]
    by = f" group by {', '.join(groups)}" if groups else ""
    selected = ", ".join(f"c{index} as {quoted(name)}" for index, name in enumerate(query.names))
    text = f"""
        with {drawn}, answers as (select 1),
        {COMBINED} as (select {", ".join(put)} from {source}{by})
        select {selected} from {COMBINED} where {_kept(draws) if groups else "kept"}"""
    made = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(made, exp.Select)  # noqa: S101 -- a SELECT
    # the same text for each draw: to parse and print it once for each takes longer than the rest of a plan
    found = (
        f"select {draw} as draw, * from (\n{answer.replace(_DRAW, str(draw))}\n) as q({', '.join(columns)})"
        for draw in range(1, draws + 1)
    )
    step = next(step for step in made.args["with_"].expressions if step.alias == "answers")
    step.set("this", exp.Var(this="\nunion all ".join(found)))
    for position, term in query.order:
        ordered = term.copy()
        ordered.set("this", exp.column(f"c{position}"))
        made = made.order_by(ordered)
    for key, node in query.limits.items():
        made.set(key, node.copy())
    return made


def _kept(draws: int) -> str:
    """SQL of whether a row stays; an error where a draw has a row or more on average, and none is in half of them."""
    lost = f"(select sum(found) >= {draws} and bool_and(rare) from {COMBINED})"
    return f"case when {lost} then error({literal(when_run(NO_GROUP))}) else kept end"


def _is_additive(node: exp.Expr) -> bool:
    """Whether a measure of a group without rows is 0: a count or a sum, a share of a total, a multiple."""
    if isinstance(node, (exp.Mul, exp.Div)):
        sides = [node.left, node.right] if isinstance(node, exp.Mul) else [node.left]
        others = [node.right, node.left]
        return any(_is_additive(side) and not _is_of_group(other) for side, other in zip(sides, others, strict=False))
    if isinstance(node, (exp.Add, exp.Sub)):
        return _is_additive(node.left) and _is_additive(node.right)
    if isinstance(node, exp.Cast) and not node.to.is_type(*exp.DataType.NUMERIC_TYPES):
        return False
    same = (exp.Paren, exp.Neg, exp.Abs, exp.Cast, exp.Round)
    return isinstance(node, _COUNTS) or (isinstance(node, same) and _is_additive(node.this))


def _is_of_group(node: exp.Expr) -> bool:
    """Whether an aggregate over the rows of a group computes an expression."""
    return not isinstance(node.unnest(), (exp.Window, exp.Subquery)) and has_aggregate(node)


def _together(column: str, kind: str, node: exp.Expr) -> str:
    """SQL of what stands for the answers of all draws to a measure of a type."""
    shares, inner = node.find(exp.Array), list_type(kind)
    if inner is not None and shares is not None and isinstance(node, _OF_SHARES):
        places = range(1, len(shares.expressions) + 1)
        return f"[{', '.join(_together(f'{column}[{place}]', inner, exp.null()) for place in places)}]"
    if isinstance(node, exp.Mode):
        kind = ""
    elif isinstance(node, _PICKS) or is_moment(kind) or kind == "INTERVAL":
        return f"quantile_disc({column}, 0.5)"
    return f"avg({column})" if is_number(kind) else f"mode({column} order by {column})"


def _types(query: DrawQuery, known: Sequence[str], tables: Sequence[TableInfo]) -> Sequence[str]:
    """Types of the columns of a query's answer: those that are known, or as DuckDB finds them on empty tables.

    Where a table is not there yet, as a temporary one, counts and sums are numbers, and other measures texts.
    """
    more = query.measures[len(known) :]
    if all(known) and known and not any(more):
        return [*known, *[""] * len(more)]
    tree = query.tree
    shapes = [replace(info, sql=_shape(info)) if info.columns else info for info in tables]
    describe = tables[0].describe
    assert describe is not None  # noqa: S101 -- what draws tables asks DuckDB
    try:
        return [kind for _, kind in describe(grounded(tree.copy(), shapes).sql("duckdb", comments=False))]
    except RewriteError:
        if all(info.columns for info in tables) and all(_is_known(table) for table in all_of(tree, exp.Table)):
            raise
        values = (without_filter(projection.unalias())[0] for projection in leftmost(tree).expressions)
        return ["DOUBLE" if isinstance(value, _NUMBERS) else "VARCHAR" for value in values]


def _is_known(table: exp.Table) -> bool:
    return step_of(table) is not None or table_number(table) is not None or not isinstance(table.this, exp.Identifier)


def _shape(info: TableInfo) -> str:
    return f"(select {', '.join(f'null::{kind} as {quoted(name)}' for name, kind in info.columns)})"


def over_draws(
    tree: exp.Query,
    release: TableInfo,
    tables: Sequence[TableInfo],
    types: Sequence[str] = (),
    drawn: PlausibleTables | None = None,
) -> exp.Query:
    """Write the query that answers from plausible tables of the originals that it reads.

    Args:
        tree: the query.
        release: the release of the first table.
        tables: the original, then the originals of `release.joined`, then other tables.
        types: types of the query's first columns, where they are known.
        drawn: plausible tables of the original; by default those of the release.
    """
    _require_unnamed_persons(tree, release, tables[0])
    scope = build_scope(tree)
    flags = measure_flags(scope) if scope is not None else []
    outputs = leftmost(tree).expressions
    measures = [
        flag and not isinstance(node.unalias(), exp.Grouping) for flag, node in zip(flags, outputs, strict=True)
    ]
    shown = {projection.alias_or_name for projection in outputs}
    read = {column.name for column in all_of(tree, exp.Column) if column.table or column.name not in shown}
    plausible = [drawn or _plausible(tables[0], release, read)]
    plausible += [_plausible(original, other, read) for original, other in release.joined]
    if not any(measures) and not tree.args.get("group"):
        return _on_one_draw(tree, plausible, tables)
    query = DrawQuery.of(tree, measures)
    one = _on_draw(query.tree, plausible, _DRAW, tables)
    unquote(one)
    steps = ", ".join(f"{_step(number)} as materialized ({each.sql})" for number, each in enumerate(plausible))
    return combined(query, steps, laid_out(one), plausible[0].draws, _types(query, types, tables))


def _plausible(original: TableInfo, release: TableInfo, read: Collection[str]) -> PlausibleTables:
    """Plausible tables of a release with the columns that a query reads."""
    if not release.reader.can_draw:
        raise RewriteError(f"no rows can be drawn from {release.name}, so it cannot be joined with other releases")
    names = [name for name, _ in original.columns]
    shown = contents_of(release, original).columns
    columns = [name for name in names if fold(name) in read] or [name for name in names if fold(name) in shown][:1]
    return release.reader.drawn(columns)


def _step(number: int) -> str:
    """Name of the step with the plausible tables of an original."""
    return "plausible" if number == 0 else f"plausible_{number}"


def _require_unnamed_persons(tree: exp.Query, release: TableInfo, original: TableInfo) -> None:
    """Refuse to show or compare the names of persons: plausible persons have none."""
    names = {fold(name) for name, role in original.roles.items() if role == "person"}
    names -= contents_of(release, original).columns.keys()
    for column in [node for node in all_of(tree, exp.Column) if node.name in names]:
        above = column.parent
        if isinstance(above, exp.EQ):
            sides = (above.this, above.expression)
            counted = all(isinstance(side, exp.Column) and side.name in names for side in sides)
        elif isinstance(above, (exp.Alias, exp.Select)):
            counted = column.parent_select is not leftmost(tree)
        elif isinstance(above, exp.Window):
            counted = column.arg_key == "partition_by"
        else:
            counted = isinstance(above, (exp.Group, exp.Distinct, exp.Count, exp.Paren))
        if not counted:
            raise RewriteError(
                f"column '{column.name}' is not in the release {release.name}: persons can be counted, "
                f"count(DISTINCT {column.name}), and a nested query can group by them; their names cannot be shown or "
                "compared"
            )


def _on_one_draw(tree: exp.Query, plausible: Sequence[PlausibleTables], tables: Sequence[TableInfo]) -> exp.Query:
    """The query over the first of the tables, which are drawn once, whatever subqueries read them."""
    made = _on_draw(tree, plausible, "1", tables)
    for number, each in reversed(list(enumerate(plausible))):
        drawn = sqlglot.parse_one(each.sql, dialect="duckdb")
        name = exp.to_identifier(_step(number), quoted=True)
        made = made.with_(name, as_=drawn, materialized=True, copy=False)
        steps = made.args["with_"].expressions
        steps.insert(0, steps.pop())
    return made


def _on_draw(
    tree: exp.Query, plausible: Sequence[PlausibleTables], draw: str, tables: Sequence[TableInfo]
) -> exp.Query:
    """The query over one draw of each original."""
    made = tree.copy()
    for table in all_of(made, exp.Table):
        place = table_number(table)
        if place is not None and place < len(plausible):
            number = quoted(plausible[place].number)
            rows = sqlglot.parse_one(f"select * exclude ({number}) from {quoted(_step(place))}", dialect="duckdb")
            rows.set("where", exp.Where(this=exp.Var(this=f"{number} = {draw}")))
            table.replace(exp.Subquery(this=rows, alias=table.args.get("alias")))
    return grounded(made, tables)
