"""A call on a part of a table that is to be worked as a piece of the whole.

What a method reads off its rows it would read off the whole table: the values a column has, their range, how frequent
they are. So the table it is called on holds, after the rows of the part, further rows that stand for the other values
of the whole. They are numbered last, give every value its code and its place, and are taken away before the method
sees a row. How many rows of the whole have each value travels beside the call.

The planner runs on the thread that executes the statement, so what it is told is kept a thread, and goes by number to
the runner, which DuckDB may call on any thread. Cost: none.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from duckdb_anon.engine.column_coding import canonical_order
from duckdb_anon.model.coded_table import Attribute, IntArray

NUMBER = "_anon_rn"
"""Column of the part's table that numbers its rows, those that stand for values last."""


@dataclass(frozen=True)
class WholeTable:
    """What is known of the table a part belongs to.

    Attributes:
        rows: rows of the part.
        counts: rows of the whole with each value in the values' order, by column; a column may be left out.
    """

    rows: int
    counts: Mapping[str, IntArray] = field(default_factory=dict)


class _Current(threading.local):
    """Number of the thread's part, and whether calls are only planned."""

    number: int | None = None
    planned_only: bool = False


_current = _Current()
_parts: dict[int, WholeTable] = {}
_numbers = itertools.count(1)


@contextmanager
def part_of(whole: WholeTable) -> Iterator[None]:
    """Plan and run the calls of this thread inside the block as calls on a part of `whole`."""
    number = next(_numbers)
    _parts[number], _current.number = whole, number
    try:
        yield
    finally:
        _current.number = None
        del _parts[number]


def current() -> int | None:
    """Return the number of the part this thread is working on, None outside of `part_of`."""
    return _current.number


def whole_of(number: int | None) -> WholeTable | None:
    """Return what a planned call said of the whole, None for a call on a table of its own."""
    return None if number is None else _parts[number]


@contextmanager
def planned_only() -> Iterator[None]:
    """Let the calls of this thread be planned, whatever it would take to run them."""
    _current.planned_only = True
    try:
        yield
    finally:
        _current.planned_only = False


def will_run() -> bool:
    """Whether the call this thread plans is going to be run on its table as it is."""
    return _current.number is None and not _current.planned_only


def rows_of_part(
    whole: WholeTable,
    attributes: Sequence[Attribute],
    truths: Sequence[Attribute],
    source_row: IntArray,
    *,
    person: bool,
    canonical: bool,
) -> tuple[list[Attribute], list[Attribute], IntArray]:
    """The rows of the part, with values and counts of the whole.

    Args:
        whole: what is known of the whole.
        attributes: the columns of all rows, those that stand for values among them.
        truths: conditions of all rows.
        source_row: number of each row.
        person: whether the last attribute is the person.
        canonical: whether rows are to stand in the order of their codes.

    Returns:
        The columns of the part's rows; the conditions of all rows, and their numbers, for values to be looked up in.
    """
    order = np.argsort(source_row, kind="stable")
    if canonical:
        own = order[: whole.rows]
        own = own[canonical_order([replace(a, codes=a.codes[own]) for a in attributes], source_row[own])]
        order = np.concatenate([own, order[whole.rows :]])
    kept = []
    for attribute in (a.with_codes(a.codes[order]) for a in attributes):
        counts = whole.counts.get(attribute.name)
        if counts is not None and len(counts) != attribute.size:
            raise TypeError(f"the whole has {len(counts)} values of a column, its part {attribute.size}")
        # first_row keeps meaning all rows: a value that no row of the part has is looked up in one that stands for it
        kept.append(replace(attribute, codes=attribute.codes[: whole.rows], whole_counts=counts))
    if person:
        kept[-1] = _own_values(kept[-1])
    return kept, [a.with_codes(a.codes[order]) for a in truths], source_row[order]


def _own_values(person: Attribute) -> Attribute:
    """The persons of the part alone: whoever lends values to it is none of them."""
    used, codes = np.unique(person.codes, return_inverse=True)
    null = np.flatnonzero(used == person.null_code)
    return replace(
        person,
        codes=codes.astype(np.int32),
        positions=person.positions[used],
        special_from=int(np.searchsorted(used, person.special_from)),
        null_code=int(null[0]) if len(null) else -1,
        first_row=person.first_row[used],
        scale=None,
        minus_infinity=-1,
        whole_counts=None,
    )
