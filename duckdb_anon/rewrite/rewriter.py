"""From a bound query over the original to the query that estimates its answer from the release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.learnt import Spread
from duckdb_anon.model.release_formats.duckdb_types import without_enums
from duckdb_anon.rewrite import notes as notes_
from duckdb_anon.rewrite.estimate.asked_columns import require_columns
from duckdb_anon.rewrite.joined_steps import bounds_of_groups
from duckdb_anon.rewrite.over_groups import groups_below, rewrite_over_groups
from duckdb_anon.rewrite.query.enum_order import keep_order
from duckdb_anon.rewrite.query.indentation import laid_out
from duckdb_anon.rewrite.query.nested import collapsed
from duckdb_anon.rewrite.query.parse import (
    bound,
    from_items,
    grounded,
    is_original,
    parse,
    reads_original,
    require_table,
)
from duckdb_anon.rewrite.query.plain_names import shorten_names
from duckdb_anon.rewrite.query.presence import presence
from duckdb_anon.rewrite.query.result_names import Namer, ResultNames
from duckdb_anon.rewrite.query.single_rows import refuse_single_rows
from duckdb_anon.rewrite.query.spelling import readable, spell
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.template import copied
from duckdb_anon.rewrite.query.under_where import tried
from duckdb_anon.rewrite.query.walking import all_of, leftmost
from duckdb_anon.rewrite.query.whole_counts import WholeNumbers, answers_of, rounded, unrounded
from duckdb_anon.rewrite.select import lists_domain, rewrite_select, stands
from duckdb_anon.rewrite.shapes.person_lists import ItemPart
from duckdb_anon.rewrite.shapes.released_parts import model_of

_OF_TYPES = {"hash", "typeof", "pg_typeof", "enum_code", "enum_first", "enum_last", "enum_range", "enum_range_boundary"}
"""Functions that say other things of a declared text (ENUM) than of a text."""


@dataclass(frozen=True)
class Estimate:
    """A rewritten query.

    Attributes:
        tree: its output columns are the query's own, then low and high of each bounded measure.
        bounded: number of each output column that has low and high, and their confidence: 1 for hard bounds.
        notes: what was taken for true.
        unbounded: why a measure without low and high has none.
    """

    tree: exp.Query
    bounded: Mapping[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unbounded: str = ""


def estimator(
    tree: exp.Query,
    release: TableInfo,
    tables: Sequence[TableInfo],
    bounds: Bounds = "none",
    spread: Spread = "uniform",
) -> Estimate:
    """Rewrite a bound query.

    Args:
        tree: the query, as `parse.bound` returns it.
        release: the release of the original.
        tables: the original first, then other tables of the query.
        bounds: which low and high to add to each measure of the outermost SELECT that has them.
        spread: how the rows of a generalized cell are spread over its values.

    Raises:
        RewriteError: naming what cannot be estimated.
    """
    original, release = tables[0], replace(release, certain=bounds != "none")
    read = {fold(column.name) for column in all_of(tree, exp.Column)}
    model = model_of(release, original, spread)
    if release.require_clear_texts is not None:
        release.require_clear_texts(read)
    retyped = {column for column in model.retyped.keys() & read if _reads_otherwise(tree, *model.retyped[column])}
    retyped |= original.collated & read
    tree = collapsed(copied(tree))
    whole = WholeNumbers(original)
    whole.round_read(tree)
    keep_order(tree, original)
    notes = [notes_.PRESENCE] * presence(tree) + [notes_.CHOSEN] * notes_.picks_groups(tree)
    if any(isinstance(part, ItemPart) for part in model.parts):
        notes.append(notes_.RECORDS)
    if not all(part.signed for part in model.parts) and notes_.asks_outer_ends(tree):
        notes.append(notes_.OUTER_ENDS)
    if isinstance(tree, exp.Select) and reads_original(tree) and lists_domain(tree):
        notes.append(notes_.DOMAIN)
    bounded: dict[int, float] = {}
    selects = list(tree.find_all(exp.Select, bfs=False))
    readers = [select for select in selects if reads_original(select)]
    for select in readers:
        refuse_single_rows(select)
    # a condition that compares with an estimate moves with it, so it has no bounds of its own; nor has what is asked of
    # another table than the release was made of, or of values that stand for others
    binned = release.binned & read
    bounds = bounds if len(readers) == 1 and not release.of_another and not binned | retyped else "none"

    def grouped(select: exp.Select) -> dict[int, float] | None:
        if not stands(select, model):
            return rewrite_select(select, model, original, bounds_of_groups(model))
        table = next(item for item in from_items(select) if is_original(item))
        require_columns(select, table.alias_or_name, model, original)
        return None

    done = set()
    for outer in reversed([select for select in selects if not reads_original(select)]):
        groups = groups_below(outer)
        if groups is not None:
            done.add(id(groups.this))
            found = rewrite_over_groups(outer, groups, model, grouped, outer is tree and bounds != "none")
            bounded = found if outer is tree else bounded
    for select in reversed([one for one in readers if id(one) not in done]):
        whole.round_read(select, equality=True)
        found = rewrite_select(select, model, original, bounds if select is tree else "none", select is tree)
        bounded = found if select is tree else bounded
    unrounded(tree)
    if tried(tree):
        notes.append(notes_.FAILS)
    tree = grounded(tree, [release, *tables[1:]])
    spell(tree, [column for table in (release, *tables) for column, _ in table.columns])
    return Estimate(tree, bounded, tuple(notes), notes_.why_unbounded(model, binned, retyped))


def _reads_otherwise(query: exp.Query, kind: str, original: str) -> bool:
    """Whether a query may say something else of equal values of another type than the original's."""
    functions = (one.name if isinstance(one, exp.Anonymous) else one.sql_name() for one in all_of(query, exp.Func))
    return without_enums(kind) != without_enums(original) or any(fold(one) in _OF_TYPES for one in functions)


