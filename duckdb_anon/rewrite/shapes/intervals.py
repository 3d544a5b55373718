"""Cells that are intervals, STRUCT(lower T, upper T) with both ends inside.

Uniform overlap (Zhang et al. 2007; Xiao and Tao 2006): the share of a box is the number of its values that
are asked for over all its values, or lengths for continuous types; a point counts 1 if it is inside. The
value NULL is a NULL struct. {lower: NULL, upper: NULL} could be anything: it is spread over all that the
other boxes of the column cover and NULL, and is never certain.

Conditions with constant ends and linear amounts have closed forms, so the width of a box costs nothing.
Otherwise the values of a counted type are listed, once for each distinct box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from duckdb_anon.model.errors import when_run
from duckdb_anon.model.learnt import MOST_LISTED
from duckdb_anon.model.shapes.types import decimal_type, is_integer, is_moment, spread_of
from duckdb_anon.rewrite.query.template import added, every, multiplied, number, own, select, some, tree, truth
from duckdb_anon.rewrite.shapes.lines import constants, is_number, linear
from duckdb_anon.rewrite.shapes.parts import Part, Request, answer, labelled, listable
from duckdb_anon.rewrite.shapes.value_ranges import EVERYTHING, ValueInterval, ValueRanges, printed, read, whole

WHOLE = ValueRanges(EVERYTHING.intervals, True)
"""Every value, NULL too."""
_NARROW = {"TINYINT", "SMALLINT", "INT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
"""Types whose values and their successors are BIGINTs."""


@dataclass(frozen=True)
class IntervalPart(Part):
    """An attribute published as intervals of type `kind`."""

    even: ClassVar[bool] = True
    kind: str = "INTEGER"

    def values(self, used: Sequence[str]) -> exp.Select:
        """List the whole numbers or days in each box."""
        if spread_of(self.kind) != "discrete":
            raise listable(self.columns[0], "it is grouped by, joined on, or used in an expression")
        inside = f"range(_low::bigint, _high::bigint + 1)::{self.kind}[]"
        if self.kind.upper() == "DATE":
            # an infinite date is alone in its box, or with the other one
            inside = (
                "case when isfinite(_low) and isfinite(_high) then range(_low, _high + 1, interval 1 day)::date[] "
                "else list_distinct([_low, _high]) end"
            )
        wide = "datediff('day', _low, _high)" if self.kind.upper() == "DATE" else "_high - _low"
        far = f"{wide} >= {MOST_LISTED}"
        if self.kind.upper() not in _NARROW:
            far = f"_high >= 9223372036854775807 or _low < -9223372036854775808 or {far}"
        if self.kind.upper() == "DATE":
            far = f"isfinite(_low) and isfinite(_high) and {wide} >= {MOST_LISTED}"
        return select(
            f"""
            select _cell, unnest(case when _cell is null then [null::{self.kind}] when {far} then error({{many}})
              when _unbounded then list_append({inside}, null) else {inside} end) as {{value}}
            from {{boxes}}""",
            value=self.columns[0],
            boxes=self.boxes(),
            many=self.too_many(),
        )

    def too_many(self) -> exp.Literal:
        """What a query says that meets a box of too many values."""
        return exp.Literal.string(
            when_run(f"column {self.columns[0]} has boxes of more than {MOST_LISTED} values, too many to list")
        )

    def shares(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select:
        """Closed forms where all requests have one, the list of values otherwise."""
        closed = [self.closed(request, i) for i, request in enumerate(requests)]
        known = [labelled(form, label) for form, label in zip(closed, labels, strict=True) if form is not None]
        listed = [i for i, form in enumerate(closed) if form is None]
        if not listed:
            return select("select _cell, {known} from {boxes}", known=known, boxes=self.boxes(requests))
        answers = [labelled(self._listed(requests[i]), labels[i]) for i in listed]
        counted = select(
            "select _cell, {answers} from {values} group by _cell", answers=answers, values=self.values(self.columns)
        )
        if not known:
            return counted
        both = [own(label, "closed" if i not in listed else "counted") for i, label in enumerate(labels)]
        return select(
            "select _closed._cell, {both} from (select _cell, {known} from {boxes}) as _closed "
            "join {counted} as _counted on _closed._cell is not distinct from _counted._cell",
            both=both,
            known=known,
            boxes=self.boxes(requests),
            counted=counted,
        )

    def boxes(self, requests: Sequence[Request] = ()) -> exp.Select:
        """SELECT cell, low, high, unbounded: the ends of each distinct box.

        Args:
            requests: what is asked of the boxes, for parts that answer some of it here.
        """
        missing = exp.Literal.string(when_run(f"column {self.columns[0]} has no box with known ends"))
        # moments are measured in microseconds, so that lengths are numbers; lengths need more room than ends
        kind = self.kind.upper()
        shown = "epoch_us({})" if is_moment(self.kind) and kind != "DATE" else "{}"
        if spread_of(kind) == "discrete" and kind != "DATE":
            shown = "({})::double" if "HUGEINT" in kind else "({})::hugeint"
        low = "coalesce(_cell.lower, min(_cell.lower) over (), case when _cell is not null then error({missing}) end)"
        high = "coalesce(_cell.upper, max(_cell.upper) over ())"
        return select(
            f"select _cell, {shown.format(low)} as _low, {shown.format(high)} as _high, "
            "_cell is not null and _cell.lower is null as _unbounded from {cells}",
            cells=self.cells(),
            missing=missing,
        )

    def boundable(self, value: exp.Expr) -> bool:
        """Whether ends are known of a value in a box that could be anything: numbers only."""
        numeric = spread_of(self.kind) != "nominal" and not is_moment(self.kind)
        return linear(value) is not None or constants(value) is not None or (numeric and is_number(value))

    def _listed(self, request: Request) -> exp.Expr:
        """The answer from the list of values; a box that could be anything may hold what the list lacks."""
        found = answer(request, even=self.even)
        if request.wanted == "mean":
            return found
        anything: exp.Expr = truth(request.wanted == "possible")
        if request.wanted in ("least", "most"):
            assert request.value is not None  # noqa: S101 -- least and most are asked of a value
            ends, sign = constants(request.value), "-" if request.wanted == "least" else ""
            if ends is not None:
                anything = number(min(ends) if sign else max(ends))
            elif self.boundable(request.value):
                dated = self.kind.upper() == "DATE" and linear(request.value) is not None
                anything = tree(f"'{sign}infinity'::{'date' if dated else 'double'}")
            else:
                return found
        return tree(
            "case when _cell is not null and _cell.lower is null then {anything} else {found} end",
            anything=anything,
            found=found,
        )

    def closed(self, request: Request, place: int) -> exp.Expr | None:
        """The answer over a row of `boxes`; None where the values must be listed.

        Args:
            request: what is asked.
            place: its number among all requests.
        """
        wanted = WHOLE if request.condition is None else read(request.condition, self.kind)
        if wanted is None:
            return None
        line = None if request.value is None else linear(request.value)
        if request.value is not None and line is None:
            return None
        form = Form(self.kind, wanted)
        if request.wanted == "possible":
            return form.possible()
        if request.wanted == "certain":
            return form.certain()
        if request.wanted == "mean":
            return form.share() if line is None else form.mean(*line)
        assert line is not None  # noqa: S101 -- least and most are asked of a value
        return form.extreme(*line, least=request.wanted == "least")


@dataclass(frozen=True)
class Form:
    """Closed forms over the columns cell, low, high, unbounded of one box."""

    kind: str
    wanted: ValueRanges

    @property
    def discrete(self) -> bool:
        """Whether values are counted."""
        return spread_of(self.kind) == "discrete"

    def pieces(self) -> list[ValueInterval]:
        """The intervals asked for; for a counted type closed ones, neighbours joined."""
        if not self.discrete:
            return list(self.wanted.intervals)
        joined: list[tuple[int | None, int | None]] = []
        for low, high in whole(self.wanted):
            last = joined[-1] if joined else None
            if last and last[1] is not None and low == last[1] + 1:
                joined[-1] = (last[0], high)
            else:
                joined.append((low, high))
        return [
            ValueInterval(None if low is None else Fraction(low), None if high is None else Fraction(high))
            for low, high in joined
        ]

    def share(self) -> exp.Expr:
        """Asked values over all values."""
        pieces = self.pieces()
        sizes = [self._size(piece) for piece in pieces]
        null = number(int(self.wanted.null))
        if not self.discrete:
            return self._unless_null(null, self._point_or(self._inside_point(), sizes))
        if self.wanted.null:
            sizes.append(tree("_unbounded::integer"))
        inside = tree(f"{{sizes}} / {_SIZE}", sizes=added([(1, size) for size in sizes]))
        return self._unless_null(null, inside)

    def mean(self, slope: Fraction, shift: Fraction) -> exp.Expr:
        """Mean of slope * value + shift where the value is asked for, 0 elsewhere."""
        sums = []
        for piece in self.pieces():
            # a size times such sums would leave the 38 digits that DuckDB reckons in
            narrow = self.kind.upper() in _NARROW or not (is_integer(self.kind) or decimal_type(self.kind))
            middle = tree(
                "{low} + {high}" if narrow else "({low} + {high})::double", low=self._low(piece), high=self._high(piece)
            )
            sums.append(multiplied([self._size(piece), _line(slope / 2, middle, shift)]))
        if not self.discrete:
            at = multiplied([self._inside_point(), _line(slope, own("low"), shift)])
            return self._unless_null(number(0), self._point_or(at, sums))
        return self._unless_null(number(0), tree(f"{{sums}} / {_SIZE}", sums=added([(1, one) for one in sums])))

    def possible(self) -> exp.Expr:
        """Whether some value of the box is asked for."""
        touches = [
            every([self._compare("low", "<", p.high, p.high_in), self._compare("high", ">", p.low, p.low_in)])
            for p in self.pieces()
        ]
        return self._flag(some(touches), bool(touches) or self.wanted.null)

    def certain(self) -> exp.Expr:
        """Whether every value of the box is asked for."""
        everything = self.wanted.null and any(p.low is None and p.high is None for p in self.pieces())
        return self._flag(self._within(), everything)

    def extreme(self, slope: Fraction, shift: Fraction, least: bool) -> exp.Expr:
        """Smallest or largest slope * value + shift among the values asked for; anything where unbounded.

        Args:
            slope: factor of the value.
            shift: what is added.
            least: whether the smallest is asked for.
        """
        pieces = self.pieces()
        if not pieces:
            return tree("null::double")
        end = self._low(pieces[0]) if (slope >= 0) == least else self._high(pieces[-1])
        kind = "date" if self.kind.upper() == "DATE" else "double"
        line = end if slope == 1 and shift == 0 else _line(slope, end, shift)
        return tree(
            f"case when _cell is null then null when _unbounded then '{'-' if least else ''}infinity'::{kind} "
            "else {line} end",
            line=line,
        )

    def _flag(self, known: exp.Expr, unbounded: bool) -> exp.Expr:
        return tree(
            "case when _cell is null then {null} when _unbounded then {unbounded} else {known} end",
            null=truth(self.wanted.null),
            unbounded=truth(unbounded),
            known=known,
        )

    def _unless_null(self, null: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
        return tree("case when _cell is null then {null} else {otherwise} end", null=null, otherwise=otherwise)

    def _point_or(self, point: exp.Expr, sizes: list[exp.Expr]) -> exp.Expr:
        """What a box of a continuous type without length gives, and what one with length does."""
        length = added([(1, size) for size in sizes])
        return tree(
            "case when _low = _high then {point} else {length} / (_high - _low) end", point=point, length=length
        )

    def _size(self, piece: ValueInterval) -> exp.Expr:
        """How many of the box's values, or how much of its length, a piece covers."""
        step = " + 1" if self.discrete else ""
        if piece.low is None and piece.high is None:
            return tree(f"_high - _low{step}")
        size = tree(f"{{high}} - {{low}}{step}", high=self._high(piece), low=self._low(piece))
        return tree("greatest({size}, 0)", size=size)

    def _low(self, piece: ValueInterval) -> exp.Expr:
        return own("low") if piece.low is None else tree("greatest(_low, {at})", at=printed(piece.low, self.kind))

    def _high(self, piece: ValueInterval) -> exp.Expr:
        return own("high") if piece.high is None else tree("least(_high, {at})", at=printed(piece.high, self.kind))

    def _within(self) -> exp.Expr:
        return some(
            [
                every([self._compare("low", ">", p.low, p.low_in), self._compare("high", "<", p.high, p.high_in)])
                for p in self.pieces()
            ]
        )

    def _inside_point(self) -> exp.Expr:
        within = self._within()
        return number(int(within.this)) if isinstance(within, exp.Boolean) else tree("{x}::integer", x=within)

    def _compare(self, side: str, sign: str, end: Fraction | None, included: bool) -> exp.Expr:
        if end is None:
            return truth(True)
        return tree(f"_{side} {sign}{'=' if included else ''} {{end}}", end=printed(end, self.kind))


_SIZE = "(_high - _low + 1 + _unbounded::integer)"
"""How many values a box of a counted type has."""


def _line(slope: Fraction, at: exp.Expr, shift: Fraction) -> exp.Expr:
    scaled = multiplied([number(slope), at])
    return tree("{scaled} + {shift}", scaled=scaled, shift=number(shift)) if shift else scaled
