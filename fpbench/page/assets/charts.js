// Figures: drawn by plotly when they come into view. Colours are those of Okabe and Ito, for the
// colour-blind; markers and dashes show the same without colour.

const COLOURS = {
  light: ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#B77900', '#3A9BD5', '#4D4D4D'],
  dark: ['#56B4E9', '#E69F00', '#2CC99B', '#E79AC3', '#F0E442', '#F2683C', '#D0D0D0'],
};
const MARKERS = ['circle', 'square', 'diamond', 'triangle-up', 'cross', 'x', 'star'];
const SIZES = { 'triangle-up': 13 }; // plotly's triangles are half as high
const MOST_PANELS = matchMedia('(max-width: 40rem)').matches ? 2 : 8; // at first
const FOLD = 20, BAR = 12; // letters of a line of a label beside a chart, and below a bar
const TITLE = matchMedia('(max-width: 40rem)').matches ? 18 : 30; // of a title; where panels are side by side, 18
const POINTED = matchMedia('(hover: hover)').matches; // a finger scrolls the page, and draws no box

let loading = null;
const plots = new Map(); // by node: how it is drawn

const dark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
};
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const faint = (colour) => colour + Math.round(Number(ink('band')) * 255).toString(16).padStart(2, '0');

const plotly = () => {
  loading ??= packed('library').then((text) => {
    const script = el('script');
    script.textContent = text;
    document.head.append(script);
    return window.Plotly;
  });
  return loading;
};

// A label in lines that are short enough for the edge of a chart, its unit not alone.
const folded = (text, width) => text.replace(/, (%|points)$/, ',\u00a0$1').split(' ').reduce((lines, word) => {
  const last = lines.at(-1);
  if (last !== undefined && `${last} ${word}`.length <= width) lines[lines.length - 1] = `${last} ${word}`;
  else lines.push(word);
  return lines;
}, []).map((line) => safe(line.length > 2 * width ? `${line.slice(0, 2 * width)}…` : line)).join('<br>');

// Words of any length go beside a chart, not below it, except the few steps of a waterfall.
const isSideways = (figure) => figure.x.words && !figure.panels.some((panel) => panel.series.some((series) => series.bars));

const layout = (x, y, more = {}) => {
  const axis = (said) => ({
    title: { text: folded(said.title, said.narrow ? 18 : TITLE), standoff: 8 }, type: said.log ? 'log' : 'linear', gridcolor: ink('line'), zerolinecolor: ink('line'),
    linecolor: ink('dim'), automargin: true, tickformat: said.log ? '~g' : undefined,
    ...(said.log ? { exponentformat: 'power', minor: { showgrid: false }, dtick: said.decades > 2.5 ? 1 : 'D2' } : { nticks: 6 }),
    ...(said.words ? { title: undefined, tickvals: said.words.map((_, i) => i), ticktext: told(said.words).map((word) => folded(word, said.down ? FOLD : BAR)), tickangle: said.down ? 0 : 'auto', range: said.down ? [said.words.length - 0.4, -0.6] : [-0.6, said.words.length - 0.4] } : {}),
    ...(said.range ? { range: said.range } : {}),
  });
  return {
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: { color: ink('ink'), family: 'inherit', size: 12.5 },
    margin: { l: 56, r: 12, t: 24, b: 44 }, xaxis: axis(x), yaxis: axis(y), hovermode: 'closest', dragmode: POINTED ? 'zoom' : false,
    showlegend: false,
    modebar: { bgcolor: 'rgba(0,0,0,0)', color: ink('dim'), activecolor: ink('accent') },
    hoverlabel: { bgcolor: ink('panel'), font: { color: ink('ink') }, bordercolor: ink('line') }, ...more,
  };
};

// plotly interprets some tags in text; labels have none.
const safe = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
// The common beginning of the words of an axis is left out, word by word.
const told = (words) => {
  const apart = words.map((word) => word.split(' '));
  let shared = 0;
  while (words.length > 1 && apart.every((parts) => parts.length > shared + 1 && parts[shared] === apart[0][shared])) shared++;
  return apart.map((parts) => parts.slice(shared).join(' '));
};

const look = (names, name, dashed) => {
  const place = names.indexOf(name);
  const colours = COLOURS[dark() ? 'dark' : 'light'];
  return { colour: colours[place % colours.length], marker: MARKERS[(place + Math.floor(place / colours.length)) % MARKERS.length],
    dash: dashed ? 'dash' : place < colours.length ? 'solid' : 'dot' };
};

