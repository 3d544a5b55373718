"""Whether a release carries identifiers of its original, as they are or transformed.

A released attribute that the original has under the same name, with the values it has there, is compared row by row
inside the original: does a record's own identifier stand in its cell? Any other attribute is compared as a set of
values. Both look at whole values and at parts of them, so texts, JSON, MAP, LIST, ARRAY, STRUCT and UNION are read
alike. Letters are compared without case, accents and punctuation.
Transformations: none, reversed, MD5, SHA-1, SHA-256, DuckDB's hash, hexadecimal, base64, URL, a prefix, suffix or word.
Numbers agree by chance, so they need more agreement than texts; one digest is enough.
Cost: one scan of the release's distinct values an identifier column, and of at most 20,000 rows of the original.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.gate.source_tables import PlainValue, SourceTable
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_nested, is_number

_ROWS = 20_000
_WORDS = 4  # longest identifier, in words, that is found inside a text
_LONG = 4  # characters from which on an identifier inside a text is no chance
_UNLIKELY = 12  # characters from which on one text that is an identifier is no chance
_FEWEST = 3
_MANY = 10
_PARTS = ("a prefix", "a suffix", "a word")
_DIGESTS = ("MD5", "SHA-1", "SHA-256", "hash")


def trace_of(
    con: duckdb.DuckDBPyConnection,
    release: SourceTable,
    original: SourceTable | None,
    others: Sequence[SourceTable],
    fresh: Sequence[str] = (),
    *,
    texts_only: bool = False,
) -> str | None:
    """What of an identifier column a release carries; None for nothing.

    Args:
        con: a connection that sees all tables.
        release: the release.
        original: what it was made of, where that is there.
        others: other tables whose identifiers may have been copied.
        fresh: columns of the release that number persons anew.
        texts_only: whether numbers may agree.

    Returns:
        A sentence without its end: which column carries which column, transformed how. It quotes no value.
    """
    tables = [table for table in (original, *others) if table is not None]
    naming = [table for table in tables if table.naming()]
    for value in (v for v in release.values() if naming and v.name not in fresh):
        sources = [table for table in tables if _has_values_of(con, release, value, table)]
        explained = texts_only or bool(sources) or any(_is_cell_of(value, table) for table in tables)
        for table in naming:
            for column in table.naming():
                own = _own(table, value.name)
                if own is not None and table in sources:
                    found = _row_by_row(con, table, own, column)
                else:
                    found = _by_values(con, release, value, table, column, explained)
                if found is not None:
                    return (
                        f"column '{value.name}' of {release.name} carries '{column}' of {table.name}, labelled "
                        f"{table.role(column)} ({found})"
                    )
    return None


def _own(table: SourceTable, name: str) -> PlainValue | None:
    """The attribute of a table that has a name."""
    return next((value for value in table.values() if fold(value.name) == fold(name)), None)


def _is_cell_of(value: PlainValue, table: SourceTable) -> bool:
    """Whether intervals, sets or counts were released of a plain column of a table."""
    own = _own(table, value.name)
    return own is not None and is_nested(value.kind) and not is_nested(own.kind)


def _has_values_of(con: duckdb.DuckDBPyConnection, release: SourceTable, value: PlainValue, table: SourceTable) -> bool:
    """Whether a table has a column of this name with all the values that were released."""
    own = _own(table, value.name)
    if own is None:
        return False
    released = f"select {value.text} from {release.sql} where {value.sql} is not null"
    there = f"select {own.text} from {table.sql} where {own.sql} is not null"
    return not con.execute(f"select count(*) from (({released}) except ({there}))").fetchall()[0][0]


def _row_by_row(con: duckdb.DuckDBPyConnection, table: SourceTable, own: PlainValue, naming: str) -> str | None:
    """How the records' own identifier stands in their own cell."""
    if fold(own.name) == fold(naming):
        return "unchanged"
    forms = _forms(ident(naming))
    transformed = ", ".join(f"{_compact(sql)} as f{k}" for k, (_, sql) in enumerate(forms))
    sample = (
        f"select {_compact(own.text)} as cell, {transformed} "
        f"from (select * from {table.sql} where {own.sql} is not null and {ident(naming)} is not null "
        f"using sample {_ROWS} rows)"
    )
    counted = ", ".join(
        f"count(*) filter (length(f{k}) >= {_LONG} and contains(cell, f{k})), "
        f"count(*) filter (cell = f{k}), count(distinct cell) filter (cell = f{k})"
        for k in range(len(forms))
    )
    prefix = (
        "count(*) filter (length(cell) >= 3 and length(cell) < length(f0) and starts_with(f0, cell)), "
        "count(distinct cell)"
    )
    row = con.execute(f"select count(*), {prefix}, {counted} from ({sample})").fetchall()[0]
    rows, prefixes, distinct = row[:3]
    for k, (name, _) in enumerate(forms):
        inside, equal, values = row[3 + 3 * k : 6 + 3 * k]
        if name in _DIGESTS and inside > 0:
            return name
        if inside >= max(_FEWEST, 0.05 * rows) or (equal >= max(_FEWEST, 0.5 * rows) and values >= _FEWEST):
            return name
    return "a prefix" if prefixes >= 0.9 * rows and distinct >= _MANY else None


