"""The spelling of the rewriter's own names: readable, and never one of the analyst's."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.template import OWN
from duckdb_anon.rewrite.query.walking import all_of

KEYWORDS = {
    *DuckDB.Tokenizer.KEYWORDS,
    *"ANALYSE ANALYZE ANTI ASOF ASYMMETRIC AT AUTHORIZATION BINARY BOTH BY CAST CHECK COALESCE COLLATION COLUMNS "
    "CONCURRENTLY DEFERRABLE DESCRIBE DO EXTRACT FOREIGN FREEZE GENERATED GLOB GROUP GROUPING GROUPING_ID ILIKE "
    "INITIALLY INOUT INTERVAL ISNULL LAMBDA LATERAL LEADING MAP NATIONAL NATURAL NONE NOTNULL NULLIF ONLY ORDER "
    "OVERLAPS OVERLAY PIVOT PIVOT_LONGER PIVOT_WIDER PLACING POSITION POSITIONAL PRECISION PRIMARY QUALIFY REFERENCES "
    "RETURNING ROW SEMI SETOF SHOW SIMILAR SOME SUBSTRING SUMMARIZE SYMMETRIC TABLESAMPLE TO TRAILING TREAT TRIM "
    "TRY_CAST TUPLE UNPACK UNPIVOT USER VALUES VARIADIC VERBOSE XMLATTRIBUTES XMLCONCAT XMLELEMENT XMLEXISTS XMLFOREST "
    "XMLNAMESPACES XMLPARSE XMLPI XMLROOT XMLSERIALIZE XMLTABLE".split(),
}
"""Words that are quoted when they are names; more than need be."""
_WORD = re.compile(r"\w+")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def readable(name: str) -> exp.Identifier:
    """A name, in quotes where it needs them.

    >>> readable("age").sql(), readable("Age").sql(), readable("order").sql()
    ('age', '"Age"', '"order"')
    """
    return exp.Identifier(this=name, quoted=not _PLAIN.fullmatch(name) or name.upper() in KEYWORDS)


def spell(query: exp.Expr, taken: Iterable[str]) -> None:
    """Give every own name of a rewritten query its spelling, in place.

    Plain names lose their quotes. A name that a column, table or alias of the query has already gets a number.

    Args:
        query: a tree with marked names (`template.name`).
        taken: names the query's tables have inside, which the tree need not mention.
    """
    leaves = all_of(query, exp.Identifier, exp.Var)
    names = [one for one in leaves if isinstance(one, exp.Identifier)]
    used = {fold(one) for one in taken} | {fold(one.this) for one in names if not one.this.startswith(OWN)}
    used |= {fold(part) for one in leaves if isinstance(one, exp.Var) for part in _WORD.findall(one.name)}
    spelling: dict[str, exp.Identifier] = {}
    for one in leaves:
        if not isinstance(one, exp.Identifier):
            one.set("this", _unquoted(one.name))
        elif one.this.startswith(OWN):
            own = one.this[len(OWN) :]
            if own not in spelling:
                spelling[own] = readable(_free(own, used))
            one.set("this", spelling[own].this)
            one.set("quoted", spelling[own].quoted)
        elif one.quoted and _PLAIN.fullmatch(one.this) and one.this.upper() not in KEYWORDS:
            one.set("quoted", False)


def _unquoted(text: str) -> str:
    """What stands after FROM: a table's name without quotes it does not need, anything else as it is."""
    name = text[1:-1]
    return name if text == f'"{name}"' and not readable(name).quoted else text


def _free(own: str, used: set[str]) -> str:
    plain = fold(own)
    spelled, number = plain, 1
    while spelled in used:
        number += 1
        spelled = f"{plain}_{number}"
    used.add(spelled)
    return spelled
