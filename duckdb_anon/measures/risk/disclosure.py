"""disclosure: the MuCo paper's measure of exact matches; it does not see near ones, so it is no bound on risk.

A release in which no record keeps all values has identity 0 at p_match 1, and `linkage_risk` finds one in five. An
attacker knows each quasi-identifier with probability `p_match`, at least one. Identity disclosure is 1/matches where
the target's own row is among the rows that match, attribute disclosure the share of matches with the target's sensitive
value, 0 without a match; means over targets, in [0, 1] (Li et al. 2020, section 5.1). A plain value matches when equal,
a box when it covers the value; counts of a bucket carry each value to its share; slices are taken as printed. Of
several sensitive columns the most exposed counts. The mean over what is known is exact: over all subsets by their
probabilities, of at most 12 quasi-identifiers. This is what the attacker `exact` of linkage_risk looks for, who draws
one subset for each target. Cost: for rows one sort a subset; for boxes targets times distinct boxes, once for all
subsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from duckdb_anon.kernels.attacks.record_matching import count_covering
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.cells import Boxes, PublishedCells, distinct_boxes
from duckdb_anon.measures.released_rows import OfRelease, is_plain, released_rows, require_columns
from duckdb_anon.measures.risk.linkage_risk import P_MATCH
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError
from duckdb_anon.model.function_specs import Parameter, Params, fields
from duckdb_anon.model.progress import stop_flag, tick
from duckdb_anon.model.release_table import BoolArray, ReadColumn, ReadTable

MOST_COLUMNS = 12
_BLOCK = 16_000_000


def disclosure(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row: both disclosures, averaged over the targets."""
    original, release = tables
    qi = [info.name for info in params["roles"].qi]
    sensitive = [info.name for info in params["roles"].sensitive]
    require_columns("disclosure", release, [*qi, *sensitive])
    if not original.rows or not release.rows:
        raise RequirementError("disclosure: the original or the release is empty, so there is no record to attack")
    true_row = released_rows("disclosure", original, release)
    targets = _targets(original.rows, params["targets"], rng)
    for name in sensitive:
        if not (release.columns[name].plain or release.columns[name].counted):
            raise ColumnError(
                f"disclosure: the release's column '{name}' is neither plain values nor counts of them; releases of "
                "lists or nodes cannot be read"
            )
    values = np.stack([original.columns[name].value_codes()[targets] for name in qi], axis=1).astype(np.int64)
    secrets = [_secret(original.columns[name].value_codes()[targets], release.columns[name]) for name in sensitive]
    measure = _of_rows if is_plain(release, qi) else _of_boxes
    subsets, weights = _knowledge(len(qi), params["p_match"])
    identity, attribute = measure(release, qi, values, secrets, true_row[targets], subsets, weights)
    figures = identity.mean(), attribute.mean(), identity.max(), attribute.max()
    return MEASURE.columns([(params["p_match"], len(targets), *figures)])


def _targets(rows: int, wanted: int | None, rng: np.random.Generator) -> IntArray:
    if wanted is None or wanted >= rows:
        return np.arange(rows, dtype=np.int64)
    return np.sort(rng.choice(rows, wanted, replace=False))


def _knowledge(qi: int, p: float) -> tuple[BoolArray, FloatArray]:
    """Subsets that the attacker may know, and the probability of each."""
    if qi > MOST_COLUMNS:
        raise ParameterError(
            f"disclosure: {qi} quasi-identifiers have too many subsets. Name at most {MOST_COLUMNS} in qi := [...]; "
            "linkage_risk takes any number"
        )
    subsets = np.array([bits for bits in product((False, True), repeat=qi) if any(bits)])
    size = subsets.sum(axis=1)
    weights = p**size * (1 - p) ** (qi - size) / (1 - (1 - p) ** qi)
    return subsets[weights > 0], weights[weights > 0]


@dataclass(frozen=True)
class _Secret:
    """One sensitive column: published row `of_row[e]` carries `code[e]` to the share `share[e]`."""

    truth: IntArray  # code of each target
    domain: int  # number of codes
    of_row: IntArray
    code: IntArray
    share: FloatArray


def _secret(truth: CodeArray, column: ReadColumn) -> _Secret:
    """What each row carries: one value, or the values of its bucket by their share in it."""
    cells = PublishedCells.distinct(column)
    carried = cells.shares[cells.of_row].tocoo()
    of_row, code = carried.row.astype(np.int64), carried.col.astype(np.int64)
    return _Secret(truth.astype(np.int64), column.domain.size, of_row, code, carried.data)


