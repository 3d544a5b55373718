"""SQL Lab, datasets and charts over a release and over a measure, in Apache Superset over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import duckdb_anon

if TYPE_CHECKING:
    from tests.endtoend.dashboards.conftest import Browser, Superset

TABLES = """
create table people as
  select i % 50 as age, i % 3 as sex, 'd' || (i % 7) as disease, i % 900 as cost from range(1000) t(i);
comment on column people.age is 'anon: quasi';
comment on column people.sex is 'anon: quasi';
comment on column people.disease is 'anon: sensitive';
comment on column people.cost is 'anon: insensitive';
create table release as from muco('people', 0.2, seed := 1);
create table boxes as from mondrian('people', 5, seed := 1);
"""
QUERY = "SELECT sex, sum(cost) FROM people WHERE age < 25 GROUP BY sex"
ERRORS = (
    "select map_extract_value(keys, 'sex') as sex, original, estimate, relative_error "
    f"from relative_error('{QUERY}', 'people', 'release')"
)


@dataclass(frozen=True)
class Entered:
    """A database in Superset, and what queries on it should answer."""

    number: int
    expected: dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def entered(superset: Superset, tmp_path_factory: pytest.TempPathFactory) -> Entered:
    """A database with an original and two releases."""
    file = tmp_path_factory.mktemp("measured") / "people.duckdb"
    with duckdb_anon.connect(str(file)) as con:
        con.execute(TABLES)
        expected = {
            "release": con.execute("select sex, sum(cost) from release group by sex order by sex").fetchall(),
            "boxes": con.execute("select disease, count(*) from boxes group by disease order by disease").fetchall(),
            "errors": con.execute(f"from ({ERRORS}) order by sex").fetchall(),
        }
    return Entered(superset.database("anon", f"duckdb+anon:///{file}"), expected)


def expression(sql: str) -> dict[str, str]:
    return {"expressionType": "SQL", "sqlExpression": sql, "label": "metric"}


def drawn(superset: Superset, dataset: int, by: str, metric: str) -> list[tuple[Any, ...]]:
    """What a chart of `metric` over the values of `by` draws."""
    rows = superset.chart_data(dataset, columns=[by], metrics=[expression(metric)])["data"]
    return sorted((row[by], row["metric"]) for row in rows)


def test_sql_lab_runs_a_function(superset: Superset, entered: Entered) -> None:
    body = {"database_id": entered.number, "sql": f"{ERRORS} order by sex", "runAsync": False, "schema": "main"}
    rows = superset.call("sqllab/execute/", body)["data"]
    assert [tuple(row.values()) for row in rows] == entered.expected["errors"]


def test_sql_lab_names_the_nearest_parameter(superset: Superset, entered: Entered) -> None:
    body = {"database_id": entered.number, "sql": "from muco('people', delte := 0.2)", "schema": "main"}
    assert "did you mean 'delta'" in superset.call("sqllab/execute/", {**body, "runAsync": False})["refused"]


def test_chart_over_a_release_draws_its_sums(superset: Superset, entered: Entered) -> None:
    found = drawn(superset, superset.dataset(entered.number, "release"), "sex", "sum(cost)")
    assert found == entered.expected["release"]


def test_chart_over_a_release_of_boxes_counts_its_rows(superset: Superset, entered: Entered) -> None:
    found = drawn(superset, superset.dataset(entered.number, "boxes"), "disease", "count(*)")
    assert found == entered.expected["boxes"]


def test_chart_over_relative_error_draws_the_errors_and_a_browser_shows_it(
    superset: Superset, entered: Entered, browser: Browser
) -> None:
    dataset = superset.dataset(entered.number, "errors", ERRORS)
    errors = {sex: error for sex, _, _, error in entered.expected["errors"]}
    assert dict(drawn(superset, dataset, "sex", "max(relative_error)")) == pytest.approx(errors)
    kind, metrics = "echarts_timeseries_bar", [expression("max(relative_error)")]
    params = {"viz_type": kind, "x_axis": "sex", "metrics": metrics, "groupby": [], "datasource": f"{dataset}__table"}
    chart = {"slice_name": "errors", "viz_type": kind, "datasource_id": dataset, "datasource_type": "table"}
    made = superset.call("chart/", {**chart, "params": json.dumps(params)})
    browser.call("Page.navigate", url=f"{superset.url}/explore/?slice_id={made['id']}&standalone=1")
    browser.until("document.querySelectorAll('canvas').length")
    assert not browser.run("document.querySelectorAll('[role=alert]').length")
