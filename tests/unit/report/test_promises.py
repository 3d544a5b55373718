"""What a planned call promises in words."""

import pytest

from duckdb_anon.engine.records.call_text import recording
from duckdb_anon.report.promises import promises


def said(con, call: str) -> tuple[list[str], list[str]]:
    with recording(lambda _: None) as recorded:
        con.execute(f"describe from {call}")
        planned = recorded()
    return promises(planned.entry, planned.params, planned.roles.by_name())


@pytest.fixture
def con(con):
    con.execute("create table people as select 20 + i % 50 age, i % 9 wage, 'DE' country from range(300) t(i)")
    for column, role in (("age", "quasi"), ("wage", "sensitive"), ("country", "insensitive")):
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    return con


def test_each_parameter_has_its_sentence_and_what_is_not_held_is_said(con):
    holds, left = said(con, "mondrian('people', k := 12)")
    assert len(holds) == 1 and "1/12" in holds[0]
    assert "wage" in left[0] and "country" in left[1]
    holds, left = said(con, "mondrian('people', k := 5, l := 2)")
    assert len(holds) == 2 and "wage" not in left[0] and "1/2" in holds[1]


@pytest.mark.parametrize(("call", "same"), [
    ("mondrian('people', 12)", "mondrian(tbl := 'people', k := 12)"),
    ("mondrian('people', 5, 2.0)", "mondrian('people', l := 2, k := 5, diversity := 'frequency')"),
    ("muco('people', 1/20)", "muco('people', delta := 0.05, l := 2, l_except := ['structural'])"),
    ("muco('people', delta := 1/20, tables := 'linear', l := 20)", "muco('people', 0.05, tables := 'linear')"),
    ("incognito('people', 5, 2)", "incognito('people', k := 5, l := 2, diversity := 'entropy')"),
    ("anatomy('people', 3)", "anatomy('people', l := 3)"),
    ("dp_synthesize('people', 1.0, keep := [])", "dp_synthesize('people', epsilon := 1, delta := 0.000001, keep := [])"),
])  # fmt: skip
def test_a_position_a_name_and_a_default_give_the_same_sentence(con, call, same):
    assert said(con, call) == said(con, same)
    assert said(con, call)[0]


def test_l_is_a_bound_of_shares_where_diversity_is_by_frequency_alone(con):
    bound = "share of more than 1/3"
    assert bound in said(con, "mondrian('people', l := 3)")[0][0]
    for text in ("incognito('people', l := 3)", "mondrian('people', l := 3, diversity := 'distinct')",
                 "mondrian('people', l := 3, diversity := 'recursive', c := 2)"):  # fmt: skip
        assert bound not in said(con, text)[0][0]


def test_delta_is_a_risk_alone_and_a_failure_beside_an_epsilon(con):
    assert "0.05" in said(con, "muco('people', delta := 1/20)")[0][0]
    (holds,) = said(con, "dp_synthesize('people', epsilon := 1, delta := 0.00001, keep := [])")[0]
    assert "exp(1), but with a probability of 1e-05" in holds


def test_noise_that_protects_no_release_promises_nothing(con):
    assert said(con, "laplace_on_groups('people', 5, 1.0, keep := [])")[0] == []


def test_a_call_without_a_bound_promises_nothing(con):
    assert said(con, "rank_swap('people', p := 0.1)")[0] == []
