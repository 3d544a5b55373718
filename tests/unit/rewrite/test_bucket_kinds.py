"""Buckets of one kind are asked once: the answers are those of each bucket, and nothing certain rests on what was."""

from __future__ import annotations

import math
import re
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.kinds import Kinds, read_kinds

QI = "qi := ['age', 'sex', 'day'], sensitive := 'ill'"
QUERIES = (
    "select count(*) from t where ill = 'flu'",
    "select sex, count(*), sum(cost), avg(cost) from t where ill in ('flu', 'it''s') and age < 20 group by sex",
    "select count(*) from t where ill is null or ill like '%o%'",
    "select sex, count(*) from t where ill in ('none of them') group by sex",
    "select count(*) from t where not (ill = 'flu' or ill = 'acne') and sex = 'F' or cost > 60",
    "select ill, sex, count(*), sum(cost) from t where age < 25 group by ill, sex",
    "select ill, sex, day, count(*), avg(cost) from t group by cube (ill, sex, day)",
    "select upper(ill), count(*) filter (where sex = 'M') from t group by 1 having count(*) > 1",
    "select sum(length(ill)), count(ill), max(cost), min(length(ill)) from t where age > 3",
    "select count(distinct ill), median(cost) from t where ill in ('flu', 'cold')",
    "select k.label, count(*), sum(cost) from t join k on k.ill = t.ill where t.ill > 'b' group by 1",
    "select k.label, count(t.age) from k left join t on k.ill = t.ill where t.ill is null or t.ill = 'flu' group by 1",
    "select median(length(ill)), quantile_cont(cost, 0.3) from t where ill <> 'flu'",
    "select ill, sex, stddev(cost), corr(cost, length(ill)) from t where age < 20 group by grouping sets (ill, sex)",
    "select avg(length(ill)), min(cost), max(cost), mode(ill) from t where ill <> 'gout' and sex is null",
    "select count(*) from (select ill, count(*) as c from t group by ill having count(*) > 200)",
    "select max(c) from (select ill, sex, count(*) as c from t group by ill, sex)",
    "select count(*) from t where length(ill) < 9 and ill = 'flu' and cost % 2 = 0",
    "select count(*) from t where ill in (select ill from k)",
    "select ill, sex, count(*), sum(cost) from t where age = 3 and cost > 40 and ill <> 'gout' group by ill, sex",
    "select count(*) from t where age > 99 and ill = 'flu'",
    "select 1 union all select count(*) from t where ill = 'flu'",
    "select day, sum(case ill when 'flu' then cost when 'cold' then 1 end) from t group by day",
)


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    made = duckdb_anon.connect()
    made.execute(
        "create table t as select (hash(i) % 30)::int as age, ['F', 'M', null][(1 + hash(i, 1) % 3)::int] as sex, "
        "date '2020-01-01' + (hash(i, 2) % 4)::int as day, "
        "['flu', 'cold', 'acne', 'it''s', 'gout', 'mumps', 'flu', 'flu'][(1 + hash(i, 3) % 8)::int] as ill, "
        "case when hash(i, 4) % 7 > 0 then (hash(i, 5) % 90)::int - 20 end as cost from range(1203) as r(i)"
    )
    made.execute("create table k as select unnest(['flu', 'cold', 'acne']) as ill, unnest(['a', 'b', 'a']) as label")
    duckdb_anon.release(made, "r", f"anatomy('t', 2, {QI}, keep := 'cost', seed := {2**64 + 7})")
    made.execute("create view bare as select * replace (bucket::double as bucket) from r")  # no number tells a kind
    return made


def text_of(con: duckdb.DuckDBPyConnection, query: str, release: str, bounds: str = "none") -> str:
    """The rewritten text."""
    call = f"select rewrite_query(?, 't', '{release}', bounds := '{bounds}', {QI})"
    return str(con.execute(call, [query]).fetchall()[0][0])


def _close(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-7) or (math.isnan(a) and math.isnan(b))
    return a == b


@pytest.mark.parametrize("bounds", ["none", "sure", "likely"])
@pytest.mark.parametrize("query", QUERIES)
def test_answers_and_bounds_are_those_of_each_bucket(con: duckdb.DuckDBPyConnection, query: str, bounds: str) -> None:
    by_kind, by_bucket = (text_of(con, query, release, bounds) for release in ("r", "bare"))
    assert "bucket < 4096" in by_kind and "bucket < 4096" not in by_bucket
    names, answers = [], []
    for text in (by_kind, by_bucket):
        names.append([d[0] for d in con.execute(text.replace("::BIGINT", "")).description])
        answers.append(sorted(con.fetchall(), key=lambda row: str([x for x in row if not isinstance(x, float)])))
    assert names[0] == names[1] and len(answers[0]) == len(answers[1])
    assert all(_close(a, b) for mine, theirs in zip(*answers, strict=True) for a, b in zip(mine, theirs, strict=True))


