"""Writing the page: what `duckdb-anon report` and the SQL function `anon_report` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.engine.quoting import ident
from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.gather import Plan, gather


def write_page(
    con: duckdb.DuckDBPyConnection, plan: Plan, path: str, say: Callable[[str], object] = lambda text: None
) -> int:
    """Measure, write one HTML file, return its size in bytes.

    Raises:
        AnonError: when the report extra is missing, the original has no labels or the file cannot be written.
        duckdb.Error: when a table does not exist.
    """
    if not (find_spec("altair") and find_spec("vl_convert")):
        raise AnonError("report: the charts need the report extra; pip install 'duckdb-anon[report]'")
    from duckdb_anon.report.page import page  # needs the extra

    html = page(gather(con, plan, say)).encode()
    try:
        Path(path).write_bytes(html)
    except OSError as error:
        raise AnonError(f"report: {path}: {error.strerror}") from error
    return len(html)


def write_report(con: duckdb.DuckDBPyConnection | None, call: Mapping[str, Any]) -> str:
    """Answer a call of `anon_report` on a connection of its own, in the caller's database and schema.

    Returns:
        The path written.
    """
    if con is None:
        raise AnonError("anon_report: there is no open connection to measure with")
    con.execute("set python_enable_replacements = false")
    if call["database"] not in ("temp", "system"):
        con.execute(f"use {ident(call['database'])}.{ident(call['schema'])}")
    plan = Plan(call["original"], tuple(call["releases"]), call["targets"], call["queries"], call["seed"])
    write_page(con, plan, call["path"])
    return str(call["path"])
