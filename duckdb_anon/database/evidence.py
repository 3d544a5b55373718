"""The page on a release of a database: tables, treatments, the risk on the join before and after, and what was dropped.

It is made of the working tables while they are there, and appears together with the release. Cost: the measurement of
`database_risk`, and a digest of every released table.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import duckdb

from duckdb_anon.database.plan import JOINED, NAME, Plan, Table
from duckdb_anon.database.released_tables import DatabaseRelease, released_rows
from duckdb_anon.database.risk import STRONGEST, Risk
from duckdb_anon.database.work import Work
from duckdb_anon.engine.records.release_digest import release_digest
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.version import __version__
from duckdb_anon.report.anon_report import require_extra, written
from duckdb_anon.report.checklist import Figure
from duckdb_anon.report.figures import answer_risk, answer_with_database
from duckdb_anon.report.findings import DatabaseFindings, Rows
from duckdb_anon.report.redaction import as_json
from duckdb_anon.report.release_context import HoldersContext
from duckdb_anon.report.weak_labels import weak_labels
from duckdb_anon.treatments import parsed

_NOT_COVERED = (
    "Columns that are not labelled quasi are assumed to be unknown to an attacker. Sensitive and insensitive columns "
    "follow the individual. Rare sensitive numbers and dates are joined; a rare value of another column can identify.",
    "Treatments alone promise nothing about individuals. Intervals between shifted dates of an individual are exact.",
    "The number of rows of an individual in a table without quasi-identifiers is not bounded.",
    "Individuals with one known record may have the same sensitive value, unless the plan says l.",
    "Other releases about the same individuals add up with this one.",
)  # fmt: skip


@contextmanager
def evidence_page(
    work: Work,
    made: DatabaseRelease,
    risks: Sequence[Risk],
    path: str,
    name: str,
    limit: float | None = None,
    context: HoldersContext | None = None,
) -> Iterator[None]:
    """Write the page and its facts as JSON; they appear at the end of the block, which writes the release."""
    require_extra(NAME)
    from duckdb_anon.report.html.page import page  # needs the extra

    plan, con, context = work.plan, work.con, context or HoldersContext()
    [(individuals,)] = con.execute(f"select count(*) from {work.of(plan.individuals)}").fetchall()
    digests = {f"SHA-256 of the rows of {t.name}": release_digest(con, released_rows(work, t)) for t in plan.tables}
    provenance = {
        "individuals": f"one row of {plan.individuals.name} each, identified by {plan.key}",
        "made on, with": f"{datetime.date.today().isoformat()}, duckdb-anon {__version__}",
        "known events": f"at most {plan.events} of each table and individual are released" if plan.delta is None else (
            "the members of a group keep equally many"
        ),
        "key of pseudonyms and shifts": "read from a file, the same in other releases" if plan.key_file else (
            "drawn for this release and thrown away"
        ),
    } | digests  # fmt: skip
    found = DatabaseFindings(
        title=context.title or f"Release of {name}", context=context, not_covered=_NOT_COVERED,
        columns=[row for table in plan.tables for row in _columns(con, made, table, context)],
        unchanged=[row for table in plan.tables for row in _unchanged(work, table)],
        facts={
            "tables": [_table(work, made, table) for table in plan.tables],
            "lost": [row for table in plan.tables for row in _lost(work, table)],
            "guarantees": _guarantees(made),
            "risks": [asdict(risk) | {"known": _knowledge(risk)} for risk in risks],
            "provenance": [{"fact": fact, "value": value} for fact, value in provenance.items()],
        },
        individuals=individuals, smallest=made.smallest, linked=plan.linked, limit=limit,
        permuted=plan.delta is not None,
    )  # fmt: skip
    answer_with_database(found, _method(plan), plan.key_file is not None)
    content = as_json(found)
    with written(NAME, path, page(found, content), content):
        yield


def restate(path: Path, context: HoldersContext) -> bool:
    """Write a page again where the holder's statements have changed; its figures are those of the JSON file next to it.

    Args:
        path: the HTML file.
        context: the statements.

    Returns:
        Whether the page was written.
    """
    require_extra(NAME)
    from duckdb_anon.report.html.page import page  # needs the extra

    file = path.with_suffix(".json")
    facts = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if "figures" not in facts:  # removed, or written by an earlier version
        return False
    tables = ("tables", "lost", "guarantees", "risks", "provenance")
    found = DatabaseFindings(
        title=context.title or facts["title"], context=context, not_covered=_NOT_COVERED, unchanged=facts["unchanged"],
        columns=[
            row | {"accepted because": context.accepted(row["table"], row["column"])} for row in facts["columns"]
        ],
        figures={name: Figure(*figure) for name, figure in facts["figures"].items()}, unanswered=facts["unanswered"],
        facts={name: facts[name] for name in tables},
        **{name: facts[name] for name in ("individuals", "smallest", "linked", "limit", "permuted")},
    )  # fmt: skip
    answer_risk(found)
    content = as_json(found)
    if json.loads(content) | {"made": ""} == facts | {"made": ""}:
        return False
    with written(NAME, str(path), page(found, content), content):
        return True


def _unchanged(work: Work, table: Table) -> Rows:
    """Columns of a table that leave as they are, and the individuals that a value of theirs identifies."""
    rows = []
    for name in table.unchanged():
        [(values, individuals)] = work.con.execute(
            f"select count(*), count(distinct i) from (select any_value(_anon_i) as i from {work.of(table, 'release')} "
            f"where {ident(name)} is not null group by {ident(name)} having count(distinct _anon_i) = 1)"
        ).fetchall()
        about = {"table": table.name, "column": name, "label": table.roles.by_name().get(name)}
        rows.append({**about, "unique values": values, "individuals identified": individuals})
    return rows


def _knowledge(risk: Risk) -> str:
    """What the attacker knows, as the page says it."""
    if risk.known == STRONGEST:
        return "everything that is labelled quasi (strongest attacker)"
    return risk.known.replace("and ", "demographics and ", 1)


def _table(work: Work, made: DatabaseRelease, table: Table) -> dict[str, object]:
    """The facts of one table."""
    plan, released_table = work.plan, made.table(table.name)
    [(individuals,)] = work.con.execute(f"select count(distinct _anon_i) from {work.of(table, 'release')}").fetchall()
    link = f"{table.link.column} = {table.link.parent}.{table.link.to}" if table.link else f"{plan.key} (individual)"
    record = "the joined record" if plan.linked else "its own record"
    return {
        "table": table.name,
        "rows": released_table.rows + released_table.dropped_rows,
        "released": released_table.rows,
        "individuals": individuals,
        "method": f"{'mondrian' if plan.delta is None else 'muco'} on {record}"
        if table.known
        else "rows follow the individual",
        "known columns": ", ".join(info.name for info in table.known) or None,
        "key": link,
    }


def _columns(con: duckdb.DuckDBPyConnection, made: DatabaseRelease, table: Table, context: HoldersContext) -> Rows:
    """What was done to each column of a table, and what that promises."""
    released = made.table(table.name).columns
    labels = table.roles.by_name() | dict.fromkeys(table.keys, "key")
    weak = weak_labels(con, {table.name: table.relation.sql}, HoldersContext())
    return [
        {
            "table": table.name,
            "column": name,
            "type": kind,
            "label": labels.get(name),
            "treatment": released.get(name, "dropped"),
            "promise": _promise(made.plan, table, name, released.get(name, "dropped"), labels.get(name)),
            "warning": weak.get((table.name, name)),
            "accepted because": context.accepted(table.name, name),
        }
        for name, kind in table.relation.columns.items()
    ]


def _promise(plan: Plan, table: Table, name: str, done: str, label: str | None) -> str:
    """What is promised of a released column, or why one was dropped."""
    if done == "dropped":
        if name in table.treatments:
            return f"Dropped by the treatment {table.treatments[name]}."
        if label == "quasi":
            return "Dropped: no event is shared by all individuals of a class."
        return f"Dropped: {'labelled identifier' if label == 'identifier' else 'no label'}, and no treatment."
    if done == "generalized":
        return "At least k individuals share the known record."
    if done == "permuted":
        return f"The value is that of one of {plan.least} individuals or more, equally likely before calibration."
    if done == JOINED:
        return f"{plan.sensitive_edges} individuals or more have the value, a mean where it was rare."
    if done == "unchanged":
        return "None: an attacker is assumed not to know it."
    return parsed(NAME, f"{table.name}.{name}", done)[0].promise


def _method(plan: Plan) -> str:
    """The method and its promise."""
    (name, value), *_ = plan.promise.items()
    return f"{'mondrian' if plan.delta is None else 'muco'}, {name} = {value}"


def _guarantees(made: DatabaseRelease) -> Rows:
    """Each promise, and what was counted on the finished tables."""
    plan, rows = made.plan, list[dict[str, object]]()
    for one in made.counted:
        text = f"k >= {plan.k} individuals with one known record of {one.of}"
        if plan.delta is not None:
            text = f"groups of {plan.least} individuals or more with equally many rows of {one.of}"
        rows.append(
            {"guarantee": text, "counted": one.smallest, "holds": one.smallest >= plan.least or not one.smallest}
        )
    meanings = (("values", "value", "no sensitive value"), ("lists", "list", "no list of sensitive values"))
    for one in made.counted if plan.l is not None else ():
        for counts, field, what in meanings:
            share = getattr(one, field)
            if share is not None:
                promised = f"l: {what} of {one.of} has a share above 1/{plan.l:g}"
                text = promised if counts == plan.l_counts else f"not promised: largest share, {what[3:]} of {one.of}"
                holds = share * plan.l <= 1 + 1e-12 if counts == plan.l_counts else None
                rows.append({"guarantee": text, "counted": share, "holds": holds})
    return rows


def _lost(work: Work, table: Table) -> Rows:
    """Rows that were dropped, by their reasons."""
    plan, con = work.plan, work.con
    total, of_individuals, released_rows_of_table = con.execute(
        f"select (select count(*) from {table.relation.sql}), (select count(*) from {work.of(table)}), "
        f"(select count(*) from {work.of(table, 'kept')})"
    ).fetchall()[0]
    beyond = 0
    if table.known and table is not plan.individuals and plan.delta is None:
        [(beyond,)] = con.execute(
            f"select count(*) from {work.of(table, 'events')} where _anon_s >= {plan.events}"
        ).fetchall()
    rest = "an individual of its class or group has no such row" if table.known else "its parent row was dropped"
    reasons = {
        "belongs to no individual": total - of_individuals,
        f"beyond the {plan.events} events that are released of an individual": beyond,
        rest: of_individuals - beyond - released_rows_of_table,
    }
    return [
        {"table": table.name, "reason": reason, "rows": rows, "share": rows / total}
        for reason, rows in reasons.items()
        if rows
    ]
