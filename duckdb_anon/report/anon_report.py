"""anon_report: write one self-contained page about an original and its releases.

Measures nothing of its own: risk, loss and query error by the package's functions, put on a page with charts that
reads without a network. It sees committed tables only, since it measures on a connection of its own when the call
runs. The page holds figures on the original: it is for the data holder. Cost: the sum of its measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Task
from duckdb_anon.model.parameters import MOST_SEED
from duckdb_anon.report.findings import Plan
from duckdb_anon.report.release_context import read_context
from duckdb_anon.report.write import write_page


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


MEASURE = Task(
    name="anon_report",
    summary="writes a page on risk, guarantees and utility of releases with charts, and a JSON file; returns its path",
    paper="",
    example="FROM anon_report('people', ['release', 'boxes'], 'report.html')",
    section="Choosing",
    smallest="releases := ['{release}'], path := 'report.html'",
    extra="report",
    parameters=(
        Parameter("releases", "names of the releases", "names", REQUIRED),
        Parameter("path", "HTML file to write", "text", REQUIRED),
        Parameter("targets", "number of individuals that the attacker looks for", "integer", 2000, low=1),
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
