"""Mutual cover of individuals in joined tables: what an attacker knows is permuted inside groups of individuals.

The kernel (`kernels.permutation.linked_records`) sees codes. Values stay in DuckDB: a table `values` of each column
numbers the distinct ones, rows go to the kernel as these numbers and come back with other ones, so that types stay.
Dates of a row, or of it and its parent, that determine each other within a week move together: intervals stay.
Cost: a join with the distinct values of each column, there and back, and that of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from duckdb_anon.database.dates import go_together
from duckdb_anon.database.plan import NAME, Table
from duckdb_anon.database.work import Work
from duckdb_anon.engine.input_sql import as_texts
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.engine.transport.column_coding import code_column
from duckdb_anon.engine.transport.hierarchy_io import read_tree
from duckdb_anon.kernels.attacks.linked_records import Covered
from duckdb_anon.kernels.permutation.linked_records import Kept, Rows, kept_rows, linked_groups, permuted_tables
from duckdb_anon.kernels.permutation.permute_within_groups import permuted_codes
from duckdb_anon.kernels.rng_streams import generator
from duckdb_anon.model.coded_table import Attribute, IntArray
from duckdb_anon.model.errors import AnonError, ColumnError
from duckdb_anon.model.function_specs import ColumnInfo

_GIVEN = "_anon_given"


@dataclass(frozen=True)
class _Read:
    """Tables as the kernel sees them, of some individuals."""

    individuals: IntArray  # their numbers, ascending
    tables: Sequence[Table]  # the first may lack columns: it stands for the individuals
    rows: list[Rows] = field(default_factory=list)
    numbers: list[IntArray] = field(default_factory=list)  # number of each row
    values: list[list[IntArray]] = field(default_factory=list)  # row of `values` that each code of a column stands for
    attached: list[Rows] = field(default_factory=list)  # of tables without known columns


def number_values(work: Work, tables: Sequence[Table]) -> None:
    """Number the values of every column that the kernel sees."""
    for table in tables:
        for name in _coded(table):
            work.con.execute(
                f"create or replace table {_values(work, table, name)} as select row_number() over () - 1 as code, v "
                f"from (select distinct {ident(name)} as v from {work.of(table)})"
            )


def cover(work: Work, tables: Sequence[Table], least: int, *, again: bool) -> None:
    """Cut the individuals in table `cut` into groups, and permute the known columns of all of them inside theirs.

    `again`: whether the other individuals stay in the groups that they have.
    """
    con, read = work.con, _read(work, tables, work.cut)
    group = linked_groups(read.rows, least)
    if again:
        con.execute(f"delete from {work.boxes} where _anon_i in (select i from {work.cut})")
        [(first,)] = con.execute(f"select coalesce(max(_anon_c), -1) + 1 from {work.boxes}").fetchall()
        _write(work, {"_anon_c": first + group, "_anon_i": read.individuals}, f"insert into {work.boxes} from {_GIVEN}")
        read = _read(work, tables, work.wide)
        groups = _fetched(work, f"select _anon_c as c from {work.boxes} order by _anon_i")["c"]
        group = np.unique(groups, return_inverse=True)[1]
    else:
        columns = {"_anon_c": group, "_anon_i": read.individuals}
        _write(work, columns, f"create or replace table {work.boxes} as from {_GIVEN}")
    _permute(work, tables, read, group)


def _permute(work: Work, tables: Sequence[Table], read: _Read, group: IntArray) -> None:
    """Write the rows that are kept of each known table, with their permuted values."""
    rng = generator(None)
    kept = kept_rows(read.rows, group, rng)
    sources = permuted_tables(read.rows, kept, rng, calibrate=True)
    work.covered[:] = [Covered(read.rows, kept, sources, group, read.attached)]
    places: list[IntArray] = []
    for k, (table, rows, source) in enumerate(zip(read.tables, kept, sources, strict=True)):
        individual = read.rows[k].individual[rows.row]
        places.append(_places(rows, group[individual]))
        above = places[read.rows[k].parent][rows.parent] if k else places[0]
        columns = {"n": read.numbers[k][rows.row], "i": read.individuals[individual], "s": places[k], "ps": above}
        for c, attribute in enumerate(read.rows[k].columns):
            codes = permuted_codes(attribute.codes[rows.row], source[c], rows.cell)
            if codes is None:
                raise AnonError(f"{NAME}: a column left its groups. Nothing is released. Report this as an error")
            columns[f"c{c}"] = read.values[k][c][codes]
        if table in tables and table.known:
            names = [info.name for info in table.known]
            items = "".join(f", v{c}.v as {released_column(c)}" for c, _ in enumerate(names))
            _write(
                work, columns,
                f"create or replace table {work.of(table, 'kept')} as select n as _anon_n, i as _anon_i, s as _anon_s, "
                f"ps as _anon_ps{items} from {_GIVEN} as t{_joined(work, table, names, 't.c{c} = v{c}.code')}",
            )  # fmt: skip


def _write(work: Work, columns: Mapping[str, IntArray], statement: str) -> None:
    """Run a statement that reads columns as a table."""
    work.con.register(_GIVEN, pa.table(dict(columns)))
    try:
        work.con.execute(statement)
    finally:
        work.con.unregister(_GIVEN)


def released_column(place: int) -> str:
    """The column of `kept` with the released values of a known column."""
    return f"_anon_v{place}"


def _places(rows: Kept, group: IntArray) -> IntArray:
    """Number of each row's cell among those of its group."""
    first = np.full(int(group.max(initial=-1)) + 1, len(rows.start))
    np.minimum.at(first, group, rows.cell)
    places: IntArray = rows.cell - first[group]
    return places


