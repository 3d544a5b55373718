"""Attackers on linked records that were permuted in groups (`permutation.linked_records`).

`nearest`: an outsider, who knows demographics and some rows of an individual, takes the pseudonym with the nearest
values. `insider`: knows the groups and all original values of the permuted columns. It weighs each pair of a member and
a pseudonym by P(sensitive values | known values), learnt on the released rows, and by how values move from the original
to the release, learnt where the truth is known (groups of the other half), which is more than an attacker has. Members
are dealt one to one (Sinkhorn).
Cost: targets times rows of at most `_HAYSTACK` individuals; the squares of the targets' groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.permutation.linked_records import Kept, Rows
from duckdb_anon.kernels.permutation.marginal_calibration import binned
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import tick

_HAYSTACK = 20_000
_MEMBERS = 4000  # of the groups in which a release is tried, about
_PRIOR = 20.0  # rows by which learnt shares are drawn to those of the table
_ROUNDS = 60
Bins = NDArray[Any]


@dataclass(frozen=True)
class Covered:
    """Linked records and what was made of them."""

    tables: Sequence[Rows]
    kept: Sequence[Kept]
    sources: Sequence[IntArray]
    group: IntArray  # of each individual
    attached: Sequence[Rows] = ()  # tables without permuted columns: their sensitive values are evidence too


def nearest(found: Covered, targets: IntArray, events: int, rng: np.random.Generator) -> FloatArray:
    """The chance to find each target by its demographics and at most `events` rows of each table."""
    individuals = len(found.group)
    haystack = np.ones(individuals, dtype=bool)
    if individuals > _HAYSTACK:
        haystack[rng.permutation(individuals)[_HAYSTACK:]] = False
        haystack[targets] = True
    seen = [_seen(found, number, haystack) for number, _ in enumerate(found.tables)]
    chances = np.zeros(len(targets))
    for at, target in enumerate(targets):
        tick()
        misfit = np.where(haystack, 0.0, np.inf)
        for number, (table, (owner, columns)) in enumerate(zip(found.tables, seen, strict=True)):
            rows = np.array([target]) if number == 0 else np.flatnonzero(table.individual == target)
            for row in rng.permutation(rows)[: max(events, int(number == 0))]:
                apart = np.zeros(len(owner))
                for before, after, is_ordered in columns:
                    apart += abs(after - before[row]) if is_ordered else after != before[row]
                closest = np.full(individuals, float(len(columns)))
                np.minimum.at(closest, owner, apart)
                misfit += closest
        best = misfit <= misfit.min() + 1e-9
        chances[at] = best[target] / best.sum()
    return chances


def _seen(found: Covered, number: int, haystack: NDArray[np.bool_]) -> tuple[IntArray, list[tuple[Any, Any, bool]]]:
    """Individuals of the released rows of a table, and each column before and after: places of values, or codes."""
    table, rows = found.tables[number], found.kept[number]
    owner = table.individual[rows.row]
    here = haystack[owner]
    columns = []
    for attribute, source in zip(table.columns, found.sources[number], strict=True):
        value = attribute.codes
        if attribute.kind == "ordered":
            counts = attribute.counts
            value = ((np.cumsum(counts) - counts / 2) / max(1, counts.sum()))[value]
        columns.append((value, value[rows.row[source]][here], attribute.kind == "ordered"))
    return owner[here], columns


def insider(found: Covered, targets: IntArray) -> FloatArray:
    """The chance to find each target by all original values of its group, shape (targets,)."""
    by_kind: list[list[FloatArray]] = [[np.zeros((2, 0))], [np.zeros((2, 0))]]
    groups = np.unique(found.group[targets])
    scores: dict[int, list[Any]] = {int(g): [0.0, 0.0] for g in groups}
    for kind, (rows, group, before, after, learnt), holder in _evidence(found):
        starts = np.searchsorted(group, [groups, groups + 1])
        for g, low, high in zip(groups.tolist(), *starts, strict=True):
            tick()
            for cell in range(rows.cell[low] if high > low else 0, rows.cell[high - 1] + 1 if high > low else 0):
                here = slice(rows.start[cell], rows.start[cell + 1])
                if holder is None:
                    scores[g][kind] = scores[g][kind] + learnt[g % 2][np.ix_(before[here], after[here])]
                    continue
                some = slice(*np.searchsorted(holder, [here.start, here.stop]))
                below = np.zeros((here.stop - here.start, len(learnt[0])))
                np.add.at(below, holder[some] - here.start, learnt[0].T[after[some]])
                scores[g][kind] = scores[g][kind] + below[:, before[here]].T
    members = found.kept[0]
    place = np.empty(len(found.group), dtype=np.int64)
    place[members.row] = np.arange(len(members.row)) - members.start[members.cell]
    for g in groups.tolist():
        size = members.start[g + 1] - members.start[g]
        known = np.flatnonzero(found.group[targets] == g)
        learnt, moved = (np.zeros((size, size)) + score for score in scores[g])
        for found_chances, score in zip(by_kind, (learnt, learnt + moved), strict=True):
            match = _dealt(score)
            best = match >= match.max(axis=1, keepdims=True) * (1 - 1e-9)
            own = place[targets[known]]
            found_chances.append(np.stack([known, best[own, own] / best[own].sum(axis=1)]))
    found_by = [np.concatenate(each, axis=1) for each in by_kind]
    strongest = max(found_by, key=lambda each: each[1].sum())
    return np.asarray(strongest[1][np.argsort(strongest[0])])


def tried(found: Covered, rng: np.random.Generator) -> list[FloatArray]:
    """The chances of `insider` on some groups: of all their members, and of those with most rows."""
    sizes = np.bincount(found.group)
    chosen = rng.permutation(len(sizes))
    chosen = chosen[np.cumsum(sizes[chosen]) - sizes[chosen] < _MEMBERS]
    targets = np.flatnonzero(np.isin(found.group, chosen))
    chances = insider(found, targets)
    rows = np.zeros(len(found.group))
    for table, kept in zip(found.tables[1:], found.kept[1:], strict=True):
        rows += np.bincount(table.individual[kept.row], minlength=len(rows))
    most = rows[targets] >= (np.median(rows[targets]) if len(targets) else 0)
    return [chances, chances[most]]


_Pair = tuple[Kept, IntArray, Bins, Bins, list[FloatArray]]


def _evidence(found: Covered) -> Iterator[tuple[int, _Pair, IntArray | None]]:
    """Pairs of a known value and a released one: 0 sensitive, 1 moved; log likelihood ratios for each half.

    The last is the kept row that each released value belongs to, where there may be none or several, ascending.
    """
    seen: list[list[tuple[Bins, Bins]]] = []
    for table, rows, source in zip(found.tables, found.kept, found.sources, strict=True):
        group = found.group[table.individual[rows.row]]
        columns = []
        leading = [k for k, _ in enumerate(table.columns) if not table.moves_with or table.moves_with[k] < 0]
        for k in leading:
            bins = binned(table.columns[k])[rows.row]
            columns.append((bins, bins[source[k]]))
            yield 1, (rows, group, *columns[-1], _moves(*columns[-1], rows, group)), None
        if table.parent >= 0:
            columns += [(before[rows.parent], after[rows.parent]) for before, after in seen[table.parent]]
        seen.append(columns)
        for attribute in table.sensitive:
            value = binned(attribute)[rows.row]
            for before, after in columns:
                yield 0, (rows, group, before, value, [_ratio(_counts(after, value), None)] * 2), None
    for table in found.attached:
        rows = found.kept[table.parent]
        place = np.full(len(found.tables[table.parent].individual), -1)
        place[rows.row] = np.arange(len(rows.row))
        order = np.argsort(place[table.parent_row], kind="stable")
        order = order[place[table.parent_row[order]] >= 0]
        holder = place[table.parent_row[order]]
        group = found.group[found.tables[table.parent].individual[rows.row]]
        for attribute in table.sensitive:
            value = binned(attribute)[order]
            for before, after in seen[table.parent]:
                shape = (int(before.max(initial=0)) + 1, int(value.max(initial=0)) + 1)
                yield 0, (rows, group, before, value, [_ratio(_counts(after[holder], value, shape), None)]), holder


def _moves(before: Bins, after: Bins, rows: Kept, group: IntArray) -> list[FloatArray]:
    """How much likelier a value is released as another one for its own row than for another of the cell, by half."""
    size = rows.start[rows.cell + 1] - rows.start[rows.cell]
    place = np.arange(len(before)) - rows.start[rows.cell]
    other = after[rows.start[rows.cell] + (place + 1) % size]
    shape = int(max(before.max(initial=0), after.max(initial=0))) + 1
    learnt = []
    for half in (0, 1):
        those = group % 2 != half
        same, others = (_counts(before[those], taken[those], (shape, shape)) for taken in (after, other))
        learnt.append(_ratio(same, others))
    return learnt


def _counts(left: Bins, right: Bins, shape: tuple[int, int] | None = None) -> FloatArray:
    many = shape or (int(left.max(initial=0)) + 1, int(right.max(initial=0)) + 1)
    joint = left.astype(np.int64) * many[1] + right
    return np.bincount(joint, minlength=many[0] * many[1]).reshape(many).astype(float)


def _ratio(counts: FloatArray, base: FloatArray | None) -> FloatArray:
    """Log of the share of each cell in its row over that of the table or of other counts, drawn to these."""
    if base is None:
        base = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / max(1.0, counts.sum())
    share = (base + 0.5) / (base + 0.5).sum(axis=1, keepdims=True)
    drawn = (counts + _PRIOR * share) / (counts.sum(axis=1, keepdims=True) + _PRIOR)
    return np.asarray(np.log(drawn / share))


def _dealt(score: FloatArray) -> FloatArray:
    """Probability of each pair where every member has one pseudonym."""
    match = np.exp(score - score.max(axis=1, keepdims=True))
    for _ in range(_ROUNDS):
        match /= match.sum(axis=0, keepdims=True)
        match /= match.sum(axis=1, keepdims=True)
    return np.asarray(match)
