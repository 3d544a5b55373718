"""sequence_risk: what releases of one original reveal together, and what each of them reveals alone.

The attacker knows quasi-identifiers of a target and which releases contain the target's record. In each release the
rows are scored as `linkage_risk`'s attackers do (`nearest`, `likelihood`); over several, the scores of the rows of
one record are added, among the records that are in the same releases as the target, and the shares of the sensitive
value in the buckets of each record are multiplied. A release that repeats an earlier one for these records adds
nothing. `identity`: mean chance to pick the target's record; `attribute`: to name the target's sensitive value;
`identity_named`, `attribute_named`: share of targets for whom that chance is above .9. An individual with several
records is known by all of them, and found by any of them. Each figure is that of the stronger attacker, with
intervals of Wilson (1927). The register links rows to records, so releases need a key. The attacker is taken to
recognize the rows of one individual in all releases, so `together` is on the safe side.

Source: Ganta, Kasiviswanathan and Smith (2008), composition attacks. Cost: targets times records times releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from duckdb_anon.engine.records.register import (
    Registered,
    named_release,
    numbered_rows,
    registered,
    registered_releases,
    registers,
)
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.kernels.cells.table import MeasureCall, ReadTable
from duckdb_anon.measures.released_rows import require_rows
from duckdb_anon.measures.risk.attacks import NotApplicable, Scores, Scoring, rate_of
from duckdb_anon.measures.risk.linkage_risk import chosen_attackers
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, published
from duckdb_anon.measures.risk.targets import Targets, draw_targets, persons_of
from duckdb_anon.model.coded_table import BoolArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, Answer, Parameter, Params, Report, Roles, fields
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick

NAME = "sequence_risk"
SURE = 0.9
TOGETHER = "together"
_ATTACKERS = ("nearest", "likelihood")
_RATES = ("identity", "attribute", "identity_named", "attribute_named")
_ALIKE = 1e-9


@dataclass(frozen=True)
class _View:
    """One release as an attacker sees it."""

    release: PublishedRecords
    scoring: Scoring
    shares: scipy.sparse.csr_matrix  # how much of each sensitive value each row carries, shape (rows, values)
    mixed: bool  # whether rows show the values of their bucket and not their own
    individual: IntArray  # individual of each row
    people: IntArray  # individuals with rows in it, in order
    rows: IntArray  # their rows, individual by individual
    first: IntArray  # place of the first row of each in `rows`
    carried: scipy.sparse.csr_matrix  # mean share of each sensitive value in the rows of each, shape (people, values)

    @staticmethod
    def of(release: PublishedRecords, scoring: Scoring, individual: IntArray) -> _View:
        """A release and the individual of each of its rows, -1 for rows that the register does not list."""
        rows = np.argsort(individual, kind="stable")
        rows = rows[individual[rows] >= 0]
        people, first, count = np.unique(individual[rows], return_index=True, return_counts=True)
        secret = release.secrets[0]
        shares = secret.of_rows(np.arange(len(release.unit_of_row))).tocsr()
        offsets = np.append(first, len(rows))
        mean = np.repeat(1 / count, count), rows, offsets
        means = scipy.sparse.csr_matrix(mean, shape=(len(people), shares.shape[0]))
        carried = (means @ shares).tocsr()
        return _View(release, scoring, shares, secret.mixed, individual, people, rows, first, carried)

    def scores(self, some: Targets) -> FloatArray:
        """Score of each released row for one target, by the known record that fits it best; shape (rows,)."""
        units: FloatArray = Scores(self.release, self.scoring, some).units
        return np.asarray(units.max(axis=0)[self.release.unit_of_row])


def _numbered(context: Any, roles: Roles, params: Params) -> dict[str, str]:
    """SELECTs of the releases with the numbers of their records."""
    relation = context.visible("original")
    if not params["releases"]:
        raise ParameterError("releases is an empty list. Name one or more releases. FROM anon_register() lists them")
    cursor = context.catalog.cursor
    # an original under another name has those of its records
    known = registered_releases(cursor, relation) or [(k, r) for k in registers(cursor) for r in registered(cursor, k)]
    selects = {}
    for k, name in enumerate(params["releases"]):
        keeper, release = _release(cursor, known, name, relation.given)
        if params["key"] is not None and fold(params["key"]) != fold(str(release.key)):
            raise ParameterError(f"key := '{params['key']}' is not that of {name}. Allowed: '{release.key}'")
        key = str(release.key)
        if roles.person is None or fold(roles.person.name) != fold(key):
            counts = f"select count(*), count(distinct {ident(key)}) from {relation.sql}"
            rows, keys = cursor.execute(counts).fetchall()[0]
            if keys < rows:
                raise ColumnError(
                    f"'{key}' has one value in several of {rows} records. Label it 'anon: person' where it identifies "
                    "individuals",
                    code="several-rows",
                )
        selects[f"release{k}"] = numbered_rows(cursor, keeper, release, relation.sql)
    return selects


def _release(cursor: Any, known: Sequence[tuple[str, Registered]], name: str, original: str) -> tuple[str, Registered]:
    names = [release.name for _, release in known]
    found = [(k, release) for k, release in known if fold(release.name) == fold(named_release(cursor, name, k))]
    if not found:
        raise ParameterError(
            f"releases has '{name}', which the register does not list among those of {original}"
            f"{nearest(name, names)}; it lists {listed(names) or 'none'}"
        )
    if found[-1][1].key is None:
        raise ParameterError(f"{name} was made without key := '...', so rows cannot be matched to individuals")
    return found[-1]


@Report(
    summary="re-identification and attribute disclosure by several releases of one original, alone and together",
    paper="Ganta, S. R., Kasiviswanathan, S. P., Smith, A. (2008), Composition attacks and auxiliary information",
    example="FROM sequence_risk('numbered', ['first', 'next'], targets := 100)",
    section="Risk",
    smallest="releases := ['first']",
    parameters=(
        Parameter("releases", "names of releases of the original that the register lists", "names", REQUIRED),
        Parameter("key", "column that identifies a record (default: as the register has it)", "text"),
        Parameter(
            "targets", "number of randomly chosen records that the attacker looks for", "integer", 500, low=1
        ),
    ),
    returns=fields(
        "release VARCHAR, identity DOUBLE OR NULL, identity_low DOUBLE OR NULL, identity_high DOUBLE OR NULL, "
        "attribute DOUBLE OR NULL, attribute_low DOUBLE OR NULL, attribute_high DOUBLE OR NULL, "
        "identity_named DOUBLE OR NULL, identity_named_low DOUBLE OR NULL, identity_named_high DOUBLE OR NULL, "
        "attribute_named DOUBLE OR NULL, attribute_named_low DOUBLE OR NULL, attribute_named_high DOUBLE OR NULL, "
        "targets BIGINT"
    ),
    tables=("original",),
    labelled="original",
    further=_numbered,
    reads="tables",
    answers=("rows", "boxes", "buckets", "sliced", "persons"),
    needs=("qi", "sensitive"),
    unit="person",
)  # fmt: skip
def sequence_risk(call: MeasureCall) -> Answer:
    """One row a release, then all of them together."""
    original, names, rng = call.original, call.params["releases"], call.rng
    sensitive = call.roles.one_sensitive(NAME).name
    require_rows(original, "original")
    person_of_row = persons_of(original, call.person)
    tables = [table for which, table in call.read.items() if which != "original"]
    releases = [published(table, call.qi, [sensitive]) for table in tables]
    individuals = [_individuals(table, person_of_row) for table in tables]
    for name, individual in zip(names, individuals, strict=True):
        if not (individual >= 0).any():
            raise RequirementError(f"no row of {name} is one that the register lists. Restore what was released")
    people = 1 + max(int(each.max(initial=-1)) for each in (person_of_row, *individuals))
    presence = np.zeros((people, len(releases)), dtype=bool)
    for place, individual in enumerate(individuals):
        presence[individual[individual >= 0], place] = True
    there = np.flatnonzero(presence[: int(person_of_row.max(initial=-1)) + 1].any(axis=1))
    wanted = np.sort(rng.choice(there, min(call.params["targets"], len(there)), replace=False))
    everybody = {"known": None, "p_match": 1.0, "known_values": 0, "targets": None}
    targets = draw_targets(replace(call, params=everybody), original, releases[0])
    found: dict[str, FloatArray] = {}
    for attacker in chosen_attackers(_ATTACKERS):
        try:
            views = [
                _View.of(release, attacker.scoring(release), individual)
                for release, individual in zip(releases, individuals, strict=True)
            ]
        except NotApplicable:
            continue
        for name, rates in _attacked(views, names, targets, wanted, presence).items():
            strongest = found.setdefault(name, rates)  # for each release and rate the attacker who has more of it
            more = np.nansum(rates, axis=1) > np.nansum(strongest, axis=1)
            strongest[more] = rates[more]
    each = {name: [figure for chances in rates for figure in rate_of(chances)] for name, rates in found.items()}
    return [(name, *figures, int((~np.isnan(found[name][-1])).sum())) for name, figures in each.items()]


def _attacked(
    views: Sequence[_View], names: Sequence[str], targets: Targets, wanted: IntArray, presence: BoolArray
) -> dict[str, FloatArray]:
    """`_RATES` of each target by release and together, shape (rates, targets); NaN where the release lacks it."""
    results = {name: np.full((len(_RATES), len(wanted)), np.nan) for name in (*names, TOGETHER)}
    for place, person in enumerate(wanted.tolist()):
        tick()
        some = targets.between(person, person + 1)
        secret = some.secrets[0].code
        seen = [(view, view.scores(some), name) for j, (view, name) in enumerate(zip(views, names, strict=True))
                if presence[person, j]]  # fmt: skip
        for view, score, name in seen:
            chances = _chances(score, view.scoring)
            values = np.asarray(chances @ view.shares).ravel()
            results[name][:, place] = _success(
                score, chances, np.flatnonzero(view.individual == person), values, secret
            )
        candidates = np.flatnonzero((presence == presence[person]).all(axis=1))
        scored = [(view, score) for view, score, _ in seen]
        results[TOGETHER][:, place] = _together(scored, candidates, person, secret)
    return results


def _together(
    scored: Sequence[tuple[_View, FloatArray]], candidates: IntArray, person: int, secret: IntArray
) -> tuple[float, ...]:
    """Success with one target by several releases, among the individuals who are in the same ones."""
    total = np.zeros(len(candidates))
    counted: list[FloatArray] = []
    values: list[tuple[scipy.sparse.csr_matrix, bool]] = []
    for view, score in scored:
        at = np.searchsorted(view.people, candidates)
        by_candidate, carried = np.maximum.reduceat(score[view.rows], view.first)[at], view.carried[at]
        if not any(np.allclose(by_candidate, other, rtol=0, atol=_ALIKE) for other in counted):
            total += by_candidate
            counted.append(by_candidate)
        if not any((carried != other).nnz == 0 for other, _ in values):
            values.append((carried, view.mixed))
    chances = _chances(total, scored[0][0].scoring)
    # buckets of one record in several releases: only values of all of them are left
    carried = values[-1][0]
    for other, mixed in values[:-1]:
        carried = carried.multiply(other) if mixed else carried
    sums = np.asarray(carried.sum(axis=1)).ravel()
    weights = np.divide(chances, sums, out=np.zeros_like(chances), where=sums > 0)
    found = np.asarray(weights @ carried).ravel()
    return _success(total, chances, np.searchsorted(candidates, [person]), found, secret)


def _chances(score: FloatArray, scoring: Scoring) -> FloatArray:
    """Chance of each row: even among the best, or by likelihood."""
    gap = score - score.max()
    weight = np.exp(gap) if scoring.reach else (gap >= -_ALIKE).astype(np.float64)
    return np.asarray(weight / weight.sum())


def _success(
    score: FloatArray, chances: FloatArray, own: IntArray, values: FloatArray, secret: IntArray
) -> tuple[float, ...]:
    """`_RATES` of one target: evenly among the best rows and the likeliest values, any of the target's counts."""
    best = score >= score.max() - _ALIKE
    total = values.sum()
    likeliest = values >= values.max() * (1 - _ALIKE)
    attribute = likeliest[secret].sum() / likeliest.sum() if total > 0 else 0.0
    attribute_named = total > 0 and values[secret].max() / total > SURE
    return best[own].sum() / best.sum(), attribute, chances[own].sum() > SURE, attribute_named


def _individuals(table: ReadTable, person_of_row: IntArray) -> IntArray:
    """Number of the individual of each released row, -1 for rows that the register does not list."""
    numbers = table.sources()
    if numbers is None:
        raise ColumnError("a release has no rows that the register lists")
    source = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
    # individuals whom the original holds no more have numbers beyond its rows
    beyond = source - len(person_of_row) + int(person_of_row.max(initial=-1)) + 1
    inside = (source >= 0) & (source < len(person_of_row))
    return np.where(inside, person_of_row[np.where(inside, source, 0)], np.where(source < 0, -1, beyond))
