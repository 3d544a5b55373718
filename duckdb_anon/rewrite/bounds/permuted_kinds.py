"""The same intervals and bounds where the numbers of buckets tell their kinds (`duckdb_anon.model.kinds`).

Buckets of one kind of which as many rows satisfy a query's conditions add the same to each sum. So rows are counted by
the number of their bucket, buckets of the same counts are counted in turn, and what a bucket adds is reckoned once for
each such combination, times their number.
Cost: one pass over the rows, grouped by bucket and key, and one over the combinations.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.bounds.permutation import Permuted
from duckdb_anon.rewrite.estimate.expectation import EXACT, Term
from duckdb_anon.rewrite.estimate.homes import Homes
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import Step, append_step
from duckdb_anon.rewrite.query.grouping_sets import QueryGroups
from duckdb_anon.rewrite.query.template import copied, own, select, tree, truth
from duckdb_anon.rewrite.shapes.kind_counts import KindPart
from duckdb_anon.rewrite.shapes.listed import BagPart
from duckdb_anon.rewrite.shapes.parts import ROW, aliased, labelled
from duckdb_anon.rewrite.shapes.slices import SlicePart

MOST_SETS = 8
"""A query of more grouping sets has no intervals: each set is a pass over the release."""


@dataclass
class PermutedKinds(Permuted):
    """Collects the variances of one grouping set of a release with kinds of buckets.

    Attributes:
        of_values: whether values of the rows are added up, which are seldom the same in two buckets.
    """

    of_values: bool = False

    def attach(self, query: exp.Select) -> None:
        """Add the CTEs, after those they read, and the join that gives each group its variance."""
        with_ = query.args.get("with_")
        there = {cte.alias for cte in with_.expressions} if with_ is not None else set()
        for step, made_of in self._part.steps() if self.wanted else ():
            if step.this not in there:
                append_step(query, step, made_of)
        super().attach(query)

    @property
    def _part(self) -> KindPart:
        return next(part for part in self.steps.model.parts if isinstance(part, KindPart))

    @property
    def _size(self) -> exp.Expr:
        """How many rows a bucket of the kind has."""
        return tree("{kinds}._rows", kinds=self._part.kinds)

    def _row_factor(self, term: Term) -> exp.Expr:
        self.of_values |= EXACT in term.values
        return super()._row_factor(term)

    def _ctes(self) -> list[Step]:
        part, rows = self._part, self._rows_name
        used = part.name in self.sums
        sums = self._sums_name(part.name)
        made: list[Step] = [(rows, self._rows())]
        if used:
            made.append((sums, self._cells(part)))
        keys = [
            tree("{step}.{k}", step=rows if home == EXACT else sums, k=own(f"key_{i}").this)
            for i, (_, home) in enumerate(self.keys)
        ]
        totals = [
            labelled(tree("sum({rows}._buckets * {x})", rows=rows, x=total), label)
            for total, label in self.wanted.items()
        ]
        joined = select("select {columns} from {rows}", columns=[*keys, *totals], rows=rows)
        for other in (part.kinds, *([sums] if used else [])):
            on = tree("{rows}._cell = {other}._cell", rows=rows, other=other)
            joined.append("joins", exp.Join(this=exp.Table(this=other.copy()), on=on))
        if keys:
            joined.set("group", exp.Group(expressions=[copied(key) for key in keys]))
        return [*made, (self._name, joined)]

    def _rows(self) -> exp.Select:
        """SELECT kind, keys of the rows themselves, sums over the rows of a bucket, how many buckets have them."""
        part, release = self._part, aliased(self.steps.model.release, ROW)
        keys = [(i, self.steps.text(key)) for i, (key, home) in enumerate(self.keys) if home == EXACT]
        if not keys and not self.of_rows:
            return select(
                "select {kinds}._cell, _there / {kinds}._rows as _buckets from ("
                "select {kind} as _cell, count(*) as _there from {release} group by _cell) as _counted "
                "join {kinds} on _counted._cell = {kinds}._cell",
                kinds=part.kinds,
                kind=part.key,
                release=release,
            )
        sums = [labelled(tree("sum({x})::double", x=factor), label) for factor, label in self.of_rows.items()]
        each = select(
            "select {kind} as _cell, {keys}, {sums} from {release} group by {grouped}",
            kind=part.key,
            keys=[labelled(copied(key), f"key_{i}") for i, key in keys],
            sums=sums,
            release=release,
            grouped=[self.bucket, *(key for _, key in keys)],
        )
        # a bucket without a row that satisfies them adds 0 to every sum, whatever its cells are
        for condition in self.steps.conditions if self.of_rows else ():
            each.where(self.steps.text(condition), copy=False)
        if self.of_values:
            return select("select *, 1 as _buckets from {each}", each=each)
        return select("select *, count(*) as _buckets from {each} group by all", each=each)


def permuted(query: exp.Select, steps: Steps, groups: QueryGroups) -> tuple[Permuted, ...]:
    """Read what a query needs for intervals, one for each grouping set.

    Args:
        query: the bound SELECT, its WHERE as the analyst wrote it.
        steps: its named steps.
        groups: what it groups by.

    Returns:
        Nothing where permutation is not all that stands between the tables, or a key speaks of several columns.
    """
    model = steps.model
    buckets = {part.bucket for part in model.parts if isinstance(part, (BagPart, SlicePart))}
    if (
        model.bucket is None
        or buckets != {model.bucket}
        or model.weight
        or steps.homes.others
        or len(groups.sets) > MOST_SETS
    ):
        return ()
    homes = Homes(steps.homes.alias, model, ())
    where = query.args.get("where")
    condition = copied(where.this) if where else truth(True)
    kind = PermutedKinds if any(isinstance(part, KindPart) for part in model.parts) else Permuted
    found = []
    for place, keys in enumerate(groups.sets):
        pairs = [(copied(key), homes.of(key)) for key in keys]
        placed = tuple((key, home) for key, home in pairs if home is not None)
        if len(placed) < len(pairs):
            return ()
        found.append(kind(steps, homes, model.bucket, placed, condition, place))
    return tuple(found)
