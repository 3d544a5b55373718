"""Frequency sets: how many rows share generalized quasi-identifiers, a sensitive value and a person.

The table is counted once. Every other frequency set is rolled up from a finer one (LeFevre, DeWitt
and Ramakrishnan 2005, section 3.2), so its cost depends on the distinct combinations and not on the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.lattice.levels import GeneralizationLevels
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.row_keys import compact, joint, keys_of
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

Levels = tuple[int, ...]


@dataclass(frozen=True)
class FrequencySet:
    """Distinct combinations of generalized values, sensitive code and person, with their number of rows."""

    attributes: tuple[GeneralizationLevels, ...]  # the levels of each quasi-identifier
    node: Levels  # level of each quasi-identifier here
    values: tuple[CodeArray, ...]  # generalized value of each quasi-identifier, shape (combinations,) each
    rows: IntArray  # number of rows of each combination
    table_counts: IntArray  # rows (persons) of the table with each sensitive code
    sensitive: CodeArray | None = None  # sensitive code of each combination, None if nothing depends on it
    person: CodeArray | None = None  # person of each combination, None where every row is a person

    @classmethod
    def of_table(
        cls, attributes: Sequence[GeneralizationLevels], sensitive: CodeArray | None, person: CodeArray | None = None
    ) -> FrequencySet:
        """Count the combinations of n rows: `attributes` are the levels of each quasi-identifier, n codes each."""
        columns = [a.attribute.codes for a in attributes]
        found = keys_of([*columns, *(codes for codes in (sensitive, person) if codes is not None)])
        rows, sizes = found.first, np.bincount(found.of_row)
        values = tuple(a.value_of_code[0][a.attribute.codes[rows]].astype(np.int32) for a in attributes)
        sensitive = None if sensitive is None else sensitive[rows]
        person = None if person is None else person[rows]
        group_of_row = np.zeros(len(rows), dtype=np.int64)
        counts = Groups(group_of_row, sensitive, person=person, weights=sizes).table_counts
        return cls(tuple(attributes), (0,) * len(values), values, sizes, counts, sensitive, person)

    def classes(self, node: Levels) -> IntArray:
        """Equivalence class of each combination once generalized to `node`, numbered 0, 1, ... without gaps."""
        columns = self._generalized(node)
        sizes = [int(column.max(initial=0)) + 1 for column in columns]
        return compact(joint(columns, sizes, rows=len(self.rows)))

    def groups(self, class_of_combination: IntArray) -> Groups:
        """The classes, ready to be checked against a requirement."""
        return Groups(class_of_combination, self.sensitive, self.table_counts, self.person, self.rows)

    def roll_up(self, node: Levels) -> FrequencySet:
        """The frequency set at more general levels, equal combinations merged."""
        columns = [
            a.up(low, high)[value]
            for a, low, high, value in zip(self.attributes, self.node, node, self.values, strict=True)
        ]
        identity = [column for column in (self.sensitive, self.person) if column is not None]
        keys = keys_of([*columns, *identity])
        return FrequencySet(
            self.attributes,
            node,
            tuple(column[keys.first] for column in columns),
            np.bincount(keys.of_row, weights=self.rows).astype(np.int64),
            self.table_counts,
            None if self.sensitive is None else self.sensitive[keys.first],
            None if self.person is None else self.person[keys.first],
        )

    def losses_by_level(self, part: IntArray | None = None) -> list[FloatArray]:
        """Sum of the rows' NCP on each attribute at each level, 0 below the levels of this set."""
        rows = (self.rows if part is None else self.rows[part]).astype(np.float64)
        result = []
        for attribute, low, value in zip(self.attributes, self.node, self.values, strict=True):
            count = np.bincount(value if part is None else value[part], weights=rows, minlength=attribute.size(low))
            losses = [0.0] * low
            for level in range(low, attribute.height + 1):
                losses.append(float(count @ attribute.penalties[level]))
                if level < attribute.height:
                    count = np.bincount(attribute.steps[level], weights=count)
            result.append(np.array(losses))
        return result

    def _generalized(self, node: Levels) -> list[CodeArray]:
        """Values at a more general node, of the attributes that are not fully generalized there."""
        levels = zip(self.attributes, self.node, node, self.values, strict=True)
        return [
            value if low == high else attribute.up(low, high)[value]
            for attribute, low, high, value in levels
            if high < attribute.height
        ]
