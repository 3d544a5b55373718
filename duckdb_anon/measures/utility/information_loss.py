"""information_loss, distortion_ratio: how far published values are from the original ones, by attribute and overall.

information_loss has two measures of a published cell, means over rows, in [0, 1]. ILoss (Xiao and Tao 2006):
(|v| - 1) / |A|, where v is what the cell covers and A the domain; a replaced value counts as the interval, or the tree
node, that spans it and the original: |x' - x| / (max - min + 1). NCP (Xu et al. 2006): 0 for a single value, else
|v| / |A| for nominal and hierarchical attributes, and (upper - lower) / (max - min) for ordered ones; over all
attributes, '(all)', it is the global certainty penalty GCP (Ghinita et al. 2007). The domain is the original's; a cell
that may be NULL or a value covers everything; continuous attributes have no "+ 1". distortion_ratio is level / height
of each published quasi-identifier, mean over rows and over the attributes with a height above 0 (Hasan, Jiang, Chen
and Wang 2018): a node has its own level, a replaced value that of the lowest node above it and the original; without a
hierarchy any interval or set of several values is at level 1 of 1.
Permuting the columns of a sliced release costs nothing; fake rows count like others. Cost: O(rows) an attribute.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from duckdb_anon.measures.cells import PublishedCells
from duckdb_anon.measures.released_rows import OfRelease, replaced_rows, require_columns, times_counted
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Answer
from duckdb_anon.model.release_table import BoolArray, MeasureCall, ReadColumn, ReadTable

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
    losses = [_losses(original.columns[name], release.columns[name], source) for name in qi]
    means = np.array([[mean_of_rows(part, release) for part in triple] for triple in losses])
    figures = np.vstack([means, means.mean(axis=0)]).tolist()
    return [(name, release.rows, *each) for name, each in zip([*qi, ALL], figures, strict=True)]


def mean_of_rows(values: FloatArray | IntArray, release: ReadTable) -> float:
    """Mean over the rows that a release stands for: a row with a noisy count counts that often, at least 0 times."""
    weights = times_counted(release)
    return float(np.average(values, weights=weights)) if weights.sum() > 0 else 0.0


def _before_and_after(
    original: ReadColumn, released: ReadColumn, source: IntArray | None
) -> tuple[CodeArray, CodeArray]:
    """Codes of each released row in the original and in the release; a permuted column keeps its values."""
    after = released.value_codes()
    return after if source is None or released.slice else original.value_codes()[source], after


def _common_node(domain: Attribute, first: CodeArray, second: CodeArray) -> IntArray:
    """Lowest node of the hierarchy above two values, for each pair of codes."""
    tree, leaf = domain.tree()
    return tree.lowest_above(tree.node_of_leaf[leaf[first]], leaf[second])


def _losses(original: ReadColumn, released: ReadColumn, source: IntArray | None) -> tuple[FloatArray, ...]:
    """ILoss, NCP and whether it differs from a single true value, for each released row."""
    domain, every = original.domain, original.value_codes()
    size = len(np.unique(every)) if domain.hierarchy is None else domain.hierarchy.leaves
    if released.plain:
        before, after = _before_and_after(original, released, source)
        differs = before != after
        if domain.kind == "ordered":
            special = differs & ((before >= domain.special_from) | (after >= domain.special_from))
            away = np.abs(domain.positions[before] - domain.positions[after])
            return _of_width(domain, every, np.where(differs, away, 0.0), special, differs)
        if domain.hierarchy is None or domain.leaf_of_code is None:
            return _of_size(np.where(differs, float(size), 1.0), size)
        return _of_size(domain.hierarchy.leaf_count[_common_node(domain, before, after)].astype(np.float64), size)
    if released.counted:
        raise ColumnError(f"column '{domain.name}' of the release holds {released.cells}, which cover no values")
    cells = PublishedCells.distinct(released)
    if released.ordered:
        lower, upper = cells.ends
        found = _of_width(domain, every, upper - lower, cells.anything, (cells.sizes > 1) | cells.anything)
    else:
        found = _of_size(cells.sizes, size)
    return tuple(each[cells.of_row] for each in found)


def _of_size(size: FloatArray, domain: int) -> tuple[FloatArray, ...]:
    wide = size > 1
    return (size - 1) / domain, np.where(wide, size / domain, 0.0), wide.astype(np.float64)


def _of_width(
    domain: Attribute, every: CodeArray, width: FloatArray, anything: BoolArray, differs: BoolArray
) -> tuple[FloatArray, ...]:
    """`differs` is separate: values may lie too close for their places as floating-point numbers to differ."""
    finite = every[every < domain.special_from]
    span = float(domain.positions[finite.max()] - domain.positions[finite.min()]) if len(finite) else 0.0
    denominator = span + 1.0 if domain.discrete else span
    # a box with rounded ends, or a value from elsewhere, may lie outside the original's range
    width = np.where(anything, span, np.minimum(width, span))
    iloss = width / denominator if denominator > 0 else np.zeros(len(width))
    ncp = np.where(anything, 1.0, width / span if span > 0 else 0.0)
    return iloss, ncp, differs.astype(np.float64)


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
        levels = _levels(before, after, source)
        rows.append((name, height, mean_of_rows(levels, release) / height))
    overall = float(np.mean([ratio for _, _, ratio in rows])) if rows else 0.0
    highest = max((height for _, height, _ in rows), default=0)
    return [*rows, (ALL, highest, overall)]


def _levels(original: ReadColumn, released: ReadColumn, source: IntArray | None) -> IntArray:
    """Level of each released cell; of a replaced value that of the lowest node above it and the original."""
    if released.plain:
        domain, (before, after) = original.domain, _before_and_after(original, released, source)
        if domain.hierarchy is None or domain.leaf_of_code is None:
            return np.asarray(before != after, dtype=np.int64)
        return np.asarray(domain.hierarchy.level[_common_node(domain, before, after)], dtype=np.int64)
    if released.counted or released.lists_nodes:
        raise ColumnError(f"column '{released.domain.name}' of the release holds {released.cells}, without a level")
    cells = PublishedCells.distinct(released)
    return cells.levels[cells.of_row]
