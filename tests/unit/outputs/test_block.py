"""Which queries may be answered from an original, and what is refused by name."""

import duckdb
import pytest

from duckdb_anon.outputs.block import NoRule, Table, read_block
from tests.reference.entry_calls import refusal

COLUMNS = {"region": "VARCHAR", "sex": "VARCHAR", "income": "DOUBLE", "age": "BIGINT", "name": "VARCHAR",
           "pid": "BIGINT", "tags": "VARCHAR[]", "huge": "HUGEINT"}  # fmt: skip
PEOPLE = Table("people", '"memory"."main"."people"', COLUMNS, {"pid": "person", "name": "identifier"}, "pid")


def read(query):
    return read_block("safe_output", query, PEOPLE)


def test_a_query_becomes_its_table_condition_keys_and_aggregates():
    block = read("select p.sex s, avg(income) filter (where age > 30) from people p where region = 'N' group by s")
    assert block.where.sql == "try(\"region\" = 'N')"
    assert [key.sql for key in block.keys] == ['"sex"']
    assert block.conditions[1].sql == 'try("age" > 30) and "income" is not null'
    assert block.read == {"region", "sex", "age"}


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("select * from people", "*"),
        ("from people", "*"),
        ("select columns(*) from people", "COLUMNS"),
        ("select age from people", "neither"),
        ("select age, count(*) from people", "age"),
        ("select 1 from people", "neither"),
        ("select count(*) from people where exists (select 1)", "exists"),
        ("select count(*) from people where age > (select max(age) from people)", "subquery"),
        ("select count(*) from people where age in (select 1)", "subquery"),
        ("select (select count(*) from people) + count(*) from people", "subquery"),
        ("with a as (from people) select count(*) from a", "WITH"),
        ("select count(*) from (from people)", "one table"),
        ("select count(*) from people union select count(*) from people", "UNION"),
        ("select count(*) from people, people q", "join"),
        ("select count(*) from people join people q using (pid)", "join"),
        ("select sex, count(*) from people group by sex having sum(income) > 5", "HAVING"),
        ("select sum(income) over () from people", "window"),
        ("select count(*) over () from people", "window"),
        ("select count(*) from people qualify row_number() over () = 1", "QUALIFY"),
        ("select distinct count(*) from people", "DISTINCT"),
        ("select distinct on (sex) count(*) from people", "DISTINCT"),
        ("select count(distinct age) from people", "DISTINCT"),
        ("select sum(distinct income) from people", "DISTINCT"),
        ("select list(income) from people", "array_agg"),
        ("select string_agg(name, ',') from people", "listagg"),
        ("select unnest(tags), count(*) from people group by all", "unnest"),
        ("select first(income) from people", "first"),
        ("select any_value(income) from people", "any_value"),
        ("select arg_max(income, age) from people", "arg_max"),
        ("select histogram(age) from people", "histogram"),
        ("select mode(age) from people", "mode"),
        ("select max(income, 3) from people", "max"),
        ("select sum(income * 2) from people", "sum"),
        ("select sum(case when age = 37 then income end) from people", "sum"),
        ("select sum(income order by age) from people", "sum"),
        ("select quantile_cont(income, age) from people", "quantile_cont"),
        ("select quantile_cont(income, [0.1, 0.2]) from people", "quantile_cont"),
        ("select sum(huge) from people", "huge"),
        ("select sum(sex) from people", "sex"),
        ("select count(*) from people using sample 10", "sample"),
        ("select count(*) from people tablesample 10%", "sample"),
        ("select count(*) from people at (version => 3)", "WHEN"),
        ("select count(*) from read_csv('/etc/passwd')", "one table"),
        ("select count(*) from query('select 1')", "one table"),
        ("select count(*) from people where getenv('HOME') = 'x'", "getenv"),
        ("select count(*) from people where random() < 0.5", "rand"),
        ("select count(*) from people where error(name) is null", "error"),
        ("select count(*) from people where regexp_matches(sex, 'f')", "regexp"),
        ("select count(*) from people where age > current_setting('threads')", "current_setting"),
        ("select count(*) from people where birth > now()", "birth"),
        ("select count(*) from people where age = $1", "parameter"),
        ("select count(*) from people where tags is null", "tags"),
        ("select count(*) from people where cast(sex as struct(a int)) is null", "nested"),
        ("select count(*) from people order by income", "ORDER BY"),
        ("select count(*) from people limit (select 3)", "LIMIT"),
        ("select count(*) from people limit 10%", "LIMIT"),
        ("insert into people values (1)", "insert"),
        ("create table x as from people", "create"),
        ("select count(*) from people; drop table people", "one statement"),
        ("pivot people on sex using count(*)", "pivot"),
        ("select count(*) from", "SQL"),
        ("select count(*) from people where " + "(" * 3000 + "true" + ")" * 3000, "SELECT"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(query, named):
    with pytest.raises(Exception) as caught:
        read(query)
    assert caught.value.code in ("no-rule", "bad-column")
    assert named.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from people where pid = 3",
        "select count(*) from people where name like 'A%'",
        "select count(*) filter (where pid < 10) from people",
        "select pid % 2, count(*) from people group by 1",
        "select count(name) from people",
        "select max(pid) from people",
        "select sum(pid) from people",
    ],
)
def test_columns_that_name_individuals_are_read_by_nothing_but_a_count_of_individuals(query):
    with pytest.raises(Exception) as caught:
        read(query)
    assert caught.value.code == "bad-column"
    assert read("select count(distinct pid) from people").aggregates[0].fraction == "individuals"


@pytest.fixture
def policied(con):
    con.execute("create table people as select range pid, 'x' || range as name, range % 50 age from range(100)")
    con.execute("comment on table people is 'anon: outputs()'; comment on column people.age is 'anon: quasi'")
    return con


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from people where case when pid = 7 then cast(name as int) else 1 end = 1",
        "select count(*) from people where 9223372036854775807 + age > 0",
        "select count(*) from people where date_part(name, date '2020-01-01') = 1",
        "select count(*) * 9223372036854775807 * 10 from people",
    ],
)
def test_an_error_that_depends_on_values_is_none(policied, query):
    try:
        assert len(policied.execute("from safe_output(?)", [query]).fetchall()) == 1
    except duckdb.Error as error:  # one that depends on the query alone
        assert "x7" not in str(error)
        assert "query-failed" in str(error)


def test_a_table_without_a_policy_and_a_table_of_the_session_are_not_answered_from(con):
    con.execute("create table plain as select 1 as age; create temp table mine as select 1 as age")
    con.execute("create view seen as from plain; comment on view seen is 'anon: outputs()'")
    for table in ("plain", "mine", "'people.csv'", "duckdb_secrets", "nowhere"):
        _, code, _ = refusal(con, f"from safe_output($$select count(*) from {table}$$)")
        assert code == "no-policy"
    assert con.execute("from safe_output('select count(*) from seen')").fetchall() == [(None, "primary: threshold")]


def test_rows_that_are_not_committed_are_not_answered_from(policied):
    policied.execute("begin; delete from people where age < 10")
    _, code, _ = refusal(policied, "from safe_output('select count(*) from people')")
    policied.execute("rollback")
    assert code == "commit-first"


def test_a_refusal_is_a_no_rule_error():
    with pytest.raises(NoRule):
        read("select mode(age) from people")
