"""Write a release that says what it is: table and comments in one transaction, or a Parquet file with metadata.

A plain CREATE TABLE AS FROM muco(...) gives a table without a description. `release` takes the same call and writes,
beside the rows, what an analyst must know to read them: the original's name, method, parameters, day and version on
the table, role and hierarchy on the columns (`model.release_comment`). It is for what analysts may be shown, so it
refuses what must not reach them: `row_id`, and a `seed`. Files pass the checks of `gate`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace as with_fields
from pathlib import Path

import duckdb

from duckdb_anon.engine.catalog.catalog import table_sql, write_comments
from duckdb_anon.engine.records.call_text import Recorded, function_called, recording
from duckdb_anon.engine.records.private_files import draft_of
from duckdb_anon.engine.records.register import Register, released_meanwhile, settle
from duckdb_anon.engine.records.release_digest import release_digest, row_checksum
from duckdb_anon.engine.records.release_seal import sealed
from duckdb_anon.engine.transaction import transaction
from duckdb_anon.gate.checks import refuse_references
from duckdb_anon.gate.files import write_release
from duckdb_anon.gate.release_request import ReleaseRequest
from duckdb_anon.gate.source_tables import described_table
from duckdb_anon.model import progress
from duckdb_anon.model.errors import AnonError, ParameterError, cause_of, listed, nearest, one_line
from duckdb_anon.model.function_specs import Method
from duckdb_anon.model.release_comment import Description
from duckdb_anon.parts.run_duckdb import Bounds, Run, RunDirectory, signature_of, within
from duckdb_anon.parts.run_part import message_of
from duckdb_anon.registry import ENTRIES
from duckdb_anon.report.profile.key_columns import refuse_keys
from duckdb_anon.sequence.next_release import Next
from duckdb_anon.sequence.registration import Registration
from duckdb_anon.sql_functions import load

Enter = Callable[[str, Description], None]
"""Enters a release in the register, given its name there and its description."""


def release(
    con: duckdb.DuckDBPyConnection,
    name: str,
    call: str,
    *,
    replace: bool = False,
    part_rows: int | None = None,
    memory: str | int | None = None,
    key: str | None = None,
    previous: str | None = None,
    deleted: str = "keep",
    changed: str = "keep",
    independent: bool = False,
    register: str | None = None,
) -> str:
    """Run a method and write its release with its description; on failure nothing is left behind.

    The release is entered in the register, the tables of schema `anon` in the original's database (`engine.register`).

    Args:
        con: an open connection; the package is loaded on it. No transaction may be open.
        name: the table to write, a Parquet file (a name that ends in '.parquet') or a folder of them (one that ends
            in '/').
        call: one call of a method, "muco('people', 0.2)".
        replace: whether a table or file of that name may be replaced.
        part_rows: where given, the table is cut into parts of at most so many rows, which are worked one after the
            other and shuffled as one; 1,000 or more. A run that was stopped goes on when it is called again.
        memory: where given, such as '2GB', the process keeps to it by working in parts. Numbers are bytes.
        key: column that identifies a record (with several records of an individual, the person column); the register
            then holds keyed hashes of the records.
        previous: the release that this one continues: published records stay as they are, new ones are added.
        deleted: published records that the original holds no more: 'keep' them, or 'withdraw' their whole groups.
        changed: published records whose values have changed: 'keep' them as they were published, or (anatomy)
            'replace' their quasi-identifiers inside their buckets.
        independent: release the original regardless of its earlier releases; the description shows it.
        register: attached database that keeps the register; by default the one that holds the original.

    Returns:
        The comment of the table, 'anon: release of people by muco(delta := 0.2) on ... with duckdb-anon ...'; with
        `previous` a second line says how many records were added, wait, were deleted or changed.

    Raises:
        ParameterError: when `call` is not one call of a method, asks for `row_id`, or has a seed.
        AnonError: whatever the method refuses, a name that is taken, an open transaction, an original that has been
            released before.

    Example:
        >>> import duckdb_anon
        >>> con = duckdb_anon.connect()
        >>> _ = con.execute("create table people as from anon_sample('census', 500, seed := 1)")
        >>> text = duckdb_anon.release(con, "r", "anatomy('people', 4, qi := ['age', 'gender'], sensitive := 'salary')")
        >>> text.split(" on ")[0]
        'anon: release of people by anatomy(l := 4)'
    """
    request = ReleaseRequest(
        con, name, call, replace, part_rows, memory, key, previous, deleted, changed, independent, register
    )
    settle(load(con))
    method = _method_of(con, call)
    if request.in_parts:
        if previous is not None:
            raise ParameterError(
                "release: previous does not go with part_rows, memory or a folder. Leave them out: new records are "
                "released in one call, whatever the size of the table"
            )
        return _release_in_parts(request, method)
    with _errors_of_method(method, call), _transaction(request) as draft:
        request.require_free_name()
        registration = Registration.of(request, _resolved(con, call, method))
        if previous is None:
            registration.guard()
            return _write(registration, draft)
        following = Next.of(registration)
    with following.prepared():
        with _errors_of_method(method, call), _transaction(request) as draft:
            comment = _written(registration, following.rows_sql(), draft, following.enter)
    return f"{comment}\n{following.report()}"


@contextmanager
def _transaction(request: ReleaseRequest) -> Iterator[Path | None]:
    """The transaction of a release, and where to write its file, which takes its place once the register is committed.

    Only the register has rows that two of them may insert. A process that ends before leaves no file without an entry,
    and `settle` moves the file of an entry.
    """
    reason = ", for a release and its description are written in a transaction of their own"
    beside: AbstractContextManager[Path | None] = draft_of(Path(request.name)) if request.is_file else nullcontext()
    with beside as draft, transaction(request.con, "release", reason, released_meanwhile):
        yield draft


@contextmanager
def _errors_of_method(method: Method, call: str) -> Iterator[None]:
    """Let errors of DuckDB inside the block be the method's own words."""
    try:
        yield
    except duckdb.Error as error:
        raise AnonError(message_of(error, method.name, call)) from cause_of(error)


