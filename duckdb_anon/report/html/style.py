"""How the page looks: phone and desk, light and dark, screen and paper. One palette for all charts."""

from __future__ import annotations

PALETTE = ("#2f7fb5", "#d9822b", "#3a9a6b", "#a45bb5", "#c0504d", "#8c6d46", "#d4679f", "#6f7f2f")
"""Colours of releases, told apart on white and on near black; the original is always `ORIGINAL`."""
ORIGINAL = "#98a1ad"

CSS = """
:root { color-scheme: light dark; --ink: #1d232b; --soft: #5b6470; --line: #d9dde3; --paper: #fff; --card: #f6f7f9;
--warn: #fff6e0; --edge: #d99a00; --good: #1d7a46; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #a3adba; --line: #3a424d; --paper: #14181d;
--card: #1c2229; --warn: #3a2f12; --good: #6fcf97; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1120px;
margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); } h3 { margin-top: 1.8rem; }
.wide { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
max-width: 30rem; } th { font-weight: 600; vertical-align: bottom; } th.n, td.n { text-align: right; }
td.n { font-variant-numeric: tabular-nums; white-space: nowrap; } td.long { min-width: 14rem; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 480px), 1fr)); gap: 1.5rem;
align-items: start; }
.charts > figure { min-width: 0; } .charts > figure > div { width: 100%; }
.tables { display: flex; flex-wrap: wrap; gap: 0 4rem; } .tables > div { max-width: 100%; }
figure { margin: 0; padding: .8rem; overflow-x: auto; background: var(--card); border-radius: 6px; }
figure svg { display: block; max-width: 100%; height: auto; } figure svg text { fill: var(--ink); }
figure svg .role-axis-grid line { stroke: var(--line); } figure svg .role-axis-tick line,
figure svg .role-axis-domain line { stroke: var(--soft); }
figcaption { font-weight: 600; } .note { color: var(--soft); } code, pre { font-size: .9em; }
code { overflow-wrap: anywhere; } pre { white-space: pre-wrap; background: var(--card); padding: .6rem .8rem;
border-radius: 6px; margin: 1.4rem 0 0; }
.warning { background: var(--warn); border-left: 4px solid var(--edge); padding: .6rem 1rem; }
@media (max-width: 600px) { body { margin: 1rem auto; } td, td.long { min-width: 0; overflow-wrap: anywhere; }
.stack thead { display: none; } .stack, .stack tbody { display: block; }
.stack tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
.stack td, .stack td.n { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .1rem 0;
text-align: right; white-space: normal; }
.stack td::before { content: attr(data-label); color: var(--soft); text-align: left; flex: 0 0 auto; max-width: 45%; }
.stack td:first-child { font-weight: 600; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --card: #fff;
--warn: #fff; --good: #000; --bad: #000; } body { margin: 0; max-width: none; font-size: 10pt; }
figure svg { max-height: 23cm; }
.wide { overflow: visible; } h2, h3, pre, figcaption { break-after: avoid; } figure, tr { break-inside: avoid; }
.charts { display: block; } .charts > figure { display: inline-block; width: 49%; vertical-align: top; }
th, td { padding: .15rem .6rem .15rem 0; } }
"""
_PRINTED = 330
"""Width of a chart on paper, in pixels: half a page, so that its letters stay as large as on the screen."""
DRAW = (
    "const views = []; "
    "for (const [place, spec] of Object.entries(CHARTS)) "
    "vegaEmbed('#' + place, spec, {renderer: 'svg', actions: false}).then(drawn => views.push(drawn.view));\n"
    f"addEventListener('beforeprint', () => views.forEach(view => view.width({_PRINTED}).run()));\n"
    "addEventListener('afterprint', () => dispatchEvent(new Event('resize')));"
)
