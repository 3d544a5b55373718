"""Wrong arguments of a call are named, with the nearest parameter, where the statement is at hand."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.binder_errors import explained
from duckdb_anon.registry import ENTRIES


@pytest.fixture(scope="module")
def con():
    con = duckdb_anon.connect()
    con.execute("create table people as from anon_sample('census', 20, seed := 1)")
    for column, role in (("age", "quasi"), ("gender", "quasi"), ("salary", "sensitive")):
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    return con


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("from mondrian('people', kk := 5)",
         "mondrian: there is no parameter 'kk' (did you mean 'k'?); it takes tbl, k,"),
        ("from mondrian('people', k => 5, quasi => ['age'])", "no parameter 'quasi'"),
        ("from muco('people', delte := 0.2)", "(did you mean 'delta'?)"),
        ("create table r as from muco('people', 0.2, 0.5, l := 3)", "muco: 'l' is given twice, once by its place"),
        ("select rewrite_query('a', 'b', 'c', bound := 'x')", "(did you mean 'bounds'?)"),
        ("from k_anonymity('people', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)",
         "there are 10 parameters, and 11 arguments without a name"),
        ("from anon_functions('muco')", "anon_functions"),
        ("from rewrite_query('a', 'b', 'c')",
         "it gives one value and no rows, so it stands in SELECT: SELECT rewrite_"),
        ("from mondrian('a, k2 := (', /* kx := 1, */ 5, \"KK\" := f(1, z := 2))", "no parameter 'kk'"),
        ("from muco('people', 0.2) union all from mondrian('people', 5) union all from mondrian('people', kk := 1)",
         "'kk'"),
        ("from \"mondrian\"('people', kk := 5)", "no parameter 'kk'"),
        ("select 'mondrian(x := 1)' from mondrian('é', kk := 5)", "no parameter 'kk'"),
    ],
)  # fmt: skip
def test_what_the_binder_refuses_is_explained(con, call, says):
    with pytest.raises(duckdb.Error) as caught:
        con.execute(call).fetchall()
    assert says in explained(str(caught.value), call)


def test_every_function_answers_a_wrong_name_with_the_nearest(con):
    for entry in ENTRIES:
        for parameter in entry.parameters:
            call = f"{entry.name}({parameter.name}q := 1)"
            call = f"select {call}" if getattr(entry, "scalar", False) else f"from {call}"
            with pytest.raises(duckdb.BinderException) as caught:
                con.execute(call)
            text = explained(str(caught.value), call)
            assert text.startswith(f"{entry.name}: there is no parameter '{parameter.name}q' (did you mean '")


@pytest.mark.parametrize(
    "statement",
    ["from elsewhere(kk := 1)", "from mondrian('people', 5", "select 'mondrian(kk := 1)'", "from muco('people', 0.2)"],
)
def test_other_messages_stand(statement):
    assert explained("Binder Error: something else", statement) == "Binder Error: something else"
