"""What a release promises, proved again from its rows and the original's: nothing of the package is used here.

Both tables are first copied under plain names: o(rn, q0, q1, ..., s0, ..., x0, ...) and r, the same columns as they
were released, with `rn` the number of the source row.
"""

from collections.abc import Mapping
from math import log
from typing import Any

import duckdb

from tests.fuzz.tables import Table, quoted


class Broken(AssertionError):
    """A promise that is not kept."""


def copied(con: duckdb.DuckDBPyConnection, table: Table, release: str) -> dict[str, str]:
    """Make o and r, and return the types of r's columns by their plain names."""
    plain: dict[str, str] = {}
    for letter, role in (("q", "quasi"), ("s", "sensitive"), ("x", "insensitive"), ("h", "identifier")):
        plain |= {column.name: f"{letter}{k}" for k, column in enumerate(table.of(role))}
    chosen = ", ".join(f"{quoted(name)} as {short}" for name, short in plain.items())
    con.execute(f"""create or replace temp table o as select row_number() over () - 1 as rn, {chosen}
        from {quoted(table.name)}""")
    displayed = {row[0]: row[1] for row in con.execute(f"describe {release}").fetchall()}
    renamed = {
        name: plain.get(name, {"row_id_" if "row_id_" in displayed else "row_id": "rn"}.get(name, ""))
        for name in displayed
    }
    for name, kind in displayed.items():
        if not renamed[name] and not kind.startswith("STRUCT"):
            renamed[name] = "own_" + name.rstrip("_")
    for name in [column.name for column in table.columns if column.role in ("identifier", "unlabelled", "person")]:
        if name in displayed and name not in plain and not renamed[name].startswith("own_") and renamed[name] != "rn":
            raise Broken(f"the column {name}, which nobody asked for, is released")
    chosen = ", ".join(f"{quoted(name)} as {short}" for name, short in renamed.items() if short)
    con.execute(f"create or replace temp table r as select {chosen} from {release}")
    hidden = [short for name, short in renamed.items() if short.startswith("h")]
    if hidden:
        raise Broken(f"identifiers are released: {hidden}")
    return {short: displayed[name] for name, short in renamed.items() if short}


def none(con: duckdb.DuckDBPyConnection, promise: str, sql: str) -> None:
    """Raise unless a count of violations is nought."""
    found = con.execute(sql).fetchone()
    if found is None or found[0] != 0:
        raise Broken(f"{promise}: {found[0] if found else 'nothing'} violations")


def quasi(table: Table) -> list[str]:
    """Plain names of the quasi-identifiers."""
    return [f"q{k}" for k in range(len(table.of("quasi")))]


def rows_kept(con: duckdb.DuckDBPyConnection, types: Mapping[str, str], exact: str) -> None:
    """Each source row comes once, and its columns that begin with a letter of `exact` are as they were."""
    none(con, "a source row comes twice", "select count(*) - count(distinct rn) from r")
    none(con, "rows of nowhere", "select count(*) from r where rn not in (select rn from o) or rn is null")
    for name in types:
        if name[0] in exact and name[1:].isdigit():
            differ = f"r.{name} is distinct from o.{name}"
            none(con, f"{name} kept", f"select count(*) from r join o using (rn) where {differ}")


def all_rows(con: duckdb.DuckDBPyConnection) -> None:
    """No row is left out."""
    none(con, "rows are left out", "select (select count(*) from o) - (select count(*) from r)")


def in_box(name: str) -> str:
    """Whether an interval of r has the value of o; one without ends has any."""
    return f"""((r.{name} is null and o.{name} is null) or (r.{name} is not null and r.{name}.lower is null)
        or (o.{name} between r.{name}.lower and r.{name}.upper))"""


