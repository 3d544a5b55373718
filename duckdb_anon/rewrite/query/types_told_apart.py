"""Whether a query tells values apart by their type, which are equal: 1 and 1.0 as texts, the bits of -1 by its width.

An answer from a column whose type is not the original's is certain only where the query says the same of both. Of whole
numbers, arithmetic and comparisons do, in any width that does not overflow; of texts, declared ones among them, all
functions do but those that are named here; of other types nothing is known to.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_integer, without_enums
from duckdb_anon.rewrite.query.walking import all_of

_BY_TYPE = {"hash", "typeof", "pg_typeof", "enum_code", "enum_first", "enum_last", "enum_range", "enum_range_boundary"}
"""Functions that say other things of a declared text than of a text."""

_PLAIN = (
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.CountIf, exp.Case, exp.If, exp.Coalesce, exp.Nullif,
    exp.Connector,
)  # fmt: skip
"""Functions that say the same of a whole number in any width."""

_WRITTEN = (exp.DataType.NUMERIC_TYPES | exp.DataType.TEXT_TYPES) - {exp.DType.BIT}
"""Types that a whole number is cast to alike in any width."""

_OF_BITS = (
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip


def reads_alike(query: exp.Expr, one: str, other: str) -> bool:
    """Whether a query says the same of equal values of one type and of another.

    Args:
        query: the query.
        one: a type.
        other: another type.

    >>> from sqlglot import parse_one
    >>> [reads_alike(parse_one(query, read="duckdb"), "INTEGER", "BIGINT")
    ...  for query in ("select sum(a + 1) from t where a > 3", "select count(*) from t where bit_count(a) > 3")]
    [True, False]
    >>> reads_alike(parse_one("select a from t"), "INTEGER", "DOUBLE")
    False
    """
    functions = all_of(query, exp.Func)
    if without_enums(one) == without_enums(other):
        return not any(fold(_name(function)) in _BY_TYPE for function in functions)
    if is_integer(one) and is_integer(other) and "UHUGEINT" not in (one, other):  # which meets others as DOUBLE
        return all(map(_is_plain, functions)) and not all_of(query, *_OF_BITS)
    return False


def _is_plain(function: exp.Func) -> bool:
    return isinstance(function, _PLAIN) or (isinstance(function, exp.Cast) and function.to.this in _WRITTEN)


def _name(function: exp.Func) -> str:
    return function.name if isinstance(function, exp.Anonymous) else function.sql_name()
