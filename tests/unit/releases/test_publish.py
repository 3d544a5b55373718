"""What publish ships beside a release, and what it refuses."""

import re
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.serve.publish import NOT_MEASURED, publish

pytestmark = pytest.mark.campaign

ROLES = "qi := ['age', 'edu'], sensitive := 'disease', keep := 'ward', hierarchies := {'edu': 'tree'}"
ORIGINAL = """
    create type ward as enum ('north', 'south', 'Dr Ann Smith');
    create table people as
    select (hash(i + 9) % 50)::int as age, ['BA', 'MA', 'PhD', 'none'][(hash(i + 77) % 4 + 1)::int] as edu,
           'd' || hash(i) % 6 as disease, ['north', 'south'][i % 2 + 1]::ward as ward, 'name ' || i as name
    from range(600) t(i);
    create table tree as
    from (values ('BA', 'univ', '*'), ('MA', 'univ', '*'), ('PhD', 'univ', '*'), ('none', 'none yet', '*'));
    comment on column people.name is 'anon: identifier';
"""


@pytest.fixture
def place(tmp_path):
    with duckdb_anon.connect(str(tmp_path / "o.duckdb")) as con:
        con.execute(ORIGINAL)
    return tmp_path


def change(place: Path, *statements: str, call: str = "") -> None:
    with duckdb_anon.connect(str(place / "o.duckdb")) as con:
        if call:
            duckdb_anon.release(con, "r", call)
        for statement in statements:
            con.execute(statement)


def published(place: Path, *allow: str) -> Path:
    publish(str(place / "o.duckdb"), str(place / "r.duckdb"), replace=True, allow=allow)
    return place / "r.duckdb"


@pytest.mark.parametrize(
    "call", ["mondrian('people', k := 5, {})", "anatomy('people', 3, {})", "slicing('people', 2, {})"]
)
def test_the_file_alone_answers_the_original_question(place, call):
    change(place, call=call.format(ROLES))
    file = published(place)
    with duckdb_anon.connect(str(place / "o.duckdb"), read_only=True) as con:
        truth = dict(con.execute("select edu, count(*) from people where age < 25 group by edu").fetchall())
        rewritten = con.execute(
            "select keys['edu'], estimate from relative_error('select edu, count(*) from people where age < 25 "
            "group by edu', 'people', 'r')"
        ).fetchall()
    with duckdb_anon.connect(str(file), read_only=True) as con:
        rows = con.execute("""select edu, estimate, low, high, confidence from
            estimate('select edu, count(*) from people where age < 25 group by edu', 'r')""").fetchall()
        assert {edu for edu, *_ in rows} == set(truth)
        assert dict((edu, e) for edu, e, *_ in rows) == pytest.approx(dict(rewritten))
        assert all(low <= truth[edu] <= high for edu, _, low, high, sure in rows if sure == 1)
        text = con.execute("select rewrite_query('select count(*) from people', 'people', 'r')").fetchone()
        assert text is not None and con.execute(text[0]).fetchone() == (600,)
        assert ("original", "people") in con.execute("select fact, name from describe_release('r')").fetchall()


ASKED = (
    "select count(*) from people", "from people", "select max(age) from people where age < 3",
    "select count(*) from people where age is null",
    "select edu, count(*) from people where edu in ('BA', 'MA') group by edu",
    "select count(*) from people join tree on edu = col0", "select 1 where exists (select 1 from people)",
    "select (select avg(age) from people)", "select count(*) from people where age is not null or edu = 'x'",
)  # fmt: skip


def test_the_originals_name_never_answers_in_silence_and_no_enum_tells_who_left(place):
    change(place, call=f"mondrian('people', k := 5, {ROLES})")
    file = published(place)
    assert b"Dr Ann" not in file.read_bytes() and b"name 5" not in file.read_bytes()
    with duckdb.connect(str(file), read_only=True) as con:
        for query in ASKED:
            with pytest.raises(duckdb.Error, match=r"people is not in this file.*estimate"):
                con.execute(query).fetchall()
        columns = con.execute("select column_name from duckdb_columns() where table_name = 'people'").fetchall()
        assert ("name",) not in columns and ("age",) in columns
        # leaves that enough records carry keep their labels
        assert {row[0] for row in con.execute("from tree").fetchall()} == {"BA", "MA", "PhD", "none"}


