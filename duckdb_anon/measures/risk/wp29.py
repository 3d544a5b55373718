"""singling_out, linkability, inference: the criteria of the Article 29 Working Party, as attacks on a release.

Each attack is tried on the original, by guesses at random (baseline), and on individuals of `holdout`, who are not in
the original (control); risk = (attack - control) / (1 - control). All figures are in [0, 1].
singling_out: a predicate that holds for one released row succeeds when it holds for one original row. 'univariate': a
value that occurs once, or the smallest or largest of an ordered column and beyond; 'multivariate': the values of a
random row in `n` random columns, equality for nominal ones, >= above the median and <= below it for ordered ones.
linkability: an attacker knows an individual's values in two disjoint sets of columns, and succeeds when a record is
among the k nearest by each. inference: a column is guessed by the value of the record nearest on the known columns; of
an ordered column with more than 20 values the guess is right within 5% of the true value.
Source: WP29, Opinion 05/2014; Giomi, Boenisch, Wehmeyer and Tasnadi (2023), PETS, section 4.
Cost: attacks (singling_out: at most 20 attempts each) times rows times columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from duckdb_anon.kernels.attacks.linkage_scores import nearest_rows
from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.measures.released_rows import OfRelease, require_columns, require_rows
from duckdb_anon.measures.risk.attacks import rate_of
from duckdb_anon.model.coded_table import BoolArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError
from duckdb_anon.model.function_specs import Answer, Parameter, fields
from duckdb_anon.model.progress import stop_flag, tick

BOXES = "boxes are taken at their middle, sets and nodes at their most frequent value"
ADVICE = " (published as it is; sensitive_edges := 10 in the method's call gives each of its values 10 carriers)"
MODES = ("univariate", "multivariate")
TRIES = 20
CONTINUOUS = 20
"""Ordered columns of more values are inferred within a tolerance."""
_COMPARISONS: dict[str, np.ufunc] = {"=": np.equal, ">=": np.greater_equal, "<=": np.less_equal}
Term = tuple[int, str, float]
"""Column, comparison and value."""


@dataclass(frozen=True)
class Numbers:
    """A table as numbers."""

    values: FloatArray  # places on the line of ordered columns, codes of the others, shape (columns, rows)
    nominal: BoolArray
    span: FloatArray  # range of each ordered column over all tables, 1 where it is 0
    boxes: bool  # whether some cells stand for several values

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[1])


def _numbers(call: MeasureCall, which: str, names: Sequence[str]) -> Numbers:
    table = call.read[which]
    require_columns(table, names)
    require_rows(table, which)
    if table.counted:
        raise ColumnError("the release holds noisy counts; this attack needs one row per record")
    cells = [table.columns[name].comparable() for name in names]
    values = np.stack([each.middles()[each.of_row] for each in cells])
    nominal = np.array([each.domain.kind != "ordered" for each in cells])
    span = np.array([each.domain.span or 1.0 for each in cells])
    return Numbers(np.ascontiguousarray(values), nominal, span, not all(each.plain for each in cells))


def _with_values(call: MeasureCall) -> tuple[list[str], str]:
    """Columns that have a value in each row of the release, and a note on the others."""
    columns = call.release.columns
    without = [name for name in call.labelled if name in columns and columns[name].counted]
    left_out = f"{', '.join(without)} left out: rows show counts of their bucket" if without else ""
    return [name for name in call.labelled if name not in without], left_out


def _rates(
    criterion: str, attack: FloatArray, baseline: FloatArray, control: FloatArray | None, attacks: int, note: str
) -> tuple[Any, ...]:
    """One row of the answer, from the success of each attack; the errors of both rates are propagated to the risk."""
    rate, low, high = rate_of(attack)
    risk, risk_low, risk_high, controlled = rate, low, high, np.nan
    if control is not None:
        controlled, below, above = rate_of(control)
        a, b = (low + high) / 2, (below + above) / 2
        rest = max(1.0 - b, 1e-9)
        middle = (a - b) / rest
        half = float(np.hypot((high - low) / 2 / rest, (above - below) / 2 * (1 - a) / rest**2))
        risk, risk_low, risk_high = max(0.0, middle), max(0.0, middle - half), min(1.0, max(0.0, middle + half))
    return criterion, rate, low, high, float(baseline.mean()), controlled, risk, risk_low, risk_high, attacks, note


_HOLDOUT = Parameter("holdout", "table of individuals who are not in the original, for the control", "text")
_criterion = partial(
    OfRelease, paper="Article 29 Working Party, Opinion 05/2014; Giomi et al. (2023), PETS, section 4", section="Risk",
    returns=fields(
        "criterion VARCHAR, attack DOUBLE, attack_low DOUBLE, attack_high DOUBLE, baseline DOUBLE, "
        "control DOUBLE OR NULL, risk DOUBLE, risk_low DOUBLE, risk_high DOUBLE, attacks BIGINT, note VARCHAR"
    ),
    optional=("holdout",),
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "sampled", "suppressed", "retained"),
)  # fmt: skip


@_criterion(
    summary="singling out (WP29): conditions on the release that hold for exactly one individual",
    example="FROM singling_out('people', 'release', attacks := 100)",
    instead=("linkage_risk", "attribute_risk"),
    parameters=(
        Parameter("mode", "'univariate', 'multivariate' or 'both'", "text", "both", (*MODES, "both")),
        Parameter("n", "number of columns in a multivariate predicate", "integer", 4, low=1),
        Parameter(
            "columns", "columns of predicates (default: quasi-identifiers and sensitive)", "names", of="labelled"
        ),
        Parameter("attacks", "number of predicates", "integer", 500, low=1, high=20_000),
        _HOLDOUT,
    ),
)
def singling_out(call: MeasureCall) -> Answer:
    """One row a mode."""
    params, rng = call.params, call.rng
    if params["columns"] == []:
        raise ParameterError("columns := [] names none; leave it out, or name those to look at")
    every, left_out = _with_values(call)
    names = params["columns"] or every
    release, original = (_numbers(call, which, names) for which in ("release", "original"))
    absent = _numbers(call, "holdout", names) if "holdout" in call.read else None
    edges = call.release.numbers.get(call.release.contents.edges)
    coarser = "" if edges is None or edges[0] == 1 else f"sensitive values have {edges[0]:g} carriers or more"
    rows = []
    for mode in MODES if params["mode"] == "both" else (params["mode"],):
        width = 1 if mode == "univariate" else params["n"]
        find = _univariate if mode == "univariate" else partial(_multivariate, n=params["n"])
        predicates = find(release, params["attacks"], rng)
        guesses = [_random(release, width, rng) for _ in predicates]
        attack, baseline = _success(original, predicates), _success(original, guesses)
        control = None if absent is None else _success(absent, predicates)
        notes = [mode, BOXES if release.boxes else "", "" if params["columns"] else left_out, coarser]
        if mode == "univariate" and attack.any():
            hits = np.bincount([terms[0][0] for terms, hit in zip(predicates, attack, strict=True) if hit])
            most = names[int(hits.argmax())]
            notes.append(f"most through column {most}{ADVICE if most in call.sensitive else ''}")
        note = "; ".join(filter(None, notes))
        rows.append(_rates("singling_out", attack, baseline, control, len(predicates), note))
    return rows


def _univariate(release: Numbers, attacks: int, rng: np.random.Generator) -> list[list[Term]]:
    """Predicates on one column that hold for exactly one released row."""
    found: list[list[Term]] = []
    for a in range(len(release.values)):
        values, counts = np.unique(release.values[a], return_counts=True)
        found += [[(a, "=", float(v))] for v in values[counts == 1]]
        if not release.nominal[a]:
            found += [[(a, "<=", float(values[0]))]] if counts[0] == 1 else []
            found += [[(a, ">=", float(values[-1]))]] if counts[-1] == 1 else []
    return [found[i] for i in rng.permutation(len(found))[:attacks]]


def _multivariate(release: Numbers, attacks: int, rng: np.random.Generator, n: int) -> list[list[Term]]:
    """Predicates on n columns of a random row that hold for exactly one released row."""
    median = np.median(release.values, axis=1)
    n = min(n, len(release.values))
    found: dict[tuple[Term, ...], None] = {}
    for attempt in range(TRIES * attacks):
        if len(found) == attacks:
            break
        if attempt % 100 == 0:
            tick()
        row = int(rng.integers(release.rows))
        terms = []
        for a in np.sort(rng.choice(len(release.values), n, replace=False)).tolist():
            value = float(release.values[a, row])
            terms.append((a, "=" if release.nominal[a] else ">=" if value > median[a] else "<=", value))
        if _singled(release, terms):
            found[tuple(terms)] = None
    return [list(terms) for terms in found]


def _random(release: Numbers, n: int, rng: np.random.Generator) -> list[Term]:
    """A predicate with the values of a random row for each column, and random comparisons."""
    terms = []
    for a in rng.choice(len(release.values), min(n, len(release.values)), replace=False).tolist():
        value = float(release.values[a, rng.integers(release.rows)])
        terms.append((a, "=" if release.nominal[a] else str(rng.choice([">=", "<="])), value))
    return terms


def _success(table: Numbers, predicates: Sequence[Sequence[Term]]) -> FloatArray:
    """Whether each predicate holds for exactly one row; one failure where there is none."""
    return np.array([_singled(table, terms) for terms in predicates] or [0.0])


def _singled(table: Numbers, terms: Sequence[Term]) -> float:
    holds = [_COMPARISONS[sign](table.values[a], value) for a, sign, value in terms]
    return float(np.logical_and.reduce(holds).sum() == 1)


_ATTACKS = Parameter("attacks", "number of attacks", "integer", 2000, low=1)


@_criterion(
    summary="linkability (WP29): do two sets of an individual's values lead to the same released record?",
    example="FROM linkability('people', 'release', columns_a := ['age', 'gender'])",
    smallest="columns_a := ['{number}'], columns_b := ['{text}']",
    instead=("linkage_risk",),
    parameters=(
        Parameter("columns_a", "columns of the first set (default: every second one)", "names", of="labelled"),
        Parameter("columns_b", "columns of the second set (default: all others)", "names", of="labelled"),
        Parameter("k", "number of nearest records by each set", "integer", 1, low=1, high=1000),
        _ATTACKS,
        _HOLDOUT,
    ),
)
def linkability(call: MeasureCall) -> Answer:
    """One row."""
    params, rng = call.params, call.rng
    every, left_out = _with_values(call)
    first = params["columns_a"] or every[::2]
    second = params["columns_b"] or [name for name in every if name not in first]
    if set(first) & set(second) or not first or not second:
        raise ParameterError("columns_a and columns_b must be two disjoint sets of columns, none empty")
    release = _numbers(call, "release", [*first, *second])
    k = min(params["k"], release.rows)

    def attack(table: str) -> FloatArray:
        people = _numbers(call, table, [*first, *second])
        targets = rng.choice(people.rows, min(params["attacks"], people.rows), replace=False)
        sides = slice(len(first)), slice(len(first), None)
        return _common(*(_nearest(people, release, side, targets, k, rng) for side in sides))

    found = attack("original")
    guess = _common(*(rng.choice(release.rows, (len(found), k)) for _ in range(2)))
    control = attack("holdout") if "holdout" in call.read else None
    notes = [f"{', '.join(first)} | {', '.join(second)}", BOXES if release.boxes else ""]
    note = "; ".join(filter(None, [*notes, "" if params["columns_b"] else left_out]))
    return [_rates("linkability", found, guess, control, len(found), note)]


def _common(first: IntArray, second: IntArray) -> FloatArray:
    """Whether two sets of records have one in common, shape (targets,)."""
    both: FloatArray = (first[:, :, None] == second[:, None, :]).any(axis=(1, 2)).astype(np.float64)
    return both


@_criterion(
    summary="inference (WP29): can the sensitive value be inferred from the nearest released record?",
    example="FROM inference('people', 'release')",
    instead=("attribute_risk",),
    parameters=(
        Parameter("secret", "columns to infer (default: the sensitive ones)", "names", of="labelled"),
        Parameter(
            "known", "columns that the attacker knows (default: all other quasi-identifiers)", "names", of="labelled"
        ),
        Parameter("tolerance", "relative error up to which a continuous value is correct", "number", 0.05, low=0),
        _ATTACKS,
        _HOLDOUT,
    ),
)
def inference(call: MeasureCall) -> Answer:
    """One row a column that is inferred."""
    secrets = call.params["secret"] or call.sensitive
    if not secrets:
        raise ParameterError("no sensitive column is labelled; say secret := '...'")
    every, released = call.params["known"] or call.qi, call.release.columns
    rows = []
    for secret in secrets:
        if secret in released and released[secret].counted:
            raise ColumnError(
                f"rows of the release have counts of '{secret}' in their bucket, so the nearest row has no single "
                "value. Use attribute_risk, or name another column: secret := '...'"
            )
        known = [name for name in every if name != secret]
        if not known:
            raise ParameterError(f"nothing is known besides '{secret}'; name columns in known := [...]")
        rows.append(_inferred(call, secret, known))
    return rows


def _inferred(call: MeasureCall, secret: str, known: list[str]) -> tuple[Any, ...]:
    params, rng = call.params, call.rng
    release = _numbers(call, "release", [*known, secret])
    domain = call.original.columns[secret].domain
    continuous = domain.kind == "ordered" and domain.size > CONTINUOUS

    def attack(table: str, *, at_random: bool = False) -> FloatArray:
        people = _numbers(call, table, [*known, secret])
        targets = rng.choice(people.rows, min(params["attacks"], people.rows), replace=False)
        if at_random:
            record = rng.integers(0, release.rows, len(targets))
        else:
            record = _nearest(people, release, slice(-1), targets, 1, rng)[:, 0]
        guess, truth = release.values[-1, record], people.values[-1, targets]
        tolerance = params["tolerance"] * np.abs(truth) if continuous else 0.0
        right: FloatArray = (np.abs(guess - truth) <= tolerance).astype(np.float64)
        return right

    control = attack("holdout") if "holdout" in call.read else None
    found, guess = attack("original"), attack("original", at_random=True)
    note = secret + (f", within {params['tolerance']:g} of the value" if continuous else "")
    note += f"; {BOXES}" if release.boxes else ""
    return _rates("inference", found, guess, control, len(found), note)


def _nearest(
    people: Numbers, release: Numbers, columns: slice, targets: IntArray, k: int, rng: np.random.Generator
) -> IntArray:
    """The k released records nearest to some individuals on some columns, ties at random, shape (targets, k)."""
    out = np.zeros((len(targets), k), dtype=np.int64)
    nearest_rows(
        np.ascontiguousarray(people.values[columns, targets]), release.values[columns], release.nominal[columns],
        release.span[columns], rng.permutation(release.rows), out, stop_flag(),
    )  # fmt: skip
    return out
