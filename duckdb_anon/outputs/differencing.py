"""Differencing: what several answers tell when they are subtracted.

A new cell is suppressed if its population and those of one or two answered cells have a linear combination over 1 to
threshold - 1 individuals, or, for sums of one magnitude, a difference that breaks the rules of concentration. Whatever
the statistics are: a sum and a mean, two variances or two magnitudes give the number of individuals, and with a mean of
all others a variance gives the amount of the last one.
Where the joint atoms of all answers are few, so are single ones and pairs that any linear combination of answers gives
(Denning, Denning and Schwartz, The tracker, ACM TODS 4(1), 1979).
Cost: one pass over the rows for eight digits of labels, then products of sparse matrices (cells by joint atoms).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from scipy.sparse import csr_array, diags_array, vstack

from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.outputs.known import KNOWN, Cells
from duckdb_anon.outputs.ledger import Bools, Floats, Hashes, Ints, Population, Rows, numbered
from duckdb_anon.outputs.policy import Policy

_ATOMS = 1000  # most joint atoms for which every linear combination is looked at
_JOINT = 200_000  # most joint atoms of answers that are compared together
_PROGRAMS = 200  # most groups of rows for which bounds of sums are looked at
_PAIRS = 1500  # most answered cells of which all pairs are
_ANY = ""  # in place of a statistic: all of them


class Comparison:
    """The cells of a new answer against those of earlier answers."""

    def __init__(self, policy: Policy, new: Cells, known: Hashes, earlier: Sequence[Population]) -> None:
        """Number the rows of the table, and find the joint atoms of all answers.

        Args:
            policy: the threshold and the rules of concentration.
            new: cells of the answer.
            known: hashes of the rows that the ledger numbers.
            earlier: populations of earlier answers.
        """
        rows = new.rows
        numbers, self._fresh = numbered(rows.hashes, known)
        size = len(known) + len(self._fresh)
        labels = rows.labels
        if len(known):
            labels = np.zeros(size, np.int64)
            labels[numbers] = rows.labels
        self.population = Population.of(labels, new.sets, new.kinds)
        together = _Together(policy, rows, numbers, self.population, earlier, size)
        self._parts = [together]
        if together.is_small:
            return
        # all answers together divide the rows too finely: as many coarse ones as can be, each fine one by itself
        earlier = sorted(earlier, key=lambda each: each.cells.shape[1])
        coarse, most = 0, len(earlier) - 1
        while coarse < most:
            middle = (coarse + most + 1) // 2
            together = _Together(policy, rows, numbers, self.population, earlier[:middle], size)
            coarse, most = (middle, most) if together.is_small else (coarse, middle - 1)
        parts = [earlier[:coarse]] * (coarse > 0) + [[each] for each in earlier[coarse:]]
        self._parts = [_Together(policy, rows, numbers, self.population, part, size) for part in parts]

    def entered(self, hidden: Bools) -> tuple[Population, Hashes]:
        """What the ledger keeps of the answer: its population, and the hashes of rows that are new to it."""
        return replace(self.population, hidden=hidden), self._fresh

    def known(self) -> Bools:
        """Which cells have been answered before."""
        return np.asarray(np.array([part.known() for part in self._parts]).any(axis=0))

    def refused(self, hidden: Bools, first: str = _ANY) -> Bools:
        """Which cells may not be answered, of those that no rule hides: by answers, or first by their known parts."""
        return np.asarray(np.array([part.refused(hidden, first) for part in self._parts]).any(axis=0))


class _Together:
    """A new answer and some earlier ones, by the joint atoms of their rows."""

    def __init__(
        self, policy: Policy, rows: Rows, numbers: Ints, new: Population, earlier: Sequence[Population], size: int
    ) -> None:
        self.policy, self.rows, self._numbers, self._new, self._earlier = policy, rows, numbers, new, earlier
        self._largest: dict[str, tuple[Floats, Floats]] = {}
        every = [new, *earlier]
        joint = _joint(every, size, _JOINT if len(earlier) > 1 else size)
        self.is_small = joint is not None
        if joint is not None:
            self._joint, first = joint
            # rows, those that are gone included
            self.sizes = np.bincount(self._joint, minlength=len(first)).astype(float)
            self._cells = [each.at(first) for each in every]

    def known(self) -> Bools:
        """Which cells are among the answered ones."""
        answered = {kind: set(_sets(self._of(kind, hidden=False))) for kind in dict.fromkeys(self._new.kinds)}
        named = zip(_sets(self._cells[0]), self._new.kinds, strict=True)
        return np.array([cell in answered[kind] for cell, kind in named], bool)

    def refused(self, hidden: Bools, first: str) -> Bools:
        """Which cells may not be answered after these answers, of those that no rule hides."""
        kinds, again = self._new.kinds, self.known()
        kept = {kind: set(_sets(self._of(kind, hidden=True))) for kind in {"count", *kinds}}
        named = zip(_sets(self._cells[0]), kinds, strict=True)
        # of individuals whose number is hidden no other statistic is answered
        held = [cell in kept[kind] or (kind != KNOWN and cell in kept["count"]) for cell, kind in named]
        refused = np.array(held, bool) & ~again
        families = [first]
        if first == _ANY:
            families += [kind for kind in kinds if kind.startswith("sum ")]
            families += [KNOWN] * (KNOWN not in kinds and any(KNOWN in each.kinds for each in self._earlier))
        for family in dict.fromkeys(families):
            asked = [place for place in _places(kinds, family) if not hidden[place]]
            refused[asked] |= self._tell(family, self._cells[0][asked], again[asked], refused[asked])
        return refused & ~hidden

    def _tell(self, kind: str, cells: csr_array, again: Bools, found: Bools) -> Bools:
        """Which of some cells of a statistic tell too much beside the answered ones; `found` are refused already."""
        known = self._of(kind, hidden=False)
        answered = known
        if kind in (_ANY, KNOWN):  # the number of rows of a table is known
            answered = csr_array(vstack([known, csr_array(np.ones((1, len(self.sizes))))]))
        checker = _Answered(self, kind, answered, len(again))
        found = found | ~np.array([checker.takes(cells[[place]]) for place in range(len(again))], bool)
        if found.any() and not checker.is_exact:  # what overlaps them could give them away
            found = found | ((cells @ cells[found].T).sum(axis=1) > 0)
        if kind.startswith("sum ") and not found.all():
            new = ~found & ~again
            if new.any() and self._bounds(kind[4:], [known, cells[new]]) and not self._bounds(kind[4:], [known]):
                found = found | new
        return found

    def _of(self, kind: str, *, hidden: bool) -> csr_array:
        """Different cells of a statistic, or of all, in earlier answers: answered or hidden ones."""
        found = [cells[[place for place in _places(answer.kinds, kind) if answer.hidden[place] == hidden]]
                 for answer, cells in zip(self._earlier, self._cells[1:], strict=True)]  # fmt: skip
        every = csr_array(vstack([csr_array((0, len(self.sizes))), *found]))
        return every[list({cell: place for place, cell in enumerate(_sets(every))}.values())]

    def individuals(self, sets: Bools | csr_array) -> Floats:
        """Individuals of sets of joint atoms; those of rows that are gone are rows."""
        counts = np.asarray(sets @ self.sizes)
        if self.rows.person is not None:
            for place in np.flatnonzero((counts > 0) & (counts < self.policy.threshold * self.rows.most)):
                inside = _dense(sets[[place]])[0].astype(bool)[self._at]
                counts[place] += len(np.unique(self.rows.person[inside])) - inside.sum()
        return counts

    @cached_property
    def _at(self) -> Ints:
        """Joint atom of each row of the table."""
        return self._joint[self._numbers]

    def _bounds(self, magnitude: str, answered: Sequence[csr_array]) -> bool:
        """Whether sums bound the amount of few individuals within p_percent, as no amount is negative: by programs."""
        amounts, near = self.rows.magnitudes[magnitude], self.policy.p_percent / 100
        every = csr_array(vstack(answered)).tocsc()
        groups: dict[bytes, int] = {}  # joint atoms in the same cells
        at = np.array([groups.setdefault(cells, len(groups)) for cells in _sets(every)], np.int64)
        if not (amounts >= 0).all() or len(groups) > _PROGRAMS:
            return False
        columns = _dense(every[:, np.unique(at, return_index=True)[1]]) > 0
        totals = np.bincount(at[self._at], amounts, columns.shape[1])
        parts = at == np.arange(columns.shape[1])[:, None]
        few = columns.any(axis=0) & (self.individuals(parts) < self.policy.threshold) & (totals > 0)
        for place in np.flatnonzero(few):
            side = np.eye(columns.shape[1])[place]
            ends = [scipy.optimize.linprog(sign * side, A_eq=columns.astype(float), b_eq=columns @ totals)
                    for sign in (1, -1)]  # fmt: skip
            if all(end.status == 0 for end in ends):
                low, high = ends[0].fun, -ends[1].fun
                if low >= totals[place] * (1 - near) - 1e-6 and high <= totals[place] * (1 + near) + 1e-6:
                    return True
        return False

    def is_few(self, sets: Bools | csr_array) -> bool:
        """Whether a set has some, but fewer individuals than the threshold."""
        counts = self.individuals(sets)
        return bool(((counts > 0) & (counts < self.policy.threshold)).any())

    def _amounts(self, magnitude: str) -> tuple[Floats, Floats]:
        """Of each joint atom, the sum of amounts without sign, and its largest ones: ranks x joint atoms."""
        if magnitude not in self._largest:
            left = np.abs(np.nan_to_num(self.rows.magnitudes[magnitude], nan=0.0))
            totals = np.bincount(self._at, left, len(self.sizes)).astype(float)
            largest = np.zeros((max(self.policy.largest, 2), len(self.sizes)))
            for rank in largest:
                np.maximum.at(rank, self._at, left)
                rows = np.flatnonzero(left == rank[self._at])
                holder = np.full(len(self.sizes), -1)
                holder[self._at[rows]] = rows  # one row of each atom, which is no longer there for the next rank
                left[holder[holder >= 0]] = 0
            self._largest[magnitude] = totals, largest
        return self._largest[magnitude]

    def concentrated(self, magnitude: str, inside: Bools) -> bool:
        """Whether the sum over a set of joint atoms breaks the rules of concentration."""
        if self.rows.person is None:
            totals, largest = self._amounts(magnitude)
            amounts, total = largest[:, inside].reshape(-1), float(totals[inside].sum())
        else:
            chosen = inside[self._at]
            sizes = np.nan_to_num(self.rows.magnitudes[magnitude][chosen], nan=0.0)
            amounts = np.abs(np.bincount(self.rows.person[chosen], sizes))
            total = float(amounts.sum())
        most = min(max(self.policy.largest, 2), len(amounts))
        amounts = np.sort(np.partition(amounts, len(amounts) - most)[len(amounts) - most :])[::-1]
        top, two = float(amounts[:1].sum()), float(amounts[:2].sum())
        share = float(amounts[: self.policy.largest].sum())
        return not share <= self.policy.share * total or total - two < self.policy.p_percent / 100 * top


def _places(kinds: Sequence[str], wanted: str) -> list[int]:
    """Places of the cells of a statistic, of all (_ANY), or by what everybody may know.

    The last ones are cells of their own, or all where the answer depends on nothing else.
    """
    if wanted == KNOWN and KNOWN not in kinds:
        return list(range(len(kinds)))
    return [place for place, kind in enumerate(kinds) if kind == wanted or (wanted == _ANY and kind != KNOWN)]


def _sets(matrix: csr_array) -> list[bytes]:
    """The rows of a sparse matrix of zeros and ones (of one by columns: its columns) as keys."""
    matrix.sort_indices()
    return [matrix.indices[low:high].tobytes() for low, high in pairwise(matrix.indptr)]


def _dense(matrix: Any) -> Any:
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


class _Answered:
    """Answered cells of one statistic, to which further ones are added."""

    def __init__(self, answers: _Together, kind: str, cells: csr_array, more: int) -> None:
        self._answers, self._kind = answers, kind
        self._sizes, self._few = answers.sizes, answers.policy.threshold
        self._cells = cells
        self._known = set(_sets(cells))
        count = cells.shape[0]
        self._products = np.zeros((count + more, count + more))  # rows that two cells share
        self._products[:count, :count] = _dense(cells @ diags_array(self._sizes) @ cells.T)
        self._most = answers.rows.most
        self.is_exact = cells.shape[1] <= _ATOMS
        if self.is_exact:  # an orthonormal basis of what linear combinations give
            whole = _dense(cells)
            basis, weights, _ = scipy.linalg.qr(whole.T, mode="economic", pivoting=True)
            self._basis = basis[:, : int((np.abs(np.diag(weights)) > 1e-9).sum())]
            self._parts = np.unique(whole > 0, axis=1, return_inverse=True)[1].reshape(-1)  # atoms that no cell divides
            self._covered: Bools = np.asarray(whole.any(axis=0))
            self._given = self._sets_given(self._parts, self._covered, self._basis)

    def takes(self, cell: csr_array) -> bool:
        """Whether a cell may be answered after the others; it is one of them then."""
        (name,) = _sets(cell)
        if name in self._known:
            return True
        new = _dense(cell)[0]
        own = np.asarray(self._cells @ (new * self._sizes))
        if self._tells(cell, own):
            return False
        if self.is_exact:
            rest = new - self._basis @ (self._basis.T @ new)
            rest -= self._basis @ (self._basis.T @ rest)
            length = float(np.linalg.norm(rest))
            basis = self._basis if length < 1e-7 else np.column_stack([self._basis, rest / length])
            parts = np.unique(2 * self._parts + (new > 0), return_inverse=True)[1]
            covered = np.logical_or(self._covered, new)
            given = self._sets_given(parts, covered, basis)
            if not given <= self._given:
                return False
            self._parts, self._covered, self._basis, self._given = parts, covered, basis, given
        place = self._cells.shape[0]
        self._products[place, :place] = self._products[:place, place] = own
        self._products[place, place] = float(self._sizes @ new)
        self._cells = csr_array(vstack([self._cells, cell]))
        self._known.add(name)
        return True

    def _tells(self, cell: csr_array, own: Floats) -> bool:
        """Whether a cell and one or two answered ones have a combination over few individuals."""
        totals = np.diag(self._products)[: len(own)]
        size = float((cell @ self._sizes)[0])
        apart = size + totals - 2 * own  # rows in one of the two
        near = np.flatnonzero((apart > 0) & (apart < self._few * self._most))
        if self._answers.is_few(abs(self._cells[near] - self._repeated(cell, len(near)))):
            return True
        if self._kind.startswith("sum "):
            nested = np.flatnonzero((apart > 0) & (own == np.minimum(size, totals)))
            differences = (_dense(self._cells[[place]] - cell)[0] != 0 for place in nested)
            if any(self._answers.concentrated(self._kind[4:], difference) for difference in differences):
                return True
        if len(own) > _PAIRS:
            return False
        return any(self._pair_tells(cell, own, signs) for signs in ((-1, -1), (-1, 1), (1, 1)))

    def _repeated(self, cell: csr_array, times: int) -> csr_array:
        return cell[np.zeros(times, np.int64)]

    def _pair_tells(self, cell: csr_array, own: Floats, signs: tuple[int, int]) -> bool:
        """Whether a cell and two answered ones, with these signs, leave few individuals."""
        few = (self._few - 1) * self._most
        totals = np.diag(self._products)[: len(own)]
        size = float((cell @ self._sizes)[0])
        order = np.argsort(signs[1] * totals)
        # the sum of a combination over few rows is small: at most 3 a row
        goal = -size - signs[0] * totals
        low = np.searchsorted(signs[1] * totals[order], goal - 3 * few, "left")
        high = np.searchsorted(signs[1] * totals[order], goal + 3 * few, "right")
        first = np.repeat(np.arange(len(own)), high - low)
        second = order[ranges(low, high - low)]
        lengths = (
            size + totals[first] + totals[second] + 2 * signs[0] * own[first]
            + 2 * signs[1] * own[second] + 2 * signs[0] * signs[1] * self._products[first, second]
        )  # fmt: skip
        near = np.flatnonzero((lengths > 0.5) & (lengths <= 4 * few) & ((first < second) | (signs[0] != signs[1])))
        for start in range(0, len(near), 1000):
            a, b = first[near[start : start + 1000]], second[near[start : start + 1000]]
            combined = self._repeated(cell, len(a)) + signs[0] * self._cells[a] + signs[1] * self._cells[b]
            if self._answers.is_few(abs(combined).sign()):
                return True
        return False

    def _sets_given(self, at: Ints, covered: Bools, basis: Floats) -> set[bytes]:
        """Sets of few individuals that linear combinations of cells give, as sets of joint atoms.

        Atoms that no cell divides are one, `at` is the number of each. Looked at are these, and pairs of them.
        """
        rows = np.bincount(at, self._sizes)
        near = np.flatnonzero((np.bincount(at, covered) > 0) & (rows < self._few * self._most))
        parts = at == near[:, None]  # coarser atoms x joint atoms
        counts = self._answers.individuals(parts)
        parts, counts = parts[counts < self._few], counts[counts < self._few]
        part = parts @ basis
        left = np.diag(parts.sum(axis=1)) - part @ part.T  # products of what cells do not tell of these atoms
        own = np.diag(left)
        found = {each.tobytes() for each in parts[own < 1e-8]}
        pairs = own[:, None] + own[None, :] - 2 * np.abs(left) < 1e-8
        pairs &= counts[:, None] + counts[None, :] < self._few
        for one, other in np.argwhere(np.triu(pairs, 1)):
            found.add((parts[one] | parts[other]).tobytes())
        return found


def _joint(populations: Sequence[Population], size: int, most: int) -> tuple[Ints, Ints] | None:
    """Joint atom of each row, and a row of each joint atom; None where there are more than `most`."""
    width = -(-size // 8)
    planes = {plane.tobytes(): plane for each in populations for plane in each.planes}
    padded = [np.pad(plane, (0, width - len(plane))) for plane in planes.values()]
    joint: Ints = np.zeros(size, np.int64)
    atoms = 1
    for start in range(0, len(padded), 8):
        eight = padded[start : start + 8]
        code = np.packbits(np.unpackbits(np.array(eight), axis=1, count=size), axis=0)[0]
        joint = (joint << 8) | code if start else code.astype(np.int64)
        if atoms << 8 < 4 * size + 1024:  # a number for each code that occurs, without a sort where there are few
            there = np.zeros(atoms << 8, bool)
            there[joint] = True
            joint = (np.cumsum(there) - 1)[joint]
            atoms = int(there.sum())
        else:
            joint = np.unique(joint, return_inverse=True)[1]
            atoms = int(joint.max(initial=0)) + 1
        if atoms > most:
            return None
    first = np.zeros(atoms, np.int64)
    first[joint] = np.arange(size)
    return joint, first
