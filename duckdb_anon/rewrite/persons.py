"""Releases with a row a person and a list of hierarchy nodes for the person's set of values.

A node stands for one value, each leaf below it equally likely, independently of the other nodes. So a person
whose list has a node of n leaves has each of them with probability 1/n. Two readings, by the original's type:

* the original has a row a value (visits): a person stands for as many rows as its list has nodes;
* the original has a row a person with a list of values: conditions on membership (list_contains, list_has_all,
  list_has_any, `x in col`) are answered over the possible worlds of the values they name; where the query
  unnests the list (FROM persons, unnest(col) AS u(x)) it reads rows of single values, as above.

A node may stand for several values of a person, which nobody can tell from the release: numbers of values come
out low, and so do chances of having a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.lists import NodePart
from duckdb_anon.rewrite.model import Model
from duckdb_anon.rewrite.parse import plain
from duckdb_anon.rewrite.parts import Request, answer, parsed, quoted

MOST_VALUES = 8
_MEMBERSHIP = (exp.ArrayContains, exp.ArrayContainsAll, exp.ArrayOverlaps, exp.In, exp.Any)
_NAMES = ("list_has_all", "list_has_any", "array_has_all", "array_has_any")


@dataclass(frozen=True)
class ItemPart(NodePart):
    """Rows of single values, published as one list a person: each node is one row, spread over its leaves."""

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a node and leaf below it, of weight 1 / leaves of the node."""
        chosen = exp.select("_cell", f"leaf as {quoted(self.columns[0])}", "chance as _weight", dialect="duckdb")
        return chosen.from_(_chances(self).subquery("_chance"))


@dataclass(frozen=True)
class MemberPart(NodePart):
    """A list of values of a person, published as a list of nodes."""

    def values(self, used: Sequence[str]) -> exp.Select:
        """Whole lists cannot be listed.

        Raises:
            RewriteError: always.
        """
        raise self._error("a query that shows, groups by or joins on it")

    def shares(self, requests: Sequence[Request]) -> exp.Select:
        """Answer requests over the possible worlds of the values they name.

        Raises:
            RewriteError: a request speaks of more than membership, or names more than 8 values.
        """
        named = sorted({text for request in requests for text in self._named(request)})
        if len(named) > MOST_VALUES:
            raise RewriteError(
                f"conditions on '{self.columns[0]}' name {len(named)} values; at most {MOST_VALUES} can be put together"
            )
        answers = [exp.alias_(answer(request), f"s{i}") for i, request in enumerate(requests, 1)]
        return exp.select("_cell", *answers).from_(self._worlds(named).subquery("_v")).group_by("_cell")

    def _worlds(self, named: list[str]) -> exp.Select:
        """SELECT cell, list, weight: one row a cell and subset of the named values that it may hold."""
        chances = [
            f"coalesce(max(chance) filter (where leaf = {text}::{self.kind}), 0) as _p{i}"
            for i, text in enumerate(named)
        ]
        known = exp.select("_cell", *chances, dialect="duckdb").from_(_chances(self, named).subquery("_chance"))
        has = [f"(_world >> {i}) & 1 = 1" for i in range(len(named))]
        weights = [f"case when {test} then _p{i} else 1 - _p{i} end" for i, test in enumerate(has)]
        members = ", ".join(f"case when {test} then {text} end" for test, text in zip(has, named, strict=True))
        listed = f"list_filter([{members}]::{self.kind}[], lambda _m: _m is not null)"
        worlds = exp.select(
            "_cell",
            f"{listed} as {quoted(self.columns[0])}",
            f"{' * '.join(weights) or '1'} as _weight",
            dialect="duckdb",
        )
        worlds = worlds.from_(known.group_by("_cell").subquery("_known"))
        worlds = worlds.join(f"range({2 ** len(named)}) as _w(_world)", join_type="cross", dialect="duckdb")
        return exp.select("*").from_(worlds.subquery("_worlds")).where("_weight > 0", dialect="duckdb")

    def _named(self, request: Request) -> Iterator[str]:
        """SQL of the values a request names."""
        if request.value is not None:
            raise self._error(plain(request.value))
        condition = request.condition if request.condition is not None else exp.true()
        for column in condition.find_all(exp.Column):
            around = _test_around(column)
            if around is None:
                raise self._error(plain(condition))
            yield from (literal.sql("duckdb") for literal in around.find_all(exp.Literal))

    def _error(self, text: str) -> RewriteError:
        return RewriteError(
            f"'{self.columns[0]}' is published as lists of hierarchy nodes, which {text} cannot be answered from; ask "
            f"list_contains({self.columns[0]}, value), list_has_all or list_has_any with constants, or unnest it: "
            f"FROM ..., unnest({self.columns[0]}) AS u(x)"
        )


