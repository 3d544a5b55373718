"""What an attacker has who holds a register: the quasi-identifiers of every individual of the original.

Where the method moves values, the attacker can run the release's call on the register: that gives the groups of
everybody and what a release of each group looks like. Sensitive values are not in the register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.measures.released_rows import is_plain, source_rows
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.release_table import BoolArray, ReadTable


@dataclass(frozen=True, eq=False)
class Register:
    """Everybody's facts."""

    values: CodeArray  # code of each quasi-identifier of each individual, shape (columns, individuals)
    known: BoolArray  # which of the columns it has, shape (columns,)
    # group of each individual where the call is run on the register; None where it forms none
    group: IntArray | None = None
    # codes that the call gives the individuals, shape (columns, individuals); None without groups
    published: CodeArray | None = None


def register_of(
    function: str, original: ReadTable, again: ReadTable | None, qi: Sequence[str], known: BoolArray
) -> Register:
    """The register of a table.

    `again`: what the release's call makes of its quasi-identifiers, with `row_id` and the groups.
    `known`: the columns that the attacker knows.
    """
    values = np.stack([original.columns[name].value_codes() for name in qi]).astype(np.int32)
    if again is None or again.sources() is None or not is_plain(again, qi):
        return Register(values, known)
    group = moved_within(again)
    if group is None:
        return Register(values, known)
    source = source_rows(function, original, again)
    real = source >= 0
    of_person = np.full(original.rows, -1, dtype=np.int64)
    published = values.copy()
    of_person[source[real]] = group[real]
    for a, name in enumerate(qi):
        published[a, source[real]] = again.columns[name].value_codes()[real]
    if (of_person < 0).any():
        return Register(values, known)
    return Register(values, known, of_person, published)


def moved_within(again: ReadTable) -> IntArray | None:
    """Group of each row inside which a method moved values; None where it formed no groups."""
    numbers = again.numbers.get(again.contents.group)
    if numbers is None:
        return None
    group = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return group if group.max(initial=0) > 0 else None
