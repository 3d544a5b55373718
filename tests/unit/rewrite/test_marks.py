"""Rows that the spread of records decides, not the release, are marked; an answer that loses all its rows says why."""

import warnings

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.answering.original_names import Answering, RewriteQuery
from duckdb_anon.rewrite.marks import CLOSE, PICKED
from tests.reference.seeded import seeded_release

ROLES = "qi := ['age', 'sex', 'hours'], sensitive := 'pay'"
TOP = "select hours, count(*) as n from p group by hours order by n desc limit 3"


@pytest.fixture(scope="module")
def con():
    """Most hours are 40; levels hides them, boxes shows some of them."""
    with duckdb_anon.connect() as con:
        con.execute(
            "create table p as select 20 + i % 60 as age, ['f', 'm'][1 + i % 2] as sex, "
            "case when i % 3 = 0 then 1 + i // 3 % 60 else 40 end as hours, 100 * (i % 7) as pay from range(600) as r(i)"
        )
        for name, call in {
            "boxes": f"mondrian('p', 10, {ROLES}, sensitive_edges := 1, seed := 1)",
            "levels": f"incognito('p', 100, {ROLES}, seed := 1)",
            "rr": f"rr_distort('p', p := 0.6, {ROLES}, seed := 1)",
        }.items():
            seeded_release(con, name, call, independent=True)
        yield con


def notes(con: duckdb.DuckDBPyConnection, query: str, release: str) -> list[str]:
    call = f"select coalesce(note, '') from estimate($1, '{release}', original := 'p', {ROLES})"
    return [note for (note,) in con.execute(call, [query]).fetchall()]


def test_groups_that_another_may_replace_are_marked(con):
    assert all(CLOSE in note for note in notes(con, TOP, "levels"))
    first, *others = notes(con, TOP, "rr")
    assert CLOSE not in first and all(CLOSE in note for note in others)
    unlimited = notes(con, TOP.partition(" limit")[0], "rr")
    assert len(unlimited) > 3 and not any(CLOSE in note for note in unlimited)


def test_groups_of_exact_counts_are_not_marked(con):
    exact = "select pay, count(*) as n from p group by pay order by n desc limit 2"
    assert notes(con, exact, "boxes") == ["", ""]


def test_keys_that_the_release_shows_as_cells_are_marked_unless_a_record_is_surely_there(con):
    distinct = notes(con, "select distinct hours from p", "levels")
    assert distinct and all("groups by hours are estimated" in note for note in distinct)
    call = f"select low > 0, note from estimate($1, 'boxes', original := 'p', {ROLES})"
    found = con.execute(call, ["select age, count(*) as n from p group by age"]).fetchall()
    assert {sure for sure, _ in found} == {True, False}
    assert all(sure == ("groups by age" not in (note or "")) for sure, note in found)
    assert not any("groups by" in note for note in notes(con, "select sex, avg(pay) from p group by sex", "boxes"))


def test_sqlalchemy_warns_of_rows_that_are_picked_by_estimates(con):
    answering = Answering({"p": "levels"})
    with pytest.warns(UserWarning) as found:
        answering.rewritten(TOP, (), RewriteQuery(con))
    assert PICKED in [str(warning.message) for warning in found]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answering.rewritten("select count(*) from p", (), RewriteQuery(con))


def test_an_imputed_answer_that_loses_all_rows_says_why(con):
    query = "select age, hours, sex, pay, count(distinct age) as n from p where hours <> 40 group by all"
    with pytest.raises(duckdb.Error, match="which groups exist"):
        notes(con, query, "levels")
    assert notes(con, query.replace("hours <> 40", "age > 900"), "levels") == []
