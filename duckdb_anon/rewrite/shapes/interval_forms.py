"""Closed forms of what is asked of one box, by the intervals of values that are asked for.

A form reads the box's ends `_low` and `_high`, and `_unbounded`, whether it could be anything; or the ends that the
cell itself has, beside `_least` and `_most`, the ends of all boxes of the column, read from `_every`, which stand in
for a cell that could be anything (`_missing` says that no box has ends). `intervals` puts the release's columns there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import decimal_type, is_integer, is_timestamp, spread_of
from duckdb_anon.rewrite.query.template import added, every, multiplied, number, own, some, tree, truth
from duckdb_anon.rewrite.shapes.known_expressions import Quadratic
from duckdb_anon.rewrite.shapes.moment_units import timestamp
from duckdb_anon.rewrite.shapes.value_ranges import EVERYTHING, ValueInterval, ValueRanges, beyond, printed, whole
from duckdb_anon.rewrite.shapes.whole_boxes import NARROW, OF_ALL, WholeBoxes, all_values, line_of, of_all_boxes

WHOLE = ValueRanges(EVERYTHING.intervals, True)
"""Every value, NULL too."""
WHOLE_TYPES = {"INT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT"}
"""Types that hold the differences of numbers below 2^29."""


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
        if not self.discrete and any(piece.low is None and piece.high is None for piece in pieces):
            return self._unless_null(null, number(1))
        if not self.discrete:
            return self._unless_null(null, self._point_or(self._inside_point(), sizes))
        if self.wanted.null:
            sizes.append(tree("_unbounded::integer"))
        inside = tree(f"{{sizes}} / {_SIZE}", sizes=added([(1, size) for size in sizes]))
        return self._unless_null(null, inside)

    def share_of_own_ends(self) -> exp.Expr | None:
        """The share of one interval, over the ends of the box itself, or else of all boxes; None for other sets.

        A box that is neither inside nor outside is no point, so that nothing is divided by 0.
        """
        pieces = self.pieces()
        if len(pieces) != 1 or self.wanted.null:
            return None
        piece = pieces[0]
        if piece.low is None and piece.high is None:
            return WholeBoxes(self.kind).of_row(None)
        # a box that reaches over a single end does so there
        low = self._low(piece) if piece.low is None or piece.high is not None else printed(piece.low, self.kind)
        high = self._high(piece) if piece.high is None or piece.low is not None else printed(piece.high, self.kind)
        point = self.discrete and piece.low == piece.high
        # a box of one counted value has the size 1 in any case; of others the most lie inside, and nothing is divided
        alone = "" if point else "when {inside} then 1"
        return tree(
            f"case {alone} when _cell is null or {{outside}} then 0 else coalesce({{size}} / {{width}}, {OF_ALL}) end",
            outside=self._outside(piece),
            inside=self._within(),
            size=number(1) if point else self._covered(piece, high, low),
            width=self._width(piece),
            of_all=of_all_boxes(self._share_of_all(piece)),
        )

    def mean_of_own_ends(self, slope: Fraction, shift: Fraction) -> exp.Expr | None:
        """The mean of slope * value + shift, over the ends of the box itself, or of all; None where not all are asked.

        Args:
            slope: factor of the value.
            shift: what is added.
        """
        if self.wanted.intervals != EVERYTHING.intervals:  # what NULL adds is 0 in any case
            return None
        return WholeBoxes(self.kind).of_row((slope, shift))

    def total_of_own_ends(self, line: tuple[Fraction, Fraction] | None) -> exp.Expr | None:
        """The share, or the mean of slope * value + shift, added up over rows; None where not all values are asked for.

        Args:
            line: slope and shift; None for the share.
        """
        if self.wanted.intervals != EVERYTHING.intervals or (line is None and self.wanted.null):
            return None
        return WholeBoxes(self.kind).of_rows(line)

    def _share_of_all(self, piece: ValueInterval) -> exp.Expr:
        size = self._length(self._high(piece), self._low(piece))
        if self.discrete:  # and NULL is one more value
            every_value = tree(all_values(self.kind), high=own("high"), low=own("low"))
            if piece.low is not None and piece.low == piece.high:
                return tree("({touched})::int / {all}", touched=self.touches(), all=every_value)
            return tree("greatest({size}, 0) / {all}", size=size, all=every_value)
        return self._point_or(self._inside_point(), [self._size(piece)])

    def _room(self, piece: ValueInterval, whole: int = 1) -> str:
        """A whole number of a type with room for lengths in a box that a piece touches and does not hold.

        A box around an end below 2^52 has ends that a DOUBLE tells, or is at least half as long as what it rounds is
        large: that is precise, and takes less than 128 bits do. A cast of all rows to DECIMAL takes thrice as long.
        """
        near = all(end is None or abs(end) < 2**52 for end in (piece.low, piece.high))
        return f"{whole}e0" if self.kind.upper() in NARROW or near else f"{whole}::int128"

    def _length(self, high: exp.Expr, low: exp.Expr, one: str = "1.0") -> exp.Expr:
        """The length between two ends, or the number of values: of whole numbers as a type that has room."""
        if not self.discrete or self.kind.upper() == "DATE":
            return tree("{high} - {low} + 1" if self.discrete else "{high} - {low}", high=high, low=low)
        return tree(f"{one} + {{high}} - {{low}}", high=high, low=low)

    def _width(self, piece: ValueInterval) -> exp.Expr:
        """The length of a box that a piece touches and does not hold."""
        one = self._room(piece) if self.discrete and self.kind.upper() != "DATE" else ""
        if one == "1e0" and (piece.low is None or piece.low >= 1):
            # the upper end is not its type's least; its cast alone would be pushed into the scan, for all rows
            return tree("_high - 1 + 2e0 - _low")
        return self._length(own("high"), own("low"), one)

    def _covered(self, piece: ValueInterval, high: exp.Expr, low: exp.Expr) -> exp.Expr:
        """The same of what a piece covers of a box that it touches and does not hold."""
        if not self.discrete or self.kind.upper() == "DATE":
            return self._length(high, low)
        if piece.low is not None and piece.high is not None:
            # both ends are between the constants
            near = self.kind.upper() in WHOLE_TYPES and max(abs(piece.low), abs(piece.high)) < 2**29
            return self._length(high, low, "1" if near else self._room(piece))
        beyond, before = _moved(high, 1), _moved(low, -1)
        if before is not None:  # at most the distance from a positive number
            return tree("{high} - {low}", high=high, low=before)
        if beyond is not None:
            return tree(f"{self._room(piece, beyond)} - {{low}}", low=low)
        return self._length(high, low, self._room(piece))

    def flag_of_own_ends(self, possible: bool) -> exp.Expr:
        """`possible` or `certain`, over the ends of the box itself.

        Args:
            possible: which of both.
        """
        known = self.touches() if possible else self._within()
        flag = self.possible() if possible else self.certain()
        if isinstance(known, exp.Boolean):
            return flag
        null, unbounded = (when.args["true"].this for when in flag.args["ifs"])
        other = truth(null) if null == unbounded else tree("_cell is null" if null else "_cell is not null")
        return tree("coalesce({known}, {other})", known=known, other=other)

    def mean(self, wanted: Quadratic) -> exp.Expr:
        """Mean of square * value ** 2 + slope * value + shift where the value is asked for, 0 elsewhere.

        The mean of the squares of all numbers from l to h is (l ** 2 + l * h + h ** 2) / 3, that of the whole ones
        (h - l) / 6 more.
        """
        square, slope, shift = wanted
        # a size times such sums would leave the 38 digits that DuckDB reckons in
        narrow = self.kind.upper() in NARROW or not (is_integer(self.kind) or decimal_type(self.kind))
        total = "{low} + {high}" if narrow else "({low} + {high})::double"
        more = " + ({high} - {low}) / 2" if self.discrete else ""
        squares = f"({{low}}::double ** 2 + {{low}}::double * {{high}} + {{high}}::double ** 2{more}) / 3"
        sums = []
        for piece in self.pieces():
            low, high = self._low(piece), self._high(piece)
            line = line_of(slope / 2, tree(total, low=low, high=high), shift)
            mean = self._with_squares(square, tree(squares, low=low, high=high), line)
            sums.append(multiplied([self._size(piece), mean]))
        if not self.discrete:
            mean = self._with_squares(square, tree("_low::double ** 2"), line_of(slope, own("low"), shift))
            return self._unless_null(number(0), self._point_or(multiplied([self._inside_point(), mean]), sums))
        return self._unless_null(number(0), tree(f"{{sums}} / {_SIZE}", sums=added([(1, one) for one in sums])))

    @staticmethod
    def _with_squares(factor: Fraction, squares: exp.Expr, line: exp.Expr) -> exp.Expr:
        if not factor:
            return line
        scaled = multiplied([number(factor), squares])
        return scaled if line == number(0) else tree("({squares} + {line})", squares=scaled, line=line)

    def possible(self) -> exp.Expr:
        """Whether some value of the box is asked for."""
        return self._flag(self.touches(), bool(self.pieces()) or self.wanted.null)

    def touches(self) -> exp.Expr:
        """Whether a box with ends has some value that is asked for, over them."""
        return some([every(self.ends_that_touch(piece)) for piece in self.pieces()])

    def ends_that_touch(self, piece: ValueInterval) -> list[exp.Expr]:
        """What both ends of a box satisfy that has some value of a piece; nothing is said of an end that may be any.

        Args:
            piece: an interval that is asked for.
        """
        low = self._compare("low", "<", piece.high, piece.high_in)
        high = self._compare("high", ">", piece.low, piece.low_in)
        return [one for one in (low, high) if not isinstance(one, exp.Boolean)]

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
        line = end if slope == 1 and shift == 0 else line_of(slope, end, shift)
        if is_timestamp(self.kind):
            line = tree(timestamp(self.kind), x=line)
        return tree(
            f"case when _cell is null then null when _unbounded then {beyond(self.kind, least)} else {{line}} end",
            line=line,
        )

    def extreme_of_squares(self, wanted: Quadratic, least: bool) -> exp.Expr:
        """The same of square * value ** 2 + slope * value + shift, of a continuous type."""
        square, slope, shift = wanted

        def at(x: exp.Expr) -> exp.Expr:
            factor = multiplied([number(square), tree("{x} ** 2", x=x)])
            return tree("{squares} + {line}", squares=factor, line=line_of(slope, x, shift))

        pieces = self.pieces() or EVERYTHING.intervals  # where none is asked for no row counts
        low, high = self._low(pieces[0]), self._high(pieces[-1])
        if (square > 0) == least:
            vertex = number(-slope / (2 * square))
            found = at(tree("least(greatest({low}, {vertex}), {high})", low=low, vertex=vertex, high=high))
        else:
            found = tree(f"{'least' if least else 'greatest'}({{a}}, {{b}})", a=at(low), b=at(high))
        return tree(
            f"case when _cell is null then null when _unbounded then {beyond(self.kind, least)} else {{x}} end",
            x=found,
        )

    def _flag(self, known: exp.Expr, unbounded: bool) -> exp.Expr:
        return tree(
            "case when _cell is null then {null} when _unbounded then {unbounded} else {known} end",
            null=truth(self.wanted.null),
            unbounded=truth(unbounded),
            known=known,
        )

    def _unless_null(self, null: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
        found = tree("case when _cell is null then {null} else {otherwise} end", null=null, otherwise=otherwise)
        inner = found.args["default"]
        if isinstance(inner, exp.Case):  # one CASE says both
            found.set("default", inner.args["default"])
            for when in inner.args["ifs"]:
                found.append("ifs", when)
        return found

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

    def _outside(self, piece: ValueInterval) -> exp.Expr:
        """Whether a box with ends has no value of a piece."""
        low = self._compare("low", ">", piece.high, not piece.high_in)
        high = self._compare("high", "<", piece.low, not piece.low_in)
        return some([one for one in (low, high) if not isinstance(one, exp.Boolean)])

    def _inside_point(self) -> exp.Expr:
        within = self._within()
        return number(int(within.this)) if isinstance(within, exp.Boolean) else tree("{x}::integer", x=within)

    def _compare(self, side: str, sign: str, end: Fraction | None, included: bool) -> exp.Expr:
        if end is None:
            return truth(True)
        return tree(f"_{side} {sign}{'=' if included else ''} {{end}}", end=printed(end, self.kind))


_SIZE = "(_high - _low + 1 + _unbounded::integer)"
"""How many values a box of a counted type has."""


def _moved(end: exp.Expr, by: int) -> int | None:
    """A whole number moved by one; None for what is none, or none that is easily read."""
    if not isinstance(end, exp.Literal) or not end.is_int or len(end.this) > 15 or int(end.this) + by <= 0:
        return None
    return int(end.this) + by
