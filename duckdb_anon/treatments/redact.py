"""redact: free text is not released. The column is dropped, and a release of a database lists it.

No library finds all names in a text, and a text that reads as cleaned is trusted more than it deserves.
"""

from __future__ import annotations

from duckdb_anon.model.parameters import Params
from duckdb_anon.treatments import Column, Key, Treatment


def _expression(column: Column, params: Params, key: Key) -> None:
    return None


TREATMENT = Treatment(
    name="redact",
    summary="free text is dropped, and listed as dropped in a release of a database",
    promise="Nothing of the column is released.",
    parameters=(),
    expression=_expression,
)
