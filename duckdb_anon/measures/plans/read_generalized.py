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

from duckdb_anon.engine.catalog import require_visible
from duckdb_anon.engine.column_roles import ROLE_PARAMETERS
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import ColumnError, listed, nearest
from duckdb_anon.model.function_specs import Parameter, Params, Query
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment, is_number

NAME = "read_generalized"
_ANYTHING = r"\**|NA|N/A|NULL|null|\?"
_NUMBER = r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?"
_BRACKETS = r"([\[\](])\s*(.+?)\s*,\s*(.+?)\s*([\])\[])"
_RANGE = rf"({_NUMBER})\s*(?:-|\.\.|to)\s*({_NUMBER})"
_AT_MOST, _AT_LEAST = r"(<=?|≤)\s*(.+)", r"(>=?|≥)\s*(.+)"


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
    original, release = context.relation("original"), context.relation("release")
    require_visible(NAME, original)
    require_visible(NAME, release)
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
    step = 1 if is_integer(kind) else 0

    def group(pattern: str, number: int) -> str:
        return f"regexp_extract(t, {literal(pattern)}, {number})"

    def value(text: str) -> str:
        return f"try_cast({text} as {kind})"

    def moved(bound: str, when: str, by: int) -> str:
        return f"{bound} + if({when}, {by}, 0)" if by else bound

    opened = moved(value(group(_BRACKETS, 2)), f"{group(_BRACKETS, 1)} in (']', '(')", step)
    closed = moved(value(group(_BRACKETS, 3)), f"{group(_BRACKETS, 4)} in ('[', ')')", -step)
    below = moved(value(group(_AT_MOST, 2)), f"{group(_AT_MOST, 1)} = '<'", -step)
    above = moved(value(group(_AT_LEAST, 2)), f"{group(_AT_LEAST, 1)} = '>'", step)
    members = "list_transform(string_split(trim(t, '{}'), ','), lambda v: " + value("trim(v)") + ")"
    every = f"len({members}) = len(list_filter({members}, lambda v: v is not null))"
    forms = {
        _BRACKETS: (opened, closed),
        _RANGE: (value(group(_RANGE, 1)), value(group(_RANGE, 2))),
        r"\{.+\}": (f"if({every}, list_min({members}), null)", f"list_max({members})"),
        r"[0-9]+\*+": (value("replace(t, '*', '0')"), value("replace(t, '*', '9')")),
        _AT_MOST: ("low", below),
        _AT_LEAST: (above, "high"),
        r".+\+": (value("rtrim(t, '+')"), "high"),
    }
    ends = []
    for end in range(2):
        cases = " ".join(f"when regexp_full_match(t, {literal(p)}) then {e[end]}" for p, e in forms.items())
        ends.append(f"(case {cases} else {value('t')} end)")
    read = f"select t, {_suppressed()} as gone, {ends[0]}::{kind} as lower, {ends[1]}::{kind} as upper"
    limits = f"(select min({ident(name)}) as low, max({ident(name)}) as high from {original})"
    known = "lower is not null and upper is not null and lower <= upper"
    cell = "{'lower': lower, 'upper': upper}"
    nothing = f"{{'lower': null::{kind}, 'upper': null::{kind}}}"
    return (
        f"select t, case when gone then {nothing} when {known} then {cell} else {_unread(name)} end as c "
        f"from ({read} from {distinct}, {limits})"
    )


def _sets(name: str, kind: str, original: str, distinct: str) -> str:
    """SELECT of each text `t` and the list `c` of values that it stands for."""
    present = f"filter ({ident(name)} is not null)"
    values = (
        f"(select list(distinct {ident(name)}) {present} as v, count(*) > count({ident(name)}) as n from {original})"
    )
    masked = "list_filter(v, lambda x: starts_with(x::varchar, rtrim(t, '*')))"
    as_long = f"list_filter({masked}, lambda x: length(x::varchar) = length(t))"
    parts = "list_transform(string_split(trim(t, '{}'), ','), lambda x: trim(x))"
    members = f"list_filter(v, lambda x: list_contains({parts}, x::varchar))"
    same = "list_filter(v, lambda x: trim(x::varchar) = t)"
    forms = (
        (f"len({same}) > 0", same),
        (_suppressed(), "if(n, list_append(v, null), v)"),
        (f"t like '%*' and len({as_long}) > 0", as_long),
        (f"t like '%*' and len({masked}) > 0", masked),
        (f"t like '{{%}}' and len({members}) = len({parts})", members),
    )
    cases = " ".join(f"when {when} then {then}" for when, then in forms)
    return f"select t, case {cases} else {_unread(name)} end as c from {distinct}, {values}"


def _suppressed() -> str:
    return f"(t is null or regexp_full_match(t, {literal(_ANYTHING)}))"


def _unread(name: str) -> str:
    message = (
        f"{NAME}: cells of {name!r} cannot be read. Allowed are values of the original, intervals, masked values and "
        f"'*'. Name a hierarchy that has the other labels: hierarchies := {{...}} [{ColumnError.code}]"
    )
    return f"error({literal(message)})"
