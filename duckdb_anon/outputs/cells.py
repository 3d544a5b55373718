"""What a query answers from the original, and what the rules need to know of each value: computed by DuckDB.

One SELECT computes the statistics of each group beside the number of its individuals, their largest contributions to a
sum, and those outside it. Where a person column is labelled, a person's rows are summed first. Records without a person
are one individual. Cost: the query, once more for each person column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from duckdb_anon.engine.arrow import batches
from duckdb_anon.model.errors import AnonError, cause_of
from duckdb_anon.model.quoting import ident
from duckdb_anon.outputs.block import EXTREMES, Aggregate, Block
from duckdb_anon.outputs.cell_key import noise_of_count, noise_of_sum, record_key, uniform
from duckdb_anon.outputs.ledger import Rows
from duckdb_anon.outputs.policy import Policy

_ROW = "_anon_row"
_FAILED = "the query cannot be computed on this table; DuckDB's message is left out, as it may quote values"


@dataclass(frozen=True)
class Group:
    """What is known of the rows of a group for which a condition holds."""

    individuals: int
    rows: int  # of these individuals
    outside: int  # individuals with records of the group for which the condition does not hold
    most_rows: int  # most rows that an individual has


@dataclass(frozen=True)
class Contributions:
    """Contributions of individuals to a sum, as amounts without sign."""

    largest: tuple[float, ...]  # as many as the rules ask for, largest first
    total: float


@dataclass
class Row:
    """A row of the answer before rules."""

    grouping: int  # bits of the keys that it sums over, the last key's bit the lowest
    keys: tuple[str | None, ...]
    groups: list[Group]  # by condition
    others: int  # individuals of the query with records outside this row; of one without groups, of the table
    contributions: dict[tuple[int, str], Contributions]  # by condition and magnitude
    shared: dict[int, bool]  # of each smallest or largest value: whether enough individuals have it
    values: list[str | None]  # of each item of the answer, as text
    statistics: list[str | None]  # of each aggregate
    rules: list[str] = field(default_factory=list)  # of each aggregate, the rule that it breaks; '' for none

    @cached_property
    def grouped(self) -> tuple[int, ...]:
        """Keys of its grouping set."""
        last = len(self.keys) - 1
        return tuple(key for key in range(last + 1) if not self.grouping >> (last - key) & 1)


@dataclass(frozen=True)
class Atoms:
    """Rows that no cell of an answer divides: those with the same keys, for which the same conditions hold."""

    keys: list[tuple[str | None, ...]]
    holds: NDArray[np.bool_]  # atoms x conditions
    rows: NDArray[np.float64]
    sums: dict[str, NDArray[np.float64]]  # of each magnitude


def compute(
    con: duckdb.DuckDBPyConnection, function: str, block: Block, policy: Policy, secret: str = ""
) -> tuple[list[Row], Atoms, Rows]:
    """The rows of an answer, its atoms with what they add to counts and sums, and the rows of the whole table.

    Args:
        con: a connection to the database of the original, in a transaction.
        function: name of the function, for errors.
        block: the query.
        policy: says how many contributions are needed.
        secret: of record keys; '' for values without noise.

    Raises:
        AnonError: DuckDB cannot compute the query; its message is not shown, since it may quote values.
    """
    writer = _Writer(block, policy, secret)
    try:
        found = con.execute(writer.sql()).fetchall()
        table = batches(con, writer.rows_sql(), 1 << 24).read_all()  # a copy less than in small batches
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise AnonError(f"{function}: {_FAILED}", code="query-failed") from cause_of(error)
    columns = {name: table.column(name).combine_chunks().to_numpy() for name in table.column_names}
    atoms = [values[1:] for values in found if values[0] is not None]
    labels = _labels(columns["_c"], np.array([values[0] for values in found if values[0] is not None], np.uint64))
    if labels is None:
        raise AnonError(f"{function}: {_FAILED}", code="query-failed")
    magnitudes = {name: columns[f"_m{place}"] for place, name in enumerate(writer.magnitudes)}
    count = len(atoms) + 1
    keys, conditions = len(block.keys), len(block.conditions)
    return (
        [writer.row(values[1 + conditions :]) for values in found if values[0] is None],
        Atoms(
            [values[conditions + 1 : conditions + 1 + keys] for values in atoms],
            np.array([values[:conditions] for values in atoms], bool).reshape(-1, conditions),
            np.bincount(labels, minlength=count)[1:].astype(float),
            {name: np.bincount(labels, each, count)[1:].astype(float) for name, each in magnitudes.items()},
        ),
        Rows(columns["_h"], labels, columns.get("_u"), magnitudes),
    )


def _labels(codes: NDArray[np.uint64], atoms: NDArray[np.uint64]) -> NDArray[np.int64] | None:
    """The atom of each row from its code, counted from 1; 0 of rows with the code 0. None where one has none."""
    names = np.concatenate([np.zeros(1, np.uint64), atoms])
    for bits in (16, 22):  # a table of the first bits is faster than a search, and mostly they differ
        places = names >> np.uint64(64 - bits)
        if len(np.unique(places)) == len(names):
            table = np.zeros(1 << bits, np.int64)
            table[places] = np.arange(len(names))
            labels = table[codes >> np.uint64(64 - bits)]
            break
    else:
        order = np.argsort(names)
        labels = order[np.minimum(np.searchsorted(names[order], codes), len(names) - 1)]
    return labels if bool((names[labels] == codes).all()) else None


def checksum_sql(block: Block) -> str:
    """SELECT of the checksum of the table as a transaction sees it."""
    return f"select count(*) || ':' || coalesce(sum(hash({_ROW})), 0) % {1 << 64} from {block.table.sql} as {_ROW}"


def checksum_of(rows: Rows) -> str:
    """The same of rows that were read."""
    return f"{len(rows.hashes)}:{int(rows.hashes.sum(dtype=np.uint64))}"


def columns_of(con: duckdb.DuckDBPyConnection, function: str, block: Block) -> list[tuple[str, str]]:
    """Names and types of the columns of the answer, as DESCRIBE of the query gives them."""
    try:
        rows = con.execute(f"describe {block.text}").fetchall()
    except duckdb.Error as error:
        raise AnonError(f"{function}: {_FAILED}", code="query-failed") from cause_of(error)
    return [(row[0], row[1]) for row in rows]


@dataclass
class _Writer:
    """Writes the SELECT of a block and reads its rows."""

    block: Block
    policy: Policy
    secret: str = ""

    def __post_init__(self) -> None:
        block = self.block
        self.keys = [f"_k{place}" for place in range(len(block.keys))]
        self.conditions = range(len(block.conditions))
        aggregates = enumerate(block.aggregates)
        self.sums = list(dict.fromkeys((a.condition, a.measured) for a in block.aggregates if a.measured))
        self.extremes = [place for place, a in aggregates if a.function in EXTREMES]
        self.contributions = max(self.policy.largest, 2)
        # aggregates leave out NULLs by themselves
        self.only = {a.condition: f" filter (_p{a.condition})" * bool(a.filter) for a in block.aggregates}
        self.magnitudes = list(dict.fromkeys(str(name) for _, name in self.sums))

    def sql(self) -> str:
        """One row a group: NULLs, grouping, keys, then what `row` reads; and one an atom, with its code and flags."""
        steps = [self._base()]
        steps += self._of_persons() if self.block.table.person is not None else self._of_rows()
        flags = [f"_f{j}" for j in self.conditions]
        code = f"case when _t = 0 then hash({', '.join([*self.keys, *flags])}) end"
        select = [code, *flags, "_g", *(f"{key}::varchar" for key in self.keys), *self._known(), *self._items()]
        if self.secret:
            steps += self._noise()
        return f"with {', '.join(steps)} select {', '.join(select)} from {'_z' if self.secret else '_r'} order by all"

    def _noise(self) -> list[str]:
        """Values with noise by the keys of cells: first the numbers in [0, 1), then the aggregates."""
        policy, is_row = self.policy, self.block.table.person is None
        how = (policy.variance, policy.deviation)
        numbers = [f"{uniform(f'_y{j}', 'count')} as _uc{j}" for j in self.conditions]
        numbers += [f"{uniform(f'_ys{n}', f'sum {name}')} as _us{n}" for n, (_, name) in enumerate(self.sums)]
        counts = [f"(_n{j} + {noise_of_count(f'_n{j}', f'_uc{j}', *how)})::bigint" for j in self.conditions]
        rows = counts if is_row else [
            f"greatest(round(_r{j} + {noise_of_sum(f'_uc{j}', *how)} * _m{j}), 0)::bigint"
            for j in self.conditions
        ]  # fmt: skip
        found = []
        for place, a in enumerate(self.block.aggregates):
            value = counts[a.condition] if a.fraction else rows[a.condition]
            if a.measured is not None:
                n = self.sums.index((a.condition, a.measured))
                total = f"_d{n} + {noise_of_sum(f'_us{n}', *how)} * _t{n}[1]"
                value = total if a.function == "sum" else f"({total}) / nullif({value}, 0)"
            found.append(f"coalesce({value}, 0) as _a{place}" if a.function == "count" else f"{value} as _a{place}")
        return [
            f"_e as (select *, {', '.join(numbers)} from _r)",
            f"_z as (select * replace ({', '.join(found)}) from _e)",
        ]

    def rows_sql(self) -> str:
        """The rows of the table in its order: hash of the content, code of the atom, person, and magnitudes."""
        block = self.block
        code = f"hash({', '.join([*(key.sql for key in block.keys), *self._flags()])})"
        if block.where.sql:
            code = f"case when {block.where.sql} then {code} else 0::ubigint end"
        found = [f"hash({_ROW}) as _h", f"{code} as _c"]
        if block.table.person is not None:
            found.append(f"hash({ident(block.table.person)}) as _u")
        found += [f"coalesce({ident(name)}::double, 0) as _m{place}" for place, name in enumerate(self.magnitudes)]
        return f"select {', '.join(found)} from {block.table.sql} as {_ROW}"

    def _flags(self) -> list[str]:
        return [f"coalesce({each.sql}, false)" if each.sql else "true" for each in self.block.conditions]

    def _base(self) -> str:
        """The rows of the query: keys, truth of conditions, columns of aggregates and the person."""
        block, keys = self.block, self.keys
        names = dict.fromkeys(name for a in block.aggregates for name in a.arguments)
        base = [f"{key.sql} as {name}" for key, name in zip(block.keys, keys, strict=True)]
        base += [f"{flag} as _p{j}" for j, flag in enumerate(self._flags())]
        base += [ident(name) for name in names]
        person = block.table.person
        if person is not None:
            base.append(f"{ident(person)} as _u")
        elif self.secret:
            base.append(f"{record_key(self.secret, f'hash({_ROW})')} as _y")
        where = f" where {block.where.sql}" if block.where.sql else ""
        return f"_b as (select {', '.join(base)} from {block.table.sql} as {_ROW}{where})"

    def _sets(self, *extra: str) -> str:
        """GROUP BY over the grouping sets, with further columns in each."""
        sets = [[*(self.keys[k] for k in chosen), *extra] for chosen in self.block.sets]
        if not extra:  # the atoms
            sets.append([*self.keys, *(f"_p{j}" for j in self.conditions)])
        texts = (f"({', '.join(each)})" for each in sets)
        return f"group by grouping sets ({', '.join(texts)})"

    def _grouping(self) -> str:
        return f"grouping({', '.join(self.keys)})" if self.keys else "0"

    def _grouped(self) -> list[str]:
        """What every group has: grouping, keys, and whether it is an atom (`_t` is 0), with its flags."""
        flags = (f"_p{j} as _f{j}" for j in self.conditions)
        return [f"{self._grouping()} as _g", *self.keys, "grouping(_p0) as _t", *flags]

    def _aggregates(self) -> list[str]:
        return [f"{self._aggregate(a)} as _a{place}" for place, a in enumerate(self.block.aggregates)]

    def _aggregate(self, aggregate: Aggregate) -> str:
        arguments = ", ".join(map(ident, aggregate.arguments)) or "*"
        if aggregate.fraction == "individuals":
            arguments = "distinct _u"
        elif aggregate.fraction:
            arguments += f", {aggregate.fraction}"
        return f"{aggregate.function}({arguments}){self.only[aggregate.condition]}"

    def _of_rows(self) -> list[str]:
        """Groups of a table of which each row is an individual."""
        found = [*self._grouped(), *self._aggregates()]
        for j in self.conditions:
            found.append(f"count(*){f' filter (_p{j})' * (j > 0)} as _n{j}")
            found += [f"sum(_y) filter (_p{j}) as _y{j}"] * bool(self.secret)
        for place, (j, name) in enumerate(self.sums):
            size = f"abs({ident(str(name))}::double)"
            found.append(f"max({size}, {self.contributions}){self.only[j]} as _t{place}")
            found.append(f"sum({size}){self.only[j]} as _s{place}")
            if self.secret:
                found.append(f"sum({ident(str(name))}::double) filter (_p{j}) as _d{place}")
                found.append(f"sum(_y) filter (_p{j} and {ident(str(name))} <> 0) as _ys{place}")
        for place in self.extremes:
            a = self.block.aggregates[place]
            found.append(
                f"{a.function}({ident(a.arguments[0])}, {self.policy.threshold}) filter (_p{a.condition}) as _x{place}"
            )
        return [f"_r as (select {', '.join(found)} from _b {self._sets()})"]

    def _of_persons(self) -> list[str]:
        """Groups of a table with several rows of an individual: what a person contributes comes first."""
        inner = [f"{self._grouping()} as _g", *self.keys, "_u"]
        outer: list[str] = []
        key = record_key(self.secret, "hash(_u)")
        for j in self.conditions:
            inner.append(f"count(*) filter (_p{j}) as _c{j}")
            outer += [f"count(*) filter (_c{j} > 0) as _n{j}", f"count(*) filter (_c0 > _c{j}) as _o{j}"]
            outer += [f"max(_c{j}) as _m{j}", f"sum(_c{j}) as _r{j}"]
            outer += [f"sum({key}) filter (_c{j} > 0) as _y{j}"] * bool(self.secret)
        for place, (j, name) in enumerate(self.sums):
            inner.append(f"sum({ident(str(name))}::double) filter (_p{j}) as _s{place}")
            outer.append(f"max(abs(_s{place}), {self.contributions}) as _t{place}")
            outer.append(f"sum(abs(_s{place})) as _s{place}")
            if self.secret:
                outer += [f"sum(_s{place}) as _d{place}", f"sum({key}) filter (_s{place} <> 0) as _ys{place}"]
        for place in self.extremes:
            a = self.block.aggregates[place]
            inner.append(f"{a.function}({ident(a.arguments[0])}) filter (_p{a.condition}) as _x{place}")
            outer.append(f"{a.function}(_x{place}, {self.policy.threshold}) as _x{place}")
        keys = ", ".join(["_g", *self.keys])
        joined = " and ".join(f"_v.{key} is not distinct from _w.{key}" for key in ["_g", *self.keys])
        return [
            f"_v as (select {', '.join([*self._grouped(), *self._aggregates()])} from _b {self._sets()})",
            f"_i as (select {', '.join(inner)} from _b {self._sets('_u')})",
            "_j as (select *, sum(_c0) over (partition by _g, _u) as _every from _i)",
            f"_w as (select {', '.join([keys, *outer, 'count(*) filter (_c0 = _every) as _inside'])} from _j "
            f"group by {keys})",
            f"_r as (select _v.*, _w.* exclude ({keys}) from _v left join _w on _v._t = 1 and {joined})",
        ]

    def _known(self) -> list[str]:
        """Columns of what the rules ask for."""
        found = []
        is_row = self.block.table.person is None
        for j in self.conditions:
            found += [f"coalesce(_n{j}, 0)", f"_n0 - _n{j}" if is_row else f"coalesce(_o{j}, 0)"]
            found += [f"_n{j}", "1"] if is_row else [f"coalesce(_r{j}, 0)", f"coalesce(_m{j}, 0)"]
        found.append(self._others())
        for place, _ in enumerate(self.sums):
            found += [f"_t{place}", f"_s{place}"]
        most = self.policy.threshold
        found += [f"len(_x{place}) >= {most} and _x{place}[{most}] = _x{place}[1]" for place in self.extremes]
        return found

    def _others(self) -> str:
        """Individuals outside a row: in other rows of the same grouping set, or rows that WHERE leaves out."""
        table, where, person = self.block.table, self.block.where.sql, self.block.table.person
        unit = "count(*)" if person is None else _individuals(ident(person))
        left = f"(select {unit} from {table.sql} where {where} is not true)" if where else "0"
        inside = "sum(_n0) over (partition by _g, _t) - _n0"
        if person is not None:
            inside = f"(select {_individuals('_u')} from _b) - coalesce(_inside, 0)"
        return f"case when ({inside}) > 0 then {inside} else {left} end"

    def _items(self) -> list[str]:
        """Values of the answer and of each aggregate, as text."""
        found = []
        for item in self.block.items:
            if item.key is not None:
                found.append(f"{self.keys[item.key]}::varchar")
            elif item.grouping:
                bits = (f"((_g >> {len(self.keys) - 1 - k}) & 1) << {len(item.grouping) - 1 - place}"
                        for place, k in enumerate(item.grouping))  # fmt: skip
                found.append(f"({' + '.join(f'({bit})' for bit in bits)})::varchar")
            else:
                found.append(f"try(({item.sql})::varchar)")
        return [*found, *(f"_a{place}::varchar" for place, _ in enumerate(self.block.aggregates))]

    def row(self, values: tuple[Any, ...]) -> Row:
        """A row of the answer."""
        rest = iter(values)
        grouping, keys = next(rest), tuple(next(rest) for _ in self.keys)
        known = [[int(next(rest)) for _ in range(4)] for _ in self.conditions]
        others = next(rest)
        groups = [Group(n, rows, outside, most) for n, outside, rows, most in known]
        sums = {key: _contributions(rest) for key in self.sums}
        shared = {place: bool(next(rest)) for place in self.extremes}
        items = [next(rest) for _ in self.block.items]
        return Row(int(grouping), keys, groups, int(others or 0), sums, shared, items, list(rest))


def _individuals(column: str) -> str:
    """SQL of the number of individuals; records without a name are one."""
    return f"(count(distinct {column}) + coalesce(max(({column} is null)::int), 0))"


def _contributions(rest: Iterator[Any]) -> Contributions:
    largest, total = next(rest), next(rest)
    return Contributions(tuple(map(float, largest or ())), float(total or 0))
