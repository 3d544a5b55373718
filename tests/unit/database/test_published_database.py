"""The tables of a released database are published by their digests and signatures, all of them, and as they were made."""

import re
import shutil

import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.engine.records.release_seal import KEY, PUBLIC_KEY, make_keys
from duckdb_anon.serve.publish import publish

DIGEST = "select digest from anon_register() where name = 'release.{}'"


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """A file with two tables and their release, which is signed, and the public key beside it."""
    pytest.importorskip("cryptography")
    folder = tmp_path_factory.mktemp("hospital")
    make_keys(folder / "key")
    with duckdb_anon.connect(str(folder / "o.duckdb")) as con, pytest.MonkeyPatch.context() as patch:
        con.execute("""
            create table patients as select range * 7919 + 13 as id, 'Name ' || range as name, 30 + range % 3 as age,
              range % 2 as sex from range(90);
            create table visits as select id as pid, 'w' || (id % 2) as ward, 'd' || (id % 5) as disease from patients""")
        for column, role in {"patients.name": "identifier", "patients.age": "quasi", "patients.sex": "quasi categorical",
                             "visits.ward": "quasi", "visits.disease": "sensitive"}.items():  # fmt: skip
            con.execute(f"comment on column {column} is 'anon: {role}'")
        patch.setenv(KEY, str(folder / "key"))
        duckdb_anon.release_database(
            con, ["patients", "visits"], individuals="patients", key="id", keys={"visits.pid": "patients.id"}, k=3
        )
    return folder


@pytest.fixture
def copy(hospital, tmp_path, monkeypatch):
    """A copy of the folder, with the public key set."""
    monkeypatch.setenv(PUBLIC_KEY, str(hospital / "key.pub"))
    shutil.copy(hospital / "o.duckdb", tmp_path)
    return tmp_path


def published(folder, *statements, allow=()):
    with duckdb_anon.connect(str(folder / "o.duckdb")) as con:
        for statement in statements:
            con.execute(statement)
    return publish(str(folder / "o.duckdb"), str(folder / "r.duckdb"), replace=True, allow=allow)


def test_a_released_database_is_published_whole(copy, monkeypatch):
    done = published(copy)
    assert set(done.releases) == {"patients", "visits"} and done.risks == {}
    with duckdb_anon.connect(str(copy / "r.duckdb"), read_only=True) as con:
        for table in ("patients", "visits"):
            holds = dict(con.execute(f"select \"check\", holds from verify_release('{table}')").fetchall())
            assert holds == {"rows": True, "description": True, "signature": True, "k": None}
        assert con.execute("select count(*) from patients join visits on id = pid").fetchone() == (90,)
        (said,) = con.execute("select value from describe_release('visits') where fact = 'signature'").fetchone()
        assert said == "holds"
    with pytest.raises(AnonError, match=r"patients was released together with visits, which is missing"):
        published(copy, "drop table release.visits")
    monkeypatch.delenv(PUBLIC_KEY)
    assert published(copy, "create table release.visits as from visits", "comment on table release.visits is "
                     "'anon: release'", "alter table release.visits drop pid", allow=["visits"])  # fmt: skip


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ("insert into release.visits from release.visits limit 1", "visits has other rows than its description"),
        ("update release.visits set disease = 'd1'", "visits has other rows than its description"),
        ("update release.patients set age = {'lower': age.lower, 'upper': age.upper + 1}", "patients has other rows"),
        ("comment on column release.visits.disease is 'anon: insensitive'", "visits has a signature that does not hold"),
    ],
)  # fmt: skip
def test_edited_tables_are_refused_whoever_vouches_for_them(copy, monkeypatch, edit, reason):
    monkeypatch.delenv(PUBLIC_KEY)
    for allow in ((), ("patients", "visits")):
        with pytest.raises(AnonError, match=reason):
            published(copy, edit, allow=allow)


@pytest.mark.parametrize("cut", [r" signed .*", r".{10}$", r"k := 3", r"$", r"^anon"])
def test_a_signature_that_is_missing_or_cut_is_a_failure_at_every_door(copy, monkeypatch, cut):
    with duckdb_anon.connect(str(copy / "o.duckdb")) as con:
        (comment,) = con.execute("select comment from duckdb_tables() where schema_name = 'release' and "
                                 "table_name = 'visits'").fetchone()  # fmt: skip
        changed = re.sub(cut, {"k := 3": "k := 30", "$": "; x", "^anon": "ours, anon"}.get(cut, ""), comment, count=1)
        con.execute(f"comment on table release.visits is {duckdb_anon.engine.sql_quoting.literal(changed)}")
        (holds,) = con.execute(
            "select holds from verify_release('release.visits') where \"check\" = 'signature'"
        ).fetchone()
        assert holds is False
        with pytest.raises(AnonError) as caught:
            duckdb_anon.write_parquet(con, "release.visits", str(copy / "v.parquet"), allow=True)
        assert caught.value.code == "signature"
    with pytest.raises(AnonError) as caught:
        published(copy, allow=["visits"])
    assert caught.value.code == "signature"


def test_releases_of_the_database_and_of_its_tables_add_up(copy, monkeypatch):
    monkeypatch.delenv(PUBLIC_KEY)
    with duckdb_anon.connect(str(copy / "o.duckdb")) as con:
        duckdb_anon.release(con, "alone", "mondrian('patients', 3)", independent=True)
    with pytest.raises(AnonError, match=r"publish: alone, patients are releases of patients that do not continue"):
        published(copy)


def test_no_bounds_come_from_tables_that_lack_rows(copy):
    con = duckdb_anon.connect(str(copy / "o.duckdb"))
    answer = "from estimate('select count(*) from patients where age < 40', 'release.patients', original := 'patients'"
    ((low, high, note),) = con.execute(f"select low, high, note from ({answer}, bounds := 'sure'))").fetchall()
    assert (low, high) == (None, None) and "lacks the rows" in note
