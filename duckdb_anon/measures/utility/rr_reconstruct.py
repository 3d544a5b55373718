"""rr_reconstruct: the original's cells estimated from a randomized release, with standard errors.

One row for every combination of the columns' domains: the raw estimate P^-1 lambda (unbiased, may be negative,
sums to the number of rows), its standard error, and the estimate with negative counts set to 0, rescaled. The
channels of the columns are inverted one after another (mode products), each a window over the grid of cells.

The standard error is that of the estimate against the original table; `population := true` adds the sampling
of the table from a population (equation 2 of the paper). Columns that were not randomized have the domain of
their released values and no error of their own.

Paper: Guo, Ying and Wu (2011), section III.B. Cost: one pass over the release, then columns times cells.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.kernels.randomized_response.risk import MAX_CELLS
from duckdb_anon.measures.released_rows import spelled
from duckdb_anon.methods.rr_params import PAPER
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, with_code
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import CHANNELS
from duckdb_anon.model.release_formats.duckdb_types import struct_fields
from duckdb_anon.rewrite.factors import channel_of

NAME = "rr_reconstruct"
_RESERVED = ("estimate", "std_error", "projected")


@Query(
    summary="the original's cells estimated from a randomized release, raw and projected, with standard errors",
    paper=f"{PAPER}, section III.B, equation 2",
    example="FROM rr_reconstruct('randomized', ['gender'])",
    section="Utility",
    smallest="columns := ['{text}']",
    parameters=(
        Parameter("columns", "columns of the table to estimate", "names", REQUIRED),
        Parameter(
            "population", "true adds the sampling of the table from a population to the errors", "boolean", False
        ),
    ),
    answers=("randomized", "boxes"),
    tables=("release",),
)
def rr_reconstruct(context: Any, params: Params) -> str:
    """Write the SQL of one call."""
    release = context.visible("release")
    contents = context.contents(release)
    channels = contents.channels
    if not channels:
        raise ColumnError(
            f"{release.given} has no column '{CHANNELS.word}', so it is no randomized release; make one with rr_distort"
        )
    names = [name for name in release.columns if name not in contents.carriers]
    columns = list(dict.fromkeys(_column(release, names, name) for name in params["columns"]))
    if not columns:
        raise ParameterError("columns is empty; name the columns whose cells to estimate")
    known = {fold(field): field for field, _ in struct_fields(release.columns[channels])}
    fields = {name: f"{ident(channels)}.{ident(known[fold(name)])}" for name in columns if fold(name) in known}
    return _sql(release.sql, columns, fields, params["population"])


def _column(release: Any, names: list[str], name: str) -> str:
    found = spelled(name, names, f"there is no column '{name}' in {release.given}", "its columns are")
    if fold(found) in _RESERVED:
        raise ColumnError(f"a column called '{found}' would stand twice in the result; rename it")
    return found


def _sql(source: str, columns: list[str], channels: dict[str, str], population: bool) -> str:
    names = idents(columns)
    ctes = [f"_anon_rel as (select * from {source})"]
    for k, name in enumerate(columns):
        ctes += _domain(k, name, channels.get(name))
    grid = " cross join ".join(f"_anon_d{k}" for k in range(len(columns)))
    size = " * ".join(f"(select count(*) from _anon_d{k})::double" for k in range(len(columns)))
    message = f"{NAME}: the domains multiply to more than {MAX_CELLS:,} cells; name fewer columns"
    message = literal(with_code(message, RequirementError.code))
    ctes.append(
        f"_anon_s0 as materialized (select {names}, sum(_n) as _e, sum(_n) as _v from ("
        f"select {names}, 1.0::double as _n from _anon_rel union all select {names}, 0 as _n from {grid}"
        f" where case when {size} > {MAX_CELLS} then error({message}) else true end) group by all)"
    )
    step = 0
    for k, name in enumerate(columns):
        if name not in channels:
            continue
        others = idents(c for c in columns if c != name)
        over = f"over (partition by {others})" if others else "over ()"
        ctes.append(
            f"_anon_s{step + 1} as materialized (select {names}, (_e - q * sum(_e) {over}) / gain as _e, "
            f"((1 - 2 * q) * _v + q * q * sum(_v) {over}) / (gain * gain) as _v "
            f"from _anon_s{step} cross join _anon_c{k})"
        )
        step += 1
    taken = "_e * _e / sum(_e) over ()" if population else "_e"
    raw = f"select *, sqrt(greatest(_v - {taken}, 0)) as _se, sum(_e) over () as _total from _anon_s{step}"
    return (
        f"with {', '.join(ctes)}, _anon_raw as materialized ({raw})\n"
        f"select {names}, _e as estimate, _se as std_error, "
        "greatest(_e, 0) * _total / sum(greatest(_e, 0)) over () as projected\nfrom _anon_raw"
    )


def _domain(number: int, name: str, field: str | None) -> list[str]:
    """CTEs _anon_d{k}, the domain of a column, and _anon_c{k}, q and gain of its channel."""
    if field is None:
        return [f"_anon_d{number} as (select distinct {ident(name)} from _anon_rel)"]
    singular = f"{NAME}: {name} has p = 1 / domain size: nothing can be estimated"
    singular = literal(with_code(singular, RequirementError.code))
    return [
        f"_anon_r{number} as materialized (select c as _c from ({channel_of(field, '_anon_rel')}))",
        f"_anon_d{number} as (select unnest(_c.domain) as {ident(name)} from _anon_r{number})",
        f"_anon_c{number} as materialized (select q, case when abs(1 - q * _d) < 1e-9 then error({singular}) "
        "else 1 - q * _d end as gain from (select len(_c.domain) as _d, case when len(_c.domain) = 1 then 0 "
        f"else (1 - _c.p) / (len(_c.domain) - 1) end as q from _anon_r{number}))",
    ]
