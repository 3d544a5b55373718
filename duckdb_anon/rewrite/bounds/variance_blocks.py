"""Blocks of columns spelled out by value that a query speaks of together, and one step of `squares` over one block.

The groups of a block are what its keys make of the true values of its columns; h is a factor by value (conditions and
amounts) inside it. Its weight for a released value y is U(y) = sum over the group's x of h(x) * P^-1[x, y]. Inside a
block of several columns U is written out for every group and combination of values, but for the last column:
there P^-1 = own * I + other * J, U(y) = own * h(y) + other * (sum of h), and what the values outside the group add
is one number a group (Guo, Ying and Wu 2011, section III.B, for P^-1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

from sqlglot import exp

from duckdb_anon.rewrite.estimate.step_ctes import ROWS
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import Step
from duckdb_anon.rewrite.query.grouping_sets import QueryGroups
from duckdb_anon.rewrite.query.parse import is_original
from duckdb_anon.rewrite.query.template import column, copied, every, multiplied, name, number, own, select, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart
from duckdb_anon.rewrite.shapes.parts import all_same, labelled

OTHERS = ""
"""Stands for the columns of other tables among the columns a piece of the query speaks of."""

Factors = tuple[tuple[exp.Expr, ...], tuple[exp.Expr, ...]]
"""The conditions and the amounts of a product that speak of columns spelled out by value."""


@dataclass(frozen=True)
class Question:
    """What the intervals of one query need to know.

    Attributes:
        steps: the query's named steps.
        groups: what it groups by.
        select: the bound SELECT as the analyst wrote it, for its FROM clause.
        by_value: its conditions on columns by value.
        factors: factors by value by name.
        sums: (column of `_rows`, factor, factor) to the name of the sum of their products over the rows.
        rows: (column of `_rows`, factor) to the name of what one more row would add to that sum.
    """

    steps: Steps
    groups: QueryGroups
    select: exp.Select
    by_value: tuple[exp.Expr, ...]
    factors: dict[str, Factors] = field(default_factory=dict)
    sums: dict[tuple[str, str, str], str] = field(default_factory=dict)
    rows: dict[tuple[str, str], str] = field(default_factory=dict)

    def level(self, keys: set[int], chosen: Sequence[exp.Expr]) -> int:
        """The bits of GROUPING(all keys) for those keys (by number) that are not among the chosen ones."""
        last = len(self.groups.keys) - 1
        return sum(1 << (last - i) for i in keys if self.groups.keys[i] not in chosen)

    def totals(self) -> list[exp.Expr]:
        """The sums, added up over the rows that are left."""
        sums, most = self.sums.values(), [*self.rows.values(), "noisy"]
        found = [tree("sum({n}) as {n}", n=name(one)) for one in sums]
        return found + [tree("max({n}) as {n}", n=name(one)) for one in most]

    def blocks(self) -> list[Block]:
        """Late columns that some piece of the query speaks of together."""
        homes, joins = self.steps.homes, self.select.args.get("joins") or []
        pieces = [
            *self.groups.keys,
            *self.by_value,
            *(e for both in self.factors.values() for one in both for e in one),
        ]
        touched = [self._touched(piece) for piece in pieces]
        touched += [self._touched(join.args["on"]) | {OTHERS} for join in joins if join.args.get("on") is not None]
        sets: list[set[str]] = [{one} for one in sorted(homes.by_value)] + [{OTHERS}] * bool(joins)
        for some in touched:
            together = [one for one in sets if one & some]
            sets = [one for one in sets if not one & some] + ([set().union(*together)] if together else [])
        block_of = {
            id(piece): next((i for i, one in enumerate(sets) if some & one), 0)
            for piece, some in zip(pieces, touched, strict=False)
        }
        return [Block(self, number, frozenset(one), block_of) for number, one in enumerate(sets)]

    def _touched(self, piece: exp.Expr) -> set[str]:
        homes = self.steps.homes
        others = any(one.table in homes.others for one in all_of(piece, exp.Column))
        return (homes.columns(piece) & homes.by_value) | ({OTHERS} if others else set())


@dataclass(frozen=True)
class Block:
    """Some columns spelled out by value, and which pieces of the query speak of them.

    Attributes:
        question: the query.
        number: its place among the blocks.
        columns: its columns, `OTHERS` among them where the query's other tables belong to it.
        block_of: id of each piece of the query to the number of its block.
    """

    question: Question
    number: int
    columns: frozenset[str]
    block_of: Mapping[int, int]

    @cached_property
    def keys(self) -> list[int]:
        """Numbers of the keys that speak of this block."""
        return [i for i, key in enumerate(self.question.groups.keys) if self.block_of[id(key)] == self.number]

    @cached_property
    def parts(self) -> list[tuple[exp.Identifier, RandomizedPart]]:
        """Cell and part of each randomized column."""
        found = [(name(f"cell_{part.name}"), part) for part in self.question.steps.inverted]
        return [(cell, part) for cell, part in found if part.columns[0] in self.columns]

    @cached_property
    def exact(self) -> list[exp.Identifier]:
        """Columns that were not randomized."""
        return [column(one).this for one in sorted(self.columns) if one in self.question.steps.model.exact]

    @property
    def cells(self) -> list[tuple[exp.Identifier, exp.Identifier]]:
        """Columns of the rows that tell released values apart, and names of the true values; randomized ones last."""
        return [(c, c) for c in self.exact] + [(cell, column(part.columns[0]).this) for cell, part in self.parts]

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
        """Each factor by value by name, to the column that holds its h."""
        made_of = {factor: self._factor(*both) for factor, both in self.question.factors.items()}
        labels = {h: f"h{i}" for i, h in enumerate(dict.fromkeys(made_of.values()))}
        return {factor: labels[h] for factor, h in made_of.items()}

    def ctes(self) -> Iterator[Step]:
        """Groups of the block with h, then U over released values, but for the last column."""
        step, sums = name(f"block_{self.number}"), list(dict.fromkeys(self.factors.values()))
        labels = [name("l"), *(name(f"key_{i}") for i in self.keys)]
        members = [self._members(level, used) for level, used in self.levels.items()]
        yield step, reduce(lambda a, b: exp.Union(this=a, expression=b, distinct=False), members)
        values = [column(part.columns[0]).this for _, part in self.parts]
        for place, (_, part) in enumerate(self.parts[:-1]):
            others = [*labels, *self.exact, *(v for i, v in enumerate(values) if i != place)]
            inverted = part.inverted(step, values[place], others, [name(h) for h in sums])
            step = name(f"block_{self.number}_{place}")
            yield step, inverted
        over = _columns([*labels, *self.exact, *values[:-1]])
        wholes = [labelled(tree("sum({h}) over (partition by {over})", h=own(h), over=over), f"{h}_all") for h in sums]
        channel = self.parts[-1][1].channel() if self.parts else select("select 1 as _own, 0 as _other")
        weights = {h: tree("_own * {h} + _other * {all}", h=own(h), all=own(f"{h}_all")) for h in sums}
        group = _columns(labels)
        peaks = [
            labelled(tree("max({weight} ** 2) over (partition by {group})", weight=weight, group=group), f"{h}_peak")
            for h, weight in weights.items()
        ]
        changes = [tree("abs({weight} - {h}) > 1e-9", weight=weight, h=own(h)) for h, weight in weights.items()]
        noisy = "max(greatest({changes})::integer) over (partition by {group})"
        peaks.append(labelled(tree(noisy, changes=changes, group=group), "noisy"))
        yield (
            self._groups,
            select(
                "select *, {peaks} from (select *, {wholes} from {step} cross join {channel} as _channel) as _every",
                peaks=peaks,
                wholes=wholes,
                step=step,
                channel=channel,
            ),
        )

    @property
    def _groups(self) -> exp.Identifier:
        return name(f"block_{self.number}_groups")

    def step(self, before: exp.Identifier, kept: Sequence[exp.Identifier], levels: Sequence[int]) -> exp.Select:
        """SELECT the sums over this block's groups instead of its released values.

        Args:
            before: name of the step so far: released values of this block and of those to come, groups of others.
            kept: its columns that stay.
            levels: the grouping sets that are asked for, empty for all.
        """
        keys = [name(f"key_{i}") for i in self.keys]
        shown = [tree("_s.{c}", c=one) for one in kept] + [tree("_b.{k}", k=one) for one in keys]
        shown.append(tree("_s._level + _b._l as _level"))
        both: exp.Query = select(
            "select {shown} from {before} as _s join {groups} as _b on {on}",
            shown=[*shown, *self._weighted(self._near)],
            before=before,
            groups=self._groups,
            on=_equal(self.cells),
        )
        if self.parts:
            fixed = self.cells[:-1]
            listed = [*_columns([*kept, *(cell for cell, _ in fixed), name("level")]), *self.question.totals()]
            wholes = [name(f"{h}{end}") for h in dict.fromkeys(self.factors.values()) for end in ("_all", "_peak")]
            distinct = [name("l"), name("other"), name("noisy"), *keys, *(value for _, value in fixed), *wholes]
            far = select(
                "select {shown} from (select {listed} from {before} group by all) as _s "
                "join (select distinct {distinct} from {groups} where _other <> 0) as _b on {on}",
                shown=[*shown, *self._weighted(self._far)],
                listed=listed,
                before=before,
                distinct=_columns(distinct),
                groups=self._groups,
                on=_equal(fixed),
            )
            both = exp.Union(this=both, expression=far, distinct=False)
        listed = [*_columns([*kept, *keys, name("level")]), *self.question.totals()]
        allowed = tree("_level in ({levels})", levels=[number(one) for one in levels]) if levels else None
        chosen = select("select {listed} from {both} as _both group by all", listed=listed, both=both)
        return chosen.where(allowed, copy=False) if allowed is not None else chosen

    def _weighted(self, square: Callable[[str, str], exp.Expr]) -> list[exp.Expr]:
        sums = [
            labelled(tree("_s.{q} * {square}", q=name(q), square=square(first, second)), q)
            for (_, first, second), q in self.question.sums.items()
        ]
        rows = [
            labelled(tree("_s.{m} * _b.{peak}", m=name(m), peak=name(f"{self.factors[factor]}_peak")), m)
            for (_, factor), m in self.question.rows.items()
        ]
        return [*sums, *rows, tree("greatest(_s._noisy, _b._noisy) as _noisy")]

    def _near(self, first: str, second: str) -> exp.Expr:
        """What a released value inside the group adds to the product of two U beyond what every value adds."""
        h, g = self.factors[first], self.factors[second]
        return tree(
            "_b._own ** 2 * _b.{h} * _b.{g} + _b._own * _b._other * (_b.{h} * _b.{g_all} + _b.{g} * _b.{h_all})",
            **{"h": name(h), "g": name(g), "h_all": name(f"{h}_all"), "g_all": name(f"{g}_all")},
        )

    def _far(self, first: str, second: str) -> exp.Expr:
        """What every released value adds to the product of two U."""
        h, g = (name(f"{self.factors[one]}_all") for one in (first, second))
        return tree("_b._other ** 2 * _b.{h} * _b.{g}", h=h, g=g)

    def _factor(self, conditions: Sequence[exp.Expr], values: Sequence[exp.Expr]) -> exp.Expr:
        tests, amounts = ([e for e in some if self.block_of[id(e)] == self.number] for some in (conditions, values))
        amount = multiplied(amounts)
        if not tests:
            return tree("coalesce({amount}, 0)", amount=amount)
        return tree("coalesce(case when {tests} then {amount} end, 0)", tests=every(tests), amount=amount)

    def _members(self, level: int, used: Sequence[int]) -> exp.Query:
        """SELECT the keys, the true values that belong to them, and the sums of the factors."""
        known = {i: self.question.groups.keys[i] for i in used}
        alias = exp.to_identifier(self.question.steps.homes.alias, quoted=True)
        made_of = dict.fromkeys(self._factor(*both) for both in self.question.factors.values())
        columns = [labelled(number(level), "l")]
        columns += [labelled(copied(known[i]) if i in known else exp.null(), f"key_{i}") for i in self.keys]
        columns += [tree("{t}.{v} as {v}", t=alias, v=value) for _, value in self.cells]
        columns += [labelled(tree("sum({h})::double", h=h), f"h{i}") for i, h in enumerate(made_of)]
        chosen = select("select {columns} group by all", columns=columns)
        self._from(chosen)
        for condition in self.question.by_value:
            if self.block_of[id(condition)] == self.number:
                chosen.where(copied(condition), copy=False)
        return chosen

    def _from(self, chosen: exp.Select) -> None:
        """Read all true values of the block, joined with the query's other tables where they belong to it."""
        domains: list[exp.Expr] = [
            exp.Subquery(
                this=select("select {v} from {d}", v=part.columns[0], d=part.domain),
                alias=exp.TableAlias(this=name(f"domain_{i}")),
            )
            for i, (_, part) in enumerate(self.parts)
        ]
        if self.exact:
            listed = select("select distinct {columns} from {rows}", columns=_columns(self.exact), rows=ROWS)
            domains.append(exp.Subquery(this=listed, alias=exp.TableAlias(this=name("exact"))))
        values = select("select * from {first}", first=domains[0]) if domains else select("select 1 as _one")
        for domain in domains[1:]:
            values.append("joins", exp.Join(this=domain, kind="CROSS"))
        alias = exp.TableAlias(this=exp.to_identifier(self.question.steps.homes.alias, quoted=True))
        every_value = exp.Subquery(this=values, alias=alias)
        if OTHERS not in self.columns:
            chosen.set("from_", exp.From(this=every_value))
            return
        source = copied(self.question.select)
        for item in [source.args["from_"], *source.args["joins"]]:
            if is_original(item.this):
                item.set("this", every_value)
        chosen.set("from_", source.args["from_"])
        chosen.set("joins", source.args["joins"])


def _columns(names: Sequence[exp.Identifier]) -> list[exp.Expr]:
    return [exp.Column(this=copied(one)) for one in names]


def _equal(cells: Sequence[tuple[exp.Identifier, exp.Identifier]]) -> exp.Expr:
    return all_same([(tree("_s.{c}", c=cell), tree("_b.{v}", v=value)) for cell, value in cells])
