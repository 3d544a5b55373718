"""What is sent of a column to the kernels: values that are equal there where the column itself says so.

Arrow carries texts without their collation, TIME WITH TIME ZONE without its zone and UHUGEINT in 127 bits. Texts
of a collated column travel as its key (NOCASE: in lower case, NOACCENT: without accents, NFC: normalized), so that
'flu' and 'FLU' are one value; what is released is still read from the source. What cannot travel is refused by name.
Cost: nothing for a plain table in whose text the catalog finds no collation; else a query of no rows for the text
columns; a pass over the columns of a table the planner cannot see, and with DuckDB 1.5, where a query of no rows has
lost the collations of its columns, of each that may have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.model.identifier_case import fold

_TIMETZ = "TIME WITH TIME ZONE"
_MOST = 2**127 - 1
# Pairs of texts that a collation may take for equal, and the function whose results are then equal.
# Accents are taken off last, as the others may bring them about.
_PAIRS = (("AB", "ab", "lower"), ("\u00e1", "a\u0301", "nfc_normalize"), ("\u00e1", "a", "strip_accents"))
_KEYS = tuple(
    tuple(sql for k, (_, _, sql) in enumerate(_PAIRS) if mask >> k & 1)
    for mask in sorted(range(1, 8), key=int.bit_count)
)
_TOLD_BY_TYPE = not duckdb.__version__.startswith("1.")
_IGNORED = ("b\u200b", "b")  # equal under the collations of the ICU extension


def sent(function: str, catalog: Catalog, relation: Relation, infos: Iterable[ColumnInfo]) -> dict[str, str]:
    """SQL of what is sent of each column that a method or a measure codes.

    Args:
        function: SQL function, for messages.
        catalog: what the planner can see.
        relation: the table.
        infos: the columns.

    Raises:
        ColumnError: values of a column would not arrive as they are, or its collation cannot be followed.
    """
    infos = list(infos)
    keys = collated(function, catalog, relation, [info.name for info in infos])
    for info in infos:
        if info.name in keys and info.hierarchy:
            raise ColumnError(
                f"{function}: column '{info.name}' has a collation and a hierarchy, whose labels are told apart by "
                f"their letters; give it none: (select * replace (lower({ident(info.name)}) as {ident(info.name)}) "
                f"from {relation.given})"
            )
    return {
        info.name: _key(info.name, keys[info.name]) if info.name in keys else as_it_is(function, info.name, info.type)
        for info in infos
    }


def sent_together(
    function: str, catalog: Catalog, relations: Sequence[Relation], wanted: Iterable[str]
) -> list[dict[str, str]]:
    """SQL of the columns named `wanted` in each of several tables that are held against one another.

    Args:
        function: SQL function, for messages.
        catalog: what the planner can see.
        relations: the tables.
        wanted: names of columns, in any letter case.

    Raises:
        ColumnError: as `sent`; or one table's collation cannot be given to the column of another, which is hidden in a
            list or a STRUCT.
    """
    folded = {fold(name) for name in wanted}
    mine = [[name for name in relation.columns if fold(name) in folded] for relation in relations]
    keys: dict[str, tuple[str, ...]] = {}
    for relation, names in zip(relations, mine, strict=True):
        for name, functions in collated(function, catalog, relation, names).items():
            keys[fold(name)] = max(keys.get(fold(name), ()), functions, key=len)
    expressions = []
    for relation, names in zip(relations, mine, strict=True):
        found = {name: as_it_is(function, name, relation.columns[name]) for name in names}
        there = {fold(name) for name in catalog.flattened(relation.columns)}
        for name in keys:
            plain = [column for column in names if fold(column) == name and relation.columns[column] == "VARCHAR"]
            if not plain and (name in there or not relation.visible):
                raise ColumnError(
                    f"{function}: column '{name}' has a collation, which cannot be followed in {relation.given}, where "
                    f"it is not a text of its own; compare with (select * replace (lower({ident(name)}) as "
                    f"{ident(name)}) from ...), released as that"
                )
            found |= {column: _key(column, keys[name]) for column in plain}
        expressions.append(found)
    return expressions


def as_it_is(function: str, name: str, duckdb_type: str) -> str:
    """SQL of a column whose values travel as they are, or not at all.

    Args:
        function: SQL function, for messages.
        name: name of the column.
        duckdb_type: its type, '' where the planner does not see it.

    Raises:
        ColumnError: the column has a time zone that would be lost.
    """
    if duckdb_type == _TIMETZ:
        raise ColumnError(_zoned(function, name))
    if duckdb_type != "UHUGEINT":
        return ident(name)
    told = literal(_too_large(function, name))
    return f"case when {ident(name)} > {_MOST} then error({told}) else {ident(name)} end"


def guards(function: str, infos: Iterable[ColumnInfo], rows: str) -> str:
    """Conditions, each an error when the call runs, on columns whose types the planner does not see.

    Args:
        function: SQL function, for messages.
        infos: the columns.
        rows: what SQL calls the table that holds them.
    """
    cases = ""
    for info in infos:
        if info.type:
            continue
        column = ident(info.name)
        for sql, told in (
            (f"typeof(any_value({column})) = '{_TIMETZ}'", _zoned(function, info.name)),
            (f"typeof(any_value({column})) = 'UHUGEINT'", _too_large(function, info.name)),
            (
                f"(select count(*) from (select 1 from {rows} where typeof({column}) = 'VARCHAR' group by {column})) "
                f"<> count(distinct {_letters(column)}) filter (typeof({column}) = 'VARCHAR')",
                f"{function}: column '{info.name}' has a collation, which is followed in tables that are visible while "
                "the call is planned; commit the table, or make it one of plain texts with lower(...)",
            ),
        ):
            cases += f" when (select {sql} from {rows}) then error({literal(told)})"
    return cases


def _letters(column: str) -> str:
    """SQL of a number for the letters of a text; from DuckDB 2.0.1 on the text's own hash follows its collation."""
    return f"hash(encode({column}::varchar))"


