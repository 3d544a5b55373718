"""Households: guarantees and risks count them in place of their members."""

import math
from collections import Counter

import duckdb
import pytest


@pytest.fixture
def families(con):
    con.execute("""create table families as select range as id, (range // 3)::int as home, (hash(range) % 20)::int as age,
        (hash(range, 3) % 2)::int as sex, (hash(range, 5) % 7)::int as illness from range(600)""")
    for column, role in {"home": "household", "age": "quasi", "sex": "quasi", "illness": "sensitive"}.items():
        con.execute(f"comment on column families.{column} is 'anon: {role}'")
    return con


@pytest.mark.parametrize("call", ["mondrian('families', 5, l := 2", "muco('families', 0.2"])
def test_classes_have_k_households(families, call):
    # members of a household are alike, so that k records could be one household
    families.execute("update families set age = home % 20, sex = home % 2")
    families.execute(f"create table r as from {call}, row_id := true)")
    counted = families.execute("""select min(n) from (select count(distinct home) as n
        from r join (select home, row_number() over () - 1 as row_id from families) using (row_id) group by age, sex)""").fetchone()
    k, share = families.execute("from k_anonymity('r', qi := ['age', 'sex'], original := 'families')").fetchone()
    assert counted == (k,) and k >= 5 and share <= 0.2
    assert "home" not in families.sql("from r").columns


def test_risk_of_a_household_is_that_of_any_member(families):
    rows = families.execute("select home, age, sex from families").fetchall()
    size = Counter((age, sex) for _, age, sex in rows)
    safe = {
        home: math.prod(1 - 1 / size[age, sex] for h, age, sex in rows if h == home) for home in {r[0] for r in rows}
    }
    found = dict(families.execute("select distinct home, household_risk from record_risk('families')").fetchall())
    assert found == {home: pytest.approx(1 - each) for home, each in safe.items()}
    risk = families.execute(
        "select expected, household_expected, household_risk from reidentification_risk('families')"
    )
    expected = sum(1 - safe[home] for home, _, _ in rows)
    assert risk.fetchone() == (pytest.approx(len(size)), pytest.approx(expected), pytest.approx(expected / len(rows)))


def test_risks_of_households_are_those_of_sdcmicro(con):
    # measure_risk(..., hid = 'home') of sdcMicro 5.8.1 on this table; without weights equal on its testdata, too
    con.execute("""create table homes as select i * i % 37 as home, i * 7 % 5 as a, i * i % 13 as b, 5 + i % 7 as w
        from range(120) t(i)""")
    figures = "select expected, household_expected, household_risk from reidentification_risk('homes', ['a', 'b'], "
    found = con.execute(f"{figures} household := 'home')").fetchone()
    assert found == pytest.approx((35, 106.72469075521, 0.88937242296))
    first = con.execute(
        "select household_risk from record_risk('homes', ['a', 'b'], household := 'home') order by home, a"
    )
    assert first.fetchone() == (pytest.approx(0.7890625),)
    # of classes with more than two records sdcMicro takes the first term of the series in place of its sum
    con.execute("""create table approximate as select home, if(n > 2, p / (n - (1 - p)), journalist) as risk from (
        select *, class_size as n, class_size / population_size as p
        from record_risk('homes', ['a', 'b'], household := 'home', sample_weights := 'w'))""")
    of_homes = (
        "select sum(risk * n) from (select 1 - product(1 - risk) as risk, count(*) as n from approximate group by home)"
    )
    total = con.execute("select sum(risk) from approximate").fetchone() + con.execute(of_homes).fetchone()
    assert total == pytest.approx((6.112625266314, 33.918484637255))
    exact = con.execute(f"{figures} household := 'home', sample_weights := 'w')").fetchone()[:2]
    assert exact < total and exact == pytest.approx(total, rel=0.02)


def test_what_counts_records_or_releases_the_number_of_the_household_is_refused(families):
    with pytest.raises(duckdb.Error, match="several-rows"):
        families.execute("from microaggregate('families', 5)")
    with pytest.raises(duckdb.Error, match=r"home.* labelled household"):
        families.execute("from mondrian('families', 5, keep := ['home'])")
    families.execute("comment on column families.id is 'anon: household'")
    with pytest.raises(duckdb.Error, match=r"home.*household"):
        families.execute("from mondrian('families', 5)")


def test_the_page_has_the_risk_of_households(families, tmp_path):
    pytest.importorskip("altair", reason="the report extra is not installed")
    families.execute("create table r as from mondrian('families', 5, row_id := true)")
    path = tmp_path / "page.html"
    families.execute(f"from anon_report('families', ['r'], '{path}', targets := 50, queries := 10)").fetchall()
    assert "household risk" in path.read_text(encoding="utf-8")
