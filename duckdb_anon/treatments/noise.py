"""noise: each number moves by a random amount of the Laplace distribution."""

from __future__ import annotations

from duckdb_anon.model.parameters import REQUIRED, Parameter, Params
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number
from duckdb_anon.treatments import Column, Key, Treatment, text_in


def _expression(column: Column, params: Params, key: Key) -> str:
    drawn = key.of("noise").number(text_in(f"{column.table}.{column.name}", f"({column.row})"))
    centred = f"(({drawn} + 0.5) / {2**60} - 0.5)"
    moved = f"{column.sql} - {params['scale']!r} * sign({centred}) * ln(1 - 2 * abs({centred}))"
    return f"round({moved})::{column.type}" if is_integer(column.type) else f"({moved})::{column.type}"


TREATMENT = Treatment(
    name="noise",
    summary="each number moves by Laplace noise of a scale; totals and means are kept on average",
    promise="None by itself: large numbers stay large, and the value is not differentially private.",
    parameters=(Parameter("scale", "mean size of the movement, in units of the column", "number", REQUIRED, above=0),),
    expression=_expression,
    types=is_number,
    takes="a number",
)