def test_storage_is_the_one_asked_for(place):  # and a list of places beside the release is no original
    change(
        place, "create table towns as select distinct age, edu from people", call=f"mondrian('people', k := 5, {ROLES})"
    )
    file = published(place)
    # bytes 12 to 20 of a DuckDB file are its format's version: 1.5 shells read up to 68, 2.0 writes 69 by itself
    assert 64 <= int.from_bytes(file.read_bytes()[12:20], "little") <= 68
    with pytest.raises(AnonError, match="--storage-version v77"):
        publish(str(place / "o.duckdb"), str(place / "x.duckdb"), storage_version="v77")
    assert not (place / "x.duckdb").exists()


RELEASE = f"mondrian('people', k := 5, {ROLES})"
DECLARED = "comment on table r is 'anon: release of people by mondrian(k := 5)'"


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (("create table r as from people", DECLARED), "carries.*name|name, labelled identifier"),
        (("create table r as select age, disease, name as pid from people", "comment on column r.pid is 'anon: person'",
          "comment on table r is 'anon: release'"), "pid, labelled person"),
        (("create table r as select age // 10 as decade from people",
          "comment on table r is 'anon: release of people by muco(delta := 0.2, seed := 7)'"), "contain a seed"),
        (("create table r as select age // 10 as decade from people",
          "comment on table r is 'anon: release of people by mondrian(k := 1)'"), "protects nothing"),
        (("create table r as select age // 10 as decade from people",
          "comment on table r is 'anon: release of people by rr_distort(p := {''age'': 1, ''edu'': 1.0})'"), "protects nothing"),
    ],
)  # fmt: skip
def test_what_must_not_be_shown_is_refused(place, statements, reason):
    change(place, *statements)
    with pytest.raises(AnonError, match=reason):
        published(place, "r")
    assert sorted(p.name for p in place.iterdir()) == ["o.duckdb"]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("create view v as from r; comment on view v is 'anon: release'", "is a view"),
        ("create table s as select *, 1 as row_id from r; comment on table s is 'anon: release'", "row_id"),
        ("create schema s; create table s.r as select 1 as a; comment on table s.r is 'anon: release'", "two releases"),
        ("drop table r", "no table is declared a release"),
    ],
)
def test_what_is_no_release_by_itself_is_refused(place, statement, reason):
    change(place, statement, call=RELEASE)
    with pytest.raises(AnonError, match=reason):
        published(place)
    assert sorted(p.name for p in place.iterdir()) == ["o.duckdb"]


def test_a_file_is_replaced_only_when_asked_and_an_original_that_is_not_there_is_named(place):
    change(place, call=RELEASE)
    source, target = str(place / "o.duckdb"), place / "kept.duckdb"
    target.write_text("something else")
    with pytest.raises(AnonError, match="--replace"):
        publish(source, str(target))
    assert target.read_text() == "something else"
    assert publish(source, str(target), replace=True).releases == {"r": 600}
    with pytest.raises(AnonError, match="did you mean 'people'"):
        publish(source, str(place / "x.duckdb"), ["poeple"])
    with pytest.raises(AnonError, match="--allow people"):
        published(place, "people")


@pytest.mark.parametrize("comment", ["anon: release", "anon: release of people by mondrian(k := 5)"])
def test_a_table_that_release_did_not_write_is_published_only_when_it_is_named(place, comment):
    change(place, "create table r as select age // 10 as age from people", f"comment on table r is '{comment}'")
    with pytest.raises(AnonError, match=r"r does not record the digest of its rows.*--allow r"):
        published(place)
    if comment == "anon: release":
        assert published(place, "R").exists()
    else:  # nothing supports what it claims
        with pytest.raises(AnonError, match="claims to be made by mondrian"):
            published(place, "R")


TRANSFORMED = {
    "unchanged": ("name", "{a: [name]}", "lower(name)", "upper(name) || '!'", "'patient ' || name || ', seen'", "map {name: 1}", "[name, 'x']",
                  "[name]::varchar[1]", "union_value(who := name)", "{'a': {'b': name}}", "{'a': name}::json",
                  "to_json({'a': name})::varchar", "name::blob", "if(i = 3, name, 'x')"),
    "MD5": ("md5(name)", "md5(lower(name))", "{'a': md5(name)}", "unhex(md5(name))"),
    "SHA-1": ("to_base64(unhex(sha1(name)))", "sha1(upper(name))",),
    "SHA-256": ("sha256(name)", "if(i = 17, sha256(name), 'x' || i % 3)"),
    "base64": ("to_base64(encode(name))", "map {to_base64(encode(name)): 1}"),
    "hexadecimal": ("hex(name)",), "reversed": ("reverse(name)",), "hash": ("hash(name)", "md5_number(name)"),
    "URL": ("url_encode(name)",), "initial and name": ("left(name, 9)",), "a suffix": ("right(name, 5)",),
}  # fmt: skip


