"""Low and high of each aggregate of a rewritten query, and how sure they are.

    confidence 1      hard bounds: true whatever the original rows behind the released cells are (boxes, buckets)
    confidence 0.95   an interval of the method's own randomness: permuted (`permuted`), randomized (`uncertainty`) or
                      sampled (`bounds`), cut to the hard bounds where there are some

An interval of permuted columns takes them as independent inside a bucket, which real columns seldom are, so hard bounds
come first unless `likely` is asked for.

Neither exists where a release does not publish its randomness: replaced values (muco), noisy counts, retained
sensitive values, sums where rows were left out, an AVG over boxes that were sampled as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.bounds.delta_method import REACH, interval, randomized_only
from duckdb_anon.rewrite.bounds.hard_bounds import Pair, bounds, sample_interval
from duckdb_anon.rewrite.bounds.permutation import Permuted
from duckdb_anon.rewrite.bounds.variance_terms import VarianceTerms
from duckdb_anon.rewrite.estimate.aggregates import Aggregate, estimate, read_aggregate
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.query.grouping_sets import QueryGroups
from duckdb_anon.rewrite.query.tables import Bounds
from duckdb_anon.rewrite.query.template import copied, tree

HARD, LIKELY = 1.0, 0.95


@dataclass(frozen=True)
class Ends:
    """Low and high of an aggregate, as expressions over the final query's rows.

    Attributes:
        low, high: the ends.
        confidence: chance that the truth is between them: 1 for hard bounds, 0.95 for an interval.
    """

    low: exp.Expr
    high: exp.Expr
    confidence: float


@dataclass
class Limits:
    """Finds the ends of one SELECT's aggregates.

    Attributes:
        where: its conditions that are still to be satisfied, None if there are none.
        steps: its named steps.
        groups: what it groups by.
        variance_terms: sums of squared weights, where columns were randomized.
        permuted: what is known of each grouping set where columns were permuted inside buckets.
        wanted: hard bounds only, first, or second to intervals.
    """

    where: exp.Expr | None
    steps: Steps
    groups: QueryGroups
    variance_terms: VarianceTerms
    permuted: tuple[Permuted, ...] = ()
    wanted: Bounds = "likely"

    def of(self, made_of: exp.Expr) -> Ends | None:
        """Low and high of an output column that has aggregates in it, None where there are none."""
        if randomized_only(self.steps.model):
            likely = None if self.wanted == "hard" else interval(made_of, self.where, self.steps, self.variance_terms)
            return Ends(*likely, LIKELY) if likely is not None else None
        return self._of_aggregate(read_aggregate(made_of)) if isinstance(made_of, (exp.AggFunc, exp.Filter)) else None

    def _of_aggregate(self, aggregate: Aggregate) -> Ends | None:
        numbers = range(len(self.groups.sets))
        sampled = self._chosen([sample_interval(aggregate, self.where, self.steps, i) for i in numbers])
        if sampled is not None and self.wanted != "hard":
            return Ends(*sampled, LIKELY)
        hard = [self._hard(aggregate, i) for i in numbers]
        variances = [
            one.variance(aggregate) if self.wanted == "likely" or (self.wanted == "sure" and ends is None) else None
            for one, ends in zip(self.permuted, hard, strict=False)
        ]
        if all(one is None for one in variances):
            found = self._chosen(hard)
            return Ends(*found, HARD) if found is not None else None
        middle = estimate(aggregate, self.where, self.steps)
        pairs = zip(variances, hard, strict=True)
        found = self._chosen([_around(middle, variance, ends, aggregate) for variance, ends in pairs])
        return Ends(*found, LIKELY) if found is not None else None

    def attach(self, select: exp.Select) -> None:
        """Add the CTEs that the ends read to the rewritten query."""
        for one in self.permuted:
            one.attach(select)
        self.variance_terms.attach(select)

    def _hard(self, aggregate: Aggregate, number: int) -> Pair | None:
        """Hard bounds in one grouping set: from the counts of buckets where they say more than single rows."""
        counted = self.permuted[number].certain(aggregate) if self.permuted else None
        return counted or bounds(aggregate, self.where, self.steps, number)

    def _chosen(self, ends: list[Pair | None]) -> tuple[exp.Expr, exp.Expr] | None:
        """The ends that belong to the grouping set of each group, NULL for sets without; None if all are."""
        if not any(ends):
            return None
        known = [one or (exp.null(), exp.null()) for one in ends]
        return self.groups.chosen([low for low, _ in known]), self.groups.chosen([high for _, high in known])


_BY_ORDER = (exp.Mode, exp.ApproxQuantile, exp.ApproxTopK)
"""Aggregates that depend on the order of rows, as the mode of equally frequent values does."""


def append_answers(select: exp.Select) -> dict[int, float]:
    """Append the bounds of a query on exact columns: both are its answer, whatever the order of the rows.

    Args:
        select: the query.

    Returns:
        Number of each output column that has them, and their confidence.
    """
    found = []
    for number, projection in enumerate(list(select.expressions)):
        made_of = projection.unalias()
        if isinstance(made_of, exp.Grouping) or made_of.find(*_BY_ORDER):
            continue
        if isinstance(made_of, (exp.AggFunc, exp.Filter)):
            found.append(number)
            for end in ("low", "high"):
                name = f"{projection.alias_or_name}_{end}"
                select.append(
                    "expressions", exp.Alias(this=copied(made_of), alias=exp.to_identifier(name, quoted=True))
                )
    return dict.fromkeys(found, HARD)


def _around(middle: exp.Expr, variance: exp.Expr | None, hard: Pair | None, aggregate: Aggregate) -> Pair | None:
    """The interval of a variance, cut to what is possible."""
    if variance is None:
        return hard
    # rows may be fake: an answer that no permutation can change is not certain for that
    inside = "greatest({variance}, 0)" if hard is not None else "nullif(greatest(round({variance}, 9), 0), 0)"
    low, high = (tree(f"{{middle}} {sign} {REACH} * sqrt({inside})", middle=middle, variance=variance) for sign in "-+")
    if hard is not None:
        return tree("greatest({a}, {b})", a=hard[0], b=low), tree("least({a}, {b})", a=hard[1], b=high)
    return (tree("case when {low} < 0 then 0 else {low} end", low=low) if aggregate.kind == "count" else low), high
