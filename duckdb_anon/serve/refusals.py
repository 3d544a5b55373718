"""What must not be published, found before a row is copied.

Each check looks at one release in the attached source and raises with the remedy. Whether rows were left as they were
is judged on the rows an attacker could name, those whose quasi-identifiers only one person has: how many of them stand
in the release with the same sensitive values. A method that permutes values inside groups meets common combinations
again by chance; a unique person's whole row it meets hardly ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from duckdb_anon.engine.quoting import ident, idents
from duckdb_anon.model.description import Description, read_description
from duckdb_anon.model.errors import AnonError, listed
from duckdb_anon.model.shapes import CHANNELS
from duckdb_anon.model.shapes.types import is_enum, is_integer, is_number

MOST_UNCHANGED = 0.5
_ROLE = re.compile(r"\banon:\s*(\w+)", re.IGNORECASE)
_SEED = re.compile(r"\bseed\s*:=", re.IGNORECASE)
_FEWEST = 10  # fewer rows are a row number by chance
_NEUTRAL: Mapping[str, Callable[[float], bool]] = {
    "k": lambda v: v <= 1,
    "l": lambda v: v <= 1,
    "delta": lambda v: v >= 1,
    "p": lambda v: v >= 1,
    "t": lambda v: v >= 1,
}


@dataclass(frozen=True)
class CandidateTable:
    """A table of the source: SQL that follows FROM, name, comment, columns with type and comment."""

    sql: str
    name: str
    comment: str
    columns: Mapping[str, tuple[str, str | None]]

    def role(self, column: str) -> str:
        """Role of a column by its comment, '' for none."""
        found = _ROLE.search(self.columns[column][1] or "")
        return found.group(1).lower() if found else ""


def refuse(
    con: duckdb.DuckDBPyConnection, release: CandidateTable, original: CandidateTable | None, allow_unchanged: bool
) -> None:
    """Refuse a release that must not be published.

    Args:
        con: connection that sees both tables.
        release: a table declared a release.
        original: its original, where it is in the file.
        allow_unchanged: publish although rows are as they were.

    Raises:
        AnonError: naming the release and what is wrong with it.
    """
    said = read_description(release.comment) or Description()
    _no_seed(release)
    _protects(release, said)
    _no_persons(release, original, said)
    _no_row_number(con, release)
    if original is not None and not allow_unchanged and CHANNELS.word not in {c.lower() for c in release.columns}:
        _changed(con, release, original)


def _no_seed(release: CandidateTable) -> None:
    texts = [release.comment, *(text or "" for _, text in release.columns.values())]
    if any(_SEED.search(text) for text in texts):
        raise AnonError(
            f"publish: the comments of {release.name} tell a seed; who has it repeats every draw. Make the release "
            "again without seed"
        )


def _protects(release: CandidateTable, said: Description) -> None:
    given = {name: _numbers(value) for name, value in said.parameters.items() if name in _NEUTRAL}
    told = {name: values for name, values in given.items() if values}
    if told and all(_NEUTRAL[name](value) for name, values in told.items() for value in values):
        raise AnonError(
            f"publish: {release.name} was made by {said.call}, which protects nothing; make it with a stricter "
            f"{listed(told)}"
        )


def _numbers(value: Any) -> list[float]:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    return [float(v) for v in inside if isinstance(v, (int, float)) and not isinstance(v, bool)]


def _no_persons(release: CandidateTable, original: CandidateTable | None, said: Description) -> None:
    own = {c: release.role(c) for c in release.columns}
    if original is not None:
        labelled = {c.lower(): original.role(c) for c in original.columns}
        own = {c: role or labelled.get(c.lower(), "") for c, role in own.items()}
    forced = bool(said.parameters.get("force"))
    wrong = [
        c for c, role in own.items()
        if (role == "identifier" and not forced) or (role == "person" and not said.method)
    ]  # fmt: skip
    if wrong:
        roles = listed(dict.fromkeys(own[c] for c in wrong))
        raise AnonError(
            f"publish: {release.name} has {listed(wrong)}, labelled {roles}; such columns "
            "name people. Make the release without it (duckdb_anon.release says what a method made)"
        )


def _no_row_number(con: duckdb.DuckDBPyConnection, release: CandidateTable) -> None:
    for column, (kind, _) in release.columns.items():
        if not (is_number(kind) or kind in ("VARCHAR", "BIGNUM")):
            continue
        value = f"try_cast({ident(column)} as hugeint)"
        if is_number(kind) and not is_integer(kind):
            value = f"case when {ident(column)} = trunc({ident(column)}) then {value} end"
        rows, known, distinct, low, high = con.execute(
            "select count(*), count(v), count(distinct v), min(v), max(v) "
            f"from (select {value} as v from {release.sql})"
        ).fetchall()[0]
        if rows < _FEWEST or known < rows or distinct < rows or (high - low) % (rows - 1):
            continue
        step = (high - low) // (rows - 1)
        odd = con.execute(f"select count(*) from {release.sql} where ({value} - {low}) % {step} <> 0").fetchall()[0][0]
        if not odd:
            raise AnonError(
                f"publish: {column} of {release.name} numbers its rows (every {step} from {low} once), so it may lead "
                "back to the original's rows; drop the column"
            )


def _changed(con: duckdb.DuckDBPyConnection, release: CandidateTable, original: CandidateTable) -> None:
    qi, sensitive = _plain(release, original, "quasi"), _plain(release, original, "sensitive")
    if qi is None or sensitive is None or any(release.role(c) == "attributes" for c in release.columns):
        return  # generalized, only counted, or permuted apart
    unlabelled = not any(release.role(c) for c in release.columns)
    shared = [c for c, (kind, _) in release.columns.items() if original.columns.get(c, ("", None))[0] == kind]
    columns = [*qi, *sensitive] if qi else shared if unlabelled else []
    if not columns:
        return
    listed_columns = idents(columns)
    before, after = (f"select {listed_columns} from {table.sql}" for table in (original, release))
    differs = con.execute(
        f"select 1 from (({before} except all {after}) union all ({after} except all {before})) limit 1"
    ).fetchall()
    named = idents(qi or columns)
    unique = f"select {listed_columns} from {original.sql} qualify count(*) over (partition by {named}) = 1"
    # a method may find that everybody hides among others already, and have nothing to change
    made = bool((read_description(release.comment) or Description()).method)
    if not differs and not (made and not con.execute(f"{unique} limit 1").fetchall()):
        raise AnonError(
            f"publish: {release.name} equals its original {original.name} on {listed(columns)}; "
            f"--allow-unchanged publishes it all the same, and with it every person's own row"
        )
    alike = " and ".join(f"r.{ident(c)} is not distinct from o.{ident(c)}" for c in columns)
    total, kept = con.execute(
        f"select count(*), count(*) filter (where exists (select 1 from {release.sql} as r where {alike})) "
        f"from ({unique}) as o"
    ).fetchall()[0]
    if total >= _FEWEST and kept > MOST_UNCHANGED * total:
        raise AnonError(
            f"publish: of {total} people whose quasi-identifiers nobody shares, {kept} stand in {release.name} with "
            f"their own row, {kept / total:.0%} where {MOST_UNCHANGED:.0%} is allowed. Protect it more, or publish "
            "with --allow-unchanged at the risk that these people are found"
        )


def _plain(release: CandidateTable, original: CandidateTable, role: str) -> Sequence[str] | None:
    """Columns of a role that are released with the original's type; None when one is released otherwise."""
    kinds = {c.lower(): kind for c, (kind, _) in original.columns.items()}
    columns = []
    for column, (kind, _) in release.columns.items():
        own = next((c for c in original.columns if c.lower() == column.lower()), None)
        if own is None or (release.role(column) or original.role(own)) != role:
            continue
        before = kinds[column.lower()]
        if kind != before and not (is_enum(before) and kind == "VARCHAR"):
            return None
        columns.append(own)
    return columns
