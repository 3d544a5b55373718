"""anon_profile and label_statements: right on labelled columns, silent about values, harmless."""

import re

import duckdb
import pandas as pd
import pytest

from tests.reference.labelled_columns import REAL, labelled_columns

pytestmark = pytest.mark.campaign

pytest.importorskip("stdnum", reason="the profile extra is not installed")
pytest.importorskip("phonenumbers", reason="the profile extra is not installed")


DIRECT = {"name", "mail", "phone", "iban", "card number", "national id", "address", "url", "ip address"}


@pytest.mark.parametrize(
    ("source", "precision", "recall", "identifiers"), [("kinds", 0.9, 0.95, 1.0), ("unseen", 0.7, 0.75, 0.9)]
)
def test_made_up_columns_are_what_they_are_labelled(con, source, precision, recall, identifiers):
    """Of this country and of others."""
    pytest.importorskip("faker", reason="the oracle of this test is not installed")
    columns = labelled_columns(source)
    frame = pd.DataFrame({column.name: column.values for column in columns})
    con.register("frame", frame)
    con.execute("create table made as from frame")
    profiled = con.execute("select column_name, looks_like, role, safe_harbor from anon_profile('made')").fetchall()
    assert [row[0] for row in profiled] == [column.name for column in columns]
    pairs = [(column.kind, row[1] or "") for column, row in zip(columns, profiled, strict=True)]
    right = sum(true == found != "" for true, found in pairs)
    assert right / sum(found != "" for _, found in pairs) >= precision
    assert right / sum(true != "" for true, _ in pairs) >= recall
    direct = [row[2:] for column, row in zip(columns, profiled, strict=True) if column.kind in DIRECT]
    assert sum(role == "identifier" for role, _ in direct) / len(direct) >= identifiers
    if source == "unseen":
        assert len(direct) > 50
    else:
        assert all(harbor is not None for _, harbor in direct)


@pytest.mark.parametrize("name", REAL)
def test_roles_of_real_tables_are_those_a_person_gave_them(con, shared_data, name):
    con.execute(f"create table {name} as from read_csv('{shared_data / name}.csv')")
    profiled = dict(con.execute(f"select column_name, role from anon_profile('{name}')").fetchall())
    assert profiled == REAL[name]


def test_facts_are_those_of_the_full_table(con):
    con.execute(
        "create table t as select i as id, i % 50 as age, if(i % 4 = 0, null, 'g' || i % 3) as sex, 5 as five "
        "from range(1000) t(i)"
    )
    profiled = con.execute(
        "select distinct_values, uniqueness, nulls, role from anon_profile('t', rows := 100)"
    ).fetchall()
    assert [row[0] for row in profiled] == [1000, 50, 3, 1]
    assert [row[1] for row in profiled] == [1.0, 0.0, 0.0, 0.0]
    assert profiled[2][2] == pytest.approx(0.25)
    assert [row[3] for row in profiled] == ["identifier", "quasi", "quasi", "insensitive"]


def test_what_a_column_adds_is_the_share_of_records_it_makes_unique(con):
    con.execute("create table t as select i // 10 as age, i % 10 as sex, 1 as country from range(100) t(i)")
    profiled = dict(con.execute("select column_name, adds from anon_profile('t')").fetchall())
    assert profiled == {"age": 1.0, "sex": 1.0, "country": 0.0}


def test_no_value_of_the_table_is_displayed(con):
    con.execute(
        "create table t as select 'verysecret' || i as a, 'verysecret' || i % 3 as diagnosis from range(90) t(i)"
    )
    profiled = str(con.execute("from anon_profile('t')").fetchall()) + str(
        con.execute("from label_statements('t')").fetchall()
    )
    assert "verysecret" not in profiled


