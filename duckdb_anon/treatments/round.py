"""round: numbers become multiples of a step."""

from __future__ import annotations

from duckdb_anon.model.parameters import REQUIRED, Parameter, Params
from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.treatments import Column, Key, Treatment


def _expression(column: Column, params: Params, key: Key) -> str:
    step = params["to"]
    return f"(round({column.sql} / {step!r}) * {step!r})::{column.type}"


TREATMENT = Treatment(
    name="round",
    summary="numbers become the nearest multiple of a step",
    promise="None by itself: a multiple that one individual has still identifies it.",
    parameters=(Parameter("to", "the step, in units of the column", "number", REQUIRED, above=0),),
    expression=_expression,
    types=is_number,
    takes="a number",
)
