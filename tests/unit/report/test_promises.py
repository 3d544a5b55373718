"""What a call promises in words."""

from duckdb_anon.report.promises import promises

ROLES = {"age": "quasi", "wage": "sensitive", "country": "insensitive", "note": ""}


def test_each_parameter_has_its_sentence_and_what_is_not_held_is_said():
    held, left = promises("mondrian('people', k := 12)", ROLES)
    assert len(held) == 1 and "1/12" in held[0]
    assert "wage" in left[0] and "country" in left[1]
    held, left = promises("mondrian('people', k := 5, l := 2)", ROLES)
    assert len(held) == 2 and "wage" not in left[0]


def test_delta_is_a_risk_alone_and_a_failure_beside_an_epsilon():
    assert "0.05" in promises("muco('people', delta := 1/20)", ROLES)[0][0]
    (held,) = promises("dp_synthesize('people', epsilon := 1.5, delta := 0.00001)", ROLES)[0]
    assert "exp(1.5)" in held


def test_a_call_without_a_bound_promises_nothing():
    assert promises("rank_swap('people', p := 0.1)", ROLES)[0] == []
