"""mask: the first characters of a value, a constant, or NULL. redact: free text is not released.

A redacted column is dropped, and a release of a database lists it. No library finds all names in a text, and a text
that reads as cleaned is trusted more than it deserves.
"""

from __future__ import annotations

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.parameters import Parameter, Params
from duckdb_anon.treatments import Column, Key, Treatment


def _mask(column: Column, params: Params, key: Key) -> str:
    keep, value, text = params["keep"], params["value"], f"{column.sql}::varchar"
    if keep is not None and value is not None:
        raise ParameterError("mask: keep and value do not go together. Leave one of them out")
    if keep is not None:
        return f"left({text}, {keep}) || repeat('*', greatest(length({text}) - {keep}, 0))"
    return "null::varchar" if value is None else f"case when {column.sql} is not null then {literal(value)} end"


MASK = Treatment(
    name="mask",
    summary="the first characters of a value and '*' for the others (12***), a constant, or NULL",
    promise="Values that agree in the characters kept become equal. How many individuals do is not checked.",
    parameters=(
        Parameter("keep", "number of leading characters that stay", "integer", low=0, high=1000),
        Parameter("value", "constant for every value that is not NULL (default: NULL)", "text"),
    ),
    expression=_mask,
)


REDACT = Treatment(
    name="redact",
    summary="free text is dropped, and listed as dropped in a release of a database",
    promise="Nothing of the column is released.",
    parameters=(),
    expression=lambda column, params, key: None,
)
