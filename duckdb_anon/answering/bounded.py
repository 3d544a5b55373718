"""Bounds a query asks for itself: `low(count(*))` and `high(count(*))`, where and under which name it likes.

`&bounds=true` puts `n_low` and `n_high` behind the columns that were asked for; a chart draws only what it asked for.
So a measure's bounds can be measures themselves: `low(measure)`, `high(measure)`, and, outside a subquery that
aggregates, the columns `n_low` and `n_high` of its measure `n` (a tool that lists the subquery's columns shows them).
What is done to such a column is done to the measure, and the bounds of the result are taken: `sum(n_low)` is the low
bound of `sum(n)`, which holds for every aggregate that is answered. A release without bounds gives NULL.

    SELECT sex, count(*) AS n, low(count(*)) AS least FROM people GROUP BY sex
    SELECT sex, n, n_low AS least FROM (<SELECT sex, count(*) AS n FROM people GROUP BY sex, rewritten>) AS bounded
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from duckdb_anon.engine.duckdb_metadata import duckdb_name
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.trees import step_of

_ENDS = ("low", "high")
_Bound = tuple[str, str]
"""An end and the column of a subquery it is the end of."""


def mentions_bounds(text: str) -> bool:
    """Whether a statement may ask for bounds: cheap, before it is read."""
    return any(f"{end}(" in text or f"_{end}" in text for end in _ENDS)


def unbounded(message: str) -> str:
    """DuckDB's message, or what is wrong with `low` or `high` of a table that no release answers for."""
    requested = re.search(r"Scalar Function with name (low|high) does not exist", message)
    if requested is None:
        return message
    return (
        f"Catalog Error: {requested[1]}(...) is a bound of an answer from a release: the URL needs "
        "answer=ORIGINAL:RELEASE, and the query reads ORIGINAL"
    )


def with_bounds(
    query: exp.Expr, rewritten: Callable[[str], str], columns: Callable[[str], list[str]], listed: bool
) -> str | None:
    """The SQL of a query on an original that asks for bounds; None where none are asked for.

    Args:
        query: the query.
        rewritten: rewrites a query's text, with bounds.
        columns: names of the columns of a query's result.
        listed: whether `n_low` and `n_high` are columns of a subquery with the measure `n`.
    """
    tree = query.copy()
    if isinstance(tree, exp.Select):
        _outward(tree, listed)
    calls = _calls(tree)
    if not calls:
        return rewritten(tree.sql("duckdb")) if tree != query else None
    if not isinstance(tree, exp.Select) or any(_place(call, tree) is None for call in calls):
        raise ParameterError(
            f"{_text(calls[0])}: bounds may be asked for as whole columns of the outermost SELECT and in its ORDER BY, "
            f"for instance SELECT sex, count(*), low(count(*)), high(count(*)) FROM people GROUP BY sex"
        )
    single = [call for call in calls if call.expressions[0].find(exp.AggFunc) is None] if _source(tree) is None else []
    if single:
        raise ParameterError(
            f"{_text(single[0])}: a value without an aggregate has no bounds. Aggregates have, for instance "
            "low(count(*)) or high(sum(cost))"
        )
    _unnumbered(tree)
    order = _order_of_bounds(tree)
    outputs: list[_Bound | str] = []
    chosen: list[exp.Expr] = []
    for projection in tree.expressions:
        plain = projection.unalias()
        if not _is_call(plain):
            chosen.append(projection)
            outputs.append(_title(projection))
            continue
        measure = plain.expressions[0]
        names = (
            projection.output_name
            for projection in [*tree.expressions, *chosen]
            if projection.unalias() == measure and projection.output_name
        )
        name = next(names, f"bounded_{len(chosen)}")
        if all(projection.output_name != name for projection in [*tree.expressions, *chosen]):
            chosen.append(exp.alias_(measure.copy(), name, quoted=True))
        outputs.append((fold(plain.name), name))
    titles = [_title(projection) for projection in tree.expressions]
    tree.set("expressions", chosen)
    text = rewritten(tree.sql("duckdb"))
    spelled = {fold(name): name for name in columns(text)}
    selected = [_column(output, title, spelled) for output, title in zip(outputs, titles, strict=True)]
    return f"SELECT {', '.join(selected)} FROM ({text}) AS bounded{order}"


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and fold(node.name) in _ENDS and len(node.expressions) == 1


def _calls(tree: exp.Expr) -> list[exp.Expr]:
    return [node for node in tree.find_all(exp.Anonymous) if _is_call(node)]


def _text(node: exp.Expr) -> str:
    return node.sql("duckdb", normalize_functions=False)


def _title(projection: exp.Expr) -> str:
    """What the answer calls a column, a bound what was asked for."""
    if projection.output_name or _is_call(projection):
        return str(projection.output_name or _text(projection))
    return duckdb_name(projection.sql("duckdb")) or _text(projection)


def _call(end: str, measure: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=end, expressions=[measure])


