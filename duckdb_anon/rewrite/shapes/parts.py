"""The independent parts of a released row, and the tables a rewritten query reads them through.

A part is one cell, or one attribute group, of a released row. It can list the values its cell may stand for:

    values: cell, one column an original column, weight      (one row a distinct cell and value)

Everything an estimator needs follows from that table: the share of a cell that satisfies a condition, the
mean of an expression over it, whether some or all of its values satisfy a condition. Parts that know a closed
form (intervals) skip the list. Both tables are as large as the distinct cells, never as the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import every, name, select, taken, tree, truth
from duckdb_anon.rewrite.query.walking import all_of

ROW = name("r")
SUBQUERIES = (exp.Query, exp.Any, exp.All)
"""What DuckDB reads as subqueries: any(list) and all(list) are some."""
Wanted = Literal["mean", "possible", "certain", "least", "most", "fewest"]


@dataclass(frozen=True)
class Request:
    """Something a query wants to know of each cell.

    `mean` is the expected value, 0 where the condition fails (the share when there is no value); `possible`
    and `certain` say whether some or all values satisfy the condition; `least` and `most` bound the value
    where the condition holds; `fewest` is how many original rows surely satisfy it, of cells that stand for several.
    Conditions and values name original columns without a table.
    """

    wanted: Wanted
    condition: exp.Expr | None = None
    value: exp.Expr | None = None

    @property
    def label(self) -> str:
        """What the column that answers it is called."""
        if self.wanted != "mean":
            return self.wanted
        return "share" if self.value is None else "expected"


@dataclass(frozen=True)
class Part:
    """One independent part of a released row.

    Attributes:
        name: tells it from the other parts, and names its steps.
        columns: original columns it covers, in lower case.
        key: what tells its cells apart, over a row of the release.
        release: the release.
        signed: weights may be negative (inverted randomization), so that shares give no bounds.
        even: the values of a cell weigh the same, and `values` has no weight.
        counted: the weights of a cell add up to how many original rows it stands for, instead of one; the
            part then takes part in every query.
    """

    name: str
    columns: tuple[str, ...]
    key: exp.Expr
    release: TableInfo
    signed: bool = False
    counted: bool = False
    even: ClassVar[bool] = False

    def values(self, used: Sequence[str]) -> exp.Select:
        """SELECT cell, the used columns, weight (unless `even`): one row a distinct cell and value.

        Args:
            used: columns that are needed; a superset is fine.
        """
        raise NotImplementedError

    def shares(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select:
        """SELECT cell and one column a request: one row a distinct cell.

        Args:
            requests: what is asked.
            labels: the columns' names, own ones.
        """
        used = [c for c in self.columns if any(c in columns_asked(r) for r in requests)]
        return shares_of_values(self.values(used), requests, labels, self.counted, self.even)

    def tallied(self, used: Sequence[str], conditions: Sequence[exp.Expr]) -> exp.Select | None:
        """SELECT cell, the used columns, and how many rows there are of them: one row a cell and different values.

        Args:
            used: columns that are needed.
            conditions: what values must satisfy, over the columns.

        Returns:
            None for parts whose cells are no buckets of rows, or hold other values than they show.
        """
        return None

    def of_row(self, request: Request, share: exp.Column) -> exp.Expr | None:
        """What a request asks for, over one row of the release; None where it takes the list of values.

        Args:
            request: what is asked.
            share: column of `told` that belongs to it.
        """
        return None

    def of_rows(self, request: Request) -> exp.Expr | None:
        """The sum of `of_row` over rows, where it takes less than `of_row` of each; None elsewhere.

        Args:
            request: what is asked.
        """
        return None

    def told(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select | None:
        """SELECT one row that `of_row` reads beside each row of the release, None where there is nothing to tell.

        Args:
            requests: what is asked.
            labels: the columns' names, own ones.
        """
        return None

    def ends(self, cell: exp.Expr, read: Collection[str]) -> list[exp.Expr]:
        """Columns that `of_row` and `opened` read beside a cell.

        Args:
            cell: the cell.
            read: the own names that are read; others are left out.
        """
        return []

    def opened(self, cell: exp.Expr) -> exp.Expr | None:
        """The list of the values of a cell, where all are as likely; None for parts whose `values` are joined.

        Args:
            cell: the cell.
        """
        return None

    def unlisted(self, values: exp.Expr) -> exp.Expr:
        """One row a value of what `opened` lists.

        Args:
            values: the list.
        """
        return tree("unnest({values})", values=values)

    def size(self, cell: exp.Expr) -> exp.Expr | None:
        """How many values `opened` lists; None where the list must be counted.

        Args:
            cell: the cell.
        """
        return None

    def weight(self, cell: exp.Expr) -> exp.Expr | None:
        """What each value that `opened` lists weighs before it is divided by `size`, one row a value; None for 1.

        Args:
            cell: the cell.
        """
        return None

    @property
    def total(self) -> exp.Expr | None:
        """What the weights of a cell's values add up to, a column of `values`; None where they must be added up."""
        return None

    @property
    def cell(self) -> exp.Expr:
        """What `opened` reads, over a row of the release."""
        return self.key

    @property
    def alone(self) -> bool:
        """Whether the values of each released row are listed for itself, not once for all rows of equal cells."""
        return False

    def boundable(self, value: exp.Expr) -> bool:
        """Whether the least and the most that a value of the part can be are known in every cell."""
        return True

    def steps(self) -> list[tuple[exp.Identifier, exp.Query]]:
        """CTEs that the part's other tables read."""
        return []

    def cells(self) -> exp.Select:
        """SELECT DISTINCT cell."""
        return select("select distinct {key} as _cell from {release}", key=self.key, release=self.source())

    def source(self) -> exp.Expr:
        """The release as a FROM item."""
        return aliased(self.release, ROW)


