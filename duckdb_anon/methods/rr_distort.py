"""Randomized response: each value is kept with a published probability, else replaced at random.

Every record is released with its randomized columns drawn from their domains, and a column `rr` with each column's
probability p and domain, from which counts and sums are estimated without bias. `rr` stands in the first row and in one
of d others, d being the number of values of all domains (at most 1000), since DuckDB stores a list once a row. The
domain is published: the values of an enum, the leaves of a hierarchy, else the values of the table. Guarantee with `l`:
the disclosure risk of every record (Result 1 of the paper) is at most 1/l on the table itself, evaluated again at the
published p. Store the release: a view draws afresh at every read, and readers could average the noise away. Tables with
several records of an individual are refused, since the draws of an individual would average out.

Source: Guo, Ying and Wu (2011), sections III and IV. Departures: several sensitive columns share the channels of the
quasi-identifiers and each meets the bound; ordered columns may be binned; `target` and `min_count` relax the bound
where randomizing the sensitive column alone cannot meet it.
Cost: O(n) draws a column; finding p some hundred passes over the product of the domains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duckdb_anon.kernels.rng_streams import spawn_generators
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.methods import rr_params
from duckdb_anon.methods.rr_params import GIVEN, LEVEL, PAPER, RISK_PARAMETERS, choose
from duckdb_anon.model import released_columns
from duckdb_anon.model.coded_table import CodeArray, CodedTable
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan, Cutting, Method, Params, Roles, Sweep
from duckdb_anon.model.release_formats import CHANNELS
from duckdb_anon.model.release_formats.duckdb_types import is_enum
from duckdb_anon.model.released_columns import Cells

NAME = "rr_distort"


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Check l, p and bins before the table is read."""
    return rr_params.refine(NAME, params)


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Return the released columns: every one keeps its type, and `rr` says how it was randomized."""
    infos = roles.qi + roles.sensitive
    chosen = rr_params.randomized_names(NAME, [i.name for i in roles.qi], [i.name for i in roles.sensitive], params)
    coded = tuple(ColumnPlan(i.name, released_columns.Coded, declared_type=_declared_type(i)) for i in infos)
    channels = tuple(
        ColumnPlan(i.name, released_columns.Channel, declared_type=_declared_type(i)) for i in infos if i.name in chosen
    )
    unchanged = tuple(ColumnPlan(info.name, released_columns.Source) for info in roles.keep)
    return (*coded, *unchanged, ColumnPlan(CHANNELS.key, released_columns.Struct, fields=channels))


def _declared_type(info: ColumnInfo) -> str:
    """Type of a column whose domain is declared outside its rows, '' for others; an enum is released as text."""
    if is_enum(info.type):
        return "VARCHAR"
    return info.type if info.hierarchy else ""


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Draw the randomized columns; everything else passes through."""
    chosen = choose(table, params, NAME, with_risk=False)
    released: dict[str, Cells] = {}
    channels: dict[str, Cells] = {}
    each = spawn_generators(rng, len(chosen.columns))

    def drawn(c: int) -> CodeArray:
        column = chosen.columns[c]
        codes: CodeArray = column.domain[chosen.channels[c].distort(column.index, each[c])]
        return codes

    codes = parallel_map(drawn, range(len(chosen.columns)))
    for column, channel, drawn_codes in zip(chosen.columns, chosen.channels, codes, strict=True):
        name = column.attribute.name
        released[name] = released_columns.Coded(name, drawn_codes)
        if column.randomized:
            channels[name] = released_columns.Channel(name, channel.p, column.domain)
    released[released_columns.ROWS] = released_columns.Source(np.arange(table.rows, dtype=np.int64))
    released[CHANNELS.key] = released_columns.Struct(channels)
    return released


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """Rows at random, all randomized with the same p over the whole table's domains."""
    if params["p"] is None:
        raise ParameterError(
            f"{NAME}: l := {params['l']:g} is met by a p found from all rows at once; to work in parts, find it on a "
            "sample or on fewer columns with rr_parameters, and give p"
        )
    return Cutting("deal")


METHOD = Method(
    name=NAME,
    summary="values randomized with published probabilities; release has the original's types and a column rr",
    paper=f"{PAPER}, sections III-IV",
    example="CREATE TABLE randomized AS FROM rr_distort('people', p := 0.8)",
    smallest="p := 0.8",
    trials=("p := 0.9", "p := 1", "l := 2", "l := 1.5, domain := 'observed'"),
    formats=("randomized",),
    instead=("muco",),
    parameters=(LEVEL, GIVEN, *RISK_PARAMETERS),
    layout=layout,
    release=release,
    moves_values=True,
    needs=(),
    refine=refine,
    sweeps=(Sweep("p := {n}", (0.9, 0.7, 0.6)),),
    parts=parts,
    finished=("rows",),
)
