"""Which transformations of identifiers are found in a release, and that attributes are not taken for identifiers."""

import string

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.gate.identifier_traces import trace_of
from duckdb_anon.gate.source_tables import SourceTable, tables_of

FIRST = (
    "Anna Ben Clara David Élodie Frank Grete Hans Ines Jörg Karla Lars Mia Nils Olga Paul Rosa Sven Tina Uwe".split()
)
LAST = "Weber Müller Schmidt Fischer Meyer Wagner Becker Schulz Hoffmann Koch Bauer Richter Klein Wolf Neumann".split()
PLAIN = string.digits + string.ascii_lowercase
FULL = f"translate({{}}, '{PLAIN}', '{''.join(chr(ord(letter) + 0xFEE0) for letter in PLAIN)}')"
ASCII = "replace(replace(replace({}, 'ü', 'ue'), 'ö', 'oe'), 'É', 'E')"
A, Z = "abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm"
ROT13 = f"translate(name, '{A}{A.upper()}', '{Z}{Z.upper()}')"
INITIAL = "first[1] || '. ' || last"

# transformations of the columns name, id (a number), phone (text) and born (DATE)
NAMES = {
    "unchanged": "name", "upper case": "upper(name)", "reversed": "reverse(name)", "accents stripped": "strip_accents(name)",
    "umlauts in two letters": ASCII.format("name"), "doubled spaces": "first || '   ' || last", "underscore": "first || '_' || last",
    "last, first": "last || ', ' || first", "last, first in text": "'seen: ' || last || ', ' || first || ' on ward 3'",
    "initial and surname in one word": "lower(first[1] || last)", "initial and surname": INITIAL, "surname and initial": "last || ' ' || first[1]",
    "first name and initial": "first || ' ' || last[1] || '.'", "e-mail": "lower(first || '.' || last) || '@mail.org'",
    "e-mail, last name first": "lower(last || '.' || first) || '@mail.org'", "e-mail, initial": "lower(first[1] || last) || '@mail.org'",
    "full-width letters": FULL.format("lower(name)"), "hexadecimal": "hex(name)", "base64": "to_base64(encode(name))",
    "URL": "url_encode(name)", "rot13": ROT13, "prefix": "'patient ' || name", "concatenated with numbers": "first || last || age",
    "MD5": "md5(name)", "MD5 cut": "md5(name)[:10]", "SHA-1": "sha1(lower(name))", "SHA-256 in text": "'ref ' || sha256(name)", "SHA-256 cut": "sha256(name)[:16]",
    "hash": "hash(name)", "hash as BIGINT": "(hash(name) >> 1)::bigint", "hash to BIGINT by remainder": "(hash(name) % 9223372036854775808)::bigint",
    "hash to BIGINT by two's complement": "(hash(name)::hugeint - 9223372036854775808)::bigint", "hash, nine digits": "hash(name) % 1000000000",
    "list": "[first, last]", "struct": "{'a': last, 'b': first}", "map": "map {'who': name}", "first name": "first || ' ' || last[:3]",
}  # fmt: skip
NUMBERS = {
    "text": "id::varchar", "constant added": "id + 1000", "constant subtracted": "id - 99999999", "multiplied": "id * 7",
    "multiplied and constant added": "id * 3 + 11", "negated": "-id", "subtracted from a constant": "9999999 - id", "halved": "id / 2",
    "zero padded": "lpad(id::varchar, 12, '0')", "full-width digits": FULL.format("id::varchar"), "DOUBLE": "id::double",
    "DECIMAL": "id::decimal(18,2)", "hexadecimal number": "to_hex(id)", "reversed digits": "reverse(id::varchar)::bigint", "hash of the number": "hash(id)",
    "hash of the number as BIGINT": "(hash(id) >> 1)::bigint", "hash of the number, twelve digits": "(hash(id) % 1000000000000)::bigint",
    "MD5 of the number": "md5(id::varchar)", "number in one word": "'P' || id", "constant added in one word": "'P' || (id + 1000)", "followed by two digits": "id || lpad(age::varchar, 2, '0')",
    "number in a list": "[id, 1]", "grouped digits": "format('{:,}', id)",
}  # fmt: skip
PHONES = {
    "no punctuation": "replace(replace(phone, '+', ''), ' ', '')", "dashes": "replace(phone, ' ', '-')", "national": "replace(phone, '+49 ', '0')",
    "national in one word": "replace(replace(phone, '+49 ', '0'), ' ', '')", "other groups": "phone[:6] || ' ' || phone[7:10] || ' ' || phone[11:]",
    "a number": "replace(replace(phone, '+', ''), ' ', '')::bigint",
}  # fmt: skip
DATES = {
    "another type": "born::timestamp", "epoch in seconds": "epoch(born)", "epoch in milliseconds": "epoch_ms(born)", "days": "born - date '1970-01-01'",
    "days of a spreadsheet": "born - date '1899-12-30'", "Julian day": "julian(born)", "age in days": "date '2026-01-01' - born",
    "month in words": "strftime(born, '%B %-d, %Y')", "day first, month in words": "'born ' || strftime(born, '%-d %b %Y')", "points": "strftime(born, '%d.%m.%Y')",
    "points, not padded": "strftime(born, '%-d.%-m.%Y')", "slashes, month first": "strftime(born, '%m/%d/%Y')", "a number": "strftime(born, '%Y%m%d')::integer",
    "two digits of the year": "strftime(born, '%d.%m.%y')", "a list of parts": "[year(born), month(born), day(born)]", "day of the year": "strftime(born, '%Y-%j')",
    "shifted": "born + 100",
}  # fmt: skip
OUT = [
    ("name", "HTML", "replace(name, ' ', '&nbsp;')"), ("name", "initials", "first[1] || last[1]"),
    ("name", "other alphabet by three letters", f"translate(lower(name), '{A}', '{A[3:]}{A[:3]}')"),
    ("name", "MD5 with another text", "md5('salt' || name)"), ("name", "MD5 of two columns", "md5(name || born)"),
    ("id", "bits", "id::bit::varchar"), ("id", "bits changed", "xor(id, 12345)"), ("id", "remainder", "id % 97"),
]  # fmt: skip
FOUND = [
    (column, how, sql)
    for column, every in {"name": NAMES, "id": NUMBERS, "phone": PHONES, "born": DATES}.items()
    for how, sql in every.items()
]
MORE = pytest.mark.campaign
SOME = {
    "last, first in text", "e-mail, initial", "MD5 cut", "hash as BIGINT", "constant added in one word", "halved", "national in one word",
    "month in words", "epoch in seconds",
}  # fmt: skip


