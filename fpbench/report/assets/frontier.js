// What is traded for what: models by accuracy, unfairness, advantage and epsilon, and those that no other
// model of the same data beats.

const known = (point, aim) => plain(point.values[aim]?.[0] ?? null);

// A model without a guarantee has an infinite epsilon; of what was not measured nothing is known.
const worth = (point, aim) => {
  const value = known(point, aim);
  if (value === null || Number.isNaN(value)) return aim === 'epsilon' ? -Infinity : null;
  return glossary[aim].better === 'greater' ? value : -value;
};

const promises = (point) => !['', 'none', 'not recorded'].includes(point.guarantee);

// Whether one beats another: at least as good in all, better in one. Epsilons of different kinds are
// not comparable, but for that of a model that promises nothing.
const beats = (one, other, aims) => {
  if (one.dataset !== other.dataset || one === other) return false;
  if (aims.includes('epsilon') && one.guarantee !== other.guarantee && promises(other)) return false;
  const pairs = aims.map((aim) => [worth(one, aim), worth(other, aim)]);
  return pairs.every(([a, b]) => a !== null && b !== null && a >= b) && pairs.some(([a, b]) => a > b);
};

const front = (points, aims) => points.filter((point) =>
  aims.every((aim) => worth(point, aim) !== null) && !points.some((other) => beats(other, point, aims)));

// Room on both sides for the names of the outermost points.
const roomy = (values, log) => {
  const known = values.map((value) => (log ? Math.log10(value) : value)).filter(Number.isFinite);
  if (!known.length) return undefined;
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const room = 0.15 * (most - least) || 0.1;
  return [least - room, most + room];
};

const NAMED = 10;
const byTurns = (places) => {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  return places.map((_, i) => (order.indexOf(i) % 2 ? 'bottom center' : 'top center'));
};

