"""The independent parts of a released row: each lists the values its cell may stand for, with a share each.

    cell, one column an original column, share      (one row a distinct cell and value)

Shares of a cell add up to one, or to the number of records that a cell stands for (an individual's list of records).
Inverted randomization has negative ones. Every estimate follows from that table, which is as large as the distinct
cells and not as the rows.

Sources: uniform overlap, Zhang et al. (2007), Xiao and Tao (2006); buckets, Xiao and Tao (2006), Anatomy; slices, Li,
Li, Zhang and Molloy (2012); inverted channels, Guo, Ying and Wu (2011).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from duckdb_anon.model.errors import RewriteError, when_run
from duckdb_anon.model.hierarchy import HIDDEN_LABEL
from duckdb_anon.model.release_formats.duckdb_types import is_text
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import literal, quoted

NULL_LABEL = "(null)"
NO_CHANNEL = "no row here shows how rows were randomized; take the release as a whole, not a part of it"
RESERVED = ("_cell", "_share", "_weight", "_records", "_id", "_hits", "_total")
"""Names of columns inside the rewritten query, which no column of the original may have."""


class NotLinearError(RewriteError):
    """A query whose answer is not linear in the rows of the original."""


@dataclass(frozen=True)
class ColumnUse:
    """What a query asks of a column.

    Attributes:
        constants: SQL of the constants that it is compared with.
        every_value: whether its values must be listed, since it is grouped by, joined on or an argument of a function.
        amounts: whether its values are added up at all; otherwise they are only compared.
    """

    constants: tuple[str, ...] = ()
    every_value: bool = False
    amounts: bool = True


Uses = Mapping[str, ColumnUse]
"""What a query asks of each column, by folded name."""


@dataclass(frozen=True)
class Factor:
    """One independent part of a released row.

    Attributes:
        name: names its steps.
        columns: the original columns it covers, folded.
        cell: SQL over a row `r` of the release that tells its cells apart.
        release: FROM item of the release.
        signed: shares may be negative.
        counted: shares add up to a number of records.
    """

    name: str
    columns: tuple[str, ...]
    cell: str
    release: str
    signed: bool = False
    counted: bool = False

    def listing(self, uses: Uses) -> str:
        """SELECT cell, the columns of `uses`, share.

        Raises:
            RewriteError: the values that are asked for cannot be listed.
        """
        raise NotImplementedError

    def possible_values(self, uses: Uses) -> str:
        """SELECT cell and the columns of `uses`: every value a cell may stand for."""
        columns = ", ".join(quoted(column) for column in self.columns if column in uses)
        return f"select distinct _cell, {columns} from ({self.listing(uses)}) as l where _share > 0"

    def open_cell(self, cell: str) -> str:
        """SQL of whether a cell may stand for values that are not listed; '' where none does."""
        return ""

    def values(self, uses: Uses, conditions: Sequence[str], needed: Collection[str]) -> str:
        """SELECT cell, the needed columns, share: the values that satisfy conditions.

        Args:
            uses: what the query asks of each column.
            conditions: SQL over the columns; all must hold.
            needed: columns that the query still reads.
        """
        columns = "".join(f", {quoted(node)}" for node in needed)
        listed = f"from ({self.listing(uses)}) as v{where_all(conditions)}"
        if set(uses) <= set(needed):
            return f"select _cell{columns}, _share {listed}"
        return f"select _cell{columns}, sum(_share) as _share {listed} group by all"

    def possible(self, uses: Uses, conditions: Sequence[str], needed: Collection[str]) -> str:
        """As `values`, with hits and total in place of share: how many of the possible values satisfy conditions."""
        columns = "".join(f", {quoted(node)}" for node in needed)
        counted = f"select *, count(*) over (partition by _cell) as _total from ({self.possible_values(uses)}) as v"
        return f"""
            select _cell{columns}, count(*) as _hits, any_value(_total) as _total
            from ({counted}) as p{where_all(conditions)} group by all"""

    def most_values(self, uses: Uses) -> str:
        """SQL aggregate over rows `r` of the release: how many values a cell has at most; '' where it does not say."""
        return ""

    def numbers_of_values(self, text: str, uses: Uses, conditions: Sequence[str]) -> str:
        """SELECT cell, n: how many rows of `text`, its `values` or possible ones, each cell has, or at most has."""
        return f"select _cell, count(*)::double as n from ({text}) as v group by all"

    def cells(self) -> str:
        """SELECT of the distinct cells."""
        return f"select distinct {self.cell} as _cell from {self.release} as r"


@dataclass(frozen=True)
class ExactFactor(Factor):
    """A column whose cells are the original's values."""

    def listing(self, uses: Uses) -> str:
        """Each cell as its own value."""
        return f"select _cell, _cell as {quoted(self.columns[0])}, 1.0 as _share from ({self.cells()}) as c"


