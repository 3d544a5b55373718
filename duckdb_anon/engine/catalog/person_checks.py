"""Rows and individuals: a function that counts rows refuses a table in which an individual has several.

A class of ten rows may hold one individual alone, so k, l, delta, t, probabilities and risks that count rows say
nothing of individuals there. Every entry says what it counts (`unit`); rows are compared with that here alone. A person
column in which each individual has one row changes nothing. Cost: one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from duckdb_anon.engine.catalog.catalog import Catalog, Relation
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, with_code
from duckdb_anon.model.function_specs import Entry, Method, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.release_formats import Contents
from duckdb_anon.model.release_formats.duckdb_types import is_integer

FREQUENCIES = ("freq", "frequency", "n", "count")
"""Names of columns that count records, in lower case."""


def check_persons(entry: Entry, person: Attribute | None) -> None:
    """Make sure that an entry may read a table whose rows belong to persons."""
    if entry.unit == "any" or person is None:
        return
    name, codes = person.name, person.codes
    missing = int((codes == person.null_code).sum())
    if missing:
        raise RequirementError(
            f"{entry.name}: '{name}' is NULL in {missing} rows, so their individuals are unknown. Leave these rows out "
            "or give each row a number",
            code="row-without-person",
        )
    if entry.unit == "person":
        return
    rows = np.bincount(codes)
    several = int((rows > 1).sum())
    if several:
        raise RequirementError(
            f"{entry.name}: {several} of {int((rows > 0).sum())} individuals of '{name}' have several rows. "
            f"{_advice(entry)}",
            code="several-rows",
        )


def refusing(entry: Entry, select: str, table: str, name: str) -> str:
    """`select`, which answers a planned query, refused when it runs where an individual has several rows of `table`."""
    text = f"{entry.name}: individuals of '{name}' have several rows. {_advice(entry)}"
    text = with_code(text, "several-rows")
    counted = f"(select count(distinct {ident(name)}) < count(*) from {table})"
    return f"from ({select}) as _anon_answer where case when {counted} then error({literal(text)}) else true end"


def repeated_beneath(catalog: Catalog, relation: Relation, beneath: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Columns of a view or SELECT that are the person column of a table it reads and repeat, with that label.

    `beneath`: columns that come from labelled ones of the tables that it reads, folded, with the label.
    """
    for name in relation.columns:
        if beneath.get(fold(name), "").startswith("person "):
            counted = f"select count(distinct {ident(name)}) < count({ident(name)}) from {relation.sql}"
            if catalog.cursor.execute(counted).fetchall()[0][0]:
                yield name, beneath[fold(name)]


def require_no_person_beneath(
    function: str, catalog: Catalog, relation: Relation, roles: Roles, beneath: Mapping[str, str]
) -> None:
    """Refuse a view or SELECT with `repeated_beneath` columns, unless the call names a person column."""
    if roles.person is not None or not relation.visible:
        return
    for name, label in repeated_beneath(catalog, relation, beneath):
        raise ColumnError(
            f"{function}: column '{name}' of {relation.given} is labelled {label}, and individuals have several "
            f"rows; a view has no labels of its own. Say person := {literal(name)}, or force := true if each row "
            "is one individual",
            code="several-rows",
        )


def check_described(entry: Entry, relation: Relation) -> None:
    """Refuse to count rows of a release whose description counts individuals, and which does not identify them."""
    description = read_description(relation.comment)
    if entry.unit != "any" and description is not None and description.persons:
        raise ParameterError(
            f"{entry.name}: {relation.given} was made counting individuals, and no column identifies them, so "
            "rows would be counted. Make the same call with row_id := true, CREATE TABLE checked AS FROM "
            f"{description.method}(..., row_id := true), and call k_anonymity('checked', original := '...') or another "
            "measure that takes original",
            code="several-rows",
        )


def with_persons(entry: Entry, release: Relation, contents: Contents, original: Relation, person: str | None) -> str:
    """A release with the persons of its rows, as a SELECT in parentheses."""
    if person is None:
        raise ColumnError(
            f"{entry.name}: no column of {original.given} identifies the individual of a row. Say person := '...' or "
            "COMMENT ON COLUMN ... IS 'anon: person'"
        )
    if not contents.source:
        raise ColumnError(
            f"{entry.name}: {release.given} has no column row_id, which finds the individuals of its rows. Make it "
            "with row_id := true, for your own checks alone"
        )
    if contents.slices() and "sensitive" in getattr(entry, "needs", ()):
        raise ColumnError(
            f"{entry.name}: in {release.given} row_id is permuted like every slice and does not find the individual of "
            "a sensitive value. k_anonymity counts the individuals of its buckets"
        )
    persons = f"select {ident(person)} as _anon_person, row_number() over () - 1 as _anon_rn from {original.sql}"
    return (
        f"(select _anon_r.*, _anon_o._anon_person from {release.sql} as _anon_r join ({persons}) as _anon_o "
        f"on _anon_o._anon_rn = _anon_r.{ident(contents.source)})"
    )


def require_no_frequency(
    function: str, catalog: Catalog, relation: Relation, roles: Roles, *, weights: bool = False
) -> None:
    """Refuse a quasi-identifier that counts records: by its name, whole, and no two rows agree on all others."""
    named = [i for i in roles.qi if fold(i.name) in FREQUENCIES and is_integer(i.type)]
    if roles.person or not named:
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
    expanded = f"(SELECT _t.* EXCLUDE ({column}) FROM {relation.sql} AS _t, range(_t.{column}))"
    remedy = (
        f"Leave it out of qi and give sample_weights := {literal(named[0].name)}, or expand" if weights else "Expand"
    )
    raise ColumnError(
        f"{function}: column '{named[0].name}' counts the records of each row, as no two rows agree on all other "
        f"attributes, and rows are taken for records. {remedy} the table: '{expanded}'. If it is an attribute, "
        "give it another name"
    )


def _advice(entry: Entry) -> str:
    """What an entry takes a row for, and what to use in its place."""
    verb = "protects" if isinstance(entry, Method) else "counts"
    others = f"Use {' or '.join(entry.instead)}, which {verb} individuals, or give" if entry.instead else "Give"
    return f"It {verb} each row as one individual. {others} a table with one row per individual"
