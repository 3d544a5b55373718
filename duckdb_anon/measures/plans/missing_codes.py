"""Codes for missing values: 9, 99, 9999999, -1 among numbers; '?', 'unknown', 'n/a' among texts.

A number of nines, or -1 or a negative number of nines, is taken for a code where at least two records have it, it lies
outside the other values, and either far from them (half their range or more) or, in steps of the other values, apart
from them and three times as frequent as they are on average. Texts are codes by what they say.
Cost: one aggregation.
"""

from __future__ import annotations

from duckdb_anon.engine.sql_quoting import ident, literal

LABEL = "(missing)"
"""Node of a hierarchy that stands for the codes."""
_TEXTS = (
    "?", "-", "--", ".", "n/a", "na", "n.a.", "null", "nan", "missing", "unknown", "not known", "not available",
    "not stated", "unspecified", "unbekannt", "keine angabe", "k.a.", "inconnu", "non renseigné", "desconocido",
    "sconosciuto", "onbekend", "άγνωστο", "未知", "不详",
)  # fmt: skip


def number_codes(source: str, column: str) -> str:
    """SQL of the codes among the numbers of a column, a DOUBLE[].

    Args:
        source: what follows FROM.
        column: its name.
    """
    value = f"{ident(column)}::double"
    return f"""(
        with counted as (select {value} as x, count(*) as n from {source} where isfinite({value}) group by 1),
        marked as (select *, x < 1e15 and x > -1e15 and x = trunc(x)
            and regexp_matches(try_cast(x as bigint)::varchar, '^(-?9+|-1)$') as nines from counted),
        others as (select min(x) as low, max(x) as high, avg(n) as often, (max(x) - min(x)) / greatest(count(*) - 1, 1)
            as step from marked where not nines)
        select coalesce(list(x order by x), []) from (
            select x, n, low, high, often, step, case when x > 0 then x - high else low - x end as gap
            from marked, others where nines and n >= 2
        ) where gap > 0 and (gap >= (high - low) / 2 or (n >= 3 * often and gap >= 2 * step) or (x < 0 and low >= 0))
    )"""


def text_codes(source: str, column: str) -> str:
    """SQL of the codes among the texts of a column, a VARCHAR[]."""
    words = ", ".join(map(literal, _TEXTS))
    return (
        f"(select coalesce(list(distinct {ident(column)}::varchar), []) from {source} "
        f"where lower(trim({ident(column)}::varchar)) in ({words}))"
    )
