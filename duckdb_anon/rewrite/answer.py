"""One answer: which engine answers a query about the original, and the SQL of its estimate from the release.

The closed form answers what is linear in the rows of the original (`linear.why_not_linear`); plausible tables answer
the rest, and what they answer better (`release_model.prefers_draws`). That is decided before anything is written. Hard
bounds are the same either way; intervals are by replay where nothing else gives one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import sqlglot
from sqlglot import exp

from duckdb_anon.model.errors import RewriteError, listed
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import without_enums
from duckdb_anon.model.released_columns import Spread
from duckdb_anon.rewrite.bounds import NO_BOUNDS, FoundBounds, bounds_of
from duckdb_anon.rewrite.compile_query import Steps, compile_tree
from duckdb_anon.rewrite.factors import RESERVED, NotLinearError, RandomizedFactor, RetainedFactor
from duckdb_anon.rewrite.linear import why_not_linear
from duckdb_anon.rewrite.marks import marks
from duckdb_anon.rewrite.plausible import COMBINED, over_draws
from duckdb_anon.rewrite.query.parse import Output, grounded
from duckdb_anon.rewrite.query.passes import OF_ESTIMATES, run
from duckdb_anon.rewrite.query.prepare import MAY_FAIL, round_read, try_casts, unrounded
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.trees import (
    all_of,
    from_items,
    groups_of,
    is_original,
    laid_out,
    leftmost,
    quoted,
    reads_original,
    step_of,
    unquote,
)
from duckdb_anon.rewrite.query.trees import tree as fill
from duckdb_anon.rewrite.reading import Reading
from duckdb_anon.rewrite.release_model import ReleaseModel, prefers_draws, release_model
from duckdb_anon.rewrite.replay import Measures, half_widths, with_intervals, with_widths

Engine = Literal["auto", "closed", "imputed"]
LEFT_OUT = "_left_out"
WIDE = "high minus low is larger than the estimate"
FAILS = "a value that cannot be cast counts as NULL; the original fails if its WHERE keeps one"
MERGED = (
    "a release of persons shows a generalized value once a person, however many records have it: counts and sums of "
    "records are too low"
)
IMPUTED = "no bounds: the answer is imputed from plausible tables; bounds := 'likely' may give an interval"
NOT_REPLAYED = "no interval: the replay cannot distinguish the groups, or has too many of them"
UNCOVERED = "no interval: too few intervals of such measures hold the truth"
REPLAYED = "low and high by replay of the release"
_OF_TYPES = {"hash", "typeof", "pg_typeof", "enum_code", "enum_first", "enum_last", "enum_range", "enum_range_boundary"}
"""Functions that say other things of a declared text (ENUM) than of a text."""


@dataclass(frozen=True)
class Question:
    """A bound query, and what is wanted of its answer.

    Attributes:
        tree: the query, as `parse.read_query` returns it.
        release: the release of the original.
        tables: the original first, then other tables of the query.
        columns: its output columns that the analyst wrote.
        hidden: names of further ones that tell groups apart.
        bounds: which low and high are wanted.
        spread: how the rows of a generalized cell are spread over its values.
        engine: which engine is to answer.
        readable: whether people read the SQL; otherwise a program does, which is told how many groups are left out.
    """

    tree: exp.Query
    release: TableInfo
    tables: Sequence[TableInfo]
    columns: Sequence[Output] = ()
    hidden: Sequence[str] = ()
    bounds: Bounds = "none"
    spread: Spread = "uniform"
    engine: Engine = "auto"
    readable: bool = False

    @property
    def original(self) -> TableInfo:
        """The original."""
        return self.tables[0]

    @property
    def names(self) -> list[str]:
        """Names of the columns of the answer, without low and high."""
        return [*(f"_c{number}" for number, _ in enumerate(self.columns)), *self.hidden]


@dataclass(frozen=True)
class Answer:
    """An estimate as a query.

    Attributes:
        tree: its output columns are the question's, then, unless it is readable, `LEFT_OUT`: how many groups fewer than
            half of the plausible tables have; then low and high of each bounded measure.
        sql: the same as text with names of columns; '' where it is readable.
        bounded: number of each output column that has low and high, and their confidence: 1 for hard bounds.
        notes: what was taken for true.
        unbounded: why a measure without low and high has none.
        marks: what is to be said of rows that the release does not decide.
        draws: number of plausible tables; 0 of a closed form.
        columns: the question's columns, with their names and types.
    """

    tree: exp.Query
    sql: str = ""
    bounded: Mapping[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unbounded: str = ""
    marks: tuple[str, ...] = ()
    draws: int = 0
    columns: tuple[Output, ...] = ()

    @property
    def method(self) -> str:
        """What answers: 'imputed' (plausible tables) or 'closed form'."""
        return "imputed" if self.draws else "closed form"


def answer(question: Question) -> Answer:
    """Answer a question.

    Raises:
        RewriteError: naming what cannot be estimated.
    """
    release, original = question.release, question.original
    if release.joined and question.engine == "closed":
        raise RewriteError(f"the query reads {_originals(question)}, which have no closed form together; ask with "
                           "engine := 'imputed'")  # fmt: skip
    model = release_model(release, original, question.spread == "learnt")
    tree = question.tree.copy()
    if not release.joined:
        _require_readable(tree, model, release, original)
        _rename_steps(tree, release)
    imputed, why = _is_imputed(question, tree, model)
    found, steps = FoundBounds(), Steps(_names_taken(tree, question))
    unbounded = ""
    rows = "" if question.bounds == "none" or release.joined else release.reader.why_unbounded()
    if question.bounds != "none":
        unbounded = rows or _why_unbounded(tree, model, question)
        if not unbounded:
            bounded = tree.copy()
            round_read(bounded, question.tables)
            found, unbounded = _bounds(bounded, model, question, steps)
            unbounded = IMPUTED if imputed and not found.ends else unbounded
    hidden = _with_hidden(tree, found) if found.ends else []
    tree = run(tree, (try_casts,) if imputed else OF_ESTIMATES, question.tables)
    notes = [*why, *[FAILS] * (MAY_FAIL in tree.meta)]
    if imputed:
        tree = _drawn(question, tree)
    else:
        compile_tree(tree, release, original, model, steps)
        tree = grounded(tree, [release, *question.tables[1:]])
        unrounded(tree)
    if found.ends:
        tree = _with_bounds(tree, found, hidden, imputed)
    steps.attach(tree, [release, *question.tables[1:]], question.readable, first=imputed)
    unquote(tree)
    notes += merged_records(question.tree, model)
    marked = () if release.joined else marks(question.tree, model)
    draws, columns = release.reader.draws() if imputed else 0, tuple(question.columns)
    made = Answer(tree, "", found.confidence, tuple(notes), unbounded, marked, draws, columns)
    if question.readable:
        return made
    made = replace(made, sql=_named(question, made))
    if question.bounds == "likely" and not release.joined and not rows:
        return _with_replay(question, made)
    return made


def _is_imputed(question: Question, tree: exp.Query, model: ReleaseModel) -> tuple[bool, list[str]]:
    """Whether plausible tables answer, and what is to be said of that; an error where they would have to and cannot."""
    release = question.release
    can = release.reader.can_draw and not model.is_noisy
    if release.joined or question.engine == "imputed":
        if not can:
            raise RewriteError("the release has no plausible tables; ask with engine := 'closed'")
        return True, []
    if question.engine == "auto" and question.spread == "learnt" and can:
        if prefers_draws(tree, release, question.original):
            return True, []
    why = why_not_linear(tree, model, release, question.original)
    if why and (question.engine == "closed" or not can):
        raise NotLinearError(why)
    return bool(why), [f"imputed: {why}"] if "combinations of values" in why else []


def _require_readable(tree: exp.Query, model: ReleaseModel, release: TableInfo, original: TableInfo) -> None:
    """Raise where the release does not carry what a query reads."""
    read = {column.name for column in all_of(tree, exp.Column)}
    release.reader.require_clear_texts(read)
    clash = sorted(set(RESERVED) & original.types.keys())
    if clash:
        raise RewriteError(f"a column called {clash[0]} cannot be queried: the estimate needs that name; rename it")
    for select in [select for select in all_of(tree, exp.Select) if reads_original(select)]:
        aliases = {item.alias_or_name for item in from_items(select) if is_original(item)}
        for column in [column for column in all_of(select, exp.Column) if column.table in aliases]:
            model.require(column.name, release.name)


def _drawn(question: Question, tree: exp.Query) -> exp.Query:
    """The query over plausible tables."""
    made = over_draws(tree, question.release, question.tables, [column.type for column in question.columns])
    if question.readable:
        return made
    left_out: exp.Expr = exp.Literal.number(0)
    if isinstance(made, exp.Select) and any(step.alias == COMBINED for step in all_of(made, exp.CTE)):
        left_out = sqlglot.parse_one(f"(select count(*) from {COMBINED} where rare)", dialect="duckdb")
    else:
        made = exp.Select(expressions=[exp.Star()], from_=exp.From(this=made.subquery("_rows", copy=False)))
        names = [exp.column(name, quoted=True) for name in leftmost(tree).named_selects]
        made.set("expressions", [exp.alias_(name, name.name, quoted=True) for name in names])
    return made.select(exp.alias_(left_out, LEFT_OUT, quoted=True), copy=False)


def _named(question: Question, made: Answer) -> str:
    """The answer as text, its columns named."""
    ends = [f"_c{number}_{end}" for number in made.bounded for end in ("low", "high")]
    names = [*question.names, *[LEFT_OUT] * bool(made.draws), *ends]
    return f"select * from (\n{laid_out(made.tree)}\n) as _q({', '.join(names)})"


def _originals(question: Question) -> str:
    read = [question.original, *(original for original, _ in question.release.joined)]
    return " and ".join(info.name for info in read)


def merged_records(tree: exp.Query, model: ReleaseModel) -> list[str]:
    """What is to be said of a query that adds up records of which the release shows fewer; nothing of others."""
    aggregates = all_of(tree, exp.Count, exp.CountIf, exp.Sum) if model.has_person_lists else []
    return [MERGED] if any(not isinstance(node.this, exp.Distinct) for node in aggregates) else []


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


def _names_taken(tree: exp.Query, question: Question) -> frozenset[str]:
    """Names of tables and steps that the query reads, folded."""
    names = {fold(table.name) for table in all_of(tree, exp.Table)} | {
        fold(step.alias) for step in all_of(tree, exp.CTE)
    }
    for table in (question.release, *question.tables):
        names |= {fold(part.name) for part in exp.to_table(table.given or "t", dialect="duckdb").parts}
    return frozenset(names)


def _why_unbounded(tree: exp.Query, model: ReleaseModel, question: Question) -> str:
    """Why no answer to the query has low and high; '' where some may."""
    release, original = question.release, question.original
    if release.joined:
        return f"no bounds: the query reads {_originals(question)}"
    read = {column.name for column in all_of(tree, exp.Column)}
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
    if (coarser := sorted(model.edged & read)) and not (_adds_up_all(tree, coarser) and _is_sampled(model, release)):
        return f"no bounds: values of {listed(coarser)} that few records carry may be published as their mean"
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
    real = sorted(name for name in read if original.types.get(name, "").upper() in ("DOUBLE", "FLOAT"))
    if model.count_error and real:
        return f"no bounds: values of {listed(real)} are spread inside cells, and records of the original may share one"
    known = model.count_error or any(isinstance(factor, RandomizedFactor) for factor in model.factors)
    if not model.bounded and model.weight == "1" and not known:
        return "no bounds: the method may have replaced values, and the release does not tell which"
    return ""


def _adds_up_all(tree: exp.Query, joined: Collection[str]) -> bool:
    """Whether joined values are read in sums and means of all rows alone: a mean in their place leaves these alone."""
    chosen = ("where", "joins", "group", "having", "qualify", "distinct")
    filtered = all_of(tree, exp.Filter, exp.Distinct, exp.Window)
    return not (filtered or any(tree.args.get(part) for part in chosen)) and all(
        isinstance(column.parent, (exp.Sum, exp.Avg)) for column in all_of(tree, exp.Column) if column.name in joined
    )


def _is_sampled(model: ReleaseModel, release: TableInfo) -> bool:
    """Whether records were left out by chance: the interval of a sample is wider than what rounding moves a mean."""
    if not model.rate:
        return False
    return release.reader.rows(f"select max({model.rate}) < 1 from {release.sql} as r") == [(True,)]


def _bounds(tree: exp.Query, model: ReleaseModel, question: Question, steps: Steps) -> tuple[FoundBounds, str]:
    """Bounds of the outermost SELECT, and why a measure has none."""
    assert isinstance(tree, exp.Select)  # noqa: S101 -- one SELECT reads the original
    if sum(map(is_original, from_items(tree))) > 1 or any(
        join.method in ("ASOF", "POSITIONAL") for join in tree.args.get("joins") or []
    ):
        return FoundBounds(), NO_BOUNDS
    return bounds_of(Reading(tree, model, question.release, question.original), steps, question.bounds)


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


def _reads_otherwise(query: exp.Query, kind: str, original: str) -> bool:
    """Whether a query may say something else of equal values of another type than the original's."""
    functions = (
        function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        for function in all_of(query, exp.Func)
    )
    return without_enums(kind) != without_enums(original) or any(fold(function) in _OF_TYPES for function in functions)