def covered(con: duckdb.DuckDBPyConnection, table: Table, types: Mapping[str, str], by: str = "rn") -> None:
    """Each generalized cell covers the value of its row."""
    for k, column in enumerate(table.of("quasi")):
        name, kind = f"q{k}", types[f"q{k}"]
        if column.tree:
            holds = f"""exists (from {quoted(column.tree)} h where h.leaf = o.{name} and r.{name}::varchar in
                (h.leaf::varchar, h.middle, h.root)) or (o.{name} is null and r.{name} in ('(null)', '<any>'))"""
        elif kind.endswith("[]") and kind != con.execute(f"select typeof({name}) from o limit 1").fetchone()[0]:
            holds = f"len(list_filter(r.{name}, lambda x: x is not distinct from o.{name})) > 0"
        elif kind.startswith("STRUCT(lower "):
            holds = in_box(name)
        else:
            raise Broken(f"{name} is released as {kind}, which is no box")
        none(con, f"{name} covered", f"select count(*) from r join o using ({by}) where not coalesce({holds}, false)")


def classes(con: duckdb.DuckDBPyConnection, table: Table, params: Mapping[str, Any], measured: str = "r") -> None:
    """Every class of equal quasi-identifiers has k rows, l diversity of each sensitive column, and is t-close."""
    qi = ", ".join(quasi(table))
    if k := params.get("k"):
        none(con, "k", f"select count(*) from (select count(*) as n from {measured} group by {qi}) where n < {k}")
        if table.of("person"):
            who = f"{quoted(table.of('person')[0].name)} as own_person, row_number() over () - 1 as rn"
            none(con, "k persons", f"""select count(*) from (select count(distinct own_person) as n from {measured}
                join (select {who} from {quoted(table.name)}) using (rn) group by {qi}) where n < {k}""")  # fmt: skip
    sensitive = range(len(table.of("sensitive")))
    for s in sensitive if params.get("l") or params.get("t") is not None else ():
        cells = f"with cells as (select {qi}, s{s} as s, count(*) as m from {measured} group by all)"
        if level := params.get("l"):
            diversity = params.get("diversity", "frequency")
            wrong = {
                "frequency": f"top * {level} > n", "distinct": f"d < {level}",
                "entropy": f"h / n + ln(n) < ln({level}) - 1e-9",
            }[diversity]  # fmt: skip
            none(con, f"{diversity} l of s{s}", f"""{cells}, found as (select sum(m) as n, count(*) as d, max(m) as top,
                -sum(m * ln(m)) as h from cells group by {qi}) select count(*) from found where {wrong}""")  # fmt: skip
        if params.get("t") is not None and params.get("distance") == "equal":
            same = " and ".join(f"grid.{q} is not distinct from cells.{q}" for q in quasi(table))
            far = con.execute(f"""{cells}, c as (select {qi}, sum(m) as n, row_number() over () as c from cells group by {qi}),
                whole as (select s{s} as s, count(*) / (select count(*) from {measured}) as p from {measured} group by s{s}),
                grid as (from c, whole), far as (select c, sum(abs(coalesce(m, 0) / n - p)) / 2 as d from grid
                left join cells on grid.s is not distinct from cells.s and {same} group by c)
                select max(d) from far""").fetchone()
            if far is None or far[0] > params["t"] + 1e-9:
                raise Broken(f"t of s{s}: {far[0] if far else None} is above {params['t']}")


def meets(con: duckdb.DuckDBPyConnection, table: Table, params: Mapping[str, Any]) -> bool:
    """Whether the whole table as one class meets what is asked; not where persons count, of whom more is asked."""
    if table.of("person"):
        return False
    rows = con.execute("select count(*) from o").fetchone()[0]
    if rows < params.get("k", 1):
        return False
    for s in range(len(table.of("sensitive"))):
        top, distinct, entropy = con.execute(f"""select max(m), count(*), ln(sum(m)) - sum(m * ln(m)) / sum(m)
            from (select count(*) as m from o group by s{s})""").fetchone()
        level = params.get("l", 1)
        checked = {"frequency": top * level <= rows, "distinct": distinct >= level, "entropy": entropy >= log(level)}
        if not checked[params.get("diversity", "frequency")]:
            return False
    return True


