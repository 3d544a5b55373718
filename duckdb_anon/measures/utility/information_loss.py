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

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.cells import PublishedCells
from duckdb_anon.measures.released_rows import OfRelease, replaced_rows, require_columns, times_counted
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params
from duckdb_anon.model.release_table import BoolArray, ReadColumn, ReadTable

ALL = "(all)"


def information_loss(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row an attribute and one for all of them."""
    original, release = tables
    qi = [info.name for info in params["roles"].qi]
    require_columns("information_loss", release, qi)
    source = replaced_rows("information_loss", original, release, qi)
    losses = [_losses(original.columns[name], release.columns[name], source) for name in qi]
    means = np.array([[mean_of_rows(part, release) for part in triple] for triple in losses])
    figures = np.vstack([means, means.mean(axis=0)]).tolist()
    return INFORMATION_LOSS.columns(
        [(name, release.rows, *each) for name, each in zip([*qi, ALL], figures, strict=True)]
    )


def mean_of_rows(values: FloatArray | IntArray, release: ReadTable) -> float:
    """Mean over the rows that a release stands for: a row with a noisy count counts that often, at least 0 times."""
    weights = times_counted(release)
    return float(np.average(values, weights=weights)) if weights.sum() > 0 else 0.0


def common_node(domain: Attribute, first: CodeArray, second: CodeArray) -> IntArray:
    """Lowest node of the hierarchy above two values, for each pair of codes."""
    tree, leaf = domain.tree()
    return tree.lowest_above(tree.node_of_leaf[leaf[first]], leaf[second])


def _losses(original: ReadColumn, released: ReadColumn, source: IntArray | None) -> tuple[FloatArray, ...]:
    """ILoss, NCP and whether it differs from a single true value, for each released row."""
    domain = original.domain
    if released.plain:
        codes = released.value_codes()
        if source is None or released.slice:  # a permuted column keeps its values
            nothing = np.zeros(len(codes))
            return nothing, nothing, nothing
        return _replaced(domain, original.value_codes(), original.value_codes()[source], codes)
    if released.counted:
        raise ColumnError(
            f"information_loss: column '{domain.name}' of the release holds {released.cells}, which cover no values"
        )
    cells = PublishedCells.distinct(released)
    if released.ordered:
        found = _interval(domain, original.value_codes(), cells)
    else:
        found = _covered(cells.sizes, _domain_size(domain, original.value_codes()))
    return tuple(each[cells.of_row] for each in found)


def _domain_size(domain: Attribute, codes: CodeArray) -> int:
    return len(np.unique(codes)) if domain.hierarchy is None else domain.hierarchy.leaves


def _covered(size: FloatArray, domain: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    wide = size > 1
    return (size - 1) / domain, np.where(wide, size / domain, 0.0), wide.astype(np.float64)


def _span(domain: Attribute, codes: CodeArray) -> tuple[float, float]:
    """Range of the original's finite values, and what ILoss divides by."""
    finite = codes[codes < domain.special_from]
    span = float(domain.positions[finite.max()] - domain.positions[finite.min()]) if len(finite) else 0.0
    return span, span + 1.0 if domain.discrete else span


def _interval(domain: Attribute, codes: CodeArray, cells: PublishedCells) -> tuple[FloatArray, FloatArray, FloatArray]:
    span, denominator = _span(domain, codes)
    lower, upper = cells.ends
    # a box with rounded ends may be wider than all there is; it says no less than nothing
    width = np.minimum(upper - lower, span)
    differs = (cells.sizes > 1) | cells.anything
    return _ordered(np.where(cells.anything, span, width), span, denominator, cells.anything, differs)


def _ordered(
    width: FloatArray, span: float, denominator: float, anything: BoolArray, differs: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`differs` is separate: values may lie too close for their places as floating-point numbers to differ."""
    iloss = width / denominator if denominator > 0 else np.zeros(len(width))
    ncp = np.where(anything, 1.0, width / span if span > 0 else 0.0)
    return iloss, ncp, differs.astype(np.float64)


def _replaced(
    domain: Attribute, every: CodeArray, before: CodeArray, after: CodeArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    differs = before != after
    if domain.kind == "ordered":
        span, denominator = _span(domain, every)
        special = (before >= domain.special_from) | (after >= domain.special_from)
        width = np.where(special & differs, span, np.abs(domain.positions[before] - domain.positions[after]))
        return _ordered(np.where(differs, width, 0.0), span, denominator, special & differs, differs)
    size = _domain_size(domain, every)
    if domain.hierarchy is None or domain.leaf_of_code is None:
        return _covered(np.where(differs, float(size), 1.0), size)
    leaves = domain.hierarchy.leaf_count[common_node(domain, before, after)]
    return _covered(leaves.astype(np.float64), size)


def distortion_ratio(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row an attribute that can be generalized, and one for all of them."""
    original, release = tables
    names = [info.name for info in params["roles"].qi]
    require_columns("distortion_ratio", release, names)
    source = replaced_rows("distortion_ratio", original, release, names)
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
    return DISTORTION_RATIO.columns([*rows, (ALL, highest, overall)])


def _levels(before: ReadColumn, after: ReadColumn, source: IntArray | None) -> IntArray:
    """Level of each released cell."""
    if after.plain:
        codes = after.value_codes()
        if source is None or after.slice:  # a permuted column keeps its values
            return np.zeros(len(codes), dtype=np.int64)
        return _joint_levels(before.domain, before.value_codes()[source], codes)
    if after.counted or after.lists_nodes:
        raise ColumnError(
            f"distortion_ratio: column '{after.domain.name}' of the release holds {after.cells}, without a level"
        )
    cells = PublishedCells.distinct(after)
    return cells.levels[cells.of_row]


def _joint_levels(domain: Attribute, first: CodeArray, second: CodeArray) -> IntArray:
    """Level of the lowest node above two values, for each row."""
    if domain.hierarchy is None or domain.leaf_of_code is None:
        differs: IntArray = (first != second).astype(np.int64)
        return differs
    return domain.hierarchy.level[common_node(domain, first, second)].astype(np.int64)


INFORMATION_LOSS = OfRelease(
    name="information_loss",
    summary="ILoss and NCP of the published quasi-identifiers, per attribute and overall",
    paper="ILoss: Xiao and Tao (2006), personalized privacy preservation; NCP: Xu et al. (2006)",
    example="FROM information_loss('people', 'boxes')",
    section="Utility",
    parameters=(),
    returns={"attribute": "VARCHAR", "rows": "BIGINT", "iloss": "DOUBLE", "ncp": "DOUBLE", "changed": "DOUBLE"},
    compute=information_loss,
    unit="any",
    answers=("rows", "boxes", "buckets", "sliced", "persons", "counts", "sampled", "suppressed", "retained"),
    needs=("qi",),
)
DISTORTION_RATIO = OfRelease(
    name="distortion_ratio",
    summary="levels of generalization over the height of the hierarchy, per quasi-identifier and overall",
    paper="Hasan, Jiang, Chen and Wang (2018), distortion ratio",
    example="FROM distortion_ratio('visits', 'persons', hierarchies := {'age': 'ages'})",
    section="From papers, for comparison",
    parameters=(),
    returns={"attribute": "VARCHAR", "height": "BIGINT", "distortion_ratio": "DOUBLE"},
    compute=distortion_ratio,
    unit="any",
    answers=("rows", "boxes", "buckets", "sliced", "persons", "counts", "sampled", "suppressed", "retained"),
    needs=("qi",),
)
