"""Cells to SQL: the first half of one walk.

While planning, `Decoder` walks the layout and writes the SQL that reads the lists the kernel will send.
While running, `packing.Packer` walks the same layout and fills those lists. Both visit the columns in the same
order and ask for lists in the same order, so that a list's number is its meaning.

The kernel's answer is one struct: `i` lists of integers, `d` lists of doubles, `s` lists of texts, `l` lists
of integer lists, and the number under which SQL draws off what there is one of for each released row (`drawn_off`).
Codes travel as the row number of a row that has the value, once a code, so every value is read from the source and
keeps its type. New values travel as text, once a value, and are cast to the type of their column when the call runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from duckdb_anon.engine.drawn_off import CODES, REAL, RUN, WHOLE
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model import released_columns as c
from duckdb_anon.model.function_specs import ColumnPlan

_CONSTANT = "_anon_const._k"
_NOBODY = "select range as _ord from range(100000) where range < 0"
"""No rows, of which DuckDB expects thousands. It cannot know how many rows a release has, and of a join of one row with
one it may read the smaller side row by row, and hand the rows over in any order."""
_DISORDER = literal("the groups of a release came out of order; this is an error of the package, not of the call")
_RAREST = 1000
"""One row in as many as the domains have values, and in so many at most, says how the release was randomized: DuckDB
stores and copies a list once a row, and fewer rows than values tell nothing of a distribution anyway."""
_MOST_TOLD = 2
"""Values of domains that are told a row, at most: the names of 200,000 people said every 1000 rows were 14 kB a row."""


@dataclass
class Decoder:
    """Writes the decoding SQL for one layout.

    Values are looked up where the rows are few: once a group for framed cells, once a row for others, and
    always before a join, so that the value lists stay single constants.

    Attributes:
        looked_up: coded columns that are released as they are by their codes.
        beside: whether several threads decode rows, see `layout.cells_apart`.
    """

    looked_up: Collection[str] = ()
    beside: bool = False
    counts: dict[str, int] = field(default_factory=lambda: {"i": 0, "d": 0, "s": 0, "l": 0})
    row_lists: list[str] = field(default_factory=list)
    row_cells: list[tuple[str, int]] = field(default_factory=list)
    row_values: list[str] = field(default_factory=list)
    frames: dict[str, _Frame] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    dictionaries: dict[str, tuple[int, str]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    new: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, kind: str) -> str:
        """Ask for the next list of `kind`; return the SQL that reads it from `_anon_r`."""
        self.counts[kind] += 1
        return f"r.{kind}[{self.counts[kind]}]"

    def row(self, kind: str) -> str:
        """Ask for a list with one entry a released row; return its name inside `_anon_cells`."""
        name = f"_c{len(self.row_lists)}"
        self.row_lists.append(f"unnest({self.ask(kind)}) as {name}")
        return name

    def cell(self, function: str = CODES) -> str:
        """Have `function` draw off one cell a released row; return its name inside `_anon_cells`."""
        number = sum(other == function for other, _ in self.row_cells)
        self.row_cells.append((function, number))
        return f"_e{len(self.row_cells) - 1}"

    def value(self, sql: str) -> str:
        """Have `sql` computed once a released row; return the column to select."""
        self.row_values.append(sql)
        return f"_anon_cells._x{len(self.row_values) - 1}"

    def frame(self, name: str) -> _Frame:
        """The frame `name`, asking for its index and its number of groups the first time."""
        if name not in self.frames:
            self.frames[name] = _Frame(f"_anon_f{len(self.frames)}", self.cell(), self.ask("i") + "[1]")
        return self.frames[name]

    def grouped(self, frame: str, kind: str) -> str:
        """Ask for a list with one entry a group of `frame`; return its name inside the frame."""
        lists = self.frame(frame).lists
        lists.append(f"unnest({self.ask(kind)}) as _v{len(lists)}")
        return f"_v{len(lists) - 1}"

    def dictionary(self, attribute: str, declared_type: str = "", *, new: bool = False) -> str:
        """SQL of the list of values of `attribute`, by code.

        Values that no row has follow: with a type, those the column declares; with `new`, those the method makes.

        Args:
            attribute: name of the attribute.
            declared_type: DuckDB type, where cells may hold values that no row has.
            new: whether new values follow.
        """
        if attribute not in self.dictionaries:
            self.ask("i")
            number = self.counts["i"]
            more = f"(select {self.ask('s')}::{declared_type}[] from _anon_r)" if declared_type else ""
            more = f"(select {self._new_values(attribute).partition('.')[2]} from _anon_new)" if new else more
            self.dictionaries[attribute] = (number, more)
        return f"_anon_dict.d{self.dictionaries[attribute][0]}"

    def column(self, plan: ColumnPlan) -> str:
        """SQL expression of one released column, for the final SELECT."""
        attribute = plan.column or plan.name
        if plan.cells is c.Struct and all(f.cells is c.Channel for f in plan.fields):
            return self.constant("{" + ", ".join(f"{literal(f.name)}: {self._channel(f)}" for f in plan.fields) + "}")
        if plan.cells is c.Channel:
            return self.constant(self._channel(plan))
        if plan.cells is c.Struct:
            return "{" + ", ".join(f"{literal(f.name)}: {self.column(f)}" for f in plan.fields) + "}"
        if plan.cells is c.Source and attribute in self.looked_up:
            return self.value(f"{self.dictionary(attribute)}[{self.cell()} + 1]")
        if plan.cells is c.Source:
            if plan.frame not in self.sources:
                self.sources[plan.frame] = self.value(self.cell(WHOLE))
            return f"_anon_s{list(self.sources).index(plan.frame)}.{ident(attribute)}"
        if plan.cells is c.Value:
            return self.value(f"{self._new_values(attribute)}[{self.cell()} + 1]")
        if plan.cells in (c.Whole, c.Real):
            return self.value(self.cell(WHOLE if plan.cells is c.Whole else REAL))
        if plan.cells in (c.Node, c.NodeSet):
            self.frame(plan.frame)
            labels = self.ask("s")
            if plan.cells is c.Node:
                return self._framed(plan, f"{labels}[{self.grouped(plan.frame, 'i')} + 1]")
            return self._framed(plan, f"list_select({labels}, {self.grouped(plan.frame, 'l')})")
        return self._valued(plan, self.dictionary(attribute, plan.declared_type, new=plan.cells is c.Interval))

    def _new_values(self, attribute: str) -> str:
        """SQL of the list of new values of one column: their texts, cast to the type it has when the call runs."""
        self.new.append((self.ask("s"), attribute))
        return f"_anon_new.v{len(self.new) - 1}"

    def constant(self, sql: str) -> str:
        """Have `sql` computed once; return the column to select."""
        self.constants.append(sql)
        return f"{_CONSTANT}{len(self.constants) - 1}"

    def _channel(self, plan: ColumnPlan) -> str:
        values = self.dictionary(plan.column or plan.name, plan.declared_type)
        p, codes = f"{self.ask('d')}[1]", f"{self.ask('l')}[1]"
        self.domains.append(f"len({codes})")
        return f"{{'p': {p}, 'domain': list_select({values}, {codes})}}"

    def _framed(self, plan: ColumnPlan, sql: str) -> str:
        frame = self.frame(plan.frame)
        frame.values.append(sql)
        return self.value(f"{frame.table}._y{len(frame.values) - 1}[{frame.index} + 1]")

    def _valued(self, plan: ColumnPlan, values: str) -> str:
        if plan.cells is c.Coded:
            return self.value(f"{values}[{self.cell()} + 1]")
        if plan.cells is c.Interval:
            lower, upper = self.grouped(plan.frame, "i"), self.grouped(plan.frame, "i")
            box = f"{{'lower': {values}[{lower} + 1], 'upper': {values}[{upper} + 1]}}"
            return self._framed(
                plan, f"case when {lower} >= 0 and {values}[{lower} + 1] is null then null else {box} end"
            )
        codes = self.grouped(plan.frame, "l")
        if plan.cells is c.ValueSet:
            return self._framed(plan, f"list_select({values}, {codes})")
        return self._framed(plan, f"map(list_select({values}, {codes}), {self.grouped(plan.frame, 'l')}::bigint[])")

    def sql(self, columns: Mapping[str, str]) -> str:
        """CTEs and SELECT around the column expressions; `_anon_src` and `_anon_run` stand before it."""
        constant = [name for name, used in (("_anon_dict", self.dictionaries), ("_anon_new", self.new)) if used]
        values = "".join(f", {name}" for name in constant)
        looked_up = "".join(f", {sql} as _x{k}" for k, sql in enumerate(self.row_values))
        parts = [
            "_anon_r as materialized (select r from _anon_run where "
            "case when r.error is null then true else error(r.error) end)",
            *self._new_value_ctes(),
            *self._dictionary_ctes(),
            *(frame.sql(constant) for frame in self.frames.values()),
        ]
        if self.constants:
            constants = ", ".join(f"{sql} as _k{k}" for k, sql in enumerate(self.constants))
            told = " + ".join(self.domains)
            told_by = f"greatest(1, least({_RAREST}, {told}), ({told}) // {_MOST_TOLD}) as _told_by"
            parts.append(f"_anon_const as materialized (select {constants}, {told_by} from _anon_r{values})")
        constant = _read_by(self.row_values, constant)
        # beside rows that are to be sorted it would be sorted once a row
        constant += ["_anon_const"] if self.constants and not self.sources else []
        parts += self._rows([*constant, *(frame.table for frame in self.frames.values())])
        beside = ", _anon_const" if "_anon_const" in constant else ""
        parts.append(f"_anon_cells as (select _ord{looked_up}{beside} from _anon_rows)")
        joins = ["_anon_cells"]
        for k, source in enumerate(self.sources.values()):
            joins.append(f"left join _anon_src as _anon_s{k} on _anon_s{k}._anon_rn = {source}")
        varying = {name: sql for name, sql in columns.items() if not sql.startswith(_CONSTANT)}
        released = ", ".join(f"{sql} as {ident(name)}" for name, sql in varying.items())
        released += f", _anon_cells._ord as _anon_ord{beside}" if self.constants else ""
        # joins may hand rows over in the order of the source; the kernel's order is the shuffled one
        ordered = " order by _anon_cells._ord" if self.sources else ""
        rows = f"select {released}\nfrom {' '.join(joins)}{ordered}"
        if self.constants:
            told = "case when _anon_ord % _anon_const._told_by = 0 then {} end"
            each = ", ".join(f"{ident(n) if n in varying else told.format(columns[n])} as {ident(n)}" for n in columns)
            rows = f"select {each} from ({rows}) as _anon_out" + ("" if beside else " cross join _anon_const")
        return ",\n".join(parts) + f"\n{rows}"

    def _rows(self, constant: Sequence[str]) -> list[str]:
        """The CTEs of one row for each released one, with what was asked for of it, and `constant` beside it.

        What is constant comes before the rows are unnested: of a cross join with as few rows as it expects, DuckDB may
        materialize either side. Rows that are drawn off are few bytes of codes, and kept: if they were drawn off while
        the result is read, Python would be called on DuckDB's threads, for which a thread that drops the rest of the
        result, and with it holds the GIL, waits for ever. A sort ends that before the first row too.

        What is sorted is read by several threads and still comes in its order; what a CTE keeps is not. The sort is
        hardly work, for the rows are in order. But what is constant is then copied for each 2048 of them, so it must be
        small.
        """
        first = bool(self.row_cells) and not self.sources
        beside = [f"{table} as {table}" for table in constant]
        read = ", ".join(["_anon_r", *([] if first else constant)])
        if not self.row_cells:
            listed = ", ".join(["unnest(range(r.n)) as _ord", *self.row_lists, *beside])
            return [f"_anon_rows as (select {listed} from {read})"]
        drawn = [
            f"unnest({function}({{rows: _rows, place: {place}, row: _run}})) as _e{k}"
            for k, (function, place) in enumerate(self.row_cells)
        ]
        drawn = [f"unnest(range(_run, least(_run + {RUN}, _n))) as _ord", *drawn, *([] if first else constant)]
        # what is sorted afterwards may be drawn off by two threads, each from its own half
        middle = f"r.n // {2 * RUN} * {RUN}"
        halves = (f"0, {middle}", f"{middle}, r.n") if first and self.beside else ("0, r.n",)
        each = []
        for half in halves:
            runs = ["r.rows as _rows", "r.n as _n", f"unnest(range({half}, {RUN})) as _run", *([] if first else beside)]
            each.append(f"select {', '.join(drawn)} from (select {', '.join(runs)} from {read}) as _anon_runs")
        sql = " union all ".join(each)
        if not first:
            return [f"_anon_rows as ({sql})"]
        kept = f"(from (from _anon_kept union all by name {_NOBODY}) order by _ord) as _anon_kept"
        tables = [kept if self.beside else "_anon_kept", *constant]
        joined = f"select {', '.join(['_anon_kept.*', *beside])} from {', '.join(tables)}"
        return [f"_anon_kept as materialized ({sql})", f"_anon_rows as ({joined})"]

    def _new_value_ctes(self) -> list[str]:
        """The lists of new values. An empty list of a column's own values lends its type to the cast."""
        if not self.new:
            return []
        types = ", ".join(f"list({ident(attribute)}) as t{k}" for k, (_, attribute) in enumerate(self.new))
        lists = ", ".join(f"cast_to_type({texts}, t{k}) as v{k}" for k, (texts, _) in enumerate(self.new))
        return [
            f"_anon_types as (select {types} from (select * from _anon_src limit 0) as _anon_none)",
            f"_anon_new as materialized (select {lists} from _anon_r, _anon_types)",
        ]

    def _dictionary_ctes(self) -> list[str]:
        if not self.dictionaries:
            return []
        each = [
            f"select {k} as _a, unnest(r.i[{k}]) as _rn, generate_subscripts(r.i[{k}], 1) as _k from _anon_r"
            for k, _ in self.dictionaries.values()
        ]
        lists = []
        for attribute, (k, more) in self.dictionaries.items():
            found = f"list(_s.{ident(attribute)} order by _anon_reps._k) filter (where _anon_reps._a = {k})"
            lists.append((f"list_concat({found}, {more})" if more else found) + f" as d{k}")
        return [
            f"_anon_reps as ({' union all '.join(each)})",
            f"_anon_dict as materialized (select {', '.join(lists)} from _anon_reps join _anon_src as _s "
            "on _s._anon_rn = _anon_reps._rn)",
        ]