def rewrite(
    query: str,
    original: TableInfo,
    release: TableInfo,
    tables: Sequence[TableInfo] = (),
    bounds: Bounds = "none",
    whole: bool = False,
    spread: Spread = "uniform",
    namer: Namer | None = None,
) -> str:
    """Rewrite a query's text; the output columns keep their names.

    Args:
        query: one SELECT over the original.
        original: the original, under the name the query uses.
        release: its release.
        tables: other tables the query reads, as far as the planner can see them.
        bounds: other than 'none', append `<name>_low` and `<name>_high` for each aggregate that has them.
        whole: round counts to the whole numbers they are on the original.
        spread: how the rows of a generalized cell are spread over its values: 'learnt' takes functions of this
            package.
        namer: tells what DuckDB calls an expression without alias; by default its text.

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
    asked = ResultNames(query, written, everything, namer)
    tree = bound(asked.titled(), everything)
    names = asked.of([one.alias_or_name for one in leftmost(tree).expressions])
    estimate = estimator(tree, release, everything, "none" if release.unbounded else bounds, spread)
    if whole:
        _round(tree, estimate.tree, WholeNumbers(original))
    _rename(leftmost(estimate.tree), names, estimate.bounded)
    shorten_names(estimate.tree, [column for table in (release, *everything) for column, _ in table.columns])
    return laid_out(estimate.tree)


def _round(asked: exp.Query, estimated: exp.Query, whole: WholeNumbers) -> None:
    """Let estimates of counts be whole numbers, as counts are, and rows be in the order of what is shown."""
    for before, after in zip(answers_of(asked), answers_of(estimated), strict=True):
        orders = [one.args["order"].expressions if one.args.get("order") else [] for one in (before, after)]
        pairs = [*zip(before.expressions, after.expressions, strict=False), *zip(*orders, strict=False)]
        for one, other in pairs:
            made_of = one.this if isinstance(one, exp.Ordered) else one.unalias()
            if isinstance(other, (exp.Alias, exp.Ordered)) and other.this != made_of and whole.counts(made_of):
                other.set("this", rounded(other.this))


def _rename(select: exp.Select, names: Sequence[str], bounded: Iterable[int]) -> None:
    """Give output columns the names the analyst gave them; ORDER BY follows."""
    ends = [f"{names[number]}_{end}" for number in bounded for end in ("low", "high")]
    renamed: dict[str, str] = {}
    for projection, name in zip(select.expressions, [*names, *ends], strict=False):
        if isinstance(projection, exp.Alias):
            renamed[projection.alias] = name
            projection.set("alias", readable(name))
    order = select.args.get("order")
    for column in all_of(order, exp.Column) if order else []:
        if not column.table and column.name in renamed:
            column.replace(exp.Column(this=readable(renamed[column.name])))