def where_all(conditions: Sequence[str]) -> str:
    """WHERE clause of conditions that must all hold, '' for none."""
    return f" where {' and '.join(f'({condition})' for condition in conditions)}" if conditions else ""


@dataclass(frozen=True)
class GeneralizedFactor(Factor):
    """A column whose cells say which values they cover.

    Attributes:
        learnt: whether shares inside cells are learnt from all cells; otherwise they are even.
        shares: the step with the learnt shares; '' where they are even.
        records: aggregate over rows `r` that counts the original rows behind them.
    """

    learnt: bool = False
    shares: str = ""
    records: str = "count(*)"

    def learnt_shares(self) -> str:
        """SELECT of the learnt shares, the same for all cells; '' where they are even."""
        return ""

    def counted_cells(self) -> str:
        """SELECT of the distinct cells, and how many original rows have each."""
        return f"select {self.cell} as _cell, {self.records} as size from {self.release} as r group by all"

    def of_step(self, step: str, cell: str) -> Self:
        """The same column, its cells read from a step with a column of cells and one of `_records`."""
        return replace(self, cell=f"r.{cell}", release=step, records="sum(r._records)")


def _learnt_members(function: str, cells: str) -> str:
    """SELECT value, share of what a function of `duckdb_anon.engine.draws.estimator_udfs` learns from cells."""
    fields = ", ".join(f"'{name}': c.{name}" for name in ("cell", "value", "prior"))
    listed = f"list({{{fields}, 'size': c.size::double}})"
    return f"""
        select s.m.value as value, s.m.share as share
        from (select unnest({function}({listed})) as m from ({cells}) as c) as s"""


@dataclass(frozen=True)
class SetFactor(GeneralizedFactor):
    """A list of the values a cell may stand for; a NULL list is the value NULL.

    A set lists the values that its rows have, so each of them is given a row, and the others go by learnt shares.
    """

    def listing(self, uses: Uses) -> str:
        """One row a member."""
        column = quoted(self.columns[0])
        if not self.shares:
            return f"""
                select _cell, unnest(coalesce(_cell, [null])) as {column},
                  1.0 / greatest(array_length(coalesce(_cell, [])), 1) as _share
                from ({self.cells()}) as c"""
        return f"""
            select _cell, member as {column},
              case when size >= members then 1 / size + (1 - members / size) * share / of_cell
                else share / of_cell end as _share
            from (
              select m.*, coalesce(s.share, 1) as share, sum(coalesce(s.share, 1)) over (partition by _cell) as of_cell,
                count(*) over (partition by _cell) as members
              from ({self._members()}) as m left join {self.shares} as s
                on m.member::varchar is not distinct from s.value
            ) as l"""

    def most_values(self, uses: Uses) -> str:
        """As `Factor.most_values`: the members of the largest set."""
        return f"max(len({self.cell}))"

    def learnt_shares(self) -> str:
        """As of any factor."""
        if not self.learnt:
            return ""
        numbered = f"select *, row_number() over (order by _cell) as number from ({self.counted_cells()}) as c"
        member = "unnest(coalesce(_cell, [null]))::varchar"
        listed = f"select number as cell, {member} as value, 1e0 as prior, size from ({numbered}) as n"
        return _learnt_members("learnt_members", listed)

    def _members(self) -> str:
        return f"select _cell, unnest(coalesce(_cell, [null])) as member, size from ({self.counted_cells()}) as c"


