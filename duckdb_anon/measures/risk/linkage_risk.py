"""linkage_risk: how often an attacker finds a person's row, or her secret, in a release; the strongest decides.

Every attacker knows quasi-identifiers of a target, scores the released rows, picks evenly among the best and votes on
the sensitive value (`attackers` lists them). `identity` is the mean chance of picking the target's own row,
`attribute` that of naming her sensitive value (of several sensitive columns the most exposed), both in [0, 1].
`baseline` is the success with persons who are not in the table (`holdout`), or, without one, of guessing by a naive
Bayes model of the release that leaves the target's own row out; `advantage` = (attribute - baseline) / (1 - baseline).
Intervals are Wilson's (1927), 95%. `strongest` takes the largest identity and the largest advantage of the
attackers who are told nothing but the release and the call.

The likelihood attackers learn what the method does by running the release's call on the release; what an
attacker would need and the release or the call does not tell is said in `note`, and is an error where she is named.
Sources: see each attacker's file; record linkage as disclosure risk: Domingo-Ferrer and Torra (2001).
Cost: targets times distinct rows times quasi-identifiers an attacker, and one run of the method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.risk.attackers import ATTACKERS
from duckdb_anon.measures.risk.attacks import Attacker, CannotAsk, Targets, attack, wilson
from duckdb_anon.measures.risk.baseline import guesses
from duckdb_anon.measures.risk.published import Published, own_rows, published
from duckdb_anon.measures.risk.replay import replay_select
from duckdb_anon.model.entries import Parameter, Params, Report
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.reading import BoolArray, ReadTable
from duckdb_anon.model.table import FloatArray, IntArray

NAME = "linkage_risk"
STRONGEST = "strongest"
_FIGURES = (
    "identity", "identity_low", "identity_high", "attribute", "attribute_low", "attribute_high", "baseline",
    "advantage",
)  # fmt: skip


def linkage_risk(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row an attacker, then the strongest."""
    read = dict(zip(params["read"], tables, strict=True))
    sensitive = [info.name for info in params["roles"].sensitive]
    release, targets, outside = prepared(NAME, read, params, sensitive, rng, linked=True)
    chosen = chosen_attackers(NAME, params["attackers"])
    rows = rows_of(NAME, release, targets, outside, chosen, params["attackers"] == ["all"])
    rows.append(strongest_of(rows, chosen))
    return {name: [row.get(name, len(targets)) for row in rows] for name in MEASURE.returns}


def prepared(
    function: str,
    read: Mapping[str, ReadTable],
    params: Params,
    sensitive: Sequence[str],
    rng: np.random.Generator,
    *,
    linked: bool = False,
) -> tuple[Published, Targets, Targets | None]:
    """The release, persons who are in the original, and persons of the hold-out, if there is one.

    Args:
        function: SQL function, for messages.
        read: tables by the names of their parameters.
        params: `known`, `p_match` and `targets`, and the roles.
        sensitive: sensitive columns to ask for.
        rng: draws targets and what is known of them.
        linked: whether the release must say by `row_id` whose rows it has.
    """
    original, qi = read["original"], [info.name for info in params["roles"].qi]
    release = published(function, read["release"], qi, sensitive, read.get("replay"))
    if linked or read["release"].sources() is not None:
        row = own_rows(function, original, read["release"], release)
    else:
        row = np.full(original.rows, -1, dtype=np.int64)
    knows = _knows(function, qi, params["known"])
    targets = draw_targets(original, release, row, params, knows, rng)
    if "holdout" not in read:
        return release, targets, None
    absent = np.full(read["holdout"].rows, -1, dtype=np.int64)
    return release, targets, draw_targets(read["holdout"], release, absent, params, knows, rng)


