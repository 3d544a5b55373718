"""What a released row adds to a total: a product of factors; and the product of two of them.

A row that satisfies a condition adds 1 and any other 0, and their squares are the same. So the products that variances
take are often sums that the totals take as well, and those are added up once.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.rewrite.estimate.expectation import split
from duckdb_anon.rewrite.query.template import every, multiplied, number, tree
from duckdb_anon.rewrite.shapes.known_expressions import never_null


def factors(node: exp.Expr) -> list[exp.Expr]:
    """The factors of a product.

    Args:
        node: the product.
    """
    inner = node.unnest()
    if isinstance(inner, exp.Mul):
        return [*factors(inner.left), *factors(inner.right)]
    return [node]


def value_where(condition: exp.Expr | None, value: exp.Expr | None) -> exp.Expr:
    """A value of a row where a condition holds, 0 elsewhere; 1 for the value None.

    Args:
        condition: the condition; None where it always holds.
        value: the value.
    """
    if value is None:
        assert condition is not None  # noqa: S101 -- a factor has one of them
        return tree("({x})::int" if _present(condition) else "case when {x} then 1 else 0 end", x=condition)
    if condition is not None:  # a product is NULL where a factor is
        parts = factors(value)
        tests = [one for one in split(condition) if _present(one) not in parts]
        if tests:
            return tree("coalesce(case when {condition} then {value} end, 0)", condition=every(tests), value=value)
    return value if never_null(value) else tree("coalesce({value}, 0)", value=value)


def of_both(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """The product of what a row adds to two totals, which runs over for no whole numbers.

    Args:
        one: what it adds to one of them.
        other: what it adds to the other.

    Example:
        >>> from sqlglot import parse_one
        >>> of_both(parse_one("COALESCE(x, 0)"), parse_one("CAST((NOT x IS NULL) AS INT)")).sql()
        'COALESCE(x, 0)'
        >>> of_both(parse_one("COALESCE(x, 0)"), parse_one("COALESCE(x, 0)")).sql()
        'COALESCE(1e0 * x * x, 0)'
    """
    both = [*factors(one), *factors(other)]
    flags = dict.fromkeys(node for node in both if is_flag(node))
    numbers = [node for node in both if node not in flags and node != number(1)]
    amounts = [node for node in numbers if isinstance(node, exp.Coalesce)]
    values = [node.this.unnest() for node in amounts]
    kept = [flag for flag in flags if not (isinstance(flag, exp.Cast) and _present(flag.this) in values)]
    if len(amounts) == 2 and amounts[0] == amounts[1] and amounts[0].expressions == [number(0)]:
        others = [node for node in numbers if node not in amounts]
        return multiplied([*kept, _squared(amounts[0].this.unnest()), *others])
    return multiplied([*kept, *([tree("1e0")] if len(numbers) > 1 else []), *numbers])


def is_flag(node: exp.Expr) -> bool:
    """Whether a factor is 1 where a condition holds and 0 elsewhere.

    Args:
        node: the factor.
    """
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return _present(node.this) is not None
    ends = [branch.args["true"] for branch in node.args["ifs"]] if isinstance(node, exp.Case) else []
    return [*ends, node.args.get("default")] == [number(1), number(0)]


def _squared(value: exp.Expr) -> exp.Expr:
    """The square of a value, 0 for NULL, written as the square of an amount is."""
    branches = value.args["ifs"] if isinstance(value, exp.Case) and not value.args.get("this") else []
    if len(branches) != 1 or value.args.get("default") is not None:
        return value_where(None, tree("1e0 * {x} * {x}", x=value))
    return value_where(branches[0].this, tree("1e0 * {x} * {x}", x=branches[0].args["true"]))


def _present(condition: exp.Expr) -> exp.Expr | None:
    """What a condition says to be there; None for any other condition."""
    condition = condition.unnest()
    test = condition.this.unnest() if isinstance(condition, exp.Not) else None
    return test.this if isinstance(test, exp.Is) and isinstance(test.expression, exp.Null) else None
