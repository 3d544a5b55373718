"""What a planner reads while it plans a call: tables, roles, trees, and what a release carries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, Relation, require_visible
from duckdb_anon.engine.catalog.collation import collated
from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS, Labels, labels_of, resolve_roles, with_labels_of
from duckdb_anon.engine.catalog.duckdb_metadata import describing
from duckdb_anon.engine.records.release_digest import holds_rows_of
from duckdb_anon.engine.records.release_texts import ReleasePair
from duckdb_anon.model.errors import ColumnError, listed, nearest
from duckdb_anon.model.function_specs import ColumnInfo, Entry, Method, Roles
from duckdb_anon.model.hierarchy import HIDDEN_LABELS
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.release_formats import Contents, read
from duckdb_anon.model.release_formats.duckdb_types import slice_fields
from duckdb_anon.rewrite.query.tables import TableInfo


@dataclass(frozen=True)
class Context:
    """What a planner reads: relations, roles, the raw arguments of the call, and the package's entries by name.

    `opened` opens a database in memory with the functions of the package; `verified` says of FROM items, for this
    plan, what tells their rows from others: the digest of a release that holds the rows of its description.
    """

    function: str
    catalog: Catalog
    arguments: Mapping[str, Any]
    entries: Mapping[str, Entry] = field(default_factory=dict)
    opened: Callable[[], duckdb.DuckDBPyConnection] | None = None
    verified: dict[str, str] = field(default_factory=dict)
    _relations: dict[tuple[str, str], Relation] = field(default_factory=dict)

    @property
    def methods(self) -> dict[str, Method]:
        """The methods by name."""
        return {name: entry for name, entry in self.entries.items() if isinstance(entry, Method)}

    def visible(self, parameter: str) -> Relation:
        """A table argument whose columns the planner can see; refused where it cannot."""
        relation = self.relation(parameter)
        require_visible(self.function, relation)
        return relation

    def relation(self, parameter: str, given: object = None) -> Relation:
        """Resolve the table argument `parameter` (or `given` in its place), once for a plan."""
        argument = given or self.arguments.get(parameter)
        key = (parameter, str(argument))
        if key not in self._relations:
            self._relations[key] = self.catalog.relation(self.function, parameter, argument)
        return self._relations[key]

    def roles(
        self, relation: Relation, needs: tuple[str, ...] = (), nested: bool = False, only: Collection[str] = ()
    ) -> Roles:
        """Resolve roles of `relation` from comments and this call's role arguments, or `only` some of these."""
        checked = {
            p.name: p.check(self.function, self.arguments.get(p.name) if p.name in only or not only else None)
            for p in ROLE_PARAMETERS
        }
        return resolve_roles(self.function, relation, checked, needs=needs, nested=nested)

    def contents(self, relation: Relation) -> Contents:
        """What a table carries, where nothing is known of its original but roles."""
        labels = self.labels(relation)
        return read(
            relation.columns,
            None,
            labelled=labels.named,
            sensitive=labels.roles["sensitive"],
            trees=labels.hierarchies,
            kept=labels.roles["insensitive"],
            table=relation.given,
            function=self.function,
        )

    def flat(self, relation: Relation) -> Relation:
        """`relation` with the fields of its slices as columns, as roles name them; what is no slice stays."""
        if not any(slice_fields(kind) for kind in relation.columns.values()):
            return relation
        slices = self.contents(relation).slices()
        columns: dict[str, str] = {}
        for name, kind in relation.columns.items():
            columns |= {part.field: part.type for part in slices[name]} if name in slices else {name: kind}
        return replace(relation, columns=columns)

    def labels(self, relation: Relation) -> Labels:
        """What comments and this call say of columns."""
        checked = {p.name: p.check(self.function, self.arguments.get(p.name)) for p in ROLE_PARAMETERS}
        return labels_of(self.function, relation, checked)

    def release_pair(self, original: Relation, release: Relation, trees: Mapping[str, str]) -> ReleasePair:
        """A release and its original, by which its texts are read; `trees` names the hierarchy table of attributes."""
        return ReleasePair(self.function, self.catalog, original, release, self._trees(trees))

    def why_unbounded(self, release: Relation) -> str:
        """Why there are no bounds from a release: it does not hold the rows that its description was written for."""
        description = read_description(release.comment)
        if description is None or not description.digest:
            return (
                f"no bounds: {release.given} is not described with its rows. Write it with duckdb_anon.release(), "
                "anon_release or duckdb-anon release"
            )
        if description.together:
            return f"no bounds: {release.given} lacks the rows that its database could not release"
        try:
            if holds_rows_of(
                self.catalog.cursor, release.sql, description.digest, description.checksum, release.columns
            ):
                self.verified[release.sql] = description.digest
                private = "epsilon" in description.parameters and not self.contents(release).count_error
                return "no bounds: the release is made of noisy counts, whose errors no interval states" * private
        except duckdb.Error:
            tick()  # an interrupt is none of these
        return (
            f"no bounds: the rows of {release.given} are not those that its description was written for. Write the "
            "release again"
        )

    def table_info(self, relation: Relation, releases: Sequence[Relation] = ()) -> TableInfo:
        """`relation` as rewrites see it, its roles as `releases` give them; raises unless its columns are visible."""
        require_visible(self.function, relation)
        relation = with_labels_of(relation, releases)
        roles = self.roles(relation, nested=True)
        infos, trees = roles.attributes, self._trees(roles.trees())
        return TableInfo(
            sql=relation.sql,
            columns=tuple(relation.columns.items()),
            roles=roles.by_name(),
            hierarchies={
                n: TableInfo(t.sql, tuple(t.columns.items()), hidden=HIDDEN_LABELS in t.comment)
                for n, t in trees.items()
            },
            given=relation.given,
            collated=frozenset(map(fold, collated(self.catalog, relation, [info.name for info in infos]))),
            describe=describing(self.catalog),
        )

    def _trees(self, named: Mapping[str, str]) -> dict[str, Relation]:
        """Hierarchy table of each attribute, by the name it was given."""
        found = {name: self.relation(f"hierarchy of {name}", tree) for name, tree in named.items()}
        for name, tree in found.items():
            if not tree.visible:
                there = self.catalog.table_names()
                raise ColumnError(
                    f"{self.function}: the hierarchy of '{name}' is '{tree.given}', which is not a committed table"
                    f"{nearest(tree.given, there)}. There are: {listed(there) or 'none'}"
                )
        return found

    def tree_sql(self, info: ColumnInfo) -> str:
        """Scalar subquery that lists the rows of a column's hierarchy table."""
        tree = self.catalog.relation(self.function, f"hierarchy of {info.name}", info.hierarchy)
        return f"(select list(_anon_h) from (select columns(*)::varchar from {tree.sql}) as _anon_h)"
