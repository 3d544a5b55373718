"""The part of each row of a table that is worked in parts: one way for DuckDB and Spark, which count and store.

Parts are cut so that similar rows stay together (`split_planner`), or rows are dealt at random where no row is nearer
to a method than another. Where an individual has several rows and parts are of individuals, the first row decides.
Cost: that of `split_planner`, and a GROUP BY of the sensitive columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from duckdb_anon.engine.input_sql import NUMBER
from duckdb_anon.engine.records.call_text import Recorded
from duckdb_anon.engine.transport.hierarchy_io import read_tree
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import ColumnInfo, Cutting
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.parts.split_planner import CODE, PERSON, CodedPart, parts_of


class CodedRows(ABC):
    """The table of a call as codes, counted and stored by DuckDB or Spark."""

    attributes: Sequence[Attribute]  # quasi-identifiers and sensitive attributes, with the counts of the table
    # what stands after FROM; columns of codes, `_anon_rn`, and `_anon_person` where the call has persons
    relation: str
    persons: str  # the same, with `_anon_person` at least

    def __init__(self, recorded: Recorded) -> None:
        """Take the columns that the call needs."""
        self.recorded, self.name, self.roles = recorded, recorded.entry.name, recorded.roles
        self.coded = self.roles.qi + self.roles.sensitive
        others = self.roles.keep + ((self.roles.person,) if self.roles.person else ())
        self.passthrough = list(dict.fromkeys(info.name for info in others))
        self.columns = list(dict.fromkeys([*(info.name for info in self.coded), *self.passthrough]))
        self.codes = [f"{CODE}{k}" for k in range(len(self.coded))]
        conditions = recorded.entry.conditions
        self.conditions = dict(conditions(self.roles, recorded.params)) if conditions else {}

    @abstractmethod
    def ask(self, sql: str) -> pa.Table:
        """Answer a query in DuckDB's dialect."""

    @abstractmethod
    def store(self, name: str, select: str) -> str:
        """Store the rows of a SELECT in DuckDB's dialect under a name, unless it has; return their relation."""

    @abstractmethod
    def deal(self, columns: Sequence[str], parts: int) -> str:
        """SQL of one of so many parts by chance; the rows of equal values of some columns spread evenly."""

    @abstractmethod
    def values(self, k: int) -> str:
        """Relation of the values (`value`) of the k-th quasi-identifier with their rows (`n`)."""

    @abstractmethod
    def _tree_rows(self, info: ColumnInfo) -> pa.Table:
        """The rows of a column's hierarchy table, as texts."""

    def tree(self, info: ColumnInfo) -> Hierarchy | None:
        """The hierarchy of a column."""
        if not info.hierarchy:
            return None
        return read_tree(self.name, info.hierarchy, self._tree_rows(info).columns)

    @cached_property
    def repeated(self) -> bool:
        """Whether an individual has several rows."""
        if self.roles.person is None or self.recorded.entry.unit != "person":
            return False
        found = self.ask(f"select count({PERSON}) > count(distinct {PERSON}) as several from {self.persons}")
        return bool(found.to_pylist()[0]["several"])

    @cached_property
    def combinations(self) -> tuple[CodeArray, IntArray]:
        """Codes of the combinations of sensitive values that occur, and their rows (individuals)."""
        names = ", ".join(self._sensitive_codes())
        if not names:
            return np.zeros((1, 0), dtype=np.int32), np.ones(1, dtype=np.int64)
        many = f"count(distinct {PERSON})" if self.repeated else "count(*)"
        counted = f"select {names}, {many} as n from {self.relation} group by {names}"
        found = self.ask(f"select * from {self.store('combinations', counted)} order by {names}")
        *codes, rows = (c.cast(pa.int64()).combine_chunks().to_numpy(zero_copy_only=False) for c in found.columns)
        return np.stack(codes, axis=1).astype(np.int32), rows

    @cached_property
    def cutting(self) -> Cutting:
        """How the method cuts."""
        entry, params = self.recorded.entry, self.recorded.params
        if entry.parts is None:
            raise ParameterError(
                f"{self.name}: decides for the table as a whole, so it cannot be worked in parts. Leave part_rows and "
                "memory out, with a larger memory_limit, or use mondrian, muco or anatomy"
            )
        q, combinations = len(self.roles.qi), self.combinations[0]
        sensitive = tuple(replace(a, codes=combinations[:, k]) for k, a in enumerate(self.attributes[q:]))
        table = CodedTable(len(combinations), tuple(self.attributes[:q]), sensitive)
        return entry.parts(table, params, self.repeated)

    def placed(self, cutting: Cutting, rows: int, limit: int) -> tuple[str, str]:
        """SQL of the part of a row, and the relation that has it."""
        if cutting.by in ("deal", "deal by value"):
            return self._dealt(cutting, -(-rows // min(limit, cutting.most or limit))), self.relation
        q, person = len(self.roles.qi), self.roles.person
        relation, many = self.relation, rows
        of_persons = person is not None and cutting.persons
        if of_persons:
            firsts = ", ".join(f"arg_min({CODE}{k}, {NUMBER}) as {CODE}{k}" for k in range(q))
            select = f"select {PERSON}, {firsts}, min({NUMBER}) as {NUMBER} from {relation} group by {PERSON}"
            relation = self.store("persons", select)
            many = self.ask(f"select count(*) as n from {relation}").to_pylist()[0]["n"]
            limit = max(1, int(limit * many / rows))
        elif self.repeated and len(self.roles.sensitive) > 1 and cutting.codes is not None:
            raise ParameterError(
                f"{self.name}: several sensitive columns of individuals with several rows are not "
                "worked in parts. Release one of them, or leave out part_rows and memory"
            )
        coded = CodedPart(
            self.ask, relation, many, tuple(self.attributes[:q]), tuple(self.attributes[q:]), *self.combinations,
            self.repeated and not cutting.persons,
        )  # fmt: skip
        tree = parts_of(self.name, coded, cutting, limit).sql()
        if not of_persons:
            return tree, self.relation
        by_person = f"(select {PERSON} as _anon_whose, {tree} as _anon_whose_part from {relation})"
        same = f"{PERSON} is not distinct from _anon_whose"
        return "_anon_whose_part", f"{self.relation} as _anon_rows join {by_person} as _anon_of on {same}"

    def _dealt(self, cutting: Cutting, parts: int) -> str:
        """SQL that deals rows; where values are dealt evenly, so that every part can be cut up by values."""
        if cutting.by == "deal":
            return self.deal((), parts)
        names = ", ".join(self._sensitive_codes())
        least = cutting.requirement.least
        for many in range(parts, 1, -1):
            part = self.deal(self._sensitive_codes(), many)
            dealt = f"(select {part} as part, {names} from {self.relation}) as dealt"
            values = f"(select part, {names}, count(*) as n from {dealt} group by part, {names}) as counted"
            sizes = f"(select part, sum(n) as size, max(n) as most from {values} group by part) as sizes"
            failing = self.ask(f"select count(*) as n from {sizes} where most * {least} > size")
            if not failing.to_pylist()[0]["n"]:
                return part
        return "0"

    def _sensitive_codes(self) -> list[str]:
        return self.codes[len(self.roles.qi) :]
