"""Medians and quantiles from the distribution that boxes, sets and channels leave of a column.

Every released row adds its weight (the chance that it qualifies), spread evenly over its interval; the quantile is
where the cumulated weight passes the share asked for, between two values where it is continuous. Columns whose cells
list their values are spelled out by value instead.

Hard bounds: of the rows that surely qualify and any of those that may, each with a value between its ends, the least
quantile takes every optional row up to t and none beyond. So with n(t) the rows that surely qualify or start at or
below t, the k-th value of the group can be at most t if as many start there as k = 1 + q (n(t) - 1) asks for; the
highest is its mirror. Cost: one pass and a sort over the rows, times `POINTS` for the estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import decimal_type, is_boolean, is_moment, is_text
from duckdb_anon.rewrite.bounds.hard_bounds import value_ends
from duckdb_anon.rewrite.estimate.aggregates import Aggregate, mass
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, EXACT
from duckdb_anon.rewrite.estimate.homes import Homes
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.query.aggregate_nodes import without_filter
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import copied, every, name, number, own, select, tree, truth
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.parts import labelled

POINTS = 32
"""Into how many equally likely values an interval is cut for the estimate."""

_NO_NUMBERS = ("BIT", "BLOB", "UUID", "TEXT")

_DROP = "floor" if version("duckdb").startswith("1.") else "trunc"
"""How DuckDB drops digits of quantiles of DECIMALs: 1.5 from what lies above the lower neighbour."""


@dataclass(frozen=True)
class Quantile:
    """A quantile a query asks for.

    Attributes:
        value: its argument.
        share: 0.5 for the median.
        continuous: whether it lies between two values where the share does.
        condition: FILTER, and that the value is not NULL.
        filtered: FILTER alone.
    """

    value: exp.Expr
    share: exp.Expr
    continuous: bool
    condition: exp.Expr
    filtered: exp.Expr | None = None


def read_quantile(node: exp.Expr) -> Quantile | None:
    """Read a median or quantile with its FILTER; None for other aggregates."""
    inner, where = without_filter(node)
    order = None
    if isinstance(inner, exp.WithinGroup):
        order, inner = inner.expression.expressions[0], inner.this
    share: exp.Expr | None
    if isinstance(inner, exp.Median):
        value, share = inner.this, number(0.5)
    elif isinstance(inner, (exp.PercentileCont, exp.PercentileDisc)):
        value, share = (order.this, inner.this) if order is not None else (inner.this, inner.expression)
        if order is not None and order.args.get("desc"):
            share = tree("1 - {share}", share=share)
    elif isinstance(inner, (exp.Quantile, exp.ApproxQuantile)):
        value, share = inner.this, inner.args.get("quantile")
    else:
        return None
    if (
        value is None
        or share is None
        or isinstance(value, exp.Distinct)
        or not isinstance(share.unnest(), (exp.Literal, exp.Sub))
    ):
        raise RewriteError(
            f"{plain(inner)} cannot be estimated from the release: ask for one share, a number, at a time"
        )
    there = tree("{v} is not null", v=value)
    condition = there if where is None else every([where, there])
    continuous = isinstance(inner, (exp.Median, exp.PercentileCont))
    return Quantile(copied(value), copied(share), continuous, condition, None if where is None else copied(where))


def in_intervals(value: exp.Expr, homes: Homes) -> bool:
    """Whether a value is read from intervals, or exactly from the row, so that its ends say all."""
    home = homes.of(value)
    if home == EXACT:
        return True
    return any(part.name == home and isinstance(part, IntervalPart) for part in homes.model.parts)


@dataclass
class Quantiles:
    """Writes the steps of one quantile.

    Attributes:
        asked: the quantile.
        place: its number, for names.
        steps: the query's named steps.
        where: conditions of the query that are still to be satisfied.
        original: types of the original's columns.
    """

    asked: Quantile
    place: int
    steps: Steps
    where: exp.Expr | None
    original: TableInfo
    bounded: bool = False
    source: exp.Select | None = None

    def read(self, keys: Sequence[exp.Expr]) -> None:
        """Ask the steps for what the quantile needs; before they are written."""
        # of a value that is seen value by value the row that counts a cell may be the NULL it could be
        spelt = self.steps.homes.of(self.asked.value) == BY_VALUE
        aggregate = Aggregate(
            "avg", self.asked.value, (self.asked.filtered or truth(True)) if spelt else self.asked.condition
        )
        found = value_ends(aggregate, self.where, self.steps)
        condition = every([self.where, self.asked.condition]) if self.where is not None else self.asked.condition
        if found is None:
            home = self.steps.homes.of(self.asked.value)
            if home is None:
                raise RewriteError(f"quantiles of {plain(self.asked.value)} cannot be estimated from the release")
            ends: tuple[exp.Expr, exp.Expr] = (self.asked.value, self.asked.value)
            if home != BY_VALUE:
                least, most = (self.steps.end(end, self.asked.value, home, None) for end in (True, False))
                ends = (self.steps.column("key", least, "least"), self.steps.column("key", most, "most"))
            may: exp.Expr = truth(True)
            must: exp.Expr = truth(False)
        else:
            may, must, *pair = found
            ends = (pair[0], pair[1])
            self.bounded = True
        rows = self.steps.column("sum", number(1)) if self.steps.spread else number(1)
        shown = [labelled(copied(key), f"key_{i}") for i, key in enumerate(keys)]
        shown += [
            labelled(self._numeric(ends[0]), "least"),
            labelled(self._numeric(ends[1]), "most"),
            labelled(rows, "rows"),
            labelled(mass(condition, self.steps), "weight"),
            labelled(tree("coalesce({x}, false)", x=must), "must"),
            labelled(tree("coalesce({x}, false)", x=may), "may"),
        ]
        self.source = exp.Select(expressions=shown)

    @property
    def _kind(self) -> str:
        value = self.asked.value.unnest()
        if isinstance(value, exp.Cast):
            return value.to.sql("duckdb").upper()
        kind = self.original.types.get(fold(value.name), "") if isinstance(value, exp.Column) else "DOUBLE"
        return kind.upper()

    def _numeric(self, end: exp.Expr) -> exp.Expr:
        if self._kind == "DATE":
            return tree("epoch({x}) / 86400", x=end)
        if is_moment(self._kind) or is_text(self._kind) or is_boolean(self._kind) or self._kind in _NO_NUMBERS:
            raise RewriteError(
                f"quantiles of {plain(self.asked.value)}, {self._kind}, cannot be estimated; ask a number or date"
            )
        return tree("{x}::double", x=end)

    @property
    def label(self) -> exp.Identifier:
        """Name of the last step."""
        return name(f"quantile_{self.place}")

    def ctes(self, table: exp.Expr, where: exp.Expr | None, keys: int) -> list[tuple[exp.Identifier, exp.Query]]:
        """The steps.

        Args:
            table: FROM clause of the final query.
            where: its WHERE.
            keys: how many keys there are.
        """
        assert self.source is not None  # noqa: S101 -- `read` comes first
        source = self.source
        source.set("from_", copied(table))
        if where is not None:
            source.set("where", exp.Where(this=copied(where)))
        rows, points = name(f"quantile_rows_{self.place}"), name(f"quantile_points_{self.place}")
        over: list[exp.Expr] = [own(f"key_{i}") for i in range(keys)]
        part = [copied(one) for one in over] or [exp.null()]
        q = self.asked.share
        spread = tree(
            f"select {{keys}}, _least + (_point + 0.5) / {POINTS} * (_most - _least) as _x, "
            f"_weight / {POINTS} as _weight from {{rows}} cross join range({POINTS}) as _points(_point) "
            "where _weight <> 0 and _most > _least and isfinite(_least) and isfinite(_most) "
            "union all select {keys}, _least, _weight from {rows} where _weight <> 0 and _most = _least",
            keys=over,
            rows=rows,
        )
        place = tree("{q} * greatest(_total - 1, 0)", q=q)
        at = "min(_x) filter (where _passed >= least({at}, _total) - 1e-9)"
        middle = tree(at, at=tree("{q} * _total", q=q))
        if self.asked.continuous:
            lower = tree(at, at=tree("floor({place}) + 1", place=place))
            upper = tree(at, at=tree("floor({place}) + 2", place=place))
            beyond = tree("any_value({place} - floor({place}))", place=place)
            middle = tree("{a} + {beyond} * ({b} - {a})", a=lower, b=upper, beyond=beyond)
        estimate = select(
            "select {keys}, {middle} as _middle from (select *, sum(_weight) over (partition by {part} order by _x) as "
            "_passed, sum(_weight) over (partition by {part}) as _total from {points}) as _passing group by all",
            keys=over,
            middle=middle,
            part=part,
            points=points,
        )
        ends = select(
            """
            select {keys},
              min(_least) filter (where _from_below >= floor(1 + {q} * (_surely + _more_below - 1))) as _low,
              max(_most) filter (where _from_above >= _surely + _more_above
                - ceil(1 + {q} * (_surely + _more_above - 1)) + 1) as _high
            from (select *, sum(_rows) over (partition by {part} order by _least) as _from_below,
              coalesce(sum(_rows) filter (where not _must) over (partition by {part} order by _least), 0)
                as _more_below,
              sum(_rows) over (partition by {part} order by _most desc) as _from_above,
              coalesce(sum(_rows) filter (where not _must) over (partition by {part} order by _most desc), 0)
                as _more_above,
              coalesce(sum(_rows) filter (where _must) over (partition by {part}), 0) as _surely
              from {rows} where _may) as _ordered group by all""",
            keys=over,
            q=q,
            part=part,
            rows=rows,
        )
        shown = [tree("{k}", k=own(f"key_{i}", "ends")) for i in range(keys)]
        on = every([tree("_ends.{k} is not distinct from _estimates.{k}", k=name(f"key_{i}")) for i in range(keys)])
        final = select(
            "select {keys}, {middle} as _middle, {low} as _low, {high} as _high "
            "from {ends} as _ends left join {estimate} as _estimates on {on}",
            keys=shown,
            middle=self._typed(own("middle", "estimates")),
            low=self._typed(own("low", "ends"), "floor"),
            high=self._typed(own("high", "ends"), "ceil"),
            ends=ends,
            estimate=estimate,
            on=on,
        )
        assert isinstance(spread, exp.Query)  # noqa: S101 -- the template is a UNION
        return [(rows, source), (points, spread), (self.label, final)]

    def _typed(self, x: exp.Expr, rounded: str = "round") -> exp.Expr:
        decimal = decimal_type(self._kind)
        if decimal is not None and self.asked.continuous and rounded == "round":
            # DuckDB drops what lies beyond a DECIMAL's last digit; first what doubles add or lack there
            return tree(f"{_DROP}(round({{x}} * 1e{decimal[1]}, 6)) / 1e{decimal[1]}", x=x)
        if self._kind != "DATE":
            return x
        if self.asked.continuous:  # between two dates, and so a TIMESTAMP, on the original too
            return tree(f"make_timestamp({rounded}({{x}} * 86400e6)::bigint)", x=x)
        return tree(f"(date '1970-01-01' + {rounded}({{x}})::integer)", x=x)
