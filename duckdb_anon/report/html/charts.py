"""The charts of a report, as Vega-Lite specifications made by Altair."""

from __future__ import annotations

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
        for r in report.releases
        for row in _strongest(r)
        if row["p_match"] == RISK_AT and r.charts["errors"] and row["identity"] is not None
    ]
    if not rows:
        return None
    ends = {name: 1.15 * max(float(row[name]) for row in rows) or 1.0 for name in ("risk", "error")}
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X("risk:Q", title="identity, by the strongest attacker", scale=_from_zero(ends["risk"])),
        y=alt.Y("error:Q", title="mean relative query error", scale=_from_zero(ends["error"])),
    )
    points = base.mark_point(filled=True, size=120).encode(
        color=_by_release(report, legend=False), tooltip=["release", "risk", "error"]
    )
    middle = ends["risk"] / 2
    near = base.transform_filter(alt.datum.risk <= middle).mark_text(dx=10, align="left")
    far = base.transform_filter(alt.datum.risk > middle).mark_text(dx=-10, align="right")  # inside a phone's chart
    texts = [part.encode(text="release:N") for part in (near, far)]
    return _spec(alt.layer(points, *texts).properties(height=260))


def risk_over_knowledge(report: Findings, kind: Literal["identity", "attribute"]) -> Spec | None:
    """Risk by the strongest attacker over the attacker's knowledge, one line per release."""
    rows = [
        {"release": r.name, "p_match": row["p_match"], "risk": row[kind]}
        for r in report.releases
        for row in _strongest(r)
        if row[kind] is not None
    ]
    if not rows:
        return None
    lines = alt.Chart(pd.DataFrame(rows)).mark_line(point=True)
    return _spec(
        lines.encode(
            x=alt.X(
                "p_match:Q",
                title="probability that a quasi-identifier is known",
                scale=alt.Scale(zero=False),
                axis=alt.Axis(values=list(P_MATCH), format=".1f"),
            ),
            y=alt.Y("risk:Q", title=f"{kind}, strongest attacker"),
            color=_by_release(report),
            tooltip=["release", "p_match", "risk"],
        )
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
    if not points:
        return None
    scale = alt.Scale(domain=list(sides.values()), range=[ORIGINAL, PALETTE[0]])
    bars = alt.Chart(pd.DataFrame(points)).mark_bar()
    return _spec(
        bars.encode(
            x=alt.X("identity:Q", title="identity", axis=alt.Axis(format="%", tickCount=5), scale=_from_zero(1)),
            y=alt.Y("known:N", title=None, sort=None),
            yOffset=alt.YOffset("table:N", sort=list(sides.values())),
            color=alt.Color("table:N", title=None, scale=scale, legend=_LEGEND),
            tooltip=["known", "table", "identity"],
        )
    )


def query_errors(report: Findings, *, rounded: bool = False) -> Spec | None:
    """Share of the workload's queries with at most a given error."""
    frames = []
    for r in report.releases:
        if r.charts["errors"]:
            errors = np.sort([row["error"] for row in r.charts["errors"]])
            # an exact error of a known query gives the count behind it
            errors = np.ceil(errors * _GRID) / _GRID if rounded else errors
            share = np.arange(1, len(errors) + 1) / len(errors)
            frames.append(pd.DataFrame({"release": r.name, "error": errors, "share": share}))
    if not frames:
        return None
    together = pd.concat(frames)
    widest = min(1.0, float(np.ceil(together["error"].max() * _GRID + 1) / _GRID))
    lines = alt.Chart(together).mark_line(interpolate="step-after", clip=True)
    return _spec(
        lines.encode(
            x=alt.X("error:Q", title="relative error of a query", scale=alt.Scale(domainMax=widest, domainMin=0)),
            y=alt.Y("share:Q", title="share of queries", axis=alt.Axis(format="%")),
            color=_by_release(report),
        )
    )


def losses(report: Findings) -> Spec | None:
    """Information loss of each column, releases side by side."""
    rows = [
        {"release": r.name, "attribute": row["attribute"], "loss": row["iloss"]}
        for r in report.releases
        for row in r.charts["loss"]
        if row["attribute"] != "(all)"
    ]
    if not rows:
        return None
    bars = alt.Chart(pd.DataFrame(rows)).mark_bar()
    return _spec(
        bars.encode(
            x=alt.X("loss:Q", title="information loss, share of the range"),
            y=alt.Y("attribute:N", title=None),
            yOffset="release:N",
            color=_by_release(report),
            tooltip=["release", "attribute", "loss"],
        )
    )


def class_sizes(report: Findings, release: Measured) -> Spec | None:
    """Rows by the size of their equivalence class."""
    if not release.charts["class_sizes"]:
        return None
    frame = pd.DataFrame(release.charts["class_sizes"])
    bars = alt.Chart(frame).mark_bar(color=_colour(report, release))
    return _spec(
        bars.encode(
            x=alt.X(
                "size:Q",
                bin=alt.Bin(maxbins=30, minstep=1),
                title="size of the equivalence class",
                axis=alt.Axis(format="d", tickMinStep=1, labelOverlap="greedy"),
            ),
            y=alt.Y("sum(rows):Q", title="rows"),
        )
    )


def marginal(report: Findings, release: Measured, attribute: str) -> Spec | None:
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
    long = frame.melt("value", ["original", "release"], "table", "rows")
    color = alt.Color(
        "table:N", title=None, scale=alt.Scale(range=[ORIGINAL, _colour(report, release)]), legend=_LEGEND
    )
    if ordered:
        lines = alt.Chart(long).mark_line()
        return _spec(lines.encode(x=alt.X("value:Q", title=attribute), y=alt.Y("rows:Q"), color=color))
    bars = alt.Chart(long).mark_bar()
    names = alt.Axis(labelLimit=_LABEL, labelOverlap=False)
    drawn = bars.encode(
        y=alt.Y("value:N", title=None, sort="-x", axis=names), yOffset="table:N", x=alt.X("rows:Q"), color=color
    )
    # every category has its own line, however many there are
    return _spec(drawn.properties(height=alt.Step(_STEP, **{"for": "offset"})))


def correlation_change(report: Findings, release: Measured) -> Spec | None:
    """Change of the uncertainty coefficient of each pair of columns."""
    if not release.charts["correlation"]:
        return None
    frame = pd.DataFrame(release.charts["correlation"])
    frame["change"] = frame["release"] - frame["original"]
    # the same colours mean the same change for every release
    pairs = [row for r in report.releases for row in r.charts["correlation"]]
    most = max((abs(row["release"] - row["original"]) for row in pairs), default=0.0)
    # paint over the page's own ground: no change is no colour, in the light and in the dark
    frame["size"] = frame["change"].abs()
    frame["sign"] = np.where(frame["change"] < 0, "weaker", "stronger")
    strength = alt.Scale(domain=[0, most or 1], range=[0.05, 1])
    sides = alt.Scale(domain=["weaker", "stronger"], range=[PALETTE[4], PALETTE[0]])
    cells = alt.Chart(frame).mark_rect()
    return _spec(
        cells.encode(
            x=alt.X("response:N", title="response"),
            y=alt.Y("given:N", title="given"),
            color=alt.Color("sign:N", scale=sides, title=f"change (full colour: {most:.2g})", legend=_LEGEND),
            opacity=alt.Opacity("size:Q", scale=strength, legend=None),
            tooltip=["given", "response", "original", "release", "change"],
        )
    )


def _strongest(release: Measured) -> Rows:
    """The strongest attacker by what the attacker knows."""
    return [row for row in release.charts["attackers"] if row["attacker"] == "strongest"]


def _from_zero(end: float) -> alt.Scale:
    return alt.Scale(domainMin=0, domainMax=end)


def _by_release(report: Findings, legend: bool = True) -> alt.Color:
    """A release has the same colour in every chart."""
    names = [release.name for release in report.releases]
    scale = alt.Scale(domain=names, range=[_of_palette(k) for k in range(len(names))])
    return alt.Color("release:N", title=None, scale=scale, legend=_LEGEND if legend else None)


def _colour(report: Findings, release: Measured) -> str:
    return _of_palette([other.name for other in report.releases].index(release.name))


def _of_palette(k: int) -> str:
    return PALETTE[k % len(PALETTE)]


def _spec(chart: Any) -> Spec:
    """As wide as its place, on the page's own ground."""
    sized = chart if "height" in chart.to_dict() else chart.properties(height=_HEIGHT)
    spec = dict(sized.properties(width="container").to_dict())
    spec["background"] = None
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec["config"] = {"view": {"stroke": None}, "font": "system-ui, sans-serif", "axis": {"labelLimit": _LABEL}}
    return spec
