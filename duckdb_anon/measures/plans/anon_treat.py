"""anon_treat: a table with treated columns, as a SELECT; anon_treatments lists what columns can be treated with.

Columns that are not named stay as they are. A treatment promises nothing by itself (`treatments`): use it on columns
that are no quasi-identifiers. The key of pseudonyms and shifts is drawn for each call and thrown away, so that tables
of two calls do not join unless they name one `key_file`. (`TREAT` is a word of SQL's own.)
Cost: one pass; 6 s for a million hashes on one core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duckdb_anon.engine.catalog.column_roles import column_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import ParameterError, listed
from duckdb_anon.model.function_specs import REQUIRED, Answer, Parameter, Params, Query, Report, fields
from duckdb_anon.treatments import Column, Key, treated, treatments

NAME = "anon_treat"


@Query(
    summary="a table with treated columns: pseudonyms, shifted dates, masked, faked, noisy or rounded values",
    paper="HMAC: RFC 2104",
    example="FROM anon_treat('visits', {'pid': 'pseudonym', 'age': 'top(89)', 'disease': 'mask(keep := 1)'})",
    section="Preparing a call",
    smallest="treatments := {{'{number}': 'mask'}}",
    parameters=(
        Parameter("treatments", "treatment of each column, {'birth': 'shift(90)'}", "mapping", REQUIRED),
        Parameter(
            "person", "column that identifies the individual of each record (default: commented 'anon: person')", "text"
        ),
        Parameter(
            "key_file", "file with the key of pseudonyms and shifts (default: a key drawn for this call)", "text"
        ),
    ),
    answers=("*",),
)
def anon_treat(context: Any, params: Params) -> str:
    """The table with its treated columns."""
    relation = context.visible("tbl")
    given = {column_of(NAME, relation, name): text for name, text in params["treatments"].items()}
    if not given:
        raise ParameterError("treatments is empty. Say {'column': 'treatment'}")
    key = Key.of_file(NAME, params["key_file"])
    person = context.roles(relation, only=("person",)).person
    individual = f"{ident(person.name)}::varchar" if person else ""
    items = []
    for name, kind in relation.columns.items():
        if name not in given:
            items.append(ident(name))
            continue
        sql = treated(NAME, Column(name, kind, relation.given, "", individual), given[name], key)
        if sql is not None:
            items.append(f"{sql} as {ident(name)}")
    if not items:
        raise ParameterError(f"no column is left. Its columns are {listed(relation.columns)}")
    return f"select {', '.join(items)} from {relation.sql}"


@Report(
    summary="the treatments of columns: what each does, what it protects, its parameters",
    example="FROM anon_treatments()",
    section="Help",
    returns=fields("treatment VARCHAR, summary VARCHAR, protects VARCHAR, parameters VARCHAR"),
    unit="any",
    tables=(),
    needs=(),
)
def anon_treatments(tables: Sequence[object], params: Params, rng: object) -> Answer:
    """One row a treatment."""
    return [
        (each.name, each.summary, each.promise, "; ".join(f"{p.name}: {p.doc}" for p in each.parameters))
        for each in treatments().values()
    ]  # fmt: skip
