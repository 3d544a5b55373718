"""Numbers of rows and of lists against Python's own sorting and sets."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.kernels import row_keys as numbering
from duckdb_anon.kernels.row_keys import compact, joint, keys_of, keys_of_lists
from duckdb_anon.kernels.thread_pool import allowed

ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.one_of(st.integers(-1, 4), st.integers(-1, 2**40))] * width), min_size=1, max_size=30
    )
)


@given(ROWS)
def test_rows_are_numbered_in_the_order_of_their_columns(rows):
    keys = keys_of([np.array(column) for column in zip(*rows, strict=True)])
    different = sorted(set(rows))
    assert keys.of_row.tolist() == [different.index(row) for row in rows]
    assert keys.first.tolist() == [rows.index(row) for row in different]
    assert keys.number == len(different)
    came = keys.as_they_come()
    assert came.first.tolist() == sorted(keys.first.tolist())
    assert [rows[came.first[number]] for number in came.of_row] == rows


@given(ROWS)
def test_joint_numbers_keep_the_order_where_they_leave_gaps(rows):
    key = joint([np.array(column) for column in zip(*rows, strict=True)])
    assert np.argsort(key, kind="stable").tolist() == sorted(range(len(rows)), key=lambda i: rows[i])


def test_many_wide_columns_do_not_run_out_of_bits():
    columns = [np.array([0, 999_999, 0]) for _ in range(9)]
    assert keys_of(columns, [1_000_000] * 9).of_row.tolist() == [0, 1, 0]
    assert keys_of([np.array([2**61, 5, 2**61]), np.array([2**61, 2**61, 2**61])]).of_row.tolist() == [1, 0, 1]


@given(st.lists(st.integers(-5, 2000), max_size=20))
def test_compact_keeps_the_order(numbers):
    different = sorted(set(numbers))
    assert compact(np.array(numbers, dtype=np.int64)).tolist() == [different.index(n) for n in numbers]


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2)), max_size=4), min_size=1, max_size=12))
def test_lists_are_equal_where_they_hold_the_same_members(lists):
    offsets = np.cumsum([0, *map(len, lists)])
    members = np.array([m for one in lists for m, _ in one], dtype=np.int32)
    counts = np.array([c for one in lists for _, c in one], dtype=np.int64)
    for keys, part in ((keys_of_lists(offsets, members), 1), (keys_of_lists(offsets, members, counts), 2)):
        bags = [frozenset(Counter(entry[:part] for entry in one).items()) for one in lists]
        for i, one in enumerate(bags):
            assert [keys.of_row[i] == keys.of_row[j] for j in range(len(lists))] == [one == other for other in bags]
        assert keys.first.tolist() == [keys.of_row.tolist().index(n) for n in range(keys.number)]


def test_parts_are_sorted_as_the_whole(monkeypatch):
    monkeypatch.setattr(numbering, "_LARGE", 1)
    for length, many in ((1000, 3), (2, 5), (0, 2)):
        numbers = np.random.default_rng(length).integers(0, 99, length)
        wanted = np.sort(numbers)
        with allowed(many):
            numbering.sort(numbers)
        assert (numbers == wanted).all()
