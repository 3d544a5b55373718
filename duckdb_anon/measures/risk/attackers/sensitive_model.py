"""The attacker who learns P(sensitive | quasi-identifiers) from the release, with and without looking for the row.

A multinomial logit on the bins of the quasi-identifiers, fitted on the released rows alone (Agresti 2013, chapter 8);
numeric sensitive columns in quantile bins, values of a bin as they are published. `sensitive_model` multiplies it into
the scores of the rows: of `likelihood_excluding` where the method's promise rules rows out, of `regroup` where it forms
groups, else of `likelihood`. Unknown quasi-identifiers count as average ones.
Cost: rows times columns times bins, a few dozen times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from duckdb_anon.measures.risk.attackers import regroup
from duckdb_anon.measures.risk.attackers.record_linkage import REACH, likelihood, likelihood_excluding, most_equal
from duckdb_anon.measures.risk.attacks import Attacker, Label, NotApplicable, Scoring
from duckdb_anon.measures.risk.baseline_inference import Bins, bins_of
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, once_per_release
from duckdb_anon.measures.risk.sensitive_attributes import Secret
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import BoolArray, CodeArray, FloatArray, IntArray
from duckdb_anon.model.progress import tick

MOST_ROWS, MOST_COEFFICIENTS = 20_000, 500_000
STEPS = 40
CLOSE = 0.003
"""Slope at which the fit ends, in standard errors of a coefficient."""
RIDGE = 10.0
_SMALLEST_TERM = 1e-12


@dataclass(frozen=True, eq=False)
class SensitiveModel:
    """A fitted model of one sensitive column."""

    bin_of_row: IntArray  # bin of each released row's sensitive value
    bins: Bins  # of the quasi-identifiers
    coefficient: FloatArray  # shape (bins of all columns, sensitive bins), 0 on average over the rows in each column
    log_prior: FloatArray  # log share of each sensitive bin

    def log_ratio(self, some: Targets) -> FloatArray:
        """Log P(bin | known values) / P(bin), shape (records, sensitive bins)."""
        return self.log_ratio_of(some.values, some.known)

    def log_ratio_of(self, values: CodeArray, known: BoolArray) -> FloatArray:
        """The same for each record of a register."""
        score = self.log_prior + self.bins.sums(self.coefficient, values, known)
        score -= scipy.special.logsumexp(score, axis=1, keepdims=True)
        ratio: FloatArray = score - self.log_prior
        return ratio


@once_per_release
def models_of(release: PublishedRecords) -> list[SensitiveModel]:
    """A model of each sensitive column."""
    if not release.secrets or not release.persons:
        raise NotApplicable("This attacker needs records with a sensitive column")
    if release.start is not None or any(secret.mixed or secret.listed for secret in release.secrets):
        raise NotApplicable("This attacker needs a release whose rows show one sensitive value each")
    return [_fitted(release, secret) for secret in release.secrets]


def _fitted(release: PublishedRecords, secret: Secret) -> SensitiveModel:
    bin_of_value = secret.bins()
    code = np.asarray(secret.shares.argmax(axis=1)).ravel()[secret.cell_of_row]
    bin_of_row = bin_of_value[code].astype(np.int64)
    rows = np.arange(0, len(bin_of_row), max(1, -(-len(bin_of_row) // MOST_ROWS)))
    bins = bins_of(release)
    number = int(bin_of_value.max()) + 1
    if len(bins.marginal) * number > MOST_COEFFICIENTS:
        raise NotApplicable(f"'{secret.name}' has too many values for a model of each")
    prior = np.bincount(bin_of_row, minlength=number) + 0.5
    log_prior = np.log(prior / prior.sum())
    columns = [(inside, cells.of_row[rows]) for cells, inside in zip(release.columns, bins.spread, strict=True)]
    coefficient = _logit(columns, bin_of_row[rows], log_prior)
    for (inside, cell), start in zip(columns, bins.first, strict=False):
        some = slice(start, start + inside.shape[1])
        share = inside.T @ np.bincount(cell, minlength=inside.shape[0])
        coefficient[some] -= share @ coefficient[some] / max(share.sum(), _SMALLEST_TERM)
    return SensitiveModel(bin_of_row, bins, coefficient, log_prior)


def _logit(
    columns: Sequence[tuple[scipy.sparse.csr_matrix, IntArray]], outcome: IntArray, log_prior: FloatArray
) -> FloatArray:
    """Coefficients of a multinomial logit with a ridge, offsets `log_prior`; shape (bins of all columns, outcomes).

    `columns`: of each column the share of each cell in its bins, and the cell of each row. A cell with many bins is
    multiplied once, however many rows have it.
    """
    from scipy.optimize import minimize

    rows = np.arange(len(outcome))
    ends = np.cumsum([inside.shape[1] for inside, _ in columns])
    shape = (int(ends[-1]), len(log_prior))
    rows_of_cell = [
        scipy.sparse.csr_matrix((np.ones(len(rows)), (cell, rows)), (inside.shape[0], len(rows)))
        for inside, cell in columns
    ]

    # steps in standard errors of the coefficients at the start, so that frequent and rare bins converge alike
    of_bin = [inside.T @ np.bincount(cell, minlength=inside.shape[0]) for inside, cell in columns]
    share = np.exp(log_prior)
    error_of = 1 / np.sqrt(RIDGE + np.concatenate(of_bin)[:, None] * (share * (1 - share)))

    def loss(scaled: FloatArray) -> tuple[float, FloatArray]:
        tick()
        weight = scaled.reshape(shape) * error_of
        score = np.tile(log_prior, (len(rows), 1))
        for (inside, cell), part in zip(columns, np.split(weight, ends[:-1]), strict=True):
            score += (inside @ part)[cell]
        score -= scipy.special.logsumexp(score, axis=1, keepdims=True)
        error = np.exp(score)
        error[rows, outcome] -= 1
        gradient = RIDGE * weight
        for (inside, _), of_cell, part in zip(columns, rows_of_cell, np.split(gradient, ends[:-1]), strict=True):
            part += inside.T @ (of_cell @ error)
        penalty = 0.5 * RIDGE * float((weight * weight).sum())
        return penalty - float(score[rows, outcome].sum()), (gradient * error_of).ravel()

    start = np.zeros(shape[0] * shape[1])
    found = minimize(loss, start, jac=True, method="CG", options={"maxiter": STEPS, "gtol": CLOSE})
    coefficient: FloatArray = found.x.reshape(shape) * error_of
    return coefficient


def with_rows(release: PublishedRecords) -> Scoring:
    """Rows as `regroup` or `likelihood` score them, times the model."""
    models = models_of(release)
    # the sharpest reading of the rows: by what the method rules out, else by its groups, else by likelihood
    replay, base = release.replay, None
    if replay is not None and most_equal(replay) < len(release.columns):
        base = likelihood_excluding(release)
    elif replay is not None and replay.group is not None:
        base = regroup.scoring(release)
    base = base or likelihood(release)
    return replace(base, labels=[*base.labels, *_labels(models)])


def without_rows(release: PublishedRecords) -> Scoring:
    """The model alone."""
    return Scoring([], reach=REACH, labels=_labels(models_of(release)), finds=False)


def _labels(models: list[SensitiveModel]) -> list[Label]:
    """Sensitive bins of the rows, scored by the models."""
    return [Label(model.bin_of_row, model.log_ratio) for model in models]


SENSITIVE_MODEL = Attacker(
    "sensitive_model", "regroup or likelihood, times a model of the sensitive value trained on the release", with_rows,
    order=6,
)  # fmt: skip
SENSITIVE_MODEL_ALONE = Attacker(
    "sensitive_model_alone", "the model of the sensitive value trained on the release, without looking for the record",
    without_rows, order=7,
)  # fmt: skip
