"""Scores of released rows for targets, and what an attacker makes of them.

An attacker holds, for each target, a score of every distinct cell of every published column. The score of a row is
the sum over its cells; she picks evenly among the rows that score best, and votes on the sensitive value with the
rows' weights (identity and attribute disclosure by an attacker with a score, as in record linkage: Torra and
Domingo-Ferrer 2003; Domingo-Ferrer and Torra 2001). Cost: targets times rows times groups of columns (joined.py), each
one lookup.

Equal rows are scored once: a unit is a distinct row (or a bucket of a sliced release) of `size` released rows. Somebody
with several rows in the original has several records; scores have a row a record, targets say where theirs begin.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

TIE = 1e-9
BLOCK = 2048
"""Rows summed at a time: their sums stay in the fastest cache while the columns pass."""
FAINT = 30.0
"""A row this far below the best of its bucket adds e^-30 of it."""


@compiled
def row_scores(cells: CodeArray, local: FloatArray, floor: float, out: FloatArray) -> None:
    """Sum each row's scores for each target.

    Args:
        cells: place in `local` of each row's combination in each group of columns, shape (groups, rows).
        local: score of each combination for each target, shape (targets, combinations of all groups).
        floor: least sum; lower ones are raised to it.
        out: sums, shape (targets, rows).
    """
    rows = out.shape[1]
    for t in range(out.shape[0]):
        for start in range(0, rows, BLOCK):
            end = min(start + BLOCK, rows)
            for j in range(start, end):
                out[t, j] = local[t, cells[0, j]]
            for a in range(1, cells.shape[0]):
                for j in range(start, end):
                    out[t, j] += local[t, cells[a, j]]
            for j in range(start, end):
                if out[t, j] < floor:
                    out[t, j] = floor


@compiled
def bucket_scores(scores: FloatArray, look: CodeArray, start: IntArray, share: bool, out: FloatArray) -> None:
    """Score of each bucket for one column of a sliced release, whose rows stand bucket by bucket.

    Args:
        scores: score of each distinct row, shape (targets, distinct rows).
        look: which of them each row is, shape (rows,).
        start: first row of each bucket and the number of rows, shape (buckets + 1,).
        share: log of the mean of the rows' exponentials (a cell of the bucket at random is hers); else the best row.
        out: shape (targets, buckets); added to.
    """
    for t in range(scores.shape[0]):
        for b in range(len(start) - 1):
            best = -np.inf
            for j in range(start[b], start[b + 1]):
                best = max(best, scores[t, look[j]])
            if share and best > -np.inf:
                total = 0.0
                for j in range(start[b], start[b + 1]):
                    behind = best - scores[t, look[j]]
                    if behind < TIE:
                        total += 1.0
                    elif behind < FAINT:
                        total += np.exp(-behind)
                best += np.log(total / (start[b + 1] - start[b]))
            out[t, b] += best


@compiled
def leave_out_groups(
    scores: FloatArray, start: IntArray, group_of_unit: IntArray, own_start: IntArray, own_group: IntArray
) -> None:
    """Set the score to minus infinity outside the groups of a target's own rows.

    Args:
        scores: shape (records, units), changed.
        start: first record of each target and the number of records, shape (targets + 1,).
        group_of_unit: shape (units,).
        own_start: first own row of each target and their number, shape (targets + 1,).
        own_group: group of each of those rows.
    """
    for t in range(len(start) - 1):
        for r in range(start[t], start[t + 1]):
            for j in range(scores.shape[1]):
                inside = False
                for e in range(own_start[t], own_start[t + 1]):
                    if own_group[e] == group_of_unit[j]:
                        inside = True
                        break
                if not inside:
                    scores[r, j] = -np.inf


@compiled
def own_share(
    scores: FloatArray, start: IntArray, size: FloatArray, own_start: IntArray, own: IntArray, out: FloatArray
) -> None:
    """Chance that a row picked evenly among the best is one of the target's own.

    Args:
        scores: shape (records, units); a target has one record, or several, each of which may fit any row.
        start: first record of each target and the number of records, shape (targets + 1,).
        size: released rows of each unit, shape (units,).
        own_start: first own row of each target and their number, shape (targets + 1,).
        own: unit of each of those rows; somebody who was not released has none.
        out: shape (targets,): own rows that score best over all rows that do, each counted for every record it fits.
    """
    for t in range(len(out)):
        best = -np.inf
        for r in range(start[t], start[t + 1]):
            for j in range(scores.shape[1]):
                best = max(best, scores[r, j])
        out[t] = 0.0
        if best == -np.inf:
            continue
        mine = 0.0
        for r in range(start[t], start[t + 1]):
            for e in range(own_start[t], own_start[t + 1]):
                if scores[r, own[e]] >= best - TIE:
                    mine += 1.0
        if mine == 0.0:
            continue
        rows = 0.0
        for r in range(start[t], start[t + 1]):
            for j in range(scores.shape[1]):
                if scores[r, j] >= best - TIE:
                    rows += size[j]
        out[t] = mine / rows


@compiled
def vote(
    scores: FloatArray,
    start: IntArray,
    reach: float,
    offsets: IntArray,
    code: CodeArray,
    weight: FloatArray,
    tilt: FloatArray,
    normed: bool,
    truth_start: IntArray,
    truth: IntArray,
    told_start: IntArray,
    told: IntArray,
    votes: FloatArray,
    out: FloatArray,
) -> None:
    """Chance that the value with most votes is one of the target's.

    Args:
        scores: shape (records, units).
        start: first record of each target and the number of records, shape (targets + 1,); the records' votes add up.
        reach: 0: the best units vote evenly; else units vote with the exponential of their score, up to `reach` below
            the best of all records.
        offsets: unit j carries the values code[offsets[j]:offsets[j + 1]], shape (units + 1,).
        code: sensitive codes.
        weight: rows that carry each of them.
        tilt: what a model says of each value for each record, shape (records, sensitive domain); of shape (records, 0)
            for none.
        normed: whether a unit's values share its weight after the tilt, as they did before.
        truth_start: first value of each target and their number, shape (targets + 1,).
        truth: the targets' own codes that are to be found.
        told_start: as truth_start.
        told: the targets' own codes that are known beforehand; nobody votes for them.
        votes: zeros, shape (sensitive domain,); left so.
        out: shape (targets,): how many of the values with most votes are hers, over their number.
    """
    touched = np.empty(len(votes), dtype=np.int64)
    tilted = tilt.shape[1] > 0
    for t in range(len(out)):
        best = -np.inf
        for r in range(start[t], start[t + 1]):
            for j in range(scores.shape[1]):
                best = max(best, scores[r, j])
        out[t] = 0.0
        if best == -np.inf:
            continue
        found = 0
        for r in range(start[t], start[t + 1]):
            for j in range(scores.shape[1]):
                behind = best - scores[r, j]
                if behind > max(reach, TIE):
                    continue
                strength = np.exp(-behind) if reach > 0 else 1.0
                if tilted and normed:
                    before, after = 0.0, 0.0
                    for e in range(offsets[j], offsets[j + 1]):
                        before += weight[e]
                        after += weight[e] * tilt[r, code[e]]
                    strength *= before / after if after > 0.0 else 0.0
                for e in range(offsets[j], offsets[j + 1]):
                    s = code[e]
                    share = strength * weight[e] * (tilt[r, s] if tilted else 1.0)
                    if share > 0.0:
                        if votes[s] == 0.0:
                            touched[found] = s
                            found += 1
                        votes[s] += share
        for e in range(told_start[t], told_start[t + 1]):
            votes[told[e]] = 0.0
        most = 0.0
        for k in range(found):
            most = max(most, votes[touched[k]])
        winners, hits = 0, 0
        for k in range(found):
            if votes[touched[k]] > 0.0 and votes[touched[k]] >= most * (1 - TIE):
                winners += 1
        for e in range(truth_start[t], truth_start[t + 1]):
            if votes[truth[e]] > 0.0 and votes[truth[e]] >= most * (1 - TIE):
                hits += 1
        if hits > 0:
            out[t] = hits / winners
        for k in range(found):
            votes[touched[k]] = 0.0
