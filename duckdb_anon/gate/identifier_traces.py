"""Whether a release carries identifiers of its original, as they are or transformed.

A released attribute that the original has under the same name, with the values it has there, is compared record by
record inside the original: does a record's own identifier stand in its cell? Any other attribute is compared as a set
of values. Both look at whole values and at parts of them, so texts, JSON, MAP, LIST, ARRAY, STRUCT and UNION are read
alike: texts in the normal form and the transformations of `identifier_forms`, numbers and dates by `number_traces`.
One digest is enough, texts need a few; numbers and dates need more agreement than there is by chance.
Cost: the words of the release's distinct values once, a hash join of them with the transformed identifiers for each
identifier column, and for each attribute of the original a scan of at most 20,000 of its rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.gate.identifier_forms import (
    DATE,
    DIGEST,
    NUMBER,
    SHORT,
    TEXT,
    Form,
    forms,
    joined,
    normal,
    read,
    spelled,
    words_of,
)
from duckdb_anon.gate.number_traces import Keys, beyond_chance, by_record, by_sets
from duckdb_anon.gate.source_tables import PlainValue, SourceTable
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment, is_nested, is_number

_ROWS = 20_000
_WORDS = 4  # longest identifier, in words, that is found inside a text
_RUNS = 12  # longest text, in runs of letters or digits, whose runs are joined
_LONG = 4  # characters from which on an identifier inside a text is no chance
_UNLIKELY = 12  # characters from which on one text that is an identifier is no chance
_FEWEST = 3
_MANY = 10
_DIGITS = 28  # fewest digits of an MD5 digest as a number
_TEXTS = 1_000  # texts of an attribute that are compared with beginnings and ends of identifiers
_PARTS = ("a prefix", "a suffix", "a word", "before other characters", "after other characters")

_Found = tuple[str, str] | None
"""An attribute, and how an identifier is there."""


@dataclass(frozen=True)
class _Parts:
    """A temporary table of texts and their words: attribute, value, entire, key, number, and rows of the value."""

    sql: str
    cuts: frozenset[int]  # lengths of attributes all of whose texts are equally long


@dataclass(frozen=True)
class _Identifiers:
    """A temporary table of the identifiers of a column: `id`, its `row`, and what its forms are made of."""

    sql: str
    forms: Sequence[Form]
    keys: Keys
    rows: npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Match:
    """Agreement of an attribute with a form: how many values, those of long keys, keys, and the longest key."""

    name: str
    form: Form
    values: int
    inside: int
    keys: int
    longest: int


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
        v.name for v in values if texts_only or sources[v.name] or any(_is_cell_of(v, table) for table in tables)
    }
    with _parts(con, release.sql, values) as parts:
        for table in naming:
            local = [own for v in values if table in sources[v.name] and (own := table.attribute(v.name)) is not None]
            compared = [v.name for v in values if table not in sources[v.name]]
            found = _in_records(con, table, local) or _in_values(con, parts, table, compared, explained)
            if found is not None:
                column, name, how = found
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


def _in_records(
    con: duckdb.DuckDBPyConnection, table: SourceTable, values: Sequence[PlainValue]
) -> tuple[str, str, str] | None:
    """An identifier column, the attribute with the record's own identifier in its cell, and how it is there."""
    named = {fold(name): name for name in table.naming()}
    for value in values:
        if fold(value.name) in named:
            return named[fold(value.name)], value.name, "unchanged"
    if not values:
        return None
    sampled = f"select row_number() over () as _row, * from {table.sql} using sample {_ROWS} rows"
    with _temporary(con, sampled) as rows, _parts(con, rows, values, "_row") as parts:
        for column in table.naming():
            select = f"select {ident(column)} as id, _row as row from {rows}"
            with _identifiers(con, select, table.columns[column][0], parts) as own:
                found = _texts_in_records(con, parts, own) or _numbers_in_records(con, parts, own)
            if found is not None:
                return column, *found
    return None


