"""What both parts of `duckdb-anon run` do with a plan: check its fields, hash what it is made from, report progress."""

from __future__ import annotations

import hmac
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.engine.release_digest import row_checksum
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import AnonError, listed, nearest


def require_known(path: Path, where: str, given: Iterable[str], known: Any) -> None:
    """Refuse names that a part of a plan does not have."""
    for name in given:
        if name not in known:
            raise AnonError(
                f"run: {path}: {where} has unknown '{name}'{nearest(name, known)}. Allowed: {listed(known)}"
            )


def mark_of(
    con: duckdb.DuckDBPyConnection, plan: Mapping[str, Any], part: Mapping[str, Any], tables: Sequence[str], key: bytes
) -> str:
    """Keyed hash of what a part of a plan is made from, which nobody without the key can try values against.

    Args:
        con: a connection with the tables.
        plan: the checked plan, with labels and treatments.
        part: the part: a release, or the database.
        tables: its tables; the order of their rows does not count.
        key: the key of the plan.
    """
    from duckdb_anon import __version__

    rows = {name: row_checksum(con, ident(name)) for name in tables}
    labels, treatments = ({name: plan[kind].get(name) for name in tables} for kind in ("labels", "treatments"))
    stated = json.dumps([rows, labels, treatments, part, __version__], sort_keys=True, default=str)
    return hmac.digest(key, stated.encode(), "sha256").hex()


def say(line: str) -> None:
    """Report progress on stderr."""
    sys.stderr.write(f"{line}\n")
