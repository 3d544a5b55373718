"""What a release carries, column by column and row by row: the result of `release_formats.read`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import literal
from duckdb_anon.model.release_formats.duckdb_types import bag_type, box_type, is_nested, list_type

Cell = Literal["value", "items", "interval", "set", "node", "nodes", "counts"]
Truth = Literal["exact", "permuted", "randomized", "replaced", "suppressed"]
WeightMeaning = Literal["rows", "rate", "missing"]


@dataclass(frozen=True, eq=False)  # one object each, hashed for every question about a release
class Carrier:
    """A column that belongs to a shape and not to the original.

    Its name is `word`, with as many underscores behind it as it takes to be no name of the original's.
    """

    word: str  # the name
    fits: Callable[[str], bool]  # whether a DuckDB type can be its type
    meaning: str  # what its values are, for messages
    doc: str = ""  # a line on its values

    @property
    def key(self) -> str:
        """What layouts and cells of methods call it; no column of an original may begin like this."""
        return f"_anon_{self.word}"

    def stands_for(self, name: str) -> bool:
        """Whether a column of this name may be this carrier, in any letter case."""
        folded = fold(name)
        return folded.startswith(self.word) and folded.rstrip("_") == self.word.rstrip("_")

    def name(self, taken: Collection[str]) -> str:
        """The name in a release of an original with these columns.

        >>> Carrier("bucket", lambda kind: True, "the bucket").name(["age", "Bucket"])
        'bucket_'
        """
        folded = {fold(name) for name in taken}
        name = self.word
        while name in folded:
            name += "_"
        return name


@dataclass(frozen=True)
class Weight:
    """The number of original rows that a released row stands for."""

    column: str  # the release's column
    # 'rows': that many; 'rate': each original row is released with this probability, so 1 / rate; 'missing': this many
    # original rows were left out, so 1 + missing / number of released rows
    meaning: WeightMeaning

    def wrong(self, least: float, most: float) -> str:
        """What is wrong with numbers that go from `least` to `most`; '' where nothing is.

        >>> Weight("sampling_rate", "rate").wrong(0.5, 1)
        ''
        >>> Weight("left", "missing").wrong(-1, 3)
        'column left of the release is the number of rows left out, which is 0 or more; it goes from -1 to 3'
        """
        allowed = {
            "rate": ("the chance that a row was kept, which is above 0 and at most 1", least > 0 and most <= 1),
            "missing": ("the number of rows left out, which is 0 or more", least >= 0),
            "rows": ("", True),
        }
        what, right = allowed[self.meaning]
        return "" if right else f"column {self.column} of the release is {what}; it goes from {least:g} to {most:g}"


@dataclass(frozen=True)
class Content:
    """How a release carries one column of the original."""

    column: str  # the original's column in lower case
    carrier: str  # the release's column, as it spells it
    field: str  # the field of `carrier` where that is a slice, '' otherwise
    type: str  # DuckDB type of the cells, '' where unknown
    # 'value': one value of the original's type; 'items': all the values a person has, as they are; 'interval':
    # STRUCT(lower, upper); 'set': a list of the values it may stand for; 'node': a label of the hierarchy; 'nodes': a
    # list of labels, for the values of one person; 'counts': MAP from value to count
    cell: Cell
    # whose the cells are. 'exact': the row's own; 'permuted': of some row of the bucket; 'randomized': drawn by the
    # published channel; 'replaced': the row's own with the published probability of retention; 'suppressed': the row's
    # own, or NULL for any value.
    truth: Truth = "exact"
    original_type: str = ""  # the column's type in the original, '' where unknown

    @cached_property
    def value_type(self) -> str:
        """Type of the values that its cells show, '' where they show labels of a hierarchy or nothing is known."""
        if self.cell in ("node", "nodes"):
            return ""
        inside = {"interval": box_type, "set": list_type, "counts": bag_type}.get(self.cell)
        if self.cell == "items" and list_type(self.original_type) is None:
            inside = list_type
        return self.type if inside is None else inside(self.type) or ""


@dataclass
class Contents:
    """What a release carries."""

    shape: str = "rows"  # the name it goes by: rows, boxes, buckets, sliced, randomized, counts or persons
    shapes: tuple[str, ...] = ()  # names of all shapes found in it, in the order of the registry
    # what it carries, by the original's column in lower case
    columns: dict[str, Content] = field(default_factory=dict)
    weights: tuple[Weight, ...] = ()  # what a row weighs: the product of all; 1 when empty
    # columns of a row's bucket, of the channels, the probability that a replaced value is its own, the original's row,
    # how many carry a sensitive value, the error of counts, the group inside which values moved; '' where there is none
    bucket: str = ""
    channels: str = ""
    retention: str = ""
    blank: str = ""  # how many cells of each column were suppressed
    source: str = ""
    bounded: bool = True  # whether every released row is one original row, so that hard bounds exist
    complete: bool = True  # whether every original row is behind some released row
    known: bool = False  # whether the original was there to compare with
    edges: str = ""
    count_error: str = ""
    group: str = ""

    def answered(self, answers: Collection[str]) -> bool:
        """Whether a measure that answers these shapes answers all of this release's."""
        return "*" in answers or set(self.shapes) <= set(answers)

    @property
    def carriers(self) -> tuple[str, ...]:
        """The release's columns that are no columns of the original."""
        columns = [self.bucket, self.channels, self.retention, self.blank, self.source, self.edges, self.group]
        columns += [self.count_error, *(weight.column for weight in self.weights)]
        return tuple(dict.fromkeys(name for name in columns if name))

    def slices(self) -> dict[str, list[Content]]:
        """Permuted columns by the STRUCT column they are fields of."""
        found: dict[str, list[Content]] = {}
        for content in self.columns.values():
            if content.field:
                found.setdefault(content.carrier, []).append(content)
        return found


