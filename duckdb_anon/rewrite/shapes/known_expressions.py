"""Expressions of one column that are known without listing its values: lines, choices of constants, numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isinf
from typing import TypeAlias

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import is_integer

Quadratic: TypeAlias = tuple[Fraction, Fraction, Fraction]
"""Factors of the square and of the value itself, and what is added."""
_ENDS = 2**63 - 1
_NUMBERS = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv),
    *(exp.Mod, exp.Abs, exp.Sqrt, exp.Pow, exp.Round, exp.Floor, exp.Ceil, exp.Sign, exp.Greatest, exp.Least),
    *(exp.Coalesce, exp.Nullif, exp.Case, exp.If, exp.Null, exp.Boolean, exp.Predicate, exp.Connector, exp.Not),
)


def is_number(value: exp.Expr) -> bool:
    """Whether an expression of numbers is surely a number itself."""
    texts = any(isinstance(node, exp.Literal) and node.is_string for node in value.walk())
    return not texts and all(isinstance(node, _NUMBERS) for node in value.walk())


def never_null(value: exp.Expr) -> bool:
    """Whether an expression has a value whatever its columns are: a number, or a CASE of numbers with an ELSE.

    >>> from sqlglot import parse_one
    >>> never_null(parse_one("case when a > 1 then 1 else 0 end")), never_null(parse_one("case when a then 1 end"))
    (True, False)
    """
    value = value.unnest()
    if not isinstance(value, exp.Case):
        return isinstance(value, exp.Literal)
    ends = [branch.args["true"] for branch in value.args["ifs"]] + [value.args.get("default")]
    return all(end is not None and never_null(end) for end in ends)


def compares(condition: exp.Expr, column: exp.Expr) -> bool:
    """Whether a condition is a comparison of a column, which NULL cannot satisfy.

    >>> from sqlglot import parse_one
    >>> compares(parse_one("a > 1"), parse_one("a")), compares(parse_one("a is null"), parse_one("a"))
    (True, False)
    """
    if isinstance(condition, (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)):
        return column in (condition.this, condition.expression)
    return isinstance(condition, (exp.Between, exp.In)) and condition.this == column


def constants(value: exp.Expr) -> list[Fraction] | None:
    """What a CASE can give where all of its branches are numbers; None for anything else."""
    value = value.unnest()
    if not isinstance(value, exp.Case):
        return None
    ends = [branch.args["true"] for branch in value.args["ifs"]] + [value.args.get("default")]
    found = [end.unnest() for end in ends if end is not None and not isinstance(end.unnest(), exp.Null)]
    if not found or any(not isinstance(end, exp.Literal) or end.is_string for end in found):
        return None
    return [Fraction(end.this) for end in found]


@dataclass(frozen=True)
class CountedIf:
    """A number where a condition holds, 0 or NULL elsewhere."""

    condition: exp.Expr
    number: exp.Expr
    null_elsewhere: bool


def counted_if(value: exp.Expr) -> CountedIf | None:
    """Read a CASE that gives a number where its first condition holds, 0 or NULL elsewhere; None for anything else.

    >>> from sqlglot import parse_one
    >>> counted_if(parse_one("case when a > 1 then 2 else 0 end")).condition.sql()
    'a > 1'
    >>> counted_if(parse_one("case when a > 1 then 2 else 1 end"))
    """
    value = value.unnest()
    if not isinstance(value, exp.Case) or value.args.get("this") is not None or constants(value) is None:
        return None
    first, *others = value.args["ifs"]
    found = first.args["true"].unnest()
    ends = [branch.args["true"] for branch in others] + [value.args.get("default")]
    numbers = [end.unnest() for end in ends if end is not None and isinstance(end.unnest(), exp.Literal)]
    if not isinstance(found, exp.Literal) or any(Fraction(number.this) != 0 for number in numbers):
        return None
    return CountedIf(first.this, found, not numbers)


def linear(value: exp.Expr) -> tuple[Fraction, Fraction] | None:
    """Read an expression of one column as slope * column + shift; None if it is anything else."""
    found = quadratic(value)
    return None if found is None or found[0] else found[1:]


def quadratic(value: exp.Expr, kind: str = "") -> Quadratic | None:
    """Read an expression of one column as a * column ** 2 + b * column + c; None if it is anything else.

    Args:
        value: an expression of numbers.
        kind: type of the column: one of whole numbers stays as it is where it is cast to another one.

    >>> from sqlglot import parse_one
    >>> [int(x) for x in quadratic(parse_one("(2 * a - 1) * a + 3"))]
    [2, -1, 3]
    >>> quadratic(parse_one("a * a * a"))
    """
    value = value.unnest()
    if isinstance(value, exp.Column):
        return Fraction(0), Fraction(1), Fraction(0)
    if isinstance(value, exp.Literal) and not value.is_string and not isinf(float(value.this)):
        return Fraction(0), Fraction(0), Fraction(value.this)
    if isinstance(value, exp.Neg):
        inner = quadratic(value.this, kind)
        return None if inner is None else (-inner[0], -inner[1], -inner[2])
    if isinstance(value, exp.Cast) and (value.to.this == exp.DType.DOUBLE or (_is_whole(value) and is_integer(kind))):
        return quadratic(value.this, kind)
    if not isinstance(value, (exp.Add, exp.Sub, exp.Mul)):
        return None
    left, right = quadratic(value.left, kind), quadratic(value.right, kind)
    if left is None or right is None:
        return None
    if isinstance(value, exp.Mul):
        (a, b, c), (d, e, f) = left, right
        return None if a * d or a * e or b * d else (a * f + b * e + c * d, b * f + c * e, c * f)
    sign = 1 if isinstance(value, exp.Add) else -1
    return left[0] + sign * right[0], left[1] + sign * right[1], left[2] + sign * right[2]


def nearly(value: exp.Expr) -> exp.Expr:
    """An expression that is not rounded to FLOAT anywhere: the same but for its last digits.

    >>> from sqlglot import parse_one
    >>> nearly(parse_one("cast(a as float) + 1", dialect="duckdb")).sql("duckdb")
    'CAST(a AS DOUBLE) + 1'
    """
    if value.find(exp.Cast) is None:
        return value
    found = value.copy()
    for cast in found.find_all(exp.Cast):
        if cast.to.this == exp.DType.FLOAT:
            cast.to.set("this", exp.DType.DOUBLE)
    return found


def _is_whole(cast: exp.Cast) -> bool:
    return cast.to.this in (exp.DType.BIGINT, exp.DType.INT128)


def equal_to(condition: exp.Expr, kind: str) -> list[exp.Expr] | None:
    """The constants that a column must be equal to one of (=, IN); None for any other condition.

    Args:
        condition: a condition on one column.
        kind: DuckDB type of the column: constants of other types, which SQL would convert, are none.

    >>> from sqlglot import parse_one
    >>> [one.sql() for one in equal_to(parse_one("a in (1, -2)"), "INTEGER")], equal_to(parse_one("a = 'x'"), "DATE")
    (['1', '-2'], None)
    """
    condition = condition.unnest()
    if isinstance(condition, exp.EQ):
        sides = [condition.this.unnest(), condition.expression.unnest()]
        value, wanted = sides if isinstance(sides[0], exp.Column) else sides[::-1]
        found = [wanted]
    elif isinstance(condition, exp.In) and condition.expressions:
        value, found = condition.this.unnest(), [one.unnest() for one in condition.expressions]
    else:
        return None
    return found if isinstance(value, exp.Column) and all(_is_constant(one, kind) for one in found) else None


def _is_constant(value: exp.Expr, kind: str) -> bool:
    bare = value.this.unnest() if isinstance(value, exp.Neg) else value
    if not isinstance(bare, exp.Literal):
        return False
    if bare.is_string:
        return kind.upper() == "VARCHAR" and bare is value
    return is_integer(kind) and bare.is_int and int(bare.this) <= _ENDS
