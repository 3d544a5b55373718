"""Which cells of a table to suppress so that every record is shared by k records, at the least weight of cells.

A pattern is a set of columns that are suppressed. Records of equal values take the same patterns, so the work is on
distinct combinations and their counts. Patterns are tried from cheap to dear: records that k records share on the
other columns take the pattern. Then each class that could be formed of dearer records and of some borrowed from
cheaper classes is formed where it saves weight. A small table is solved exactly instead, as an integer program (scipy's
HiGHS). Suppressing the fewest cells is NP-hard (Meyerson and Williams 2004, section 3).
Cost: a sort of the combinations that are not settled for each pattern; at most `_PATTERNS` patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled_with_arrays
from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.kernels.row_keys import compact, joint, keys_of
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.progress import stop_flag, tick

Array = NDArray[Any]
_PATTERNS = 1024
_EXACT = 1 << 12  # combinations times patterns of a table that is solved exactly
_SEARCHED = (
    1 << 24
)  # records times patterns of a table in which classes are formed anew; 3% fewer cells, most of the time


def suppressed_cells(
    columns: Sequence[Array], weights: Sequence[float], k: int, shared: bool, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which cells to suppress.

    Args:
        columns: codes of each column, 0 or more, shape (n,) each, one column or more; n is at least k.
        weights: weight of a cell of each column, above 0.
        k: fewest records.
        shared: whether k published records must be equal (a suppressed cell equals suppressed cells only); otherwise
            what a record still shows must be the values of k records of the table.
        rng: chooses which of equal records lose cells.

    Returns:
        Shape (n, columns), true for a suppressed cell.

    >>> age, sex = np.array([3, 3, 7, 8]), np.array([0, 0, 1, 1])
    >>> suppressed_cells([age, sex], [1, 1], 2, True, np.random.default_rng(0)).tolist()
    [[False, False], [False, False], [True, False], [True, False]]
    """
    keys = keys_of(columns)
    table = _Table(
        [column[keys.first] for column in columns], np.bincount(keys.of_row).astype(np.int64), k,
        _patterns(columns, np.asarray(weights, dtype=np.float64)),
    )  # fmt: skip
    if not shared:
        pattern = table.cheapest(whole=True)[keys.of_row]
    else:
        pattern = table.pattern_of_records(keys.of_row, rng)
    return table.patterns.suppressed[pattern]


@dataclass(frozen=True)
class _Patterns:
    """Sets of columns that may be suppressed together, from cheap to dear; the last one is of all columns."""

    suppressed: NDArray[np.bool_]  # shape (patterns, columns)
    weight: NDArray[np.float64]  # weight of a record that takes it, shape (patterns,)


def _patterns(columns: Sequence[Array], weights: NDArray[np.float64]) -> _Patterns:
    """All sets of columns where these are few, else all of few columns, and the columns of most values one by one."""
    many, size, sets = len(columns), 0, 0
    while size < many and sets + comb(many, size) <= _PATTERNS - many:
        sets, size = sets + comb(many, size), size + 1
    if 2**many <= _PATTERNS:
        size = many
    chosen = {names for count in range(size + 1) for names in combinations(range(many), count)}
    by_detail = sorted(range(many), key=lambda j: (-len(np.unique(columns[j])) / weights[j], j))
    chosen |= {tuple(sorted(by_detail[:count])) for count in range(many + 1)}
    table = np.array([[j in names for j in range(many)] for names in sorted(chosen)])
    weight = table @ weights
    order = np.argsort(weight, kind="stable")
    return _Patterns(table[order], weight[order])


