"""slicing_diversity, composition_risk: what releases reveal of persons whose quasi-identifiers are known.

A class is what an attacker cannot look inside: rows with equal boxes, or a bucket of a sliced release (with the part of
the sensitive column that holds quasi-identifiers, if there is one). A person matches a class when its values are
covered; in a sliced release, when every column of the bucket has a cell that covers its part. A row with a noisy count
stands for that many, rounded. p(t, s), how surely a person t is linked to a sensitive value s, is in a sliced release
as slicing defines it (Li, Li, Zhang and Molloy 2012, section 5), elsewhere the share of s among the rows that cover t.
slicing_diversity: an attacker who knows all quasi-identifiers of an original record t takes every bucket that shows t's
parts in proportion to how often it shows them; the release is l-diverse when no p(t, s) exceeds 1/l.
composition_risk: the attacker takes the sensitive values of all classes a person matches in either of two independent
releases, and intersects: 100 * true / (true + false), in percent, where each person's values in both sets are counted
(Hasan, Jiang, Chen and Wang 2018, section 5.2, who do not say what they count). Without any value in both sets the
risk is 0 and `defined` is false. Cost: distinct persons times classes, in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from duckdb_anon.kernels.cells.table import Boxes, MeasureCall, ReadTable
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.released_rows import OfRelease, require_columns
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Answer, Report, fields
from duckdb_anon.model.progress import tick

_BLOCK = 5_000_000


@dataclass(frozen=True)
class _Slice:
    """Columns that are published together, their different parts, and how often classes show them."""

    columns: tuple[int, ...]
    parts: Boxes
    shares: scipy.sparse.csr_matrix  # of each part in each class, shape (parts, classes)

    def covered(self, persons: Sequence[IntArray]) -> scipy.sparse.csr_matrix:
        """Share of each class's parts that cover each person, shape (persons, classes)."""
        return (self.parts.matches([persons[a] for a in self.columns]) @ self.shares).tocsr()


@dataclass(frozen=True)
class Evidence:
    """A release as the attack sees it."""

    classes: int
    # how much each class speaks for each sensitive code, shape (classes, sensitive domain): rows, in a sliced
    # release as a share of the bucket's
    weight: scipy.sparse.csr_matrix
    slices: list[_Slice]  # its columns, those of boxes in one

    def shares(self, persons: Sequence[IntArray]) -> scipy.sparse.csr_matrix:
        """Product of the shares of each class's cells that cover each person's parts, shape (persons, classes)."""
        product = self.slices[0].covered(persons)
        for each in self.slices[1:]:
            product = product.multiply(each.covered(persons))
        return product.tocsr()

    def linked(self, persons: Sequence[IntArray]) -> FloatArray:
        """p(t, s) of each person and sensitive code, shape (persons, sensitive domain); 0 where no class matches."""
        mass = (self.shares(persons) @ self.weight).toarray()
        total = mass.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(mass, total, out=np.zeros_like(mass), where=total > 0))


def evidence(release: ReadTable, qi: list[str], sensitive: str) -> Evidence:
    """Read a release of any format but randomized values."""
    require_columns(release, [*qi, sensitive])
    if any(release.columns[name].channel is not None for name in [*qi, sensitive]):
        raise ColumnError("a randomized release leaves every value possible; it cannot be intersected")
    if any(release.columns[name].slice for name in qi):
        return _sliced(release, qi, sensitive)
    boxes = release.boxes(qi)
    weight = _values(release, sensitive, boxes.of_row, boxes.number)
    each = scipy.sparse.eye_array(boxes.number).tocsr()
    return Evidence(boxes.number, weight, [_Slice(tuple(range(len(qi))), boxes, each)])


def _values(release: ReadTable, sensitive: str, class_of_row: IntArray, classes: int) -> scipy.sparse.csr_matrix:
    """Rows of each class that hold each sensitive code; a row with counts of many values is shared among them."""
    column = release.columns[sensitive]
    if not (column.plain or column.counted):
        raise ColumnError(
            f"column '{column.domain.name}' holds {column.holds}; sensitive values must be plain or counted"
        )
    rows = np.maximum(np.floor(release.row_weights() + 0.5), 0) if release.counted else np.ones(release.rows)
    cells = column.different
    shares = _table(rows, class_of_row, cells.of_row, (classes, cells.number))
    return (shares @ cells.shares).tocsr()


