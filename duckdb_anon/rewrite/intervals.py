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

from sqlglot import exp

from duckdb_anon.rewrite.parts import Part, Request, answer, listable, parsed, quoted
from duckdb_anon.rewrite.ranges import EVERYTHING, Interval, Values, printed, read, whole
from duckdb_anon.rewrite.schema import scale_of

_WHOLE = Values(EVERYTHING.intervals, True)


@dataclass(frozen=True)
class IntervalPart(Part):
    """An attribute published as intervals of type `kind`."""

    kind: str = "INTEGER"

    def values(self, used: Sequence[str]) -> exp.Select:
        """List the whole numbers or days in each box."""
        if scale_of(self.kind) != "discrete":
            raise listable(self.columns[0], "it is grouped by, joined on, or used in an expression")
        inside = f"range(low::hugeint::bigint, high::hugeint::bigint + 1)::{self.kind}[]"
        if self.kind.upper() == "DATE":
            inside = "range(low, high + 1, interval 1 day)::date[]"
        listed = (
            f"unnest(case when _cell is null then [null::{self.kind}] "
            f"when unknown then list_append({inside}, null) else {inside} end) as {quoted(self.columns[0])}"
        )
        return exp.select("_cell", listed, "1 as _weight", dialect="duckdb").from_(self._boxes().subquery("_box"))

    def shares(self, requests: Sequence[Request]) -> exp.Select:
        """Closed forms where all requests have one, the list of values otherwise."""
        closed = [self._closed(request) for request in requests]
        columns = [exp.alias_(parsed(c), f"s{i}") for i, c in enumerate(closed, 1) if c is not None]
        known = exp.select("_cell", *columns).from_(self._boxes().subquery("_box"))
        listed = [i for i, c in enumerate(closed) if c is None]
        if not listed:
            return known
        answers = [exp.alias_(answer(requests[i]), f"s{i + 1}") for i in listed]
        counted = exp.select("_cell", *answers).from_(self.values(self.columns).subquery("_v"))
        counted = counted.group_by("_cell")
        if not columns:
            return counted
        both = [f"_k.s{i}" if c is not None else f"_l.s{i}" for i, c in enumerate(closed, 1)]
        joined = exp.select("_k._cell", *both).from_(known.subquery("_k"))
        return joined.join(counted.subquery("_l"), on="_k._cell is not distinct from _l._cell")

    def _boxes(self) -> exp.Select:
        """SELECT cell, low, high, unknown: the ends of each distinct box."""
        none = f"error('column {self.columns[0].replace(chr(39), chr(39) * 2)} has no box with known ends')"
        # moments are measured in microseconds, so that lengths are numbers
        shown = "epoch_us({})" if self.kind.upper().startswith("TIMESTAMP") else "{}"
        ends = [
            shown.format(
                f"case when _cell is not null and _cell.lower is null "
                f"then coalesce({pick}(_cell.{end}) over (), {none}) else _cell.{end} end"
            )
            + f" as {name}"
            for end, pick, name in (("lower", "min", "low"), ("upper", "max", "high"))
        ]
        return exp.select(
            "_cell", *ends, "_cell is not null and _cell.lower is null as unknown", dialect="duckdb"
        ).from_(self.cells().subquery("_cells"))

    def _closed(self, request: Request) -> str | None:
        wanted = _WHOLE if request.condition is None else read(request.condition, self.kind)
        if wanted is None:
            return None
        line = None if request.value is None else linear(request.value)
        if request.value is not None and line is None:
            return None
        form = _Form(self.kind, wanted)
        if request.wanted == "possible":
            return form.possible()
        if request.wanted == "certain":
            return form.certain()
        if request.wanted == "mean":
            return form.share() if line is None else form.mean(*line)
        assert line is not None  # noqa: S101 -- least and most are asked of a value
        return form.extreme(*line, least=request.wanted == "least")


