"""Randomized: column `rr` tells how each column was randomized, P^-1 takes it back.

A released value a stands for every value x of its domain with weight (1[x = a] - q) / gain, the entry of the
inverted channel: 1 in total, negative for x other than a. Counts and sums over those weights are unbiased for
the original table (Guo, Ying and Wu 2011, section III.B). A condition on a column is its own sum of weights,
one number a released value. Columns that the final query sees value by value are inverted one after another
over the grouped rows (mode products), never over all combinations at once.

The 95% intervals take the original table as fixed: the variance of a total of weights W is the sum over
released rows of W^2 - V, where V is the weight of the squared amounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.parse import parse
from duckdb_anon.rewrite.parts import Part, parsed, quoted

NOT_TOLD = (
    "the channels are NULL in all of these rows, so nothing tells how they were randomized; one row in as many as the "
    "domains have values does: take the release as a whole, not a part of it"
)


@dataclass(frozen=True)
class RandomizedPart(Part):
    """A column randomized by a channel that column `channels` of the release publishes."""

    channels: str = ""

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a released value and value of the domain, weighted by the inverted channel."""
        column = quoted(self.columns[0])
        weight = "case when _cells._cell is not distinct from _values.value then own + other else other end"
        listed = parse(
            f"select _cells._cell, _values.value as {column}, {weight} as _weight "
            f"from ({self.cells().sql('duckdb')}) as _cells cross join ({self.domain()}) as _values"
        )
        return exp.select("*").from_(listed.subquery("_weights")).where("_weight <> 0", dialect="duckdb")

    def inverted(self, before: str, cell: str, keys: Sequence[str], sums: Sequence[str], rows: str = "") -> exp.Expr:
        """SELECT the rows of `before` with this column inverted: its cells give way to true values.

        Args:
            before: name of the CTE so far.
            cell: name of this part's cells in it.
            keys: the other columns that tell its rows apart.
            sums: its columns of numbers.
            rows: the one of `sums` that counts rows; where it is 0 the combination of values is left out.
        """
        kept = "".join(f"{key}, " for key in keys)
        name = quoted(self.columns[0])
        total = ", ".join(f"sum({n}) as {n}" for n in sums)
        near = ", ".join(f"{n} * own as {n}" for n in sums)
        far = ", ".join(f"_total.{n} * _values.other as {n}" for n in sums)
        left_out = f" having sum({rows}) <> 0" if rows else ""
        return parsed(
            f"select {kept}{name}, {total} from ("
            f"select {kept}{cell} as {name}, {near} from {quoted(before)} cross join ({self.channel()}) as _channel"
            f" union all select {kept}_values.value as {name}, {far}"
            f" from (select {kept}{total} from {quoted(before)} group by all) as _total"
            f" cross join ({self.domain()}) as _values where _values.other <> 0"
            f") as _inverted group by all{left_out}"
        )

    def channel(self) -> str:
        """SELECT one row: the domain, and the entries of the inverted channel as own * I + other * J."""
        field = f"{quoted(self.channels)}.{quoted(self.columns[0])}"
        constant = told(field, self.source().sql("duckdb"))
        spread = f"select c.p as p, c.domain as domain, greatest(len(c.domain) - 1, 1) as rest from ({constant})"
        entries = (
            "select domain, case when len(domain) = 1 then 0 else (1 - p) / rest end as q, "
            f"case when len(domain) = 1 then 1 else p - (1 - p) / rest end as gain from ({spread})"
        )
        return f"select domain, 1 / gain as own, -q / gain as other from ({entries})"

    def domain(self) -> str:
        """SELECT one row a value of the domain, with the same entries."""
        return f"select unnest(domain) as value, * exclude (domain) from ({self.channel()})"


def told(field: str, source: str) -> str:
    """SELECT one row with one column c: the channel that a field of the channels tells; an error where no row tells it.

    Args:
        field: SQL of the field.
        source: the release, as SQL of a FROM item.
    """
    missing = f"count(*) > 0 and count({field}) = 0"
    return f"select case when {missing} then error('{NOT_TOLD}') else any_value({field}) end as c from {source}"