def test_statements_label_columns_without_a_role_and_keep_other_comments(con):
    con.execute('create table "my table" as select i % 9 as "the ""age""", i % 2 as sex, 3 as fee from range(50) t(i)')
    con.execute("comment on column \"my table\".sex is 'as in the passport'")
    con.execute("comment on column \"my table\".fee is 'anon: sensitive'")
    statements = con.execute("select statement from label_statements('\"my table\"')").fetchall()
    assert len(statements) == 2
    for (statement,) in statements:
        con.execute(statement)
    comments = dict(
        con.execute("select column_name, comment from duckdb_columns() where table_name = 'my table'").fetchall()
    )
    assert comments["sex"] == "as in the passport; anon: quasi"
    assert comments["fee"] == "anon: sensitive"
    assert con.execute("from k_anonymity('\"my table\"')").fetchall()
    assert con.execute("from label_statements('\"my table\"')").fetchall() == []


@pytest.mark.parametrize("table", ["(select 1 as a)", "read_me.csv"])
def test_a_table_that_takes_no_comments_is_refused(con, table, tmp_path, monkeypatch):
    (tmp_path / "read_me.csv").write_text("a\n1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(duckdb.Error, match=r"label_statements: .* no table that comments could be written on"):
        con.execute(f"from label_statements('{table}')").fetchall()
    assert con.execute(f"from anon_profile('{table}')").fetchall()


def test_empty_and_null_ridden_tables_are_profiled(con):
    con.execute("create table none(a integer, b varchar, c struct(x integer))")
    assert len(con.execute("from anon_profile('none')").fetchall()) == 3
    con.execute("insert into none select null, null, null from range(20)")
    assert [row[0] for row in con.execute("select nulls from anon_profile('none')").fetchall()] == [1.0, 1.0, 1.0]


def test_an_empty_table_is_labelled_by_names(con):
    con.execute("create table empty (name varchar, surname varchar, city varchar, x integer)")
    found = dict(con.execute("select column_name, role from anon_profile('empty')").fetchall())
    assert found == {"name": "identifier", "surname": "identifier", "city": "quasi", "x": "quasi"}


def test_keys_that_are_not_written_like_keys(con):
    con.execute(
        "create table odd as select range::double as whole, range * 1.37 as measured, range * 7 // 10 as pid, "
        "if(range % 10 > 0, range // 2, null) as patient_id, 'US' as country, if(range % 2 = 0, 'Yes', 'No') as citizen, "
        "'HIV' as diagnosis from range(200)"
    )
    found = {name: rest for name, *rest in con.execute(
        "select column_name, role, looks_like, type, reason from anon_profile('odd')").fetchall()}  # fmt: skip
    assert [found[name][0] for name in ("whole", "measured", "country", "diagnosis")] == [
        "identifier", "quasi", "insensitive", "sensitive"]  # fmt: skip
    assert found["whole"][2] == "DOUBLE" and found["citizen"][1] != "country"
    assert {found["pid"][0], found["patient_id"][0]} == {"person", "identifier"}
    assert "leave them out" in found["patient_id"][3] or found["patient_id"][0] == "identifier"


def test_suggested_hierarchies_can_be_made(con):
    con.execute(
        "create table t as select 20 + i % 60 as age, date '1950-01-01' + (i * 97)::integer as dob, "
        "printf('%05d', i * 37) as zip from range(400) t(i)"
    )
    calls = [c for (c,) in con.execute("select hierarchy from anon_profile('t')").fetchall()]
    assert len(calls) == 3
    trees = {}
    for k, (column, call) in enumerate(zip(("age", "dob", "zip"), calls, strict=True)):
        con.execute(f"create table tree{k} as from {call}")
        trees[column] = f"tree{k}"
    found = con.execute(
        f"select count(*) from incognito('t', k := 5, qi := ['age', 'dob', 'zip'], hierarchies := {trees}, "
        "max_suppression := 0.1)"
    ).fetchall()
    assert found[0][0] >= 360


def roles_of(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    found = con.execute(f"select column_name, role from anon_profile('{table}')").fetchall()
    return dict(found)


def test_at_most_one_column_is_the_person_and_keys_of_groups_are_not(con):
    con.execute("create table t as select range // 3 as customer_id, range // 4 as subject_id, range // 6 as hhId, "
                "range // 20 as school_id, range // 5 as class_id, range % 30 as store_id, range % 9 as country_id, "
                "range % 7 + 6 as age, range % 5 as mark from range(400)")  # fmt: skip
    roles = roles_of(con, "t")
    assert [name for name, role in roles.items() if role == "person"] == ["customer_id"]
    assert roles["subject_id"] == "identifier"
    assert {roles[name] for name in ("hhId", "school_id", "class_id", "store_id", "country_id")} == {"quasi"}
    reasons = con.execute("select statement, reason from label_statements('t')").fetchall()
    assert any("individuals: 'subject_id'" in reason for _, reason in reasons)
    for statement, _ in reasons:
        con.execute(statement)
    assert con.execute("from k_anonymity('t')").fetchone()[0] >= 1
    assert con.execute("select count(*) from mondrian('t', k := 3)").fetchone()[0] == 400
    con.execute("comment on column t.customer_id is null; comment on column t.hhId is 'anon: person'")
    assert roles_of(con, "t")["customer_id"] == "identifier"


def test_quantities_are_no_addresses_and_numbers_called_date_get_a_hierarchy(con):
    con.execute("create table t as select (range % 31) || ' days' as stay, (40 + range % 60) || ' kg' as load, "
                "(range % 90) || ' years' as dauer, to_days((range % 30)::int) as span, 2000 + range % 20 as year, "
                "20200101 + range % 28 as date, range % 200 as time, time '10:00' + to_minutes(range % 40) as start_time "
                "from range(400)")  # fmt: skip
    roles = roles_of(con, "t")
    assert roles.pop("span") == "identifier"  # methods take no INTERVAL
    assert set(roles.values()) == {"quasi"}
    for name, call in con.execute("select column_name, hierarchy from anon_profile('t')").fetchall():
        assert (call is None) == (name not in ("year", "date", "time"))
        if call:
            assert con.execute(f"from {call}").fetchall()


def test_identifiers_inside_lists_maps_and_json_are_found(con):
    con.execute("""create table t as select ['+49 30 12345' || i % 90, '+49 30 99887' || i % 80] as phones,
        map {'mail': 'a' || i % 90 || '@b.org'} as contacts, '{"mail": "x' || i % 90 || '@y.org"}' as extra,
        [i % 5, i % 3] as marks from range(400) t(i)""")
    found = dict(con.execute("select column_name, looks_like from anon_profile('t')").fetchall())
    assert found == {"phones": "phone", "contacts": "mail", "extra": "mail", "marks": None}
    roles = roles_of(con, "t")
    assert set(roles.values()) == {"identifier"}  # of nested columns nothing is released before they are expanded


def test_codes_for_missing_values_are_named_and_are_in_no_interval(con):
    con.execute("""create table t as select if(i % 10 = 0, 99, 20 + i % 50) as age, i % 100 as real_age,
        if(i % 20 = 0, 9999999, 20000 + i * 37 % 60000) as income, if(i % 9 = 0, '?', ['a', 'b'][1 + i % 2]) as job,
        if(i % 9 = 0, -1, i % 8) as children, if(i % 12 = 0, 9, 1 + i % 4) as edu, 1 + i % 9 as scale,
        if(i % 11 = 0, 'unknown', ['n', 's'][1 + i % 2]) as region, i - 400 as change from range(800) t(i)""")
    reasons = dict(con.execute("select column_name, reason from anon_profile('t')").fetchall())
    codes = {
        name: re.search(r"; probable codes for missing values: (\S+)\.", reason) for name, reason in reasons.items()
    }
    assert {name: found.group(1) for name, found in codes.items() if found} == {
        "age": "99", "income": "9999999", "job": "?", "children": "-1", "edu": "9", "region": "unknown",
    }  # fmt: skip
    levels = con.execute("select level0, level1 from anon_hierarchy('t', 'income') order by level0").fetchall()
    assert levels[-1] == (9999999, "(missing)")
    assert levels[0][1] != "(missing)" and len({level for _, level in levels}) >= 6
    assert "(missing)" not in {r[1] for r in con.execute("from anon_hierarchy('t', 'real_age')").fetchall()}


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (("Versichertennummer", "Geburtsjahr", "Geschlecht", "PLZ", "Diagnose", "Gehalt"), "iqqqss"),
        (("Numéro_sécurité_sociale", "année_naissance", "sexe", "code_postal", "maladie", "salaire"), "iqqqss"),
        (("ΑΜΚΑ", "Ηλικία", "Φύλο", "Τ.Κ.", "Διάγνωση", "Μισθός"), "iqqqss"),  # noqa: RUF001
        (("身份证号", "年龄", "性别", "邮政编码", "诊断", "工资"), "iqqqss"),
        (("ssn", "birth_year", "sex", "zip", "diagnosis", "salary"), "iqqqss"),
    ],
    ids=["German", "French", "Greek", "Chinese", "English"],
)
def test_names_of_several_languages_say_the_role_and_a_unique_salary_is_no_identifier(con, names, roles):
    values = ("i", "1950 + i % 50", "i % 2", "10000 + i % 90", "'d' || i % 9", "20000 + i * 31")
    columns = ", ".join(f'{value} as "{name}"' for value, name in zip(values, names, strict=True))
    con.execute(f"create table t as select {columns} from range(400) t(i)")
    assert "".join(role[0] for role in roles_of(con, "t").values()) == roles