@dataclass
class _Frame:
    """Cells that share one group index: their lists, and what is looked up once a group."""

    table: str
    index: str
    groups: str
    lists: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)

    def sql(self, constant: Sequence[str]) -> str:
        constant = _read_by(self.values, constant)
        # values and labels stand beside the lists before these are unnested: DuckDB would keep what it joins with
        labels = ["_anon_r.r as r"] if any("r.s[" in sql for sql in self.values) else []
        beside = [*labels, *(f"{table} as {table}" for table in constant)]
        unnested = ", ".join([f"unnest(range({self.groups})) as _g", *self.lists, *beside])
        looked_up = "".join(f", {sql} as _y{k}" for k, sql in enumerate(self.values))
        values = f"select _g{looked_up} from (select {unnested} from {', '.join(['_anon_r', *constant])}) as _u"
        # one row is unnested by one thread, in order, and a list that sorts would hold all values once more
        lists = ", ".join(f"list(_y{k}) as _y{k}" for k in range(len(self.values)))
        told = ", ".join(f"_y{k}" for k in range(len(self.values)))
        return (
            f"{self.table} as materialized (select {told} from (select {lists}, list(_g) as _g from ({values}) as _w) "
            f"as _v where case when coalesce(_g = range(len(_g)), true) then true else error({_DISORDER}) end)"
        )


def _read_by(expressions: Sequence[str], tables: Sequence[str]) -> list[str]:
    """Those of the tables of one row that are read: the optimizer tries every order in which tables can be joined."""
    return [table for table in tables if any(f"{table}." in sql for sql in expressions)]
