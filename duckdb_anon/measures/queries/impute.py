"""impute: tables that may have been the original, drawn from a release alone.

Rows have the original's columns, as far as the release shows them, and types. Exact values are the release's own; each
generalized, bucketed, sliced or randomized one is drawn by a model of the columns that is learnt from the release
(`duckdb_anon.kernels.plausible`: Chow and Liu 1968; Tanner and Wong 1987). Nothing of the original is read but the
names and types of its columns, so draws may be shown to whoever has the release; a row of a draw is the record of no
individual. A query that runs on several draws is answered by the mean of its answers. The spread between draws is no
interval.
Cost: one pass over the release for each round and draw.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from duckdb_anon.engine.catalog import Relation, require_visible
from duckdb_anon.engine.column_roles import ROLE_PARAMETERS, with_labels_of
from duckdb_anon.engine.imputation import FUNCTION, KEPT, ImputeCall
from duckdb_anon.engine.input_sql import as_texts
from duckdb_anon.engine.planner import SEED
from duckdb_anon.engine.sql_quoting import CALLER, STATEMENT, ident, literal
from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, ColumnInfo, Parameter, Params, Query, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import QUERY, read_description
from duckdb_anon.model.release_formats import Content, Contents
from duckdb_anon.model.release_formats.duckdb_types import comparable, is_nested, list_type

_MOST = 1000
_NUMBERED = re.compile(r"U?(INTEGER|BIGINT|HUGEINT)|VARCHAR|DOUBLE")
"""Types of person columns that plausible persons have numbers in."""
_NUMBER_OF_PERSON = ""


def _plan(context: Any, params: Params) -> str:
    release = context.relation("release")
    require_visible("impute", release)
    original = _original(context, params, release)
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
    call = replace(call, drawn=[name for name, content in columns.items() if not _is_released_value(content)])
    if params["columns"] == []:
        raise ParameterError("impute: columns := [] names no column. Name one or more, or leave it out for all")
    return _select(context, release, call, _wanted(params["columns"], columns, release), contents)


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
        draws=params["draws"],
        seed=params["seed"],
        threads=context.catalog.settings()["threads"],
    )


def _is_released_value(content: Content) -> bool:
    """Whether draws have the release's own values."""
    return content.truth == "exact" and content.cell in ("value", "items") and not content.field


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


def _select(context: Any, release: Relation, call: ImputeCall, columns: dict[str, Content], contents: Contents) -> str:
    """SQL that hands the release over, and puts the answer's rows together."""
    wanted = [name for name, content in columns.items() if not _is_released_value(content)]
    lists = ["unnest(rows.numbers['row']) as _anon_row", "unnest(rows.numbers['draw']) as _anon_draw"]
    steps, selected, joins = _handed_over(context, release, call, contents, wanted), [], []
    by_person = any(_is_list(content) for content in contents.columns.values())
    value = "first({x}) as {name}" if by_person else "{x} as {name}"
    if len(wanted) < len(columns):
        joins.append("join _anon_release on _anon_release._anon_rn = _anon_row")
    for name, content in columns.items():
        if _is_released_value(content):
            cast = f"::{content.original_type}" if content.original_type not in ("", content.type) else ""
            stored = f"_anon_release.{ident(content.carrier)}{cast}"
            if content.carrier == _NUMBER_OF_PERSON:
                stored = f"(_anon_row + 1)::{content.type}"
            selected.append(value.format(x=stored, name=ident(name)))
            continue
        k, key = wanted.index(name), literal(name)
        kind = content.original_type or content.value_type or "VARCHAR"
        kind = (list_type(kind) or kind) if _is_list(content) else kind
        values = f"unnest(range(len(r.texts[{key}]))) as place, unnest(r.texts[{key}]::{kind}[]) as value"
        lists.append(f"unnest(rows.codes[{key}]) as _anon_p{k}")
        steps.append(f"_anon_values{k} as materialized (select {values} from _anon_answer)")
        joins.append(f"join _anon_values{k} on _anon_values{k}.place = _anon_p{k}")
        drawn = "list({x}) as {name}" if _is_list(content) else value
        selected.append(drawn.format(x=f"_anon_values{k}.value", name=ident(name)))
    steps.append("_anon_taken as (select _anon_take({rows: r.rows}) as rows from _anon_answer)")
    steps.append(f"_anon_drawn as (select {', '.join(lists)} from _anon_taken)")
    if call.draws > 1:
        selected.append(f"_anon_draw as {ident(free_name('draw', columns))}")
    grouped = "\ngroup by _anon_draw, _anon_row" if by_person else ""
    return "with " + ",\n".join(steps) + f"\nselect {', '.join(selected)}\nfrom _anon_drawn {' '.join(joins)}{grouped}"


def _handed_over(
    context: Any, release: Relation, call: ImputeCall, contents: Contents, wanted: Sequence[str]
) -> list[str]:
    """CTEs up to the answer of the kernel; with a seed its draws are kept, and the rows handed over once."""
    carriers = [content.carrier for content in contents.columns.values() if _is_read(content)]
    read = dict.fromkeys([*carriers, *contents.carriers])
    fields = "".join(f", {ident(name)}: {ident(name)}{as_texts(release.columns[name])}" for name in read)
    names = dict.fromkeys(call.trees.values())
    trees = {f"h{k}": context.tree_sql(ColumnInfo(name, hierarchy=name)) for k, name in enumerate(names)}
    hashes = "".join(f", hash({rows})" for rows in trees.values())
    rows = ", ".join(["_anon_rn", *map(ident, read)])
    key = f"concat_ws(',', count(*), sum(hash({rows})), bit_xor(hash({rows})){hashes})"
    messages = f"call: {literal(call.text())}, {CALLER}"
    answer = (
        f"{FUNCTION}({{{messages}, {STATEMENT}, wanted: {literal(wanted)}::varchar[], "
        "key: (select key from _anon_kept), kept: (select kept from _anon_kept), "
        f"rows: (select list({{_anon_rn: _anon_rn{fields}}}) from _anon_release, _anon_kept where not kept)"
        f"{''.join(f', {name}: {listed}' for name, listed in trees.items())}}})"
    )
    return [
        f"_anon_release as materialized (select *, row_number() over () - 1 as _anon_rn from {release.sql})",
        f"_anon_key as materialized (select {key} as key from _anon_release)"
        if call.seed is not None
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


MEASURE = Query(
    name="impute",
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
        *ROLE_PARAMETERS,
    ),
    plan=_plan,
    answers=("rows", "boxes", "buckets", "sliced", "persons", "randomized", "sampled", "suppressed", "retained"),
    tables=("release",),
)