const band = (series, colour) => {
  const known = series.low.map((low, i) => i).filter((i) => series.low[i] !== null && series.high[i] !== null);
  if (known.length < 2) return [];
  return [{
    x: [...known.map((i) => series.x[i]), ...known.toReversed().map((i) => series.x[i])],
    y: [...known.map((i) => series.high[i]), ...known.toReversed().map((i) => series.low[i])],
    type: 'scatter', mode: 'lines', fill: 'toself', fillcolor: faint(colour), line: { width: 0 }, hoverinfo: 'skip',
  }];
};

const traces = (figure, panel, names, places, hidden) => panel.series.filter((series) => !hidden.has(series.name)).flatMap((series, at) => {
  const { colour, marker, dash } = look(names, series.name, series.dashed);
  const width = Math.min(0.6, 0.1 * panel.series.length);
  const shift = panel.series.length > 1 ? (at / (panel.series.length - 1) - 0.5) * width : 0;
  const x = figure.x.words ? series.x.map((word) => places.indexOf(word) + shift) : series.x;
  const sideways = isSideways(figure);
  if (series.bars) return bars(figure, series, x, colour);
  const errors = (end) => series.y.map((y, i) => (series[end][i] === null ? 0 : Math.abs(series[end][i] - y)));
  const line = {
    ...(sideways ? { x: series.y, y: x } : { x, y: series.y }), name: safe(series.name), customdata: series.of, type: 'scatter',
    mode: series.joined ? 'lines+markers' : 'markers', line: { color: colour, dash, width: 2 },
    marker: { color: colour, symbol: marker, size: SIZES[marker] ?? 9, line: { width: 1, color: ink('paper') } },
    hovertemplate: series.x.map((place, i) => `${safe(series.name)}<br>${safe(figure.x.title)}: ${safe(typeof place === 'number' ? short(place) : place)}`
      + `<br>${safe(figure.y.title)}: ${short(series.y[i])}${series.low[i] === null ? '' : ` (${short(series.low[i])} to ${short(series.high[i])})`}`
      + `<br>${many(series.seeds[i], 'seed')}<extra></extra>`),
    ...(series.joined ? {} : { [sideways ? 'error_x' : 'error_y']: { type: 'data', symmetric: false, array: errors('high'), arrayminus: errors('low'), color: colour, thickness: 1.2, width: 3 } }),
  };
  return [...(series.joined ? band(series, colour) : []), line];
});

// Bars that begin where the bar before ends, the first at the axis, with the added value above each.
const bars = (figure, series, x, colour) => {
  const before = series.y.map((_, i) => (i ? series.y[i - 1] : series.floor));
  const added = series.y.map((y, i) => signedPoints((y - before[i]) / 100));
  const off = (end) => series.y.map((y, i) => (series[end][i] === null ? 0 : Math.abs(series[end][i] - y)));
  const text = series.y.map((y, i) => `${percent(y / 100)}${i ? `<br>(${added[i]})` : ''}`);
  const tops = series.y.map((y, i) => Math.max(y, before[i], series.high[i] ?? y)); // above the interval, too
  return [{ x, y: tops, text, type: 'scatter', mode: 'text', textposition: 'top center', cliponaxis: false, hoverinfo: 'skip' }, {
    x, base: before, y: series.y.map((y, i) => y - before[i]), customdata: series.of, type: 'bar', width: 0.7,
    marker: { color: series.y.map((_, i) => (i ? colour : faint(colour))), line: { color: colour, width: 1 } },
    error_y: { type: 'data', symmetric: false, array: off('high'), arrayminus: off('low'), color: ink('ink'), thickness: 1.2, width: 3 },
    hovertemplate: series.x.map((place, i) => `${safe(place)}<br>${safe(figure.y.title)}: ${series.y[i].toFixed(2)}`
      + `${series.low[i] === null ? '' : ` (${series.low[i].toFixed(2)} to ${series.high[i].toFixed(2)})`}<br>${many(series.seeds[i], 'seed')}<extra></extra>`),
  }];
};

// The same scale for all panels of a figure, so that they can be compared.
const scale = (figure) => {
  const values = figure.panels.flatMap((panel) => panel.series.flatMap((series) => [...series.y, ...series.low, ...series.high, ...(series.bars ? [series.floor, Math.max(...series.y) + 0.2 * (Math.max(...series.y) - series.floor)] : [])]))
    .filter((value) => Number.isFinite(value) && (value > 0 || !figure.y.log)).map((value) => (figure.y.log ? Math.log10(value) : value));
  const [least, most] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  const room = 0.05 * (most - least) || 0.05;
  const bars = figure.panels.some((panel) => panel.series.some((series) => series.bars));
  return [bars ? least : least - room, most + room];
};

// Only buttons that stay in the page: other buttons lead to plotly's site.
const CONFIG = { responsive: true, displayModeBar: POINTED ? 'hover' : false, displaylogo: false, showLink: false, modeBarButtons: [['toImage', 'zoom2d', 'pan2d', 'resetScale2d']],
  toImageButtonOptions: { format: 'svg' } };