def _with_replay(question: Question, found: Answer) -> Answer:
    """An answer with intervals of what is imputed, and of what has no low and high."""
    wanted = [
        number
        for number, column in enumerate(question.columns)
        if column.measure and (found.draws or number not in found.bounded)
    ]
    reader = question.release.reader
    if not wanted or not reader.can_replay:
        return found
    measures = Measures(question.columns, question.hidden, wanted)
    try:
        widths = half_widths(_of_all_groups(question.tree), measures, question.release, question.tables)
    except RewriteError as error:
        return replace(found, unbounded=str(error))
    if not widths:
        return replace(found, unbounded=NOT_REPLAYED)
    outputs = [projection.unalias() for projection in leftmost(question.tree).expressions]
    counts = [number for number in wanted if isinstance(outputs[number], (exp.Count, exp.CountIf))]
    hard = {number: confidence == 1 for number, confidence in found.bounded.items()}
    measures, widths = with_widths(measures, widths, hard)
    if not {*wanted} <= {*measures.wanted, *found.bounded}:
        found = replace(found, unbounded=UNCOVERED)
    if not measures.wanted:
        return found
    sql = with_intervals(found.sql, measures, widths, hard, counts)
    bounded = {**found.bounded, **dict.fromkeys(measures.wanted, reader.replay().confidence)}
    return replace(found, sql=sql, bounded=bounded, notes=(*found.notes, REPLAYED))


def _of_all_groups(query: exp.Query) -> exp.Query:
    """The query without what picks groups."""
    tree = query.copy()
    for key in ("order", "limit", "offset", "having", "qualify"):
        tree.set(key, None)
    return tree
