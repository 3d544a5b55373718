"""The last step: no record is released with all of its values unchanged."""

import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables.min_changed import randomize_unchanged
from duckdb_anon.kernels.random_output_tables.output_tables import cover
from tests.reference.cover_lp import in_tree, nominal, ordered

ROWS = 400


@pytest.fixture
def covers():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 20)
    attributes = (
        ordered(rng.integers(0, 8, ROWS) + group, "age"), nominal(rng.integers(0, 3, ROWS), "sex"),
        in_tree(rng.integers(0, 14, ROWS), [3, 1, 5, 2, 3], "place"), ordered(group % 5, "year"),
    )  # fmt: skip
    return [cover(a, group, 0.2) for a in attributes]


def changes(covers, published):
    return sum((codes != c.attribute.codes).astype(int) for codes, c in zip(published, covers, strict=True))


def originals(covers):
    return [c.attribute.codes for c in covers]


def test_values_stay_inside_the_group(covers):
    published, _ = randomize_unchanged(covers, originals(covers), 1, np.random.default_rng(2))
    for codes, tables in zip(published, covers, strict=True):
        pairs = set(zip(tables.classes.group.tolist(), tables.classes.code.tolist(), strict=True))
        assert set(zip(tables.classes.group_of_row.tolist(), codes.tolist(), strict=True)) <= pairs


def test_records_changed_by_their_draw_are_left_alone_by_the_redraw(covers):
    drawn = [c.draw(np.random.default_rng(3)) for c in covers]
    published, _ = randomize_unchanged(covers, drawn, 1, np.random.default_rng(4))
    changed = changes(covers, drawn) > 0
    for before, after in zip(drawn, published, strict=True):
        assert (before == after)[changed].all()


def test_a_fraction_asks_for_one_more_change_of_that_share_of_records(covers):
    published, _ = randomize_unchanged(covers, originals(covers), 1.25, np.random.default_rng(6))
    counts = np.bincount(changes(covers, published))
    assert counts[0] == 0
    assert counts[2] == pytest.approx(ROWS / 4, abs=45)


def test_an_attribute_is_picked_by_its_relative_spread_and_the_share_of_other_values():
    group = np.zeros(6000, dtype=np.int64)
    wide, narrow = np.tile([0, 9], 3000), np.tile([0, 1, 1], 2000)
    attributes = [ordered(np.append(wide, [0, 9]), "wide"), ordered(np.append(narrow, [0, 9]), "narrow")]
    tables = [cover(a, np.append(group, [1, 1]), 0.5) for a in attributes]
    published, _ = randomize_unchanged(tables, originals(tables), 1, np.random.default_rng(7))
    moved = published[0][:6000] != attributes[0].codes[:6000]
    # Spreads 9/9 and 1/9 (times values - 1 over values of the table: 1/2 and 2/3); other values 1/2, 2/3 or 1/3.
    for own, others in ((0, 2 / 3), (1, 1 / 3)):
        odds = np.array([0.5 * 0.5, 1 / 9 * 2 / 3 * others])
        assert moved[narrow == own].mean() == pytest.approx(odds[0] / odds.sum(), abs=0.03)


def test_records_alike_on_everything_move_to_the_nearest_value_of_the_table():
    age, zone = [30] * 5 + [31, 40, 41, 42, 43], [7] * 5 + [1, 2, 3, 4, 9]
    group = np.repeat([0, 1], 5)
    tables = [cover(ordered(age, "age"), group, 0.2), cover(ordered(zone, "zone"), group, 0.2)]
    published, stuck = randomize_unchanged(tables, originals(tables), 1, np.random.default_rng(8))
    assert stuck == 5
    assert tables[0].attribute.positions[published[0][:5]].tolist() == [31] * 5
    assert tables[1].attribute.positions[published[1][:5]].tolist() == [7] * 5


def test_more_changes_than_a_group_varies_on_reach_into_the_table(covers):
    published, stuck = randomize_unchanged(covers, originals(covers), 4, np.random.default_rng(10))
    assert stuck == ROWS
    assert changes(covers, published).min() == 4
