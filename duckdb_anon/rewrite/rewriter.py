"""From a bound query over the original to the query that estimates its answer from the release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.scope import build_scope

from duckdb_anon.model.errors import RewriteError, listed
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.learnt import Spread
from duckdb_anon.model.release_formats.duckdb_types import is_integer, without_enums
from duckdb_anon.rewrite.bounds import BoundedBlock, FoundBounds
from duckdb_anon.rewrite.compile_query import Steps, compile_tree
from duckdb_anon.rewrite.factors import RESERVED, CombinationsError, NotLinearError, RandomizedFactor, RetainedFactor
from duckdb_anon.rewrite.plausible import over_draws
from duckdb_anon.rewrite.query.keys import require_keys_alone
from duckdb_anon.rewrite.query.parse import Describe, grounded, measure_flags, read_query, unique_names
from duckdb_anon.rewrite.query.prepare import adds_up_groups, answers_of, is_count, round_read, try_casts, unrounded
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.trees import (
    aggregate_nodes,
    all_of,
    from_items,
    groups_of,
    is_original,
    laid_out,
    leftmost,
    quoted,
    readable,
    reads_original,
    step_of,
    unquote,
)
from duckdb_anon.rewrite.query.trees import tree as fill
from duckdb_anon.rewrite.release_model import ReleaseModel, prefers_draws, release_model

FAILS = "a value that cannot be cast counts as NULL; the original fails if its WHERE keeps one"
MERGED = (
    "a release of persons shows a generalized value once a person, however many records have it: counts and sums of "
    "records are too low"
)
WIDE = "high minus low is larger than the estimate"
NO_BOUNDS = "no bounds: only counts, sums, means and extremes of one table have them"
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
    may_impute: bool = False,
    readable: bool = False,
) -> Estimate:
    """Rewrite a bound query.

    Args:
        tree: the query, as `parse.bound` returns it.
        release: the release of the original.
        tables: the original first, then other tables of the query.
        bounds: which low and high to add to each measure of the outermost SELECT that has them.
        spread: how the rows of a generalized cell are spread over its values.
        may_impute: let plausible tables answer, too, what they answer better than the closed form.
        readable: lay the steps of the query out for people.

    Raises:
        RewriteError: naming what cannot be estimated.
    """
    original = tables[0]
    read = {fold(column.name) for column in all_of(tree, exp.Column)}
    model = release_model(release, original, spread == "learnt")
    if release.require_clear_texts is not None:
        release.require_clear_texts(read)
    _require_free_names(original)
    tree = tree.copy()
    _rename_steps(tree, release)
    round_read(tree, original)
    for select in [select for select in all_of(tree, exp.Select) if reads_original(select)]:
        aliases = {item.alias_or_name for item in from_items(select) if is_original(item)}
        for column in [column for column in all_of(select, exp.Column) if column.table in aliases]:
            model.require(fold(column.name), release.name)
    steps = Steps(_names_taken(tree, release, tables))
    unbounded = "" if bounds == "none" else _why_unbounded(tree, model, release, original, read)
    found = FoundBounds()
    if bounds != "none" and not unbounded:
        found, unbounded = _bounds(tree, model, release, original, steps, bounds)
    hidden = _with_hidden(tree, found) if found.ends else []
    notes = [FAILS] if try_casts(tree, original) else []
    notes += merged_records(tree, model)
    imputed = False
    before = None if release.drawn is None or model.is_noisy else tree.copy()
    try:
        if may_impute and before is not None and prefers_draws(before, release, original):
            raise NotLinearError("plausible tables answer it better")
        _refuse_groups_below(tree)
        compile_tree(tree, release, original, model, steps)
        tree = grounded(tree, [release, *tables[1:]])
    except NotLinearError:
        if before is None or release.drawn is None:
            raise
        unrounded(before)
        tree, imputed = over_draws(before, release.drawn, release, tables), True
    unrounded(tree)
    if found.ends:
        tree = _with_bounds(tree, found, hidden, imputed)
    steps.attach(tree, [release, *tables[1:]], readable)
    unquote(tree)
    return Estimate(tree, found.confidence, tuple(notes), unbounded)


def merged_records(tree: exp.Query, model: ReleaseModel) -> list[str]:
    """What is to be said of a query that adds up records of which the release shows fewer; nothing of others."""
    aggregates = all_of(tree, exp.Count, exp.CountIf, exp.Sum) if model.has_person_lists else []
    return [MERGED] if any(not isinstance(node.this, exp.Distinct) for node in aggregates) else []


def _require_free_names(original: TableInfo) -> None:
    clash = sorted(set(RESERVED) & original.types.keys())
    if clash:
        raise RewriteError(f"a column called {clash[0]} cannot be queried: the estimate needs that name; rename it")


def _rename_steps(tree: exp.Query, release: TableInfo) -> None:
    """Give steps of a query that are called like the release other names, in place: they would be read in its place."""
    name = fold(exp.to_table(release.given or release.sql, dialect="duckdb").name)
    for step in [step for step in all_of(tree, exp.CTE) if fold(step.alias) == name]:
        fresh = exp.to_identifier(f"{step.alias}_step", quoted=True)
        for table in [table for table in all_of(tree, exp.Table) if step_of(table) is step]:
            alias = exp.to_identifier(table.alias_or_name, quoted=True)
            table.set("alias", table.args.get("alias") or exp.TableAlias(this=alias))
            table.set("this", fresh.copy())
        step.args["alias"].set("this", fresh)


def _names_taken(tree: exp.Query, release: TableInfo, tables: Sequence[TableInfo]) -> frozenset[str]:
    """Names of tables and steps that the query reads, folded."""
    names = {fold(table.name) for table in all_of(tree, exp.Table)} | {
        fold(step.alias) for step in all_of(tree, exp.CTE)
    }
    for table in (release, *tables):
        names |= {fold(part.name) for part in exp.to_table(table.given or "t", dialect="duckdb").parts}
    return frozenset(names)


def _why_unbounded(
    tree: exp.Query, model: ReleaseModel, release: TableInfo, original: TableInfo, read: Collection[str]
) -> str:
    """Why no answer to the query has low and high; '' where some may."""
    if release.of_another:
        return "no bounds: the release says that it was made of a query or of another table"
    if model.person in read:
        return "no bounds: individuals are distinguished in plausible tables only"
    binned = sorted(release.binned & set(read))
    if binned:
        return (
            f"no bounds: values of {listed(binned)} were binned before they were drawn, "
            "and one stands for all of its bin"
        )
    rare = sorted(fold(name) for name, tree in original.hierarchies.items() if tree.hidden and fold(name) in read)
    if rare:
        return f"no bounds: values of {listed(rare)} that few records carry are hidden in the published hierarchy"
    retyped = {name for name in model.retyped.keys() & set(read) if _reads_otherwise(tree, *model.retyped[name])}
    retyped |= original.collated & set(read)
    if retyped:
        types = [
            f"{node} ({' for '.join(map(without_enums, model.retyped.get(node, ('another collation',))))})"
            for node in sorted(retyped)
        ]
        return f"no bounds: the type of {listed(types)} is not the original's, and values may read otherwise"
    readers = [select for select in all_of(tree, exp.Select) if reads_original(select)]
    if readers != [tree]:
        return "no bounds: only queries of one SELECT that read the original once have bounds"
    if any(isinstance(factor, RetainedFactor) for factor in model.factors):
        return "no bounds: some sensitive values were replaced, and the release does not tell which"
    if model.is_noisy:
        return "no bounds: the numbers of rows are noisy"
    if not model.bounded and model.weight == "1" and not any(isinstance(f, RandomizedFactor) for f in model.factors):
        return "no bounds: the method may have replaced values, and the release does not tell which"
    return ""


def _bounds(
    tree: exp.Query, model: ReleaseModel, release: TableInfo, original: TableInfo, steps: Steps, wanted: Bounds
) -> tuple[FoundBounds, str]:
    """Bounds of the outermost SELECT, none where its values cannot be listed, and why a measure has none."""
    before = dict(steps.texts)
    assert isinstance(tree, exp.Select)  # noqa: S101 -- one SELECT reads the original
    try:
        return BoundedBlock(tree.copy(), model, release, original, steps).bounds(wanted), NO_BOUNDS
    except NotLinearError as error:
        steps.texts = before
        return FoundBounds(), f"no bounds: {error}" if isinstance(error, CombinationsError) else NO_BOUNDS


def _with_hidden(tree: exp.Query, found: FoundBounds) -> list[str]:
    """Add the keys, the level and the order of the query to its output columns; names of keys and level.

    Nothing is added where bounds are read from the answer itself.
    """
    assert isinstance(tree, exp.Select)  # noqa: S101 -- as above
    if not found.steps:
        return []
    groups = groups_of(tree)
    outputs = {projection.unalias(): projection.alias_or_name for projection in reversed(tree.expressions)}
    names = []
    hidden = [*groups.keys, *([groups.level()] if len(groups.sets) > 1 else [])]
    for position, node in enumerate(hidden):
        name = outputs.get(node)
        if name is None:
            name = f"_key_{position}"
            tree.append("expressions", exp.alias_(node.copy(), name, quoted=True))
        names.append(name)
    order = tree.args.get("order")
    for position, term in enumerate(order.expressions if order is not None else []):
        tree.append("expressions", exp.alias_(_output_or(term.this, tree).copy(), f"_order_{position}", quoted=True))
    return names


def _output_or(term: exp.Expr, tree: exp.Select) -> exp.Expr:
    """What a term of ORDER BY stands for: an output column by its name, or an expression."""
    if isinstance(term, exp.Column) and not term.table:
        found = next(
            (projection.unalias() for projection in tree.expressions if projection.alias_or_name == term.name), None
        )
        return term if found is None else found
    return term


def _with_bounds(answers: exp.Query, found: FoundBounds, keys: Sequence[str], imputed: bool) -> exp.Select:
    """SELECT the output columns of the answers, and low and high of their group behind them.

    Means over plausible tables are moved inside hard bounds.
    """
    outputs = [named_select for named_select in leftmost(answers).named_selects]
    order = leftmost(answers).args.get("order") or answers.args.get("order")
    ordered = [name for name in outputs if name.startswith("_order_")]
    hidden = {*ordered, *(name for name in keys if name.startswith("_key_"))}
    selected = [name for name in outputs if name not in hidden]
    values: list[exp.Expr] = [exp.column(node, table="_answers", quoted=True) for node in selected]
    for position, (low, high) in found.ends.items() if imputed else ():
        if found.confidence[position] == 1:
            inside = "case when {x} is not null then greatest({low}, least({high}, {x})) end"
            values[position] = fill(inside, x=values[position], low=low, high=high)
    made = exp.Select(expressions=[exp.alias_(x, node, quoted=True) for node, x in zip(selected, values, strict=True)])
    for position, (low, high) in found.ends.items():
        for end, value in (("low", low), ("high", high)):
            made.append("expressions", exp.alias_(value.copy(), f"{selected[position]}_{end}", quoted=True))
    steps = answers.args.get("with_")
    if steps is not None:
        answers.set("with_", None)
        made.set("with_", steps)
    if order is not None and ordered:
        terms = [term.copy() for term in order.expressions]
        for name, term in zip(ordered, terms, strict=True):
            term.set("this", exp.column(name, table="_answers", quoted=True))
        made.set("order", exp.Order(expressions=terms))
        if not (answers.args.get("limit") or answers.args.get("offset")):
            answers.set("order", None)
    made.set(
        "from_", exp.From(this=exp.Subquery(this=answers, alias=exp.TableAlias(this=exp.to_identifier("_answers"))))
    )
    for alias, step in found.steps.items():
        on = [
            f"{alias}._k{i} is not distinct from _answers.{quoted(key)}"
            for i, key in enumerate(keys[: len(keys) - found.leveled])
        ]
        on += [f"{alias}.level = _answers.{quoted(keys[-1])}"] if found.leveled else []
        source = exp.Table(
            this=exp.to_identifier(step, quoted=True), alias=exp.TableAlias(this=exp.to_identifier(alias))
        )
        made.append("joins", exp.Join(this=source, side="LEFT", on=exp.Var(this=" and ".join(on) or "true")))
    return made


def _refuse_groups_below(tree: exp.Query) -> None:
    """Aggregates of groups of the original depend on which groups exist, which estimates do not say; sums do not."""
    for outer in all_of(tree, exp.Select):
        aggregates = [] if reads_original(outer) else list(aggregate_nodes(outer))
        if not aggregates or all(map(adds_up_groups, aggregates)):
            continue
        for inner in all_of(outer, exp.Select):
            if inner is not outer and reads_original(inner) and inner.args.get("group"):
                raise NotLinearError("the query aggregates groups of the original")


def _reads_otherwise(query: exp.Query, kind: str, original: str) -> bool:
    """Whether a query may say something else of equal values of another type than the original's."""
    functions = (
        function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        for function in all_of(query, exp.Func)
    )
    return without_enums(kind) != without_enums(original) or any(fold(function) in _OF_TYPES for function in functions)


