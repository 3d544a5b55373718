"""Counts of buckets whose numbers tell their kinds, read from the first bucket of each kind.

What is asked of a bucket's counts (`listed.BagPart`) has one answer for all buckets of a kind, and kinds are few
(`duckdb_anon.model.kinds`). So the cells are the kinds, `number & 4095`, and only the rows of their first buckets,
whose numbers are below 4096, are read for their counts: they stand first in the release, and an estimate never reads
the counts of all other rows. What bounds ask of buckets is grouped by their numbers (`rewrite.bounds.permuted_kinds`).

What is said to be certain holds of the release that the text is run on, whatever was looked at when it was planned: the
release may be another one since, or stand changed in a transaction that is not committed. So a text with bounds looks
itself whether all buckets of a kind are like its first one, and fails where one is not.
Cost: one pass over the numbers, and one value for each count of a kind; with bounds, the counts of each bucket too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.model.errors import when_run
from duckdb_anon.model.kinds import BELOW
from duckdb_anon.rewrite.query.template import mapped, name, number, own, select, tree
from duckdb_anon.rewrite.shapes.listed import BagPart


@dataclass(frozen=True)
class KindPart(BagPart):
    """A sensitive attribute published as one map a bucket; its cells are the kinds of buckets.

    Attributes:
        numbers: the number of the bucket, over a row of the release.
    """

    numbers: exp.Expr = field(default_factory=exp.null)

    @property
    def bucket(self) -> exp.Expr:
        """The bucket, over a row of the release."""
        return self.numbers

    @property
    def total(self) -> exp.Expr:
        """The rows of a bucket, which `values` shows."""
        return own("rows")

    @property
    def kinds(self) -> exp.Identifier:
        """The step with the counts of each kind."""
        return name(f"kinds_of_{self.name}")

    def steps(self) -> list[tuple[exp.Identifier, exp.Query]]:
        """The counts of each kind, and how many rows a bucket of it has."""
        first = select(
            "select {number} as _cell, any_value({counts}) as _counts, count(*) as _rows from {release} "
            "where {number} < {below} group by _cell",
            number=self.numbers,
            counts=self.column,
            release=self.source(),
            below=number(BELOW),
        )
        if not self.release.certain:
            return [(self.kinds, first)]
        return [(self._first, first), (self.kinds, self._held())]

    @property
    def _first(self) -> exp.Identifier:
        """The step with the first bucket of each kind, before the others are held against it."""
        return name(f"first_buckets_of_{self.name}")

    def _held(self) -> exp.Query:
        """The kinds, or an error where a bucket, its size or a kind is none that its number stands for.

        The rows of a bucket show the same counts, whatever reads them; so in the order in which rows come, those that
        come after one of another bucket suffice: every bucket has one, and where buckets stand together no more.
        """
        changed = (
            f"the buckets of {self.release.name} are not of the kinds that their numbers stood for when this query was "
            "rewritten: it was changed since, or in a transaction that is not committed; rewrite the query once it is"
        )
        held = tree(
            """
            select * from {first} union all select null, null, null from (
              select 1 from (
                select {number} as _number, {counts} as _shown, lag({number}) over () as _before from {release}
              ) as _in_order left join {first} on {kind} = _cell
              where (_number > 0) is not true
                or _before is distinct from _number and (_cell is null or _shown is distinct from _counts)
              union all
              select 1 from (select {number} as _number, count(*) as _there from {release} group by _number) as _buckets
              join {first} on {kind} = _cell where _there <> _rows
              union all
              select 1 from {first}
              where coalesce(list_sum(map_values(_counts)) <> _rows or list_min(map_values(_counts)) <= 0, true)
            ) as _changed where error({changed})""",
            first=self._first,
            release=self.source(),
            kind=kind_of(own("number")),
            number=self.numbers,
            counts=self.column,
            changed=exp.Literal.string(when_run(changed)),
        )
        assert isinstance(held, exp.Query)  # noqa: S101 -- the template is one
        return held

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a value of the kind, weighted by its count; counts speak of all rows of such buckets."""
        return select(
            "select _cell, unnest(map_keys(_counts)) as {value}, unnest(map_values(_counts)) as _weight, _rows "
            "from {kinds}",
            value=self.columns[0],
            kinds=self.kinds,
        )

    def there(self, condition: exp.Expr) -> exp.Expr:
        """A condition on the rows whose bucket has a value that satisfies a condition.

        Args:
            condition: a condition on the value.
        """
        member = own("member")
        inside = mapped(condition, lambda one: member if isinstance(one, exp.Column) else None)
        return tree(
            "{kind} in (select _cell from {kinds} "
            "where array_length(list_filter(map_keys(_counts), lambda _member: {inside})) > 0)",
            kind=self.key,
            kinds=self.kinds,
            inside=inside,
        )


def kind_of(bucket: exp.Expr) -> exp.Expr:
    """The kind of a bucket.

    Args:
        bucket: its number.
    """
    return tree("{bucket} & {mask}", bucket=bucket, mask=number(BELOW - 1))
