"""95% intervals of estimates from randomized releases.

A total is a sum over released rows of a weight W with E[W] = f, the row's true contribution, and the rows were
randomized independently. So its variance, the original table held fixed, is the sum of E[W^2] - f^2, which the
sum of W^2 - V estimates without bias, V being the weight of f^2 (Guo, Ying and Wu 2011, equation 2, without
its second source of error, the sampling of records). Means and formulas of totals: delta method. Where
the final query sees randomized columns value by value, W carries the weight of a whole group: see `variance_terms`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.bounds.variance_terms import VarianceTerms
from duckdb_anon.rewrite.estimate.aggregates import Aggregate, estimate, read_aggregate
from duckdb_anon.rewrite.estimate.expectation import HomeOf, Term, amount, event, present, product, split
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.query.template import added, every, multiplied, number, tree
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart
from duckdb_anon.rewrite.shapes.released import Model

REACH = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""


def randomized_only(model: Model) -> bool:
    """Whether randomization is all that stands between the release and the original."""
    return bool(model.parts) and not model.weight and all(isinstance(part, RandomizedPart) for part in model.parts)


def interval(
    made_of: exp.Expr, where: exp.Expr | None, steps: Steps, variance_terms: VarianceTerms
) -> tuple[exp.Expr, exp.Expr] | None:
    """Ends of the 95% interval of an output column, as expressions over the final query's rows.

    Args:
        made_of: COUNT, SUM, AVG, or their sums, differences, products and ratios.
        where: conditions of the query still to be satisfied, None if there are none.
        steps: provides weights.
        variance_terms: provides sums of squared weights.

    Returns:
        Low and high; None for anything else, and where a squared amount takes too many products.
    """
    formula = _Formula(where, steps, variance_terms, isinstance(made_of, _AGGREGATES))
    try:
        found = formula.read(made_of)
        if found is None or not found.slopes:
            return None
        variance = formula.variance(found.slopes)
        if isinstance(made_of, _AGGREGATES):
            middle = estimate(read_aggregate(made_of), where, steps)
            if len(found.slopes) == 1:
                variance = tree("{a} + {b}", a=variance, b=formula.of_one_row())
        else:
            middle = found.value
    except RewriteError:
        return None
    low, high = (
        tree(f"{{middle}} {sign} {REACH} * sqrt(greatest({{variance}}, 0))", middle=middle, variance=variance)
        for sign in "-+"
    )
    return low, high


@dataclass(frozen=True)
class _Total:
    """A sum over rows: of ones where there is no value."""

    condition: exp.Expr
    value: exp.Expr | None

    def terms(self, home_of: HomeOf) -> list[Term]:
        rows = event(self.condition, home_of)
        return rows if self.value is None else product(rows, amount(self.value, home_of))

    def times(self, other: _Total) -> _Total:
        """The total of the products of what each row adds to both."""
        values = [one for one in (self.value, other.value) if one is not None]
        both = values[0] if values else None
        if len(values) > 1:  # whole numbers would run over
            both = tree("1e0 * {a} * {b}", a=values[0], b=values[1])
        return _Total(every(list(dict.fromkeys([*split(self.condition), *split(other.condition)]))), both)


@dataclass(frozen=True)
class _Smooth:
    """A formula's value and its slope by each total, by number, over the final query's rows."""

    value: exp.Expr
    slopes: dict[int, exp.Expr]


@dataclass
class _Formula:
    """Reads a formula of aggregates; its variance follows from those of the totals (delta method)."""

    where: exp.Expr | None
    steps: Steps
    variance_terms: VarianceTerms
    alone: bool
    totals: list[_Total] = field(default_factory=list)

    def read(self, node: exp.Expr) -> _Smooth | None:
        node = node.unnest()
        if isinstance(node, _AGGREGATES):
            return self._aggregate(read_aggregate(node))
        if isinstance(node, exp.Literal) and not node.is_string:
            return _Smooth(tree("{x}::double", x=node), {})
        if isinstance(node, exp.Neg):
            inner = self.read(node.this)
            return inner and _Smooth(
                tree("-{x}", x=inner.value), {i: tree("-{x}", x=slope) for i, slope in inner.slopes.items()}
            )
        if isinstance(node, exp.Cast) and node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT):
            return self.read(node.this)
        if isinstance(node, exp.Nullif):
            inner = node.this.unnest()
            ends_there = isinstance(inner, exp.Greatest) and inner.expressions == [node.expression]
            return self.read(inner.this if ends_there else inner)  # NULL in one group says nothing of the others
        if not isinstance(node, exp.Binary) or type(node) not in _SLOPES:
            return None
        left, right = self.read(node.left), self.read(node.right)
        if left is None or right is None:
            return None
        whole, by_left, by_right = _SLOPES[type(node)]
        sides = {"a": left.value, "b": right.value}
        slopes = {i: multiplied([slope, tree(by_left, **sides)]) for i, slope in left.slopes.items()}
        for i, slope in right.slopes.items():
            more = multiplied([slope, tree(by_right, **sides)])
            slopes[i] = tree("{x} + {y}", x=slopes[i], y=more) if i in slopes else more
        return _Smooth(tree(whole, **sides), slopes)

    def variance(self, slopes: dict[int, exp.Expr]) -> exp.Expr:
        pieces = []
        for i, slope in slopes.items():
            for j, other in slopes.items():
                if i <= j:
                    factors = [slope, other, *([number(2)] if i != j else [])]
                    pieces.append((1, multiplied([*factors, self._covariance(self.totals[i], self.totals[j])])))
        return added(pieces)

    def of_one_row(self) -> exp.Expr:
        """What one more row would add to the variance of a single total."""
        return self.variance_terms.of_one_row(self.totals[0].terms(self.steps.homes.of))

    def _aggregate(self, aggregate: Aggregate) -> _Smooth | None:
        if aggregate.kind not in ("count", "sum", "avg"):
            return None
        condition = aggregate.condition
        if self.where is not None:
            condition = every([self.where, condition])
        total = self._number(_Total(condition, aggregate.value))
        if aggregate.kind != "avg" or aggregate.value is None:
            # where an output column is this total, only its variance is read: its sum would be carried in vain
            return _Smooth(exp.null() if self.alone else self._sum(total), {total: number(1)})
        there = every([condition, present(aggregate.value, self.steps.homes.of)])
        rows = self._number(_Total(there, None))
        amounts, count = self._sum(total), self._sum(rows)
        sides = {"a": amounts, "b": count}
        return _Smooth(
            tree("{a} / {b}", **sides), {total: tree("1 / {b}", **sides), rows: tree("-{a} / {b} ** 2", **sides)}
        )

    def _number(self, total: _Total) -> int:
        if total not in self.totals:
            self.totals.append(total)
        return self.totals.index(total)

    def _covariance(self, one: _Total, other: _Total) -> exp.Expr:
        home_of = self.steps.homes.of
        variance_terms = self.variance_terms.of(one.terms(home_of), other.terms(home_of))
        return tree("{a} - {b}", a=variance_terms, b=self._added(one.times(other).terms(home_of)))

    def _sum(self, place: int) -> exp.Expr:
        return self._added(self.totals[place].terms(self.steps.homes.of))

    def _added(self, terms: list[Term]) -> exp.Expr:
        """A sum of products, summed over a group of the final query."""
        return tree("sum({x})", x=added([(term.sign, self.steps.term(term)) for term in terms]))


_AGGREGATES = (exp.AggFunc, exp.Filter)
_SLOPES: dict[type[exp.Expr], tuple[str, str, str]] = {
    exp.Add: ("{a} + {b}", "1", "1"),
    exp.Sub: ("{a} - {b}", "1", "-1"),
    exp.Mul: ("{a} * {b}", "{b}", "{a}"),
    exp.Div: ("{a} / {b}", "1 / {b}", "-{a} / {b} ** 2"),
}
"""An operation, and its derivatives by both sides."""
