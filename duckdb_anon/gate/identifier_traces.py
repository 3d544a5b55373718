"""Whether a release carries identifiers of its original, as they are or transformed.

A released attribute that the original has under the same name, with the values it has there, is compared row by row
inside the original: does a record's own identifier stand in its cell? Any other attribute is compared as a set of
values. Both look at whole values and at parts of them, so texts, JSON, MAP, LIST, ARRAY, STRUCT and UNION are read
alike. Letters are compared without case, accents and punctuation.
Transformations: none, reversed, MD5, SHA-1, SHA-256, DuckDB's hash, hexadecimal, base64, URL, a prefix, suffix or word.
Numbers agree by chance, so they need more agreement than texts; one digest is enough.
Cost: the words of the release's distinct values once, a hash join of them with the transformed identifiers for each
identifier column, and for each attribute of the original a scan of at most 20,000 of its rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.gate.source_tables import PlainValue, SourceTable
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_nested, is_number

_ROWS = 20_000
_WORDS = 4  # longest identifier, in words, that is found inside a text
_LONG = 4  # characters from which on an identifier inside a text is no chance
_UNLIKELY = 12  # characters from which on one text that is an identifier is no chance
_FEWEST = 3
_MANY = 10
_DIGITS = 28  # fewest digits of an MD5 digest as a number
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

    `fresh`: columns of the release that number persons anew; `texts_only`: whether numbers may agree.

    Returns:
        A sentence without its end: which column carries which column, transformed how. It quotes no value.
    """
    tables = [table for table in (original, *others) if table is not None]
    naming = [table for table in tables if table.naming()]
    if not naming:
        return None
    values = [value for value in release.values() if value.name not in fresh]
    sources = {v.name: [table for table in tables if _has_values_of(con, release, v, table)] for v in values}
    explained = {
        v.name: texts_only or bool(sources[v.name]) or any(_is_cell_of(v, table) for table in tables) for v in values
    }
    with _parts(con, release, values) as parts:
        for table in naming:
            for column in table.naming():
                local = [
                    own for v in values if table in sources[v.name] and (own := table.attribute(v.name)) is not None
                ]
                compared = [k for k, v in enumerate(values) if table not in sources[v.name]]
                found = next(((v.name, how) for v in local if (how := _row_by_row(con, table, v, column))), None)
                found = found or _by_values(con, parts, values, compared, table, column, explained)
                if found is not None:
                    name, how = found
                    return (
                        f"column '{name}' of {release.name} carries '{column}' of {table.name}, labelled "
                        f"{table.role(column)} ({how})"
                    )
    return None


def _is_cell_of(value: PlainValue, table: SourceTable) -> bool:
    """Whether intervals, sets or counts were released of a plain column of a table."""
    own = table.attribute(value.name)
    return own is not None and is_nested(value.kind) and not is_nested(own.kind)


def _has_values_of(con: duckdb.DuckDBPyConnection, release: SourceTable, value: PlainValue, table: SourceTable) -> bool:
    """Whether a table has a column of this name with all the values that were released."""
    own = table.attribute(value.name)
    if own is None:
        return False
    released = f"select {value.text} from {release.sql} where {value.sql} is not null"
    there = f"select {own.text} from {table.sql} where {own.sql} is not null"
    return not con.execute(f"select count(*) from (({released}) except ({there}))").fetchall()[0][0]


