"""sequence_risk: what releases of one original reveal together, and what each of them reveals alone.

The attacker knows quasi-identifiers of a target and which releases contain the target's record. In each release the
rows are scored as `linkage_risk`'s attackers do (`nearest`, `likelihood`); over several, the scores of the rows of one
record are added, among the records that are in the same releases as the target, and the shares of the sensitive value
in buckets are multiplied. A release that repeats an earlier one for these records adds nothing. `identity`: mean chance
to pick the target's record; `attribute`: to name the target's sensitive value; `identity_named`, `attribute_named`:
share of targets for whom that chance is above .9. Each is that of the stronger attacker, with intervals of Wilson
(1927). The register links rows to records, so releases need a key. The attacker is taken to recognize the rows of one
record in all releases, so `together` is on the safe side.

Source: Ganta, Kasiviswanathan and Smith (2008), composition attacks. Cost: targets times records times releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from duckdb_anon.engine.catalog import require_visible
from duckdb_anon.engine.register import Registered, numbered_rows, registered_releases
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.measures.risk.attackers import ATTACKERS
from duckdb_anon.measures.risk.attacks import Attacker, CannotAsk, wilson
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, published
from duckdb_anon.measures.risk.scores import JoinedPart, Scores, Scoring, joined_parts
from duckdb_anon.measures.risk.targets import Targets, draw_targets
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Report, Roles, fields
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import BoolArray, ReadTable

NAME = "sequence_risk"
SURE = 0.9
TOGETHER = "together"
_ASKED = ("nearest", "likelihood")
_RATES = ("identity", "attribute", "identity_named", "attribute_named")
_CELLS = 20_000_000
_ALIKE = 1e-9


@dataclass(frozen=True)
class _View:
    """One release as an attacker sees it.

    Attributes:
        release: the released records.
        parts: their distinct rows.
        scoring: how she scores them.
        row_of_record: released row of each record, -1 where it has none, shape (records,).
        shares: how much of each sensitive value each row carries, shape (rows, values).
        mixed: whether rows show the values of their bucket and not their own.
    """

    release: PublishedRecords
    parts: list[JoinedPart]
    scoring: Scoring
    row_of_record: IntArray
    shares: sparse.csr_matrix
    mixed: bool

    def scores(self, some: Targets) -> FloatArray:
        """Score of each released row for each target, shape (targets, rows)."""
        units: FloatArray = Scores(self.release, self.scoring, self.parts, some).units
        return units[:, self.release.unit_of_row]


def sequence_risk(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a release, then all of them together."""
    read = dict(zip(params["read"], tables, strict=True))
    original, names = read.pop("original"), params["releases"]
    qi = [info.name for info in params["roles"].qi]
    sensitive = params["roles"].one_sensitive(NAME).name
    releases = [published(NAME, table, qi, [sensitive]) for table in read.values()]
    sources = [_records(table) for table in read.values()]
    records = max([original.rows, *(int(source.max(initial=-1)) + 1 for source in sources)])
    rows_of = [_row_of_record(source, records) for source in sources]
    there = np.flatnonzero(np.any([rows[: original.rows] >= 0 for rows in rows_of], axis=0))
    wanted = np.sort(rng.choice(there, min(params["targets"], len(there)), replace=False))
    alone = {**params, "known": None, "p_match": 1.0, "known_values": 0, "targets": None}
    targets = draw_targets(NAME, original, None, releases[0], rows_of[0][: original.rows], alone, rng)
    secret = original.columns[sensitive].value_codes().astype(np.int64)
    found: dict[str, dict[str, FloatArray]] = {}
    for attacker in (attacker for attacker in ATTACKERS if attacker.name in _ASKED):
        views = _views(attacker, releases, rows_of)
        if views:
            _stronger(found, _attacked(views, names, targets, wanted, secret))
    return MEASURE.columns([_row(name, rates) for name, rates in found.items()])


