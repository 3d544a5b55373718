"""Dashboards on a file of releases: a URL's answer=people:release, through SQLAlchemy, pandas, JupySQL and Harlequin."""

import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import duckdb_anon
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.serve.publish import publish

sa = pytest.importorskip("sqlalchemy", reason="the bi extra is not installed")
pytest.importorskip("duckdb_engine", reason="the bi extra is not installed")

PEOPLE = """
create table people as select (20 + i % 50)::integer as age, ['F', 'M'][1 + i % 2] as sex,
  'd' || ((i * 7) % 5) as disease, ((i * 13) % 900)::integer as cost from range(1000) t(i);
create table regions as select 'F' as code, 'women' as label union all select 'M', 'men';
comment on table regions is 'anon: release';
comment on column people.age is 'anon: quasi';
comment on column people.sex is 'anon: quasi';
comment on column people.disease is 'anon: sensitive';
comment on column people.cost is 'anon: insensitive';
"""
BY_SEX = """SELECT "sex" AS "sex", COUNT(*) AS "count" FROM "main"."people" GROUP BY "sex"
    ORDER BY "count" DESC LIMIT 1000"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A published file: release, shape of the original, nothing else."""
    folder = tmp_path_factory.mktemp("releases")
    with duckdb_anon.connect(str(folder / "private.duckdb")) as con:
        con.execute(PEOPLE)
        duckdb_anon.release(con, "release", "mondrian('people', 5)")
    publish(str(folder / "private.duckdb"), str(folder / "releases.duckdb"), allow=["regions"])
    return folder / "releases.duckdb"


@contextmanager
def engine(file: Path, parameters: str = "?answer=people:release") -> Iterator[sa.Engine]:
    """An engine that lets go of the file at the end: DuckDB locks it for other processes, such as Harlequin's."""
    made = sa.create_engine(f"duckdb+anon:///{file}{parameters}")
    try:
        yield made
    finally:
        made.dispose()


def test_a_file_of_releases_answers_the_original_question(file):
    with engine(file) as made, made.connect() as connection:
        found = connection.execute(sa.text(BY_SEX)).all()
        assert sum(count for _, count in found) == pytest.approx(1000, abs=2)
        assert all(isinstance(count, int) and 300 < count < 700 for _, count in found)
        assert connection.execute(sa.text("select count(*) from release")).scalar() == 1000  # asked as it is
        plausible = connection.execute(sa.text("select * from people limit 10")).all()  # rows drawn from the release
        assert len(plausible) == 10 and all(20 <= age < 70 and sex in ("F", "M") for age, sex, *_ in plausible)


def test_numbered_parameters_go_where_their_numbers_say(file):
    query = "select count(*) from people where age < $2 and age >= $1 and $1 < $2"
    with engine(file) as made, made.connect() as connection:
        found = connection.exec_driver_sql(query, (25, 30)).scalar()
        statement = query.replace("$1", "25").replace("$2", "30")
        assert found == connection.execute(sa.text(statement)).scalar()
        assert 0 < found < 400
        with pytest.raises(ParameterError, match="asks for the parameter \\$2, and there is no value"):
            connection.exec_driver_sql(query, (25,))


def test_what_cannot_be_read_is_not_asked_of_the_original(file):
    with engine(file) as made, made.connect() as connection:
        for query, reason in (
            ("select count(*) from people limit 5 % 3", "could not be parsed"),
            ("/* a note */ (select count(*) from people limit 5 % 3)", "could not be parsed"),
            ("select 1; select count(*) from people", "has 2 statements, one of which reads people"),
        ):
            with pytest.raises(ParameterError, match=reason):
                connection.exec_driver_sql(query)


def test_bounds_stand_beside_the_measures(file):
    with engine(file, "?answer=people:release&bounds=true") as made, made.connect() as connection:
        row = (
            connection.execute(sa.text("select count(*) as n, avg(cost) as c from people where age < 33"))
            .mappings()
            .one()
        )
    assert row["n_low"] <= 260 <= row["n_high"] and row["c_low"] <= row["c"] <= row["c_high"]


def test_parameters_of_a_query_are_part_of_the_question(file):
    people = sa.table("people", sa.column("age"), sa.column("sex"))
    query = sa.select(sa.func.count()).select_from(people).where(people.c.age < 45, people.c.sex == "F")
    with engine(file) as made, made.connect() as connection:
        assert connection.execute(query).scalar() == pytest.approx(250, abs=40)


def test_the_original_is_reflected_with_its_columns(file):
    with engine(file) as made:
        inspector = sa.inspect(made)
        assert "people" in [*inspector.get_table_names(), *inspector.get_view_names()]
        assert [column["name"] for column in inspector.get_columns("people")] == ["age", "sex", "disease", "cost"]


def test_every_pooled_connection_and_a_cursor_of_a_tools_own_are_answered(file):
    with engine(file) as made, made.connect() as first, made.connect() as second:
        for connection in (first, second):
            assert connection.execute(sa.text("select count(*) from people")).scalar() == 1000
        cursor = second.connection.cursor()  # as Superset does
        cursor.execute("select count(*) from people")
        assert cursor.fetchall() == [(1000,)]