@pytest.mark.parametrize(("form", "sql"), [(form, sql) for form, every in TRANSFORMED.items() for sql in every])
def test_identifiers_are_found_through_common_transformations(place, form, sql):
    name = "'surname ' || chr(65 + (i % 26)::int) || i * 7919"
    with duckdb.connect(str(place / "o.duckdb")) as con:
        con.execute(f"""update people set name = {name} from (select name as n, row_number() over () as i from people) t
            where t.n = people.name""")
        con.execute(f"""create table r as select age // 10 as decade, {sql} as code, if(i % 5 = 0, NULL, 1) as some
            from (select *, row_number() over () as i from people)""")
        con.execute("insert into r select NULL, NULL, NULL from range(40); comment on table r is 'anon: release'")
    form = "hexadecimal" if sql == "name::blob" else form
    with pytest.raises(AnonError, match=rf"column '(code|a)' of r carries 'name' of people.*\({form}\)") as refused:
        published(place, "r")
    assert "surname" not in str(refused.value)


@pytest.mark.parametrize("sql", ["pid", "md5(pid::varchar)", "pid::varchar || '/2026'"])
def test_persons_with_many_records_are_found_under_another_name(place, sql):
    with duckdb.connect(str(place / "o.duckdb")) as con:
        con.execute("create table visits as select 100000 + i * 17 // 5 as pid, i % 7 as age from range(600) t(i)")
        con.execute("comment on column visits.pid is 'anon: person'")
        con.execute(f"create table r as select age, {sql} as case_no from visits")
        con.execute("comment on table r is 'anon: release'")
    with pytest.raises(AnonError, match=r"column 'case_no' of r carries 'pid' of visits, labelled person"):
        published(place, "r")


def test_a_column_of_the_original_that_repeats_its_identifier_is_found_row_by_row(place):
    roles = "qi := ['age'], sensitive := 'disease'"
    change(place, "alter table people add column contact varchar", "update people set contact = 'mail ' || lower(name)")
    change(place, call=f"mondrian('people', k := 5, keep := ['contact'], {roles})")
    with pytest.raises(AnonError, match=r"column 'contact' of r carries 'name' of people"):
        published(place)


def test_numbers_that_agree_with_numbers_of_persons_by_chance_are_published(place):
    with duckdb_anon.connect(str(place / "o.duckdb")) as con:
        con.execute("""create table visits as select i as pid, (i * 31) % 90 as age, (i * 17) % 50 as ward,
            'd' || i % 4 as disease from range(100) t(i)""")
        con.execute("comment on column visits.pid is 'anon: person'")
        duckdb_anon.release(con, "r", "anatomy('visits', 2, qi := ['age'], sensitive := 'disease', keep := 'ward')")
    assert published(place).exists()


@pytest.mark.parametrize("tree", ["age_tree", "int_tree"])
def test_no_hierarchy_tells_a_value_that_few_records_carry(place, tree):
    with duckdb_anon.connect(str(place / "o.duckdb")) as con:
        con.execute("update people set age = 123 where name = 'name 7'")
        con.execute("create table age_tree as from anon_hierarchy('people', 'age', bins := 4)")
        con.execute("""create table int_tree as select i as leaf, i // 10 * 10 || '+' as decade, '*' as root
            from range(130) t(i)""")
        call = f"""mondrian('people', k := 8, qi := ['age', 'edu'], sensitive := 'disease',
            hierarchies := {{'age': '{tree}'}})"""
        duckdb_anon.release(con, "r", call)
    with duckdb_anon.connect(str(published(place)), read_only=True) as con:
        rows = con.execute(f"from {tree}").fetchall()
        texts = {text for row in rows for text in row}
        assert "123" not in texts and len({row[0] for row in rows}) == len(rows) >= 45
        shown = {text for (text,) in con.execute("select distinct age::varchar from r").fetchall()}
        assert shown <= texts
        for query in (
            "select count(*) from people where age between 10 and 19",
            "select avg(age) from people",
            "select age, count(*) from people group by age",
        ):
            assert con.execute(f"from estimate('{query}', 'r')").fetchall()
        estimate = con.execute("select estimate from estimate('select count(*) from people', 'r')").fetchall()
        assert estimate == [(600.0,)]


