"""Casts and shifts that fail for some values, beside a WHERE that may keep those values out.

    select sum(s::int) from t where s <> 'n/a'      ...  try_cast(s as int)  ...

The original never computes them for rows that its WHERE leaves out; an estimate does, for a cell that stands for many
values and for rows whose chance is 0 at the end. What fails is NULL there, in rows that do not count: AND with what is
false, and a chance of 0, stay what they are. Where a row that counts fails the original fails too, which a note says.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_boolean, is_integer, is_moment, is_number, is_text
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.walking import all_of

_MARK = "under where"
_WIDTH = {
    **{exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64, exp.DType.INT128: 128},
    **{exp.DType.DOUBLE: 1024, exp.DType.FLOAT: 128},
}
"""Bits of whole numbers that a type surely holds."""
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}


def mark(select: exp.Select, alias: str, original: TableInfo) -> None:
    """Mark what may fail in a SELECT with a WHERE, before its parts are copied.

    Args:
        select: a bound SELECT that reads the original.
        alias: how it calls the original.
        original: its columns' types.
    """
    if select.args.get("where") is None:
        return
    for node in all_of(select, exp.Cast, exp.BitwiseLeftShift):
        kinds = [original.types.get(fold(c.name), "") for c in all_of(node.this, exp.Column) if c.table == alias]
        if kinds and (not isinstance(node, exp.Cast) or _may_fail(node, kinds)):
            node.meta[_MARK] = True


def tried(query: exp.Query) -> bool:
    """Let what is marked be NULL where it fails, in place; tell whether anything is."""
    found = [node for node in all_of(query, exp.Cast, exp.BitwiseLeftShift) if node.meta.get(_MARK)]
    for node in found:
        del node.meta[_MARK]
        if isinstance(node, exp.Cast):
            node.replace(exp.TryCast(**node.args))
        else:
            node.replace(exp.Anonymous(this="try", expressions=[node.copy()]))
    return bool(found)


def _may_fail(cast: exp.Cast, kinds: list[str]) -> bool:
    """Whether a cast of columns of these types may fail; of what is computed of numbers it is taken not to."""
    if isinstance(cast, exp.TryCast) or cast.to.is_type(*exp.DataType.TEXT_TYPES):
        return False
    if any(map(is_text, kinds)):
        return True
    if not isinstance(cast.this.unnest(), exp.Column) or not (is_number(kinds[0]) or is_boolean(kinds[0])):
        return not all(is_number(kind) or is_boolean(kind) or is_moment(kind) for kind in kinds)
    if is_boolean(kinds[0]) or cast.to.this == exp.DType.DOUBLE:
        return False
    return not is_integer(kinds[0]) or _BITS.get(kinds[0].upper(), 128) > _WIDTH.get(cast.to.this, 0)
