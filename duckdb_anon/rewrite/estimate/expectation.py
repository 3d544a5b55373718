"""Conditions and amounts as sums of products of independent parts.

A released row stands for an unknown original row whose parts (the columns inside one cell, or one attribute
group) are independent. So the expectation of a product of per-part functions is the product of their
expectations, and everything else is algebra: AND multiplies, OR is inclusion-exclusion, a CASE splits into
its branches, sums add. Conditions on one part are kept whole, as a set of its values: SQL evaluates them, so
NULL keeps its three-valued meaning and nothing is counted twice.

An event is "the condition is TRUE"; its negation is pushed down to single parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.template import copied, every, some, taken, tree
from duckdb_anon.rewrite.shapes.known_expressions import compares, never_null

EXACT = "exact"
BY_VALUE = "by value"
MOST_TERMS = 64
HomeOf = Callable[[exp.Expr], str | None]


@dataclass(frozen=True)
class Term:
    """One product: sign * product over parts of E[value if condition].

    Attributes:
        sign: +1 or -1.
        conditions: part to the condition its values must satisfy.
        values: part to the number its values contribute.
    """

    sign: int = 1
    conditions: Mapping[str, exp.Expr] = field(default_factory=dict)
    values: Mapping[str, exp.Expr] = field(default_factory=dict)

    def times(self, other: Term) -> Term:
        """Multiply: conditions on the same part intersect, values on the same part multiply."""
        conditions, values = dict(self.conditions), dict(self.values)
        for part, condition in other.conditions.items():
            mine = conditions.get(part)
            conditions[part] = _both(mine, condition) if mine is not None else condition
        for part, value in other.values.items():
            mine = values.get(part)
            values[part] = _binary(mine, value) if mine is not None else value
        return Term(self.sign * other.sign, conditions, values)

    @property
    def key(self) -> frozenset[tuple[str, str, exp.Expr]]:
        """Equal for products that differ in sign only."""
        return frozenset(
            (kind, part, node)
            for kind, factors in (("if", self.conditions), ("value", self.values))
            for part, node in factors.items()
        )

    def negated(self) -> Term:
        """The same product with the other sign."""
        return Term(-self.sign, self.conditions, self.values)


def split(condition: exp.Expr) -> list[exp.Expr]:
    """List the operands of the outermost ANDs."""
    if isinstance(condition, exp.Subquery):  # whose own parentheses count for none
        return [exp.Paren(this=copied(condition))]
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*split(condition.left), *split(condition.right)]
    return [condition]


def event(condition: exp.Expr, home_of: HomeOf) -> list[Term]:
    """Write the probability that `condition` is TRUE as a sum of products.

    Raises:
        RewriteError: when it takes more than 64 products.
    """
    return _event(normal(condition, home_of), home_of)


def normal(condition: exp.Expr, home_of: HomeOf) -> exp.Expr:
    """Push NOT down to conditions on single parts: same event, AND and OR only above them."""
    condition = condition.unnest()
    if home_of(condition) is not None:
        return condition
    if isinstance(condition, (exp.And, exp.Or)):
        sides = [normal(side, home_of) for side in (condition.left, condition.right)]
        return _join(type(condition), sides)
    if isinstance(condition, exp.Not):
        inner = condition.this.unnest()
        if isinstance(inner, exp.Not):
            return normal(inner.this, home_of)
        if isinstance(inner, (exp.And, exp.Or)):
            other = exp.Or if isinstance(inner, exp.And) else exp.And
            return _join(other, [normal(tree("not {side}", side=side), home_of) for side in (inner.left, inner.right)])
        if isinstance(inner, (exp.Case, exp.If, exp.Coalesce)):
            return normal(_negated(inner), home_of)
    if isinstance(condition, (exp.Case, exp.If, exp.Coalesce)):
        return _chosen(condition, home_of)
    return condition


def _negated(choice: exp.Expr) -> exp.Expr:
    """NOT of a CASE or COALESCE of conditions: that of each."""
    if isinstance(choice, exp.Coalesce):
        first, *rest = (tree("not {one}", one=one) for one in [choice.this, *choice.expressions])
        return exp.Coalesce(this=first, expressions=rest)
    pairs = [(branch.this, branch.args["true"]) for branch in whens(choice)]
    other = choice.args.get("default") or choice.args.get("false")
    ifs = [exp.If(this=taken(when), true=tree("not {then}", then=then)) for when, then in pairs]
    return exp.Case(ifs=ifs, default=tree("not {other}", other=other) if other is not None else None)


def _chosen(choice: exp.Expr, home_of: HomeOf) -> exp.Expr:
    """The event that a CASE or COALESCE of conditions is TRUE, as AND and OR of conditions."""
    cases: list[exp.Expr] = []
    before: list[exp.Expr] = []
    options = [choice.this, *choice.expressions] if isinstance(choice, exp.Coalesce) else []
    if any(home_of(one.unnest()) is None for one in options[:-1]):
        raise RewriteError(
            f"{plain(choice)} cannot be estimated from the release: whether a condition on several columns is NULL "
            "is not known; write it with CASE, AND and OR"
        )
    for one in options:
        cases.append(_join(exp.And, [*before, normal(one, home_of)]))
        before.append(tree("{one} is null", one=one))
    for when, then in [] if options else _options(choice, home_of):
        cases.append(_join(exp.And, [*before, normal(when, home_of), normal(then, home_of)]))
        before.append(unless(when, home_of))
    return _join(exp.Or, cases) if cases else exp.false()


def unless(condition: exp.Expr, home_of: HomeOf) -> exp.Expr:
    """The complement of an event: `condition` is FALSE or NULL."""
    condition = normal(condition, home_of)
    if home_of(condition) is None and isinstance(condition, (exp.And, exp.Or)):
        other = exp.Or if isinstance(condition, exp.And) else exp.And
        return _join(other, [unless(side, home_of) for side in (condition.left, condition.right)])
    return tree("not {condition} is true", condition=condition)


def amount(value: exp.Expr, home_of: HomeOf) -> list[Term]:
    """Write the expectation of a number (NULL counting 0) as a sum of products."""
    value = value.unnest()
    home = home_of(value)
    if home is not None:
        return [Term(1, {}, {home: value})]
    if isinstance(value, (exp.Add, exp.Sub)):
        left = product(amount(value.left, home_of), presence(value.right, home_of))
        right = product(amount(value.right, home_of), presence(value.left, home_of))
        return left + (right if isinstance(value, exp.Add) else [term.negated() for term in right])
    if isinstance(value, exp.Mul):
        return product(amount(value.left, home_of), amount(value.right, home_of))
    if isinstance(value, exp.Div):
        one = tree("1 / {right}", right=value.right)
        return product(amount(value.left, home_of), amount(one, home_of))
    if isinstance(value, exp.Neg):
        return [term.negated() for term in amount(value.this, home_of)]
    return [term for when, then in branches(value, home_of) for term in product(when, amount(then, home_of))]


def presence(value: exp.Expr, home_of: HomeOf) -> list[Term]:
    """Write the probability that a number is not NULL as a sum of products."""
    value = value.unnest()
    if never_null(value):
        return [Term()]
    if home_of(value) is not None:
        return event(present(value, home_of), home_of)
    if isinstance(value, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        return product(presence(value.left, home_of), presence(value.right, home_of))
    if isinstance(value, exp.Neg):
        return presence(value.this, home_of)
    return [term for when, then in branches(value, home_of) for term in product(when, presence(then, home_of))]


def present(value: exp.Expr, home_of: HomeOf) -> exp.Expr:
    """The event that a number is not NULL."""
    value = value.unnest()
    if never_null(value):
        return exp.true()
    if home_of(value) is not None:
        return tree("{value} is not null", value=value)
    if isinstance(value, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        return _join(exp.And, [present(value.left, home_of), present(value.right, home_of)])
    if isinstance(value, exp.Neg):
        return present(value.this, home_of)
    cases: list[exp.Expr] = []
    before: list[exp.Expr] = []
    for when, then in _options(value, home_of):
        cases.append(_join(exp.And, [*before, when, present(then, home_of)]))
        before.append(unless(when, home_of))
    return _join(exp.Or, cases) if cases else exp.false()


def branches(value: exp.Expr, home_of: HomeOf) -> list[tuple[list[Term], exp.Expr]]:
    """Split a CASE or COALESCE into disjoint branches: the probability of each, and its value."""
    found: list[tuple[list[Term], exp.Expr]] = []
    before = [Term()]
    for when, then in _options(value, home_of):
        taken = event(when, home_of)
        if not isinstance(then.unnest(), exp.Null):
            found.append((product(before, taken), then))
        before = product(before, _complement(when, taken, home_of))
    return found


def _complement(condition: exp.Expr, taken: list[Term], home_of: HomeOf) -> list[Term]:
    if home_of(condition) is not None:
        return event(unless(condition, home_of), home_of)
    return [Term(), *(term.negated() for term in taken)]


def _options(value: exp.Expr, home_of: HomeOf) -> list[tuple[exp.Expr, exp.Expr]]:
    """The branches of a CASE or COALESCE in order, each taken when none before it is."""
    if isinstance(value, exp.Coalesce):
        return [(present(option, home_of), option) for option in [value.this, *value.expressions]]
    pairs = [(branch.this, branch.args["true"]) for branch in whens(value)]
    other = value.args.get("default") or value.args.get("false")
    return [*pairs, (exp.true(), other)] if other is not None else pairs


def whens(value: exp.Expr) -> list[exp.Expr]:
    """The WHEN branches of a CASE, as conditions even when it compares one operand with values."""
    if isinstance(value, exp.If):
        return [value]
    operand = value.args.get("this")
    if operand is None:
        return list(value.args["ifs"])
    return [
        exp.If(this=tree("{a} = {b}", a=operand, b=one.this), true=taken(one.args["true"])) for one in value.args["ifs"]
    ]


def _event(condition: exp.Expr, home_of: HomeOf) -> list[Term]:
    if isinstance(condition, exp.Boolean) and condition.this:
        return [Term()]
    home = home_of(condition)
    if home is not None:
        return [Term(1, {home: condition}, {})]
    operands = _grouped(condition, type(condition), home_of)
    sums = [_event(operand, home_of) for operand in operands]
    if isinstance(condition, exp.And):
        whole = sums[0]
        for other in sums[1:]:
            whole = product(whole, other)
        return whole
    terms: list[Term] = []
    for size in range(1, len(sums) + 1):
        for chosen in combinations(sums, size):
            joint = chosen[0]
            for other in chosen[1:]:
                joint = product(joint, other)
            terms = _collected(terms + (joint if size % 2 else [term.negated() for term in joint]))
    return terms


def _grouped(condition: exp.Expr, kind: type[exp.Expr], home_of: HomeOf) -> list[exp.Expr]:
    """Flatten an AND or OR and join its operands on the same part, so that each part is one set."""
    flat = _flat(condition, kind)
    by_home: dict[str, list[exp.Expr]] = {}
    others = []
    for operand in flat:
        home = home_of(operand)
        if home is None:
            others.append(operand)
        else:
            by_home.setdefault(home, []).append(operand)
    return [_join(kind, operands) for operands in by_home.values()] + others


def _flat(condition: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, kind):
        return [*_flat(condition.this, kind), *_flat(condition.expression, kind)]
    return [condition]


def product(left: list[Term], right: list[Term]) -> list[Term]:
    """Multiply two sums of products; what cancels out is gone."""
    return _collected([a.times(b) for a in left for b in right])


def _collected(terms: list[Term]) -> list[Term]:
    """Add up equal products."""
    kept: dict[frozenset[tuple[str, str, exp.Expr]], list[Term]] = {}
    for term in terms:
        alike = kept.setdefault(term.key, [])
        if alike and alike[-1].sign != term.sign:
            alike.pop()
        else:
            alike.append(term)
    found = [term for alike in kept.values() for term in alike]
    _check(len(found))
    return found


def _check(count: int) -> None:
    if count > MOST_TERMS:
        raise RewriteError(
            f"the condition joins too many alternatives of different columns by OR: more than {MOST_TERMS} "
            "products; split the query, or write alternatives on one column together"
        )


def _join(kind: type[exp.Expr], operands: list[exp.Expr]) -> exp.Expr:
    true = [isinstance(operand, exp.Boolean) and operand.this for operand in operands]
    if kind is exp.Or and any(true):
        return exp.true()
    kept = [operand for operand, is_true in zip(operands, true, strict=True) if not is_true]
    return every(kept) if kind is exp.And else some(kept)


def _both(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """Intersect two conditions on one part, naming each operand once, in a fixed order."""
    operands = dict.fromkeys(node for side in (one, other) for node in split(side))
    for operand in list(operands):
        if isinstance(operand, exp.Not) and isinstance(operand.this, exp.Is):
            column = operand.this.this
            null = isinstance(operand.this.expression, exp.Null) and isinstance(column, exp.Column)
            if null and any(compares(node, column) for node in operands):
                del operands[operand]  # what satisfies a comparison is there
    return _join(exp.And, sorted(operands, key=_order))


def _order(node: exp.Expr) -> list[str]:
    """Puts expressions in an order that does not change from run to run."""
    return [f"{type(one).__name__} {one.this if isinstance(one.this, str) else ''}" for one in node.walk()]


def _binary(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return tree("{left} * {right}", left=left, right=right)
