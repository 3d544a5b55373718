"""impute: tables that may have been the original, drawn from a release alone.

Rows have the original's columns, as far as the release shows them, and types. Exact values are the release's own; each
generalized, bucketed, sliced or randomized one is drawn by a model of the columns that is learnt from the release
(`duckdb_anon.kernels.plausible`: Chow and Liu 1968; Tanner and Wong 1987). Nothing of the original is read but the
names and types of its columns, so draws may be shown to whoever has the release; a row of a draw is the record of no
individual. A query that runs on several draws is answered by the mean of its answers. The spread between draws is no
interval. Tables of a released database are drawn `together`: their pseudonyms join, and an individual has the same
values in all of them.
Cost: one pass over the release for each round and draw.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from duckdb_anon.engine.catalog.catalog import Relation, require_visible
from duckdb_anon.engine.catalog.collation import collated
from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS, pseudonyms, stand_in, with_labels_of
from duckdb_anon.engine.draws.imputation import FUNCTION, KEPT, NUMBERS, PLACES, REALS, ROW, ImputeCall, text_of
from duckdb_anon.engine.input_sql import as_texts
from duckdb_anon.engine.planner import SEED
from duckdb_anon.engine.sql_quoting import CALLER, STATEMENT, ident, literal
from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, ColumnInfo, Parameter, Params, Query, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import QUERY, read_description
from duckdb_anon.model.release_formats import Content, Contents
from duckdb_anon.model.release_formats.duckdb_types import (
    comparable,
    is_boolean,
    is_integer,
    is_nested,
    is_number,
    is_text,
    list_type,
)

_MOST = 1000
_NUMBERED = re.compile(r"U?(INTEGER|BIGINT|HUGEINT)|VARCHAR|DOUBLE")
"""Types of person columns that plausible persons have numbers in."""
_NUMBER_OF_PERSON = ""
_INTEGER = re.compile("(TINY|SMALL|BIG)INT|U?INTEGER|U(TINY|SMALL)INT")
_FAR = re.compile("U?HUGEINT|UBIGINT")
"""Types whose values Arrow or 64 bits do not hold."""


@Query(
    summary="plausible tables with the original's columns and types, drawn from a release alone",
    paper="tree of columns: Chow and Liu (1968); data augmentation: Tanner and Wong (1987)",
    example="FROM impute('boxes', original := 'people', seed := 1)",
    section="Queries",
    smallest="original := '{original}'",
    parameters=(
        Parameter("release", "the release", "any", REQUIRED),
        Parameter(
            "draws", "number of tables; several come as one, numbered in a column draw", "integer", 1, low=1, high=_MOST
        ),
        Parameter("original", "name of the original or its shape (default: as the release says)", "text"),
        SEED,
        Parameter("columns", "columns of the original to return (default: all)", "names"),
        Parameter(
            "together",
            "original and release of each table of a released database, {'patients': 'release.patients', ...}: the "
            "tables are drawn together, and this call returns the one of `release`",
            "mapping",
        ),
        *ROLE_PARAMETERS,
    ),
    answers=("rows", "boxes", "buckets", "sliced", "persons", "randomized", "sampled", "suppressed", "retained"),
    tables=("release",),
)
def impute(context: Any, params: Params) -> str:
    """Rows of the plausible tables."""
    release = context.relation("release")
    require_visible("impute", release)
    if params["columns"] == []:
        raise ParameterError("impute: columns := [] names no column. Name one or more, or leave it out for all")
    tables = _tables(context, params, release)
    one = next(table for table in tables if table.release.sql == release.sql)
    call, columns = one.call, one.columns
    joined = any(_is_released_value(content) for name, content in columns.items() if name not in call.copied)
    by_person = any(map(_is_list, columns.values()))
    wanted = _wanted(params["columns"], columns, release)
    handed = [name for name, content in wanted.items() if name in call.copied or not _is_released_value(content)]
    if by_person or len(handed) < len(wanted):
        handed = [ROW, *handed]
    steps = _handed_over(context, tables, one, handed, joined)
    return _select(call, wanted, handed, steps, by_person)


@dataclass(frozen=True)
class _Table:
    """A release of which tables are drawn."""

    release: Relation
    call: ImputeCall
    contents: Contents
    columns: dict[str, Content]  # the original's columns that the release carries


def _tables(context: Any, params: Params, release: Relation) -> list[_Table]:
    """The releases that are drawn together, always in the same order."""
    together = params["together"]
    if not together:
        original = _original(context, params, release)
        if original is not None and pseudonyms(release):
            original = stand_in(context, original.given, release)
        return [_table(context, params, release, original)]
    context = replace(context, arguments={})  # roles are those of each release's labels
    found = []
    for original, name in sorted(together.items()):
        other = context.relation("release", name)
        require_visible("impute", other)
        found.append(_table(context, params, other, stand_in(context, original, other)))
    if all(table.release.sql != release.sql for table in found):
        raise ParameterError(
            f"impute: together has no table with the release {release.given}. Name all tables of the database that are "
            "drawn together, this one among them"
        )
    return found


def _table(context: Any, params: Params, release: Relation, original: Relation | None) -> _Table:
    labelled = with_labels_of(original, [release]) if original is not None else release
    flat = context.flat(labelled)
    roles = context.roles(flat, nested=True)
    call = _call(context, params, release, original, roles)
    contents = call.contents()
    if any(weight.meaning == "rows" for weight in contents.weights):
        raise ColumnError(
            f"impute: {release.given} holds noisy counts, of which no rows can be drawn. Query it with estimate"
        )
    columns = _columns(release, original or flat, contents, roles.person.name if roles.person else "")
    return _Table(release, replace(call, **_stored(context, release, columns)), contents, columns)


def _stored(context: Any, release: Relation, columns: Mapping[str, Content]) -> dict[str, Any]:
    """What a call says of the columns that are stored with its draws."""
    drawn = [name for name, content in columns.items() if not _is_released_value(content)]
    integers = {name: _type(columns[name]) for name in drawn if _has_integers(columns[name])}
    copied = {name: content.carrier for name, content in columns.items() if _is_copied(content)}
    if any(map(_is_list, columns.values())) or collated(context.catalog, release, copied.values()):
        copied = {}
    kinds = {name: _type(columns[name]) for name in copied}
    integers |= {name: kind for name, kind in kinds.items() if _INTEGER.fullmatch(kind) or is_boolean(kind)}
    return {"drawn": drawn, "copied": copied, "integers": integers}


def _wanted(names: Sequence[str] | None, columns: dict[str, Content], release: Relation) -> dict[str, Content]:
    """The columns that a call asks for."""
    if names is None:
        return columns
    spelled = {fold(name): name for name in columns}
    missing = [name for name in names if fold(name) not in spelled]
    if missing:
        raise ColumnError(
            f"impute: {release.given} shows no column '{missing[0]}' of its original{nearest(missing[0], columns)}. "
            f"There are {listed(columns)}"
        )
    return {spelled[fold(name)]: columns[spelled[fold(name)]] for name in names}


def _original(context: Any, params: Params, release: Relation) -> Relation | None:
    """The original or its shape, if it is here."""
    description = read_description(release.comment)
    name = params["original"] or (description.original if description is not None else "")
    if not name or name == QUERY:
        return None
    original: Relation = context.relation("original", name)
    if params["original"]:
        require_visible("impute", original)
    return original if original.visible else None


def _call(context: Any, params: Params, release: Relation, original: Relation | None, roles: Roles) -> ImputeCall:
    infos = roles.attributes
    return ImputeCall(
        table=release.given,
        types=release.columns,
        original=None if original is None else original.columns,
        labelled=[info.name for info in infos],
        sensitive=[info.name for info in roles.sensitive],
        kinds={info.name: info.kind for info in infos},
        trees=roles.trees(),
        drawn=[],
        copied={},
        integers={},
        keys=pseudonyms(release),
        draws=params["draws"],
        seed=params["seed"],
        threads=context.catalog.settings()["threads"],
    )


def _is_released_value(content: Content) -> bool:
    """Whether draws have the release's own values."""
    return content.truth == "exact" and content.cell in ("value", "items") and not content.field


