// The page.

const themes = ['auto', 'light', 'dark'];

const themeButton = () => {
  let chosen = 'auto';
  try { chosen = localStorage.getItem('fpbench-theme') ?? 'auto'; } catch { /* a file may have no storage */ }
  const button = el('button', { type: 'button', id: 'theme' });
  const apply = () => {
    if (chosen === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = `Theme: ${chosen}`;
  };
  button.addEventListener('click', () => {
    chosen = themes[(themes.indexOf(chosen) + 1) % themes.length];
    try { localStorage.setItem('fpbench-theme', chosen); } catch { /* as above */ }
    apply();
    redraw();
  });
  if (!themes.includes(chosen)) chosen = 'auto';
  apply();
  return button;
};

const summary = (run) => {
  const counts = new Map();
  for (const status of run.column('status')) counts.set(status || 'not run', (counts.get(status || 'not run') ?? 0) + 1);
  const said = [...counts].map(([status, count]) => `${count.toLocaleString('en')} ${status}`).join(', ');
  const seeds = new Set(run.column('seed')).size;
  const made = run.sessions.at(-1);
  const version = made?.environment?.packages?.fpbench;
  return `${many(run.count, 'cell')} (${said}) · ${many(run.combinations.length, 'combination')} · ${many(seeds, 'seed')}`
    + (made ? ` · ${made.started.slice(0, 10)}${version ? ` · fpbench ${version}` : ''}` : '');
};

const about = (run) => {
  const timings = run.timings.map((_, i) => i);
  const nodes = [madeAll(run)];
  if (timings.length) {
    nodes.push(el('h3', {}, 'Time'), new Table({ caption: 'Mean seconds of a step', key: 'table-time', rows: timings, columns: [
      { title: 'step', choose: true, value: (i) => run.timings[i][0] }, { title: 'component', value: (i) => run.timings[i][1] },
      { title: 'seconds', number: true, value: (i) => run.timings[i][2] }] }).node);
  }
  if (run.matrix) {
    nodes.push(el('h3', {}, 'Matrix'), el('details', {}, el('summary', {}, 'The matrix file'), el('pre', { tabindex: '0' }, run.matrix)));
  }
  return nodes;
};

const madeAll = (run) => el('div', {}, ...run.sessions.toReversed().map((session, i) =>
  el('details', { open: i === 0 }, el('summary', {}, `Session ${session.number}, started ${session.started}`), environment(session.environment))));

const start = async () => {
  if (!('DecompressionStream' in window)) {
    one('#summary').textContent = 'This browser cannot unpack the data of the report: it needs one of 2023 or later.';
    return;
  }
  const run = new Run(JSON.parse(await packed('data')));
  glossary = run.glossary;
  const name = run.path.replace(/[^\w.-]+/g, '_') || 'run';
  one('.tools').append(themeButton(),
    el('button', { type: 'button', id: 'save-csv', onclick: () => save(`${name}.csv`, asCsv(run), 'text/csv') }, 'Download CSV'),
    el('button', { type: 'button', id: 'save-json', onclick: () => save(`${name}.json`, asJson(run), 'application/json') }, 'Download JSON'));
  one('#summary').textContent = summary(run);
  run.views = run.boards.map((said, i) => new Board(run, said, i));
  const boards = one('#boards');
  for (const said of run.boards) {
    if (said.sentences.length && ['combinations', 'reports'].includes(said.view)) {
      boards.append(el('p', { class: 'says' }, said.scope ? el('strong', {}, `${said.scope}: `) : null, said.sentences.join(' ')));
    }
  }
  if (run.views.length) {
    boards.append(el('p', { class: 'hint screen-only' }, 'Click a number, or the button of its row, to see where it comes from.'), ...viewsOf(run));
  } else boards.append(el('p', { class: 'hint' }, 'No cell was done or failed: there is nothing to rank.'));
  await 0; // the leaderboards are seen before the rest is made
  const figures = one('#figures');
  if (run.figures.length) figures.append(...run.figures.map((figure) => figureOf(run, figure)));
  else figures.append(el('p', { class: 'hint' }, 'No figure is possible: the results have no two points on any x axis.'));
  one('#frontier').append(explorer(run));
  one('#cells').append(...losses(run), cellTable(run).node);
  one('#about').append(...about(run));
  startDetails(run);
  addEventListener('beforeprint', () => {
    for (const view of document.querySelectorAll('#boards details.view')) view.all();
    redraw(true);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw());
  document.documentElement.dataset.ready = 'yes';
  drawRest();
};

start().catch((error) => {
  one('#summary').textContent = `The report cannot be shown: ${error.message}`;
  throw error;
});
