"""Apache Superset: SQL Lab, and dashboards pointed at releases by the database's URI alone, looked at in a browser.

The dashboards are those of examples/superset, on 4,000 people of the census where it is at hand. What each chart got
is read off the browser's own traffic: the SQL Superset made, and rows, which must be what `rewrite_query` gives for
that SQL on a plain connection.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import duckdb_anon
from duckdb_anon.serve.publish import publish

if TYPE_CHECKING:
    from tests.endtoend.dashboards.conftest import Browser, Superset

PROJECT = Path(__file__).resolve().parents[3]
EXAMPLE = PROJECT / "examples" / "superset"
CENSUS = Path(os.environ.get("ANON_SHARED_DATA", PROJECT.parent / "shared" / "data")) / "census.csv"
REAL = """
update people set age = c.AGE, born = make_date(2020 - c.AGE, 1 + c.i % 12, 15), salary = c.INCWAGE,
  gender = ['male', 'female'][c.SEX], marital_status = 'status ' || c.MARST, education = 'level ' || c.EDUC,
  hours_per_week = c.UHRSWORK
from (select *, row_number() over () as i from read_csv('{file}') limit 4000) c where people.rowid + 1 = c.i
"""
RELEASES = {
    "boxes": "mondrian('people', 5)",
    "randomized": "rr_distort('people', p := 0.8)",
}
CHARTS = "[...document.querySelectorAll('.dashboard-component-chart-holder')]"
ALERTS = "[...document.querySelectorAll('[role=alert]')].map(one => one.innerText)"
DRAWN = f"""{CHARTS}.length == COUNT && {CHARTS}.every(chart => chart.querySelector('[role=alert]') || (
  chart.querySelector('.slice_container') && !chart.querySelector('[data-test=loading-indicator]') &&
  [...chart.querySelectorAll('canvas')].every(canvas => canvas.width && new Set(new Uint32Array(
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 9)))"""


@dataclass(frozen=True)
class Shown:
    """The database in Superset, the files behind it, and the numbers of datasets and dashboards."""

    superset: Superset
    folder: Path
    database: int
    datasets: dict[str, int]

    def point(self, release: str, more: str = "") -> Any:
        """Change the database's URI, and nothing else."""
        file = "private.duckdb" if release == "original" else f"releases.duckdb?answer=people:{release}{more}"
        uri = f"duckdb+anon:///{self.folder / file}"
        return self.superset.call(f"database/{self.database}", {"sqlalchemy_uri": uri}, "PUT")

    def chart(self, dataset: str = "people", **query: Any) -> Any:
        return self.superset.chart_data(self.datasets[dataset], **query)

    def expected(self, sql: str, release: str, bounds: str = "none") -> list[dict[str, Any]]:
        """Rows of a query by the package itself."""
        name = "private" if release == "original" else "releases"
        with duckdb_anon.connect(str(self.folder / f"{name}.duckdb")) as con:
            if release != "original":
                call = f"select rewrite_query($1, 'people', $2, bounds := '{bounds}')"
                sql = con.execute(call, [sql, release]).fetchall()[0][0]
            found = con.execute(sql)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.fixture(scope="module")
def displayed(superset: Superset, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The original, its releases, and the example's dashboards on the original."""
    folder = tmp_path_factory.mktemp("shown")
    with duckdb_anon.connect(str(folder / "private.duckdb")) as con:
        con.execute((EXAMPLE / "people.sql").read_text())
        if CENSUS.exists():
            con.execute(REAL.format(file=CENSUS))
        for name, call in RELEASES.items():
            duckdb_anon.release(con, name, call, independent=True)
    publish(str(folder / "private.duckdb"), str(folder / "releases.duckdb"), independent=True)
    superset.import_dashboards(EXAMPLE, f"duckdb+anon:///{folder / 'private.duckdb'}", "duckdb+anon:///private.duckdb")
    listed = superset.call("database/?q=(page_size:100)")["result"]
    database = next(node["id"] for node in listed if node["database_name"] == "people")
    datasets = {
        node["table_name"]: node["id"]
        for node in superset.call("dataset/?q=(page_size:100)")["result"]
        if node["database"]["id"] == database
    }
    yield Shown(superset, folder, database, datasets)


def numbers(rows: list[dict[str, Any]], keys: list[str]) -> list[float]:
    """The measures in rows, whatever form they have: wide, with a column for each series, or long."""
    shares = [name for name in rows[0] if name[0] == "%" or name.endswith("__contribution")] if rows else []
    values = [value for row in rows for name, value in row.items() if name not in [*keys, *shares]]
    return sorted(float(value) for value in values if isinstance(value, (int, float)))


def compare(displayed: Shown, answers: list[Any], release: str) -> None:
    """What came to the browser against what the package says to the same SQL."""
    for answer in answers:
        keys = ["gender", "education", "marital_status", "born", "decade"]
        rows = displayed.expected(answer["query"].strip().rstrip(";"), release)
        if not set(answer["colnames"]) - set(keys):  # a filter's values
            assert [tuple(row.values()) for row in answer["data"]] == [tuple(row.values()) for row in rows]
        assert numbers(answer["data"], keys) == pytest.approx(numbers(rows, keys), rel=1e-9), answer["query"]


def opened(displayed: Shown, browser: Browser, slug: str, charts: int) -> list[Any]:
    """Open a dashboard, wait until all is drawn, and return what came for it."""
    browser.call("Page.navigate", url="about:blank")
    browser.events.clear()
    browser.call("Page.navigate", url=f"{displayed.superset.url}/superset/dashboard/{slug}/?standalone=1&force=1")
    browser.until(f"location.href.includes('/{slug}/') && {DRAWN.replace('COUNT', str(charts))}")
    return browser.answers(charts + 1)


@pytest.mark.parametrize("release", ["original", *RELEASES])
def test_a_dashboard_made_on_the_original_shows_the_releases(
    displayed: Shown, browser: Browser, release: str, tmp_path: Path
) -> None:
    assert "refused" not in displayed.point(release)
    answers = opened(displayed, browser, "people", 7)
    picture = browser.picture(tmp_path / f"{release}.png")
    assert browser.run(ALERTS) == [], picture
    filters = [answer for answer in answers if answer["colnames"] == ["marital_status"]]
    assert (len(answers), len(filters)) == (8, 1)
    assert browser.run(f"{CHARTS}.filter(one => one.querySelector('canvas')).length") == 4
    compare(displayed, answers, release)
    values = [row["marital_status"] for row in filters[0]["data"]]
    assert f"{len(values)} options" in browser.run("document.body.innerText")


def test_a_filter_chosen_from_the_list_filters_what_the_release_says(displayed: Shown, browser: Browser) -> None:
    displayed.point("boxes")
    answers = opened(displayed, browser, "people", 7)
    listed = next(answer for answer in answers if answer["colnames"] == ["marital_status"])
    values = [row["marital_status"] for row in listed["data"]]
    option = "document.querySelector('.ant-select-item-option')"
    press = "dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))"
    browser.until(option, doing=f"document.querySelector('[data-test=filter-bar] .ant-select-selector').{press}")
    chosen = browser.run(f"{option}.innerText")
    browser.run(f"{option}.click()")
    apply = "document.querySelector('[data-test=filter-bar__apply-button]')"
    browser.until(f"{apply} && !{apply}.disabled")
    browser.run(f"{apply}.click()")
    filtered = browser.answers(7)
    browser.until(DRAWN.replace("COUNT", "7"))
    assert chosen in values
    assert sum(f"marital_status IN ('{chosen}')" in answer["query"] for answer in filtered) == 6
    compare(displayed, filtered, "boxes")
    assert browser.run(ALERTS) == []


def milliseconds(day: dt.datetime) -> float:
    """As Superset sends times."""
    return day.replace(tzinfo=dt.UTC).timestamp() * 1000


def test_sql_lab_runs_functions_and_names_the_nearest_parameter(displayed: Shown) -> None:
    displayed.point("original")
    body = {"database_id": displayed.database, "schema": "main", "runAsync": False}
    errors = """select map_extract_value(keys, 'gender') as gender, original, estimate, relative_error from relative_error(
        'SELECT gender, sum(salary) FROM people WHERE age < 40 GROUP BY gender', 'people', 'boxes') order by gender"""
    rows = displayed.superset.call("sqllab/execute/", {**body, "sql": errors})["data"]
    assert rows and rows == displayed.expected(errors, "original")
    misspelt = displayed.superset.call("sqllab/execute/", {**body, "sql": "from muco('people', delte := 0.2)"})
    assert "did you mean 'delta'" in misspelt["refused"]


def test_columns_are_the_originals_after_the_switch(displayed: Shown) -> None:
    def columns() -> list[tuple[Any, ...]]:
        path = f"dataset/{displayed.datasets['people']}"
        assert displayed.superset.call(f"{path}/refresh", method="PUT") == {"message": "OK"}
        found = displayed.superset.call(path)["result"]
        assert found["main_dttm_col"] == "born"
        return sorted((column["column_name"], column["type"], column["is_dttm"]) for column in found["columns"])

    displayed.point("original")
    before = columns()
    for release in ("boxes", "randomized"):
        displayed.point(release)
        assert columns() == before and ("born", "DATE", True) in before