def _by_values(
    con: duckdb.DuckDBPyConnection, release: SourceTable, value: PlainValue, table: SourceTable, naming: str,
    explained: bool,
) -> str | None:  # fmt: skip
    """How the values of an identifier column are found among released values."""
    forms = _forms(ident(naming))
    source = f"(select distinct {ident(naming)} from {table.sql} where {ident(naming)} is not null)"
    keys = " union ".join(
        f"select {k} as form, {_compact(sql)} as key from {source}" for k, (_, sql) in enumerate(forms)
    )
    texts = f"select distinct {value.text} as v from {release.sql} where {value.sql} is not null"
    words = "regexp_extract_all(strip_accents(lower(v)), '[\\pL\\pN]+')"
    parts = " union all ".join(
        f"select v, false, array_to_string(w[i:i + {n - 1}], '') from worded, unnest(range(1, len(w) + {2 - n})) t(i)"
        for n in range(1, _WORDS + 1)
    )
    query = (
        f"with texts as materialized ({texts}), worded as (select v, {words} as w from texts), "
        f"parts(v, entire, key) as (select v, true, {_compact('v')} from texts union all {parts}), "
        f"keys as materialized ({keys}), "
        f"found as (select * from keys join parts using (key) where key <> '' and (entire or length(key) >= {_LONG})) "
        "select form, count(distinct v), count(distinct key), bool_and(regexp_full_match(key, '\\d{1,11}')), "
        "(select count(*) from texts), (select count(distinct key) from keys where form = 0), "
        "max(length(key)) from found group by form "
        "order by form"
    )
    for form, hits, covered, numbers, distinct, identifiers, length in con.execute(query).fetchall():
        name: str = forms[form][0]
        if name in _DIGESTS and not numbers:
            return name
        chance = hits < _MANY or hits < 0.9 * distinct or 2 * covered < identifiers
        if not (chance or explained) if numbers else length >= _UNLIKELY or hits >= max(_FEWEST, 0.1 * distinct):
            return name
    return None if explained or is_number(value.kind) else _part(con, source, naming, texts)


def _part(con: duckdb.DuckDBPyConnection, source: str, naming: str, texts: str) -> str | None:
    """Whether released texts are the beginning, the end or a word of identifiers."""
    query = (
        f"with texts as (select distinct {_compact('v')} as key from ({texts})), "
        f"names as (select distinct {_compact(f'{ident(naming)}::varchar')} as key from {source}), "
        "lengths as (select distinct length(key) as n from texts where length(key) between 3 and 40), "
        "firsts as (select left(key, n) as key from names, lengths where length(key) > n), "
        "lasts as (select right(key, n) as key from names, lengths where length(key) > n), "
        f"words as (select unnest(regexp_extract_all(strip_accents(lower({ident(naming)}::varchar)), '[\\pL\\pN]+')) "
        f"as key from {source}) "
        "select count(*), count(*) filter (key in (select key from firsts)), count(*) filter (key in (select key from "
        "lasts)), count(*) filter (key in (select key from words)) from texts "
        "where not regexp_full_match(key, '\\d{1,3}')"
    )
    distinct, *hits = con.execute(query).fetchall()[0]
    found = [name for name, n in zip(_PARTS, hits, strict=True) if n >= _MANY and n >= 0.9 * distinct]
    return found[0] if found else None


def _compact(text: str) -> str:
    """SQL of a text's letters and digits, in lower case, without accents and leading zeros."""
    return f"ltrim(regexp_replace(strip_accents(lower({text})), '[^\\pL\\pN]+', '', 'g'), '0')"


def _forms(column: str) -> list[tuple[str, str]]:
    """Transformations of an identifier, by name, the identity first."""
    text = f"{column}::varchar"
    spelled = (text, f"lower(trim({text}))", f"upper(trim({text}))")
    forms = [("unchanged", text), ("reversed", f"reverse(lower({text}))")]
    for name, function in (("MD5", "md5"), ("SHA-1", "sha1"), ("SHA-256", "sha256")):
        forms += [(name, f"{function}({spelling})") for spelling in spelled]
        forms += [(name, f"to_base64(unhex({function}({text})))")]
    forms += [("hash", f"hash({column})::varchar"), ("hash", f"md5_number({text})::varchar")]
    forms += [("hexadecimal", f"hex({spelling})") for spelling in spelled]
    forms += [("URL", f"url_encode({text})")]
    forms += [("base64", f"to_base64(encode({spelling}))") for spelling in spelled]
    return forms
