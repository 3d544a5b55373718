"""Releases on Spark (local[2]) against those of DuckDB."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import AnonError
from tests.reference.answers import differing

pytestmark = pytest.mark.filterwarnings("ignore")

QI = ["age", "gender", "education", "hours_per_week"]
ROLES = "qi := ['age', 'gender', 'education', 'hours_per_week']"


@pytest.fixture(scope="module")
def con():
    connection = duckdb_anon.connect()
    connection.execute("""create table people as select * replace (nullif(education, 'doctorate') as education),
        hours_per_week % 11 as ward, 'p' || (age * 31 + hours_per_week) % 3000 as who
        from anon_sample('census', 6000, seed := 5)""")
    return connection


@pytest.fixture(scope="module")
def people(spark, con):
    return spark.createDataFrame(con.sql("from people").to_arrow_table()).cache()


def test_classes_are_those_of_duckdb_and_so_are_measures_and_estimates(spark, con, people):
    import duckdb_anon.spark as anon

    call = f"mondrian('people', 3, l := 2, {ROLES}, sensitive := 'ward')"
    duckdb_anon.release(con, "once", call, part_rows=2500, replace=True, independent=True)
    release = anon.release(people, "mondrian(3, l := 2)", qi=QI, sensitive="ward", part_rows=2500)
    con.register("_released", release.toArrow())
    con.execute("create or replace table released as from _released")
    assert differing(con, "once", "released") == 0
    assert release.schema["age"].metadata["comment"] == "anon: quasi"
    # rows of a part do not stand together
    assert abs(con.execute("select corr(rowid, age.lower) from released").fetchall()[0][0]) < 0.06
    # computed once: another look at it draws nothing anew
    assert release.toArrow().equals(release.toArrow())

    given = f"'once', qi := {QI}"
    assert anon.k_anonymity(release, QI) == con.execute(f"from k_anonymity({given})").fetchall()[0][0]
    told = dict(con.execute(f"from l_diversity({given}, sensitive := 'ward')").fetchall())
    assert anon.l_diversity(release, QI, "ward") == pytest.approx(told)
    for distance in ("equal", "ordered"):
        found = con.execute(f"from t_closeness({given}, sensitive := 'ward', distance := '{distance}')").fetchall()
        assert anon.t_closeness(release, QI, "ward", distance) == pytest.approx(found[0][0])

    release.createOrReplaceTempView("release")
    for query in (
        "SELECT count(*) FROM people WHERE age < 40",
        "SELECT ward, sum(hours_per_week) AS hours FROM people WHERE age BETWEEN 30 AND 45 GROUP BY ward",
        "SELECT avg(ward) FROM people WHERE hours_per_week > 20 AND gender = 'female'",
    ):
        rewritten = "select rewrite_query($1, 'people', 'once', qi := $2, sensitive := 'ward', spread := 'uniform')"
        on_duckdb = con.execute(con.execute(rewritten, [query, QI]).fetchall()[0][0]).fetchall()
        on_spark = spark.sql(anon.estimate_sql(query, people, release, qi=QI, sensitive="ward")).collect()
        told_by_spark = sorted(tuple(float(cell) for cell in row) for row in on_spark)
        assert told_by_spark == [pytest.approx(row) for row in sorted(tuple(map(float, row)) for row in on_duckdb)]


def test_labels_of_column_metadata_and_permuted_columns(spark, con, people):
    import duckdb_anon.spark as anon

    labelled = people
    for column in QI:
        labelled = labelled.withMetadata(column, {"comment": "anon: quasi"})
    labelled = labelled.withMetadata("ward", {"comment": "ours; anon: sensitive"})
    labelled = labelled.withMetadata("who", {"comment": "anon: identifier"})
    release = anon.release(labelled, "muco(0.2)", part_rows=2000)
    assert set(release.columns) == {*QI, "ward"}
    con.register("_muco", release.toArrow())
    for column in (*QI, "ward"):
        assert differing(con, f"(select {column} from _muco)", f"(select {column} from people)") == 0
    assert differing(con, f"(select {', '.join(QI)} from _muco)", f"(select {', '.join(QI)} from people)") > 1000


OTHERS = {
    "anatomy": ("anatomy(2)", {}), "slicing": ("slicing(2, sensitive_column := 'alone')", {}),
    "merging": ("merging(2, fake := 2)", {}), "randomized": ("rr_distort(p := 0.8)", {}),
    "sample": ("composition(5, alpha := 0.9)", {}), "persons": ("mondrian(3, l := 2)", {"person": "who"}),
}  # fmt: skip


def test_what_decides_for_the_whole_table_is_that_of_duckdb(con, people):
    import duckdb_anon.spark as anon

    call = f"incognito('people', 4, l := 1.5, max_suppression := 0.01, {ROLES}, sensitive := 'ward')"
    con.execute(f"create or replace table once as from {call}")
    release = anon.release(people, "incognito(4, l := 1.5, max_suppression := 0.01)", qi=QI, sensitive="ward")
    con.register("_levels", release.toArrow())
    assert differing(con, "once", "_levels") == 0

    pytest.importorskip("opendp")
    noisy = anon.release(people, "diffgen(2.0, domain := 'observed')", qi=["age", "gender"], sensitive="education")
    con.register("_noisy", noisy.toArrow())
    total, rows = con.execute("select sum(noisy_count), count(*) from _noisy").fetchall()[0]
    assert abs(total - 6000) < 40 * rows  # 40 scales of the noise of a cell
    values = "select count(distinct education) from "
    assert con.execute(values + "_noisy").fetchall() == con.execute(values + "people").fetchall()


def test_moments_with_and_without_zone_come_back_as_they_were(con, spark):
    import duckdb_anon.spark as anon

    moments = spark.sql("""select timestamp'2024-03-31 01:30:00 UTC' + make_interval(0, 0, 0, 0, id % 90) as zoned,
        cast(timestamp_ntz'2024-10-27 02:30:00' + make_interval(0, 0, 0, 0, id % 70) as timestamp_ntz) as local,
        if(id % 50 = 0, null, date_add(date'1900-01-01', cast(id % 400 as int))) as day,
        cast(id % 13 as decimal(9, 2)) / 4 as amount, id % 3 = 0 as yes, cast(id % 7 as int) as ward
        from range(4000)""")
    columns = ["zoned", "local", "day", "amount", "yes"]
    con.register("_moments", moments.toArrow())
    con.execute("create or replace table moments as from _moments")
    call = f"mondrian('moments', 5, qi := {columns}, sensitive := 'ward')"
    duckdb_anon.release(con, "once", call, part_rows=1500, replace=True, independent=True)
    boxes = anon.release(moments, "mondrian(5)", qi=columns, sensitive="ward", part_rows=1500)
    con.register("_boxes", boxes.toArrow())
    assert differing(con, "once", "_boxes") == 0
    mixed = anon.release(moments, "muco(0.2)", qi=columns, sensitive="ward", part_rows=1500)
    assert [f.dataType for f in mixed.schema] == [moments.schema[f.name].dataType for f in mixed.schema]
    con.register("_mixed", mixed.toArrow())
    for column in columns:
        assert differing(con, f"(select {column} from moments)", f"(select {column} from _mixed)") == 0


@pytest.mark.parametrize("name", OTHERS)
def test_every_method_with_parts_runs(con, people, name):
    import duckdb_anon.spark as anon

    call, more = OTHERS[name]
    release = anon.release(people, call, qi=QI, sensitive="ward", part_rows=3000, **more)
    con.register("_other", release.toArrow())
    rows = con.execute("select count(*) from _other").fetchall()[0][0]
    if name == "merging":  # two fakes a part
        assert 6000 < rows < 6050
    else:
        assert 2000 < rows < 6000 if name == "sample" else rows == 6000
    if name == "anatomy":
        worst = con.execute("""select max(most / n) from (select bucket, count(*) as n, max(list_max(map_values(ward))) as most
            from _other group by bucket)""").fetchall()[0][0]
        assert worst <= 0.5


def test_lists_of_persons_with_hierarchies(con, spark):
    import duckdb_anon.spark as anon

    con.execute("""create or replace table visits as select 'p' || i as who, i * 7 % 60 as age, i % 2 as sex,
        ['flu', 'cold', 'cancer', 'gout', 'ulcer'][(i * 3 + j * j) % 5 + 1] as disease
        from range(3000) r(i), range(1, 3) s(j)""")
    tree = con.sql("""from (values ('flu', 'lung', '*'), ('cold', 'lung', '*'), ('cancer', 'rest', '*'),
        ('gout', 'rest', '*'), ('ulcer', 'rest', '*')) t(a, b, c)""").to_arrow_table()
    visits = spark.createDataFrame(con.sql("from visits").to_arrow_table())
    release = anon.release(
        visits, "one_to_m_generalize(3, 2)", qi=["age", "sex"], sensitive="disease", person="who",
        hierarchies={"disease": tree}, part_rows=2000,
    )  # fmt: skip
    con.register("_lists", release.toArrow())
    assert con.execute("select count(*) from _lists").fetchall() == [(3000,)]
    assert con.execute("select min(n) from (select count(*) as n from _lists group by disease)").fetchall()[0][0] >= 3


@pytest.mark.parametrize(
    ("call", "more", "said"),
    [
        ("muko(0.2)", {}, "muko"), ("muco(7)", {}, "delta := 7"),
        ("mondrian(3)", {"qi": ["aeg"]}, "did you mean 'age'"),
        ("mondrian(90000)", {}, "largest k this table can meet is 6000"),
        ("incognito(3)", {"part_rows": 2000}, "one task works all 6,000 rows, and part_rows=2,000"),
        ("mondrian(3, row_id := true)", {}, "row_id := true ties rows"),
        ("mondrian(3, seed := 5)", {}, "a seed repeats nothing"),
        ("mondrian(3)", {"part_rows": 5}, "part_rows=5 is too few"), ("mondrian", {}, "is not one call of a method"),
    ],
)  # fmt: skip
def test_refusals_say_why(people, call, more, said):
    import duckdb_anon.spark as anon

    with pytest.raises((AnonError, duckdb.Error), match=said):
        anon.release(people, call, **{"qi": QI, **more})


def test_what_a_task_refuses_comes_as_the_methods_own_words(people):
    import duckdb_anon.spark as anon

    with pytest.raises(AnonError, match=r"^incognito: [^\n]*6,?000[^\n]*$"):
        anon.release(people, "incognito(7000)", qi=QI, sensitive="ward")


CENSUS = ["RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK"]


@pytest.fixture(scope="module")
def census(spark, con, shared_data):
    con.execute(f"create or replace table census as from read_csv('{shared_data / 'census.csv'}')")
    return spark.createDataFrame(con.sql("from census").to_arrow_table()).cache()


def test_census_has_the_classes_of_duckdb(con, census):
    import duckdb_anon.spark as anon

    given = f"qi := {CENSUS}, sensitive := 'INCWAGE', sensitive_edges := 1"
    call = f"mondrian('census', 10, {given})"
    duckdb_anon.release(con, "edged", call, part_rows=20_000, replace=True, independent=True)
    con.execute("create or replace table once as select * exclude (sensitive_edges) from edged")
    release = anon.release(census, "mondrian(10)", qi=CENSUS, sensitive="INCWAGE", part_rows=20_000)
    con.register("_census", release.toArrow())
    assert differing(con, "once", "_census") == 0