def _coded(table: Table) -> dict[str, ColumnInfo]:
    """Columns that the kernel sees: the known ones, and those that leave unchanged, from which an attacker learns."""
    unchanged, others = table.unchanged(), (*table.roles.sensitive, *table.roles.keep)
    return {info.name: info for info in (*table.known, *(info for info in others if info.name in unchanged))}


def _values(work: Work, table: Table, name: str) -> str:
    return work.of(table, f"values of {name}")


def _joined(work: Work, table: Table, names: Iterable[str], on: str) -> str:
    """SQL that joins the values of some columns."""
    joins = [f" join {_values(work, table, n)} as v{c} on {on.format(c=c, n=ident(n))}" for c, n in enumerate(names)]
    return "".join(joins)


def _read(work: Work, tables: Sequence[Table], members: str) -> _Read:
    """Read the known tables of some individuals."""
    first = work.plan.individuals
    known = [table for table in tables if table.known and table is not first]
    individuals = _fetched(work, f"select i from {members} order by i")["i"]
    read = _Read(individuals, [first, *known])
    attached = [table for table in tables if not table.known and table is not first and _coded(table)]
    for table in (*read.tables, *attached):
        names = _coded(table) if table in tables else {}
        items = "".join(f", v{c}.code as c{c}" for c, _ in enumerate(names))
        found = _fetched(
            work,
            f"select t._anon_i as i, t._anon_n as n, coalesce(t._anon_p, -1) as p{items} from {work.of(table)} as t "
            f"semi join (select i as _anon_i from {members}) using (_anon_i)"
            + _joined(work, table, names, "t.{n} is not distinct from v{c}.v"),
        )
        order = np.argsort(found["n"], kind="stable")
        number, individual = found["n"][order], np.searchsorted(individuals, found["i"][order])
        parent = work.parent(table)
        above = read.tables.index(parent) if parent in known and parent is not None else 0
        parent_row = np.searchsorted(read.numbers[above], found["p"][order]) if above else individual
        columns: list[list[Attribute]] = [[], []]
        values = []
        for c, info in enumerate(names.values()):
            is_known = info in table.known
            with suppress(*(() if is_known else (ColumnError,))):  # nested values are not counted
                attribute = _attribute(work, table, info)
                columns[not is_known].append(attribute.with_codes(attribute.codes[found[f"c{c}"][order]]))
                values.append(attribute.first_row)
        if table in attached:
            read.attached.append(Rows(above, parent_row, individual, (), (), columns[1]))
            continue
        together = go_together(work, table, read.tables[above]) if names else []
        read.numbers.append(number)
        read.values.append(values)
        read.rows.append(
            Rows(-1 if table is first else above, parent_row, individual, columns[0], together, columns[1])
        )
    return read


def _fetched(work: Work, query: str) -> dict[str, IntArray]:
    """Columns of whole numbers without NULL."""
    return {name: np.asarray(column, dtype=np.int64) for name, column in work.con.execute(query).fetchnumpy().items()}


def _attribute(work: Work, table: Table, info: ColumnInfo) -> Attribute:
    """The values of a column as codes, in the order of table `values`."""
    con, cast = work.con, as_texts(table.relation.columns[info.name])
    values = con.sql(f"select v{cast} as v from {_values(work, table, info.name)} order by code").to_arrow_table()
    tree = None
    if info.hierarchy:
        levels = con.sql(f"select columns(*)::varchar from {info.hierarchy}").to_arrow_table()
        tree = read_tree(NAME, info.hierarchy, levels.columns)
    return code_column(NAME, info.name, values.column(0).combine_chunks(), info.kind, tree)
