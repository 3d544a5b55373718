"""Hard bounds of aggregates, and 95% intervals of aggregates over a sample.

Where every original row is one released row, hard bounds follow: a row that qualifies whatever its true values
are counts in full, one that might counts where it moves the bound. Of rows that were left out, none or all count.

Where each row was released with probability p, the two sums are estimated instead (Horvitz and Thompson 1952):
a sum of amounts x over all rows by the sum of x / p over the released ones, its variance by the sum of
(1 - p) * x^2 / p^2. The truth lies between the two sums, so the lower one less 1.96 standard errors and the higher
one plus 1.96 enclose it with 95% at least. An AVG has an interval where no generalized cell has a say in it: the
ratio of two estimated sums (delta method).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_moment
from duckdb_anon.rewrite.bounds.delta_method import REACH
from duckdb_anon.rewrite.bounds.fewest import fewest_of_lists
from duckdb_anon.rewrite.estimate.aggregates import Aggregate, both, certain, end_of, given, possible
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, present
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.query.template import every, own, tree
from duckdb_anon.rewrite.query.template import number as literal
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.known_expressions import linear
from duckdb_anon.rewrite.shapes.parts import Part, filtered, plainly
from duckdb_anon.rewrite.shapes.person_lists import ItemPart
from duckdb_anon.rewrite.shapes.value_ranges import beyond

Pair = tuple[exp.Expr, exp.Expr]


@dataclass(frozen=True)
class _Rows:
    """What each row of the final query tells of one aggregate.

    Attributes:
        may, must: whether it may and must qualify.
        least, most: ends of the value; over a release row where `spread`, else over the final query's row.
        spread: whether a row of the final query stands for several released rows.
        by_value: whether the ends are over the final query's row though it stands for several.
    """

    may: exp.Expr
    must: exp.Expr
    least: exp.Expr
    most: exp.Expr
    spread: bool
    by_value: bool = False


def bounds(aggregate: Aggregate, where: exp.Expr | None, steps: Steps, number: int) -> Pair | None:
    """Hard lower and upper bounds of an aggregate, None where there are none.

    Args:
        aggregate: the aggregate.
        where: conditions of the query that are still to be satisfied, None if there are none.
        steps: provides what is possible and certain.
        number: number of the grouping set.
    """
    if any(isinstance(part, ItemPart) for part in steps.model.parts):
        return fewest_of_lists(aggregate, where, steps)
    found = _from_rows(aggregate, where, steps, number)
    if found is None or steps.membership is None:
        return found
    for part in steps.membership.mixed():
        endless = "select 1 from {release} where {cell} is not null and {cell}.lower is null"
        cell, release = exp.Column(this=part.key.this), plainly(steps.model.release)
        low, high = (
            tree(f"case when not exists ({endless}) then {{x}} end", release=release, cell=cell, x=end) for end in found
        )
        found = low, high
    return found


def _from_rows(aggregate: Aggregate, where: exp.Expr | None, steps: Steps, number: int) -> Pair | None:
    """Hard bounds from what each released row may and must be."""
    missing = steps.model.missing if aggregate.kind == "count" else None
    if not steps.model.bounded or not (steps.model.complete or missing is not None):
        return None
    rows = _read(aggregate, where, steps, number)
    if rows is None:
        return None
    if missing is not None:
        low, high = _sums(aggregate, rows, steps, lambda amount: amount)
        if steps.homes.others:  # a row that was left out may find several rows of another table
            return low, exp.null()
        return low, tree("{high} + {missing}", high=high, missing=missing)
    if aggregate.kind in ("sum", "avg") and (rows.may != rows.must or rows.least != rows.most):
        rows = _endless(rows) if _floating(aggregate.value, steps) else rows
    if aggregate.kind in ("avg", "min", "max"):
        return _extremes(aggregate.kind, rows, steps)
    return _sums(aggregate, rows, steps, lambda amount: amount)


def sample_interval(aggregate: Aggregate, where: exp.Expr | None, steps: Steps, number: int) -> Pair | None:
    """Ends of a 95% interval of COUNT, SUM or AVG over all rows of which a sample was released; None elsewhere.

    Args:
        aggregate: the aggregate.
        where: condition on the rows.
        steps: steps of the rewritten query.
        number: place of the aggregate, for names.
    """
    if not steps.model.bounded or steps.model.rate is None or aggregate.kind not in ("count", "sum", "avg"):
        return None
    rows = _read(aggregate, where, steps, number)
    if rows is None:
        return None
    rate = steps.model.rate if rows.spread and not rows.by_value else steps.column("key", steps.model.rate, "rate")
    if aggregate.kind == "avg":
        return _ratio(rows, rate)
    totals = _sums(aggregate, rows, steps, lambda x: tree("{x} / {rate}", x=x, rate=rate))
    squares = _sums(aggregate, rows, steps, lambda x: tree("(1 - {rate}) * ({x} / {rate}) ** 2", x=x, rate=rate))
    low, high = (
        tree(f"{{total}} {sign} {REACH} * sqrt({{square}})", total=total, square=square)
        for sign, total, square in zip("-+", totals, squares, strict=True)
    )
    return (tree("greatest({low}, 0)", low=low) if aggregate.kind == "count" else low), high


def _ratio(rows: _Rows, rate: exp.Expr) -> Pair | None:
    if rows.spread or rows.may != rows.must or rows.least != rows.most:
        return None
    value = tree("{value}::double", value=rows.least)

    def total(template: str) -> exp.Expr:
        return filtered(tree(f"sum({template})", value=value, rate=rate), rows.may)

    released = total("1 / {rate}")
    mean = tree("({total} / {released})", total=total("{value} / {rate}"), released=released)
    squares = [total(f"(1 - {{rate}}) / {{rate}} ** 2 * {{value}} ** {power}") for power in (2, 1, 0)]
    variance = tree("{a} - 2 * {mean} * {b} + {mean} ** 2 * {c}", a=squares[0], b=squares[1], c=squares[2], mean=mean)
    reach = tree(f"{REACH} * sqrt(greatest({{variance}}, 0)) / {{released}}", variance=variance, released=released)
    return tree("{mean} - {reach}", mean=mean, reach=reach), tree("{mean} + {reach}", mean=mean, reach=reach)


def _read(aggregate: Aggregate, where: exp.Expr | None, steps: Steps, number: int) -> _Rows | None:
    condition = both(where, aggregate.condition)
    value = aggregate.value
    by_value = value is not None and steps.homes.of(value) == BY_VALUE
    if value is not None and not by_value:
        if steps.homes.of(value) is None:
            return None
        condition = both(condition, present(value, steps.homes.of))
    touched = _touched(steps, condition, value)
    if any(part.signed or part.counted for part in touched):
        return None
    mine = steps.homes.columns(value) if value is not None else set()
    if any(mine & set(part.columns) and not part.boundable(value) for part in touched if value is not None):
        return None
    if steps.spread and steps.membership is None:
        return None
    may, must = possible(condition, steps), certain(condition, steps)
    if not steps.spread:
        least, most = (_ONE if value is None else end_of(steps, value, where, aggregate, end) for end in (True, False))
        return _Rows(may, must, least, most, False)
    first, whole = own(f"first_{number}"), own(f"whole_{number}")
    may, must = every([first, may]), every([first, whole, must])
    if value is None:
        return _Rows(may, must, _ONE, _ONE, True)
    if by_value:
        return _of_values(value, touched, (may, must), steps, number)
    home = steps.homes.of(value)
    assert home is not None  # noqa: S101 -- asked above
    condition_on_it = given(steps, home, where, aggregate)
    least, most = (steps.end(end, value, home, condition_on_it) for end in (True, False))
    return _Rows(may, must, least, most, True)


def _of_values(value: exp.Expr, touched: Sequence[Part], qualifies: Pair, steps: Steps, number: int) -> _Rows | None:
    """The same of a value that the final query sees value by value."""
    membership, bare = steps.membership, steps.bare(value)
    assert membership is not None and bare is not None  # noqa: S101 -- `_read` made sure
    least, most, there = membership.range(number, bare)
    for part in touched:
        if steps.homes.columns(value) & set(part.columns) and isinstance(part, IntervalPart):
            if linear(value) is None:
                return None
            if is_moment(part.kind):
                return None
            # values that other boxes do not cover are in no list
            least, most = (
                tree(
                    "case when {cell}.lower is null and {cell} is not null "
                    f"then {beyond(part.kind, least=end is least)} else {{end}} end",
                    cell=own(f"cell_{part.name}"),
                    end=end,
                )
                for end in (least, most)
            )
    may, must = qualifies
    return _Rows(
        every([may, tree("{x} is not null", x=least)]), every([must, there]), least, most, spread=True, by_value=True
    )


def value_ends(
    aggregate: Aggregate, where: exp.Expr | None, steps: Steps
) -> tuple[exp.Expr, exp.Expr, exp.Expr, exp.Expr] | None:
    """Whether each row of the final query may and must qualify, and the ends of its value; None where not known.

    Rows that stand for several released ones are told apart by the ends of their values.

    Args:
        aggregate: The aggregate whose value is bounded.
        where: The query's WHERE; None without one.
        steps: Steps of the rewritten query, which get the columns that the ends are read from.
    """
    if not steps.model.bounded or not steps.model.complete or steps.model.missing is not None:
        return None
    rows = _read(aggregate, where, steps, 0)
    if rows is None:
        return None
    if not rows.spread or rows.by_value:
        return rows.may, rows.must, rows.least, rows.most
    least, most = (steps.column("key", end, label) for end, label in ((rows.least, "least"), (rows.most, "most")))
    return rows.may, rows.must, least, most


def _touched(steps: Steps, condition: exp.Expr, value: exp.Expr | None) -> list[Part]:
    """Parts that have a say in an aggregate."""
    columns = steps.homes.by_value | steps.homes.columns(condition)
    columns |= steps.homes.columns(value) if value is not None else set()
    return [part for part in steps.model.parts if part.counted or columns & set(part.columns)]


def _added(amount: exp.Expr, rows: _Rows, steps: Steps, of: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """What a row of the final query adds to the total of `of` an amount."""
    whole = amount if amount == _ONE else tree("coalesce({amount}, 0)", amount=amount)
    if rows.by_value:
        return tree("{rows} * {x}", rows=steps.column("sum", literal(1)), x=of(whole))
    return steps.column("sum", of(whole)) if rows.spread else of(amount)


def _sums(aggregate: Aggregate, rows: _Rows, steps: Steps, of: Callable[[exp.Expr], exp.Expr]) -> Pair:
    """Least and most of a COUNT or SUM of `of` what each row adds."""

    def added(amount: exp.Expr) -> exp.Expr:
        return _added(amount, rows, steps, of)

    if aggregate.value is None:
        one = added(_ONE)
        counted = "count_if({test})" if one == _ONE else "sum(case when {test} then {one} else 0 end)"
        low, high = (tree(f"coalesce({counted}, 0)", test=test, one=one) for test in (rows.must, rows.may))
        return low, high
    low, high = (
        tree(
            "sum(case when {must} then {end} when {may} then {toward_none} end)",
            must=rows.must,
            end=added(end),
            may=rows.may,
            toward_none=added(tree(f"{pick}({{end}}, 0)", end=end)),
        )
        for end, pick in ((rows.least, "least"), (rows.most, "greatest"))
    )
    return low, high


def _endless(rows: _Rows) -> _Rows:
    """Where a row may be infinite a total has no end: inf beside -inf is NaN, which comes after inf."""
    least = tree("case when not isfinite({x}) then '-infinity'::double else {x} end", x=rows.least)
    return replace(rows, least=least, most=tree("{most} + 0 * {least}", most=rows.most, least=rows.least))


def _floating(value: exp.Expr | None, steps: Steps) -> bool:
    """Whether a value may be infinite: it is made of DOUBLEs or FLOATs, or of what the release does not tell."""
    assert value is not None  # noqa: S101 -- of a SUM or an AVG
    kinds = [steps.model.release.types.get(fold(column.name), "DOUBLE") for column in all_of(value, exp.Column)]
    kinds += [cast.to.sql("duckdb") for cast in all_of(value, exp.Cast)]
    return any(name in kind.upper() for kind in kinds for name in ("DOUBLE", "FLOAT", "REAL"))


def _extremes(kind: str, rows: _Rows, steps: Steps) -> Pair:
    """Bounds of AVG, MIN and MAX from the ends of each row that may or must qualify."""
    least, most = rows.least, rows.most
    if rows.spread and not rows.by_value:
        # over the released rows of one cell, AVG and MIN want the least of the lower ends, MAX the most
        picks = ("max" if kind == "max" else "min", "min" if kind == "min" else "max")
        least, most = (
            steps.column(pick, end, f"{label}_value")
            for pick, end, label in zip(picks, (least, most), ("least", "most"), strict=True)
        )
    if kind == "avg":
        low, high = (
            _mean(rows, steps, end, single, pick)
            for end, single, pick in ((rows.least, least, "least"), (rows.most, most, "greatest"))
        )
        return low, high
    lows = {"min": ("min", rows.may), "max": ("max", rows.must)}
    highs = {"min": ("min", rows.must), "max": ("max", rows.may)}
    low, high = (
        tree(f"{pick}(case when {{test}} then {{end}} end)", test=test, end=end)
        for end, (pick, test) in ((least, lows[kind]), (most, highs[kind]))
    )
    return low, high


def _mean(rows: _Rows, steps: Steps, end: exp.Expr, single: exp.Expr, pick: str) -> exp.Expr:
    """The least (or greatest) mean of any rows that hold all that must qualify.

    With S and n the sum and number of the must rows, m the least value of the c others that may qualify: a mean of k of
    them is at least (S + k m) / (n + k), which is monotone in k, so it is least at k = 0 or at k = c. Where the least
    sum is not above 0, it over n is another bound; of the two the tighter one holds.
    """
    must = filtered(tree("sum({x})", x=_added(end, rows, steps, lambda x: x)), rows.must)
    others = every([rows.may, tree("not coalesce({must}, false)", must=rows.must)])
    one = _added(_ONE, rows, steps, lambda x: x)
    certain, doubtful = (
        tree(
            "coalesce({n}, 0)",
            n=tree("count_if({test})", test=test) if one == _ONE else filtered(tree("sum({one})", one=one), test),
        )
        for test in (rows.must, others)
    )
    whole = tree(
        "sum(case when {must} then {end} when {may} then {toward_none} end)",
        must=rows.must,
        end=_added(end, rows, steps, lambda x: x),
        may=rows.may,
        toward_none=_added(tree(f"{pick}({{end}}, 0)", end=end), rows, steps, lambda x: x),
    )
    other, sign = ("greatest", "<=") if pick == "least" else ("least", ">=")
    furthest = filtered(tree(f"{'min' if pick == 'least' else 'max'}({{x}})", x=single), others)
    return tree(
        f"{other}({pick}({{must}} / nullif({{certain}}, 0), "
        "(coalesce({must}, 0) + {doubtful} * {furthest}) / nullif({certain} + {doubtful}, 0)), "
        f"case when {{whole}} {sign} 0 then {{whole}} / nullif({{certain}}, 0) end)",
        whole=whole,
        must=must,
        certain=certain,
        doubtful=doubtful,
        furthest=furthest,
    )


_ONE = literal(1)
