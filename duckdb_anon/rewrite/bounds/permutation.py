"""95% intervals where columns were permuted inside buckets (Anatomy, slicing, merging).

Within a bucket of n rows every assignment of a column's n cells to the rows is equally likely, independently of the
other columns. A total is a sum over rows i of products a_i * b1_p1(i) * b2_p2(i) ... of what the row itself and
the cell it got of each permuted column add. Two rows never share a cell, so with M the mean of a column's
squares and C = (n * mean^2 - M) / (n - 1) the mean of its products over two different cells,

    variance = sum a^2 * M1 * M2 ... + (sum of a_i * a_j over i <> j) * C1 * C2 ... - (expectation)^2.

For one permuted column this is sum (a - mean)^2 * sum (b - mean)^2 / (n - 1) (Hoeffding 1951, theorem 2), for
counts the variance of the hypergeometric distribution. Sums of several products take all pairs of them; a
mean is the ratio of two totals (delta method). Buckets are independent and add up.

As the estimate does, the interval takes the columns as independent inside a bucket. What the release no longer
shows it cannot count in: an association that is left inside buckets, or merging's fake rows.
Cost: one pass over the rows and one over the buckets' cells, each grouped by bucket and key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.bounds.hard_bounds import Pair
from duckdb_anon.rewrite.estimate.aggregates import Aggregate
from duckdb_anon.rewrite.estimate.expectation import EXACT, Term, amount, event, presence, product
from duckdb_anon.rewrite.estimate.homes import Homes
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import Step, append_step
from duckdb_anon.rewrite.query.grouping_sets import QueryGroups
from duckdb_anon.rewrite.query.template import (
    added,
    copied,
    every,
    multiplied,
    name,
    number,
    own,
    select,
    taken,
    tree,
    truth,
)
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.listed import BagPart
from duckdb_anon.rewrite.shapes.parts import ROW, Part, Request, aliased, all_same, answer, labelled
from duckdb_anon.rewrite.shapes.slices import SlicePart

MOST_PRODUCTS = 16
"""A total that takes more products has no interval: each pair of them is a sum."""
MOST_SETS = 8
"""A query of more grouping sets has no intervals: each set is a pass over the release."""


@dataclass
class Permuted:
    """Collects the variances of one grouping set and writes the CTEs that compute them, one row a group.

    Attributes:
        steps: the query's named steps, for SQL over a release row.
        homes: the same columns with none of them by value.
        bucket: the bucket, over a row of the release.
        keys: the keys of the grouping set, each with its home.
        where: the query's conditions.
        number: number of the grouping set.
    """

    steps: Steps
    homes: Homes
    bucket: exp.Expr
    keys: tuple[tuple[exp.Expr, str], ...]
    where: exp.Expr
    number: int
    sums: dict[str, dict[Request, str]] = field(default_factory=dict)
    of_rows: dict[exp.Expr, str] = field(default_factory=dict)
    wanted: dict[exp.Expr, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Name the CTEs."""
        self._rows_name, self._name = name(f"bucket_rows_{self.number}"), name(f"variance_{self.number}")

    @property
    def parts(self) -> list[Part]:
        """The parts that were permuted."""
        return [part for part in self.steps.model.parts if isinstance(part, (BagPart, SlicePart))]

    def variance(self, aggregate: Aggregate) -> exp.Expr | None:
        """Variance of an aggregate's estimate, over the final query; None where it is 0 or not known."""
        totals = self._totals(aggregate)
        if totals is None or self._is_alone(totals):
            return None
        total = totals[0]
        of_total = self._want(self._covariance(total, total))
        if aggregate.kind != "avg":
            return of_total
        there = totals[1]
        between, of_count = (self._want(self._covariance(one, there)) for one in (total, there))
        amounts, rows = (tree("nullif({x}, 0)", x=self._want(self._expected(one))) for one in (total, there))
        return tree(
            "({of_total} - 2 * {ratio} * {between} + {ratio} ** 2 * {of_count}) / {rows} ** 2",
            of_total=of_total,
            ratio=tree("({amounts} / {rows})", amounts=amounts, rows=rows),
            between=between,
            of_count=of_count,
            rows=rows,
        )

    def certain(self, aggregate: Aggregate) -> Pair | None:
        """Hard bounds that the counts of each bucket give; None where rows tell as much one by one.

        Of the n rows of a bucket, c1 satisfy one condition and c2 another: both hold for c1 + c2 - n at least and the
        smaller of the two at most (Frechet). What speaks of one column only is known exactly.
        """
        totals = self._totals(aggregate) if self.steps.model.bounded and self.steps.model.complete else None
        if totals is None:
            return None
        if self._is_alone(totals):
            known = [self._want(self._of_one_column(total)) for total in totals]
            answers = {"count": tree("coalesce({x}, 0)", x=known[0]), "sum": known[0]}
            answer = answers.get(aggregate.kind)
            if answer is None:
                answer = tree("{x} / nullif({n}, 0)", x=known[0], n=known[-1])
            return answer, answer
        if aggregate.kind != "count" or len(totals[0]) > 1:
            return None
        term = totals[0][0]
        counts = [self._of_rows(self._row_factor(term))]
        counts += [self._of_part(part, term) for part in self.parts if self._active(part, term)]
        fewest = tree(
            "greatest({counts} - {others} * {n}, 0)",
            counts=added([(1, one) for one in counts]),
            others=len(counts) - 1,
            n=self._size,
        )
        most = tree("least({counts})", counts=counts)
        low, high = (tree("coalesce({x}, 0)", x=self._want(one)) for one in (fewest, most))
        return low, high

    def attach(self, query: exp.Select) -> None:
        """Add the CTEs to the rewritten query, and the join that gives each group its variance."""
        if not self.wanted:
            return
        for step, made_of in self._ctes():
            append_step(query, step, made_of)
        if self.keys:
            mine = [tree("{step}.{k}", step=self._name, k=name(f"key_{i}")) for i in range(len(self.keys))]
            on = [(key, own_key) for (key, _), own_key in zip(self.keys, mine, strict=True)]
            query.append("joins", exp.Join(this=exp.Table(this=taken(self._name)), side="LEFT", on=all_same(on)))

    def _totals(self, aggregate: Aggregate) -> list[list[Term]] | None:
        """The total an aggregate adds up, and for a mean the number of rows that have a value, as products.

        None for other aggregates, for expressions that cannot be taken apart, and where cells are generalized.
        """
        condition = every([self.where, aggregate.condition])
        pieces = [condition] + ([aggregate.value] if aggregate.value is not None else [])
        if aggregate.kind not in ("count", "sum", "avg") or any(list(self.homes.mixed(piece)) for piece in pieces):
            return None
        try:
            found = [event(condition, self.homes.of)]
            if aggregate.value is not None:
                rows = found.pop()
                found.append(product(rows, amount(aggregate.value, self.homes.of)))
                if aggregate.kind == "avg":
                    found.append(product(rows, presence(aggregate.value, self.homes.of)))
        except RewriteError:  # too many products
            return None
        touched = self._touched(found)
        known = {EXACT, *(part.name for part in self.parts if self._listed(part, touched))}
        return found if touched <= known and max(map(len, found)) <= MOST_PRODUCTS else None

    def _touched(self, totals: list[list[Term]]) -> set[str]:
        touched = {home for terms in totals for term in terms for home in {*term.conditions, *term.values}}
        return touched | {home for _, home in self.keys}

    def _is_alone(self, totals: list[list[Term]]) -> bool:
        """Whether totals speak of one column, which is permuted against nothing."""
        return len(self._touched(totals)) < 2

    def _listed(self, part: Part, touched: set[str]) -> bool:
        """Whether the cells are values; inside generalized cells the distribution is not known."""
        return part.name not in touched or not isinstance(part, SlicePart) or not part.inner

    def _covariance(self, one: list[Term], other: list[Term]) -> exp.Expr:
        if one is not other:
            return added([(1, self._pair(a, b)) for a in one for b in other])
        twice = [tree("2 * {pair}", pair=self._pair(a, b)) for a, b in combinations(one, 2)]
        return added([(1, pair) for pair in [*(self._pair(a, a) for a in one), *twice]])

    def _pair(self, a: Term, b: Term) -> exp.Expr:
        """Covariance of two products over one bucket and group."""
        n, first, second = self._size, self._row_factor(a), self._row_factor(b)
        left, right = self._of_rows(first), self._of_rows(second)
        same_row = self._of_rows(multiplied([first, second]))
        squares, products = [same_row], [tree("({a} * {b} - {same})", a=left, b=right, same=same_row)]
        means = [left, right]
        for part in self.parts:
            if not self._active(part, a) and not self._active(part, b):
                continue
            mine, yours, both = (self._of_part(part, *terms) for terms in ((a,), (b,), (a, b)))
            sums = {"mine": mine, "yours": yours, "both": both, "n": n}
            squares.append(tree("({both} / {n})", **sums))
            products.append(tree("(({mine} * {yours} - {both}) / ({n} * greatest({n} - 1, 1)))", **sums))
            means.append(tree("({mine} * {yours} / ({n} * {n}))", **sums))
        pair = added([(1, multiplied(squares)), (1, multiplied(products)), (-1, multiplied(means))])
        return pair if a.sign == b.sign else tree("-1 * {pair}", pair=pair)

    def _expected(self, terms: list[Term]) -> exp.Expr:
        pieces = []
        for term in terms:
            shares = [
                tree("({x} / {n})", x=self._of_part(part, term), n=self._size)
                for part in self.parts
                if self._active(part, term)
            ]
            pieces.append((term.sign, multiplied([self._of_rows(self._row_factor(term)), *shares])))
        return added(pieces)

    def _of_one_column(self, terms: list[Term]) -> exp.Expr:
        """A total over products that all speak of the same column."""
        pieces = []
        for term in terms:
            mine = [self._of_part(part, term) for part in self.parts if self._active(part, term)]
            pieces.append((term.sign, (mine or [self._of_rows(self._row_factor(term))])[0]))
        return added(pieces)

    def _active(self, part: Part, term: Term) -> bool:
        keyed = any(home == part.name for _, home in self.keys)
        return keyed or part.name in term.conditions or part.name in term.values

    def _row_factor(self, term: Term) -> exp.Expr:
        factor = self.steps.exact(term)
        return tree("{factor}::double", factor=factor) if factor is not None else number(1)

    @property
    def _size(self) -> exp.Expr:
        """How many rows the bucket has."""
        return tree("{rows}._n", rows=self._rows_name)

    def _of_rows(self, factor: exp.Expr) -> exp.Expr:
        """Sum over the rows of a bucket and group."""
        label = self.of_rows.setdefault(factor, f"rows_{len(self.of_rows) + 1}")
        return tree("{rows}.{label}", rows=self._rows_name, label=name(label))

    def _of_part(self, part: Part, *terms: Term) -> exp.Expr:
        """Sum over a part's cells in a bucket and group of the product of what the terms make of a cell."""
        conditions = dict.fromkeys(term.conditions[part.name] for term in terms if part.name in term.conditions)
        values = [tree("{x}::double", x=t.values[part.name]) for t in terms if part.name in t.values]
        condition = every(list(conditions)) if conditions else None
        value = multiplied(values) if values else None
        request = Request("mean", self.steps.bare(condition), self.steps.bare(value))
        asked = self.sums.setdefault(part.name, {})
        label = asked.setdefault(request, f"cells_{len(asked) + 1}")
        return tree("{sums}.{label}", sums=self._sums_name(part.name), label=name(label))

    def _sums_name(self, part: str) -> exp.Identifier:
        return name(f"{part}_sums_{self.number}")

    def _want(self, total: exp.Expr) -> exp.Expr:
        """A sum over buckets, over the final query."""
        label = name(self.wanted.setdefault(total, f"total_{len(self.wanted) + 1}"))
        template = "any_value({step}.{label})" if self.keys else "(select {label} from {step})"
        return tree(template, step=self._name, label=label)

    def _ctes(self) -> list[Step]:
        used = [part for part in self.parts if part.name in self.sums]
        made: list[Step] = [(self._rows_name, self._rows())]
        made += [(self._sums_name(part.name), self._cells(part)) for part in used]
        places = {part.name: self._sums_name(part.name) for part in used} | {EXACT: self._rows_name}
        keys = [tree("{step}.{k}", step=places[home], k=name(f"key_{i}")) for i, (_, home) in enumerate(self.keys)]
        totals = [labelled(tree("sum({x})", x=total), label) for total, label in self.wanted.items()]
        joined = select("select {columns} from {rows}", columns=[*keys, *totals], rows=self._rows_name)
        for part in used:
            sums = self._sums_name(part.name)
            on = tree("{rows}._cell is not distinct from {sums}._cell", rows=self._rows_name, sums=sums)
            joined.append("joins", exp.Join(this=exp.Table(this=sums), on=on))
        if keys:
            joined.set("group", exp.Group(expressions=[copied(key) for key in keys]))
        return [*made, (self._name, joined)]

    def _rows(self) -> exp.Select:
        """SELECT bucket, keys of the rows themselves, size of the bucket, sums over the rows."""
        keys = [(i, self.steps.text(key)) for i, (key, home) in enumerate(self.keys) if home == EXACT]
        sums = [labelled(tree("sum({x})::double", x=factor), label) for factor, label in self.of_rows.items()]
        return select(
            "select {bucket} as _cell, {keys}, sum(count(*)) over (partition by {bucket})::double as _n, {sums} "
            "from {release} group by {grouped}",
            bucket=self.bucket,
            keys=[labelled(copied(key), f"key_{i}") for i, key in keys],
            sums=sums,
            release=aliased(self.steps.model.release, ROW),
            grouped=[self.bucket, *(key for _, key in keys)],
        )

    def _cells(self, part: Part) -> exp.Select:
        """SELECT bucket, keys that the part holds, sums over its cells."""
        requests = self.sums[part.name]
        keys = [(i, self.steps.bare(key)) for i, (key, home) in enumerate(self.keys) if home == part.name]
        known = [(i, key) for i, key in keys if key is not None]
        asked = [one for request in requests for one in (request.condition, request.value)] + [key for _, key in keys]
        columns = {column.name for one in asked if one is not None for column in all_of(one, exp.Column)}
        sums = [
            labelled(tree("{x}::double", x=answer(request, counted=True)), label) for request, label in requests.items()
        ]
        return select(
            "select _cell, {keys}, {sums} from {values} as _value group by {grouped}",
            keys=[labelled(copied(key), f"key_{i}") for i, key in known],
            sums=sums,
            values=part.values([column for column in part.columns if column in columns]),
            grouped=[own("cell"), *(key for _, key in known)],
        )


def permuted(query: exp.Select, steps: Steps, groups: QueryGroups) -> tuple[Permuted, ...]:
    """Read what a query needs for intervals, one for each grouping set.

    Args:
        query: the bound SELECT, its WHERE as the analyst wrote it.
        steps: its named steps.
        groups: what it groups by.

    Returns:
        Nothing where permutation is not all that stands between the tables, or a key speaks of several columns.
    """
    model = steps.model
    buckets = {part.bucket for part in model.parts if isinstance(part, (BagPart, SlicePart))}
    if (
        model.bucket is None
        or buckets != {model.bucket}
        or model.weight
        or steps.homes.others
        or len(groups.sets) > MOST_SETS
    ):
        return ()
    homes = Homes(steps.homes.alias, model, ())
    where = query.args.get("where")
    condition = copied(where.this) if where else truth(True)
    found = []
    for place, keys in enumerate(groups.sets):
        pairs = [(copied(key), homes.of(key)) for key in keys]
        placed = tuple((key, home) for key, home in pairs if home is not None)
        if len(placed) < len(pairs):
            return ()
        found.append(Permuted(steps, homes, model.bucket, placed, condition, place))
    return tuple(found)