def _is_copied(content: Content) -> bool:
    """Whether a value of the release can be stored with draws and comes back as it is."""
    kind = content.type
    known = is_number(kind) or is_boolean(kind) or is_text(kind) or kind in ("DATE", "TIMESTAMP", "UUID")
    named = content.carrier != _NUMBER_OF_PERSON
    return named and _is_released_value(content) and content.cell == "value" and known and not _FAR.fullmatch(kind)


def _has_integers(content: Content) -> bool:
    """Whether drawn values are whole numbers of at most 64 bits, in the release as in the original."""
    return bool(_INTEGER.fullmatch(_type(content)) and is_integer(content.value_type))


def _type(content: Content) -> str:
    """The type of values before they are cast to the original's."""
    if _is_released_value(content):
        return content.type
    kind = content.original_type or content.value_type or "VARCHAR"
    return (list_type(kind) or kind) if _is_list(content) else kind


def _is_list(content: Content) -> bool:
    """Whether the original has a list of values for each person."""
    return content.cell == "nodes" and list_type(content.original_type) is not None


def _is_read(content: Content) -> bool:
    """Whether the model reads a column: not the nested values of an exact one, which draws have as they are."""
    if content.field or content.cell not in ("value", "items"):
        return True
    return content.cell == "value" and not is_nested(content.type)


