"""Parquet files of releases: checked as `publish` checks, complete or not there, readable by owner and group."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, described, use_schema
from duckdb_anon.engine.records.private_files import draft_of
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.gate.checks import refuse, require_signature
from duckdb_anon.gate.release_request import ReleaseRequest
from duckdb_anon.gate.source_tables import SourceTable, clean_comment, described_table
from duckdb_anon.model.errors import AnonError, cause_of, one_line
from duckdb_anon.model.release_comment import COLUMN_KEY, KEY, is_release, read_description
from duckdb_anon.sql_functions import load


def write_parquet(
    con: duckdb.DuckDBPyConnection, name: str, path: str, *, replace: bool = False, allow: bool = False
) -> None:
    """Write a release to a Parquet file with its comments as key-value metadata.

    The table's comment has the key `anon`, a column's the key `anon.column.NAME`; a plain COPY drops both. Functions
    of the package that are given the file read them as they read a table's comments. The table passes the checks of
    `duckdb-anon publish`.

    Args:
        con: an open connection.
        name: a release.
        path: the file to write; it appears only once it is complete.
        replace: whether an existing file may be replaced.
        allow: write a table commented 'anon: release' that `release()` did not write, at the caller's responsibility.

    Raises:
        AnonError: when the table must not leave, or the file exists or cannot be written.
    """
    if Path(path).exists() and not replace:
        raise AnonError(f"write_parquet: {path} exists; give another file, or pass --replace (in Python replace=True)")
    cursor = load(con).cursor()
    try:
        database, schema = con.execute("select current_database(), current_schema()").fetchall()[0]
        use_schema(cursor, database, schema)
        catalog = Catalog(cursor, database, schema)
        relation = catalog.relation("write_parquet", "name", name)
        comments = described(cursor, relation.sql)[1]
    finally:
        cursor.close()
    comment = comments.pop("", "")
    if not is_release(comment):
        raise AnonError(
            f"write_parquet: {name} is not declared a release. Write one with duckdb_anon.release(); for a table of "
            "another kind use COPY"
        )
    release = described_table(con, relation.sql, name, comment, comments)
    write_release(ReleaseRequest(con, path, "", function="write_parquet"), release, allow=allow)


def write_release(
    request: ReleaseRequest,
    release: SourceTable,
    original: SourceTable | None = None,
    draft: Path | None = None,
    *,
    allow: bool = False,
) -> None:
    """Check a release and write it to a file, or to a folder where its name does not end in '.parquet'.

    `draft`: where the rows come from the method this moment, the file or folder to write to, which the caller moves to
    its name.

    Raises:
        AnonError: the release must not leave, or cannot be written.
    """
    con, function, goal = request.con, request.function, Path(request.name)
    require_signature(function, release)
    refuse(con, function, release, original, allow, made_now=draft is not None)
    description = read_description(release.comment)
    metadata = {KEY: "" if description is None else description.comment()}
    for column, (_, text) in release.columns.items():
        metadata[f"{COLUMN_KEY}{column}"] = clean_comment(text)
    pairs = ", ".join(f"{literal(key)}: {literal(text)}" for key, text in metadata.items() if text)
    options = "format parquet" + (f", kv_metadata {{{pairs}}}" if pairs else "")
    if not goal.name.lower().endswith(".parquet"):
        options += ", file_size_bytes '256MB', filename_pattern 'rows_{i}'"
    try:
        with draft_of(goal) if draft is None else nullcontext(draft) as written:
            con.execute(f"copy (from {release.sql}) to {literal(str(written))} ({options})")
    except duckdb.Error as error:
        raise AnonError(f"{function}: {goal}: {one_line(error)}") from cause_of(error)
