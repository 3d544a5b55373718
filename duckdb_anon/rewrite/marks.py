"""Rows of an answer that the spread of records over their cells decides, not the release: what is said of them.

A group may exist in the estimate alone where a key is published as cells of several values. Of the groups that
ORDER BY and LIMIT pick, one may stand in the place of another where they differ by less than their uncertainty: their
low and high, or, of numbers of records without these, two standard errors of independent records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.model.errors import listed
from duckdb_anon.rewrite.factors import BucketFactor, SetFactor
from duckdb_anon.rewrite.query.trees import all_of, from_items, groups_of, has_aggregate, is_original, reads_original
from duckdb_anon.rewrite.release_model import ReleaseModel

PICKED = "rows are picked by estimates: another one may belong in the place of one that differs little from it"
CLOSE = "another row may belong in its place: they differ by less than their uncertainty"
MOST_ROWS = 500
"""A larger LIMIT is one that tools write below every query."""
CLOSE_ENDS = "_close"
NOTE = "-- note: "
"""How a line above the text of an answer begins that says something of it."""


@dataclass(frozen=True)
class Cut:
    """ORDER BY a measure, and LIMIT.

    Attributes:
        rows: how many rows are kept.
        column: number of the output column that decides.
        descending: whether the largest come first.
    """

    rows: int
    column: int
    descending: bool

    @staticmethod
    def of(query: exp.Query) -> Cut | None:
        """The cut of a bound query; None where no estimate decides which rows it keeps."""
        limit, order = query.args.get("limit"), query.args.get("order")
        if not isinstance(query, exp.Select) or limit is None or order is None or query.args.get("offset"):
            return None
        number, first = limit.expression, order.expressions[0]
        if not isinstance(number, exp.Literal) or not number.is_int or int(number.name) > MOST_ROWS:
            return None
        outputs = [projection.unalias() for projection in query.expressions]
        names = [projection.alias_or_name for projection in query.expressions]
        term = first.this if isinstance(first, exp.Ordered) else first
        is_name = isinstance(term, exp.Column) and not term.table and term.name in names
        if not is_name and term not in outputs:
            return None
        position = names.index(term.name) if is_name else outputs.index(term)
        inner = any(reads_original(select) for select in all_of(query, exp.Select) if select is not query)
        decided = has_aggregate(outputs[position]) or (inner and not reads_original(query))
        return Cut(int(number.name), position, bool(first.args.get("desc"))) if decided else None

    def with_next(self, query: exp.Query) -> None:
        """Let a query keep one row more, in place, so that the last one has something to be compared with."""
        query.set("limit", exp.Limit(expression=exp.Literal.number(self.rows + 1)))

    def marked(self, answer: str, bounded: Mapping[int, float], is_count: bool) -> str:
        """SELECT of an answer with one row more: its rows, and whether the row left out may belong in their place."""
        value = f"_c{self.column}"
        following = f"max(case when _place > {self.rows} then {value}{{}} end) over ()"
        if self.column in bounded:
            ends = (f"{value}_low", following.format("_high")) if self.descending else (
                following.format("_low"), f"{value}_high")  # fmt: skip
            overlap = f"{ends[0]} <= {ends[1]}"
            unsure = f"({value}_low < {value}_high or {following.format('_low')} < {following.format('_high')})"
            close = f"{overlap} and {unsure}"
        elif is_count:
            other = following.format("")
            close = f"abs({value} - {other}) <= 2 * sqrt(abs({value}) + abs({other}))"
        else:
            close = f"{following.format('')} is not null"
        placed = f"select *, row_number() over () as _place from (\n{answer}\n)"
        judged = f"select *, coalesce({close}, false) as {CLOSE_ENDS} from ({placed})"
        return f"select * exclude (_place) from ({judged}) where _place <= {self.rows} order by _place"


def marks(query: exp.Query, model: ReleaseModel) -> tuple[str, ...]:
    """What is to be said of the rows of a bound query: keys that are published as cells, and rows that are picked."""
    spread: dict[str, None] = {}
    for select in [select for select in all_of(query, exp.Select) if reads_original(select)]:
        aliases = {item.alias_or_name for item in from_items(select) if is_original(item)}
        keys = [*groups_of(select).keys, *(select.expressions if select.args.get("distinct") else ())]
        others = [select.args.get("where"), *(select.args.get("joins") or ())]
        grouped, filtered = (
            [c.name for node in nodes if node for c in all_of(node, exp.Column) if c.table in aliases]
            for nodes in (keys, others)
        )
        for name in grouped:
            factor = model.factor_of(name)
            # a set and a bucket list the values that their rows have
            listing = isinstance(factor, (BucketFactor, SetFactor)) and {*grouped, *filtered} <= {*factor.columns}
            if factor is not None and not listing:
                spread[name] = None
    estimated = any(model.factor_of(column.name) is not None for column in all_of(query, exp.Column))
    groups = f"groups by {listed(spread)} are estimated: the release does not say which of them exist"
    return (*[groups] * bool(spread), *[PICKED] * (estimated and Cut.of(query) is not None))