def _columns(release: Relation, original: Relation, contents: Contents, person: str) -> dict[str, Content]:
    """The original's columns that the release carries, in the original's order.

    Where rows of the release are persons without their column, plausible persons have numbers in it, so that they can
    be counted and their records grouped.
    """
    found = {}
    of_persons = any(content.cell == "nodes" for content in contents.columns.values())
    for name, kind in original.columns.items():
        if fold(name) in contents.columns:
            found[name] = contents.columns[fold(name)]
        elif name == person and of_persons and _NUMBERED.fullmatch(kind):
            found[name] = Content(fold(name), _NUMBER_OF_PERSON, "", kind, "value", original_type=kind)
    if not found:
        raise ColumnError(f"impute: {release.given} shows no column of {original.given}. Name the original it is of")
    for name, content in found.items():
        was = content.original_type or content.type
        if _is_released_value(content) and not comparable(content.type, was):
            raise ColumnError(
                f"impute: column '{name}' of {release.given} has type {content.type}, and the original's has {was}. "
                "Give the release as it was made, or the original it is of"
            )
    return found


def _select(
    call: ImputeCall, columns: dict[str, Content], handed: Sequence[str], steps: list[str], by_person: bool
) -> str:
    """SQL that puts the rows of the answer together.

    Args:
        call: the planned call.
        columns: the columns that are asked for.
        handed: those of them that are handed over, the number of the released row first where others need it.
        steps: CTEs up to the answer.
        by_person: whether the rows of a person become one again.
    """
    values, lists = ["r.rows as _anon_rows"], ["*"]
    unnested, found = ["_anon_draw"], {}
    for k, name in enumerate(handed):
        once = name == ROW or name in call.copied
        source, draw, step = ("r.rows", "1::bigint", values) if once else ("_anon_rows", "_anon_draw", lists)
        kind = "BIGINT" if name == ROW else _type(columns[name])
        function = PLACES
        if name == ROW or name in call.integers:
            function = NUMBERS
        elif name in call.copied and kind in ("FLOAT", "DOUBLE"):
            function = REALS
        step.append(f"{function}({{rows: {source}, name: {literal(name)}, draw: {draw}}}) as _anon_l{k}")
        unnested.append(f"unnest(_anon_l{k}) as _anon_p{k}")
        found[name] = f"_anon_p{k}::{kind}"
        if function == PLACES:
            values.append(f"r.texts[{literal(name)}]::{kind}[] as _anon_v{k}")
            unnested.append(f"_anon_v{k}")
            found[name] = f"_anon_v{k}[_anon_p{k}]"
    steps += [
        f"_anon_values as (select {', '.join(values)} from _anon_answer)",
        f"_anon_draws as (select *, unnest(range(1, {call.draws} + 1)) as _anon_draw from _anon_values)",
        f"_anon_lists as (select {', '.join(lists)} from _anon_draws)",
        f"_anon_drawn as (select {', '.join(unnested)} from _anon_lists)",
    ]
    value = "first({x}) as {name}" if by_person else "{x} as {name}"
    selected = []
    for name, content in columns.items():
        drawn = "list({x}) as {name}" if _is_list(content) else value
        stored = found.get(name) or f"_anon_release.{ident(content.carrier)}"
        if content.carrier == _NUMBER_OF_PERSON:
            stored = f"({found[ROW]} + 1)::{content.type}"
        elif _is_released_value(content) and content.original_type not in ("", content.type):
            stored += f"::{content.original_type}"
        selected.append(drawn.format(x=stored, name=ident(name)))
    if call.draws > 1:
        selected.append(f"_anon_draw as {ident(free_name('draw', columns))}")
    sql = f"with {', '.join(steps)}\nselect {', '.join(selected)}\nfrom _anon_drawn"
    if any(name not in found for name in columns):
        sql += f" join _anon_release on _anon_release._anon_rn = {found[ROW]}"
    return f"{sql}\ngroup by _anon_draw, {found[ROW]}" if by_person else sql


