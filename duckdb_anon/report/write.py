"""Writing the page: what `duckdb-anon report` and the SQL function `anon_report` share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import duckdb

from duckdb_anon.engine.private_files import draft_of
from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.findings import Findings, Plan
from duckdb_anon.report.measure import measure
from duckdb_anon.report.redaction import Edition, as_json
from duckdb_anon.report.release_context import HoldersContext


def write_page(
    con: duckdb.DuckDBPyConnection,
    plan: Plan,
    path: str,
    say: Callable[[str], object] = lambda text: None,
    *,
    context: HoldersContext | None = None,
    edition: Edition = "internal",
) -> int:
    """Measure, and write the page of an edition; return its size in bytes.

    Args:
        con: a connection with the package loaded.
        plan: what to measure.
        path: the HTML file.
        say: called with one line when a release is begun.
        context: what the holder says of the release.
        edition: 'external' for readers who may not see figures on the original.

    Raises:
        AnonError: when the report extra is missing, the original has no labels or a file cannot be written.
        duckdb.Error: when a table does not exist.
    """
    if not all(map(find_spec, ("altair", "vl_convert", "jinja2"))):
        raise AnonError("report: the page needs the report extra: pip install 'duckdb-anon[report]'")
    return write_edition(measure(con, plan, context or HoldersContext(), say), path, edition)


def write_edition(found: Findings, path: str, edition: Edition) -> int:
    """Write one HTML file and the same facts as JSON beside it; return the page's size in bytes.

    Args:
        found: what was measured.
        path: the HTML file; the JSON has its name and the ending .json.
        edition: 'external' for readers who may not see figures on the original.
    """
    from duckdb_anon.report.html.page import page  # needs the extra

    html = page(found, edition).encode()
    told = as_json(found, edition, version("duckdb-anon")).encode()
    goals = {Path(path): html, Path(path).with_suffix(".json"): told}
    if len(goals) < 2:
        raise AnonError(
            f"report: {path}: the page is HTML and its facts go to a .json next to it; give a name like report.html"
        )
    try:
        with ExitStack() as written:
            for goal, content in goals.items():
                written.enter_context(draft_of(goal)).write_bytes(content)
    except OSError as error:
        raise AnonError(f"report: {path}: {error.strerror}") from error
    return len(html)
