"""The worked example of Gong, Luo, Yang, Ni & Li 2017 (tables 1 and 2, figure 3) as coded arrays."""

from collections.abc import Sequence

import numpy as np

from duckdb_anon.kernels.set_valued.person_sets import Persons, fingerprints_of
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.hierarchy import Hierarchy

PATHS = tuple(("*", letter.upper(), f"{letter}{digit}") for letter in "abc" for digit in (1, 2))
RECORDS = ({"a1", "a2", "b2"}, {"b1"}, {"b2"}, {"c2"}, {"a2", "b2"}, {"c1", "c2"})


def attribute_of(items: Sequence[str], paths: tuple[tuple[str, ...], ...], name: str = "disease") -> Attribute:
    """One sensitive attribute with a code for every leaf of the tree."""
    hierarchy = Hierarchy.of_paths(paths, name)
    leaf = {label: i for i, label in enumerate(hierarchy.leaf_labels)}
    codes = np.array([leaf[x] for x in items], dtype=np.int32)
    size = hierarchy.leaves
    return Attribute(
        name, "hierarchy", codes, np.arange(float(size)), size, -1, np.zeros(size, dtype=np.int64),
        hierarchy, np.arange(size, dtype=np.int32),
    )  # fmt: skip


def persons_of(records: Sequence[set[str]], paths: tuple[tuple[str, ...], ...] = PATHS) -> Persons:
    """Fingerprints of persons with these items, one row an item."""
    person = np.repeat(np.arange(len(records)), [len(record) for record in records])
    items = [x for record in records for x in sorted(record)]
    return fingerprints_of(person, [attribute_of(items, paths)])