@dataclass(frozen=True)
class _Form:
    """Closed forms over the columns cell, low, high, unknown of one box."""

    kind: str
    wanted: Values

    @property
    def discrete(self) -> bool:
        return scale_of(self.kind) == "discrete"

    def pieces(self) -> list[Interval]:
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
            Interval(None if low is None else Fraction(low), None if high is None else Fraction(high))
            for low, high in joined
        ]

    def share(self) -> str:
        """Asked values over all values."""
        step = " + 1" if self.discrete else ""
        null = "1" if self.wanted.null else "0"
        sizes = [f"greatest({self._high(p)} - {self._low(p)}{step}, 0)" for p in self.pieces()]
        if all(p.low is None and p.high is None for p in self.pieces()) and self.pieces():
            sizes = [f"(high - low{step})"]
        if self.discrete:
            extra = " + unknown::integer" if self.wanted.null else ""
            inside = f"({' + '.join(sizes) or '0'}{extra}) / (high - low + 1 + unknown::integer)"
        else:
            inside = f"case when {self._point()} then {self._inside_point()} else "
            inside += f"({' + '.join(sizes) or '0'}) / (high - low) end" if sizes else "0 end"
        return f"case when _cell is null then {null} else {inside} end"

    def mean(self, slope: Fraction, shift: Fraction) -> str:
        """Mean of slope * value + shift where the value is asked for, 0 elsewhere."""
        sums = []
        for piece in self.pieces():
            low, high = self._low(piece), self._high(piece)
            size = f"greatest({high} - {low}{' + 1' if self.discrete else ''}, 0)"
            line = f"({_number(slope / 2)} * ({low} + {high}) + {_number(shift)})"
            sums.append(f"{size} * {line}")
        total = " + ".join(sums) or "0"
        if self.discrete:
            body = f"({total}) / (high - low + 1 + unknown::integer)"
        else:
            at = f"({_number(slope)} * low + {_number(shift)})"
            body = f"case when {self._point()} then {self._inside_point()} * {at} else ({total}) / (high - low) end"
        return f"case when _cell is null then 0 else {body} end"

    def possible(self) -> str:
        """Whether some value of the box is asked for."""
        touching = [self._compare("high", ">", p.low, p.low_in) for p in self.pieces()]
        others = [self._compare("low", "<", p.high, p.high_in) for p in self.pieces()]
        touches = " or ".join(f"({a} and {b})" for a, b in zip(touching, others, strict=True)) or "false"
        anything = bool(self.pieces()) or self.wanted.null
        return (
            f"case when _cell is null then {_boolean(self.wanted.null)} "
            f"when unknown then {_boolean(anything)} else {touches} end"
        )

    def certain(self) -> str:
        """Whether every value of the box is asked for."""
        within = [
            f"({self._compare('low', '>', p.low, p.low_in)} and {self._compare('high', '<', p.high, p.high_in)})"
            for p in self.pieces()
        ]
        everything = self.wanted.null and any(p.low is None and p.high is None for p in self.pieces())
        return (
            f"case when _cell is null then {_boolean(self.wanted.null)} "
            f"when unknown then {_boolean(everything)} else {' or '.join(within) or 'false'} end"
        )

    def extreme(self, slope: Fraction, shift: Fraction, least: bool) -> str:
        """Smallest or largest slope * value + shift among the values asked for; unbounded when unknown."""
        pieces = self.pieces()
        if not pieces:
            return "null::double"
        low, high = self._low(pieces[0]), self._high(pieces[-1])
        end = low if (slope >= 0) == least else high
        kind = "date" if self.kind.upper() == "DATE" else "double"
        infinite = f"'{'-' if least else ''}infinity'::{kind}"
        line = end if slope == 1 and shift == 0 else f"{_number(slope)} * {end} + {_number(shift)}"
        return f"case when _cell is null then null when unknown then {infinite} else {line} end"

    def _low(self, piece: Interval) -> str:
        return "low" if piece.low is None else f"greatest(low, {printed(piece.low, self.kind)})"

    def _high(self, piece: Interval) -> str:
        return "high" if piece.high is None else f"least(high, {printed(piece.high, self.kind)})"

    def _point(self) -> str:
        return "low = high"

    def _inside_point(self) -> str:
        inside = [
            f"({self._compare('low', '>', p.low, p.low_in)} and {self._compare('low', '<', p.high, p.high_in)})"
            for p in self.pieces()
        ]
        return f"({' or '.join(inside) or 'false'})::integer"

    def _compare(self, side: str, sign: str, end: Fraction | None, included: bool) -> str:
        if end is None:
            return "true"
        return f"{side} {sign}{'=' if included else ''} {printed(end, self.kind)}"


def linear(value: exp.Expr) -> tuple[Fraction, Fraction] | None:
    """Read an expression of one column as slope * column + shift; None if it is anything else."""
    value = value.unnest()
    if isinstance(value, exp.Column):
        return Fraction(1), Fraction(0)
    if isinstance(value, exp.Literal) and not value.is_string:
        return Fraction(0), Fraction(value.this)
    if isinstance(value, exp.Neg):
        inner = linear(value.this)
        return (-inner[0], -inner[1]) if inner else None
    if isinstance(value, exp.Cast) and value.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT):
        return linear(value.this)
    if not isinstance(value, (exp.Add, exp.Sub, exp.Mul)):
        return None
    left, right = linear(value.left), linear(value.right)
    if left is None or right is None:
        return None
    if isinstance(value, exp.Mul):
        if left[0] and right[0]:
            return None
        return left[0] * right[1] + right[0] * left[1], left[1] * right[1]
    sign = 1 if isinstance(value, exp.Add) else -1
    return left[0] + sign * right[0], left[1] + sign * right[1]


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


def _boolean(value: bool) -> str:
    return "true" if value else "false"