const draw = async (node) => {
  const made = plots.get(node);
  if (!made) return;
  const library = await plotly();
  const [data, arranged] = made.make();
  await library.react(node, data, arranged, CONFIG);
  if (!made.drawn) {
    made.drawn = true;
    node.on('plotly_click', (event) => {
      const number = event.points.find((point) => point.customdata !== undefined)?.customdata;
      if (number !== undefined) made.open(number);
    });
  }
  document.documentElement.dataset.drawn = String([...plots.values()].filter((plot) => plot.drawn).length);
};

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      seen.unobserve(entry.target);
      draw(entry.target);
    }
  }
}, { rootMargin: '200px' });

// Figures that nobody has viewed yet are drawn when the page is idle, so that they can be printed.
const idle = window.requestIdleCallback ?? ((then) => setTimeout(then, 200));
const drawRest = () => {
  const [node] = [...plots].find(([, made]) => !made.drawn) ?? [];
  if (node) idle(() => draw(node).then(drawRest));
};

const plot = (run, described, make, open = (combination) => showCombination(run, combination)) => {
  const node = el('div', { class: 'plot', role: 'img', 'aria-label': described });
  plots.set(node, { make, open, drawn: false });
  seen.observe(node);
  return node;
};

const redraw = (all = false) => {
  swatches.forEach((paint) => paint());
  return Promise.all([...plots].filter(([, made]) => all || made.drawn).map(([node]) => draw(node)));
};

// One legend for all panels: a button for each series, which hides it. `seriesOf` returns a series by name.
const legend = (title, names, seriesOf, hidden, update) => el('div', { class: 'legend', role: 'group', 'aria-label': `Series of ${title}` }, ...names.map((name) => {
  const swatch = el('canvas', { width: 56, height: 28, 'aria-hidden': 'true' });
  const { dashed, joined } = seriesOf(name);
  const paint = () => sample(swatch, look(names, name, dashed), joined);
  paint();
  swatches.push(paint);
  const button = el('button', { type: 'button', 'aria-pressed': 'true', title: 'hide or show', onclick: () => {
    if (!hidden.delete(name)) hidden.add(name);
    button.setAttribute('aria-pressed', String(!hidden.has(name)));
    update();
  } }, swatch, name);
  return button;
}));

const swatches = [];

// The look of a series; markers are drawn roughly as plotly draws them.
const sample = (node, { colour, marker, dash }, joined) => {
  const pen = node.getContext('2d');
  pen.setTransform(2, 0, 0, 2, 0, 0);
  pen.clearRect(0, 0, 28, 14);
  Object.assign(pen, { strokeStyle: colour, fillStyle: colour, lineWidth: 2 });
  if (joined) {
    pen.setLineDash({ dash: [5, 3], dot: [2, 2] }[dash] ?? []);
    pen.beginPath(); pen.moveTo(0, 7); pen.lineTo(28, 7); pen.stroke();
  }
  const shapes = {
    square: [[-4, -4], [4, -4], [4, 4], [-4, 4]], diamond: [[0, -5], [5, 0], [0, 5], [-5, 0]], 'triangle-up': [[0, -5], [5, 4], [-5, 4]],
    cross: [[-5, -2], [-2, -2], [-2, -5], [2, -5], [2, -2], [5, -2], [5, 2], [2, 2], [2, 5], [-2, 5], [-2, 2], [-5, 2]],
    x: [[-5, -3], [-3, -5], [0, -2], [3, -5], [5, -3], [2, 0], [5, 3], [3, 5], [0, 2], [-3, 5], [-5, 3], [-2, 0]],
    star: [[0, -6], [1.5, -2], [6, -2], [2.4, 0.8], [3.7, 5], [0, 2.5], [-3.7, 5], [-2.4, 0.8], [-6, -2], [-1.5, -2]],
  };
  pen.beginPath();
  if (shapes[marker]) shapes[marker].forEach(([x, y], i) => (i ? pen.lineTo(14 + x, 7 + y) : pen.moveTo(14 + x, 7 + y)));
  else pen.arc(14, 7, 4.5, 0, 2 * Math.PI);
  pen.fill();
};

// The number of panels side by side, if there is room.
const columnsFor = (count) => (count <= 4 ? count : count <= 6 ? 3 : 4);

