"""Queries that are not linear in the rows, run unchanged on plausible tables, and their answers put together.

Numbers are the mean of the answers, where a draw that lacks a group counts 0 for its counts and sums; minima and maxima
the median; modes, booleans, texts, times and lists the most frequent answer, the least of equally frequent ones. A row
with keys is left out where fewer than half of the draws have it, or have it fulfil HAVING. ORDER BY and LIMIT hold of
the combined answers. The spread over draws is no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.scope import build_scope
from sqlglot.schema import MappingSchema

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.rewrite.query.parse import grounded, measure_flags
from duckdb_anon.rewrite.query.tables import MakePlausible, TableInfo, contents_of
from duckdb_anon.rewrite.query.trees import SOURCE, aggregate_nodes, all_of, groups_of, is_original, leftmost, quoted

COMBINED = "combined"
"""Name of the step with a row for each row of the answers, whether it is `kept`, and whether too few draws
have it (`rare`)."""
_NUMBERS = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop),
    *(exp.StddevSamp, exp.CovarPop, exp.CovarSamp, exp.Corr, exp.ApproxDistinct, exp.RegrSlope, exp.RegrIntercept),
    *(exp.RowNumber, exp.Grouping),
)
_OF_SHARES = (exp.WithinGroup, exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc)
_COUNTS = (exp.Count, exp.CountIf, exp.Sum)


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
        found._take_order(made)
        return found

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

    def _added(self, select: exp.Select, node: exp.Expr) -> int:
        position = len(select.expressions)
        select.append("expressions", exp.alias_(node, f"_added_{position}", quoted=True))
        self.measures.append(True)
        return position

    @property
    def has_unique_keys(self) -> bool:
        """Whether no two rows of an answer have the same keys."""
        if not isinstance(self.tree, exp.Select):
            return False
        groups = groups_of(self.tree)
        if not groups.keys:
            return any(True for _ in aggregate_nodes(self.tree))
        outputs = [projection.unalias() for projection in self.tree.expressions]
        return len(groups.sets) == 1 and all(key in outputs for key in groups.keys)


def combined(query: DrawQuery, drawn: str, answers: Sequence[str], tables: Sequence[TableInfo]) -> exp.Query:
    """Write the query that puts answers together."""
    half = len(answers) / 2
    columns = [f"c{index}" for index, _ in enumerate(query.measures)]
    keys = [column for column, measure in zip(columns, query.measures, strict=True) if not measure]
    values = [column for column, measure in zip(columns, query.measures, strict=True) if measure]
    found = " union all ".join(f"select {draw} as draw, * from ({text})" for draw, text in enumerate(answers))
    groups, source = list(keys), "answers"
    if not query.has_unique_keys:
        # rows that have the same keys are paired by the order of their measures
        order = f" order by {', '.join(values)}" if values else ""
        source = (
            f"(select *, row_number() over (partition by {', '.join(['draw', *keys])}{order}) as place from answers)"
        )
        groups.append("place")
    made = [*keys]
    outputs = [projection.unalias() for projection in leftmost(query.tree).expressions]
    nodes = [output.this if isinstance(output, exp.Filter) else output for output in outputs]
    for column, measure, is_numeric, node in zip(
        columns, query.measures, _numeric(query.tree, tables), nodes, strict=True
    ):
        if measure:
            together = f"mode({column} order by {column})"
            if isinstance(node, (exp.Min, exp.Max)):
                together = f"quantile_disc({column}, 0.5)"
            elif is_numeric and not isinstance(node, exp.Mode):
                together = f"avg({column})"
            if is_numeric and (shares := node.find(exp.Array)) is not None and isinstance(node, _OF_SHARES):
                means = (f"avg({column}[{place}])" for place, _ in enumerate(shares.expressions, 1))
                together = f"[{', '.join(means)}]"
            if isinstance(node, _COUNTS):
                together = f"sum({column}) / {len(answers)}"  # a group that a draw lacks counts nothing there
            made.append(f"case when 2 * count({column}) >= count(*) then {together} end as {column}")
    present = "count(*)" if query.kept is None else f"count(*) filter (where c{query.kept})"
    made += [f"{present} >= {half:g} as kept", f"count(*) < {half:g} as rare"]
    by = f" group by {', '.join(groups)}" if groups else ""
    selected = ", ".join(f"c{index} as {quoted(name)}" for index, name in enumerate(query.names))
    text = f"""
        with plausible as materialized ({drawn}), answers as ({found}),
        {COMBINED} as (select {", ".join(made)} from {source}{by})
        select {selected} from {COMBINED} where kept"""
    answer = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(answer, exp.Select)  # noqa: S101 -- a SELECT
    for position, term in query.order:
        ordered = term.copy()
        ordered.set("this", exp.column(f"c{position}"))
        answer = answer.order_by(ordered)
    for key, node in query.limits.items():
        answer.set(key, node.copy())
    return answer


def _numeric(query: exp.Query, tables: Sequence[TableInfo]) -> list[bool]:
    """Whether each output column of a query is a number, of which a mean makes sense."""
    schema = MappingSchema(dialect="duckdb", normalize=False)
    for number, info in enumerate(tables):
        types = {column: exp.DataType.build(_type(kind), dialect="duckdb") for column, kind in info.columns}
        schema.add_table(exp.to_table(quoted(f"{SOURCE}{number}"), dialect="duckdb"), types)
    typed = annotate_types(query.copy(), schema=schema, dialect="duckdb")
    return [_is_number(projection.unalias()) for projection in leftmost(typed).expressions]


def _type(kind: str) -> str:
    return kind if is_number(kind) else "VARCHAR"


def _is_number(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Filter, exp.Paren, exp.Window)):
        return _is_number(node.this)
    return isinstance(node, _NUMBERS) or (node.type is not None and node.type.this in exp.DataType.NUMERIC_TYPES)


def over_draws(
    tree: exp.Query,
    drawn: MakePlausible,
    release: TableInfo,
    tables: Sequence[TableInfo],
) -> exp.Query:
    """Write the query that answers from plausible tables."""
    _require_unnamed_persons(tree, release, tables[0])
    scope = build_scope(tree)
    flags = measure_flags(scope) if scope is not None else []
    outputs = leftmost(tree).expressions
    measures = [
        flag and not isinstance(node.unalias(), exp.Grouping) for flag, node in zip(flags, outputs, strict=True)
    ]
    read = {fold(column.name) for column in all_of(tree, exp.Column)}
    names = [name for name, _ in tables[0].columns]
    plausible = drawn([name for name in names if fold(name) in read] or names[:1])
    if not any(measures):
        return _on_draw(tree, f"({plausible.sql})", plausible.number, 1, tables)
    query = DrawQuery.of(tree, measures)
    places = ", ".join(f"c{i}" for i, _ in enumerate(query.measures))
    answers = [
        f"select * from ({made.sql('duckdb', comments=False)}) as q({places})"
        for draw in range(1, plausible.draws + 1)
        for made in [_on_draw(query.tree, '"plausible"', plausible.number, draw, tables)]
    ]
    return combined(query, plausible.sql, answers, tables)


def _require_unnamed_persons(tree: exp.Query, release: TableInfo, original: TableInfo) -> None:
    """Refuse to show or compare the names of persons: plausible persons have none."""
    names = {fold(name) for name, role in original.roles.items() if role == "person"}
    names -= contents_of(release, original).columns.keys()
    for column in [node for node in all_of(tree, exp.Column) if fold(node.name) in names]:
        above = column.parent
        if isinstance(above, exp.EQ):
            sides = (above.this, above.expression)
            counted = all(isinstance(side, exp.Column) and fold(side.name) in names for side in sides)
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


def _on_draw(tree: exp.Query, source: str, number: str, draw: int, tables: Sequence[TableInfo]) -> exp.Query:
    """The query over one of the tables."""
    made = tree.copy()
    for table in all_of(made, exp.Table):
        if is_original(table):
            text = f"select * exclude ({quoted(number)}) from {source} where {quoted(number)} = {draw}"
            rows = sqlglot.parse_one(text, dialect="duckdb")
            table.replace(exp.Subquery(this=rows, alias=table.args.get("alias")))
    return grounded(made, tables)
