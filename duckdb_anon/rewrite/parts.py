"""The independent parts of a released row, and the tables a rewritten query reads them through.

A part is one cell, or one attribute group, of a released row. It can list the values its cell may stand for:

    values: cell, one column an original column, weight      (one row a distinct cell and value)

Everything an estimator needs follows from that table: the share of a cell that satisfies a condition, the
mean of an expression over it, whether some or all of its values satisfy a condition. Parts that know a closed
form (intervals) skip the list. Both tables are as large as the distinct cells, never as the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.parse import source_of, to_sql
from duckdb_anon.rewrite.schema import TableInfo

ROW = "_r"
Wanted = Literal["mean", "possible", "certain", "least", "most"]


@dataclass(frozen=True)
class Request:
    """Something a query wants to know of each cell.

    `mean` is the expected value, 0 where the condition fails (the share when there is no value); `possible`
    and `certain` say whether some or all values satisfy the condition; `least` and `most` bound the value
    where the condition holds. Conditions and values name original columns without a table.
    """

    wanted: Wanted
    condition: exp.Expr | None = None
    value: exp.Expr | None = None

    @property
    def text(self) -> str:
        """Equal for equal requests."""
        pieces = [to_sql(e, pretty=False) if e is not None else "" for e in (self.condition, self.value)]
        return " | ".join([self.wanted, *pieces])


@dataclass(frozen=True)
class Part:
    """One independent part of a released row.

    Attributes:
        name: stem of its tables' names.
        columns: original columns it covers, in lower case.
        key: SQL that tells its cells apart, over a release row `_r`.
        release: the release.
        signed: weights may be negative (inverted randomization), so that shares give no bounds.
        counted: the weights of a cell add up to how many original rows it stands for, instead of one; the
            part then takes part in every query.
    """

    name: str
    columns: tuple[str, ...]
    key: str
    release: TableInfo
    signed: bool = False
    counted: bool = False

    def values(self, used: Sequence[str]) -> exp.Select:
        """SELECT cell, the used columns, weight: one row a distinct cell and value.

        Args:
            used: columns that are needed; a superset is fine.
        """
        raise NotImplementedError

    def shares(self, requests: Sequence[Request]) -> exp.Select:
        """SELECT cell, s1, s2, ...: one row a distinct cell, one column a request."""
        used = [c for c in self.columns if any(c in _columns(r) for r in requests)]
        answers = [exp.alias_(answer(r, self.counted), f"s{i}") for i, r in enumerate(requests, 1)]
        source = self.values(used).subquery("_v")
        return exp.select("_cell", *answers).from_(source).group_by("_cell")

    def cells(self) -> exp.Select:
        """SELECT DISTINCT cell."""
        return exp.select(f"{self.key} as _cell").distinct().from_(self.source())

    def source(self) -> exp.Expr:
        """The release as a FROM item called `_r`."""
        return aliased(self.release, ROW)


def aliased(info: TableInfo, name: str) -> exp.Expr:
    """A table as a FROM item under another name."""
    source = source_of(info)
    source.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    return source


def quoted(name: str) -> str:
    """Quote a column or table name."""
    return exp.to_identifier(name, quoted=True).sql("duckdb")


def answer(request: Request, counted: bool = False) -> exp.Expr:
    """The aggregate over a cell's values that answers a request."""
    condition, value = (to_sql(e, pretty=False) if e is not None else None for e in _both(request))
    where = f" filter (where {condition})" if condition else ""
    over = "" if counted else " / sum(_weight)"
    if request.wanted == "mean":
        amount = "_weight" if value is None else f"_weight * ({value})"
        text = f"coalesce(sum({amount}){where}, 0){over}"
    elif request.wanted == "possible":
        text = f"coalesce(bool_or({condition}), false)"
    elif request.wanted == "certain":
        text = f"bool_and(({condition}) is true)"
    else:
        text = f"{'min' if request.wanted == 'least' else 'max'}({value}){where}"
    return parsed(text)


def parsed(text: str) -> exp.Expr:
    """Parse an expression of DuckDB SQL."""
    return exp.maybe_parse(text, dialect="duckdb")


def listable(column: str, why: str) -> RewriteError:
    """The error for a column whose values cannot be listed."""
    return RewriteError(
        f"column '{column}' holds intervals of a continuous type, whose values cannot be listed; {why}. "
        "Compare it with constants (<, <=, >, >=, BETWEEN), take its SUM or AVG, or ask for a column with a "
        "countable domain"
    )


def _columns(request: Request) -> set[str]:
    found = set()
    for one in _both(request):
        if one is not None:
            found |= {c.name.lower() for c in one.find_all(exp.Column) if not c.table}
    return found


def _both(request: Request) -> tuple[exp.Expr | None, exp.Expr | None]:
    return request.condition, request.value
