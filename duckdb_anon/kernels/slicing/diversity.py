"""Slicing's l-diversity: how surely a sliced table links a record to a sensitive value.

A record t with column parts t[C_i] may come from every bucket B that shows all of its parts. With f_i the
share of B's rows whose column-i cell equals t[C_i] (for the last column: the cell without the sensitive
value), p(t, B) is prod_i f_i normalized over the buckets, D(t, B) the distribution of the sensitive value
among the rows of B whose last column matches, and p(t, s) = sum_B p(t, B) D(t, B)[s]. The table is l-diverse
when p(t, s) <= 1/l for all t and s (Li, Li, Zhang and Molloy 2012, section 5).

Two facts make the test quick:

* p(t, .) is a mixture of the D(t, B), so it is enough that every value's share within every (bucket, last
  column part) is at most 1/l. `ConditionalDiversity` asks for that.
* If buckets come from cuts that never separate equal values, two buckets differ in the whole range of the
  attribute that was cut between them, so a record matches its own bucket only and the condition is also
  necessary. A split then changes the records of the split bucket alone: the incremental test looks at the
  two halves and at nothing else.

The general test, for any buckets and for generalized cells, is `matching.record_association`. Cost here:
one sort of the occupied cells of the groups asked about.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_checks_jit import CONDITIONAL, Check
from duckdb_anon.kernels.partition.privacy_models import BoolArray, Requirement
from duckdb_anon.model.coded_table import IntArray

_TOLERANCE = 1e-9
_DENOMINATOR = 10**6


@dataclass(frozen=True)
class ConditionalDiversity(Requirement):
    """Frequency l-diversity of the sensitive value within each (group, last column part).

    It is put on combined codes: each stands for a last column part and a sensitive value. Where rows belong to
    persons, each counts once for every code and once for every part.
    """

    # largest share allowed is 1/l
    l: float  # noqa: E741 - the letter of the papers
    part_of_code: IntArray  # last column part of each combined code; all zero when the sensitive value is alone
    among: str = "rows that agree on the attributes of its column (sensitive_column := 'alone' asks less)"

    @property
    def min_size(self) -> int:
        """Rows a group needs: l of one last column part."""
        return max(1, int(np.ceil(self.l - _TOLERANCE)))

    def rules(self, table_counts: IntArray) -> list[Check]:
        exact = Fraction(self.l).limit_denominator(_DENOMINATOR)
        return [
            Check(CONDITIONAL, (exact.numerator, exact.denominator), codes=self.part_of_code.astype(np.int32)),
        ]

    def _rows_of_part(self, groups: Groups) -> IntArray:
        """Rows (persons) of each cell's group that have its last column part."""
        cells, parts = groups.cells, groups.seen_through(self.part_of_code).cells
        domain = int(self.part_of_code.max(initial=0)) + 1
        key = cells.group * domain + self.part_of_code[cells.code]
        rows: IntArray = parts.counts[np.searchsorted(parts.group * domain + parts.code, key)]
        return rows

    def holds(self, groups: Groups) -> BoolArray:
        exact = Fraction(self.l).limit_denominator(_DENOMINATOR)
        cells = groups.cells
        frequent = cells.counts * exact.numerator > self._rows_of_part(groups) * exact.denominator
        return np.asarray(groups.sum_cells(frequent) == 0)

    def attained(self, whole: Groups) -> str:
        best = float((self._rows_of_part(whole) / whole.cells.counts).min())
        return (
            f"l = {self.l:g} is asked of the sensitive value among {self.among}; the largest l this table can meet is "
            f"{best:.4g}"
        )
