"""From rows to persons: the transformation T -> T' of 1:M data.

One record per person with the set of distinct sensitive values (Gong, Luo, Yang, Ni & Li 2017, section 3).
Attacks through inconsistent generalization of one person's rows end here, because only the person is
generalized. Departures: NULL is an item of its own, so no person is lost; several sensitive attributes give
one fingerprint over tagged items. Cost: one sort of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.hierarchy import Hierarchy


@dataclass(frozen=True)
class Persons:
    """Fingerprints of persons; person i holds items[offsets[i]:offsets[i + 1]], ascending and distinct.

    Attributes:
        forest: the trees over the items, side by side, without nodes that have one child: items are its leaves.
        offsets: shape (persons + 1,).
        items: item numbers, shape (entries,).
    """

    forest: Hierarchy
    offsets: IntArray
    items: CodeArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def person_of_entry(self) -> IntArray:
        """Person of each entry of `items`."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def fingerprints_of(person: IntArray, sensitive: Sequence[Attribute]) -> Persons:
    """Collect each person's distinct items.

    Args:
        person: person of each row, 0 .. persons - 1 without gaps, shape (rows,).
        sensitive: attributes with a hierarchy.

    Returns:
        The persons in ascending number.

    Raises:
        ColumnError: an attribute has no hierarchy.
    """
    trees = [_tree_of(attribute) for attribute in sensitive]
    forest = Hierarchy.beside([hierarchy.squeezed for hierarchy, _ in trees])
    base, keys = 0, []
    for attribute, (hierarchy, leaf_of_code) in zip(sensitive, trees, strict=True):
        keys.append(person.astype(np.int64) * forest.leaves + leaf_of_code[attribute.codes] + base)
        base += hierarchy.leaves
    return _grouped(np.concatenate(keys), forest)


def _tree_of(attribute: Attribute) -> tuple[Hierarchy, CodeArray]:
    if attribute.hierarchy is None or attribute.leaf_of_code is None:
        raise ColumnError(f"sensitive values are generalized along a hierarchy, and '{attribute.name}' has none")
    return attribute.hierarchy, attribute.leaf_of_code


def _grouped(keys: IntArray, forest: Hierarchy) -> Persons:
    ordered = np.sort(keys)
    fresh = np.ones(len(ordered), dtype=bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    ordered = ordered[fresh]
    person, item = np.divmod(ordered, forest.leaves)
    count = int(person[-1]) + 1 if len(person) else 0
    offsets = np.r_[0, np.cumsum(np.bincount(person, minlength=count))].astype(np.int64)
    return Persons(forest, offsets, item.astype(np.int32))