def _handed_over(context: Any, tables: Sequence[_Table], one: _Table, wanted: Sequence[str], joined: bool) -> list[str]:
    """CTEs up to the answer of the kernel; with a seed its draws are kept, and the rows handed over once.

    Rows of the release that the answer is of are told apart by their number only where values are `joined` from them.
    """
    trees = dict.fromkeys(tree for table in tables for tree in table.call.trees.values())
    listed_trees = {f"h{k}": context.tree_sql(ColumnInfo(name, hierarchy=name)) for k, name in enumerate(trees)}
    sources, keys, rows = [], [], ""
    for number, table in enumerate(tables):
        source = "_anon_release" if table is one else f"_anon_table{number}"
        release = table.release
        is_kept = joined if table is one else False
        sources.append(
            f"{source} as {'' if is_kept or not release.is_table else 'not '}materialized "
            f"(select *, row_number() over () - 1 as _anon_rn from {release.sql})"
        )
        carriers = [content.carrier for content in table.contents.columns.values() if _is_read(content)]
        read = dict.fromkeys([*carriers, *table.contents.carriers])
        fields = "".join(f", {ident(name)}: {ident(name)}{as_texts(release.columns[name])}" for name in read)
        hashed = ", ".join([*(["_anon_rn"] if is_kept else []), *map(ident, read)])
        keys.append(f"(select concat_ws(',', count(*), sum(hash({hashed})), bit_xor(hash({hashed}))) from {source})")
        rows += f", t{number}: (select list({{_anon_rn: _anon_rn{fields}}}) from {source}, _anon_kept where not kept)"
    messages = f"call: {literal(text_of([table.call for table in tables]))}, place: {tables.index(one)}, {CALLER}"
    hashes = "".join(f", hash({listed_rows})" for listed_rows in listed_trees.values())
    answer = (
        f"{FUNCTION}({{{messages}, {STATEMENT}, wanted: {literal(wanted)}::varchar[], "
        f"key: (select key from _anon_kept), kept: (select kept from _anon_kept){rows}"
        f"{''.join(f', {name}: {text}' for name, text in listed_trees.items())}}})"
    )
    return [
        *sources,
        f"_anon_key as materialized (select concat_ws(',', {', '.join(keys)}{hashes}) as key)"
        if one.call.seed is not None
        else "_anon_key as (select null::varchar as key)",
        f"_anon_kept as materialized (select key, {KEPT}({{{messages}, key: key}}) as kept from _anon_key)",
        f"_anon_ended as materialized (select {answer} as r)",
        "_anon_answer as materialized (select case when r.error is null then r else error(r.error) end as r "
        "from _anon_ended)",
    ]


def free_name(name: str, taken: Iterable[str]) -> str:
    """A name that no column has."""
    folded = {fold(column) for column in taken}
    while name in folded:
        name += "_"
    return name
