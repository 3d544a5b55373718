"""The SQL that sets the answer of the original beside the estimate from the release.

    with _original as (...), _estimate as (...), _both as (full join on the keys)
    select keys, measure, original, estimate, relative_error, low, high

Groups that only one side has stay in: a missing COUNT or SUM counts as 0, any other missing measure is NULL. Of a query
without an aggregate the measure is `rows`, the number of rows that are alike; rows with equal keys are paired in the
order of their values.
A LIMIT or HAVING of the query picks groups of the original; estimates of exactly those groups are shown. Where a
window goes over groups, HAVING holds of the estimates, too, as it says which groups these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.released_columns import Spread
from duckdb_anon.rewrite.answer import LEFT_OUT, WIDE, Answer, Engine, Question, answer
from duckdb_anon.rewrite.marks import CLOSE, CLOSE_ENDS, PICKED, Cut
from duckdb_anon.rewrite.query.keys import require_keys_alone, shows_key
from duckdb_anon.rewrite.query.parse import Output, called_by_text, grounded, read_query, unique_names
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.trees import (
    aggregate_nodes,
    all_of,
    from_items,
    groups_of,
    is_original,
    laid_out,
    leftmost,
    literal,
    quoted,
)
from duckdb_anon.rewrite.rewriter import with_pivots

_ANSWER = ("measure", "estimate", "low", "high", "confidence", "method", "note")
"""Columns of an answer beside its keys."""


@dataclass(frozen=True)
class Wanted:
    """What is wanted of an answer.

    Attributes:
        bounds: which low and high to give.
        spread: how the rows of a generalized cell are spread over its values.
        engine: which engine is to answer.
    """

    bounds: Bounds = "sure"
    spread: Spread = "learnt"
    engine: Engine = "auto"


@dataclass(frozen=True)
class _Sides:
    """Both sides of a comparison.

    Attributes:
        tree: the query, with its levels and all of its keys shown.
        question: what is asked of the release.
        answer: its answer.
        levels: the keys that the number of a grouping set marks.
        limited: whether the query picks groups.
        alone: whether the original is not read.
        exact: text of the query on the original.
        cut: what picks rows of the answer, of which it has one more.
    """

    tree: exp.Query
    question: Question
    answer: Answer
    levels: tuple[exp.Expr, ...]
    limited: bool
    alone: bool
    exact: str
    cut: Cut | None = None

    @property
    def compares(self) -> bool:
        """Whether there are measures; otherwise rows are compared by how many there are of each."""
        return any(column.measure for column in self.question.columns)

    @property
    def columns(self) -> tuple[Output, ...]:
        """The output columns, with the number of rows where there is no measure."""
        rows = () if self.compares else (Output("rows", measure=True, additive=True),)
        return (*self.question.columns, *rows)

    @property
    def keys(self) -> list[int]:
        """Numbers of the columns that are no measures."""
        return [number for number, column in enumerate(self.columns) if not column.measure]

    @property
    def measures(self) -> list[int]:
        """Numbers of the measures."""
        return [number for number, column in enumerate(self.columns) if column.measure]

    @property
    def made_of(self) -> list[exp.Expr]:
        """What computes the columns."""
        return [projection.unalias() for projection in leftmost(self.tree).expressions]

    @property
    def is_one_row(self) -> bool:
        """Whether the answer is one row without keys."""
        tree = self.tree
        return isinstance(tree, exp.Select) and not _may_be_several(tree) and not self.keys

    @property
    def has_unique_keys(self) -> bool:
        """Whether no two rows have the same keys."""
        tree = self.tree
        grouped = isinstance(tree, exp.Select) and bool(groups_of(tree).keys)
        return not self.compares or (grouped and tree.args.get("distinct") is None)

    @property
    def paired(self) -> bool:
        """Whether rows are paired by their order, so that bounds would be those of another one."""
        return not (self.alone or self.has_unique_keys or self.is_one_row)

    @property
    def bounded(self) -> Mapping[int, float]:
        """Number of each measure with low and high, and their confidence."""
        return {} if self.paired else self.answer.bounded

    @property
    def notes(self) -> list[str]:
        """What is to be said of every measure."""
        imputed = bool(self.answer.draws)
        return [
            *self.answer.notes,
            *[PAIRS] * (imputed and _joins_itself(self.tree)),
            *[ROWS] * (imputed and not self.compares),
            *[PAIRED] * self.paired,
        ]

    @property
    def original(self) -> str:
        """SQL of the answer of the original."""
        text = f"select * from (\n{self.exact}\n) as _q({', '.join(self.question.names)})"
        return text if self.compares else f"select *, count(*) as {self._number} from (\n{text}\n) group by all"

    @property
    def estimate(self) -> str:
        """SQL of the estimates."""
        if self.compares and self.cut is not None:
            is_count = isinstance(self.made_of[self.cut.column], (exp.Count, exp.CountIf))
            return self.cut.marked(self.answer.sql, self.bounded, is_count)
        if self.compares:
            return self.answer.sql
        placed = f"select *, row_number() over () as _place from (\n{self.answer.sql}\n)"
        counted = f"select * exclude (_place), count(*) as {self._number}, min(_place) as _first"
        return f"{counted} from ({placed}) group by all order by _first"

    @property
    def _number(self) -> str:
        return f"_c{len(self.question.columns)}"


_DEFAULT = Wanted()


def comparison(
    query: str,
    original: TableInfo,
    release: TableInfo,
    tables: Sequence[TableInfo] = (),
    wanted: Wanted = _DEFAULT,
    extra: str = "",
) -> str:
    """Write the query that compares both answers.

    Args:
        query: one SELECT over the original.
        original: the original table.
        release: its release.
        tables: other tables the query reads, where the planner can see them.
        wanted: what is wanted of the estimate.
        extra: further output columns, as SQL ending in a comma (cube_error names its dimensions here).

    Returns:
        SQL with columns keys MAP(VARCHAR, VARCHAR), measure VARCHAR, original DOUBLE, estimate DOUBLE,
        relative_error DOUBLE, low DOUBLE, high DOUBLE, confidence DOUBLE, method VARCHAR, note VARCHAR: one row a group
        and measure.

    Raises:
        RewriteError: when the query cannot be estimated from the release.
    """
    sides = _read(query, [original, release, *tables], wanted)
    keys, measures = sides.keys, ",\n    ".join(_measure(sides, number) for number in sides.measures)
    return "\n".join(
        [
            f"with _original as (\n{sides.original}\n),",
            f"_estimate as (\n{sides.estimate}\n),",
            f"_both as (\n  select {_keys(sides, keys)} as keys, unnest([\n    {measures}\n  ]) as m",
            f"  from {_joined(sides, keys)}\n)",
            f"select {extra}keys, m.measure as measure, m.original as original, m.estimate as estimate,",
            "  case when m.original <> 0 and not isnan(m.original)",
            "    then abs(m.estimate - m.original) / abs(m.original) end as relative_error,",
            "  m.low as low, m.high as high, m.confidence as confidence,",
            f"  {_method(sides, 'm')} as method, m.note as note",
            "from _both",
        ]
    )


def answers(
    query: str,
    original: TableInfo,
    release: TableInfo,
    tables: Sequence[TableInfo] = (),
    wanted: Wanted = _DEFAULT,
) -> str:
    """Write the query that estimates the answer from the release alone; the original is never read.

    Args:
        query: one SELECT over the original; HAVING, ORDER BY and LIMIT hold of the estimates.
        original: names and types of the original's columns.
        release: its release.
        tables: other tables the query reads.
        wanted: what is wanted of the estimate.

    Returns:
        SQL with the query's own key columns, then measure VARCHAR, estimate, low, high, confidence DOUBLE, method, note
        VARCHAR: one row a group and measure. Of several grouping sets `grouping` says which keys a row is a total over.

    Raises:
        RewriteError: when the query cannot be estimated from the release.
    """
    sides = _read(query, [original, release, *tables], wanted, alone=True)
    keys, measures = sides.keys, ",\n    ".join(_measure(sides, number) for number in sides.measures)
    names = unique_names([*_ANSWER, *(sides.columns[number].name for number in keys)])[len(_ANSWER) :]
    selected = [f"e._c{number} as {quoted(name)}" for number, name in zip(keys, names, strict=True)]
    selected += [f"e._level as {quoted(unique_names([*_ANSWER, *names, 'grouping'])[-1])}"] * bool(sides.levels)
    return "\n".join(
        [
            f"with _estimate as (\n{sides.estimate}\n),",
            f"_both as (\n  select {', '.join([*selected, ''])}unnest([\n    {measures}\n  ]) as _m",
            "  from (select _one as e, _one as o from _estimate as _one)\n)",
            "select * exclude (_m), _m.measure as measure, _m.estimate as estimate, _m.low as low, _m.high as high,",
            "  _m.confidence as confidence,",
            f"  {_method(sides, '_m')} as method, _m.note as note",
            "from _both",
        ]
    )


def _method(sides: _Sides, measure: str) -> str:
    """SQL of how a measure was answered."""
    exact = f"{measure}.confidence = 1 and {measure}.low = {measure}.high"
    return f"case when {exact} then 'exact' else '{sides.answer.method}' end"


def _read(query: str, tables: Sequence[TableInfo], wanted: Wanted, alone: bool = False) -> _Sides:
    """Read a query and answer it; tables are the original, its release, and the query's other ones."""
    original, release, *others = tables
    query = with_pivots(query, original, release, others)
    everything = (original, *(joined for joined, _ in release.joined), *others)
    tree, columns = read_query(query, everything)
    require_keys_alone(tree, everything)
    columns = called_by_text(query, columns)
    picking = ("limit", "offset", "having", "qualify", *(["distinct"] * _picks_first(tree)))
    # rows without an aggregate are no groups that a LIMIT of the original could pick
    limited = any(tree.args.get(key) for key in picking) and any(column.measure for column in columns)
    levels = _mark_levels(tree)
    hidden = [*["_level"] * bool(levels), *_show_keys(tree)]
    key = "" if alone else shows_key(tree, everything)
    if key:
        raise RewriteError(
            f"groups of {key} cannot be compared: it is a key, and the release has pseudonyms in its place. Aggregate "
            "the groups once more, SELECT avg(n) FROM (SELECT count(*) AS n ...), or ask estimate, which shows them"
        )
    open_ended = tree.copy()
    if limited and not alone:
        goes_over_groups = any(all_of(projection, exp.Window) for projection in leftmost(tree).expressions)
        for key in ("order", *(key for key in picking if key != "having" or not goes_over_groups)):
            open_ended.set(key, None)
    cut = Cut.of(open_ended) if alone and limited else None
    if cut is not None:
        cut.with_next(open_ended)
    how = wanted.bounds, wanted.spread, wanted.engine
    question = Question(open_ended, release, everything, columns, hidden, *how)
    exact = laid_out(grounded(tree.copy(), everything)) if hidden else query.strip().rstrip(";")
    return _Sides(tree, question, answer(question), levels, limited, alone, exact, cut)


