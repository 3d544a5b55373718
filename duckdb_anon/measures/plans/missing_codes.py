"""Codes for missing values: 9, 99, 9999999, -1 among numbers; '?', 'unknown', 'n/a' among texts.

A number of nines, or -1 or a negative number of nines, is taken for a code where at least two records have it, it lies
outside the other values, and either far from them (half their range or more) or, in steps of the other values, distant
from them and three times as frequent as they are on average. Texts are codes by what they say.
Cost: one aggregation.
"""

from __future__ import annotations

from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.release_formats.duckdb_types import is_number, is_text

LABEL = "(missing)"
"""Node of a hierarchy that stands for the codes."""
_TEXTS = (
    "?", "-", "--", ".", "n/a", "na", "n.a.", "null", "nan", "missing", "unknown", "not known", "not available",
    "not stated", "unspecified", "unbekannt", "keine angabe", "k.a.", "inconnu", "non renseigné", "desconocido",
    "sconosciuto", "onbekend", "άγνωστο", "未知", "不详",
)  # fmt: skip


def counted_values(source: str, column: str, kind: str) -> str:
    """SELECT of the values of a column but NULL: number `x` or text `v` where it is one, and its records `n`."""
    name, number, text = ident(column), "null::double", "null::varchar"
    if is_number(kind):
        number = f"case when isfinite({name}::double) then {name}::double end"
    elif is_text(kind):
        text = f"{name}::varchar"
    return f"select {number} as x, {text} as v, count(*) as n from {source} where {name} is not null group by {name}"


def marked(counted: str) -> str:
    """SELECT of `counted` values, with whether each `may_be` a code."""
    number = "x = -1 or (abs(x) between 9 and 1e15 and abs(x) + 1 = 10 ** round(log10(abs(x) + 1)))"
    text = f"lower(trim(v)) in ({', '.join(map(literal, _TEXTS))})"
    return f"select *, coalesce({number}, {text}, false) as may_be from ({counted})"


FOUND = (
    "list({x: x, v: v, n: n}) filter (may_be) as found, "
    "min(x) filter (not may_be) as low, max(x) filter (not may_be) as high, "
    "avg(n) filter (x is not null and not may_be) as often, count(x) filter (not may_be) as others"
)
"""SELECT list over `marked` values: what may be a code, and the other values."""
_GAP = "(case when s.x > 0 then s.x - high else low - s.x end)"
_STEP = "((high - low) / greatest(others - 1, 1))"
CODES = (
    f"list_filter(list_sort(coalesce(found, [])), lambda s: s.x is null or (s.n >= 2 and {_GAP} > 0 and ("
    f"{_GAP} >= (high - low) / 2 or (s.n >= 3 * often and {_GAP} >= 2 * {_STEP}) or (s.x < 0 and low >= 0))))"
)
"""SQL of the codes over a row of `FOUND`, a list of STRUCTs of x, v and n."""


def number_codes(source: str, column: str) -> str:
    """SQL of the codes among the numbers of a column, a DOUBLE[]; `source`: what follows FROM."""
    counted = marked(counted_values(source, column, "DOUBLE"))
    return f"(select list_transform({CODES}, lambda s: s.x) from (select {FOUND} from ({counted})))"