def shares_of_values(
    values: exp.Select, requests: Sequence[Request], labels: Sequence[str], counted: bool = False, even: bool = False
) -> exp.Select:
    """SELECT cell and one column a request, from a list of values.

    Args:
        values: SELECT of the values.
        requests: what is asked.
        labels: names of the answers.
        counted: whether values have counts.
        even: whether all are as likely.
    """
    answers = [labelled(answer(r, counted, even), label) for r, label in zip(requests, labels, strict=True)]
    return select("select _cell, {answers} from {values} group by _cell", answers=answers, values=values)


def aliased(info: TableInfo, alias: exp.Identifier) -> exp.Expr:
    """A table as a FROM item under another name; the text that follows FROM stays as it is."""
    return exp.Table(this=exp.Var(this=info.sql), alias=exp.TableAlias(this=name(alias.this.lstrip("\0"))))


def plainly(info: TableInfo) -> exp.Expr:
    """A table as a FROM item without another name."""
    return exp.Table(this=exp.Var(this=info.sql))


def labelled(node: exp.Expr, label: str) -> exp.Expr:
    """An output column with one of the rewriter's own names."""
    return exp.Alias(this=node, alias=name(label))


def answer(request: Request, counted: bool = False, even: bool = False) -> exp.Expr:
    """The aggregate over a cell's values that answers a request.

    Args:
        request: what is asked.
        counted: whether values have counts.
        even: whether all are as likely.
    """
    condition, value = request.condition, request.value
    where = condition if condition is not None else truth(True)
    if request.wanted == "possible":
        return tree("coalesce(bool_or({where}), false)", where=where)
    if request.wanted == "certain":
        return tree("bool_and({where} is true)", where=where)
    if request.wanted == "mean" and even:
        if value is None:
            return tree("{there} / count(*)", there=filtered(tree("count(*)"), condition))
        total = tree("coalesce({total}, 0)", total=filtered(tree("sum({value})", value=value), condition))
        return tree("{total} / count(*)", total=total)
    if request.wanted == "mean":
        amount = tree("_weight") if value is None else tree("_weight * {value}", value=value)
        total = tree("coalesce({total}, 0)", total=filtered(tree("sum({amount})", amount=amount), condition))
        return total if counted else tree("{total} / sum(_weight)", total=total)
    pick = "min({value})" if request.wanted == "least" else "max({value})"
    assert value is not None  # noqa: S101 -- least and most are asked of a value
    return filtered(tree(pick, value=value), condition)


def value_if(request: Request) -> exp.Expr:
    """What one value adds to the mean that a request asks for, before it is weighted."""
    condition = request.condition if request.condition is not None else truth(True)
    if request.value is None:
        return tree("case when {condition} then 1 else 0 end", condition=condition)
    return tree("coalesce(case when {condition} then {value} end, 0)", condition=condition, value=request.value)


def filtered(aggregate: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """An aggregate over the rows that satisfy a condition."""
    if condition is None or (isinstance(condition, exp.Boolean) and condition.this):
        return aggregate
    return exp.Filter(this=taken(aggregate), expression=exp.Where(this=taken(condition)))


def listable(column: str, why: str) -> RewriteError:
    """The error for a column whose values cannot be listed."""
    return RewriteError(
        f"column '{column}' holds intervals of a continuous type, whose values cannot be listed; {why}. "
        "Compare it with constants (<, <=, >, >=, BETWEEN), take its SUM or AVG, or ask for a column with a "
        "countable domain"
    )


def same(a: exp.Expr, b: exp.Expr) -> exp.Expr:
    """Equal, or both NULL."""
    return tree("{a} is not distinct from {b}", a=a, b=b)


def all_same(pairs: Sequence[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
    """Each equal, or both NULL."""
    return every([same(a, b) for a, b in pairs])


def columns_asked(request: Request) -> set[str]:
    """The columns that a request speaks of, folded.

    Args:
        request: what is asked.
    """
    pieces = [one for one in (request.condition, request.value) if one is not None]
    return {fold(c.name) for one in pieces for c in all_of(one, exp.Column) if not c.table}
