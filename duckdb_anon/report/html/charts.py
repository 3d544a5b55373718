"""The charts of a report, as Vega-Lite specifications made by Altair. A chart without data is None."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from duckdb_anon.report.findings import P_MATCH, Findings, Measured, Rows

Spec = dict[str, Any]
PALETTE = ("#2f7fb5", "#d9822b", "#3a9a6b", "#a45bb5", "#c0504d", "#8c6d46", "#d4679f", "#6f7f2f")
"""Colours of releases, distinct on white and on near black."""
ORIGINAL = "#98a1ad"
_HEIGHT, _STEP = 230, 9
_MOST_VALUES = 50
_LABEL = 150  # widest label, in pixels: two thirds of a phone's chart are left
_GRID = 20
_FEW_VALUES = 12  # numbers of fewer values are drawn as names: codes often are
_LEGEND = alt.Legend(orient="top", columns=3)
RISK_AT = P_MATCH[-1]
"""One figure for a release is that of an attacker who knows everything."""


def risk_utility_map(report: Findings) -> Spec | None:
    """One point per release: mean query error against the re-identification risk by the strongest attacker."""
    rows = [
        {"release": r.name, "risk": row["identity"], "error": r.mean_error}
        for r, row in _strongest(report)
        if row["p_match"] == RISK_AT and r.charts["errors"] and row["identity"] is not None
    ]
    if not rows:
        return None
    ends = {name: 1.15 * max(float(row[name]) for row in rows) or 1.0 for name in ("risk", "error")}
    scales = {name: alt.Scale(domainMin=0, domainMax=end) for name, end in ends.items()}
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X("risk:Q", title="identity, by the strongest attacker", scale=scales["risk"]),
        y=alt.Y("error:Q", title="mean relative query error", scale=scales["error"]),
    )
    color = _by_release(report, legend=None)
    points = base.mark_point(filled=True, size=120).encode(color=color, tooltip=["release", "risk", "error"])
    middle = ends["risk"] / 2
    near = base.transform_filter(alt.datum.risk <= middle).mark_text(dx=10, align="left")
    far = base.transform_filter(alt.datum.risk > middle).mark_text(dx=-10, align="right")  # inside a phone's chart
    return _spec(alt.layer(points, near.encode(text="release:N"), far.encode(text="release:N")), height=260)


def risk_over_knowledge(report: Findings, kind: Literal["identity", "attribute"]) -> Spec | None:
    """Risk by the strongest attacker over the attacker's knowledge, one line per release."""
    found = [(r, row) for r, row in _strongest(report) if row[kind] is not None]
    known = alt.Axis(values=list(P_MATCH), format=".1f")
    title = "probability that a quasi-identifier is known"
    return _drawn(
        [{"release": r.name, "p_match": row["p_match"], "risk": row[kind]} for r, row in found],
        {"type": "line", "point": True},
        x=alt.X("p_match:Q", title=title, scale=alt.Scale(zero=False), axis=known),
        y=alt.Y("risk:Q", title=f"{kind}, strongest attacker"),
        color=_by_release(report),
        tooltip=["release", "p_match", "risk"],
    )


def joined_risk(rows: Rows) -> Spec | None:
    """Identity of individuals of a database by what is known of them, with pseudonyms alone and in the release."""
    sides = {"pseudonyms": "pseudonyms alone", "identity": "this release"}
    points = [
        {"known": known.replace("demographics and", "+").partition(" (")[0], "table": title, "identity": row[side]}
        for known, row in ((str(row["known"]), row) for row in rows)
        for side, title in sides.items()
        if row[side] is not None
    ]
    scale = alt.Scale(domain=list(sides.values()), range=[ORIGINAL, PALETTE[0]])
    axis, all_shares = alt.Axis(format="%", tickCount=5), alt.Scale(domainMin=0, domainMax=1)
    return _drawn(
        points,
        "bar",
        x=alt.X("identity:Q", title="identity", axis=axis, scale=all_shares),
        y=alt.Y("known:N", title=None, sort=None),
        yOffset=alt.YOffset("table:N", sort=list(sides.values())),
        color=alt.Color("table:N", title=None, scale=scale, legend=_LEGEND),
        tooltip=["known", "table", "identity"],
    )


def query_errors(report: Findings, *, rounded: bool = False) -> Spec | None:
    """Share of the workload's queries with at most a given error, or the next twentieth above it."""
    rows, widest = [], 0.0
    for r in report.releases:
        errors = np.sort([row["error"] for row in r.charts["errors"]])
        if rounded:  # an exact error of a known query gives the count behind it
            errors = np.ceil(errors * _GRID) / _GRID
        rows += [{"release": r.name, "error": e, "share": (k + 1) / len(errors)} for k, e in enumerate(errors)]
        widest = max([widest, *errors])
    widest = min(1.0, float(np.ceil(widest * _GRID + 1) / _GRID))
    return _drawn(
        rows,
        {"type": "line", "interpolate": "step-after", "clip": True},
        x=alt.X("error:Q", title="relative error of a query", scale=alt.Scale(domainMax=widest, domainMin=0)),
        y=alt.Y("share:Q", title="share of queries", axis=alt.Axis(format="%")),
        color=_by_release(report),
    )


