"""Conditions on one ordered column as a set of intervals with known ends.

With known ends the share of a box is plain arithmetic, whatever the width of the box. What cannot be read
this way (a function of the column, an end that is not a constant) is None, and the caller counts values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isinf

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import is_moment, is_timestamp
from duckdb_anon.rewrite.query.template import number
from duckdb_anon.rewrite.shapes.known_expressions import nearly, quadratic

Number = Fraction


@dataclass(frozen=True)
class ValueInterval:
    """Values from low to high; None is open-ended. `low_in`, `high_in`: whether the end itself is inside."""

    low: Number | None = None
    high: Number | None = None
    low_in: bool = True
    high_in: bool = True

    @property
    def empty(self) -> bool:
        """Whether no value is inside."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and not (self.low_in and self.high_in))

    def meet(self, other: ValueInterval) -> ValueInterval:
        """Intersect."""
        low, low_in = _tighter(self.low, self.low_in, other.low, other.low_in, max)
        high, high_in = _tighter(self.high, self.high_in, other.high, other.high_in, min)
        return ValueInterval(low, high, low_in, high_in)


@dataclass(frozen=True)
class ValueRanges:
    """A set of values: disjoint intervals in rising order, and whether NULL belongs to it."""

    intervals: tuple[ValueInterval, ...] = ()
    null: bool = False

    def meet(self, other: ValueRanges) -> ValueRanges:
        """Intersect."""
        pairs = [a.meet(b) for a in self.intervals for b in other.intervals]
        return ValueRanges(tuple(i for i in pairs if not i.empty), self.null and other.null)

    def join(self, other: ValueRanges) -> ValueRanges:
        """Unite."""
        null = self.null or other.null
        return ValueRanges(self._values_outside().meet(other._values_outside())._values_outside().intervals, null)

    def without(self) -> ValueRanges:
        """Complement, NULL included."""
        return ValueRanges(self._values_outside().intervals, not self.null)

    def _values_outside(self) -> ValueRanges:
        gaps, low, low_in = [], None, True
        for one in sorted(self.intervals, key=lambda i: (i.low is not None, i.low or 0, not i.low_in)):
            if one.low is not None:
                gaps.append(ValueInterval(low, one.low, low_in, not one.low_in))
            if one.high is None:
                return ValueRanges(tuple(g for g in gaps if not g.empty))
            low, low_in = one.high, not one.high_in
        gaps.append(ValueInterval(low, None, low_in, True))
        return ValueRanges(tuple(g for g in gaps if not g.empty))


EVERYTHING = ValueRanges((ValueInterval(),))
NOTHING = ValueRanges()


def beyond(kind: str, least: bool) -> str:
    """SQL of what no value of a type of numbers or dates is below, or above: of floating ones NaN, which comes last.

    >>> beyond("DOUBLE", least=False), beyond("DECIMAL(9,2)", least=False), beyond("DATE", least=True)
    ("'nan'::double", "'infinity'::double", "'-infinity'::date")
    """
    if not least and kind.upper() in ("DOUBLE", "FLOAT"):
        return "'nan'::double"
    own = kind.lower() if kind.upper() == "DATE" or is_timestamp(kind) else "double"
    return f"'{'-' if least else ''}infinity'::{own}"


def read(condition: exp.Expr, duckdb_type: str) -> ValueRanges | None:
    """Find the values for which a condition on one column is TRUE; None if its ends are not constants.

    Args:
        condition: a condition whose only column is the one in question.
        duckdb_type: the column's type.
    """
    truth = _truth(condition, duckdb_type)
    return truth[0] if truth else None


Truth = tuple[ValueRanges, ValueRanges]


def _truth(condition: exp.Expr, kind: str) -> Truth | None:
    """The values for which a condition is TRUE and those for which it is FALSE; the rest gives NULL."""
    condition = condition.unnest()
    if isinstance(condition, exp.Not):
        inner = _truth(condition.this, kind)
        return (inner[1], inner[0]) if inner else None
    if isinstance(condition, (exp.And, exp.Or)):
        left, right = _truth(condition.left, kind), _truth(condition.right, kind)
        if not left or not right:
            return None
        if isinstance(condition, exp.And):
            return left[0].meet(right[0]), left[1].join(right[1])
        return left[0].join(right[0]), left[1].meet(right[1])
    if isinstance(condition, exp.Boolean):
        everything = ValueRanges(EVERYTHING.intervals, True)
        return (everything, NOTHING) if condition.this else (NOTHING, everything)
    if isinstance(condition, exp.Is):
        return _is(condition, kind)
    return _comparison(condition, kind)


def _is(condition: exp.Is, kind: str) -> Truth | None:
    if isinstance(condition.expression, exp.Boolean):
        inner = _truth(condition.this, kind)
        if not inner:
            return None
        true = inner[0] if condition.expression.this else inner[1]
        return true, true.without()
    if not isinstance(condition.expression, exp.Null) or condition.this.find(exp.Column) is None:
        return None
    # what is reckoned of a column by +, - and * is NULL where the column is
    if quadratic(nearly(condition.this), kind) is not None:
        return ValueRanges((), True), EVERYTHING
    return None