def collated(function: str, catalog: Catalog, relation: Relation, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Functions whose results are equal where a column says its values are, for the collated ones among `names`.

    Args:
        function: SQL function, for messages.
        catalog: what the planner can see.
        relation: the table.
        names: names of columns.

    Raises:
        ColumnError: a column has a collation of the ICU extension.
    """
    texts = [name for name in names if relation.columns.get(name) == "VARCHAR"]
    if not texts or relation.by_letters or catalog.cursor is None:
        return {}
    if not _TOLD_BY_TYPE:
        return _told_by_rows(function, catalog.cursor, relation, texts)
    pairs = [pair[:2] for pair in _PAIRS] + [_IGNORED]
    tests = [f"coalesce(_anon_v{k}, {literal(a)}) = {literal(b)}" for k in range(len(texts)) for a, b in pairs]
    nothing = ", ".join(
        f"(select {ident(name)} from {relation.sql} limit 0) as _anon_v{k}" for k, name in enumerate(texts)
    )
    held = catalog.cursor.execute(f"select {', '.join(tests)} from (select {nothing})").fetchall()[0]
    keys: dict[str, tuple[str, ...]] = {}
    for k, name in enumerate(texts):
        *known, ignored = held[k * len(pairs) : (k + 1) * len(pairs)]
        if ignored:
            raise _not_followed(function, name, relation)
        if any(known):
            keys[name] = tuple(sql for is_equal, (_, _, sql) in zip(known, _PAIRS, strict=True) if is_equal)
    return keys


def _told_by_rows(
    function: str, cursor: duckdb.DuckDBPyConnection, relation: Relation, texts: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """As `collated`, where the type of a query of no rows has lost its collation (DuckDB 1.5).

    A collation matters where rows hold texts that differ and are equal. Its key is then the one under which the same
    rows are together, and there may be none.
    """
    keys: dict[str, tuple[str, ...]] = {}
    for name in texts:
        held = f"from {relation.sql} where {ident(name)} is not null"
        # GROUP BY follows the collation there, unlike COUNT(DISTINCT) and GROUP BY ALL
        groups = f"select count(*) from (select 1 {held} group by {ident(name)})"
        try:
            spellings, values = cursor.execute(
                f"select (select count(distinct {_letters(ident(name))}) {held}), ({groups})"
            ).fetchall()[0]
        except duckdb.InvalidInputException:
            return keys  # a shape answers with an error of its own and has no rows
        if spellings == values:
            continue
        for functions in _KEYS:
            key = _key(name, functions)
            both = f"select count(*) from (select 1 {held} group by {ident(name)}, {key})"
            if cursor.execute(f"select ({both}), (select count(distinct {key}) {held})").fetchall() == [
                (values, values)
            ]:
                keys[name] = functions
                break
        else:
            raise _not_followed(function, name, relation)
    return keys


def _not_followed(function: str, name: str, relation: Relation) -> ColumnError:
    return ColumnError(
        f"{function}: column '{name}' has a collation of the ICU extension, which cannot be followed; use "
        f'NOCASE, NOACCENT or NFC, or (select * replace ({ident(name)} collate "binary" as {ident(name)}) '
        f"from {relation.given})"
    )


def _key(name: str, functions: Iterable[str]) -> str:
    key = ident(name)
    for function in functions:
        key = f"{function}({key})"
    return key


def _zoned(function: str, name: str) -> str:
    return (
        f"{function}: column '{name}' is TIME WITH TIME ZONE, whose zone would be lost; cast it to TIME "
        "(or to VARCHAR, as names)"
    )


def _too_large(function: str, name: str) -> str:
    return (
        f"{function}: column '{name}' is UHUGEINT with values above {_MOST}, which cannot be told from others; cast it "
        "to HUGEINT or DOUBLE (or to VARCHAR, as names)"
    )
