"""disclosure: the MuCo paper's measure of exact matches; it does not see near ones, so it is no bound on risk.

A release in which nobody keeps all values has identity 0 at p_match 1, and `linkage_risk` finds one in five. An
attacker knows each quasi-identifier with probability `p_match`, at least one. Identity disclosure is 1/matches where
the target's own row is among the rows that match, attribute disclosure the share of matches with her sensitive value,
0 without a match; means over targets, in [0, 1] (Li et al. 2020, section 5.1). A plain value matches when equal, a box
when it covers the value; counts of a bucket carry each value to its share; slices are taken as printed. Of several
sensitive columns the most exposed counts. Departure: the mean over what is known is exact, over all subsets by their
probabilities, up to 12 quasi-identifiers; with more, one subset is drawn for each target.
Cost: for rows one sort a subset; for boxes targets times distinct boxes a subset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.cells import PublishedCells, distinct_boxes
from duckdb_anon.measures.released_rows import is_plain, released_rows, require_columns
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.function_specs import Parameter, Params, Report, fields
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import BoolArray, ReadColumn, ReadTable

EXACT_UP_TO = 12
_BLOCK = 1_000_000


def disclosure(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row: both disclosures, averaged over the targets."""
    original, release = tables
    qi = [info.name for info in params["roles"].qi]
    sensitive = [info.name for info in params["roles"].sensitive]
    require_columns("disclosure", release, [*qi, *sensitive])
    if not original.rows or not release.rows:
        raise RequirementError("disclosure: the original or the release is empty; there is nobody to look for")
    own = released_rows("disclosure", original, release)
    targets = _targets(original.rows, params["targets"], rng)
    identity = np.zeros(len(targets))
    attribute = np.zeros(len(targets))
    for name in sensitive:
        if not (release.columns[name].plain or release.columns[name].counted):
            raise ColumnError(
                f"disclosure: the release's column '{name}' is neither plain values nor counts of them; releases of "
                "lists or nodes cannot be read"
            )
    secrets = [_secret(original.columns[name], release.columns[name]) for name in sensitive]
    matcher = (_ReleasedRows if is_plain(release, qi) else _ReleasedBoxes)(original, release, qi, secrets, own)
    for known, weight in _knowledge(len(qi), len(targets), params["p_match"], rng):
        tick()
        picked = np.flatnonzero(weight > 0)
        own_hit, matches, with_secret = matcher.match(targets[picked], known)
        found = matches > 0
        at = picked[found]
        identity[at] += weight[at] * own_hit[found] / matches[found]
        attribute[at] += weight[at] * with_secret[found] / matches[found]
    return {
        "p_match": [params["p_match"]],
        "targets": [len(targets)],
        "identity": [identity.mean()],
        "attribute": [attribute.mean()],
        "identity_highest": [identity.max()],
        "attribute_highest": [attribute.max()],
    }


def _targets(rows: int, wanted: int | None, rng: np.random.Generator) -> IntArray:
    if wanted is None or wanted >= rows:
        return np.arange(rows, dtype=np.int64)
    return np.sort(rng.choice(rows, wanted, replace=False))


def _knowledge(qi: int, targets: int, p: float, rng: np.random.Generator) -> list[tuple[BoolArray, FloatArray]]:
    """Subsets the attacker may know, each with its weight for every target."""
    if qi <= EXACT_UP_TO:
        some = 1 - (1 - p) ** qi
        subsets = [np.array(bits, dtype=bool) for bits in product((False, True), repeat=qi) if any(bits)]
        weights = [p ** s.sum() * (1 - p) ** (qi - s.sum()) / some for s in subsets]
        return [(s, np.full(targets, w)) for s, w in zip(subsets, weights, strict=True) if w > 0]
    drawn = rng.random((targets, qi)) < p
    while not (known := drawn.any(axis=1)).all():
        drawn[~known] = rng.random((int((~known).sum()), qi)) < p
    different, index = np.unique(drawn, axis=0, return_inverse=True)
    return [(s, (index == k).astype(np.float64)) for k, s in enumerate(different)]


@dataclass(frozen=True)
class _Secret:
    """One sensitive column, of the targets and as published.

    Attributes:
        theirs: code of each original record.
        domain: number of codes.
        of_row, code, share: published row `of_row[e]` carries `code[e]` to the share `share[e]`.
    """

    theirs: IntArray
    domain: int
    of_row: IntArray
    code: IntArray
    share: FloatArray


def _secret(original: ReadColumn, column: ReadColumn) -> _Secret:
    """What each row carries: one value, or the values of its bucket by their share in it."""
    cells = PublishedCells.distinct(column)
    carried = cells.shares[cells.of_row].tocoo()
    of_row, code = carried.row.astype(np.int64), carried.col.astype(np.int64)
    return _Secret(original.value_codes().astype(np.int64), original.domain.size, of_row, code, carried.data)


