"""Numbers that are whole on the original are whole where a query prints them or takes them for whole.

    count(*)::varchar || ' rows'      round(count(*))::bigint::varchar || ' rows'
    count(*) // 10                    round(count(*))::bigint // 10
    sum(cost) / count(*)              as it is

An estimate of a count is seldom whole. Inside arithmetic it stays as it is, for a mean of estimates is better than one
of rounded ones; text, functions of whole numbers, integer division, bits and equality would otherwise see `2640.0`, or
fail. What is rounded is the largest expression that is whole on the original. Cost: one pass over the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_integer
from duckdb_anon.rewrite.query.parse import from_items
from duckdb_anon.rewrite.query.scoping import step_of
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import copied, tree
from duckdb_anon.rewrite.query.walking import all_of, leftmost

_LINEAR = (exp.Add, exp.Sub, exp.Mul)
_SAME_VALUE = (exp.Paren, exp.Neg, exp.Abs)
_PICKS = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif, exp.If, exp.Case)
_NOT_VALUES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.If: ("this",),
    exp.Case: ("this",),
    exp.Nullif: ("expression",),
}
_FRACTIONS_ALLOWED = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Pow, *_SAME_VALUE, *_PICKS),
    *(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Is, exp.AggFunc, exp.Filter, exp.Window),
    *(exp.Round, exp.Floor, exp.Ceil, exp.Trunc, exp.Sqrt, exp.Cbrt, exp.Ln, exp.Log, exp.Exp, exp.Sign, exp.IsNan),
    *(exp.Alias, exp.Select, exp.Subquery, exp.Order, exp.Ordered, exp.Group, exp.Distinct, exp.Tuple),
)
"""What may read an estimate that is not whole: arithmetic, comparisons by size, and whatever stands around a query."""
_COMPUTES = (*(exp.Func, exp.Binary, exp.Unary, exp.Bracket, exp.Limit, exp.Offset, exp.PropertyEQ, exp.Interval),)
_EQUALITY = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In)
_DAYS = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ)


class WholeNumbers:
    """Which expressions of a bound query are whole numbers on the original, and estimated from a release.

    Args:
        original: its columns' types tell which sums are whole.
    """

    def __init__(self, original: TableInfo) -> None:
        self.whole_columns = {name for name, kind in original.types.items() if is_integer(kind)}

    def round_read(self, query: exp.Query, equality: bool = False) -> None:
        """Round what is read as a whole number, in place.

        Args:
            query: a bound query, or one SELECT of it.
            equality: round what HAVING and QUALIFY of the SELECT compare by equality instead.
        """
        places: list[exp.Expr] = [query]
        if equality:
            places = [query.args[key] for key in ("having", "qualify") if query.args.get(key)]
        for node in [one for place in places for one in self._estimated(place)]:
            around = node.parent
            asked = isinstance(around, _EQUALITY) if equality else _reads_whole(around, node)
            if asked and around is not None:
                sums = [total.this for total in all_of(node, exp.Sum)]
                node.replace(rounded(copied(node), any(not _only_ones(one) for one in sums)))

    def counts(self, node: exp.Expr) -> bool:
        """Whether an expression is a whole number made of counts."""
        return self._is_whole(node, False) is True

    def _estimated(self, place: exp.Expr) -> Iterator[exp.Expr]:
        """The largest expressions that are whole and estimated."""
        nodes: list[exp.Expr] = [place]
        for node in nodes:
            if isinstance(node, (exp.Condition, exp.Subquery, exp.Filter)) and self._is_whole(node, True):
                yield node
            else:
                nodes += node.iter_expressions()

    def _is_whole(self, node: exp.Expr, sums: bool) -> bool | None:
        """Whether an expression is whole: True with an estimate in it, False without one; None where it may not be.

        Args:
            node: a bound expression.
            sums: whether sums and extremes of whole columns are whole numbers too.
        """
        if isinstance(node, (exp.Count, exp.CountIf)):
            return True
        if isinstance(node, exp.Literal):
            return False if node.is_int else None
        if isinstance(node, exp.Null):
            return False
        if isinstance(node, exp.Filter):
            return self._is_whole(node.this, sums)
        if isinstance(node, exp.Window):
            inner = node.this
            return None if isinstance(inner, exp.Count) else self._of_aggregate(inner, False)
        if isinstance(node, exp.AggFunc):
            return self._of_aggregate(node, sums)
        if isinstance(node, _LINEAR):
            return _both([self._is_whole(node.left, sums), self._is_whole(node.right, sums)])
        if isinstance(node, (*_SAME_VALUE, *_PICKS)):
            return _both([self._is_whole(one, sums) for one in _values(node)])
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select) and not node.alias:
            made = node.this.expressions
            return self._is_whole(made[0].unalias(), sums) if len(made) == 1 else None
        if isinstance(node, exp.Column):
            found = made_of(node)
            return True if found is not None and self._is_whole(found, sums) else None
        return None

    def _of_aggregate(self, node: exp.Expr, sums: bool) -> bool | None:
        if isinstance(node, exp.Sum) and _only_ones(node.this):
            return True
        if not isinstance(node, (exp.Sum, exp.Min, exp.Max)) or isinstance(node.this, exp.Distinct):
            return None
        if self._is_whole(node.this, sums):
            return True
        columns = all_of(node.this, exp.Column) if sums else []
        plain = bool(columns) and all(fold(column.name) in self.whole_columns for column in columns)
        return True if plain and all(_keeps_whole(one) for one in node.this.walk()) else None


def rounded(node: exp.Expr, wide: bool = False) -> exp.Expr:
    """An estimate as the whole number it is on the original.

    Args:
        node: the estimate, or what is asked.
        wide: whether it may be beyond BIGINT, as the sum of a column's values.
    """
    found = tree("round({x})::hugeint" if wide else "round({x})::bigint", x=node)
    found.meta["rounded"] = True
    return found


def unrounded(query: exp.Expr) -> None:
    """Take rounding away from counts that a rewrite left as they were, in place."""
    for cast in all_of(query, exp.Cast):
        if cast.meta.get("rounded") and isinstance(cast.this.this, exp.Count):
            cast.replace(cast.this.this)


def answers_of(query: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs whose rows are the answer: one, or those of a UNION."""
    if isinstance(query, exp.SetOperation):
        yield from answers_of(query.this)
        yield from answers_of(query.expression)
    elif isinstance(query, exp.Subquery):
        yield from answers_of(query.this)
    elif isinstance(query, exp.Select):
        yield query