@pytest.fixture(scope="module")
def people():
    con = duckdb.connect()
    con.execute(
        f"create table drawn as select i, ({FIRST!r})[i // 15 + 1] as first, ({LAST!r})[i % 15 + 1] as last, "
        "20 + hash(i + 8) % 70 as age, 100000 + i * 97 + hash(i) % 90 as id, date '1940-01-01' + (hash(i + 5) % 25000)::integer as born, "
        "'+49 17' || hash(i + 2) % 10 || ' ' || 1000000 + hash(i + 3) % 8999999 as phone from range(300) t(i)"
    )
    con.execute("create table people as select *, first || ' ' || last as name from drawn")
    yield con
    con.close()


def _table(con: duckdb.DuckDBPyConnection, name: str) -> SourceTable:
    return next(table for table in tables_of(con) if table.name == name)


def _trace(con: duckdb.DuckDBPyConnection, column: str, sql: str, kept: bool) -> str | None:
    """What is found of a transformation: of a column that the original has as well, or under a name of the release."""
    con.execute(f"create or replace table o as select name, id, phone, born, age, {sql} as code from people order by i")
    con.execute(f"comment on column o.{column} is 'anon: identifier'")
    shown = "code" if kept else "code as c"
    con.execute(f"create or replace table r as select age // 10 as ten, {shown} from o where hash(id) % 20 > 0")
    return trace_of(con, _table(con, "r"), _table(con, "o"), [])


@pytest.mark.parametrize(
    ("column", "how", "sql"),
    [pytest.param(*one, id=f"{one[0]}: {one[1]}", marks=() if one[1] in SOME else MORE) for one in FOUND],
)
@pytest.mark.parametrize("kept", [False, True], ids=["renamed", "kept"])
def test_a_transformed_identifier_is_found(people, column, how, sql, kept):
    found = _trace(people, column, sql, kept)
    assert found is not None and f"carries '{column}' of o" in found


@pytest.mark.campaign
@pytest.mark.parametrize(("column", "how", "sql"), OUT, ids=[how for _, how, _ in OUT])
def test_what_the_threat_model_lists_is_not_found(people, column, how, sql):
    assert _trace(people, column, sql, kept=False) is None
    assert len(OUT) <= 8 and len(FOUND) >= 48


IDENTIFIERS = {
    "numbers from one": "i", "sparse numbers": "100000 + i * 97 + hash(i) % 90", "days": "date '1940-01-01' + (hash(i) % 25000)::integer",
    "names": f"({FIRST!r})[(hash(i) % 20 + 1)::integer] || ' ' || ({LAST!r})[(hash(i + 7) % 15 + 1)::integer] || ' ' || hash(i + 9) % 100",
    "numbers with a gap": "if(i < 300, i, 1000000 + i)",
}  # fmt: skip


@pytest.mark.parametrize("table", ["sample", *(pytest.param(one, marks=MORE) for one in ("census", "adult", "visits"))])
@pytest.mark.parametrize("rows", [100, pytest.param(2000, marks=MORE)])
@pytest.mark.parametrize(
    "identifier", [*IDENTIFIERS][:2] + [pytest.param(one, marks=MORE) for one in [*IDENTIFIERS][2:]]
)
def test_no_attribute_is_taken_for_an_identifier(
    con, request, table, rows, identifier
):  # under other names, in texts and lists
    read = "anon_sample('census', 2000, seed := 1)"
    if table != "sample":
        read = f"read_csv('{request.getfixturevalue('shared_data') / table}.csv')"
    con.execute(f"create or replace table t as from {read} limit {rows}")
    columns = [name for name, *_ in con.execute("describe t").fetchall() if name != "person_id"]
    person = "dense_rank() over (order by person_id)" if table == "visits" else "row_number() over ()"
    con.execute(
        f"create or replace table o as select {IDENTIFIERS[identifier]} as id, * from (select {person} as i, * from t)"
    )
    con.execute("comment on column o.id is 'anon: identifier'")
    changed = ", ".join(
        f'"{c}", "{c}" as "x{k}", \'is \' || "{c}" as "t{k}", ["{c}"] as "l{k}"' for k, c in enumerate(columns)
    )
    con.execute(f"create or replace table r as select {changed} from o")
    con.execute("alter table o drop i")
    assert trace_of(con, _table(con, "r"), _table(con, "o"), []) is None


@pytest.fixture(scope="module")
def con():
    with duckdb_anon.connect(":memory:") as con:
        yield con
