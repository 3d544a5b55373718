"""Generalized cells whose values weigh what all cells of the column tell together.

The same cells as in `intervals` and `listed`, and the same bounds; only the weights of the values inside a cell are
learnt from the release (`duckdb_anon.kernels.interval_em`) instead of being even. The functions that learn get the
distinct cells and their numbers of rows as lists, so the text stays as short as without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number, is_timestamp
from duckdb_anon.rewrite.query.template import number, own, select, tree, truth
from duckdb_anon.rewrite.shapes.interval_forms import WHOLE, Form
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.known_expressions import nearly, quadratic
from duckdb_anon.rewrite.shapes.listed import NodePart, SetPart
from duckdb_anon.rewrite.shapes.parts import Request, labelled
from duckdb_anon.rewrite.shapes.value_ranges import ValueInterval, read

_ENDS = 2**63 - 1
_WIDE = ("HUGEINT", "UHUGEINT", "UBIGINT", "BIGNUM")
"""Whole numbers that may not fit 64 bits."""


def learnable(kind: str) -> bool:
    """Whether the values of boxes of a type are spread by learnt shares: numbers and moments.

    >>> learnable("INTEGER"), learnable("DATE"), learnable("DECIMAL(18,3)"), learnable("TIME")
    (True, True, True, False)
    """
    return is_number(kind) or kind.upper() == "DATE" or is_timestamp(kind)


@dataclass(frozen=True)
class LearntIntervals(IntervalPart):
    """Intervals whose values have learnt weights.

    Attributes:
        rows: how many original rows a group of released rows stands for, as an aggregate.
    """

    even: ClassVar[bool] = False
    rows: exp.Expr = field(default_factory=lambda: tree("count(*)"))

    def values(self, used: Sequence[str]) -> exp.Select:
        """List the values in each box with their weights."""
        if is_integer(self.kind) and self.kind.upper() not in _WIDE:
            return select(
                f"""
                select _cell, unnest(coalesce(_values, error({{many}})))::{self.kind} as {{value}},
                  unnest(_weights) as _weight
                from (select unnest(list(_cell)) as _cell, unnest(box_values(list(_cell))) as _values,
                  unnest(box_weights(list(_cell), list(_size))) as _weights from {{cells}})""",
                value=self.columns[0],
                many=self.too_many(),
                cells=self.cells(),
            )
        listed = super().values(used)
        listed.append("expressions", labelled(tree("unnest(_weights)"), "weight"))
        return listed

    def shares(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select:
        """Learnt shares; the rest as in even boxes."""
        forms = [self._learnt(request) for request in requests]
        if any(form is None for form in forms):
            return super().shares(requests, labels)
        answers = [labelled(form, label) for form, label in zip(forms, labels, strict=True) if form is not None]
        return self._told(answers)

    def closed(self, request: Request, place: int) -> exp.Expr | None:
        """The learnt share where there is one."""
        return own(f"learnt_{place}") if self._learnt(request) is not None else super().closed(request, place)

    def boxes(self, requests: Sequence[Request] = ()) -> exp.Select:
        """The ends, and what was learnt of each request; the weights of the values where nothing is requested."""
        forms = {f"learnt_{place}": self._learnt(request) for place, request in enumerate(requests)}
        if not requests:
            forms = {"weights": tree("unnest(box_weights(list(_cell), list(_size)))")}
        learnt = {name: form for name, form in forms.items() if form is not None}
        ends = super().boxes(requests)
        if not learnt:
            return ends
        source = ends.args["from_"].this
        answers = [labelled(form, name) for name, form in learnt.items()]
        source.replace(exp.Subquery(this=self._told(answers)))
        for name in learnt:
            ends.append("expressions", own(name))
        return ends

    def _told(self, answers: Sequence[exp.Expr]) -> exp.Select:
        """SELECT the distinct cells and what was learnt of each."""
        return select(
            "select unnest(list(_cell)) as _cell, {answers} from {cells}", answers=answers, cells=self.cells()
        )

    def cells(self) -> exp.Select:
        """SELECT the distinct cells, and the rows of each."""
        return _counted(self.key, self.rows, self.source())

    def _learnt(self, request: Request) -> exp.Expr | None:
        """What is learnt of every cell, over a row of `_lists`; None where it takes the list of values."""
        wanted = WHOLE if request.condition is None else read(request.condition, self.kind)
        squares = None if request.value is None else quadratic(nearly(request.value), self.kind)
        if request.wanted != "mean" or wanted is None or (request.value is not None and squares is None):
            return None
        ranges = Form(self.kind, wanted)
        asked = exp.Array(expressions=[_piece(piece, ranges.discrete) for piece in ranges.pieces()])
        if squares is None:
            return tree(
                "unnest(box_shares(list(_cell), list(_size), {asked}, {null}))", asked=asked, null=truth(wanted.null)
            )
        square, slope, shift = (number(one) for one in squares)
        form = "means(list(_cell), list(_size), {asked}, {slope}, {shift})"
        if squares[0]:
            form = "squares(list(_cell), list(_size), {asked}, {square}, {slope}, {shift})"
        return tree(f"unnest(box_{form})", asked=asked, square=square, slope=slope, shift=shift)


@dataclass(frozen=True)
class LearntSets(SetPart):
    """Sets whose members have learnt weights."""

    even: ClassVar[bool] = False
    rows: exp.Expr = field(default_factory=lambda: tree("count(*)"))

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a member."""
        return select(
            """
            select _cell, unnest(coalesce(_cell, [null])) as {value}, unnest(_weights) as _weight from (
              select unnest(list(_cell)) as _cell,
                unnest(member_weights(list(coalesce(_cell, [null])), list(_size), null)) as _weights from {cells})""",
            value=self.columns[0],
            cells=_counted(self.key, self.rows, self.source()),
        )


@dataclass(frozen=True)
class LearntNodes(NodePart):
    """Nodes of a hierarchy whose leaves have learnt weights."""

    rows: exp.Expr = field(default_factory=lambda: tree("count(*)"))

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a leaf below the node."""
        return select(
            """
            select _cell, unnest(_leaves) as {value}, unnest(_weights) as _weight from (
              select unnest(list(_cell)) as _cell, unnest(list(_members)) as _leaves,
                unnest(member_weights(list(_members), list(_size), list(_prior))) as _weights from (
                select _even._cell, list({value}) as _members, list(_weight) as _prior, any_value(_size) as _size
                from {even} as _even join {cells} as _counted on _even._cell is not distinct from _counted._cell
                group by _even._cell))""",
            value=self.columns[0],
            even=super().values(used),
            cells=_counted(self.key, self.rows, self.source()),
        )


def _counted(key: exp.Expr, rows: exp.Expr, source: exp.Expr) -> exp.Select:
    """SELECT the distinct cells, and the rows of each."""
    return select(
        "select {key} as _cell, {rows} as _size from {source} group by _cell", key=key, rows=rows, source=source
    )


def _piece(piece: ValueInterval, discrete: bool) -> exp.Expr:
    """An asked interval as a list: its ends, NULL for none, and 1 or 0 for each end inside or not."""
    ends = [_end(piece.low), _end(piece.high)]
    if not discrete and not (piece.low_in and piece.high_in):
        ends += [number(int(piece.low_in)), number(int(piece.high_in))]
    return exp.Array(expressions=ends)


def _end(value: Fraction | None) -> exp.Expr:
    if value is None:
        return exp.null()
    return number(value if value.denominator > 1 else max(-_ENDS, min(_ENDS, value.numerator)))