def _joins_itself(query: exp.Query) -> bool:
    """Whether a SELECT joins the original with itself."""
    return any(sum(map(is_original, from_items(select))) > 1 for select in all_of(query, exp.Select))


def _picks_first(query: exp.Query) -> bool:
    """Whether DISTINCT ON keeps the first row of each group."""
    distinct = query.args.get("distinct")
    return isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None


def _may_be_several(select: exp.Select) -> bool:
    """Whether a SELECT may have several rows: it groups by something, or shows rows of FROM as they are."""
    local = any(True for _ in aggregate_nodes(select))
    return bool(groups_of(select).keys) or (select.args.get("from_") is not None and not local)


def _mark_levels(tree: exp.Query) -> tuple[exp.Expr, ...]:
    """Add the grouping level, which tells a subtotal from a group whose key is NULL; give the keys it marks."""
    groups = groups_of(tree) if isinstance(tree, exp.Select) else None
    if groups is None or len(groups.sets) == 1:
        return ()
    tree.append("expressions", exp.alias_(groups.level(), "_level", quoted=True))
    return groups.keys


def _show_keys(tree: exp.Query) -> list[str]:
    """Add the keys that are not shown as they are, so that no two groups look alike; give their names."""
    if not isinstance(tree, exp.Select) or not groups_of(tree).keys:
        return []
    selected = [projection.unalias() for projection in tree.expressions]
    hidden = [key for key in groups_of(tree).keys if key not in selected]
    if tree.args.get("distinct") is not None:
        return []
    for position, key in enumerate(hidden):
        tree.append("expressions", exp.alias_(key.copy(), f"_key{position}", quoted=True))
    return [f"_key{index}" for index, _ in enumerate(hidden)]