@dataclass(frozen=True)
class NodeFactor(GeneralizedFactor):
    """A label of a hierarchy node, or (`counted`) a list of labels, one for each of an individual's records.

    NULL is a leaf of its own under the root, labelled '(null)'; a root stands for it where that label occurs.
    """

    hierarchy: TableInfo | None = None
    kind: str = "VARCHAR"

    def listing(self, uses: Uses) -> str:
        """One row a leaf below the node; a label that is no node is a value."""
        column = quoted(self.columns[0])
        if self.counted:
            return f"""
                select n._cell, b.leaf as {column}, b._share
                from (select _cell, unnest(_cell) as node from ({self.cells()}) as c) as n
                join ({self._below()}) as b on n.node = b.node"""
        even = f"""
            select c._cell,
              case when b.node is null then nullif(c._cell, '{NULL_LABEL}')::{self.kind} else b.leaf end as {column},
              coalesce(b._share, 1.0) as _share
            from ({self.cells()}) as c left join ({self._below()}) as b on c._cell = b.node"""
        if not self.shares:
            return even
        return f"""
            select _cell, {column}, e._share * coalesce(s.share, 1)
              / sum(e._share * coalesce(s.share, 1)) over (partition by _cell) as _share
            from ({even}) as e left join {self.shares} as s on e.{column}::varchar is not distinct from s.value"""

    def learnt_shares(self) -> str:
        """As of any factor."""
        column = quoted(self.columns[0])
        if self.counted or self._hides_values or not self.learnt:
            return ""
        cells = f"""
            select dense_rank() over (order by e._cell) as cell, e.{column}::varchar as value, e._share as prior, n.size
            from ({replace(self, shares="").listing({})}) as e
            join ({self.counted_cells()}) as n on e._cell is not distinct from n._cell"""
        return _learnt_members("learnt_leaves", cells)

    def most_values(self, uses: Uses) -> str:
        """As `Factor.most_values`: all leaves, and NULL."""
        return "" if self.hierarchy is None else f"(select count(*) + 1 from {self.hierarchy.sql} as tree)"

    def possible_values(self, uses: Uses) -> str:
        """As `Factor.possible_values`; a root may also stand for NULL where no label says that NULL occurs."""
        column = quoted(self.columns[0])
        listed = super().possible_values(uses)
        if self.hierarchy is None or not self.hierarchy.columns:
            return listed
        root = quoted(self.hierarchy.columns[-1][0])
        roots = f"select {root}::varchar from {self.hierarchy.sql} as tree"
        return f"{listed} union select _cell, null as {column} from ({self.cells()}) as c where _cell in ({roots})"

    @property
    def _hides_values(self) -> bool:
        """Whether the published hierarchy has labels in place of rare values, which no value of the type is."""
        return self.hierarchy is not None and self.hierarchy.hidden and not is_text(self.kind)

    def _below(self) -> str:
        """SELECT node, leaf, share: every node with the leaves at or below it, evenly."""
        tree = self.hierarchy
        if tree is None or not tree.columns:
            raise RewriteError(
                f"column '{self.columns[0]}' was generalized along a hierarchy whose table "
                f"{tree.sql if tree is not None else ''} the planner cannot see. "
                "Commit the table, or name it with hierarchies := {...}"
            )
        names = [quoted(name) for name, _ in tree.columns]
        levels = ", ".join(f"{name}::varchar" for name in names)
        label = "unnest(_cell)" if self.counted else "_cell"
        null_occurs = f"exists (from (select {label} as l from ({self.cells()}) as c) as s where l = '{NULL_LABEL}')"
        below = f"select distinct unnest([{levels}]) as node, {names[0]}::{self.kind} as leaf from {tree.sql} as tree"
        if self._hides_values:
            below = self._not_hidden(levels, names[0], tree.sql)
        leaves = f"""
            {below}
            union all select '{NULL_LABEL}', null::{self.kind}
            union all select distinct {names[-1]}::varchar, null::{self.kind} from {tree.sql} as tree
            where {null_occurs}"""
        return f"select node, leaf, 1.0 / count(*) over (partition by node) as _share from ({leaves}) as b"

    def _not_hidden(self, levels: str, leaf: str, tree: str) -> str:
        """Leaves whose value is published; a released node without one stands for no value that could be read."""
        unknown = (
            f"column '{self.columns[0]}': few records carry each value below a released node, so the published "
            "hierarchy hides them all; queries that do not read the column are answered"
        )
        hidden = f"starts_with({leaf}::varchar, '{HIDDEN_LABEL}')"
        label = "unnest(_cell)" if self.counted else "_cell"
        return f"""
            select node, case when hidden then error({literal(when_run(unknown))}) else text end::{self.kind} as leaf
            from (select distinct unnest([{levels}]) as node, {leaf}::varchar as text, {hidden} as hidden
              from {tree} as tree) as h
            where node in (select {label} from ({self.cells()}) as c)
            qualify not hidden or bool_and(hidden) over (partition by node)"""