def test_no_answer_is_made_up_where_every_value_below_a_node_is_hidden(place):
    with duckdb_anon.connect(str(place / "o.duckdb")) as con:
        con.execute("alter table people add column born date")
        con.execute("update people set born = date '1950-01-01' + (hash(name) % 9000)::int")
        con.execute("create table dates as from anon_hierarchy('people', 'born', levels := ['year', 'decade'])")
        roles = "qi := ['born'], sensitive := 'disease', hierarchies := {'born': 'dates'}"
        duckdb_anon.release(con, "r", f"mondrian('people', k := 20, {roles})")
    asked = "from estimate('select count(*) from people where year(born) < 1960', 'r')"
    with duckdb_anon.connect(str(published(place)), read_only=True) as con:
        assert con.execute("select count(*) from dates where level0 not like '(rare %'").fetchall() == [(0,)]
        assert con.execute("select estimate from estimate('select count(*) from people', 'r')").fetchall() == [(600.0,)]
        with pytest.raises(duckdb.Error, match="few records carry each value below a released node"):
            con.execute(asked).fetchall()
    publish(str(place / "o.duckdb"), str(place / "r.duckdb"), replace=True, public=["Dates"])
    with duckdb_anon.connect(str(place / "r.duckdb"), read_only=True) as con:
        assert con.execute(asked).fetchall()


def test_a_query_of_values_that_a_hierarchy_hides_has_no_bounds(place):
    first = "(select min(name) from people where edu = 'PhD')"
    change(place, f"update people set edu = 'MA' where edu = 'PhD' and name <> {first}")
    change(place, call=f"mondrian('people', k := 20, {ROLES})")
    with duckdb_anon.connect(str(published(place)), read_only=True) as con:
        assert "PhD" not in str(con.execute("from tree").fetchall())
        asked = "select count(*) from people where edu = $$PhD$$"
        low, note = con.execute(f"select low, note from estimate('{asked}', 'r')").fetchall()[0]
        assert low is None and "few records carry are hidden" in note
        answer = con.execute("select low, high from estimate('select count(*) from people', 'r')").fetchall()
        assert answer == [(600, 600)]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("comment on column r.edu is 'anon: quasi hierarchy=people'", "people is named as a hierarchy and has columns"),
        ("create table names as select name, 'x' as g from people; "
         "comment on column r.edu is 'anon: quasi hierarchy=names'", "the hierarchy names holds identifiers"),
        ("create table names as select edu, name, '*' as root from people; "
         "comment on column r.edu is 'anon: quasi hierarchy=names'", "named as a hierarchy and is none"),
    ],
)  # fmt: skip
def test_a_table_of_people_is_no_hierarchy(place, statement, reason):
    change(place, statement, call=RELEASE)
    with pytest.raises(AnonError, match=reason) as refused:
        published(place)
    assert not re.search(r"name \d", str(refused.value))


def test_comments_travel_without_paths_and_other_text(place):
    change(
        place, "comment on column people.age is 'from /srv/secret/in.csv; anon: quasi'",
        "comment on column people.disease is 'ask Dr Roe'", call=RELEASE,
    )  # fmt: skip
    change(place, "comment on column r.disease is 'see /srv/secret; anon: sensitive'")
    with duckdb.connect(str(place / "o.duckdb")) as con:
        text = con.execute("select comment from duckdb_tables() where table_name = 'r'").fetchall()[0][0]
        con.execute(f"comment on table r is 'copied from /srv/secret by Roe; {text.replace(chr(39), chr(39) * 2)}'")
    with duckdb.connect(str(published(place)), read_only=True) as con:
        texts = con.execute("""select comment from duckdb_columns() union select comment from duckdb_tables()
            union select comment from duckdb_views() where not internal""").fetchall()
        comments = dict(
            con.execute("select table_name || '.' || column_name, comment from duckdb_columns()").fetchall()
        )
    assert not any("srv" in str(text) or "Roe" in str(text) for text in texts)
    assert comments["r.disease"] == "anon: sensitive" and comments["people.age"] == "anon: quasi"
    assert comments["people.disease"] is None


@pytest.mark.parametrize("text", ["seed => 42", "made with seed 42", "Seed: 7", "the seed was 12"])
def test_seeds_are_known_in_any_words(place, text):
    change(place, call=RELEASE)
    change(place, f"comment on column r.age is 'anon: quasi, {text}'")
    with pytest.raises(AnonError, match="contain a seed"):
        published(place)