def test_only_first_buckets_are_read_for_their_counts(con: duckdb.DuckDBPyConnection) -> None:
    """Counts of all others are put out of reach: the answer is the same."""
    con.execute("create or replace table torn as from r")
    con.execute("update torn set ill = map {'torn': 2} where bucket >= 4096")
    query = "select ill, sex, count(*) from t where ill <> 'gout' group by ill, sex order by all"
    text = text_of(con, query, "r")
    assert con.execute(text).fetchall() == con.execute(text.replace("FROM r\n", "FROM torn\n")).fetchall()


CHANGES = {
    "rows of a new bucket": "insert into changed by name select * replace (map {'gout': 2} as ill, 999999 as bucket) "
    "from r limit 2",
    "rows without a bucket": "insert into changed by name select * exclude (bucket, ill) from r limit 1",
    "fewer rows": "delete from changed where bucket = (select max(bucket) from changed)",
    "other numbers": "update changed set bucket = dense from (select bucket as b, dense_rank() over (order by bucket) "
    "as dense from (select distinct bucket from r)) where b = bucket",
    "first buckets without counts": "update changed set ill = null where bucket < 4096",
    "other counts in first buckets": "update changed set ill = map {'gout': 1} where bucket < 4096",
}


LEAVE_ROWS_OUT = {"rows without a bucket", "first buckets without counts", "other counts in first buckets"}
"""Changes after which some counts are of fewer rows than their bucket has."""
TAKEN_AWAY = "the counts of 'ill' are of fewer rows than the bucket has"
OF_OTHER_ROWS = "the counts of 'ill' are not those of its rows"


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("bounds", ["none", "hard"])
def test_a_release_that_was_changed_is_read_by_bucket(con: duckdb.DuckDBPyConnection, change: str, bounds: str) -> None:
    _label_copy(con)
    assert "4095" in text_of(con, "select ill, count(*) from t group by ill", "changed", bounds)
    con.execute(CHANGES[change])
    if bounds == "hard" and change in LEAVE_ROWS_OUT:
        with pytest.raises(duckdb.InvalidInputException, match=TAKEN_AWAY):
            text_of(con, "select ill, count(*) from t group by ill", "changed", bounds)
        return
    text = text_of(con, "select ill, count(*) from t group by ill", "changed", bounds)
    assert "4095" not in text and con.execute(text).fetchall()


