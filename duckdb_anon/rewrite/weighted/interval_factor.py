"""Cells that are intervals, STRUCT(lower T, upper T) with both ends inside.

An interval is cut into the segments between the constants that a query compares the column with, each with its mean:
counts, sums and means are exact under the spread, and the width of an interval costs nothing. Where the query groups by
the column, joins on it or takes a function of it, whole numbers and dates are listed one by one.

Spread is even (uniform overlap: Zhang et al. 2007; Xiao and Tao 2006), or learnt from all cells of the column by
expectation maximisation (Dempster, Laird and Rubin 1977), by functions of this package.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from duckdb_anon.model.errors import RewriteError, when_run
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment, is_number, is_timestamp
from duckdb_anon.rewrite.weighted.factors import ColumnUse, Factor, Uses, quoted, where_all

MOST_LISTED = 1_000_000
_FAR = (2**127 - 1) // 4  # sums of two ends stay within a HUGEINT


@dataclass(frozen=True)
class IntervalFactor(Factor):
    """A column published as intervals of type `kind`.

    NULL is the value NULL. An interval without ends may be anything: it is spread over all that the other intervals
    cover, and NULL where values are counted.
    """

    kind: str = "INTEGER"

    @property
    def discrete(self) -> bool:
        """Whether values are counted: whole numbers of up to 64 bits, and dates."""
        return (is_integer(self.kind) and "HUGE" not in self.kind.upper()) or self.kind.upper() == "DATE"

    def listing(self, uses: Uses) -> str:
        """Segments between constants, or every value of a counted type."""
        column = self.columns[0]
        use = uses.get(column, ColumnUse())
        if use.every_value and not self.discrete:
            raise RewriteError(f"column '{column}' holds intervals of a continuous type, whose values cannot be listed")
        if self.learnt and (is_number(self.kind) or self.kind.upper() == "DATE" or is_timestamp(self.kind)):
            return self._learnt_values() if use.every_value else self._learnt_segments(use)
        values = self._every_value() if use.every_value else self._segments(use)
        null = f"""
            select cell, null as {quoted(column)},
              case when cell is null then 1.0 else 1 / (high - low + 2)::double end as share
            from ({self._ends()}) as e where cell is null or nulls > 0"""
        return f"{values} union all by name {null}"

    def open_cell(self, cell: str) -> str:
        """Intervals without ends cover everything."""
        return f"({cell} is not null and struct_extract({cell}, 'lower') is null)"

    def possible(self, uses: Uses, conditions: Sequence[str], needed: Collection[str]) -> str:
        """As `Factor.possible`, with the ends of each segment inside the cell; intervals without ends are left out."""
        column, use = self.columns[0], uses.get(self.columns[0], ColumnUse())
        name, low, high = quoted(column), quoted(f"{column}_low"), quoted(f"{column}_high")
        if use.every_value:
            listed = f"""
                select cell, {name}, {name} as {low}, {name} as {high}
                from ({self.listing(uses)}) as l where cell is null or cell.lower is not null"""
        else:
            first, last = "greatest(low, a)", "least(high, b)"
            inside = f"({first} < {last} or ({first} = {last} and a = b) or (low = high and a < low and low < b))"
            ends = f"""
                select cell, {self._number("cell.lower")} as low, {self._number("cell.upper")} as high
                from ({self.cells()}) as c"""
            listed = f"""
                select cell, {self._value(self._middle(first, last))} as {name}, {self._value(first)} as {low},
                  {self._value(last)} as {high}
                from ({ends}) as e, ({self._pieces(use.constants)}) as p
                where cell.lower is not null and {f"{first} <= {last}" if self.discrete else inside}
                union all select cell, null, null, null from ({self.cells()}) as c where cell is null"""
        columns = f", {name}, {low}, {high}" if needed else ""
        counted = f"select *, count(*) over (partition by cell) as total from ({listed}) as v"
        return f"""
            select cell{columns}, count(*) as hits, any_value(total) as total
            from ({counted}) as p{where_all(conditions)} group by all"""

    def _ends(self) -> str:
        """SELECT cell, low, high, nulls: ends as numbers, and how many NULLs an interval without ends stands for."""
        low, high = self._number("cell.lower"), self._number("cell.upper")
        return f"""
            select cell, coalesce({low}, min({low}) over ()) as low, coalesce({high}, max({high}) over ()) as high,
              case when cell.lower is null then {int(self.discrete)} else 0 end as nulls
            from ({self.cells()}) as c"""

    def _segments(self, use: ColumnUse) -> str:
        step = int(self.discrete)
        mean = self._middle("greatest(low, a)", "least(high, b)")
        extent = f"least(high, b) - greatest(low, a) + {step}"
        point = "(low = high and (a = low and b = low or a < low and low < b))"
        return f"""
            select cell, {self._value(mean)} as {quoted(self.columns[0])},
              case when high = low then 1.0 else ({extent})::double / (high - low + {step} + nulls) end as share
            from ({self._ends()}) as e, ({self._pieces(use.constants)}) as p
            where cell is not null and {f"{extent} > 0" if step else f"({extent} > 0 or {point})"}"""

    def _every_value(self) -> str:
        column = self.columns[0]
        many = when_run(f"intervals of {column} have over {MOST_LISTED} values")
        listed = f"""
            select cell, low, high, nulls, unnest(range(low::bigint,
              (case when high - low < {MOST_LISTED} then high else error('{many}') end)::bigint + 1)) as v
            from ({self._ends()}) as e where cell is not null"""
        return f"""
            select cell, {self._of_type("v")} as {quoted(column)}, 1.0 / (high - low + 1 + nulls) as share
            from ({listed}) as l"""

    def _learnt_values(self) -> str:
        return f"""
            select cell, {self._of_type("v")} as {quoted(self.columns[0])}, share from (
              select cell, unnest(found) as v, unnest(weights) as share from (
                select unnest(list(cell)) as cell, unnest(box_values(list(cell))) as found,
                  unnest(box_weights(list(cell), list(size))) as weights
                from ({self.counted_cells()}) as c) as l) as u"""

    def _learnt_segments(self, use: ColumnUse) -> str:
        ends = f"{self._learnt_end('a')}, {self._learnt_end('b')}{'' if self.discrete else ', 1, 0'}"
        pieces = f"select *, false as is_null from ({self._pieces(use.constants)})"
        # the mean of a point is the point, whatever rounding makes of moment / share
        mean = self._value("least(greatest(moment / share, a), b)")
        return f"""
            select cell, case when not is_null then {mean} end as {quoted(self.columns[0])}, share from (
              select is_null, a, b, unnest(list(cell)) as cell,
                unnest(box_shares(list(cell), list(size), [[{ends}]], false)) as share,
                unnest(box_means(list(cell), list(size), [[{ends}]], 1, 0)) as moment
              from ({self.counted_cells()}) as c, ({pieces}) as p group by a, b, is_null
              union all
              select true, 0, 0, unnest(list(cell)), unnest(box_shares(list(cell), list(size), [], true)), 0
              from ({self.counted_cells()}) as c
            ) as s where share > 0"""

    def _learnt_end(self, end: str) -> str:
        """An end of a segment for the functions that learn shares: NULL where there is none."""
        if self.discrete:
            return f"case when abs({end}) < {2**63 - 1} then {end}::bigint end"
        return f"case when isinf({end}) then null else {end} end"

    def _pieces(self, constants: Sequence[str]) -> str:
        """SELECT a, b: each constant as a point, and the segments between them.

        Segments of a counted type hold both ends; those of a measured one hold neither where it is a point too.
        """
        least, most = (f"({sign}{_FAR})::hugeint" if self.discrete else f"'{sign}inf'::double" for sign in ("-", ""))
        if not constants:
            return f"select {least} as a, {most} as b"
        cuts = ", ".join("{{'below': {}, 'above': {}}}".format(*self._cut(one)) for one in constants)
        listed = f"list_sort(list_distinct(list_filter([{cuts}], lambda x: x.below is not null)))"
        first, last = (f"{{'below': {end}, 'above': {end}}}" for end in (least, most))
        ends = f"list_concat([{first}], {listed}, [{last}])"
        points = f"select c.below, c.above from (select unnest({listed}) as c) as p where c.below = c.above"
        # a constant that is no value of the type cuts between its neighbours
        a, b = "low.above", "high.below"
        if self.discrete:
            a = "case when low.below = low.above then low.above + 1 else low.above end"
            b = "case when high.below = high.above then high.below - 1 else high.below end"
        return f"""
            select {a} as a, {b} as b from (select unnest({ends}[:-2]) as low, unnest({ends}[2:]) as high) as s
            union all {points}"""

    def _cut(self, constant: str) -> tuple[str, str]:
        """The largest value up to a constant and the least from it on; both are the constant where it is a value."""
        if self.discrete and self.kind.upper() != "DATE":
            return f"floor({constant})::hugeint", f"ceil({constant})::hugeint"
        return self._number(constant), self._number(constant)

    def _number(self, sql: str) -> str:
        """A value of the column, or a constant it is compared with, as a number on its line."""
        kind = self.kind.upper()
        if kind == "DATE":
            return f"(({sql})::date - date '1970-01-01')::hugeint"
        if is_moment(kind):
            function = "epoch_ns" if kind.endswith("_NS") else "epoch_us"
            return f"{function}(({sql})::{self.kind})::double"
        return f"({sql})::hugeint" if self.discrete else f"({sql})::double"

    def _middle(self, first: str, last: str) -> str:
        """The mean of a segment, exact for whole numbers."""
        if not self.discrete:
            return f"({first} + {last}) / 2"
        both = f"({first} + {last})"
        return f"((({both} - {both} % 2) // 2)::decimal(37,1) + ({both} % 2)::decimal(2,1) * 0.5)"

    def _value(self, sql: str) -> str:
        """A number on the line as something that compares as values of the column do."""
        kind = self.kind.upper()
        if kind == "DATE":
            return f"(date '1970-01-01' + floor({sql})::integer)"
        if kind.endswith("_NS"):
            return f"make_timestamp_ns(floor({sql})::bigint)::{self.kind}"
        if is_timestamp(kind):
            make = "make_timestamptz" if "TZ" in kind or "ZONE" in kind else "make_timestamp"
            return f"{make}(floor({sql})::bigint)::{self.kind}"
        if is_moment(kind):
            return f"(time '00:00:00' + to_microseconds(floor({sql})::bigint))::{self.kind}"
        return sql

    def _of_type(self, sql: str) -> str:
        """A whole number as a value of the column."""
        return f"date '1970-01-01' + {sql}::integer" if self.kind.upper() == "DATE" else f"{sql}::{self.kind}"
