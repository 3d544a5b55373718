"""top: numbers above an end become the end, such as ages over 89."""

from __future__ import annotations

from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.parameters import Parameter, Params
from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.treatments import Column, Key, Treatment


def _expression(column: Column, params: Params, key: Key) -> str:
    at, bottom, value = params["at"], params["bottom"], column.sql
    if at is None and bottom is None:
        raise ParameterError("top: say at := ..., the largest number that stays, or bottom := ...")
    if at is not None:
        value = f"least({value}, {at!r})"
    if bottom is not None:
        value = f"greatest({value}, {bottom!r})"
    return f"case when {column.sql} is not null then ({value})::{column.type} end"


TREATMENT = Treatment(
    name="top",
    summary="numbers above an end become that end, as HIPAA requires of ages over 89; below a bottom likewise",
    promise="None by itself: how many individuals lie beyond the end is not checked.",
    parameters=(
        Parameter("at", "largest number that stays", "number"),
        Parameter("bottom", "smallest number that stays", "number"),
    ),
    expression=_expression,
    types=is_number,
    takes="a number",
)