const figureOf = (run, figure) => {
  const names = [...new Set(figure.panels.flatMap((panel) => panel.series.map((series) => series.name)))];
  const places = figure.x.words ? [...new Set(figure.panels.flatMap((panel) => panel.series.flatMap((series) => series.x)))] : [];
  const one = figure.panels.length === 1;
  const range = scale(figure);
  const across = figure.panels.flatMap((panel) => panel.series.flatMap((series) => series.x)).filter((x) => x > 0).map(Math.log10);
  const decades = Math.max(...across) - Math.min(...across);
  const hidden = new Set();
  const mine = [];
  const sideways = isSideways(figure);
  const most = Math.max(...figure.panels.map((panel) => panel.series.length));
  const box = el('div', { class: `panels of-${columnsFor(figure.panels.length)}` });
  const make = (panel) => () => {
    const narrow = figure.panels.length > 1;
    const places_ = { ...figure.x, narrow, decades, words: figure.x.words ? places : null, down: sideways };
    const measured = { ...figure.y, narrow, range, decades: range[1] - range[0] };
    return [traces(figure, panel, names, places, hidden), sideways ? layout(measured, places_) : layout(places_, measured)];
  };
  const add = (panels) => box.append(...panels.map((panel) => {
    const node = plot(run, `${figure.title}${panel.title ? `, ${panel.title}` : ''}: a chart of ${figure.y.title} against ${figure.x.title}. The table below has its numbers.`, make(panel));
    if (sideways) node.style.height = `${100 + places.length * Math.max(40, 12 * most)}px`;
    mine.push(node);
    return el('div', { class: 'panel' }, panel.title ? el('h4', {}, panel.title) : null, node);
  }));
  add(figure.panels.slice(0, MOST_PANELS));
  const rest = figure.panels.slice(MOST_PANELS);
  const more = rest.length ? el('button', { type: 'button', class: 'screen-only', onclick: () => { add(rest); more.remove(); } }, `Show ${many(rest.length, 'more panel')}`) : null;
  const numbers = el('details', {}, el('summary', {}, 'Numbers of this figure'));
  numbers.addEventListener('toggle', () => {
    if (numbers.open && numbers.childElementCount === 1) numbers.append(numbersOf(run, figure).node);
  });
  return el('figure', { id: `figure-${figure.name}`, class: one ? 'alone' : null }, el('h3', {}, figure.title), el('figcaption', {}, bound(figure.caption)),
    names.length > 1 ? legend(figure.title, names, (name) => figure.panels.flatMap((panel) => panel.series).find((series) => series.name === name), hidden, () => mine.filter((node) => plots.get(node).drawn).forEach(draw)) : null, box, more, numbers);
};

const FIRST = 2; // figures that are shown at once, beside the waterfall

const figuresOf = (run) => {
  const figures = run.figures.filter((figure) => figure.name !== 'waterfall');
  const shown = pairedOf(run, figures.slice(0, FIRST));
  const others = figures.slice(FIRST);
  if (!others.length) return shown;
  const rest = el('details', { class: 'rest' }, el('summary', {}, `${many(others.length, 'more figure')}`));
  rest.all = () => {
    rest.open = true;
    if (rest.childElementCount === 1) rest.append(...pairedOf(run, others));
  };
  rest.addEventListener('toggle', () => { if (rest.open) rest.all(); });
  return [...shown, rest];
};

// Single charts go in pairs; a last one alone takes the whole width.
const pairedOf = (run, figures) => {
  const nodes = figures.map((figure) => figureOf(run, figure));
  let open = null;
  for (const node of nodes) {
    if (!node.classList.contains('alone')) open = null;
    else if (open) open = (open.classList.add('paired'), node.classList.add('paired'), null);
    else open = node;
  }
  return nodes.length ? [el('div', { class: 'figures' }, ...nodes)] : [];
};

const numbersOf = (run, figure) => {
  const points = figure.panels.flatMap((panel) => panel.series.flatMap((series) =>
    series.x.map((x, i) => ({ panel: panel.title, name: series.name, x, y: series.y[i], low: series.low[i], high: series.high[i], seeds: series.seeds[i], of: series.of[i] }))));
  const columns = [
    { title: 'series', choose: true, value: (i) => points[i].name, text: (i) => points[i].name },
    ...(figure.panels.length > 1 ? [{ title: 'panel', choose: true, value: (i) => points[i].panel, text: (i) => points[i].panel }] : []),
    { title: figure.x.title, number: !figure.x.words, first: true, value: (i) => points[i].x },
    { title: figure.y.title, number: true, value: (i) => points[i].y },
    { title: '95 % interval', number: true, value: (i) => points[i].low, text: (i) => (points[i].low === null ? '–' : `${short(points[i].low)} to ${short(points[i].high)}`) },
    { title: 'seeds', number: true, value: (i) => points[i].seeds },
  ];
  return new Table({ caption: `Numbers of: ${figure.title}`, columns, rows: points.map((_, i) => i), key: `numbers-${figure.name}`,
    open: (i) => showCombination(run, points[i].of) });
};
