const PRINTED_WIDTH = 330;  // half a page of paper, so that letters stay as large as on the screen
const views = [];
for (const [place, spec] of Object.entries(CHARTS))
  vegaEmbed('#' + place, spec, {renderer: 'svg', actions: false}).then(drawn => views.push(drawn.view));
addEventListener('beforeprint', () => views.forEach(view => view.width(PRINTED_WIDTH).run()));
addEventListener('afterprint', () => dispatchEvent(new Event('resize')));