def _place(call: exp.Expr, tree: exp.Select) -> str | None:
    """Where a call stands that may stand there: as a projection, or in ORDER BY."""
    outermost = call.parent if isinstance(call.parent, exp.Alias) else call
    if outermost.parent is tree and outermost.arg_key == "expressions":
        return "column"
    ordered = call.parent if isinstance(call.parent, exp.Ordered) else None
    return "order" if ordered is not None and ordered.parent is tree.args.get("order") else None


def _outward(tree: exp.Select, listed: bool) -> None:
    """Bounds that a subquery's columns hold, taken of what the outermost query makes of them."""
    inner = _source(tree)
    if inner is None:
        return
    ends = _bound_columns(inner, listed)
    if not ends:
        return
    if any(projection.is_star for projection in tree.expressions) and any(
        node[1] == name for name, node in ends.items()
    ):
        tree.set("expressions", [exp.column(name, quoted=True) for name in inner.named_selects])
    for column in list(tree.find_all(exp.Column)):
        bound = ends.get(fold(column.name))
        if bound is None or column.parent_select is not tree:
            continue
        aggregate = column.find_ancestor(exp.AggFunc, exp.Select)
        outermost = aggregate if isinstance(aggregate, exp.AggFunc) else column
        if outermost is not column and column.parent is not outermost:
            raise ParameterError(f"{_text(outermost)}: {column.name} may be aggregated by itself only")
        name = column.name
        column.set("this", exp.to_identifier(bound[1], quoted=True))
        aliased = isinstance(outermost.parent, exp.Select) and outermost.arg_key == "expressions"
        made = _call(bound[0], outermost.copy())
        outermost.replace(exp.alias_(made, name, quoted=True) if aliased and outermost is column else made)


def _source(tree: exp.Select) -> exp.Select | None:
    """The subquery or CTE that is all a SELECT reads."""
    source = tree.args.get("from_") or tree.args.get("from")
    if source is None or tree.args.get("joins"):
        return None
    inner = source.this
    if isinstance(inner, exp.Table):
        step = step_of(inner)
        return step.this if step is not None and isinstance(step.this, exp.Select) else None
    found = inner.this if isinstance(inner, exp.Subquery) else None
    return found if isinstance(found, exp.Select) else None


def _bound_columns(inner: exp.Select, listed: bool) -> Mapping[str, _Bound]:
    """Columns of a subquery that are bounds; the calls that made them are replaced by their measures."""
    found: dict[str, _Bound] = {}
    for projection in inner.expressions:
        plain, name = projection.unalias(), projection.output_name
        if _is_call(plain) and name:
            found[fold(name)] = (fold(plain.name), name)
            plain.replace(plain.expressions[0].copy())
    names = {fold(name) for name in inner.named_selects}
    for projection in inner.expressions if listed else ():
        if projection.find(exp.AggFunc) is not None and projection.output_name:
            name = projection.output_name
            ends = {fold(f"{name}_{end}"): (end, name) for end in _ENDS}
            found.update({column: bound for column, bound in ends.items() if column not in names})
    return found


def _unnumbered(tree: exp.Select) -> None:
    """`GROUP BY 1` by what it stands for: columns are about to move."""
    for key in ("group", "order"):
        for node in tree.args[key].expressions if tree.args.get(key) else ():
            number = node.this if isinstance(node, exp.Ordered) else node
            if isinstance(number, exp.Literal) and number.is_int and 0 < int(number.name) <= len(tree.expressions):
                number.replace(tree.expressions[int(number.name) - 1].unalias().copy())


def _order_of_bounds(tree: exp.Select) -> str:
    """ORDER BY, LIMIT and OFFSET of a query that is ordered by a bound, taken from it; '' for others."""
    order = tree.args.get("order")
    titles = {fold(projection.output_name): projection for projection in tree.expressions if projection.output_name}
    plain = {projection.unalias(): _title(projection) for projection in tree.expressions}

    def bound(term: exp.Expr) -> bool:
        named = titles.get(fold(term.name)) if isinstance(term, exp.Column) and not term.table else None
        return _is_call(term) or (named is not None and _is_call(named.unalias()))

    if order is None or not any(bound(term.this) for term in order.expressions):
        return ""
    for term in order.expressions:
        name = plain.get(term.this) or (term.name if isinstance(term.this, exp.Column) else "")
        if fold(name) not in {fold(title) for title in plain.values()}:
            raise ParameterError(
                f"ORDER BY {_text(term)}: a query with low() or high() can be ordered by its own output columns only"
            )
        term.set("this", exp.column(name, quoted=True))
    parts = [tree.args.pop(key) for key in ("order", "limit", "offset") if tree.args.get(key)]
    return "".join(f" {part.sql('duckdb').strip()}" for part in parts)


def _column(output: _Bound | str, title: str, spelled: Mapping[str, str]) -> str:
    """A column of the answer by its name, a bound under the name it was asked for."""
    quoted = exp.to_identifier(title, quoted=True).sql("duckdb")
    if isinstance(output, str):
        return quoted
    end, measure = output
    column = spelled.get(fold(f"{measure}_{end}"))
    value = "NULL::DOUBLE" if column is None else exp.to_identifier(column, quoted=True).sql("duckdb")
    return f"{value} AS {quoted}"