@dataclass
class Claims:
    """A release half read: formats claim columns that no other has claimed."""

    release: Mapping[str, str]  # column to DuckDB type
    original: Mapping[str, str] | None  # column in lower case to type; None when nothing is known of the original
    # columns in lower case that are known to be the original's, by a role or because a call names them
    labelled: Collection[str] = ()
    sensitive: Collection[str] = ()  # those of them that are sensitive
    trees: Collection[str] = ()  # columns in lower case that have a hierarchy
    contents: Contents = field(default_factory=Contents)  # what is found so far
    unclaimed: dict[str, str] = field(default_factory=dict)

    def is_original(self, name: str) -> bool:
        """Whether a column is known to be the original's, and so is no carrier."""
        names = self.labelled if self.original is None else self.original
        return fold(name) in names

    def may_be_original(self, name: str) -> bool:
        """Whether a name can be that of an original's column."""
        return self.original is None or fold(name) in self.original

    def may_be_form(self, name: str) -> bool:
        """Whether a column may show an attribute in a released form; where some have a role, they alone are read."""
        if self.original is None:
            return not self.labelled or fold(name) in self.labelled
        return fold(name) in self.original

    def keep_nested(self, kept: Collection[str]) -> None:
        """Claim nested columns that are released as they are, so that none is taken for a released form."""
        for name, kind in self.release.items():
            is_own = fold(name) in kept if self.original is None else self.original_type(name) == kind
            # lists under a hierarchy may be lists of nodes
            if is_own and is_nested(kind) and fold(name) not in self.trees:
                self.carry(name, "value")

    def original_type(self, name: str) -> str:
        """The column's type in the original, '' if unknown."""
        return (self.original or {}).get(fold(name), "")

    def find(self, carrier: Carrier) -> str | None:
        """The unclaimed column that is this carrier: by its name, its type and its absence from the original."""
        named = [n for n in self.unclaimed if carrier.stands_for(n) and not self.is_original(n)]
        fitting = [n for n in named if not self.unclaimed[n] or carrier.fits(self.unclaimed[n])]
        return max(fitting, key=len, default=None)

    def take(self, carrier: Carrier) -> str | None:
        """Claim the column that is this carrier; its name, or None."""
        found = self.find(carrier)
        if found is not None:
            del self.unclaimed[found]
        return found

    def carry(self, name: str, cell: Cell, truth: Truth = "exact") -> None:
        """Claim a column that carries the original's column of the same name."""
        kind = self.unclaimed.pop(name)
        self.contents.columns[fold(name)] = Content(fold(name), name, "", kind, cell, truth, self.original_type(name))


def refuse_strangers(claims: Claims, carriers: Collection[Carrier], table: str, caller: str) -> None:
    """Raise where a column is named like a carrier, is none of the original's and has a type no carrier has."""
    for carrier in carriers:
        for name, kind in claims.unclaimed.items():
            if carrier.stands_for(name) and not claims.is_original(name) and kind and not carrier.fits(kind):
                ordinary = (
                    f". If it is an ordinary column, say keep := [{literal(name)}] or comment it 'anon: insensitive'"
                )
                raise ColumnError(
                    f"{caller}column {name} of {table} is a {kind}, not {carrier.meaning}. Keep releases in DuckDB or "
                    f"Parquet, which keep types, or rename the column{ordinary}"
                )
