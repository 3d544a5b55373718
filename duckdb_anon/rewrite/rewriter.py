"""The SQL text that estimates a query's answer, with the query's own columns: what `rewrite_query` and servers run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import is_integer
from duckdb_anon.model.released_columns import Spread
from duckdb_anon.rewrite.answer import WIDE, Answer, Question, answer
from duckdb_anon.rewrite.marks import PICKED
from duckdb_anon.rewrite.query.keys import require_keys_alone
from duckdb_anon.rewrite.query.parse import read_query, unique_names, with_values
from duckdb_anon.rewrite.query.pivots import LookUp
from duckdb_anon.rewrite.query.prepare import answers_of, is_count
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.trees import all_of, laid_out, leftmost, readable
from duckdb_anon.rewrite.query.trees import tree as fill


def rewrite(
    query: str,
    original: TableInfo,
    release: TableInfo,
    tables: Sequence[TableInfo] = (),
    bounds: Bounds = "none",
    round_counts: bool = False,
    spread: Spread = "uniform",
    notes: list[str] | None = None,
    noted: bool = False,
) -> str:
    """Rewrite a query's text; the output columns keep their names.

    Args:
        query: one SELECT over the original.
        original: the original, under the name the query uses.
        release: its release.
        tables: other tables the query reads, as far as the planner can see them.
        bounds: other than 'none', append `<name>_low` and `<name>_high` for each aggregate that has them, and a column
            `note` that names those that are wider than the answer.
        round_counts: let answers have the types they have on the original: counts and sums of whole numbers are whole.
        spread: how the rows of a generalized cell are spread over its values: 'learnt' takes functions of this
            package.
        notes: what is to be said of the answer is added to it.
        noted: add the column `note` also where estimates pick the rows.

    Raises:
        RewriteError: naming what cannot be estimated.

    Example:
        >>> people = TableInfo("people", (("age", "INTEGER"),))
        >>> boxes = TableInfo("boxes", (("age", "STRUCT(lower INTEGER, upper INTEGER)"),))
        >>> "greatest" in rewrite("SELECT count(*) FROM people WHERE age < 30", people, boxes)
        True
    """
    everything = (original, *(joined for joined, _ in release.joined), *tables)
    query = with_pivots(query, original, release, tables)
    tree, columns = read_query(query, everything)
    require_keys_alone(tree, everything)
    estimate = answer(Question(tree, release, everything, columns, (), bounds, spread, readable=True))
    if round_counts:
        _give_types(tree, estimate)
    names = [column.name for column in estimate.columns]
    ends = [f"{names[number]}_{end}" for number in estimate.bounded for end in ("low", "high")]
    marks = estimate.marks if ends or (noted and PICKED in estimate.marks) else ()
    if ends or marks:
        _add_note(leftmost(estimate.tree), names, list(estimate.bounded), marks)
    if notes is not None:
        notes += [*estimate.notes, *(() if marks else estimate.marks)]
    _rename(leftmost(estimate.tree), [*names, *ends])
    return laid_out(estimate.tree)


def with_pivots(query: str, original: TableInfo, release: TableInfo, tables: Sequence[TableInfo]) -> str:
    """A query's text in which each PIVOT names its values: those that its own release is estimated to hold."""

    def values(text: str) -> Sequence[tuple[Any, ...]]:
        # planned on a connection without functions of this package
        found = rewrite(text, original, release, tables, "none", True, "uniform")
        return release.reader.rows(found) or []

    def columns(text: str) -> Sequence[str]:
        return [] if original.describe is None else [name for name, _ in original.describe(text)]

    return with_values(query, LookUp(columns, values))


def _give_types(written: exp.Query, estimate: Answer) -> None:
    """Let estimates have the types of the original's answers, and rows be in the order of what is shown; in place."""
    # a UNION over plausible tables is one SELECT of means
    selects, estimates = list(answers_of(written)), list(answers_of(estimate.tree))
    for before, after in zip(selects, estimates, strict=False):
        others = selects if len(estimates) < len(selects) else [before]
        kinds: dict[exp.Expr, str] = {}
        for position, (node, other) in enumerate(zip(before.expressions, after.expressions, strict=False)):
            value = node.unalias()
            counts = all(is_count(select.expressions[position].unalias()) for select in others)
            column = estimate.columns[position]
            kind = (column.type or ("BIGINT" if counts else "")) if column.measure else ""
            # ORDER BY has names of output columns, or what they are
            kinds[value] = kinds[exp.column(node.alias_or_name, quoted=True)] = kind
            if isinstance(other, exp.Alias) and other.this != value:
                other.set("this", _of_type(other.this, kind))
        orders = [item.args["order"].expressions if item.args.get("order") else [] for item in (before, after)]
        for node, other in zip(*orders, strict=False):
            kind = kinds.get(node.this, "BIGINT" if is_count(node.this) else "")
            if isinstance(other, exp.Ordered) and other.this != node.this:
                other.set("this", _of_type(other.this, kind))
    bounds = [number for number in estimate.bounded for _ in ("low", "high")]
    for number, end in zip(bounds, leftmost(estimate.tree).expressions[len(estimate.columns) :], strict=False):
        if estimate.bounded[number] == 1 and isinstance(end, exp.Alias):
            end.set("this", _of_type(end.this, estimate.columns[number].type))


def _of_type(node: exp.Expr, kind: str) -> exp.Expr:
    """An estimate as a number of the type that the original's answer has."""
    if is_integer(kind):
        return exp.cast(fill("round({x})", x=node), kind, dialect="duckdb")
    return exp.cast(node, kind, dialect="duckdb") if kind.upper().startswith("DECIMAL") else node


def _add_note(select: exp.Select, names: Sequence[str], bounded: Sequence[int], marks: Sequence[str]) -> None:
    """Add a column that says what the release does not decide, and which answers have bounds wider than they are."""
    columns = [projection.unalias() for projection in select.expressions]
    wide: list[exp.Expr] = [exp.Literal.string(mark) for mark in marks]
    for position, number in enumerate(bounded):
        low, high = columns[len(names) + 2 * position : len(names) + 2 * position + 2]
        holes = {"x": columns[number], "low": low, "high": high}
        numbers = {name: fill("try_cast({x}::varchar as double)", x=hole) for name, hole in holes.items()}
        text = exp.Literal.string(f"{names[number]}: {WIDE}")
        wide.append(fill("case when {high} - {low} > abs({x}) then {text} end", text=text, **numbers))
    note = exp.func("nullif", exp.func("concat_ws", exp.Literal.string("; "), *wide), exp.Literal.string(""))
    select.append("expressions", exp.alias_(note, unique_names([*names, "note"])[-1], quoted=True))


def _rename(select: exp.Select, names: Sequence[str]) -> None:
    """Give output columns the names the analyst gave them; ORDER BY follows."""
    renamed: dict[str, str] = {}
    for projection, name in zip(select.expressions, names, strict=False):
        if isinstance(projection, exp.Alias):
            renamed[projection.alias] = name
            projection.set("alias", readable(name))
    order = select.args.get("order")
    for column in all_of(order, exp.Column) if order else []:
        if not column.table and column.name in renamed:
            column.replace(exp.Column(this=readable(renamed[column.name])))
