"""What a release of a database is to be: tables, how their rows belong to individuals, roles, treatments, the promise.

Roles are the labels of columns. A column labelled quasi, in whatever table, is one that an attacker may know; columns
without label and treatment are dropped, as are identifiers without a treatment. Key columns become pseudonyms. The
promise is delta (mutual cover) or k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, Relation, require_visible
from duckdb_anon.engine.catalog.column_roles import column_of, resolve_roles
from duckdb_anon.engine.catalog.sensitive_coarsening import DEFAULT, is_measured
from duckdb_anon.methods.partition_params import least_size
from duckdb_anon.model.errors import ParameterError, listed, nearest
from duckdb_anon.model.function_specs import ColumnInfo, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.parameters import REQUIRED, Parameter
from duckdb_anon.treatments import parsed

NAME = "release_database"
_OF_KEYS = ("pseudonym", "redact")
_EVENTS = 12
JOINED = "rare values joined"  # what is done to a sensitive number or date
OPTIONS = (
    Parameter("individuals", "table with one row per individual", "text", REQUIRED),
    Parameter("key", "column of that table that identifies the individual", "text", REQUIRED),
    Parameter("k", "minimum number of individuals with the same known record", "integer", low=2),
    Parameter("delta", "in place of k: maximum probability of re-identifying an individual, by mutual cover, to 0.5",
              "fraction", high=0.5, above=0),
    Parameter("method", "'muco' permutes values, with delta (default); 'mondrian' generalizes them, with k", "text",
              choices=("muco", "mondrian")),
    Parameter("l", "no sensitive value is that of more than a share 1/l of a class's individuals", "number", low=1),
    Parameter("l_counts", "what l counts: each value of an individual, or the list of all of them", "text", "values",
              ("values", "lists")),
    Parameter("linked", "whether the released tables join", "boolean", True),
    Parameter("events", "mondrian: most known events per individual and table that are released (default: 12)",
              "integer", low=1, high=50),
    Parameter("sensitive_edges", "minimum number of individuals per released sensitive number or date: rare ones are "
              "published as the mean of neighbours; 1 leaves all unchanged", "integer", DEFAULT, low=1),
    Parameter("keys", "foreign keys, {'visits.patient_id': 'patients.patient_id'}", "mapping", {}),
    Parameter("force", "columns that leave although a check refuses them, ['visits.discharge']", "names", []),
    Parameter("key_file", "file with the key of pseudonyms and shifts (default: drawn and thrown away)", "text"),
)  # fmt: skip


@dataclass(frozen=True)
class Link:
    """How rows of a table belong to individuals: `column` holds values of `to` in the table `parent`."""

    column: str
    parent: str
    to: str


@dataclass(frozen=True)
class Table:
    """A table of the plan."""

    name: str  # in the plan and in the release
    relation: Relation  # the original
    roles: Roles  # its columns by role
    link: Link | None  # to its parent; None for the table of individuals
    treatments: Mapping[str, str]  # treatment of each treated column
    keys: Mapping[str, str]  # key columns that are released as pseudonyms, with what their values identify

    @property
    def known(self) -> tuple[ColumnInfo, ...]:
        """Columns that an attacker may know; dates and numbers first, so that events are in the order of time."""
        return tuple(sorted(self.roles.qi, key=lambda info: info.kind != "ordered"))

    def unchanged(self) -> list[str]:
        """Columns that are released as they are."""
        labelled = [info.name for info in (*self.roles.sensitive, *self.roles.keep)]
        return [name for name in labelled if name not in self.treatments and name not in self.keys]

    def joined(self) -> tuple[ColumnInfo, ...]:
        """Sensitive numbers and dates that are released as they are, or joined where they are rare."""
        unchanged = self.unchanged()
        return tuple(info for info in self.roles.sensitive if info.name in unchanged and is_measured(info))

    def dropped(self) -> list[str]:
        """Columns that are not released: without label and treatment, or identifiers without a treatment."""
        quasi = {info.name for info in self.roles.qi}
        released = {*quasi, *self.unchanged(), *self.treatments, *self.keys}
        return [name for name in self.relation.columns if name not in released]


@dataclass(frozen=True)
class Plan:
    """A checked plan."""

    tables: Sequence[Table]  # parents before their children; the first is that of the individuals
    key: str  # identifies the individual in the first table
    k: int | None  # the promise, with l where one is asked for: k individuals have one known record, or
    delta: Fraction | None  # groups of individuals are permuted
    l: float | None  # noqa: E741 -- the field's name
    events: int  # most known events of an individual and table, with k
    linked: bool = True  # whether the released tables join
    l_counts: str = "values"  # whether l bounds the share of each value, or of the list of an individual's values
    force: Sequence[str] = ()  # columns, 'table.column', that leave although a check refuses them
    sensitive_edges: int = DEFAULT  # least number of individuals of a released sensitive number or date
    key_file: str | None = None  # file with the key of pseudonyms; None to draw one

    @property
    def least(self) -> int:
        """The least number of individuals that share a known record, or a group."""
        return self.k or ceil(1 / (self.delta or 1))

    @property
    def size(self) -> int:
        """The least number of individuals of a class or group that is cut."""
        return self.k or least_size({"delta": self.delta})

    @property
    def promise(self) -> dict[str, Any]:
        """K or delta, as a call names it."""
        return {"k": self.k} if self.delta is None else {"delta": self.delta}

    @property
    def individuals(self) -> Table:
        """The table with one row per individual."""
        return self.tables[0]

    @staticmethod
    def of(
        con: duckdb.DuckDBPyConnection,
        tables: Sequence[str],
        options: Mapping[str, Any],
        treatments: Mapping[str, Mapping[str, str]],
    ) -> Plan:
        """Check a plan against the tables and their labels."""
        parameters = {p.name: p for p in OPTIONS}
        for name in options:
            if name not in parameters:
                raise ParameterError(
                    f"{NAME}: unknown option '{name}'{nearest(name, parameters)}. Options are {listed(parameters)}"
                )
        if not tables:
            raise ParameterError(f"{NAME}: no table is named. Name all tables that are to be released together")
        checked = {name: p.check(NAME, options.get(name)) for name, p in parameters.items()}
        _check_promise(checked)
        for name in (checked["individuals"], *treatments):
            if name not in tables:
                raise ParameterError(
                    f"{NAME}: '{name}' is no table of the plan{nearest(name, tables)}; it has {listed(tables)}"
                )
        cursor = con.cursor()
        try:
            database, schema = con.execute("select current_database(), current_schema()").fetchall()[0]
            catalog = Catalog(cursor, database, schema, tuple(parameters))
            relations = {name: catalog.relation(NAME, "table", name) for name in tables}
        finally:
            cursor.close()
        for relation in relations.values():
            require_visible(NAME, relation)
        links = _links(relations, checked["keys"])
        key = column_of(NAME, relations[checked["individuals"]], checked["key"])
        order = _ordered(checked["individuals"], key, links, tables)
        domains = _domains(checked["individuals"], key, links)
        found: list[Table] = []
        for name in order:
            treated = dict(treatments.get(name, {}))
            if (link := links.get(name)) is not None:
                above = next(table for table in found if table.name == link.parent)
                if link.to in above.treatments:
                    treated.setdefault(link.column, above.treatments[link.to])
            found.append(_table(relations[name], name, link, treated, domains))
        _require_known_parents(found)
        if checked["l"] is not None and not any(table.roles.sensitive for table in found):
            raise ParameterError(f"{NAME}: l needs a column labelled sensitive. Label one, or leave l out")
        names = ("k", "delta", "l", "linked", "l_counts", "sensitive_edges", "key_file")
        given = {name: checked[name] for name in names}
        given["events"] = checked["events"] or _EVENTS
        given["force"] = [".".join(_column(relations, text, "force names")) for text in checked["force"] or ()]
        return Plan(found, key, **given)


def _check_promise(checked: Mapping[str, Any]) -> None:
    """One of k and delta is the promise, and the method goes with it."""
    k, delta, method = (checked[name] for name in ("k", "delta", "method"))
    if (k is None) == (delta is None):
        wrong = "no promise is named" if k is None else "k and delta do not go together"
        raise ParameterError(
            f"{NAME}: {wrong}. Say delta := 0.1, the largest probability of re-identification by mutual cover, or "
            "k := 5, for generalized records"
        )
    if method not in (None, "muco" if k is None else "mondrian"):
        goes_with = "delta" if method == "muco" else "k"
        raise ParameterError(f"{NAME}: method := '{method}' goes with {goes_with}. Name that")
    if delta is not None and checked["events"] is not None:
        raise ParameterError(f"{NAME}: events goes with k. With delta, the members of a group keep equally many rows")


def _links(relations: Mapping[str, Relation], keys: Mapping[str, Any]) -> dict[str, Link]:
    """Link of each table, from 'table.column' to 'parent.column'."""
    found: dict[str, Link] = {}
    for child, parent in keys.items():
        (table, column), (above, to) = _column(relations, child), _column(relations, str(parent))
        if table in found:
            raise ParameterError(
                f"{NAME}: keys name two columns of {table}. One of them says whose its rows are; give the other the "
                "treatment pseudonym with its domain"
            )
        found[table] = Link(column, above, to)
    return found


def _column(relations: Mapping[str, Relation], text: str, what: str = "keys name") -> tuple[str, str]:
    table, _, column = text.rpartition(".")
    if table not in relations:
        raise ParameterError(
            f"{NAME}: {what} '{text}'. Write TABLE.COLUMN, with a table of the plan: {listed(relations)}"
        )
    return table, column_of(NAME, relations[table], column)


def _ordered(individuals: str, key: str, links: Mapping[str, Link], tables: Sequence[str]) -> list[str]:
    """Tables with parents first; each must lead to the individuals."""
    order = [individuals]
    if individuals in links:
        raise ParameterError(f"{NAME}: keys give {individuals} a parent, but it is the table of individuals")
    while left := [name for name in tables if name not in order]:
        ready = [name for name in left if name in links and links[name].parent in order]
        if not ready:
            raise ParameterError(
                f"{NAME}: {listed(left)} cannot be traced to {individuals}. Name in keys the column of each that holds "
                f"the key of its parent, such as {{'{left[0]}.{key}': '{individuals}.{key}'}}, or leave the table out"
            )
        order += ready
    for name, link in links.items():
        if link.parent == individuals and fold(link.to) != fold(key):
            raise ParameterError(f"{NAME}: keys link {name} to {individuals}.{link.to}, but key := '{key}'")
    return order


def _domains(individuals: str, key: str, links: Mapping[str, Link]) -> dict[tuple[str, str], str]:
    """What the values of each key column identify: the column that they refer to."""
    domains = {(individuals, key): f"{individuals}.{key}"}
    for name, link in links.items():
        domains[link.parent, link.to] = domains[name, link.column] = f"{link.parent}.{link.to}"
    return domains


def _table(
    relation: Relation,
    name: str,
    link: Link | None,
    treatments: Mapping[str, str],
    domains: Mapping[tuple[str, str], str],
) -> Table:
    given = {column_of(NAME, relation, column): text for column, text in treatments.items()}
    for column, text in given.items():
        parsed(NAME, f"{name}.{column}", text)
    roles = resolve_roles(NAME, relation, {}, needs=())
    keys = {column: domain for (table, column), domain in domains.items() if table == name}
    for column in keys:
        if column in given and parsed(NAME, f"{name}.{column}", given[column])[0].name not in _OF_KEYS:
            raise ParameterError(f"{NAME}: {name}.{column} is a key. Treatments of keys are {listed(_OF_KEYS)}")
    quasi = {info.name for info in roles.qi}
    for column in (*given, *keys):
        if column in quasi:
            what = "treated" if column in given else "a key"
            raise ParameterError(
                f"{NAME}: {name}.{column} is labelled quasi and {what}. What is quasi is not treated. Keep one"
            )
    return Table(name, relation, roles, link, given, keys)


def _require_known_parents(tables: Sequence[Table]) -> None:
    """Refuse known events below rows that are not known: which of them share a parent would be published."""
    by_name = {table.name: table for table in tables}
    for table in tables[1:]:
        parent = by_name[table.link.parent] if table.link else None
        if table.known and parent is not None and parent is not tables[0] and not parent.known:
            raise ParameterError(
                f"{NAME}: {table.name} has columns that an attacker knows, and its parent {parent.name} has none. "
                f"Label a column of {parent.name} quasi, or link {table.name} to {tables[0].name}"
            )
