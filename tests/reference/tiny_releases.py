"""One tiny original and a release of it in every shape, read by plain loops over the printed rows.

Released row i comes from original row i. `expected` says what a release tells of values, `covers` and `carried` what an
attacker sees in one printed row.
"""

import itertools
from collections import defaultdict
from typing import Any

import duckdb

from tests.reference.answers import dicts

Row = dict[str, Any]
Table = dict[tuple[Any, ...], float]
A, G, S = (1, 2, 3, 4), ("F", "M"), ("cold", "flu")
ORIGINAL = [
    (1, "F", "flu"), (1, "M", "cold"), (2, "F", "cold"), (2, "M", "flu"),
    (3, "F", "flu"), (3, "F", "cold"), (4, "M", "flu"), (4, "M", "flu"),
]  # fmt: skip
BOXES = [
    ((1, 2), ["F", "M"], "flu"), ((1, 2), ["F", "M"], "cold"), ((1, 2), ["F", "M"], "cold"), ((1, 2), ["F", "M"], "flu"),
    ((3, 4), ["F"], "flu"), ((3, 4), ["F"], "cold"), ((4, 4), ["M"], "flu"), ((4, 4), ["M"], "flu"),
]  # fmt: skip
ROWS = [(2, "F", "flu"), (1, "M", "cold"), (1, "F", "cold"), (2, "M", "flu"), *ORIGINAL[4:]]


def _box(low: int, high: int) -> str:
    return f"{{lower: {low}, upper: {high}}}"


def _boxes(extra: str, boxes: list[Any] = BOXES) -> str:
    return " union all ".join(f"select {_box(*a)} as a, {g} as g, '{s}' as s{extra}" for a, g, s in boxes)


def _plain(extra: str) -> str:
    return " union all ".join(f"select {a} as a, '{g}' as g, '{s}' as s{extra}" for a, g, s in ROWS)


RELEASES = {
    "rows": _plain(""),
    "boxes": _boxes(""),
    "sampled": _boxes(", 0.5::double as sampling_rate", BOXES[:6]),
    "suppressed": _boxes(", 2::bigint as suppressed", BOXES[:6]),
    "retained": _boxes(", 0.5::double as retention"),
    "counts": " union all ".join(
        f"select {_box(low, low + 1)} as a, '{g}' as g, '{s}' as s, {n}::double as noisy_count"
        for (low, g, s), n in zip(
            itertools.product((1, 3), G, S), (1.5, -0.5, 2.0, 1.0, 0.75, 0.0, 3.0, 1.25), strict=True
        )
    ),
    "buckets": " union all ".join(
        f"select {a} as a, '{g}' as g, {i // 4}::bigint as bucket, "
        f"{('map([$$flu$$, $$cold$$], [2::bigint, 2])', 'map([$$flu$$, $$cold$$], [3::bigint, 1])')[i // 4]} as s"
        for i, (a, g, _) in enumerate(ORIGINAL)
    ),
    "sliced": " union all ".join(
        f"select {i // 4}::bigint as bucket, {{a: {a}, g: '{g}'}} as a_g, {{s: '{ORIGINAL[i ^ 1][2]}'}} as s"
        for i, (a, g, _) in enumerate(ORIGINAL)
    ),
    "randomized": _plain(
        ", {g: {p: 0.75::double, domain: ['F', 'M']}, s: {p: 0.875::double, domain: ['cold', 'flu']}} as rr"
    ),
}
NAMES = tuple(RELEASES)


def expected(shape: str, rows: list[Row]) -> Table:
    """Expected number of original rows with each (a, g, s)."""
    found: Table = defaultdict(float)
    share = {s: sum(row["s"] == s for row in rows) / len(rows) for s in S} if shape == "retained" else {}
    for row in rows:
        if shape == "sliced":
            mates = [other for other in rows if other["bucket"] == row["bucket"]]
            for other in mates:
                found[row["a_g"]["a"], row["a_g"]["g"], other["s"]["s"]] += 1 / len(mates)
            continue
        weight = {
            "sampled": lambda row: 1 / row["sampling_rate"],
            "suppressed": lambda row: 1 + row["suppressed"] / len(rows),
            "counts": lambda row: row["noisy_count"],
        }.get(shape, lambda row: 1.0)(row)
        for a, p in values_of(row["a"]).items():
            for g, q in (_inverted(row, "g", G) if shape == "randomized" else values_of(row["g"])).items():
                secret = _inverted(row, "s", S) if shape == "randomized" else values_of(row["s"])
                if shape == "retained":
                    secret = {s: ((s == row["s"]) - (1 - row["retention"]) * share[s]) / row["retention"] for s in S}
                for s, r in secret.items():
                    found[a, g, s] += weight * p * q * r
    return found


def values_of(cell: Any) -> dict[Any, float]:
    """Values a cell may stand for."""
    if isinstance(cell, dict) and "lower" in cell:
        cell = list(range(cell["lower"], cell["upper"] + 1))
    if isinstance(cell, dict):
        return {value: count / sum(cell.values()) for value, count in cell.items()}
    cell = cell if isinstance(cell, list) else [cell]
    return {value: 1 / len(cell) for value in cell}


def _inverted(row: Row, name: str, domain: tuple[str, ...]) -> dict[Any, float]:
    """Column of the inverse of [[p, 1-p], [1-p, p]] that belongs to the released value."""
    p = row["rr"][name]["p"]
    return {value: (p if value == row[name] else p - 1) / (2 * p - 1) for value in domain}


def printed(con: duckdb.DuckDBPyConnection, shape: str) -> list[Row]:
    return dicts(con, f"from {shape}_release")


def fill(con: duckdb.DuckDBPyConnection) -> None:
    """Make the original `tiny`, and of each shape a release, bare and with the rows' own numbers."""
    con.execute("create table tiny(a integer, g varchar, s varchar)")
    con.executemany("insert into tiny values (?, ?, ?)", ORIGINAL)
    for column, role in {"a": "quasi", "g": "quasi", "s": "sensitive"}.items():
        con.execute(f"comment on column tiny.{column} is 'anon: {role}'")
    for shape, sql in RELEASES.items():
        con.execute(f"create table {shape}_release as {sql}")
        con.execute(f"create table {shape}_linked as select *, row_number() over () - 1 as row_id from {shape}_release")


def cell(row: Row, name: str) -> Any:
    """A printed cell, out of its slice."""
    if name in ("a", "g") and "a_g" in row:
        return row["a_g"][name]
    return row["s"]["s"] if name == "s" and "a_g" in row else row[name]


def covers(row: Row, name: str, value: Any) -> bool:
    """Whether a printed cell may stand for a value."""
    return value in values_of(cell(row, name))


def carried(row: Row, value: str) -> float:
    """The share of a row that carries a sensitive value."""
    return values_of(cell(row, "s")).get(value, 0.0)
