"""pseudonym: a keyed hash in place of a key, the same in all tables, so that foreign keys still join."""

from __future__ import annotations

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.parameters import Parameter, Params
from duckdb_anon.treatments import Column, Key, Treatment

_DIGITS = 32
"""Hexadecimal digits of a text or UUID: 128 bits, so that two values never share a pseudonym."""


def _expression(column: Column, params: Params, key: Key) -> str:
    text = column.text(params["domain"])
    if params["format"] != "text" and params["prefix"]:
        raise ParameterError("pseudonym: prefix goes with format := 'text'. Leave one of them out")
    if params["format"] == "integer":
        return key.number(text)
    if params["format"] == "uuid":
        return f"{key.hmac(text)}[:{_DIGITS}]::uuid"
    return f"{literal(params['prefix'] or '')} || {key.hmac(text)}[:{_DIGITS}]"


TREATMENT = Treatment(
    name="pseudonym",
    summary="keyed hash (HMAC-SHA256) of a key; equal values of a domain stay equal in all tables of a release",
    promise="The value cannot be found without the key. Rows of one individual still belong together.",
    parameters=(
        Parameter("format", "'uuid', 'text' (32 hexadecimal digits) or 'integer' (60 bits; below a billion values "
                  "two of them may meet)", "text", "uuid", ("uuid", "text", "integer")),
        Parameter("prefix", "text before the digits, for format := 'text'", "text"),
        Parameter("domain", "what the values identify, such as 'patient'; columns of one domain join", "text"),
    ),
    expression=_expression,
)  # fmt: skip
