"""A call that will not fit says so before it starts, with the command that will work.

Two bounds: memory (`memory`), against DuckDB's own `memory_limit`, and the int32 offsets of the list that numbers the
released rows. Rows are estimated first, as DuckDB's planner does, and counted only where the estimate is too large.
Cost: one EXPLAIN, and for large tables a look at a thousand rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.memory import INLINED, needed, size_of, written
from duckdb_anon.engine.partition_context import will_run
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import ColumnPlan, Method, Roles
from duckdb_anon.model.release_comment import argument_text, value_text
from duckdb_anon.model.released_columns import Channel, Counts, Interval, ValueSet

MOST_ENTRIES = 2**31 - 1
"""Offsets of arrow's lists are int32."""

_SMALL, _SEEN = 20_000, 1000  # rows of a table whose texts are not looked at, and those that are of others
_MOSTLY, _ENTRY, _LISTED, _LISTED_OF_SAMPLES, _TOLD = 0.5, 24, 2.2, 6.5, 5
"""Share of different values from which on they hardly repeat; bytes of a text in a list beside its letters; how many
values a group lists where they do, as a multiple of its fewest rows, and where it must keep as many in a sample
(parameter alpha); and how many a row tells of a domain."""
_WIDE = frozenset("HUGEINT UHUGEINT DOUBLE FLOAT DECIMAL TIME TIMESTAMP TIMESTAMP_NS UUID".split()) | {
    "TIMESTAMP WITH TIME ZONE"
}
_SHORT = 300  # bytes of text in a row that are few
_MANY = 250_000  # rows: two of the row groups that threads of DuckDB write side by side
_FILTER = 5  # of so many rows DuckDB guesses that a filter lets one through


def require_fit(
    entry: Method, catalog: Catalog, relation: Relation, roles: Roles, arguments: Mapping[str, Any],
    layout: Sequence[ColumnPlan] = (), params: Mapping[str, Any] | None = None,
) -> bool:  # fmt: skip
    """Refuse a call that would not fit.

    Args:
        entry: the method.
        catalog: what the planner can see.
        relation: its table.
        roles: its columns by role.
        arguments: of the call, to be written again.
        layout: its released columns.
        params: checked parameters of the call.

    Returns:
        Whether the table has many rows, and their values are seen to repeat and to be short.

    Raises:
        RequirementError: naming the rows, the estimate, and what to do.
    """
    if not will_run() or catalog.cursor is None or not relation.visible:
        return False
    columns = len(roles.qi) + len(roles.sensitive) + (roles.person is not None)
    limit = _memory_limit(catalog.cursor)
    guessed = _FILTER * _estimated_rows(catalog.cursor, relation)
    # levels are of whole columns: where names do not repeat, every row may list all of them
    everywhere = guessed / _FILTER if entry.parts is None and entry.combinations is not None else 0.0
    looks = guessed > _SMALL or everywhere > _SEEN
    seen = seen_of(catalog.cursor, relation, roles, layout, params, everywhere) if looks else NOTHING_SEEN

    def taken(rows: int) -> int:
        return needed(rows, columns, **seen.told())

    if taken(guessed) > limit or guessed > MOST_ENTRIES:
        rows = _rows(catalog.cursor, relation)
        if taken(rows) > limit or rows > MOST_ENTRIES:
            raise RequirementError(_told(entry, catalog, relation, rows, taken(rows), limit, arguments))
    return seen.repeating and guessed >= _FILTER * _MANY


@dataclass(frozen=True)
class Seen:
    """What a table's types and its first rows say of the memory of a call; see `memory.needed`.

    Attributes:
        repeating: whether values were seen to repeat, and to be short.
    """

    text: float = 0.0
    counted: bool = False
    different: int = 0
    wide: int = 0
    listed: float = 0.0
    repeating: bool = False

    def told(self) -> dict[str, Any]:
        """As arguments of `needed` and `rows_within`."""
        return {name: value for name, value in asdict(self).items() if name != "repeating"}


NOTHING_SEEN = Seen()


