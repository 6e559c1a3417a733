// Where a number comes from: a combination of components, its seeds, and each of its cells.

let opener = null;

const closeDetails = () => one('#details').close();

const sheet = (title, ...children) => {
  const dialog = one('#details');
  if (!dialog.open) opener = document.activeElement;
  const close = el('button', { type: 'button', onclick: closeDetails }, 'Close');
  dialog.replaceChildren(el('div', { class: 'sheet' },
    el('div', { class: 'top' }, el('h2', { id: 'details-title', tabindex: '-1' }, title), close), ...children));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  one('#details-title').focus();
};

const atAddress = (address) => {
  if (location.hash !== address) history.replaceState(null, '', address || location.pathname + location.search);
};

const startDetails = (run) => {
  const dialog = one('#details');
  dialog.addEventListener('close', () => {
    atAddress('');
    opener?.focus?.({ preventScroll: true });
  });
  dialog.addEventListener('click', (event) => { if (event.target === dialog) closeDetails(); });
  const follow = () => {
    const [, what, number] = /^#(combination|cell)=(\d+)$/.exec(location.hash) ?? [];
    if (what === 'combination' && Number(number) < run.combinations.length) showCombination(run, Number(number));
    if (what === 'cell' && Number(number) < run.count) showCell(run, Number(number));
  };
  addEventListener('hashchange', follow);
  follow();
};

const parts = (run, combination) => el('div', { class: 'parts' }, ...run.labels(combination).map(([kind, label]) => {
  const said = run.components[kind]?.[label];
  const lines = [];
  for (const [name, value] of Object.entries(said?.parameters ?? {})) {
    lines.push(el('dt', {}, name), el('dd', {}, shownValue(value)));
  }
  for (const [name, value] of Object.entries(said?.defaults ?? {})) {
    lines.push(el('dt', { class: 'default' }, name), el('dd', { class: 'default' }, `${shownValue(value)} (default)`));
  }
  const use = said && said.use !== label ? el('p', { class: 'hint' }, `component ${said.use}`) : null;
  const note = said?.note ? el('p', { class: 'hint' }, said.note) : null;
  return el('div', { class: 'part' }, el('h4', {}, kind), el('p', {}, label), use, el('dl', {}, ...lines), note);
}));

// A measure by its heading, with its name in the downloads.
const named = (name) => el('span', { title: glossary[name]?.meaning || null }, titled(name), titled(name) === worded(name) ? '' : el('code', {}, name));

// A line of a leaderboard: one combination, or all that its means are over.
const showLine = (run, numbers, measure, title) => {
  if (numbers.length === 1) return showCombination(run, numbers[0], measure);
  const own = run.names.includes(measure) ? measure : run.names.includes('gain') ? 'corrected_accuracy' : null;
  const columns = [
    ...run.kinds.filter((kind) => new Set(numbers.map((n) => run.label(n, kind))).size > 1)
      .map((kind) => ({ title: kind, choose: true, value: (n) => run.label(n, kind), text: (n) => run.label(n, kind) || '–' })),
    ...(own ? [{ title: titled(own), number: true, measure: own, value: (n) => run.spread(own, n)?.mean ?? null }] : []),
    { title: 'seeds', number: true, value: (n) => run.rowsOf[n].filter((row) => run.value('status', row) === 'done').length },
  ];
  const table = new Table({ caption: 'Combinations of this line', columns, rows: numbers, key: 'table-line', open: (n, name) => showCombination(run, n, name ?? own) });
  return sheet(title, el('p', { class: 'hint' }, numbers.length
    ? `A mean over ${many(numbers.length, 'combination')}, each over its seeds.` : 'Its combinations are unknown.'), table.node);
};

