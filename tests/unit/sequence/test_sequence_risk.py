"""sequence_risk: the same as by brute force, and what a sequence reveals beside independent releases."""

from typing import Any

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.engine.catalog.catalog import Catalog
from duckdb_anon.engine.records.register import numbered_rows, registered
from tests.reference import sequences

pytestmark = pytest.mark.campaign

QI = ("age", "gender")


def risk(con: duckdb.DuckDBPyConnection, releases: list[str], targets: int = 10_000) -> dict[str, dict[str, float]]:
    found = con.execute(f"from sequence_risk('people', {releases}, targets := {targets}, seed := 1)")
    names = [column[0] for column in found.description or ()]
    return {row[0]: dict(zip(names, row, strict=True)) for row in found.fetchall()}


def records(con: duckdb.DuckDBPyConnection, name: str) -> dict[int, dict[str, Any]]:
    """Released row of each record."""
    (release,) = [r for r in registered(con, "memory", "people") if r.name == name]
    source = Catalog(con, "memory", "main").relation("test", "original", "people").sql
    found = con.execute(f"from {numbered_rows(con, 'memory', release, source)}")
    names = [column[0] for column in found.description or ()]
    return {row[-1]: dict(zip(names, row, strict=True)) for row in found.fetchall()}


@pytest.fixture
def few(people):
    people.execute("""create or replace table people as select person_id, age, gender, salary // 5000 as pay
        from people limit 150""")
    for column, role in (("age", "quasi"), ("gender", "quasi"), ("pay", "sensitive")):
        people.execute(f"comment on column people.{column} is 'anon: {role}'")
    return people


def release_two(con: duckdb.DuckDBPyConnection) -> None:
    for name, call in (("r1", "mondrian('people', 4)"), ("r2", "mondrian('people', 5, cut := 'median')")):
        duckdb_anon.release(con, name, call, key="person_id", independent=True)


def originals(con: duckdb.DuckDBPyConnection) -> dict[int, dict[str, Any]]:
    found = con.execute("select row_number() over () - 1, age, gender, pay from people").fetchall()
    return {n: {"age": age, "gender": gender, "pay": pay} for n, age, gender, pay in found}


def test_records_have_the_rows_that_cover_them(few):
    duckdb_anon.release(few, "r1", "mondrian('people', 4, sensitive_edges := 1)", key="person_id")
    truth, released = originals(few), records(few, "r1")
    assert set(truth) == set(released)
    for record, row in truth.items():
        assert released[record]["pay"] == row["pay"]
        assert all(sequences.covers(released[record][name], row[name]) for name in QI)


def test_boxes_are_intersected_as_by_brute_force(few):
    release_two(few)
    truth, found = originals(few), risk(few, ["r1", "r2"])
    tables = [records(few, name) for name in ("r1", "r2")]
    for name, shown in (("r1", tables[:1]), ("r2", tables[1:]), ("together", tables)):
        chances = [sequences.identity(truth, shown, QI, by_size=by_size) for by_size in (False, True)]
        assert found[name]["identity"] == pytest.approx(max(chances))
    assert found["together"]["identity"] > 1.1 * max(found["r1"]["identity"], found["r2"]["identity"])


def test_buckets_are_multiplied_as_by_brute_force(few):
    for name, least in (("r1", 2), ("r2", 3)):
        duckdb_anon.release(few, name, f"anatomy('people', {least})", key="person_id", independent=True)
    truth, found = originals(few), risk(few, ["r1", "r2"])
    tables = [records(few, name) for name in ("r1", "r2")]
    for name, shown in (("r1", tables[:1]), ("r2", tables[1:]), ("together", tables)):
        assert found[name]["attribute"] == pytest.approx(sequences.attribute(truth, shown, QI, "pay"))
    assert found["together"]["attribute"] > found["r1"]["attribute"] + 0.1
    with pytest.raises(duckdb_anon.AnonError, match=r"those there are re-identify \d+% of the records, and name \d+%"):
        duckdb_anon.release(few, "r3", "anatomy('people', 2)")
    assert found["together"]["attribute_named"] > 0.1 and found["r1"]["attribute_named"] < 0.05


