"""What must not be published, found before a row is copied.

Each check looks at one release in the attached source and raises with the remedy. Whether rows were left as they were
is judged on the rows an attacker could name, those whose quasi-identifiers only one person has: how many of them stand
in the release with the same sensitive values. A method that permutes values inside groups meets common combinations
again by chance; a unique person's whole row it meets hardly ever. Which table of the file a release was made of, its
comment may not say or say falsely: it is held against each of them, value by value (`held_values`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import AnonError, listed
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import Description, read_description
from duckdb_anon.model.release_formats import CHANNELS
from duckdb_anon.serve.cell_unwrapping import CandidateTable, HeldValue, key_of, numbers_in

MOST_UNCHANGED = 0.5
_SEED = re.compile(r"\bseed\b(\s*(:=|=>|=|:|is|was|of|number)?)*\s*\d", re.IGNORECASE)
_FEWEST = 10  # fewer rows are a row number by chance
_NEARLY = 0.9
_NEUTRAL: Mapping[str, Callable[[float], bool]] = {
    "k": lambda v: v <= 1,
    "l": lambda v: v <= 1,
    "delta": lambda v: v >= 1,
    "p": lambda v: v >= 1,
    "t": lambda v: v >= 1,
}


def refuse(
    con: duckdb.DuckDBPyConnection,
    release: CandidateTable,
    original: CandidateTable | None,
    others: Sequence[CandidateTable],
    allow_unchanged: bool,
) -> None:
    """Refuse a release that must not be published.

    Args:
        con: connection that sees all tables.
        release: a table declared a release.
        original: its original, where it is in the file.
        others: the file's other tables, any of which it may have been copied from.
        allow_unchanged: publish although rows are as they were.

    Raises:
        AnonError: naming the release and what is wrong with it.
    """
    said = read_description(release.comment) or Description()
    _no_seed(release)
    _protects(release, said)
    _no_persons(release, original, said)
    every = [table for table in (original, *others) if table is not None]
    for table in every:
        _no_identifier(con, release, table, said)
    _no_row_number(con, release, every)
    if allow_unchanged or CHANNELS.word in {fold(c) for c in release.columns}:
        return
    for table in every:
        _changed(con, release, table, named=table is original)


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
    own = {value.name: value.role for value in release.values()} | {c: release.role(c) for c in release.columns}
    if original is not None:
        labelled = {fold(c): original.role(c) for c in original.columns}
        own = {c: (role if role != "attributes" else "") or labelled.get(fold(c), "") for c, role in own.items()}
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


def _no_identifier(
    con: duckdb.DuckDBPyConnection, release: CandidateTable, original: CandidateTable, said: Description
) -> None:
    """Refuse values of a column that names people, under another name, in a list or field, or hashed without a key."""
    naming = [c for c in original.columns if original.role(c) in ("identifier", "person")]
    known = {fold(c) for c in original.columns}
    if not naming or said.parameters.get("force"):
        return
    spelled = [form for c in naming for form in _spellings(f"({ident(c)})::varchar")]
    names = " union ".join(f"select {form} as v from {original.sql}" for form in spelled)
    for value in release.values():
        if value.role not in ("", "insensitive") or (fold(value.name) in known and value.name not in naming):
            continue
        rows, distinct, found = con.execute(
            f"with held as (select lower(trim(({value.sql})::varchar)) as v from {release.sql}), names as ({names}) "
            "select count(v), count(distinct v), count(distinct v) filter (where v in (select v from names)) from held"
        ).fetchall()[0]
        if distinct >= _FEWEST and 2 * distinct >= rows and found >= _NEARLY * distinct:
            raise AnonError(
                f"publish: {found} of {distinct} values of {value.name} in {release.name} are those of "
                f"{listed(naming)} of {original.name}, which name people (as they are or hashed); drop the column"
            )


def _spellings(text: str) -> list[str]:
    return [f"lower(trim({text}))", f"md5({text})", f"sha1({text})", f"sha256({text})"]


def _no_row_number(
    con: duckdb.DuckDBPyConnection, release: CandidateTable, originals: Sequence[CandidateTable]
) -> None:
    for value in release.values():
        plain = value.sql == ident(value.column) and value.role
        for number in numbers_in(value):
            rows, distinct, steps, whole, low, high = con.execute(
                f"with held as (select {number} as v from {release.sql} as r), "
                "different as (select distinct v from held where v is not null), "
                "step as (select round(v - lag(v) over (order by v), 9) as d from different), "
                "most as (select count(*) as n from step where d is not null group by d) "
                "select (select count(*) from held), (select count(*) from different), (select max(n) from most), "
                "(select bool_and(isfinite(v) and v = trunc(v)) from different), (select min(v) from different), "
                "(select max(v) from different)"
            ).fetchall()[0]
            # a column that a method shows may lie densely; one whose role nobody knows must not even nearly
            share = 1.0 if plain else _NEARLY
            if rows < _FEWEST or distinct < share * rows:
                continue
            dense = steps is not None and steps >= share * (distinct - 1)
            drawn = not value.role and bool(whole) and any(0 <= low and high <= _rows(con, t) for t in originals)
            if dense or drawn:
                raise AnonError(
                    f"publish: {value.name} of {release.name} numbers its rows, or as good as ({distinct} different "
                    f"values of {rows} rows), so it may lead back to the original's rows; drop the column"
                )


def _rows(con: duckdb.DuckDBPyConnection, table: CandidateTable) -> int:
    return int(con.execute(f"select count(*) from {table.sql}").fetchall()[0][0])


def _changed(con: duckdb.DuckDBPyConnection, release: CandidateTable, original: CandidateTable, named: bool) -> None:
    """Refuse what stands for the original's own rows; a table nobody named is one if it has the release's columns."""
    if any(release.role(c) == "attributes" for c in release.columns):
        return  # permuted apart
    same = _repeated(con, release, original)
    shown = {value.column for value in release.values()}
    role = {c: release.role(v.column) or original.role(c) for c, v in same.items()}
    if any(release.role(c) in ("quasi", "sensitive") and c not in shown for c in release.columns):
        return  # only counted
    qi, sensitive = ([c for c in same if role[c] == r] for r in ("quasi", "sensitive"))
    unlabelled = not any(release.role(c) for c in release.columns)
    columns = [*qi, *sensitive] if qi else list(same) if unlabelled else []
    labelled = [v.column for v in release.values() if release.role(v.column) in ("quasi", "sensitive")]
    # a table that lists some places or jobs is nobody's original
    least = len(set(labelled)) if labelled else (len(release.values()) + 1) // 2
    if not columns or (not named and len(columns) < max(2, least)):
        return
    kinds = {c: (original.columns[c][0], same[c].kind) for c in columns}
    before_keys = ", ".join(f"{key_of(ident(c), *kinds[c])} as x{i}" for i, c in enumerate(columns))
    after_keys = ", ".join(f"{same[c].key(kinds[c][0])} as x{i}" for i, c in enumerate(columns))
    single = " and ".join(same[c].single for c in columns)
    before, after = (
        f"select {before_keys} from {original.sql}",
        f"select {after_keys} from {release.sql} where {single}",
    )
    differs = con.execute(
        f"select 1 from (({before} except all {after}) union all ({after} except all {before})) limit 1"
    ).fetchall()
    apart = ", ".join(f"x{i}" for i in range(len(qi) or len(columns)))
    unique = f"select * from ({before}) qualify count(*) over (partition by {apart}) = 1"
    # a method may find that everybody hides among others already, and have nothing to change
    made = bool((read_description(release.comment) or Description()).method)
    if not differs and not (made and not con.execute(f"{unique} limit 1").fetchall()):
        raise AnonError(
            f"publish: {release.name} equals its original {original.name} on {listed(columns)}; "
            f"--allow-unchanged publishes it all the same, and with it every person's own row"
        )
    alike = " and ".join(f"r.x{i} is not distinct from o.x{i}" for i in range(len(columns)))
    total, kept, rows = con.execute(
        f"select count(*), count(*) filter (where exists (select 1 from ({after}) as r where {alike})), "
        f"(select count(*) from {release.sql}) from ({unique}) as o"
    ).fetchall()[0]
    possible = min(total, rows)
    if possible >= _FEWEST and kept > MOST_UNCHANGED * possible:
        raise AnonError(
            f"publish: of {possible} people of {original.name} whose quasi-identifiers nobody shares, {kept} stand in "
            f"{release.name} with their own row, {kept / possible:.0%} where {MOST_UNCHANGED:.0%} is allowed. Protect "
            "it more, or publish with --allow-unchanged at the risk that these people are found"
        )


def _repeated(
    con: duckdb.DuckDBPyConnection, release: CandidateTable, original: CandidateTable
) -> dict[str, HeldValue]:
    """The original's columns that a release shows, by their name or, in a table as long, by their values."""
    spelled = {fold(c): c for c in original.columns}
    values = release.values()
    found = {spelled[fold(v.name)]: v for v in values if fold(v.name) in spelled}
    strange = [v for v in values if fold(v.name) not in spelled]
    rest = [c for c in original.columns if c not in found]
    if strange and rest and _rows(con, release) == _rows(con, original):
        ours = [f"({v.sql})::varchar" for v in strange]
        theirs = [f"({ident(c)})::varchar" for c in rest]
        prints = {p: v for p, v in zip(_prints(con, release, ours), strange, strict=True)}
        found |= {c: prints[p] for c, p in zip(rest, _prints(con, original, theirs), strict=True) if p in prints}
    return found


def _prints(con: duckdb.DuckDBPyConnection, table: CandidateTable, texts: Sequence[str]) -> Sequence[Any]:
    """A number for each of some columns, the same for the same values in any order."""
    sums = ", ".join(f"sum(hash({text})::hugeint)" for text in texts)
    return con.execute(f"select {sums} from {table.sql}").fetchall()[0]
