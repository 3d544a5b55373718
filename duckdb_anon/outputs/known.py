"""Cells by what everybody may know, so that a refusal tells nothing of sensitive values.

Whether two answers differ by few individuals depends on sensitive values where conditions read them: of all who have a
disease but one individual, a query is answered where that one does not have it. So answers are also compared by their
conditions and keys on quasi-identifiers and insensitive columns alone, and what is refused then is refused whatever the
other columns hold (simulatable auditing; Kenthapadi, Mishra and Nissim, PODS 2005). What is refused by the rest of
the conditions still tells of groups of individuals as large as the threshold or larger.
Cost: the query of the known part, where conditions read other columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from duckdb_anon.outputs.block import Block
from duckdb_anon.outputs.cells import Atoms, Row, compute
from duckdb_anon.outputs.ledger import Bools, Ints, Rows
from duckdb_anon.outputs.policy import Policy
from duckdb_anon.outputs.tables import Cell, members_of

KNOWN = "known"
"""In place of a statistic: the individuals of a cell by what everybody may know."""
Computed = tuple[Sequence[Row], Atoms, Rows]


@dataclass(frozen=True)
class Cells:
    """Cells of an answer followed by those of its known part, if there are any, over common atoms."""

    rows: Rows  # labelled by these atoms
    sets: Bools  # cells x atoms
    kinds: Sequence[str]  # statistic of each cell
    place: Mapping[Cell, int]  # of each value, its cell of the known part, where that has rows
    few: Bools  # of each cell of the known part, whether it has fewer individuals than the threshold


def is_read(block: Block, atoms: Atoms) -> bool:
    """Whether the individuals of a cell depend on what not everybody may know: by conditions, keys and NULLs."""
    arguments = {name for each in block.aggregates for name in each.arguments}
    nulls = not block.table.are_known(arguments) and not bool(atoms.holds.all())
    return nulls or not block.table.are_known(block.read)


def with_known(
    con: duckdb.DuckDBPyConnection, function: str, block: Block, policy: Policy, found: Computed,
    new: tuple[Bools, Sequence[str]],
) -> Cells:  # fmt: skip
    """Cells of an answer, and those of its known part where the answer depends on anything else.

    Args:
        con: a connection to the database of the original, in the transaction of `found`.
        function: name of the function, for errors.
        block: the query.
        policy: the threshold.
        found: what `compute` found for the query.
        new: values of the answer that have rows, as sets of atoms, and their statistics.
    """
    if not is_read(block, found[1]):
        return Cells(found[2], *new, {}, np.zeros(0, bool))
    part, kept, at = block.known
    rows, atoms, other = compute(con, function, part, policy)
    table, new, atoms_of = _together(found[2], new, other)
    numbers = {(row.grouped, tuple(row.keys[k] for k in row.grouped)): number for number, row in enumerate(rows)}
    names = {}
    for number, row in enumerate(found[0]):
        grouped = [k for k in row.grouped if k in kept]
        group = numbers[tuple(map(kept.index, grouped)), tuple(row.keys[k] for k in grouped)]
        for place, aggregate in enumerate(block.aggregates):
            name = group, at[aggregate.condition]
            if rows[group].groups[name[1]].rows:
                names[number, place] = name
    distinct = {name: place for place, name in enumerate(dict.fromkeys(names.values()))}
    inside = members_of(atoms, rows)[[number for number, _ in distinct]].toarray() > 0
    inside &= atoms.holds.T[[condition for _, condition in distinct]]
    inside = np.concatenate([np.zeros((len(inside), 1), bool), inside], axis=1)[:, atoms_of + 1]
    few = [rows[number].groups[condition].individuals < policy.threshold for number, condition in distinct]
    places = {cell: distinct[name] for cell, name in names.items()}
    return Cells(
        table, np.concatenate([new[0], inside]), [*new[1], *[KNOWN] * len(distinct)], places, np.array(few, bool)
    )


def _together(
    rows: Rows, new: tuple[Bools, Sequence[str]], other: Rows
) -> tuple[Rows, tuple[Bools, Sequence[str]], Ints]:
    """Rows labelled by the common atoms of two answers, the cells of the first one over these, and the other's atom."""
    labels = np.zeros(len(rows.labels), np.int64)  # equal rows have the same atom, in whatever order they come
    labels[np.argsort(rows.hashes, kind="stable")] = other.labels[np.argsort(other.hashes, kind="stable")]
    wide = int(labels.max(initial=0)) + 1
    codes, joint = np.unique(np.concatenate([[0], rows.labels * wide + labels]), return_inverse=True)
    sets = np.concatenate([np.zeros((len(new[0]), 1), bool), new[0]], axis=1)[:, codes[1:] // wide]
    return replace(rows, labels=joint.reshape(-1)[1:]), (sets, new[1]), codes[1:] % wide - 1
