"""Reading delta, drawing from random output tables and checking them."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables.output_tables import Delta, cover
from duckdb_anon.model.errors import RequirementError
from tests.reference.cover_lp import ordered


@pytest.mark.parametrize(
    ("given", "value", "records"),
    [
        (0.2, 1 / 5, 5), (0.16666666666, 1 / 6, 6), (Fraction(1, 7), 1 / 7, 7), (Decimal("0.1"), 1 / 10, 10),
        (0.3, 0.3, 4), (0.37, 0.37, 3), (Fraction(2, 5), 0.4, 3), (1, 1.0, 1),
    ],
)  # fmt: skip
def test_reciprocals_of_whole_numbers_are_recognised(given, value, records):
    read = Delta.of(given)
    assert (read.value, read.smallest_group) == (value, records)


DRAWS = 4000


@pytest.fixture
def tables():
    values = np.random.default_rng(0).integers(0, 12, 60)
    return cover(ordered(values), np.repeat([0, 1, 2], [10, 20, 30]), 0.2)


def test_draws_come_at_the_frequencies_of_the_table(tables):
    rng = np.random.default_rng(1)
    classes = tables.classes
    seen = np.zeros((len(classes.code), tables.attribute.domain))
    for _ in range(DRAWS):
        np.add.at(seen, (classes.class_of_row, tables.draw(rng)), 1.0)
    expected = np.zeros_like(seen)
    expected[tables.row, classes.code[tables.column]] = tables.probability
    tries = DRAWS * classes.count[:, None]
    error = np.abs(seen / tries - expected)
    assert (error <= 5 * np.sqrt(expected * (1 - expected) / tries) + 1e-9).all()


def test_reordering_rows_of_different_values_reorders_the_draw():
    values, order = np.arange(40.0), np.random.default_rng(4).permutation(40)
    group = np.repeat([0, 1], 20)
    straight = cover(ordered(values), group, 0.2).draw(np.random.default_rng(5))
    shuffled = cover(ordered(values[order]), group[order], 0.2).draw(np.random.default_rng(5))
    assert (shuffled == straight[order]).all()


def test_a_table_beyond_delta_is_refused_and_never_drawn_from(tables):
    tables.verify(Delta.of(0.2))
    with pytest.raises(RequirementError, match=r"attain delta 0\.2"):
        tables.verify(Delta.of(0.19))


def test_a_row_that_does_not_sum_to_one_is_refused(tables):
    broken = replace(tables, probability=tables.probability * 0.99)
    with pytest.raises(RequirementError, match="sum to 1"):
        broken.verify(Delta.of(0.2))
