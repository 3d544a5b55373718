"""Codes for missing values: 9, 99, 9999999, -1 among numbers; '?', 'unknown', 'n/a' among texts.

A number of nines, or -1 or a negative number of nines, is taken for a code where at least two records have it, it lies
outside the other values, and either far from them (half their range or more) or, in steps of the other values, distant
from them and three times as frequent as they are on average. Texts are codes by what they say.
`sql/cleaning.sql` has the macros. Cost: one aggregation.
"""

from __future__ import annotations

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.release_formats.duckdb_types import is_number, is_text

LABEL = "(missing)"
"""Node of a hierarchy that stands for the codes."""
MACROS = ("_anon_may_be_code", "_anon_distance", "_anon_codes_among", "_anon_codes")
"""Macros that `number_codes` calls."""


def counted_values(source: str, column: str, kind: str) -> str:
    """SELECT of values but NULL: number `x` or text `v` of each, its records `n`, and whether it `may_be` a code."""
    name, number, text = ident(column), "null::double", "null::varchar"
    if is_number(kind):
        number = f"case when isfinite({name}::double) then {name}::double end"
    elif is_text(kind):
        text = f"{name}::varchar"
    values = f"select {number} as x, {text} as v, count(*) as n from {source} where {name} is not null group by {name}"
    return f"select *, _anon_may_be_code(x, v) as may_be from ({values})"


def number_codes(source: str, column: str) -> str:
    """SQL of the codes among the numbers of a column, a DOUBLE[]; `source`: what follows FROM."""
    counted = counted_values(source, column, "DOUBLE")
    return f"(select list_transform(_anon_codes(x, v, n, may_be), lambda code: code.x) from ({counted}))"
