"""A rewritten query that fails while the package runs it names the step."""

from __future__ import annotations

import io

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.engine.error_context import naming_steps, with_step
from duckdb_anon.rewrite.written_steps import written_steps
from duckdb_anon.shell.dot_commands import StopScript
from duckdb_anon.shell.session import Session

ROLES = "qi := ['age', 'sex'], keep := ['cost']"


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    made = duckdb_anon.connect()
    made.execute(
        "create table people as select (18 + i % 50)::int as age, ['F', 'M'][1 + i % 2] as sex, "
        "(i * 37 % 1000)::int as cost from range(200) t(i)"
    )
    made.execute(
        "create table boxes as select {lower: age // 10 * 10, upper: age // 10 * 10 + 9} as age, [sex] as sex, cost from people"
    )
    return made


PLANTED = [
    ("select sex, sum((cost * 1000)::smallint) from people where age < 40 group by sex", "released"),
    ("select sum(case when cost > 500 then error('planted') else cost end) from people where age < 25", "released"),
    ("select count(*) from people where age < 30 and case when cost > 990 then error('no') else true end", "released"),
]


@pytest.mark.parametrize(("query", "step"), PLANTED)
@pytest.mark.parametrize("through", ["rewrite_query", "estimate", "relative_error"])
def test_the_step_that_fails_is_named_with_its_sql(
    con: duckdb.DuckDBPyConnection, query: str, step: str, through: str
) -> None:
    text, quoted = "", query.replace("'", "''")
    if through == "rewrite_query":
        found = con.execute(f"select rewrite_query($1, 'people', 'boxes', {ROLES})", [query]).fetchone()
        text = statement = str(found[0]) if found else ""
    elif through == "estimate":
        statement = f"from estimate('{quoted}', 'boxes', original := 'people', {ROLES})"
    else:  # the original fails the same way, before the release is asked
        statement, step = (
            f"select relative_error from relative_error('{quoted}', 'people', 'boxes', {ROLES})",
            "_original",
        )
    with pytest.raises(duckdb.Error) as plain:
        con.execute(statement).fetchall()
    with pytest.raises(type(plain.value)) as told, naming_steps(con, text):
        con.execute(statement).fetchall()
    assert str(told.value).startswith(str(plain.value).split("\n")[0])
    assert f"in the step {step} of the rewritten query:\nSELECT" in str(told.value)


def test_a_last_select_that_fails_is_told_from_its_steps(con: duckdb.DuckDBPyConnection) -> None:
    query = "select sex, count(*) from people where age < 40 group by sex having (count(*) * 100000000000)::int > 3"
    found = con.execute(f"select rewrite_query($1, 'people', 'boxes', {ROLES})", [query]).fetchone()
    assert found is not None
    with (
        pytest.raises(duckdb.ConversionException, match="in the steps' last SELECT: weighted"),
        naming_steps(con, found[0]),
    ):
        con.execute(found[0]).fetchall()


def test_a_failing_transaction_still_names_its_step(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute(f"select rewrite_query($1, 'people', 'boxes', {ROLES})", [PLANTED[0][0]]).fetchone()
    assert found is not None
    con.execute("begin")
    try:
        with pytest.raises(duckdb.ConversionException, match="in the step released"), naming_steps(con, found[0]):
            con.execute(found[0]).fetchall()
    finally:
        con.execute("rollback")


def test_errors_of_other_statements_stay_as_they_are(con: duckdb.DuckDBPyConnection) -> None:
    for statement in ("select error('mine')", "select 1 +", "from nowhere", "select 300::tinyint"):
        with pytest.raises(duckdb.Error) as plain:
            con.execute(statement).fetchall()
        with pytest.raises(type(plain.value)) as told, naming_steps(con):
            con.execute(statement).fetchall()
        assert str(told.value) == str(plain.value)
    assert with_step(con, ["select 1 +", "select 1"], "Conversion Error: no") == "Conversion Error: no"


def test_an_interrupt_runs_no_step_again() -> None:
    message = "INTERRUPT Error: Interrupted!"
    assert with_step(None, ["with a as (select 1) from a"], message) == message  # type: ignore[arg-type]


def test_steps_inside_a_step_come_first_and_see_those_around_them(con: duckdb.DuckDBPyConnection) -> None:
    text = (
        "with a as (select 1 as x), b as (select * from (with a as (select 2 as y), c as (select y from a) select * from c)) "
        "select * from a, b"
    )
    steps = written_steps(text)
    assert [step.name for step in steps] == ["a", "a", "c", "b"]
    assert steps[3].sql.split() == "SELECT * FROM ( SELECT * FROM c )".split()
    values = [
        con.execute(f"select s = (select max(hash(v)) from (values ({v})) t(v)) from ({step.alone}) as t(s)").fetchall()
        for step, v in zip(steps, (1, 2, 2, 2), strict=True)
    ]
    assert values == [[(True,)]] * 4


def test_the_shell_shows_the_step(con: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]) -> None:
    session = Session(duckdb_anon.load(con.cursor()), out=io.StringIO())
    quoted = PLANTED[1][0].replace("'", "''")
    with pytest.raises(StopScript):
        session.run_text(f"from estimate('{quoted}', 'boxes', original := 'people', {ROLES});")
    shown = capsys.readouterr().err
    assert "planted" in shown
    assert "in the step released of the rewritten query:\nSELECT" in shown