def _release_in_parts(request: ReleaseRequest, method: Method) -> str:
    """Work in parts, in a folder of its own, and write what comes of it at once."""
    request.require_free_name()
    con = request.con
    found = _resolved(con, request.call, method)
    found = with_fields(found, entry=with_fields(found.entry, described_by=None))  # parts do not see the full table
    registration = Registration.of(request, found)
    registration.guard()
    if registration.key:
        found = registration.with_key_column()
        registration.require_keys(found.relation.sql)
    coded = len(found.roles.qi) + len(found.roles.sensitive)
    bounds = Bounds.of(request, coded)
    location = RunDirectory(request)
    keep = False
    try:
        with within(con, bounds), progress.running(method.name):
            run = Run(con, found, location, bounds)
            finished = run.run(signature_of(found, request, bounds))
            progress.say("writing")
            with _transaction(request) as draft:
                numbered = f"({finished})"
                rows = registration.without_row_id(numbered) if registration.key else numbered
                enter = _first(registration, registration.open(), numbered)
                return _written(registration, rows, draft, enter)
    except (KeyboardInterrupt, duckdb.InterruptException, progress.Interrupted):
        keep = True
        raise
    except duckdb.Error as error:
        raise AnonError(_failed(error, method, location)) from cause_of(error)
    finally:
        location.close(keep=keep)


def _resolved(con: duckdb.DuckDBPyConnection, call: str, method: Method) -> Recorded:
    """What a call was planned to be, without running it."""
    try:
        with recording(_refuse_unpublishable) as recorded:
            con.execute(f"describe from {call}")
            found = recorded()
    except duckdb.Error as error:
        raise AnonError(message_of(error, method.name, call)) from cause_of(error)
    if found is None:
        raise ParameterError(f"release: {call!r} is not one call of a method, such as muco('people', 0.2)")
    if not found.params.get("force"):
        relation, roles = found.relation, found.roles
        refuse_keys(con, "release", relation, roles)
        table = described_table(con, relation.sql, relation.given, relation.comment, relation.comments)
        refuse_references(con, "release", table, [info.name for info in (*roles.sensitive, *roles.keep)])
    return found


def _failed(error: duckdb.Error, method: Method, location: RunDirectory) -> str:
    """What went wrong, and what to do where it was the disk."""
    text = one_line(error)
    if any(word in text for word in ("No space left", "max_temp_directory_size", "File too large", "Could not write")):
        return (
            f"release: {location.folder.parent} has no room for the run: {text}; nothing was written. "
            "Free some space, or write to another disk"
        )
    if "Out of Memory" in text or isinstance(error, duckdb.OutOfMemoryException):
        return f"release: {text}; nothing was written. Give more memory, or a smaller part_rows"
    return message_of(error, method.name)


