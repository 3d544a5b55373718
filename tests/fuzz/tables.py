"""Random tables: every type, hostile names and values, with roles, and trees for some columns."""

import random
from dataclasses import dataclass, field

SECRET = "zq7secret"
"""Part of many values; no message may hold it."""
NAMES = (
    "age", "Sex", "*", 'a"b', "it's", "select", "FROM", "a b", "x.y", "é", "naïve ß", "😀", "{0}", "%s", "$1", "--", "/*x*/",
    ";", "new\nline", "tab\t", "NULL", "true", "rowid", "row_id", "rn", "c0", "x0", "n", "i", "leaf", "lower", "upper",
    "bucket", "rr", "noisy_count", "sampling_rate", "suppressed", "retention", "tbl", "qi", "k", "original", "release", "estimate", "a:=b", "\\", "count(*)", "group_id", "domain", "p", " ", "ÀÉ", "1",
    "column", "excluded", "x" * 70, "struct", "s", "a,b", "()", "[1]", "'", '"', "anon: quasi", "\u0131", "K\u212a",
)  # fmt: skip
RESERVED = ("_anon_rn", "_anon_v0", "_anon_given")
TABLES = (
    "people", "Patients", 'o"dd', "it's", "two words", "select", "dotted.name", "ünï", "😀", "t-1", "123", "read_csv", "p;q",
)  # fmt: skip
VALUES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"), "tinyint": ("-128", "127", "0", "1", "5"),
    "smallint": ("-32768", "32767", "0", "7"), "integer": ("-2147483648", "2147483647", "0", "1", "40", "41"),
    "bigint": ("-9223372036854775808", "9223372036854775807", "0", "9007199254740993", "9007199254740992"),
    "hugeint": ("-170141183460469231731687303715884105728", "170141183460469231731687303715884105727", "0", "3"),
    "utinyint": ("0", "255", "9"), "uinteger": ("0", "4294967295", "9"),
    "ubigint": ("0", "18446744073709551615", "18446744073709551614", "2"),
    "uhugeint": ("0", "3", "170141183460469231731687303715884105727", "340282366920938463463374607431768211455"),
    "float": ("0.1", "-0.0", "0.0", "'nan'", "'inf'", "'-inf'", "3.4e38", "16777217"),
    "double": ("0.1", "-0.0", "0.0", "'nan'", "'inf'", "'-inf'", "1e308", "-1e308", "5e-324", "5.0"),
    "decimal(4,1)": ("0", "-999.9", "999.9", "0.5"), "decimal(18,3)": ("0", "-0.001", "999999999999999.999", "5"),
    "decimal(38,10)": ("0", "-1234567890123456789012345678.0123456789", "5.5"),
    "varchar": ("'flu'", "'FLU'", "''", "' '", "'it''s'", "'a\"b'", "'{}'", "'NULL'", "'é'", "'e\u0301'",
     "'zq7secret one'", "'zq7secret two'", "'zq7secret\nthree'", "'<!--<script>'", "'😀'", "'*'", "'0'",
     "'{lower: 1, upper: 2}'", "'[x]'", "repeat('zq7secret', 40)"),
    "blob": ("'\\x00\\xFF'", "''", "'zq7secret'", "'ab'"), "bit": ("'0'", "'1'", "'10101'", "'0101'"),
    "date": ("'1970-01-01'", "'0001-01-01'", "'9999-12-31'", "'infinity'", "'-infinity'", "'2020-02-29'"),
    "time": ("'00:00:00'", "'23:59:59.999999'", "'12:00:00'"),
    "timetz": ("'00:00:00+00'", "'12:00:00+02'", "'10:00:00+00'"),
    "timestamp": ("'1970-01-01'", "'2020-01-01 12:30:00.5'", "'infinity'", "'0044-03-15 (BC)'", "'294246-01-01'"),
    "timestamp_s": ("'1970-01-01'", "'2020-01-01 12:30:00'", "'2020-01-01 12:30:01'"),
    "timestamp_ms": ("'1970-01-01'", "'2020-01-01 12:30:00.5'"),
    "timestamp_ns": ("'1970-01-01'", "'2020-01-01 12:30:00.123456789'", "'2020-01-01 12:30:00.123456788'"),
    "timestamptz": ("'1970-01-01 00:00:00+00'", "'2020-01-01 12:30:00+05'", "'infinity'"),
    "interval": ("'1 day'", "'24 hours'", "'1 month'", "'30 days'", "'-1 year'"),
    "uuid": ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
     "'7fffffff-ffff-ffff-ffff-ffffffffffff'"),
    "enum('low', 'high', 'zq7secret nobody', 'a''b')": ("'low'", "'high'", "'a''b'"),
    "integer[]": ("[1, 2]", "[]", "[2, 1]", "[null]"), "varchar[]": ("['x']", "['zq7secret']", "[]"),
    "integer[2]": ("[1, 2]", "[2, 1]"),
    "struct(x integer, y varchar)": ("{x: 1, y: 'zq7secret'}", "{x: null, y: null}", "{x: 2, y: 'b'}"),
    "struct(lower integer, upper integer)": ("{lower: 1, upper: 2}", "{lower: 3, upper: 3}"),
    "map(varchar, bigint)": ("map {'a': 1}", "map {}", "map {'b': 2}"),
    "union(num integer, str varchar)": ("union_value(num := 1)", "union_value(str := 'x')"),
}  # fmt: skip
PLAIN = ("integer", "varchar", "boolean", "date", "double", "decimal(18,3)", "bigint")
"""What half of all columns are: the kernels see more of them than of refusals by type."""
NESTED = ("interval", "timetz", *(kind for kind in VALUES if kind[-1] in "])" and kind[0] not in "de"))