def same_histograms(con: duckdb.DuckDBPyConnection, letters: str, types: Mapping[str, str]) -> None:
    """Each column has the values it had, as often."""
    for name in types:
        if name[0] in letters and name[1:].isdigit():
            before, after = (f"select {name} as v, count(*) as n from {t} group by v" for t in "or")
            none(con, f"histogram of {name}", f"""select count(*) from ({before}) a full join ({after}) b
                on a.v is not distinct from b.v where a.n is distinct from b.n""")  # fmt: skip


def buckets(con: duckdb.DuckDBPyConnection, table: Table, params: Mapping[str, Any]) -> None:
    """Anatomy: l rows and no share above 1/l in a bucket; its MAP is the histogram of its rows."""
    level, sizes = params["l"], "select own_bucket as b, count(*) as n, count(distinct s0) as d from r group by b"
    none(con, "l rows", f"select count(*) from ({sizes}) where n < {level}")
    none(con, "one MAP", f"select count(*) from ({sizes}) where d <> 1")
    none(con, "shares of a bucket", f"""select count(*) from (select unnest(map_values(s0)) as m, own_bucket as b from r)
        join ({sizes}) using (b) where m * {level} > n""")  # fmt: skip
    none(con, "the MAP of a bucket", """with told as (select b, unnest(map_keys(s)) as v, unnest(map_values(s)) as m from
            (select own_bucket as b, any_value(s0) as s from r group by b)),
        truth as (select own_bucket as b, o.s0 as v, count(*) as m from r join o using (rn) where o.s0 is not null group by all)
        select count(*) from truth left join told using (b, v) where truth.m is distinct from told.m""")  # fmt: skip


def _fields(kind: str) -> list[tuple[str, str]]:
    return [(name, str(inner)) for name, inner in duckdb.sqltype(kind).children]


def _told(value: str, kind: str) -> str:
    """A value as text: Python takes infinite dates for finite ones; -0.0 is 0.0."""
    return f"({value} + 0)::varchar" if kind in ("FLOAT", "DOUBLE") else f"{value}::varchar"


def sliced(
    con: duckdb.DuckDBPyConnection, table: Table, release: str, params: Mapping[str, Any], with_fakes: bool
) -> None:
    """No sensitive value has a share above 1/l in what a record may have; fields keep their values (slicing)."""
    sensitive = table.of("sensitive")[0].name
    displayed = [(row[0], row[1]) for row in con.execute(f"describe {release}").fetchall()]
    chosen = [
        "{" + ", ".join(f"{quoted(f)}: {_told(f'{quoted(name)}.{quoted(f)}', k)}" for f, k in _fields(kind)) + "}"
        if kind.startswith("STRUCT") else quoted(name)
        for name, kind in displayed
    ]  # fmt: skip
    rows = con.execute(f"select {', '.join(chosen)} from {release}").fetchall()
    position = {name: k for k, (name, _) in enumerate(displayed)}
    remaining = {column.name for column in table.of("insensitive")}
    slices = [k for k, (name, kind) in enumerate(displayed) if kind.startswith("STRUCT") and name not in remaining]
    bucket = next(position[name] for name in ("bucket", "bucket_") if name in position and position[name] not in slices)
    expected = next(k for k in slices if any(row[k] and sensitive in row[k] for row in rows))
    members: dict[Any, list[Any]] = {}
    for row in rows:
        members.setdefault(row[bucket], []).append(row)
    if with_fakes:
        for number, checked in members.items():
            counts: dict[str, int] = {}
            for row in checked:
                counts[repr(row[expected][sensitive])] = counts.get(repr(row[expected][sensitive]), 0) + 1
            if max(counts.values()) * params["l"] > len(checked):
                raise Broken(f"a value has {max(counts.values())} of {len(checked)} rows of bucket {number}")
        return
    # p(t, B) is the product of the shares of the record's slices in B; p(s | t, B) the share of s among the cells of the
    # sensitive slice that agree with the record (Li et al. 2012, section 4)
    header = [column.name for column in table.columns]
    chosen = [_told(quoted(column.name), column.type.upper()) for column in table.columns]
    first = con.execute(f"select {', '.join(chosen)} from {quoted(table.name)}").fetchall()
    fields = {
        k: [name for name in (next(row[k] for row in rows if row[k] is not None)) if name != sensitive] for k in slices
    }
    cells = {b: {k: [row[k] for row in holding] for k in slices} for b, holding in members.items()}
    for record in {repr(row): row for row in first}.values():
        value = dict(zip(header, record, strict=True))
        chance: dict[str, float] = {}
        total = 0.0
        for checked in cells.values():
            share, agreeing = 1.0, list(checked[expected])
            for k in slices:
                agree = [c for c in checked[k] if all(repr(c[f]) == repr(value[f]) for f in fields[k])]
                share *= len(agree) / len(checked[k])
                agreeing = agree if k == expected else agreeing
            total += share
            for cell in agreeing:
                key = repr(cell[sensitive])
                chance[key] = chance.get(key, 0.0) + share / len(agreeing)
        if total and max(chance.values()) > total / params["l"] * (1 + 1e-9):
            raise Broken(f"a record is linked to a value with probability {max(chance.values()) / total}")