def rewrite(
    query: str,
    original: TableInfo,
    release: TableInfo,
    tables: Sequence[TableInfo] = (),
    bounds: Bounds = "none",
    round_counts: bool = False,
    spread: Spread = "uniform",
    describe: Describe | None = None,
    may_impute: bool = False,
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
        describe: gives DuckDB's names and types of the columns of a query; by default names of the bound query.
        may_impute: let plausible tables answer, too, what they answer better than the closed form, as `estimate` does.

    Raises:
        RewriteError: naming what cannot be estimated.

    Example:
        >>> people = TableInfo("people", (("age", "INTEGER"),))
        >>> boxes = TableInfo("boxes", (("age", "STRUCT(lower INTEGER, upper INTEGER)"),))
        >>> "greatest" in rewrite("SELECT count(*) FROM people WHERE age < 30", people, boxes)
        True
    """
    everything = (original, *(joined for joined, _ in release.joined), *tables)
    tree, names, types = read_query(query, everything, describe)
    require_keys_alone(tree, everything)
    if release.joined:
        if release.drawn is None or not may_impute:
            raise RewriteError("the query reads several originals, which have no closed form together")
        estimate = Estimate(over_draws(tree, release.drawn, release, everything))
        unquote(estimate.tree)
    else:
        wanted: Bounds = "none" if release.why_unbounded() else bounds
        estimate = estimator(tree, release, everything, wanted, spread, may_impute, readable=True)
    if round_counts:
        _give_types(tree, estimate, types)
    ends = [f"{names[number]}_{end}" for number in estimate.bounded for end in ("low", "high")]
    if ends:
        _add_note(leftmost(estimate.tree), names, list(estimate.bounded))
    _rename(leftmost(estimate.tree), [*names, *ends])
    return laid_out(estimate.tree)


def _give_types(written: exp.Query, estimate: Estimate, types: Sequence[str]) -> None:
    """Let estimates have the types of the original's answers, and rows be in the order of what is shown; in place."""
    scope = build_scope(written)
    measures = measure_flags(scope) if scope is not None else []
    # a UNION over plausible tables is one SELECT of means
    selects, estimates = list(answers_of(written)), list(answers_of(estimate.tree))
    for before, after in zip(selects, estimates, strict=False):
        others = selects if len(estimates) < len(selects) else [before]
        kinds: dict[exp.Expr, str] = {}
        for position, (node, other) in enumerate(zip(before.expressions, after.expressions, strict=False)):
            value = node.unalias()
            counts = all(is_count(select.expressions[position].unalias()) for select in others)
            kind = (types[position] or ("BIGINT" if counts else "")) if measures[position] else ""
            kinds[value] = kind
            if isinstance(other, exp.Alias) and other.this != value:
                other.set("this", _of_type(other.this, kind))
        orders = [item.args["order"].expressions if item.args.get("order") else [] for item in (before, after)]
        for node, other in zip(*orders, strict=False):
            kind = kinds.get(node.this, "BIGINT" if is_count(node.this) else "")
            if isinstance(other, exp.Ordered) and other.this != node.this:
                other.set("this", _of_type(other.this, kind))
    bounds = [number for number in estimate.bounded for _ in ("low", "high")]
    for number, end in zip(bounds, leftmost(estimate.tree).expressions[len(measures) :], strict=False):
        if estimate.bounded[number] == 1 and isinstance(end, exp.Alias):
            end.set("this", _of_type(end.this, types[number]))


def _of_type(node: exp.Expr, kind: str) -> exp.Expr:
    """An estimate as a number of the type that the original's answer has."""
    if is_integer(kind):
        return exp.cast(fill("round({x})", x=node), kind, dialect="duckdb")
    return exp.cast(node, kind, dialect="duckdb") if kind.upper().startswith("DECIMAL") else node


def _add_note(select: exp.Select, names: Sequence[str], bounded: Sequence[int]) -> None:
    """Add a column that names the answers whose bounds are wider than they are."""
    columns = [projection.unalias() for projection in select.expressions]
    wide = []
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
