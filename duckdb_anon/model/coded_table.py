"""Coded tables: what every kernel works on.

A kernel never sees values. Each attribute is an array of integer codes, one a row, and the few facts about
its codes that methods need: their places on a number line, or their places in a hierarchy. Codes keep the
order of the values, so results do not depend on the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.number_scale import Scale
from duckdb_anon.model.quoting import literal

FARTHEST = 1e150
"""Numbers beyond it stand at it in `Attribute.positions`."""

IntArray = NDArray[np.int64]
CodeArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Kind = Literal["ordered", "nominal", "hierarchy"]


_AT_ONCE = 1 << 12


def first_rows(codes: CodeArray, domain: int) -> IntArray:
    """For each code the first row that holds it, 0 for those that no row does.

    >>> first_rows(np.array([2, 0, 2]), 4).tolist()
    [1, 0, 0, 0]
    """
    first = np.zeros(domain, dtype=np.int64)
    unseen = np.ones(domain, dtype=bool)
    for start in range(0, len(codes), _AT_ONCE):
        batch = codes[start : start + _AT_ONCE]
        fresh = np.flatnonzero(unseen[batch])[::-1]
        first[batch[fresh]] = fresh + start
        unseen[batch[fresh]] = False
        if not unseen.any():
            break
    return first


@dataclass(frozen=True)
class Attribute:
    """One column as codes."""

    name: str  # column name
    kind: Kind  # 'ordered' (numbers, dates), 'nominal' (0/1 distance) or 'hierarchy' (tree distance)
    # code of each row, shape (n,), int32. Ordered codes rise with the value; nominal codes follow the sorted text.
    # NULL, if present, has the largest code. Shape (0,) where several tables share the attribute, as those that
    # measures read do (`kernels.cells.table`): rows have codes of their own there.
    codes: CodeArray
    # place of each code on a number line, shape (domain,), non-decreasing and finite. Ordered: the value as a number;
    # NaN, infinities and NULL lie one whole range apart beyond the maximum, so that they are farthest from every value.
    # Nominal: 0, 1, 2, ...
    positions: FloatArray
    special_from: int  # codes from here on are NULL or not finite (= domain size if there are none)
    null_code: int  # the code of NULL, or -1
    first_row: IntArray  # for each code the first row that holds it, 0 for those that no row does, shape (domain,)
    hierarchy: Hierarchy | None = None  # the tree, for kind 'hierarchy'
    # leaf number of each code, for kind 'hierarchy'. NULL is a leaf of its own under the root.
    leaf_of_code: CodeArray | None = None
    declared: tuple[str, ...] = ()  # text of the values that an enum or a hierarchy declares and no row has
    # SQL literal of each code, for the functions that write queries; empty for all others
    literals: tuple[str, ...] = ()
    # the exact numbers behind the codes of an ordered attribute, for methods that make new values
    scale: Scale | None = None
    # the code of -infinity, or -1. It is the one code of an ordered attribute that does not follow the order of the
    # values, which is DuckDB's: -infinity, numbers, infinity, NaN, NULL.
    minus_infinity: int = -1
    discrete: bool = True  # whether values are counted (whole numbers, dates, names), not measured
    values: Any = None  # the distinct values by code, without NULL, as an Arrow array; None where no column has them
    # where these rows are part of a larger table, the larger one's rows with each code, shape (domain,); None: these
    # rows are the table
    whole_counts: IntArray | None = None

    def with_codes(self, codes: CodeArray) -> Attribute:
        """The attribute on other rows.

        >>> Attribute("x", "ordered", np.zeros(0), np.arange(3.0), 3, -1, np.zeros(3)).with_codes([2, 0]).first_row
        array([1, 0, 0])
        """
        codes = np.asarray(codes, dtype=np.int32)
        return replace(self, codes=codes, first_row=first_rows(codes, self.size))

    def shared(self) -> Attribute:
        """The attribute without rows, for several tables to have codes of."""
        return self.with_codes(np.zeros(0, dtype=np.int32))

    def mixed(self, low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether codes low .. high of an ordered attribute hold NULL, NaN or an infinity and other values."""
        found: NDArray[np.bool_] = (high >= self.special_from) & (low != high)
        return found

    @property
    def counts(self) -> IntArray:
        """Rows of the whole table with each code, shape (domain,).

        >>> codes = np.array([0, 1, 0])
        >>> Attribute('x', 'nominal', codes, np.arange(2.0), 2, -1, codes).counts.tolist()
        [2, 1]
        """
        if self.whole_counts is not None:
            return self.whole_counts
        return np.bincount(self.codes, minlength=self.domain).astype(np.int64)

    @property
    def ranks(self) -> CodeArray:
        """Code of each row, shape (n,), in the order of the values.

        >>> codes = np.array([0, 2, 1])
        >>> Attribute('x', 'ordered', codes, np.arange(3.0), 1, -1, codes, minus_infinity=1).ranks.tolist()
        [1, 2, 0]
        """
        if self.minus_infinity < 0:
            return self.codes
        ranks: CodeArray = self.rank_of_code[self.codes]
        return ranks

    @property
    def rank_of_code(self) -> CodeArray:
        """Place of each code in the order of the values, shape (domain,)."""
        rank = np.arange(self.domain, dtype=np.int32)
        if self.minus_infinity >= 0:
            rank[: self.minus_infinity] += 1
            rank[self.minus_infinity] = 0
        return rank

    def scale_for(self, function: str) -> Scale:
        """The exact numbers behind the codes, for a method that makes new values."""
        if self.scale is None and self.kind != "ordered":
            raise ColumnError(
                f"{function}: column '{self.name}' is categorical. New values are made of numbers and dates alone"
            )
        if self.scale is None:
            raise ColumnError(
                f"{function}: the values of '{self.name}' have no exact numbers, or differ by "
                "more than 2^63 of its steps. Release it as DOUBLE, or with fewer decimal places"
            )
        return self.scale

    @property
    def size(self) -> int:
        """Number of distinct values, NULL included."""
        return len(self.positions)

    @property
    def domain(self) -> int:
        """The same, as kernels call it."""
        return len(self.positions)

    @property
    def place_of_code(self) -> CodeArray:
        """Leaf of each code where there is a hierarchy, else the code itself, shape (domain,)."""
        return np.arange(self.domain, dtype=np.int32) if self.leaf_of_code is None else self.leaf_of_code

    @property
    def left_to_right(self) -> IntArray:
        """The codes in the order of their places, shape (domain,)."""
        return np.argsort(self.place_of_code, kind="stable").astype(np.int64)

    @property
    def code_of_leaf(self) -> CodeArray:
        """Code of each leaf of the hierarchy."""
        tree, leaf_of_code = self.tree()
        code = np.full(tree.leaves, -1, dtype=np.int32)
        code[leaf_of_code] = np.arange(len(leaf_of_code), dtype=np.int32)
        return code

    def tree(self) -> tuple[Hierarchy, CodeArray]:
        """The hierarchy, and the leaf of each code in it."""
        if self.hierarchy is None or self.leaf_of_code is None:
            raise ColumnError(
                f"column '{self.name}' has no hierarchy. Say hierarchies := {{{literal(self.name)}: 'its_table'}}"
            )
        return self.hierarchy, self.leaf_of_code

    @property
    def span(self) -> float:
        """Largest finite value minus smallest (0 when there is none)."""
        if self.special_from == 0:
            return 0.0
        return float(self.positions[self.special_from - 1] - self.positions[0])


@dataclass(frozen=True)
class CodedTable:
    """The columns a method works on, row i of every attribute being the same source row."""

    rows: int
    qi: tuple[Attribute, ...] = ()
    sensitive: tuple[Attribute, ...] = ()
    person: Attribute | None = None
    other: dict[str, Attribute] = field(default_factory=dict)

    @property
    def repeated_person(self) -> CodeArray | None:
        """Individual of each row where one has several rows, else None: rows are individuals then."""
        if self.person is None or int(np.bincount(self.person.codes).max(initial=0)) < 2:
            return None
        return self.person.codes
