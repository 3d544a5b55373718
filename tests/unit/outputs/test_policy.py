"""The comment `anon: outputs(...)` of a table."""

import pytest

from duckdb_anon.model.errors import AnonError
from duckdb_anon.outputs.policy import Policy, policy_of


def test_the_defaults_are_those_of_acro():
    assert policy_of("f", "t", "anon: outputs()") == Policy(10, 2, 0.9, 10.0, "safe")


def test_other_text_may_stand_around_a_policy():
    comment = "staff of 2024; anon: outputs(threshold := 5, dominance := [1, 0.5], zeros := 'disclosive'), made by us"
    assert policy_of("f", "t", comment) == Policy(5, 1, 0.5, 10.0, "disclosive")


@pytest.mark.parametrize(
    ("comment", "code"),
    [
        ("", "no-policy"),
        ("anon: release", "no-policy"),
        ("anon: outputs() anon: outputs(threshold := 2)", "no-policy"),
        ("anon: outputs(treshold := 5)", "bad-argument"),
        ("anon: outputs(threshold := 1)", "bad-argument"),
        ("anon: outputs(threshold = 5)", "bad-argument"),
        ("anon: outputs(5)", "bad-argument"),
        ("anon: outputs(dominance := 0.9)", "bad-argument"),
        ("anon: outputs(dominance := [0, 0.9])", "bad-argument"),
        ("anon: outputs(p_percent := 101)", "bad-argument"),
        ("anon: outputs(zeros := 'no')", "bad-argument"),
    ],
)
def test_a_policy_that_cannot_hold_is_refused(comment, code):
    with pytest.raises(AnonError) as caught:
        policy_of("f", "t", comment)
    assert caught.value.code == code and "t" in str(caught.value)
