"""Cuts chosen by the squared error of all attributes: the score `sse` of the partitioner.

A group of n rows is cut by one attribute (up to a value, one value, or the frequent values, against the rest) where
n_l n_r / n |mean_l - mean_r|^2 of the scaled features (`feature_encoding`) is largest. That is the drop of the
within-group squared error, the criterion of multivariate regression trees and of microaggregation (Domingo-Ferrer and
Mateo-Sanz 2002), taken top down. It needs the features of the parts only as sums, which change by the few features of a
row when the row changes sides: with n rows, m of them and the sum L on the left and S in all, it is
(n^2 |L|^2 - 2 n m L.S + m^2 |S|^2) / (n m (n - m)). Groups of more than `SAMPLE` rows choose by as many of their rows,
evenly spaced; where no such cut is allowed, by all of them.

Cost: rows times attributes times features of a row, a level.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import Place, compiled
from duckdb_anon.kernels.partition.feature_encoding import Features
from duckdb_anon.kernels.partition.partition_state import (
    FREQUENT,
    NOMINAL,
    ONLY,
    UP_TO,
    Columns,
    Rows,
    Workspace,
    order_by_rows,
    sort_codes,
)
from duckdb_anon.kernels.partition.split_candidates import NO_MORE, NO_ROOM, Candidates, add_cut
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray

Array = NDArray[Any]
SAMPLE = 4000
UNRANKED = 2**62
"""Rank of the codes that the sample lacks: they go with the less frequent ones."""


class ErrorScore(NamedTuple):
    """Features of the attributes, and working space for one thread."""

    sample: int  # rows a cut is chosen by, at most
    attributes: int  # how many may be cut; the others only count
    first_code: IntArray  # where each attribute's codes start in `start`
    start: IntArray  # where the features of each code start
    feature: Array  # feature of each entry
    value: FloatArray  # value of each entry
    sums: FloatArray  # zeros between uses, one a feature
    left_sums: FloatArray  # the same
    chosen: IntArray  # the rows a cut is chosen by
    entry_feature: IntArray  # features of each of these, shape (rows, entries)
    entry_value: FloatArray  # value of each
    entries: IntArray  # how many entries a row has
    toward: FloatArray  # product of its features with those of all rows
    total: FloatArray  # the square of the sum of all, -1 until it is needed, shape (1,)
    key: IntArray  # its code on one attribute
    order: IntArray  # places of the rows by key
    first: IntArray  # where each run of equal keys starts
    run_rows: IntArray  # rows of each run
    run: IntArray  # the runs by size
    tally: IntArray  # rows of each key

    @staticmethod
    def of(features: Features, attributes: int, rows: int) -> ErrorScore:
        """Make space for choosing by up to `rows` rows; the first `attributes` may be cut."""
        line = np.empty(rows, np.int64)
        return ErrorScore(
            min(rows, SAMPLE), attributes, features.first_code, features.start, features.feature, features.value,
            np.zeros(features.count), np.zeros(features.count),
            line, np.empty((rows, features.most), np.int64), np.empty((rows, features.most)), line.copy(),
            np.empty(rows), np.empty(1), line.copy(), line.copy(), np.empty(rows + 1, np.int64), line.copy(),
            line.copy(), np.empty(4 * rows + 1, np.int64),
        )  # fmt: skip


def left_to_right(attribute: Attribute) -> Attribute:
    """A hierarchy as an attribute whose codes follow its leaves from left to right."""
    if attribute.hierarchy is None:
        return attribute
    order = attribute.left_to_right
    return replace(
        attribute,
        codes=np.argsort(order).astype(np.int32)[attribute.codes],
        leaf_of_code=attribute.place_of_code[order],
        whole_counts=None if attribute.whole_counts is None else attribute.whole_counts[order],
    )


def without_tree(attribute: Attribute) -> Attribute:
    """An attribute of `left_to_right` that is cut between its codes."""
    if attribute.hierarchy is None:
        return attribute
    return replace(attribute, kind="ordered", hierarchy=None, leaf_of_code=None)


@compiled
def error_cuts(
    columns: Columns, rows: Rows, space: Workspace, found: Candidates, score: ErrorScore,
    min_size: int, start: int, stop: int, attempt: int,
) -> int:  # fmt: skip
    """List every cut that lowers the squared error, of a sample first and then of all rows; return how many."""
    size = min(stop - start, score.sample)
    if attempt > 1 or (attempt == 1 and size == stop - start):
        return NO_MORE
    if attempt == 1:
        size = stop - start
    if size > len(score.chosen):
        return NO_ROOM
    for i in range(size):
        score.chosen[i] = start + i
    if size < stop - start:
        for i in range(size):
            score.chosen[i] = start + i * (stop - start) // size
        for a in range(score.attributes):
            if columns.kind[a] == NOMINAL:
                for i in range(start, stop):
                    code = (rows.words[i, columns.word[a]] >> columns.shift[a]) & columns.lane[0]
                    space.rank[columns.offset[a] + np.int64(code)] = UNRANKED
    sample_cuts(columns, rows.words, space, found, score, min_size, stop - start, size)
    return found.found[0]


@compiled
def sample_cuts(
    columns: Columns, words: Array, space: Workspace, found: Candidates, score: ErrorScore, min_size: int, rows: int,
    size: int,
) -> None:  # fmt: skip
    """List every cut that lowers the squared error of a sample."""
    found.found[0], score.total[0] = 0, -1.0
    for a in range(score.attributes):
        runs = _runs(columns, score, size, words, a)
        if runs == 1:
            continue
        if columns.kind[a] != NOMINAL:
            _cuts_of_runs(columns, words, space, found, score, a, UP_TO, runs, size, rows, min_size)
            continue
        order_by_rows(score.run_rows, score.run, runs)
        for t in range(runs):
            space.rank[columns.offset[a] + score.key[score.order[score.first[score.run[t]]]]] = t
        _cuts_of_runs(columns, words, space, found, score, a, ONLY, runs, size, rows, min_size)
        if runs > 3:
            _cuts_of_runs(columns, words, space, found, score, a, FREQUENT, runs, size, rows, min_size)


@compiled
def _sum_up(columns: Columns, score: ErrorScore, size: int, words: Array) -> float:
    """List the features of the chosen rows, and the product of each row with all; return the square of their sum."""
    sums, total, attributes = score.sums, 0.0, len(columns.word)
    ones, step, lanes = columns.lane[0], columns.lane[1], int(columns.lane[3])
    for number in range(size):
        i, e = Place(number), Place(0)
        row = Place(score.chosen[i])
        for k in range(words.shape[1]):
            word = words[row, Place(k)]
            for a in range(k * lanes, min((k + 1) * lanes, attributes)):
                code = Place(score.first_code[Place(a)]) + (word & ones)
                word >>= step
                for entry in range(Place(score.start[code]), Place(score.start[code + Place(1)])):
                    f, v = Place(score.feature[entry]), score.value[entry]
                    score.entry_feature[i, e] = f
                    score.entry_value[i, e] = v
                    total += v * (2 * sums[f] + v)
                    sums[f] += v
                    e += Place(1)
        score.entries[i] = e
    for number in range(size):
        i, toward = Place(number), 0.0
        for e in range(Place(score.entries[i])):
            toward += score.entry_value[i, e] * sums[Place(score.entry_feature[i, e])]
        score.toward[i] = toward
    for number in range(size):
        i = Place(number)
        for e in range(Place(score.entries[i])):
            sums[Place(score.entry_feature[i, e])] = 0.0
    return total


@compiled
def _cuts_of_runs(
    columns: Columns, words: Array, space: Workspace, found: Candidates, score: ErrorScore, a: int, kind: int,
    runs: int, size: int, rows: int, min_size: int,
) -> None:  # fmt: skip
    """List the cuts of one kind: runs of equal codes go to the left one after another, or each of them alone."""
    order, first, sums = score.order, score.first, score.left_sums
    left, last = 0, -1  # no row after the last cut with enough rows on both sides need go to the left
    for t in range(runs if kind == ONLY and runs > 2 else runs - 1):
        r = score.run[t] if kind == FREQUENT else t
        left = score.run_rows[r] if kind == ONLY else left + score.run_rows[r]
        if _enough(left, size, rows, min_size):
            last = t
    if last < 0:
        return
    if score.total[0] < 0.0:
        score.total[0] = _sum_up(columns, score, size, words)
    left, square, along, total = 0, 0.0, 0.0, score.total[0]
    for t in range(last + 1):
        r = score.run[t] if kind == FREQUENT else t
        if kind == ONLY and not _enough(score.run_rows[r], size, rows, min_size):
            continue
        for index in range(Place(first[r]), Place(first[r + 1])):
            i = Place(order[index])
            for e in range(Place(score.entries[i])):
                f, v = Place(score.entry_feature[i, e]), score.entry_value[i, e]
                square += v * (2 * sums[f] + v)
                sums[f] += v
            along += score.toward[i]
        left += first[r + 1] - first[r]
        if _enough(left, size, rows, min_size):
            between = size * (size * square - 2.0 * left * along) + 1.0 * left * left * total
            gain = between / (1.0 * size * left * (size - left))
            if gain > 0.0:
                code = score.key[order[first[r]]]
                at = code if kind == UP_TO else space.rank[columns.offset[a] + code]
                add_cut(found, kind, a, at, -gain)
        if kind == ONLY:
            _clear(score, first[r], first[r + 1])
            left, square, along = 0, 0.0, 0.0
    if kind != ONLY:
        _clear(score, 0, size)


@compiled
def _enough(left: int, size: int, rows: int, min_size: int) -> bool:
    """Whether a cut of the sample leaves enough of the group's rows on both sides."""
    return left * rows >= min_size * size and (size - left) * rows >= min_size * size