const explorer = (run) => {
  const points = run.fronts.flatMap((said) => said.points.map((point) => ({ ...point, dataset: said.dataset })));
  const aims = [...new Set(run.fronts.flatMap((one) => one.objectives))].filter((aim) => points.some((point) => known(point, aim) !== null));
  const box = el('div');
  if (aims.length < 2 || points.length < 2) {
    box.append(el('p', { class: 'hint' }, 'No trade-off to show: that needs two attacked models and two of accuracy, unfairness, advantage and epsilon.'));
    return box;
  }
  const chosen = { x: aims.includes('advantage') ? 'advantage' : aims[1], y: aims[0], counted: new Set(aims) };
  const pick = (axis, title) => {
    const select = el('select', { id: `aim-${axis}`, onchange: () => { chosen[axis] = select.value; update(); } },
      ...aims.map((aim) => el('option', { value: aim, selected: aim === chosen[axis] }, titled(aim))));
    return el('label', {}, title, select);
  };
  const counts = el('fieldset', {}, el('legend', {}, 'What counts'), ...aims.map((aim) => {
    const input = el('input', { type: 'checkbox', checked: true, 'data-aim': aim, onchange: () => {
      if (input.checked) chosen.counted.add(aim); else chosen.counted.delete(aim);
      if (!chosen.counted.size) { chosen.counted.add(aim); input.checked = true; }
      update();
    } });
    return el('label', {}, input, titled(aim));
  }));
  const names = [...new Set(points.map((point) => point.dataset))];
  let best = new Set();
  const open = (point, measure = null) => showLine(run, point.of, measure === 'advantage' ? 'corrected_accuracy' : measure, `${point.dataset} · ${point.learner}`);
  const node = plot(run, 'Models by two of accuracy, unfairness, advantage and epsilon. The table below has the numbers.', () => {
    const data = names.flatMap((name) => [false, true].map((on) => {
      const mine = points.filter((point) => point.dataset === name && best.has(point) === on
        && known(point, chosen.x) !== null && known(point, chosen.y) !== null);
      const { colour, marker } = look(names, name, false);
      const at = (aim) => mine.map((point) => known(point, aim));
      return { x: at(chosen.x), y: at(chosen.y), customdata: mine, type: 'scatter',
        // Names stand above and below by turns, as far as there is room for them.
        mode: mine.length <= NAMED && (on || points.length <= NAMED) ? 'markers+text' : 'markers', text: mine.map((point) => safe(cut(point.learner))),
        textposition: byTurns(mine.map((point) => known(point, chosen.x))),
        textfont: { color: ink('dim'), size: 11 }, cliponaxis: false,
        name: `${safe(name)}${on ? ': not beaten' : ': beaten'}`,
        hovertemplate: mine.map((point) => [`${safe(point.learner)}`, ...aims.map((aim) => `${titled(aim)}: ${short(known(point, aim))}`),
          ...(point.strongest ? [`strongest attack: ${safe(point.strongest)}`] : [])].join('<br>') + '<extra></extra>'),
        marker: { color: on ? colour : faint(colour), symbol: marker, size: on ? 13 : 9, line: { width: on ? 2 : 1.5, color: on ? ink('ink') : colour } } };
    }));
    const axis = (aim) => ({ title: `${titled(aim)}, ${direction(glossary[aim].better)}`, log: aim === 'epsilon',
      range: roomy(data.flatMap((trace) => trace[aim === chosen.x ? 'x' : 'y']), aim === 'epsilon') });
    return [data.filter((trace) => trace.x.length), layout(axis(chosen.x), axis(chosen.y), {
      showlegend: names.length > 1, legend: { orientation: 'h', yanchor: 'top', y: -0.2, x: 0 } })];
  }, open);
  const several = points.some((point) => point.share !== null);
  const lacks = (point) => [...chosen.counted].some((aim) => worth(point, aim) === null);
  const state = (i) => (best.has(points[i]) ? 'not beaten' : lacks(points[i]) ? 'not compared' : 'beaten');
  const table = new Table({
    caption: 'Models: accuracy and unfairness on the test part; leak is the accuracy of the strongest attack minus that of always guessing the largest group', key: 'table-models',
    columns: [
      { title: 'learner', value: (i) => points[i].learner, text: (i) => points[i].learner },
      ...(names.length > 1 ? [{ title: 'dataset', choose: true, value: (i) => points[i].dataset, text: (i) => points[i].dataset }] : []),
      { title: 'frontier', choose: true, value: state, text: state, tone: (i) => (best.has(points[i]) ? 'done' : '') },
      ...aims.map((aim) => ({ title: titled(aim), measure: aim, number: true, value: (i) => known(points[i], aim),
        tip: (i) => { const [, low, high] = points[i].values[aim] ?? []; return low === undefined || low === null ? null : `95 %: ${short(low)} to ${short(high)}`; } })),
      ...(points.some((point) => point.guarantee && point.guarantee !== 'none') ? [{ title: 'guarantee', value: (i) => points[i].guarantee, text: (i) => points[i].guarantee || 'none' }] : []),
      ...(several ? [{ title: 'how sure', number: true, hint: 'share of bootstrap samples of the seeds in which no model beats it, in all measures together', value: (i) => points[i].share,
        text: (i) => (points[i].share === null ? '–' : `${Math.round(points[i].share * 100)} %`) }] : []),
    ],
    rows: points.map((_, i) => i), open: (i, measure) => open(points[i], measure),
  });
  const said = el('p', { class: 'hint', role: 'status' });
  const update = () => {
    const counted = [...chosen.counted];
    best = new Set(front(points, counted));
    said.textContent = `${best.size} of ${many(points.length, 'model')} are Pareto-optimal in ${counted.map((aim) => titled(aim)).join(', ')}.`;
    table.arrange();
    table.refresh();
    if (plots.get(node).drawn) draw(node);
  };
  box.append(el('p', { class: 'hint' }, 'A model is beaten if another model of the same data is at least as good in every chosen measure, and better in one. A model that is not beaten is Pareto-optimal. A model without a guarantee has an infinite epsilon; epsilons of different guarantees are not compared.'),
    ...run.fronts.flatMap((one) => one.notes.map((text) => el('p', { class: 'notice' }, `${one.dataset}: ${text}`))),
    el('div', { class: 'filters' }, pick('x', 'across'), pick('y', 'up'), counts), said,
    el('div', { class: 'panels one' }, el('div', { class: 'panel' }, node)), table.node);
  update();
  return box;
};
