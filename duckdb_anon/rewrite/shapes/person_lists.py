"""Releases with a row a person and a list of hierarchy nodes for the person's set of values.

A node stands for one value, each leaf below it equally likely, independently of the other nodes. So a person
whose list has a node of n leaves has each of them with probability 1/n. Two readings, by the original's type:

* the original has a row a value (visits): a person stands for as many rows as its list has nodes;
* the original has a row a person with a list of values: conditions on membership (list_contains, list_has_all,
  list_has_any, `x in col`) are answered over the possible worlds of the values they name; where the query
  unnests the list (FROM persons, unnest(col) AS u(x)) it reads rows of single values, as above.

A node may stand for several values of a person, which nobody can tell from the release: numbers of values come
out low, and so do chances of having a value. What is sure is that it stands for one at least, so that numbers of
values have a hard lower bound: the nodes of which every leaf is asked for. NULL is a leaf of its own, labelled
'(null)', that a root may stand for too: in the estimate where that label occurs in the release, in the bound always.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.template import multiplied, own, select, tree, truth
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.listed import NULL_LABEL, NodePart
from duckdb_anon.rewrite.shapes.parts import Request, labelled, shares_of_values
from duckdb_anon.rewrite.shapes.released import Model

MOST_VALUES = 8
_MEMBERSHIP = (exp.ArrayContains, exp.ArrayContainsAll, exp.ArrayOverlaps, exp.In, exp.Any)
_ALL_OF = ("list_has_all", "array_has_all")
_ANY_OF = ("list_has_any", "array_has_any")


@dataclass(frozen=True)
class ItemPart(NodePart):
    """Rows of single values, published as one list a person: each node is one row, spread over its leaves."""

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a node and leaf below it, of weight 1 / leaves of the node."""
        return select(
            "select _cell, _leaf as {value}, _chance as _weight from {chances} as _chances",
            value=self.columns[0],
            chances=_chances(self),
        )

    def shares(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select:
        """Answers from the list of values; how many rows there surely are, from the nodes."""
        surely = [label for request, label in zip(requests, labels, strict=True) if request.wanted == "fewest"]
        if not surely:
            return super().shares(requests, labels)
        told = [labelled(self._fewest(one), at) for one, at in zip(requests, labels, strict=True) if at in surely]
        nodes = select(
            "select _cell, {told} from (select _cell, _node, {sure} from (select _cell, _node, _leaf as {value} "
            "from {chances} as _chances) group by _cell, _node) group by _cell",
            told=[labelled(tree("count_if({x})", x=own(label)), label) for label in surely],
            sure=told,
            value=self.columns[0],
            chances=_chances(self, nodes=True),
        )
        others = [(request, at) for request, at in zip(requests, labels, strict=True) if at not in surely]
        if not others:
            return nodes
        rest = super().shares([request for request, _ in others], [at for _, at in others])
        both = [own(label, "surely" if label in surely else "likely") for label in labels]
        return select(
            "select _likely._cell, {both} from {rest} as _likely join {nodes} as _surely "
            "on _likely._cell is not distinct from _surely._cell",
            both=both,
            rest=rest,
            nodes=nodes,
        )

    def with_null(self, always: bool) -> exp.Query:
        """SELECT node, leaf: the nodes of the tree, the label of NULL, and the roots once more, with NULL below them.

        Args:
            always: whether a root may stand for NULL even where the release shows none.
        """
        shown = tree(
            "exists (select 1 from {cells} where list_contains(_cell, {label}))",
            cells=self.cells(),
            label=exp.Literal.string(NULL_LABEL),
        )
        return select(
            f"""
            select * from (
              select _node, _leaf from {{leaves}}
              union all select {{label}}, null::{self.kind}
              union all select distinct _root, null::{self.kind} from {{roots}} as _roots(_root) where {{possible}}
            )""",
            leaves=self.leaves(),
            label=exp.Literal.string(NULL_LABEL),
            roots=self._roots(),
            possible=truth(True) if always else shown,
        )

    def _fewest(self, request: Request) -> exp.Expr:
        """Whether a node stands for a row that satisfies a condition, whichever of its leaves it stands for."""
        where = request.condition if request.condition is not None else truth(True)
        return tree("bool_and({where} is true)", where=where)


@dataclass(frozen=True)
class MemberPart(NodePart):
    """A list of values of a person, published as a list of nodes."""

    def values(self, used: Sequence[str]) -> exp.Select:
        """Whole lists cannot be listed.

        Raises:
            RewriteError: always.
        """
        raise self._error("a query that shows, groups by or joins on it")

    def shares(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select:
        """Answer requests over the possible worlds of the values they name.

        Raises:
            RewriteError: a request speaks of more than membership, or names more than 8 values.
        """
        named = sorted({one for request in requests for one in self._named(request)}, key=lambda one: one.name)
        if len(named) > MOST_VALUES:
            raise RewriteError(
                f"conditions on '{self.columns[0]}' name {len(named)} values; at most {MOST_VALUES} can be put together"
            )
        return shares_of_values(self._worlds(named), requests, labels)

    def _worlds(self, named: list[exp.Expr]) -> exp.Select:
        """SELECT cell, list, weight: one row a cell and subset of the named values that it may hold."""
        chances = [
            tree(f"coalesce(max(_chance) filter (where _leaf = {{text}}::{self.kind}), 0) as _chance_of_{i}", text=text)
            for i, text in enumerate(named)
        ]
        has = [tree(f"(_world >> {i}) & 1 = 1") for i in range(len(named))]
        weights = [
            tree(f"case when {{has}} then _chance_of_{i} else 1 - _chance_of_{i} end", has=test)
            for i, test in enumerate(has)
        ]
        members = [tree("case when {has} then {text} end", has=t, text=v) for t, v in zip(has, named, strict=True)]
        return select(
            f"""
            select * from (
              select _cell, list_filter([{{members}}]::{self.kind}[], lambda _member: _member is not null) as {{value}},
                {{weight}} as _weight
              from (select _cell, {{chances}} from {{found}} as _chances group by _cell) as _known
              cross join range({2 ** len(named)}) as _worlds(_world)
            ) as _weighted where _weight > 0""",
            members=members,
            value=self.columns[0],
            weight=multiplied(weights),
            chances=chances,
            found=_chances(self, named),
        )

    def _named(self, request: Request) -> Iterator[exp.Expr]:
        """The values a request names."""
        if request.value is not None:
            raise self._error(plain(request.value))
        condition = request.condition if request.condition is not None else truth(True)
        for column in all_of(condition, exp.Column):
            around = _test_around(column)
            if around is None:
                raise self._error(plain(condition))
            yield from all_of(around, exp.Literal)

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
        part = model.part_of.get(fold(column.name)) if isinstance(column, exp.Column) else None
        names = unnest.alias_column_names if isinstance(unnest, exp.Unnest) else []
        if not isinstance(part, MemberPart) or column is None or column.table != alias or len(names) != 1:
            continue
        select.args["joins"].remove(join)
        if any(c.table == alias and fold(c.name) in part.columns for c in all_of(select, exp.Column)):
            raise part._error("a query that unnests it and asks for the whole list as well")
        for used in all_of(select, exp.Column):
            if used.table == unnest.alias:
                used.replace(column.copy())
        items = ItemPart(
            part.name, part.columns, part.key, part.release, counted=True, hierarchy=part.hierarchy, kind=part.kind
        )
        parts = tuple(items if one is part else one for one in model.parts)
        model = replace(model, parts=parts, bounded=False)
    return model


def _test_around(column: exp.Column) -> exp.Expr | None:
    """The membership test a column stands in, with constants as its other side; None for anything else."""
    node = column.parent
    while isinstance(node, exp.Paren):
        node = node.parent
    if not isinstance(node, (*_MEMBERSHIP, exp.Anonymous)) or not _has_as_list(node, column):
        return None
    test = node.parent if isinstance(node, exp.Any) and node.parent is not None else node
    constants = all(
        isinstance(
            part, (exp.Literal, exp.Array, exp.Column, exp.Paren, exp.Any, exp.Cast, exp.DataType, exp.Identifier)
        )
        for part in test.walk()
        if part is not test
    )
    return test if constants and len(all_of(test, exp.Column)) == 1 else None


def _has_as_list(test: exp.Expr, column: exp.Column) -> bool:
    """Whether a test asks what values a column's list has: not whether the list is one of several, or has no others."""
    if isinstance(test, exp.ArrayOverlaps):
        return True
    if isinstance(test, exp.Anonymous):
        first = test.expressions[0].unnest() if test.expressions else None
        return fold(test.name) in _ANY_OF or (fold(test.name) in _ALL_OF and first is column)
    if isinstance(test, exp.In):
        field = test.args.get("field")
        return field is not None and field.unnest() is column
    if isinstance(test, exp.Any):
        equal = test.parent
        return isinstance(equal, exp.EQ) and equal.expression is test
    of: exp.Expr = test.this.unnest()
    return of is column


def _chances(part: NodePart, named: Sequence[exp.Expr] | None = None, nodes: bool = False) -> exp.Select:
    """SELECT cell, leaf, chance that a node of the cell stands for the leaf; a row of NULLs keeps every cell."""
    wanted: exp.Expr = truth(True)
    if named is not None:
        values = [tree(f"{{value}}::{part.kind}", value=value) for value in named]
        wanted = tree("_leaf in ({values})", values=values) if named else truth(False)
    leaves = part.with_null(always=nodes) if isinstance(part, ItemPart) else part.leaves()
    listed = select("select _cell, unnest(_cell) as _node from {cells} as _cells", cells=part.cells())
    if (unknown := part.unknown) is not None:
        listed = select(
            "select _cell, "
            f"case when _known is null and _node <> '{NULL_LABEL}' then error({{unknown}}) else _node end as _node "
            "from {listed} as _listed "
            "left join (select distinct _node as _known from {leaves} as _all) as _told on _node = _known",
            unknown=unknown,
            listed=listed,
            leaves=part.leaves(),
        )
    return select(
        f"""
        select _nodes._cell{", _nodes._node" if nodes else ""}, _leaves._leaf, _leaves._chance
        from {{listed}} as _nodes
        {"join" if named is None else "left join"} (
          select * from (select *, 1.0 / count(*) over (partition by _node) as _chance from {{leaves}} as _below)
          as _sized where {{wanted}}) as _leaves on _nodes._node = _leaves._node""",
        listed=listed,
        leaves=leaves,
        wanted=wanted,
    )