def rows_of(
    function: str,
    release: Published,
    targets: Targets,
    outside: Targets | None,
    chosen: Sequence[Attacker],
    all_of_them: bool,
) -> list[dict[str, Any]]:
    """One row an attacker; who cannot be asked says why, and is an error where she was named.

    Args:
        function: SQL function, for messages.
        release: what was published.
        targets: persons who are in the original.
        outside: persons who are not, None for none.
        chosen: the attackers.
        all_of_them: whether 'all' were asked for, so that one who cannot be asked is no error.
    """
    sensitive = [secret.name for secret in release.secrets]
    without = [] if outside is not None else [guesses(release, k, targets).mean() for k in range(len(sensitive))]
    rows = []
    for attacker in chosen:
        try:
            scoring = attacker.scoring(release)
        except CannotAsk as reason:
            if not all_of_them:
                raise ParameterError(f"{function}: attacker '{attacker.name}' cannot be asked: {reason}") from reason
            rows.append(_row(attacker.name, str(reason)))
            continue
        found = attack(release, scoring, targets)
        base = without if outside is None else list(attack(release, scoring, outside).attribute.mean(axis=0))
        identity = found.identity if release.persons else None
        rows.append(_row(attacker.name, attacker.doc, identity, found.attribute, base, sensitive))
    return rows


def draw_targets(
    original: ReadTable, release: Published, row: IntArray, params: Params, knows: BoolArray, rng: np.random.Generator
) -> Targets:
    """Persons at random, and what the attacker knows of each.

    Args:
        original: the table they are drawn from.
        release: what was published.
        row: released row of each of its rows, -1 for none.
        params: `targets`, `p_match`.
        knows: quasi-identifiers the attacker may know.
        rng: source of randomness.

    Raises:
        ColumnError: the table lacks a column.
    """
    names = [*release.qi, *(secret.name for secret in release.secrets)]
    missing = [name for name in names if name not in original.columns]
    if missing or any(original.columns[name].shape != "value" for name in names):
        raise ColumnError(f"{NAME}: targets need plain values in {listed(missing or names)}")
    if not original.rows:
        raise RequirementError(f"{NAME}: there are no targets; the table is empty")
    wanted = params["targets"]
    who = np.arange(original.rows, dtype=np.int64)
    if wanted is not None and wanted < original.rows:
        who = np.sort(rng.choice(original.rows, wanted, replace=False))
    codes = [original.columns[name].value_codes()[who].astype(np.int32) for name in names]
    d = len(release.qi)
    values = np.stack(codes[:d], axis=1)
    secrets = np.stack(codes[d:], axis=1) if codes[d:] else np.zeros((len(who), 0), dtype=np.int32)
    mine = row[who]
    own = np.where(mine >= 0, release.unit_of_row[mine], -1)
    return Targets(values, _known(len(who), knows, params["p_match"], rng), mine, own, secrets)


def _knows(function: str, qi: list[str], known: list[str] | None) -> BoolArray:
    folded = {name.lower(): a for a, name in enumerate(qi)}
    mask = np.full(len(qi), known is None)
    for name in known or ():
        if name.lower() not in folded:
            raise ParameterError(
                f"{function}: known has '{name}'{nearest(name, qi)}; the quasi-identifiers are {listed(qi)}"
            )
        mask[folded[name.lower()]] = True
    if not mask.any():
        raise ParameterError(f"{function}: known := [] leaves nothing to look for; name some of {listed(qi)}")
    return mask


def _known(targets: int, knows: BoolArray, p: float, rng: np.random.Generator) -> BoolArray:
    """Each column with probability p, drawn again while none is."""
    known = np.tile(knows, (targets, 1))
    if p >= 1:
        return known
    drawn = (rng.random(known.shape) < p) & known
    while not (some := drawn.any(axis=1)).all():
        drawn[~some] = (rng.random((int((~some).sum()), len(knows))) < p) & known[~some]
    return drawn


def chosen_attackers(function: str, names: list[str]) -> list[Attacker]:
    """The attackers a call names; all of them by 'all'."""
    by_name = {attacker.name: attacker for attacker in ATTACKERS}
    if names == ["all"]:
        return list(ATTACKERS)
    for name in names:
        if name not in by_name:
            raise ParameterError(
                f"{function}: attackers has '{name}'{nearest(name, by_name)}; there are 'all', {listed(by_name)}"
            )
    if not names:
        raise ParameterError(f"{function}: attackers := [] asks nobody; there are 'all', {listed(by_name)}")
    return [by_name[name] for name in dict.fromkeys(names)]


