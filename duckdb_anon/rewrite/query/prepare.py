"""A bound query before it is estimated: counts read as integers, casts that may fail.

    count(*)::varchar || ' rows'      round(count(*))::bigint::varchar || ' rows'
    sum(s::int) ... where s <> 'n/a'  sum(try_cast(s as int)) ...

An estimate of a count is seldom an integer. Arithmetic keeps the fraction; text, integer division, bits and equality
get it rounded. The original never casts values that its WHERE leaves out; a cell of many values may hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import is_boolean, is_integer, is_moment, is_number, is_text
from duckdb_anon.rewrite.query.tables import Tables
from duckdb_anon.rewrite.query.trees import (
    all_of,
    from_items,
    is_original,
    leftmost,
    reads_original,
    step_of,
    tree,
)

MAY_FAIL = "may fail"
"""Mark of a query with a cast that may fail."""
_SAME_VALUE = (exp.Paren, exp.Neg, exp.Abs, exp.Add, exp.Sub, exp.Mul)
_PICKS = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif, exp.If, exp.Case)
_FRACTIONS_ALLOWED = (
    *(exp.Div, exp.Pow, *_SAME_VALUE, *_PICKS),
    *(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Is, exp.AggFunc, exp.Filter, exp.Window),
    *(exp.Round, exp.Floor, exp.Ceil, exp.Trunc, exp.Sqrt, exp.Cbrt, exp.Ln, exp.Log, exp.Exp, exp.Sign, exp.IsNan),
    *(exp.Alias, exp.Select, exp.Subquery, exp.Order, exp.Ordered, exp.Group, exp.Distinct, exp.Tuple),
)
"""What may read an estimate that is not whole: arithmetic, comparisons by size, and whatever stands around a query."""
_COMPUTES = (exp.Func, exp.Binary, exp.Unary, exp.Bracket, exp.Limit, exp.Offset, exp.PropertyEQ, exp.Interval)
_EQUALITY = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In)
_DAYS = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ)
_WIDTH = {
    **{exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64, exp.DType.INT128: 128},
    **{exp.DType.DOUBLE: 1024, exp.DType.FLOAT: 128},
}
"""Bits of whole numbers that a type surely holds."""
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}


def round_read(query: exp.Query, tables: Tables) -> None:
    """Round counts, and sums of whole numbers, that a bound query reads as whole numbers, in place."""
    integers = frozenset(name for name, kind in tables[0].types.items() if is_integer(kind))
    _round_where(query, _takes_integers, integers)
    for select in all_of(query, exp.Select):
        for key in ("having", "qualify") if reads_original(select) else ():
            if select.args.get(key) is not None:
                _round_where(select.args[key], lambda around, _: isinstance(around, _EQUALITY), integers)


def is_count(node: exp.Expr) -> bool:
    """Whether an expression is a whole number computed from counts."""
    return _is_integer(node) is True


def rounded(node: exp.Expr) -> exp.Expr:
    """An estimate as the whole number it is on the original; a sum of values may be beyond BIGINT."""
    wide = any(not _only_ones(total.this) for total in all_of(node, exp.Sum))
    found = tree("round({x})::hugeint" if wide else "round({x})::bigint", x=node)
    found.meta["rounded"] = True
    return found


def unrounded(query: exp.Expr) -> None:
    """Take rounding away from counts and extremes that a rewrite left as they were, in place."""
    for cast in all_of(query, exp.Cast):
        if cast.meta.get("rounded") and isinstance(cast.this.this, (exp.Count, exp.Min, exp.Max)):
            cast.replace(cast.this.this)


def adds_up_groups(node: exp.Expr) -> bool:
    """Whether an aggregate adds up counts or sums of groups, which is linear in their rows."""
    source = _computed_by(node.this) if isinstance(node, exp.Sum) and isinstance(node.this, exp.Column) else None
    additive = isinstance(source, (exp.Count, exp.CountIf, exp.Sum))
    return source is not None and additive and not isinstance(source.this, exp.Distinct)


def answers_of(query: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs whose rows are the answer: one, or those of a UNION."""
    if isinstance(query, exp.SetOperation):
        yield from answers_of(query.this)
        yield from answers_of(query.expression)
    elif isinstance(query, exp.Subquery):
        yield from answers_of(query.this)
    elif isinstance(query, exp.Select):
        yield query


def try_casts(query: exp.Query, tables: Tables) -> None:
    """Let casts of the original's columns be NULL where they fail, in SELECTs with a WHERE, in place."""
    for select in all_of(query, exp.Select):
        for item in from_items(select) if select.args.get("where") is not None else []:
            for node in all_of(select, exp.Cast, exp.BitwiseLeftShift) if is_original(item) else []:
                columns = [c for c in all_of(node.this, exp.Column) if c.table == item.alias_or_name]
                types = [tables[0].types.get(c.name, "") for c in columns]
                if not types or (isinstance(node, exp.Cast) and not _may_fail(node, types)):
                    continue
                query.meta[MAY_FAIL] = True
                made = exp.TryCast(**node.args) if isinstance(node, exp.Cast) else None
                node.replace(made or exp.Anonymous(this="try", expressions=[node.copy()]))