def _row_by_row(con: duckdb.DuckDBPyConnection, table: SourceTable, own: PlainValue, naming: str) -> str | None:
    """How the records' own identifier stands in their own cell."""
    if fold(own.name) == fold(naming):
        return "unchanged"
    forms = _forms(table, naming)
    transformed = ", ".join(f"{form.within('length(cell)')} as f{k}" for k, form in enumerate(forms))
    cells = (
        f"with sampled(compact, id, letters) as (select {_compact(own.text)}, {ident(naming)}, "
        f"{_letters(f'{ident(naming)}::varchar')} from {table.sql} "
        f"where {own.sql} is not null and {ident(naming)} is not null using sample {_ROWS} rows), "
        f"cells as (select concat(compact, ' ' || {_hexadecimal('compact')}) as cell, * from sampled)"
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
    row = con.execute(
        f"{cells} select count(*), {prefix}, {counted} from (select cell, {transformed} from cells)"
    ).fetchall()[0]
    rows, prefixes, distinct = row[:3]
    for k, form in enumerate(forms):
        inside, equal, values = row[3 + 3 * k : 6 + 3 * k]
        if form.name in _DIGESTS and inside > 0:
            return form.name
        if inside >= max(_FEWEST, 0.05 * rows) or (equal >= max(_FEWEST, 0.5 * rows) and values >= _FEWEST):
            return form.name
    return "a prefix" if prefixes >= 0.9 * rows and distinct >= _MANY else None


@contextmanager
def _parts(con: duckdb.DuckDBPyConnection, release: SourceTable, values: Sequence[PlainValue]) -> Iterator[str]:
    """A temporary table of the released texts and their words: number of the attribute, of the value, and key."""
    name = f"temp.main._anon_{secrets.token_hex(8)}"
    con.execute(f"create temp table {name} (attribute integer, value bigint, entire boolean, key varchar)")
    words = "regexp_extract_all(strip_accents(lower(v)), '[\\pL\\pN]+')"
    joined = " union all ".join(
        f"select value, array_to_string(w[i:i + {n - 1}], '') as key "
        f"from worded, unnest(range(1, len(w) + {2 - n})) t(i) where len(w) > 1"
        for n in range(1, _WORDS + 1)
    )
    try:
        for k, value in enumerate(values):
            inside = "from texts where false" if is_integer(value.kind) else "from texts"
            con.execute(
                f"insert into {name} with texts as materialized (select row_number() over () as value, v from "
                f"(select distinct {value.text} as v from {release.sql} where {value.sql} is not null)), "
                f"worded as materialized (select value, {words} as w {inside}), "
                f"parts as materialized (select value, true as entire, {_compact('v')} as key from texts "
                f"union all select value, false, key from ({joined}) where length(key) >= {_LONG}) "
                f"select {k}, * from parts union all select {k}, value, false, {_hexadecimal('key')} from parts "
                f"where length(key) >= {_DIGITS}"
            )
        yield name
    finally:
        con.execute(f"drop table {name}")


def _by_values(
    con: duckdb.DuckDBPyConnection, parts: str, values: Sequence[PlainValue], compared: Sequence[int],
    table: SourceTable, naming: str, explained: Mapping[str, bool],
) -> tuple[str, str] | None:  # fmt: skip
    """The first attribute with values of an identifier column, and how they are found there."""
    chosen = f"(from {parts} where list_contains({list(compared)}::integer[], attribute))"
    rows = con.execute(f"select attribute, count(distinct value), max(length(key)) from {chosen} group by 1").fetchall()
    counts = {attribute: n for attribute, n, _ in rows}
    longest = max((length for *_, length in rows), default=0)
    forms = _forms(table, naming)
    keys = ", ".join(form.within(str(longest)) for form in forms)
    name = ident(naming)
    source = (
        f"source(id, letters) as materialized (select {name}, {_letters(f'{name}::varchar')} "
        f"from (select distinct {name} from {table.sql} where {name} is not null))"
    )
    found = con.execute(
        f"with {source}, keys as (select unnest([{keys}]) as key, unnest(range({len(forms)})) as form from source) "
        "select attribute, form, count(distinct value), count(distinct key), "
        "bool_and(regexp_full_match(key, '\\d{1,11}')), max(length(key)), "
        f"(select count(distinct {forms[0].sql}) from source) "
        f"from keys join {chosen} using (key) where key <> '' group by all order by all"
    ).fetchall()
    for attribute, form, hits, covered, numbers, length, identifiers in found:
        name, value, distinct = forms[form].name, values[attribute].name, counts[attribute]
        if name in _DIGESTS and not numbers:
            return value, name
        chance = hits < _MANY or hits < 0.9 * distinct or 2 * covered < identifiers
        many = length >= _UNLIKELY or hits >= max(_FEWEST, 0.1 * distinct)
        if not (chance or explained[value]) if numbers else many:
            return value, name
    for k in compared:
        if not explained[values[k].name] and not is_number(values[k].kind) and counts.get(k, 0) >= _MANY:
            part = _part(con, source, f"{parts} where entire and attribute = {k}")
            if part is not None:
                return values[k].name, part
    return None


def _part(con: duckdb.DuckDBPyConnection, source: str, texts: str) -> str | None:
    """Whether released texts are the beginning, the end or a word of identifiers.

    The names that begin with a text follow it in alphabetical order, so the next name tells.
    """
    query = (
        f"with {source}, texts as (select distinct key, reverse(key) as back from {texts}), "
        "names as materialized (select distinct ltrim(letters, '0') as name, reverse(name) as back from source), "
        "firsts as (select key from texts asof join names on key < name where starts_with(name, key)), "
        "lasts as (select key from texts asof join names on texts.back < names.back "
        "where starts_with(names.back, texts.back)), "
        "words as (select unnest(regexp_extract_all(strip_accents(lower(id::varchar)), '[\\pL\\pN]+')) as word "
        "from source) "
        "select count(*), count(*) filter (length(key) >= 3 and key in (from firsts)), "
        "count(*) filter (length(key) >= 3 and key in (from lasts)), count(*) filter (key in (from words)) from texts "
        "where not regexp_full_match(key, '\\d{1,3}')"
    )
    distinct, *hits = con.execute(query).fetchall()[0]
    found = [name for name, n in zip(_PARTS, hits, strict=True) if n >= _MANY and n >= 0.9 * distinct]
    return found[0] if found else None


def _letters(text: str) -> str:
    """SQL of a text's letters and digits, in lower case, without accents."""
    return f"regexp_replace(strip_accents(lower({text})), '[^\\pL\\pN]+', '', 'g')"


def _compact(text: str) -> str:
    """`_letters` without leading zeros."""
    return f"ltrim({_letters(text)}, '0')"


def _hexadecimal(key: str) -> str:
    """SQL of the first number in a text that is as long as an MD5 digest in decimal digits, in hexadecimal ones."""
    digits = f"regexp_extract({key}, '\\d{{{_DIGITS},39}}')"
    return f"case when length({key}) >= {_DIGITS} then ltrim(lower(to_hex(try_cast({digits} as uhugeint))), '0') end"


@dataclass(frozen=True)
class _Form:
    """A transformation of the identifier `id`, whose letters are `letters`: its letters, and how many these are."""

    name: str
    sql: str
    shortest: str = "0"

    def within(self, longest: str) -> str:
        """SQL of the transformation, NULL where it is longer than the texts it is compared with."""
        return f"case when {self.shortest} <= {longest} then {self.sql} end"


def _forms(table: SourceTable, naming: str) -> list[_Form]:
    """Transformations of an identifier, the identity first; leading zeros make digests shorter."""
    text = "id::varchar"
    spelled = (text,) if is_number(table.columns[naming][0]) else (text, f"lower(trim({text}))", f"upper(trim({text}))")
    forms = [_Form("unchanged", "ltrim(letters, '0')"), _Form("reversed", "ltrim(reverse(letters), '0')")]
    for name, function, shortest in (("MD5", "md5", 20), ("SHA-1", "sha1", 28), ("SHA-256", "sha256", 48)):
        forms += [_Form(name, f"ltrim({function}({spelling}), '0')", str(shortest)) for spelling in spelled]
        forms += [_Form(name, _compact(f"to_base64(unhex({function}({text})))"), str(shortest // 2))]
    forms += [_Form("hash", "hash(id)::varchar")]
    forms += [_Form("hash", f"ltrim(lower(to_hex(md5_number({text}))), '0')", "20")]
    longer = "length(letters)"
    forms += [_Form("hexadecimal", f"ltrim(lower(hex({spelling})), '0')", f"2 * {longer}") for spelling in spelled]
    forms += [_Form("URL", _compact(f"url_encode({text})"), longer)]
    forms += [_Form("base64", _compact(f"to_base64(encode({spelling}))"), longer) for spelling in spelled]
    return forms