@compiled
def _clear(score: ErrorScore, low: int, high: int) -> None:
    """Put back to 0 the left sums of the features of the rows at places low .. high - 1."""
    sums = score.left_sums
    if len(sums) <= 2 * (high - low):
        for f in range(len(sums)):
            sums[f] = 0.0
        return
    for index in range(Place(low), Place(high)):
        i = Place(score.order[index])
        for e in range(Place(score.entries[i])):
            sums[Place(score.entry_feature[i, e])] = 0.0


@compiled
def _runs(columns: Columns, score: ErrorScore, size: int, words: Array, a: int) -> int:
    """Order the chosen rows by their code of an attribute; return how many codes they have."""
    chosen, key, order, first, tally = score.chosen, score.key, score.order, score.first, score.tally
    word, shift, ones = Place(columns.word[a]), columns.shift[a], columns.lane[0]
    lowest = highest = np.int64((words[Place(chosen[0]), word] >> shift) & ones)
    for i in range(Place(size)):
        code = np.int64((words[Place(chosen[i]), word] >> shift) & ones)
        key[i] = code
        lowest = min(lowest, code)
        highest = max(highest, code)
    if lowest == highest:
        return 1
    span = highest - lowest + 1
    if span <= 4 * size:
        for c in range(Place(span + 1)):
            tally[c] = 0
        for i in range(Place(size)):
            tally[Place(key[i] - lowest + 1)] += 1
        before = 0
        for c in range(Place(span)):
            before += tally[c]
            tally[c] = before
        for i in range(Place(size)):
            place = Place(key[i] - lowest)
            order[Place(tally[place])] = i
            tally[place] += 1
    else:
        for i in range(size):
            order[i] = key[i] * size + i
        sort_codes(order, size)
        for i in range(size):
            order[i] %= size
    runs = 0
    for index in range(size):
        if index == 0 or key[order[index]] != key[order[index - 1]]:
            first[runs] = index
            if runs > 0:
                score.run_rows[runs - 1] = index - first[runs - 1]
            runs += 1
    first[runs] = size
    score.run_rows[runs - 1] = size - first[runs - 1]
    return runs
