"""MIN and MAX as the likely value: the median of the extreme of the rows that the release speaks of.

With N(x) the expected number of qualifying rows beyond x, and n rows that have a say, the median of the extreme is
where N(x) falls to n (1 - 2^(-1/n)), about ln 2: exact for n rows alike (David and Nagaraja 2003, Order Statistics,
section 2.1), near for others. A row that surely qualifies with a known value counts 1 at once, so the estimate is
never short of what is certain, and never beyond what is possible. Rows that share a box are spread evenly over it, and
N is linear between the ends of boxes; values of cells that list them are steps.

Where several grouping sets are asked at once the estimate is the outer end (`estimate.aggregates`).
Cost: a sort of the distinct boxes that reach beyond the innermost end, or of the distinct values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import decimal_type, is_timestamp, spread_of
from duckdb_anon.rewrite.estimate.aggregates import Aggregate, both, given, mass
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, EXACT
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import append_step
from duckdb_anon.rewrite.joined_steps import RewriteSelect, Stands, finer, group_value, join_by_keys
from duckdb_anon.rewrite.query.grouping_sets import QueryGroups
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import copied, every, name, own, select, tree
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.known_expressions import linear
from duckdb_anon.rewrite.shapes.moment_units import counted, finite, timestamp
from duckdb_anon.rewrite.shapes.parts import labelled
from duckdb_anon.rewrite.shapes.released import Model

_MEDIAN = "_rows / greatest(2, 1.4427 * _rows + 0.5573)"
"""n (1 - 2^(-1/n)) within 1% for n from 1 on; below, half of what is expected: the median given that there is a row."""


_ENDS = {
    "BIGINT": (str(-(2**63)), str(2**63 - 1)),
    "UBIGINT": ("0", str(2**64 - 1)),
    "HUGEINT": (str(-(2**127)), str(2**127 - 1)),
    "UHUGEINT": ("0", str(2**128 - 1)),
}
"""Least and largest of the whole numbers that a DOUBLE does not tell apart."""
_DIGITS = 16
"""Of a DECIMAL with so many a DOUBLE may be the number beside it."""
_OF_DAY = ("TIME", "TIME_NS", "TIMETZ", "TIME WITH TIME ZONE")


@dataclass
class _Extreme:
    """One MIN or MAX, and its steps."""

    node: exp.Expr
    aggregate: Aggregate
    place: int
    fine: exp.Select | None = None
    source: exp.Select | None = None
    kind: str = ""
    grid: bool = False
    keep_type: bool = False

    @property
    def most(self) -> bool:
        return self.aggregate.kind == "max"

    @property
    def step(self) -> exp.Identifier:
        return name(f"likely_{self.place}")


@dataclass
class LikelyExtremes:
    """The MIN and MAX of one SELECT that are estimated by steps of their own."""

    keys: tuple[exp.Expr, ...]
    found: list[_Extreme] = field(default_factory=list)

    @classmethod
    def of(
        cls, asked: exp.Select, nodes: Sequence[exp.Expr], aggregates: Sequence[Aggregate], groups: QueryGroups
    ) -> LikelyExtremes:
        """Find them in a SELECT that nothing has been changed in.

        Args:
            asked: the SELECT.
            nodes: its aggregates.
            aggregates: the same, read.
            groups: what it groups by.
        """
        found = cls(groups.keys)
        if len(groups.sets) > 1:
            return found
        for node, aggregate in zip(nodes, aggregates, strict=True):
            if aggregate.kind in ("min", "max"):
                found.found.append(_Extreme(node, aggregate, len(found.found)))
        if found.found:
            found._asked = copied(asked)
        return found

    _asked: exp.Select | None = None

    def read(
        self, steps: Steps, where: exp.Expr | None, original: TableInfo, model: Model, rewrite: RewriteSelect,
        stands: Stands,
    ) -> None:  # fmt: skip
        """Ask the steps for what the extremes need; before they are written.

        Args:
            steps: the query's named steps.
            where: conditions of the query that are still to be satisfied.
            original: the original.
            model: what the release says of it, before lists were unnested.
            rewrite: rewrites a grouping in place.
            stands: whether a SELECT can be asked of the release as it stands.
        """
        told = steps.model
        if not told.complete or any(part.signed or part.counted for part in told.parts):
            self.found = []  # refused where they are estimated
        for one in list(self.found):
            value, condition = one.aggregate.value, both(where, one.aggregate.condition)
            assert value is not None  # noqa: S101 -- MIN and MAX have an argument
            home = steps.homes.of(value)
            part = next((part for part in told.parts if part.name == home), None)
            line = linear(value) if isinstance(part, IntervalPart) else None
            if home == EXACT and steps.homes.of(condition) == EXACT and not steps.spread:
                self.found.remove(one)
            elif isinstance(part, IntervalPart) and (line is None or part.kind.upper() in _OF_DAY):
                self.found.remove(one)
            elif home in (EXACT, BY_VALUE) or line is not None:
                self._read(one, steps, where, home)
                if isinstance(part, IntervalPart) and line is not None:
                    one.kind, one.keep_type = part.kind.upper(), line == (Fraction(1), Fraction(0))
                    one.grid = spread_of(part.kind) == "discrete" and abs(line[0]) == line[1].denominator == 1
            else:
                assert self._asked is not None  # noqa: S101 -- `of` found some
                test = None if one.aggregate.condition == exp.true() else one.aggregate.condition
                fine = finer(self._asked, self.keys, value, test)
                fine.append("expressions", labelled(tree("count(*)"), "rows"))
                if not stands(fine, model):
                    rewrite(fine, model, original, "none")
                one.fine = fine

    def _read(self, one: _Extreme, steps: Steps, where: exp.Expr | None, home: str | None) -> None:
        value = one.aggregate.value
        assert value is not None  # noqa: S101 -- asked before
        weight = mass(both(where, one.aggregate.condition), steps)
        shown = [labelled(copied(key), f"key_{i}") for i, key in enumerate(self.keys)]
        if home == BY_VALUE:
            shown.append(labelled(copied(value), "x"))
        elif home == EXACT:
            shown.append(labelled(steps.column("key", steps.end(True, value, EXACT, None), "value"), "x"))
        else:
            assert home is not None  # noqa: S101 -- a part's
            condition = given(steps, home, where, one.aggregate)
            for label, least in (("least", True), ("most", False)):
                end = steps.end(least, value, home, condition)
                shown.append(labelled(steps.column("key", end, label), label))
        one.source = exp.Select(expressions=[*shown, labelled(weight, "weight")])

    def estimate(self, node: exp.Expr) -> exp.Expr | None:
        """What stands in the final query for an aggregate; None for those without steps."""
        one = next((one for one in self.found if one.node is node), None)
        return None if one is None else group_value(one.step, "middle")

    def attach(self, final: exp.Select) -> None:
        """Add the steps and joins to the rewritten query.

        Args:
            final: the rewritten query.
        """
        source, condition = copied(final.args["from_"]), final.args.get("where")
        joins = [copied(join) for join in final.args.get("joins") or []]
        for one in self.found:
            if one.source is not None:
                one.source.set("from_", copied(source))
                one.source.set("joins", [copied(join) for join in joins])
                if condition is not None:
                    one.source.set("where", copied(condition))
        for one in self.found:
            append_step(final, one.step, self._steps(one))
            join_by_keys(final, one.step, self.keys)

    def _steps(self, one: _Extreme) -> exp.Select:
        over: list[exp.Expr] = [own(f"key_{i}") for i in range(len(self.keys))]
        holes = {"keys": over, "part": over}
        groups = "partition by {part}" if over else ""
        if one.kind:
            return self._of_boxes(one, holes, groups)
        values = one.source
        if one.fine is not None:
            values = select("select {keys}, _value as _x, _rows as _weight from {fine}", fine=one.fine, **holes)
        assert values is not None  # noqa: S101 -- one of the two is there
        pick, order = ("max", "desc") if one.most else ("min", "asc")
        return select(
            f"""
            select {{keys}}, {pick}(_x) filter (where _beyond >= {_MEDIAN} - 1e-9) as _middle
            from (select *, sum(_weight) over ({groups} order by _x {order}) as _beyond, sum(_weight) over ({groups})
              as _rows from (select {{keys}}, _x, sum(_weight) as _weight from {{values}}
              where _weight > 0 and _x is not null group by all))
            group by all""",
            values=values,
            **holes,
        )

    def _of_boxes(self, one: _Extreme, holes: dict[str, list[exp.Expr]], groups: str) -> exp.Select:
        assert one.source is not None  # noqa: S101 -- boxes are read from the rows
        ends = [_numeric(own(end), one.kind) for end in ("least", "most")]
        low, high = ends if one.most else [tree("-{end}", end=end) for end in reversed(ends)]
        # whole numbers and days are cells of length 1, so that every box has a length
        widened = " - 0.5 as _low, {high} + 0.5" if one.grid else " as _low, {high}"
        density, jump, jumps, total = "_weight / (_high - _low)", "0", "", ""
        if not one.grid or _ends(one.kind) is not None:  # cells of length 1 may have none as a DOUBLE
            density = "case when _high > _low then _weight / (_high - _low) else 0 end"
            jump, total, jumps = (
                "_jump",
                "sum(_jump) as _jump,",
                "unnest([case when _high > _low then 0 else _weight end, 0]) as _jump,",
            )
        return select(
            f"""
            select {{keys}}, {{middle}} as _middle from (
              select *, sum(_before * _gap + {jump}) over ({groups} order by _x desc) as _beyond from (
                select *, sum(_density) over ({groups} order by _x desc) - _density as _before,
                  lag(_x, 1, _x) over ({groups} order by _x desc) - _x as _gap, sum(_weight) over ({groups}) as _rows
                from (select {{keys}}, _x, sum(_density) as _density, {total}
                  sum(_weight) as _weight from (
                  select {{keys}}, unnest([_high, _low]) as _x, unnest([_density, -_density]) as _density, {jumps}
                    unnest([_weight, 0]) as _weight
                  from (select *, {density} as _density from (
                    select {{keys}}, {{low}}{widened} as _high, sum(_weight) as _weight from {{source}}
                    where _weight > 0 and {{finite}} group by all)))
                group by all)))
            group by all""",
            middle=_typed(
                tree(
                    f"arg_max(greatest(_x, _x + (_beyond - {jump} - {_MEDIAN}) / nullif(_before, 0)), _x) "
                    f"filter (where _beyond >= {_MEDIAN} - 1e-9)"
                ),
                one,
            ),
            low=low,
            high=high,
            finite=every([tree(finite(one.kind), x=own(end)) for end in ("least", "most")]),
            source=one.source,
            **holes,
        )


def _numeric(end: exp.Expr, kind: str) -> exp.Expr:
    if kind == "DATE":
        return tree("datediff('day', date '1970-01-01', {end}::date)", end=end)
    if is_timestamp(kind):
        return tree(f"{counted(kind)}::double", x=end)
    return tree("{end}::double", end=end)


def _typed(x: exp.Expr, one: _Extreme) -> exp.Expr:
    """The value a number stands for, as the column has it."""
    if one.grid or is_timestamp(one.kind):
        x = tree("ceil({x} - 0.5)", x=x)
    if not one.most:
        x = tree("-{x}", x=x)
    if one.kind == "DATE":
        return tree("(date '1970-01-01' + ({x})::integer)", x=x)
    if is_timestamp(one.kind):
        return tree(timestamp(one.kind), x=tree("({x})::bigint", x=x))
    if not one.keep_type:
        return x
    ends = _ends(one.kind)
    if ends is None:
        return tree(f"({{x}})::{one.kind}", x=x)
    # the number nearest to an end of the type is, as a DOUBLE, beyond it
    least = f"when {{x}} <= {ends[0]}::double then '{ends[0]}'::{one.kind}" if ends[0] != "0" else ""
    most = f"when {{x}} >= {ends[1]}::double then '{ends[1]}'::{one.kind}"
    return tree(f"case {most} {least} else ({{x}})::{one.kind} end", x=x)


def _ends(kind: str) -> tuple[str, str] | None:
    """The ends of a type whose numbers a DOUBLE does not tell apart; None for others."""
    width, places = decimal_type(kind) or (0, 0)
    if width < _DIGITS:
        return _ENDS.get(kind)
    most = "9" * (width - places) + "." * bool(places) + "9" * places
    return f"-{most}", most
