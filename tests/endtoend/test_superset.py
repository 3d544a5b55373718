"""Apache Superset itself, a server on a metadata database of its own: SQL Lab, datasets and charts over HTTP.

Runs where Superset is installed beside the package; .ci/extra-superset makes such an environment.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import duckdb_anon

pytestmark = pytest.mark.skipif(find_spec("superset") is None, reason="Superset is not installed")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SUPERSET = Path(sys.executable).parent / "superset"
PASSWORD = "only-for-this-test"
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
LOGIN = """
<form id="f" method="post" action="{url}/login/?next={page}">
<input name="username" value="admin"><input name="password" value="{password}"></form><script>f.submit()</script>
"""
CONFIGURATION = """
SECRET_KEY = "a key for one test, which is long enough"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/metadata.db"
TALISMAN_ENABLED = False
WTF_CSRF_ENABLED = False
"""


@dataclass(frozen=True)
class Superset:
    """A running server, the database it shows, and what queries on it should answer."""

    url: str
    database: int
    token: str
    expected: dict[str, list[tuple[Any, ...]]]

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return called(f"{self.url}/api/v1/{path}", body, self.token)

    def dataset(self, name: str, sql: str | None = None) -> int:
        body = {"database": self.database, "schema": "main", "table_name": name}
        return int(self.post("dataset/", {**body, "sql": sql} if sql else body)["id"])

    def chart_data(self, dataset: int, by: str, metric: str) -> dict[Any, float]:
        """What a chart of `metric` over the values of `by` draws."""
        query = {"columns": [by], "metrics": [expression(metric)], "row_limit": 100}
        body = {"datasource": {"id": dataset, "type": "table"}, "queries": [query], "result_format": "json"}
        answer = self.post("chart/data", {**body, "result_type": "full"})["result"][0]
        return {row[by]: row["metric"] for row in answer["data"]}


def expression(sql: str) -> dict[str, str]:
    return {"expressionType": "SQL", "sqlExpression": sql, "label": "metric"}


def called(url: str, body: Mapping[str, Any] | None = None, token: str = "") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def superset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Superset]:
    """Superset from nothing: metadata, an administrator, roles, a server, and our database in it."""
    folder = tmp_path_factory.mktemp("superset")
    con = duckdb_anon.connect(str(folder / "people.duckdb"))
    con.execute(TABLES)
    expected = {
        "release": con.execute("select sex, sum(cost) from release group by sex order by sex").fetchall(),
        "boxes": con.execute("select disease, count(*) from boxes group by disease order by disease").fetchall(),
        "errors": con.execute(f"from ({ERRORS}) order by sex").fetchall(),
    }
    con.close()
    (folder / "superset_config.py").write_text(CONFIGURATION.format(folder=folder))
    environment = {
        **os.environ, "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"), "FLASK_APP": "superset",
        "PYTHONWARNINGS": "ignore", "SUPERSET_HOME": str(folder),
    }  # fmt: skip
    names = ["--username", "admin", "--firstname", "A", "--lastname", "B", "--email", "a@b.org"]
    for command in (["db", "upgrade"], ["fab", "create-admin", *names, "--password", PASSWORD], ["init"]):
        done = subprocess.run(
            [str(SUPERSET), *command], env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([str(SUPERSET), "run", "-p", str(port)], env=environment, stdout=log, stderr=log)
    try:
        yield connected(f"http://localhost:{port}", folder, expected)
    finally:
        server.terminate()
        server.wait(timeout=30)


def connected(url: str, folder: Path, expected: dict[str, list[tuple[Any, ...]]]) -> Superset:
    """Log in once the server answers, and enter our database."""
    login = {"username": "admin", "password": PASSWORD, "provider": "db"}
    end = time.monotonic() + 90
    while True:
        try:
            token = called(f"{url}/api/v1/security/login", login)["access_token"]
            break
        except OSError:
            assert time.monotonic() < end, (folder / "log").read_text()[-2000:]
            time.sleep(0.5)
    entry = {"database_name": "anon", "sqlalchemy_uri": f"duckdb+anon:///{folder / 'people.duckdb'}"}
    made = called(f"{url}/api/v1/database/", {**entry, "expose_in_sqllab": True}, token)
    return Superset(url, int(made["id"]), token, expected)


def test_sql_lab_runs_a_function(superset: Superset) -> None:
    body = {"database_id": superset.database, "sql": f"{ERRORS} order by sex", "runAsync": False, "schema": "main"}
    rows = superset.post("sqllab/execute/", body)["data"]
    assert [tuple(row.values()) for row in rows] == superset.expected["errors"]


def test_chart_over_a_release_draws_its_sums(superset: Superset) -> None:
    found = superset.chart_data(superset.dataset("release"), "sex", "sum(cost)")
    assert sorted(found.items()) == superset.expected["release"]


def test_chart_over_a_release_of_boxes_counts_its_rows(superset: Superset) -> None:
    found = superset.chart_data(superset.dataset("boxes"), "disease", "count(*)")
    assert sorted(found.items()) == superset.expected["boxes"]


def test_chart_over_relative_error_draws_the_errors_and_a_browser_shows_it(superset: Superset, tmp_path: Path) -> None:
    dataset = superset.dataset("errors", ERRORS)
    errors = {sex: error for sex, _, _, error in superset.expected["errors"]}
    assert superset.chart_data(dataset, "sex", "max(relative_error)") == pytest.approx(errors)
    if BROWSER is None:
        return
    kind = "echarts_timeseries_bar"
    drawn = {"viz_type": kind, "x_axis": "sex", "metrics": [expression("max(relative_error)")], "groupby": []}
    chart = {"slice_name": "errors", "viz_type": kind, "datasource_id": dataset, "datasource_type": "table"}
    made = superset.post("chart/", {**chart, "params": json.dumps({**drawn, "datasource": f"{dataset}__table"})})
    page = quote(f"{superset.url}/explore/?slice_id={made['id']}&standalone=1", safe="")
    door = tmp_path / "login.html"
    door.write_text(LOGIN.format(url=superset.url, page=page, password=PASSWORD))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=40000", "--dump-dom"]
    shown = subprocess.run([*command, door.as_uri()], capture_output=True, text=True, timeout=180, check=True).stdout
    assert "<canvas" in shown and "error" in shown
