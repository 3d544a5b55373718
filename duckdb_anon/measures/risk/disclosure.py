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

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy

from duckdb_anon.kernels.cells.table import MeasureCall, ReadTable
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.released_rows import OfRelease, is_plain, released_rows, require_columns
from duckdb_anon.measures.risk.linkage_risk import P_MATCH
from duckdb_anon.model.coded_table import BoolArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError
from duckdb_anon.model.function_specs import Answer, Parameter, fields
from duckdb_anon.model.progress import tick

MOST_COLUMNS = 12
_BLOCK = 4_000_000


@dataclass(frozen=True)
class _Targets:
    """Individuals whom the attacker looks for, and the subsets of their values that the attacker may know."""

    values: IntArray  # codes of their quasi-identifiers, shape (targets, columns)
    true_row: IntArray  # their released rows, -1 for none
    # for each sensitive column their codes, and the share of each value in each released row, shape (rows, domain)
    secrets: list[tuple[IntArray, scipy.sparse.csr_matrix]]
    subsets: BoolArray
    weights: FloatArray  # probability of each subset


@OfRelease(
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
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "sampled", "suppressed", "retained"),
    needs=("qi", "sensitive"),
)
def disclosure(call: MeasureCall) -> Answer:
    """One row: both disclosures, averaged over the targets."""
    original, release, qi, params = call.original, call.release, call.qi, call.params
    require_columns(release, call.labelled)
    if not original.rows or not release.rows:
        raise RequirementError("the original or the release is empty, so there is no record to attack")
    true_row = released_rows(original, release)
    targets, wanted = np.arange(original.rows), params["targets"]
    if wanted is not None and wanted < original.rows:
        targets = np.sort(call.rng.choice(original.rows, wanted, replace=False))
    secrets = []
    for name in call.sensitive:
        if not (release.columns[name].plain or release.columns[name].counted):
            raise ColumnError(
                f"the release's column '{name}' is neither plain values nor counts of them; releases of "
                "lists or nodes cannot be read"
            )
        cells = release.columns[name].different
        truth = original.columns[name].value_codes()[targets].astype(np.int64)
        secrets.append((truth, cells.shares[cells.of_row]))
    values = np.stack([original.columns[name].value_codes()[targets] for name in qi], axis=1).astype(np.int64)
    known = _Targets(values, true_row[targets], secrets, *_knowledge(len(qi), params["p_match"]))
    identity, attribute = (_of_rows if is_plain(release, qi) else _of_boxes)(release, qi, known)
    figures = identity.mean(), attribute.mean(), identity.max(), attribute.max()
    return [(params["p_match"], len(targets), *figures)]


def _knowledge(qi: int, p: float) -> tuple[BoolArray, FloatArray]:
    """Subsets that the attacker may know, and the probability of each."""
    if qi > MOST_COLUMNS:
        raise ParameterError(
            f"{qi} quasi-identifiers have too many subsets. Name at most {MOST_COLUMNS} in qi := [...]; "
            "linkage_risk takes any number"
        )
    subsets = np.array([bits for bits in product((False, True), repeat=qi) if any(bits)])
    size = subsets.sum(axis=1)
    weights = p**size * (1 - p) ** (qi - size) / (1 - (1 - p) ** qi)
    return subsets[weights > 0], weights[weights > 0]


def _of_rows(release: ReadTable, qi: list[str], targets: _Targets) -> tuple[FloatArray, FloatArray]:
    """Identity and attribute disclosure of each target where published values equal the known ones."""
    values, row = targets.values, targets.true_row
    identity, attribute = np.zeros(len(values)), np.zeros(len(values))
    published = [release.columns[name].value_codes() for name in qi]
    sizes = [release.columns[name].domain.size for name in qi]
    for known, weight in zip(targets.subsets, targets.weights, strict=True):
        tick()
        use = np.flatnonzero(known)
        alike = keys_of([np.concatenate([published[a], values[:, a]]) for a in use], [sizes[a] for a in use])
        of_row, of_target = alike.of_row[: release.rows], alike.of_row[release.rows :]
        matches = np.bincount(of_row, minlength=alike.number)[of_target].astype(np.float64)
        share = np.divide(weight, matches, out=np.zeros(len(values)), where=matches > 0)
        identity += share * ((row >= 0) & (of_row[row] == of_target))
        rows_of_key = scipy.sparse.csr_matrix(
            (np.ones(release.rows), (of_row, np.arange(release.rows))), (alike.number, release.rows)
        )
        rates = [np.asarray((rows_of_key @ carried)[of_target, truth]).ravel() for truth, carried in targets.secrets]
        attribute += share * np.max(rates, axis=0)
    return identity, attribute


def _of_boxes(release: ReadTable, qi: list[str], targets: _Targets) -> tuple[FloatArray, FloatArray]:
    """The same where boxes, sets and nodes cover each known value.

    For each target and box, the columns in which the box covers the target's value are bits of a number. Rows are
    counted by it, and those that cover a subset are the sum over the numbers that contain the subset.
    """
    boxes, sets = release.boxes(qi), 1 << len(qi)
    size = np.bincount(boxes.of_row, minlength=boxes.number).astype(np.float64)
    rows_of_box = scipy.sparse.csr_matrix((np.ones(release.rows), (boxes.of_row, np.arange(release.rows))))
    of_box = [(rows_of_box @ carried).T.tocsr() for _, carried in targets.secrets]
    box = np.where(targets.true_row >= 0, boxes.of_row[targets.true_row], -1)
    bits = targets.subsets @ (1 << np.arange(len(qi)))
    alike = keys_of([*targets.values.T, *(truth for truth, _ in targets.secrets), box + 1])
    identity, attribute = np.zeros(alike.number), np.zeros(alike.number)
    step = max(1, min(_BLOCK // boxes.number, _BLOCK // sets))
    for at in range(0, alike.number, step):
        tick()
        block, some = slice(at, at + step), alike.first[at : at + step]
        covered = np.zeros((len(some), boxes.number), dtype=np.int16)
        for a, cells in enumerate(boxes.columns):
            covered |= cells.covers(targets.values[some, a]).astype(np.int16) << a
        own = np.where(box[some] >= 0, covered[np.arange(len(some)), box[some]], 0)
        place = (covered + sets * np.arange(len(some))[:, None]).ravel()
        rows = [np.broadcast_to(size, covered.shape)]
        rows += [held[truth[some]].toarray() for held, (truth, _) in zip(of_box, targets.secrets, strict=True)]
        counts = np.stack([np.bincount(place, each.ravel(), len(some) * sets) for each in rows])
        for a in range(len(qi)):
            without, inside = np.moveaxis(counts.reshape(len(rows), -1, 2, 1 << a), 2, 0)
            without += inside
        counts = counts.reshape(len(rows), len(some), sets)[:, :, bits]
        share = np.divide(targets.weights, counts[0], out=np.zeros(counts[0].shape), where=counts[0] > 0)
        identity[block] = (share * ((own[:, None] & bits) == bits)).sum(axis=1)
        attribute[block] = (share * counts[1:].max(axis=0)).sum(axis=1)
    return identity[alike.of_row], attribute[alike.of_row]