@dataclass(frozen=True)
class ListFactor(NodeFactor):
    """A list of an individual's values, published as a list of hierarchy nodes."""

    def listing(self, uses: Uses) -> str:
        """Lists cannot be listed.

        Raises:
            NotLinearError: always.
        """
        raise NotLinearError(
            f"'{self.columns[0]}' is published as lists of hierarchy nodes, which stand for too many lists to go "
            "through"
        )


@dataclass(frozen=True)
class BucketFactor(Factor):
    """MAP from value to count, one a bucket; rows that no count covers hold NULL."""

    counts: str = ""

    def listing(self, uses: Uses) -> str:
        """One row a value of the bucket."""
        maps = f"""
            select {self.cell} as _cell, arg_min({self.counts}, 0) as counts, count(*) as records
            from {self.release} as r group by all"""
        sized = f"""
            select *, coalesce(list_sum(map_values(counts)), 0)::bigint as counted, greatest(records, counted) as size
            from ({maps}) as g"""
        return f"""
            select * from (
              select _cell, unnest(list_append(map_keys(counts), null)) as {quoted(self.columns[0])},
                unnest(list_append(map_values(counts), size - counted)) / size as _share
              from ({sized}) as b) as l where _share > 0"""

    def of_each_row(self, exact: Mapping[str, str], conditions: Sequence[str], nulls: bool) -> str:
        """SELECT exact columns, the column, hits, total: each released row with each value of its bucket.

        A value has `_hits` of the `_total` records of the bucket. To take one map of each bucket costs more than to
        read those of all of its rows.

        Args:
            exact: SQL over a row `r` of the release, by name of the column.
            conditions: SQL over a row `r` that has these columns; all must hold.
            nulls: whether records that no count covers, which hold NULL, are asked for.
        """
        column = quoted(self.columns[0])
        counted = f"coalesce(list_sum(map_values({self.counts})), 0)::bigint"
        carried = "".join(f", {sql} as {quoted(name)}" for name, sql in exact.items())
        rows = f"select {self.cell} as _cell, {self.counts} as _hits, {counted} as _total{carried}"
        rows = f"({rows} from {self.release} as r) as r"
        buckets = f"select {self.cell} as _cell, count(*) as _records from {self.release} as r group by all"
        joined = f"join ({buckets}) as s on r._cell is not distinct from s._cell"
        selected = "".join(f"r.{quoted(name)}, " for name in exact)
        keys, numbers, total = "map_keys(r._hits)", "map_values(r._hits)", "greatest(s._records, r._total) as _total"
        where = where_all(conditions)
        if not nulls:
            # values are picked before their rows meet the sizes of buckets
            listed = f"unnest({keys}) as {column}, unnest({numbers}) as _hits, r._total"
            values = f"(select {selected}r._cell, {listed} from {rows}{where}) as r"
            return f"select {selected}r.{column}, r._hits, {total} from {values} {joined}"
        missing = "s._records - r._total"
        with_null = f"case when {missing} > 0 then list_append({keys}, null) else {keys} end"
        with_missing = f"case when {missing} > 0 then list_append({numbers}, {missing}) else {numbers} end"
        listed = f"unnest({with_null}) as {column}, unnest({with_missing}) as _hits"
        return f"select {selected}{listed}, {total} from {rows} {joined}{where}"


