"""The attacker with a register of everybody's quasi-identifiers, which assigns records one to one.

It runs the method's grouping on the release and on the register and takes the one whose groups the other side fits
better, or sees which released class covers whom. Rows are spread over the individuals of their groups so that each has
one (Sinkhorn and Knopp 1967), weighted by a model of the sensitive value trained on the release. Individuals of other
groups compete for no row of a group, so the work is done in blocks.
Cost: rows times groups times columns; not tried beyond `MOST_SCORES`.
"""

from __future__ import annotations

import numpy as np
import scipy

from duckdb_anon.kernels.cells.table import Boxes
from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.risk.attackers.record_linkage import REACH
from duckdb_anon.measures.risk.attackers.regroup import GroupValues
from duckdb_anon.measures.risk.attackers.sensitive_model import models_of
from duckdb_anon.measures.risk.attacks import Attacker, Label, NotApplicable, Scoring
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, Register, once_per_release
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import BoolArray, CodeArray, FloatArray, IntArray
from duckdb_anon.model.progress import tick

MOST_SCORES, MOST_PAIRS = 1_000_000_000, 30_000_000
CANDIDATES = 3
"""Groups that a released row may belong to."""
PASSES = 30
LEAST = 30.0
"""Pairs that score this far below the best of their row are out of question."""
_BLOCK = 128
_Pairs = tuple[IntArray, IntArray, FloatArray]


@once_per_release
def scoring(release: PublishedRecords) -> Scoring:
    """Score each row by the chance that it is the individual's, under one-to-one assignment."""
    register = release.register
    if register is None:
        raise NotApplicable("This attacker needs a register: one row per individual, and p_match := 1")
    if release.plain and release.replay is not None and release.replay.group is not None:
        person, row, score = _located(release, register, release.replay.group)
    elif release.start is None and release.group_of_unit is not None and not any(s.mixed for s in release.secrets):
        person, row, score = _covered(release, register, release.group_of_unit)
    else:
        raise NotApplicable("This attacker needs classes, or a method that moves values inside groups, and its call")
    if release.secrets:
        everybody = register.values.T
        known = np.broadcast_to(register.known, everybody.shape)
        for model in models_of(release):
            score = score + model.log_ratio_of(everybody, known)[person, model.bin_of_row[row]]
    people, rows = register.values.shape[1], len(release.unit_of_row)
    chance = balanced(person, row, score, people, rows)
    shares = scipy.sparse.csr_matrix((chance, (person, row)), (people, rows))

    def assigned(some: Targets) -> FloatArray:
        chance = shares[np.repeat(some.who, np.diff(some.start))].toarray()
        scores: FloatArray = np.log(chance, out=np.full(chance.shape, -np.inf), where=chance > 0)
        return scores

    labels = [Label(np.arange(rows), assigned)]
    return Scoring([], reach=REACH, labels=labels, register=True, channel=release.channel)


def balanced(person: IntArray, row: IntArray, score: FloatArray, people: int, rows: int) -> FloatArray:
    """Chance of each pair, so that every row and every individual has about one in all.

    >>> balanced(np.array([0, 0, 1]), np.array([0, 1, 1]), np.zeros(3), 2, 2).round(1).tolist()
    [1.0, 0.0, 1.0]
    """
    best = np.full(rows, -np.inf)
    np.maximum.at(best, row, score)
    chance = np.exp(np.maximum(score - best[row], -LEAST))
    for _ in range(PASSES):
        _shared(row, chance, np.zeros(rows))
        _shared(person, chance, np.zeros(people))
    return np.asarray(chance)


@compiled
def _shared(side: IntArray, chance: FloatArray, total: FloatArray) -> None:
    """Divide the chances by their sum for each row, or for each individual; `total`: zeros for the sums."""
    for pair in range(len(side)):
        total[side[pair]] += chance[pair]
    for pair in range(len(side)):
        chance[pair] /= total[side[pair]]


