"""distortion_ratio: how many levels of their hierarchies the published values have been lifted.

Measures level / height of each published quasi-identifier, mean over rows and over the attributes with a height
above 0 (Hasan, Jiang, Chen and Wang 2018): 0 when nothing is generalized, 1 when everything is at the root. A node has
its own level; a replaced value that of the lowest node above it and the original. Without a hierarchy an
attribute counts as values under one root, so that any interval or set of several values is at level 1 of 1.
Permuting the columns of a sliced release costs nothing; fake rows count like others.
Cost: O(rows) an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.cells import PublishedCells
from duckdb_anon.measures.released_rows import OfRelease, replaced_rows, require_columns
from duckdb_anon.measures.utility.information_loss import ALL, common_node, mean_of_rows
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params
from duckdb_anon.model.release_table import ReadColumn, ReadTable

NAME = "distortion_ratio"


def compute(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row an attribute that can be generalized, and one for all of them."""
    original, release = tables
    names = [info.name for info in params["roles"].qi]
    require_columns(NAME, release, names)
    source = replaced_rows(NAME, original, release, names)
    generalizable, heights, means = [], [], []
    for name in names:
        before, after = original.columns[name], release.columns[name]
        height = 1 if before.domain.hierarchy is None else before.domain.hierarchy.height
        if height == 0 or before.domain.size < 2:
            continue
        levels = _levels(before, after, source)
        generalizable.append(name)
        heights.append(height)
        means.append(mean_of_rows(levels, release) / height)
    overall = float(np.mean(means)) if means else 0.0
    return {
        "attribute": [*generalizable, ALL],
        "height": np.array([*heights, max(heights, default=0)], dtype=np.int64),
        "distortion_ratio": np.array([*means, overall]),
    }


def _levels(before: ReadColumn, after: ReadColumn, source: IntArray | None) -> IntArray:
    """Level of each released cell."""
    if after.plain:
        codes = after.value_codes()
        if source is None or after.slice:  # a permuted column keeps its values
            return np.zeros(len(codes), dtype=np.int64)
        return _joint_levels(before, before.value_codes()[source], codes)
    if after.counted or after.lists_nodes:
        raise ColumnError(f"{NAME}: column '{after.domain.name}' of the release holds {after.cells}, without a level")
    cells = PublishedCells.distinct(after)
    return cells.levels[cells.of_row]


def _joint_levels(column: ReadColumn, first: CodeArray, second: CodeArray) -> IntArray:
    """Level of the lowest node above two values, for each row."""
    tree, leaf = column.domain.hierarchy, column.domain.leaf_of_code
    if tree is None or leaf is None:
        differs: IntArray = (first != second).astype(np.int64)
        return differs
    return tree.level[common_node(column.domain, first, second)].astype(np.int64)


MEASURE = OfRelease(
    name=NAME,
    summary="levels of generalization over the height of the hierarchy, per quasi-identifier and overall",
    paper="Hasan, Jiang, Chen and Wang (2018), distortion ratio",
    example="FROM distortion_ratio('visits', 'persons', hierarchies := {'age': 'ages'})",
    section="From papers, for comparison",
    parameters=(),
    returns={"attribute": "VARCHAR", "height": "BIGINT", "distortion_ratio": "DOUBLE"},
    compute=compute,
    unit="any",
    answers=("rows", "boxes", "buckets", "sliced", "persons", "counts", "sampled", "suppressed", "retained"),
    needs=("qi",),
)
