"""anon_profile, label_statements: what each column of a table contains, the proposed role, the reason, and its SQL.

One row per column. Types, NULLs, numbers of values and the share of unique values are those of the full table; what
values look like and what a column adds to uniqueness are found on a random sample of `rows` rows. `adds` is the share
of sampled rows that are unique on all proposed quasi-identifiers and would not be without this one (for another column:
that would be unique if it were known too). Numbers of persons, cards and accounts are checked by python-stdnum, phone
numbers by phonenumbers (`pip install duckdb-anon[profile]`). A proposal is a guess by rules (`report.profile`): read it
before you follow it. No value of the table is printed but codes for missing values. label_statements writes one COMMENT
ON COLUMN a column that has no role yet, to be read, changed and run; a comment there is stays in front.
Cost: an aggregation per column, and the sample's rows times columns.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow.compute as pc

from duckdb_anon.engine.catalog.column_roles import role_of
from duckdb_anon.engine.catalog.person_checks import FREQUENCIES
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.kernels.row_keys import compact, joint
from duckdb_anon.measures.plans.missing_codes import counted_values
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import Parameter, Params, Task, fields
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.parameters import MOST_SEED
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number
from duckdb_anon.report.profile.names import hinted
from duckdb_anon.report.profile.role_classifier import Facts, Suggestion, suggested, with_single_person
from duckdb_anon.report.profile.value_detectors import country_of, looks_like, require_libraries

_PART = r'(?:"(?:[^"]|"")+"|\w+)'
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")
_FILE = re.compile(r"\.(csv|tsv|txt|parquet|json|jsonl|ndjson|xlsx)$", re.IGNORECASE)
_MOST_VALUES = 400
_ARGUMENTS = {"date": ", kind := 'date'", "code": ", kind := 'code'", "number": "", "text": ", kind := 'text'"}
OPTIONS = (
    Parameter("rows", "records of the random sample that is analysed", "integer", 20_000, low=1, high=1_000_000),
    Parameter("country", "two-letter country code for phone numbers without a prefix", "text", "US"),
    Parameter("seed", "whole number that makes the sample repeatable", "integer", 1, low=0, high=MOST_SEED),
)


def plan_profile(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Say which columns there are, and ask for their facts and a sample of the rows."""
    require_libraries()
    relation = context.visible("tbl")
    columns = list(relation.columns)
    counted = [
        f"select {k}::bigint as k, * from ({counted_values(relation.sql, name, kind)})"
        for k, (name, kind) in enumerate(relation.columns.items())
    ]
    facts = (
        "select k, count(*) as d, sum(n)::bigint as n, count(*) filter (where n = 1) as u, "
        f"_anon_codes(x, v, n, may_be) as codes from ({_all_of(counted)}) group by k"
    )
    codes = "nullif(array_to_string(list_transform(codes, lambda s: coalesce(s.x::bigint::varchar, s.v)), ', '), '')"
    row = ", ".join(f"c{k}: {ident(c)}::varchar" for k, c in enumerate(columns))
    numbered = f"(select *, row_number() over () as _anon_rn from {relation.sql})"
    sampled = f"(select * from {numbered} order by hash(_anon_rn, {params['seed']}) limit {params['rows']})"
    planned = {
        "table": relation.given,
        "columns": [[name, kind, relation.comments.get(name) or ""] for name, kind in relation.columns.items()],
        "country": country_of(params["country"]),
    }
    lists = {
        "rows": f"(select [count(*)] from {relation.sql})",
        "facts": f"(select list({{k: k, d: d, n: n, u: u, codes: {codes}}}) from ({facts}))",
    }
    return planned, {**lists, "sample": f"(select list({{{row}}}) from {sampled})"}


def _all_of(selects: Sequence[str]) -> str:
    """UNION ALL of SELECTs, nested by halves: DuckDB allows 1000 levels."""
    if len(selects) == 1:
        return selects[0]
    middle = len(selects) // 2
    return f"({_all_of(selects[:middle])}) union all ({_all_of(selects[middle:])})"


