"""describe_release: what a release says of itself, in words and rows.

Reads the comments of a table (or the metadata of a Parquet file) and the types of its columns; looks at no row but to
count them. One row a fact: the original, the method and what it does, each parameter and what it means, day and
version, then each attribute with its role, its hierarchy, and how its cells are to be read. Cost: planning, and a count
of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.engine.records.release_seal import signer_of
from duckdb_anon.measures.help.anon_functions import rows_as_table
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.function_specs import REQUIRED, Entry, Parameter, Params, Query
from duckdb_anon.model.quoting import literal
from duckdb_anon.model.release_comment import Description, read_description
from duckdb_anon.model.release_formats import carriers
from duckdb_anon.model.release_formats.duckdb_types import bag_type, box_type, is_text, list_type, struct_fields

Fact = tuple[str, str | None, str | None, str]
_ROLES = {
    "quasi": "a quasi-identifier",
    "sensitive": "sensitive",
    "insensitive": "insensitive, released as it was",
    "person": "identifies the individual of a row",
    "household": "identifies the household of a row",
    "identifier": "an identifier",
}
_UNDECLARED = (
    "the table does not say that it is a release: COMMENT ON TABLE ... IS 'anon: release' declares it, and "
    "duckdb_anon.release(con, name, call) or anon_release write down what it is"
)


@Query(
    summary="the description of a release: original, method, parameters, date, and how to read each column",
    paper="the paper of the release's method, which it names",
    example="FROM describe_release('boxes')",
    section="Help",
    parameters=(Parameter("release", "the release", "any", REQUIRED),),
    tables=("release",),
)
def describe_release(context: Any, params: Params) -> str:
    """One row a fact."""
    relation = context.visible("release")
    description = read_description(relation.comment)
    made: list[Fact] = [("release", relation.given, None, _UNDECLARED)]
    if description is not None:
        every = {**dict.fromkeys(relation.columns), **relation.comments}
        signer = _signer(description, relation.comment, every)
        made = _made(relation.given, description, context.entries, signer)
    facts = [*made, *_columns(context, relation)]
    counted = "select 'rows' as fact, null as name, count(*)::varchar as value, 'rows that were released' as words"
    columns = ("fact", "name", "value", "words")
    return f"{counted} from {relation.sql}\nunion all\n{rows_as_table(columns, facts)}"


def _made(
    given: str, description: Description, entries: Mapping[str, Entry], signer: tuple[str, str | None]
) -> list[Fact]:
    """What the table's comment tells."""
    entry, original = entries.get(description.method), description.original or None
    does = entry.summary if entry else "not stated, or unknown to this version"
    facts: list[Fact] = [
        ("release", given, description.comment(), "the whole description, as the table's comment has it"),
        ("original", original, None, f"the table it stands for: {original or 'not stated'}"),
        ("method", description.method or None, description.call or None, does),
    ]
    docs = {p.name: p.doc for p in parameters_of(entry)} if entry else {}
    facts += [("parameter", n, literal(v), docs.get(n, "")) for n, v in description.parameters.items()]
    facts += [("together", n, literal(v), "of the tables released together") for n, v in description.together.items()]
    independent = "true" if description.independent else None
    stated: list[Fact] = [
        ("paper", None, entry.paper if entry else None, "where the method comes from"),
        ("independent", None, independent, "made regardless of earlier releases, whose risks add up with its own"),
        ("date", None, description.date, "the day it was made"),
        ("seal", None, description.seal, "digest of description, rows and roles; verify_release checks it"),
        ("signature", *signer, "by the owner of this public key (Ed25519)"),
        ("version", None, description.version, "of duckdb-anon, which made it"),
    ]
    return facts + [fact for fact in stated if fact[2]]


def _signer(description: Description, comment: str, labels: Mapping[str, str | None]) -> tuple[str, str | None]:
    """The public key of the signature and whether it holds; None where there is none and none is expected."""
    try:
        found = signer_of(comment, labels)
    except AnonError as error:
        return description.signature.partition(":")[0], str(error)
    if found is None:
        return "", None
    return found[0], "holds" if found[1] else "does not hold" if description.signature else "missing"


def _columns(context: Any, relation: Any) -> list[Fact]:
    """How each attribute is to be read; a STRUCT column of a sliced release holds several."""
    roles = context.roles(context.flat(relation), nested=True)
    role_of, trees = roles.by_name(), roles.trees()
    facts: list[Fact] = []
    contents = context.contents(relation)
    slices = contents.slices()
    carrier_docs = {name: c.doc for name in contents.carriers for c in carriers() if c.stands_for(name)}
    for column, kind in relation.columns.items():
        fields = struct_fields(kind) if column in slices else ()
        for name, inside in fields or ((column, kind),):
            role = role_of.get(name, "")
            where = f"; one of the attributes of column {column}, permuted together in its bucket" if fields else ""
            words = "" if role else carrier_docs.get(name, "")
            words = words or f"{_ROLES.get(role, 'no role')}: {_cells(inside, role, trees.get(name))}"
            facts.append(("column", name, role or None, words + where))
    return facts


def _cells(kind: str, role: str, tree: str | None) -> str:
    """How the cells of a released column are to be read, from its type."""
    box, several, bag = box_type(kind), list_type(kind), bag_type(kind)
    if box is not None:
        return f"intervals of {box}, both ends inside; NULL ends cover everything"
    if several is not None and role == "sensitive":
        return f"all the {several} values of an individual" + (f", as nodes of {tree}" if tree else "")
    if several is not None:
        return f"sets of {several}, one of which is the value"
    if bag is not None:
        return f"values of {bag} in the bucket, each with its count"
    if tree is not None and is_text(kind):
        return f"nodes of the hierarchy {tree}: a leaf is a value, any other node stands for one of its leaves"
    return f"values of {kind}"
