"""Cells that are intervals, STRUCT(lower T, upper T) with both ends inside.

An interval is cut into the segments between the constants that a query compares the column with, each with its mean:
counts, sums and means are exact under the spread, and the width of an interval costs nothing. Where the query groups by
the column, joins on it or takes a function of it, whole numbers and dates are listed one by one.

Spread is even (uniform overlap: Zhang et al. 2007; Xiao and Tao 2006), or by shares that were learnt from all cells of
the column (Dempster, Laird and Rubin 1977) and stand in the text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from duckdb_anon.model.errors import when_run
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment, is_number, is_timestamp
from duckdb_anon.model.released_columns import OF_NULL, OF_RARE_NULL
from duckdb_anon.rewrite.factors import ColumnUse, GeneralizedFactor, NotLinearError, Uses, where_all
from duckdb_anon.rewrite.query.trees import literal, quoted

MOST_LISTED = 1_000_000
_INFINITE = 2**31 - 1  # days of an infinite date
_DIGITS = 18  # of a number that every type of whole numbers of 64 bits can hold
_FAR = 10**20  # beyond every whole number of 64 bits


@dataclass(frozen=True)
class IntervalFactor(GeneralizedFactor):
    """A column published as intervals of type `kind`.

    NULL is the value NULL. An interval without ends stands for records of which some are NULL: a share that is the same
    everywhere (`duckdb_anon.model.released_columns`). The others are spread over all that the other intervals cover.

    Attributes:
        kind: type of the ends.
        ends: the step that `ends_of_cells` was made, '' for none.
        outermost: SQL of the ends of intervals where no interval has any; such cells are refused without it.
    """

    kind: str = "INTEGER"
    ends: str = ""
    outermost: tuple[str, str] | None = None

    @property
    def discrete(self) -> bool:
        """Whether values are counted: whole numbers of up to 64 bits, and dates."""
        return (is_integer(self.kind) and "HUGE" not in self.kind.upper()) or self.kind.upper() == "DATE"

    def listing(self, uses: Uses) -> str:
        """Segments between constants, or every value of a counted type."""
        column = self.columns[0]
        use = uses.get(column, ColumnUse())
        if use.every_value and not self.discrete:
            raise NotLinearError(f"values of '{column}', intervals of a continuous type, cannot be listed")
        values = self._every_value() if use.every_value else self._segments(use)
        if not (use.constants or use.every_value or use.amounts):  # only whether it is NULL, which needs no ends
            values = (
                f"select _cell, {self._value('0')} as {quoted(column)}, 1 - of_null as _share from {self._ends} as e"
            )
            values += " where _cell is not null"
        null = f"""
            select _cell, null as {quoted(column)}, of_null as _share from {self._ends} as e where of_null > 0"""
        return f"{values} union all {null}"

    def open_cell(self, cell: str) -> str:
        """Intervals without ends cover everything."""
        return f"({cell} is not null and struct_extract({cell}, 'lower') is null)"

    def possible(self, uses: Uses, conditions: Sequence[str], needed: Collection[str]) -> str:
        """As `Factor.possible`, with the ends of each segment inside the cell; intervals without ends are left out."""
        column, use = self.columns[0], uses.get(self.columns[0], ColumnUse())
        name, low, high = quoted(column), quoted(f"_low_{column}"), quoted(f"_high_{column}")
        if use.every_value:
            listed = f"""
                select _cell, {name}, {name} as {low}, {name} as {high}
                from ({self.listing(uses)}) as l where _cell is null or _cell.lower is not null"""
        else:
            first, last = "greatest(low, a)", "least(high, b)"
            # NaN is the largest number, so segments reach from -infinity to NaN with both
            inside = (
                "case when a = b then low <= a and a <= high "
                "else (a < high or a = '-inf'::double) and (low < b or isnan(b)) end"
            )
            ends = f"""
                select _cell, {self._number("_cell.lower")} as low, {self._number("_cell.upper")} as high
                from ({self.cells()}) as c"""
            listed = f"""
                select _cell, {self._value(self._middle(first, last))} as {name},
                  case when a <= low then _cell.lower else {self._value(first)} end as {low},
                  case when b >= high then _cell.upper else {self._value(last)} end as {high}
                from ({ends}) as e, ({self._pieces(use.constants, "nan")}) as p
                where _cell.lower is not null and {f"{first} <= {last}" if self.discrete else inside}
                union all select _cell, null, null, null from ({self.cells()}) as c where _cell is null"""
        columns = f", {name}, {low}, {high}" if needed else ""
        counted = f"select *, count(*) over (partition by _cell) as _total from ({listed}) as v"
        return f"""
            select _cell{columns}, count(*) as _hits, any_value(_total) as _total
            from ({counted}) as p{where_all(conditions)} group by all"""

    def most_values(self, uses: Uses) -> str:
        """As `Factor.most_values`: constants, the segments between them, and NULL."""
        use = uses.get(self.columns[0], ColumnUse())
        if not use.every_value:
            return str(2 * len(use.constants) + 2)
        if not self.discrete:
            return ""
        low, high = (self._number(f"({self.cell}).{end}") for end in ("lower", "upper"))
        opened = self.open_cell(self.cell)
        return f"case when bool_or({opened}) then {_FAR} else max({high} - {low}) + 2 end"

    def numbers_of_values(self, text: str, uses: Uses, conditions: Sequence[str]) -> str:
        """As `Factor.numbers_of_values`, from the ends where every value is listed."""
        if conditions or not uses.get(self.columns[0], ColumnUse()).every_value or not self.discrete:
            return super().numbers_of_values(text, uses, conditions)
        return (
            f"select _cell, (coalesce(high - low + 1, 0) + (of_null > 0)::integer)::double as n from {self._ends} as e"
        )

    @property
    def _ends(self) -> str:
        return self.ends or f"({self.ends_of_cells()})"

    def ends_of_cells(self) -> str:
        """SELECT _cell, low, high, of_null: ends as numbers, and the share of the records that are NULL."""
        low, high = self._number("_cell.lower"), self._number("_cell.upper")
        why = f"no interval of {self.columns[0]} has ends: its NULLs are in every class. Release without them"
        least, most = map(self._number, self.outermost) if self.outermost else 2 * (f"error({literal(when_run(why))})",)
        alone, few = map(_number_text, (OF_NULL, OF_RARE_NULL))
        return f"""
            select _cell, case when _cell is not null then coalesce({low}, min({low}) over (), {least}) end as low,
              case when _cell is not null then coalesce({high}, max({high}) over (), {most}) end as high,
              case when _cell is null then 1e0 when _cell.lower is not null then 0e0
                when count(_cell) over () < count(*) over () then {alone} else {few} end as of_null
            from ({self.cells()}) as c"""

    def _segments(self, use: ColumnUse) -> str:
        """SELECT of the pieces of each cell between the constants, with a mean and a share each."""
        if self.shares:
            return self._learnt_segments(use)
        step = int(self.discrete)
        first, last = "greatest(low, a)", "least(high, b)"
        extent = f"{last} - {first} + {step}"
        point = "(low = high and (a = low and b = low or a < low and low < b))"
        # values of a piece compare alike, so that any of a counted type stands for those that are only compared
        mean = first if self.discrete and not use.amounts else self._middle(first, last)
        segments = f"""
            select _cell, {mean} as mean, {first} as first, {last} as last,
              (1 - of_null) * case when high = low then 1.0
                else ({extent})::double / (high - low + {step}) end as _share
            from {self._ends} as e, ({self._pieces(use.constants)}) as p
            where _cell is not null and {f"{extent} > 0" if step else f"({extent} > 0 or {point})"}"""
        return self._of_segments(segments)

    def _of_segments(self, segments: str) -> str:
        """SELECT _cell, the column, _share of segments with a mean."""
        return f"select _cell, {self._value('mean')} as {quoted(self.columns[0])}, _share from ({segments}) as s"

    def _every_value(self) -> str:
        column = self.columns[0]
        many = literal(when_run(f"intervals of {column} have over {MOST_LISTED} values"))
        extent = f"(case when high - low < {MOST_LISTED} then last - first + 1 else error({many}) end)::bigint"
        parts = f"""
            select _cell, low as first, high as last, low, high, of_null, 1.0 / (high - low + 1) as density
            from {self._ends} as e"""
        if self.shares:
            # a cell is cut where the density changes before its values are listed, so that no value is looked up
            first, last = "greatest(low, first_value)", "least(high, last_value)"
            parts = f"""
                select _cell, {first} as first, {last} as last, low, high, of_null,
                  density / sum(density * ({last} - {first} + 1)) over (partition by _cell) as density
                from {self._ends} as e join {self.shares} on first_value <= high and last_value >= low"""
        return f"""
            select _cell, {self._of_type("first + place")} as {quoted(column)}, density * (1 - of_null) as _share
            from (select *, unnest(range({extent})) as place from ({parts}) as p where _cell is not null) as l"""

    def learnt_shares(self) -> str:
        """Segments of the column; times of day are spread evenly."""
        learns = is_number(self.kind) or self.kind.upper() == "DATE" or is_timestamp(self.kind)
        if not self.learnt or not learns:
            return ""
        kind, given, function = "double", "double", "learnt_segments"
        if self.discrete:
            kind, given, function = self._integer_type, "bigint", "learnt_ranges"
        cells = f"""
            select {self._number("_cell.lower")} as low, {self._number("_cell.upper")} as high, size
            from ({self.counted_cells()}) as c where _cell.lower is not null"""
        ends = f"'low': try_cast(c.low as {given}), 'high': try_cast(c.high as {given})"
        far = 10**18  # where no interval has ends
        first, last = f"coalesce(min(c.low), -{far})::{given}", f"coalesce(max(c.high), {far})::{given}"
        even = f"'first_value': {first}, 'last_value': {last}, 'density': 1e0"
        return f"""
            select s.d.first_value::{kind} as first_value, s.d.last_value::{kind} as last_value, s.d.density as density
            from (select unnest(coalesce({function}(list({{{ends}, 'size': c.size::double}})), [{{{even}}}])) as d
              from ({cells}) as c) as s"""

    def _learnt_segments(self, use: ColumnUse) -> str:
        """As `_segments`: each piece of a cell is cut at the ends of the learnt segments."""
        # pieces of learnt segments come first: there are thousands of both when many queries are answered at once
        extent = f"(least(high, d.last) - greatest(low, d.first) + {int(self.discrete)})"
        pieces = f"""
            select a, b, greatest(a, first_value) as first, least(b, last_value) as last, density
            from {self.shares} as s, ({self._pieces(use.constants)}) as p
            where greatest(a, first_value) <= least(b, last_value)"""
        parts = f"""
            select _cell, a, b, greatest(low, d.first) as first, least(high, d.last) as last,
              (1 - of_null) * {extent} * density / sum({extent}::double * density) over (partition by _cell) as mass
            from {self._ends} as e join ({pieces}) as d on d.first <= high and d.last >= low
            where _cell is not null and {extent} > 0"""
        ends = "min(first)", "max(last)"
        middle = f"sum(mass * ({self._middle('first', 'last')})::double) / sum(mass)"
        compared = ends[0] if self.discrete else self._middle(*ends)
        mean = f"least(greatest({middle}, {ends[0]}), {ends[1]})" if use.amounts else compared
        segments = f"""
            select _cell, {mean} as mean, {ends[0]} as first, {ends[1]} as last, sum(mass) as _share
            from ({parts}) as m group by _cell, a, b"""
        if self.discrete:
            return self._of_segments(segments)
        points = f"""
            select _cell, low as mean, low as first, low as last, 1 - of_null as _share
            from {self._ends} as e, ({self._pieces(use.constants)}) as p
            where low = high and (a = low and b = low or a < low and low < b)"""
        return self._of_segments(f"{segments} union all {points}")

    def _pieces(self, constants: Sequence[str], largest: str = "inf") -> str:
        """SELECT a, b: each constant as a point, and the segments between them up to the largest number.

        Segments of a counted type hold both ends, NULL where there is none; those of a measured one hold neither where
        it is a point too.
        """
        least, most = "'-inf'::double", f"'{largest}'::double"
        if self.discrete:
            least, most = f"({-_FAR})::hugeint", f"{_FAR}::hugeint"
        if not constants:
            whole = ("null", "null") if self.discrete else (least, most)
            return f"select {whole[0]}::{self._line_type} as a, {whole[1]}::{self._line_type} as b"
        cuts = ", ".join(f"({below}, {above})" for below, above in map(self._cut, constants))
        points = f"select distinct * from (values {cuts}) as c(below, above) where below is not null"
        ends = f"values ({least}, {least}), ({most}, {most})"
        # a constant that is no value of the type cuts between its neighbours
        local, following = "(below = above)::integer", "lead((below = above)::integer) over (order by below)"
        a, b = "above", "lead(below) over (order by below)"
        if self.discrete:
            a, b = f"nullif({a} + {local}, {1 - _FAR})", f"nullif({b} - {following}, {_FAR - 1})"
        return f"""
            select {a} as a, {b} as b from ({points} union {ends}) as cuts
            qualify lead(below) over (order by below) is not null
            union all select below, above from ({points}) as points where below = above"""

    def _cut(self, constant: str) -> tuple[str, str]:
        """The largest value up to a constant and the least from it on; both are the constant where it is a value."""
        if self.discrete and self.kind.upper() != "DATE":
            if constant.removeprefix("-").isdecimal() and len(constant) <= _DIGITS:
                return f"{constant}::hugeint", f"{constant}::hugeint"
            far = f"case when {constant} > 0 then {_FAR} when {constant} < 0 then -{_FAR} end"
            near = f"coalesce(try_cast({constant} as hugeint), {far})::hugeint"
            return f"{near} - ({near} > {constant})::integer", f"{near} + ({near} < {constant})::integer"
        return self._number(constant), self._number(constant)

    def _number(self, sql: str) -> str:
        """A value of the column, or a constant it is compared with, as a number on its line."""
        kind = self.kind.upper()
        if kind == "DATE":
            days = f"({sql})::date - date '1970-01-01'"
            return (
                f"(case when isfinite(({sql})::date) then {days} when ({sql})::date > date '1970-01-01' "
                f"then {_INFINITE} when ({sql}) is not null then -{_INFINITE} end)::bigint"
            )
        if is_moment(kind):
            function = "epoch_ns" if kind.endswith("_NS") else "epoch_us"
            return f"{function}(({sql})::{self.kind})::double"
        return f"({sql})::{self._integer_type}" if self.discrete else f"({sql})::double"

    @property
    def _integer_type(self) -> str:
        """A type of whole numbers in which two values can be added."""
        return "hugeint" if "BIGINT" in self.kind.upper() else "bigint"

    @property
    def _line_type(self) -> str:
        return self._integer_type if self.discrete else "double"

    def _middle(self, first: str, last: str) -> str:
        """The mean of a segment, exact for whole numbers."""
        if not self.discrete or self._integer_type == "bigint":
            return f"({first} + {last}) / 2.0"
        both = f"({first} + {last})"
        return f"((({both} - {both} % 2) // 2)::decimal(37,1) + ({both} % 2)::decimal(2,1) * 0.5)"

    def _value(self, sql: str) -> str:
        """A number on the line as something that compares as values of the column do."""
        kind = self.kind.upper()
        if kind == "DATE":
            return self._date(f"floor({sql})")
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
        return self._date(sql) if self.kind.upper() == "DATE" else f"({sql})::{self.kind}"

    @staticmethod
    def _date(days: str) -> str:
        """The date so many days after 1970."""
        return (
            f"case when abs({days}) < {_INFINITE} then date '1970-01-01' + ({days})::integer "
            f"when {days} > 0 then date 'infinity' when {days} < 0 then date '-infinity' end"
        )


def _number_text(number: float) -> str:
    """A number as SQL: a double with all of its digits, which is no decimal."""
    return repr(number) if isinstance(number, int) or "e" in repr(number) else f"{number!r}e0"