def losses(report: Findings) -> Spec | None:
    """Information loss of each column, releases side by side."""
    found = [(r, row) for r in report.releases for row in r.charts["loss"] if row["attribute"] != "(all)"]
    return _drawn(
        [{"release": r.name, "attribute": row["attribute"], "loss": row["iloss"]} for r, row in found],
        "bar",
        x=alt.X("loss:Q", title="information loss, share of the range"),
        y=alt.Y("attribute:N", title=None),
        yOffset="release:N",
        color=_by_release(report),
        tooltip=["release", "attribute", "loss"],
    )


def class_sizes(report: Findings, release: Measured) -> Spec | None:
    """Rows by the size of their equivalence class."""
    axis = alt.Axis(format="d", tickMinStep=1, labelOverlap="greedy")
    size = alt.X("size:Q", bin=alt.Bin(maxbins=30, minstep=1), title="size of the equivalence class", axis=axis)
    mark = {"type": "bar", "color": _colour(report, release)}
    return _drawn(release.charts["class_sizes"], mark, x=size, y=alt.Y("sum(rows):Q", title="rows"))


def marginals(report: Findings, release: Measured) -> list[tuple[str, Spec | None]]:
    """Counts of the values of each quasi-identifier."""
    return [(f"Counts by {name}", _marginal(report, release, name)) for name in report.qi]


def _marginal(report: Findings, release: Measured, attribute: str) -> Spec | None:
    """Counts of one column's values, original against the estimate from the release."""
    rows = [row for row in release.charts["marginals"] if row["column"] == attribute]
    if not rows:
        return None
    frame = pd.DataFrame(rows).rename(columns={"estimate": "release"})
    numbers = pd.to_numeric(frame["value"], errors="coerce")
    ordered = bool(numbers.notna().all()) and len(frame) > _FEW_VALUES
    if ordered:
        frame["value"] = numbers
    else:
        frame = frame.nlargest(_MOST_VALUES, "original")
        frame["value"] = frame["value"].fillna("NULL").astype(str)
    long = frame.melt("value", ["original", "release"], "table", "rows").to_dict("records")
    scale = alt.Scale(range=[ORIGINAL, _colour(report, release)])
    color = alt.Color("table:N", title=None, scale=scale, legend=_LEGEND)
    if ordered:
        return _drawn(long, "line", x=alt.X("value:Q", title=attribute), y=alt.Y("rows:Q"), color=color)
    names = alt.Y("value:N", title=None, sort="-x", axis=alt.Axis(labelLimit=_LABEL, labelOverlap=False))
    # every category has its own line, however many there are
    height = alt.Step(_STEP, **{"for": "offset"})
    return _drawn(long, "bar", height=height, y=names, yOffset="table:N", x=alt.X("rows:Q"), color=color)


def correlation_change(report: Findings, release: Measured) -> Spec | None:
    """Change of the uncertainty coefficient of each pair of columns."""
    # the same colours mean the same change for every release
    pairs = [row for r in report.releases for row in r.charts["correlation"]]
    most = max((abs(row["release"] - row["original"]) for row in pairs), default=0.0)
    # paint over the page's own ground: no change is no colour, in the light and in the dark
    strength = alt.Scale(domain=[0, most or 1], range=[0.05, 1])
    sides = alt.Scale(domain=["weaker", "stronger"], range=[PALETTE[4], PALETTE[0]])
    changes = [{**row, "change": row["release"] - row["original"]} for row in release.charts["correlation"]]
    return _drawn(
        [{**r, "size": abs(r["change"]), "sign": "weaker" if r["change"] < 0 else "stronger"} for r in changes],
        "rect",
        x=alt.X("response:N", title="response"),
        y=alt.Y("given:N", title="given"),
        color=alt.Color("sign:N", scale=sides, title=f"change (full colour: {most:.2g})", legend=_LEGEND),
        opacity=alt.Opacity("size:Q", scale=strength, legend=None),
        tooltip=["given", "response", "original", "release", "change"],
    )


def _strongest(report: Findings) -> list[tuple[Measured, dict[str, Any]]]:
    """The strongest attacker against each release by what the attacker knows."""
    return [(r, row) for r in report.releases for row in r.charts["attackers"] if row["attacker"] == "strongest"]


def _by_release(report: Findings, legend: alt.Legend | None = _LEGEND) -> alt.Color:
    """A release has the same colour in every chart."""
    scale = alt.Scale(domain=[r.name for r in report.releases], range=[_colour(report, r) for r in report.releases])
    return alt.Color("release:N", title=None, scale=scale, legend=legend)


def _colour(report: Findings, release: Measured) -> str:
    return PALETTE[[other.name for other in report.releases].index(release.name) % len(PALETTE)]


def _drawn(rows: Sequence[Any], mark: Any, *, height: Any = _HEIGHT, **channels: Any) -> Spec | None:
    """A chart of one mark."""
    if not rows:
        return None
    chart = alt.Chart(pd.DataFrame(rows), mark=alt.MarkDef(**mark) if isinstance(mark, dict) else mark)
    return _spec(chart.encode(**channels), height)


def _spec(chart: Any, height: Any = _HEIGHT) -> Spec:
    """As wide as its place, on the page's own ground."""
    spec = dict(chart.properties(width="container", height=height).to_dict())
    spec["background"] = None
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec["config"] = {"view": {"stroke": None}, "font": "system-ui, sans-serif", "axis": {"labelLimit": _LABEL}}
    return spec
