"""Targets of an attacker: individuals drawn from the original, what the attacker knows of them, and the truth.

With a person column a target is an individual, who may have several records in the original, several rows in the
release, and several sensitive values; the attacker knows the quasi-identifiers of all the records. Without one a target
is a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall, ReadTable
from duckdb_anon.kernels.partition.sort_count import offsets_of, owners, rank_in_run
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.released_rows import is_plain
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.model.coded_table import BoolArray, CodeArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed
from duckdb_anon.model.function_specs import Params


@dataclass(frozen=True)
class TargetValues:
    """Codes of one sensitive column, or released rows: target t has code[offsets[t]:offsets[t + 1]], each once."""

    offsets: IntArray
    code: IntArray

    @property
    def target(self) -> IntArray:
        """Target of each value."""
        return owners(self.offsets)

    def between(self, first: int, end: int) -> TargetValues:
        """Those of some targets."""
        at = self.offsets[first : end + 1]
        return TargetValues(at - at[0], self.code[at[0] : at[-1]])


@dataclass(frozen=True)
class Targets:
    """Individuals whom an attacker looks for."""

    start: IntArray  # first record of each target and the number of records, shape (targets + 1,)
    values: CodeArray  # code of each known column, shape (records, columns)
    known: BoolArray  # which of them the attacker knows, shape (records, columns)
    true: TargetValues  # the rows of each target in the release
    secrets: tuple[TargetValues, ...]  # for each sensitive column the values that are to be found
    known_values: tuple[TargetValues, ...]  # for each sensitive column the values the attacker knows
    who: IntArray  # number of each target in the table it was drawn from, shape (targets,)

    def __len__(self) -> int:
        return len(self.start) - 1

    def between(self, first: int, end: int) -> Targets:
        """Those from `first` to before `end`."""
        at = self.start[first : end + 1]
        records = slice(at[0], at[-1])
        return Targets(
            at - at[0], self.values[records], self.known[records], self.true.between(first, end),
            tuple(column.between(first, end) for column in self.secrets),
            tuple(column.between(first, end) for column in self.known_values), self.who[first:end],
        )  # fmt: skip

    def blocks(self, records: int) -> list[tuple[int, int]]:
        """Targets cut into runs of at most so many records, one target at least: first and end of each."""
        found, first = [], 0
        while first < len(self):
            end = int(np.searchsorted(self.start, self.start[first] + records, side="right")) - 1
            found.append((first, max(end, first + 1)))
            first = found[-1][1]
        return found


def draw_targets(
    call: MeasureCall,
    table: ReadTable,
    release: PublishedRecords,
    row: IntArray | None = None,
    among: IntArray | None = None,
) -> Targets:
    """Individuals at random, and what the attacker knows of each.

    `row`: the released row of each record, if known; `among`: numbers of the individuals to draw from, by default all.
    """
    params, rng = call.params, call.rng
    names = [*release.qi, *(secret.name for secret in release.secrets)]
    missing = [name for name in names if name not in table.columns]
    if missing or not is_plain(table, names):
        raise ColumnError(f"targets need plain values in {listed(missing or names)}")
    individual_of_row = persons_of(table, call.person)
    several = [secret.name for secret in release.secrets if secret.listed]
    if several and call.person not in table.columns:
        raise ColumnError(
            f"the release has a row per individual with a list of values of {listed(several)}, and no "
            "column identifies the individuals of the original; say person := '...' or "
            "COMMENT ON COLUMN ... IS 'anon: person'"
        )
    who = np.arange(int(individual_of_row.max()) + 1, dtype=np.int64) if among is None else among
    if (wanted := params["targets"]) is not None and wanted < len(who):
        who = np.sort(rng.choice(who, wanted, replace=False))
    knows = _known(len(who), known_columns(release.qi, params), params["p_match"], rng)
    rows, target = _rows_of(who, individual_of_row)
    codes = [table.columns[name].value_codes()[rows].astype(np.int32) for name in names]
    d = len(release.qi)
    first = keys_of([target, *codes[:d]]).first
    first = first[np.argsort(target[first], kind="stable")]
    of_record = target[first]
    values, known = np.stack([c[first] for c in codes[:d]], axis=1), knows[of_record]
    to_find, known_values = [], []
    for each in codes[d:]:
        pairs = np.unique(np.stack([target, each.astype(np.int64)], axis=1), axis=0)
        values_of_target = TargetValues(offsets_of(pairs[:, 0], len(who)), np.ascontiguousarray(pairs[:, 1]))
        unknown, drawn = _some_known(values_of_target, params["known_values"], rng)
        to_find.append(unknown)
        known_values.append(drawn)
        for k in range(params["known_values"]):
            there = np.diff(drawn.offsets) > k
            value = np.zeros(len(who), dtype=np.int32)
            value[there] = drawn.code[drawn.offsets[:-1][there] + k]
            values = np.column_stack([values, value[of_record]])
            known = np.column_stack([known, there[of_record]])
    own = np.full(len(rows), -1, dtype=np.int64) if row is None else row[rows]
    return Targets(
        offsets_of(of_record, len(who)), np.ascontiguousarray(values), np.ascontiguousarray(known),
        TargetValues(offsets_of(target[own >= 0], len(who)), own[own >= 0]), tuple(to_find), tuple(known_values), who,
    )  # fmt: skip


def persons_of(table: ReadTable, person: str | None) -> IntArray:
    """Number of the individual of each row; without such a column each row is an individual."""
    if person is None or person not in table.columns:
        return np.arange(table.rows, dtype=np.int64)
    column = table.columns[person]
    codes, null = column.value_codes(), column.domain.null_code
    if null >= 0 and bool((codes == null).any()):
        raise RequirementError(
            f"'{person}' is NULL in {int((codes == null).sum())} rows, so their individuals are unknown; "
            "leave them out or give each row a number"
        )
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _rows_of(who: IntArray, individual_of_row: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of the chosen persons, person by person, and the place of each one's person in `who`."""
    number = np.full(int(individual_of_row.max()) + 1, -1, dtype=np.int64)
    number[who] = np.arange(len(who))
    rows = np.flatnonzero(number[individual_of_row] >= 0)
    rows = rows[np.argsort(number[individual_of_row[rows]], kind="stable")]
    return rows, number[individual_of_row[rows]]


