"""From a bound query over the original to the query that estimates its answer from the release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.rewrite.query.layout import laid_out
from duckdb_anon.rewrite.query.outputs import leftmost, outputs
from duckdb_anon.rewrite.query.parse import bound, grounded, parse, require_table
from duckdb_anon.rewrite.query.spelling import spell
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.select import reads_original, rewrite_select
from duckdb_anon.rewrite.shapes.released_parts import model_of


@dataclass(frozen=True)
class Estimate:
    """A rewritten query.

    Attributes:
        tree: its output columns are the query's own, then low and high of each bounded measure.
        bounded: number of each output column that has low and high, and their confidence: 1 for hard bounds.
    """

    tree: exp.Query
    bounded: Mapping[int, float] = field(default_factory=dict)


def estimator(tree: exp.Query, release: TableInfo, tables: Sequence[TableInfo], bounds: Bounds = "none") -> Estimate:
    """Rewrite a bound query.

    Args:
        tree: the query, as `parse.bound` returns it.
        release: the release of the original.
        tables: the original first, then other tables of the query.
        bounds: which low and high to add to each measure of the outermost SELECT that has them.

    Raises:
        RewriteError: naming what cannot be estimated.
    """
    original = tables[0]
    model = model_of(release, original)
    tree = tree.copy()
    bounded: dict[int, float] = {}
    readers = [select for select in tree.find_all(exp.Select, bfs=False) if reads_original(select)]
    # a condition that compares with an estimate moves with it, so it has no bounds of its own
    bounds = bounds if len(readers) == 1 else "none"
    for select in reversed(readers):
        found = rewrite_select(select, model, original, bounds if select is tree else "none")
        bounded = found if select is tree else bounded
    tree = grounded(tree, [release, *tables[1:]])
    spell(tree, [column for table in (release, *tables) for column, _ in table.columns])
    return Estimate(tree, bounded)


def rewrite(
    query: str,
    original: TableInfo,
    release: TableInfo,
    tables: Sequence[TableInfo] = (),
    bounds: Bounds = "none",
) -> str:
    """Rewrite a query's text; the output columns keep their names.

    Args:
        query: one SELECT over the original.
        original: the original, under the name the query uses.
        release: its release.
        tables: other tables the query reads, as far as the planner can see them.
        bounds: other than 'none', append `<name>_low` and `<name>_high` for each aggregate that has them.

    Raises:
        RewriteError: naming what cannot be estimated.

    Example:
        >>> people = TableInfo("people", (("age", "INTEGER"),))
        >>> boxes = TableInfo("boxes", (("age", "STRUCT(lower INTEGER, upper INTEGER)"),))
        >>> "greatest" in rewrite("SELECT count(*) FROM people WHERE age < 30", people, boxes)
        True
    """
    written = parse(query)
    require_table(written, original)
    everything = (original, *tables)
    tree = bound(written, everything)
    names = [column.name for column in outputs(written, tree, everything)]
    estimate = estimator(tree, release, everything, bounds)
    _rename(leftmost(estimate.tree), names, estimate.bounded)
    return laid_out(estimate.tree)


def _rename(select: exp.Select, names: Sequence[str], bounded: Iterable[int]) -> None:
    """Give output columns the names the analyst gave them; ORDER BY follows."""
    ends = [f"{names[number]}_{end}" for number in bounded for end in ("low", "high")]
    renamed: dict[str, str] = {}
    for projection, name in zip(select.expressions, [*names, *ends], strict=False):
        if isinstance(projection, exp.Alias):
            renamed[projection.alias] = name
            projection.set("alias", exp.to_identifier(name, quoted=True))
    order = select.args.get("order")
    for column in list(order.find_all(exp.Column)) if order else []:
        if not column.table and column.name in renamed:
            column.replace(exp.column(renamed[column.name], quoted=True))