def _keys(sides: _Sides, keys: Sequence[int]) -> str:
    """The keys as a MAP; a subtotal has the keys it is grouped by only."""
    if not keys:
        return "map([], [])::map(varchar, varchar)"
    names = [literal(name) for name in unique_names([sides.columns[number].name for number in keys])]
    values = [
        f"o._c{number}::varchar" if sides.limited else f"coalesce(o._c{number}, e._c{number})::varchar"
        for number in keys
    ]
    if not sides.levels:
        return f"map([{', '.join(names)}], [{', '.join(values)}])"
    level = "o._level" if sides.limited else "coalesce(o._level, e._level)"
    entries = []
    for number, name, value in zip(keys, names, values, strict=True):
        key = sides.made_of[number]
        used = "true"
        if key in sides.levels:
            bit = 1 << (len(sides.levels) - 1 - sides.levels.index(key))
            used = f"({level} & {bit}) = 0"
        entries.append(f"{{k: {name}, v: {value}, used: {used}}}")
    chosen = f"list_filter([{', '.join(entries)}], lambda x: x.used)"
    return f"map_from_entries(list_transform({chosen}, lambda x: {{k: x.k, v: x.v}}))"


def _measure(sides: _Sides, number: int) -> str:
    column = sides.columns[number]

    def numeric(value: str, zero: bool) -> str:
        cast = f"try_cast({value}::varchar as double)"
        return f"coalesce({cast}, 0)" if zero else cast

    ends = [
        numeric(f"e._c{number}_{end}", False) if number in sides.bounded else "null::double" for end in ("low", "high")
    ]
    confidence = f"{sides.bounded.get(number, 'null')}::double"
    if number in sides.bounded:
        confidence = f"case when {ends[0]} is not null or {ends[1]} is not null then {confidence} end"
    return (
        f"{{measure: {literal(column.name)}, original: {numeric(f'o._c{number}', column.additive)}, "
        f"estimate: {numeric(f'e._c{number}', column.additive)}, "
        f"low: {ends[0]}, high: {ends[1]}, confidence: {confidence}, note: {_note(sides, number)}}}"
    )


