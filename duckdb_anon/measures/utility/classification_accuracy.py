"""classification_accuracy: what a learner trained on the release achieves on the original rows.

Folds are drawn on the original records. For each, a decision tree learns `target` from all other labelled
columns on the published rows of the training records, and predicts the original rows of the fold (Li et al. 2012,
section 6; Hasan et al. 2018, section 5.3, do not say whether they did). Next to it: the same learner trained on
original rows, and always predicting the largest class. Fake rows take part in training only; a sampled release is
tested on its own records; releases of counts have no records, so all their rows take part in training.

Departure: the tree is CART (scikit-learn, at least two records a leaf) on one-hot names, not C4.5 (J48), so
figures do not compare with printed ones. Accuracies are shares in [0, 1].
Cost: folds times a tree on the rows; needs scikit-learn (`pip install duckdb-anon[ml]`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.table import MeasureCall, ReadTable
from duckdb_anon.kernels.thread_pool import run_detached
from duckdb_anon.measures.released_rows import OfRelease, repeated_rows, require_columns, source_rows
from duckdb_anon.measures.utility.sampled_microdata import drawn_codes, numbers
from duckdb_anon.model.coded_table import BoolArray, FloatArray, IntArray
from duckdb_anon.model.errors import AnonError, RequirementError
from duckdb_anon.model.function_specs import REQUIRED, Answer, Parameter, Params, fields

_LARGEST = float(np.finfo(np.float32).max)
_ONE_HOT_UP_TO = 64


@dataclass(frozen=True)
class LearnerRows:
    """Rows for a learner."""

    features: FloatArray  # shape (rows, features)
    label: IntArray  # class of each row
    record: IntArray  # original record of each row, -1 for none


@OfRelease(
    summary="accuracy of a decision tree trained on the release, compared with the original and the largest class",
    paper="Hasan, Jiang, Chen & Wang (2018), Applied Sciences 8(5):783, section 5.3 (CART for C4.5)",
    example="FROM classification_accuracy('people', 'boxes', 'gender')",
    section="Utility",
    smallest="target := '{text}', folds := 2",
    extra="ml",
    parameters=(
        Parameter("target", "column to be predicted from all other labelled ones", "text", REQUIRED, of="labelled"),
        Parameter("folds", "number of folds", "integer", 10, low=2),
        Parameter("min_leaf", "least number of rows in a leaf of the tree", "integer", 2, low=1),
    ),
    returns=fields(
        "target VARCHAR, learner VARCHAR, folds BIGINT, accuracy DOUBLE, deviation DOUBLE, original_accuracy DOUBLE, "
        "majority_accuracy DOUBLE"
    ),
    unit="any",
    answers=("rows", "boxes", "buckets", "sliced", "counts", "randomized", "sampled", "suppressed", "retained"),
    needs=("qi", "sensitive"),
)
def classification_accuracy(call: MeasureCall) -> Answer:
    """One row: accuracy on the release, on the original, and of the largest class."""
    original, release, labelled, params, rng = call.original, call.release, call.labelled, call.params, call.rng
    target = params["target"]
    predictors = [name for name in labelled if name != target]
    require_columns(release, labelled)
    truth = _sample(original, predictors, target, np.arange(original.rows), rng)
    # rows with counts are no record of the original
    record = np.full(release.rows, -1, dtype=np.int64) if release.counted else source_rows(original, release)
    offered = _sample(release, predictors, target, record, rng)
    fold_of_record = rng.permutation(original.rows) % params["folds"]
    scores = _scores(truth, offered, fold_of_record, params, rng)
    accuracy, of_original, of_majority = scores.mean(axis=0)
    return [(target, "CART", params["folds"], accuracy, scores[:, 0].std(), of_original, of_majority)]


def _sample(
    table: ReadTable, predictors: Sequence[str], target: str, record: IntArray, rng: np.random.Generator
) -> LearnerRows:
    rows = repeated_rows(table)
    features = np.concatenate([_features(table.columns[name], rows, rng) for name in predictors], axis=1)
    return LearnerRows(features, drawn_codes(table.columns[target], rows, rng), record[rows])


def _features(column: Ranges, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    if column.domain.kind == "ordered":
        # the trees reckon in single precision; what is beyond it stays the largest or the smallest
        return numbers(column, rows, rng).clip(-_LARGEST, _LARGEST)[:, None]
    codes = drawn_codes(column, rows, rng)
    if column.domain.size > _ONE_HOT_UP_TO:
        return codes.astype(np.float64)[:, None]
    hot: FloatArray = (codes[:, None] == np.arange(column.domain.size)).astype(np.float64)
    return hot


def _scores(
    truth: LearnerRows, offered: LearnerRows, fold_of_record: IntArray, params: Params, rng: np.random.Generator
) -> FloatArray:
    """Accuracy of release, original and largest class in each fold, shape (folds, 3)."""
    released = np.zeros(len(fold_of_record), dtype=bool)
    released[offered.record[offered.record >= 0]] = True
    tested = released | ~released.any()  # a sample is tested on its own records
    fold_of_row = np.where(offered.record >= 0, fold_of_record[offered.record], -1)
    in_fold = np.bincount(fold_of_record[tested], minlength=params["folds"])
    if in_fold.min() == 0 or len(offered.label) < 2 * params["folds"]:
        raise RequirementError(
            f"{int(in_fold.sum())} records to test and {len(offered.label)} published rows do "
            f"not fill {params['folds']} folds; ask for fewer folds"
        )
    learner = {"min_samples_leaf": params["min_leaf"], "random_state": int(rng.integers(2**31))}
    scores = np.zeros((params["folds"], 3))
    for number in range(params["folds"]):
        train, training_records = fold_of_row != number, fold_of_record != number
        test_records = tested & ~training_records
        largest = np.bincount(truth.label[training_records]).argmax()
        scores[number] = (
            _accuracy((offered, train), (truth, test_records), learner),
            _accuracy((truth, training_records), (truth, test_records), learner),
            float((truth.label[test_records] == largest).mean()),
        )
    return scores


def _accuracy(
    train: tuple[LearnerRows, BoolArray], test: tuple[LearnerRows, BoolArray], learner: Mapping[str, int]
) -> float:
    """Share of the test rows whose class a tree grown on the training rows predicts."""
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError as error:
        raise AnonError("needs scikit-learn; pip install 'duckdb-anon[ml]'") from error
    (learned, chosen), (tested, rows) = train, test

    def fitted() -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # sklearn adds all numbers up, to see whether one is NaN
            tree = DecisionTreeClassifier(**learner).fit(learned.features[chosen], learned.label[chosen])
            return float((tree.predict(tested.features[rows]) == tested.label[rows]).mean())

    return run_detached(fitted)
