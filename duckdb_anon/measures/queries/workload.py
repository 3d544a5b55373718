"""Random query workloads: which values of which attributes each of n queries asks for.

A query counts or sums the rows that satisfy one predicate on each of `dims` quasi-identifiers, and on the
sensitive attribute if wanted. Three styles:

* `default` (Xiao and Tao 2006): every predicate covers b = ceil(|A| * s^(1/(q+1))) values of its domain, q
  predicates on quasi-identifiers, selectivity s; without one on the sensitive attribute the root is 1/q.
* `half` (Li et al., MuCo): every predicate covers the share s of its domain (one half there).
* `random_size` (Hasan et al. 2018): between 1 and s * |A| values, drawn uniformly.

Ordered attributes get an interval of consecutive values of the domain, nominal ones a subset. NULL is never
asked for. Attributes are drawn without replacement, uniformly. Cost: O(n * sum of domain sizes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import Attribute, IntArray
from duckdb_anon.model.errors import ParameterError, listed
from duckdb_anon.model.progress import tick

Style = Literal["default", "half", "random_size"]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class WorkloadSpec:
    """What kind of workload to draw.

    Attributes:
        n: number of queries.
        dims: number of quasi-identifiers with a predicate, at most the number there are.
        selectivity: s, in (0, 1]; see the styles above.
        sensitive: whether each query also has a predicate on the sensitive attribute.
        style: 'default', 'half' or 'random_size'.
    """

    n: int = 1000
    dims: int = 4
    selectivity: float = 0.05
    sensitive: bool = False
    style: Style = "default"


@dataclass(frozen=True)
class Workload:
    """n queries over coded attributes.

    Attributes:
        attributes: names of the attributes, quasi-identifiers first.
        interval: whether predicates on the attribute are intervals (BETWEEN) or subsets (IN).
        used: whether query i has a predicate on attribute a, shape (n, attributes).
        matches: for each attribute, whether query i asks for code c, shape (n, domain); all True where
            the attribute is not used.
    """

    attributes: tuple[str, ...]
    interval: tuple[bool, ...]
    used: BoolArray
    matches: tuple[BoolArray, ...]

    @property
    def n(self) -> int:
        """Number of queries."""
        return len(self.used)


def draw(
    qi: Sequence[Attribute], sensitive: Attribute | None, spec: WorkloadSpec, rng: np.random.Generator
) -> Workload:
    """Draw a workload over the domains of coded attributes.

    Args:
        qi: quasi-identifiers.
        sensitive: the sensitive attribute, needed when `spec.sensitive`.
        spec: kind of workload.
        rng: source of randomness.

    Raises:
        ParameterError: when fewer quasi-identifiers than `dims` have a value that can be asked for, or no sensitive
            attribute has.
    """
    if not 1 <= spec.dims <= len(qi):
        raise ParameterError(
            f"dims := {spec.dims} is not possible with {len(qi)} quasi-identifier(s); give a number from 1 to {len(qi)}"
        )
    if spec.sensitive and sensitive is None:
        raise ParameterError("predicate_on_sensitive := true needs a sensitive column; name one or label it")
    attributes = [*qi, sensitive] if spec.sensitive and sensitive is not None else list(qi)
    requested = np.array([askable(attribute) > 0 for attribute in qi])
    if requested.sum() < spec.dims or (spec.sensitive and askable(attributes[-1]) == 0):
        empty = [a.name for a in attributes if askable(a) == 0]
        raise ParameterError(
            f"nothing can be asked of {listed(empty)}, NULL or not finite in every row; name other columns "
            f"in qi and sensitive, or lower dims := {spec.dims}"
        )
    used = np.zeros((spec.n, len(attributes)), dtype=bool)
    # the first `dims` places of a random permutation of the quasi-identifiers
    order = np.argsort(rng.random((spec.n, len(qi))) + ~requested, axis=1)[:, : spec.dims]
    np.put_along_axis(used, order, True, axis=1)
    used[:, len(qi) :] = True
    matches = tuple(_matches(a, used[:, i], spec, rng) for i, a in enumerate(attributes))
    return Workload(tuple(a.name for a in attributes), tuple(a.kind == "ordered" for a in attributes), used, matches)


def replaced(workload: Workload, again: Workload, which: BoolArray) -> Workload:
    """Take queries `which` from `again`, the others from `workload`.

    Args:
        workload: the queries.
        again: new ones.
        which: true for queries that are taken from `again`, shape (n,).
    """
    used = np.where(which[:, None], again.used, workload.used)
    pairs = zip(again.matches, workload.matches, strict=True)
    matches = tuple(np.where(which[:, None], new, old) for new, old in pairs)
    return Workload(workload.attributes, workload.interval, used, matches)


def query_texts(
    workload: Workload, table: str, aggregate: str, names: Sequence[str], literals: Mapping[str, Sequence[str]]
) -> list[str]:
    """Write the queries as SQL.

    Args:
        workload: the queries.
        table: text that can follow FROM.
        aggregate: the aggregate's SQL, such as 'count(*)' or 'sum(cost)'.
        names: quoted column name of each attribute.
        literals: SQL literal of each code of each attribute.

    Example:
        a text: SELECT count(*) FROM people WHERE age BETWEEN 20 AND 29 AND sex IN ('F')
    """
    texts = []
    for i in range(workload.n):
        tick()
        parts = [
            _predicate(names[a], workload.interval[a], np.flatnonzero(workload.matches[a][i]), literals[name])
            for a, name in enumerate(workload.attributes)
            if workload.used[i, a]
        ]
        texts.append(f"SELECT {aggregate} FROM {table} WHERE {' AND '.join(parts)}")
    return texts


def _predicate(name: str, interval: bool, codes: IntArray, literals: Sequence[str]) -> str:
    if interval:
        return f"{name} BETWEEN {literals[codes[0]]} AND {literals[codes[-1]]}"
    return f"{name} IN ({', '.join(map(literals.__getitem__, codes.tolist()))})"


def _matches(attribute: Attribute, used: BoolArray, spec: WorkloadSpec, rng: np.random.Generator) -> BoolArray:
    n, domain = len(used), askable(attribute)
    if domain == 0:
        return np.repeat(~used[:, None], attribute.domain, axis=1)
    size = _sizes(domain, n, spec, rng)
    if attribute.kind == "ordered":
        start = np.floor(rng.random(n) * (domain - size + 1)).astype(np.int64)
        code = np.arange(attribute.domain)
        requested = (code >= start[:, None]) & (code < (start + size)[:, None])
    else:
        # the codes with the smallest random numbers are a uniform subset
        number = rng.random((n, domain))
        requested = np.zeros((n, attribute.domain), dtype=bool)
        requested[:, :domain] = number <= np.take_along_axis(np.sort(number, axis=1), size[:, None] - 1, axis=1)
    requested[~used] = True
    return requested


def askable(attribute: Attribute) -> int:
    """Number of codes that can be asked for: neither NULL nor, for ordered attributes, infinite or NaN."""
    if attribute.kind == "ordered":
        return attribute.special_from
    return attribute.domain - (attribute.null_code >= 0)


def _sizes(domain: int, n: int, spec: WorkloadSpec, rng: np.random.Generator) -> IntArray:
    if spec.style == "random_size":
        most = max(1, int(domain * spec.selectivity))
        return rng.integers(1, most + 1, size=n)
    root = 1.0 if spec.style == "half" else 1.0 / (spec.dims + spec.sensitive)
    covered = np.ceil(domain * spec.selectivity**root - 1e-9)
    return np.full(n, int(np.clip(covered, 1, domain)), dtype=np.int64)
