"""What each treatment does to a column, alone: keyed, consistent, exact where it says so, refused where it cannot be."""

import hmac

import duckdb
import pytest

from duckdb_anon.treatments import treatments

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def hospital(con, tmp_path):
    con.execute("""create table patients as select i as pid, 'P' || i as name, i * 1.5 as cost, 60 + i as age
        from range(40) t(i)""")
    con.execute("""create table visits as select i as visit, i % 40 as pid, date '2024-01-31' + (i * 7 % 300)::int as day,
        timestamp '2024-03-01 12:30:00' + to_hours(i) as at, '1234' || i as postcode from range(120) t(i)""")
    con.execute("comment on column visits.pid is 'anon: person'")
    (tmp_path / "key").write_text(KEY + "\n", encoding="utf-8")
    return con


def _rows(con: duckdb.DuckDBPyConnection, table: str, treatments: str, options: str = "") -> list[tuple[object, ...]]:
    return con.execute(f"from anon_treat('{table}', {{{treatments}}}{options})").fetchall()


def test_pseudonym_is_the_hmac_of_domain_and_value(hospital, tmp_path):
    call = "'pid': 'pseudonym(format := ''text'', prefix := ''P-'', domain := ''patient'')'"
    rows = _rows(hospital, "patients", call, f", key_file := '{tmp_path / 'key'}'")
    assert [row[0] for row in rows] == [
        "P-" + hmac.digest(KEY.encode(), f"patient:{i}".encode(), "sha256").hex()[:32] for i in range(40)
    ]


@pytest.mark.parametrize("form", ["uuid", "text", "integer"])
def test_pseudonyms_of_one_key_join_and_those_of_two_calls_do_not(hospital, tmp_path, form):
    treated = f"{{'pid': 'pseudonym(format := ''{form}'')'}}"
    key = f", key_file := '{tmp_path / 'key'}'"
    join = "select count(*) from anon_treat('patients', {0}{1}) join anon_treat('visits', {0}{1}) using (pid)"
    assert hospital.execute(join.format(treated, key)).fetchone() == (120,)
    assert hospital.execute(join.format(treated, "")).fetchone() == (0,)


def test_shift_moves_all_dates_of_an_individual_alike(hospital):
    moved = hospital.execute("""select o.pid, r.day - o.day, r.at - o.at from (select *, row_number() over () as n from visits) o
        join (select *, row_number() over () as n from anon_treat('visits', {'day': 'shift(60)', 'at': 'shift(60)'})) r using (n)""").fetchall()
    offsets: dict[int, set[int]] = {}
    for pid, days, span in moved:
        offsets.setdefault(pid, set()).update((days, span.days))
    assert all(len(found) == 1 for found in offsets.values())
    every = set.union(*offsets.values())
    assert len(every) > 10 and all(-60 <= days <= 60 for days in every)


def test_noise_round_top_and_mask(hospital):
    rows = _rows(
        hospital, "patients", "'cost': 'round(5)', 'age': 'top(at := 89, bottom := 65)', 'name': 'mask(keep := 1)'"
    )
    assert {row[2] % 5 for row in rows} == {0}
    assert (min(row[3] for row in rows), max(row[3] for row in rows)) == (65, 89)
    assert {row[1] for row in rows} == {"P*", "P**"}
    hospital.execute("create table many as select 100.0::double as x from range(20000)")
    mean, low, spread = hospital.execute("""select avg(x), min(x), avg(abs(x - 100))
        from anon_treat('many', {'x': 'noise(scale := 4)'})""").fetchall()[0]
    assert abs(mean - 100) < 0.25 and low < 90 and abs(spread - 4) < 0.2


def test_redact_drops_and_mask_hides(hospital):
    columns = hospital.execute("describe from anon_treat('patients', {'name': 'redact', 'pid': 'mask'})").fetchall()
    assert [column[0] for column in columns] == ["pid", "cost", "age"]
    assert ("pid", "VARCHAR") in [row[:2] for row in columns]
    assert _rows(hospital, "patients", "'pid': 'mask', 'name': 'mask(value := ''-'')'")[0][:2] == (None, "-")


def test_fake_texts_are_consistent_and_none_of_the_original(hospital):
    pytest.importorskip("faker")
    hospital.execute("insert into patients select pid + 40, name, cost, age from patients")
    rows = _rows(hospital, "patients", "'name': 'fake(''name'', locale := ''de_DE'', values := 500)'")
    assert [row[1] for row in rows[:40]] == [row[1] for row in rows[40:]]
    assert len({row[1] for row in rows}) > 30


@pytest.mark.parametrize(
    ("treated", "message"),
    [
        ("'pid': 'pseudonim'", "pseudonym"), ("'pid': 'round'", "to"), ("'name': 'round(5)'", "takes a number"),
        ("'age': 'shift'", "takes a DATE"), ("'age': 'top'", "at := "),
        ("'age': 'round(by := 5)'", "no parameter 'by'"),
        ("'age': 'mask(keep := 1, value := ''x'')'", "do not go together"), ("'nam': 'mask'", "no column 'nam'"),
        ("'pid': 'pseudonym(format := ''uuid'', prefix := ''P'')'", "prefix"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(hospital, treated, message):
    with pytest.raises(duckdb.Error, match=message):
        _rows(hospital, "patients", treated)


def test_shift_needs_the_individual_and_a_key_file_enough_bytes(hospital, tmp_path):
    hospital.execute("comment on column visits.pid is null")
    with pytest.raises(duckdb.Error, match="identifies the individual"):
        _rows(hospital, "visits", "'day': 'shift'")
    (tmp_path / "short").write_text("abc", encoding="utf-8")
    with pytest.raises(duckdb.Error, match="3 bytes"):
        _rows(hospital, "visits", "'pid': 'pseudonym'", f", key_file := '{tmp_path / 'short'}'")


def test_every_treatment_says_what_it_protects(con):
    listed = con.execute("select treatment, protects from anon_treatments()").fetchall()
    assert [name for name, _ in listed] == sorted(treatments())
    assert all(protects.endswith(".") for _, protects in listed)
