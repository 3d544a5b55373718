"""Columns whose values would not reach a kernel as they are: they are refused, by name and with the cast to write.

Arrow carries texts without their collation, TIME WITH TIME ZONE without its zone, and UHUGEINT in 127 bits. Types that
the planner sees are checked while the call is planned; collations, and types it does not see, when the call runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from duckdb_anon.engine.catalog.catalog import Catalog, Relation
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import ColumnError, with_code
from duckdb_anon.model.function_specs import ColumnInfo

_CASTS = {"TIME WITH TIME ZONE": "TIME or VARCHAR", "UHUGEINT": "HUGEINT or VARCHAR"}
_CASTS_OF_UNSEEN = {**_CASTS, "BIT": "VARCHAR", "BIGNUM": "HUGEINT or VARCHAR"}
# pairs of texts that are equal under NOCASE, NFC, NOACCENT, and the collations of the ICU extension
_PAIRS = (("AB", "ab"), ("\u00e1", "a\u0301"), ("\u00e1", "a"), ("b\u200b", "b"))


def check_types(function: str, infos: Iterable[ColumnInfo]) -> None:
    """Refuse columns of a type whose values would change."""
    for info in infos:
        if info.type in _CASTS or (info.type == "BIGNUM" and info.kind == "ordered"):
            raise ColumnError(_of_type(function, info.name, info.type))


def guard(function: str, infos: Iterable[ColumnInfo], source: str) -> str:
    """SQL of a condition that holds, or is an error where a column of `source` is one to refuse."""
    cases = ""
    for info in infos:
        nothing = f"any_value({ident(info.name)})"
        if not info.type:
            for kind in _CASTS_OF_UNSEEN:
                text = literal(with_code(_of_type(function, info.name, kind), ColumnError.code))
                cases += f" when typeof({nothing}) = {literal(kind)} then error({text})"
        if info.type in ("", "VARCHAR"):
            text = literal(
                f"{function}: column '{info.name}' has a collation, which takes different texts for equal. Columns of "
                f'plain texts are allowed. Write (select * replace (lower({ident(info.name)}) collate "binary" as '
                f"{ident(info.name)}) from ...) [{ColumnError.code}]"
            )
            cases += f" when {_is_collated(nothing)} then error({text})"
    return (
        f"(select case{cases} else true end from (select * from {source} limit 0) as _anon_none)" if cases else "true"
    )


def collated(catalog: Catalog, relation: Relation, names: Iterable[str]) -> frozenset[str]:
    """Those of the columns that have a collation, which takes different texts for equal."""
    texts = [name for name in names if relation.columns.get(name) == "VARCHAR"]
    if not texts:
        return frozenset()
    tests = ", ".join(_is_collated(f"any_value({ident(name)})") for name in texts)
    row = catalog.cursor.execute(f"select {tests} from (select * from {relation.sql} limit 0)").fetchall()[0]
    return frozenset(name for name, found in zip(texts, row, strict=True) if found)


def _is_collated(text: str) -> str:
    """SQL of whether an expression that is NULL compares by a collation."""
    either = " or ".join(f"coalesce({text}::varchar, {literal(a)}) = {literal(b)}" for a, b in _PAIRS)
    return f"({either})"


def _of_type(function: str, name: str, kind: str) -> str:
    cast = _CASTS_OF_UNSEEN[kind]
    return f"{function}: column '{name}' is {kind}, whose values would not arrive as they are. Cast it to {cast}"
