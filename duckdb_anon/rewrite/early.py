"""The early half of a rewritten query: one pass over the release.

    _age_share: cell -> what the query wants to know of it          (one row a distinct cell)
    _rows:      the columns the final query needs, and sums of products of shares

When the final query spells out values of inexact columns, `_rows` is summed over equal cells first and
`_spread` joins the values of each cell, so nothing grows with rows times values. Randomized columns give way
to their true values one after another instead, each step summed over equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.rewrite.logic import EXACT, LATE, Term
from duckdb_anon.rewrite.model import Model
from duckdb_anon.rewrite.parse import to_sql
from duckdb_anon.rewrite.parts import ROW, Part, Request, aliased, parsed, quoted
from duckdb_anon.rewrite.randomized import RandomizedPart
from duckdb_anon.rewrite.units import Units


@dataclass(frozen=True)
class Membership:
    """Keys of each grouping set of the final query, and its conditions on spread values; SQL without table names."""

    sets: tuple[tuple[str, ...], ...]
    late: str


@dataclass
class Early:
    """Collects what the final query needs and writes the CTEs that provide it.

    Attributes:
        units: assignment of expressions to parts; complete before anything is asked for.
        conditions: conditions on exact columns that every row must satisfy.
        membership: what makes a row's values belong to a group, where bounds are asked of spread values.
    """

    units: Units
    conditions: list[exp.Expr] = field(default_factory=list)
    membership: Membership | None = None
    requests: dict[str, dict[str, Request]] = field(default_factory=dict)
    columns: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        """The release's model."""
        return self.units.model

    @property
    def inverted(self) -> list[RandomizedPart]:
        """Those of the spread parts that are inverted column by column instead of joined."""
        return [part for part in self.spread if isinstance(part, RandomizedPart)]

    @property
    def spread(self) -> list[Part]:
        """Parts whose values the final query sees one by one."""
        return [p for p in self.model.parts if self.units.late & set(p.columns)]

    def term(self, term: Term) -> exp.Expr:
        """Provide the early factors of a product; returns what the final query sums."""
        product = self._factors(term)
        pieces = [self.column("sum", product)] if product else []
        if self.spread:
            if not product:
                pieces.append(self.column("sum", "1"))
            pieces.append(f"{quoted(self.units.alias)}._weight")
        late = self._late(term)
        if late is not None:
            pieces.append(late)
        return parsed(" * ".join(pieces) or "1")

    def product(self, term: Term) -> str | None:
        """A product as SQL over a release row; None when some of it is known only to the final query."""
        if LATE in term.conditions or LATE in term.values:
            return None
        return self._factors(term) or "1"

    def _factors(self, term: Term) -> str:
        """The factors of a product that are known early, '' when there are none."""
        factors = []
        if self.model.weight:
            factors.append(self.model.weight)
        exact = self.exact(term)
        if exact is not None:
            factors.append(exact)
        for part in self.model.parts:
            if part in self.spread:
                continue
            condition, value = term.conditions.get(part.name), term.values.get(part.name)
            if condition is not None or value is not None or part.counted:
                request = Request("mean", self.bare(condition), self.bare(value))
                factors.append(self._share(part, request))
        return " * ".join(factors)

    def flag(self, wanted: str, condition: exp.Expr, unit: str) -> exp.Expr:
        """Provide whether a condition on one part is possible or certain."""
        if unit == LATE:
            return exp.paren(condition.copy())
        if unit == EXACT:
            text = f"coalesce({self.text(condition)}, false)"
        else:
            part = next(p for p in self.model.parts if p.name == unit)
            bare = self.bare(condition)
            text = self._share(part, Request("possible" if wanted == "possible" else "certain", bare))
        return parsed(self.column("key", text))

    def extreme(self, least: bool, value: exp.Expr, unit: str, condition: exp.Expr | None) -> exp.Expr:
        """Provide the least or most a value on one part can be, where `condition` on that part holds."""
        if unit == LATE:
            return exp.paren(value.copy())
        # a value of the row itself is both its least and its most
        kind = "key" if unit == EXACT and not self.spread else "min" if least else "max"
        return parsed(self.column(kind, self.end(least, value, unit, condition)))

    def end(self, least: bool, value: exp.Expr, unit: str, condition: exp.Expr | None) -> str:
        """The least or most an early value can be, as SQL over a release row."""
        if unit == EXACT:
            return self.text(value)
        part = next(p for p in self.model.parts if p.name == unit)
        request = Request("least" if least else "most", self.bare(condition), self.bare(value))
        return self._share(part, request)

    def column(self, kind: str, text: str) -> str:
        """Name of a column of `_rows`: a sum, a minimum, a maximum, or a key."""
        name = self.columns.setdefault((kind, text), f"_n{len(self.columns) + 1}")
        return f"{quoted(self.units.alias)}.{name}"

    def ctes(self) -> list[tuple[str, exp.Expr]]:
        """The CTEs in order; the last one stands in for the original."""
        made: list[tuple[str, exp.Expr]] = []
        for part in self.model.parts:
            asked = self.requests.get(part.name)
            if asked:
                made.append((f"{part.name}_share", part.shares(list(asked.values()))))
        if self.inverted:
            self.column("sum", "1")  # how many rows a true value is estimated to have, so that it is not lost
        made.append(("_rows", self._rows()))
        made += self._inversions()
        if self.spread:
            latest = made[-1][0]
            for part in self._joined():
                used = sorted(self.units.late & set(part.columns))
                made.append((f"{part.name}_values", _weighted(part, used)))
            made.append(("_spread", self._spread(latest)))
        if self.membership is not None:
            made.append(("_members", _members(self.membership)))
        return made

    def _joined(self) -> list[Part]:
        return [part for part in self.spread if part not in self.inverted]

    def _inversions(self) -> list[tuple[str, exp.Expr]]:
        """One CTE a randomized column, each reading the one before."""
        made: list[tuple[str, exp.Expr]] = []
        keys = {part.name: f"_cell{i}" for i, part in enumerate(self.spread)}
        exact = [quoted(c) for c in sorted(self.units.late) if c in self.model.exact]
        numbers = [name for (kind, _), name in self.columns.items() if kind != "square"]
        rows = self.columns.get(("sum", "1"), "")
        before = "_rows"
        for part in self.inverted:
            others = exact + [key for name, key in keys.items() if name != part.name]
            made.append((f"{part.name}_inverted", part.inverted(before, keys[part.name], others, numbers, rows)))
            keys[part.name] = quoted(part.columns[0])
            before = made[-1][0]
        return made

    def _rows(self) -> exp.Select:
        summed = bool(self.spread)
        late = sorted(c for c in self.units.late if c in self.model.exact)
        keys = [f"{self.model.exact[c]} as {quoted(c)}" for c in late]
        keys += [f"{part.key} as _cell{i}" for i, part in enumerate(self.spread)]
        functions = {"sum": "sum({})", "square": "sum({})", "min": "min({})", "max": "max({})", "key": "{}"}
        columns = [
            f"{functions[kind].format(text) if summed else text} as {name}"
            for (kind, text), name in self.columns.items()
        ]
        chosen = exp.select(*(keys + columns or ["1 as _n0"]), dialect="duckdb")
        chosen = chosen.from_(aliased(self.model.release, ROW))
        for part in self.model.parts:
            if self.requests.get(part.name):
                share = f"{part.name}_share"
                on = f"{part.key} is not distinct from {quoted(share)}._cell"
                chosen = chosen.join(quoted(share), on=on, join_type="left", dialect="duckdb")
        for condition in self.conditions:
            chosen = chosen.where(self.text(condition), dialect="duckdb")
        if summed:
            chosen.set("group", exp.Group(all=True))
        return chosen

    def _spread(self, latest: str) -> exp.Select:
        weights = []
        chosen = exp.select("_last.*").from_(f"{quoted(latest)} as _last", dialect="duckdb")
        if self.membership is not None:
            numbered = exp.select("*", "row_number() over () as _row", dialect="duckdb").from_(quoted(latest))
            chosen = exp.select("_last.*").from_(numbered.subquery("_last"))
        for i, part in enumerate(self.spread):
            if part in self.inverted:
                continue
            values = quoted(f"{part.name}_values")
            for column in sorted(self.units.late & set(part.columns)):
                chosen = chosen.select(f"{values}.{quoted(column)}", dialect="duckdb")
            weights.append(f"{values}._weight")
            on = f"_last._cell{i} is not distinct from {values}._cell"
            chosen = chosen.join(values, on=on, dialect="duckdb")
        return chosen.select(f"{' * '.join(weights) or '1'} as _weight", dialect="duckdb")

    def exact(self, term: Term) -> str | None:
        """The factor of a product that the row itself tells, as SQL over a release row; None when there is none."""
        condition, value = term.conditions.get(EXACT), term.values.get(EXACT)
        if condition is None and value is None:
            return None
        return _when(
            self.text(condition) if condition is not None else None,
            self.text(value) if value is not None else None,
        )

    def _late(self, term: Term) -> str | None:
        condition, value = term.conditions.get(LATE), term.values.get(LATE)
        if condition is None and value is None:
            return None
        return _when(*(to_sql(e, pretty=False) if e is not None else None for e in (condition, value)))

    def _share(self, part: Part, request: Request) -> str:
        asked = self.requests.setdefault(part.name, {})
        number = list(asked).index(request.text) + 1 if request.text in asked else len(asked) + 1
        asked.setdefault(request.text, request)
        return f"{quoted(part.name + '_share')}.s{number}"

    def text(self, node: exp.Expr) -> str:
        """An expression on exact columns as SQL over a release row."""

        def spelled(one: exp.Expr) -> exp.Expr:
            if isinstance(one, exp.Column) and one.table == self.units.alias:
                return parsed(self.model.exact[one.name.lower()])
            return one

        return to_sql(exp.paren(node.copy()).transform(spelled), pretty=False)

    def bare(self, node: exp.Expr | None) -> exp.Expr | None:
        """An expression on one part, its columns without their table."""

        def stripped(one: exp.Expr) -> exp.Expr:
            if isinstance(one, exp.Column) and one.table == self.units.alias:
                return exp.column(one.name.lower(), quoted=True)
            return one

        return node.copy().transform(stripped) if node is not None else None


def _members(membership: Membership) -> exp.Select:
    """Mark one value of each row and group, and whether all of the row's values belong to the group, for each set."""
    late = membership.late
    marks = []
    for number, keys in enumerate(membership.sets):
        groups = ", ".join(["_row", *keys])
        first = f"row_number() over (partition by {groups} order by ({late}) is true desc)"
        inside = f"count(*) filter (where {late}) over (partition by {groups})"
        marks += [f"{first} = 1 as _first{number}", f"{inside} = count(*) over (partition by _row) as _whole{number}"]
    return exp.select("*", *marks, dialect="duckdb").from_("_spread")


def _weighted(part: Part, used: list[str]) -> exp.Select:
    weight = "_weight" if part.counted else "_weight / sum(_weight) over (partition by _cell) as _weight"
    columns = [quoted(column) for column in used]
    listed = exp.select("_cell", *columns, weight, dialect="duckdb")
    return listed.from_(part.values(used).subquery("_v"))


def _when(condition: str | None, value: str | None) -> str:
    if value is None:
        return f"case when {condition} then 1 else 0 end"
    if condition is None:
        return f"coalesce({value}, 0)"
    return f"coalesce(case when {condition} then {value} end, 0)"
