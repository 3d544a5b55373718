"""DuckDB folds A to Z in names and nothing else: "Ä b" and "ä b" are two columns, and both may be asked for."""

import duckdb
import pytest

CALLS = {
    "mondrian": "3", "anatomy": "2", "muco": "0.5", "rr_distort": "p := 0.8", "slicing": "2", "microaggregate": "3",
    "rank_swap": "20", "merging": "2",
}  # fmt: skip
PLAIN = {"one": "one", "other": "other", "secret": "secret"}
LETTERS = {"one": "Ä b", "other": "ä b", "secret": "Größe"}
ASKED = {"one": "Ä B", "other": "ä B", "secret": "GRößE"}
QUERIES = (
    'select count(*) as n from {table} where "{one}" < 3',
    'select "{one}" as k, count(*) as n from {table} where "{other}" = 1 group by "{one}"',
    'select "{secret}" as k, avg("{one}") as n from {table} group by 1',
    'with s as (select "{other}" as k, "{one}" from {table}) select k, count(*) as n from s where "{one}" > 1 group by k',
)
MEASURES = (
    "information_loss('{table}', '{table}_r')",
    "disclosure('{table}', '{table}_r')",
    "linkage_risk('{table}', '{table}_r', seed := 1)",
    "workload_error('{table}', '{table}_r', seed := 1)",
    "k_anonymity('{table}', qi := ['{one}', '{other}'])",
    "reidentification_risk('{table}', qi := ['{one}', '{other}'])",
)


@pytest.mark.parametrize(
    "method", [m if m == "mondrian" else pytest.param(m, marks=pytest.mark.campaign) for m in CALLS]
)
def test_columns_that_differ_in_other_letters_are_told_apart(con, method):
    assert _figures(con, method, "q", LETTERS, ASKED) == _figures(con, method, "p", PLAIN, PLAIN)


def test_tables_that_differ_in_other_letters_have_their_own_labels(con):
    con.execute('create table "Ä" as select i as a from range(9) t(i); create table "ä" as from "Ä"')
    con.execute("""comment on column "Ä".a is 'anon: quasi'""")
    message = [con.execute("select comment from anon_profile(?)", [name]).fetchone() for name in ("Ä", "ä")]
    assert message == [("anon: quasi",), (None,)]


def _figures(
    con: duckdb.DuckDBPyConnection, method: str, table: str, names: dict[str, str], statement: dict[str, str]
) -> list:
    """All numbers that queries and measures give, of a table whose columns have these names."""
    con.execute(
        f'create or replace table {table} as select i % 7 as "{names["one"]}", i % 3 as "{names["other"]}", '
        f'(i % 5)::varchar as "{names["secret"]}", i % 2 as sex from range(60) t(i)'
    )
    for node, role in (("one", "quasi"), ("other", "quasi"), ("secret", "sensitive"), ("sex", "quasi")):
        con.execute(f"comment on column {table}.\"{names.get(node, node)}\" is 'anon: {role}'")
    call = f"{method}('{table}', {CALLS[method]}, seed := 3, row_id := true)"
    con.execute(f"create or replace table {table}_r as from {call}")
    found = []
    for query in QUERIES:
        rows = con.execute(
            "select estimate, low, high from (select row(*columns(* exclude (estimate, low, high, confidence, method, note)))"
            " as place, estimate, low, high from estimate($1, $2, $3)) order by place",
            [query.format(table=table, **statement), f"{table}_r", table],
        ).fetchall()
        assert rows and all(row[0] is not None for row in rows)
        found.append([[None if cell is None else round(cell, 9) for cell in row] for row in rows])
    for measure in MEASURES:
        try:
            rows = con.execute(f"from {measure.format(table=table, **names)}").fetchall()
        except duckdb.Error as error:
            rows = [(str(error)[:60].replace(f'"{table}_r"', ""),)]
        found.append([[cell for cell in row if isinstance(cell, (int, float))] for row in rows])
    return found
