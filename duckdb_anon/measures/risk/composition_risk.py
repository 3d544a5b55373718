"""composition_risk: what an attacker learns about individuals who are in two independent releases.

The attacker knows a person's quasi-identifiers, takes the sensitive values of all classes they match in either release,
and intersects: 100 * true / (true + false), in percent (Hasan, Jiang, Chen and Wang 2018, section 5.2). `unit` says
what is counted, which the paper does not: 'victim': for each person the values in both sets; 'ec_pair': triples of a
class of each release and a value both hold, the classes meeting in every quasi-identifier, true if a person with that
value lies in both. With `weighted` a candidate s of a person t counts p_a(t, s) p_b(t, s) (see `matching_classes`);
with `as_published` rows of a sliced release are taken as printed. A person lies in a class that covers the person's
quasi-identifiers and has the sensitive value. Without any candidate the risk is 0 and `defined` is false.
Cost: persons times classes, plus products of classes for 'ec_pair'.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.risk.matching_classes import Evidence, evidence
from duckdb_anon.model.coded_table import BoolArray, IntArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import Answer, Parameter, Report, fields
from duckdb_anon.model.progress import tick

_BLOCK = 5_000_000


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Weights belong to persons; pairs of classes have none."""
    if params["weighted"] and params["unit"] != "victim":
        raise ParameterError(
            "weighted := true weights the candidate values of an individual. It goes with unit := 'victim', not with "
            f"unit := '{params['unit']}'"
        )
    return params


@Report(
    summary="privacy risk of individuals in two independent releases (composition attack), in percent",
    paper="Hasan, Jiang, Chen & Wang (2018), Applied Sciences 8(5):783, section 5.2; unit of counting is a reading",
    example="FROM composition_risk('boxes', 'second', 'people')",
    section="Risk",
    instead=("attribute_risk",),
    parameters=(
        Parameter(
            "unit",
            "'victim': candidate values of each individual; 'ec_pair': pairs of classes and a shared value",
            "text",
            "victim",
            ("victim", "ec_pair"),
        ),
        Parameter(
            "weighted",
            "weight each candidate by the probability that both releases link it to the individual; 'victim' only",
            "boolean",
            False,
        ),
        Parameter("as_published", "read records of sliced releases as printed, not bucket by bucket", "boolean", False),
    ),
    returns=fields(
        "unit VARCHAR, persons BIGINT, true_matches DOUBLE, false_matches DOUBLE, singled_out BIGINT, "
        "privacy_risk DOUBLE, defined BOOLEAN"
    ),
    tables=("release_a", "release_b", "overlap"),
    labelled="overlap",
    reads="tables",
    answers=("rows", "boxes", "buckets", "sliced", "counts", "sampled", "suppressed", "retained"),
    needs=("qi", "sensitive"),
    refine=refine,
)
def composition_risk(call: MeasureCall) -> Answer:
    """One row: true and false matches and the risk."""
    params, overlap = call.params, call.read["overlap"]
    sensitive = call.roles.one_sensitive("composition_risk").name
    first, second = (
        evidence(call.read[name], call.qi, sensitive, as_published=params["as_published"])
        for name in ("release_a", "release_b")
    )
    persons = [overlap.columns[name].value_codes().astype(np.int64) for name in call.qi]
    secret = overlap.columns[sensitive].value_codes().astype(np.int64)
    if params["unit"] == "victim":
        true, total, alone = _victims(first, second, persons, secret, weighted=params["weighted"])
    else:
        true, total, alone = _pairs(first, second, persons, secret)
    risk = 100.0 * true / total if total else 0.0
    return [(params["unit"], overlap.rows, float(true), float(total - true), alone, risk, total > 0)]


def _victims(
    first: Evidence, second: Evidence, persons: list[IntArray], secret: IntArray, *, weighted: bool
) -> tuple[float, float, int]:
    """True candidates, all candidates, and persons left with their own value alone."""
    alike = keys_of([*persons, secret])
    example, multiplicity = alike.first, np.bincount(alike.of_row)
    true, total, alone = 0.0, 0.0, 0
    step = max(1, _BLOCK // max(1, first.classes, second.classes))
    for at in range(0, len(example), step):
        tick()
        block = slice(at, at + step)
        who = example[block]
        known = [codes[who] for codes in persons]
        both = first.linked(known) * second.linked(known)
        number = np.count_nonzero(both, axis=1)
        weight = both if weighted else (both > 0).astype(np.float64)
        true_value = weight[np.arange(len(who)), secret[who]]
        true += float(true_value @ multiplicity[block])
        total += float(weight.sum(axis=1) @ multiplicity[block])
        alone += int(((true_value > 0) & (number == 1)) @ multiplicity[block])
    return true, total, alone


def _pairs(first: Evidence, second: Evidence, persons: list[IntArray], secret: IntArray) -> tuple[int, int, int]:
    """True triples, all triples, and pairs of classes whose only shared value is a true one."""
    meeting = np.ones((first.classes, second.classes), dtype=bool)
    for a in range(len(persons)):
        tick()
        first_class, other = first.covered_codes(a), second.covered_codes(a)
        meeting &= first_class.astype(np.float32) @ other.T.astype(np.float32) > 0
    holds, values = [first.holds, second.holds], first.holds.shape[1]
    shared = holds[0].astype(np.float32) @ holds[1].T.astype(np.float32)
    lies = _lies_in(first, holds[0], persons, secret)
    other = _lies_in(second, holds[1], persons, secret)
    # classes of the second release are told apart by the individual's value
    value = other.indices.astype(np.int64) * values + np.repeat(secret, np.diff(other.indptr))
    valued = scipy.sparse.csr_matrix((other.data, value, other.indptr), (len(secret), second.classes * values))
    triples = (lies.T @ valued).tocoo()
    pair = np.unique(triples.row.astype(np.int64) * second.classes + triples.col // values)
    single = shared.ravel()[pair] == 1
    return triples.nnz, round(float(shared[meeting].sum(dtype=np.float64))), int(single.sum())


def _lies_in(release: Evidence, holds: BoolArray, persons: list[IntArray], secret: IntArray) -> scipy.sparse.csr_matrix:
    """In which classes that hold its own value each individual lies, shape (individuals, classes)."""
    lies = release.shares(persons).tocoo()
    inside = (lies.data > 0) & holds[lies.col, secret[lies.row]]
    entries = (np.ones(int(inside.sum())), (lies.row[inside], lies.col[inside]))
    return scipy.sparse.csr_matrix(entries, lies.shape)