def _in_values(
    con: duckdb.DuckDBPyConnection, parts: _Parts, table: SourceTable, names: Sequence[str], explained: Collection[str]
) -> tuple[str, str, str] | None:
    """An identifier column, the first attribute with its values, and how they are there."""
    some = _Parts(f"(from {parts.sql} where attribute in ({', '.join(map(literal, names))}))", parts.cuts)
    unknown = [name for name in names if name not in explained]
    for column in table.naming() if names else ():
        select = f"select distinct {ident(column)} as id, 0 as row from {table.sql}"
        with _identifiers(con, select, table.columns[column][0], some) as every:
            found = _texts_in_values(con, some, every, explained)
            found = found or _numbers_in_values(con, some, every, unknown) or _cut(con, some, every, unknown)
        if found is not None:
            return column, *found
    return None


@contextmanager
def _temporary(con: duckdb.DuckDBPyConnection, select: str) -> Iterator[str]:
    name = f"temp.main._anon_{secrets.token_hex(8)}"
    con.execute(f"create temp table {name} as {select}")
    try:
        yield name
    finally:
        con.execute(f"drop table {name}")


@contextmanager
def _identifiers(con: duckdb.DuckDBPyConnection, select: str, kind: str, parts: _Parts) -> Iterator[_Identifiers]:
    with _temporary(con, f"select *, {read(kind)} from ({select}) where id is not null") as name:
        longest, dates = con.execute(
            f"select (select max(length(key)) from {parts.sql}), (select count(born) from {name})"
        ).fetchall()[0]
        back = "try_cast(reverse(regexp_replace(s, '\\D+', '', 'g')) as double)"
        rows, number, backwards, hashes = _arrays(con, f"select row, number, {back}, hash(id) as hash from {name}")
        every = forms(kind, parts.cuts, longest or 0, dated=dates > 0)
        yield _Identifiers(name, every, Keys(number, backwards, hashes), rows)


def _arrays(con: duckdb.DuckDBPyConnection, select: str) -> list[npt.NDArray[Any]]:
    """Columns of numbers, with NaN in place of NULL."""
    columns = con.execute(select).fetchnumpy().values()
    return [np.asarray(c.filled(np.nan) if isinstance(c, np.ma.MaskedArray) else c) for c in columns]


@contextmanager
def _parts(
    con: duckdb.DuckDBPyConnection, table: str, values: Sequence[PlainValue], row: str | None = None
) -> Iterator[_Parts]:
    """The distinct values of attributes and their words; with `row`, which numbers the rows, those of every row."""
    columns = "null::varchar as attribute, null::bigint as value, false as entire, null::varchar as key"
    cuts = set()
    with _temporary(con, f"select {columns}, null::double as number, null::bigint as n limit 0") as name:
        for value in values:
            read = f"{_text(value)} as v, {_number(value)} as number"
            texts = f"select {row} as value, {read}, 1 as n from {table} where {value.sql} is not null"
            if row is None:
                texts = (
                    "select row_number() over () as value, v, any_value(number) as number, count(*) as n "
                    f"from (select {read} from {table} where {value.sql} is not null) group by v"
                )
            with _temporary(con, texts) as given:
                con.execute(f"insert into {name} select {literal(value.name)}, * from ({_words_of(given, value.kind)})")
                low, high = con.execute(f"select min(length(v)), max(length(v)) from {given}").fetchall()[0]
            if low == high and low is not None and low > _LONG:
                cuts.add(low)
        yield _Parts(name, frozenset(cuts))


def _text(value: PlainValue) -> str:
    """SQL of a value's text; numbers without places that are zero."""
    if not is_number(value.kind) or is_integer(value.kind):
        return value.text
    whole = f"{value.sql} = floor({value.sql})"
    return f"case when {whole} then try_cast({value.sql} as hugeint)::varchar else {value.text} end"


def _number(value: PlainValue) -> str:
    """SQL of a value as a number, of a date the days since 1970."""
    if is_moment(value.kind):
        return f"epoch({value.sql}) / 86400"
    return f"try_cast({value.sql} as double)" if is_number(value.kind) else "null::double"


