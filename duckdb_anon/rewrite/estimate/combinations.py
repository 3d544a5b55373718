"""Rows of randomized releases added up before they are weighed.

What a released row of a randomized release weighs is told by its randomized values alone, and there are far fewer
combinations of them than rows. So where all that a query wants are sums of products, exact columns are summed (and rows
counted) for each combination of the randomized columns it reads, and each combination is weighed once.

Whole numbers of few values have their groups found by place and not by hash, which is what makes this the shorter way;
for other types, for many columns, and for counts of one column, rows are weighed one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp

from duckdb_anon.model.shapes.types import is_integer
from duckdb_anon.rewrite.estimate.row_answers import Place, place_of
from duckdb_anon.rewrite.estimate.row_answers import total as summed
from duckdb_anon.rewrite.query.template import copied, multiplied, name, number, own, select
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart
from duckdb_anon.rewrite.shapes.parts import ROW, Part, aliased, labelled

COMBINATIONS = name("combinations")
MOST_COLUMNS = 3
"""Combinations of more columns may be about as many as rows."""

Key = tuple[str, exp.Expr]
"""Kind of a column of the released rows, and what it is made of."""


def combined(
    parts: Sequence[Part], columns: Collection[Key], answers: Collection[Place], conditions: Sequence[exp.Expr]
) -> tuple[exp.Select, Mapping[Key, exp.Expr]] | None:
    """SELECT the combinations, with totals; and what each column is made of, over a combination.

    Args:
        parts: the parts that a query reads.
        columns: what it wants of each row: sums of products.
        answers: columns that tell what the randomized values of a row weigh.
        conditions: conditions on exact columns, over a row of the release.

    Returns:
        None where rows are better weighed one by one, and where something is wanted that is no such sum.
    """
    if not _may_combine(parts):
        return None
    totals: dict[exp.Expr, str] = {}
    found: dict[Key, exp.Expr] = {}
    for key in columns:
        kind, made_of = key
        weights = [one for one in _factors(made_of) if isinstance(one, exp.Column) and place_of(one) in answers]
        others = [one for one in _factors(made_of) if not any(one is weight for weight in weights)]
        if kind != "sum" or any(place_of(c) in answers for one in others for c in all_of(one, exp.Column)):
            return None
        amount = multiplied([copied(one) for one in others])
        total = totals.setdefault(amount, "rows_there" if amount == number(1) else f"total_{len(totals) + 1}")
        found[key] = multiplied([own(total), *(copied(weight) for weight in weights)])
    if len(parts) == 1 and (not answers or totals.keys() <= {number(1)}):
        return None
    cells = [exp.Alias(this=copied(part.key), alias=copied(part.key.this)) for part in parts]
    sums = [labelled(summed(amount), label) for amount, label in totals.items()]
    chosen = select(
        "select {cells}, {sums} from {release} group by all",
        cells=cells,
        sums=sums,
        release=aliased(parts[0].release, ROW),
    )
    for condition in conditions:
        chosen.where(condition, copy=False)
    return chosen, found


def _may_combine(parts: Sequence[Part]) -> bool:
    """Whether the rows of a release are better added up first."""
    randomized = all(isinstance(part, RandomizedPart) for part in parts)
    whole = all(is_integer(part.release.types.get(part.columns[0], "")) for part in parts)
    return randomized and whole and 1 <= len(parts) <= MOST_COLUMNS


def _factors(node: exp.Expr) -> list[exp.Expr]:
    """The factors of a product."""
    inner = node.unnest()
    if isinstance(inner, exp.Mul):
        return [*_factors(inner.left), *_factors(inner.right)]
    return [node]
