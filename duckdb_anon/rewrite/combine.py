"""The answers that one query has on several plausible tables, put together.

Numbers are the mean of the answers, where a draw that lacks a group counts 0 for its counts and sums; booleans, texts,
times and lists the most frequent one. A row with keys is left out where fewer than half of the draws have it, or have
it fulfil HAVING. ORDER BY and LIMIT hold of what was put together, so top lists are those of the means. The spread over
draws is no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.rewrite.query.tables import TableInfo, same_table
from duckdb_anon.rewrite.query.trees import aggregate_nodes, all_of, groups_of, leftmost, quoted

COMBINED = "combined"
"""Name of the step with a row for each row of the answers, whether it is `kept`, and whether too few draws
have it (`rare`)."""
_NUMBERS = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop),
    *(exp.StddevSamp, exp.CovarPop, exp.CovarSamp, exp.Corr, exp.ApproxDistinct, exp.RegrSlope, exp.RegrIntercept),
    *(exp.RowNumber, exp.Grouping),
)
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
        """Take out of a query what is to be done with its answers.

        Args:
            tree: a bound query.
            measures: whether each output column is a measure.
        """
        made = tree.copy()
        found = DrawQuery(made, [one.alias_or_name for one in leftmost(made).expressions], list(measures))
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
        outputs = {one.unalias(): place for place, one in reversed(list(enumerate(leftmost(query).expressions)))}
        places = {name: place for place, name in reversed(list(enumerate(self.names)))}
        found = []
        for term in ordered.expressions if ordered is not None else []:
            is_name = isinstance(term.this, exp.Column) and not term.this.table
            place = places.get(term.this.name) if is_name else outputs.get(term.this)
            if place is None:
                if not isinstance(query, exp.Select) or query.args.get("distinct"):
                    return
                place = self._added(query, term.this.copy())
            found.append((place, term))
        self.order = found
        for key in ("order", "limit", "offset"):
            node = query.args.get(key)
            query.set(key, None)
            if node is not None and key != "order":
                self.limits[key] = node

    def _added(self, select: exp.Select, node: exp.Expr) -> int:
        place = len(select.expressions)
        select.append("expressions", exp.alias_(node, f"_added_{place}", quoted=True))
        self.measures.append(True)
        return place

    @property
    def has_unique_keys(self) -> bool:
        """Whether no two rows of an answer have the same keys."""
        if not isinstance(self.tree, exp.Select):
            return False
        groups = groups_of(self.tree)
        if not groups.keys:
            return any(True for _ in aggregate_nodes(self.tree))
        outputs = [one.unalias() for one in self.tree.expressions]
        return len(groups.sets) == 1 and all(key in outputs for key in groups.keys)


def combined(query: DrawQuery, drawn: str, answers: Sequence[str], tables: Sequence[TableInfo]) -> exp.Query:
    """Write the query that puts answers together.

    Args:
        query: the query as it runs on each draw.
        drawn: SELECT of the plausible tables, which the answers read as `plausible`.
        answers: the query on each draw, with columns c0, c1, ...
        tables: the original and other tables of the query, of whose types a measure may be.
    """
    half = len(answers) / 2
    columns = [f"c{place}" for place, _ in enumerate(query.measures)]
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
    outputs = [one.unalias() for one in leftmost(query.tree).expressions]
    nodes = [one.this if isinstance(one, exp.Filter) else one for one in outputs]
    for column, measure, is_numeric, node in zip(
        columns, query.measures, _numeric(query.tree, tables), nodes, strict=True
    ):
        if measure:
            together = f"avg({column})" if is_numeric else f"mode({column})"
            if isinstance(node, _COUNTS):
                together = f"sum({column}) / {len(answers)}"  # a group that a draw lacks counts nothing there
            made.append(f"case when 2 * count({column}) >= count(*) then {together} end as {column}")
    present = "count(*)" if query.kept is None else f"count(*) filter (where c{query.kept})"
    made += [f"{present} >= {half:g} as kept", f"count(*) < {half:g} as rare"]
    by = f" group by {', '.join(groups)}" if groups else ""
    shown = ", ".join(f"c{place} as {quoted(name)}" for place, name in enumerate(query.names))
    text = f"""
        with plausible as materialized ({drawn}), answers as ({found}),
        {COMBINED} as (select {", ".join(made)} from {source}{by})
        select {shown} from {COMBINED} where kept"""
    answer = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(answer, exp.Select)  # noqa: S101 -- a SELECT
    for place, term in query.order:
        ordered = term.copy()
        ordered.set("this", exp.column(f"c{place}"))
        answer = answer.order_by(ordered)
    for key, node in query.limits.items():
        answer.set(key, node.copy())
    return answer


def _numeric(query: exp.Query, tables: Sequence[TableInfo]) -> list[bool]:
    """Whether each output column of a query is a number, of which a mean makes sense."""
    schema = MappingSchema(dialect="duckdb", normalize=False)
    for table in all_of(query, exp.Table):
        info = next((one for one in tables if same_table(table, one)), None)
        if info is not None:
            kinds = {column: exp.DataType.build(_type(kind), dialect="duckdb") for column, kind in info.columns}
            schema.add_table(table.copy(), kinds)
    typed = annotate_types(query.copy(), schema=schema, dialect="duckdb")
    return [_is_number(one.unalias()) for one in leftmost(typed).expressions]


def _type(kind: str) -> str:
    return kind if is_number(kind) else "VARCHAR"


def _is_number(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Filter, exp.Paren, exp.Window)):
        return _is_number(node.this)
    return isinstance(node, _NUMBERS) or (node.type is not None and node.type.this in exp.DataType.NUMERIC_TYPES)
