"""anon_hierarchy: a hierarchy for a column, as the table that methods and `hierarchies := {...}` take.

One row a value: the value (`level0`), then its ancestors up to the root '*'. Dates become months, quarters, years,
five years and decades; codes and postcodes lose characters from the right, as ARX masks them; numbers fall into
intervals that are joined two by two: of equal width with round ends, at quantiles, or between given breaks. Their outer
ends are open, so that no label tells the smallest or largest value; quantiles are values that rows have. Texts go to
the groups of a mapping, or rare ones together. ARX's CSV files (no header, ';') are read as they are. NULL is no leaf:
it stands under the root by itself. Values that appear later are no leaves either: give all that may come as the table.
Cost: one aggregation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from duckdb_anon.engine.catalog import Relation, require_visible
from duckdb_anon.engine.quoting import ident, literal
from duckdb_anon.engine.roles import column_of
from duckdb_anon.model.entries import Parameter, Params, Query
from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.shapes.types import is_moment, is_number

NAME = "anon_hierarchy"
KINDS = ("auto", "date", "code", "number", "quantile", "text", "arx")
ROOT = "*"
OTHER = "(other)"
_DATES = {
    "day": "strftime(_d, '%Y-%m-%d')",
    "month": "strftime(_d, '%Y-%m')",
    "quarter": "year(_d) || '-Q' || quarter(_d)",
    "year": "year(_d)::varchar",
    "5 years": "(year(_d) // 5 * 5) || '..' || (year(_d) // 5 * 5 + 4)",
    "decade": "(year(_d) // 10 * 10) || '..' || (year(_d) // 10 * 10 + 9)",
}
_MOST_LEVELS = 12


def plan_hierarchy(context: Any, params: Params) -> str:
    """Write the SQL of a hierarchy: SELECT level0, level1, ..."""
    kind, relation = params["kind"], context.relation("tbl")
    if kind == "arx":
        return _arx(relation)
    if params["column_name"] is None:
        raise ParameterError(
            f"{NAME}: column_name is missing; say whose values the leaves are: '{relation.given}', 'age'"
        )
    column = column_of(NAME, relation, params["column_name"])
    if kind == "auto":
        kind = _kind_of(relation, column, params)
    source = f"(select distinct {ident(column)} as _v from {relation.sql} where {ident(column)} is not null)"
    if kind == "date":
        return _dates(source, params["levels"])
    if kind == "code":
        return _codes(context, relation, source, params["levels"])
    if kind == "text":
        return _texts(relation, column, params["mapping"], params["rare"])
    return _numbers(relation, column, source, kind, params)


def _kind_of(relation: Relation, column: str, params: Params) -> str:
    """What a column's type and the call's options say; a text needs one of them."""
    require_visible(NAME, relation)
    kind = relation.columns[column]
    if is_moment(kind):
        return "date"
    if is_number(kind):
        return "number"
    if params["mapping"] is not None:
        return "text"
    return "code" if params["levels"] is not None or re.search("zip|post|plz|code|icd", column.lower()) else "text"


def _arx(relation: Relation) -> str:
    if not re.search(r"\.(csv|txt)(\.gz)?$", relation.given, re.IGNORECASE):
        raise ParameterError(f"{NAME}: kind := 'arx' reads a CSV file that ARX wrote, not '{relation.given}'")
    # the first line is a leaf like the others, and ';' is what ARX writes
    return f"select * from read_csv({literal(relation.given)}, header = false, all_varchar = true, delim = ';')"


def _dates(source: str, given: Any) -> str:
    names = list(given) if given is not None else ["month", "quarter", "year", "5 years", "decade"]
    unknown = [name for name in names if name not in _DATES]
    if unknown or not names:
        wrong = unknown[0] if unknown else ""
        raise ParameterError(
            f"{NAME}: levels has '{wrong}'{nearest(str(wrong), _DATES)}; levels of dates are {listed(_DATES)}"
        )
    if names != [name for name in _DATES if name in names]:
        raise ParameterError(
            f"{NAME}: levels of dates go from fine to coarse: {listed(n for n in _DATES if n in names)}"
        )
    wrong = literal(f"{NAME}: a value is no date; cast the column, or say kind := 'text'")
    levels = [_DATES[name] for name in names]
    dated = f"(select _v, coalesce(try_cast(_v as timestamp), error({wrong})) as _d from {source})"
    return _select(levels, dated)


def _codes(context: Any, relation: Relation, source: str, given: Any) -> str:
    keep = _whole(given) if given is not None else _prefixes(context, relation, source)
    longest = f"(select max(length(_v::varchar)) from {source})"
    levels = [
        # a short code is filled up, so that no label stands for two nodes
        f"case when _m <= {n} then _t else rpad(left(_t, {n}), {n}, ' ') || repeat('*', _m - {n}) end"
        for n in sorted(keep, reverse=True)
    ]
    return _select(levels, f"(select _v, _v::varchar as _t, {longest} as _m from {source})")


def _whole(given: Any) -> list[int]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        given = [given]
    try:
        keep = sorted({int(n) for n in given})
    except (TypeError, ValueError):
        keep = []
    if not keep or keep[0] < 1 or len(keep) > _MOST_LEVELS:
        raise ParameterError(
            f"{NAME}: levels of codes are numbers of characters to keep, at most {_MOST_LEVELS} of them, such as [3, 1]"
        )
    return keep


def _prefixes(context: Any, relation: Relation, source: str) -> list[int]:
    """Every length below the longest code's, or a dozen of them."""
    require_visible(NAME, relation)
    found = context.catalog.cursor.execute(f"select max(length(_v::varchar)) from {source}").fetchone()
    longest = int(found[0] or 1)
    step = -(-(longest - 1) // _MOST_LEVELS) or 1
    return list(range(1, max(longest, 2), step))


def _texts(relation: Relation, column: str, mapping: Mapping[str, Any] | None, rare: int) -> str:
    there = f"{relation.sql} where {ident(column)} is not null group by 1"
    counted = f"(select {ident(column)} as _v, count(*) as _n from {there})"
    if mapping is None:
        return _select([f"case when _n >= {rare} then _v::varchar else {literal(OTHER)} end"], counted)
    groups = ", ".join(f"{literal(str(value))}: {literal(str(group))}" for value, group in mapping.items())
    if not groups:
        raise ParameterError(f"{NAME}: mapping is empty; give {{'value': 'group', ...}}")
    return _select([f"coalesce((map {{{groups}}})[_v::varchar], {literal(OTHER)})"], counted)


def _numbers(relation: Relation, column: str, source: str, kind: str, params: Params) -> str:
    """Intervals between edges, joined two by two; an edge belongs to the interval above it."""
    if relation.visible and not is_number(relation.columns[column]):
        raise ColumnError(
            f"{NAME}: column '{column}' is {relation.columns[column]}; kind := '{kind}' takes "
            "numbers. For texts say kind := 'code' or 'text'"
        )
    bins, breaks = params["bins"], params["breaks"]
    rows = f"(select {ident(column)}::double as _x from {relation.sql} where isfinite({ident(column)}::double))"
    if breaks is not None:
        edges = f"{literal(_breaks(breaks))}::double[]"
        bins = len(breaks) + 1
    elif kind == "quantile":
        shares = literal([k / bins for k in range(1, bins)])
        edges = f"(select list_distinct(quantile_disc(_x, {shares})) from {rows})"
    else:
        edges = (
            "(select list_transform(range(floor(_low / _step)::bigint + 1, ceil(_high / _step)::bigint), "
            f"lambda k: k * _step) from (select _low, _high, {_step(bins)} as _step from "
            f"(select min(_x) as _low, max(_x) as _high, (max(_x) - min(_x)) / {bins} as _raw from {rows})))"
        )
        bins += 2
    edges = f"coalesce({edges}, [])"
    for name, sign in (("bottom", ">"), ("top", "<")):
        if params[name] is not None:
            end = repr(float(params[name]))
            edges = f"list_append(list_filter({edges}, lambda e: e {sign} {end}), {end}::double)"
            bins += 1
    levels: list[str] = []
    width = 1
    while width < bins and len(levels) < _MOST_LEVELS:
        levels.append(_interval(width))
        width *= 2
    place = "len(list_filter(_e, lambda e: e <= _v::double))"
    return _select(levels, f"(select _v, _e, {place} as _i from {source}, (select list_sort({edges}) as _e))")


def _step(bins: int) -> str:
    """The smallest of 1, 2, 5, 10 times a power of ten that is at least the raw width."""
    power = "power(10, floor(log10(_raw)))"
    return (
        f"case when _raw > 0 then {power} * case when _raw <= {power} then 1 when _raw <= 2 * {power} then 2 "
        f"when _raw <= 5 * {power} then 5 else 10 end else 1 end"
    )


def _interval(width: int) -> str:
    low, high = f"(_i // {width} * {width})", f"(_i // {width} * {width} + {width})"

    def text(edge: str) -> str:
        value = f"_e[{edge}]"
        whole = f"{value} = trunc({value}) and abs({value}) < 1e15"
        return f"case when {whole} then {value}::bigint::varchar else {value}::varchar end"

    return (
        f"case when {low} = 0 and {high} > len(_e) then {literal(ROOT)} when {low} = 0 then '< ' || {text(high)} "
        f"when {high} > len(_e) then '>= ' || {text(low)} else '[' || {text(low)} || ', ' || {text(high)} || ')' end"
    )


def _breaks(given: Any) -> list[float]:
    try:
        breaks = [float(value) for value in given]
    except (TypeError, ValueError):
        breaks = []
    if not breaks or breaks != sorted(set(breaks)) or len(breaks) > 1000:
        raise ParameterError(f"{NAME}: breaks := {given!r} is no list of rising numbers, such as [18, 40, 65]")
    return breaks


def _select(levels: Sequence[str], source: str) -> str:
    shown = "".join(f", {sql} as level{k}" for k, sql in enumerate(levels, start=1))
    return f"select _v as level0{shown}, {literal(ROOT)} as level{len(levels) + 1} from {source} order by _v"


MEASURE = Query(
    name=NAME,
    summary="a hierarchy for a column, as a table: dates, codes by prefix, intervals of numbers, groups of texts",
    paper="",
    example="FROM anon_hierarchy('people', 'age', bins := 8)",
    parameters=(
        Parameter("column_name", "the column whose values are the leaves", "text"),
        Parameter("kind", "what the values are; 'arx' reads a CSV file that ARX wrote", "text", "auto", KINDS),
        Parameter("levels", "dates: units, ['month', 'year']; codes: characters to keep, [3, 1]", "any"),
        Parameter("bins", "numbers: intervals of the finest level", "integer", 8, low=2, high=1000),
        Parameter("breaks", "numbers: ends of the intervals, [18, 40, 65]", "any"),
        Parameter("bottom", "numbers: all below it together", "number"),
        Parameter("top", "numbers: all from it on together", "number"),
        Parameter("mapping", "texts: value to group, {'France': 'Europe'}", "mapping"),
        Parameter("rare", "texts: those in fewer rows go together", "integer", 5, low=1),
    ),
    plan=plan_hierarchy,
)
