"""The policy of a table: which answers from its rows may leave, from the comment `anon: outputs(...)` on the table.

The defaults are those of ACRO (Preen et al., 2022): 10 individuals, the (2, 90%) rule and the p% rule with 10%.
A table or view without such a comment is not answered from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from duckdb_anon.model.errors import AnonError, ParameterError, listed, nearest
from duckdb_anon.model.function_specs import Parameter
from duckdb_anon.model.quoting import literal

_COMMENT = re.compile(r"\banon:\s*(outputs\s*\((?:[^()']|'[^']*')*\))", re.IGNORECASE)
PARAMETERS = (
    Parameter("threshold", "smallest number of individuals behind an answer", "integer", 10, low=2, high=100_000),
    Parameter("dominance", "[n, share]: the n largest individuals have at most this share of a sum", "any", [2, 0.9]),
    Parameter(
        "p_percent",
        "the rest of a sum is at least this percentage of its largest individual; 0 switches the rule off",
        "number", 10.0, low=0, high=100,
    ),
    Parameter("zeros", "whether an answer of 0 individuals is disclosive", "text", "safe", ("safe", "disclosive")),
    Parameter("ledger", "answers are compared with those of all users or of the same", "text", "all", ("all", "user")),
    Parameter(
        "method", "values are suppressed, or have noise by cell keys", "text", "suppress", ("suppress", "cell_key")
    ),
    Parameter("variance", "variance of the noise of counts, at most `deviation`", "number", 2.0, low=0.1, high=100),
    Parameter("deviation", "largest noise of a count", "integer", 5, low=1, high=100),
)  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """What `anon: outputs(...)` of a table says."""

    threshold: int = 10  # smallest number of individuals behind an answer
    largest: int = 2  # number of individuals of the dominance rule
    share: float = 0.9  # largest share of a sum that they may have, in (0, 1]
    p_percent: float = 10.0  # the rest of a sum is at least this percentage of its largest individual
    zeros: str = "safe"  # 'safe' or 'disclosive': what an answer of 0 individuals is
    ledger: str = "all"  # answers are compared with those of 'all' users or of the same 'user'
    method: str = "suppress"  # or 'cell_key': counts, sums and means have noise
    variance: float = 2.0  # of the noise of counts
    deviation: int = 5  # largest noise of a count


def has_policy(comment: str) -> bool:
    """Whether the comment of a table has a policy, right or wrong."""
    return _COMMENT.search(comment) is not None


def with_policy(comment: str, given: Mapping[str, Any]) -> str:
    """A comment with a policy of such arguments in the place of the one that it has.

    >>> with_policy("staff", {"threshold": 5, "dominance": [1, 0.5]})
    'staff; anon: outputs(threshold := 5, dominance := [1, 0.5])'
    """
    policy = f"anon: outputs({', '.join(f'{name} := {literal(value)}' for name, value in given.items())})"
    if has_policy(comment):
        return _COMMENT.sub(lambda found: policy, comment)
    return "; ".join(filter(None, (comment, policy)))


def policy_of(function: str, table: str, comment: str) -> Policy:
    """The policy in the comment of a table.

    Args:
        function: name of the function, for errors.
        table: the table as the user wrote it, for errors.
        comment: the comment of the table; other text may stand around the policy.

    Raises:
        AnonError: the comment has no policy.
        ParameterError: the policy has an unknown or wrong argument.

    Example:
        >>> policy = policy_of("safe_output", "people", "staff; anon: outputs(threshold := 5, dominance := [1, 0.5])")
        >>> policy.threshold, policy.largest, policy.share, policy.p_percent, policy.method
        (5, 1, 0.5, 10.0, 'suppress')
    """
    found = _COMMENT.findall(comment)
    if len(found) != 1:
        raise AnonError(
            f"{function}: {table} has {'two policies' if found else 'no policy'} for answers. Write one: "
            f"COMMENT ON TABLE {table} IS 'anon: outputs(threshold := 10)'",
            code="no-policy",
        )
    given = _arguments(function, table, found[0])
    known = {parameter.name: parameter for parameter in PARAMETERS}
    for name in given:
        if name not in known:
            raise ParameterError(
                f"{function}: the policy of {table} has '{name}'{nearest(name, known)}. It takes {listed(known)}"
            )
    values = {name: parameter.check(function, given.get(name)) for name, parameter in known.items()}
    number, share = _dominance(function, values.pop("dominance"))
    policy = Policy(largest=number, share=share, **values)
    if policy.variance > policy.deviation:  # no noise of a count of 1 has a larger one
        raise ParameterError(
            f"{function}: the policy of {table} has variance {policy.variance:g}. It is at most deviation "
            f"({policy.deviation})"
        )
    return policy


def _dominance(function: str, given: Any) -> tuple[int, float]:
    if isinstance(given, list) and len(given) == 2:
        number, share = given
        if number in range(1, 101) and 0 < share <= 1:
            return int(number), float(share)
    raise ParameterError(
        f"{function}: dominance is not [n, share]. n is a whole number from 1 to 100, share a number in (0, 1]. "
        "Write dominance := [2, 0.9]"
    )


def _arguments(function: str, table: str, text: str) -> dict[str, Any]:
    try:
        call = sqlglot.parse_one(text, dialect="duckdb")
        return {_name(argument): _value(argument.expression) for argument in call.expressions}
    except (SqlglotError, ValueError, AttributeError) as error:
        raise ParameterError(
            f"{function}: the policy of {table} cannot be read. Write it as 'anon: outputs(threshold := 10, "
            "dominance := [2, 0.9], p_percent := 10)'"
        ) from error


def _name(argument: exp.Expr) -> str:
    if not isinstance(argument, exp.PropertyEQ):
        raise ValueError
    return str(argument.this.name).lower()


def _value(node: exp.Expr) -> Any:
    if isinstance(node, exp.Literal):
        return node.name if node.is_string else float(node.name) if "." in node.name else int(node.name)
    if isinstance(node, exp.Array):
        return [_value(each) for each in node.expressions]
    raise ValueError
