"""shift: all dates of an individual move by the same number of days, so intervals inside an individual are exact."""

from __future__ import annotations

from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.parameters import Parameter, Params
from duckdb_anon.model.release_formats.duckdb_types import is_moment
from duckdb_anon.treatments import Column, Key, Treatment


def _expression(column: Column, params: Params, key: Key) -> str:
    if not column.individual:
        raise ColumnError(
            "shift: no column identifies the individual of a row. Say person := '...' or COMMENT ON COLUMN ... IS "
            "'anon: person'"
        )
    days = params["days"]
    drawn = column.shift or key.shift_of(column.individual)
    offset = f"({drawn} % {2 * days + 1} - {days})::integer"
    moved = f"{column.sql} + {offset}" if column.type == "DATE" else f"{column.sql} + to_days({offset})"
    return f"case when isfinite({column.sql}) then {moved} else {column.sql} end"


TREATMENT = Treatment(
    name="shift",
    summary="one random number of days per individual is added to its dates; intervals inside an individual are exact",
    promise="The day is hidden among 2 * days + 1 days. Intervals between dates of an individual are not hidden.",
    parameters=(
        Parameter("days", "largest number of days that dates move, to either side", "integer", 180, low=1, high=36_500),
    ),
    expression=_expression,
    types=lambda kind: is_moment(kind) and kind != "TIME",
    takes="a DATE or TIMESTAMP",
)
