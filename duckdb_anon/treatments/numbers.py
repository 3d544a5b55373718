"""noise, round, top: numbers move at random, become multiples of a step, or end at an end, such as ages over 89."""

from __future__ import annotations

from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.parameters import REQUIRED, Parameter, Params
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number
from duckdb_anon.treatments import Column, Key, Treatment, text_in


def _noise(column: Column, params: Params, key: Key) -> str:
    drawn = key.of("noise").number(text_in(f"{column.table}.{column.name}", f"({column.row})"))
    centred = f"(({drawn} + 0.5) / {2**60} - 0.5)"
    moved = f"{column.sql} - {params['scale']!r} * sign({centred}) * ln(1 - 2 * abs({centred}))"
    return f"round({moved})::{column.type}" if is_integer(column.type) else f"({moved})::{column.type}"


NOISE = Treatment(
    name="noise",
    summary="each number moves by Laplace noise of a scale; totals and means are kept on average",
    promise="None by itself: large numbers stay large, and the value is not differentially private.",
    parameters=(Parameter("scale", "mean size of the movement, in units of the column", "number", REQUIRED, above=0),),
    expression=_noise,
    types=is_number,
    takes="a number",
)


def _round(column: Column, params: Params, key: Key) -> str:
    step = params["to"]
    return f"(round({column.sql} / {step!r}) * {step!r})::{column.type}"


ROUND = Treatment(
    name="round",
    summary="numbers become the nearest multiple of a step",
    promise="None by itself: a multiple that one individual has still identifies it.",
    parameters=(Parameter("to", "the step, in units of the column", "number", REQUIRED, above=0),),
    expression=_round,
    types=is_number,
    takes="a number",
)


def _top(column: Column, params: Params, key: Key) -> str:
    at, bottom, value = params["at"], params["bottom"], column.sql
    if at is None and bottom is None:
        raise ParameterError("top: say at := ..., the largest number that stays, or bottom := ...")
    if at is not None:
        value = f"least({value}, {at!r})"
    if bottom is not None:
        value = f"greatest({value}, {bottom!r})"
    return f"case when {column.sql} is not null then ({value})::{column.type} end"


TOP = Treatment(
    name="top",
    summary="numbers above an end become that end, as HIPAA requires of ages over 89; below a bottom likewise",
    promise="None by itself: how many individuals lie beyond the end is not checked.",
    parameters=(
        Parameter("at", "largest number that stays", "number"),
        Parameter("bottom", "smallest number that stays", "number"),
    ),
    expression=_top,
    types=is_number,
    takes="a number",
)
