"""anon_report: write one self-contained page about an original and its releases.

Measures nothing of its own: risk, loss and query error by the package's functions, put on a page with charts that
reads without a network. It sees committed tables only, since it measures on a connection of its own when the call
runs. The page holds figures on the original: it is for the data holder. Cost: the sum of its measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.engine.records.private_files import draft_of
from duckdb_anon.measures.risk.linkage_risk import TARGETS
from duckdb_anon.model.errors import AnonError, ParameterError, nearest
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Task
from duckdb_anon.model.parameters import MOST_SEED
from duckdb_anon.report.findings import Findings, Plan
from duckdb_anon.report.measure import measure
from duckdb_anon.report.redaction import Edition, as_json, edition_of
from duckdb_anon.report.release_context import HoldersContext, read_context


def _plan(context: Any, params: Params) -> tuple[dict[str, Any], dict[str, str]]:
    if not params["releases"]:
        raise ParameterError(f"{context.function}: releases := [] names none; say releases := ['a', 'b']")
    original = context.relation("original")
    releases = [context.relation("releases", name) for name in params["releases"]]
    for relation in (original, *releases):  # a connection of its own sees nothing else
        context.table_info(relation)
    planned = {
        "original": original.given,
        "releases": [release.given for release in releases],
        **{name: params[name] for name in ("path", "targets", "queries", "seed", "context", "edition")},
    }
    return planned, {}


def _work(con: Any, planned: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, str]]:
    plan = Plan(
        planned["original"], tuple(planned["releases"]), planned["targets"], planned["queries"], planned["seed"]
    )
    write_page(
        con, plan, planned["path"], context=read_context(planned["context"], "anon_report"), edition=planned["edition"]
    )
    return [{"path": planned["path"]}]


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
    _goals("report", path)
    _require_tables(con, (plan.original, *plan.releases))
    return write_edition(measure(con, plan, context or HoldersContext(), say), path, edition)


def _require_tables(con: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> None:
    """Refuse a table that does not exist before any other is measured; `tables` as SQL names them."""
    for table in tables:
        try:
            con.execute(f"select * from {table} limit 0")
        except duckdb.CatalogException as error:
            sql = "select table_name from information_schema.tables where not starts_with(table_schema, 'pg_')"
            known = [name for (name,) in con.execute(sql).fetchall()]
            given = table.replace('"', "")
            raise AnonError(f"there is no table {given}{nearest(given, known)}", code="bad-argument") from error


def write_edition(found: Findings, path: str, edition: Edition) -> int:
    """Write one HTML file and the same facts as JSON, with the ending .json; return the page's size in bytes."""
    from duckdb_anon.report.html.page import page  # needs the extra

    shown = edition_of(found, edition)
    facts = as_json(shown, edition)
    html = page(shown, facts, edition)
    with written("report", path, html, facts):
        return len(html.encode())


def require_extra(function: str) -> None:
    """Refuse a page where the report extra is not installed."""
    if not all(map(find_spec, ("altair", "vl_convert", "jinja2"))):
        raise AnonError(f"{function}: the page needs the report extra: pip install 'duckdb-anon[report]'")


@contextmanager
def written(function: str, path: str, html: str, facts: str) -> Iterator[None]:
    """Write a page and its facts, a .json next to it; both appear at the end of the block, or none where it fails."""
    with ExitStack() as drafts:
        try:
            for goal, content in zip(_goals(function, path), (html, facts), strict=True):
                drafts.enter_context(draft_of(goal)).write_bytes(content.encode())
        except OSError as error:
            raise AnonError(f"{function}: {path}: {error.strerror}") from error
        yield


def _goals(function: str, path: str) -> tuple[Path, Path]:
    """The page and the file of its facts, refused where both would have one name."""
    page, facts = Path(path), Path(path).with_suffix(".json")
    if page == facts:
        raise AnonError(
            f"{function}: {path}: the page is HTML and its facts go to a .json next to it; give a name like report.html"
        )
    return page, facts


MEASURE = Task(
    name="anon_report",
    summary="writes a page on risk, guarantees and utility of releases with charts, and a JSON file; returns its path",
    example="FROM anon_report('people', ['release', 'boxes'], 'report.html')",
    section="Choosing",
    smallest="releases := ['{release}'], path := 'report.html'",
    extra="report",
    parameters=(
        Parameter("releases", "names of the releases", "names", REQUIRED),
        Parameter("path", "HTML file to write", "text", REQUIRED),
        TARGETS,
        Parameter("queries", "number of queries in the workload", "integer", 300, low=1),
        Parameter("context", "TOML file: purpose, recipients, decision, threshold, queries, ...", "text"),
        Parameter(
            "edition",
            "'external' leaves out values and counts of the original, 'short' also what only an expert reads",
            "text",
            "internal",
            ("internal", "external", "short"),
        ),
        Parameter("seed", "makes targets and queries repeatable", "integer", 1, low=0, high=MOST_SEED),
    ),
    returns={"path": "VARCHAR"},
    plan=_plan,
    work=_work,
    tables=("original",),
)
