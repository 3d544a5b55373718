"""visits.csv through every method that counts persons; what is promised is counted again by SQL on the release."""

import duckdb
import pytest

import duckdb_anon

CONSTANT = ("month_of_birth", "year_of_birth", "race", "years_of_education", "income")
# most persons that share a value, and most rows of a value and of a person, as shares of a bucket
SHARES = """
with linked as (
    select {} as class, v.* from r join (select *, row_number() over () - 1 as row_id from visits) v using (row_id)
), whole as (select class, count(*) as n, count(distinct person_id) as persons from linked group by class),
of_value as (select class, diagnosis, count(*) as n, count(distinct person_id) as persons from linked group by all),
of_person as (select class, person_id, count(*) as n from linked group by all)
select
    (select min(persons) from whole),
    (select max(v.persons / w.persons) from of_value v join whole w using (class)),
    (select max(v.n / w.n) from of_value v join whole w using (class)),
    (select max(p.n / w.n) from of_person p join whole w using (class)),
    (select max(n) from (select count(distinct class) as n from linked group by person_id))
"""


@pytest.fixture(scope="module")
def visits(shared_data):
    """A fortieth of the persons with all their rows, labelled."""
    con = duckdb_anon.connect()
    con.execute(f"create table visits as from read_csv('{shared_data / 'visits.csv'}', all_varchar := false) "
                "where hash(person_id) % 40 = 0")  # fmt: skip
    labels = {"person_id": "person", **dict.fromkeys(CONSTANT, "quasi"), "diagnosis": "sensitive"}
    for column, role in labels.items():
        con.execute(f"comment on column visits.{column} is 'anon: {role}'")
    yield con
    con.close()


@pytest.mark.parametrize(
    "call",
    [
        "anatomy('visits', 2)", "slicing('visits', 2)", "slicing('visits', 2, cut := 'sse', column_count := 3)",
        "merging('visits', 2, fake := 0)",
    ],
)  # fmt: skip
def test_buckets_hold_whole_persons_and_no_share_above_one_in_l(visits, call):
    visits.execute(f"create or replace table r as from {call[:-1]}, row_id := true)")
    persons, having, value, person, homes = visits.execute(SHARES.format("r.bucket")).fetchall()[0]
    assert persons >= 2 and homes == 1
    assert max(having, value, person) <= 1 / 2 + 1e-9
    buckets, rows = visits.execute("select count(distinct bucket), count(*) from r").fetchall()[0]
    assert buckets > 100 and rows == visits.execute("select count(*) from visits").fetchall()[0][0]


def test_fakes_of_merging_are_no_persons(visits):
    visits.execute("create or replace table r as from merging('visits', 2, fake := 1000, row_id := true)")
    persons, having, _, _, homes = visits.execute(SHARES.format("r.bucket")).fetchall()[0]
    assert persons >= 2 and homes == 1 and having <= 1 / 2 + 1e-9
    assert visits.execute("select count(*) from r where row_id is null").fetchall() == [(1000,)]


def test_a_table_whose_fakes_break_l_is_told_so(visits):
    with pytest.raises(duckdb.Error, match=r"200000 fakes are counted, .*ask for fewer"):
        visits.execute("from merging('visits', 2, fake := 200000)")


@pytest.mark.parametrize(
    ("call", "qi", "k", "least"),
    [
        ("mondrian('visits', k := 5, l := 2", CONSTANT, 5, 2),
        ("incognito('visits', k := 5, qi := ['year_of_birth', 'race', 'years_of_education']", CONSTANT[1:4], 5, 1),
        ("incognito('visits', k := 3, l := 1.5, diversity := 'frequency', qi := ['year_of_birth', 'race']",
         CONSTANT[1:3], 3, 1.5),
        ("incognito('visits', k := 8, max_suppression := 0.2, qi := ['year_of_birth', 'years_of_education']",
         ("year_of_birth", "years_of_education"), 8, 1),
    ],
)  # fmt: skip
def test_classes_have_k_persons_and_l(visits, call, qi, k, least):
    visits.execute(f"create or replace table r as from {call}, row_id := true)")
    cells = ", ".join(f"r.{name}::varchar" for name in qi)
    persons, having, values, hers, homes = visits.execute(SHARES.format(f"[{cells}]::varchar")).fetchall()[0]
    diversity = 1 / having
    assert persons >= k and diversity >= least - 1e-9
    assert hers <= 1 / max(k, least) + 1e-9 and values <= 1 / least + 1e-9
    # equal rows of a person have equal boxes: sex, birth year and the like stay consistent
    assert homes == 1
    classes = visits.execute(f"select count(distinct [{cells}]::varchar) from r").fetchall()[0][0]
    assert classes > 1
    asked = f"k_anonymity('r', {list(qi)}, original := 'visits')"
    assert visits.execute(f"from {asked}").fetchall()[0] == (persons, pytest.approx(hers))
    if least > 1:
        levels = visits.execute(f"from l_diversity('r', {list(qi)}, 'diagnosis', original := 'visits')").fetchall()
        assert dict(levels)["frequency"] == pytest.approx(diversity)
        assert dict(levels)["rows"] == pytest.approx(1 / max(hers, values))


@pytest.mark.parametrize("method", ["mondrian", "incognito", "anatomy", "muco", "slicing", "merging"])
def test_what_is_constant_over_a_persons_rows(visits, method):
    """Consistent where published with the row; permuted like all else where nothing tells which rows are hers."""
    options = {"mondrian": "k := 3, l := 1.5", "incognito": "k := 3, l := 1.5, diversity := 'frequency'", "muco": "0.2"}
    call = f"{method}('changing', {options.get(method, '2')}"  # fmt: skip
    # the visit's number changes from row to row, the birth year and race do not
    visits.execute("create or replace table changing as select *, row_number() over () % 10 as visit from visits")
    qi = ["year_of_birth", "race"] if method == "mondrian" else ["year_of_birth", "race", "visit"]
    roles = f"qi := {qi}, sensitive := 'diagnosis', person := 'person_id', row_id := true"
    visits.execute(f"create or replace table made as from {call}, {roles})")
    struct = {name for name, kind, *_ in visits.execute("describe made").fetchall() if "STRUCT(year_of_birth" in kind}
    born = f"made.{struct.pop()}.year_of_birth" if struct else "made.year_of_birth"
    several, changed = visits.execute(f"""
        with linked as (
            select {born}::varchar as born, v.person_id from made
            join (select person_id, row_number() over () - 1 as row_id from changing) v using (row_id)
        )
        select count(*), count(*) filter (n > 1) from (
            select count(distinct born) as n from linked group by person_id having count(*) > 1
        )
    """).fetchall()[0]
    assert several > 1000
    if method in ("mondrian", "incognito", "anatomy"):
        assert changed == 0
    else:
        assert changed > several / 2
        about = visits.execute("select about from anon_functions() where function = ?", [method]).fetchall()
        assert "permuted record by record" in " ".join(about[0][0].split())


def test_what_counts_rows_alone_is_refused(visits):
    refused = {
        "muco('visits', 0.1, tables := 'linear')": "bounds the share of a row",
        "slicing('visits', 2, columns := [['race'], ['diagnosis', 'income', 'year_of_birth', 'month_of_birth', "
        "'years_of_education']])": "sensitive_column := 'alone'",
        "rr_distort('visits', p := 0.8)": "Use muco, which protects individuals",
        "slicing('visits', 3)": "the largest l this table can meet is 2",
    }
    for call, message in refused.items():
        with pytest.raises(duckdb.Error, match=message):
            visits.execute(f"from {call}").fetchall()
