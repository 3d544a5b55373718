"""anon_dirt: what should be cleaned in a table before it is released, and a SELECT that cleans it, to be pasted.

One row a column and problem, with the number of records and the SQL expression that cleans the column; the last row is
a SELECT that cleans all of them. Problems: blanks around values, codes for missing values (see `missing_codes`),
spellings that differ in case alone, several formats of dates in one column of texts, placeholder dates (1900-01-01) of
several records, postcodes that lost leading zeros. Each makes a value of its own, which identifies records that the
clean value would not. The answer contains no value of the table but codes for missing values, and nothing is written.
Where a date reads both ways (3/4/2020), the day comes first if any record has a first number above 12, else the month.
Cost: an aggregation a column and problem.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.catalog import require_visible
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.measures.plans.missing_codes import CODES, FOUND, counted_values, marked
from duckdb_anon.model.function_specs import Params, Query
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number

NAME = "anon_dirt"
_VALUE = "{x}"
_PLACEHOLDERS = ("0001-01-01", "1899-12-30", "1900-01-01", "1970-01-01", "2999-12-31", "9999-12-31")
_ISO, _SLASH, _DOT, _PLAIN = (
    r"\d{4}-\d{1,2}-\d{1,2}", r"\d{1,2}/\d{1,2}/\d{4}", r"\d{1,2}\.\d{1,2}\.\d{4}", r"(19|20)\d{6}",
)  # fmt: skip
_POSTCODE = r"(?i)(^|_|\b)(zip|plz|post(al)?_?code|postcode|cap|cp)(_?code)?($|_|\b)"


@Query(
    summary="what to clean before a release (blanks, codes, date formats, spellings, lost zeros), with the SELECT",
    example="FROM anon_dirt('(SELECT * FROM (VALUES (''f''), (''F''), (''F''), (''f '')) AS t (sex))')",
    section="Preparing a call",
    answers=("*",),
)
def anon_dirt(context: Any, params: Params) -> str:
    """One row a column and problem, and one for all of them."""
    relation = context.relation("tbl")
    require_visible(NAME, relation)
    parts = [
        f"select {number} as k, {step} as step, {literal(name)} as name, {literal(problem)} as problem, records, "
        f"template from ({select})"
        for number, (name, kind) in enumerate(relation.columns.items())
        for step, (problem, select) in enumerate(_problems(relation.sql, name, kind))
    ]
    nothing = "select 0 as k, 0 as step, '' as name, '' as problem, 0 as records, '' as template"
    quoted = _quoted("any_value(name)")
    chain = f"list_reduce(list_prepend({quoted}, list(template order by step)), lambda a, t: replace(t, '{_VALUE}', a))"
    table = literal(relation.given)
    return f"""
        with found as (select * from ({" union all ".join(parts) or nothing}) where records > 0),
        cleaned as (select k, {chain} || ' AS ' || {quoted} as item from found group by k),
        statement as (
            select 'SELECT * REPLACE (' || string_agg(item, ', ' order by k) || ') FROM ' || {table} as clean
            from cleaned)
        select column_name, problem, records, clean from (
            select name as column_name, problem, records::bigint as records,
                replace(template, '{_VALUE}', {_quoted("name")}) as clean, 0 as place, k, step from found
            union all
            select null, 'a SELECT that cleans them all', (select sum(records)::bigint from found), clean, 1, 0, 0
            from statement where clean is not null)
        order by place, k, step"""


def _quoted(sql: str) -> str:
    """SQL that quotes a name."""
    return f"('\"' || replace({sql}, '\"', '\"\"') || '\"')"


def _problems(source: str, name: str, kind: str) -> list[tuple[str, str]]:
    """Problems a column of a type may have, each with a SELECT of its records and of the SQL that cleans it."""
    x = ident(name)
    if kind == "VARCHAR":
        blanks = f"count(*) filter ({x} <> trim({x}))"
        return [
            ("blanks around values", f"select {blanks} as records, 'trim({_VALUE})' as template from {source}"),
            ("codes for missing values", _codes(source, name, kind)),
            ("several formats of dates", _dates(source, x)),
            ("postcodes that lost leading zeros", _postcodes(source, name)),
            ("spellings that differ in case", _cases(source, x)),
        ]  # fmt: skip
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        dates = ", ".join(map(literal, _PLACEHOLDERS))
        clean = f"CASE WHEN {_VALUE}::date::varchar NOT IN ({dates}) THEN {_VALUE} END"
        counted = f"select {x}, count(*) as n from {source} where {x}::date::varchar in ({dates}) group by {x}"
        return [
            (
                "placeholder dates",
                f"select sum(n) filter (n > 1) as records, {literal(clean)} as template from ({counted})",
            )
        ]
    if is_number(kind):
        codes = [("codes for missing values", _codes(source, name, kind))]
        return [*codes, ("postcodes that lost leading zeros", _postcodes(source, name))] if is_integer(kind) else codes
    return []


def _codes(source: str, name: str, kind: str) -> str:
    written = (
        "list_transform(codes, lambda s: coalesce(s.x::bigint::varchar, '''' || replace(s.v, '''', '''''') || ''''))"
    )
    return (
        "select list_sum(list_transform(codes, lambda s: s.n)) as records, "
        f"'CASE WHEN {_VALUE} NOT IN (' || array_to_string({written}, ', ') || ') THEN {_VALUE} END' as template "
        f"from (select {CODES} as codes from (select {FOUND} from ({marked(counted_values(source, name, kind))})))"
    )


def _cases(source: str, x: str) -> str:
    """Records whose spelling is not the most frequent one of its letters, in columns whose values repeat."""
    counted = f"select lower(trim({x})) as l, {x} as v, count(*) as n from {source} where {x} is not null group by all"
    return (
        f"select case when sum(total) > 2 * count(*) then sum(total - most) filter (spellings > 1) end as records, "
        f"'lower({_VALUE})' as template from (select sum(n) as total, max(n) as most, count(*) as spellings from ("
        f"select l, trim(v) as v, sum(n) as n from ({counted}) group by all) group by l)"
    )


def _dates(source: str, x: str) -> str:
    """Records whose date has not the most frequent format, where nearly all values are dates of some format."""
    value = f"trim({x})"
    shares = ", ".join(
        f"count(*) filter (regexp_full_match({value}, '{pattern}')) as {label}"
        for label, pattern in (("iso", _ISO), ("slash", _SLASH), ("dot", _DOT), ("plain", _PLAIN))
    )
    first, second = (f"max(try_cast(split_part({value}, '/', {part}) as integer))" for part in (1, 2))
    months = f"{first} filter (regexp_full_match({value}, '{_SLASH}')) > 12 as days_first, {second} as most"
    slash = "case when days_first then '%d/%m/%Y' else '%m/%d/%Y' end"
    return (
        "select case when iso + slash + dot + plain >= 0.8 * many "
        "then iso + slash + dot + plain - greatest(iso, slash, dot, plain) end as records, "
        f"'try_strptime({_VALUE}, [''%Y-%m-%d'', ''' || {slash} || ''', ''%d.%m.%Y'', ''%Y%m%d''])::date' as template "
        f"from (select {shares}, count({x}) as many, {months} from {source})"
    )


def _postcodes(source: str, name: str) -> str:
    """Records that are a digit or more shorter than the longest, in a column of numbers that is called postcode."""
    text = f"trim({ident(name)}::varchar)"
    return (
        f"select case when regexp_matches({literal(name)}, '{_POSTCODE}') and share > 0.9 and longest between 4 and 6 "
        f"then shorter end as records, 'lpad({_VALUE}::varchar, ' || longest || ', ''0'')' as template from (select "
        f"max(length({text})) as longest, avg(regexp_full_match({text}, '[0-9]+')::integer) as share, "
        f"count(*) filter (length({text}) < (select max(length({text})) from {source})) as shorter from {source})"
    )