def _reads_whole(around: exp.Expr | None, node: exp.Expr) -> bool:
    """Whether what stands around an expression prints it or takes whole numbers only."""
    if around is None or isinstance(around, _EQUALITY):
        return False
    if isinstance(around, exp.Cast):
        return bool(around.to.is_type(*exp.DataType.TEXT_TYPES)) or around.to.this in exp.DataType.NESTED_TYPES
    if isinstance(around, (exp.Add, exp.Sub)):
        other = around.right if node is around.left else around.left
        today = isinstance(other, exp.Anonymous) and other.name == "today"
        return today or (isinstance(other, exp.Cast) and other.to.this in _DAYS)
    return isinstance(around, exp.Expr) and isinstance(around, _COMPUTES) and not isinstance(around, _FRACTIONS_ALLOWED)


def _values(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions of which a function gives one."""
    skipped = _NOT_VALUES.get(type(node), ())
    for key, value in node.args.items():
        if key in skipped:
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.If) and isinstance(node, exp.Case):
                yield one.args["true"]
            elif isinstance(one, exp.Expr):
                yield one


def _both(found: list[bool | None]) -> bool | None:
    return None if None in found else any(found)


def _only_ones(node: exp.Expr) -> bool:
    """Whether a value is made of whole constants: what sum(CASE WHEN ... THEN 1 ELSE 0 END) counts with."""
    if isinstance(node, (exp.Case, exp.If)):
        return all(_only_ones(one) or isinstance(one, exp.Null) for one in _values(node))
    return isinstance(node, exp.Literal) and node.is_int


def _keeps_whole(node: exp.Expr) -> bool:
    known = (*_LINEAR, *_SAME_VALUE, exp.Column, exp.Identifier)
    return isinstance(node, known) or (isinstance(node, exp.Literal) and node.is_int)


def made_of(column: exp.Column) -> exp.Expr | None:
    """What a column of a subquery or a step is made of."""
    select = column.find_ancestor(exp.Select)
    items = from_items(select) if isinstance(select, exp.Select) and column.table else []
    for item in items:
        if item.alias_or_name != column.table:
            continue
        inner = item.this if isinstance(item, exp.Subquery) else None
        step = step_of(item) if isinstance(item, exp.Table) else None
        if step is not None and not step.args["alias"].columns:
            inner = step.this
        if isinstance(inner, exp.Query) and step is not _around(column, step):
            return next((e.unalias() for e in leftmost(inner).expressions if e.alias_or_name == column.name), None)
    return None


def _around(column: exp.Column, step: exp.CTE | None) -> exp.Expr | None:
    """The step, where the column stands in it: it is RECURSIVE."""
    above = column.parent
    while above is not None and step is not None:
        if above is step:
            return step
        above = above.parent
    return exp.Null()