@pytest.mark.parametrize("call", ["mondrian('people', 10)", "anatomy('people', 4)", "muco('people', 0.1)"])
def test_a_sequence_reveals_what_its_first_release_does(people, call):
    people.execute("create table all_people as from people union all from pool")
    people.execute("delete from people where person_id > 450")
    for month in range(3):
        if month:
            people.execute(f"""insert into people from pool
                where person_id > {900 + 100 * month} and person_id <= {1000 + 100 * month}""")
            people.execute(f"delete from people where hash(person_id, {month}) % 100 = 0")
        duckdb_anon.release(people, f"s{month}", call, key="person_id", previous=f"s{month - 1}" if month else None)
        duckdb_anon.release(people, f"i{month}", call, key="person_id", independent=True)
    sequence = risk(people, [f"s{month}" for month in range(3)])
    apart = risk(people, [f"i{month}" for month in range(3)])
    for figure in ("attribute",) if "anatomy" in call else ("identity", "attribute"):  # anatomy bounds no identity
        first = sequence["s0"]
        allowed = 0.01 + first[f"{figure}_high"] - first[figure]
        assert sequence["together"][figure] <= first[figure] + allowed
    gained = [apart["together"][figure] - sequence["together"][figure] for figure in ("identity", "attribute")]
    assert max(gained) > 0.05


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("['r9']", "releases has 'r9', which the register does not list among those of people .did you mean 'r1'"),
        ("['r1'], key := 'age'", "key := 'age' is not that of r1. Allowed: 'person_id'"),
        ("['plain']", "plain was made without key"),
    ],
)
def test_releases_that_cannot_be_followed_are_refused(people, arguments, reason):
    duckdb_anon.release(people, "r1", "mondrian('people', 10)", key="person_id")
    duckdb_anon.release(people, "plain", "mondrian('people', 10)", independent=True)
    with pytest.raises(duckdb.Error, match=f"sequence_risk: {reason}"):
        people.execute(f"from sequence_risk('people', {arguments})")


def test_individuals_with_several_records_are_found_by_any_of_them(few):
    few.execute("comment on column people.person_id is 'anon: person'")
    release_two(few)
    single = risk(few, ["r1", "r2"])
    few.execute("drop table r1; drop table r2; delete from anon.releases; delete from anon.records")
    few.execute("insert into people select * replace (age + 7 as age, pay + 1 as pay) from people")
    release_two(few)
    several = risk(few, ["r1", "r2"])
    assert several["together"]["targets"] == single["together"]["targets"] == 150
    # two known records of each individual tell individuals apart better than one
    assert several["together"]["identity"] > single["together"]["identity"] > single["r1"]["identity"]


def test_lists_of_individuals_are_followed(few):
    few.execute("insert into people select * replace (pay + 1 as pay) from people where person_id % 3 = 0")
    few.execute("create table pays as select i::varchar as leaf, i // 4 || 's', 'any' from range(200) t(i)")
    few.execute("comment on column people.person_id is 'anon: person'")
    few.execute("comment on column people.pay is 'anon: sensitive hierarchy=pays'")
    call = "one_to_m_generalize('people', 4, 1)"
    # pays of so few values are some of the numbers of individuals, by chance
    few.execute("update people set person_id = person_id + 1000")
    duckdb_anon.release(few, "r1", call, key="person_id")
    few.execute(f"create table linked as from {call[:-1]}, row_id := true)")
    (single,) = few.execute("""select identity, targets
        from linkage_risk('people', 'linked', attackers := ['nearest']) where attacker = 'nearest'""").fetchall()
    assert (risk(few, ["r1"])["r1"]["identity"], 150) == pytest.approx(single)
    few.execute("insert into people select 2000 + person_id, age, gender, pay from people where person_id <= 1040")
    duckdb_anon.release(few, "r2", call, previous="r1")
    found = risk(few, ["r1", "r2"])
    assert found["r1"]["targets"] == 150 and found["together"]["targets"] == 190
    # the 40 new individuals may all be found, the others no more often than before
    assert found["together"]["identity"] * 190 <= found["r1"]["identity"] * 150 + 40


def test_compare_shows_what_registered_releases_reveal_together(few):
    release_two(few)
    few.execute("create table other as from mondrian('people', 3)")
    asked = "select release, identity, attribute from compare('people', {}, n := 5, targets := 500, seed := 1)"
    found = {row[0]: row[1:] for row in few.execute(asked.format(["r1", "r2", "other"])).fetchall()}
    assert list(found) == ["r1", "r2", "other", "together"]
    together = risk(few, ["r1", "r2"], 500)["together"]
    assert found["together"] == pytest.approx((together["identity"], together["attribute"]))
    assert [row[0] for row in few.execute(asked.format(["r1", "other"])).fetchall()] == ["r1", "other"]