def _round_where(
    position: exp.Expr, read_as_whole: Callable[[exp.Expr | None, exp.Expr], bool], integers: Collection[str]
) -> None:
    """Round the largest whole expressions in a place, in place, where what stands around them reads them as whole."""
    nodes: list[exp.Expr] = [position]
    for node in nodes:
        if isinstance(node, (exp.Condition, exp.Subquery, exp.Filter)) and _is_integer(node, integers):
            if read_as_whole(node.parent, node):
                node.replace(rounded(node))
        else:
            nodes += node.iter_expressions()


def _is_integer(node: exp.Expr, integers: Collection[str] = ()) -> bool | None:
    """Whether an expression is whole: True with an estimate in it, False without one; None where it may not be.

    Args:
        node: a bound expression.
        integers: columns whose sums and extremes are whole, too.
    """
    if isinstance(node, (exp.Count, exp.CountIf)):
        return True
    if isinstance(node, exp.Literal):
        return False if node.is_int else None
    if isinstance(node, exp.Null):
        return False
    if isinstance(node, exp.Filter):
        return _is_integer(node.this, integers)
    if isinstance(node, (exp.Sum, exp.Min, exp.Max)):
        ones = isinstance(node, exp.Sum) and _only_ones(node.this)
        columns = [column.name in integers for column in all_of(node.this, exp.Column)]
        of_columns = bool(columns) and all(columns) and all(map(_stays_integer, node.this.walk()))
        return True if ones or of_columns or _is_integer(node.this, integers) else None
    if isinstance(node, exp.Window):
        return None if isinstance(node.this, exp.Count) else _is_integer(node.this, integers)
    if isinstance(node, (*_SAME_VALUE, *_PICKS)):
        found = [_is_integer(item, integers) for item in _values(node)]
        return None if None in found else any(found)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select) and not node.alias:
        values = node.this.expressions
        return _is_integer(values[0].unalias(), integers) if len(values) == 1 else None
    if isinstance(node, exp.Column):
        source = _computed_by(node)
        return True if source is not None and _is_integer(source, integers) else None
    return None


def _takes_integers(around: exp.Expr | None, node: exp.Expr) -> bool:
    """Whether what stands around an expression prints it or takes whole numbers only."""
    if around is None or isinstance(around, _EQUALITY):
        return False
    if isinstance(around, exp.Cast):
        return bool(around.to.is_type(*exp.DataType.TEXT_TYPES)) or around.to.this in exp.DataType.NESTED_TYPES
    if isinstance(around, (exp.Add, exp.Sub)):
        other = around.right if node is around.left else around.left
        today = isinstance(other, exp.Anonymous) and other.name == "today"
        return today or (isinstance(other, exp.Cast) and other.to.this in _DAYS)
    return isinstance(around, _COMPUTES) and not isinstance(around, _FRACTIONS_ALLOWED)


def _values(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions of which a function gives one, or all of those it computes with."""
    conditions: dict[type[exp.Expr], str] = {exp.If: "this", exp.Case: "this", exp.Nullif: "expression"}
    for key, value in node.args.items():
        if key == conditions.get(type(node)):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.If) and isinstance(node, exp.Case):
                yield item.args["true"]
            elif isinstance(item, exp.Expr):
                yield item


def _stays_integer(node: exp.Expr) -> bool:
    parts = (*_SAME_VALUE, exp.Column, exp.Identifier)
    return isinstance(node, parts) or (isinstance(node, exp.Literal) and node.is_int)


def _only_ones(node: exp.Expr) -> bool:
    """Whether a value is computed from whole constants: sum(CASE WHEN ... THEN 1 ELSE 0 END) counts."""
    if isinstance(node, (exp.Case, exp.If)):
        return all(_only_ones(item) or isinstance(item, exp.Null) for item in _values(node))
    return isinstance(node, exp.Literal) and node.is_int


def _computed_by(column: exp.Column) -> exp.Expr | None:
    """The expression of a subquery or a step that a column reads."""
    select = column.find_ancestor(exp.Select)
    items = from_items(select) if isinstance(select, exp.Select) and column.table else []
    for item in items:
        if item.alias_or_name != column.table:
            continue
        inner = item.this if isinstance(item, exp.Subquery) else None
        step = step_of(item) if isinstance(item, exp.Table) else None
        if step is not None and not step.args["alias"].columns:
            inner = step.this
        recursive = any(node is step for node in _ancestors(column)) if step is not None else False
        if isinstance(inner, exp.Query) and not recursive:
            return next((e.unalias() for e in leftmost(inner).expressions if e.alias_or_name == column.name), None)
    return None


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _may_fail(cast: exp.Cast, types: list[str]) -> bool:
    """Whether a cast of columns of these types may fail; of what is computed of numbers it is taken not to."""
    if isinstance(cast, exp.TryCast) or cast.to.is_type(*exp.DataType.TEXT_TYPES):
        return False
    if any(map(is_text, types)):
        return True
    if not isinstance(cast.this.unnest(), exp.Column) or not (is_number(types[0]) or is_boolean(types[0])):
        return not all(is_number(node) or is_boolean(node) or is_moment(node) for node in types)
    if is_boolean(types[0]) or cast.to.this == exp.DType.DOUBLE:
        return False
    return not is_integer(types[0]) or _BITS.get(types[0].upper(), 128) > _WIDTH.get(cast.to.this, 0)
