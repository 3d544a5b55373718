"""Rows and persons: what takes each row for a person refuses a table in which somebody has several.

A class of ten rows may hold one person alone, so k, l, delta, t, probabilities and risks that count rows say nothing
of persons there. Every entry says what it counts (`unit`), and the one place where that is held against the rows is
here. A person column in which nobody has two rows changes nothing: rows are persons then. Cost: one pass.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.coded_table import Attribute, CodeArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, with_code
from duckdb_anon.model.function_specs import Entry, Method, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.release_formats import Contents
from duckdb_anon.model.release_formats.duckdb_types import is_integer

FREQUENCIES = ("freq", "frequency", "n", "count")
"""Names of columns that count records, in lower case."""


def check_persons(entry: Entry, name: str, codes: CodeArray, null_code: int) -> None:
    """Make sure that an entry may read a table whose rows belong to persons.

    Args:
        entry: the function called.
        name: the column that says whose row it is.
        codes: person of each row.
        null_code: the code of NULL, or -1.

    Raises:
        RequirementError: somebody has several rows and the entry takes each row for a person, or a row is nobody's.
    """
    if entry.unit == "any":
        return
    nobodys = int((codes == null_code).sum())
    if nobodys:
        raise RequirementError(
            f"{entry.name}: '{name}' is NULL in {nobodys} rows, so whose they are is unknown; leave them out or give "
            "each its own number",
            code="row-without-person",
        )
    if entry.unit == "person":
        return
    rows = np.bincount(codes)
    several = int((rows > 1).sum())
    if several:
        raise RequirementError(
            f"{entry.name}: {_takes_rows(entry)}, but '{name}' says that {several} of {int((rows > 0).sum())} persons "
            f"have several; {_instead(entry)}",
            code="several-rows",
        )


def check_coded(entry: Entry, person: Attribute | None) -> None:
    """`check_persons` of a coded table, if a column says whose row it is."""
    if person is not None:
        check_persons(entry, person.name, person.codes, person.null_code)


def refusing(entry: Entry, select: str, table: str, name: str) -> str:
    """`select`, which answers a planned query, refused when it runs where somebody has several rows of `table`.

    Args:
        entry: the function called.
        select: its SQL text.
        table: the table whose rows belong to persons, as SQL reads it.
        name: the column that says whose row it is.
    """
    text = f"{entry.name}: {_takes_rows(entry)}, but '{name}' says that persons have several; {_instead(entry)}"
    text = with_code(text, "several-rows")
    counted = f"(select count(distinct {ident(name)}) < count(*) from {table})"
    return f"from ({select}) as _anon_answer where case when {counted} then error({literal(text)}) else true end"


def check_described(entry: Entry, relation: Relation) -> None:
    """Refuse to count rows of a release whose description says that persons were counted, and which names none.

    Raises:
        ParameterError: naming what counts persons.
    """
    description = read_description(relation.comment)
    if entry.unit != "any" and description is not None and description.persons:
        raise ParameterError(
            f"{entry.name}: {relation.given} was made counting persons and no column says whose its rows are, so rows "
            f"would be counted; make the same call with CREATE TABLE checked AS FROM {description.method}(..., row_id "
            ":= true), and ask k_anonymity('checked', original := '...') or another measure that takes original",
            code="several-rows",
        )


def with_persons(entry: Entry, release: Relation, contents: Contents, original: Relation, person: str | None) -> str:
    """A release with the persons of its rows, as a SELECT in parentheses.

    Args:
        entry: the function called.
        release: made with row_id := true.
        contents: what it carries.
        original: what it was made of.
        person: the column of the original that says whose row it is.

    Raises:
        ColumnError: the original has no person column, or the release no row numbers.
    """
    if person is None:
        raise ColumnError(
            f"{entry.name}: no column of {original.given} says whose row it is; say person := '...' or COMMENT ON "
            "COLUMN ... IS 'anon: person'"
        )
    if not contents.source:
        raise ColumnError(
            f"{entry.name}: {release.given} has no column row_id to find the persons of its rows by; make it with "
            "row_id := true, for your own checks alone"
        )
    if contents.slices() and "sensitive" in getattr(entry, "needs", ()):
        raise ColumnError(
            f"{entry.name}: in {release.given} row_id is permuted like every slice and does not say whose a sensitive "
            "value is; k_anonymity tells the persons of its buckets"
        )
    whose = f"select {ident(person)} as _anon_person, row_number() over () - 1 as _anon_rn from {original.sql}"
    return (
        f"(select _anon_r.*, _anon_o._anon_person from {release.sql} as _anon_r join ({whose}) as _anon_o "
        f"on _anon_o._anon_rn = _anon_r.{ident(contents.source)})"
    )


def require_no_frequency(
    function: str, catalog: Catalog, relation: Relation, roles: Roles, *, weights: bool = False
) -> None:
    """Refuse a quasi-identifier that says how many records each row of a table of counts stands for.

    It is one by its name, where it holds whole numbers and no two rows agree on all other attributes.

    Args:
        function: SQL function, for messages.
        catalog: what the planner can see.
        relation: the table.
        roles: its columns.
        weights: whether the function takes sample_weights.

    Raises:
        ColumnError: naming the column, and the table with a row a record.
    """
    named = [i for i in roles.qi if fold(i.name) in FREQUENCIES and is_integer(i.type)]
    if roles.person or not named or catalog.cursor is None:
        return
    column = ident(named[0].name)
    others = idents(i.name for i in roles.qi + roles.sensitive if i is not named[0])
    if not others:
        return
    counts = (
        f"select count(*) > 1 and min({column}) >= 0 and max({column}) > 1 and count(*) = "
        f"(select count(*) from (select distinct {others} from {relation.sql})) from {relation.sql}"
    )
    if not catalog.cursor.execute(counts).fetchall()[0][0]:
        return
    expanded = f"(SELECT _t.* EXCLUDE ({column}) FROM {relation.unnamed} AS _t, range(_t.{column}))"
    remedy = (
        f"Leave it out of qi and say sample_weights := {literal(named[0].name)}, or expand" if weights else "Expand"
    )
    raise ColumnError(
        f"{function}: column '{named[0].name}' says how many records each row stands for, as no two rows agree on all "
        f"other attributes, and rows are taken for records. {remedy} the table: '{expanded}'. If it is an attribute, "
        "give it another name"
    )


def _takes_rows(entry: Entry) -> str:
    does = "protects each row as a person of its own" if isinstance(entry, Method) else "takes each row for a person"
    return f"it {does}"


def _instead(entry: Entry) -> str:
    """What to use in its place."""
    verb = "protects" if isinstance(entry, Method) else "counts"
    others = f"use {' or '.join(entry.instead)}, which {verb} persons, or " if entry.instead else ""
    return f"{others}give a table with one row a person"
