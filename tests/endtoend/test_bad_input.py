"""Wrong calls and awkward data: a clear message or a right answer, and nothing written."""

import duckdb
import pytest

ROWS = "select range % 40 as age, range % 2 as sex, range % 9 as disease, 1 as one from range(360)"


@pytest.fixture
def people(con):
    con.execute(f"create table people as {ROWS}")
    return con


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("muco('people', 0.2)", ["muco", "no quasi column", "anon: quasi", "age, sex, disease"]),
        ("muco('people', 0.2, qi := ['agee'])", ["agee", "did you mean 'age'", "age, sex, disease"]),
        ("muco('people', 0.2, qi := ['age'], sensitive := 'age')", ["age", "both", "Keep one"]),
        ("muco('people', 0.2, qi := ['age', 'age'])", ["age", "twice"]),
        ("muco('people', 0.2, qi := ['age'], person := 'who')", ["who", "no column"]),
        ("muco('people', 0.2, qi := ['age'], tables := 'linear', l := 2)", ["l := 2", "1/delta", "5"]),
        ("muco('people', 0.1, qi := ['age'], sensitive := 'disease', tables := 'linear')", ["l = 10", "largest l", "9"]),
        ("muco('people', 0.2, qi := ['age'], min_changed := 1)", ["min_changed", "tables := 'linear'"]),
        ("muco('people', 0.2, qi := ['age'], repair := true, tables := 'linear')", ["repair", "uniform"]),
        ("muco('people', 0.2, qi := ['age'], sensitive := 'disease', l := 99)", ["l = 99", "l := 9", "l := 1"]),
        ("muco('people', 0.001, qi := ['age'])", ["1000", "360"]),
        ("muco('people', 0.2, qi := ['age'], tables := 'linear', min_changed := 3)", ["min_changed", "at most 1"]),
        ("muco('(select 1 as age; drop table people)', 0.2)", ["SELECT in parentheses"]),
        ("muco('select * from people', 0.2)", ["parentheses"]),
        ("muco('', 0.2)", ["tbl", "not a table"]),
        ("information_loss('people', 'peopel', qi := ['age'])", ["peopel", 'Did you mean "people"']),
        ("disclosure('people', 'people', qi := ['age'], sensitive := 'disease')", ["row_id"]),
        ("k_anonymity(NULL)", ["k_anonymity: tbl := NULL is not a table"]),
        ("compare('people', {'a': 1})", ["compare: releases := {'a': 1} is not a list of names"]),
        ("distribution_distance('people', 'people', columns := ['age', 'AGE'])", ["columns", "AGE twice"]),
        ("muco('people', 0.2, qi := ['age'], sensitive := 'sex', l := 99)", ["l = 99", "l := 2, or l := 1"]),
        ("muco('people', 0.2, qi := ['age'], sensitive := 'one', l := 2)", ["can meet is 1; say l := 1 to leave"]),
        ("rr_distort('people', l := 2, min_count := 99, qi := ['age'], sensitive := 'sex')",
         ["rr_distort: min_count := 99", "more than 9 rows"]),
        ("rr_risk('people', p := 0.5, min_count := 99, qi := ['age'], sensitive := 'sex')", ["rr_risk: min_count := 99"]),
        ("muco_groups('people', 0.2, qi := ['age'], tables := 'linear', min_changed := 9)",
         ["muco_groups: min_changed := 9", "at most 1"]),
        ("muco_groups('people', 0.2, qi := ['age'], tables := 'linear', l := 2)", ["muco_groups: l := 2", "l := 5"]),
        ("workload_error('people', 'people', qi := ['age'], dims := 3)", ["workload_error: dims := 3", "from 1 to 1"]),
        ("workload_error('people', 'people', qi := ['age'], aggregate := 'max(age)')", ["workload_error: aggregate"]),
        ("workload('people', qi := ['age'], predicate_on_sensitive := true)", ["workload: predicate_on_sensitive"]),
        ("anon_report('people', ['peple'], 'x.html')", ["anon_report: 'peple'", "did you mean 'people'"]),
        ("anon_report('people', ['people'], 'x.html')", ["anon_report: no column of people is labelled", '"age" IS']),
        ("compare('people', ['people'])", ["compare: no column of people is labelled", '"age" IS \'anon: quasi\'']),
        ("anon_report('people', [], 'x.html')", ["anon_report: releases := [] names none"]),
        ("anon_report('people', ['people'], 'x.html', context := 'no.toml')", ["anon_report: no.toml"]),
        ("anon_profile('people', country := 'XX')", ["anon_profile: country := 'XX'", "'US'"]),
        ("anon_sample('cenus')", ["cenus", "did you mean 'census'"]),
    ],
)  # fmt: skip
def test_wrong_calls_say_what_is_wrong(people, call, said):
    if call.startswith("anon_report('people', ['people']"):
        pytest.importorskip("altair", reason="the report extra is not installed")
    with pytest.raises(duckdb.Error) as caught:
        people.execute(f"create table release as from {call}")
    message = str(caught.value)
    assert not [word for word in said if word not in message], message
    assert "Traceback" not in message and "internal error" not in message
    assert people.execute("show tables").fetchall() == [("people",)]


PAPER = ", tables := 'linear', min_changed := 0"


@pytest.mark.parametrize(
    ("rows", "call", "answer"),
    [
        ("select 1 as a, 2 as b limit 0", "0.2", "empty"), ("select 1 as a, 2 as b", "0.2", "largest"),
        ("select 1 as a, 2 as b", "1", [(1, 2)]), ("select 1 as a, 2 as b", f"1{PAPER}", [(1, 2)]),
        ("select 1 as a, 2 as b from range(50)", "0.2", [(1, 2)] * 50),
        ("select 1 as a, 2 as b from range(50)", f"0.2{PAPER}", [(1, 2)] * 50),
        ("select 1 as a, 2 as b from range(50)", "0.2, tables := 'linear'", "min_changed"),
        ("select null as a, null::varchar as b from range(20)", "0.2", [(None, None)] * 20),
        ("select null as a, null::varchar as b from range(20)", f"0.2{PAPER}", [(None, None)] * 20),
    ],
)  # fmt: skip
def test_tables_of_few_rows_or_one_value_are_released_or_refused(con, rows, call, answer):
    con.execute(f"create table t as {rows}")
    call = f"from muco('t', {call}, qi := ['a', 'b'])"
    if isinstance(answer, list):
        assert con.execute(call).fetchall() == answer
    else:
        with pytest.raises(duckdb.Error, match=answer):
            con.execute(call)


def test_two_hundred_columns(con):
    con.execute("create table wide as select " + ", ".join(f"(range * {i + 3}) % 5 as c{i}" for i in range(200))
                + " from range(100)")  # fmt: skip
    names = ", ".join(f"'c{i}'" for i in range(200))
    rows = con.execute(f"from muco('wide', 0.2, qi := [{names}])").fetchall()
    assert len(rows) == 100 and len(rows[0]) == 200


def test_messages_hold_no_values(con):
    con.execute("create table t as select 'Zachariah' as a, 'Ovarian' as s from range(50)")
    con.execute("create table tree as select * from (values ('x', '*')) t(leaf, root)")
    for more in (", sensitive := 's', l := 2", ", hierarchies := {'a': 'tree'}"):
        with pytest.raises(duckdb.Error) as caught:
            con.execute(f"from muco('t', 0.2, qi := ['a']{more})")
        assert "Zachariah" not in str(caught.value) and "Ovarian" not in str(caught.value)