def seen_of(
    cursor: duckdb.DuckDBPyConnection, relation: Relation, roles: Roles, layout: Sequence[ColumnPlan] = (),
    params: Mapping[str, Any] | None = None, everywhere: float = 0.0,
) -> Seen:  # fmt: skip
    """Look at a table, its texts as the first rows have them.

    Args:
        cursor: on the caller's database.
        relation: the table.
        roles: its columns by role.
        layout: the released columns.
        params: checked parameters of the call.
        everywhere: rows of the table where each released row lists all names that hardly repeat, 0 elsewhere.
    """
    coded = {info.name for info in (*roles.qi, *roles.sensitive)}
    infos = dict.fromkeys(info.name for info in (*roles.qi, *roles.sensitive, *roles.keep))
    types = {name: str(relation.columns.get(name, "")) for name in infos}
    wide_ones = {name for name in coded if types[name].split("(")[0] in _WIDE}
    wide = len(wide_ones)
    counted = any(plan.cells is Counts for plan in layout)
    texts = {name for name, kind in types.items() if kind in ("VARCHAR", "BLOB")}
    wide += len({info.name for info in roles.keep} - texts - coded)
    persons = {roles.person.name} - coded if roles.person is not None else set()
    looked_at = [name for name in dict.fromkeys((*infos, *persons)) if name in texts | coded | persons]
    asked = []
    for name in looked_at:
        size = f"avg(coalesce(octet_length({ident(name)}::blob), 0))" if name in texts else "0"
        # not count(DISTINCT): of several DuckDB makes tables of their own, which took 40 of a call's 60 ms
        asked.append(f"coalesce({size}, 0), coalesce(len(list_distinct(list({ident(name)}))) / count(*), 0)")
    try:
        row = cursor.execute(f"select {', '.join(asked)} from (from {relation.sql} limit {_SEEN})").fetchall()[0]
    except duckdb.Error:
        return Seen(counted=counted, wide=wide)  # the call itself will say what is wrong
    sizes = dict(zip(looked_at, (float(size) for size in row[::2]), strict=True))
    apart = [name for name, share in zip(looked_at, row[1::2], strict=True) if name in coded and share > _MOSTLY]
    least = max([2.0, *(float((params or {}).get(name) or 0) for name in ("k", "l"))])
    sets = {plan.column or plan.name for plan in layout if plan.cells is ValueSet}
    many = everywhere or least * (_LISTED_OF_SAMPLES if "alpha" in (params or {}) else _LISTED)
    listed = sum(many * (_ENTRY + sizes[name]) for name in apart if name in sets)
    if any(field.cells is Channel for plan in layout for field in plan.fields):  # it tells the values there are
        listed += _TOLD * sum(_ENTRY + sizes[name] for name in apart)
    own = [
        name for name, share in zip(looked_at, row[1::2], strict=True) if share > _MOSTLY and name in coded | persons
    ]
    if not any(p.cells in (Interval, ValueSet, Counts, Channel) for plan in layout for p in (plan, *plan.fields)):
        own = [name for name in own if name not in wide_ones]  # values come out as they went in
    # what short texts leave of their share is no room for longer ones
    text = INLINED * len(coded) + sum(max(0.0, sizes[name] - INLINED) for name in texts)
    return Seen(text, counted, len(own), wide, listed, repeating=not apart and text <= _SHORT)


def _told(
    entry: Method, catalog: Catalog, relation: Relation, rows: int, takes: int, limit: int,
    arguments: Mapping[str, Any],
) -> str:  # fmt: skip
    why = (
        f"takes about {written(takes)} in one call, and memory_limit is {written(limit)}"
        if takes > limit
        else f"is more than the {MOST_ENTRIES:,} that one call can number"
    )
    said = f"{entry.name}: {relation.given} has {rows:,} rows, which {why}"
    if entry.parts is None:
        return (
            f"{said}. {entry.name} decides for the table as a whole, so it cannot be worked in parts; raise "
            "memory_limit, or call it on fewer rows or columns"
        )
    memory = written(max(400_000_000, limit * 3 // 4)).replace(" ", "")
    call = call_text(entry, arguments)
    file = _file(catalog)
    remedy = f'duckdb-anon release {file} NAME "{call}" --memory {memory}' if file else ""
    api = f"duckdb_anon.release(con, 'NAME', \"{call}\", memory='{memory}')"
    return f"{said}. Work in parts: " + (f"{remedy}, or in Python {api}" if remedy else api)


def call_text(entry: Method, arguments: Mapping[str, Any]) -> str:
    """A call as it was given."""
    given = [value_text(arguments["tbl"])]
    given += [f"{name} := {argument_text(v)}" for name, v in arguments.items() if name != "tbl" and v is not None]
    return f"{entry.name}({', '.join(given)})"


def _memory_limit(cursor: duckdb.DuckDBPyConnection) -> int:
    return size_of("memory_limit", cursor.execute("select current_setting('memory_limit')").fetchall()[0][0])


def _file(catalog: Catalog) -> str:
    if catalog.cursor is None:
        return ""
    found = catalog.cursor.execute(
        "select path from duckdb_databases() where database_name = ?", [catalog.database]
    ).fetchall()
    return str(found[0][0] or "") if found else ""


def _estimated_rows(cursor: duckdb.DuckDBPyConnection, relation: Relation) -> int:
    """Rows as DuckDB's planner estimates them; 0 where it does not say."""
    try:
        text = cursor.execute(f"explain (format json) from {relation.sql}").fetchall()[0][1]
        found = json.loads(text)[0].get("extra_info", {}).get("Estimated Cardinality", "0")
    except (duckdb.Error, ValueError, LookupError):
        return 0
    digits = "".join(letter for letter in str(found) if letter.isdigit())
    return int(digits or 0)


def _rows(cursor: duckdb.DuckDBPyConnection, relation: Relation) -> int:
    return int(cursor.execute(f"select count(*) from {relation.sql}").fetchall()[0][0])
