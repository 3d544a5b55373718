"""information_loss, distortion_ratio: how far published values are from the original ones, by attribute and overall.

information_loss has two measures of a published cell, means over rows, in [0, 1]. ILoss (Xiao and Tao 2006):
(|v| - 1) / |A|, where v is what the cell covers and A the domain; a replaced value counts as the interval, or the tree
node, that spans it and the original: |x' - x| / (max - min + 1). NCP (Xu et al. 2006): 0 for a single value, else
|v| / |A| for nominal and hierarchical attributes, and (upper - lower) / (max - min) for ordered ones; over all
attributes, '(all)', it is the global certainty penalty GCP (Ghinita et al. 2007). The domain is the original's; a cell
that may be NULL or a value, or is suppressed, covers everything; continuous attributes have no "+ 1".
distortion_ratio is level / height of each published quasi-identifier, mean over rows and over the attributes with a
height above 0 (Hasan, Jiang, Chen and Wang 2018): a node has its own level, a replaced value that of the lowest node
above it and the original; without a hierarchy any interval or set of several values is at level 1 of 1.
Permuting the columns of a sliced release costs nothing; fake rows count like others. Cost: O(rows) an attribute.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.table import MeasureCall, ReadTable
from duckdb_anon.measures.released_rows import (
    OfRelease,
    replaced_rows,
    require_columns,
    times_counted,
    with_suppressed_cells,
)
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Answer

ALL = "(all)"
_of_quasi = partial(
    OfRelease, needs=("qi",),
    answers=("rows", "boxes", "buckets", "sliced", "persons", "counts", "sampled", "suppressed", "retained"),
    unit="any",
)  # fmt: skip


@_of_quasi(
    summary="ILoss and NCP of the published quasi-identifiers, per attribute and overall",
    paper="ILoss: Xiao and Tao (2006), personalized privacy preservation; NCP: Xu et al. (2006)",
    example="FROM information_loss('people', 'boxes')",
    section="Utility",
    returns={"attribute": "VARCHAR", "rows": "BIGINT", "iloss": "DOUBLE", "ncp": "DOUBLE", "changed": "DOUBLE"},
)
def information_loss(call: MeasureCall) -> Answer:
    """One row an attribute and one for all of them."""
    original, release, qi = call.original, call.release, call.qi
    require_columns(release, qi)
    source = replaced_rows(original, release, qi)
    release = with_suppressed_cells(release, original, qi)
    losses = [_losses(original.columns[name], release.columns[name], source) for name in qi]
    means = np.array([[mean_of_rows(part, release) for part in triple] for triple in losses])
    figures = np.vstack([means, means.mean(axis=0)]).tolist()
    return [(name, release.rows, *each) for name, each in zip([*qi, ALL], figures, strict=True)]


def mean_of_rows(values: FloatArray | IntArray, release: ReadTable) -> float:
    """Mean over the rows that a release stands for: a row with a noisy count counts that often, at least 0 times."""
    weights = times_counted(release)
    return float(np.average(values, weights=weights)) if weights.sum() > 0 else 0.0


def _covered(original: Ranges, released: Ranges, source: IntArray | None) -> Ranges:
    """What rows cover: a replaced value the interval, or the lowest node, that spans it and the original."""
    if not released.plain:
        return released.different
    domain, after = original.domain, released.value_codes()
    # a permuted column keeps its values
    before = after if source is None or released.slice else original.value_codes()[source]
    if domain.kind == "hierarchy":
        tree, leaf = domain.tree()
        node = tree.lowest_above(tree.node_of_leaf[leaf[before]], leaf[after])
        return Ranges.of_nodes(domain, node.astype(np.int32))
    if domain.kind == "ordered":
        return Ranges.of_ends(domain, np.minimum(before, after), np.maximum(before, after))
    same = np.where(before == after, after, -1)
    return Ranges.of_ends(domain, same, same)


def _losses(original: Ranges, released: Ranges, source: IntArray | None) -> FloatArray:
    """ILoss, NCP and whether it differs from a single true value, for each released row, shape (3, rows)."""
    domain, every = original.domain, original.value_codes()
    if released.counted:
        raise ColumnError(f"column '{domain.name}' of the release holds {released.holds}, which cover no values")
    cells = _covered(original, released, source)
    # values may lie too close for their places as floating-point numbers to differ
    changed = (cells.sizes > 1) | cells.mixed
    if cells.ordered:
        finite = every[every < domain.special_from]
        span = float(domain.positions[finite.max()] - domain.positions[finite.min()]) if len(finite) else 0.0
        denominator = span + 1.0 if domain.discrete else span
        lower, upper = cells.ends
        # a box with rounded ends, or a value from elsewhere, may lie outside the original's range
        width = np.where(cells.mixed, span, np.minimum(upper - lower, span))
        iloss = width / denominator if denominator > 0 else np.zeros(len(width))
        ncp = np.where(cells.mixed, 1.0, width / span if span > 0 else 0.0)
    else:
        values = len(np.unique(every)) if domain.hierarchy is None else domain.hierarchy.leaves
        size = np.minimum(cells.sizes, values)
        iloss, ncp = (size - 1) / values, np.where(size > 1, size / values, 0.0)
    return np.stack([iloss, ncp, changed])[:, cells.of_row]


@_of_quasi(
    summary="levels of generalization over the height of the hierarchy, per quasi-identifier and overall",
    paper="Hasan, Jiang, Chen and Wang (2018), distortion ratio",
    example="FROM distortion_ratio('visits', 'persons', hierarchies := {'age': 'ages'})",
    section="From papers, for comparison",
    returns={"attribute": "VARCHAR", "height": "BIGINT", "distortion_ratio": "DOUBLE"},
)
def distortion_ratio(call: MeasureCall) -> Answer:
    """One row an attribute that can be generalized, and one for all of them."""
    original, release, names = call.original, call.release, call.qi
    require_columns(release, names)
    source = replaced_rows(original, release, names)
    rows: list[tuple[str, int, float]] = []
    for name in names:
        before, after = original.columns[name], release.columns[name]
        height = 1 if before.domain.hierarchy is None else before.domain.hierarchy.height
        if height == 0 or before.domain.size < 2:
            continue
        if after.counted or after.lists_nodes:
            raise ColumnError(f"column '{name}' of the release holds {after.holds}, without a level")
        cells = _covered(before, after, source)
        rows.append((name, height, mean_of_rows(cells.levels[cells.of_row], release) / height))
    overall = float(np.mean([ratio for _, _, ratio in rows])) if rows else 0.0
    highest = max((height for _, height, _ in rows), default=0)
    return [*rows, (ALL, highest, overall)]