def test_bounds_are_columns_behind_those_of_the_query(file):
    query = "SELECT sex, count(*) AS n FROM people WHERE age < 33 GROUP BY 1 ORDER BY 1"
    with engine(file, "?answer=people:release&bounds=true") as made, made.connect() as connection:
        found = connection.execute(sa.text(query)).mappings().all()
        nested = f"SELECT sex, sum(n) AS n FROM ({query}) AS v GROUP BY sex ORDER BY sex"
        with pytest.warns(UserWarning, match="groups by sex are estimated"):
            over_groups = connection.execute(sa.text(nested)).mappings().all()
    assert [list(row) for row in found] == [["sex", "n", "n_low", "n_high", "note"]] * 2
    assert all(row["n_low"] <= row["n"] <= row["n_high"] for row in found)
    assert [list(row)[:2] for row in over_groups] == [["sex", "n"]] * 2


def test_a_release_that_is_not_there_is_named(file):
    with engine(file, "?answer=people:relaese") as made, made.connect() as connection:
        with pytest.raises(ParameterError, match="there is no table 'relaese' in this file"):
            connection.execute(sa.text("select count(*) from people"))


def test_the_same_sql_has_the_same_columns_on_the_original_and_its_release(file):
    queries = [
        BY_SEX,
        "select disease, avg(cost) as mean, max(age) from people where age > 30 group by 1 order by 1",
        "SELECT COUNT(*) AS rowcount FROM (SELECT sex, COUNT(*) AS count FROM people GROUP BY sex LIMIT 50) AS rowcount_qry",
    ]
    frames = []
    for at, parameters in ((file.with_name("private.duckdb"), ""), (file, "?answer=people:release")):
        with engine(at, parameters) as made, made.connect() as connection:
            frames.append([pd.read_sql(sa.text(query), connection) for query in queries])
    for original, answered in zip(*frames, strict=True):
        assert list(original.columns) == list(answered.columns) and len(original) == len(answered)
        assert [kind.kind in "if" for kind in original.dtypes] == [kind.kind in "if" for kind in answered.dtypes]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?answer=people", "expected ORIGINAL:RELEASE"), ("?answer=people:a,people:b", "answered by a release already"),
        ("?answer=people:release&bounds=perhaps", "bounds=perhaps"), ("?bounds=true", "belongs to answer="),
    ],
)  # fmt: skip
def test_a_wrong_url_is_named(file, query, message):
    with engine(file, query) as made, pytest.raises(Exception, match=message):
        made.connect()


def test_a_file_is_opened_read_only_and_none_is_made(file):
    with engine(file) as made, made.connect() as connection:
        with pytest.raises(sa.exc.DBAPIError, match="read-only"):
            connection.execute(sa.text("drop table release"))
    with engine(file.with_name("relaeses.duckdb")) as made, pytest.raises(sa.exc.DBAPIError, match="does not exist"):
        made.connect()
    assert not file.with_name("relaeses.duckdb").exists()


def test_a_file_that_holds_the_original_or_a_register_does_not_answer(file, tmp_path):
    with duckdb.connect(str(tmp_path / "view.duckdb")) as con:
        con.execute("create table hidden as select 1 as age; create view people as from hidden")
    with engine(tmp_path / "view.duckdb") as made, pytest.raises(ParameterError, match="holds people itself"):
        made.connect()
    with engine(file.with_name("private.duckdb")) as made, pytest.raises(ParameterError, match="holds a register"):
        made.connect()


def test_without_the_parameter_the_shape_refuses_by_name(file):
    with engine(file, "") as made, made.connect() as connection, pytest.raises(sa.exc.DBAPIError):
        connection.execute(sa.text(BY_SEX)).all()


@pytest.fixture
def copy(file, tmp_path):
    """The file for another process: this one's pools may hold theirs open."""
    return Path(shutil.copy(file, tmp_path))


def test_harlequin_answers_from_the_release(copy):
    pytest.importorskip("harlequin", reason="the bi extra is not installed")
    command = [str(Path(sys.executable).parent / "hsql"), "-a", "anon", f"{copy}?answer=people:release", "--csv"]
    done = subprocess.run(
        [*command, "-c", "select count(*) as n from people where age < 45"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert 400 < int(done.stdout.split()[1]) < 600


def test_jupysql_answers_from_the_release(copy, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient runs the notebook")
    pytest.importorskip("sql", reason="jupysql is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel runs the notebook")
    nbformat = pytest.importorskip("nbformat", reason="nbformat writes the notebook")
    cells = [
        "%load_ext sql\n%config SqlMagic.feedback = 0",
        f"%sql duckdb+anon:///{copy}?answer=people:release&bounds=true",
        "frame = %sql select sex, count(*) as n from people where age < 45 group by sex order by sex\n"
        "frame = frame.DataFrame()\n"
        "print(list(frame.columns), bool(((frame.n_low <= [260, 240]) & (frame.n_high >= [260, 240])).all()))",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the notebook machinery warns about event loops
        runner = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
        runner.execute(cwd=str(tmp_path))
    assert notebook.cells[2].outputs[-1].text.strip() == "['sex', 'n', 'n_low', 'n_high', 'note'] True"