class _ReleasedRows:
    """Matching against published values: equal on everything known."""

    def __init__(
        self, original: ReadTable, release: ReadTable, qi: list[str], secrets: list[_Secret], own: IntArray
    ) -> None:
        self.theirs = [original.columns[name].value_codes() for name in qi]
        self.ours = [release.columns[name].value_codes() for name in qi]
        self.sizes = [original.columns[name].domain.size for name in qi]
        self.rows = release.rows
        self.secrets = secrets
        self.own = own

    def match(self, targets: IntArray, known: BoolArray) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Whether the own row matches, number of matches, and matches with the target's most exposed secret."""
        use = np.flatnonzero(known)
        both = [np.concatenate([self.ours[a], self.theirs[a][targets]]) for a in use]
        alike = keys_of(both, [self.sizes[a] for a in use])
        keys, published, asked = alike.number, alike.of_row[: self.rows], alike.of_row[self.rows :]
        matches = np.bincount(published, minlength=keys)[asked].astype(np.float64)
        with_secret = np.zeros(len(targets))
        for secret in self.secrets:
            values = np.concatenate([secret.code, secret.theirs[targets]])
            pair, first = keys_of([np.concatenate([published[secret.of_row], asked]), values], [keys, secret.domain])
            entries = len(secret.code)
            held = np.bincount(pair[:entries], weights=secret.share, minlength=len(first)).astype(np.float64)
            with_secret = np.maximum(with_secret, held[pair[entries:]])
        own = self.own[targets]
        return (own >= 0) & (published[own] == asked), matches, with_secret


class _ReleasedBoxes:
    """Matching against boxes, sets and nodes: each known value is covered."""

    def __init__(
        self, original: ReadTable, release: ReadTable, qi: list[str], secrets: list[_Secret], own: IntArray
    ) -> None:
        self.boxes = distinct_boxes(release, qi)
        self.theirs = [original.columns[name].value_codes().astype(np.int64) for name in qi]
        self.secrets = secrets
        self.values = []
        for secret in secrets:
            held = np.zeros((secret.domain, self.boxes.number), dtype=np.float32)
            np.add.at(held, (secret.code, self.boxes.of_row[secret.of_row]), secret.share)
            self.values.append(held)
        self.size = np.bincount(self.boxes.of_row, minlength=self.boxes.number).astype(np.float32)
        self.own = own

    def match(self, targets: IntArray, known: BoolArray) -> tuple[BoolArray, FloatArray, FloatArray]:
        """As `_ReleasedRows.match`; targets with equal known values and secrets are matched once."""
        use = np.flatnonzero(known).tolist()
        columns = [self.theirs[a][targets] for a in use]
        index, first = keys_of([*columns, *(secret.theirs[targets] for secret in self.secrets)])
        matches, with_secret = np.zeros(len(first)), np.zeros(len(first))
        step = max(1, _BLOCK // self.boxes.number)
        for at in range(0, len(first), step):
            tick()
            block, some = slice(at, at + step), targets[first[at : at + step]]
            covered = self.boxes.covered([column[first[block]] for column in columns], use)
            matches[block] = covered @ self.size
            for secret, held in zip(self.secrets, self.values, strict=True):
                found = np.einsum("ij,ij->i", covered, held[secret.theirs[some]])
                with_secret[block] = np.maximum(with_secret[block], found)
        own = self.own[targets]
        hit = own >= 0
        for a, column in zip(use, columns, strict=True):
            hit &= self.boxes.columns[a].covers(column, self.boxes.of_row[own])
        return hit, matches[index], with_secret[index]


MEASURE = Report(
    name="disclosure",
    summary="the MuCo paper's disclosure measure, which counts exact matches only; linkage_risk also "
    "counts near matches",
    paper="Li et al. (2020), arXiv 2008.10771, section 5.1",
    example="FROM disclosure('people', 'release', p_match := 0.7)",
    section="From papers, for comparison",
    instead=("linkage_risk", "attribute_risk"),
    parameters=(
        Parameter(
            "p_match",
            "probability that the attacker knows a quasi-identifier, in (0, 1]",
            "number",
            0.7,
            high=1,
            above=0,
        ),
        Parameter("targets", "number of randomly chosen targets (default: every original record)", "integer", low=1),
    ),
    returns=fields(
        "p_match DOUBLE, targets BIGINT, identity DOUBLE, attribute DOUBLE, identity_highest DOUBLE, "
        "attribute_highest DOUBLE"
    ),
    compute=disclosure,
    tables=("original", "release"),
    reads="tables",
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "sampled", "suppressed", "retained"),
    needs=("qi", "sensitive"),
)