def _sliced(release: ReadTable, qi: list[str], sensitive: str) -> Evidence:
    """Classes are buckets, or (bucket, part) pairs where the sensitive column holds quasi-identifiers."""
    _, bucket = np.unique(release.buckets(), return_inverse=True)
    sensitive_slice = release.columns[sensitive].slice
    groups = release.slices(qi)
    boxes = {name: release.boxes([qi[a] for a in members]) for name, members in groups.items()}
    class_of_row = (
        keys_of([bucket, boxes[sensitive_slice].of_row]).of_row
        if sensitive_slice in groups
        else bucket.astype(np.int64)
    )
    first_row = np.unique(class_of_row, return_index=True)[1]
    classes, size = len(first_row), np.bincount(bucket)
    of_bucket = _table(np.ones(classes), bucket[first_row], np.arange(classes), (len(size), classes))
    found = []
    for name, members in groups.items():
        parts = boxes[name]
        # a class shows its own part of the sensitive column, but all parts of its bucket elsewhere
        if name == sensitive_slice:
            shares = _table(np.ones(classes), parts.of_row[first_row], np.arange(classes), (parts.number, classes))
        else:
            shares = _table(1 / size[bucket], parts.of_row, bucket, (parts.number, len(size))) @ of_bucket
        found.append(_Slice(tuple(members), parts, shares))
    share = scipy.sparse.diags_array(1 / size[bucket[first_row]])
    return Evidence(classes, (share @ _values(release, sensitive, class_of_row, classes)).tocsr(), found)


def _table(values: FloatArray, row: IntArray, column: IntArray, shape: tuple[int, int]) -> scipy.sparse.csr_matrix:
    """Sparse sums of values by (row, column)."""
    return scipy.sparse.csr_matrix((values, (row, column)), shape=shape)


@OfRelease(
    summary="l of a sliced release by slicing's own definition, over all original records",
    paper="Li, Li, Zhang & Molloy (2012), IEEE TKDE 24(3), section 5",
    example="FROM slicing_diversity('people', 'sliced')",
    section="From papers, for comparison",
    instead=("l_diversity",),
    returns={"records": "BIGINT", "matched": "BIGINT", "highest": "DOUBLE", "average": "DOUBLE", "l": "DOUBLE"},
    answers=("sliced", "sampled"),
    needs=("qi", "sensitive"),
)
def slicing_diversity(call: MeasureCall) -> Answer:
    """One row: l of the release, and the highest and average p(t, s) over the records that some bucket matches."""
    original, release, qi = call.original, call.release, call.qi
    sensitive = call.roles.one_sensitive("slicing_diversity").name
    require_columns(release, [*qi, sensitive])
    if not release.contents.bucket or not release.columns[sensitive].slice:
        raise ColumnError("the release is not sliced: it has no column bucket, or its sensitive column is no STRUCT")
    known = evidence(release, qi, sensitive)
    records = [original.columns[name].value_codes().astype(np.int64) for name in qi]
    alike = keys_of(records)
    worst = np.zeros(alike.number)
    step = max(1, _BLOCK // max(1, *known.weight.shape))
    for at in range(0, alike.number, step):
        tick()
        some = alike.first[at : at + step]
        worst[at : at + step] = known.linked([codes[some] for codes in records]).max(axis=1)
    times = np.bincount(alike.of_row)[worst > 0]
    matched = worst[worst > 0]
    highest = float(matched.max(initial=0.0))
    average = float(np.average(matched, weights=times)) if len(matched) else 0.0
    diversity = 1 / highest if highest > 0 else np.inf
    return [(original.rows, int(times.sum()), highest, average, diversity)]


@Report(
    summary="privacy risk of individuals in two independent releases (composition attack), in percent",
    paper="Hasan, Jiang, Chen & Wang (2018), Applied Sciences 8(5):783, section 5.2; unit of counting is a reading",
    example="FROM composition_risk('boxes', 'second', 'people')",
    section="Risk",
    instead=("attribute_risk",),
    returns=fields(
        "persons BIGINT, true_matches DOUBLE, false_matches DOUBLE, singled_out BIGINT, privacy_risk DOUBLE, "
        "defined BOOLEAN"
    ),
    tables=("release_a", "release_b", "overlap"),
    labelled="overlap",
    reads="tables",
    answers=("rows", "boxes", "buckets", "sliced", "counts", "sampled", "suppressed", "retained"),
    needs=("qi", "sensitive"),
)  # fmt: skip
def composition_risk(call: MeasureCall) -> Answer:
    """One row: true and false matches and the risk."""
    overlap, qi = call.read["overlap"], call.qi
    sensitive = call.roles.one_sensitive("composition_risk").name
    first, second = (evidence(call.read[name], qi, sensitive) for name in ("release_a", "release_b"))
    *persons, secret = (overlap.columns[name].value_codes().astype(np.int64) for name in [*qi, sensitive])
    alike = keys_of([*persons, secret])
    times, alone = np.bincount(alike.of_row), 0
    true, total = 0.0, 0.0
    step = max(1, _BLOCK // max(1, first.classes, second.classes))
    for at in range(0, alike.number, step):
        tick()
        who, records = alike.first[at : at + step], times[at : at + step]
        known = [codes[who] for codes in persons]
        both = first.linked(known) * second.linked(known)
        offered = both > 0
        true_value, values = offered[np.arange(len(who)), secret[who]], np.count_nonzero(both, axis=1)
        true += float(true_value @ records)
        total += float(values @ records)
        alone += int((true_value & (values == 1)) @ records)
    return [(overlap.rows, true, total - true, alone, 100.0 * true / total if total else 0.0, total > 0)]
