"""Intervals of answers by replay: how far answers of releases made again are from the tables that were released.

An answer of each release is compared with the truth it was made of; an interval is as wide as the root mean square of
these differences says, by the quantile of Student's distribution, so a bias that the replay shows widens it.
Source: parametric bootstrap, Efron (1979).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import box_type, is_integer
from duckdb_anon.rewrite.plausible import over_draws
from duckdb_anon.rewrite.query.parse import Output
from duckdb_anon.rewrite.query.tables import PlausibleTables, TableInfo, contents_of
from duckdb_anon.rewrite.query.trees import all_of, groups_of, leftmost, literal

_QUANTILE = 2.228
"""Of Student's distribution with ten degrees of freedom, .975."""
_LEAST = 5
"""Fewest truths with a group whose answers have intervals."""
MOST_GROUPS = 10_000
Keys = tuple[str | None, ...]


@dataclass(frozen=True)
class Measures:
    """Output columns of a query on releases that were made again.

    Attributes:
        columns: its columns, called _c0, _c1, ...
        hidden: names of further keys.
        wanted: number of each measure that is to have an interval.
    """

    columns: Sequence[Output]
    hidden: Sequence[str]
    wanted: Sequence[int]

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return [*(f"_c{number}" for number, _ in enumerate(self.columns)), *self.hidden]

    @property
    def keys(self) -> list[str]:
        """Names of the keys."""
        return [*(f"_c{number}" for number, column in enumerate(self.columns) if not column.measure), *self.hidden]


def half_widths(
    tree: exp.Query, measures: Measures, release: TableInfo, tables: Sequence[TableInfo]
) -> dict[Keys, list[float | None]]:
    """Half the width of the interval of each wanted measure, by the texts of the keys."""
    _require_counted_keys(tree, release, tables[0])
    replay = release.reader.replay()
    here = [tables[0], *(replace(table, sql=f"_anon_other{position}") for position, table in enumerate(tables[1:]))]

    def answer(drawn: PlausibleTables) -> str:
        types = [column.type for column in measures.columns]
        return over_draws(tree, release, here, types, drawn).sql("duckdb", comments=False)

    others = {copy.sql: table for copy, table in zip(here[1:], tables[1:], strict=True)}
    found: dict[Keys, list[list[float]]] = {}
    for rows in replay.rows(_differences(answer(replay.truth), answer(replay.answered), measures), others):
        keyed = [row[: len(measures.keys)] for row in rows]
        if len(set(keyed)) < len(keyed) or len(keyed) > MOST_GROUPS:
            return {}
        for key, row in zip(keyed, rows, strict=True):
            lists = found.setdefault(key, [[] for _ in measures.wanted])
            for values, value in zip(lists, row[len(measures.keys) :], strict=True):
                if value is not None and math.isfinite(value):
                    values.append(value)
    outputs = leftmost(tree).expressions
    wider = [replay.wider.get(kind_of(outputs[number].unalias())) for number in measures.wanted]
    return {
        key: [_half_width(values, factor) for values, factor in zip(lists, wider, strict=True)]
        for key, lists in found.items()
    }


def _require_counted_keys(tree: exp.Query, release: TableInfo, original: TableInfo) -> None:
    """Refuse single values of intervals of a continuous type: drawn ones all differ, and the original's may be equal.

    The truths that are drawn have the same error, so no replay shows it.
    """
    cells = contents_of(release, original).columns.items()
    kinds = {name: (box_type(cell.type) or "").upper() for name, cell in cells if cell.cell == "interval"}
    names = {name for name, kind in kinds.items() if not is_integer(kind) and kind != "DATE"}
    selects = all_of(tree, exp.Select)
    for select in reversed(selects):  # what nested queries show by another name
        shown = (node for node in select.expressions if isinstance(node, exp.Alias))
        names |= {fold(node.alias) for node in shown if fold(node.this.unnest().name) in names}
    keys = [key for select in selects for key in groups_of(select).keys]
    keys += [node.unalias() for select in selects if select.args.get("distinct") for node in select.expressions]
    for node in all_of(tree, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.In, exp.Distinct, exp.Mode):
        keys += [node.this, node.expression, *node.expressions]
    for node in all_of(tree, exp.Window, exp.Join):
        keys += [*(node.args.get("partition_by") or ()), *(node.args.get("using") or ())]
    for key in keys:
        named = key.unnest() if isinstance(key, exp.Expr) else None
        if isinstance(named, (exp.Column, exp.Identifier)) and fold(named.name) in names:
            raise RewriteError(
                f"no interval: the query groups by or compares single values of {named.name}, which the release "
                "generalizes to intervals of a continuous type. Group by a part of it, as floor()"
            )