def _some_known(column: TargetValues, number: int, rng: np.random.Generator) -> tuple[TargetValues, TargetValues]:
    """Values that stay to be found, and up to `number` of each target drawn at random, which the attacker knows."""
    targets = len(column.offsets) - 1
    if not number:
        return column, TargetValues(np.zeros(targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    target = column.target
    order = np.lexsort((rng.random(len(target)), target))
    code = column.code[order]
    drawn = rank_in_run(target) < number
    to_find, known = (TargetValues(offsets_of(target[some], targets), code[some]) for some in (~drawn, drawn))
    return to_find, known


def known_columns(qi: Sequence[str], params: Params) -> BoolArray:
    """Which quasi-identifiers the attacker may know."""
    mask = np.array([params["known"] is None or name in params["known"] for name in qi])
    if not mask.any() and not params["known_values"]:
        raise ParameterError(f"known := [] leaves nothing to look for; name some of {listed(qi)}")
    return mask


def _known(targets: int, knows: BoolArray, p: float, rng: np.random.Generator) -> BoolArray:
    """Each column with probability p, drawn again while none is."""
    known = np.tile(knows, (targets, 1))
    if p >= 1 or not knows.any():
        return known
    drawn = (rng.random(known.shape) < p) & known
    while not (some := drawn.any(axis=1)).all():
        drawn[~some] = (rng.random((int((~some).sum()), len(knows))) < p) & known[~some]
    return drawn
