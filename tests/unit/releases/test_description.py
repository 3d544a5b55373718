"""The text of a release's comments is written and read back without loss."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.model.release_comment import (
    Description,
    Label,
    attributes_comment,
    field_comments,
    read_description,
    table_name,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda n: n not in ("seed", "row_id"))


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_every_argument_is_read_as_it_was_written(parameters):
    said = Description("people", "muco", parameters, "2026-11-22", "0.2.0")
    assert read_description(f"our extract; {said.comment()}; ask Ann") == said


@given(st.dictionaries(st.text(min_size=1, max_size=6).filter(lambda n: n.strip()), NAMES, min_size=1, max_size=3))
def test_attributes_of_a_slice_keep_their_names(trees):
    labels = {name: Label("quasi", hierarchy=tree) for name, tree in trees.items()}
    assert field_comments(attributes_comment(labels)) == {name: label.comment() for name, label in labels.items()}


@pytest.mark.parametrize(
    ("given_table", "said"),
    [
        ("people", "people"), ('main."my people"', 'main."my people"'), ("my people", '"my people"'),
        ("'/home/ann/people.parquet'", '"people.parquet"'), ("/home/ann/people.parquet", '"people.parquet"'),
        ("/home/ann/people/**/*.parquet", '"people/"'), ("(SELECT * FROM people WHERE name <> 'Ann')", "a query"),
    ],
)  # fmt: skip
def test_neither_folders_nor_queries_travel(given_table, said):
    assert table_name(given_table) == said
    again = read_description(Description(said, "muco", {}, "2026-11-22", "1").comment())
    assert again is not None and again.original == said and again.date == "2026-11-22"


def test_a_seed_is_never_written():
    assert "seed" not in Description("p", "muco", {"delta": Decimal("0.20"), "seed": 7, "row_id": True}).comment()


def test_numbers_are_short():
    assert Description("p", "m", {"a": Decimal("0.20"), "b": Fraction(1, 5), "c": Decimal("30"), "d": 1e-7}).call == (
        "m(a := 0.2, b := 0.2, c := 30, d := 1e-07)"
    )


def test_comments_written_by_hand_are_read_as_far_as_they_go():
    said = read_description("anon: release")
    assert said == Description()
    assert read_description("anon: release of people") == Description("people")
    assert read_description("anon: release of people by magic(").method == ""  # type: ignore[union-attr]
    assert read_description("anon: quasi") is None
    assert read_description(None) is None
