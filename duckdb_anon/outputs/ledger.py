"""The ledger of answers, `anon.outputs`, and differencing: what several answers tell when they are subtracted.

An answer's populations are kept by the content of rows (a hash and the number of the copy), so they stay what they were
when the table changes, and a changed row is another one. The rows of an answer are labelled by atom; cells are sets of
atoms. A new cell is suppressed if its population and those of one or two answered cells of the same statistic have a
linear combination over 1 to threshold - 1 individuals, or, for sums, a difference that breaks the rules of
concentration. Where the joint atoms of all answers are few, so are single ones and pairs that any linear combination of
answers gives (Denning, Denning and Schwartz, The tracker, ACM TODS 4(1), 1979).
Cost: one pass over the labels of every answer, at most a byte or two a row each before compression.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
from numpy.typing import NDArray

from duckdb_anon.engine.records.register import SCHEMA
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import AnonError, cause_of
from duckdb_anon.outputs.policy import Policy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_COPY = np.uint64(0x9E3779B97F4A7C15)  # odd: copies of a row have different keys
_ATOMS = 1000  # most joint atoms for which every linear combination is looked at
_SPAN = 400  # most answered cells of a statistic for which that is done
_MATRIX = 20_000_000  # most cells times joint atoms of answers that are compared together
_PAIRS = 1500  # most answered cells of which all pairs are
_TABLES = """
create schema if not exists {schema};
create table if not exists {schema}.outputs (
  number bigint primary key, day timestamp not null, "user" varchar not null, original varchar not null,
  query varchar not null, decision varchar not null, cells bigint not null, suppressed bigint not null,
  rules varchar, approved_by varchar, why varchar, populations blob not null);