def _views(attacker: Attacker, releases: Sequence[PublishedRecords], rows_of: Sequence[IntArray]) -> list[_View]:
    """The releases as an attacker sees them; none where she cannot be asked."""
    views = []
    for release, rows in zip(releases, rows_of, strict=True):
        try:
            scoring = attacker.scoring(release)
        except CannotAsk:
            return []
        secret = release.secrets[0]
        shares = secret.of_rows(np.arange(len(release.unit_of_row))).tocsr()
        views.append(_View(release, joined_parts(release), scoring, rows, shares, secret.mixed))
    return views


def _attacked(
    views: Sequence[_View], names: Sequence[str], targets: Targets, wanted: IntArray, secret: IntArray
) -> dict[str, dict[str, FloatArray]]:
    """Chances of success with each target, by release and together; NaN where she is not in the release."""
    results = {name: {rate: np.full(len(wanted), np.nan) for rate in _RATES} for name in (*names, TOGETHER)}
    presence = np.stack([view.row_of_record >= 0 for view in views], axis=1)
    widest = max(len(view.release.unit_of_row) for view in views)
    step = max(1, _CELLS // (widest * len(views)))
    for at in range(0, len(wanted), step):
        for place, record in enumerate(wanted[at : at + step], start=at):
            tick()
            some = targets.between(int(record), int(record) + 1)
            scores = [view.scores(some)[0] if presence[record, j] else None for j, view in enumerate(views)]
            for j, (view, score) in enumerate(zip(views, scores, strict=True)):
                if score is None:
                    continue
                chances = _chances(score, view.scoring)
                own = int(view.row_of_record[record])
                values = np.asarray(chances @ view.shares).ravel()
                _note(results[names[j]], place, score, chances, own, values, int(secret[record]))
            _note_together(results[TOGETHER], place, views, scores, presence, int(record), int(secret[record]))
    return results


def _note_together(
    result: dict[str, FloatArray],
    place: int,
    views: Sequence[_View],
    scores: Sequence[FloatArray | None],
    presence: BoolArray,
    record: int,
    secret: int,
) -> None:
    """What the releases say together of one target."""
    candidates = np.flatnonzero((presence == presence[record]).all(axis=1))
    used: list[tuple[FloatArray, sparse.csr_matrix, _View]] = []
    for view, score in zip(views, scores, strict=True):
        if score is None:
            continue
        rows = view.row_of_record[candidates]
        mine, carried = score[rows], view.shares[rows]
        if not any(_same(mine, other) and (carried != shares).nnz == 0 for other, shares, _ in used):
            used.append((mine, carried, view))
    total = np.sum([mine for mine, _, _ in used], axis=0)
    chances = _chances(total, used[0][2].scoring)
    values = np.asarray(chances @ used[-1][1]).ravel()
    for _, carried, view in used[:-1]:
        if view.mixed:
            values = values * np.asarray(chances @ carried).ravel()
    own = int(np.searchsorted(candidates, record))
    _note(result, place, total, chances, own, values, secret)


def _same(mine: FloatArray, other: FloatArray) -> bool:
    return bool(np.allclose(mine, other, rtol=0, atol=_ALIKE))


def _chances(score: FloatArray, scoring: Scoring) -> FloatArray:
    """Chance of each row: even among the best, or by likelihood."""
    gap = score - score.max()
    weight = np.exp(gap) if scoring.reach else (gap >= -_ALIKE).astype(np.float64)
    chances: FloatArray = weight / weight.sum()
    return chances


def _note(
    result: dict[str, FloatArray],
    place: int,
    score: FloatArray,
    chances: FloatArray,
    own: int,
    values: FloatArray,
    secret: int,
) -> None:
    """Success with one target: evenly among the best rows, and among the likeliest values."""
    best = score >= score.max() - _ALIKE
    result["identity"][place] = best[own] / best.sum()
    result["identity_named"][place] = chances[own] > SURE
    total = values.sum()
    likeliest = values >= values.max() * (1 - _ALIKE)
    result["attribute"][place] = likeliest[secret] / likeliest.sum() if total > 0 else 0.0
    result["attribute_named"][place] = total > 0 and values[secret] / total > SURE


def _stronger(found: dict[str, dict[str, FloatArray]], other: dict[str, dict[str, FloatArray]]) -> None:
    """Keep for each release and rate the attacker who has more of it."""
    for name, rates in other.items():
        mine = found.setdefault(name, rates)
        for rate, chances in rates.items():
            if np.nansum(chances) > np.nansum(mine[rate]):
                mine[rate] = chances


def _row(name: str, rates: Mapping[str, FloatArray]) -> list[Any]:
    cells: list[Any] = [name]
    for rate in _RATES:
        chances = rates[rate][~np.isnan(rates[rate])]
        low, high = wilson(float(chances.sum()), len(chances)) if len(chances) else (np.nan, np.nan)
        cells += [float(chances.mean()) if len(chances) else np.nan, low, high]
    return [*cells, len(chances)]


def _records(table: ReadTable) -> IntArray:
    """Number of the record of each released row, -1 for rows that the register does not list."""
    numbers = table.sources()
    if numbers is None:
        raise ColumnError(f"{NAME}: a release has no rows that the register lists")
    return np.where(np.isnan(numbers), -1, numbers).astype(np.int64)


def _row_of_record(source: IntArray, records: int) -> IntArray:
    rows = np.full(records, -1, dtype=np.int64)
    real = np.flatnonzero(source >= 0)
    rows[source[real]] = real
    return rows


def _numbered(context: Any, roles: Roles, params: Params) -> dict[str, str]:
    """SELECTs of the releases with the numbers of their records."""
    relation = context.relation("original")
    require_visible(NAME, relation)
    if roles.person is not None:
        _require_single_records(context.catalog.cursor, relation.sql, roles.person.name)
    if not params["releases"]:
        raise ParameterError(
            f"{NAME}: releases is an empty list. Name one or more releases. FROM anon_register() lists them"
        )
    known = registered_releases(context.catalog.cursor, relation)
    selects = {}
    for k, name in enumerate(params["releases"]):
        keeper, release = _release(known, name, relation.given)
        if params["key"] is not None and fold(params["key"]) != fold(str(release.key)):
            raise ParameterError(f"{NAME}: key := '{params['key']}' is not that of {name}. Allowed: '{release.key}'")
        _require_single_records(context.catalog.cursor, relation.sql, str(release.key))
        selects[f"release{k}"] = numbered_rows(context.catalog.cursor, keeper, release, relation.sql)
    return selects


def _require_single_records(cursor: Any, source: str, key: str) -> None:
    """Refuse individuals with several records, which are not counted here."""
    rows, keys = cursor.execute(f"select count(*), count(distinct {ident(key)}) from {source}").fetchall()[0]
    if keys < rows:
        raise ColumnError(
            f"{NAME}: '{key}' has one value in several of {rows} records; releases of individuals with several records "
            "are not measured together. linkage_risk measures each of them",
            code="several-rows",
        )


def _release(known: Sequence[tuple[str, Registered]], name: str, original: str) -> tuple[str, Registered]:
    names = [release.name for _, release in known]
    found = [(keeper, release) for keeper, release in known if fold(release.name) == fold(name)]
    if not found:
        raise ParameterError(
            f"{NAME}: releases has '{name}', which the register does not list among those of {original}"
            f"{nearest(name, names)}; it lists {listed(names) or 'none'}"
        )
    if found[-1][1].key is None:
        raise ParameterError(f"{NAME}: {name} was made without key := '...', so rows cannot be matched to individuals")
    return found[-1]


MEASURE = Report(
    name=NAME,
    summary="re-identification and attribute disclosure by several releases of one original, alone and together",
    paper="Ganta, S. R., Kasiviswanathan, S. P., Smith, A. (2008), Composition attacks and auxiliary information",
    example="FROM sequence_risk('numbered', ['first', 'next'], targets := 100)",
    section="Risk",
    instead=("linkage_risk",),
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
    compute=sequence_risk,
    tables=("original",),
    labelled="original",
    further=_numbered,
    reads="tables",
    answers=("rows", "boxes", "buckets", "sliced"),
    needs=("qi", "sensitive"),
)  # fmt: skip
