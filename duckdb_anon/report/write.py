"""Writing the page: what `duckdb-anon report` and the SQL function `anon_report` share."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import duckdb

from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.gather import Plan, gather


def write_page(
    con: duckdb.DuckDBPyConnection, plan: Plan, path: str, say: Callable[[str], object] = lambda text: None
) -> int:
    """Measure, write one HTML file, return its size in bytes.

    Args:
        con: a connection on which the functions are loaded.
        plan: what is shown.
        path: file to write.
        say: told what is being done.

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