def _comparison(condition: exp.Expr, kind: str) -> Truth | None:
    if isinstance(condition, exp.Between):
        if not isinstance(condition.this.unnest(), exp.Column):
            return None
        low = constant(condition.args["low"], kind)
        high = constant(condition.args["high"], kind)
        return None if low is None or high is None else _known(ValueInterval(low, high))
    if isinstance(condition, exp.In):
        points = [constant(one, kind) for one in condition.expressions]
        if not isinstance(condition.this.unnest(), exp.Column) or not points or condition.args.get("query"):
            return None
        united = NOTHING
        for point in points:
            if point is None:
                return None
            united = united.join(ValueRanges((ValueInterval(point, point),)))
        return united, ValueRanges(united.without().intervals)
    make = _MAKE.get(type(condition))
    if make is None:
        return None
    left, right = condition.this.unnest(), condition.expression.unnest()
    if isinstance(left, exp.Column):
        point = constant(right, kind)
        return None if point is None else _known(make(point), isinstance(condition, exp.NEQ))
    if isinstance(right, exp.Column):
        point = constant(left, kind)
        mirrored = _MAKE[_MIRROR.get(type(condition), type(condition))]
        return None if point is None else _known(mirrored(point), isinstance(condition, exp.NEQ))
    return None


def constant(node: exp.Expr, kind: str) -> Number | None:
    """Read a constant as a number: the value, days (dates) or microseconds (timestamps) since 1970."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = constant(node.this, kind)
        return -inner if inner is not None else None
    upper = kind.upper()
    dated = is_moment(upper)
    if isinstance(node, exp.Literal) and not node.is_string:
        return None if dated or isinf(float(node.this)) else Fraction(node.this)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _moment(node.this.this, upper) if dated and node.to.this in _DATED.get(upper, ()) else None
    if isinstance(node, exp.Literal):
        return _moment(node.this, upper) if dated else None
    return None


def printed(value: Number, kind: str) -> exp.Expr:
    """An end of an interval as a tree: a date, or a number (microseconds for timestamps)."""
    if kind.upper() == "DATE":
        if not _FIRST_DAY <= value <= _LAST_DAY:
            return exp.Add(this=exp.cast(exp.Literal.string(str(_DAY)), exp.DType.DATE), expression=number(int(value)))
        return exp.cast(exp.Literal.string(str(_DAY + dt.timedelta(days=int(value)))), exp.DType.DATE)
    return number(value)


def whole(values: ValueRanges) -> list[tuple[int | None, int | None]]:
    """Turn intervals over a counted type into closed ones with whole ends."""
    found = []
    for one in values.intervals:
        low = None if one.low is None else _ceiling(one.low) + (one.low.denominator == 1 and not one.low_in)
        high = None if one.high is None else _floor(one.high) - (one.high.denominator == 1 and not one.high_in)
        if low is None or high is None or low <= high:
            found.append((low, high))
    return found


_DATED = {"DATE": (exp.DType.DATE,), "TIMESTAMP": (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ)}
_DAY = dt.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (day.toordinal() - _DAY.toordinal() for day in (dt.date.min, dt.date.max))
_START = dt.datetime(1970, 1, 1)
_MAKE: dict[type[exp.Expr], Callable[[Number], ValueInterval]] = {
    exp.EQ: lambda p: ValueInterval(p, p),
    exp.NEQ: lambda p: ValueInterval(p, p),
    exp.LT: lambda p: ValueInterval(None, p, True, False),
    exp.LTE: lambda p: ValueInterval(None, p),
    exp.GT: lambda p: ValueInterval(p, None, False, True),
    exp.GTE: lambda p: ValueInterval(p, None),
}
_MIRROR: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def _known(interval: ValueInterval, negated: bool = False) -> Truth:
    inside = ValueRanges(() if interval.empty else (interval,))
    outside = ValueRanges(inside.without().intervals)
    return (outside, inside) if negated else (inside, outside)


def _moment(text: str, kind: str) -> Number | None:
    try:
        if kind == "DATE":
            return Fraction((dt.date.fromisoformat(text) - _DAY).days)
        if kind == "TIMESTAMP":
            return Fraction((dt.datetime.fromisoformat(text) - _START) // dt.timedelta(microseconds=1))
    except (ValueError, TypeError):
        return None
    return None


def _ceiling(value: Number) -> int:
    return -((-value.numerator) // value.denominator)


def _floor(value: Number) -> int:
    return value.numerator // value.denominator


def _tighter(
    a: Number | None, a_in: bool, b: Number | None, b_in: bool, choose: Callable[[Number, Number], Number]
) -> tuple[Number | None, bool]:
    if a is None:
        return b, b_in
    if b is None:
        return a, a_in
    return (a, a_in and b_in) if a == b else (a, a_in) if choose(a, b) == a else (b, b_in)
