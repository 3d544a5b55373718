"""slicing_diversity: how surely a sliced release links original records to sensitive values.

For each original record t and sensitive value s, p(t, s) is what somebody believes who knows all of t's
quasi-identifiers, takes every bucket that shows t's parts in proportion to how often it shows them, and reads
the sensitive values there (Li, Li, Zhang and Molloy 2012, section 5). The release is l-diverse when no p(t, s)
exceeds 1/l. A generalized cell shows every part it covers. Ranges: p in (0, 1], l from 1.
Cost: see `kernels.slicing.record_linkage_bound`, after a product of the distinct parts with the cells that cover them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.partition.sort_count import offsets_of
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.kernels.slicing.record_linkage_bound import Shares, SlicedShares, record_association
from duckdb_anon.measures.risk.cell_coverage import DistinctBoxes, distinct_boxes
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params, Report
from duckdb_anon.model.release_table import ReadTable


def slicing_diversity(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row: l of the release, and the highest and average p(t, s).

    Raises:
        ColumnError: the release is not sliced.
    """
    original, release = tables
    qi = [info.name for info in params["roles"].qi]
    sensitive = params["roles"].one_sensitive("slicing_diversity").name
    worst = association_of(original, release, qi, sensitive)
    matched = worst[worst > 0]
    highest = float(matched.max(initial=0.0))
    return {
        "records": [original.rows],
        "matched": [len(matched)],
        "highest": [highest],
        "average": [float(matched.mean()) if len(matched) else 0.0],
        "l": [1 / highest if highest > 0 else np.inf],
    }


def association_of(original: ReadTable, release: ReadTable, qi: list[str], sensitive: str) -> np.ndarray[Any, Any]:
    """Largest p(t, s) of each original record, 0 where no bucket matches.

    Args:
        original: the original.
        release: its release.
        qi: names of the quasi-identifiers.
        sensitive: name of the sensitive column.
    """
    missing = [name for name in [*qi, sensitive] if name not in release.columns]
    if missing or not release.contents.bucket or not release.columns[sensitive].slice:
        raise ColumnError(
            "slicing_diversity: the release is not sliced: it has no column "
            f"{', '.join(missing) or 'bucket, or its sensitive column is no STRUCT'}"
        )
    bucket = np.unique(release.buckets(), return_inverse=True)[1].astype(np.int64)
    own = release.columns[sensitive].slice
    groups: dict[str, list[str]] = {}
    for name in qi:
        groups.setdefault(release.columns[name].slice, []).append(name)
    partners = groups.pop(own, [])
    parts: list[IntArray] = []
    columns: list[Shares] = []
    for names in groups.values():
        value, covered, boxes = _parts(original, release, names)
        shown = _counts(boxes.of_row, bucket, (boxes.number, int(bucket.max()) + 1))
        parts.append(value)
        columns.append(_shares(covered @ shown, np.bincount(bucket)))
    value, linked = _linked(original, release, partners, sensitive, bucket)
    last, offsets, code, probability = linked
    return record_association(SlicedShares((*columns, last), offsets, code, probability), [*parts, value])


def _parts(
    original: ReadTable, release: ReadTable, names: list[str]
) -> tuple[IntArray, sparse.csr_matrix, DistinctBoxes]:
    """Part number of each record, and which of the release's distinct cells cover each part."""
    codes = [original.columns[name].value_codes().astype(np.int64) for name in names]
    value, first = keys_of(codes)
    boxes = distinct_boxes(original, release, names)
    covered = boxes.covers(0)[codes[0][first]]
    for a in range(1, len(names)):
        covered = covered & boxes.covers(a)[codes[a][first]]
    return value.astype(np.int64), sparse.csr_matrix(covered, dtype=np.float64), boxes


def _counts(row: IntArray, column: IntArray, shape: tuple[int, int]) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones(len(row)), (row, column)), shape=shape)


def _shares(matching: sparse.csr_matrix, size: IntArray) -> Shares:
    cells = matching.tocsr().sorted_indices().tocoo()
    value, bucket = cells.row.astype(np.int64), cells.col.astype(np.int64)
    return Shares(value, bucket, cells.data / size[bucket])


def _linked(
    original: ReadTable, release: ReadTable, partners: list[str], sensitive: str, bucket: IntArray
) -> tuple[IntArray, tuple[Shares, IntArray, IntArray, np.ndarray[Any, Any]]]:
    """The sensitive column: part of each record, shares of the parts, and D(t, B) for each of them."""
    codes = release.columns[sensitive].value_codes().astype(np.int64)
    domain, buckets = int(codes.max()) + 1, int(bucket.max()) + 1
    if partners:
        value, covered, boxes = _parts(original, release, partners)
        of_row, cells = boxes.of_row, boxes.number
    else:
        value, covered = np.zeros(original.rows, dtype=np.int64), sparse.csr_matrix(np.ones((1, 1)))
        of_row, cells = np.zeros(release.rows, dtype=np.int64), 1
    found = (
        (covered @ _counts(of_row, bucket * domain + codes, (cells, buckets * domain))).tocsr().sorted_indices().tocoo()
    )
    part, place = found.row.astype(np.int64), found.col.astype(np.int64)
    pair = part * buckets + place // domain
    entries, entry = np.unique(pair, return_inverse=True)
    total = np.bincount(entry, weights=found.data)
    shares = Shares(entries // buckets, entries % buckets, total / np.bincount(bucket)[entries % buckets])
    return value, (shares, offsets_of(entry, len(entries)), place % domain, found.data / total[entry])


MEASURE = Report(
    name="slicing_diversity",
    summary="l of a sliced release by slicing's own definition, over all original records",
    paper="Li, Li, Zhang & Molloy (2012), IEEE TKDE 24(3), section 5",
    example="FROM slicing_diversity('people', 'sliced')",
    section="Equivalence classes",
    instead=("l_diversity",),
    parameters=(),
    returns={"records": "BIGINT", "matched": "BIGINT", "highest": "DOUBLE", "average": "DOUBLE", "l": "DOUBLE"},
    compute=slicing_diversity,
    tables=("original", "release"),
    reads="tables",
    answers=("sliced", "sampled"),
    needs=("qi", "sensitive"),
)
