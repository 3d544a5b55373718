"""read_generalized: a table that another tool generalized, with cells that the measures of this package read.

ARX, sdcMicro and others write generalized values as text and suppressed ones as '*' or NULL. Quasi-identifiers become
what releases of this package hold: intervals, STRUCT(lower, upper), where the original has numbers or dates; lists of
the original's values where it has texts. A column with a hierarchy stays as it is, and its cells are nodes. Read are:

* numbers and dates: [20, 30[ [20, 30) ]20, 30] (20, 30] 20-30 20..30 {20, 21} 2* <30 <=30 >30 >=30 30+ and a value;
* texts: a value of the original, 13* or 13*** (characters masked from the right), {a, b};
* suppressed, so that any value may stand there: * (also several), NULL, an empty text, NA, NULL, ?.

Anything else is an error. An interval covers what it may stand for: open ends of decimal numbers count as closed.
Tables of plain values (microaggregated, swapped, synthetic) need no reading. Cost: one pass, and distinct texts times
values of the original's column.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import ColumnError, listed, nearest
from duckdb_anon.model.function_specs import Parameter, Params, Query
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment, is_number

NAME = "read_generalized"


@Query(
    summary="a table that ARX, sdcMicro or another tool generalized, with cells that the measures read",
    paper="formats: manuals of ARX and sdcMicro",
    example="FROM read_generalized('people', '(SELECT * REPLACE ((age // 10) || ''*'' AS age) FROM people)', "
    "qi := ['age', 'gender'])",
    section="Preparing a call",
    parameters=(
        *ROLE_PARAMETERS,
        Parameter(
            SOURCE.word,
            "true adds the number of the row, from 0, which is that of the original's row where the other tool keeps "
            "the order of records; for the data holder's checks, never for publication",
            "boolean",
            False,
        ),
    ),
    tables=("original", "release"),
    answers=("*",),
)
def read_generalized(context: Any, params: Params) -> str:
    """The release with cells that measures read."""
    original, release = context.visible("original"), context.visible("release")
    roles = context.roles(original, needs=("qi",))
    spelled = {fold(name): name for name in release.columns}
    missing = [info.name for info in roles.qi if fold(info.name) not in spelled]
    if missing:
        raise ColumnError(
            f"the release has no column {listed(missing)}{nearest(missing[0], release.columns)}; it has "
            f"{listed(release.columns)}. Name the ones it has in qi := [...]"
        )
    cells, joins, items = [], [], dict.fromkeys(release.columns, "")
    for number, info in enumerate(info for info in roles.qi if not info.hierarchy):
        column, table = spelled[fold(info.name)], f"_anon_cells{number}"
        cell = _intervals if is_number(info.type) or is_moment(info.type) else _sets
        kind = release.columns[column] if is_number(release.columns[column]) else info.type
        text = f"trim({ident(column)}::varchar)"
        distinct = f"(select distinct {text} as t from {release.sql})"
        cells.append(f"{table} as ({cell(info.name, kind, original.sql, distinct)})")
        joins.append(f" left join {table} on trim(_r.{ident(column)}::varchar) is not distinct from {table}.t")
        items[column] = f"{table}.c as {ident(info.name)}"
    if params[SOURCE.word]:
        items[SOURCE.word] = f"_r._anon_row - 1 as {SOURCE.word}"
    selected = ", ".join(sql or f"_r.{ident(name)}" for name, sql in items.items())
    numbered = f"(select *, row_number() over () as _anon_row from {release.sql}) as _r"
    steps = f"with {', '.join(cells)} " if cells else ""
    return f"{steps}select {selected} from {numbered}{''.join(joins)} order by _r._anon_row"


def _intervals(name: str, kind: str, original: str, distinct: str) -> str:
    """SELECT of each text `t` and its interval `c`."""
    lower, upper = "i.lower_end", "i.upper_end"
    if is_integer(kind):
        lower, upper = f"{lower} + if(i.without_lower, 1, 0)", f"{upper} - if(i.without_upper, 1, 0)"
    limits = f"(select min({ident(name)})::{kind} as low, max({ident(name)})::{kind} as high from {original})"
    read = f"select t, _anon_interval_of(t, low, high) as i from {distinct}, {limits}"
    return (
        f"select t, case when _anon_suppressed(t) then {{'lower': null::{kind}, 'upper': null::{kind}}} "
        f"when lower <= upper then {{'lower': lower, 'upper': upper}} else {_unread(name)} end as c "
        f"from (select t, ({lower})::{kind} as lower, ({upper})::{kind} as upper from ({read}))"
    )


def _sets(name: str, kind: str, original: str, distinct: str) -> str:
    """SELECT of each text `t` and the list `c` of values that it stands for."""
    column = ident(name)
    present = (
        f"list(distinct {column}) filter ({column} is not null) as present, count(*) > count({column}) as has_null"
    )
    values = f"(select {present} from {original})"
    return f"select t, coalesce(_anon_values_of(t, present, has_null), {_unread(name)}) as c from {distinct}, {values}"


def _unread(name: str) -> str:
    message = (
        f"{NAME}: cells of {name!r} cannot be read. Allowed are values of the original, intervals, masked values and "
        f"'*'. Name a hierarchy that has the other labels: hierarchies := {{...}} [{ColumnError.code}]"
    )
    return f"error({literal(message)})"
