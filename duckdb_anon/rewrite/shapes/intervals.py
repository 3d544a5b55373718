"""Cells that are intervals, STRUCT(lower T, upper T) with both ends inside.

Uniform overlap (Zhang et al. 2007; Xiao and Tao 2006): the share of a box is the number of its values that
are asked for over all its values, or lengths for continuous types; a point counts 1 if it is inside. The
value NULL is a NULL struct. {lower: NULL, upper: NULL} could be anything: it is spread over all that the
other boxes of the column cover and NULL, and is never certain.

Conditions with constant ends and linear amounts have closed forms, so the width of a box costs nothing.
Otherwise the values of a counted type are listed, once for each distinct box.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from duckdb_anon.model.errors import when_run
from duckdb_anon.model.learnt import MOST_LISTED
from duckdb_anon.model.release_formats.duckdb_types import is_moment, spread_of
from duckdb_anon.rewrite.query.template import (
    OWN,
    kept_together,
    mapped,
    name,
    number,
    own,
    own_name,
    select,
    tree,
    truth,
)
from duckdb_anon.rewrite.shapes.interval_forms import WHOLE, Form
from duckdb_anon.rewrite.shapes.known_expressions import Quadratic, constants, is_number, linear, nearly, quadratic
from duckdb_anon.rewrite.shapes.moment_units import counted
from duckdb_anon.rewrite.shapes.parts import Part, Request, answer, labelled, listable, plainly
from duckdb_anon.rewrite.shapes.value_ranges import beyond, read
from duckdb_anon.rewrite.shapes.whole_boxes import NARROW

_ITSELF = Fraction(0), Fraction(1), Fraction(0)


@dataclass(frozen=True)
class IntervalPart(Part):
    """An attribute published as intervals of type `kind`."""

    even: ClassVar[bool] = True
    kind: str = "INTEGER"

    def values(self, used: Sequence[str]) -> exp.Select:
        """List the whole numbers or days in each box."""
        return select(
            "select _cell, {values} as {value} from {boxes}",
            values=self.unlisted(self._inside()),
            value=self.columns[0],
            boxes=self.boxes(),
        )

    def opened(self, cell: exp.Expr) -> exp.Expr | None:
        """The whole numbers or days in a box; where it could be anything those that boxes cover, and NULL."""
        kind = self.kind.upper()
        if not self.even:
            return None
        if kind not in NARROW and kind not in ("BIGINT", "DATE"):
            return self._told_apart(self._inside(), cell)
        most, alone = f"{MOST_LISTED / 1e6:g}e6", ""
        inside, few = "generate_series({low}, {high})", f"{{high}} - {most} < {{low}}"
        if kind == "DATE":
            # an infinite date is alone in its box, or with the other one: the upper end is one of both
            inside, few = "range({low}, {high} + 1, interval 1 day)", f"{{high}} - {{low}} < {most}"
            alone = "when isinf(_high) then list_distinct([_low, _high])"
        own_ends, all_ends = {"low": "_low", "high": "_high"}, {"low": "_least", "high": "_most"}
        # where one box has too many values, so have all together
        node = tree(
            f"case when _cell is null then [null] {alone} when {few.format(**own_ends)} "
            f"then {inside.format(**own_ends)} else coalesce((select {inside.format(**all_ends)} "
            f"|| [null] from _every having {few.format(**all_ends)}), error({{many}})) end",
            many=exp.Literal.string(when_run(f"boxes of {self.columns[0]} have no ends or over {MOST_LISTED} values")),
        )
        return self._over_own_ends(node, cell)

    def unlisted(self, values: exp.Expr) -> exp.Expr:
        """One row a value, of the column's type."""
        return tree(f"unnest({{values}})::{self.kind}", values=values)

    def of_row(self, request: Request, share: exp.Column) -> exp.Expr | None:
        """The closed form of a request, where it has one."""
        if request.wanted == "mean" and not self.even:
            return None
        wanted = WHOLE if request.condition is None else read(request.condition, self.kind)
        if wanted is None:
            return None
        form = Form(self.kind, wanted)
        if request.wanted in ("possible", "certain"):
            return self._over_own_ends(form.flag_of_own_ends(request.wanted == "possible"))
        line = None if request.value is None else linear(request.value)
        if request.wanted in ("least", "most") and line is not None and line == (Fraction(1), Fraction(0)):
            return self._over_own_ends(form.extreme(*line, least=request.wanted == "least"))
        if request.wanted == "mean" and (request.value is None or line is not None):
            own_ends = form.share_of_own_ends() if line is None else form.mean_of_own_ends(*line)
            if own_ends is not None:
                return self._over_own_ends(own_ends)
        closed = self._closed(request)
        return self._told_apart(closed, self.key) if closed is not None else None

    def of_rows(self, request: Request) -> exp.Expr | None:
        """What whole boxes tell, added up."""
        line = None if request.value is None else linear(request.value)
        wanted = WHOLE if request.condition is None else read(request.condition, self.kind)
        if request.wanted != "mean" or not self.even or wanted is None or (request.value is not None and line is None):
            return None
        found = Form(self.kind, wanted).total_of_own_ends(line)
        return None if found is None else self._over_own_ends(found)

    def touched(self, condition: exp.Expr) -> list[exp.Expr]:
        """Conditions that a row's box satisfies if it may hold a value that is asked for, as its ends tell alone.

        Each looks at one end, so that DuckDB tells whole blocks of rows from their least and largest end.

        Args:
            condition: a condition on the part.
        """
        wanted = read(condition, self.kind)
        form = None if wanted is None or wanted.null else Form(self.kind, wanted)
        if form is None or len(form.pieces()) != 1:
            return []
        ends = form.ends_that_touch(form.pieces()[0])
        return [self._over_own_ends(tree("{known} or {end} is null", known=one, end=one.this)) for one in ends]

    def _over_own_ends(self, node: exp.Expr, cell: exp.Expr | None = None) -> exp.Expr:
        """An expression over a row of `boxes` and the ends `_least` and `_most` of all boxes, over a released row."""
        shown = counted(self.kind) if self._in_steps() else "{x}::double" if "HUGEINT" in self.kind else "{x}"
        bare = exp.Column(this=self.key.this)
        mine = exp.Column(this=(cell or self.key).this)
        known: dict[str, Callable[[], exp.Expr]] = {
            "low": lambda: tree(shown, x=tree("{cell}.lower", cell=mine)),
            "high": lambda: tree(shown, x=tree("{cell}.upper", cell=mine)),
            "least": lambda: tree(shown, x=tree("min({cell}.lower)", cell=bare)),
            "most": lambda: tree(shown, x=tree("max({cell}.upper)", cell=bare)),
            "cell": lambda: cell or self.key,
            "unbounded": lambda: tree("{cell}.lower is null", cell=mine),
            "missing": self._endless,
        }

        def change(one: exp.Expr) -> exp.Expr | None:
            if isinstance(one, exp.Table) and one.name == name("every").this:
                return plainly(self.release)
            made = known.get(own_name(one)) if isinstance(one, exp.Column) and one.name.startswith(OWN) else None
            return None if made is None or one.parent is None else kept_together(one.parent, one.arg_key, made())

        return mapped(node, change)

    def ends(self, cell: exp.Expr, read: Collection[str]) -> list[exp.Expr]:
        """Low and high of a box; those of all boxes for one that could be anything."""
        bare = exp.Column(this=self.key.this)
        least = "coalesce(min({key}.lower), case when count({key}) > 0 then error({missing}) end)"
        return [
            labelled(
                tree(
                    self._shown().format(x=f"coalesce({{cell}}.{end}, (select {all_boxes} from {{release}}))"),
                    cell=cell,
                    key=bare,
                    missing=self._endless(),
                    release=plainly(self.release),
                ),
                label,
            )
            for label, end, all_boxes in (
                (f"low_{self.name}", "lower", least),
                (f"high_{self.name}", "upper", "max({key}.upper)"),
            )
            if name(label).this in read
        ]

    def _told_apart(self, node: exp.Expr, cell: exp.Expr) -> exp.Expr:
        """An expression over a row of `boxes`, over a row that has a cell and its `ends` beside others."""
        known = {
            "low": own(f"low_{self.name}"),
            "high": own(f"high_{self.name}"),
            "cell": cell,
            "unbounded": tree("{cell}.lower is null", cell=cell),
        }

        def change(one: exp.Expr) -> exp.Expr | None:
            found = known.get(own_name(one)) if isinstance(one, exp.Column) and one.name.startswith(OWN) else None
            return found if found is None or one.parent is None else kept_together(one.parent, one.arg_key, found)

        return mapped(node, change)

    def _inside(self) -> exp.Expr:
        """The list of a box's values, over a row of `boxes`; of whole numbers as BIGINTs."""
        if spread_of(self.kind) != "discrete":
            raise listable(self.columns[0], "it is grouped by, joined on, or used in an expression")
        kind = self.kind.upper()
        inside, null, known = "range(_low, _high + 1)", "null", "_high - _low"
        if kind not in NARROW:
            inside = "range(_low::bigint, _high::bigint + 1)"
        far = f"{known} >= {MOST_LISTED}"
        if kind not in NARROW:
            far = f"_high >= 9223372036854775807 or _low < -9223372036854775808 or {far}"
        if kind == "DATE":
            # an infinite date is alone in its box, or with the other one
            null, known = "null::date", "isfinite(_low) and isfinite(_high)"
            far = f"{known} and datediff('day', _low, _high) >= {MOST_LISTED}"
            inside = (
                f"case when {known} then range(_low, _high + 1, interval 1 day)::date[] "
                "else list_distinct([_low, _high]) end"
            )
        return tree(
            f"case when _cell is null then [{null}] when {far} then error({{many}}) "
            f"else list_concat({inside}, case when _unbounded then [{null}] end) end",
            many=self.too_many(),
        )

    def too_many(self) -> exp.Literal:
        """What a query says that meets a box of too many values."""
        return exp.Literal.string(
            when_run(
                f"a box of {self.columns[0]} has over {MOST_LISTED} values, or all of them ten times as many, too many "
                "to list; compare it with constants, or ask for its SUM, AVG or STDDEV"
            )
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
        shown = self._shown()
        low = "coalesce(_cell.lower, min(_cell.lower) over (), case when _cell is not null then error({missing}) end)"
        high = "coalesce(_cell.upper, max(_cell.upper) over ())"
        return select(
            f"select _cell, {shown.format(x=low)} as _low, {shown.format(x=high)} as _high, "
            "_cell is not null and _cell.lower is null as _unbounded from {cells}",
            cells=self.cells(),
            missing=self._endless(),
        )

    def _in_steps(self) -> bool:
        """Whether values are moments that are counted as `moment_units` says."""
        return is_moment(self.kind) and self.kind.upper() != "DATE"

    def _shown(self) -> str:
        """How an end is reckoned with: moments as whole ones, so that lengths are numbers; numbers with room."""
        kind = self.kind.upper()
        if self._in_steps():
            return counted(self.kind)
        if spread_of(kind) == "discrete" and kind != "DATE":
            return f"{{x}}::{'bigint' if kind in NARROW else 'double' if 'HUGEINT' in kind else 'hugeint'}"
        return "{x}"

    def _endless(self) -> exp.Literal:
        """What a query says that meets no box to tell the values of one without ends."""
        return exp.Literal.string(when_run(f"no box of {self.columns[0]} has ends"))

    def boundable(self, value: exp.Expr) -> bool:
        """Whether ends are known of a value in a box that could be anything: numbers only."""
        if spread_of(self.kind) == "continuous" and not is_moment(self.kind):
            return self._reckoned(value) is not None or constants(value) is not None
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
            ends, least = constants(request.value), request.wanted == "least"
            if ends is not None:
                anything = number(min(ends) if least else max(ends))
            elif self.boundable(request.value):
                dated = self.kind.upper() == "DATE" and linear(request.value) is not None
                anything = tree(beyond("DATE" if dated else self.kind, least))
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
        return self._closed(request)

    def _closed(self, request: Request) -> exp.Expr | None:
        wanted = WHOLE if request.condition is None else read(request.condition, self.kind)
        if wanted is None:
            return None
        form = Form(self.kind, wanted)
        if request.wanted == "possible":
            return form.possible()
        if request.wanted == "certain":
            return form.certain()
        if request.wanted == "mean" and request.value is None:
            return form.share()
        assert request.value is not None  # noqa: S101 -- least and most are asked of a value
        if request.wanted == "mean":
            squares = quadratic(nearly(request.value), self.kind)
            return None if squares is None else form.mean(squares)
        known, least = self._reckoned(request.value), request.wanted == "least"
        if known is None or (known[0] and form.discrete):
            return None
        return form.extreme_of_squares(known, least) if known[0] else form.extreme(*known[1:], least=least)

    def _reckoned(self, value: exp.Expr) -> Quadratic | None:
        """A value as `quadratic` reads it, where numbers tell what SQL reckons, which rounds FLOATs and squares."""
        found = quadratic(value, self.kind)
        if found is None or spread_of(self.kind) == "discrete" or found == _ITSELF:
            return found
        return None if self.kind.upper() == "FLOAT" or (found[0] and self.kind.upper() != "DOUBLE") else found
