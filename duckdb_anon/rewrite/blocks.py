"""Blocks of late columns that a query speaks of together, and one step of `squares` over one block.

The groups of a block are what its keys make of the true values of its columns; h is a late factor (conditions and
amounts) inside it. Its weight for a released value y is U(y) = sum over the group's x of h(x) * P^-1[x, y]. Inside a
block of several columns U is written out for every group and combination of values, but for the last column:
there P^-1 = own * I + other * J, U(y) = own * h(y) + other * (sum of h), and what the values outside the group add
is one number a group (Guo, Ying and Wu 2011, section III.B, for P^-1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from duckdb_anon.rewrite.early import Early
from duckdb_anon.rewrite.groups import Groups
from duckdb_anon.rewrite.parse import is_original, to_sql
from duckdb_anon.rewrite.parts import parsed, quoted
from duckdb_anon.rewrite.randomized import RandomizedPart

OTHERS = ""
"""Stands for the columns of other tables among the columns a piece of the query speaks of."""

Factors = tuple[tuple[exp.Expr, ...], tuple[exp.Expr, ...]]
"""The conditions and the amounts of a product that speak of late columns."""


@dataclass(frozen=True)
class Question:
    """What the intervals of one query need to know.

    Attributes:
        early: the query's early half.
        groups: what it groups by.
        select: the bound SELECT as the analyst wrote it, for its FROM clause.
        late: its conditions on late columns.
        factors: late factors by name.
        sums: (column of `_rows`, factor, factor) to the name of the sum of their products over the rows.
        rows: (column of `_rows`, factor) to the name of what one more row would add to that sum.
    """

    early: Early
    groups: Groups
    select: exp.Select
    late: tuple[exp.Expr, ...]
    factors: dict[str, Factors] = field(default_factory=dict)
    sums: dict[tuple[str, str, str], str] = field(default_factory=dict)
    rows: dict[tuple[str, str], str] = field(default_factory=dict)

    def level(self, keys: set[int], chosen: Sequence[exp.Expr]) -> int:
        """The bits of GROUPING(all keys) for those keys (by number) that are not among the chosen ones."""
        texts = {to_sql(key, pretty=False) for key in chosen}
        last = len(self.groups.keys) - 1
        return sum(1 << (last - i) for i in keys if to_sql(self.groups.keys[i], pretty=False) not in texts)

    def totals(self) -> list[str]:
        """The sums, added up over the rows that are left."""
        sums, most = self.sums.values(), [*self.rows.values(), "_noisy"]
        return [f"sum({name}) as {name}" for name in sums] + [f"max({name}) as {name}" for name in most]

    def blocks(self) -> list[Block]:
        """Late columns that some piece of the query speaks of together."""
        units, joins = self.early.units, self.select.args.get("joins") or []
        pieces = [*self.groups.keys, *self.late, *(e for both in self.factors.values() for one in both for e in one)]
        touched = [self._touched(piece) for piece in pieces]
        touched += [self._touched(join.args["on"]) | {OTHERS} for join in joins if join.args.get("on") is not None]
        sets: list[set[str]] = [{column} for column in sorted(units.late)] + [{OTHERS}] * bool(joins)
        for some in touched:
            together = [one for one in sets if one & some]
            sets = [one for one in sets if not one & some] + ([set().union(*together)] if together else [])
        homes = {
            id(piece): next((i for i, one in enumerate(sets) if some & one), 0)
            for piece, some in zip(pieces, touched, strict=False)
        }
        return [Block(self, number, frozenset(one), homes) for number, one in enumerate(sets)]

    def _touched(self, piece: exp.Expr) -> set[str]:
        units = self.early.units
        others = any(column.table in units.others for column in piece.find_all(exp.Column))
        return (units.columns(piece) & units.late) | ({OTHERS} if others else set())


@dataclass(frozen=True)
class Block:
    """Some late columns, and which pieces of the query speak of them.

    Attributes:
        question: the query.
        number: its place among the blocks.
        columns: its columns, `OTHERS` among them where the query's other tables belong to it.
        homes: id of each piece of the query to the number of its block.
    """

    question: Question
    number: int
    columns: frozenset[str]
    homes: Mapping[int, int]

    @cached_property
    def keys(self) -> list[int]:
        """Numbers of the keys that speak of this block."""
        return [i for i, key in enumerate(self.question.groups.keys) if self.homes[id(key)] == self.number]

    @cached_property
    def parts(self) -> list[tuple[str, RandomizedPart]]:
        """Cell and part of each randomized column."""
        found = [(f"_cell{i}", part) for i, part in enumerate(self.question.early.spread)]
        return [(c, p) for c, p in found if isinstance(p, RandomizedPart) and p.columns[0] in self.columns]

    @cached_property
    def exact(self) -> list[str]:
        """Columns that were not randomized, quoted."""
        return [quoted(column) for column in sorted(self.columns) if column in self.question.early.model.exact]

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Columns of `_rows` that tell released values apart, and names of the true values; randomized ones last."""
        return [(c, c) for c in self.exact] + [(cell, quoted(part.columns[0])) for cell, part in self.parts]

    @cached_property
    def levels(self) -> dict[int, list[int]]:
        """Bits of GROUPING to the numbers of the keys grouped by, over the query's grouping sets."""
        last, found = len(self.question.groups.keys) - 1, {}
        for one in self.question.groups.sets:
            level = self.question.level(set(self.keys), one)
            found[level] = [i for i in self.keys if not level >> (last - i) & 1]
        return found

    @cached_property
    def factors(self) -> dict[str, str]:
        """Each late factor by name, to the column that holds its h."""
        texts = {name: self._factor(*both) for name, both in self.question.factors.items()}
        numbers = {text: f"_h{i}" for i, text in enumerate(dict.fromkeys(texts.values()))}
        return {name: numbers[text] for name, text in texts.items()}

    def ctes(self) -> Iterator[tuple[str, str]]:
        """Groups of the block with h, then U over released values, but for the last column."""
        name, sums = f"_block{self.number}", list(dict.fromkeys(self.factors.values()))
        labels = ["_l", *(f"_k{i}" for i in self.keys)]
        yield name, " union all ".join(self._members(level, used) for level, used in self.levels.items())
        values = [quoted(part.columns[0]) for _, part in self.parts]
        for step, (_, part) in enumerate(self.parts[:-1]):
            others = [*labels, *self.exact, *(v for v in values if v != values[step])]
            text = to_sql(part.inverted(name, values[step], others, sums), pretty=False)
            name = f"_block{self.number}_{step}"
            yield name, text
        over = ", ".join([*labels, *self.exact, *values[:-1]])
        wholes = ", ".join(f"sum({h}) over (partition by {over}) as {h}_all" for h in sums)
        channel = self.parts[-1][1].channel() if self.parts else "select 1 as own, 0 as other"
        weights = {h: f"own * {h} + other * {h}_all" for h in sums}
        group = f"over (partition by {', '.join(labels)})"
        peaks = [f"max(({weight}) ** 2) {group} as {h}_peak" for h, weight in weights.items()]
        changes = ", ".join(f"abs({weight} - {h}) > 1e-9" for h, weight in weights.items())
        peaks.append(f"max(greatest({changes})::integer) {group} as noisy")
        every = f"select *, {wholes} from {name} cross join ({channel}) as _channel"
        yield f"_block{self.number}_groups", f"select *, {', '.join(peaks)} from ({every}) as _every"

    def step(self, before: str, kept: Sequence[str], allowed: str) -> str:
        """SELECT the sums over this block's groups instead of its released values.

        Args:
            before: name of the CTE so far: released values of this block and of those to come, groups of others.
            kept: its columns that stay.
            allowed: WHERE clause that keeps the grouping sets that are asked for.
        """
        groups, keys = f"_block{self.number}_groups", [f"_k{i}" for i in self.keys]
        shown = ", ".join([*(f"_s.{c}" for c in kept), *(f"_b.{k}" for k in keys), "_s._level + _b._l as _level"])
        near = f"select {shown}, {self._weighted(self._near)} from {before} as _s join {groups} as _b on "
        text = near + _equal(self.cells)
        if self.parts:
            fixed = self.cells[:-1]
            listed = ", ".join([*kept, *(cell for cell, _ in fixed), "_level", *self.question.totals()])
            wholes = [f"{h}{end}" for h in dict.fromkeys(self.factors.values()) for end in ("_all", "_peak")]
            distinct = ", ".join(["_l", "other", "noisy", *keys, *(value for _, value in fixed), *wholes])
            text += (
                f" union all select {shown}, {self._weighted(self._far)} "
                f"from (select {listed} from {before} group by all) as _s "
                f"join (select distinct {distinct} from {groups} where other <> 0) as _b on {_equal(fixed)}"
            )
        listed = ", ".join([*kept, *keys, "_level", *self.question.totals()])
        return f"select {listed} from ({text}) as _both {allowed} group by all"

    def _weighted(self, square: Callable[[str, str], str]) -> str:
        sums = [f"_s.{q} * ({square(first, second)}) as {q}" for (_, first, second), q in self.question.sums.items()]
        rows = [f"_s.{m} * _b.{self.factors[factor]}_peak as {m}" for (_, factor), m in self.question.rows.items()]
        return ", ".join([*sums, *rows, "greatest(_s._noisy, _b.noisy) as _noisy"])

    def _near(self, first: str, second: str) -> str:
        """What a released value inside the group adds to the product of two U beyond what every value adds."""
        h, g = self.factors[first], self.factors[second]
        return f"_b.own ** 2 * _b.{h} * _b.{g} + _b.own * _b.other * (_b.{h} * _b.{g}_all + _b.{g} * _b.{h}_all)"

    def _far(self, first: str, second: str) -> str:
        """What every released value adds to the product of two U."""
        return f"_b.other ** 2 * _b.{self.factors[first]}_all * _b.{self.factors[second]}_all"

    def _factor(self, conditions: Sequence[exp.Expr], values: Sequence[exp.Expr]) -> str:
        tests, amounts = (
            [to_sql(e, pretty=False) for e in some if self.homes[id(e)] == self.number] for some in (conditions, values)
        )
        amount = " * ".join(f"({text})" for text in amounts) or "1"
        if not tests:
            return f"coalesce({amount}, 0)"
        return f"coalesce(case when {' and '.join(f'({text})' for text in tests)} then {amount} end, 0)"

    def _members(self, level: int, used: Sequence[int]) -> str:
        """SELECT the keys, the true values that belong to them, and the sums of the factors."""
        known = {i: to_sql(self.question.groups.keys[i], pretty=False) for i in used}
        alias = quoted(self.question.early.units.alias)
        values = [f"{alias}.{value} as {value}" for _, value in self.cells]
        texts = dict.fromkeys(self._factor(*both) for both in self.question.factors.values())
        sums = [f"sum({text})::double as _h{i}" for i, text in enumerate(texts)]
        labels = [f"{known.get(i, 'null')} as _k{i}" for i in self.keys]
        chosen = exp.select(f"{level} as _l", *labels, *values, *sums, dialect="duckdb")
        self._from(chosen)
        for condition in self.question.late:
            if self.homes[id(condition)] == self.number:
                chosen.where(condition.copy(), copy=False)
        chosen.set("group", exp.Group(all=True))
        return to_sql(chosen, pretty=False)

    def _from(self, chosen: exp.Select) -> None:
        """Read all true values of the block, joined with the query's other tables where they belong to it."""
        domains = [
            f"(select value as {quoted(part.columns[0])} from ({part.domain()})) as _d{i}"
            for i, (_, part) in enumerate(self.parts)
        ]
        if self.exact:
            domains.append(f"(select distinct {', '.join(self.exact)} from _rows) as _exact")
        text = f"select * from {' cross join '.join(domains)}" if domains else "select 1 as _one"
        alias = exp.TableAlias(this=exp.to_identifier(self.question.early.units.alias, quoted=True))
        every = exp.Subquery(this=parsed(text), alias=alias)
        if OTHERS not in self.columns:
            chosen.from_(every, copy=False)
            return
        select = self.question.select.copy()
        for item in [select.args["from_"], *select.args["joins"]]:
            if is_original(item.this):
                item.set("this", every)
        chosen.set("from_", select.args["from_"])
        chosen.set("joins", select.args["joins"])


def _equal(cells: Sequence[tuple[str, str]]) -> str:
    return " and ".join(f"_s.{cell} is not distinct from _b.{value}" for cell, value in cells) or "true"