def unnested(select: exp.Select, model: Model, alias: str) -> Model:
    """Take `unnest(alias.col) as u(x)` out of FROM and read the column value by value.

    Args:
        select: a bound SELECT; changed in place, u.x becomes alias.col.
        model: what the release says.
        alias: name of the original in the SELECT.

    Returns:
        The model to read this SELECT with.

    Raises:
        RewriteError: the SELECT unnests a list and asks for the whole list as well.
    """
    for join in list(select.args.get("joins") or []):
        unnest = join.this
        column = unnest.expressions[0] if isinstance(unnest, exp.Unnest) and unnest.expressions else None
        part = model.part_of.get(column.name.lower()) if isinstance(column, exp.Column) else None
        names = unnest.alias_column_names if isinstance(unnest, exp.Unnest) else []
        if not isinstance(part, MemberPart) or column is None or column.table != alias or len(names) != 1:
            continue
        select.args["joins"].remove(join)
        if any(c.table == alias and c.name.lower() in part.columns for c in select.find_all(exp.Column)):
            raise part._error("a query that unnests it and asks for the whole list as well")
        for used in list(select.find_all(exp.Column)):
            if used.table == unnest.alias:
                used.replace(column.copy())
        items = ItemPart(
            part.name, part.columns, part.key, part.release, counted=True, hierarchy=part.hierarchy, kind=part.kind
        )
        parts = tuple(items if one is part else one for one in model.parts)
        part_of = {**model.part_of, **dict.fromkeys(part.columns, items)}
        model = replace(model, parts=parts, part_of=part_of, bounded=False)
    return model


def _test_around(column: exp.Column) -> exp.Expr | None:
    """The membership test a column stands in, with constants as its other side; None for anything else."""
    node = column.parent
    while isinstance(node, exp.Paren):
        node = node.parent
    if isinstance(node, exp.Anonymous) and node.name.lower() not in _NAMES:
        return None
    if not isinstance(node, (*_MEMBERSHIP, exp.Anonymous)):
        return None
    test = node.parent if isinstance(node, exp.Any) and node.parent is not None else node
    constants = all(
        isinstance(
            part, (exp.Literal, exp.Array, exp.Column, exp.Paren, exp.Any, exp.Cast, exp.DataType, exp.Identifier)
        )
        for part in test.walk()
        if part is not test
    )
    return test if constants and len(list(test.find_all(exp.Column))) == 1 else None


def _chances(part: NodePart, named: Sequence[str] | None = None) -> exp.Select:
    """SELECT cell, leaf, chance that a node of the cell stands for the leaf; a row of NULLs keeps every cell."""
    nodes = exp.select("_cell", "unnest(_cell) as node", dialect="duckdb").from_(part.cells().subquery("_cells"))
    sized = exp.select("*", "1.0 / count(*) over (partition by node) as chance", dialect="duckdb").from_(
        part._leaves().subquery("_each")
    )
    leaves = exp.select("*").from_(sized.subquery("_sized"))
    if named is not None:
        wanted = ", ".join(f"{text}::{part.kind}" for text in named)
        leaves = leaves.where(parsed(f"leaf in ({wanted})" if named else "false"))
    found = exp.select("_nodes._cell", "_leaf.leaf", "_leaf.chance", dialect="duckdb").from_(nodes.subquery("_nodes"))
    kind = "inner" if named is None else "left"
    return found.join(leaves.subquery("_leaf"), on="_nodes.node = _leaf.node", join_type=kind, dialect="duckdb")
