"""Tables that another tool anonymized: cells as text, no row_id, no description."""

import duckdb
import pytest

from tests.reference.answers import dicts

QI = ["age", "workclass", "education", "sex"]
LABELS = f"qi := {QI}, sensitive := 'occupation'"
SUPPRESSED = {"lower": None, "upper": None}


@pytest.fixture
def adult(con, shared_data):
    con.execute(
        f"create table everybody as select {', '.join(QI)}, occupation from read_csv('{shared_data}/adult.csv') "
        "where workclass is not null and occupation is not null limit 2400"
    )
    con.execute("create table people as from everybody where rowid % 2 = 0")
    con.execute("create table others as from everybody where rowid % 2 = 1")
    return con


INTERVALS = {
    "[20, 30[": (20, 29), "[20, 30)": (20, 29), "]20, 30]": (21, 30), "(20, 30]": (21, 30), "20-29": (20, 29),
    "20..29": (20, 29), "2*": (20, 29), "2**": (200, 299), "<25": (20, 24), "<=25": (20, 25), ">30": (31, 47),
    "≥ 30": (30, 47), "40+": (40, 47), "{20, 47}": (20, 47), " 35": (35, 35), "-5": (-5, -5), "*": None, "**": None,
    "NA": None, "": None,
}  # fmt: skip
LISTS = {
    "a1": ["a1"], "a*": ["a1", "a2"], "a**": ["a10"], "{a1, b1}": ["a1", "b1"], "*": ["a1", "a10", "a2", "b1"],
    None: ["a1", "a10", "a2", "b1"],
}  # fmt: skip


def test_numbers_are_intervals_and_texts_lists_of_the_originals_values(con):
    con.execute(
        "create table people as select unnest([20, 47, 20, 47]) as age, unnest(['a1', 'a2', 'a10', 'b1']) as code"
    )
    con.execute("create table release as select unnest($1::varchar[]) as age", [list(INTERVALS)])
    found = con.execute("from read_generalized('people', 'release', qi := ['age'], row_id := true)").fetchall()
    cells = [
        SUPPRESSED if ends is None else dict(zip(("lower", "upper"), ends, strict=True)) for ends in INTERVALS.values()
    ]
    assert found == list(zip(cells, range(len(cells)), strict=True))
    con.execute("create or replace table release as select unnest($1::varchar[]) as code", [list(LISTS)])
    lists = con.execute("select list_sort(code) from read_generalized('people', 'release', qi := ['code'])").fetchall()
    assert lists == [(values,) for values in LISTS.values()]


def test_what_cannot_be_read_is_an_error_that_quotes_no_value(con):
    con.execute("create table people as select 31 as age, 'a1' as code")
    for column, text in (("age", "young"), ("age", "[30, 20]"), ("code", "z*"), ("code", "Zz")):
        con.execute(f"create or replace table release as select $1::varchar as {column}", [text])
        with pytest.raises(duckdb.Error, match=f"read_generalized: cells of '{column}' cannot be read") as raised:
            con.execute(f"from read_generalized('people', 'release', qi := ['{column}'])").fetchall()
        assert text not in str(raised.value) and "a1" not in str(raised.value)


def test_a_release_written_as_text_is_attacked_like_itself(adult):
    adult.execute(f"create table release as from mondrian('people', 8, {LABELS}, row_id := true)")
    written = ", ".join(f"'{{' || array_to_string({name}, ', ') || '}}' as {name}" for name in QI[1:])
    adult.execute(
        "create table texts as select case when age.lower is null then '*' else '[' || age.lower || ', ' || "
        f"(age.upper + 1) || '[' end as age, {written}, occupation, row_id from release order by row_id"
    )
    adult.execute(f"create table read as from read_generalized('people', 'texts', qi := {QI})")
    figures = [
        adult.execute(
            f"select attacker, round(identity, 9), round(attribute, 9), channel from linkage_risk('people', '{table}', {LABELS}, "
            "attackers := ['exact', 'nearest', 'likelihood', 'register']) order by all"
        ).fetchall()
        for table in ("release", "read")
    ]
    assert figures[0] == figures[1] and ("likelihood", "published") in {(row[0], row[3]) for row in figures[0]}


def test_suppressed_and_recoded_cells_cover_their_individuals(adult):
    adult.execute(
        "create table recoded as select case when rowid % 9 = 0 then '*' else '[' || age // 10 * 10 || ', ' || "
        "age // 10 * 10 + 10 || '[' end as age, if(rowid % 7 = 0, null, workclass) as workclass, "
        "left(education, 1) || '*' as education, '*' as sex, occupation from people"
    )
    adult.execute(f"create table read as from read_generalized('people', 'recoded', qi := {QI}, row_id := true)")
    found = dicts(adult, f"from linkage_risk('people', 'read', {LABELS}, attackers := ['exact'], targets := 1200)")[0]
    covers = (
        "(r.age.lower is null or p.age between r.age.lower and r.age.upper) and list_contains(r.workclass, p.workclass) "
        "and list_contains(r.education, p.education)"
    )
    expected = adult.execute(
        f"select avg(1 / n) from (select p.rowid, count(*) as n from people p join read r on {covers} group by all)"
    ).fetchall()[0][0]
    assert found["identity"] == pytest.approx(expected)


def test_plain_rows_without_row_id_are_attacked_for_the_sensitive_value(adult):
    adult.execute("create table copy as from (from people using sample reservoir(900 rows) repeatable (1))")
    rows = {
        row["attacker"]: row
        for row in dicts(adult, f"from linkage_risk('people', 'copy', {LABELS}, holdout := 'others', seed := 1)")
    }
    assert all(row["identity"] is None for row in rows.values())
    assert rows["likelihood"]["advantage"] > 0.15 and rows["nearest"]["advantage"] > 0.15
    assert (rows["likelihood"]["channel"], rows["strongest"]["channel"], rows["exact"]["channel"]) == (
        "bootstrap", "bootstrap", None,
    )  # fmt: skip
    assert "row_id" in rows["strongest"]["note"]
    with pytest.raises(duckdb.Error, match="no column row_id"):
        adult.execute(f"from linkage_risk('people', 'copy', {LABELS}, call := 'muco(0.2)')")


def test_members_are_closer_to_a_copy_than_others_and_not_to_a_table_of_others(adult):
    call = "from membership_risk('people', '{}', " + f"qi := {QI}, holdout := 'others', targets := 600, seed := 1)"
    copied, unrelated = (dicts(adult, call.format(table)) for table in ("people", "everybody"))
    assert copied[0]["closest"] == 0 < copied[0]["closest_others"]
    assert copied[0]["auc"] > 0.6 and copied[1]["auc"] > 0.6
    assert unrelated[0]["closest"] == unrelated[0]["closest_others"] == 0
    assert copied[1]["closest"] is None
