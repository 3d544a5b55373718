"""Column roles, from comments `anon: ROLE` and from arguments (which override).

This is the one reader of role comments. Measures that hold a release against its original resolve roles on the
original. Comments of the release override that, column by column; where its comment names its method they are complete,
so the roles of columns that it does not have do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.model.errors import ColumnError, listed, nearest
from duckdb_anon.model.function_specs import ColumnInfo, Parameter, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import unquoted
from duckdb_anon.model.release_comment import Label, read_description
from duckdb_anon.model.release_formats.duckdb_types import is_nested, kind_of_type

ROLES = ("identifier", "quasi", "sensitive", "insensitive", "person", "household")
_NO_ROLES = {"release", "attributes", "kinds", "pseudonym"}
"""What else comments of the package say of a column."""
NAMING = ("identifier", "person", "household")
"""Roles of columns that name individuals."""
_COMMENT = re.compile(
    r"\banon:\s*(\w+)((?:[\s,;]+(?:categorical\b|hierarchy=(?:(?:\"[^\"]*\")+|[^\s;,]+)))*)", re.IGNORECASE
)
HIERARCHY = re.compile(r"hierarchy=(\"(?:[^\"]|\"\")+\"|[^\s;,]+)", re.IGNORECASE)

ROLE_PARAMETERS = (
    Parameter("qi", "list of quasi-identifiers (default: columns commented 'anon: quasi')", "names"),
    Parameter("sensitive", "sensitive column(s) (default: commented 'anon: sensitive')", "names"),
    Parameter("keep", "columns released unchanged (default: commented 'anon: insensitive')", "names"),
    Parameter(
        "person", "column that identifies the individual of each record (default: commented 'anon: person')", "text"
    ),
    Parameter("categorical", "numeric columns to be treated as categories, without order", "names"),
    Parameter("hierarchies", "hierarchy table of each column, {'diagnosis': 'diagnosis_hierarchy'}", "mapping"),
)


def role_of(comment: str | None) -> str:
    """The word after 'anon:' in a comment, in lower case: a role, or what else the package writes there; '' for none.

    >>> role_of("Anon:quasi categorical"), role_of("the age; ANON:  sensitive"), role_of("age")
    ('quasi', 'sensitive', '')
    """
    found = _COMMENT.search(comment or "")
    return found.group(1).lower() if found else ""


def label_of(comment: str | None) -> Label | None:
    """The label in a column's comment, without any other text of it; None where there is no role.

    >>> label_of("from /data/in.csv; anon: quasi categorical, hierarchy=edu").comment()
    'anon: quasi categorical hierarchy=edu'
    """
    found = _COMMENT.search(comment or "")
    if found is None or found.group(1).lower() not in ROLES:
        return None
    tree = HIERARCHY.search(found.group(2))
    named = None if tree is None else unquoted(tree.group(1))
    return Label(found.group(1).lower(), "categorical" in re.split(r"[\s,;]+", found.group(2).lower()), named)


@dataclass
class Labels:
    """Columns by role, columns whose numbers are names, hierarchy tables, and all columns that are given a role."""

    roles: dict[str, list[str]] = field(default_factory=lambda: {role: [] for role in ROLES})
    categorical: set[str] = field(default_factory=set)
    hierarchies: dict[str, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)


def resolve_roles(
    function: str,
    relation: Relation,
    arguments: Mapping[str, Any],
    *,
    needs: tuple[str, ...] = ("qi",),
    nested: bool = False,
) -> Roles:
    """Merge comments and arguments into roles; `nested` allows released (STRUCT, list) columns."""
    require_free_names(function, relation, [n for names in _given(arguments).values() for n in names or ()])
    labels = _from_comments(function, relation)
    _override(function, relation, arguments, labels)
    _check_clash(function, labels.roles)
    for argument, role in (("qi", "quasi"), ("sensitive", "sensitive"), ("person", "person")):
        if argument in needs and not labels.roles[role]:
            raise ColumnError(f"{function}: {_missing(relation, argument, role)}")

    def info(name: str, nested_allowed: bool = nested) -> ColumnInfo:
        return _info(function, relation, name, labels, nested_allowed)

    for role, remedy in (("person", "Name it in person := '...'"), ("household", "Change the comments of the others")):
        if len(labels.roles[role]) > 1:
            raise ColumnError(
                f"{function}: {listed(labels.roles[role])} are all the {role} column. One column can be. {remedy}"
            )
    household = labels.roles["household"]
    # the members of a household are protected together, unless a function is about the values of one individual
    units = not arguments.get("person") and "person" not in needs and household
    person = units or labels.roles["person"]
    return Roles(
        qi=tuple(info(n) for n in labels.roles["quasi"]),
        sensitive=tuple(info(n) for n in labels.roles["sensitive"]),
        keep=tuple(info(n, True) for n in labels.roles["insensitive"]),
        person=info(person[0]) if person else None,
        household=info(household[0]) if household else None,
        identifier=tuple(labels.roles["identifier"]),
    )


def labels_of(function: str, relation: Relation, arguments: Mapping[str, Any]) -> Labels:
    """Columns, and fields of slices, that comments or arguments give a role; none is checked to exist."""
    labels = _from_comments(function, relation)
    given = {role: names for role, names in _given(arguments).items() if names is not None}
    labels.roles |= given
    labels.named.update(name for names in given.values() for name in names)
    labels.hierarchies |= arguments.get("hierarchies") or {}
    return labels


def require_no_identifier(function: str, relation: Relation, roles: Roles, beneath: Mapping[str, str]) -> None:
    """Refuse to release a column that its comment, or that of a column beneath it, calls identifier or person."""
    labels = {fold(name): role for role, names in _from_comments(function, relation).roles.items() for name in names}
    labelled = {name: f"{role} in {relation.given}" for name, role in labels.items() if role in NAMING}
    labelled |= {name: label for name, label in beneath.items() if name not in labels}
    named = {"qi": roles.qi, "sensitive": roles.sensitive, "keep": roles.keep}
    for argument, infos in named.items():
        wrong = [info.name for info in infos if fold(info.name) in labelled]
        if wrong:
            raise ColumnError(
                f"{function}: {argument} names {listed(wrong)}, labelled {labelled[fold(wrong[0])]}: "
                "identifiers are never released. Leave it out, change its comment, or say force := true if it is none"
            )


def column_of(function: str, relation: Relation, name: str) -> str:
    """Return the column's own spelling, or raise a ColumnError with the nearest name."""
    if not relation.visible or name in relation.columns:
        return name
    spellings = [column for column in relation.columns if fold(column) == fold(name)]
    if spellings:
        return spellings[-1]
    raise ColumnError(
        f"{function}: there is no column '{name}' in {relation.given}{nearest(name, relation.columns)}. "
        f"Its columns are {listed(relation.columns)}"
    )