@pytest.mark.parametrize("call", ["", f"anatomy('people', 3, {ROLES})"])
def test_rows_are_published_in_an_order_of_their_own(place, call):
    plain = "create table r as select age, disease from people", "comment on table r is 'anon: release'"
    change(place, *(() if call else plain), call=call)
    orders = []
    for _ in range(2):
        with duckdb.connect(str(published(place, "r")), read_only=True) as con:
            orders.append(con.execute("select age, disease from r").fetchall())
    with duckdb.connect(str(place / "o.duckdb"), read_only=True) as con:
        orders.append(con.execute("select age, disease from r").fetchall())
    assert sorted(map(str, orders[0])) == sorted(map(str, orders[1])) == sorted(map(str, orders[2]))
    assert orders[0] != orders[1] and orders[0] != orders[2] and orders[1] != orders[2]


def test_releases_of_one_original_are_published_together_only_when_it_is_said(place):
    change(place, call=RELEASE)
    with duckdb_anon.connect(str(place / "o.duckdb")) as con:
        for name in ("first", "second"):
            call = "diffgen('people', 0.5, qi := ['age'], sensitive := 'disease', bounds := {'age': [0, 120]}, domain := 'observed')"
            duckdb_anon.release(con, name, call, independent=True)
    with pytest.raises(AnonError, match=r"first, r, second are releases of people that do not continue.*--independent"):
        published(place)
    done = publish(str(place / "o.duckdb"), str(place / "r.duckdb"), independent=True)
    assert set(done.releases) == {"r", "first", "second"} and done.budgets == {"people": 1.0}
    assert done.risks == {"people": NOT_MEASURED}  # none has a key
    with duckdb.connect(str(place / "r.duckdb"), read_only=True) as con:
        assert con.execute("select count(*) from duckdb_schemas() where schema_name = 'anon'").fetchall() == [(0,)]
    with duckdb.connect(str(place / "o.duckdb")) as con:
        con.execute("drop table first; drop table second; comment on table anon.records is 'anon: release'")
    with pytest.raises(AnonError, match="records belongs to the register"):
        published(place, "records")


@pytest.mark.parametrize("register", [{}, {"register": "other"}])
def test_releases_of_the_same_records_are_releases_of_one_original(tmp_path, register):
    with duckdb_anon.connect(str(tmp_path / "o.duckdb")) as con:
        con.execute("create table people as from anon_sample('census', 300, seed := 1)")
        con.execute("create table others as from anon_sample('census', 300, seed := 2)")
        for number, name in enumerate(("people", "copy", "others")):
            con.execute("attach ':memory:' as other")  # of each release another register
            if name == "copy":
                con.execute("create table copy as from people")
            call = f"mondrian('{name}', {10 - number}, qi := ['age', 'gender', 'education'], sensitive := 'salary')"
            duckdb_anon.release(con, f"r{number}", call, independent=name == "copy", **register)
            con.execute("detach other")
    with pytest.raises(AnonError, match=r"publish: (r0, r1|r1, r0) are releases of (people|copy) that do not continue"):
        published(tmp_path)


def test_what_independent_releases_reveal_together_is_measured(tmp_path):
    with duckdb_anon.connect(str(tmp_path / "o.duckdb")) as con:
        con.execute("""create table people as select row_number() over () as id, age, gender, salary // 5000 as pay
            from anon_sample('census', 300, seed := 1)""")
        for column, role in (("id", "identifier"), ("age", "quasi"), ("gender", "quasi"), ("pay", "sensitive")):
            con.execute(f"comment on column people.{column} is 'anon: {role}'")
        for name, call in (("r1", "mondrian('people', 4)"), ("r2", "mondrian('people', 5, cut := 'median')")):
            duckdb_anon.release(con, name, call, key="id", independent=True)
        con.execute("""select max(identity) from sequence_risk('people', ['r1', 'r2'], targets := 200, seed := 1)
            where release <> 'together'""")
        (alone,) = con.fetchone()
    done = publish(str(tmp_path / "o.duckdb"), str(tmp_path / "r.duckdb"), independent=True)
    found = re.fullmatch(r"re-identify (\d+)% of the records, and name \d+% of sensitive values", done.risks["people"])
    assert found is not None and int(found[1]) > 110 * alone
