"""verify_release: whether a release still is what its description says, measured on the published rows.

Rows and description are compared with their digests, a signature is checked, and k, l and t of the call are measured
again by the SQL of sql/risk.sql, which shares no code with the methods. Where individuals were counted, records are: a
class of k individuals has at least k records; lists of individuals are counted as they are. delta and epsilon speak of
groups and noise that no release shows; they are listed without a verdict. Cost: one pass over the rows for the
digest, and a GROUP BY of the release a promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.column_roles import label_of
from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.engine.records.release_digest import holds_rows_of
from duckdb_anon.engine.records.release_seal import is_sealed, signer_of
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.errors import without_code
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Task
from duckdb_anon.model.release_comment import Description, field_comments, read_description
from duckdb_anon.report.linked_release import comments

BY_CLASS = ("mondrian", "incognito", "microaggregate", "composition", "hybrid", "probabilistic", "rmr", "suppress")
"""Methods of which k is the least number of records of an equivalence class."""
_COUNTED = ("mondrian", "incognito", "anatomy", "slicing", "merging")
DIVERSE = (*_COUNTED, "muco", "one_to_m_generalize")
"""Methods of which l is the diversity of groups of records; those of the last two are not published as rows."""
_DIVERSITY = {"incognito": "entropy"}
_EXACT = 1e-6
_UNSEEN = {
    "k": "the published rows do not show it",
    "l": "the published rows do not show it",
    "t": "the published rows do not show it",
    "delta": "groups are not published, and delta is measured, not proven; linkage_risk measures it on the original",
    "epsilon": "noise cannot be measured on one release",
}


@dataclass(frozen=True)
class Verified:
    """One check: what was promised, what was measured, whether it holds (None where the rows cannot tell)."""

    check: str
    promised: str | None
    measured: float | None
    holds: bool | None
    note: str = ""


def verify(con: duckdb.DuckDBPyConnection, name: str, comment: str, labels: Mapping[str, str | None]) -> list[Verified]:
    """Check a release."""
    description = read_description(comment)
    if description is None:
        return [Verified("description", None, None, False, "not declared a release. Write one with release()")]
    same = bool(description.digest) and holds_rows_of(con, name, description.digest, description.checksum)
    sealed, signer = is_sealed(description, labels), signer_of(comment, labels)
    note = "" if same else "the rows are not those of the description"
    signature = Verified("signature", None, None, None, "not signed")
    if signer is not None:
        said = "public key of the signer" if description.signature else "not signed by the owner of this public key"
        signature = Verified("signature", signer[0], None, signer[1], said)
    return [
        Verified("rows", description.digest or None, None, same, note),
        Verified(
            "description", description.seal or None, None, sealed, "" if sealed else "the description was changed"
        ),
        signature,
        *promises(con, name, description, labels),
    ]


def promises(
    con: duckdb.DuckDBPyConnection, name: str, description: Description, labels: Mapping[str, str | None]
) -> Iterator[Verified]:
    """Measure k, l and t of a release's call on its rows."""
    for parameter, promised in {**description.parameters, **description.together}.items():
        if parameter not in _UNSEEN or promised is None:
            continue
        seen = list(_questions(parameter, name, description, labels))
        if not seen:
            unseen = (
                "counted on the joined tables when they were released" if description.together else _UNSEEN[parameter]
            )
            yield Verified(parameter, str(promised), None, None, unseen)
        for what, question in seen:
            yield _measured(con, parameter, what, float(promised), question)


def _measured(con: duckdb.DuckDBPyConnection, parameter: str, what: str, promised: float, question: str) -> Verified:
    try:
        with stoppable():
            found = con.execute(question).fetchall()
    except duckdb.Error as error:
        return Verified(parameter, f"{promised:g}", None, False, without_code(error))
    value = float(found[0][0]) if found and found[0][0] is not None else None
    holds = None
    if value is not None:
        holds = value <= promised + _EXACT if parameter == "t" else value >= promised - _EXACT
    return Verified(parameter, f"{promised:g}", value, holds, what)


def _questions(
    parameter: str, name: str, description: Description, labels: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """What measures a parameter, and the query."""
    every = [(n, t) for c, text in labels.items() for n, t in (field_comments(text) or {c: text or ""}).items()]
    label = {column: found for column, text in every if (found := label_of(text)) is not None}
    qi = [column for column, found in label.items() if found.role == "quasi"]
    sensitive = [column for column, found in label.items() if found.role == "sensitive"]
    table, given = literal(f"(select * from {name})"), description.parameters
    classes = f"qi := {literal(qi)}, keep := [], sensitive := {literal(sensitive[0]) if sensitive else '[]'}"
    if parameter == "k" and description.method in BY_CLASS and given.get("missing") != "wildcard":
        yield "k_anonymity", f"select k from k_anonymity({table}, {classes})"
    kind = str(given.get("diversity", _DIVERSITY.get(description.method, "frequency")))
    if description.method == "one_to_m_generalize" and sensitive and not given.get("explode"):
        yield from _of_lists(parameter, kind, name, qi, sensitive)
    for column in sensitive:
        roles = f"{table}, qi := {literal(qi)}, sensitive := {literal(column)}"
        if parameter == "l" and description.method in _COUNTED and kind != "recursive":
            yield (
                f"l_diversity of {column} ({kind})",
                f"select value from l_diversity({roles}) where measure = {literal(kind)}",
            )
        if (
            parameter == "t"
            and description.method == "mondrian"
            and not description.persons
            and label[column].hierarchy is None
        ):
            distance = f", distance := {literal(given['distance'])}" if given.get("distance") else ""
            yield f"t_closeness of {column}", f"select t from t_closeness({roles}{distance})"


def _of_lists(
    parameter: str, kind: str, name: str, qi: Sequence[str], sensitive: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """As `_questions`, of a release with lists of nodes: (k, l)-diversity."""
    lists = ", ".join(f"list_sort({ident(column)})" for column in sensitive)
    if parameter == "k":
        counts = f"select count(*) as n from {name} group by {lists}"
        yield "least number of individuals with a list", f"select min(n) from ({counts})"
    if parameter == "l":
        classes = f"select {idents(qi)}, count(*) as n from {name} group by {idents(qi)}, {lists}"
        value = {
            "frequency": "sum(n) / max(n)",
            "distinct": "count(*)",
            "entropy": "exp(ln(sum(n)) - sum(n * ln(n)) / sum(n))",
        }[kind]
        each = f"select {value} as l from ({classes}) group by {idents(qi)}"
        yield f"diversity of lists ({kind})", f"select min(l) from ({each})"


def _plan(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    return {"release": context.relation("release").sql}, {}


def _work(con: Any, planned: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = planned["release"]
    table, columns = comments(con, name)
    every = dict.fromkeys(row[0] for row in con.execute(f"select column_name from (describe from {name})").fetchall())
    return [vars(found) for found in verify(con, name, table, {**every, **columns})]


MEASURE = Task(
    name="verify_release",
    summary="whether a release still has the rows, description, signature, k, l and t that it was written with",
    paper="Sweeney (2002); Machanavajjhala et al. (2006); Li, Li and Venkatasubramanian (2007)",
    example="FROM verify_release('boxes')",
    section="Risk",
    parameters=(Parameter("release", "the release", "any", REQUIRED),),
    returns={"check": "VARCHAR", "promised": "VARCHAR", "measured": "DOUBLE", "holds": "BOOLEAN", "note": "VARCHAR"},
    plan=_plan,
    work=_work,
    tables=("release",),
)