def _words_of(texts: str, kind: str) -> str:
    """SELECT of the parts of texts `v`: value, entire, key, number, rows.

    A text is cut into words, and words of letters and digits into these; what follows one another is joined.
    """
    given = f"with spelled as materialized (select value, {spelled('v')} as s, number, n from {texts})"
    entire = f"select value, true as entire, {normal('s')} as key, number, n from spelled"
    if is_number(kind) or is_moment(kind):
        digits = f"select value, false, {_hexadecimal('s')}, null, n from spelled where length(s) >= {_DIGITS}"
        return f"{given} {entire} union all {digits}"
    runs = "case when regexp_matches(s, '\\pL\\pN|\\pN\\pL') then regexp_extract_all(s, '\\pL+|\\pN+') end"
    following = ", ".join(" || ".join(f"w[i + {k}]" for k in range(size)) for size in range(1, _WORDS + 1))
    cut = (
        f"select value, unnest([{following}]) as key, n "
        "from (select *, unnest(range(1, len(w) + 1)) as i from worded where len(w) > 1)"
    )
    number = f"case when length(key) between {_LONG} and 15 and regexp_full_match(key, '\\d+') then key::double end"
    return (
        f"{given}, worded as materialized (select value, {words_of('s')} as w, n from spelled union all "
        f"select value, r, n from (select value, {runs} as r, n from spelled) where len(r) <= {_RUNS}), "
        f"every as materialized ({entire} union all "
        f"select value, false, {joined('key')}, null, n from ({cut}) where length(key) >= {_LONG}) "
        f"select value, entire, key, {number} as number, n from every union all "
        f"select value, false, {_hexadecimal('key')}, null, n from every where length(key) >= {_DIGITS}"
    )


def _matches(con: duckdb.DuckDBPyConnection, parts: _Parts, identifiers: _Identifiers, only: str) -> list[_Match]:
    """Agreement of attributes with forms."""
    keys = ", ".join(form.sql for form in identifiers.forms)
    found = con.execute(
        f"with keys as (select row, unnest([{keys}]) as key, unnest(range({len(identifiers.forms)})) as form "
        f"from {identifiers.sql}) select attribute, form, count(distinct value), "
        f"count(distinct value) filter (length(key) >= {_LONG}), count(distinct key), max(length(key)) "
        f"from keys join {parts.sql} using (key) where key <> '' and {only} group by attribute, form order by all"
    ).fetchall()
    return [_Match(name, identifiers.forms[form], *counts) for name, form, *counts in found]


def _counts(con: duckdb.DuckDBPyConnection, parts: _Parts) -> dict[str, int]:
    """Values of each attribute."""
    return dict(con.execute(f"select attribute, count(distinct value) from {parts.sql} group by 1").fetchall())


def _texts_in_records(con: duckdb.DuckDBPyConnection, parts: _Parts, identifiers: _Identifiers) -> _Found:
    counts = _counts(con, parts)
    for match in _matches(con, parts, identifiers, "row = value"):
        rows = counts[match.name]
        some = match.inside >= max(_FEWEST, 0.05 * rows)
        most = match.values >= max(_FEWEST, 0.5 * rows) and match.keys >= _FEWEST
        if some or most or (match.form.rule == DIGEST and match.inside > 0):
            return match.name, match.form.name
    rows_of = con.execute(
        f"with names as (select row, {normal('s')} as name from {identifiers.sql}) "
        "select attribute, count(*), count(distinct key), count(*) filter (length(key) between 3 and length(name) - 1 "
        "and (starts_with(name, key) or ends_with(name, key))), "
        f"count(*) filter (length(name) >= {_LONG} and contains(key, name)) "
        f"from {parts.sql} join names on row = value where entire group by 1 order by 1"
    ).fetchall()
    for name, rows, distinct, cut, longer in rows_of:
        if cut >= 0.9 * rows and distinct >= _MANY:
            return name, "a prefix or suffix"
        if longer >= max(_FEWEST, 0.05 * rows):
            return name, "with other characters"
    return None


def _texts_in_values(
    con: duckdb.DuckDBPyConnection, parts: _Parts, identifiers: _Identifiers, explained: Collection[str]
) -> _Found:
    counts = _counts(con, parts)
    dates = [k for k, form in enumerate(identifiers.forms) if form.rule == DATE]
    # sets of numbers are compared as numbers
    only = "not regexp_full_match(key, '\\d{1,11}')" + (f" or form in ({str(dates)[1:-1]})" if dates else "")
    for match in _matches(con, parts, identifiers, f"({only})"):
        rule = match.form.rule
        if rule == DATE:
            days = identifiers.keys.sorted
            share = len(days) / (days[-1] - days[0] + 1)
            found = match.name not in explained and beyond_chance(match.values, counts[match.name], share)
        else:
            values = match.inside if rule == SHORT else match.values
            certain = rule == DIGEST or (rule == TEXT and match.longest >= _UNLIKELY)
            found = certain or values >= max(_FEWEST, 0.1 * counts[match.name])
            if rule == NUMBER:
                found = values >= max(_MANY, 0.9 * counts[match.name]) and 2 * match.keys >= len(identifiers.rows)
        if found:
            return match.name, match.form.name
    return None


