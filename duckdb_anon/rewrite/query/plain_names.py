"""Names of a rewritten query as short as they can be: what an analyst would have written by hand.

    SELECT people.sex AS sex, sum(people.n) AS total FROM eligible AS people GROUP BY people.sex
    SELECT sex, sum(n) AS total FROM eligible GROUP BY sex

A column of the only item of FROM needs no table before it, except where the SELECT gives its name to something else,
which ORDER BY would take; nor does one that a single one of several steps of our own has. A step of our own that
nothing names needs no alias, and a column of it no alias that is its name. Columns of subqueries that read the SELECT
around them stay as they are. Cost: a pass over each SELECT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.walking import Node, all_of

Names = frozenset[str]
_OF_ROWS = (exp.From, exp.Join, exp.Lateral, exp.CTE, exp.SetOperation, exp.Subquery, exp.Table)
"""What a subquery is a table in."""


def shorten_names(query: exp.Expr, columns: Iterable[str] = ()) -> None:
    """Take away what names need not say, in place.

    Args:
        query: a rewritten query whose names have their spelling.
        columns: names of the tables' columns, as DuckDB spells them.

    >>> from sqlglot import parse_one
    >>> query = parse_one("WITH s AS (SELECT r.a + 1 AS b FROM t AS r) SELECT p.b AS b, p.b AS c FROM s AS p", "duckdb")
    >>> shorten_names(query)
    >>> query.sql("duckdb")
    'WITH s AS (SELECT a + 1 AS b FROM t AS r) SELECT b, b AS c FROM s'
    """
    steps: dict[str, Names] = {}
    shown: dict[str, Names | None] = {}
    found = all_of(query, exp.CTE, exp.Select, exp.Table, exp.Alias, exp.TableAlias)
    for cte in _those(found, exp.CTE):  # one reads those before it
        steps[cte.alias] = _given(cte.this, steps)
        shown[cte.alias] = _shown(cte.this, shown)
    selects = _those(found, exp.Select)
    for select in selects:
        source = select.args.get("from_")
        item = source.this if source is not None else None
        alone = not select.args.get("joins") and not select.args.get("laterals")
        if isinstance(item, (exp.Table, exp.Subquery)) and alone:
            _shorten(select, item, steps)
        elif not alone:
            _shorten_steps(select, shown)
    for table in _those(found, exp.Table):
        alias = table.args.get("alias")
        if alias is not None and not alias.columns and table.alias == table.name and not table.db:
            table.set("alias", None)
    standing = [one for one in found if one.parent is not None]
    _call_once(selects, [one for one in standing if isinstance(one, (exp.Alias, exp.TableAlias))], columns)


def _those(found: Iterable[exp.Expr], kind: type[Node]) -> list[Node]:
    return [one for one in found if isinstance(one, kind)]


def _call_once(selects: Iterable[exp.Select], names: Iterable[exp.Expr], columns: Iterable[str]) -> None:
    """Take away aliases that are the column's name, and those of subqueries that are values.

    A column is shown as its table spells it: where anything spells a name otherwise, its alias stays.
    """
    called = [one.alias for one in _those(names, exp.Alias)]
    called += [column.name for one in _those(names, exp.TableAlias) for column in one.columns]
    spelled: dict[str, set[str]] = {}
    for one in [*called, *columns]:
        spelled.setdefault(fold(one), set()).add(one)
    for select in selects:
        if isinstance(select.parent, exp.SetOperation):
            continue
        value = _is_value(select)
        for one in list(select.expressions):
            if not isinstance(one, exp.Alias):
                continue
            made_of, name = one.this, one.alias
            same = isinstance(made_of, exp.Column) and made_of.name == name and spelled[fold(name)] == {name}
            if same or (value and not any(c.name == name for c in all_of(select, exp.Column))):
                one.replace(made_of)


def _is_value(select: exp.Select) -> bool:
    """Whether a SELECT stands in an expression, where nothing reads the name of its column."""
    around = select.parent
    if isinstance(around, exp.Subquery):
        within = around.parent
        return not around.alias and within is not None and not isinstance(within, _OF_ROWS)
    return isinstance(around, (exp.In, exp.Exists))


def _given(step: exp.Expr, steps: Mapping[str, Names]) -> Names:
    """Names a step gives to its columns, letter by letter, and those it takes over whole from the steps it reads."""
    if not isinstance(step, exp.Select):
        return frozenset()
    names = {one.alias for one in step.expressions if isinstance(one, exp.Alias)}
    source = step.args.get("from_")
    if source is not None and any(one.is_star for one in step.expressions):
        inner = source.this
        names |= _given(inner.this, steps) if isinstance(inner, exp.Subquery) else steps.get(inner.name, frozenset())
    return frozenset(names)


def _shown(step: exp.Expr, steps: Mapping[str, Names | None]) -> Names | None:
    """All columns of a step; None where they are not seen from it and the steps it reads."""
    found: set[str] = set()
    for one in step.expressions if isinstance(step, exp.Select) else [step]:
        items = _items(step) if one.is_star and isinstance(step, exp.Select) else {}
        of_table = one.table if isinstance(one, exp.Column) else ""
        all_of_items = [steps.get(item.name) for alias, item in items.items() if of_table in ("", alias)]
        if isinstance(one, exp.Alias) or (isinstance(one, exp.Column) and not one.is_star):
            found.add(fold(one.alias_or_name))
        elif not all_of_items or any(names is None for names in all_of_items):
            return None
        else:
            found.update(*(names for names in all_of_items if names is not None))
    return frozenset(found)


def _items(select: exp.Select) -> dict[str, exp.Table]:
    """The tables of a FROM clause that joins nothing but tables, all rows with all, by what they are called."""
    source, joins = select.args.get("from_"), select.args.get("joins") or []
    items = [source.this if source is not None else None, *(join.this for join in joins)]
    crossed = not select.args.get("laterals") and all(join.kind == "CROSS" for join in joins)
    tables = [one for one in items if isinstance(one, exp.Table) and not one.db]
    return {one.alias_or_name: one for one in tables} if crossed and len(tables) == len(items) else {}


def _shorten_steps(select: exp.Select, steps: Mapping[str, Names | None]) -> None:
    """The same of several steps that are joined, all rows with all."""
    items = _items(select)
    names = {alias: steps.get(item.name) or frozenset() for alias, item in items.items()}
    if not all(names.values()):
        return
    taken = {fold(one.alias) for one in select.expressions if isinstance(one, exp.Alias)}
    needed: set[str] = set()
    for column, of_subquery in _columns(select):
        called = fold(column.name)
        alone = sum(called in one for one in names.values()) == 1
        if of_subquery or called in taken or not alone or column.is_star:
            needed.add(column.table)
        elif column.table in names and called in names[column.table]:
            column.set("table", None)
    for alias, item in items.items():
        if alias not in needed:
            item.set("alias", None)


def _shorten(select: exp.Select, item: exp.Table | exp.Subquery, steps: Mapping[str, Names]) -> None:
    alias = item.alias
    if not alias or item.args["alias"].columns or set(filter(item.args.get, item.args)) - {"this", "alias"}:
        return
    named = [one for one in select.expressions if isinstance(one, exp.Alias)]
    taken = {fold(one.alias) for one in named if not _is_called(one.this, one.alias)}
    needed = False
    for column, of_subquery in _columns(select):
        if column.table == alias:
            if of_subquery or fold(column.name) in taken:
                needed = True
            else:
                column.set("table", None)
    if isinstance(item, exp.Subquery):
        if not needed:
            item.set("alias", None)
        return
    given = steps.get(item.name) if not item.db else None
    # AGE.lower is a field of a column of any table but of one that is called age
    if not needed and (given is not None or _is_unlike(item, select)):
        item.set("alias", None)
    if given is None:
        return
    for one in named:
        column = one.this
        if isinstance(column, exp.Column) and not column.table and column.name == one.alias and one.alias in given:
            one.replace(column)


def _is_unlike(item: exp.Table, select: exp.Select) -> bool:
    """Whether a table has a plain name that nothing in the SELECT begins with."""
    plain = isinstance(item.this, exp.Var) and item.name.isidentifier()
    return plain and all(fold(one.table) != fold(item.name) for one in all_of(select, exp.Column))


def _is_called(node: exp.Expr, name: str) -> bool:
    """Whether a node is a column with this name."""
    return isinstance(node, exp.Column) and fold(node.name) == fold(name)


def _columns(select: exp.Select) -> list[tuple[exp.Column, bool]]:
    """The columns of a SELECT, and whether each stands in a subquery of it."""
    found = []
    waiting: list[tuple[exp.Expr, bool]] = [(select, False)]
    for around, of_subquery in waiting:
        for value in around.args.values():
            for node in value if isinstance(value, list) else (value,):
                if isinstance(node, exp.Column):
                    found.append((node, of_subquery))
                elif isinstance(node, exp.Expr):
                    waiting.append((node, of_subquery or isinstance(node, exp.Query)))
    return found