create table if not exists {schema}.output_rows (original varchar not null, part bigint not null, keys blob not null)"""


@dataclass(frozen=True)
class Population:
    """Cells of an answer as sets of rows."""

    labels: Ints  # of each row that the ledger knows, its atom from 1; 0 outside the query
    cells: Bools  # cells x atoms
    kinds: tuple[str, ...]  # of each cell, the statistic
    hidden: Bools  # of each cell

    def by_atom(self, labels: Ints) -> Bools:
        """Cells x joint atoms: whether a cell contains a joint atom, whose label is given."""
        outside = np.zeros((len(self.kinds), 1), bool)
        return np.concatenate([outside, self.cells], axis=1)[:, labels]

    def packed(self) -> bytes:
        """The population as bytes."""
        small = self.labels.astype(np.min_scalar_type(int(self.labels.max(initial=0))))
        written = io.BytesIO()
        names = np.frombuffer(json.dumps(self.kinds).encode(), np.uint8)
        np.savez(written, labels=small, cells=np.packbits(self.cells, axis=1), atoms=self.cells.shape[1],
                 kinds=names, hidden=self.hidden)  # fmt: skip
        return zlib.compress(written.getvalue(), 1)


def unpacked(data: bytes) -> Population:
    """A population from its bytes."""
    with np.load(io.BytesIO(zlib.decompress(data)), allow_pickle=False) as read:
        cells = np.unpackbits(read["cells"], axis=1, count=int(read["atoms"])).astype(bool)
        kinds = tuple(json.loads(read["kinds"].tobytes()))
        return Population(read["labels"].astype(np.int64), cells, kinds, read["hidden"])


@dataclass(frozen=True)
class Rows:
    """The rows of a table: what the ledger numbers them by, and what is looked at in differences."""

    keys: NDArray[np.uint64]
    labels: Ints  # atom of each row from 1; 0 outside the query
    persons: NDArray[np.uint64] | None  # of each row; None where each row is an individual
    magnitudes: dict[str, Floats]  # of each row


def keys_of(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys of rows from hashes of their content: equal rows are told from one another by their number."""
    order = np.argsort(hashes)
    ordered = hashes[order]
    place = np.arange(len(hashes))
    first = np.ones(len(hashes), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    copy = place - np.maximum.accumulate(np.where(first, place, 0))
    keys = np.empty_like(hashes)
    with np.errstate(over="ignore"):
        keys[order] = ordered + copy.astype(np.uint64) * _COPY
    return keys


class Ledger:
    """The ledger of one original, in the database that holds it."""

    def __init__(self, con: duckdb.DuckDBPyConnection, database: str, original: str) -> None:
        """Open the ledger; nothing is written."""
        self._con, self._schema, self.original = con, f"{ident(database)}.{SCHEMA}", original
        found = con.execute(
            "select count(*) from duckdb_tables() where (database_name, schema_name, table_name) = (?, ?, 'outputs')",
            [database, SCHEMA],
        ).fetchall()
        self._exists = found[0][0] > 0

    def answered(self, user: str | None) -> list[Population]:
        """Populations of earlier answers, of one user or (None) of all."""
        if not self._exists:
            return []
        rows = self._con.execute(
            f'select populations from {self._schema}.outputs where original = $1 and ($2 is null or "user" = $2) '
            "order by number",
            [self.original, user],
        ).fetchall()
        return [unpacked(row[0]) for row in rows]

    def known(self) -> NDArray[np.uint64]:
        """Keys of the rows that the ledger numbers, in their order."""
        if not self._exists:
            return np.zeros(0, np.uint64)
        parts = self._con.execute(
            f"select keys from {self._schema}.output_rows where original = ? order by part", [self.original]
        ).fetchall()
        return np.frombuffer(b"".join(zlib.decompress(part[0]) for part in parts), np.uint64)

    def write(
        self, user: str, query: str, entry: tuple[Population, NDArray[np.uint64]], rules: Sequence[str],
        approval: tuple[str, str] | None = None,
    ) -> int:  # fmt: skip
        """Enter an answer: its population with the keys of rows that the ledger had not numbered, and the rules.

        Returns:
            The number of the entry.
        """
        population, fresh = entry
        schema = self._schema
        hidden = [rule for rule in rules if rule]
        try:
            for statement in _TABLES.format(schema=schema).split(";"):
                self._con.execute(statement)
            if len(fresh):
                self._con.execute(
                    f"insert into {schema}.output_rows select $1, "
                    f"(select count(*) from {schema}.output_rows where original = $1), $2",
                    [self.original, zlib.compress(fresh.tobytes(), 1)],
                )
            ((number,),) = self._con.execute(
                f"insert into {schema}.outputs select coalesce(max(number), 0) + 1, now()::timestamp, "
                f"$1, $2, $3, $4, $5, $6, $7, $8, $9, $10 from {schema}.outputs returning number",
                [user, self.original, query, "approved" if approval else decision(rules), len(rules), len(hidden),
                 "; ".join(dict.fromkeys(hidden)) or None, *(approval or (None, None)), population.packed()],
            ).fetchall()  # fmt: skip
            return int(number)
        except duckdb.Error as error:
            raise AnonError(
                f"safe_output: the ledger of {self.original} cannot be written, so nothing is answered. Open the "
                "database for writing, and ask again",
                code="no-ledger",
            ) from cause_of(error)


def decision(rules: Sequence[str]) -> str:
    """What is said of an answer, of the rules that its values break; '' for none."""
    return "answered" if not any(rules) else "refused" if all(rules) else "partly answered"


class Comparison:
    """The cells of a new answer against those of earlier answers."""

    def __init__(
        self, policy: Policy, rows: Rows, known: NDArray[np.uint64], new: Population, earlier: Sequence[Population]
    ) -> None:
        """Number the rows of the table, and find the joint atoms of all answers.

        Args:
            policy: the threshold and the rules of concentration.
            rows: the table.
            known: keys of the rows that the ledger numbers.
            new: the cells of the answer; its labels are of `rows`.
            earlier: populations of earlier answers.
        """
        numbers, self.fresh = _numbered(rows, known)
        size = len(known) + len(self.fresh)
        labels = np.zeros(size, np.int64)
        labels[numbers] = rows.labels
        self.population = Population(labels, new.cells, new.kinds, new.hidden)
        together = _Together(policy, rows, numbers, self.population, earlier)
        self._parts = [together]
        if not together.is_small:  # all answers together divide the rows too finely: each earlier one by itself
            self._parts = [_Together(policy, rows, numbers, self.population, [each]) for each in earlier]

    def entered(self, hidden: Bools) -> tuple[Population, NDArray[np.uint64]]:
        """What the ledger keeps of the answer: its population, and the keys of rows that are new to it."""
        return replace(self.population, hidden=hidden), self.fresh

    def known(self) -> Bools:
        """Which cells have been answered before."""
        return np.asarray(np.array([part.known() for part in self._parts]).any(axis=0))

    def refused(self, hidden: Bools) -> Bools:
        """Which cells may not be answered, of those that no rule hides."""
        return np.asarray(np.array([part.refused(hidden) for part in self._parts]).any(axis=0))


class _Together:
    """A new answer and some earlier ones, by the joint atoms of their rows."""

    def __init__(
        self, policy: Policy, rows: Rows, numbers: Ints, new: Population, earlier: Sequence[Population]
    ) -> None:
        self._new, self._earlier = new, earlier
        every = [new, *earlier]
        joint, codes = _joint(every, len(new.labels))
        atoms, cells = len(codes[0]), sum(len(each.kinds) for each in every)
        self.is_small = len(earlier) < 2 or atoms * cells <= _MATRIX
        if self.is_small:
            self._cells = [each.by_atom(code) for each, code in zip(every, codes, strict=True)]
            self._checker = _Checker(policy, rows, numbers, joint, atoms)

    def known(self) -> Bools:
        """Which cells are among the answered ones."""
        found = [self._checker.among(self._cells[0][[place]], self._of(kind, hidden=False))
                 for place, kind in enumerate(self._new.kinds)]  # fmt: skip
        return np.array(found, bool)

    def refused(self, hidden: Bools) -> Bools:
        """Which cells may not be answered after these answers, of those that no rule hides."""
        refused = np.zeros(len(hidden), bool)
        cells = self._cells[0]
        for kind in dict.fromkeys(self._new.kinds):
            asked = [p for p, k in enumerate(self._new.kinds) if k == kind and not hidden[p]]
            known, kept = self._of(kind, hidden=False), self._of(kind, hidden=True)
            found = self._checker.refused(kind, cells[asked], known, kept)
            if any(found) and not self._checker.is_exact:  # what overlaps them could give them away
                found = found | (cells[asked].astype(float) @ cells[asked][found].T.astype(float) > 0).any(axis=1)
            refused[asked] = found
        return refused

    def _of(self, kind: str, *, hidden: bool) -> Bools:
        """Cells of a statistic in earlier answers, answered or hidden ones."""
        found = [cells[(np.array(each.kinds) == kind) & (each.hidden == hidden)]
                 for each, cells in zip(self._earlier, self._cells[1:], strict=True)]  # fmt: skip
        every = np.concatenate([np.zeros((0, self._cells[0].shape[1]), bool), *found])
        return np.unique(every, axis=0)


def _numbered(rows: Rows, known: NDArray[np.uint64]) -> tuple[Ints, NDArray[np.uint64]]:
    """The number of each row in the ledger, and the keys of those that are new, which are numbered after the others."""
    order, asked = np.argsort(known), np.argsort(rows.keys)
    ordered = known[order]
    place = np.empty(len(rows.keys), np.int64)
    place[asked] = np.searchsorted(ordered, rows.keys[asked])  # both sorted: a search among random keys takes seconds
    inside = place < len(known)
    found = np.zeros(len(rows.keys), bool)
    found[inside] = ordered[place[inside]] == rows.keys[inside]
    numbers = np.empty(len(rows.keys), np.int64)
    numbers[found] = order[place[found]]
    numbers[~found] = len(known) + np.arange(int((~found).sum()))
    return numbers, rows.keys[~found]


def _joint(populations: Sequence[Population], size: int) -> tuple[Ints, list[Ints]]:
    """Joint atom of each row, and for each population the label of each joint atom."""
    joint = np.zeros(size, np.int64)
    for each in populations:
        labels = np.zeros(size, np.int64)
        labels[: len(each.labels)] = each.labels
        # a number for each pair that occurs, without a sort where there are few pairs
        code = joint * (int(labels.max(initial=0)) + 1) + labels
        if size and int(code.max()) < 4 * size + 1024:
            there = np.zeros(int(code.max()) + 1, bool)
            there[code] = True
            joint = (np.cumsum(there) - 1)[code]
        else:
            joint = np.unique(code, return_inverse=True)[1].reshape(-1)
    _, first = np.unique(joint, return_index=True)
    codes = []
    for each in populations:
        inside = first < len(each.labels)
        code = np.zeros(len(first), np.int64)
        code[inside] = each.labels[first[inside]]
        codes.append(code)
    return joint, codes


class _Checker:
    """Looks for combinations of cells that tell of few individuals."""

    def __init__(self, policy: Policy, rows: Rows, numbers: Ints, joint: Ints, atoms: int) -> None:
        self._policy, self._rows, self._atoms = policy, rows, atoms
        self._at = joint[numbers]  # joint atom of each row of the table
        self._sizes = np.bincount(joint, minlength=atoms).astype(float)  # rows, those that are gone included
        self._few = policy.threshold
        self._most = 1
        self.is_exact = atoms <= _ATOMS
        if rows.persons is not None and len(rows.persons):
            _, self._person = np.unique(rows.persons, return_inverse=True)
            self._most = int(np.bincount(self._person).max())

    def among(self, cell: Bools, others: Bools) -> bool:
        """Whether a cell is one of others."""
        return bool((others == cell).all(axis=1).any())

    def refused(self, kind: str, asked: Bools, known: Bools, kept: Bools) -> Bools:
        """For each cell that is asked, in order, whether it may not be answered after those before it."""
        answered = list(known.astype(float))
        if kind == "count":  # the number of rows of a table is known
            answered.append(np.ones(self._atoms))
        found = np.zeros(len(asked), bool)
        for place, cell in enumerate(asked.astype(float)):
            if any((cell == each).all() for each in answered):
                continue
            found[place] = (
                self.among(cell > 0, kept)
                or self._tells(kind, cell, answered)
                or (self.is_exact and self._gives(cell, answered))
            )
            if not found[place]:
                answered.append(cell)
        return found

    def _gives(self, cell: Floats, answered: Sequence[Floats]) -> bool:
        """Whether a further cell makes sets of few individuals known."""
        if len(answered) > _SPAN:
            return False
        cells = np.array([*answered, cell]) > 0
        given = _given(cells, self._individuals, self._few)
        return bool(given) and not given <= _given(cells[:-1], self._individuals, self._few)

    def _individuals(self, sets: Bools) -> Floats:
        """Individuals of sets of atoms; those of rows that are gone are rows."""
        counts = sets @ self._sizes
        if self._rows.persons is None:
            return np.asarray(counts)
        for place in np.flatnonzero((counts > 0) & (counts < self._few * self._most)):
            inside = sets[place][self._at]
            gone = counts[place] - inside.sum()
            counts[place] = len(np.unique(self._person[inside])) + gone
        return np.asarray(counts)

    def _tells(self, kind: str, cell: Floats, answered: Sequence[Floats]) -> bool:
        """Whether a cell and one or two answered ones have a combination over few individuals."""
        if not answered:
            return False
        others = np.array(answered)
        differences = cell - others
        few = self._individuals(differences != 0)
        if ((few > 0) & (few < self._few)).any():
            return True
        if kind.startswith("sum ") and self._concentrated(kind[4:], differences):
            return True
        if len(others) > _PAIRS:
            return False
        products = (others * self._sizes) @ others.T
        own, sizes = (others * self._sizes) @ cell, np.diag(products)
        norms = float((cell * self._sizes) @ cell) + sizes[:, None] + sizes[None, :]
        limit = 4 * (self._few - 1) * self._most
        for first, second in ((-1, -1), (-1, 1), (1, 1)):
            lengths = norms + 2 * first * own[:, None] + 2 * second * own[None, :] + 2 * first * second * products
            near = np.argwhere((lengths > 0.5) & (lengths <= limit))
            near = near[(near[:, 0] < near[:, 1]) | (first != second)]
            for start in range(0, len(near), 1000):
                pair = near[start : start + 1000]
                few = self._individuals(cell + first * others[pair[:, 0]] + second * others[pair[:, 1]] != 0)
                if ((few > 0) & (few < self._few)).any():
                    return True
        return False

    def _concentrated(self, magnitude: str, differences: Floats) -> bool:
        """Whether the sum over a difference of two nested cells breaks the rules of concentration."""
        amounts = self._rows.magnitudes.get(magnitude)
        if amounts is None:
            return False
        nested = ((differences >= 0).all(axis=1) | (differences <= 0).all(axis=1)) & (differences != 0).any(axis=1)
        for difference in differences[nested] != 0:
            inside = difference[self._at]
            sizes = np.nan_to_num(amounts[inside], nan=0.0)
            if self._rows.persons is not None:
                sizes = np.bincount(self._person[inside], sizes)
            largest = np.sort(np.abs(sizes))[::-1]
            total, top = float(largest.sum()), float(largest[:1].sum())
            rest = total - float(largest[:2].sum())
            share = float(largest[: self._policy.largest].sum())
            if not share <= self._policy.share * total or rest < self._policy.p_percent / 100 * top:
                return True
        return False


def _given(cells: Bools, sizes: Callable[[Bools], Floats], few: int) -> set[bytes]:
    """Sets of few individuals that linear combinations of cells give, as sets of joint atoms.

    Atoms that no cell divides are one. Looked at are these, and pairs of them.
    """
    columns, at = np.unique(cells, axis=1, return_inverse=True)
    parts = at.reshape(-1) == np.arange(columns.shape[1])[:, None]  # coarser atoms x joint atoms
    individuals = np.where(columns.any(axis=0), sizes(parts), 0.0)
    small = np.flatnonzero((individuals > 0) & (individuals < few))
    if not len(small):
        return set()
    basis, weights, _ = np.linalg.svd(columns.T.astype(float), full_matrices=False)
    part = basis[small][:, weights > 1e-9 * weights[0]]
    left = np.eye(len(small)) - part @ part.T  # products of what cells do not tell of the small atoms
    own = np.diag(left)
    found = {parts[small[place]].tobytes() for place in np.flatnonzero(own < 1e-8)}
    pairs = own[:, None] + own[None, :] - 2 * np.abs(left) < 1e-8
    pairs &= individuals[small][:, None] + individuals[small][None, :] < few
    for first, second in np.argwhere(np.triu(pairs, 1)):
        found.add((parts[small[first]] | parts[small[second]]).tobytes())
    return found
