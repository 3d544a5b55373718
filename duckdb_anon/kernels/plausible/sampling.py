"""Compiled draws from a tree of binned columns: completions of rows, and exchanges inside buckets.

The cells of a row are completed jointly: messages go from the leaves of the tree to its root, and bins are drawn from
the root down (Pearl 1988). Inside a bucket two rows exchange a block of columns by the odds of the model (Metropolis
et al. 1953), so that every bucket keeps its values. Each row and bucket has a stream of random numbers of its own, a
hash of a seed and its number, so the draws do not depend on the number of threads.
Cost: rows times the edges of the tree times the product of the bins of both cells; exact cells cost nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled

Array = NDArray[Any]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT1, _SHIFT2, _SHIFT3, _TOP = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


class Tree(NamedTuple):
    """A tree of columns with its tables, one after another in `tables`.

    Attributes:
        order: columns, each after its parent.
        parent: parent of each column, -1 for the root.
        sizes: number of bins of each column.
        start: where the tables of each column start.
        stride: entries of a table of each column, one for each level; 0 where all levels share one.
        tables: probability of a column's bin given level and parent's bin, shape (levels, parent's bins, bins), flat.
    """

    order: Array
    parent: Array
    sizes: Array
    start: Array
    stride: Array
    tables: Array


class CellBins(NamedTuple):
    """The cells of all columns: cell c of column j has places offsets[start[j] + c] .. offsets[start[j] + c + 1].

    Attributes:
        start: first cell of each column in `offsets`.
        offsets: where the bins of each cell start.
        bins: bins that a cell may stand for.
        odds: probability of the cell given the bin.
    """

    start: Array
    offsets: Array
    bins: Array
    odds: Array


@compiled
def _mixed(word: Any) -> Any:
    """The finalizer of splitmix64 (Steele, Lea and Flood 2014)."""
    word = (word ^ (word >> _SHIFT1)) * _FIRST
    word = (word ^ (word >> _SHIFT2)) * _SECOND
    return word ^ (word >> _SHIFT3)


@compiled
def _unit(word: Any) -> Any:
    """A random word as a number in [0, 1)."""
    return np.float64(_mixed(word) >> _TOP) * (1.0 / 9007199254740992.0)


@compiled
def _stream(seed: Any, number: int) -> Any:
    """The first word of the stream of a row or bucket."""
    return _mixed(seed + _STEP * np.uint64(2 * number + 1))


@compiled
def complete(
    low: int, high: int, seed: Any, tree: Tree, cells: CellBins, cell: Array, level: Array, weight: Array, state: Array
) -> None:
    """Draw the bins of rows `low` .. `high` - 1 given their cells.

    `cell`: cell of each row, shape (columns, rows); `level`: level of each row, shape (rows,); `weight`: scratch, shape
    (columns, most bins of a cell); `state`: gets the bins, shape (columns, rows).
    """
    for i in range(low, high):
        stream = _stream(seed, i)
        _upward(i, tree, cells, cell, level[i], weight)
        for t in range(len(tree.order)):
            j = tree.order[t]
            first = cells.offsets[cells.start[j] + cell[j, i]]
            last = cells.offsets[cells.start[j] + cell[j, i] + 1]
            above = state[tree.parent[j], i] * tree.sizes[j] if tree.parent[j] >= 0 else 0
            row = tree.start[j] + tree.stride[j] * level[i] + above
            total = 0.0
            for a in range(first, last):
                total += tree.tables[row + cells.bins[a]] * weight[j, a - first]
            stream += _STEP
            left = _unit(stream) * total
            chosen = first
            while chosen < last - 1:
                left -= tree.tables[row + cells.bins[chosen]] * weight[j, chosen - first]
                if left < 0.0:
                    break
                chosen += 1
            state[j, i] = cells.bins[chosen]


@compiled
def _upward(i: int, tree: Tree, cells: CellBins, cell: Array, level: int, weight: Array) -> None:
    """Weigh the bins of each cell of row `i` by what is below them in the tree."""
    for j in range(len(tree.order)):
        first = cells.offsets[cells.start[j] + cell[j, i]]
        for a in range(first, cells.offsets[cells.start[j] + cell[j, i] + 1]):
            weight[j, a - first] = cells.odds[a]
    for t in range(len(tree.order) - 1, -1, -1):
        j = tree.order[t]
        p = tree.parent[j]
        if p < 0:
            continue
        above = cells.offsets[cells.start[p] + cell[p, i]]
        ended = cells.offsets[cells.start[p] + cell[p, i] + 1]
        if ended - above == 1:
            continue
        first = cells.offsets[cells.start[j] + cell[j, i]]
        last = cells.offsets[cells.start[j] + cell[j, i] + 1]
        most = 0.0
        for a in range(above, ended):
            row = tree.start[j] + tree.stride[j] * level + cells.bins[a] * tree.sizes[j]
            message = 0.0
            for b in range(first, last):
                message += tree.tables[row + cells.bins[b]] * weight[j, b - first]
            weight[p, a - above] *= message
            most = max(most, weight[p, a - above])
        if most > 0.0:
            for a in range(above, ended):
                weight[p, a - above] /= most


@compiled
def _odds(i: int, j: int, bin: int, tree: Tree, state: Array, level: int) -> Any:
    """Probability of a bin of column `j` and of what is below it, given the other columns of row `i`."""
    above = state[tree.parent[j], i] * tree.sizes[j] if tree.parent[j] >= 0 else 0
    product = tree.tables[tree.start[j] + tree.stride[j] * level + above + bin]
    for t in range(len(tree.order)):
        k = tree.order[t]
        if tree.parent[k] == j:
            product *= tree.tables[tree.start[k] + tree.stride[k] * level + bin * tree.sizes[k] + state[k, i]]
    return product


@compiled
def give_each(
    low: int, high: int, seed: Any, j: int, members: Array, starts: Array, tree: Tree, cells: CellBins, cell: Array,
    level: Array, many: Array, odds: Array, state: Array,
) -> None:  # fmt: skip
    """Give each listed bin of column `j` a row of each class `low` .. `high` - 1, by the odds of the model.

    `members`: rows by class; `starts`: where each class starts in `members`, and the end of the last one; `many`,
    `odds`: scratch, shape (bins of j,) and (rows of the largest class,).
    """
    for g in range(low, high):
        rows = members[starts[g] : starts[g + 1]]
        first = cells.offsets[cells.start[j] + cell[j, rows[0]]]
        last = cells.offsets[cells.start[j] + cell[j, rows[0]] + 1]
        if last - first == 1 or last - first > len(rows):
            continue
        many[:] = 0
        for i in rows:
            many[state[j, i]] += 1
        stream = _stream(seed, g)
        for a in range(first, last):
            wanted = cells.bins[a]
            if many[wanted] > 0:
                continue
            total = 0.0
            for r in range(len(rows)):
                i, odds[r] = rows[r], 0.0
                if many[state[j, i]] > 1:
                    mine = _odds(i, j, state[j, i], tree, state, level[i])
                    odds[r] = _odds(i, j, wanted, tree, state, level[i]) / max(mine, 1e-300)
                    total += odds[r]
            stream += _STEP
            left = _unit(stream) * total
            chosen = -1
            for r in range(len(rows)):
                if odds[r] > 0.0:
                    chosen = r
                    left -= odds[r]
                    if left < 0.0:
                        break
            if chosen >= 0:
                many[state[j, rows[chosen]]] -= 1
                many[wanted] += 1
                state[j, rows[chosen]] = wanted


@compiled
def give_ends(places: Array, class_of_row: Array, first: Array, last: Array, least: Array, most: Array) -> None:
    """Move the least and the greatest row of each class to the ends of its cell; -1 is no class.

    `places`: bin or atom of each row; `first`, `last`: the ends of its cell; `least`, `most`: scratch of -1, shape
    (classes,).
    """
    for i in range(len(places)):
        g = class_of_row[i]
        if g >= 0 and (least[g] < 0 or places[i] < places[least[g]]):
            least[g] = i
        if g >= 0 and (most[g] < 0 or places[i] >= places[most[g]]):
            most[g] = i
    for g in range(len(least)):
        if least[g] != most[g]:
            places[least[g]], places[most[g]] = first[least[g]], last[most[g]]


@compiled
def _chance(row: int, other: int, block: int, block_of: Array, tree: Tree, state: Array, level: int) -> Any:
    """Probability of a row that has the columns of a block from another row."""
    product = 1.0
    for j in tree.order:
        index = tree.start[j] + tree.stride[j] * level + state[j, other if block_of[j] == block else row]
        p = tree.parent[j]
        if p >= 0:
            index += state[p, other if block_of[p] == block else row] * tree.sizes[j]
        product *= tree.tables[index]
    return product


@compiled
def redraw_root(
    low: int, high: int, seed: Any, root: int, level_of_bin: Array, block_of: Array, tree: Tree, cells: CellBins,
    cell: Array, odds: Array, level: Array, state: Array,
) -> None:  # fmt: skip
    """Draw the bin of the root, which tells the level, of rows `low` .. `high` - 1 given their other columns.

    `odds`: scratch, shape (bins of the root,).
    """
    for i in range(low, high):
        first = cells.offsets[cells.start[root] + cell[root, i]]
        last = cells.offsets[cells.start[root] + cell[root, i] + 1]
        total = 0.0
        for a in range(first, last):
            state[root, i] = cells.bins[a]
            odds[a - first] = cells.odds[a] * _chance(i, i, 0, block_of, tree, state, level_of_bin[cells.bins[a]])
            total += odds[a - first]
        left = _unit(_stream(seed, i)) * total
        chosen = first
        while chosen < last - 1:
            left -= odds[chosen - first]
            if left < 0.0:
                break
            chosen += 1
        state[root, i] = cells.bins[chosen]
        level[i] = level_of_bin[cells.bins[chosen]]


@compiled
def exchange(
    low: int, high: int, seed: Any, times: int, members: Array, starts: Array, block: int, block_of: Array,
    moves_level: bool, tree: Tree, state: Array, cell: Array, level: Array,
) -> None:  # fmt: skip
    """Exchange a block of columns between rows of the same bucket, by the odds of the model.

    `times`: proposals for each row; `members`: rows by bucket; `starts`: where each bucket starts in `members`, and the
    end of the last one.
    """
    for b in range(low, high):
        first, size = starts[b], starts[b + 1] - starts[b]
        stream = _stream(seed, b)
        for k in range(times * size if size > 1 else 0):
            stream += _STEP
            index = (k % size + 1 + np.int64(_unit(stream) * (size - 1))) % size
            mine, other = members[first + k % size], members[first + index]
            level1, level2 = level[mine], level[other]
            if moves_level:
                level1, level2 = level2, level1
            before = _chance(mine, mine, block, block_of, tree, state, level[mine])
            before *= _chance(other, other, block, block_of, tree, state, level[other])
            after = _chance(mine, other, block, block_of, tree, state, level1)
            after *= _chance(other, mine, block, block_of, tree, state, level2)
            stream += _STEP
            if _unit(stream) * before < after or before <= 0.0:
                for j in range(len(block_of)):
                    if block_of[j] == block:
                        state[j, mine], state[j, other] = state[j, other], state[j, mine]
                        cell[j, mine], cell[j, other] = cell[j, other], cell[j, mine]
                level[mine], level[other] = level1, level2