@dataclass
class Column:
    """A column: its name, its type as it is declared, and its role; `tree` names a hierarchy."""

    name: str
    type: str
    role: str
    tree: str = ""


@dataclass
class Table:
    """A random table and the statements that make it, its trees and, where it is labelled, its comments."""

    name: str
    columns: list[Column]
    rows: int
    labelled: bool
    statements: list[str] = field(default_factory=list)

    def of(self, role: str) -> list[Column]:
        """The columns with a role."""
        return [column for column in self.columns if column.role == role]

    @property
    def argument(self) -> str:
        """The table as a text for a function."""
        return text(quoted(self.name))


def quoted(name: str) -> str:
    """An identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text constant."""
    return "'" + value.replace("'", "''") + "'"


def names(columns: list[Column]) -> str:
    """A list of names as a constant."""
    return "[" + ", ".join(text(column.name) for column in columns) + "]"


def _type(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return rng.choice(PLAIN)
    return rng.choice(NESTED if rng.random() < 0.05 else [kind for kind in VALUES if kind not in NESTED])


def random_table(rng: random.Random, with_persons: bool = False) -> Table:
    """Draw a table with 1 to 4 quasi-identifiers, mostly one sensitive column, and a few others."""
    roles = ["quasi"] * rng.choice((1, 1, 2, 2, 3, 4)) + ["sensitive"] * rng.choice((1,) * 10 + (0, 2))
    roles += ["insensitive"] * rng.choice((0, 0, 1)) + ["identifier"] * rng.choice((0, 0, 1)) + ["unlabelled"]
    if with_persons:
        roles.append("person")
    chosen: dict[str, str] = {}
    while len(chosen) < len(roles):
        name = rng.choice(RESERVED if rng.random() < 0.005 else NAMES)
        chosen.setdefault(name.lower(), name)
    rng.shuffle(roles)
    columns = [Column(name, _type(rng), role) for name, role in zip(chosen.values(), roles, strict=True)]
    rows = rng.choice((1, 2, 5, 8, 13, 30, 60, 60, 60, 150, 150))
    table = Table(rng.choice(TABLES), columns, rows, labelled=rng.random() < 0.6)
    declared, drawn = [], []
    for column in columns:
        if column.role == "person":
            column.type = rng.choice(("integer", "varchar"))
            pool = [f"'{SECRET} {k}'" if column.type == "varchar" else str(k) for k in range(max(rows // 2, 1))]
        else:
            pool = list(VALUES[column.type])
            pool = rng.sample(pool, rng.randint(1, len(pool)))
            if rng.random() < 0.25:
                pool += ["null"]
        shares = [rng.random() ** 2 + 0.01 for _ in pool]
        declared.append(f"{quoted(column.name)} {column.type}")
        drawn.append([f"cast({value} as {column.type})" for value in rng.choices(pool, shares, k=rows)])
    sql = quoted(table.name)
    table.statements = [
        f"create or replace table {sql} ({', '.join(declared)})",
        f"insert into {sql} values " + ", ".join(f"({', '.join(row)})" for row in zip(*drawn, strict=True)),
    ]
    for number, column in enumerate(columns):
        if column.role in ("quasi", "sensitive") and rng.random() < (0.7 if with_persons else 0.15):
            column.tree = f"tree {number}" if rng.random() < 0.3 else f"tree_{number}"
            leaf = quoted(column.name)
            table.statements.append(
                f"create or replace table {quoted(column.tree)} as select distinct {leaf} as leaf, "
                f"'<g' || (hash({leaf}) % 2) || '>' as middle, '<any>' as root from {sql} where {leaf} is not null"
            )
    if table.labelled:
        for column in columns:
            if column.role != "unlabelled":
                tree = f" hierarchy={quoted(column.tree)}" if " " in column.tree else f" hierarchy={column.tree}"
                message = text(f"anon: {column.role}{tree if column.tree else ''}")
                table.statements.append(f"comment on column {sql}.{quoted(column.name)} is {message}")
    return table