def profile(planned: Mapping[str, Any], rows: Mapping[str, Any]) -> list[tuple[Facts, Suggestion, float]]:
    """Facts, suggestion and addition to uniqueness of each column."""
    number, sample = rows["rows"][0].as_py(), rows["sample"]
    nulls_only = {"d": 0, "n": 0, "u": 0, "codes": None}
    facts = defaultdict(lambda: nulls_only, ((found["k"], found) for found in rows["facts"].to_pylist()))
    columns = []
    for k, (name, kind, _) in enumerate(planned["columns"]):
        values = pc.unique(sample.field(f"c{k}").drop_null())[:_MOST_VALUES].to_pylist() if len(sample) else []
        real = is_number(kind) and not is_integer(kind)
        if real and values and all(value.endswith(".0") for value in values):
            kind = "BIGINT"  # whole numbers, as programs that know no NULL among them write them
        kind_seen, share = ("", 0.0) if real or kind == "INTERVAL" else looks_like(values, planned["country"])
        nulls, unique = (1 - facts[k]["n"] / number, facts[k]["u"] / number) if number else (0.0, 0.0)
        columns.append(Facts(name, kind, number, facts[k]["d"], nulls, unique, hinted(name), kind_seen, share))
    labelled = any(role_of(comment) == "person" for _, _, comment in planned["columns"])
    found = with_single_person([(column, suggested(column)) for column in columns], labelled)
    codes = [_codes(sample.field(f"c{k}")) for k in range(len(columns))] if len(sample) else []
    for k, column in enumerate(columns):
        if facts[k]["codes"] is not None:
            missing = f"probable codes for missing values: {facts[k]['codes']}. Set them to NULL before a release"
            found[k] = replace(found[k], reason=f"{found[k].reason}; {missing}")
        if _counts_records(k, columns, found, codes):
            found[k] = _frequency(planned["table"], column)
    adds = _additions(codes, [suggestion.role == "quasi" for suggestion in found])
    return list(zip(columns, found, adds, strict=True))


def _counts_records(
    column: int, columns: Sequence[Facts], found: Sequence[Suggestion], codes: Sequence[IntArray]
) -> bool:
    """Whether a column of a table of counts says how many records each row stands for."""
    facts = columns[column]
    if fold(facts.name) not in FREQUENCIES or not is_integer(facts.type) or facts.distinct < 2 or not codes:
        return False
    number = np.zeros(len(codes[0]), dtype=np.int64)
    for k, suggestion in enumerate(found):
        if k != column and suggestion.role != "identifier":
            number = _numbered(number, codes[k])
    return _alone(number) == 1


def _frequency(table: str, facts: Facts) -> Suggestion:
    expanded = f"SELECT _t.* EXCLUDE ({ident(facts.name)}) FROM {table} AS _t, range(_t.{ident(facts.name)})"
    reason = (
        f"number of records per row: no two rows have the same other values. Pass sample_weights := "
        f"{literal(facts.name)}, or expand the table: {expanded}"
    )
    return Suggestion("frequency", "", reason, "", "")


def _codes(values: Any) -> IntArray:
    encoded: IntArray = pc.fill_null(values.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False) + 1
    return encoded.astype(np.int64)


def _additions(codes: Sequence[IntArray], chosen: Sequence[bool]) -> list[float]:
    """Share of the rows that a column distinguishes besides the chosen ones."""
    if not codes:
        return [0.0] * len(chosen)
    nothing = np.zeros(len(codes[0]), dtype=np.int64)
    quasi = [k for k, is_quasi in enumerate(chosen) if is_quasi]
    later = [nothing]  # number of a row by the quasi-identifiers after each, from the last
    for k in reversed(quasi):
        later.append(_numbered(later[-1], codes[k]))
    every = _alone(later.pop())
    additions, before = [], nothing
    for k, is_quasi in enumerate(chosen):
        if is_quasi:
            additions.append(every - _alone(_numbered(before, later.pop())))
            before = _numbered(before, codes[k])
        else:
            additions.append(0.0)
    return [
        addition if is_quasi else _alone(_numbered(before, codes[k])) - every
        for k, (addition, is_quasi) in enumerate(zip(additions, chosen, strict=True))
    ]