def test_a_wide_table_is_profiled(con):
    columns = ", ".join(f"(hash(i, {k}) % {2 + k})::integer as c{k}" for k in range(150))
    con.execute(f"create table wide as select {columns}, if(i % 20 = 0, -9, i % 7) as last from range(300) t(i)")
    found = con.execute("select column_name, distinct_values, reason from anon_profile('wide')").fetchall()
    counted = con.execute("select columns(lambda c: true)::varchar from wide").df().nunique()
    assert [(name, number) for name, number, _ in found] == list(counted.items())
    assert "codes for missing values: -9." in found[-1][2]


def test_keys_of_individuals_that_repeat_are_persons_and_those_of_events_never(con):
    con.execute("create table patients as select i as patient_id, 'x' as kind from range(200) t(i)")
    con.execute(
        "create table visits as select i as visit_id, (i * i) % 200 as patient_id, i // 3 as order_no from range(600) t(i)"
    )
    con.execute("insert into visits select 600 + i, 300 + i, 400 + i from range(500) t(i)")
    roles = {
        (table, column): role
        for table in ("patients", "visits")
        for column, role in con.execute(f"select column_name, role from anon_profile('{table}')").fetchall()
    }
    assert roles["patients", "patient_id"] == "identifier"
    assert roles["visits", "patient_id"] == "person"
    assert roles["visits", "visit_id"] == roles["visits", "order_no"] == "identifier"


def test_body_weights_lists_in_texts_and_codes_of_countries_are_what_they_are(con):
    con.execute("""create table t as select round(50 + hash(i) % 400 / 7.0, 2) as wt71, 1 + hash(i, 1) % 90 / 7.0 as wt,
        ['DE;asthma', 'FR;flu', 'IT', 'DE;flu'][1 + i % 4] as code, ['DE', 'FR', 'IT', 'ES'][1 + i % 4] as nat
        from range(200) r(i)""")
    found = con.execute("select column_name, looks_like, role from anon_profile('t')").fetchall()
    assert found == [
        ("wt71", "health", "sensitive"), ("wt", "weight", "quasi"), ("code", "list", "identifier"), ("nat", None, "quasi"),
    ]  # fmt: skip
