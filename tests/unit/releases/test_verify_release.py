"""A release that was changed, or that claims what its rows do not keep, is found."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.cli import main
from duckdb_anon.engine.catalog.column_roles import role_of
from duckdb_anon.engine.records.release_digest import release_digest, row_checksum
from duckdb_anon.engine.records.release_seal import seal_of
from duckdb_anon.model.release_comment import Description
from duckdb_anon.serve.publish import publish
from duckdb_anon.serve.server import Analyst

pytestmark = pytest.mark.campaign

ROLES = "qi := ['age', 'edu'], sensitive := 'disease'"


@pytest.fixture
def people(tmp_path):
    with duckdb_anon.connect(str(tmp_path / "o.duckdb")) as con:
        con.execute("""create table people as select (hash(i, 1) % 90)::int as age, ['BA', 'MA', 'Ph''D', NULL][1 + (hash(i, 2) % 4)::int]
            as edu, 'd' || hash(i, 3) % 12 as disease from range(400) t(i)""")
    return tmp_path / "o.duckdb"


def verdicts(con: duckdb.DuckDBPyConnection) -> dict[str, bool | None]:
    return dict(con.execute("""select "check", holds from verify_release('r')""").fetchall())


def forge(con: duckdb.DuckDBPyConnection, method: str, parameters: dict[str, float]) -> None:
    """A description of table r with digest and seal, as nobody but release() writes it."""
    names = dict(con.execute("select column_name, comment from duckdb_columns() where table_name = 'r'").fetchall())
    proofs = (row_checksum(con, "r"), release_digest(con, "r"))
    said = Description("people", method, parameters, "2026-11-22", "0.3.0", False, False, *proofs)
    seal = seal_of(said, names)
    con.execute(f"comment on table r is $${said.comment()} seal {seal}$$")
    assert all(role_of(text) for text in names.values())


CALLS = {
    f"mondrian('people', k := 5, l := 2, t := 0.7, {ROLES})": {"k": True, "l": True, "t": True},
    f"incognito('people', k := 5, l := 2, {ROLES})": {"k": True, "l": True},
    f"anatomy('people', 3, {ROLES})": {"l": True},
    f"slicing('people', 2, {ROLES})": {"l": True},
    f"microaggregate('people', 5, {ROLES})": {"k": True},
    f"suppress('people', 3, {ROLES})": {"k": True},
    f"muco('people', 0.2, {ROLES})": {"delta": None},
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_release_keeps_what_it_promises_until_it_is_changed(people, call):
    with duckdb_anon.connect(str(people)) as con:
        duckdb_anon.release(con, "r", call)
        assert verdicts(con) == {"rows": True, "description": True, "signature": None, **CALLS[call]}
        said = con.execute("select comment from duckdb_tables() where table_name = 'r'").fetchall()[0][0]
        for old, new in (("of people", "of others"), (" := ", " := 1")):
            con.execute(f"comment on table r is $${said.replace(old, new)}$$")
            assert verdicts(con)["description"] is False and verdicts(con)["rows"] is True
        con.execute(f"comment on table r is $${said}$$; insert into r by name select * from r limit 1")
        assert verdicts(con)["rows"] is False
    with pytest.raises(AnonError, match="r has other rows than its description"):
        publish(str(people), str(people.with_name("p.duckdb")))


@pytest.mark.parametrize("diversity", ["frequency", "distinct", "entropy"])
def test_lists_of_individuals_keep_k_and_l_until_they_are_changed(people, diversity):
    with duckdb_anon.connect(str(people)) as con:
        con.execute("""create table visits as select i as pid, * from people, range(400) t(i)
            where hash(age, edu, i) % 150 = 0""")
        con.execute("create or replace table visits as select rowid // 2 as pid, * exclude (pid) from visits")
        con.execute("""create table ills as select 'd' || i as leaf, i // 4 || 's' as some, '*' as top
            from range(12) t(i)""")
        roles = f"{ROLES}, person := 'pid', hierarchies := {{'disease': 'ills'}}, changing := 'first'"
        duckdb_anon.release(con, "r", f"one_to_m_generalize('visits', 4, 2, diversity := '{diversity}', {roles})")
        assert (verdicts(con)["k"], verdicts(con)["l"]) == (True, True)
        con.execute("update r set disease = ['d1', 'd5', 'd9'] where rowid = 0")
        assert verdicts(con)["k"] is False
        con.execute("update r set disease = ['d1']")
        assert (verdicts(con)["k"], verdicts(con)["l"]) == (True, False)


def test_a_role_that_was_changed_is_a_change_of_the_description(people):
    with duckdb_anon.connect(str(people)) as con:
        duckdb_anon.release(con, "r", f"mondrian('people', k := 5, {ROLES})")
        con.execute("comment on column r.edu is 'anon: insensitive'")
        assert verdicts(con)["description"] is False
    with pytest.raises(AnonError, match="r has another description than release"):
        publish(str(people), str(people.with_name("p.duckdb")))


@pytest.mark.parametrize(
    ("method", "parameters", "reason"),
    [
        ("mondrian", {"k": 50}, "unique records of people stand unchanged"),
        ("anatomy", {"l": 3}, "unique records of people stand unchanged"),
        ("rmr", {"k": 10}, "unique records of people stand unchanged"),
        ("muco", {"delta": 0.9}, "unique records of people stand unchanged"),
        ("rr_distort", {"l": 4}, "unique records of people stand unchanged"),
        ("diffgen", {"epsilon": 1.0}, "unique records of people stand unchanged"),
        ("laplace_on_groups", {"epsilon": 1.0}, "unique records of people stand unchanged"),
    ],
)
def test_a_copy_is_refused_whatever_it_claims(people, method, parameters, reason):
    with duckdb_anon.connect(str(people)) as con:
        con.execute("create table r as from people; comment on column r.age is 'anon: quasi'")
        con.execute("comment on column r.edu is 'anon: quasi'; comment on column r.disease is 'anon: sensitive'")
        forge(con, method, parameters)
        assert verdicts(con)["description"] is True
    for allow in ((), ("r",)):
        with pytest.raises(AnonError, match=reason):
            publish(str(people), str(people.with_name("p.duckdb")), allow=allow)


def test_a_muco_release_is_no_copy(people):
    with duckdb_anon.connect(str(people)) as con:
        duckdb_anon.release(con, "r", f"muco('people', 0.5, {ROLES})")
    assert publish(str(people), str(people.with_name("p.duckdb"))).releases == {"r": 400}


def test_a_signature_shows_who_made_a_release(people, tmp_path, monkeypatch, capsys):
    pytest.importorskip("cryptography")
    mine, other = tmp_path / "mine.key", tmp_path / "other.key"
    assert main(["keygen", str(mine)]) == main(["keygen", str(other)]) == 0
    assert mine.stat().st_mode & 0o777 == 0o600
    assert main(["keygen", str(mine)]) == 1
    monkeypatch.setenv("DUCKDB_ANON_KEY", str(mine))
    with duckdb_anon.connect(str(people)) as con:
        said = duckdb_anon.release(con, "r", f"mondrian('people', k := 5, {ROLES})")
        file = str(tmp_path / "r.parquet")
        duckdb_anon.write_parquet(con, "r", file)
        for key, holds in ((mine, True), (other, False)):
            monkeypatch.setenv("DUCKDB_ANON_PUBLIC_KEY", f"{key}.pub")
            assert verdicts(con)["signature"] is holds
            found = con.execute(f"select value from describe_release('{file}') where fact = 'signature'").fetchall()
            assert found == [("holds" if holds else "does not hold",)]
    with pytest.raises(AnonError, match="r has a signature that does not hold"):
        publish(str(people), str(tmp_path / "p.duckdb"))
    monkeypatch.delenv("DUCKDB_ANON_PUBLIC_KEY")
    assert publish(str(people), str(tmp_path / "p.duckdb")).releases == {"r": 400}
    with duckdb_anon.connect(str(people)) as con:
        con.execute(f"comment on table r is $${said[:-1] + ('0' if said[-1] != '0' else '1')}$$")
        assert verdicts(con)["signature"] is False
        mine.chmod(0o644)
        with pytest.raises(AnonError, match="can be read by others"):
            duckdb_anon.release(con, "s", f"mondrian('people', k := 5, {ROLES})", independent=True)
    with duckdb_anon.connect(str(tmp_path / "p.duckdb"), read_only=True) as con:
        assert verdicts(con) == {"rows": True, "description": True, "signature": True, "k": True}


def test_while_a_public_key_is_named_every_door_refuses_what_its_owner_has_not_signed(people, tmp_path, monkeypatch):
    pytest.importorskip("cryptography")
    assert main(["keygen", str(tmp_path / "mine.key")]) == 0
    monkeypatch.setenv("DUCKDB_ANON_KEY", str(tmp_path / "mine.key"))
    monkeypatch.setenv("DUCKDB_ANON_PUBLIC_KEY", str(tmp_path / "mine.key.pub"))
    call, served = f"mondrian('people', k := 5, {ROLES})", tmp_path / "served.duckdb"
    with duckdb_anon.connect(str(people)) as con:
        said = duckdb_anon.release(con, "r", call)
    publish(str(people), str(served))
    Analyst(str(served)).close()
    proof = said.index(" signed ")
    for comment in (said[:proof], said[:-1], said + " by all", "we think: " + said, "anon: release"):
        with duckdb_anon.connect(str(people)) as con:
            con.execute(f"comment on table r is $${comment}$$")
            assert verdicts(con)["signature"] is False, comment
            found = con.execute("select value from describe_release('r') where fact = 'signature'").fetchall()
            assert found in ([("missing",)], [("does not hold",)])
            with pytest.raises(AnonError) as refused:
                duckdb_anon.write_parquet(con, "r", str(tmp_path / "r.parquet"), allow=True)
            assert refused.value.code == "signature"
        with pytest.raises(AnonError) as refused:
            publish(str(people), str(tmp_path / "p.duckdb"), allow=["r"])
        assert refused.value.code == "signature"
    monkeypatch.delenv("DUCKDB_ANON_KEY")
    with duckdb_anon.connect(str(people)) as con:
        with pytest.raises(AnonError) as refused:
            duckdb_anon.release(con, str(tmp_path / "s.parquet"), call, independent=True)
        assert refused.value.code == "signature"
    with duckdb.connect(str(served)) as con:
        con.execute("insert into r select * from r limit 1")
    with pytest.raises(AnonError) as refused:
        Analyst(str(served))
    assert refused.value.code == "signature"