const showCombination = (run, combination, measure = null) => {
  const rows = run.rowsOf[combination];
  const found = run.names.filter((name) => !['cell', 'seed', 'status', 'reason', 'seconds'].includes(name));
  const lines = [];
  for (const name of [...(found.includes(measure) ? [measure] : []), ...found.filter((n) => n !== measure), 'seconds']) {
    const spread = run.spread(name, combination);
    if (!spread) continue;
    const [low, high] = interval(run, combination, name);
    const write = written(name);
    lines.push({ asked: name === measure, cells: [named(name), write(spread.mean), write(spread.deviation),
      low === null ? '–' : `${write(low)} to ${write(high)}`, String(spread.count)] });
  }
  const said = measure ? run.spread(measure, combination) : null;
  const shown = said ? el('p', { class: 'shown' }, `${titled(measure)}: `, el('strong', {}, written(measure)(said.mean)),
    ` mean over ${many(said.count, 'seed')}`) : null;
  const reasoned = rows.some((row) => run.value('reason', row));
  const seeds = rows.map((row) => ({ cells: [
    el('button', { class: 'link', type: 'button', onclick: () => showCell(run, row, measure, combination) }, `seed ${run.value('seed', row)}`),
    el('span', { class: run.value('status', row) }, run.value('status', row) || 'not run'),
    ...(measure && found.includes(measure) ? [written(measure)(run.value(measure, row))] : []),
    short(run.value('seconds', row)), ...(reasoned ? [run.value('reason', row) ?? ''] : [])] }));
  const heads = [['seed'], ['status'], ...(measure && found.includes(measure) ? [[titled(measure), true]] : []), ['seconds', true], ...(reasoned ? [['reason']] : [])];
  atAddress(`#combination=${combination}`);
  sheet(run.labels(combination).map(([, label]) => label).join(' · '), shown,
    el('h3', {}, 'Seeds'), simple('Cells of this combination', heads, seeds),
    el('h3', {}, 'Measures'), lines.length
      ? simple('Measures over seeds', [['measure'], ['mean', true], ['sd', true], ['95 %', true], ['seeds', true]], lines)
      : el('p', { class: 'hint' }, 'None of its cells is done.'),
    el('h3', {}, 'Components and parameters'), parts(run, combination),
    madeWith(run, rows));
};

// The interval that a leaderboard has of a measure.
const interval = (run, combination, name) => {
  if (!run.lineOf) {
    run.lineOf = new Map();
    for (const board of run.views.filter((view) => view.said.view === 'combinations')) {
      board.said.of.forEach((numbers, line) => { if (numbers.length === 1) run.lineOf.set(numbers[0], [board, line]); });
    }
  }
  const [board, line] = run.lineOf.get(combination) ?? [];
  const found = board?.measures[name];
  return found ? [found.low[line] ?? null, found.high[line] ?? null] : [null, null];
};

const showCell = (run, row, measure = null, from = null) => {
  const combination = run.of[row];
  const status = run.value('status', row) || 'not run';
  const fixed = ['cell', 'seed', 'status', 'reason', 'seconds'];
  const lines = run.names.filter((name) => !fixed.includes(name) && run.value(name, row) !== null)
    .map((name) => ({ asked: name === measure, cells: [named(name), exact(run.value(name, row))] }));
  const facts = [['status', el('span', { class: status }, status)], ['seed', String(run.value('seed', row))],
    ['seconds', exact(run.value('seconds', row))], ['key', el('code', {}, run.value('cell', row))]];
  const reason = run.value('reason', row);
  atAddress(`#cell=${row}`);
  sheet(`Seed ${run.value('seed', row)} of ${run.labels(combination).map(([, label]) => label).join(' · ')}`,
    reason ? el('p', { class: status === 'failed' ? 'notice bad' : 'notice' }, `${status}: ${reason}`) : null,
    measure && run.value(measure, row) !== null ? el('p', { class: 'shown' }, `${titled(measure)}: `, el('strong', {}, exact(run.value(measure, row)))) : null,
    el('dl', {}, ...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
    el('p', {}, el('button', { class: 'link', type: 'button', onclick: () => showCombination(run, combination, measure) },
      from === null ? 'All seeds of this combination' : 'Back to all seeds')),
    el('h3', {}, 'Measures'), lines.length ? simple('Measures of this cell', [['measure'], ['value', true]], lines) : el('p', { class: 'hint' }, 'It measured nothing.'),
    el('h3', {}, 'Components and parameters'), parts(run, combination),
    madeWith(run, [row]));
};

const environment = (said) => {
  const lines = Object.entries(said).flatMap(([name, value]) => {
    const inner = Array.isArray(value) ? value.join(', ')
      : value && typeof value === 'object' ? Object.entries(value).map(([k, v]) => `${k} ${v}`).join(', ') : String(value);
    return inner ? [el('dt', {}, name), el('dd', {}, inner)] : [];
  });
  return el('dl', {}, ...lines);
};

// The sessions that cells were measured in: when, and with which versions.
const madeWith = (run, rows) => {
  const numbers = [...new Set(rows.map((row) => run.madeIn[row]).filter((number) => number !== null))];
  const sessions = run.sessions.filter((session) => numbers.includes(session.number));
  return el('div', {}, el('h3', {}, 'Made with'), ...(sessions.length ? sessions.map((session) =>
    el('details', { open: sessions.length === 1 }, el('summary', {}, `session ${session.number}, started ${session.started}`), environment(session.environment)))
    : [el('p', { class: 'hint' }, 'It was not run.')]));
};
