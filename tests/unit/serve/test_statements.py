"""Statements of analysts in the worker: ended alone, their rows stored and dropped."""

import threading
from collections.abc import Iterator

import duckdb
import pytest

from duckdb_anon.serve.guard import Guard, Refused
from duckdb_anon.serve.server import public_text
from duckdb_anon.serve.statements import Statements

LONG = "select count(*) from range(1000000) a, range(1000000) b where a.range * b.range % 7 = 3"
CLIENTS = {"A": "hoarder", "B": "hoarder", "C": "hoarder", "D": "other"}
LARGE = "select random() as x from range(4000000)"


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of 60 MB."""
    with duckdb.connect(config={"memory_limit": "60MB", "temp_directory": "", "threads": 1}) as opened:
        yield opened


def tables(con: duckdb.DuckDBPyConnection) -> list[str]:
    return [name for (name,) in con.execute("select database_name from duckdb_tables() order by 1").fetchall()]


def test_rows_are_stored_until_the_session_asks_something_else_or_is_idle(con: duckdb.DuckDBPyConnection) -> None:
    statements = Statements(con, 0.0)
    first = statements.run("A", CLIENTS["A"], "select i as a, i as a from range(3) t(i) order by i desc")
    assert con.execute(first).fetchall() == [(2, 2), (1, 1), (0, 0)]
    statements.run("A", CLIENTS["A"], "select 1")
    statements.run("B", CLIENTS["B"], "select 2")
    assert tables(con) == ["result1", "result2"]
    statements.drop("A")
    statements.close("B")
    assert tables(con) == []


def test_memory_of_a_closed_session_is_free_beside_an_open_transaction(con: duckdb.DuckDBPyConnection) -> None:
    statements, other = Statements(con, 0.0), con.cursor()
    other.execute("begin; create table notes as select 1 as a")
    statements.run("A", CLIENTS["A"], LARGE.replace("4000000", "1000000"))
    used = "select coalesce(sum(memory_usage_bytes), 0)::bigint < 1000000 from duckdb_memory()"
    assert con.execute(used).fetchall() == [(False,)]
    statements.close("A")
    assert con.execute(used).fetchall() == [(True,)]


def test_statement_that_takes_too_long_is_ended_and_others_go_on(con: duckdb.DuckDBPyConnection) -> None:
    statements = Statements(con, 0.5)
    statements.watch("127.0.0.1:1")
    ended: list[str] = []

    def ask() -> None:
        with pytest.raises(Refused) as refused:
            statements.run("A", CLIENTS["A"], LONG)
        ended.append(str(refused.value))

    asking = threading.Thread(target=ask)
    asking.start()
    answered = 0
    while asking.is_alive():
        answered += con.cursor().execute(statements.run("B", CLIENTS["B"], "select 1")).fetchall() == [(1,)]
    assert ended == ["the query took more than 0.5 s and was ended"]
    assert answered and con.execute("select 1").fetchall() == [(1,)]


def test_statement_of_a_client_that_is_gone_is_ended(con: duckdb.DuckDBPyConnection) -> None:
    statements = Statements(con, 0.0)
    threading.Timer(0.3, statements.cancel, ["A"]).start()
    with pytest.raises(Refused, match="the client is gone"):
        statements.run("A", CLIENTS["A"], LONG)


def test_client_with_the_most_rows_makes_room_for_others(con: duckdb.DuckDBPyConnection) -> None:
    statements = Statements(con, 0.0)
    statements.run("A", CLIENTS["A"], LARGE)
    statements.run("B", CLIENTS["B"], LARGE.replace("4000000", "1000"))
    sorted_rows = f"select count(*) from ({LARGE.replace('4000000', '1000000')} order by x)"
    assert con.execute(statements.run("D", CLIENTS["D"], sorted_rows)).fetchall() == [(1000000,)]
    assert tables(con) == ["result1", "result3"]  # of the hoarder's two the older one went


def test_statement_that_is_too_large_fails_with_the_reason_and_ends_nobody_elses(
    con: duckdb.DuckDBPyConnection,
) -> None:
    statements = Statements(con, 0.0)
    kept = statements.run("D", CLIENTS["D"], "select 1 as one")
    statements.run("B", CLIENTS["B"], "select 2")
    with pytest.raises(duckdb.OutOfMemoryException, match="failed to allocate"):
        statements.run("C", CLIENTS["C"], "select list(i) from range(100000000) t(i)")
    assert con.execute(kept).fetchall() == [(1,)]


@pytest.mark.parametrize(
    "text", ["from visits", "select #1, age from visits where age > 3 and sex = 'f' limit 5 offset 2"]
)
def test_rows_of_a_table_are_not_stored(text: str) -> None:
    assert Guard(["visits"]).check(text).is_scan


@pytest.mark.parametrize(
    "text",
    [
        "from visits order by age", "select repeat(sex, 99) from visits", "select count(*) from visits",
        "select distinct age from visits", "select (from visits limit 1) from visits", "from visits a, visits b",
        "from visits union all from visits", "from visits using sample 10", "select age from visits group by age",
        f"from visits where {' or '.join(f'age = {i}' for i in range(300))}",
    ],
)  # fmt: skip
def test_whatever_may_take_memory_or_long_is_stored(text: str) -> None:
    assert not Guard(["visits"]).check(text).is_scan


def test_errors_lose_what_lies_on_the_machine() -> None:
    error = duckdb.IOException("IO Error: Cannot read /usr/lib/python3/site.py\n\nAt:\n  /srv/app.py(3): f\n")
    assert public_text(error) == "IO Error: Cannot read (a path)"
    assert public_text(ValueError("50/60 of 1/2, and/or 3 km/h")) == "50/60 of 1/2, and/or 3 km/h"
