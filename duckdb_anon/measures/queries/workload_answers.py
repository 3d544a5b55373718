"""Answers of all queries of a workload at once: true ones from the original, estimates from its release.

A released row is a product of independent parts. Their factors (`duckdb_anon.rewrite.factors`), which answer single
queries, list the values of each distinct cell once, cut where any query of the workload cuts. A query's share of a cell
is the sum of the shares of the values that it asks for; its estimate sums, over the distinct combinations of cells,
weight times the product of these shares. So answers are those of `rewrite.answer` with engine 'closed', which writes a
statement a query: on generalized cells a thousand of them take over a hundred times as long as one pass.
Cost: O(distinct combinations * n * attributes), in batches of queries that bound the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import scipy
from numpy.typing import NDArray

from duckdb_anon.engine.draws.queried_tables import QueriedTables
from duckdb_anon.kernels.cells.table import ReadTable
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.queries.workload import BoolArray, Workload
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats.duckdb_types import is_enum, is_number
from duckdb_anon.model.release_formats.schema import Weight
from duckdb_anon.rewrite.factors import (
    ColumnUse,
    ExactFactor,
    Factor,
    GeneralizedFactor,
    RandomizedFactor,
    SliceFactor,
)
from duckdb_anon.rewrite.interval_factor import IntervalFactor
from duckdb_anon.rewrite.query.tables import contents_of
from duckdb_anon.rewrite.query.trees import quoted
from duckdb_anon.rewrite.release_model import release_model

_BLOCK = 4096
_MOST_SHARES = 16_000_000


@dataclass(frozen=True)
class Part:
    """One independent part of the rows of a table.

    Attributes:
        cell_of_row: number of the cell each row holds.
        shares: each query's share of each cell, shape (cells, n).
        plain: whether queries take all of a cell or nothing: shares are booleans.
    """

    cell_of_row: IntArray
    shares: Callable[[Workload], NDArray[Any]]
    plain: bool

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.cell_of_row.max(initial=-1)) + 1


def true_answers(workload: Workload, original: ReadTable, column: str | None) -> FloatArray:
    """The answers on the original, of COUNT or, with a column, of its SUM; shape (n,)."""
    parts = [
        Part(original.columns[name].value_codes().astype(np.int64), partial(_matched, attribute=attribute), True)
        for attribute, name in enumerate(workload.attributes)
    ]
    weights = np.ones(original.rows)
    if column is not None:
        domain, codes = original.columns[column].domain, original.columns[column].value_codes()
        weights = np.where(codes < domain.special_from, domain.positions[codes], 0.0)
    return _summed(workload, parts, weights)


def _matched(workload: Workload, attribute: int) -> BoolArray:
    return workload.matches[attribute].T


def _summed(workload: Workload, parts: Sequence[Part], weights: FloatArray) -> FloatArray:
    """Sum weight times the product of shares over all rows, for each query; shape (n,).

    Equal rows are added up first. Plain parts are one bit a query: their product is the AND of a few machine words.
    """
    rows = keys_of([part.cell_of_row for part in parts])
    sums = np.bincount(rows.of_row, weights, minlength=rows.number)
    answers = np.zeros(workload.n)
    size = max(16, _MOST_SHARES // max([1, *(part.cells for part in parts if not part.plain)]))
    for start in range(0, workload.n, size):
        batch = _some(workload, slice(start, start + size))
        plain = [(np.packbits(part.shares(batch), axis=1), part.cell_of_row) for part in parts if part.plain]
        others = [(part.shares(batch), part.cell_of_row) for part in parts if not part.plain]
        for at in range(0, rows.number, _BLOCK):
            tick()
            block = rows.first[at : at + _BLOCK]
            bits = np.full((len(block), -(-batch.n // 8)), 255, dtype=np.uint8)
            for table, cell_of_row in plain:
                bits &= table[cell_of_row[block]]
            product = np.unpackbits(bits, axis=1, count=batch.n).astype(np.float64)
            for shares, cell_of_row in others:
                product *= shares[cell_of_row[block]]
            answers[start : start + size] += sums[at : at + _BLOCK] @ product
    return answers


def _some(workload: Workload, which: Any) -> Workload:
    """Some queries of a workload."""
    return replace(workload, used=workload.used[which], matches=tuple(m[which] for m in workload.matches))


def estimated_answers(
    workload: Workload, original: ReadTable, queried: QueriedTables, column: str | None, learnt: bool
) -> FloatArray:
    """Estimate the answers from the release; of the original only the domains of its columns are read."""
    release = _Release(workload, original, queried, column, learnt)
    return _summed(workload, release.parts, release.weights)


class _Release:
    """What a workload reads of a release: the cells of its rows, and what a row adds to an answer.

    Columns are numbered by attribute of the workload. The place of a value is twice its code in the domain of the
    original, one more for what lies between this value and the next, and -1 for what is neither.
    """

    def __init__(
        self, workload: Workload, original: ReadTable, queried: QueriedTables, column: str | None, learnt: bool
    ) -> None:
        self.cursor: Any = queried.cursor
        release, seen = queried.tables["release"], queried.tables["original"]
        model = release_model(release, seen, learnt)
        self._check_weights(model.release, contents_of(release, seen).weights)
        self.ordered = workload.interval
        self.attributes = {fold(name): number for number, name in enumerate(workload.attributes)}
        domains = [original.columns[name].domain for name in workload.attributes]
        self.literals = [domain.literals for domain in domains]
        self.column, weight = "" if column is None else fold(column), model.weight
        read = dict.fromkeys([*self.attributes, *([self.column] if self.column else [])])
        for name in read:
            model.require(name, release.name)
        if self.column and not is_number(seen.types[self.column]):
            raise ColumnError(f"workload_error: column '{column}' holds no numbers to sum")
        exact = model.exact
        if self.column in exact:
            weight = f"{weight} * {_amount(exact[self.column])}"
        factors: list[Factor] = [
            *(ExactFactor(name, (name,), exact[name], model.release) for name in self.attributes if name in exact),
            *(factor for factor in model.factors if factor.counted or read.keys() & set(factor.columns)),
        ]
        ends = {}
        for (name, attribute), domain in zip(self.attributes.items(), domains, strict=True):
            values = domain.values[: domain.special_from] if domain.kind == "ordered" else domain.values
            value = "value" if is_enum(seen.types[name]) else f"try_cast(value as {seen.types[name]}) as value"
            held = pa.table({"code": np.arange(len(values)), "value": values})
            self.cursor.from_arrow(held).project(f"code, {value}").create(f"domain_{attribute}")
            if domain.kind == "ordered" and domain.special_from:
                # where no interval of a column has ends, queries are still about the values of its domain
                ends[name] = domain.literals[0], domain.literals[domain.special_from - 1]
        numbers, joins = "", ""
        for k, factor in enumerate(factors):
            cells = f"select _cell, row_number() over () - 1 as number from ({factor.cells()}) as c"
            self.cursor.execute(f"create table cells_{k} as {cells}")
            numbers += f"c{k}.number as n{k}, "
            joins += f" join cells_{k} as c{k} on {factor.cell} is not distinct from c{k}._cell"
        rows = self._read(f"select {numbers}sum({weight})::double as w from {model.release} as r{joins} group by all")
        self.weights = rows["w"]
        self.parts = [self._part(k, _with_shares(factor, ends), rows[f"n{k}"]) for k, factor in enumerate(factors)]

    def _check_weights(self, release: str, weights: Sequence[Weight]) -> None:
        for weight in weights:
            column = quoted(weight.column)
            found = f"select min({column}), max({column}), count(*) - count({column}) from {release}"
            least, most, missing = self.cursor.execute(found).fetchall()[0]
            wrong = "" if least is None else weight.wrong(least, most)
            if missing:
                wrong = f"column {weight.column} of the release contains NULL, so the weights of these rows are unknown"
            if wrong:
                raise ColumnError(f"workload_error: {wrong}")

    def _read(self, sql: str) -> Mapping[str, NDArray[Any]]:
        found: Mapping[str, NDArray[Any]] = self.cursor.execute(sql).fetchnumpy()
        return found

    def _part(self, k: int, factor: Factor, cell_of_row: IntArray) -> Part:
        attributes = [self.attributes[column] for column in factor.columns if column in self.attributes]
        if isinstance(factor, ExactFactor):
            exact = self._values(k, factor, 0, None)
            of_cell = exact[f"p{attributes[0]}"][np.argsort(exact["number"])]
            return Part(cell_of_row, lambda batch: _asked(batch, attributes[0])[of_cell], True)

        def shares(batch: Workload) -> FloatArray:
            values = self._values(k, factor, part.cells, batch)
            places = [np.zeros_like(values["number"]), *(values[f"p{attribute}"] for attribute in attributes)]
            distinct = keys_of(places)
            asked = np.ones((distinct.number, batch.n), dtype=bool)
            for attribute, place in zip(attributes, places[1:], strict=True):
                asked &= _asked(batch, attribute)[place[distinct.first]]
            shape = part.cells + 1, distinct.number
            found: FloatArray = (
                scipy.sparse.csr_matrix((values["share"], (values["number"], distinct.of_row)), shape) @ asked
            )
            found += found[-1].copy()  # what all cells have
            return found[:-1]

        part = Part(cell_of_row, shares, False)
        return part

    def _values(self, k: int, factor: Factor, every: int, batch: Workload | None) -> Mapping[str, NDArray[Any]]:
        """Each value of the cells of factor k: cell, places of its attributes, share; amount where a sum is of it.

        Cell `every` has what is the same for all cells.
        """
        uses, places, joins, share = {}, "", "", "v._share"
        for column in factor.columns:
            if column in self.attributes:
                attribute = self.attributes[column]
                constants = () if batch is None else _constants(batch, attribute, self.literals[attribute])
                uses[column] = ColumnUse(constants, amounts=column == self.column)
                place, join = self._place(attribute, f"v.{quoted(column)}")
                places, joins = f"{places}, {place} as p{attribute}", joins + join
            if column == self.column:
                uses.setdefault(column, ColumnUse())
                share = f"v._share * {_amount(f'v.{quoted(column)}')}"
        if isinstance(factor, RandomizedFactor):
            listed = _inverted(factor, k, every)
        else:
            of_cell = f"join cells_{k} as c on l._cell is not distinct from c._cell"
            listed = f"select c.number, l.* from ({factor.listing(uses)}) as l {of_cell}"
        return self._read(
            f"select v.number{places}, sum({share})::double as share from ({listed}) as v{joins} group by all"
        )

    def _place(self, attribute: int, value: str) -> tuple[str, str]:
        """SQL of the place of a value, and the join that it needs."""
        code, known = f"d{attribute}.code", f"d{attribute}.value"
        join = f"left join domain_{attribute} as d{attribute} on {value}"
        if self.ordered[attribute]:
            return f"coalesce(2 * {code} + ({value} > {known})::integer, -1)", f" asof {join} >= {known}"
        return f"coalesce(2 * {code}, -1)", f" {join} = {known}"


def _inverted(factor: RandomizedFactor, k: int, every: int) -> str:
    """SELECT number, value, share of a randomized column: the same of every value for all cells, and more of its own.

    Pairs of cells and values would be millions.
    """
    column, domain = quoted(factor.columns[0]), f"({factor.domain()}) as v"
    other = "case when size > 1 then (p - 1) / (p * size - 1) else 0 end"
    own = f"{domain} join cells_{k} as c on v.value is not distinct from c._cell"
    return (
        f"select c.number, v.value as {column}, 1 - size * {other} as _share from {own} "
        f"union all select {every}, v.value, {other} from {domain}"
    )


def _with_shares(factor: Factor, ends: Mapping[str, tuple[str, str]]) -> Any:
    """A factor with the learnt shares of its cells, those of its fields for a slice; `ends` are those of columns."""
    if isinstance(factor, SliceFactor):
        return replace(factor, generalized=tuple(_with_shares(field, ends) for field in factor.generalized))
    if isinstance(factor, IntervalFactor):
        factor = replace(factor, outermost=ends.get(factor.columns[0]))
    if isinstance(factor, GeneralizedFactor) and (learnt := factor.learnt_shares()):
        return replace(factor, shares=f"({learnt})")
    return factor


def _amount(value: str) -> str:
    """What a value adds to a sum: nothing if it is NULL or not finite."""
    return f"case when isfinite(({value})::double) then ({value})::double else 0 end"


def _asked(workload: Workload, attribute: int) -> BoolArray:
    """Whether queries ask for a place, or have no predicate on the attribute; shape (places, n), that of -1 is last."""
    matches = workload.matches[attribute].T
    found = np.zeros((2 * len(matches) + 1, workload.n), dtype=bool)
    found[:-1:2] = matches
    if workload.interval[attribute]:
        found[1:-2:2] = matches[:-1] & matches[1:]
    return found | ~workload.used[:, attribute]


def _constants(workload: Workload, attribute: int, literals: Sequence[str]) -> tuple[str, ...]:
    """What queries compare an attribute with: the ends of intervals, or each value."""
    matches = workload.matches[attribute][workload.used[:, attribute]]
    if workload.interval[attribute]:
        inside = np.zeros_like(matches)
        inside[:, 1:-1] = matches[:, :-2] & matches[:, 2:]
        matches = matches & ~inside
    return tuple(literals[code] for code in np.flatnonzero(matches.any(axis=0)).tolist())