def _numbered(column: IntArray, other: IntArray) -> IntArray:
    """Numbers of the combinations of two numbers of each row."""
    return compact(joint([column, other])).astype(np.int32)


def _alone(number: IntArray) -> float:
    """Share of the rows whose number no other row has."""
    return float((np.bincount(number)[number] == 1).mean())


def _work(con: Any, planned: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    answer = []
    for (facts, found, add), (_, kind, comment) in zip(profile(planned, rows), planned["columns"], strict=True):
        hierarchy = None
        if found.hierarchy and found.role == "quasi":
            options = _ARGUMENTS[found.hierarchy]
            hierarchy = f"anon_hierarchy({literal(planned['table'])}, {literal(facts.name)}{options})"
        cells = (
            facts.name, found.role or None, found.reason, found.kind or None, facts.distinct, facts.uniqueness,
            facts.nulls, add, hierarchy, found.safe_harbor or None, kind, comment or None,
        )  # fmt: skip
        answer.append(dict(zip(PROFILE.returns, cells, strict=True)))
    return answer


def _plan_labels(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    planned, lists = plan_profile(context, params)
    if _FILE.search(planned["table"]) or not _NAME.fullmatch(planned["table"]):
        raise ParameterError(
            f"'{planned['table']}' is no table that comments could be written on; make it one with "
            "CREATE TABLE ... AS, or name the roles in the calls of methods and measures, with qi and sensitive"
        )
    return planned, lists


def _label(con: Any, planned: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    statements = []
    for (facts, suggestion, _), (_, _, comment) in zip(profile(planned, rows), planned["columns"], strict=True):
        if suggestion.role and not role_of(comment):
            statement = label_statement(planned["table"], facts.name, suggestion.role, comment)
            statements.append({"statement": statement, "reason": suggestion.reason})
    return statements


def label_statement(table: str, column: str, role: str, comment: str) -> str:
    """The statement that gives a column its role and keeps its comment; `table` as SQL names it.

    >>> print(label_statement("people", "age", "quasi", "in years"))
    COMMENT ON COLUMN people."age" IS 'in years; anon: quasi';
    """
    text = f"{comment}; anon: {role}" if comment else f"anon: {role}"
    return f"COMMENT ON COLUMN {table}.{ident(column)} IS {literal(text)};"


_of_columns = partial(Task, section="Preparing a call", parameters=OPTIONS, database="own")
PROFILE = _of_columns(
    name="anon_profile",
    summary="one row per column: what it contains, how identifying it is, the proposed role and the reason",
    paper="Safe Harbor: 45 CFR 164.514(b)(2)(i)",
    example="FROM anon_profile('people')",
    returns=fields(
        # a box 80 characters wide shows the first three columns and the last two
        "column_name VARCHAR, role VARCHAR, reason VARCHAR, looks_like VARCHAR, distinct_values BIGINT, "
        "uniqueness DOUBLE, nulls DOUBLE, adds DOUBLE, hierarchy VARCHAR, safe_harbor VARCHAR, type VARCHAR, "
        "comment VARCHAR"
    ),
    plan=plan_profile,
    work=_work,
)
LABEL_STATEMENTS = _of_columns(
    name="label_statements",
    summary="COMMENT statements with the roles that anon_profile proposes, for columns without a label",
    paper="see anon_profile",
    example="FROM label_statements('ages')",
    returns={"statement": "VARCHAR", "reason": "VARCHAR"},
    plan=_plan_labels,
    work=_label,
)