def _numbers_in_records(con: duckdb.DuckDBPyConnection, parts: _Parts, identifiers: _Identifiers) -> _Found:
    place = np.full(_ROWS + 1, -1)
    place[identifiers.rows] = np.arange(len(identifiers.rows))
    for name in _counts(con, parts):
        numbers, rows, _ = _released(con, parts, name)
        there = place[rows]
        kept = there >= 0
        how = by_record(numbers[kept], identifiers.keys.of(there[kept]))
        if how is not None:
            return name, how
    return None


def _numbers_in_values(
    con: duckdb.DuckDBPyConnection, parts: _Parts, identifiers: _Identifiers, names: Sequence[str]
) -> _Found:
    for name in names:
        numbers, _, rows = _released(con, parts, name)
        values = np.unique(numbers)
        if len(values) >= _MANY:
            how = by_sets(values, identifiers.keys, unique=bool(rows.sum() <= 1.1 * len(values)))
            if how is not None:
                return name, how
    return None


def _released(con: duckdb.DuckDBPyConnection, parts: _Parts, name: str) -> list[npt.NDArray[Any]]:
    """Numbers of an attribute, with the values (or rows) that they are of, and how many rows these have."""
    chosen = f"attribute = {literal(name)} and isfinite(number)"
    return _arrays(con, f"select distinct number, value, n from {parts.sql} where {chosen}")


def _cut(con: duckdb.DuckDBPyConnection, parts: _Parts, identifiers: _Identifiers, names: Sequence[str]) -> _Found:
    """Which attribute has beginnings, ends or words of identifiers, or begins or ends with identifiers.

    The names that begin with a text follow it in alphabetical order, so the next name tells; ends are read backwards.
    """
    if not names:
        return None
    # among many numbers, every short one is the beginning of another
    few = "(select 10 * count(*) < power(10, least(length(key), min(length(name)))) from own)"
    rows = con.execute(
        f"with own as materialized (select distinct {normal('s')} as name from {identifiers.sql}), "
        "names as (select 0 as side, name from own union all select 1, reverse(name) from own), "
        f"given as (select distinct attribute, key from {parts.sql} where entire and length(key) >= 3 "
        f"and attribute in ({', '.join(map(literal, names))})), "
        f"texts as materialized (from given where not regexp_full_match(key, '\\d+') or (length(key) > 3 and {few}) "
        f"qualify row_number() over (partition by attribute order by hash(key)) <= {_TEXTS}), "
        "sides as (select 0 as side, key as text, attribute, key from texts "
        "union all select 1, key, attribute, reverse(key) from texts), "
        "words as (select word from (select distinct unnest(words) as word "
        f"from {identifiers.sql}) where not regexp_full_match(word, '\\d+')) "
        "select s.attribute, count(*) // 2, count(*) filter (s.side = 0 and starts_with(a.name, s.key)), "
        "count(*) filter (s.side = 1 and starts_with(a.name, s.key)), "
        "count(*) filter (s.side = 0 and s.text in (from words)), "
        f"count(*) filter (s.side = 0 and length(b.name) >= {_LONG} and starts_with(s.key, b.name)), "
        f"count(*) filter (s.side = 1 and length(b.name) >= {_LONG} and starts_with(s.key, b.name)) "
        "from sides as s asof left join names as a on s.side = a.side and s.key < a.name "
        "asof left join names as b on s.side = b.side and s.key > b.name group by 1 order by 1"
    ).fetchall()
    for name, texts, *hits in rows:
        for how, n in zip(_PARTS, hits, strict=True):
            if n >= _MANY and n >= 0.9 * texts:
                return name, how
    return None


def _hexadecimal(key: str) -> str:
    """SQL of the first number in a text that is as long as an MD5 digest in decimal digits, in hexadecimal ones."""
    digits = f"regexp_extract({key}, '\\d{{{_DIGITS},39}}')"
    return f"case when length({key}) >= {_DIGITS} then {joined(f'lower(to_hex(try_cast({digits} as uhugeint)))')} end"
