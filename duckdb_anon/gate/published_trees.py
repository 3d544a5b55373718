"""Hierarchies as they are published: a label that few records carry is replaced by a number.

A hierarchy made from the data has a leaf for each value that occurs, also the one individual aged 123. A leaf or node
keeps its label where k records of an original carry it (k, l or 1/delta of the release that names the hierarchy, ten
where it has none), or where a release shows it. Any other label, carried by few records or by none, becomes "(rare 7)",
numbered at random: the number of leaves below each node, which estimates need, stays.
Cost: one aggregation of an original a hierarchy.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from duckdb_anon.engine.catalog.column_roles import ROLES, label_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.engine.transport.hierarchy_io import read_tree
from duckdb_anon.gate.identifier_traces import trace_of
from duckdb_anon.gate.source_tables import PlainValue, SourceTable
from duckdb_anon.model.errors import AnonError, ParameterError, listed
from duckdb_anon.model.hierarchy import HIDDEN_LABEL
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.release_formats.duckdb_types import bag_type, is_nested, list_type, without_enums

_LEAST = 10


@dataclass
class TreeUse:
    """An attribute of a release that a hierarchy belongs to, and the original it was made of."""

    release: SourceTable
    value: PlainValue
    original: SourceTable | None

    @property
    def least(self) -> int:
        """How many records must carry a label."""
        description = read_description(self.release.comment)
        given = {**description.parameters, **description.together} if description is not None else {}
        sizes = [float(given[name]) for name in ("k", "l") if isinstance(given.get(name), (int, float))]
        sizes += [1 / float(given["delta"])] if isinstance(given.get("delta"), (int, float)) else []
        return max(2, math.ceil(max(sizes) - 1e-9)) if sizes else _LEAST

    def released(self) -> str:
        """SELECT of the labels that the release shows."""
        value, kind = self.value.sql, self.value.kind
        if bag_type(kind) is not None:
            value = f"unnest(map_keys({value}))"
        elif list_type(kind) is not None:
            value = f"unnest({value})"
        elif is_nested(kind):
            return "select null::varchar as v where false"
        return f"select distinct ({value})::varchar as v from {self.release.sql}"

    def carried(self, leaves: str) -> str | None:
        """SELECT of the leaves (column `leaf` of `leaves`) with the number of records, or persons, that carry them."""
        original = self.original
        own = None if original is None else original.attribute(self.value.name)
        if original is None or own is None or is_nested(own.kind):
            return None
        persons = [c for c in original.columns if original.role(c) == "person"]
        counted = f"count(distinct {ident(persons[0])})" if persons else "count(*)"
        return (
            f"select leaf, n from {leaves} join (select {own.sql} as v, {counted} as n from {original.sql} group by 1) "
            f"on try_cast(leaf as {without_enums(own.kind)}) = v"
        )


@dataclass
class PublishedTrees:
    """Hierarchies that are written, by name; `public` are those that everybody knows, in lower case."""

    con: duckdb.DuckDBPyConnection
    public: frozenset[str] = frozenset()
    uses: dict[str, list[TreeUse]] = field(default_factory=dict)

    def add(self, release: SourceTable, original: SourceTable | None) -> None:
        """Take up the hierarchies that a release names."""
        for value, name in trees_of(release):
            self.uses.setdefault(fold(name), []).append(TreeUse(release, value, original))

    def rows(self, tree: SourceTable, originals: Sequence[SourceTable]) -> tuple[pa.Table, int]:
        """Rows of a hierarchy with rare labels replaced, and the number of these labels.

        `originals`: tables whose identifiers may stand in it.

        Raises:
            AnonError: it is no hierarchy, or has columns about individuals.
        """
        roles = [column for column in tree.columns if tree.role(column) in (*ROLES, "release", "attributes")]
        if roles or read_description(tree.comment) is not None:
            raise AnonError(
                f"publish: {tree.name} is named as a hierarchy and has columns of records ({listed(roles)}). A "
                "hierarchy lists values and their groups. Name another table in hierarchy="
            )
        columns = ", ".join(f"({ident(column)})::varchar as {ident(column)}" for column in tree.columns)
        rows = self.con.execute(f"select {columns} from {tree.sql}").fetchall()
        try:
            read_tree(
                "publish", tree.name, pa.array([dict(zip(tree.columns, row, strict=True)) for row in rows]).flatten()
            )
        except ParameterError as error:
            raise AnonError(f"publish: {tree.name} is named as a hierarchy and is none: {error}") from error
        found = trace_of(self.con, tree, None, originals, texts_only=True)
        if found is not None:
            raise AnonError(f"publish: the hierarchy {tree.name} holds identifiers: {found}. Name another hierarchy")
        masks = {} if fold(tree.name) in self.public else self._masks(tree, rows)
        masked = sorted(tuple(masks.get(label, label) for label in row) for row in rows)
        cells = {name: pa.array([row[k] for row in masked], pa.string()) for k, name in enumerate(tree.columns)}
        return pa.table(cells), len(masks)

    def _masks(self, tree: SourceTable, rows: Sequence[tuple[str, ...]]) -> dict[str, str]:
        """The replacement of each label that few records carry."""
        public = {rows[0][-1]}
        leaves = f"(select ({ident(next(iter(tree.columns)))})::varchar as leaf from {tree.sql})"
        for use in self.uses[fold(tree.name)]:
            public |= {label for (label,) in self.con.execute(use.released()).fetchall()}
            select = use.carried(leaves)
            counts = dict(self.con.execute(select).fetchall()) if select is not None else {}
            carriers: dict[str, int] = {}
            for row in rows:
                for label in set(row):
                    carriers[label] = carriers.get(label, 0) + counts.get(row[0], 0)
            public |= {label for label, n in carriers.items() if n >= use.least}
        every = dict.fromkeys(label for row in rows for label in row)
        hidden = [label for label in every if label not in public]
        secrets.SystemRandom().shuffle(hidden)
        free = [number for number in range(1, len(every) + len(hidden) + 1) if f"{HIDDEN_LABEL}{number})" not in every]
        return {label: f"{HIDDEN_LABEL}{number})" for label, number in zip(hidden, free, strict=False)}


def trees_of(release: SourceTable) -> Iterable[tuple[PlainValue, str]]:
    """Attributes of a release and the hierarchy each names."""
    comments = release.comments()
    for value in release.values():
        label = label_of(comments.get(value.name))
        if label is not None and label.hierarchy is not None:
            yield value, label.hierarchy