def test_a_table_without_a_description_is_looked_at(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create or replace table said_nothing as from r")
    con.execute("create or replace view of_it as from said_nothing")
    query = "select ill, sex, count(*) from t where cost > 3 group by ill, sex order by all"
    text = text_of(con, query, "said_nothing")
    assert text == text_of(con, query, "of_it").replace("FROM of_it\n", "FROM said_nothing\n")
    assert text == text_of(con, query, "r").replace("FROM r\n", "FROM said_nothing\n") and "4095" in text
    certain = text_of(con, query, "said_nothing", "hard")
    assert (
        "4095" in certain
        and con.execute(certain).fetchall() == con.execute(text_of(con, query, "r", "hard")).fetchall()
    )
    con.execute("create or replace table u as select age as bucket, sex, ill, cost from t")
    roles = "qi := ['bucket', 'sex'], sensitive := 'ill'"
    con.execute(f"create or replace table of_numbers as from anatomy('u', 2, {roles}, keep := 'cost')")
    call = f"select rewrite_query(?, 'u', 'of_numbers', {roles})"
    assert "bucket_ & 4095" in con.execute(call, ["select count(*) from u where ill = 'flu'"]).fetchall()[0][0]


def _changes_of_a_table(con: duckdb.DuckDBPyConnection) -> list[str]:
    (a, b), *_ = con.execute(
        "select a.bucket, b.bucket from r as a join r as b on a.bucket > 4096 and b.bucket > a.bucket "
        "and a.bucket & 4095 <> b.bucket & 4095 order by all limit 1"
    ).fetchall()
    return [
        *(change for name, change in CHANGES.items() if name != "fewer rows"),
        *(change.format(a, b) for change in SWAPS.values()),
        "delete from changed where rowid = (select max(rowid) from changed)",
        "update changed set bucket = -bucket where bucket = (select max(bucket) from changed)",
        "update changed set ill = map(list_append(map_keys(ill), list_filter(['flu', 'cold', 'acne', 'gout', 'mumps'], "
        "lambda one: not list_contains(map_keys(ill), one))[1]), list_append(map_values(ill), 0)) "
        f"where bucket & 4095 = {a} & 4095",
    ]


def test_a_table_without_a_description_is_read_by_bucket_where_a_single_row_differs(
    con: duckdb.DuckDBPyConnection,
) -> None:
    for change in _changes_of_a_table(con):
        con.execute("create or replace table changed as from r")
        con.execute("create or replace view of_changed as select * replace (bucket::double as bucket) from changed")
        con.execute(change)
        query = "select ill, count(*), sum(cost) from t where sex = 'F' group by ill order by all"
        told = TAKEN_AWAY if change in [CHANGES[name] for name in LEAVE_ROWS_OUT] else ""
        told = OF_OTHER_ROWS if "(rowid)" in change else told
        for one in ("changed", "of_changed") if told else ():
            with pytest.raises(duckdb.InvalidInputException, match=told):
                text_of(con, query, one, "hard")
        for bounds in ("none",) if told else ("none", "hard"):
            mine, theirs = (text_of(con, query, one, bounds) for one in ("changed", "of_changed"))
            assert "4095" not in mine, change
            for one, other in zip(con.execute(mine).fetchall(), con.execute(theirs).fetchall(), strict=True):
                assert all(map(_close, one, other)), change


@pytest.mark.parametrize("bounds", ["sure", "hard", "likely"])
def test_nothing_is_certain_of_what_a_release_was_when_the_text_was_written(
    con: duckdb.DuckDBPyConnection, bounds: str
) -> None:
    """A kept text, and one of a transaction that is open: an error, or what each bucket says now."""
    queries = [
        "select ill, count(*) from t group by ill order by 1",
        "select count(*) from t where ill = 'flu' and sex = 'F'",
        "select sex, sum(cost) filter (where ill = 'cold') from t group by sex order by 1",
        "select max(cost), min(length(ill)), avg(age) from t where ill <> 'gout'",
    ]
    fewer = ["delete from changed where bucket < 4096", "update changed set bucket = 0 where rowid = 7"]
    own, raised = con.cursor(), 0

    def is_right(query: str, text: str) -> bool:
        own.execute("create or replace temp table now_ as from changed")
        try:
            told = own.execute(text).fetchall()
        except duckdb.InvalidInputException as error:
            # of a change of several, the one that DuckDB comes to first
            assert re.search(r"not of the kinds that|the (texts|values) of '\w+' in changed are not", str(error))
            assert "rewrite the query" in str(error)
            return False
        by_bucket = text_of(con, query, "bare", bounds).replace("FROM bare", "FROM now_")
        assert all(all(map(_close, *both)) for both in zip(told, own.execute(by_bucket).fetchall(), strict=True))
        return True

    for change in [*_changes_of_a_table(con), *fewer]:
        own.execute("create or replace table changed as from r")
        texts = {query: text_of(own, query, "changed", bounds) for query in queries}
        for query, text in texts.items():
            assert text.count("not of the kinds") == 1 and is_right(query, text)
            own.execute("begin").execute(change)
            assert text_of(own, query, "changed", bounds) == text  # what is planned is what is committed
            raised += not is_right(query, text)
            own.execute("rollback")
            assert is_right(query, text)
        own.execute(change)
        raised += sum(not is_right(query, text) for query, text in texts.items())
    assert raised == 8 * (len(_changes_of_a_table(con)) + len(fewer) - 1)  # numbers from 1 on are kinds of one bucket


def _label_copy(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create or replace table changed as from r")
    ((told,),) = con.execute("select comment from duckdb_columns() where table_name = 'r' and column_name = 'bucket'").fetchall()  # fmt: skip
    con.execute(f"comment on column changed.bucket is '{told}'")


SWAPS = {
    "numbers": "update changed set bucket = case bucket when {0} then {1} else {0} end where bucket in ({0}, {1})",
    "numbers of rows": "update changed set bucket = case bucket when {0} then {1} else {0} end "
    "where rowid in (select min(rowid) from changed where bucket in ({0}, {1}) group by bucket)",
    "counts": "update changed set ill = other from (select bucket as b, ill as other from r) "
    "where (bucket, b) in (({0}, {1}), ({1}, {0}))",
}


@pytest.mark.parametrize("change", SWAPS)
def test_nothing_is_certain_by_numbers_that_add_up(con: duckdb.DuckDBPyConnection, change: str) -> None:
    """Two buckets of different kinds were exchanged: their sum is the same, and for bounds each row is looked at.

    Of two rows that were, the counts are those of other rows than their buckets'.
    """
    _label_copy(con)
    (a, b), *_ = con.execute(
        "select a.bucket, b.bucket from r as a join r as b on a.bucket > 4096 and b.bucket > a.bucket "
        "and a.bucket & 4095 <> b.bucket & 4095 order by all limit 1"
    ).fetchall()
    con.execute(SWAPS[change].format(a, b))
    for bounds in ("sure", "hard", "likely"):
        if change == "numbers of rows":
            with pytest.raises(duckdb.InvalidInputException, match=OF_OTHER_ROWS):
                text_of(con, "select ill, count(*) from t group by ill", "changed", bounds)
        else:
            text = text_of(con, "select ill, count(*) from t group by ill", "changed", bounds)
            assert "4095" not in text, bounds


def test_a_column_of_that_name_and_parquet(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute("create or replace table u as select age as bucket, sex, ill, cost from t")
    call = "anatomy('u', 2, qi := ['bucket', 'sex'], sensitive := 'ill', keep := 'cost')"
    query = "select bucket, count(*) from u where ill = 'flu' group by bucket order by 1"
    duckdb_anon.release(con, "ru", call, replace=True)
    con.execute("create or replace view bare_u as select * replace (bucket_::double as bucket_) from ru")
    file = tmp_path / "ru.parquet"
    duckdb_anon.write_parquet(con, "ru", str(file))
    once = tmp_path / "once.parquet"
    duckdb_anon.release(con, str(once), call)
    answers = []
    for release in ("ru", "bare_u", str(file), str(once)):
        call = f"select rewrite_query(?, 'u', '{release}', qi := ['bucket', 'sex'], sensitive := 'ill')"
        text = con.execute(call, [query]).fetchall()[0][0]
        assert ("bucket_ & 4095" in text) is (release != "bare_u")
        answers.append(con.execute(text).fetchall())
    assert answers[0] == answers[1] == answers[2] and len(answers[3]) == len(answers[0])


def test_releases_and_columns_of_any_name(con: duckdb.DuckDBPyConnection) -> None:
    """Names that the package's own steps and columns have."""
    con.execute("create or replace table kinds as select age as cell, sex as kind, ill as counts, cost as rows from t")
    query = "select kind, counts, count(*), sum(rows) from kinds where cell < 9 group by all"
    roles = "qi := ['cell', 'kind'], sensitive := 'counts'"
    for name in ("b", "kinds_of_counts", "buckets", "eligible", "old"):
        duckdb_anon.release(con, name, f"anatomy('kinds', 2, {roles}, keep := 'rows')")
        con.execute(f"create or replace view bare_kinds as select * replace (bucket::double as bucket) from {name}")
        answers = []
        for release in (name, "bare_kinds"):
            call = f"select rewrite_query(?, 'kinds', '{release}', bounds := 'sure', {roles})"
            text = con.execute(call, [query]).fetchall()[0][0].replace("::BIGINT", "")
            assert ("& 4095" in text) is (release == name)
            answers.append(sorted(con.execute(text).fetchall(), key=str))
        assert len(answers[0]) == len(answers[1])
        assert all(_close(a, b) for pair in zip(*answers, strict=True) for a, b in zip(*pair, strict=True))


def test_releases_of_many_kinds_say_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create or replace table many as select i as age, i % 3 as sex, i as ill from range(300) r(i)")
    duckdb_anon.release(con, "rm", "anatomy('many', 3, qi := ['age', 'sex'], sensitive := 'ill')", replace=True)
    found = "select comment from duckdb_columns() where table_name = 'rm' and column_name = 'bucket'"
    assert con.execute(found).fetchall() == [(None,)]
    assert con.execute("select min(bucket), max(bucket), count(distinct bucket) from rm").fetchall() == [(1, 100, 100)]


def test_comments_are_read_back_and_nothing_else_is() -> None:
    for name in ("bucket", '"a ""b"""'):
        assert read_kinds(f"ours; {Kinds(12, 5).comment(name)}; theirs") == Kinds(12, 5)
    for text in (None, "", "anon: sensitive", "kinds of buckets are bucket & 4095: 1 rows, numbers adding up to 1"):
        assert read_kinds(text) is None
