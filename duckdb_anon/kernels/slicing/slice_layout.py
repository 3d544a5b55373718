"""The columns of a sliced table: given by the user or found by association.

Cost: `related_columns` when they are to be found, nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.identifier_case import fold


@dataclass(frozen=True)
class Grouping:
    """Which attributes share a column.

    Attributes:
        qi: names of the quasi-identifiers of each column that does not hold the sensitive attribute.
        partners: quasi-identifiers that share the sensitive attribute's column.
        sensitive: name of the sensitive attribute.
    """

    qi: tuple[tuple[str, ...], ...]
    partners: tuple[str, ...]
    sensitive: str

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """All columns, the sensitive one last, the sensitive attribute last in it."""
        return (*self.qi, (*self.partners, self.sensitive))

    def named(self) -> dict[str, tuple[str, ...]]:
        """Released column name to its attributes; names are the attributes joined by '_'."""
        names: dict[str, tuple[str, ...]] = {}
        for column in self.columns:
            name = "_".join(column)
            while name in names:
                name += "_"
            names[name] = column
        return names


def checked_grouping(function: str, given: Any, qi: Sequence[str], sensitive: str, *, alone: bool) -> Grouping:
    """Check columns that were given as lists of names.

    Args:
        function: SQL function, for messages.
        given: list of lists of column names; the sensitive column may be left out.
        qi: quasi-identifiers; each must appear once.
        sensitive: the sensitive column.
        alone: whether the sensitive column must not share its column.

    Raises:
        ParameterError: `given` is not a list of lists of names.
        ColumnError: a name is unknown, missing or repeated, or the sensitive column is not alone.
    """
    if not isinstance(given, (list, tuple)) or not all(
        isinstance(column, (list, tuple)) and column and all(isinstance(n, str) for n in column) for column in given
    ):
        raise ParameterError(
            f"{function}: columns := must be a list of lists of column names, such as [['age', 'sex'], ['zip']]"
        )
    spelling = {fold(name): name for name in (*qi, sensitive)}
    for name in (name for column in given for name in column):
        if fold(name) not in spelling:
            raise ColumnError(
                f"{function}: columns := names '{name}', which is neither quasi-identifier nor sensitive"
                f"{nearest(name, spelling.values())}; there are {listed(spelling.values())}"
            )
    columns = [tuple(spelling[fold(name)] for name in column) for column in given]
    every = [name for column in columns for name in column]
    wrong = [name for name in qi if every.count(name) != 1] + [sensitive] * (every.count(sensitive) > 1)
    if wrong:
        raise ColumnError(f"{function}: columns := must name {listed(wrong)} exactly once")
    with_sensitive = [column for column in columns if sensitive in column]
    partners = tuple(name for column in with_sensitive for name in column if name != sensitive)
    if alone and partners:
        raise ColumnError(
            f"{function}: the sensitive column '{sensitive}' must be alone in its column, not with {listed(partners)}"
        )
    return Grouping(tuple(column for column in columns if sensitive not in column), partners, sensitive)
