"""From k, l, t of a call to the requirement every equivalence class must satisfy.

k-anonymity (Sweeney 2002), distinct, entropy and recursive (c, l)-diversity (Machanavajjhala et al. 2006),
frequency l-diversity (no value has a share above 1/l), t-closeness (Li, Li and Venkatasubramanian 2007), and
any of them together. Cost: none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import (
    All,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Ground,
    KAnonymity,
    OfColumn,
    OfRows,
    PersonShare,
    PrivacyModel,
    RecursiveDiversity,
    TCloseness,
    combine,
)
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable
from duckdb_anon.model.errors import ColumnError, ParameterError
from duckdb_anon.model.function_specs import Parameter, Params
from duckdb_anon.model.quoting import literal

DIVERSITIES = ("frequency", "distinct", "entropy", "recursive")
DISTANCES = ("equal", "ordered", "hierarchy")
_GROUND: dict[str, Ground] = {"equal": "equal", "ordered": "ordered", "hierarchy": "hierarchical"}
_DISTANCE_OF_KIND = {"nominal": "equal", "ordered": "ordered", "hierarchy": "hierarchy"}


def parameters_of_guarantee(diversity: str) -> tuple[Parameter, ...]:
    """Parameters k, l, t and their variants; `diversity` is the default meaning of l."""
    return (
        Parameter("k", "minimum number of records per equivalence class; 1 or more", "integer", low=1),
        Parameter("l", "diversity of each sensitive column in each class, 1 or more", "number", low=1),
        Parameter(
            "t",
            "maximum distance between the distributions of a class and of the table, 0 to 1",
            "number",
            low=0,
            high=1,
        ),
        Parameter(
            "diversity",
            "definition of l: 'frequency': no value has a share above 1/l in a class; 'distinct': l "
            "values; 'entropy': at least ln l; 'recursive': (c, l). All of them bound shares, not what "
            "can be inferred from other classes: see attribute_risk",
            "text",
            diversity,
            DIVERSITIES,
        ),
        Parameter("c", "c of recursive (c, l)-diversity, above 0", "number", above=0),
        Parameter(
            "distance",
            "ground distance of t: 'equal', 'ordered' or 'hierarchy' (default: by the kind of the sensitive column)",
            "text",
            None,
            DISTANCES,
        ),
    )


def refine(function: str, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters of the guarantee against one another.

    Raises:
        ParameterError: nothing is asked for, or c is missing or out of place.
    """
    if params["k"] is None and params["l"] is None and params["t"] is None:
        raise ParameterError(f"{function}: no guarantee was requested. Give k := 10, l := 5 or t := 0.2, or several")
    recursive = params["diversity"] == "recursive"
    if recursive and (params["l"] is None or params["c"] is None):
        raise ParameterError(f"{function}: diversity := 'recursive' needs both c and l, such as c := 2, l := 3")
    if recursive and params["l"] != int(params["l"]):
        raise ParameterError(f"{function}: l := {params['l']:g} must be a whole number for diversity := 'recursive'")
    if params["c"] is not None and not recursive:
        raise ParameterError(f"{function}: c := {params['c']:g} belongs to diversity := 'recursive'; leave it out")
    if params["distance"] is not None and params["t"] is None:
        raise ParameterError(f"{function}: distance := '{params['distance']}' says how t is measured; give t as well")
    return params


def required_model(
    function: str, table: CodedTable, params: Params, *, persons: bool = False
) -> tuple[PrivacyModel, CodeArray | None]:
    """Return the requirement of a call, and the sensitive codes it reads (None where it reads none).

    With several sensitive columns each must satisfy l and t; the codes are then those of their combination.

    Args:
        persons: whether somebody has several rows. A class then holds l persons or more as well, for one alone may
            have l values; no person has more than the share 1 / k or 1 / l of its rows; the values of its rows are
            as diverse as those of its persons; and t alone is refused.

    Raises:
        ColumnError: l or t is asked for and there is no sensitive column.
        ParameterError: the hierarchical distance is asked for a sensitive column without a hierarchy.
    """
    if persons and params["k"] is None and params["l"] is None:
        raise ParameterError(
            f"{function}: t says nothing of how many persons share a class where some have several rows; give k or l"
        )
    fewest = max(params["k"] or 1, math.ceil(params["l"] or 1) if persons else 1)
    parts: list[PrivacyModel] = [KAnonymity(fewest)] if fewest > 1 or params["k"] is not None else []
    if persons:
        parts.append(PersonShare(float(max(params["k"] or 1, params["l"] or 1))))
    of_column: list[Callable[[Attribute], PrivacyModel]] = []
    if params["l"] is not None:
        of_column.append(lambda attribute: _diversity(params, persons=persons))
    if params["t"] is not None:
        of_column.append(lambda attribute: _closeness(function, attribute, params))
    codes = None
    if of_column:
        if not table.sensitive:
            raise ColumnError(
                f"{function}: l and t need a sensitive column; say sensitive := '...' or COMMENT ON COLUMN ... IS "
                "'anon: sensitive'"
            )
        codes, each = every_column(table.sensitive, lambda a: all_of([make(a) for make in of_column]))
        parts += each
    return all_of(parts), codes


def every_column(
    sensitive: Sequence[Attribute], requirement: Callable[[Attribute], PrivacyModel]
) -> tuple[CodeArray, list[PrivacyModel]]:
    """Return sensitive codes, in the values' order, and what each of several columns must satisfy in terms of them.

    `sensitive`: one attribute or more; `requirement`: what an attribute must satisfy.
    """
    if len(sensitive) == 1:
        return sensitive[0].ranks, [requirement(sensitive[0])]
    codes, code_of = combine([a.ranks for a in sensitive])
    return codes, [OfColumn(requirement(a), a.name, of) for a, of in zip(sensitive, code_of, strict=True)]


def all_of(parts: Sequence[PrivacyModel]) -> PrivacyModel:
    """All of several requirements, one or more, as one."""
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _diversity(params: Params, *, persons: bool) -> PrivacyModel:
    least, kind = params["l"], params["diversity"]
    if persons:
        diversity = _diversity(params, persons=False)
        return diversity if kind == "distinct" else All((diversity, OfRows(diversity)))
    if kind == "recursive":
        return RecursiveDiversity(params["c"], int(least))
    if kind == "distinct":
        return DistinctDiversity(least)
    return EntropyDiversity(least) if kind == "entropy" else FrequencyDiversity(least)


def _closeness(function: str, sensitive: Attribute, params: Params) -> TCloseness:
    distance = params["distance"] or _DISTANCE_OF_KIND[sensitive.kind]
    if distance == "hierarchy" and sensitive.hierarchy is None:
        raise ParameterError(
            f"{function}: distance := 'hierarchy' needs a hierarchy of '{sensitive.name}'; say hierarchies := "
            f"{{{literal(sensitive.name)}: 'table'}}"
        )
    counts = None if sensitive.whole_counts is None else sensitive.whole_counts[np.argsort(sensitive.rank_of_code)]
    return TCloseness(params["t"], _GROUND[distance], sensitive.hierarchy, sensitive.leaf_of_code, counts)
