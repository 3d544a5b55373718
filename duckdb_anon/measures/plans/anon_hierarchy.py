"""anon_hierarchy: a hierarchy for a column, as the table that methods and `hierarchies := {...}` take.

One row a value: the value (`level0`), then its ancestors up to the root '*'. Dates become months, quarters, years, five
years and decades; codes and postcodes lose characters from the right, as ARX masks them (whole numbers are filled up
with zeros from the left first: a postcode that was read as a number has lost them); numbers fall into intervals that
are joined two by two: of equal width with round ends, at quantiles, or between given breaks. Their outer ends are open,
so that no label tells the smallest or largest value; quantiles are values that rows have. Codes for missing values
(999, -1; `missing_codes`) are kept out of the intervals, as a node "(missing)", unless breaks are given. Texts go to
the groups of a mapping, or rare ones together. ARX's CSV files (no header; ';', ',' or tabs) are read as they are. NULL
is no leaf: it stands under the root by itself. Values that appear later are no leaves either: give all that may come as
the table.
What an option says decides the kind where none is given; one that the kind does not heed is refused.
Cost: two aggregations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.engine.catalog.column_roles import column_of
from duckdb_anon.engine.sql_quoting import ident, literal, macro_statements
from duckdb_anon.measures.plans.missing_codes import LABEL, MACROS, number_codes
from duckdb_anon.model.errors import ColumnError, ParameterError, cause_of, listed, nearest, one_line
from duckdb_anon.model.function_specs import Parameter, Params, Query
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment, is_number

NAME = "anon_hierarchy"
KINDS = ("auto", "date", "code", "number", "quantile", "text", "arx")
ROOT = "*"
OTHER = "(other)"
_DATES = ("day", "month", "quarter", "year", "5 years", "decade")
_OTHERWISE = {"days": "day", "months": "month", "quarters": "quarter", "years": "year", "decades": "decade"}
_OTHERWISE |= {"five years": "5 years", "10 years": "decade", "ten years": "decade"}
_MOST_LEVELS = 12
_MACROS_OF_EDGES = ("_anon_power", "_anon_digit", "_anon_multiple", "_anon_round_edges", *MACROS)
"""Those that planning itself calls, on a cursor that has none."""
_HEEDED = {
    "date": ("levels",),
    "code": ("levels",),
    "number": ("bins", "breaks", "bottom", "top"),
    "quantile": ("bins", "bottom", "top"),
    "text": ("mapping", "rare"),
    "arx": (),
}
"""Options of each kind."""


@Query(
    summary="a hierarchy for a column, as a table: dates, codes by prefix, intervals of numbers, groups of texts",
    example="FROM anon_hierarchy('people', 'age', bins := 8)",
    section="Preparing a call",
    smallest="column_name := '{number}'",
    parameters=(
        Parameter("column_name", "the column whose values are the leaves", "text"),
        Parameter("kind", "what the values are; 'arx' reads a CSV file that ARX wrote", "text", "auto", KINDS),
        Parameter("levels", "dates: units, ['month', 'year']; codes: number of leading characters, [3, 1]", "any"),
        Parameter("bins", "numbers: intervals of the finest level", "integer", 8, low=2, high=1000),
        Parameter("breaks", "numbers: ends of the intervals, [18, 40, 65]", "any"),
        Parameter("bottom", "numbers: all values below it are grouped", "number"),
        Parameter("top", "numbers: all values from it on are grouped", "number"),
        Parameter("mapping", "texts: value to group, {'France': 'Europe'}", "mapping"),
        Parameter("rare", "texts: values in fewer records are grouped", "integer", 5, low=1),
    ),
)
def anon_hierarchy(context: Any, params: Params) -> str:
    """Write the SQL of a hierarchy: SELECT level0, level1, ..."""
    given = [name for name in dict.fromkeys(sum(_HEEDED.values(), ())) if context.arguments.get(name) is not None]
    kind = params["kind"]
    if kind == "arx":
        _only_heeded(kind, given)
        return _arx(context)
    relation = context.relation("tbl")
    if params["column_name"] is None:
        raise ParameterError(
            f"column_name is missing; name the column whose values are the leaves: '{relation.given}', 'age'"
        )
    column = column_of(NAME, relation, params["column_name"])
    if kind == "auto":
        kind = _kind_of(relation, column, params, given)
    _only_heeded(kind, given)
    source = f"(select distinct {ident(column)} as _v from {relation.sql} where {ident(column)} is not null)"
    if kind == "date":
        return _dates(source, params["levels"])
    if kind == "code":
        return _codes(context, relation, column, source, params["levels"])
    if kind == "text":
        return _texts(relation, column, params["mapping"], params["rare"])
    return _numbers(context, relation, column, source, kind, params, given)


def _kind_of(relation: Relation, column: str, params: Params, given: Sequence[str]) -> str:
    """What a column's type and the call's options say; a text needs one of them."""
    if not relation.visible:
        names = listed(kind for kind in KINDS if kind not in ("auto", "arx"))
        raise ParameterError(f"{relation.hint}, or say which kind := ... its values are: {names}")
    kind = relation.columns[column]
    if "mapping" in given or "rare" in given:
        return "text"
    if is_moment(kind) or ("levels" in given and any(name in _DATES for name in _units(params["levels"]))):
        return "date"
    if is_number(kind) and "levels" not in given:
        return "number"
    if any(name in given for name in _HEEDED["number"]):
        return "number"
    return "code" if "levels" in given or re.search("zip|post|plz|code|icd", column.lower()) else "text"


def _only_heeded(kind: str, given: Sequence[str]) -> None:
    """Refuse an option that says nothing about this kind."""
    for name in given:
        if name not in _HEEDED[kind]:
            takers = listed(f"'{k}'" for k, options in _HEEDED.items() if name in options)
            takes = listed(_HEEDED[kind]) if _HEEDED[kind] else "none of the options"
            raise ParameterError(f"kind := '{kind}' takes {takes}; {name} belongs to kind := {takers}")


def _arx(context: Any) -> str:
    path = context.arguments.get("tbl")
    if not isinstance(path, str) or not re.search(r"\.(csv|txt)(\.gz)?$", path, re.IGNORECASE):
        raise ParameterError(f"kind := 'arx' reads a CSV file that ARX wrote, not '{path}'")
    for delimiter in ";,\t":
        # the first line is a leaf like the others, a quote is doubled, and an empty cell is an empty text
        read = (
            f"read_csv({literal(path)}, header = false, all_varchar = true, delim = {literal(delimiter)}, "
            "quote = '\"', escape = '\"', nullstr = '\x01')"
        )
        try:
            found = context.catalog.cursor.execute(f"describe from {read}").fetchall()
        except Exception as error:  # DuckDB's, which measures do not import
            raise ParameterError(
                f"'{path}' cannot be read as a CSV file of ARX's: UTF-8 text, lines of as many cells each, "
                f"separated by ';' ({one_line(error)})"
            ) from cause_of(error)
        if len(found) > 1:
            return rf"select columns('column0*(\d+)') as 'level\1' from {read}"
    raise ParameterError(f"'{path}' has one cell a line; a hierarchy has a value and its ancestors, as in 'male;*'")


def _units(given: Any) -> list[str]:
    """Levels of dates as they are called here."""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else [given]
    plain = [str(name).strip().lower() for name in names]
    return [_OTHERWISE.get(name, name) for name in plain]


def _dates(source: str, given: Any) -> str:
    names = _units(given) if given is not None else ["month", "quarter", "year", "5 years", "decade"]
    unknown = [name for name in names if name not in _DATES]
    if not names:
        raise ParameterError(f"levels is empty; levels of dates are {listed(_DATES)}")
    if unknown:
        raise ParameterError(
            f"levels has '{unknown[0]}'{nearest(unknown[0], _DATES)}; levels of dates are {listed(_DATES)}"
        )
    if names != [name for name in _DATES if name in names]:
        raise ParameterError(
            f"levels of dates go from fine to coarse, each once: {listed(n for n in _DATES if n in names)}"
        )
    wrong = literal(
        f"{NAME}: a value is no date as DuckDB writes it; make the column a DATE, as strptime(d, '%d/%m/%Y') does, or "
        f"say kind := 'text' [{ColumnError.code}]"
    )
    levels = [f"_anon_date_label(_d, {literal(name)})" for name in names]
    dated = f"(select _v, coalesce(try_cast(_v as timestamp), error({wrong})) as _d from {source})"
    return _select(levels, dated)


def _codes(context: Any, relation: Relation, column: str, source: str, given: Any) -> str:
    longest = f"(select max(length(_v::varchar)) from {source})"
    most = context.catalog.cursor.execute(f"select {longest}").fetchone()[0] if relation.visible else None
    if given is None and not relation.visible:
        raise ParameterError(f"{relation.hint}, or say levels := [...], the numbers of characters to keep")
    longest_prefix = max(most or 1, 2) - 1
    step = -(-longest_prefix // _MOST_LEVELS)  # every length below the longest code's, or a dozen of them
    keep = _lengths(given) if given is not None else list(range(1, longest_prefix + 1, step))
    if given is not None and most is not None and keep[-1] >= most:
        raise ParameterError(
            f"levels keeps {keep[-1]} characters, and the longest value has {most}; take fewer, for levels of "
            "codes are numbers of characters to keep"
        )
    integral = relation.visible and is_integer(relation.columns[column])
    text = f"if(_v < 0, _v::varchar, lpad(_v::varchar, {longest}::int, '0'))" if integral else "_v::varchar"
    levels = [f"_anon_prefix(_t, {n}, _m)" for n in sorted(keep, reverse=True)]
    return _select(levels, f"(select _v, {text} as _t, {longest} as _m from {source})")


def _lengths(given: Any) -> list[int]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        given = [given]
    try:
        keep = sorted({int(n) for n in given if int(n) == float(n)} if all(given) else [])
    except (TypeError, ValueError):
        keep = []
    if not keep or keep[0] < 1 or len(keep) > _MOST_LEVELS:
        raise ParameterError(
            f"levels of codes are numbers of characters to keep, at most {_MOST_LEVELS} of them, such as [3, 1]"
        )
    return keep


def _texts(relation: Relation, column: str, mapping: Mapping[str, Any] | None, rare: int) -> str:
    there = f"{relation.sql} where {ident(column)} is not null group by 1"
    counted = f"(select {ident(column)} as _v, count(*) as _n from {there})"
    if mapping is None:
        return _select([f"case when _n >= {rare} then _v::varchar else {literal(OTHER)} end"], counted)
    nowhere = [str(value) for value, group in mapping.items() if group is None]
    if nowhere:
        raise ParameterError(f"mapping gives '{nowhere[0]}' NULL as its group; name a group or leave it out")
    groups = ", ".join(f"{literal(str(value))}: {literal(str(group))}" for value, group in mapping.items())
    if not groups:
        raise ParameterError("mapping is empty; give {'value': 'group', ...}")
    return _select([f"coalesce((map {{{groups}}})[_v::varchar], {literal(OTHER)})"], counted)


def _numbers(
    context: Any, relation: Relation, column: str, source: str, kind: str, params: Params, given: Sequence[str]
) -> str:
    """Intervals between edges, joined two by two; an edge belongs to the interval above it."""
    if relation.visible and not is_number(relation.columns[column]):
        raise ColumnError(
            f"column '{column}' is {relation.columns[column]}; kind := '{kind}' takes "
            "numbers. For texts say kind := 'code' or 'text'"
        )
    bins, breaks = params["bins"], params["breaks"]
    for name in ("bottom", "top"):
        if params[name] is not None and not math.isfinite(params[name]):
            raise ParameterError(f"{name} := {params[name]} is no finite number")
    bottom, top = (None if params[name] is None else float(params[name]) for name in ("bottom", "top"))
    if bottom is not None and top is not None and bottom > top:
        raise ParameterError(f"bottom := {bottom:g} is above top := {top:g}; all below bottom go together")
    if breaks is not None and "bins" in given:
        raise ParameterError("breaks say where the intervals end; leave bins out")
    codes = "[]::double[]" if breaks is not None else number_codes(relation.sql, column)
    rows = (
        f"(select {ident(column)}::double as _x from {relation.sql} "
        f"where isfinite({ident(column)}::double) and not list_contains({codes}, {ident(column)}::double))"
    )
    if breaks is not None:
        edges = f"{literal(_breaks(breaks))}::double[]"
        bins = len(breaks) + 1
    elif kind == "quantile":
        # nothing is below the smallest value: its own edge would only tell it
        quantiles = f"list_distinct(quantile_disc(_x, {literal([k / bins for k in range(1, bins)])}))"
        edges = f"(select list_filter({quantiles}, lambda e: e > min(_x)) from {rows})"
    else:
        edges = f"_anon_round_edges(min(_x), max(_x), {bins})"
        if relation.visible and is_integer(relation.columns[column]):  # no whole number lies between 20 and 20.5
            edges = f"list_distinct(list_transform({edges}, lambda e: ceil(e)))"
        edges = f"(select {edges} from {rows})"
        bins += 2
    edges = f"coalesce({edges}, [])"
    for end, sign in ((bottom, ">"), (top, "<")):
        if end is not None:
            edges = f"list_append(list_filter({edges}, lambda e: e {sign} {end}), {end}::double)"
            bins += 1
    if relation.visible:
        cursor = context.catalog.cursor
        for name, macro in macro_statements(set()):
            if name in _MACROS_OF_EDGES:
                cursor.execute(macro)
        bins = cursor.execute(f"select len({edges}) + 1").fetchone()[0]
    levels: list[str] = []
    width = 1
    while width < bins and len(levels) < _MOST_LEVELS:
        levels.append(
            f"case when list_contains(_codes, _v::double) then {literal(LABEL)} else _anon_joined(_e, _i, {width}) end"
        )
        width *= 2
    interval = "len(list_filter(_e, lambda e: e <= _v::double))"
    edged = f"(select list_sort({edges}) as _e), (select {codes} as _codes)"
    return _select(levels, f"(select _v, _e, _codes, {interval} as _i from {source}, {edged})")


def _breaks(given: Any) -> list[float]:
    try:
        breaks = [float(value) for value in given]
    except (TypeError, ValueError):
        breaks = []
    if not all(map(math.isfinite, breaks)) or not breaks or breaks != sorted(set(breaks)) or len(breaks) > 1000:
        raise ParameterError(f"breaks := {literal(given)} is no list of rising numbers, such as [18, 40, 65]")
    return breaks


def _select(levels: Sequence[str], source: str) -> str:
    columns = "".join(f", {sql} as level{k}" for k, sql in enumerate(levels, start=1))
    return f"select _v as level0{columns}, {literal(ROOT)} as level{len(levels) + 1} from {source} order by _v"
