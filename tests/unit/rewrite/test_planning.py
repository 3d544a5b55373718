"""What a query costs while it is planned: statements that are sent to DuckDB; a table with texts takes one more."""

import duckdb
import pytest

from duckdb_anon import sql_functions
from tests.reference.seeded import seeded_release

QUERY = "SELECT sex, count(*), avg(pay) FROM p WHERE age BETWEEN 25 AND 40 GROUP BY sex"


class Counting:
    """A cursor that lists what it executes."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, statements: list[str]) -> None:
        self._cursor, self._statements = cursor, statements

    def execute(self, query: str, *arguments: object) -> "Counting":
        self._statements.append(query)
        self._cursor.execute(query, *arguments)
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self._cursor, name)


@pytest.mark.parametrize(
    ("function", "call", "most"),
    [
        ("estimate", "FROM estimate($1, 'boxes')", 5),
        ("rewrite_query", "SELECT rewrite_query($1, 'p', 'boxes')", 3),
    ],
)
def test_a_query_on_boxes_is_planned_with_few_statements(con, monkeypatch, function, call, most):
    con.execute("create table p as select i % 60 as age, i % 2 as sex, i % 70 as pay from range(1500) as r(i)")
    for column, role in {"age": "quasi", "sex": "quasi", "pay": "sensitive"}.items():
        con.execute(f"comment on column p.{column} is 'anon: {role}'")
    seeded_release(con, "boxes", "mondrian('p', 10, seed := 1)")
    planned: dict[str, list[str]] = {}
    plan_on = sql_functions._planned_on

    def counted(cursor: duckdb.DuckDBPyConnection, asked: dict[str, object]) -> str:
        statements = planned.setdefault(str(asked["function"]), [])
        return plan_on(Counting(cursor, statements), asked)  # type: ignore[arg-type]

    monkeypatch.setattr(sql_functions, "_planned_on", counted)
    assert con.execute(call, [QUERY]).fetchall()
    # what brings a cursor to the caller's database is no question
    asked = [text for text in planned[function] if not text.startswith(("set ", "use "))]
    assert 0 < len(asked) <= most, asked
