"""What columns of a rewritten query's steps are called, so that an analyst can follow them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, Term
from duckdb_anon.rewrite.query.template import own_name
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.parts import Part


def names_of(node: exp.Expr) -> str:
    """The columns of an expression, as part of a name."""
    return "_".join(dict.fromkeys(fold(own_name(c)) for c in all_of(node, exp.Column))) or "constant"


def label_of(term: Term, spread: list[Part]) -> str:
    """What a sum of products is called: by what is expected, or by what the chance depends on."""
    skipped = {BY_VALUE, *(part.name for part in spread)}
    values = [names_of(value) for part, value in term.values.items() if part not in skipped and value.find(exp.Column)]
    if values:
        return f"expected_{'_'.join(values)}"
    tested = [names_of(condition) for part, condition in term.conditions.items() if part not in skipped]
    return f"share_of_{'_'.join(tested)}" if tested else "rows"


def unlike(label: str, others: Iterable[str]) -> str:
    """A name that is none of the others."""
    found, taken, step = label, set(others), 1
    while found in taken:
        step += 1
        found = f"{label}_{step}"
    return found
