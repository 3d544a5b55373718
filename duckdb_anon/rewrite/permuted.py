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
from duckdb_anon.rewrite.aggregates import Aggregate
from duckdb_anon.rewrite.bounds import Texts
from duckdb_anon.rewrite.early import Early
from duckdb_anon.rewrite.groups import Groups
from duckdb_anon.rewrite.lists import BagPart, ColumnPart
from duckdb_anon.rewrite.logic import EXACT, Term, amount, event, presence, product
from duckdb_anon.rewrite.parse import to_sql
from duckdb_anon.rewrite.parts import ROW, Part, Request, aliased, answer, quoted
from duckdb_anon.rewrite.units import Units

MOST_PRODUCTS = 16
"""A total that takes more products has no interval: each pair of them is a sum."""
MOST_SETS = 8
"""A query of more grouping sets has no intervals: each set is a pass over the release."""


@dataclass
class Permuted:
    """Collects the variances of one grouping set and writes the CTEs that compute them, one row a group.

    Attributes:
        early: the query's early half, for SQL over a release row.
        units: the same columns with none of them late.
        bucket: SQL of the bucket over a release row.
        keys: the keys of the grouping set, each with the one unit it speaks of.
        where: the query's conditions.
        number: number of the grouping set.
    """

    early: Early
    units: Units
    bucket: str
    keys: tuple[tuple[exp.Expr, str], ...]
    where: exp.Expr
    number: int
    sums: dict[str, dict[str, Request]] = field(default_factory=dict)
    of_rows: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Name the CTEs."""
        self._rows_name, self._name = f"_bucket_rows{self.number}", f"_variance{self.number}"

    @property
    def parts(self) -> list[Part]:
        """The parts that were permuted."""
        return [part for part in self.early.model.parts if isinstance(part, (BagPart, ColumnPart))]

    def variance(self, aggregate: Aggregate) -> str | None:
        """Variance of an aggregate's estimate as SQL over the final query; None where it is 0 or not known."""
        totals = self._totals(aggregate)
        if totals is None or self._is_alone(totals):
            return None
        total = totals[0]
        of_total = self._want(self._covariance(total, total))
        if aggregate.kind != "avg":
            return of_total
        there = totals[1]
        between, of_count = (self._want(self._covariance(one, there)) for one in (total, there))
        amounts, rows = (f"nullif({self._want(self._expected(one))}, 0)" for one in (total, there))
        ratio = f"({amounts} / {rows})"
        return f"({of_total} - 2 * {ratio} * {between} + {ratio} ** 2 * {of_count}) / {rows} ** 2"

    def certain(self, aggregate: Aggregate) -> Texts | None:
        """Hard bounds that the counts of each bucket give; None where rows tell as much one by one.

        Of the n rows of a bucket, c1 satisfy one condition and c2 another: both hold for c1 + c2 - n at least and the
        smaller of the two at most (Frechet). What speaks of one column only is known exactly.
        """
        totals = self._totals(aggregate) if self.early.model.bounded and self.early.model.complete else None
        if totals is None:
            return None
        if self._is_alone(totals):
            known = [self._want(self._of_one_column(total)) for total in totals]
            answers = {"count": f"coalesce({known[0]}, 0)", "sum": known[0]}
            answer = answers.get(aggregate.kind, f"{known[0]} / nullif({known[-1]}, 0)")
            return answer, answer
        if aggregate.kind != "count" or len(totals[0]) > 1:
            return None
        term = totals[0][0]
        counts = [self._of_rows(self._row_factor(term))]
        counts += [self._of_part(part, term) for part in self.parts if self._active(part, term)]
        fewest = f"greatest({' + '.join(counts)} - {len(counts) - 1} * {self._rows_name}.n, 0)"
        low, high = (f"coalesce({self._want(text)}, 0)" for text in (fewest, f"least({', '.join(counts)})"))
        return low, high

    def attach(self, select: exp.Select) -> None:
        """Add the CTEs to the rewritten query, and the join that gives each group its variance."""
        if not self.wanted:
            return
        for name, query in self._ctes():
            select.with_(exp.to_identifier(name, quoted=True), as_=query, append=True, copy=False)
        if self.keys:
            on = [
                f"{to_sql(key, pretty=False)} is not distinct from {self._name}._k{i}"
                for i, (key, _) in enumerate(self.keys)
            ]
            select.join(self._name, on=" and ".join(on), join_type="left", dialect="duckdb", copy=False)

    def _totals(self, aggregate: Aggregate) -> list[list[Term]] | None:
        """The total an aggregate adds up, and for a mean the number of rows that have a value, as products.

        None for other aggregates, for expressions that cannot be taken apart, and where cells are generalized.
        """
        condition = exp.and_(self.where.copy(), aggregate.condition.copy())
        pieces = [condition] + ([aggregate.value] if aggregate.value is not None else [])
        if aggregate.kind not in ("count", "sum", "avg") or any(list(self.units.mixed(piece)) for piece in pieces):
            return None
        try:
            found = [event(condition, self.units.of)]
            if aggregate.value is not None:
                rows = found.pop()
                found.append(product(rows, amount(aggregate.value, self.units.of)))
                if aggregate.kind == "avg":
                    found.append(product(rows, presence(aggregate.value, self.units.of)))
        except RewriteError:  # too many products
            return None
        touched = self._touched(found)
        known = {EXACT, *(part.name for part in self.parts if self._listed(part, touched))}
        return found if touched <= known and max(map(len, found)) <= MOST_PRODUCTS else None

    def _touched(self, totals: list[list[Term]]) -> set[str]:
        touched = {unit for terms in totals for term in terms for unit in {*term.conditions, *term.values}}
        return touched | {unit for _, unit in self.keys}

    def _is_alone(self, totals: list[list[Term]]) -> bool:
        """Whether totals speak of one column, which is permuted against nothing."""
        return len(self._touched(totals)) < 2

    def _listed(self, part: Part, touched: set[str]) -> bool:
        """Whether the cells are values; inside generalized cells the distribution is not known."""
        return part.name not in touched or not isinstance(part, ColumnPart) or not part.inner

    def _covariance(self, one: list[Term], other: list[Term]) -> str:
        if one is not other:
            return " + ".join(self._pair(a, b) for a in one for b in other)
        twice = [f"2 * {self._pair(a, b)}" for a, b in combinations(one, 2)]
        return " + ".join([self._pair(a, a) for a in one] + twice)

    def _pair(self, a: Term, b: Term) -> str:
        """Covariance of two products over one bucket and group."""
        n = f"{self._rows_name}.n"
        first, second = self._row_factor(a), self._row_factor(b)
        left, right = self._of_rows(first), self._of_rows(second)
        same = self._of_rows(" * ".join(one for one in (first, second) if one != "1") or "1")
        squares, products, means = [same], [f"({left} * {right} - {same})"], [left, right]
        for part in self.parts:
            if not self._active(part, a) and not self._active(part, b):
                continue
            mine, yours, both = (self._of_part(part, *terms) for terms in ((a,), (b,), (a, b)))
            squares.append(f"({both} / {n})")
            products.append(f"(({mine} * {yours} - {both}) / ({n} * greatest({n} - 1, 1)))")
            means.append(f"({mine} * {yours} / ({n} * {n}))")
        sign = "" if a.sign == b.sign else "-1 * "
        return f"{sign}({' * '.join(squares)} + {' * '.join(products)} - {' * '.join(means)})"

    def _expected(self, terms: list[Term]) -> str:
        pieces = []
        for term in terms:
            shares = [
                f"({self._of_part(part, term)} / {self._rows_name}.n)"
                for part in self.parts
                if self._active(part, term)
            ]
            pieces.append(" * ".join([str(term.sign), self._of_rows(self._row_factor(term)), *shares]))
        return " + ".join(pieces)

    def _of_one_column(self, terms: list[Term]) -> str:
        """A total over products that all speak of the same column."""
        pieces = []
        for term in terms:
            own = [self._of_part(part, term) for part in self.parts if self._active(part, term)]
            pieces.append(f"{term.sign} * {(own or [self._of_rows(self._row_factor(term))])[0]}")
        return " + ".join(pieces)

    def _active(self, part: Part, term: Term) -> bool:
        keyed = any(unit == part.name for _, unit in self.keys)
        return keyed or part.name in term.conditions or part.name in term.values

    def _row_factor(self, term: Term) -> str:
        factor = self.early.exact(term)
        return f"({factor})::double" if factor is not None else "1"

    def _of_rows(self, text: str) -> str:
        """Sum over the rows of a bucket and group."""
        return f"{self._rows_name}.{self.of_rows.setdefault(text, f'a{len(self.of_rows) + 1}')}"

    def _of_part(self, part: Part, *terms: Term) -> str:
        """Sum over a part's cells in a bucket and group of the product of what the terms make of a cell."""
        found = [term.conditions[part.name] for term in terms if part.name in term.conditions]
        conditions = {to_sql(one, pretty=False): one for one in found}.values()
        values = [exp.cast(exp.paren(t.values[part.name].copy()), "DOUBLE") for t in terms if part.name in t.values]
        condition = exp.and_(*[one.copy() for one in conditions]) if conditions else None
        value = values[0] if len(values) == 1 else exp.Mul(this=values[0], expression=values[1]) if values else None
        request = Request("mean", self.early.bare(condition), self.early.bare(value))
        asked = self.sums.setdefault(part.name, {})
        number = list(asked).index(request.text) + 1 if request.text in asked else len(asked) + 1
        asked.setdefault(request.text, request)
        return f"{self._sums_name(part.name)}.s{number}"

    def _sums_name(self, part: str) -> str:
        return quoted(f"{part}_sums{self.number}")

    def _want(self, text: str) -> str:
        """A sum over buckets, as SQL over the final query."""
        name = self.wanted.setdefault(text, f"v{len(self.wanted) + 1}")
        return f"any_value({self._name}.{name})" if self.keys else f"(select {name} from {self._name})"

    def _ctes(self) -> list[tuple[str, exp.Expr]]:
        used = [part for part in self.parts if part.name in self.sums]
        made: list[tuple[str, exp.Expr]] = [(self._rows_name, self._rows())]
        made += [(f"{part.name}_sums{self.number}", self._cells(part)) for part in used]
        places = {part.name: self._sums_name(part.name) for part in used} | {EXACT: self._rows_name}
        chosen = [f"{places[unit]}._k{i}" for i, (_, unit) in enumerate(self.keys)]
        totals = [f"sum({text}) as {name}" for text, name in self.wanted.items()]
        joined = exp.select(*chosen, *totals, dialect="duckdb").from_(self._rows_name)
        for part in used:
            name = self._sums_name(part.name)
            on = f"{self._rows_name}._cell is not distinct from {name}._cell"
            joined = joined.join(name, on=on, dialect="duckdb")
        if chosen:
            joined = joined.group_by(*chosen, dialect="duckdb")
        return [*made, (self._name, joined)]

    def _rows(self) -> exp.Select:
        """SELECT bucket, keys of the rows themselves, size of the bucket, sums over the rows."""
        keys = [(i, self.early.text(key)) for i, (key, unit) in enumerate(self.keys) if unit == EXACT]
        size = f"sum(count(*)) over (partition by {self.bucket})::double as n"
        sums = [f"sum({text})::double as {name}" for text, name in self.of_rows.items()]
        chosen = exp.select(f"{self.bucket} as _cell", *(f"{text} as _k{i}" for i, text in keys), size, *sums,
                            dialect="duckdb")  # fmt: skip
        return chosen.from_(aliased(self.early.model.release, ROW)).group_by(
            self.bucket, *(text for _, text in keys), dialect="duckdb"
        )

    def _cells(self, part: Part) -> exp.Select:
        """SELECT bucket, keys that the part holds, sums over its cells."""
        requests = list(self.sums[part.name].values())
        keys = [(i, self.early.bare(key)) for i, (key, unit) in enumerate(self.keys) if unit == part.name]
        asked = [one for request in requests for one in (request.condition, request.value)] + [key for _, key in keys]
        columns = {column.name for one in asked if one is not None for column in one.find_all(exp.Column)}
        texts = [(i, to_sql(key, pretty=False)) for i, key in keys if key is not None]
        sums = [f"({to_sql(answer(r, counted=True), pretty=False)})::double as s{i}" for i, r in enumerate(requests, 1)]
        chosen = exp.select("_cell", *(f"{text} as _k{i}" for i, text in texts), *sums, dialect="duckdb")
        source = part.values([column for column in part.columns if column in columns]).subquery("_v")
        return chosen.from_(source).group_by("_cell", *(text for _, text in texts), dialect="duckdb")


def permuted(select: exp.Select, early: Early, groups: Groups) -> tuple[Permuted, ...]:
    """Read what a query needs for intervals, one for each grouping set.

    Args:
        select: the bound SELECT, its WHERE as the analyst wrote it.
        early: its early half.
        groups: what it groups by.

    Returns:
        Nothing where permutation is not all that stands between the tables, or a key speaks of several columns.
    """
    model = early.model
    buckets = {part.key for part in model.parts if isinstance(part, (BagPart, ColumnPart))}
    if (
        not model.bucket
        or buckets != {model.bucket}
        or model.weight
        or early.units.others
        or len(groups.sets) > MOST_SETS
    ):
        return ()
    units = Units(early.units.alias, model, ())
    homes = {to_sql(key, pretty=False): units.of(key) for key in groups.keys}
    where = select.args.get("where")
    condition = where.this.copy() if where else exp.true()
    found = []
    for number, keys in enumerate(groups.sets):
        pairs = [(key.copy(), homes[to_sql(key, pretty=False)]) for key in keys]
        placed = tuple((key, home) for key, home in pairs if home is not None)
        if len(placed) < len(pairs):
            return ()
        found.append(Permuted(early, units, model.bucket, placed, condition, number))
    return tuple(found)