def kind_of(node: exp.Expr) -> str:
    """Kind of a measure, as calibrations tell them apart."""
    kinds: dict[str, tuple[type[exp.Expr], ...]] = {
        "count": (exp.Count, exp.CountIf), "sum": (exp.Sum,), "mean": (exp.Avg,), "share": (exp.Div,),
        "quantile": (exp.Median, exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc),
    }  # fmt: skip
    value = node.unnest()
    if isinstance(value, (exp.Filter, exp.WithinGroup)):
        value = value.this
    if isinstance(value, exp.Count) and isinstance(value.this, exp.Distinct):
        return "other"
    return next((name for name, types in kinds.items() if isinstance(value, types)), "other")


def _half_width(differences: Sequence[float], wider: float | None) -> float | None:
    if wider is None or len(differences) < _LEAST:
        return None
    return wider * _QUANTILE * math.sqrt(sum(value * value for value in differences) / len(differences))


def with_widths(
    measures: Measures, widths: Mapping[Keys, Sequence[float | None]], hard: Mapping[int, bool]
) -> tuple[Measures, dict[Keys, list[float | None]]]:
    """Leave out measures without intervals, and those with hard bounds whose replayed answers were always right."""
    places = [
        place
        for place, number in enumerate(measures.wanted)
        if any(row[place] is not None for row in widths.values())
        and (not hard.get(number) or any(row[place] for row in widths.values()))
    ]
    kept = replace(measures, wanted=[measures.wanted[place] for place in places])
    return kept, {key: [row[place] for place in places] for key, row in widths.items()}


def _differences(truth: str, answer: str, measures: Measures) -> str:
    """SELECT of the keys as texts, and how far the answers are from the truth."""
    selected = [f"coalesce(o.{key}, e.{key})::varchar" for key in measures.keys]
    for number in measures.wanted:
        sides = [f"try_cast({side}._c{number}::varchar as double)" for side in ("e", "o")]
        if measures.columns[number].additive:
            sides = [f"coalesce({side}, 0)" for side in sides]
        selected.append(" - ".join(sides))
    on = " and ".join(f"o.{key} is not distinct from e.{key}" for key in measures.keys)
    names = ", ".join(measures.names)
    joined = f"o full join e on {on}" if on else "o cross join e"
    return (
        f"with o as (select * from ({truth}) as q({names})), e as (select * from ({answer}) as q({names})) "
        f"select {', '.join(selected)} from {joined}"
    )


def with_intervals(
    sql: str,
    measures: Measures,
    widths: Mapping[Keys, Sequence[float | None]],
    hard: Mapping[int, bool],
    counts: Sequence[int],
) -> str:
    """An answer with low and high of the wanted measures."""
    names = [
        *(f"k{position}" for position, _ in enumerate(measures.keys)),
        *(f"h{number}" for number in measures.wanted),
    ]
    rows = [
        [*("null::varchar" if text is None else literal(text) for text in key), *map(_number, values)]
        for key, values in widths.items()
    ]
    listed = ", ".join(f"({', '.join(row)})" for row in rows)
    ends = []
    for number in measures.wanted:
        value = f"try_cast(i._c{number}::varchar as double)"
        if measures.columns[number].additive:
            value = f"coalesce({value}, 0)"
        low, high = f"{value} - w.h{number}", f"{value} + w.h{number}"
        if hard.get(number):
            low, high = f"greatest({low}, i._c{number}_low)", f"least({high}, i._c{number}_high)"
        if number in counts:
            low = f"greatest({low}, 0)"
        ends += [f"case when w.h{number} is not null then {value} end as _c{number}_{end}"
                 for value, end in ((low, "low"), (high, "high"))]  # fmt: skip
    replaced = [f"_c{number}_{end}" for number in measures.wanted if number in hard for end in ("low", "high")]
    on = " and ".join(
        f"i.{key}::varchar is not distinct from w.k{position}" for position, key in enumerate(measures.keys)
    )
    return (
        f"select i.* exclude ({', '.join(['_place', *replaced])}), {', '.join(ends)}\n"
        f"from (select *, row_number() over () as _place from (\n{sql}\n)) as i\n"
        f"left join (values {listed}) as w({', '.join(names)}) on {on or 'true'} order by i._place"
    )


def _number(value: float | None) -> str:
    return "null::double" if value is None else f"{value!r}::double"
