"""anon_report: write one self-contained page about an original and its releases.

Measures nothing of its own: risk, loss and query error by the package's functions, put on a page with charts that
reads without a network. It sees committed tables only, since it measures on a connection of its own when the call
runs. The page holds figures on the original: it is for the data holder. Cost: the sum of its measures.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.quoting import literal
from duckdb_anon.model.entries import REQUIRED, Parameter, Params, Query


def _plan(context: Any, params: Params) -> str:
    original = context.relation("original").given
    releases = [context.relation("releases", name).given for name in params["releases"]]
    call = (
        f"{{original: {literal(original)}, releases: {literal(releases)}, path: {literal(params['path'])}, "
        f"targets: {params['targets']}, queries: {params['queries']}, seed: {params['seed']}, "
        f"database: {literal(context.catalog.database)}, schema: {literal(context.catalog.schema)}}}"
    )
    checked = "case when starts_with(_page, '!') then error(_page[2:]) else _page end"
    return f"select {checked} as path from (select _anon_report({call}) as _page)"


MEASURE = Query(
    name="anon_report",
    summary="writes one page on risk and utility of releases, with charts, readable offline; returns its path",
    paper="",
    example="FROM anon_report('people', ['release', 'boxes'], 'report.html')",
    parameters=(
        Parameter("releases", "names of the releases", "names", REQUIRED),
        Parameter("path", "HTML file to write", "text", REQUIRED),
        Parameter("targets", "people an attacker is tried on", "integer", 2000, low=1),
        Parameter("queries", "queries of the workload", "integer", 300, low=1),
        Parameter("seed", "makes targets and queries repeatable", "integer", 1, low=0),
    ),
    plan=_plan,
    tables=("original",),
)