@dataclass(frozen=True)
class _Table:
    """Distinct combinations of values, and the search for a pattern of each record."""

    values: Sequence[Array]  # of each column, the code of each combination
    count: IntArray  # records of each combination
    k: int
    patterns: _Patterns

    def key(self, pattern: int, of: IntArray | slice = slice(None)) -> IntArray:
        """A number for each of the combinations, equal where they agree on what the pattern leaves visible."""
        shown = [v[of] for v, gone in zip(self.values, self.patterns.suppressed[pattern], strict=True) if not gone]
        return compact(joint(shown, rows=len(self.count[of])))

    def cheapest(self, whole: bool) -> IntArray:
        """The first pattern in which k records agree with each combination; -1 where none does.

        `whole`: records of the table count; otherwise those that took no cheaper pattern.
        """
        pattern = np.full(len(self.count), -1, dtype=np.int64)
        for number in range(len(self.patterns.weight)):
            open_ = np.flatnonzero(pattern < 0)
            if not len(open_):
                break
            tick()
            among = np.arange(len(pattern)) if whole else open_
            key = self.key(number, among)
            enough = np.bincount(key, weights=self.count[among])[key] >= self.k
            pattern[among[enough & (pattern[among] < 0)]] = number
        return pattern

    def pattern_of_records(self, of_row: IntArray, rng: np.random.Generator) -> IntArray:
        """The pattern of each record; `of_row`: the combination of each."""
        mixed = rng.permutation(len(of_row))
        order = mixed[np.argsort(of_row[mixed], kind="stable")]
        result = np.empty(len(of_row), dtype=np.int64)
        exact = self._exact() if len(self.count) * len(self.patterns.weight) <= _EXACT else None
        result[order] = self._searched() if exact is None else exact
        return result

    def _searched(self) -> IntArray:
        """The pattern of each record by search, records of a combination one after the other."""
        combination = np.repeat(np.arange(len(self.count)), self.count)
        first = self.cheapest(whole=False)
        # class 0 is of the records without one, which weigh more than anything
        named = np.where(first < 0, 0, 1 + first * np.int64(len(first)))
        for number in np.unique(first[first >= 0]):
            of = first == number
            named[of] += self.key(int(number))[of]
        class_of_row = compact(named)[combination] + (0 if (first < 0).any() else 1)
        search = _Search(self, combination, class_of_row, first[combination])
        last = len(self.patterns.weight) - 1
        large = len(combination) * len(self.patterns.weight) > _SEARCHED
        while search.sweep(range(last, last + 1) if large else range(last + 1)) and not large:
            pass
        return search.pattern[search.class_of_row]

    def _exact(self) -> IntArray | None:
        """The pattern of each record by integer programming, None where it does not end within its nodes."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        many, sets = len(self.count), len(self.patterns.weight)
        group = np.stack([self.key(p) for p in range(sets)], axis=1)
        group += np.concatenate(([0], np.cumsum(group.max(axis=0) + 1)[:-1]))
        classes, cells = int(group.max()) + 1, many * sets
        used = np.arange(cells)
        each, flat, most = np.repeat(self.count, sets), group.ravel(), np.bincount(group.ravel(), minlength=classes)
        # unknown: records of a combination that take a pattern, then whether a class is formed
        taken = coo_array((np.ones(cells), (used // sets, used)), (many, cells + classes))
        formed = coo_array(
            (np.concatenate((np.ones(cells), np.full(classes, -self.k))),
             (np.concatenate((flat, np.arange(classes))), np.arange(cells + classes))), (classes, cells + classes),
        )  # fmt: skip
        inside = coo_array(
            (np.concatenate((np.ones(cells), -each)), (np.tile(used, 2), np.concatenate((used, cells + flat)))),
            (cells, cells + classes),
        )
        found = milp(
            np.concatenate((np.tile(self.patterns.weight, many), np.zeros(classes))),
            integrality=np.ones(cells + classes),
            bounds=Bounds(0, np.concatenate((each, np.minimum(most, 1)))),
            constraints=[
                LinearConstraint(taken, self.count, self.count),
                LinearConstraint(formed, 0, np.inf),
                LinearConstraint(inside, -np.inf, 0),
            ],
            options={"node_limit": 500},
        )
        if not found.success:
            return None
        return np.repeat(used % sets, np.rint(found.x[:cells]).astype(np.int64))


class _Search:
    """Classes of records that borrow from and dissolve one another while that saves weight."""

    def __init__(self, table: _Table, combination: IntArray, class_of_row: IntArray, pattern: IntArray) -> None:
        self.table, self.combination, self.class_of_row = table, combination, class_of_row
        classes = int(class_of_row.max()) + 1
        self.size = np.bincount(class_of_row, minlength=classes).astype(np.int64)
        self.pattern = np.zeros(classes, dtype=np.int64)
        self.pattern[class_of_row] = pattern
        self.pattern[0] = -1
        # what a record without a class weighs: more than all classes could save
        weight = table.patterns.weight
        self.cost = np.concatenate((weight, [float(weight[-1]) * (len(combination) + 1.0)]))
        self.start = np.concatenate(([0], np.cumsum(table.count)))

    def dearest(self) -> NDArray[np.float64]:
        """Weight of the dearest record of each combination."""
        of_row = self.cost[self.pattern][self.class_of_row]
        return np.asarray(np.maximum.reduceat(of_row, self.start[:-1]), dtype=np.float64)

    def sweep(self, numbers: range) -> bool:
        """Try some patterns once, from cheap to dear; whether that saved more than a hundredth of the weight."""
        weight, dearest, before = self.table.patterns.weight, self.dearest(), self.total()
        for number in numbers:
            tick()
            dear = dearest > weight[number]
            if not dear.any():
                break
            key = self.table.key(number)
            hot = np.zeros(int(key.max()) + 1, dtype=np.bool_)
            hot[key[dear]] = True
            chosen = np.flatnonzero(hot[key])
            many = self.table.count[chosen]
            rows = ranges(self.start[chosen], many)
            group = np.repeat(key[chosen], many)
            order = np.lexsort((self.class_of_row[rows], group))
            fresh = np.zeros(int(hot.sum()), dtype=np.int64)
            made = _form(
                rows[order], group[order], self.class_of_row, self.size, self.cost[self.pattern], self.pattern, number,
                float(weight[number]), self.table.k, fresh, stop_flag(),
            )  # fmt: skip
            tick()
            if made >= 0:
                self.size = np.concatenate((self.size, fresh[:made]))
                self.pattern = np.concatenate((self.pattern, np.full(made, number)))
                dearest = self.dearest()
        return self.total() < 0.99 * before

    def total(self) -> float:
        """Weight of all suppressed cells."""
        return float(self.cost[self.pattern] @ self.size)


@compiled_with_arrays
def _form(
    rows: Array, group: Array, class_of_row: Array, size: Array, cost: Array, pattern: Array, number: int,
    weight: float, k: int, fresh: Array, stop: Array,
) -> int:  # fmt: skip
    """Form the class of each group where it saves weight, and return how many are new, -1 where none was formed.

    `rows` stand by group and class; `size`, `cost` and `pattern` are of classes; `fresh` takes the sizes of new ones,
    whose numbers go on after the last class.
    """
    classes, made, formed = len(size), 0, False
    low, n = 0, len(rows)
    first = np.empty(n + 1, np.int64)  # where the rows of each class of a group begin
    extra = np.empty(n + 1, np.float64)
    take = np.empty(n + 1, np.int64)
    while low < n and stop[0] == 0:
        high, runs, target, there, moved, gain = low, 0, -1, 0, 0, 0.0
        while high < n and group[high] == group[low]:
            if high == low or class_of_row[rows[high]] != class_of_row[rows[high - 1]]:
                first[runs] = high
                runs += 1
            high += 1
        first[runs] = high
        for run in range(runs):
            each, many = class_of_row[rows[first[run]]], first[run + 1] - first[run]
            take[run], extra[run] = 0, np.inf
            if each > 0 and pattern[each] == number:
                target, there = each, size[each]
            elif cost[each] > weight:
                # all that can leave: the whole class, or what it has above k
                leaving = many if each == 0 or many == size[each] else min(many, size[each] - k)
                take[run] = max(leaving, 0)
                moved += take[run]
                gain += take[run] * (cost[each] - weight)
            else:
                extra[run] = weight - cost[each]
        need = k - there - moved
        if moved > 0 and need > 0:
            order = np.argsort(extra[:runs])
            for run in order:
                if need <= 0 or extra[run] == np.inf:
                    break
                each = class_of_row[rows[first[run]]]
                spare = min(first[run + 1] - first[run], size[each] - k, need)
                if spare > 0:
                    take[run] = spare
                    need -= spare
                    gain -= spare * extra[run]
            for run in order:  # what no class has to spare, whole classes give
                if need <= 0 or extra[run] == np.inf:
                    break
                many, each = first[run + 1] - first[run], class_of_row[rows[first[run]]]
                if many == size[each] and take[run] < many:
                    need -= many - take[run]
                    gain -= (many - take[run]) * extra[run]
                    take[run] = many
        if moved > 0 and need <= 0 and gain > 1e-9:
            if target < 0:
                target = classes + made
                made += 1
            formed = True
            for run in range(runs):
                each = class_of_row[rows[first[run]]]
                for place in range(first[run], first[run] + take[run]):
                    class_of_row[rows[place]] = target
                if take[run] > 0:
                    size[each] -= take[run]
                    if target < classes:
                        size[target] += take[run]
                    else:
                        fresh[target - classes] += take[run]
        low = high
    return made if formed else -1
