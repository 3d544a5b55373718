"""linkage_risk: how often an attacker finds the record of an individual, or names the sensitive value.

Each attacker knows quasi-identifiers of a target, scores the released rows, picks evenly among the best, and lets them
vote on the sensitive value (`attackers` lists them). `identity` is the mean chance to pick the target's own row,
`attribute` that to name the sensitive value (of several columns the most exposed). `baseline` is the success with
persons of `holdout`, or of naive Bayes on the release without the target's rows; `advantage` = (attribute - baseline) /
(1 - baseline). 95% intervals of Wilson (1927). `strongest` has the largest identity and the largest advantage of those
who know the release, its call, and at most everybody's quasi-identifiers; its note has standard errors. `smallest` is
what `register` finds of the individuals in the smallest classes or groups (sizes that hold 5% of the rows): where k or
delta is nearest, a model of the sensitive value finds more than 1 / k. With a person
column targets are individuals: the attacker knows all their records, and any row or value of theirs is a success.
`known_values` values of a list may be known as well (Gong et al. 2017). `channel` is how an attacker knows what the
method makes of a value: 'published' (the cells state it), 'simulated' (the call is run on the release), 'bootstrap'
(the method is unknown, and near records stand in for it: the risk may be larger), NULL where it is not used. `note`
names what an attacker needs and lacks.
Source: Domingo-Ferrer and Torra (2001). Cost: targets x distinct rows x quasi-identifiers an attacker, and two runs of
the method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.measures.released_rows import OfRelease, released_rows, require_rows, with_suppressed_cells
from duckdb_anon.measures.risk.attackers import ATTACKERS
from duckdb_anon.measures.risk.attackers.register import REGISTER
from duckdb_anon.measures.risk.attacks import Attacker, NotApplicable, Scoring, attack, rate_of, standard_error
from duckdb_anon.measures.risk.baseline_inference import guesses
from duckdb_anon.measures.risk.linkage_view import BOOTSTRAP, PublishedRecords, published, register_of
from duckdb_anon.measures.risk.mechanism_simulation import bootstrapped, replay_select
from duckdb_anon.measures.risk.targets import Targets, draw_targets, known_columns
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import ParameterError, listed
from duckdb_anon.model.function_specs import Answer, Parameter, fields
from duckdb_anon.model.release_formats import SOURCE

STRONGEST = "strongest"
_BY_NAME = {attacker.name: attacker for attacker in ATTACKERS}
UNLINKED = f"identity is not measured without {SOURCE.word}, the number of the original row of each record"
_WEAKER = "weaker, since the method is unknown: learnt by a bootstrap of the release. Pass it as call := 'muco(0.2)'"
_FIGURES = (
    "identity", "identity_low", "identity_high", "attribute", "attribute_low", "attribute_high", "baseline",
    "advantage",
)  # fmt: skip
_SMALLEST = ("smallest", "smallest_low", "smallest_high")
SMALLEST = 0.05
"""Share of the rows that the smallest classes hold, at least."""
KNOWN = Parameter("known", "quasi-identifiers that the attacker knows (default: all)", "names", of="qi")
P_MATCH = Parameter(
    "p_match", "probability that the attacker knows each quasi-identifier, in (0, 1]", "number", 1.0, high=1, above=0
)
TARGETS = Parameter(
    "targets", "number of randomly chosen individuals that the attacker looks for", "integer", 2000, low=1
)
CALL = Parameter("call", "call that produced the release, 'muco(0.2)' (default: from its description)", "text")
ANSWERS = (
    "rows", "boxes", "buckets", "sliced", "randomized", "counts", "sampled", "suppressed", "retained", "persons",
)  # fmt: skip


@OfRelease(
    summary="re-identification and attribute disclosure by each attacker and by the strongest; near matches count",
    paper="attackers: Domingo-Ferrer and Torra (2001); Fellegi and Sunter (1969); Li et al. (2020), section 5.1",
    example="FROM linkage_risk('people', 'release', call := 'muco(0.2)')",
    section="Risk",
    parameters=(
        KNOWN,
        P_MATCH,
        Parameter("attackers", f"'all', or some of {listed(_BY_NAME)}", "names", ["all"], ("all", *_BY_NAME)),
        TARGETS,
        Parameter(
            "known_values", "sensitive values that the attacker knows, for lists, 0 to 4", "integer", 0, low=0, high=4
        ),
        Parameter("holdout", "table of individuals who are not in the original, for the baseline", "text"),
        CALL,
    ),
    returns=fields(
        "attacker VARCHAR, identity DOUBLE OR NULL, identity_low DOUBLE OR NULL, identity_high DOUBLE OR NULL, "
        "smallest DOUBLE OR NULL, smallest_low DOUBLE OR NULL, smallest_high DOUBLE OR NULL, "
        "attribute DOUBLE OR NULL, attribute_low DOUBLE OR NULL, attribute_high DOUBLE OR NULL, "
        "baseline DOUBLE OR NULL, advantage DOUBLE OR NULL, sensitive VARCHAR, targets BIGINT, channel VARCHAR, "
        "note VARCHAR"
    ),
    optional=("holdout",),
    further=replay_select,
    answers=ANSWERS,
    unit="person",
)
def linkage_risk(call: MeasureCall) -> Answer:
    """One row an attacker, then the strongest."""
    release, targets, outside = prepared(call, call.sensitive, linked=True)
    rows = rows_of(release, targets, outside, call.params["attackers"])
    _add_smallest(call, release, rows)
    if release.persons and not release.linked:
        rows[-1]["note"] += f"; {UNLINKED}"
    return rows


def _add_smallest(call: MeasureCall, release: PublishedRecords, rows: list[dict[str, Any]]) -> None:
    """Put what the attacker with a register finds in the smallest classes or groups into its row, and the strongest."""
    tried = next((row for row in rows if row["attacker"] == REGISTER.name and row.get("identity") is not None), None)
    if tried is None:
        return
    replay = release.replay
    group = None if replay is None else replay.group
    if release.group_of_unit is not None:
        group = release.group_of_unit[release.unit_of_row]
    if group is None:
        return
    row = released_rows(call.original, call.release)
    size = np.bincount(group)[group]
    small = np.append(size <= np.quantile(size, SMALLEST, method="inverted_cdf"), False)  # -1: not released
    few = draw_targets(call, call.original, release, row, np.flatnonzero(small[row]))
    found = dict(zip(_SMALLEST, rate_of(attack(release, REGISTER.scoring(release), few)[0]), strict=True))
    for each in (tried, rows[-1]):
        each |= found


def prepared(
    call: MeasureCall, sensitive: Sequence[str], *, linked: bool = False
) -> tuple[PublishedRecords, Targets, Targets | None]:
    """The release, persons who are in the original, and persons of the hold-out, if there is one."""
    read, known_values = call.read, call.params.get("known_values", 0)
    call = replace(call, params={**call.params, "known_values": known_values})
    known = known_columns(call.qi, call.params)
    shown = with_suppressed_cells(call.release, call.original, call.qi)
    release = published(shown, call.qi, sensitive, read.get("replay"), known_values)
    for which in ("original", "holdout"):
        if which in read:
            require_rows(read[which], which)
    row = None
    known_call = bool(call.params["call"]) or "replay" in read
    scored = call.release.sources() is not None
    if release.persons and (scored or (linked and (known_call or not sensitive))):
        row = released_rows(call.original, call.release)
    release = replace(release, linked=scored)
    targets = draw_targets(call, call.original, release, row)
    if release.plain and release.persons and not release.randomized and not known_call:
        release = replace(release, replay=bootstrapped(release, call.rng))
    if call.params["p_match"] == 1 and not known_values and call.person is None:
        release = replace(release, register=register_of(call.original, read.get("register"), call.qi, known))
    outside = draw_targets(call, read["holdout"], release) if "holdout" in read else None
    return release, targets, outside


def rows_of(
    release: PublishedRecords, targets: Targets, outside: Targets | None, names: list[str]
) -> list[dict[str, Any]]:
    """One row an attacker, then the strongest; one that cannot be used is an error where a call names it."""
    chosen = chosen_attackers(names)
    sensitive = [secret.name for secret in release.secrets]
    without = [rate_of(guesses(release, k, targets))[0] for k in range(len(sensitive))]
    rows: list[dict[str, Any]] = []
    results: list[tuple[Scoring, tuple[FloatArray, FloatArray]]] = []
    errors: dict[str, tuple[float, float]] = {}  # standard errors of identity and attribute of each attacker
    for attacker in chosen:
        row: dict[str, Any] = {"attacker": attacker.name, "targets": len(targets)}
        rows.append(row)
        try:
            scoring = attacker.scoring(release)
        except NotApplicable as reason:
            if "all" not in names:
                raise ParameterError(f"attacker '{attacker.name}' cannot be used. {reason}") from reason
            row["note"] = str(reason)
            continue
        row |= {"note": note_of(attacker, scoring), "channel": scoring.channel}
        done = [found for other, found in results if other is scoring]
        identity, attribute = done[0] if done else attack(release, scoring, targets)
        results.append((scoring, (identity, attribute)))
        base = without
        if outside is not None and not scoring.register:  # nobody of a hold-out is in the register
            base = [rate_of(chances)[0] for chances in attack(release, scoring, outside)[1].T]
        errors[attacker.name] = standard_error(identity), np.nan
        if release.persons and release.linked and scoring.finds:
            row |= zip(_FIGURES[:3], rate_of(identity), strict=True)
        if sensitive:
            rates = [rate_of(each) for each in attribute.T]
            gains = [advantage(rate, b) for (rate, _, _), b in zip(rates, base, strict=True)]
            k = int(np.argmax(np.nan_to_num(gains, nan=-np.inf)))
            row |= zip(_FIGURES[3:], (*rates[k], base[k], gains[k]), strict=True)
            row["sensitive"] = sensitive[k]
            errors[attacker.name] = errors[attacker.name][0], standard_error(attribute[:, k])
    return [*rows, _strongest(rows, chosen, errors)]


def chosen_attackers(names: Sequence[str]) -> list[Attacker]:
    """The attackers a call names; all of them by 'all'."""
    return list(ATTACKERS) if "all" in names else [_BY_NAME[name] for name in names]


def note_of(attacker: Attacker, scoring: Scoring) -> str:
    """What an attacker does, and that it finds less where the method is unknown."""
    return f"{attacker.doc}; {_WEAKER}" if scoring.channel == BOOTSTRAP else attacker.doc


def advantage(rate: float, base: float) -> float:
    """Share of what the baseline does not know that the attacker does; negative where it knows less."""
    return 0.0 if base >= 1 else (rate - base) / (1 - base)


def _strongest(
    rows: Sequence[Mapping[str, Any]], chosen: Sequence[Attacker], errors: Mapping[str, tuple[float, float]]
) -> dict[str, Any]:
    """The largest identity and the largest advantage of attackers who know what is public alone."""

    def figure(row: Mapping[str, Any], name: str) -> float:
        return float(np.nan_to_num(row.get(name, np.nan), nan=-np.inf))

    outsiders = {attacker.name for attacker in chosen if attacker.outsider}
    able = [row for row in rows if row["attacker"] in outsiders] or list(rows)
    by_identity = max(able, key=lambda row: figure(row, "identity"))
    by_attribute = max(able, key=lambda row: figure(row, "advantage"))
    silent = [row["attacker"] for row in able if figure(row, "identity") == figure(row, "attribute") == -np.inf]
    note = f"attribute: {by_attribute['attacker']}"
    if figure(by_attribute, "attribute") >= 0:
        note += f" (standard error {errors[by_attribute['attacker']][1]:.4f})"
    if figure(by_identity, "identity") >= 0:
        error = errors[by_identity["attacker"]][0]
        note = f"identity: {by_identity['attacker']} (standard error {error:.4f}); {note}"
    channel = next((row["channel"] for row in able if row.get("channel")), None)
    if silent:
        note += f"; not tried: {listed(silent)}"
    found = {name: by_identity.get(name) for name in _FIGURES[:3]}
    return {**by_attribute, **found, "attacker": STRONGEST, "channel": channel, "note": note}
