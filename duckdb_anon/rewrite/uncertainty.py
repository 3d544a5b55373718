"""95% intervals of estimates from randomized releases.

A total is a sum over released rows of a weight W with E[W] = f, the row's true contribution, and the rows were
randomized independently. So its variance, the original table held fixed, is the sum of E[W^2] - f^2, which the
sum of W^2 - V estimates without bias, V being the weight of f^2 (Guo, Ying and Wu 2011, equation 2, without
its second source of error, the sampling of records). Means and formulas of totals: delta method. Where
the final query sees randomized columns value by value, W carries the weight of a whole group: see `squares`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.aggregates import Aggregate, estimate, read_aggregate
from duckdb_anon.rewrite.early import Early
from duckdb_anon.rewrite.logic import Term, UnitOf, amount, event, present, product
from duckdb_anon.rewrite.model import Model
from duckdb_anon.rewrite.parse import to_sql
from duckdb_anon.rewrite.parts import parsed
from duckdb_anon.rewrite.randomized import RandomizedPart
from duckdb_anon.rewrite.squares import Squares

REACH = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""


def randomized_only(model: Model) -> bool:
    """Whether randomization is all that stands between the release and the original."""
    return bool(model.parts) and not model.weight and all(isinstance(part, RandomizedPart) for part in model.parts)


def interval(
    made_of: exp.Expr, where: exp.Expr | None, early: Early, squares: Squares
) -> tuple[exp.Expr, exp.Expr] | None:
    """Ends of the 95% interval of an output column, as expressions over the final query's rows.

    Args:
        made_of: COUNT, SUM, AVG, or their sums, differences, products and ratios.
        where: conditions of the query still to be satisfied, None if there are none.
        early: provides weights.
        squares: provides sums of squared weights.

    Returns:
        Low and high; None for anything else, and where a squared amount takes too many products.
    """
    formula = _Formula(where, early, squares)
    try:
        found = formula.read(made_of)
        if found is None or not found.slopes:
            return None
        variance = formula.variance(found.slopes)
        if isinstance(made_of, _AGGREGATES):
            middle = to_sql(estimate(read_aggregate(made_of), where, early), pretty=False)
            variance += formula.of_one_row(found.slopes)
        else:
            middle = found.value
    except RewriteError:
        return None
    reach = f"{REACH} * sqrt(greatest({variance}, 0))"
    return parsed(f"{middle} - {reach}"), parsed(f"{middle} + {reach}")


@dataclass(frozen=True)
class _Total:
    """A sum over rows: of ones where there is no value."""

    condition: exp.Expr
    value: exp.Expr | None

    def terms(self, unit_of: UnitOf) -> list[Term]:
        rows = event(self.condition, unit_of)
        return rows if self.value is None else product(rows, amount(self.value, unit_of))

    def times(self, other: _Total) -> _Total:
        """The total of the products of what each row adds to both."""
        values = [one for one in (self.value, other.value) if one is not None]
        pairs = [exp.paren(one.copy()) for one in values]
        both = values[0] if values else None
        if len(pairs) > 1:
            real = exp.Mul(this=exp.Literal.number("1e0"), expression=pairs[0])  # whole numbers would run over
            both = exp.Mul(this=real, expression=pairs[1])
        return _Total(exp.and_(self.condition.copy(), other.condition.copy()), both)


@dataclass(frozen=True)
class _Smooth:
    """A formula's value and its slope by each total, by number, as SQL over the final query's rows."""

    value: str
    slopes: dict[int, str]


@dataclass
class _Formula:
    """Reads a formula of aggregates; its variance follows from those of the totals (delta method)."""

    where: exp.Expr | None
    early: Early
    squares: Squares
    totals: list[_Total] = field(default_factory=list)

    def read(self, node: exp.Expr) -> _Smooth | None:
        node = node.unnest()
        if isinstance(node, _AGGREGATES):
            return self._aggregate(read_aggregate(node))
        if isinstance(node, exp.Literal) and not node.is_string:
            return _Smooth(f"{node.this}::double", {})
        if isinstance(node, exp.Neg):
            inner = self.read(node.this)
            return inner and _Smooth(f"(-{inner.value})", {i: f"(-{s})" for i, s in inner.slopes.items()})
        if isinstance(node, exp.Cast) and node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT):
            return self.read(node.this)
        if isinstance(node, exp.Nullif):
            return self.read(node.this)  # NULL in one group says nothing of the others
        if not isinstance(node, exp.Binary) or type(node) not in _SLOPES:
            return None
        left, right = self.read(node.left), self.read(node.right)
        if left is None or right is None:
            return None
        sign, by_left, by_right = _SLOPES[type(node)]
        a, b = left.value, right.value
        slopes = {i: f"({s}) * ({by_left.format(a=a, b=b)})" for i, s in left.slopes.items()}
        for i, s in right.slopes.items():
            more = f"({s}) * ({by_right.format(a=a, b=b)})"
            slopes[i] = f"{slopes[i]} + {more}" if i in slopes else more
        return _Smooth(f"({a} {sign} {b})", slopes)

    def variance(self, slopes: dict[int, str]) -> str:
        pieces = []
        for i, slope in slopes.items():
            for j, other in slopes.items():
                if i > j:
                    continue
                factor = f"({slope}) * ({other})" + ("" if i == j else " * 2")
                pieces.append(f"{factor} * ({self._covariance(self.totals[i], self.totals[j])})")
        return " + ".join(pieces) or "0"

    def of_one_row(self, slopes: dict[int, str]) -> str:
        """What one more row would add to the variance of a single total; nothing for a mean."""
        if len(slopes) > 1:
            return ""
        return f" + {self.squares.of_one_row(self.totals[0].terms(self.early.units.of))}"

    def _aggregate(self, aggregate: Aggregate) -> _Smooth | None:
        if aggregate.kind not in ("count", "sum", "avg"):
            return None
        condition = aggregate.condition
        if self.where is not None:
            condition = exp.and_(self.where.copy(), condition.copy())
        total = self._number(_Total(condition, aggregate.value))
        if aggregate.kind != "avg" or aggregate.value is None:
            return _Smooth(self._sum(total), {total: "1"})
        there = exp.and_(condition.copy(), present(aggregate.value, self.early.units.of))
        rows = self._number(_Total(there, None))
        amounts, count = self._sum(total), self._sum(rows)
        return _Smooth(f"({amounts} / {count})", {total: f"1 / {count}", rows: f"-{amounts} / {count} ** 2"})

    def _number(self, total: _Total) -> int:
        if total not in self.totals:
            self.totals.append(total)
        return self.totals.index(total)

    def _covariance(self, one: _Total, other: _Total) -> str:
        unit_of = self.early.units.of
        squares = self.squares.of(one.terms(unit_of), other.terms(unit_of))
        return f"{squares} - {self._added(one.times(other).terms(unit_of))}"

    def _sum(self, number: int) -> str:
        return self._added(self.totals[number].terms(self.early.units.of))

    def _added(self, terms: list[Term]) -> str:
        """A sum of products, summed over a group of the final query."""
        texts = [(term.sign, to_sql(self.early.term(term), pretty=False)) for term in terms]
        signed = " ".join(f"{'+' if sign > 0 else '-'} {text}" for sign, text in texts)
        return f"sum({signed.removeprefix('+ ') or '0'})"


_AGGREGATES = (exp.AggFunc, exp.Filter)
_SLOPES: dict[type[exp.Expr], tuple[str, str, str]] = {
    exp.Add: ("+", "1", "1"),
    exp.Sub: ("-", "1", "-1"),
    exp.Mul: ("*", "{b}", "{a}"),
    exp.Div: ("/", "1 / {b}", "-{a} / {b} ** 2"),
}
"""Sign of an operation, and its derivatives by both sides."""
