"""Randomized: column `rr` tells how each column was randomized, P^-1 takes it back.

A released value a stands for every value x of its domain with weight (1[x = a] - q) / gain, the entry of the
inverted channel: 1 in total, negative for x other than a. Counts and sums over those weights are unbiased for
the original table (Guo, Ying and Wu 2011, section III.B). A condition on a column is its own sum of weights,
one number a released value. Columns that the final query sees value by value are inverted one after another
over the grouped rows (mode products), never over all combinations at once.

The 95% intervals take the original table as fixed: the variance of a total of weights W is the sum over
released rows of W^2 - V, where V is the weight of the squared amounts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.query.template import column, mapped, name, own, select, tree, truth
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.parts import ROW, SUBQUERIES, Part, Request, labelled, value_if

CHANNELS = name("channels")
"""The step with the release's row that tells how columns were randomized."""
NOT_TOLD = "no row here tells how rows were randomized; take the release as a whole, not a part of it"


@dataclass(frozen=True)
class RandomizedPart(Part):
    """A column randomized by a channel that column `channels` of the release publishes."""

    channels: str = ""

    @property
    def domain(self) -> exp.Identifier:
        """Name of the step with one row a value of the domain."""
        return name(f"domain_of_{self.name}")

    def steps(self) -> list[tuple[exp.Identifier, exp.Query]]:
        """The channels; the domain, with the entries of the inverted channel as own * I + other * J."""
        told = select(
            f"select coalesce({{rr}}, error('{NOT_TOLD}')) as _rr from (select 1 from {{release}} limit 1) "
            "left join (select {told} from {release} where {told} is not null limit 1) on true",
            rr=column(self.channels),
            told=column(self.channels, ROW),
            release=self.source(),
        )
        domain = select(
            """
            select unnest(_domain) as {value},
              case when _size > 1 then (_p - 1) / (_p * _size - 1) else 0 end as _other, 1 - _size * _other as _own
            from (select _rr.{value}.domain as _domain, array_length(_rr.{value}.domain) as _size, _rr.{value}.p as _p
              from {channels})""",
            value=self.columns[0],
            channels=CHANNELS,
        )
        return [(CHANNELS, told), (self.domain, domain)]

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a released value and value of the domain, weighted by the inverted channel."""
        return select(
            """
            select * from (
              select _cell, {value},
                _other + case when _cell is not distinct from {value} then _own else 0 end as _weight
              from {cells} cross join {domain}
            ) where _weight <> 0""",
            value=self.columns[0],
            cells=self.cells(),
            domain=self.domain,
        )

    def of_row(self, request: Request, share: exp.Column) -> exp.Expr | None:
        """The released value's own answer, and what the other entries of its row of the inverted channel add."""
        asked = [one for one in (request.condition, request.value) if one is not None]
        if request.wanted != "mean" or any(one.find(*SUBQUERIES, exp.Lambda) for one in asked):
            return None  # columns of a query inside are not this row's

        x = self._of_cell(value_if(request) if request.value is not None else _condition(request))
        entry = own_entry(share)
        if request.value is None:
            return tree("case when {x} then {share} + {entry} else {share} end", x=x, share=share, entry=entry)
        return tree("{entry} * {x} + {share}", entry=entry, x=x, share=share)

    def asked_of_row(self, request: Request) -> exp.Expr | None:
        """The condition of a request that asks for a share, over a row of the release; None if it may be no condition.

        Args:
            request: what is asked.
        """
        condition = _condition(request)
        plain = isinstance(condition.unnest(), (exp.Predicate, exp.Connector, exp.Not))
        return self._of_cell(condition) if plain and request.value is None else None

    def _of_cell(self, node: exp.Expr) -> exp.Expr:
        return mapped(node, lambda one: self.key if isinstance(one, exp.Column) and not one.table else None)

    def told(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select | None:
        """The released value's own entry of the inverted channel, and the sum of each answer over the others."""
        answers = [
            labelled(tree("_other * {total}", total=_over_domain(request)), label)
            for request, label in zip(requests, labels, strict=True)
        ]
        return select(
            """
            select {answers}, 1 - _size * _other as _own from (
              select _rr.{value}.domain as _domain, array_length(_domain) as _size,
                case when _size > 1 then (_rr.{value}.p - 1) / (_rr.{value}.p * _size - 1) else 0 end as _other
              from {channels})""",
            answers=answers,
            value=self.columns[0],
            channels=CHANNELS,
        )

    def noisy(self, requests: Mapping[Request, str], beside: exp.Identifier) -> exp.Expr:
        """Whether released values may differ from the true ones, as a subquery.

        Args:
            requests: what is asked of the part, and the labels of the answers.
            beside: the step that `told` makes.
        """
        told = (self.of_row(one, exp.Column(this=name(label), table=beside)) for one, label in requests.items())
        if any(one is not None for one in told):
            return tree("(select _own <> 1 from {beside})", beside=beside)
        return tree("(select _other <> 0 from {channel})", channel=self.channel())

    def inverted(
        self,
        before: exp.Identifier,
        cell: exp.Identifier,
        keys: Sequence[exp.Identifier],
        sums: Sequence[exp.Identifier],
        rows: exp.Identifier | None = None,
        squares: Sequence[exp.Identifier] = (),
    ) -> exp.Select:
        """SELECT the rows of `before` with this column inverted: its cells give way to true values.

        Args:
            before: name of the step so far.
            cell: name of this part's cells in it.
            keys: the other columns that tell its rows apart.
            sums: its columns of numbers.
            rows: the one of `sums` that counts rows; where it is 0 the combination of values is left out.
            squares: its columns of squares, which take the squares of the entries.
        """
        columns = [exp.Column(this=key) for key in keys]

        def summed(template: str, of_square: str) -> list[exp.Expr]:
            return [
                *(tree(f"{template} as {{n}}", n=one) for one in sums),
                *(tree(f"{of_square} as {{n}}", n=one) for one in squares),
            ]

        return select(
            f"""
            select {{columns}}, {{value}}, {{total}} from (
              select {{columns}}, {{cell}} as {{value}}, {{near}} from {{before}} cross join {{channel}}
              union all
              select {{columns}}, {{value}}, {{far}} from (select {{columns}}, {{total}} from {{before}} group by all)
              cross join {{domain}} where _other <> 0
            ) group by all{" having sum({rows}) <> 0" if rows is not None else ""}""",
            columns=columns,
            value=self.columns[0],
            cell=cell,
            total=summed("sum({n})", "sum({n})"),
            near=summed("{n} * _own", "{n} * _own * (_own + 2 * _other)"),
            far=summed("{n} * _other", "{n} * _other ** 2"),
            before=before,
            channel=self.channel(),
            domain=self.domain,
            **({"rows": rows} if rows is not None else {}),
        )

    def channel(self) -> exp.Select:
        """SELECT one row: the entries of the inverted channel as own * I + other * J."""
        return select("select distinct _own, _other from {domain}", domain=self.domain)


def inversions(
    parts: Sequence[RandomizedPart],
    before: exp.Identifier,
    keys: Sequence[exp.Identifier],
    numbers: Sequence[exp.Identifier],
    counted: str | None,
    squares: Sequence[exp.Identifier] = (),
) -> list[tuple[exp.Identifier, exp.Query]]:
    """The names and SELECTs that invert one column after the other, each reading the one before.

    Args:
        parts: the columns; their cells are called `cell_` and the part's name.
        before: name of the step of the released rows.
        keys: its other columns that tell rows apart.
        numbers: its columns of numbers, which are summed.
        counted: the one of them that counts rows.
        squares: its columns of squares.
    """
    made: list[tuple[exp.Identifier, exp.Query]] = []
    shown = {part.name: name(f"cell_{part.name}") for part in parts}
    for part in parts:
        others = [*keys, *(cell for other, cell in shown.items() if other != part.name)]
        step = name(f"{part.name}_inverted")
        # what has no rows so far may still add to what the other columns take apart
        rows = name(counted) if counted and part is parts[-1] else None
        made.append((step, part.inverted(before, shown[part.name], others, numbers, rows, squares)))
        shown[part.name], before = column(part.columns[0]).this, step
    return made


def own_entry(share: exp.Column) -> exp.Column:
    """What a released value that is asked for weighs more than any other, beside `share`, what any other weighs.

    Args:
        share: a column of `RandomizedPart.told`.
    """
    return exp.Column(this=name("own"), table=share.args["table"].copy())


def _condition(request: Request) -> exp.Expr:
    return request.condition if request.condition is not None else truth(True)


def _is_subquery(node: exp.Expr) -> bool:
    """Whether DuckDB reads a subquery: any(list) and all(list) are some."""
    listed = isinstance(node, exp.Anonymous) and node.name.lower() == "all"
    return listed or isinstance(node, SUBQUERIES)


def _over_domain(request: Request) -> exp.Expr:
    """The sum of what a request wants of each value of the domain."""

    def of_member(node: exp.Expr) -> exp.Expr:
        return mapped(node, lambda one: own("member") if isinstance(one, exp.Column) and not one.table else None)

    asked = of_member(_condition(request) if request.value is None else value_if(request))
    beyond = any(map(_is_subquery, asked.walk())) or any(column.table for column in all_of(asked, exp.Column))
    if request.value is None:
        if beyond:  # no lambda reads a subquery or a row around it
            return tree("(select count(*) from (select unnest(_domain) as _member) where {x})", x=asked)
        return tree("array_length(list_filter(_domain, lambda _member: {x}))", x=asked)
    if beyond:
        return tree("(select sum({x}) from (select unnest(_domain) as _member))", x=asked)
    return tree("list_sum(list_transform(_domain, lambda _member: {x}))", x=asked)


def told(field: str, source: str) -> str:
    """SELECT one row with one column c: the channel that a field of the channels tells; an error where no row tells it.

    Args:
        field: SQL of the field.
        source: the release, as SQL of a FROM item.
    """
    missing = f"count(*) > 0 and count({field}) = 0"
    return f"select case when {missing} then error('{NOT_TOLD}') else any_value({field}) end as c from {source}"
