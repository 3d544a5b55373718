"""anon_dirt: what should be cleaned in a table before it is released, and a SELECT that cleans it, to be pasted.

One row a column and problem, with the number of records and the SQL expression that cleans the column of it and of the
problems before it; the last row is a SELECT that cleans all of them. Problems: blanks around values, codes for missing
values (see `missing_codes`), postcodes that lost leading zeros, spellings that differ in case alone, texts that are
mostly dates (of several formats) or numbers, placeholder dates (1900-01-01) of several records. Each makes a value of
its own, which identifies records that the clean value would not. `lost` counts the records whose value is no code for a
missing one and becomes NULL, such as a year alone among dates. The answer contains no value of the table but codes for
missing values, and nothing is written. Where a date reads both ways (3/4/2020), the day comes first if any record has a
first number above 12, else the month. Cost: an aggregation a column and problem.
"""

from __future__ import annotations

import re
from typing import Any

from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.measures.plans.missing_codes import counted_values
from duckdb_anon.model.function_specs import Params, Query
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number

_VALUE = "{x}"
_POSTCODE = re.compile(r"(^|_|\b)(zip|plz|post(al)?_?code|postcode|cap|cp)(_?code)?($|_|\b)", re.IGNORECASE)


@Query(
    summary="what to clean before a release, the SELECT that does, and what it loses",
    example="FROM anon_dirt('(SELECT * FROM (VALUES (''f''), (''F''), (''F''), (''f '')) AS t (sex))')",
    section="Preparing a call",
    answers=("*",),
)
def anon_dirt(context: Any, params: Params) -> str:
    """One row a column and problem, and one for all of them."""
    relation = context.visible("tbl")
    parts = [
        f"select {number} as k, {step} as step, {literal(name)} as name, {literal(problem)} as problem, "
        f"found.records as records, {'found.lost' if loses else 0} as lost, found.clean as template from ({select})"
        for number, (name, kind) in enumerate(relation.columns.items())
        for step, (problem, select, loses) in enumerate(_problems(relation.sql, name, kind))
    ]
    nothing = "select 0 as k, 0 as step, '' as name, '' as problem, 0 as records, 0 as lost, '' as template"
    chain = (
        f"list_reduce(list_prepend({_quoted('name')}, list(template) over steps), "
        f"lambda a, t: replace(t, '{_VALUE}', a))"
    )
    table = literal(relation.given)
    return f"""
        with found as (select * from ({" union all ".join(parts) or nothing}) where records > 0),
        cleaned as (
            select *, {chain} as clean, row_number() over (partition by k order by step desc) = 1 as whole
            from found window steps as (partition by k order by step)),
        statement as (
            select 'SELECT * REPLACE (' || string_agg(clean || ' AS ' || {_quoted("name")}, ', ' order by k)
                || ') FROM ' || {table} as clean
            from cleaned where whole)
        select column_name, problem, records, lost, clean from (
            select name as column_name, problem, records::bigint as records, lost::bigint as lost, clean,
                0 as place, k, step
            from cleaned
            union all
            select null, 'a SELECT that cleans them all', (select sum(records)::bigint from found),
                (select sum(lost)::bigint from found), clean, 1, 0, 0
            from statement where clean is not null)
        order by place, k, step"""


def _quoted(sql: str) -> str:
    """SQL that quotes a name."""
    return f"('\"' || replace({sql}, '\"', '\"\"') || '\"')"


def _problems(source: str, name: str, kind: str) -> list[tuple[str, str, bool]]:
    """Problems a column of a type may have, each with a SELECT of what `sql/cleaning.sql` finds of it.

    The last item says whether cleaning may lose values.
    """
    x, is_varchar = ident(name), kind == "VARCHAR"
    is_postcode = bool(_POSTCODE.search(name)) and (is_varchar or is_integer(kind))
    values = f"({counted_values(source, name, kind)})"
    spelled = f"(select trim({x}) as v, count(*) as n from {source} where {x} is not null group by 1)"
    words = f"(select sum(n) as total, max(n) as most, count(*) as spellings from {spelled} group by lower(v))"
    of_values = is_varchar or is_number(kind)
    problems = (
        ("blanks around values", is_varchar, f"_anon_blanks({x})", source, False),
        ("codes for missing values", of_values, "_anon_missing(_anon_codes(x, v, n, may_be))", values, False),
        ("postcodes that lost leading zeros", is_postcode, f"_anon_postcodes({x}::varchar)", source, False),
        ("spellings that differ in case", is_varchar, "_anon_spellings(total, most, spellings)", words, False),
        ("dates that are texts", is_varchar, "_anon_dates(v, n, may_be)", values, True),
        ("numbers that are texts", is_varchar and not is_postcode, "_anon_numbers(v, n, may_be)", values, True),
        (
            "placeholder dates",
            kind == "DATE" or kind.startswith("TIMESTAMP"),
            f"_anon_placeholders({x})",
            source,
            False,
        ),
    )
    return [
        (problem, f"select {found} as found from {rows}", loses)
        for problem, possible, found, rows, loses in problems
        if possible
    ]