def persons(con: duckdb.DuckDBPyConnection, table: Table, params: Mapping[str, Any], by_class: bool) -> None:
    """A row a person; classes of k persons (`by_class`), or k persons with each list and no list above 1/l in a class."""
    who = f"(select count(distinct {quoted(table.of('person')[0].name)}) from {quoted(table.name)})"
    none(con, "a row a person", f"select {who} - (select count(*) from r)")
    qi, lists = ", ".join(quasi(table)), ", ".join(f"s{k}" for k in range(len(table.of("sensitive"))))
    alike = f"select count(*) as n from r group by {qi if by_class else lists}"
    none(con, "k", f"select count(*) from ({alike}) where n < {params['k']}")
    if not by_class:
        none(con, "l of lists", f"""with cells as (select {qi}, {lists}, count(*) as m from r group by all)
            select count(*) from (select sum(m) as n, max(m) as top from cells group by {qi}) where top * {params["l"]} > n""")  # fmt: skip


def made(con: duckdb.DuckDBPyConnection, types: Mapping[str, str]) -> None:
    """Rows are those of no record, and have the types of the original."""
    none(con, "rows of a record", "select count(*) from r where rn >= 0")
    original = {row[0]: row[1] for row in con.execute("describe o").fetchall()}
    differ = [name for name, kind in types.items() if name in original and name != "rn" and original[name] != kind]
    if differ:
        raise Broken(f"types are not those of the original: {differ}")


def noise(con: duckdb.DuckDBPyConnection, table: Table, types: Mapping[str, str]) -> None:
    """Counts are whole, and every row of the original is in a cell of its own sensitive value."""
    if types.get("own_noisy_count") != "BIGINT":
        raise Broken(f"noisy counts are {types.get('own_noisy_count')}")
    holds = ["r.s0 is not distinct from o.s0"] if not table.of("sensitive")[0].tree else ["true"]
    for name, column in zip(quasi(table), table.of("quasi"), strict=True):
        if column.tree or types[name] == "VARCHAR":
            return
        listed = f"len(list_filter(r.{name}, lambda x: x is not distinct from o.{name})) > 0"
        holds.append(in_box(name) if types[name].startswith("STRUCT(lower ") else listed)
    none(con, "a row that no cell covers", f"""select count(*) from (select o.rn, count(r.own_noisy_count) as n from o
        left join r on {" and ".join(holds)} group by o.rn) where n = 0""")  # fmt: skip