def _from_comments(function: str, relation: Relation) -> Labels:
    labels = Labels()
    for column in relation.columns:
        comment = relation.comments.get(column, "")
        roles = {found.group(1).lower() for found in _COMMENT.finditer(comment)}
        if len(roles) > 1:
            raise ColumnError(f"{function}: the comment on {relation.given}.{column} names several roles. Keep one")
        label = label_of(comment)
        if label is None and roles - _NO_ROLES:
            raise ColumnError(
                f"{function}: the comment on {relation.given}.{column} says 'anon: {min(roles)}'. Roles are "
                f"{listed(ROLES)}{nearest(min(roles), ROLES)}"
            )
        if label is None:
            continue
        labels.roles[label.role].append(column)
        labels.named.add(column)
        if label.categorical:
            labels.categorical.add(column)
        if label.hierarchy is not None:
            labels.hierarchies[column] = label.hierarchy
    return labels


def require_free_names(function: str, relation: Relation, named: Iterable[str] = ()) -> None:
    """Raise where a column has a name the planned SQL needs for its own."""
    taken = {name: None for name in (*relation.columns, *named) if fold(name).startswith("_anon_")}
    if taken:
        raise ColumnError(f"{function}: names that begin with _anon_ are reserved. Rename column {listed(taken)}")


def _given(arguments: Mapping[str, Any]) -> dict[str, list[str] | None]:
    """Columns of each role that the call names."""
    return {
        "quasi": arguments.get("qi"),
        "sensitive": arguments.get("sensitive"),
        "insensitive": arguments.get("keep"),
        "person": [arguments["person"]] if arguments.get("person") else None,
    }


