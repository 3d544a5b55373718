"""anon_dirt: problems that are found, the SELECT that cleans them, and what it loses."""

import datetime

import pytest

DIRTY = {
    "years alone": "case when i % 4 < 2 then '1980-01-0' || (i % 9 + 1) when i % 4 = 2 then '13.02.1981' else '1982' end",
    "a few years among dates of one format": "if(i % 20 = 0, '1982', '1980-01-0' || (i % 9 + 1))",
    "dates of one format, and codes": "if(i % 20 = 0, 'N/A', '0' || (i % 9 + 1) || '.03.1981')",
    "a month in letters": "if(i % 5 = 0, 'June ' || (i % 9 + 1) || ', 1980', '1980-01-0' || (i % 9 + 1))",
    "days that no month has": "if(i % 5 = 0, '31.02.1980', '1980-01-0' || (i % 9 + 1))",
    "numbers and codes": "if(i % 10 = 0, 'N/A', (i * 100)::varchar)",
    "numbers and codes with blanks": "if(i % 10 = 0, ' n/a', (i / 8)::varchar)",
    "a word among numbers": "case i when 3 then 'many' else (i * 100)::varchar end",
}


@pytest.fixture
def dirty(con):
    con.execute(
        "create table patients as select i as id, case i % 4 when 0 then 'F' when 1 then ' f' else 'M' end as sex, "
        "case i % 5 when 0 then strftime(d, '%d/%m/%Y') when 1 then strftime(d, '%d.%m.%Y') else strftime(d, '%Y-%m-%d') end as born, "
        "case when i % 10 = 0 then date '1900-01-01' else d end as admitted, "
        "case when i % 9 = 0 then 'unknown' else 'ward ' || i % 3 end as ward, 1000 + i * 331 % 90000 as zip, "
        "case when i % 20 = 0 then 999 else 20 + i % 60 end as age, 'plain ' || i % 4 as clean "
        "from (select i, date '1950-01-13' + (i * 37)::int as d from range(200) t(i))"
    )
    return con


def test_every_problem_is_found_and_clean_columns_are_not(dirty):
    rows = dirty.execute("select column_name, problem, records from anon_dirt('patients')").fetchall()
    found = {(column, problem): records for column, problem, records in rows}
    short = dirty.execute("select count(*) from patients where zip < 10000").fetchall()[0][0]
    assert found.pop((None, "a SELECT that cleans them all")) > 0
    assert found == {
        ("sex", "blanks around values"): 50,
        ("sex", "spellings that differ in case"): 50,
        ("born", "dates that are texts"): 200,
        ("admitted", "placeholder dates"): 20,
        ("ward", "codes for missing values"): 23,
        ("zip", "postcodes that lost leading zeros"): short,
        ("age", "codes for missing values"): 10,
    }


def test_the_select_cleans_the_table(dirty):
    select = dirty.execute("select clean from anon_dirt('patients') where column_name is null").fetchall()[0][0]
    assert select.startswith("SELECT * REPLACE (")
    dirty.execute(f"create table clean as {select}")
    assert {sex for (sex,) in dirty.execute("select distinct sex from clean").fetchall()} == {"f", "m"}
    born = [day for (day,) in dirty.execute("select born from clean order by id").fetchall()]
    assert born == [datetime.date(1950, 1, 13) + datetime.timedelta(days=37 * i) for i in range(200)]
    missing = dirty.execute(
        "select count(*) - count(admitted), count(*) - count(ward), count(*) - count(age), min(length(zip)) from clean"
    ).fetchall()[0]
    assert missing == (20, 23, 10, 5)
    assert dirty.execute("select problem from anon_dirt('clean')").fetchall() == []


@pytest.mark.parametrize("column", DIRTY)
def test_what_cleaning_makes_null_is_counted_and_codes_are_no_loss(con, column):
    con.execute(f"create table t as select {DIRTY[column]} as x from range(400) r(i)")
    ((select, lost),) = con.execute("select clean, lost from anon_dirt('t') where column_name is null").fetchall()
    codes, nulls = con.execute(
        f"select count(*) filter (lower(trim(x)) = 'n/a'), (select count(*) - count(x) from ({select})) from t"
    ).fetchone()
    assert lost == nulls - codes
    assert lost == {"years alone": 100, "a few years among dates of one format": 20, "days that no month has": 80,
                    "a word among numbers": 1}.get(column, 0)  # fmt: skip
    kind = str(con.sql(select).types[0])
    assert kind == ("DATE" if "da" in column or "year" in column or "month" in column else kind)
    assert kind in ("DATE", "BIGINT", "DOUBLE")


def test_a_clean_expression_of_a_problem_cleans_the_problems_before_it_too(con):
    con.execute("create table t as select if(i % 10 = 0, ' n/a', (i * 100)::varchar) as x from range(400) r(i)")
    problems = con.execute("select problem, clean from anon_dirt('t') where column_name is not null").fetchall()
    assert [problem for problem, _ in problems] == [
        "blanks around values", "codes for missing values", "numbers that are texts",
    ]  # fmt: skip
    total = sum(i * 100 for i in range(400) if i % 10)
    assert con.execute(f"select sum({problems[-1][1]}) from t").fetchone() == (total,)


def test_codes_that_begin_with_zero_and_phone_numbers_stay_texts(con):
    con.execute("""create table t as select if(i % 10 = 0, 'N/A', '0' || i % 7) as zone, '+49' || 30000 + i as phone
        from range(400) r(i)""")
    assert [row[:2] for row in con.execute("from anon_dirt('t')").fetchall()][:-1] == [
        ("zone", "codes for missing values")
    ]


def test_casts_that_lose_nothing_are_strict_so_that_a_later_table_loses_nothing_silently(con):
    con.execute("create table t as select '0' || (i % 9 + 1) || '.03.1981' as x from range(400) r(i)")
    ((clean,),) = con.execute("select clean from anon_dirt('t') where column_name = 'x'").fetchall()
    con.execute("insert into t values ('1982')")
    with pytest.raises(Exception, match="parse"):
        con.execute(f"select {clean} from t").fetchall()