PAIRS = (
    "the release is joined with itself: records agree with one another more often in estimated values than in true "
    "ones, so the number of pairs is mostly too high"
)
PAIRED = "rows with the same keys are paired in the order of their values"
ROWS = "rows of one plausible table; no row is the record of an individual"
_OF_ANY_TYPE = (exp.Min, exp.Max, exp.Mode, exp.Median, exp.PercentileDisc, exp.PercentileCont, exp.Quantile)


_NUMBERS = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Filter, exp.Round, exp.Paren, exp.Coalesce),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div),
)


def _note(sides: _Sides, number: int) -> str:
    unbounded = sides.answer.unbounded
    texts = [*sides.notes, *[unbounded] * bool(unbounded and number not in sides.bounded)]
    messages = [literal(node) for node in ["; ".join(texts)] if node]
    if sides.answer.draws:
        left_out = f"concat(e.{LEFT_OUT}, ' groups that fewer than half of them have are left out')"
        messages.insert(0, f"case when e.{LEFT_OUT} > 0 then {left_out} end")
        messages.insert(0, literal(f"put together from {sides.answer.draws} plausible tables"))
    messages += _marks(sides)
    if number in sides.bounded:
        low, high, value = (f"try_cast(e._c{number}{end}::varchar as double)" for end in ("_low", "_high", ""))
        wide = f"{high} - {low} > abs({value})"
        messages.append(f"case when {wide} then {literal(WIDE)} end")
    if number < len(sides.made_of) and not _is_number(sides.made_of[number]):
        empty = f"e._c{number} is not null and try_cast(e._c{number}::varchar as double) is null"
        shown = f"concat('the answer is ', e._c{number}::varchar, ', which is not a number')"
        messages.append(f"case when {empty} then {shown} end")
    return f"nullif(concat_ws('; ', {', '.join(messages)}), '')" if messages else "null::varchar"


def _marks(sides: _Sides) -> list[str]:
    """SQL of what is to be said of a row that the release does not decide."""
    found = [f"case when e.{CLOSE_ENDS} then {literal(CLOSE)} end"] * (sides.cut is not None and sides.compares)
    texts = [literal(mark) for mark in sides.answer.marks if mark != PICKED or sides.cut is None]
    counts = [
        number
        for number, confidence in sides.bounded.items()
        if confidence == 1 and isinstance(sides.made_of[number], (exp.Count, exp.Sum))
    ]
    sure = " or ".join(["false", *(f"coalesce(e._c{number}_low > 0, false)" for number in counts)])
    return [*found, *(f"case when not ({sure}) then {text} end" for text in texts)]


def _is_number(node: exp.Expr) -> bool:
    """Whether a measure is a number whatever the columns are: counts, sums, means, and arithmetic with them."""
    return isinstance(node, _NUMBERS) and not any(all_of(node, *_OF_ANY_TYPE))


def _joined(sides: _Sides, keys: Sequence[int]) -> str:
    if sides.is_one_row:
        return "_original as o cross join _estimate as e"
    on = [f"o._c{number} is not distinct from e._c{number}" for number in keys]
    on += [f"o.{node} is not distinct from e.{node}" for node in sides.question.hidden]
    kind = "left" if sides.limited else "full"
    original, estimate = "_original", "_estimate"
    if not sides.has_unique_keys:
        # groups of a step below, or of several SELECTs, may look alike: these are paired by the order of their values
        names = [f"_c{number}" for number in keys] + list(sides.question.hidden)
        values = [f"_c{number}" for number, column in enumerate(sides.columns) if column.measure]
        by = f"partition by {', '.join(names)} " if names else ""
        placed = f"select *, row_number() over ({by}order by {', '.join(values)}) as _place from"
        original, estimate = f"({placed} _original)", f"({placed} _estimate)"
        on.append("o._place = e._place")
    return f"{original} as o {kind} join {estimate} as e on {' and '.join(on)}"