def _row(
    name: str,
    note: str,
    identity: FloatArray | None = None,
    attribute: FloatArray | None = None,
    base: Sequence[float] = (),
    sensitive: Sequence[str] = (),
) -> dict[str, Any]:
    row: dict[str, Any] = {"attacker": name, "note": note, "sensitive": None, **dict.fromkeys(_FIGURES, np.nan)}
    if identity is not None:
        low, high = wilson(float(identity.sum()), len(identity))
        row |= {"identity": float(identity.mean()), "identity_low": low, "identity_high": high}
    if attribute is not None and len(sensitive):
        rates = attribute.mean(axis=0)
        gains = [advantage(float(rate), float(b)) for rate, b in zip(rates, base, strict=True)]
        k = int(np.argmax(gains))
        low, high = wilson(float(attribute[:, k].sum()), len(attribute))
        row |= {
            "attribute": float(rates[k]), "attribute_low": low, "attribute_high": high, "baseline": float(base[k]),
            "advantage": gains[k], "sensitive": sensitive[k],
        }  # fmt: skip
    return row


def advantage(rate: float, base: float) -> float:
    """Share of what the baseline does not know that the attacker does; negative where she knows less."""
    return (rate - base) / (1 - base) if base < 1 else 0.0


def strongest_of(rows: Sequence[Mapping[str, Any]], chosen: Sequence[Attacker]) -> dict[str, Any]:
    """The largest identity and the largest advantage of attackers who are told nothing but what is public."""
    outsiders = {attacker.name for attacker in chosen if attacker.outsider}
    able = [row for row in rows if row["attacker"] in outsiders] or list(rows)
    by_identity = max(able, key=lambda row: np.nan_to_num(row["identity"], nan=-np.inf))
    by_attribute = max(able, key=lambda row: np.nan_to_num(row["advantage"], nan=-np.inf))
    silent = [row["attacker"] for row in able if np.isnan(row["identity"]) and np.isnan(row["attribute"])]
    note = f"identity: {by_identity['attacker']}; attribute: {by_attribute['attacker']}"
    if silent:
        note += f"; not asked: {listed(silent)}"
    return {**by_attribute, **{f: by_identity[f] for f in _FIGURES[:3]}, "attacker": STRONGEST, "note": note}


PARAMETERS = (
    Parameter("known", "quasi-identifiers the attacker knows (default: all)", "names"),
    Parameter("p_match", "probability that she knows each of them, in (0, 1]", "number", 1.0, high=1, above=0),
)
MEASURE = Report(
    name=NAME,
    summary="how often each attacker finds a person's row or her secret, and the strongest of them; near matches count",
    paper="attackers: Domingo-Ferrer and Torra (2001); Fellegi and Sunter (1969); Li et al. (2020), section 5.1",
    example="FROM linkage_risk('people', 'release', call := 'muco(0.2)')",
    parameters=(
        *PARAMETERS,
        Parameter("attackers", f"'all', or some of {listed(a.name for a in ATTACKERS)}", "names", ["all"]),
        Parameter("targets", "number of randomly chosen persons to look for", "integer", 2000, low=1),
        Parameter("holdout", "table of persons who are not in the original, for the baseline", "text"),
        Parameter("call", "what made the release, 'muco(0.2)' (default: what its description says)", "text"),
    ),
    returns={
        "attacker": "VARCHAR",
        "identity": "DOUBLE OR NULL",
        "identity_low": "DOUBLE OR NULL",
        "identity_high": "DOUBLE OR NULL",
        "attribute": "DOUBLE OR NULL",
        "attribute_low": "DOUBLE OR NULL",
        "attribute_high": "DOUBLE OR NULL",
        "baseline": "DOUBLE OR NULL",
        "advantage": "DOUBLE OR NULL",
        "sensitive": "VARCHAR",
        "targets": "BIGINT",
        "note": "VARCHAR",
    },
    compute=linkage_risk,
    tables=("original", "release"),
    optional=("holdout",),
    further=replay_select,
    reads="tables",
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "counts", "sampled", "suppressed", "retained"),
)