def _override(function: str, relation: Relation, arguments: Mapping[str, Any], labels: Labels) -> None:
    given = _given(arguments)
    named: dict[str, str] = {}
    for role, names in given.items():
        if names is None:
            continue
        columns = [column_of(function, relation, n) for n in names]
        repeated = {c for c in columns if columns.count(c) > 1}
        if repeated:
            raise ColumnError(f"{function}: {listed(sorted(repeated))} is named twice as {role}")
        for column in columns:
            if column in named:
                raise ColumnError(f"{function}: column '{column}' is named both {named[column]} and {role}. Keep one")
            named[column] = role
        labels.roles[role] = columns
    for role in ROLES:
        if given.get(role) is None:
            labels.roles[role] = [c for c in labels.roles[role] if c not in named]
    for name in arguments.get("categorical") or ():
        labels.categorical.add(column_of(function, relation, name))
    for name, tree in (arguments.get("hierarchies") or {}).items():
        labels.hierarchies[column_of(function, relation, name)] = str(tree)


def _check_clash(function: str, roles: Mapping[str, list[str]]) -> None:
    seen: dict[str, str] = {}
    for role, columns in roles.items():
        for column in columns:
            if column in seen:
                raise ColumnError(f"{function}: column '{column}' is both {seen[column]} and {role}. Keep one")
            seen[column] = role


def _info(function: str, relation: Relation, name: str, labels: Labels, nested_allowed: bool) -> ColumnInfo:
    duckdb_type = relation.columns.get(name, "")
    if is_nested(duckdb_type) and nested_allowed:
        tree = labels.hierarchies.get(name)
        return ColumnInfo(name, duckdb_type, "hierarchy" if tree else "", tree)
    if is_nested(duckdb_type):
        raise ColumnError(
            f"{function}: column '{name}' is {duckdb_type}. Quasi-identifiers and sensitive columns are numbers, "
            "dates, texts, booleans or enums"
        )
    if name in labels.hierarchies:
        return ColumnInfo(name, duckdb_type, "hierarchy", labels.hierarchies[name])
    if name in labels.categorical:
        return ColumnInfo(name, duckdb_type, "nominal")
    return ColumnInfo(name, duckdb_type, kind_of_type(duckdb_type))


def _missing(relation: Relation, argument: str, role: str) -> str:
    if not relation.visible:
        return relation.hint
    names = "'...'" if argument == "person" else "[...]"
    return (
        f"no {role} column in {relation.given}. Say {argument} := {names} or COMMENT ON COLUMN ... IS 'anon: {role}'. "
        f"Its columns are {listed(relation.columns)}"
    )


def with_labels_of(original: Relation, releases: Sequence[Relation]) -> Relation:
    """`original` with the comments by which `releases` give the roles of its columns; the first of two counts."""
    comments = dict(original.comments)
    spelled = {fold(column): column for column in original.columns}
    for release in reversed(releases):
        labels = {spelled.get(fold(n), n): text for n, text in release.comments.items() if role_of(text) in ROLES}
        if labels and is_described(release):
            released = ("quasi", "sensitive", "insensitive")
            comments = {n: text for n, text in comments.items() if n in labels or role_of(text) not in released}
        comments |= labels
    return replace(original, comments=comments)


def is_described(release: Relation) -> bool:
    """Whether a release's comment names the method that made it."""
    description = read_description(release.comment)
    return description is not None and bool(description.method)


PSEUDONYM = "pseudonym"
"""What the comment of such a column says in place of a role."""


def pseudonyms(release: Relation) -> list[str]:
    """Columns of a release that are pseudonyms."""
    return [name for name in release.columns if role_of(release.comments.get(name)) == PSEUDONYM]


def stand_in(context: Any, name: str, release: Relation) -> Relation:
    """The original of a release of a database, or its shape, with pseudonyms in place of its keys.

    Where it is not there, its columns are those of the release with the types of the values that cells stand for.
    """
    original: Relation = context.relation("original", name)
    if not original.visible or original.sql == release.sql or original.columns == release.columns:
        contents = context.contents(release)
        columns = {
            name: contents.columns[fold(name)].value_type or kind
            for name, kind in release.columns.items()
            if fold(name) in contents.columns
        }
        comments = {name: text for name, text in release.comments.items() if name in columns}
        return Relation(name, original.sql, columns, comments, original.hint)
    kinds = {fold(key): release.columns[key] for key in pseudonyms(release)}
    columns = {column: kinds.get(fold(column), kind) for column, kind in original.columns.items()}
    return replace(original, columns=columns)
