"""Releases of any shape as microdata for NIST's measures: one value a cell, the same draws for all of them.

A plain cell is itself. Of a box, a set, a node or a bucket's counts one value is drawn (`plain_rows`), slices are taken
in the order they are printed, which is one of the arrangements their buckets allow, and a row with a noisy count is
repeated that often, rounded. Randomized values stay as they were randomized. So the measures say what an analyst gets
who works on one drawn table and knows nothing of the method; `relative_error` says what the estimators get.
Cost: linear in rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.line import quantile_bins
from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.measures.released_rows import OfRelease, repeated_rows, require_columns, spelled
from duckdb_anon.model.coded_table import Attribute, BoolArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.function_specs import Parameter
from duckdb_anon.model.progress import tick

ALL = "(all)"
ANSWERS = ("rows", "boxes", "buckets", "sliced", "counts", "randomized", "sampled", "suppressed", "retained")
"""Shapes that have rows to draw from."""
COLUMNS = Parameter("columns", "columns that are compared (default: every labelled one of the release)", "names")
BY = Parameter("subgroup", "column that defines subgroups; the comparison is repeated for each of its values", "text")
_MOST_GROUPS = 200
Comparison = partial(OfRelease, section="Utility", literals=True, answers=ANSWERS, needs=())
"""Entry of a measure that compares rows drawn from a release with the original's."""


@dataclass(frozen=True)
class Drawn:
    """One row of a release as it is drawn."""

    columns: dict[str, IntArray]  # code of each row, by column name, in the common domain
    rows: int  # number of rows

    def only(self, chosen: BoolArray) -> Drawn:
        """Some of the rows."""
        return Drawn({name: codes[chosen] for name, codes in self.columns.items()}, int(chosen.sum()))


def columns_of(call: MeasureCall) -> list[str]:
    """The columns a call compares, by default all labelled ones that the release shows."""
    shown = call.release.columns
    names = call.params["columns"] or [info.name for info in call.roles.attributes if info.name in shown]
    if not names:
        raise ColumnError("the release shows no labelled column; name some in columns := ['age', 'sex']")
    require_columns(call.release, names)
    return list(names)


def pairs(call: MeasureCall, names: Sequence[str]) -> Iterator[tuple[str, Drawn, Drawn]]:
    """All rows of the original and of the release, as drawn, then those of each subgroup in the order of its values."""
    tables, by = (call.original, call.release), call.params["subgroup"]
    if not all(table.rows for table in tables):
        raise RequirementError("the original or the release is empty; there is nothing to compare")
    both = [name for name in call.original.columns if name in call.release.columns]
    problem = f"subgroup := '{by}' is no labelled column of both tables"
    group = [] if by is None else [spelled(by, both, problem, "there are")]
    drawn = []
    for table in tables:
        rows = repeated_rows(table)
        columns = {name: drawn_codes(table.columns[name], rows, call.rng) for name in dict.fromkeys([*names, *group])}
        drawn.append(Drawn(columns, len(rows)))
    if any(side.rows == 0 for side in drawn):
        raise RequirementError("the counts of the release add up to no row; there is nothing to compare")
    yield ALL, drawn[0], drawn[1]
    for name in group:
        values = np.unique(drawn[0].columns[name])
        if len(values) > _MOST_GROUPS:
            raise RequirementError(
                f"subgroup := '{name}' has {len(values)} values, more than {_MOST_GROUPS} subgroups; take a coarser one"
            )
        for value in values.tolist():
            original, release = (side.only(side.columns[name] == value) for side in drawn)
            yield f"{name} = {value_text(call.original.columns[name].domain, value)}", original, release


def value_text(domain: Attribute, code: int) -> str:
    """A value as it is written, without the quotes of its SQL literal."""
    literal = domain.literals[code] if domain.literals else str(code)
    return literal[1:-1].replace("''", "'") if literal.startswith("'") and literal.endswith("'") else literal


def drawn_codes(column: Ranges, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """One code for each row, drawn from the values its cell may stand for."""
    tick()
    return column.of_rows(rows).draw(rng)


def numbers(column: Ranges, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    """One place on the number line for each row: its own, the middle of its interval, or that of a drawn code."""
    if column.ordered and not column.plain:
        return column.of_rows(rows).middles()
    return column.domain.positions[drawn_codes(column, rows, rng)]


def binned(domain: Attribute, codes: IntArray, bins: int) -> IntArray:
    """Bin of each code: quantiles of the original's `codes` where there are more than `bins` numbers, else its own."""
    special = domain.special_from
    counts = np.bincount(codes, minlength=domain.size)[:special]
    if domain.kind != "ordered" or special <= bins or not counts.sum():
        return np.arange(domain.size, dtype=np.int64)
    inside = quantile_bins(counts, bins, int(counts.sum()), below=True)
    return np.concatenate([inside, inside.max() + 1 + np.arange(domain.size - special)])