@dataclass(frozen=True)
class SliceFactor(Factor):
    """A STRUCT column whose cells were permuted inside their buckets.

    Attributes:
        fields: (original column, SQL of its field over a row `r`).
        generalized: factors of its generalized fields, whose cells are fields.
    """

    fields: tuple[tuple[str, str], ...] = ()
    generalized: tuple[GeneralizedFactor, ...] = ()

    def listing(self, uses: Uses) -> str:
        """The cells of each bucket, counted; generalized fields are spread over their values."""
        inside = [node for node in self.generalized if node.columns[0] in uses]
        selected = [(column, sql) for column, sql in self.fields if column in uses]
        columns = "".join(f", {sql} as {quoted(column)}" for column, sql in selected)
        columns += "".join(f", {node.cell} as {quoted('cell_' + node.name)}" for node in inside)
        counted = f"select {self.cell} as _cell{columns}, count(*) as records from {self.release} as r group by all"
        listed = f"select *, records / sum(records) over (partition by _cell) as of_bucket from ({counted}) as g"
        outputs = ["s._cell", *(f"s.{quoted(column)}" for column, _ in selected)]
        outputs += [f"f{k}.{quoted(node.columns[0])}" for k, node in enumerate(inside)]
        share = " * ".join(["of_bucket", *(f"f{k}._share" for k, _ in enumerate(inside))])
        joins = "".join(
            f" join ({node.listing(uses)}) as f{k} on s.{quoted('cell_' + node.name)} is not distinct from f{k}._cell"
            for k, node in enumerate(inside)
        )
        return f"select {', '.join(outputs)}, {share} as _share from ({listed}) as s{joins}"


def channel_of(field: str, source: str) -> str:
    """SELECT one row with one column c: the channel that a field of the channels holds; an error where no row has one.

    Args:
        field: SQL of the field.
        source: FROM item of the release.
    """
    missing = f"count(*) > 0 and count({field}) = 0"
    refusal = f"error({literal(when_run(NO_CHANNEL))})"
    return f"select case when {missing} then {refusal} else any_value({field}) end as c from {source}"


@dataclass(frozen=True)
class RandomizedFactor(Factor):
    """A column randomized by the channel that the release publishes: shares are the inverted channel's."""

    channels: str = ""

    def domain(self) -> str:
        """SELECT value, p, size: values that were drawn from, how likely one was kept, how many there are."""
        channel = channel_of(f"r.{quoted(self.channels)}.{quoted(self.columns[0])}", f"{self.release} as r")
        return f"select unnest(c.domain) as value, c.p as p, array_length(c.domain) as size from ({channel}) as k"

    def listing(self, uses: Uses) -> str:
        """One row a value of the domain with a share other than 0."""
        column = quoted(self.columns[0])
        domain = f"""
            select value, case when size > 1 then (p - 1) / (p * size - 1) else 0 end as other, 1 - size * other as kept
            from ({self.domain()}) as v"""
        return f"""
            select * from (
              select _cell, value as {column},
                other + case when _cell is not distinct from value then kept else 0 end as _share
              from ({self.cells()}) as c, ({domain}) as d) as s where _share <> 0"""


@dataclass(frozen=True)
class SuppressedFactor(Factor):
    """A column of which some cells were suppressed: NULL is spread over the values of the other rows.

    Attributes:
        suppressed: SQL of the number of suppressed cells of the column, over a row `r`.
    """

    suppressed: str = ""

    def listing(self, uses: Uses) -> str:
        """Each value as itself, and NULL as any of them."""
        column = quoted(self.columns[0])
        counted = f"""
            select {self.cell} as _cell, count(*) as n, any_value({self.suppressed}) as suppressed
            from {self.release} as r group by all"""
        nothing = f"each value of {self.columns[0]} is suppressed. Queries that do not read the column are answered"
        return f"""
            select _cell, _cell as {column}, case when _cell is null then 1 - suppressed / n else 1.0 end as _share
            from ({counted}) as c where _cell is not null or suppressed < n
            union all
            select c._cell, v._cell, c.suppressed / c.n * v.n / sum(v.n) over () from ({counted}) as c, ({counted}) as v
            where c._cell is null and c.suppressed > 0 and v._cell is not null
            union all
            select _cell, case when suppressed > 0 then error({literal(when_run(nothing))}) end, 1.0
            from ({counted}) as c
            where suppressed > 0 and not exists (from ({counted}) as v where v._cell is not null)"""


@dataclass(frozen=True)
class RetainedFactor(Factor):
    """A sensitive column whose values were kept with the published probability, and drawn anew otherwise."""

    retention: str = ""

    def listing(self, uses: Uses) -> str:
        """One row a released value and value it may stand for."""
        selected = f"""
            select {self.cell} as _cell, count(*) / sum(count(*)) over () as frequency,
              any_value({self.retention}) as kept
            from {self.release} as r group by all"""
        return f"""
            select s._cell, a._cell as {quoted(self.columns[0])},
              ((s._cell is not distinct from a._cell)::double - (1 - s.kept) * a.frequency) / s.kept as _share
            from ({selected}) as s, ({selected}) as a"""