def _of_rows(
    release: ReadTable,
    qi: list[str],
    values: IntArray,
    secrets: list[_Secret],
    true_row: IntArray,
    subsets: BoolArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Identity and attribute disclosure of each target where published values equal the known ones."""
    identity, attribute = np.zeros(len(values)), np.zeros(len(values))
    published = [release.columns[name].value_codes() for name in qi]
    sizes = [release.columns[name].domain.size for name in qi]
    for known, weight in zip(subsets, weights, strict=True):
        tick()
        use = np.flatnonzero(known)
        alike = keys_of([np.concatenate([published[a], values[:, a]]) for a in use], [sizes[a] for a in use])
        of_row, of_target = alike.of_row[: release.rows], alike.of_row[release.rows :]
        matches = np.bincount(of_row, minlength=alike.number)[of_target].astype(np.float64)
        share = np.divide(weight, matches, out=np.zeros(len(values)), where=matches > 0)
        identity += share * ((true_row >= 0) & (of_row[true_row] == of_target))
        attribute += share * np.max([_carried(s, of_row, of_target, alike.number) for s in secrets], axis=0)
    return identity, attribute


def _carried(secret: _Secret, of_row: IntArray, of_target: IntArray, keys: int) -> FloatArray:
    """Rows of each target's key that carry the target's value."""
    codes = np.concatenate([secret.code, secret.truth])
    pair, first = keys_of([np.concatenate([of_row[secret.of_row], of_target]), codes], [keys, secret.domain])
    entries = len(secret.code)
    carried = np.bincount(pair[:entries], weights=secret.share, minlength=len(first)).astype(np.float64)
    found: FloatArray = carried[pair[entries:]]
    return found


def _of_boxes(
    release: ReadTable,
    qi: list[str],
    values: IntArray,
    secrets: list[_Secret],
    true_row: IntArray,
    subsets: BoolArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The same where boxes, sets and nodes cover each known value."""
    boxes = distinct_boxes(release, qi)
    size = np.bincount(boxes.of_row, minlength=boxes.number).astype(np.float64)
    tables = []
    for secret in secrets:
        carried = np.zeros((secret.domain, boxes.number))
        np.add.at(carried, (secret.code, boxes.of_row[secret.of_row]), secret.share)
        tables.append(carried)
    first_secret = np.cumsum([0, *(secret.domain for secret in secrets)])[:-1]
    truth = np.stack([s.truth + f for s, f in zip(secrets, first_secret, strict=True)], axis=1)
    bits = subsets @ (1 << np.arange(len(qi)))
    box = np.where(true_row >= 0, boxes.of_row[true_row], -1)
    alike = keys_of([*values.T, *truth.T, box + 1])
    identity, attribute = np.zeros(alike.number), np.zeros(alike.number)
    sets = 1 << len(qi)
    step = max(1, min(_BLOCK // boxes.number, _BLOCK // sets))
    for at in range(0, alike.number, step):
        tick()
        block, some = slice(at, at + step), alike.first[at : at + step]
        covered, row = _covered(boxes, values[some])
        out = np.zeros((1 + len(secrets), len(some), sets))
        count_covering(covered, row, size, np.vstack(tables), truth[some], out, stop_flag())
        counts = out[:, :, bits]
        hit = (_covering(boxes, values[some], box[some])[:, None] & bits) == bits
        share = np.divide(weights, counts[0], out=np.zeros(counts[0].shape), where=counts[0] > 0)
        identity[block] = (share * hit).sum(axis=1)
        attribute[block] = (share * counts[1:].max(axis=0)).sum(axis=1)
    return identity[alike.of_row], attribute[alike.of_row]


def _covered(boxes: Boxes, values: IntArray) -> tuple[BoolArray, IntArray]:
    """Whether each box covers the different values of all columns, and the row of each target's value among them."""
    tables, rows, before = [], np.zeros(values.shape, dtype=np.int64), 0
    for a, cells in enumerate(boxes.columns):
        different, index = np.unique(values[:, a], return_inverse=True)
        tables.append(cells.covered(different))
        rows[:, a] = index + before
        before += len(different)
    return np.vstack(tables), rows


def _covering(boxes: Boxes, values: IntArray, box: IntArray) -> IntArray:
    """Columns in which a box covers the values, as a bit mask for each pair; 0 for no box."""
    mask = np.zeros(len(box), dtype=np.int64)
    there = np.flatnonzero(box >= 0)
    for a, cells in enumerate(boxes.columns):
        mask[there] |= cells.covers(values[there, a], box[there]).astype(np.int64) << a
    return mask


MEASURE = OfRelease(
    name="disclosure",
    summary="the MuCo paper's disclosure measure, which counts exact matches only; linkage_risk also "
    "counts near matches",
    paper="Li et al. (2020), arXiv 2008.10771, section 5.1",
    example="FROM disclosure('people', 'release', p_match := 0.7)",
    section="From papers, for comparison",
    instead=("linkage_risk", "attribute_risk"),
    parameters=(
        replace(P_MATCH, default=0.7),
        Parameter("targets", "number of randomly chosen targets (default: every original record)", "integer", low=1),
    ),
    returns=fields(
        "p_match DOUBLE, targets BIGINT, identity DOUBLE, attribute DOUBLE, identity_highest DOUBLE, "
        "attribute_highest DOUBLE"
    ),
    compute=disclosure,
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "sampled", "suppressed", "retained"),
    needs=("qi", "sensitive"),
)