def _located(release: PublishedRecords, register: Register, released_group: IntArray) -> _Pairs:
    """Pairs of individuals and rows of one group, by the groups of the register or of the release that fit better."""
    released = np.stack([cells.value_codes()[cells.of_row] for cells in release.columns])
    domains = [cells.domain.size for cells in release.columns]
    person, row, score, fit = _in_groups(register.values, register.known, released_group, released, domains)
    if register.group is None or register.published is None:
        return person, row, score
    every = np.ones(len(domains), dtype=bool)
    other = _in_groups(released, every, register.group, register.published, domains)
    return (person, row, score) if fit >= other[3] else (other[1], other[0], other[2])


def _in_groups(
    values: CodeArray, known: BoolArray, group: IntArray, codes: CodeArray, domains: list[int]
) -> tuple[IntArray, IntArray, FloatArray, float]:
    """Pairs of a record and the members of its likeliest groups, their scores, and the mean score of the best group."""
    size = np.bincount(group)
    alike = keys_of(list(values))
    if alike.number * len(size) > MOST_SCORES:
        raise NotApplicable(
            f"{alike.number:,} records and {len(size):,} groups are too many to compare; measure a sample"
        )
    groups = GroupValues.of(group, codes, domains)
    take = min(CANDIDATES, len(size))
    candidate, likely = np.empty((alike.number, take), dtype=np.int64), np.empty((alike.number, take))
    for at in range(0, alike.number, _BLOCK):
        tick()
        some = values[:, alike.first[at : at + _BLOCK]].T
        scores = groups.log_likelihood(some, np.broadcast_to(known, some.shape))
        best = np.argpartition(-scores, take - 1, axis=1)[:, :take]
        candidate[at : at + _BLOCK], likely[at : at + _BLOCK] = best, np.take_along_axis(scores, best, axis=1)
    record = np.repeat(np.arange(values.shape[1]), take)
    of_pair, score = candidate[alike.of_row].ravel(), likely[alike.of_row].ravel()
    top = likely.max(axis=1)[alike.of_row]
    keep = score > np.repeat(top, take) - LEAST
    member, record, score = _members(group, size, record[keep], of_pair[keep], score[keep])
    return record, member, score, float(top.mean())


def _members(group: IntArray, size: IntArray, row: IntArray, of_pair: IntArray, score: FloatArray) -> _Pairs:
    """Pairs of a row and every individual of a group, from pairs of a row and a group."""
    order, start = np.argsort(group, kind="stable"), np.cumsum(size) - size
    many = size[of_pair]
    if int(many.sum()) > MOST_PAIRS:
        raise NotApplicable("Groups are too large to assign their records one to one")
    return order[ranges(start[of_pair], many)], np.repeat(row, many), np.repeat(score, many)


def _covered(release: PublishedRecords, register: Register, group_of_unit: IntArray) -> _Pairs:
    """Pairs of individuals and rows of the classes that cover them, each class over the values that it covers."""
    _, first, number = np.unique(group_of_unit, return_index=True, return_inverse=True)
    facts = list(register.values[register.known])
    different, size = keys_of(facts).number, np.bincount(number[release.unit_of_row], minlength=len(first))
    if different * len(first) > MOST_SCORES:
        raise NotApplicable(f"{different:,} individuals and {len(first):,} classes are too many; measure a sample")
    rows, known = release.first_row[first], np.flatnonzero(register.known)
    columns = [release.columns[a].of_rows(rows) for a in known]
    fits = Boxes(number, rows, columns).matches(facts).tocoo()
    width = np.sum([np.log(np.maximum(cells.sizes, 1)) for cells in columns], axis=0)
    row, person, score = _members(number[release.unit_of_row], size, fits.row, fits.col, -width[fits.col])
    return person, row, score


REGISTER = Attacker(
    "register", "records assigned one to one to a register of all individuals, with the sensitive model", scoring,
    order=8,
)  # fmt: skip