def _write(registration: Registration, file: Path | None) -> str:
    """Run the call, write the table or `file`, and enter it in the register."""
    con, draft = registration.con, f"temp.main._anon_{secrets.token_hex(8)}"
    if registration.key:
        registration.require_keys(registration.planned.relation.sql)
    register = registration.open()
    rows = registration.call(register, row_id=bool(registration.key))
    if registration.key or file:
        con.execute(f"create temp table {draft} as from {rows}")
        rows = registration.without_row_id(draft) if registration.key else draft
    comment = _written(registration, rows, file, _first(registration, register, draft))
    con.execute(f"drop table if exists {draft}")
    return comment


def _first(registration: Registration, register: Register | None, draft: str = "") -> Enter | None:
    """What enters a release that continues no other; None where there is no register."""
    if register is None:
        return None
    return lambda known, description: registration.enter_first(register, known, description, draft)


def _written(registration: Registration, rows: str, file: Path | None, enter: Enter | None) -> str:
    """Write rows as a table or file with their description, and enter them in the register; return the description."""
    name, replace = registration.request.name, registration.request.replace
    if file is None:
        registration.con.execute(f"create {'or replace ' if replace else ''}table {table_sql(name)} as from {rows}")
        rows = table_sql(name)
    description = _describe(registration, rows, file)
    if enter is not None:
        registration.entering(
            name if file else rows, is_file=file is not None, write=lambda known: enter(known, description)
        )
    return description.comment()


def _describe(registration: Registration, rows: str, file: Path | None) -> Description:
    """Write the description: comments of a table; a file is written with its metadata."""
    con, columns, name = registration.con, registration.planned.column_comments(), registration.request.name
    checksum, digest = row_checksum(con, rows), release_digest(con, rows)
    description = sealed(with_fields(registration.described(), checksum=checksum, digest=digest), columns)
    if file is None:
        write_comments(con, rows, description.comment(), columns)
        return description
    relation, roles = registration.planned.relation, registration.planned.roles
    labels = {**relation.comments, **({roles.person.name: "anon: person"} if roles.person else {})}
    original = described_table(con, relation.sql, relation.given, relation.comment, labels)
    release_table = described_table(con, rows, name, description.comment(), columns)
    write_release(registration.request, release_table, original, file)
    return description


def _refuse_unpublishable(found: Recorded) -> None:
    """Refuse what analysts must not get."""
    name, given = found.entry.name, found.arguments
    if given.get("row_id"):
        raise ParameterError(
            f"{name}: row_id := true ties rows to the original's, so such a table is no release; for your own checks "
            "use CREATE TABLE checked AS FROM ..."
        )
    _refuse_seed(found)


def _refuse_seed(found: Recorded) -> None:
    """Whoever knows the seed of a release can undo it."""
    if found.arguments.get("seed") is not None:
        raise ParameterError(
            f"{found.entry.name}: seed := ... makes no release: whoever knows it repeats every draw and takes the "
            "noise away. Leave it out, or use CREATE TABLE ... AS for tests and studies"
        )


def _method_of(con: duckdb.DuckDBPyConnection, call: str) -> Method:
    """The method `call` calls, which must be one call and nothing around it."""
    methods = {entry.name: entry for entry in ENTRIES if isinstance(entry, Method)}
    name = function_called(con, call)
    if name is None:
        raise ParameterError(
            f"release: {call!r} is not one call of a method, such as muco('people', 0.2); for anything around it use "
            "CREATE TABLE ... AS"
        )
    if name not in methods:
        why = f"{nearest(name, methods)}; FROM anon_functions() lists them"
        if name in {entry.name for entry in ENTRIES}:
            near = _near(name, list(methods.values()))
            which = f"methods near it are {listed(near)}" if near else f"methods are {listed(methods, len(methods))}"
            why = f": it looks at tables and makes no release; {which}"
        raise ParameterError(f"release: {name} is not a method{why}")
    return methods[name]


def _near(name: str, methods: Sequence[Method]) -> list[str]:
    """Methods that begin as a function's name does (rr_risk: rr_distort), or take what it looks at (k_anonymity: k)."""
    first = name.split("_")[0]
    alike = [method.name for method in methods if method.name.split("_")[0] == first]
    if alike or len(first) > 2:  # k, l, t, km, kl
        return alike
    return [method.name for method in methods if set(first) <= {one.name for one in method.parameters}]
