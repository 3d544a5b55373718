"""Writing the page: what `duckdb-anon report` and the SQL function `anon_report` share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
    """Measure, and write the page of an edition and its facts; return the size of the page in bytes."""
    require_extra("report")
    return write_edition(measure(con, plan, context or HoldersContext(), say), path, edition)


def write_edition(found: Findings, path: str, edition: Edition) -> int:
    """Write one HTML file and the same facts as JSON, with the ending .json; return the page's size in bytes."""
    from duckdb_anon.report.html.page import page  # needs the extra

    html = page(found, edition)
    with written("report", path, html, as_json(found, edition, version("duckdb-anon"))):
        return len(html.encode())


def require_extra(function: str) -> None:
    """Refuse a page where the report extra is not installed."""
    if not all(map(find_spec, ("altair", "vl_convert", "jinja2"))):
        raise AnonError(f"{function}: the page needs the report extra: pip install 'duckdb-anon[report]'")


@contextmanager
def written(function: str, path: str, html: str, facts: str) -> Iterator[None]:
    """Write a page and its facts, a .json next to it; both appear at the end of the block, or none where it fails."""
    goals = {Path(path): html.encode(), Path(path).with_suffix(".json"): facts.encode()}
    if len(goals) < 2:
        raise AnonError(
            f"{function}: {path}: the page is HTML and its facts go to a .json next to it; give a name like report.html"
        )
    with ExitStack() as drafts:
        try:
            for goal, content in goals.items():
                drafts.enter_context(draft_of(goal)).write_bytes(content)
        except OSError as error:
            raise AnonError(f"{function}: {path}: {error.strerror}") from error
        yield
