// Trade-offs: models by accuracy, unfairness, advantage and epsilon, two at a time.

const known = (point, aim) => plain(point.values[aim]?.[0] ?? null);

const level = (point, aim) => { const value = known(point, aim); return isShare(aim) && value !== null ? 100 * value : value; };

// A model without a guarantee has an infinite epsilon; values that were not measured are unknown.
const worth = (point, aim) => {
  const value = known(point, aim);
  if (value === null || Number.isNaN(value)) return aim === 'epsilon' ? -Infinity : null;
  return glossary[aim].better === 'greater' ? value : -value;
};

const promises = (point) => !['', 'none'].includes(point.guarantee);

// Whether one beats another: at least as good in all, better in one. Epsilons of different kinds are
// not comparable, except that of a model without a guarantee.
const beats = (one, other, aims) => {
  if (one.dataset !== other.dataset || one === other) return false;
  if (aims.includes('epsilon') && one.guarantee !== other.guarantee && promises(other)) return false;
  const pairs = aims.map((aim) => [worth(one, aim), worth(other, aim)]);
  return pairs.every(([a, b]) => a !== null && b !== null && a >= b) && pairs.some(([a, b]) => a > b);
};

const front = (points, aims) => points.filter((point) =>
  aims.every((aim) => worth(point, aim) !== null) && !points.some((other) => beats(other, point, aims)));

const LEGIBLE = 14; // models that colours and markers distinguish

const pairsOf = (aims) => aims.flatMap((x, i) => aims.slice(i + 1).map((y) => [y, x]));

// A chart for each pair of measures: a line joins the models that no other beats in the pair.
const pairChart = (run, points, names, hidden, [x, y], open) => plot(run, `Models by ${titled(x)} and ${titled(y)}. The table below has the numbers.`, () => {
  const seen = points.filter((point) => known(point, x) !== null && known(point, y) !== null);
  const mine = seen.filter((point) => !hidden.has(point.learner));
  const edge = front(mine, [x, y]).toSorted((a, b) => known(a, x) - known(b, x));
  const joined = { x: edge.map((point) => level(point, x)), y: edge.map((point) => level(point, y)), type: 'scatter', mode: 'lines', hoverinfo: 'skip',
    line: { color: ink('dim'), width: 1.5, dash: 'dot' } };
  const dots = mine.map((point) => {
    const { colour, marker } = names.length > LEGIBLE ? { colour: ink('accent'), marker: 'circle' } : look(names, point.learner, false);
    const best = edge.includes(point);
    return { x: [level(point, x)], y: [level(point, y)], customdata: [point], type: 'scatter', mode: 'markers', name: safe(point.learner),
      hovertemplate: [safe(point.learner), ...Object.keys(point.values).map((aim) => `${titled(aim)}: ${written(aim)(known(point, aim))}`),
        ...(point.strongest ? [`strongest attack: ${safe(point.strongest)}`] : [])].join('<br>') + '<extra></extra>',
      marker: { color: colour, symbol: marker, size: SIZES[marker] ?? (best ? 12 : 9), line: { width: 1, color: ink('paper') } } };
  });
  const axis = (aim) => ({ title: `${titled(aim)}${isShare(aim) ? ', %' : ''}, ${direction(glossary[aim].better)}`, log: aim === 'epsilon' });
  return [[...(edge.length > 1 ? [joined] : []), ...dots], layout(axis(x), axis(y))];
}, open);

const explorer = (run) => run.fronts.flatMap((said, number) => {
  const points = said.points.map((point) => ({ ...point, dataset: said.dataset }));
  const aims = said.objectives.filter((aim) => points.some((point) => known(point, aim) !== null));
  if (aims.length < 2 || points.length < 2) return [];
  const best = new Set(front(points, aims));
  const names = points.map((point) => point.learner);
  const open = (point, measure = null) => showLine(run, point.of, measure === 'advantage' ? 'corrected_accuracy' : measure, `${point.dataset} · ${point.learner}`);
  const pairs = pairsOf(aims);
  const hidden = new Set();
  const charts = pairs.map((pair) => pairChart(run, points, names, hidden, pair, open));
  const lacks = (point) => aims.some((aim) => worth(point, aim) === null);
  const state = (i) => (best.has(points[i]) ? 'yes' : lacks(points[i]) ? 'not compared' : 'no');
  const table = new Table({
    caption: `Models of ${said.dataset}`, key: `table-models${number ? `-${number}` : ''}`,
    columns: [
      { title: 'learner', value: (i) => points[i].learner, text: (i) => points[i].learner },
      ...aims.map((aim) => ({ title: titled(aim), measure: aim, number: true, hint: meant(aim), value: (i) => known(points[i], aim), ...(isShare(aim) ? { text: (i) => written(aim)(known(points[i], aim)) } : {}),
        tip: (i) => { const [, low, high] = points[i].values[aim] ?? []; return low === undefined || low === null ? null : `95 %: ${written(aim)(low)} to ${written(aim)(high)}`; } })),
      ...(points.some(promises) ? [{ title: 'guarantee', value: (i) => points[i].guarantee, text: (i) => points[i].guarantee || 'none' }] : []),
      { title: 'Pareto-optimal', choose: true, value: state, text: state, tone: (i) => (best.has(points[i]) ? 'done' : '') },
    ],
    rows: points.map((_, i) => i), open: (i, measure) => open(points[i], measure),
  });
  const together = aims.map(titled).join(', ');
  const title = `Models by two of ${together}`;
  return [
    run.fronts.length > 1 ? el('h3', {}, said.dataset) : null,
    el('p', {}, `${best.size} of ${many(points.length, 'model')} are Pareto-optimal in ${together} together: no other is at least as good in all, and better in one. `
      + 'Dotted lines join the models that are Pareto-optimal in the two measures of the chart. Shares are in %.'),
    ...said.notes.map((text) => el('p', { class: 'notice' }, text)),
    names.length > 1 && names.length <= LEGIBLE ? legend(title, names, () => ({ dashed: false, joined: false }), hidden, () => charts.filter((node) => plots.get(node).drawn).forEach(draw)) : null,
    el('div', { class: `panels of-${columnsFor(pairs.length)}` }, ...charts.map((node, i) => el('div', { class: 'panel' }, el(run.fronts.length > 1 ? 'h4' : 'h3', {}, pairs[i].map(titled).reverse().join(' and ')), node))),
    table.node,
  ].filter(Boolean);
});
