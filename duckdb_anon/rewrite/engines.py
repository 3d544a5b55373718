"""Which of the two engines answers a query, and its answer as SQL.

The closed form answers what is linear in the rows of the original; plausible tables answer the rest, and what is asked
of permuted values together with other columns. Hard bounds are those of the closed form either way; intervals are by
replay where nothing else gives one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import sqlglot
from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.learnt import Spread
from duckdb_anon.rewrite.factors import CombinationsError, NotLinearError
from duckdb_anon.rewrite.plausible import COMBINED, over_draws
from duckdb_anon.rewrite.query.parse import Output
from duckdb_anon.rewrite.query.tables import Bounds, PlausibleTables, TableInfo, recorded
from duckdb_anon.rewrite.query.trees import all_of, laid_out, leftmost
from duckdb_anon.rewrite.release_model import prefers_draws, release_model
from duckdb_anon.rewrite.replay import Measures, half_widths, with_intervals, with_widths
from duckdb_anon.rewrite.rewriter import estimator, merged_records

Engine = Literal["auto", "closed", "imputed"]
LEFT_OUT = "_left_out"
IMPUTED = "no bounds: the answer is imputed from plausible tables; bounds := 'likely' may give an interval"
NOT_REPLAYED = "no interval: the replay cannot distinguish the groups, or has too many of them"
UNCOVERED = "no interval: too few intervals of such measures hold the truth"
REPLAYED = "low and high by replay of the release"


@dataclass(frozen=True)
class Question:
    """A bound query, and what is wanted of its answer.

    Attributes:
        tree: the query.
        release: the release.
        tables: the original first, then other tables of the query.
        columns: its output columns that the analyst wrote, called _c0, _c1, ... in the answer.
        hidden: names of further ones that tell groups apart.
        bounds: which low and high are wanted.
        spread: how the rows of a generalized cell are spread over its values.
        engine: which engine is to answer.
    """

    tree: exp.Query
    release: TableInfo
    tables: Sequence[TableInfo]
    columns: Sequence[Output]
    hidden: Sequence[str]
    bounds: Bounds
    spread: Spread
    engine: Engine = "auto"

    @property
    def names(self) -> list[str]:
        """Names of the columns of the answer, without low and high."""
        return [*(f"_c{number}" for number, _ in enumerate(self.columns)), *self.hidden]


@dataclass(frozen=True)
class Answer:
    """An answer as SQL.

    Attributes:
        sql: SELECT of the columns of the question, then low and high of each bounded measure, then, of imputed ones,
            `LEFT_OUT`: how many groups fewer than half of the plausible tables have.
        bounded: number of each output column that has low and high, and their confidence.
        notes: what was taken for true.
        unbounded: why a measure without low and high has none.
        draws: number of plausible tables; 0 of a closed form.
    """

    sql: str
    bounded: Mapping[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unbounded: str = ""
    draws: int = 0

    @property
    def ends(self) -> list[str]:
        """Names of the columns with low and high."""
        return [f"_c{number}_{end}" for number in self.bounded for end in ("low", "high")]


def answer(question: Question) -> Answer:
    """Answer a question.

    Raises:
        RewriteError: naming what cannot be estimated.
    """
    found = _answer(question)
    if question.bounds == "likely" and question.release.replay is not None and not question.release.joined:
        return _with_replay(question, found)
    return found


def _answer(question: Question) -> Answer:
    release = question.release
    if release.joined:
        return _joined(question)
    imputed = question.engine == "imputed"
    if question.engine == "auto" and question.spread == "learnt" and release.drawn is not None:
        imputed = prefers_draws(question.tree, release, question.tables[0])
    if imputed:
        return _imputed(question)
    try:
        return _closed(question, question.tree)
    except NotLinearError as error:
        if question.engine == "closed" or release.drawn is None:
            raise
        found = _imputed(question)
        why = [f"imputed: {error}"] if isinstance(error, CombinationsError) else []
        return replace(found, notes=(*found.notes, *why))


def _joined(question: Question) -> Answer:
    """Estimates of a query over several originals, which plausible tables alone answer."""
    if question.engine == "closed":
        raise RewriteError(f"the query reads {_originals(question)}, which have no closed form together; ask with "
                           "engine := 'imputed'")  # fmt: skip
    found = _imputed(replace(question, bounds="none"))
    return replace(found, unbounded=f"no bounds: the query reads {_originals(question)}")


def _originals(question: Question) -> str:
    read = [question.tables[0], *(original for original, _ in question.release.joined)]
    return " and ".join(info.name for info in read)


def _closed(question: Question, tree: exp.Query) -> Answer:
    return _estimated(question, tree, replace(question.release, drawn=None))


def _estimated(question: Question, tree: exp.Query, release: TableInfo) -> Answer:
    estimate = estimator(tree, release, question.tables, question.bounds, question.spread)
    found = Answer("", estimate.bounded, estimate.notes, estimate.unbounded)
    names = [*question.names, *found.ends]
    return replace(found, sql=f"select * from (\n{laid_out(estimate.tree)}\n) as _q({', '.join(names)})")


def _imputed(question: Question) -> Answer:
    """Estimates from plausible tables, inside the hard bounds of the closed form where it has any."""
    drawn = question.release.drawn
    if drawn is None:
        raise RewriteError("the release has no plausible tables; ask with engine := 'closed'")
    if question.release.require_clear_texts is not None:
        question.release.require_clear_texts({fold(column.name) for column in all_of(question.tree, exp.Column)})
    tables: list[PlausibleTables] = []
    tree = over_draws(question.tree, recorded(drawn, tables), question.release, question.tables)
    answer_of_one = not any(step.alias == COMBINED for step in all_of(tree, exp.CTE))
    if isinstance(tree, exp.Select) and not answer_of_one:
        left_out = sqlglot.parse_one(f"(select count(*) from {COMBINED} where rare)", dialect="duckdb")
        tree.select(exp.alias_(left_out, LEFT_OUT), copy=False)
    listed = [*question.names, LEFT_OUT]
    text = laid_out(tree)
    if answer_of_one:
        text = f"select *, 0 from (\n{text}\n)"
    sql = f"select * from (\n{text}\n) as _q({', '.join(listed)})"
    closed = _bounds(question)
    notes = merged_records(question.tree, release_model(question.release, question.tables[0]))
    closed = replace(closed, notes=tuple(dict.fromkeys([*closed.notes, *notes])))
    if not closed.bounded:
        return replace(closed, sql=sql, draws=tables[0].draws)
    keys = [f"_c{number}" for number, column in enumerate(question.columns) if not column.measure]
    on = " and ".join(f"i.{key} is not distinct from c.{key}" for key in [*keys, *question.hidden]) or "true"
    inside = ", ".join(f"{_inside(number)} as _c{number}" for number, sure in closed.bounded.items() if sure == 1)
    estimates = f"i.* exclude (_place, {LEFT_OUT})" + (f" replace ({inside})" if inside else "")
    selected = ", ".join([estimates, *(f"c.{end}" for end in closed.ends), f"i.{LEFT_OUT}"])
    numbered = f"select *, row_number() over () as _place from (\n{sql}\n)"
    joined = f"select {selected}\nfrom ({numbered}) as i left join (\n{closed.sql}\n) as c on {on} order by i._place"
    return replace(closed, sql=joined, draws=tables[0].draws)


def _bounds(question: Question) -> Answer:
    """An answer with the hard bounds of all groups; one without low and high where there are none."""
    if question.bounds == "none":
        return Answer("")
    tree = _of_all_groups(question.tree)
    try:
        return _closed(question, tree)
    except NotLinearError:
        # extremes have no closed form, but bounds
        found = _estimated(question, tree, question.release)
        return found if found.bounded else replace(found, unbounded=IMPUTED)


def _with_replay(question: Question, found: Answer) -> Answer:
    """An answer with intervals of what is imputed, and of what has no low and high."""
    wanted = [
        number
        for number, column in enumerate(question.columns)
        if column.measure and (found.draws or number not in found.bounded)
    ]
    if not wanted or question.release.replay is None:
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
    confidence = question.release.replay().confidence
    bounded = {**found.bounded, **dict.fromkeys(measures.wanted, confidence)}
    return replace(found, sql=sql, bounded=bounded, notes=(*found.notes, REPLAYED))


def _of_all_groups(query: exp.Query) -> exp.Query:
    """The query without what picks groups."""
    tree = query.copy()
    for key in ("order", "limit", "offset", "having", "qualify"):
        tree.set(key, None)
    return tree


def _inside(number: int) -> str:
    """An imputed number moved into its hard bounds."""
    value, low, high = f"i._c{number}", f"c._c{number}_low", f"c._c{number}_high"
    return f"case when {value} is not null then greatest({low}, least({high}, {value})) end"
